"""Bisection: the end of a monotone condition, on the side where it still holds."""

from __future__ import annotations

from collections.abc import Callable

Condition = Callable[[float], bool]


def last(
    holds: Condition, low: float, high: float, *, relative: float = 0.0, width: float = 0.0
) -> float:
    """The largest number between `low` and `high` found to hold; it must hold at `low`.

    `holds` is true up to some number and false beyond. To the last float, or to a (relative) width.

    Examples
    --------
    >>> round(last(lambda x: x * x <= 2, 0, 2), 12)
    1.414213562373

    """
    if holds(high):
        return high
    while high - low > max(width, relative * abs(high)):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def first(
    holds: Condition, low: float, high: float, *, relative: float = 0.0, width: float = 0.0
) -> float:
    """The smallest number found to hold; it must hold at `high`, and fail below some number."""
    if holds(low):
        return low
    while high - low > max(width, relative * abs(high)):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
