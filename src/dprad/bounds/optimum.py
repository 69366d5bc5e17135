"""Theorem B and Proposition W: the exact optimum when nothing is known.

Success on one class at a time (merge first), any prior, replace-one. Sort pi descending,

    F_k = sum_{i<=k} pi_i (1 - pi_i) - pi_k sum_{j>k} pi_j ,      s = e^epsilon - 1 .

**Theorem B.** Over all (epsilon, delta)-DP mechanisms the largest RAD *is*
``(1 - delta) max_k s F_k / (s + k) + delta (1 - kappa)``. It is attained by randomised response
over the k likeliest classes, the others reported as class k, with a delta-chance to reveal.

**Proposition W.** For a whole profile and any level L, with ``L_z = min(L, cap_z)``,
``cap_z = pi_z (1 - pi_z + min_{g != z} pi_g)`` and ``V = 1 - kappa - sum L_z >= 0``,
``RAD <= V + sum_z L_z delta(1 + V / L_z)`` (delta as a function of e^epsilon).

Not claimed: the form "linear in delta" holds with knowledge or eta > 0 (it does not), or that W is
exact for a profile with more than one point (it was within 2.3% of the linear program).
"""

from __future__ import annotations

import numpy as np

from dprad.bounds.profile import least_over_points
from dprad.game.game import Classes, Even
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray, IntArray, complements

# Number of values of V among which the best bracket is searched.
GRID = 48
# Relative error of the sum of all levels.
CANCELLED = 1e-15


def theorem_b(guarantee: Guarantee, game: Classes | Even) -> float:
    """The optimum at the promised point, or its least over a profile. O(m log m)."""
    (k, f), differ = _brackets(game), _differ(game)

    def at(epsilon: float, delta: float) -> float:
        if epsilon == 0.0:
            value = 0.0
        else:
            # s/(s+k), both divided by e^epsilon: no power overflows
            s, k_ = -np.expm1(-epsilon), k * np.exp(-epsilon)
            value = float(np.max(f * (s / (s + k_))))
        return (1.0 - delta) * value + delta * differ

    return least_over_points(guarantee, at)


def inverse_b(rad: float, game: Classes | Even, delta: float) -> float:
    """The epsilon at which Theorem B reaches `rad`: less is impossible. Infinite if none does.

    ``log(1 + min_{k: F_k > v} k v/(F_k - v))``, ``v = (rad - delta (1-kappa))/(1 - delta)``, or 0.
    """
    k, f = _brackets(game)
    if delta >= 1.0:
        return 0.0
    v = max(0.0, (rad - delta * _differ(game)) / (1.0 - delta))
    above = f > v
    if not above.any():
        return float("inf")
    return float(np.log1p(np.min(k[above] * v / (f[above] - v))))


def _brackets(game: Classes | Even) -> tuple[IntArray, FloatArray]:
    """Some k, and F_k: at the first and the last of equally likely classes. Between them F_k is
    linear in k, so that s F_k/(s + k) and k v/(F_k - v) are monotone. O(m log m).
    """
    levels, count = game.levels
    pi, times = levels[::-1], count[::-1]
    # D_k = F_k - F_{k-1} = pi_k (1 - R_k) + pi_{k-1} R_k: sums of positive terms, no cancellation
    mass = pi * times
    before, after = np.r_[0.0, np.cumsum(mass)[:-1]], np.r_[np.cumsum(mass[::-1])[::-1][1:], 0.0]
    last = np.r_[0.0, pi[:-1]]
    first = pi * before + last * (after + mass)
    more = (times - 1) * pi * (before + mass + after)  # of the next ones of the same probability
    first[0] = 0.0
    f = np.cumsum(np.stack([first, more], axis=1).reshape(-1))
    k = np.cumsum(np.stack([np.ones_like(times), times - 1], axis=1).reshape(-1))
    return k, f


def _differ(game: Classes | Even) -> float:
    """Probability that two draws are of different classes."""
    pi, times = game.levels
    return min(1.0, float(times @ (pi * complements(pi, times))))


def proposition_w(guarantee: Guarantee, game: Classes | Even) -> float:
    """Water-filling: one convex parameter. O(distinct probabilities) per evaluation."""
    from scipy.optimize import minimize_scalar

    pi, times = game.levels
    if game.count == 1:
        return 0.0
    rest = complements(pi, times)
    # the least probability of another class
    least = np.full(len(pi), pi[0])
    if times[0] == 1:
        least[0] = pi[1]
    cap = pi * (rest + least)
    whole = float(np.sum(times * pi * rest))

    order = np.argsort(cap)
    sorted_cap, count = cap[order], times[order]
    # total of min(level, cap) where the level is a cap: exact in between, it is a line
    below = np.cumsum(count * sorted_cap)
    above = count[::-1].cumsum()[::-1] - count
    total = below + sorted_cap * above

    def at(log_excess: float) -> float:
        """The bound whose V is this; the level follows."""
        excess = min(float(np.exp(log_excess)), whole)
        level = np.minimum(
            np.interp(whole - excess, np.r_[0.0, total], np.r_[0.0, sorted_cap]), cap
        )
        # the remainder of the interpolation, or what the caps do not reach
        rest_of_it = whole - float(times @ level)
        if rest_of_it < 0:
            level, rest_of_it = level * (whole / float(times @ level)), 0.0
        # sums that cancelled; a larger V belongs to a lower level, which is valid too
        rest_of_it += CANCELLED * whole
        if not np.all(level > 0):
            return whole
        deltas = guarantee.delta(np.log1p(rest_of_it / level))
        return rest_of_it + float(times @ (level * deltas))

    grid = np.log(whole) + np.linspace(np.log(1e-13), 0.0, GRID)
    values = [at(float(x)) for x in grid]
    best = int(np.argmin(values))
    bracket = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, GRID - 1)]))
    minimum = minimize_scalar(at, bounds=bracket, method="bounded", options={"xatol": 1e-10})
    return float(min(minimum.fun, *values))
