"""calibrate: how much noise keeps the extra risk within an accepted limit?

The answer is assessed again and is on the safe side: the upper end of ``plan.risk.interval`` is at
most ``max_risk`` (with ``worst=True``, that of ``plan.risk.worst_interval``), and a value with less
noise, by the stated tolerance, was tried and fails. Where risk is not monotone (subset selection,
local hashing and Hadamard response contain whole-number parameters), every monotone piece is
searched. Where risk is estimated, the search uses one set of random numbers, and the answer is
found by checks on fresh and longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dprad import bounds
from dprad.errors import (
    DpradError,
    NoNoiseSufficesError,
    NothingToCalibrateError,
    number,
    one_of,
)
from dprad.exact import Sampling
from dprad.exact.likelihood import remembered
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.model import explain
from dprad.model.guarantees import UNKNOWN, Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.model.verdicts import free, upper
from dprad.numerics.random import Seed
from dprad.numerics.search import Search, UnattainableError
from dprad.runtime.progress import known, part
from dprad.verbs.assess import answer, sampled, worst_of
from dprad.verbs.dial import Dial

Measure = Callable[[Guarantee], float]
# Summaries of the promise by name; what else can be limited: the extra risk, that of one person,
# the success rate, or one bound of the table by name, for comparison.
SUMMARIES: dict[str, Measure] = {"tv": lambda p: p.tv, "advantage": lambda p: p.advantage}
MEASURES = ("rad", "worst", "rero", *SUMMARIES, *(row.name for row in bounds.TABLE))
# Relative tolerance of the value, where the risk is computed exactly and where it is estimated.
TOLERANCE = 1e-7
ROUGH = 1e-3
# Most fresh samples drawn for the final checks of an estimate, how many times longer they are than
# those of the search, and the number of draws above which they are not longer.
CHECKS, LONGER, MOST_DRAWS = 40, 10, 2_000_000
# How far the next value first goes beyond what a check asks for, and how far apart two values are
# between which the slope of the risk is read.
FURTHER, NEARBY = 1e-3, 0.05


@remembered()
def calibrate(
    family: Callable[..., Any],
    *,
    max_risk: float,
    prior: Prior | None = None,
    threat: Threat | None = None,
    parameter: str | None = None,
    between: tuple[float, float] | None = None,
    measure: str | Measure = "rad",
    worst: bool = False,
    query: Query | None = None,
    trials: int = 20_000,
    confidence: float = 0.95,
    rng: Seed = 0,
    **fixed: Any,
) -> Calibration:
    """The least noise that keeps the extra risk at or below `max_risk`.

    Parameters
    ----------
    family
        A mechanism or guarantee class, or a function that returns an instance of one.
    max_risk
        The accepted extra risk.
    prior
        The population, as for `assess`; default: unknown.
    threat
        The attacker, as for `assess`.
    parameter
        The free parameter. Default: the only one of epsilon, sigma, noise_multiplier, mu, ... that
        is not given; for a function with one argument, that argument.
    between
        Search range (low, high), needed if the parameter has an unusual name.
    query
        What the mechanism reads from a record, as for `assess`.
    measure
        ``"rad"``, the extra risk; ``"rero"``, the success rate of the attacker; ``"tv"`` or
        ``"advantage"``, the total variation of the promise as stated (for add-remove promises: the
        best membership test); one bound of the table, such as ``"theorem-3"``, for comparison; or a
        function of the promise, such as ``lambda p: p.tpr_at(fpr=0.01)``.
    worst
        Whether to limit the largest own risk of a single person (``measure="worst"``) instead of
        the average over people.
    trials
        Number of draws, where the risk is estimated; the final checks use ten times as many.
    confidence
        Confidence level of the interval, between 0 and 1.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    **fixed
        The other arguments of `family`, such as ``sensitivity=100``. `size` may be left out: it
        follows from the prior.

    Returns
    -------
    Calibration
        ``plan.mechanism, plan.parameter, plan.value, plan.risk``.

    Examples
    --------
    Two possible answers and an accepted extra risk of 0.1 give epsilon = ln 1.5:

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
    question = Question.of(Prior.unknown() if prior is None else prior, threat, query)
    dial = Dial.of(family, parameter, between, fixed, question)
    if worst and measure != "rad":
        raise DpradError(f"worst=True limits the extra risk: leave out measure={measure!r}.")
    measure = "worst" if worst else measure
    return turned(dial, question, max_risk, sampled(trials, confidence, rng), measure=measure)


def turned(
    dial: Dial,
    question: Question,
    max_risk: float,
    sampling: Sampling,
    *,
    measure: str | Measure = "rad",
) -> Calibration:
    """The weakest value of a dial, for a prepared question."""
    summary = measure if callable(measure) else SUMMARIES.get(str(measure))
    target = number(max_risk, "max_risk", low=0, high=math.inf if callable(measure) else 1)
    measure = "summary" if callable(measure) else one_of(measure, "measure", MEASURES)
    trial = _Trial(dial, question, measure, sampling, target, summary)
    search = Search(
        trial, target, dial.low, dial.high, dial.rising is not False, dial.whole, TOLERANCE
    )
    if dial.rising is None:
        # whether risk grows with the value, judged from both ends of the range
        search.rising = search.risk(search.high) >= search.risk(search.low)
    try:
        start = dial.start(target, question)
        search.risk(start)
        if trial.estimated:
            search.tolerance = ROUGH
        value = search.weakest(start, dial.edges(trial.subjects[start], start))
    except UnattainableError as limit:
        kind = NothingToCalibrateError if limit.every else NoNoiseSufficesError
        raise kind(_unattainable(limit, trial, target)) from None
    subject, risk = trial.subjects[value], trial.risk(value)
    estimated = risk.worst_kind if measure == "worst" else risk.kind
    if measure in ("rad", "worst") and estimated == "estimate":
        searched = value
        value, subject, risk = _fresh(trial, value, search)
        search.ended = search.ended and value == searched
        search.tolerance = _failing(value, search)
    if risk.worst is None:  # left out of the search
        run = as_mechanism(subject, "calibrate").prepared(question)
        risk = replace(risk, **worst_of(run, question, sampling))
    error = subject.error(0.95) if isinstance(subject, Mechanism) else None
    return Calibration(
        mechanism=subject,
        family=dial.title(str(risk.subject["kind"])),
        parameter=dial.name or "value",
        rising=search.rising,
        value=int(value) if dial.whole else value,
        risk=risk,
        max_risk=target,
        measure=measure,
        error=error,
        evaluations=len(search.seen),
        tolerance=search.tolerance,
        limited=search.ended,
    )


@dataclass(slots=True)
class _Trial:
    """Maps a parameter value to the measure held to the target. Caches what was made."""

    dial: Dial
    question: Question
    measure: str
    sampling: Sampling
    target: float
    summary: Measure | None = None
    subjects: dict[float, Any] = field(default_factory=dict)
    risks: dict[float, Risk] = field(default_factory=dict)
    told: dict[bool, str] = field(default_factory=dict)

    def __call__(self, value: float) -> float:
        subject = self.subjects[value] = self.dial.make(value)
        if self.summary is not None:
            promise = subject.guarantee if isinstance(subject, Mechanism) else subject
            if not isinstance(promise, Guarantee):
                raise DpradError(
                    f"measure {self.measure!r} needs a mechanism or guarantee that states its "
                    "promise."
                )
            # not stated: the worse reading
            read = promise.replace_one() if promise.neighbours == UNKNOWN else promise
            found = float(self.summary(read))
            if math.isnan(found):
                raise DpradError("measure must return a number, but returned NaN.")
            return found
        with part(f"calibrating, {len(self.subjects)} values tried"):
            found = _measured(self.risk(value), self.measure)
        self.tell(value, found)
        return found

    def tell(self, value: float, found: float) -> None:
        """The last value that keeps the limit and the last that does not: the search closes in."""
        fits = found <= self.target
        risk = explain.MEASURES.get(self.measure, f"bound {self.measure}")
        line = (
            f"{self.dial.name or 'value'} = {value:.6g} {'keeps' if fits else 'exceeds'} the limit "
            f"of {self.target:g}: {risk} {found:.4g}"
        )
        known(line, instead=self.told.get(fits, ""))
        self.told[fits] = line

    def risk(self, value: float) -> Risk:
        """The risk at a value that was tried."""
        if value not in self.risks:
            own = self.measure == "worst"
            self.risks[value] = answer(self.subjects[value], self.question, self.sampling, own=own)
        return self.risks[value]

    @property
    def estimated(self) -> bool:
        """Whether any risk is an estimate."""
        if self.measure == "worst":
            return any(risk.worst_kind == "estimate" for risk in self.risks.values())
        return any(risk.kind == "estimate" for risk in self.risks.values())


def held(risk: Risk, measure: str) -> float:
    """The upper end of what is held to the limit: the average, or the largest for one person; where
    the prior is doubtful, also what holds for every prior.
    """
    worst = measure == "worst"
    known = upper(risk, worst=worst)
    return known if risk.any_prior is None else max(known, free(risk, worst=worst))


def _measured(risk: Risk, measure: str) -> float:
    if measure == "rero" and risk.kind == "estimate":
        raise DpradError(
            "measure 'rero' needs a risk that can be computed, but here it can only be estimated."
        )
    if measure in ("rad", "worst"):
        return held(risk, measure)
    if measure == "rero":
        return risk.rero
    row = next((b for b in risk.bounds if b.name == measure), None)
    if row is None or row.value is None:
        why = "it takes a guarantee" if row is None else row.reason
        raise DpradError(f"measure {measure!r} does not apply here: {why}.")
    return row.value


def _fresh(trial: _Trial, value: float, search: Search) -> tuple[float, Any, Risk]:
    """The last value that passes a check on fresh random numbers before one fails.

    Checks are longer than the search, so that their intervals are narrower. The k-th has confidence
    1 - alpha/2^k, so that all together keep alpha.
    """
    draws = max(trial.sampling.trials, min(LONGER * trial.sampling.trials, MOST_DRAWS))
    rough, measure = trial.risk(value), trial.measure
    middle = rough.rad if measure == "rad" else float(rough.worst or 0.0)
    narrower = (held(rough, measure) - middle) * math.sqrt(trial.sampling.trials / draws)
    slope = _slope(value, search)
    value = _moved(value, middle + narrower, slope, search)
    best: tuple[float, Any, Risk] | None = None
    for k in range(1, CHECKS + 1):
        subject = trial.dial.make(value)
        sharper = _sharper(trial.sampling, draws, k)
        with part(f"checking the answer, {k} values tried"):
            risk = answer(subject, trial.question, sharper, own=measure == "worst")
        found = held(risk, measure)
        search.seen[value] = found
        trial.tell(value, found)
        if found <= search.target:
            best = value, subject, risk
        elif best is not None:
            return best
        further = min(FURTHER * 2 ** (k - 1), 0.05)
        value = _moved(value, found, slope, search, further)
        if best is not None and value == best[0]:  # the end of the range, or no whole number
            return best
    if best is not None:
        return best
    raise DpradError(
        "the estimate of the risk is too rough to confirm the target. Give more trials."
    )


def _sharper(sampling: Sampling, draws: int, k: int) -> Sampling:
    confidence = 1.0 - (1.0 - sampling.confidence) / 2**k
    seed = sampling.seed + 7919 * k
    return replace(sampling, trials=draws, seed=seed, confidence=confidence)


def _slope(value: float, search: Search) -> float:
    """By how many percent risk grows for one percent of the value, from what the search saw."""
    apart = {other: abs(math.log(other / value)) for other in search.seen if other != value}
    if not apart:
        return 1.0
    other = min(apart, key=lambda v: abs(math.log(apart[v] / NEARBY)))
    rise = math.log(max(search.seen[other], 1e-300) / max(search.seen[value], 1e-300))
    slope = abs(rise / math.log(other / value))
    return min(max(slope, 0.1), 100.0)


def _moved(value: float, risk: float, slope: float, search: Search, further: float = 0.0) -> float:
    """Where the target would be met with this slope, and a little further."""
    excess = max(risk, 1e-300) / search.target
    beyond = excess * (1 + further) if excess > 1 else excess / (1 + further)
    factor = math.exp(math.log(beyond) / slope)
    moved = value / factor if search.rising else value * factor
    if search.whole:
        moved = float(math.floor(moved) if search.rising else math.ceil(moved))
    return min(max(moved, search.low), search.high)


def _failing(value: float, search: Search) -> float:
    """How far, relatively, the nearest value with less noise that was tried and failed is."""
    less = [
        abs(other / value - 1.0)
        for other, risk in search.seen.items()
        if risk > search.target and (other > value) == search.rising and other != value
    ]
    return min(less, default=ROUGH)


def _unattainable(limit: UnattainableError, trial: _Trial, target: float) -> str:
    what, name = trial.dial.called("the mechanism"), trial.dial.name
    risk = explain.MEASURES.get(trial.measure, f"bound {trial.measure}")
    # a value in units of the sensitivity would tell it, and that may be the range of the data
    at = "" if trial.dial.scaled else f"{name or 'value'} = {limit.value:g}"
    if limit.every:
        values = f"every {name or 'value'}{' tried' if limit.sampled else ''}"
        return (
            f"{values} meets max_risk = {target:g}: the {risk} of {what} does not "
            f"exceed {limit.extreme:.6g}{at and f' (at {at})'}. There is nothing to calibrate."
        )
    if target == 0:
        return (
            f"no noise reaches max_risk = 0: {what} always reveals something. Accept a small risk."
        )
    more = " This is the upper end of an estimate: give more trials."
    hint = more if trial.estimated else ""
    return (
        f"no {name or 'value'} in the search range meets max_risk = {target:g}: the "
        f"{risk} of {what} is still {limit.extreme:.6g}{at and f' at {at}'}.{hint}"
    )
