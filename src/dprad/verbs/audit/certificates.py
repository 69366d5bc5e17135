"""Certified lower bounds on epsilon: valid for every (epsilon, delta)-DP mechanism.

*Posterior cap* (delta = 0). Records are drawn from the prior and hidden. Whatever the output and
what is known, a guess with prior chance k is right with probability at most
``cap(k) = k e^eps / (k e^eps + 1 - k)``: Bayes, with every likelihood ratio at most e^eps. So among
guesses that were made (passing is free) successes are dominated by independent coins with these
caps. One k: Clopper and Pearson. Several, or looking again and again: the e-process
``sum_j w_j prod_t (cap_j/cap)^s ((1-cap_j)/(1-cap))^(1-s)`` over epsilons beyond the one tested,
which ever exceeds 1/alpha with probability at most alpha.

*Right against wrong* (delta > 0; m equally likely candidates). With s a right and f a wrong guess,
``E[s - f e^eps/(m-1)] <= delta``: summing ``p(o|z) <= e^eps p(o|z') + ...`` over the other
candidates z' of each output. Two binomial bounds, or bets.

*Extra risk.* A lower bound on RAD is pushed through the inverse of the bound for this prior and
threat (Theorem B where it applies). Weaker, but it covers knowledge, tolerance and delta.

Proofs: docs/theory/audit.md. Several certificates share alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad import bounds
from dprad.bounds.optimum import inverse_b
from dprad.game.game import Classes
from dprad.model.guarantees import REPLACE_ONE, ApproxDP
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import last
from dprad.verbs.audit.tally import Tally

# The share of alpha for the weaker certificate by extra risk.
RAD_SHARE = 0.1
# How far beyond the tested epsilon the e-process bets.
BEYOND = np.geomspace(0.01, 8.0, 20)
# Stakes of the bets on a mean.
STAKES = np.geomspace(1e-4, 0.9, 40)
# The largest epsilon ever certified; a mechanism that reveals its input ends here.
HIGHEST = 700.0
# How finely an epsilon or a mean is searched.
FINE = 1e-12


@dataclass(frozen=True, slots=True)
class Certificate:
    """A name, and the epsilon below which the mechanism is refuted."""

    name: str
    epsilon: float


def certify(
    tally: Tally,
    game: Classes,
    *,
    delta: float,
    alpha: float,
    sequential: bool,
) -> tuple[tuple[Certificate, ...], float]:
    """All certificates that apply, and a lower bound on RAD; together valid at level alpha."""
    certificates = []
    main = (1.0 - RAD_SHARE) * alpha
    equal = _candidates(game)
    # the choice of certificates depends on the game, never on the runs
    if delta == 0.0 and not game.everything_known:
        certificates.append(Certificate("posterior cap", _cap(tally, main, sequential)))
    elif delta > 0.0 and equal is not None:
        certificates.append(
            Certificate("right against wrong", _versus(tally, equal, delta, main, sequential))
        )
    rest = alpha - main if certificates else alpha
    values, counts = tally.terms(known=not game.nothing_known)
    low = lower_mean(values, counts, rest)
    certificates.append(Certificate("extra risk", risk_inverse(low, game, delta)))
    return tuple(certificates), low


def _candidates(game: Classes) -> int | None:
    """The number of equally likely classes, if nothing is known and each is one set."""
    if not (game.nothing_known and game.singletons and game.uniform):
        return None
    return len(game.probabilities)


# -- posterior cap -------------------------------------------------------------------------------
def _cap(tally: Tally, alpha: float, sequential: bool) -> float:
    """The log-odds of the cap are those of k, plus epsilon."""
    from scipy.special import logit

    groups = {k: v for k, v in tally.groups.items() if 0.0 < k < 1.0}
    if not groups:
        return 0.0
    chance = np.array(list(groups))
    guesses = np.array([n for n, _ in groups.values()], dtype=float)
    hits = np.array([s for _, s in groups.values()], dtype=float)
    if len(chance) == 1 and not sequential:
        low = lower_proportion(int(hits[0]), int(guesses[0]), alpha)
        return min(HIGHEST, max(0.0, float(logit(low) - logit(chance[0]))))

    def evidence(epsilon: float) -> float:
        """Log of the e-value against this epsilon."""
        odds = logit(chance) + epsilon + np.r_[0.0, BEYOND][:, None]
        # s log cap + (n - s) log(1 - cap) from log-odds, at this epsilon and beyond
        no = -np.logaddexp(0.0, odds)
        log_likelihood = (hits * odds + guesses * no).sum(axis=1)
        bets = log_likelihood[1:] - log_likelihood[0]
        top = float(bets.max())
        return top + math.log(float(np.exp(bets - top).mean()))

    return _largest(evidence, alpha)


def _largest(evidence: Callable[[float], float], alpha: float) -> float:
    """The largest epsilon refuted: evidence falls as epsilon grows. By bisection, rounded down."""
    needed = -math.log(alpha)
    if evidence(0.0) < needed:
        return 0.0
    low, high = 0.0, 1.0
    while evidence(high) >= needed:
        low, high = high, 2 * high
        if low >= HIGHEST:
            return HIGHEST
    return min(last(lambda e: evidence(e) >= needed, low, high, width=FINE), HIGHEST)


# -- right against wrong -------------------------------------------------------------------------
def _versus(tally: Tally, m: int, delta: float, alpha: float, sequential: bool) -> float:
    n, right = tally.runs, tally.successes
    wrong = n - tally.passes - right
    if not sequential:
        low = lower_proportion(right, n, alpha / 2)
        high = upper_proportion(wrong, n, alpha / 2)
        if low <= delta:
            return 0.0
        ratio = (m - 1) * (low - delta) / high if high > 0 else math.inf
        return min(HIGHEST, math.log(max(1.0, ratio)))

    def evidence(epsilon: float) -> float:
        # bets on Y = s - f e^eps/(m-1) > delta; Y is at least -e^eps/(m-1)
        loss = math.exp(min(epsilon, 600.0)) / (m - 1)
        stakes = STAKES / (loss + delta)
        wealth = (
            right * np.log1p(stakes * (1.0 - delta))
            + wrong * np.log1p(-stakes * (loss + delta))
            + tally.passes * np.log1p(-stakes * delta)
        )
        top = float(wealth.max())
        return top + math.log(float(np.exp(wealth - top).mean()))

    return _largest(evidence, alpha)


# -- extra risk ----------------------------------------------------------------------------------
def risk_inverse(rad: float, game: Classes, delta: float) -> float:
    """The least epsilon whose largest possible RAD reaches this one; rounded down."""
    if rad <= 0.0:
        return 0.0
    if game.nothing_known and game.singletons:
        return min(HIGHEST, inverse_b(rad, game, delta))

    def most(epsilon: float) -> float:
        promise = ApproxDP(epsilon, delta, neighbours=REPLACE_ONE)
        return bounds.least(bounds.evaluate(promise, game), "rad")[1]

    if most(0.0) >= rad:
        return 0.0
    low, high = 0.0, 1.0
    while most(high) < rad:
        low, high = high, 2 * high
        if low >= 100.0:
            return HIGHEST
    return last(lambda e: most(e) < rad, low, high, width=FINE)


# -- means and proportions -----------------------------------------------------------------------
def lower_proportion(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson, one-sided."""
    from scipy.special import betaincinv

    if successes == 0 or trials == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, alpha))


def upper_proportion(successes: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson, one-sided."""
    return 1.0 - lower_proportion(trials - successes, trials, alpha) if trials else 1.0


def lower_mean(values: FloatArray, counts: FloatArray, alpha: float) -> float:
    """A lower bound on the mean of terms in [-1, 1] by betting, valid at every time.

    If the mean is mu, the wealth of a bettor who stakes a fixed share l on each term, ``prod (1 + l
    (x - mu))``, is a martingale; so is the average over stakes, and it ever exceeds 1/alpha with
    probability at most alpha. The bound is the largest mu that is refuted.
    """
    total = float(counts.sum())
    if total == 0:
        return -1.0
    needed = -math.log(alpha)

    def evidence(mu: float) -> float:
        stakes = STAKES / (1.0 + mu)
        wealth = counts @ np.log1p(stakes * (values[:, None] - mu))
        top = float(wealth.max())
        return top + math.log(float(np.exp(wealth - top).mean()))

    low, high = -1.0 + 1e-12, float(values @ counts) / total
    if evidence(low) < needed:
        return -1.0
    return last(lambda mu: evidence(mu) >= needed, low, high, width=FINE)
