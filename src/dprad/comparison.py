"""compare and worst_prior: risk and error side by side; the prior one should fear.

RAD grows with 1 - kappa, so the paper's rule (two equally likely records) is not the worst case.
`worst_prior` climbs from several priors to a riskier one, which is a lower bound on the worst case,
and sets it beside the bound that holds for every prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dprad.arrays import FloatArray
from dprad.assessment import assess
from dprad.errors import DpradError, whole
from dprad.guarantees import Guarantee
from dprad.priors import Prior
from dprad.reading import Query
from dprad.results import Calibration, Candidate, Comparison, Risk, WorstPrior
from dprad.threats import Threat

# Rounds of climbing from each start, and how far a record's probability is moved at a time.
ROUNDS = 60
STEPS = (0.5, 0.2, 0.05, 0.01, 0.002)


def compare(
    mechanisms: Iterable[Any],
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int = 20_000,
    rng: int = 0,
) -> Comparison:
    """Risk and error of several mechanisms, guarantees or calibrations, least risk first.

    `error` is the 95% error of additive noise, `variance` that of an estimated frequency or mean;
    mechanisms are compared on the one they have.

    Examples
    --------
    >>> import dprad
    >>> from dprad.mechanisms import GRR, OUE
    >>> table = dprad.compare([GRR(epsilon=1, size=5), OUE(epsilon=1, size=5)],
    ...                       prior=dprad.Prior.uniform(5))
    >>> [c.name for c in table]
    ['OUE(epsilon=1, size=5)', 'GRR(epsilon=1, size=5)']

    """
    try:
        subjects = [m.mechanism if isinstance(m, Calibration) else m for m in mechanisms]
    except TypeError:
        raise DpradError("compare takes a list of mechanisms, but got something else.") from None
    if not subjects:
        raise DpradError("compare takes a list of mechanisms, but it is empty.")
    found = []
    for subject in subjects:
        extra: dict[str, Any] = {} if isinstance(subject, Guarantee) else {"query": query}
        risk = assess(subject, prior=prior, threat=threat, trials=trials, rng=rng, **extra)
        error = float(subject.error(0.95)) if hasattr(subject, "error") else None
        variance = float(subject.variance()) if hasattr(subject, "variance") else None
        found.append((subject, risk, error, variance))
    found.sort(key=lambda row: row[1].rad)
    return Comparison(
        candidates=tuple(
            Candidate(
                name=_name(subject),
                mechanism=subject,
                risk=risk,
                error=error,
                variance=variance,
                frontier=not any(_beats(other, (risk, error, variance)) for other in found),
            )
            for subject, risk, error, variance in found
        )
    )


def _beats(other: Any, mine: tuple[Risk, float | None, float | None]) -> bool:
    """Whether another has less of one and no more of the other, on the same kind of error."""
    _, risk, error, variance = other
    if (error is None) != (mine[1] is None):
        return False  # a distance and a share cannot be compared
    theirs, ours = (variance, mine[2]) if error is None else (error, mine[1])
    if theirs is None or ours is None:
        return False
    no_worse = risk.rad <= mine[0].rad and theirs <= ours
    return bool(no_worse and (risk.rad < mine[0].rad or theirs < ours))


def _name(subject: Any) -> str:
    """The kind and its numbers, as one would write them."""
    plain = dict(subject.describe())
    kind = plain.pop("kind")
    shown = [
        f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}"
        for k, v in plain.items()
        if v is not None and (k, v) != ("delta", 0.0)
    ]
    return f"{kind}({', '.join(shown)})"


def worst_prior(
    mechanism: Any,
    *,
    threat: Threat | None = None,
    size: int | None = None,
    trials: int = 4_000,
    rng: int = 0,
) -> WorstPrior:
    """Search for the prior with the largest extra risk. Some hundred times the cost of `assess`.

    `size` is the number of possible records: the values 0, 1, ... of a categorical mechanism
    (default: all of its own), or so many evenly spaced numbers within the clamp, the bounds or the
    sensitivity of a numeric one (default: 10).

    Examples
    --------
    >>> import dprad
    >>> worst = dprad.worst_prior(dprad.mechanisms.GRR(epsilon=1.0, size=10))
    >>> round(worst.risk.rad, 3)        # the uniform prior: 0.132, not the two-point one: 0.073
    0.132

    """
    threat = Threat() if threat is None else threat
    if isinstance(mechanism, Guarantee):
        raise DpradError(
            "worst_prior takes a mechanism; a guarantee is assessed for every prior at once: "
            "assess(guarantee, prior=Prior.unknown())."
        )
    if isinstance(mechanism, type) or not hasattr(mechanism, "sample"):
        raise DpradError(
            "worst_prior takes a mechanism, such as mechanisms.GRR(epsilon=1.0, size=10), but got "
            f"{mechanism!r}."
        )
    values = _values(mechanism, size)
    if mechanism.guarantee is None:
        raise DpradError("worst_prior needs to know what the mechanism promises: guarantee=...")
    bound = assess(mechanism.guarantee, prior=Prior.unknown(), threat=threat)
    seen: dict[bytes, float] = {}

    def made(weight: FloatArray) -> Prior:
        return Prior.from_counts(dict(zip(values, weight.tolist(), strict=True)))

    def risk(weight: FloatArray) -> float:
        key = np.round(weight, 12).tobytes()
        if key not in seen:
            found = assess(mechanism, prior=made(weight), threat=threat, trials=trials, rng=rng)
            seen[key] = found.rad
        return seen[key]

    best, top = np.full(len(values), 1.0 / len(values)), -1.0
    for start in _starts(len(values)):
        weight, value = _climb(risk, start)
        if value > top:
            best, top = weight, value
    prior = made(best)
    final = assess(mechanism, prior=prior, threat=threat, rng=rng + 1)
    return WorstPrior(prior=prior, risk=final, bound=bound)


def _values(mechanism: Any, size: int | None) -> list[Any]:
    own = getattr(mechanism, "size", None)
    if own is not None:
        if size is not None and size != own:
            raise DpradError(f"size must be that of the mechanism, {own}, but is {size!r}.")
        return list(range(own))
    count = 10 if size is None else whole(size, "size", low=1)
    span = getattr(mechanism, "clamp", None) or getattr(mechanism, "bounds", None)
    if span is None:
        if not hasattr(mechanism, "sensitivity"):
            raise DpradError(
                f"worst_prior cannot tell which numbers a {type(mechanism).__name__} reads."
            )
        span = (0.0, mechanism.sensitivity)
    low, high = span[0], min(span[1], span[0] + getattr(mechanism, "sensitivity", np.inf))
    points = np.linspace(low, high, count)
    if getattr(mechanism, "whole", False):
        points = np.unique(np.rint(points))
    return [float(v) for v in points]


def _starts(size: int) -> list[FloatArray]:
    """Uniform, two records, both ends and some, a heavy one."""
    uniform = np.full(size, 1.0 / size)
    two, heavy = np.zeros(size), np.full(size, 0.5 / max(size - 1, 1))
    two[[0, -1]] = 0.5
    heavy[size // 2] = 0.5
    spread = np.zeros(size)
    spread[:: max(1, size // 4)] = 1.0
    return [w / w.sum() for w in (uniform, two, heavy, spread)]


def _climb(risk: Any, weight: FloatArray) -> tuple[FloatArray, float]:
    """Move probability to or from one record at a time, as long as that raises the risk."""
    value = risk(weight)
    for step in STEPS:
        for _ in range(ROUNDS):
            before = value
            for i in range(len(weight)):
                for share in (step, -step):
                    moved = weight * (1.0 - share) if share > 0 else weight.copy()
                    if share > 0:
                        moved[i] += share
                    else:
                        moved[i] *= 1.0 + share
                    moved /= moved.sum()
                    found = risk(moved)
                    if found > value * (1 + 1e-9):
                        weight, value = moved, found
            if value <= before * (1 + 1e-6):
                break
    return weight, value
