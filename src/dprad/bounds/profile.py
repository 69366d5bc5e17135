"""Bounds stated for one (epsilon, delta), applied to a whole profile.

A profile promises (epsilon, delta(epsilon))-DP for every epsilon at once, so the least value over
any choice of points is valid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprad.model.guarantees import Guarantee

# Points of a profile tried at first, and again around the best.
POINTS = 65


def least_over_points(guarantee: Guarantee, at: Callable[[float, float], float]) -> float:
    """The least of `at(epsilon, delta)`: at the promised point, or over a profile."""
    if guarantee.point is not None:
        return at(*guarantee.point)
    low, high = 0.0, float(max(guarantee.loss.losses[-1], 1e-12))
    best = np.inf
    for _ in range(3):
        epsilons = np.linspace(low, high, POINTS)
        deltas = guarantee.delta(epsilons)
        values = [at(float(e), float(d)) for e, d in zip(epsilons, deltas, strict=True)]
        k = int(np.argmin(values))
        best = min(best, values[k])
        low, high = epsilons[max(0, k - 1)], epsilons[min(POINTS - 1, k + 1)]
    return float(best)
