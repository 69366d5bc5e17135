"""Proposition F: add-remove, nothing known, one class per success set, any prior.

With f0 the trade-off between absent and present, q_z the chance of guessing z when the person is
absent, and every b >= 0,

    RAD <= max { sum_z g_z(q_z) : sum q = 1 } - b ,
    g_z(q) = pi_z (1 - pi_z + b)(1 - f0(q)) - (pi_z - b)(1 - pi_z) f0(1 - q)   if pi_z >= b,
    g_z(q) = b (1 - f0(q))                                                     otherwise.

Each g_z is concave, so for every multiplier the maximum is at most
``lam + sum_z max_q [g_z(q) - lam q]``, and that is jointly convex in (b, lam): any pair is valid,
and the least is searched. f0 is read as the polygon of the privacy-loss distribution, whose
vertices are the only places where the inner maximum can be.
"""

from __future__ import annotations

import numpy as np

from dprad.game.game import Classes
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import complements

# Possible error of a sum of terms of both signs, relative to their sizes.
ROUNDING = 1e-15


def proposition_f(guarantee: Guarantee, game: Classes) -> float:
    """O(u log K) per evaluation for u distinct probabilities; about a hundred evaluations."""
    from scipy.optimize import minimize_scalar

    pi, times = np.unique(game.probabilities, return_counts=True)
    if len(game.probabilities) == 1:
        return 0.0
    rest = complements(pi, times)
    loss = guarantee.directions[0]
    edge = np.r_[0.0, np.cumsum(loss.q[::-1])]
    vertex = np.clip(np.r_[edge, 1.0], 0.0, 1.0)
    t = np.unique(np.r_[vertex, 1.0 - vertex])
    hit = 1.0 - loss.tradeoff(t)  # 1 - f0(q)
    miss = loss.tradeoff(1.0 - t)  # f0(1 - q)
    # slopes are likelihood ratios: read off, not differenced, so they are monotone
    ratio = np.r_[np.exp(loss.losses[::-1]), 0.0]
    middle = (t[1:] + t[:-1]) / 2
    hit_slope = ratio[np.searchsorted(edge, middle, "right") - 1]
    miss_slope = ratio[np.searchsorted(edge, 1.0 - middle, "right") - 1]

    def dual(b: float, lam: float) -> float:
        above = pi >= b
        up = np.where(above, pi * (rest + b), b)
        down = np.where(above, (pi - b) * rest, 0.0)
        # binary search for the last piece on which up hit' - down miss' still exceeds lam
        low, high = np.zeros(len(pi), dtype=np.intp), np.full(len(pi), len(middle), dtype=np.intp)
        while np.any(low < high):
            half = (low + high) // 2
            at = np.minimum(half, len(middle) - 1)
            rising = (up * hit_slope[at] - down * miss_slope[at] > lam) & (low < high)
            low = np.where(rising, half + 1, low)
            high = np.where(rising | (low >= high), high, half)
        inner = up * hit[low] - down * miss[low] - lam * t[low]
        size = lam + b + float(times @ (up * hit[low] + down * miss[low] + lam * t[low]))
        return float(lam - b + times @ inner) + ROUNDING * size

    # slopes of g_z lie in [0, steepest]; a multiplier beyond them puts every q at 0
    def over_multiplier(b: float) -> float:
        highest = max(b, float(pi.max()) * (1.0 + b)) * float(hit_slope[0])
        lowest = float(np.log(1e-12 * max(b, float(pi.min()))))
        inner = minimize_scalar(
            lambda x: dual(b, float(np.exp(x))),
            bounds=(lowest, max(lowest + 1.0, float(np.log(highest + 1e-300)))),
            method="bounded",
            options={"xatol": 1e-7, "maxiter": 60},
        )
        return float(inner.fun)

    outer = minimize_scalar(
        over_multiplier,
        bounds=(0.0, float(pi.max())),
        method="bounded",
        options={"xatol": 1e-6 * float(pi.max()), "maxiter": 40},
    )
    return float(min(outer.fun, over_multiplier(0.0), over_multiplier(float(pi.max()))))
