"""Certified lower bounds on epsilon from counted bets: valid for every epsilon-DP mechanism.

Records are drawn from the prior and hidden. Whatever the output and what is known, a set of records
with prior chance k holds the record with probability at most
``cap(k) = k e^eps / (k e^eps + 1 - k)``: Bayes, with every likelihood ratio at most e^eps. So among
bets that were made (passing is free) successes are dominated by independent coins with these caps.
One k, and a number of runs fixed beforehand: Clopper and Pearson. Otherwise the e-process
``sum_j w_j prod_t (cap_j/cap)^s ((1-cap_j)/(1-cap))^(1-s)`` over epsilons beyond the one tested,
which ever exceeds 1/alpha with probability at most alpha (Theorem H1 of docs/theory/audit.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import last
from dprad.verbs.audit.tally import Groups

# How far beyond the tested epsilon the e-process bets.
BEYOND = np.geomspace(0.01, 8.0, 20)
# Stakes of the bets on a mean.
STAKES = np.geomspace(1e-4, 0.9, 40)
# The largest epsilon ever certified; a mechanism that reveals its input ends here.
HIGHEST = 700.0
# How finely an epsilon or a mean is searched.
FINE = 1e-12


def refuted(bets: Groups, alpha: float, sequential: bool) -> float:
    """The epsilon below which the mechanism is refuted."""
    from scipy.special import logit

    kept = _kept(bets)
    if not kept:
        return 0.0
    if len(kept) == 1 and not sequential:
        ((chance, (made, hits)),) = kept.items()
        low = lower_proportion(hits, made, alpha)
        return min(HIGHEST, max(0.0, float(logit(low) - logit(chance))))
    return _largest(lambda epsilon: log_wealth(bets, epsilon), alpha)


def log_wealth(bets: Groups, epsilon: float) -> float:
    """Log of the wealth against this epsilon."""
    from scipy.special import logit

    kept = _kept(bets)
    if not kept:
        return 0.0
    chance = np.array(list(kept))
    made = np.array([n for n, _ in kept.values()], dtype=float)
    hits = np.array([s for _, s in kept.values()], dtype=float)
    odds = logit(chance) + epsilon + np.r_[0.0, BEYOND][:, None]
    # s log cap + (n - s) log(1 - cap) from log-odds, at this epsilon and beyond
    likelihood = (hits * odds - made * np.logaddexp(0.0, odds)).sum(axis=1)
    each = likelihood[1:] - likelihood[0]
    top = float(each.max())
    return top + math.log(float(np.exp(each - top).mean()))


def _kept(bets: Groups) -> Groups:
    return {k: v for k, v in bets.items() if 0.0 < k < 1.0}


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
