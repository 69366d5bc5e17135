"""Model-based: which epsilon behaves like this, if it is the mechanism it is supposed to be?

The estimated RAD and its interval are pushed through the inverse of the exact RAD of the named
mechanism. An estimate: it refutes nothing. Where RAD is not monotone in epsilon (subset selection)
the answer is a set, and its hull is told; where RAD hardly grows any more (OUE at large epsilon)
the interval is wide or open, and a warning says so. Never a silent ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad.arrays import FloatArray

# Epsilons at which the curve is read first, and how wide an interval is worth a warning.
GRID = np.r_[0.0, np.geomspace(1e-3, 0.1, 8)[:-1], np.linspace(0.1, 24.0, 60)]
WIDE = 1.0


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """Epsilon, where it may lie, and what to beware of."""

    epsilon: float
    interval: tuple[float, float]
    warning: str


def estimate(
    curve: Callable[[float], float],
    rad: float,
    interval: tuple[float, float],
    *,
    highest: float,
) -> ModelEstimate:
    """Invert `curve`, epsilon -> exact RAD. About 80 evaluations, and twenty for each end."""
    grid = GRID[highest >= GRID]
    values = np.array([curve(float(e)) for e in grid])
    low = _cross(curve, grid, values, interval[0], first=True)
    high = _cross(curve, grid, values, interval[1], first=False)
    middle = _cross(curve, grid, values, rad, first=True)
    warning = ""
    if not np.isfinite(high):
        warning = (
            f"the mechanism's extra risk never exceeds {values.max():.6g}, which is within the "
            "interval: from these runs no upper end of epsilon can be told. More runs would help."
        )
    elif high - low > WIDE:
        warning = (
            f"the extra risk hardly depends on epsilon here: all of {low:.2f} to {high:.2f} behave "
            "like this. More runs would narrow it."
        )
    return ModelEstimate(middle, (low, high), warning)


def _cross(
    curve: Callable[[float], float],
    grid: FloatArray,
    values: FloatArray,
    goal: float,
    *,
    first: bool,
) -> float:
    """Where the curve reaches the goal: for the first time, or after it was last below."""
    if first:
        reached = np.flatnonzero(values >= goal)
        if not len(reached):
            return float(grid[-1]) if goal <= values.max() else float("inf")
        at = int(reached[0])
        if at == 0:
            return 0.0
        a, b = float(grid[at - 1]), float(grid[at])
    else:
        below = np.flatnonzero(values <= goal)
        if not len(below):
            return 0.0
        at = int(below[-1])
        if at == len(grid) - 1:
            return float("inf")
        a, b = float(grid[at]), float(grid[at + 1])
    for _ in range(24):
        middle = (a + b) / 2
        if curve(middle) < goal:
            a = middle
        else:
            b = middle
    return (a + b) / 2
