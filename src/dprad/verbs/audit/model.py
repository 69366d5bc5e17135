"""Model-based: which epsilon behaves like this, if it is the supposed mechanism?

The estimated RAD and its interval are pushed through the inverse of the exact RAD of the named
mechanism. This is an estimate; it refutes nothing. Where RAD is not monotone in epsilon (subset
selection) the answer is a set, and its hull is reported; where RAD hardly grows any more (OUE at
large epsilon) the interval is wide or open, with a warning. There is no silent ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Epsilons at which the curve is read first, and the width of an interval that causes a warning.
HIGHEST = 24.0
GRID = np.r_[0.0, np.geomspace(1e-3, 0.1, 8)[:-1], np.linspace(0.1, HIGHEST, 60)]
WIDE = 1.0


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """Epsilon, its interval, and warnings."""

    epsilon: float
    interval: tuple[float, float]
    warning: str


def estimate(
    curve: Callable[[float], float],
    rad: float,
    interval: tuple[float, float],
    *,
    highest: float,
    monotone: bool,
) -> ModelEstimate:
    """Invert `curve`, epsilon -> exact RAD; about forty evaluations if it is monotone."""
    grid = GRID[highest >= GRID]
    seen: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in seen:
            seen[i] = curve(float(grid[i]))
        return seen[i]

    if not monotone:
        for i in range(len(grid)):
            at(i)

    def cross(goal: float, *, first: bool) -> float:
        """Where the curve reaches the goal: for the first time, or after it was last below."""
        last = len(grid) - 1
        if monotone:
            left, right = -1, last + 1  # the first point that reaches the goal
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (left, middle) if at(middle) >= goal else (middle, right)
            place = right
        elif first:
            place = next((i for i in range(last + 1) if seen[i] >= goal), last + 1)
        else:
            place = next((i + 1 for i in range(last, -1, -1) if seen[i] < goal), 0)
        if place == 0:
            return 0.0
        if place > last:
            return float("inf")
        return _root(curve, float(grid[place - 1]), float(grid[place]), goal)

    low, high = cross(interval[0], first=True), cross(interval[1], first=False)
    middle = cross(rad, first=True)
    warning = ""
    if not np.isfinite(high):
        warning = (
            f"the mechanism's extra risk does not exceed {max(seen.values()):.6g}, which is within "
            "the interval: these runs give no upper end of epsilon. More runs would "
            "help"
        )
    elif high - low > WIDE:
        warning = (
            f"the extra risk hardly depends on epsilon here: all of {low:.2f} to {high:.2f} behave "
            "like this. More runs would narrow the range"
        )
    return ModelEstimate(middle, (low, high), warning)


def _root(curve: Callable[[float], float], a: float, b: float, goal: float) -> float:
    """By false position with halved weights, to nine digits; the curve is smooth between points."""
    f, g = curve(a) - goal, curve(b) - goal
    side = 0
    for _ in range(60):
        if b - a <= 1e-9 * max(1.0, b) or f == g:
            break
        x = a - f * (b - a) / (g - f)
        if not a < x < b:
            x = (a + b) / 2
        value = curve(x) - goal
        if abs(value) <= 1e-15:
            return x
        if value < 0:
            a, f = x, value
            g = g / 2 if side < 0 else g
            side = -1
        else:
            b, g = x, value
            f = f / 2 if side > 0 else f
            side = 1
    return (a + b) / 2
