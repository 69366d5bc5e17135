"""The conclusion of an audit: certificates, an interval, a model-based estimate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprad.attacks.counting import evenly_lucky
from dprad.errors import DpradError
from dprad.exact import Sampling, solve
from dprad.game.game import Table
from dprad.game.question import Posed
from dprad.model.audits import Audit
from dprad.numerics.intervals import less_luck
from dprad.verbs.audit.certificates import Certificate, certify, lower_mean
from dprad.verbs.audit.model import HIGHEST, ModelEstimate, estimate
from dprad.verbs.audit.tally import Tally

if TYPE_CHECKING:
    from dprad.verbs.audit.plan import Plan
    from dprad.verbs.audit.run import Counts
    from dprad.verbs.audit.target import Target

Guess = Callable[[float, tuple[float, float]], ModelEstimate]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The tested claim: (epsilon, delta) for replaced records, and a limit on the extra risk."""

    game: Table
    epsilon: float
    delta: float
    limit: float
    alpha: float

    def certificates(self, tally: Tally, sequential: bool) -> tuple[tuple[Certificate, ...], bool]:
        """All certificates, and whether the claim is refuted."""
        certificates, low = certify(
            tally, self.game, delta=self.delta, alpha=self.alpha, sequential=sequential
        )
        refuted = max(c.epsilon for c in certificates) > self.epsilon or low > self.limit
        return certificates, refuted


def enough(tally: Tally, test: Hypothesis, precision: float | None) -> bool:
    """Whether a sequential audit may stop: refuted, or known to this precision."""
    if test.certificates(tally, sequential=True)[1]:
        return True
    if precision is None:
        return False
    low, high = risk_interval(tally, test.game, test.alpha, sequential=True)
    return high - low <= precision


def risk_interval(
    tally: Tally, game: Table, alpha: float, *, sequential: bool
) -> tuple[float, float]:
    """Where the RAD of the attack lies: binomial where all guesses are alike, else by betting."""
    each = evenly_lucky(game)
    if each is not None and not sequential:
        made = tally.runs - tally.passes
        return less_luck(tally.successes, made, tally.runs, each, 1.0 - alpha)
    values, counts = tally.terms(known=not game.nothing_known)
    return lower_mean(values, counts, alpha / 2), -lower_mean(-values, counts, alpha / 2)


def conclude(plan: Plan, target: Target, counts: Counts, sequential: bool, seconds: float) -> Audit:
    """The result: certificates, the extra risk of the attack, a model-based estimate."""
    test, tally, game = counts.test, counts.tally, target.game
    certificates, violated = test.certificates(tally, sequential)
    rad = _extra(tally, game)
    interval = risk_interval(tally, game, test.alpha, sequential=sequential)
    notes = list(target.notes)
    if counts.interrupted:
        notes.append("interrupted: this is what was known by then")
    again, before = counts.replayed
    if before:
        notes.append(
            f"{before:,} calls are from an earlier session; {again:,} of them were run again and "
            "agreed"
        )
    guess, supposed = _guess(target), None
    try:
        supposed = None if guess is None else guess(rad, interval)
    except (DpradError, ArithmeticError) as error:
        notes.append(f"no model-based estimate: {error}")
        guess = None
    if supposed is not None and supposed.warning:
        notes.append(supposed.warning)
    return Audit(
        verdict="violated" if violated else "consistent",
        epsilon_lower=max(c.epsilon for c in certificates),
        epsilon_claimed=test.epsilon,
        delta=test.delta,
        rad_claimed=test.limit,
        epsilon_estimate=None if supposed is None else supposed.epsilon,
        epsilon_interval=None if supposed is None else supposed.interval,
        rad=rad,
        rad_interval=interval,
        confidence=1.0 - test.alpha,
        trials=tally.runs,
        studied=target.studied,
        passes=tally.passes,
        successes=tally.successes,
        certificates=tuple((c.name, c.epsilon) for c in certificates),
        sequential=sequential,
        claim=plan.claim.describe(),
        threat=target.question.describe(),
        prior=repr(target.question.prior),
        notes=tuple(notes),
        seconds=seconds,
        trace=_trace(counts, guess),
        unverified=before - again + target.unverified,
    )


def _trace(counts: Counts, guess: Guess | None) -> tuple[tuple[int, float, float | None], ...]:
    """What was certified and estimated after 64, 128, ... runs, if that was kept."""
    if not counts.seen:
        return ()
    points = []
    for part in [*(t for t in counts.seen if t.runs < counts.tally.runs), counts.tally]:
        low = max(c.epsilon for c in counts.test.certificates(part, True)[0])
        at = _extra(part, counts.test.game)
        points.append((part.runs, low, None if guess is None else guess(at, (at, at)).epsilon))
    return tuple(points)


def _extra(tally: Tally, game: Table) -> float:
    """The extra risk of the attack, as estimated."""
    values, counts = tally.terms(known=not game.nothing_known)
    return float(values @ counts) / tally.runs


def _guess(target: Target) -> Guess | None:
    """Extra risk and its interval -> the epsilon at which the model behaves like that."""
    if target.model is None or target.model.at is None:
        return None
    family, question = target.model.at, target.question
    first = family(1.0)
    posed = Posed(target.game, first.read(question))

    @functools.cache
    def curve(at: float) -> float:
        return solve(family(at), posed, Sampling()).rad

    top, steady = min(HIGHEST, first.highest), not first.edges()
    return lambda rad, interval: estimate(curve, rad, interval, highest=top, monotone=steady)
