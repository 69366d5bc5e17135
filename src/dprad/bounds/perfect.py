"""Theorem 4 and Corollary 2 of the paper: exact reconstruction under (epsilon, delta)-DP.

Nothing known, one class per success set (merge first). Replace-one. Theorem 4 fills a budget: the
gains g_i = Pr[guess i | i] - Pr[guess i] sum to at most Gamma, each is at most TV (1 - pi_i), and
RAD = sum pi_i g_i. Neither is tight: Theorem B (`optimum.py`) is.
"""

from __future__ import annotations

import numpy as np

from dprad.bounds.profile import least_over_points
from dprad.bounds.tradeoff import point_tv
from dprad.game.game import Classes, Even
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import complements


def _gamma(epsilon: float, delta: float, m: int) -> float:
    """(m - 1)(e - 1 + delta m)/(e + m - 1), scaled by 1/e against overflow."""
    shrink = float(np.exp(-epsilon))
    return (m - 1) * (float(-np.expm1(-epsilon)) + delta * m * shrink) / (1.0 + (m - 1) * shrink)


def theorem_4(guarantee: Guarantee, game: Classes | Even) -> float:
    """The filled budget. O(m log m) for a point, as much again for each point of a profile."""
    # likeliest first, also the order of pi (1 - pi): at most one exceeds 1/2. Among equal records
    # it makes no difference how many are filled, so all are or none
    levels, count = game.levels
    pi, times = levels[::-1], count[::-1]
    m, rest = game.count, complements(pi, times)
    spent, gained = (np.r_[0.0, np.cumsum(times * each)] for each in (rest, pi * rest))
    ahead = np.r_[pi, 0.0]  # the likeliest of the unfilled records

    def at(epsilon: float, delta: float) -> float:
        tv = point_tv(epsilon, delta)
        left = _gamma(epsilon, delta, m) - spent * tv
        k = int(np.flatnonzero(left >= 0)[-1])
        return float(tv * gained[k] + left[k] * ahead[k])

    return least_over_points(guarantee, at)


def corollary_2(guarantee: Guarantee, game: Classes | Even) -> float:
    """(e - 1 + delta m)/(e + m - 1) (m - 1)/m, for equally likely classes. O(1)."""
    m = game.count
    return least_over_points(guarantee, lambda e, d: _gamma(e, d, m) / m)
