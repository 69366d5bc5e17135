"""The furthest of a run of points in some direction, where points fall to the right.

Points (x, y) stand in order: x never falls, y never rises. Of all runs of 2^k points, one after the
other, the upper right hull is known. Any run is made of O(log m) of these, and the furthest point
of a hull in a direction (u, v), neither negative, is found by bisection. Two hulls side by side
have one in common, less what lies between the ends of their common tangent, which is found by
nested bisections.

O(m log m) time and memory at most (hulls of points at random have few corners), and O(log^2 m) a
question; all questions are asked at once. Points may be taken for each other if their sums differ
by less than their rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(slots=True, eq=False)
class Hulls:
    """Corners of the hulls of runs of 1, 2, 4, ... points, by run; and where each run begins. As
    far as needed.
    """

    x: FloatArray
    y: FloatArray
    corner: list[IntArray] = field(default_factory=list)
    begin: list[IntArray] = field(default_factory=list)

    def furthest(self, a: IntArray, b: IntArray, u: FloatArray, v: FloatArray) -> IntArray:
        """Which of the points a .. b-1, at least one, has the largest ``u x + v y``."""
        best, level = a.copy(), 0
        most = u * self.x[a] + v * self.y[a]
        while True:
            live = a < b
            if not live.any():
                return best
            while len(self.corner) <= level:
                self._double()
            odd = np.flatnonzero(live & (a % 2 == 1)), np.flatnonzero(live & (b % 2 == 1))
            for rows, run in zip(odd, (a[odd[0]], b[odd[1]] - 1), strict=True):
                found = self._of_run(level, run, u[rows], v[rows])
                value = u[rows] * self.x[found] + v[rows] * self.y[found]
                more = value > most[rows]
                best[rows[more]], most[rows[more]] = found[more], value[more]
            a, b, level = (a + 1) >> 1, b >> 1, level + 1

    def _of_run(self, level: int, run: IntArray, u: FloatArray, v: FloatArray) -> IntArray:
        """The furthest point of each of these runs of 2^level points."""
        corner, begin = self.corner[level], self.begin[level]
        start = begin[run]

        def beyond(rows: IntArray, k: IntArray) -> BoolArray:
            """Whether the corner after this one is not further."""
            one = start[rows] + k
            this, after = corner[one], corner[one + 1]
            more = u[rows] * (self.x[after] - self.x[this])
            return np.asarray(more <= v[rows] * (self.y[this] - self.y[after]))

        return np.asarray(corner[start + _first(begin[run + 1] - start - 1, beyond)])

    def _double(self) -> None:
        """Hulls of runs twice as long."""
        if not self.corner:
            every = np.arange(len(self.x) + 1)
            self.corner, self.begin = [every[:-1]], [every]
            return
        level, begin, corner = len(self.corner) - 1, self.begin[-1], self.corner[-1]
        run = 2 * np.arange((len(begin) - 1) // 2)
        left, right = begin[run], begin[run + 1]
        end = begin[run + 2]

        def crossed(rows: IntArray, k: IntArray) -> BoolArray:
            """Whether the other hull is further than this side of this one."""
            this, after = corner[left[rows] + k], corner[left[rows] + k + 1]
            u, v = self.y[this] - self.y[after], self.x[after] - self.x[this]
            other = self._of_run(level, run[rows] + 1, u, v)
            return np.asarray(
                u * (self.x[other] - self.x[this]) > v * (self.y[this] - self.y[other])
            )

        last = left + _first(right - left - 1, crossed)
        joint = corner[last]

        def passed(rows: IntArray, k: IntArray) -> BoolArray:
            """Whether the corner after this one is below the line from the joint to this one."""
            one = right[rows] + k
            this, after, origin = corner[one], corner[one + 1], joint[rows]
            x, y = self.x[this] - self.x[origin], self.y[this] - self.y[origin]
            more = x * (self.y[after] - self.y[origin])
            return np.asarray(more < y * (self.x[after] - self.x[origin]))

        first = right + _first(end - right - 1, passed)
        # one of two points that are the same
        here = corner[first]
        first += (self.x[joint] == self.x[here]) & (self.y[joint] == self.y[here])
        number = np.arange(len(corner))[: end[-1]] if len(run) else np.zeros(0, dtype=np.intp)
        owner = np.repeat(np.arange(len(run)), end - left)
        kept = (number <= last[owner]) | (number >= first[owner])
        self.corner.append(corner[: len(number)][kept])
        self.begin.append(np.r_[0, np.cumsum(np.bincount(owner[kept], minlength=len(run)))])


def _first(count: IntArray, holds: Callable[[IntArray, IntArray], BoolArray]) -> IntArray:
    """The first k below each count for which this holds (then for all after it), or the count."""
    low, high, some = np.zeros_like(count), count.copy(), np.arange(len(count))
    while True:
        some = some[low[some] < high[some]]
        if not len(some):
            return low
        middle = (low[some] + high[some]) >> 1
        yes = holds(some, middle)
        high[some[yes]] = middle[yes]
        low[some[~yes]] = middle[~yes] + 1
