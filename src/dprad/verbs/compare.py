"""compare: risk and error of several mechanisms side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.exact.likelihood import remembered
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.foreign import as_mechanism
from dprad.model import explain
from dprad.model.comparisons import Candidate, Comparison
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.numerics.random import Seed
from dprad.runtime.progress import known, steps
from dprad.verbs.assess import answer, sampled

_Row = tuple[Any, Risk, float | None, float | None]


@remembered()
def compare(
    mechanisms: Iterable[Any] | Mapping[str, Any],
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int = 20_000,
    rng: Seed = 0,
) -> Comparison:
    """Risk and error of several mechanisms, guarantees or calibrations, least risk first.

    `error` is the 95% error of additive noise; `variance` is that of an estimated frequency or
    mean. Mechanisms are compared on whichever they have.

    Parameters
    ----------
    mechanisms
        A list of mechanisms, guarantees or results of `calibrate`, or ``{name: one of them}``.
    prior
        The population, as for `assess`.
    threat
        The attacker, as for `assess`.
    query
        What the mechanisms read from a record, as for `assess`.
    trials
        Number of draws, where a risk is estimated.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.

    Returns
    -------
    Comparison
        One candidate per mechanism.

    Examples
    --------
    >>> import dprad
    >>> from dprad.mechanisms import GRR, OUE
    >>> table = dprad.compare([GRR(epsilon=1, size=5), OUE(epsilon=1, size=5)],
    ...                       prior=dprad.Prior.uniform(5))
    >>> [c.name for c in table]
    ['OUE(epsilon=1, size=5)', 'GRR(epsilon=1, size=5)']

    """
    named = mechanisms if isinstance(mechanisms, Mapping) else None
    try:
        given = mechanisms if named is None else named.values()
        subjects = [m.mechanism if isinstance(m, Calibration) else m for m in given]
    except TypeError:
        raise DpradError("compare takes a list of mechanisms, but got something else.") from None
    if not subjects:
        raise DpradError("compare takes a list of mechanisms, but it is empty.")
    names = None if named is None else [str(name) for name in named]
    question = Question.of(prior, threat, query)
    return compared(subjects, question, sampled(trials, 0.95, rng), names)


def compared(
    subjects: Iterable[Any],
    question: Question,
    sampling: Sampling,
    names: Iterable[str] | None = None,
) -> Comparison:
    """The same for a prepared question."""
    promised = replace(question, query=None)  # a guarantee reads nothing
    rows: list[_Row] = []
    for subject in steps("mechanisms", list(subjects)):
        if isinstance(subject, Guarantee):
            rows.append((subject, answer(subject, promised, sampling), None, None))
        else:
            mechanism = as_mechanism(subject, "compare")
            risk = answer(mechanism, question, sampling)
            rows.append((subject, risk, mechanism.error(0.95), mechanism.variance()))
        seen = rows[-1][1]
        known(f"{_name(seen.subject)}: extra risk {explain.number(seen)}")
    given = [_name(row[1].subject) for row in rows] if names is None else list(names)
    order = sorted(range(len(rows)), key=lambda i: rows[i][1].rad)
    return Comparison(
        candidates=tuple(
            Candidate(
                name=given[i],
                mechanism=rows[i][0],
                risk=rows[i][1],
                error=rows[i][2],
                variance=rows[i][3],
                frontier=not any(beats(other, rows[i][1:]) for other in rows),
            )
            for i in order
        )
    )


def beats(other: Any, mine: tuple[Risk, float | None, float | None]) -> bool:
    """Whether another candidate is lower in one and no higher in the other, for the same kind of
    error.
    """
    _, risk, error, variance = other
    if (error is None) != (mine[1] is None):
        return False  # a distance cannot be compared with a proportion
    theirs, ours = (variance, mine[2]) if error is None else (error, mine[1])
    if theirs is None or ours is None:
        return False
    no_worse = risk.rad <= mine[0].rad and theirs <= ours
    return bool(no_worse and (risk.rad < mine[0].rad or theirs < ours))


def _name(subject: dict[str, Any]) -> str:
    """The kind and the noise, without the range, which is often that of the data."""
    plain = {k: v for k, v in subject.items() if k not in ("bounds", "doubts", "sensitivity")}
    kind = plain.pop("kind")
    shown = [
        f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}"
        for k, v in plain.items()
        if v is not None and (k, v) != ("delta", 0.0)
    ]
    return f"{kind}({', '.join(shown)})"
