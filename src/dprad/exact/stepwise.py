"""Piecewise constant densities (staircase, Duchi, piecewise, hybrid): exact channels.

Between two neighbouring ends of pieces, of any record, all outputs carry the same information: one
column of a channel. The staircase repeats beyond the outermost records, each period e^-epsilon
times as likely as the last: one period stands for all, up to a clamp. O(m) columns: one class per
set, and windows where nothing is known, by zones of values (`exact/guessing.py`), otherwise as a
channel, O(m^2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact.channel import Law, sum_by_likelihood
from dprad.exact.guessing import solve_zones
from dprad.exact.solution import Solution
from dprad.exact.zones import Zones
from dprad.game.game import Classes
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.categorical import Entries
from dprad.mechanisms.staircase import Staircase
from dprad.numerics.arrays import FloatArray, IntArray

_METHOD = "sum over the pieces of the density"
# Noise that stays within this share of a step, except with this probability, counts as none.
APART = 1e-14
# With a smaller high part of a step, places are told apart only by place and offset.
NARROW = 1e-9


def solve_steps(mechanism: Any, game: Classes, values: FloatArray, pi: FloatArray) -> Solution:
    """Records z with probability pi[z] read as values[z]."""
    weight, points = game.at_values(values, pi)
    zones = zones_of(mechanism, points)
    if zones is not None:
        solution = solve_zones(zones, game, weight, _METHOD)
        if solution is not None:
            return solution
    kept = pi > 0
    codes = np.zeros(len(pi), dtype=np.intp)
    codes[kept] = np.searchsorted(points, values[kept])
    law = Law.of(*columns_of(mechanism, points))
    return sum_by_likelihood(law, game, codes, pi, len(points), _METHOD)


@singledispatch
def zones_of(mechanism: Any, points: FloatArray) -> Zones | None:  # noqa: ARG001
    """The same channel by zones of the values; None if it has none."""
    return None


@singledispatch
def columns_of(mechanism: Any, points: FloatArray) -> tuple[Entries, int]:
    """The channel of these values, and its width."""
    raise TypeError(f"{type(mechanism).__name__} has no pieces, for {len(points)} values.")


@columns_of.register
def _duchi(mechanism: Duchi, points: FloatArray) -> tuple[Entries, int]:
    x = mechanism.scaled(points)
    matrix = np.stack([mechanism.up(-x), mechanism.up(x)], axis=1)
    return (lambda rows, columns: matrix[rows, columns]), 2


@columns_of.register
def _piecewise(mechanism: Piecewise, points: FloatArray) -> tuple[Entries, int]:
    if not np.isfinite(mechanism.reach):
        return _silent(points)
    low, high = _windows(mechanism, points)
    if mechanism.length <= float(np.diff(low).min(initial=np.inf)):
        return _apart(mechanism, len(points))
    width, middle = _pieces(mechanism, low, high)
    inside, outside = (np.exp(d) for d in mechanism.log_densities)

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        t = middle[columns]
        near = (low[rows][:, None] < t) & (t < high[rows][:, None])
        return np.asarray(np.where(near, inside, outside) * width[columns])

    return likelihood, len(width)


def _windows(mechanism: Piecewise, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both ends, relative to the first window, which keeps small distances exact."""
    low = (mechanism.reach + 1.0) / 2 * (points - points[0]) / mechanism.half
    return low, low + mechanism.length


def _pieces(
    mechanism: Piecewise, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Widths and middles between the ends of windows; the last one is the rest."""
    edges = np.unique(np.r_[low, high])
    width = np.r_[np.diff(edges), 2 * mechanism.reach - (edges[-1] - edges[0])]
    return width, np.r_[(edges[1:] + edges[:-1]) / 2, np.inf]


@zones_of.register
def _piecewise_zones(mechanism: Piecewise, points: FloatArray) -> Zones | None:
    if not np.isfinite(mechanism.reach):
        return None
    low, high = _windows(mechanism, points)
    if mechanism.length <= float(np.diff(low).min(initial=np.inf)):
        return None
    width, middle = _pieces(mechanism, low, high)
    inside, outside = (float(np.exp(d)) for d in mechanism.log_densities)
    first, last = np.searchsorted(high, middle, "right"), np.searchsorted(low, middle, "left")
    first[-1] = last[-1]  # nobody's window is in the rest
    none, every = np.zeros_like(first), np.full_like(first, len(points))
    edge = np.stack([none, first, last, every])
    level = np.array([outside, inside, outside])
    return Zones(edge, level, width, np.zeros((len(points), 0)))


@zones_of.register
def _hybrid_zones(mechanism: Hybrid, points: FloatArray) -> Zones | None:
    piecewise, duchi = mechanism.parts
    zones, share = zones_of(piecewise, points), mechanism.share
    if zones is None:
        return None
    coarse, two = columns_of(duchi, points)
    rest = (1.0 - share) * coarse(slice(0, len(points)), slice(0, two))
    return replace(
        zones, scale=share * zones.scale, rest=np.concatenate([zones.rest, rest], axis=1)
    )


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
def _hybrid(mechanism: Hybrid, points: FloatArray) -> tuple[Entries, int]:
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
def _staircase(mechanism: Staircase, points: FloatArray) -> tuple[Entries, int]:
    step, epsilon = mechanism.sensitivity, mechanism.epsilon
    if epsilon == 0:
        return _silent(points)
    if mechanism.high < APART and mechanism.beyond(APART * step) < APART:
        # almost no noise: every record is revealed, except with probability below APART
        every = np.arange(len(points))
        return (lambda rows, columns: np.equal.outer(every[rows], every[columns]) * 1.0), len(every)
    stairs = _Stairs.of(mechanism, points)
    place = points - points[0]

    def pieces(rows: slice | IntArray, columns: slice) -> FloatArray:
        a, b = columns.start, columns.stop
        inner = slice(min(a, stairs.count), min(b, stairs.count))
        away = np.abs(stairs.edges.middle_from(place[rows][:, None], inner)) / step
        down = np.floor(away)
        height = np.exp(-epsilon * (down + (away - down >= mechanism.high)))
        outer = slice(max(a - stairs.count, 0), max(b - stairs.count, 0))
        return np.concatenate([height * stairs.scale[inner], stairs.clamped[rows, outer]], axis=1)

    return pieces, stairs.count + stairs.clamped.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Stairs:
    """Pieces of a staircase around the first value and up to a step beyond, each with the density
    at its top times its length and repetitions; what is clamped to either end, by value.
    """

    edges: _Edges
    scale: FloatArray
    clamped: FloatArray

    @property
    def count(self) -> int:
        """How many pieces."""
        return len(self.scale)

    @classmethod
    def of(cls, mechanism: Staircase, points: FloatArray) -> _Stairs:
        """One period on each side of the values, which differ by a step at most."""
        step, epsilon = mechanism.sensitivity, mechanism.epsilon
        base, points = points[0], points - points[0]
        last = points[-1]
        ends, clamped = np.zeros(0), mechanism.beyond(np.zeros((len(points), 0)))
        if mechanism.clamp is not None:
            # how far the clamps lie into a period, and what lies beyond them
            below, above = -(mechanism.clamp[0] - base), mechanism.clamp[1] - base - last
            ends = np.array([-(below % step), last + above % step])
            clamped = mechanism.beyond(np.stack([points + below, last - points + above], axis=1))
        edges = _Edges.of(points, step, mechanism.high, 2, -step, last + step, ends)
        middle, times = edges.middle, np.full(len(edges.width), np.inf)
        if mechanism.clamp is not None:
            left, right = middle < 0, middle > last
            times[left] = np.maximum(np.ceil((below + middle[left]) / step), 0.0)
            times[right] = np.maximum(np.ceil((last + above - middle[right]) / step), 0.0)
        # the sum over all periods cancels the factor 1 - e^-epsilon
        times = np.where((middle < 0) | (middle > last), times, 1.0)
        share = mechanism.high + (1.0 - mechanism.high) * float(np.exp(-epsilon))
        return cls(edges, edges.width * -np.expm1(-epsilon * times) / (2 * step * share), clamped)


@zones_of.register
def _staircase_zones(mechanism: Staircase, points: FloatArray) -> Zones | None:
    step, high = mechanism.sensitivity, mechanism.high
    if mechanism.epsilon == 0 or high < NARROW:
        return None
    stairs = _Stairs.of(mechanism, points)
    points, middle = points - points[0], stairs.edges.middle
    reach = step * np.array([-1 - high, -high, high, 1 + high])[:, None]
    inner = np.searchsorted(points, middle + reach)
    none, every = np.zeros_like(inner[:1]), np.full_like(inner[:1], len(points))
    level = np.exp(-mechanism.epsilon * np.array([2.0, 1.0, 0.0, 1.0, 2.0]))
    return Zones(np.concatenate([none, inner, every]), level, stairs.scale, stairs.clamped)


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
        cls,
        points: FloatArray,
        step: float,
        high: float,
        periods: int,
        low: float,
        top: float,
        more: FloatArray,
    ) -> _Edges:
        """All ends of pieces of all records between `low` and `top`, these two, and `more`."""
        whole = points[:, None] + step * np.arange(-periods, periods + 1.0)
        whole = np.unique(np.r_[whole.reshape(-1), points[0], points[-1]])
        place = np.r_[np.tile(whole, 3), low, top, more]
        added = np.repeat([0.0, step * high, -step * high], len(whole))
        added = np.r_[added, np.zeros(2 + len(more))]
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


def _silent(points: FloatArray) -> tuple[Entries, int]:
    """One output, whatever the record."""
    matrix = np.ones((len(points), 1))
    return (lambda rows, columns: matrix[rows, columns]), 1
