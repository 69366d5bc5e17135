"""The conclusion of an audit: certificates, an interval, a model-based estimate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dprad import bounds
from dprad.attacks.counting import evenly_lucky
from dprad.errors import DpradError
from dprad.exact import Sampling, solve
from dprad.game.game import Table
from dprad.game.question import Posed
from dprad.model.audits import Audit
from dprad.numerics.intervals import less_luck
from dprad.verbs.audit.certificates import lower_mean
from dprad.verbs.audit.findable import Tested, least_found, of_session
from dprad.verbs.audit.model import HIGHEST, ModelEstimate, estimate
from dprad.verbs.audit.tally import Tally

if TYPE_CHECKING:
    from dprad.verbs.audit.plan import Plan
    from dprad.verbs.audit.run import Counts
    from dprad.verbs.audit.target import Target

INTERRUPTED = "interrupted: this is what was known by then"

Guess = Callable[[float, tuple[float, float]], ModelEstimate]


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
    """The result: the verdict, the extra risk of the attack, a model-based estimate."""
    evidence, alpha, game = counts.evidence, plan.settings.alpha, target.game
    tally = evidence.tally
    low = evidence.refuted(alpha, sequential)
    violated = evidence.log_wealth() >= -math.log(alpha)
    if target.session is None:
        violated = low > plan.point[0]
    rad = extra(tally, game)
    # learned guesses change on the way, so they are no binomial sample
    moving = sequential or target.session is not None
    interval = risk_interval(tally, game, alpha, sequential=moving)
    notes = list(target.notes)
    if target.session is not None and target.session.reader.floating and not target.session.bits:
        notes.append(
            "outputs are floating-point numbers; bits=True also looks at their lowest bits"
        )
    if target.session is not None:
        notes += target.session.reader.notes()
    if counts.interrupted:
        notes.append(INTERRUPTED)
    again, before = counts.replayed
    if before:
        notes.append(
            f"{before:,} calls are from an earlier session; {again:,} of them were run again and "
            "agreed"
        )
    guess, supposed = None, None
    try:
        guess = _guess(target)
        supposed = None if guess is None else guess(rad, interval)
    except (DpradError, ArithmeticError) as error:
        notes.append(f"no model-based estimate: {error}")
        guess = None
    if supposed is not None and supposed.warning:
        notes.append(supposed.warning)
    limit = bounds.least(bounds.evaluate(plan.claim, game), "rad")[1]
    return Audit(
        verdict="violated" if violated else "consistent",
        epsilon_lower=low,
        epsilon_claimed=plan.point[0],
        delta=plan.point[1],
        rad_claimed=limit,
        epsilon_estimate=None if supposed is None else supposed.epsilon,
        epsilon_interval=None if supposed is None else supposed.interval,
        rad=rad,
        rad_interval=interval,
        confidence=1.0 - alpha,
        trials=tally.runs,
        studied=target.studied,
        passes=tally.passes,
        successes=tally.successes,
        in_out=plan.in_out,
        evidence=evidence.name,
        wealth=counts.wealth,
        would_find=would_find(plan, target, tally),
        carried=_carried(target),
        differ=() if target.session is None else target.session.differ,
        sequential=sequential,
        claim=plan.claim.describe(),
        threat=target.question.describe(),
        prior=repr(target.question.prior),
        notes=tuple(notes),
        seconds=seconds,
        trace=_trace(counts, guess, game),
        unverified=before - again + target.unverified,
    )


def would_find(plan: Plan, target: Target, tally: Tally) -> float | None:
    """The least epsilon whose violation these calls would have found; None if there is none."""
    case = Tested(plan.tested, plan.point, plan.settings.alpha)
    if target.session is not None:
        return of_session(case, target.session)
    return least_found(case, tally.runs - tally.passes, rarest(target.game))


def rarest(game: Table) -> float:
    """The least chance of a set on which bets are made."""
    luck = game.luck
    return float(luck[luck > 0].min(initial=0.5))


def _carried(target: Target) -> tuple[tuple[str, float], ...]:
    """Which learners carried the evidence, the most important first."""
    if target.session is None or target.session.predictor is None:
        return ()
    shares = target.session.predictor.shares
    return tuple(sorted(shares.items(), key=lambda item: -item[1]))


def _trace(
    counts: Counts, guess: Guess | None, game: Table
) -> tuple[tuple[int, float, float | None], ...]:
    """What was certified and estimated after 64, 128, ... runs, if that was kept."""
    points = []
    for runs, low, tally in counts.trace:
        at = extra(tally, game)
        points.append((runs, low, None if guess is None else guess(at, (at, at)).epsilon))
    return tuple(points)


def extra(tally: Tally, game: Table) -> float:
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
