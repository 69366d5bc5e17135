"""Where the pieces of densities begin and end, to twice the digits of a number.

A window may be a billionth of the range of values, and two windows may end closer to each other
than their places are rounded. So a place is a sum of two numbers (Dekker 1971), ends are sorted as
such, and in which windows a piece lies is told by counting ends, not by comparing middles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Sums ``main + rest``, where `rest` is less than what a number like `main` is rounded by."""

    main: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, values: FloatArray | float) -> Places:
        """Numbers as they are."""
        main = np.atleast_1d(np.asarray(values, dtype=float))
        return cls(main, np.zeros_like(main))

    def moved(self, by: float) -> Places:
        """All moved by the same number: exactly if they were numbers, else to 30 digits."""
        main, lost = _added(self.main, np.float64(by))
        return Places(*_added(main, lost + self.rest))


def _added(a: FloatArray, b: FloatArray | np.float64) -> tuple[FloatArray, FloatArray]:
    """The rounded sum, and what rounding took away (Knuth)."""
    total = np.asarray(a + b)
    part = total - a
    return total, np.asarray((a - (total - part)) + (b - part))


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Ends of pieces, ascending and distinct, and how many of each family (row) are no later."""

    place: Places
    passed: IntArray

    @classmethod
    def of(cls, families: Iterable[Places], more: Iterable[Places] = ()) -> Ends:
        """Ends of some families, and `more` that are not counted. O(n log n)."""
        counted = list(families)
        every = [*counted, *more]
        main = np.concatenate([places.main for places in every])
        rest = np.concatenate([places.rest for places in every])
        family = np.repeat(np.arange(len(every)), [len(places.main) for places in every])
        order = np.lexsort((rest, main))
        main, rest, family = main[order], rest[order], family[order]
        last = np.r_[(np.diff(main) != 0) | (np.diff(rest) != 0), True]
        passed = [np.cumsum(family == k)[last] for k in range(len(counted))]
        return cls(Places(main[last], rest[last]), np.stack(passed))

    def within(self, low: Places, high: Places) -> Ends:
        """Those from `low` to `high`, which are among them."""
        a, b = (self._index(place) for place in (low, high))
        place = Places(self.place.main[a : b + 1], self.place.rest[a : b + 1])
        return Ends(place, self.passed[:, a : b + 1])

    def _index(self, place: Places) -> int:
        found = (self.place.main == place.main) & (self.place.rest == place.rest)
        return int(np.argmax(found))

    @property
    def width(self) -> FloatArray:
        """Lengths of the pieces between them."""
        return np.asarray(np.diff(self.place.main) + np.diff(self.place.rest))
