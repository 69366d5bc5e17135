"""What an audit concludes from its counts: certificates, an interval, an estimate by the model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact import Sampling, solve
from dprad.game.game import Game
from dprad.game.reading import Query, reads
from dprad.mechanisms.bounded import Hybrid
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.hashing import OLH
from dprad.mechanisms.subset import SubsetSelection
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Audit
from dprad.model.threats import Threat
from dprad.numerics.intervals import clopper_pearson
from dprad.verbs.audit.certificates import Certificate, certify, lower_mean
from dprad.verbs.audit.model import ModelEstimate, estimate
from dprad.verbs.audit.tally import Tally


@dataclasses.dataclass(frozen=True, slots=True)
class Hypothesis:
    """What is tested: (epsilon, delta) for replaced records, and a limit on the extra risk."""

    game: Game
    epsilon: float
    delta: float
    limit: float
    alpha: float

    def certificates(self, tally: Tally, sequential: bool) -> tuple[tuple[Certificate, ...], bool]:
        """All certificates, and whether the claim is refuted."""
        found, low = certify(
            tally, self.game, delta=self.delta, alpha=self.alpha, sequential=sequential
        )
        refuted = max(c.epsilon for c in found) > self.epsilon or low > self.limit
        return found, refuted


def enough(tally: Tally, test: Hypothesis, precision: float | None) -> bool:
    """Whether a sequential audit may stop: refuted, or known to this precision."""
    if test.certificates(tally, sequential=True)[1]:
        return True
    if precision is None:
        return False
    low, high = risk_interval(tally, test.game, test.alpha, sequential=True)
    return high - low <= precision


def risk_interval(
    tally: Tally, game: Game, alpha: float, *, sequential: bool
) -> tuple[float, float]:
    """Where the RAD of the attack lies: binomial where all guesses are alike, else by betting."""
    known = not game.nothing_known
    same = game.luck is not None and float(np.ptp(game.luck)) <= 1e-12 * float(game.luck.max())
    if not known and same and not sequential and game.luck is not None:
        each = float(game.luck.max())
        low, high = clopper_pearson(tally.successes, tally.runs, 1.0 - 0.9 * alpha)
        made = tally.runs - tally.passes
        least, most = clopper_pearson(made, tally.runs, 1.0 - 0.1 * alpha)
        return low - each * most, high - each * least
    values, counts = tally.terms(known=known)
    return lower_mean(values, counts, alpha / 2), -lower_mean(-values, counts, alpha / 2)


def conclude(
    tally: Tally,
    test: Hypothesis,
    claim: Guarantee,
    sequential: bool,
    model_at: Any,
    prior: Prior,
    threat: Threat,
    query: Query | None,
    notes: list[str],
    studied: int,
    seen: list[Tally],
    seconds: float,
) -> Audit:
    """The statement: certificates, the extra risk of the attack, an estimate by the model."""
    game, alpha = test.game, test.alpha
    found, violated = test.certificates(tally, sequential)
    best = max(found, key=lambda c: c.epsilon)
    rad, interval = _extra(tally, game), risk_interval(tally, game, alpha, sequential=sequential)
    guess = _guess(model_at, game, prior, threat, query)
    found_model: ModelEstimate | None = None
    try:
        found_model = None if guess is None else guess(rad, interval)
    except (DpradError, ArithmeticError) as error:
        notes.append(f"no estimate by the model: {error}")
        guess = None
    if found_model is not None and found_model.warning:
        notes.append(found_model.warning)
    trace = []
    for part in [*(t for t in seen if t.runs < tally.runs), tally] if seen else []:
        low = max(c.epsilon for c in test.certificates(part, True)[0])
        at = _extra(part, game)
        trace.append((part.runs, low, None if guess is None else guess(at, (at, at)).epsilon))
    return Audit(
        verdict="violated" if violated else "consistent",
        epsilon_lower=best.epsilon,
        epsilon_claimed=test.epsilon,
        delta=test.delta,
        rad_claimed=test.limit,
        epsilon_estimate=None if found_model is None else found_model.epsilon,
        epsilon_interval=None if found_model is None else found_model.interval,
        rad=rad,
        rad_interval=interval,
        confidence=1.0 - alpha,
        trials=tally.runs,
        studied=studied,
        passes=tally.passes,
        successes=tally.successes,
        certificates=tuple((c.name, c.epsilon) for c in found),
        sequential=sequential,
        claim=claim.describe(),
        threat=threat.describe(),
        prior=repr(prior),
        notes=tuple(notes),
        seconds=seconds,
        trace=tuple(trace),
    )


def _extra(tally: Tally, game: Game) -> float:
    """The extra risk of the attack, as estimated."""
    values, counts = tally.terms(known=not game.nothing_known)
    return float(values @ counts) / tally.runs


def _guess(
    model_at: Any, game: Game, prior: Prior, threat: Threat, query: Query | None
) -> Callable[[float, tuple[float, float]], ModelEstimate] | None:
    """Extra risk and its interval -> the epsilon at which the model behaves like that."""
    family = _family(model_at)
    if family is None:
        return None
    first = family(1.0)
    read = reads(first, prior, threat, query)
    pi = prior.probabilities
    assert pi is not None

    @functools.cache
    def curve(at: float) -> float:
        return solve(family(at), game, read, pi, Sampling()).rad

    top = float(getattr(model_at, "highest", 24.0))
    steady = not isinstance(first, SubsetSelection | OLH | HadamardResponse | Hybrid)
    return lambda rad, interval: estimate(curve, rad, interval, highest=top, monotone=steady)


def _family(model_at: Any) -> Callable[[float], Any] | None:
    """Epsilon -> mechanism, from an object with an epsilon or a function."""
    if model_at is None:
        return None
    if dataclasses.is_dataclass(model_at) and hasattr(model_at, "epsilon"):
        thing: Any = model_at
        return lambda at: dataclasses.replace(thing, epsilon=at)
    if callable(model_at) and not hasattr(model_at, "sample"):
        return lambda at: model_at(at)
    return None
