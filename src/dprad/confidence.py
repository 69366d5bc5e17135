"""Confidence intervals for the mean of bounded numbers, and for proportions."""

from __future__ import annotations

import numpy as np

from dprad.arrays import FloatArray


def bernstein(terms: FloatArray, confidence: float) -> tuple[float, float]:
    """A two-sided interval for the mean of independent terms in [0, 1] (Maurer and Pontil 2009).

    ``mean +- sqrt(2 V ln(4/alpha)/n) + 7 ln(4/alpha)/(3 (n-1))``, V the sample variance: valid for
    every distribution and every n >= 2, and short where the terms vary little. O(n).
    """
    n = len(terms)
    log = np.log(4.0 / (1.0 - confidence)) if confidence < 1 else np.inf
    mean = float(terms.mean())
    half = float(np.sqrt(2 * terms.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1)))
    return max(0.0, mean - half), min(1.0, mean + half)


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """A two-sided interval for a probability, exact for every number of trials. O(1)."""
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2
    low = betaincinv(successes, trials - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, trials - successes, 1.0 - tail) if successes < trials else 1.0
    return float(low), float(high)
