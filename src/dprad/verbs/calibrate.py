"""calibrate: how much noise keeps the extra risk within what is accepted?

The answer is assessed again and sits on the safe side: the upper end of ``plan.risk.interval`` is
at most ``max_risk``, and a value weaker by the stated tolerance was tried and is not good enough.
Where risk is not monotone (whole parameters inside: subset selection, local hashing, Hadamard
response) every piece is searched. Where it is estimated, the search uses one set of random numbers
and the final check a fresh one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dprad import bounds
from dprad.errors import DpradError, number, one_of
from dprad.exact import Sampling
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model import explain
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.numerics.random import Seed
from dprad.numerics.search import Search, UnattainableError
from dprad.runtime.progress import tell
from dprad.verbs.assess import answer, sampled
from dprad.verbs.dial import Dial

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
    rng: Seed = 0,
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
    question = Question.of(Prior.unknown() if prior is None else prior, threat, query)
    dial = Dial.of(family, parameter, between, fixed, question)
    return turned(dial, question, max_risk, sampled(trials, confidence, rng), measure=measure)


def turned(
    dial: Dial, question: Question, max_risk: float, sampling: Sampling, *, measure: str = "rad"
) -> Calibration:
    """The weakest value of a dial, for a question that is prepared already."""
    target = number(max_risk, "max_risk", low=0, high=1)
    one_of(measure, "measure", MEASURES)
    trial = _Trial(dial, question, measure, sampling)
    search = Search(
        trial, target, dial.low, dial.high, dial.rising is not False, dial.whole, TOLERANCE
    )
    if dial.rising is None:
        # whether risk grows with the value, from both ends of the range
        search.rising = search.risk(search.high) >= search.risk(search.low)
    try:
        start = dial.start(target, question)
        search.risk(start)
        if trial.estimated:
            search.tolerance = ROUGH
        value = search.weakest(start, dial.edges(trial.subjects[start], start))
    except UnattainableError as limit:
        raise DpradError(_unattainable(limit, trial, target)) from None
    subject, risk = trial.subjects[value], trial.risk(value)
    if measure == "rad" and risk.kind == "estimate":
        searched = value
        value, subject, risk = _fresh(trial, value, search)
        search.tolerance += abs(value / searched - 1.0)
    error = subject.error(0.95) if isinstance(subject, Mechanism) else None
    return Calibration(
        mechanism=subject,
        family=dial.title(subject),
        parameter=dial.name or "value",
        rising=search.rising,
        value=int(value) if dial.whole else value,
        risk=risk,
        max_risk=target,
        measure=measure,
        error=error,
        evaluations=len(search.seen),
        tolerance=search.tolerance,
    )


@dataclass(slots=True)
class _Trial:
    """A value of the parameter -> what is held to the target. Remembers what was made."""

    dial: Dial
    question: Question
    measure: str
    sampling: Sampling
    subjects: dict[float, Any] = field(default_factory=dict)
    risks: dict[float, Risk] = field(default_factory=dict)

    def __call__(self, value: float) -> float:
        subject = self.subjects[value] = self.dial.make(value)
        if self.measure == "tv":
            promise = subject.guarantee if isinstance(subject, Mechanism) else subject
            if not isinstance(promise, Guarantee):
                raise DpradError("measure 'tv' needs something that says what it promises.")
            return float(promise.tv)
        tell(f"calibrating, {len(self.subjects)} values tried", 0, 0)
        return _measured(self.risk(value), self.measure)

    def risk(self, value: float) -> Risk:
        """At a value that was tried."""
        if value not in self.risks:
            self.risks[value] = answer(self.subjects[value], self.question, self.sampling)
        return self.risks[value]

    @property
    def estimated(self) -> bool:
        """Whether any risk is an estimate."""
        return any(risk.kind == "estimate" for risk in self.risks.values())


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


def _fresh(trial: _Trial, value: float, search: Search) -> tuple[float, Any, Risk]:
    """Check an estimate on random numbers the search has not seen; back off until it holds.

    The k-th check is made at a confidence of 1 - alpha/2^k, so that all together keep alpha.
    """
    sampling = trial.sampling
    alpha = 1.0 - sampling.confidence
    for k in range(1, CHECKS + 1):
        subject = trial.dial.make(value)
        sharper = replace(sampling, seed=sampling.seed + 7919 * k, confidence=1.0 - alpha / 2**k)
        risk = answer(subject, trial.question, sharper)
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


def _unattainable(limit: UnattainableError, trial: _Trial, target: float) -> str:
    what, name = trial.dial.called("the mechanism"), trial.dial.name
    risk = explain.MEASURES.get(trial.measure, f"bound {trial.measure}")
    if limit.every:
        return (
            f"every {name or 'value'} meets max_risk = {target:g}: the {risk} of {what} does not "
            f"exceed {limit.extreme:.6g} (at {name or 'value'} = {limit.value:g}). There is "
            "nothing to calibrate."
        )
    if target == 0:
        return f"no noise reaches max_risk = 0: {what} always tells something. Accept a small risk."
    more = " It is estimated, and this is the upper end: give more trials."
    hint = more if trial.estimated else ""
    return (
        f"no {name or 'value'} in the range that is searched meets max_risk = {target:g}: the "
        f"{risk} of {what} is still {limit.extreme:.6g} at {name or 'value'} = {limit.value:g}."
        f"{hint}"
    )
