"""Confidence intervals for the mean of bounded numbers, and for proportions."""

from __future__ import annotations

import numpy as np

from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import last

# The largest share of their wealth that a bettor stakes on one term.
SHARE = 0.75


def less_luck(
    right: int, made: int, runs: int, luck: float, confidence: float
) -> tuple[float, float]:
    """Interval for ``Pr[right] - luck Pr[a guess was made]``: both are proportions.

    A tenth of alpha goes to the second.
    """
    alpha = 1.0 - confidence
    low, high = clopper_pearson(right, runs, 1.0 - 0.9 * alpha)
    least, most = clopper_pearson(made, runs, 1.0 - 0.1 * alpha)
    return low - luck * most, high - luck * least


def betting(terms: FloatArray, confidence: float) -> tuple[float, float]:
    """A two-sided interval for the mean of independent terms in [0, 1].

    A bettor who stakes a share of their wealth on each term being above m cannot expect to gain if
    the mean is m: wealth beyond 2/alpha refutes m. Betting below m works likewise from the other
    side (Waudby-Smith and Ramdas 2024, hedged capital). The stakes follow the variance seen so far,
    so the interval is nearly that of the normal distribution if terms vary little, and it is valid
    for every distribution and every n. O(n).
    """
    if confidence >= 1.0:
        return 0.0, 1.0
    n, needed = len(terms), float(np.log(2.0 / (1.0 - confidence)))
    x = np.asarray(terms, dtype=float)
    t = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    stake = np.sqrt(2 * needed / (n * np.r_[0.25, variance[:-1]]))  # from past terms only
    low = _refuted(x, stake, needed)
    high = 1.0 - _refuted(1.0 - x, stake, needed)
    return low, max(low, high)


def _refuted(x: FloatArray, stake: FloatArray, needed: float) -> float:
    """The largest mean that betting above it refutes; every smaller one is refuted too."""

    def wealth(m: float) -> float:
        return float(np.log1p(np.minimum(stake, SHARE / m) * (x - m)).sum())

    return last(lambda m: m == 0 or wealth(m) >= needed, 0.0, float(x.mean()), width=1e-9)


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """A two-sided interval for a probability, exact for every number of trials. O(1)."""
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2
    low = betaincinv(successes, trials - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, trials - successes, 1.0 - tail) if successes < trials else 1.0
    return float(low), float(high)
