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

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.game.game import Classes, Even
from dprad.model.guarantees import Guarantee
from dprad.model.privacy_loss import PrivacyLoss
from dprad.numerics.arrays import FloatArray, complements

# Possible error of a sum of terms of both signs, relative to their sizes.
ROUNDING = 1e-15
# Most probabilities with which pairs are searched, and how many are evaluated on all.
COARSE, TRIED = 4096, 3
# So few probabilities are quicker one by one than as arrays.
FEW = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Polygon:
    """1 - f0(t) and f0(1 - t) at all vertices t; slopes of both between them."""

    t: FloatArray
    hit: FloatArray
    miss: FloatArray
    middle: FloatArray
    hit_slope: FloatArray
    miss_slope: FloatArray

    @classmethod
    def of(cls, loss: PrivacyLoss) -> _Polygon:
        """From the privacy losses of present against absent."""
        edge = np.r_[0.0, np.cumsum(loss.q[::-1])]
        vertex = np.clip(np.r_[edge, 1.0], 0.0, 1.0)
        t = np.unique(np.r_[vertex, 1.0 - vertex])
        # slopes are likelihood ratios: read off, not differenced, so they are monotone
        ratio = np.r_[np.exp(loss.losses[::-1]), 0.0]
        middle = (t[1:] + t[:-1]) / 2
        return cls(
            t,
            hit=1.0 - loss.tradeoff(t),
            miss=loss.tradeoff(1.0 - t),
            middle=middle,
            hit_slope=ratio[np.searchsorted(edge, middle, "right") - 1],
            miss_slope=ratio[np.searchsorted(edge, 1.0 - middle, "right") - 1],
        )


def proposition_f(guarantee: Guarantee, game: Classes | Even) -> float:
    """O(u log K) per evaluation for u distinct probabilities.

    About a thousand evaluations; of more than `COARSE` probabilities, the search takes neighbours
    together at their mean, and only its result is evaluated on all of them.
    """
    pi, times = game.levels
    if game.count == 1:
        return 0.0
    polygon = _Polygon.of(guarantee.directions[0])
    steepest = float(polygon.hit_slope[0])
    if len(pi) <= COARSE:
        dual = _dual(polygon, pi, times)
        return min(dual(*pair) for pair in _searched(dual, pi, steepest))
    # as many of the largest by themselves, then equally many together
    group = np.linspace(0, COARSE // 2, len(pi) - COARSE // 2, endpoint=False).astype(np.intp)
    group = np.r_[group, group[-1] + 1 + np.arange(COARSE // 2)]
    people = np.bincount(group, times)
    mean = np.bincount(group, times * pi) / people
    pairs = _searched(_dual(polygon, mean, people), mean, steepest)
    dual = _dual(polygon, pi, times)
    return min(dual(*pair) for pair in pairs)


def _dual(polygon: _Polygon, pi: FloatArray, times: Any) -> Callable[[float, float], float]:
    """The bound of b and the multiplier, for these probabilities, each of so many records."""
    rest = complements(pi, times)
    middle, hit_slope, miss_slope = polygon.middle, polygon.hit_slope, polygon.miss_slope
    t, hit, miss = polygon.t, polygon.hit, polygon.miss
    if len(pi) <= FEW:
        # as numbers of Python, which a search takes one at a time
        rising, falling, pieces = hit_slope.data, miss_slope.data, range(len(middle))
        each = list(zip(pi.tolist(), rest.tolist(), times.tolist(), strict=True))

    def alone(b: float, lam: float) -> float:
        inner = size = 0.0
        for p, q, n in each:
            up, down = (p * (q + b), (p - b) * q) if p >= b else (b, 0.0)

            def over(k: int, up: float = up, down: float = down) -> bool:
                return not up * rising[k] - down * falling[k] > lam

            low = bisect(pieces, False, key=over)
            gain, loss, paid = up * float(hit[low]), down * float(miss[low]), lam * float(t[low])
            inner += n * (gain - loss - paid)
            size += n * (gain + loss + paid)
        return lam - b + inner + ROUNDING * (lam + b + size)

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
        return float(lam - b + times @ inner + ROUNDING * size)

    return alone if len(pi) <= FEW else dual


def _searched(
    dual: Callable[[float, float], float], pi: FloatArray, steepest: float
) -> list[tuple[float, float]]:
    """Pairs of b and the multiplier that are good, the least first."""
    from scipy.optimize import minimize_scalar

    found: dict[float, tuple[float, float]] = {}

    # slopes of g_z lie in [0, steepest]; a multiplier beyond them puts every q at 0
    def over_multiplier(b: float) -> float:
        highest = max(b, float(pi.max()) * (1.0 + b)) * steepest
        lowest = float(np.log(1e-12 * max(b, float(pi.min()))))
        inner = minimize_scalar(
            lambda x: dual(b, float(np.exp(x))),
            bounds=(lowest, max(lowest + 1.0, float(np.log(highest + 1e-300)))),
            method="bounded",
            options={"xatol": 1e-7, "maxiter": 60},
        )
        found[float(inner.fun)] = float(b), float(np.exp(inner.x))
        return float(inner.fun)

    minimize_scalar(
        over_multiplier,
        bounds=(0.0, float(pi.max())),
        method="bounded",
        options={"xatol": 1e-6 * float(pi.max()), "maxiter": 40},
    )
    over_multiplier(0.0)
    over_multiplier(float(pi.max()))
    return [found[value] for value in sorted(found)[:TRIED]]
