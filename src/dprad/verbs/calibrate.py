"""calibrate: how much noise keeps the extra risk within what is accepted?

The answer is assessed again and sits on the safe side: the upper end of ``plan.risk.interval`` is
at most ``max_risk``, and a value weaker by the stated tolerance was tried and is not good enough.
Where risk is not monotone (whole parameters inside: subset selection, local hashing, Hadamard
response) every piece is searched. Where it is estimated, the search uses one set of random numbers
and the final check a fresh one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad import bounds
from dprad.errors import DpradError, interval, number, one_of, whole
from dprad.game.game import Game, play
from dprad.game.reading import Query, columns_read
from dprad.mechanisms.bounded import HYBRID_FROM
from dprad.model import explain
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat, target_values
from dprad.numerics.search import Search, UnattainableError
from dprad.runtime.progress import tell
from dprad.verbs.assess import assess

# What can be held to a target: the extra risk, the success, the total variation of the promise, or
# one bound of the table by name, for comparison.
MEASURES = ("rad", "rero", "tv", *(row.name for row in bounds.TABLE))
# How near the weakest value is found, exactly computed and estimated.
TOLERANCE = 1e-7
ROUGH = 1e-3
# Fresh samples that may be drawn for the final check of an estimate.
CHECKS = 40
# How far beyond what a check asks for the next value backs off, at first.
BACK_OFF = 1e-3


@dataclass(frozen=True, slots=True)
class _Range:
    """Where a parameter is looked for, and whether risk grows with it."""

    low: float
    high: float
    rising: bool
    whole: bool = False


# Parameters by name; noise scales are in units of the sensitivity.
_RANGES = {
    "epsilon": _Range(1e-13, 700.0, rising=True),
    "mu": _Range(1e-13, 1e3, rising=True),
    "tv": _Range(1e-15, 1.0, rising=True),
    "sample_rate": _Range(1e-9, 1.0, rising=True),
    "times": _Range(1.0, 1e6, rising=True, whole=True),
    "steps": _Range(1.0, 1e7, rising=True, whole=True),
    "sigma": _Range(1e-4, 1e13, rising=False),
    "noise_multiplier": _Range(0.05, 1e6, rising=False),
    "scale": _Range(1e-6, 1e9, rising=False),
}


def calibrate(
    family: Callable[..., Any],
    *,
    max_risk: float,
    prior: Prior | None = None,
    threat: Threat | None = None,
    parameter: str | None = None,
    between: tuple[float, float] | None = None,
    measure: str = "rad",
    query: Query | None = None,
    trials: int = 20_000,
    confidence: float = 0.95,
    rng: int = 0,
    **fixed: Any,
) -> Calibration:
    """The least noise that keeps the extra risk at or below `max_risk`.

    Parameters
    ----------
    family
        A mechanism or guarantee class, or any function that returns one of these; the rest of its
        arguments are passed on (``sensitivity=100``). `size` may be left out: the prior has it.
    max_risk
        The extra risk that is accepted.
    prior, threat, query
        As for `assess`; default prior: unknown.
    parameter
        What is free: default the only one of epsilon, sigma, noise_multiplier, mu, ... that is not
        given. Of a function with one argument, that.
    between
        Where to look, if the parameter is not one of the usual names.
    measure
        ``"rad"``, the extra risk; ``"rero"``, the whole success; ``"tv"``, the total variation of
        the promise as it is made (for add-remove promises: the best membership test); or one
        bound of the table, such as ``"theorem-3"``, to compare.
    trials, confidence, rng
        As for `assess`, where the risk is estimated.
    **fixed
        What else the family takes.

    Returns
    -------
    Calibration
        ``plan.mechanism, plan.parameter, plan.value, plan.risk``.

    Examples
    --------
    Two answers, accepted extra risk 0.1: epsilon = ln 1.5.

    >>> import dprad
    >>> plan = dprad.calibrate(dprad.mechanisms.GRR, max_risk=0.1, prior=dprad.Prior.uniform(2))
    >>> round(plan.value, 6), plan.risk.rad <= 0.1
    (0.405465, True)

    """
    if not callable(family):
        raise DpradError(
            "calibrate takes a mechanism class (such as mechanisms.Laplace) or a function that "
            f"returns a mechanism or a guarantee, but got a {type(family).__name__}."
        )
    target = number(max_risk, "max_risk", low=0, high=1)
    one_of(measure, "measure", MEASURES)
    prior = Prior.unknown() if prior is None else prior
    threat = Threat() if threat is None else threat
    game = play(prior, threat)
    name = _parameter(family, parameter, fixed)
    fixed = _sized(family, fixed, prior, threat, query)
    where = _where(family, name, between, fixed)
    question = {
        "prior": prior,
        "threat": threat,
        "trials": whole(trials, "trials", low=2),
        "confidence": number(confidence, "confidence", low=0, high=1),
        "rng": whole(rng, "rng", low=0, hint="It is a seed."),
    }
    found: dict[float, tuple[Any, Risk | None]] = {}

    def make(value: float) -> Any:
        argument = int(value) if where.whole else value
        try:
            return family(**{name: argument}, **fixed) if name else family(argument)
        except TypeError as error:
            what = getattr(family, "__name__", "the function")
            raise DpradError(f"{what} cannot be made: {error}.") from None

    def evaluate(value: float) -> float:
        subject = make(value)
        if measure == "tv":
            promise = getattr(subject, "guarantee", subject)
            if not isinstance(promise, Guarantee):
                raise DpradError("measure 'tv' needs something that says what it promises.")
            found[value] = subject, None
            return float(promise.tv)
        risk = _assessed(subject, query, question)
        found[value] = subject, risk
        tell(f"calibrating, {len(found)} values tried", 0, 0)
        return _measured(risk, measure)

    search = Search(evaluate, target, where.low, where.high, where.rising, where.whole, TOLERANCE)
    start = _start(family, target, game, fixed, where)
    if between is not None:
        search.rising = _direction(search)
    try:
        first = float(round(start)) if where.whole else start
        search.risk(first)
        if any(r is not None and r.kind == "estimate" for _, r in found.values()):
            search.tolerance = ROUGH
        value = search.weakest(start, _edges(found[first][0], first, where))
    except UnattainableError as limit:
        rough = any(r is not None and r.kind == "estimate" for _, r in found.values())
        raise DpradError(_unattainable(limit, family, name, target, measure, rough)) from None
    subject, risk = found[value]
    if risk is None:
        risk = _assessed(subject, query, question)
    if measure == "rad" and risk.kind == "estimate":
        searched = value
        value, subject, risk = _fresh(make, value, search, query, question)
        search.tolerance += abs(value / searched - 1.0)
    return Calibration(
        mechanism=subject,
        family=_name(family, subject),
        parameter=name or "value",
        rising=search.rising,
        value=int(value) if where.whole else value,
        risk=risk,
        max_risk=target,
        measure=measure,
        error=_error(subject),
        evaluations=len(search.seen),
        tolerance=search.tolerance,
    )


def _assessed(subject: Any, query: Query | None, question: dict[str, Any]) -> Risk:
    return assess(subject, query=query, **question)


def _name(family: Any, subject: Any) -> str:
    name = str(getattr(family, "__name__", ""))
    return name if name.isidentifier() else str(subject.describe()["kind"])


def _measured(risk: Risk, measure: str) -> float:
    if measure == "rero" and risk.kind == "estimate":
        raise DpradError(
            "measure 'rero' needs a risk that can be computed, but here it can only be estimated."
        )
    if measure in ("rad", "rero"):
        return risk.interval[1] if measure == "rad" else risk.rero
    row = next((b for b in risk.bounds if b.name == measure), None)
    if row is None or row.value is None:
        why = "it takes a guarantee" if row is None else row.reason
        raise DpradError(f"measure {measure!r} does not apply here: {why}.")
    return row.value


def _fresh(
    make: Callable[[float], Any],
    value: float,
    search: Search,
    query: Query | None,
    question: dict[str, Any],
) -> tuple[float, Any, Risk]:
    """Check an estimate on random numbers the search has not seen; back off until it holds.

    The k-th check is made at a confidence of 1 - alpha/2^k, so that all together keep alpha.
    """
    alpha = 1.0 - question["confidence"]
    for k in range(1, CHECKS + 1):
        subject = make(value)
        sharper = {"rng": question["rng"] + 7919 * k, "confidence": 1.0 - alpha / 2**k}
        risk = _assessed(subject, query, question | sharper)
        search.seen[value] = risk.interval[1]
        if risk.interval[1] <= search.target:
            return value, subject, risk
        excess = risk.interval[1] / search.target
        factor = excess * (1 + min(BACK_OFF * 2 ** (k - 1), 0.05))
        value = value / factor if search.rising else value * factor
        if search.whole:
            value = float(math.floor(value) if search.rising else math.ceil(value))
        value = min(max(value, search.low), search.high)
    raise DpradError(
        "the risk is estimated too roughly to be sure of the target. Give more trials."
    )


def _error(subject: Any) -> float | None:
    return float(subject.error(0.95)) if hasattr(subject, "error") else None


def _parameter(family: Any, given: str | None, fixed: dict[str, Any]) -> str:
    """The name of the free parameter; empty for a function of one argument by place."""
    try:
        names = list(inspect.signature(family).parameters)
    except (TypeError, ValueError):
        names = []
    if given is not None:
        if names and given not in names and not _takes_any(family):
            raise DpradError(f"parameter must be one of {', '.join(names)}, but is {given!r}.")
        if given in fixed:
            raise DpradError(f"parameter {given!r} is to be found; do not give it a value.")
        return given
    free = [n for n in names if n in _RANGES and n not in fixed]
    if len(free) == 1:
        return free[0]
    required = [n for n in free if _required(family, n)]
    if len(required) == 1:
        return required[0]
    if len(names) == 1 and not fixed:
        return "" if names[0] not in _RANGES else names[0]
    raise DpradError(
        "say which parameter is free, parameter=...; "
        f"{getattr(family, '__name__', 'the function')} has {', '.join(names) or 'none by name'}."
    )


def _takes_any(family: Any) -> bool:
    parameters = inspect.signature(family).parameters.values()
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def _required(family: Any, name: str) -> bool:
    return inspect.signature(family).parameters[name].default is inspect.Parameter.empty


def _sized(
    family: Any, fixed: dict[str, Any], prior: Prior, threat: Threat, query: Query | None
) -> dict[str, Any]:
    """The size of a categorical mechanism, from the prior, if it was left out."""
    try:
        parameters = inspect.signature(family).parameters
    except (TypeError, ValueError):
        return fixed
    missing = "size" in parameters and "size" not in fixed and _required(family, "size")
    if not missing or prior.kind != "finite" or callable(query):
        return fixed
    values = target_values(prior, columns_read(prior, threat, query))[1]
    return {**fixed, "size": len(values)}


def _where(
    family: Any, name: str, between: tuple[float, float] | None, fixed: dict[str, Any]
) -> _Range:
    usual = _RANGES.get(name)
    if between is not None:
        low, high = interval(between, "between")
        if low <= 0:
            raise DpradError(f"between must be positive, but begins at {low:g}.")
        count = usual is not None and usual.whole
        return _Range(low, high, usual.rising if usual else True, count)
    if usual is None:
        what = f"the parameter {name!r}" if name else "the argument of the function"
        raise DpradError(f"say where to look for {what}: between=(low, high).")
    unit = 1.0
    if name in ("sigma", "scale"):
        unit = number(fixed.get("sensitivity", 1.0), "sensitivity", low=0)
    high = float(getattr(family, "highest", usual.high)) if name == "epsilon" else usual.high
    most = float(getattr(family, "largest", math.inf))
    return _Range(usual.low * unit, min(high * unit, most), usual.rising, usual.whole)


def _direction(search: Search) -> bool:
    """Whether risk grows with the value, from both ends of the range."""
    return search.risk(search.high) >= search.risk(search.low)


def _start(family: Any, target: float, game: Game, fixed: dict[str, Any], where: _Range) -> float:
    """A first guess: closed forms for uniform priors, which are near for others too."""
    name = getattr(family, "__name__", "")
    share = min(target / game.unlike, 0.999) if game.unlike > 0 else 0.5
    guess = math.sqrt(where.low * where.high)
    if name in ("GRR", "PureDP", "ApproxDP"):
        m = fixed.get("size", 2)
        guess = math.log1p(m * share / (1.0 - share))
    elif name in ("Laplace", "Geometric", "Staircase"):
        m = len(game.probabilities) if game.probabilities is not None else 2
        guess = -2.0 * max(m - 1, 1) * math.log1p(-share)
    elif name in ("Gaussian", "DiscreteGaussian"):
        from scipy.special import ndtri

        m = len(game.probabilities) if game.probabilities is not None else 2
        gap = float(fixed.get("sensitivity", 1.0)) / max(m - 1, 1)
        guess = gap / (2.0 * float(ndtri((1.0 + share) / 2)))
    elif name == "dpsgd" and _sensible(fixed):
        # the central limit: mu = rate sqrt(steps (e^{1/sigma^2} - 1)), and TV = 2 Phi(mu/2) - 1
        from scipy.special import ndtri

        mu = 2.0 * float(ndtri((1.0 + min(target, 0.999)) / 2))
        moment = (mu / fixed["sample_rate"]) ** 2 / fixed["steps"]
        guess = 1.0 / math.sqrt(math.log1p(moment)) if moment > 0 else guess
    elif name and where.rising and where.high >= 700.0:
        guess = 1.0
    elif where.rising and not where.whole:
        guess = min(1.0, guess)
    return min(max(guess, where.low), where.high)


def _sensible(fixed: dict[str, Any]) -> bool:
    """Whether a training is described by numbers that a formula can take."""
    given = [fixed.get("sample_rate"), fixed.get("steps")]
    return all(isinstance(v, int | float) and v > 0 for v in given)


def _edges(subject: Any, value: float, where: _Range) -> list[float]:
    """Values of epsilon at which a whole parameter inside the mechanism changes.

    Read off a mechanism that was made: whatever made it, if the free value is its epsilon.
    """
    kind, size = type(subject).__name__, getattr(subject, "size", 1)
    if getattr(subject, "epsilon", None) != value:
        return []
    if kind == "SubsetSelection":
        odds = size / (np.arange(1, size // 2 + 2) + 0.5) - 1.0
        return [float(e) for e in np.log(odds[odds > 1.0])]
    if kind == "OLH":
        count = min(math.exp(where.high), 1e5)
        return [float(e) for e in np.log(np.arange(1, int(count)) + 0.5)]
    if kind == "HadamardResponse":
        return [k * math.log(2.0) for k in range(1, int(math.log2(2 * size)) + 1)]
    return [HYBRID_FROM] if kind == "Hybrid" else []


def _unattainable(
    limit: UnattainableError, family: Any, name: str, target: float, measure: str, rough: bool
) -> str:
    what = getattr(family, "__name__", "the mechanism")
    risk = explain.MEASURES.get(measure, f"bound {measure}")
    if limit.every:
        return (
            f"every {name or 'value'} meets max_risk = {target:g}: the {risk} of {what} does not "
            f"exceed {limit.extreme:.6g} (at {name or 'value'} = {limit.value:g}). There is "
            "nothing to calibrate."
        )
    if target == 0:
        return f"no noise reaches max_risk = 0: {what} always tells something. Accept a small risk."
    hint = " It is estimated, and this is the upper end: give more trials." if rough else ""
    return (
        f"no {name or 'value'} in the range that is searched meets max_risk = {target:g}: the "
        f"{risk} of {what} is still {limit.extreme:.6g} at {name or 'value'} = {limit.value:g}."
        f"{hint}"
    )
