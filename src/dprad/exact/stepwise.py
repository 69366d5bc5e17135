"""Piecewise constant densities (staircase, Duchi, piecewise, hybrid): exact channels.

Between two neighbouring ends of pieces, of any record, all outputs carry the same information: one
column of a channel. The staircase repeats beyond the outermost records, each period e^-epsilon
times as likely as the last: one period stands for all. O(m K) for K = O(m) columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact.channel import sum_by_likelihood
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.staircase import Staircase
from dprad.numerics.arrays import FloatArray, IntArray

_METHOD = "sum over the pieces of the density"
# Noise that stays within this share of a step, except with this probability, counts as none.
APART = 1e-14


def solve_steps(mechanism: Any, game: Classes, values: FloatArray, pi: FloatArray) -> Solution:
    """Records z with probability pi[z] read as values[z]."""
    kept = pi > 0
    points, place = np.unique(values[kept], return_inverse=True)
    codes = np.zeros(len(pi), dtype=np.intp)
    codes[kept] = place
    likelihood, outputs = columns_of(mechanism, points)
    return sum_by_likelihood(likelihood, outputs, game, codes, pi, len(points), _METHOD)


@singledispatch
def columns_of(mechanism: Any, points: FloatArray) -> tuple[Any, int]:
    """The channel of these values as blocks: ``likelihood(rows, columns)``, and its width."""
    raise TypeError(f"{type(mechanism).__name__} has no pieces, for {len(points)} values.")


@columns_of.register
def _duchi(mechanism: Duchi, points: FloatArray) -> tuple[Any, int]:
    x = mechanism.scaled(points)
    matrix = np.stack([mechanism.up(-x), mechanism.up(x)], axis=1)
    return (lambda rows, columns: matrix[rows, columns]), 2


@columns_of.register
def _piecewise(mechanism: Piecewise, points: FloatArray) -> tuple[Any, int]:
    if not np.isfinite(mechanism.reach):
        return _silent(points)
    # relative to the first window, which keeps small distances exact
    low = (mechanism.reach + 1.0) / 2 * (points - points[0]) / mechanism.half
    high = low + mechanism.length
    if mechanism.length <= float(np.diff(low).min(initial=np.inf)):
        return _apart(mechanism, len(points))
    edges = np.unique(np.r_[low, high])
    width = np.r_[np.diff(edges), 2 * mechanism.reach - (edges[-1] - edges[0])]
    middle = np.r_[(edges[1:] + edges[:-1]) / 2, np.inf]  # the last one is the rest
    inside, outside = (np.exp(d) for d in mechanism.log_densities)

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        t = middle[columns]
        near = (low[rows][:, None] < t) & (t < high[rows][:, None])
        return np.asarray(np.where(near, inside, outside) * width[columns])

    return likelihood, len(width)


def _apart(mechanism: Piecewise, count: int) -> tuple[Any, int]:
    """Windows that do not overlap: one output each, and one for the rest."""
    other = mechanism.length * float(np.exp(mechanism.log_densities[1]))

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        codes, outputs = np.arange(count)[rows], np.arange(columns.start, columns.stop)
        block = np.where(codes[:, None] == outputs, mechanism.near, other)
        rest = max(0.0, 1.0 - mechanism.near - (count - 1) * other)
        block[:, outputs == count] = rest
        return np.asarray(block)

    return likelihood, count + 1


@columns_of.register
def _hybrid(mechanism: Hybrid, points: FloatArray) -> tuple[Any, int]:
    piecewise, duchi = mechanism.parts
    smooth, wide = columns_of(piecewise, points)
    coarse, two = columns_of(duchi, points)
    share = mechanism.share

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        a, b = columns.start, columns.stop
        return np.concatenate(
            [
                share * smooth(rows, slice(min(a, wide), min(b, wide))),
                (1.0 - share) * coarse(rows, slice(max(a - wide, 0), max(b - wide, 0))),
            ],
            axis=1,
        )

    return likelihood, wide + two


@columns_of.register
def _staircase(mechanism: Staircase, points: FloatArray) -> tuple[Any, int]:
    step, epsilon = mechanism.sensitivity, mechanism.epsilon
    if epsilon == 0:
        return _silent(points)
    if mechanism.high < APART and mechanism.beyond(APART * step) < APART:
        # almost no noise: every record is revealed, except with probability below APART
        every = np.arange(len(points))
        return (lambda rows, columns: np.equal.outer(every[rows], every[columns]) * 1.0), len(every)
    base, points = points[0], points - points[0]
    first, last = points[0], points[-1]
    if mechanism.clamp is None:
        # one period on each side; records differ by a step at most
        low, high, periods = first - step, last + step, 2
    else:
        # everything beyond a clamp is one output, and so is everything of negligible probability
        low, high = mechanism.clamp[0] - base, mechanism.clamp[1] - base
        periods = int(min(np.ceil((high - low) / step), np.ceil(750 / epsilon))) + 1
    edges = _Edges.of(points, step, mechanism.high, periods, low, high)
    if mechanism.clamp is None:
        # beyond the records the sum over all periods cancels the factor 1 - e^-epsilon
        beyond = (edges.middle < first) | (edges.middle > last)
        scale = edges.width * np.where(beyond, 1.0, float(-np.expm1(-epsilon)))
        share = mechanism.high + (1.0 - mechanism.high) * float(np.exp(-epsilon))

        def pieces(rows: slice | IntArray, columns: slice) -> FloatArray:
            place = np.abs(edges.middle_from(points[rows][:, None], columns)) / step
            down = np.floor(place)
            height = np.exp(-epsilon * (down + (place - down >= mechanism.high)))
            return np.asarray(height * scale[columns] / (2 * step * share))

        return pieces, len(scale)

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        a, b = edges.ends_from(points[rows][:, None], columns)
        above = mechanism.beyond(a) - mechanism.beyond(b)
        below = mechanism.beyond(-b) - mechanism.beyond(-a)
        # from the smaller tail, where nothing cancels
        return np.asarray(np.where(a >= 0, above, below))

    return likelihood, len(edges.width) + 2  # everything beyond a clamp is an output too


@dataclass(frozen=True, slots=True, eq=False)
class _Edges:
    """Ends of pieces, ascending, each a place and an offset.

    The high part of a step may be a billionth of it. Kept separate, the two lose no digits: widths
    and distances are differences of the places plus differences of the offsets.
    """

    place: FloatArray
    added: FloatArray

    @classmethod
    def of(
        cls, points: FloatArray, step: float, high: float, periods: int, low: float, top: float
    ) -> _Edges:
        """All ends of pieces of all records between `low` and `top`, and these two."""
        whole = points[:, None] + step * np.arange(-periods, periods + 1.0)
        whole = np.unique(np.r_[whole.reshape(-1), points[0], points[-1]])
        place = np.r_[np.tile(whole, 3), low, top]
        added = np.r_[np.repeat([0.0, step * high, -step * high], len(whole)), 0.0, 0.0]
        kept = (place + added >= low) & (place + added <= top)
        place, added = place[kept], added[kept]
        order = np.lexsort((added, place + added))
        place, added = place[order], added[order]
        apart = np.r_[True, (np.diff(place) != 0) | (np.diff(added) != 0)]
        return cls(place[apart], added[apart])

    @property
    def width(self) -> FloatArray:
        """Lengths of the pieces."""
        return np.asarray(np.maximum(np.diff(self.place) + np.diff(self.added), 0.0))

    @property
    def middle(self) -> FloatArray:
        """Middles of the pieces."""
        return self.middle_from(0.0, slice(None))

    def middle_from(self, points: Any, columns: slice) -> FloatArray:
        """Middles of some pieces as seen from these points."""
        place = (self.place[1:] + self.place[:-1])[columns] / 2 - points
        return np.asarray(place + (self.added[1:] + self.added[:-1])[columns] / 2)

    def ends_from(self, points: Any, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Both ends of some pieces as seen from these points; everything beyond is a piece too."""
        place, added = np.r_[-np.inf, self.place, np.inf], np.r_[0.0, self.added, 0.0]
        left, right = place[:-1][columns] - points, place[1:][columns] - points
        return left + added[:-1][columns], right + added[1:][columns]


def _silent(points: FloatArray) -> tuple[Any, int]:
    """One output, whatever the record."""
    matrix = np.ones((len(points), 1))
    return (lambda rows, columns: matrix[rows, columns]), 1
