"""The best window on zones: intervals of each fiber's values whose two ends move one way.

An output sees a fiber in a few zones of equal likelihood (`zones.py`). Where a fiber's windows are
in order, those that begin in one zone and end in another stand next to each other: an output splits
them into a few runs. In a run, a window from B to A (running sums of masses) gains

    u A - v B + what is the same for all,    u = level of the last zone - q,  v = that of the first,

with q = pbar/scale. If both levels are the same, the heaviest or the lightest of the run is best;
if u and v differ in sign, the first or the last; else a corner of the hull of the points (A, B),
which `hulls.py` finds. Only runs are asked that can be the best at most.

Along a stretch of outputs (`stretches.py`) the runs stay, and the best gain is a convex function of
q: O((m + K) log^2 m) for m windows of any width, in fibers or not, and K outputs, where best
windows change rarely along stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.branching import scan
from dprad.exact.channel import TIE, nearly
from dprad.exact.hulls import Hulls
from dprad.exact.stretches import ROUNDING, Along, Chosen, stretches
from dprad.exact.zones import Highest, Zones
from dprad.game.game import Classes
from dprad.game.sets import Windows
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# Stretches processed together.
BLOCK_ENTRIES = 2**13


def by_window(zones: Zones, pbar: FloatArray, game: Classes, weight: Any) -> FloatArray | None:
    """RAD, luck and hits of windows; None if values are not in the order of classes, or if zones do
    not move one way.
    """
    some = zones.scale > 0
    edge, scale, pbar = zones.edge[:, some], zones.scale[some], pbar[some]
    order = _Ordered.of(game, weight)
    if order is None or not len(scale) or np.any(np.diff(edge[1:-1], axis=1) < 0):
        return None
    owner, begin, end = stretches(edge[1:-1], order.owner, order.place)
    along, totals = Along.of(scale, pbar), np.zeros(3)
    must = np.broadcast_to(game.must(owner)[:, 0], len(owner))
    step = block(BLOCK_ENTRIES)
    for i in range(0, len(owner), step):
        part = slice(i, i + step)
        a, b = begin[part], end[part]
        seen = _Seen.of(order, zones.level, owner[part], edge[:, a], must[part])
        totals[:2] += along.best(a, b, seen.chosen)
        every = np.arange(len(a))
        totals[2] += float(seen.best(every, np.zeros(len(a)))[0] @ along.scales(a, b))
        tell("guesses", min(i + step, len(owner)), len(owner))
    return totals


@dataclass(frozen=True, slots=True, eq=False)
class _Ordered:
    """Members (a class at one of its values), by fiber and place, with running sums of their mass
    in their fiber; and windows in order: keys of their first and last members, and the sums up to
    their ends. A key is the number of the fiber times `width`, plus a place.
    """

    owner: IntArray
    place: IntArray
    key: IntArray
    width: int
    upto: FloatArray
    begins: BoolArray
    first: IntArray
    last: IntArray
    low: FloatArray
    high: FloatArray
    heaviest: Highest
    lightest: Highest
    falling: Hulls
    rising: Hulls

    @classmethod
    def of(cls, game: Classes, weight: Any) -> _Ordered | None:
        """None if values are not in the order of classes."""
        sets, rows = game.sets, weight[game.asked].sorted_indices()
        assert isinstance(sets, Windows)
        count = np.diff(rows.indptr)
        if np.any(count == 0) or np.any(sets.high > len(count)):
            return None
        place, width = rows.indices.astype(np.intp), weight.shape[1] + 1
        owner = np.repeat(game.fiber[game.asked], count)
        key = owner * width + place
        order = np.lexsort((sets.high, sets.low))
        low, high = rows.indptr[sets.low[order]], rows.indptr[sets.high[order]]
        if np.any(np.diff(key) < 0) or np.any(np.diff(high) < 0):
            return None
        upto = scan(rows.data, np.zeros(len(key)), owner)
        begins = np.r_[True, owner[1:] != owner[:-1]]
        below, above = np.where(begins[low], 0.0, upto[low - 1]), upto[high - 1]
        mass = above - below
        return cls(
            owner, place, key, width, upto, begins, key[low], key[high - 1], below, above,
            Highest.of(mass), Highest.of(-mass), Hulls(above, -below), Hulls(below, -above),
        )  # fmt: skip

    def sums(self, at: IntArray, owner: IntArray) -> FloatArray:
        """The mass of the members of these fibers before a place, given as keys."""
        number = np.searchsorted(self.key, at)
        before = np.maximum(number - 1, 0)
        mine = (number > 0) & (self.owner[before] == owner)
        return np.where(mine, self.upto[before], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Runs (columns) of windows of fibers (rows), as some outputs see them: from where to where,
    the levels of the zones in which they begin and end, what a window there has besides ``b A - a
    B``, and the heaviest and the lightest mass.
    """

    order: _Ordered
    begin: IntArray
    end: IntArray
    a: FloatArray
    b: FloatArray
    rest: FloatArray
    most: FloatArray
    least: FloatArray
    must: BoolArray

    @classmethod
    def of(
        cls, order: _Ordered, level: FloatArray, owner: IntArray, edge: IntArray, must: BoolArray
    ) -> _Seen:
        """Edges of zones, by zone and fiber."""
        at = owner * order.width + edge
        first, last = (np.searchsorted(keys, at) for keys in (order.first, order.last))
        cuts = np.sort(np.concatenate([first[1:-1], last]), axis=0)
        begin, end = cuts[:-1], cuts[1:]
        # zones of their first and last members
        inner, outer = (np.sum(part[1:-1, None] <= begin, axis=0) for part in (first, last))
        sums = order.sums(at, owner)
        passed = np.cumsum(level[:, None] * np.diff(sums, axis=0), axis=0)
        passed = np.concatenate([np.zeros_like(passed[:1]), passed])
        row = np.arange(len(owner))
        a, b = level[inner], level[outer]
        rest = passed[outer, row] - b * sums[outer, row] - passed[inner, row] + a * sums[inner, row]
        rest = np.where(inner == outer, 0.0, rest)
        most = order.heaviest.between(begin, end)
        least = -order.lightest.between(begin, end)
        return cls(order, begin.T, end.T, a.T, b.T, rest.T, most.T, least.T, must)

    def chosen(self, rows: IntArray, low: FloatArray, high: FloatArray, *, last: bool) -> Chosen:
        """The best windows, and the heaviest of those that tie, if they are the same from the least
        q to the largest. Gains are linear in q: so is the set of windows that tie.
        """
        held, mass, named = self.best(rows, low)
        if last:
            return held, mass, named, np.ones(len(rows), dtype=bool)
        other = self.best(rows, high)
        near = ROUNDING * high * np.maximum(mass, other[1])
        sure = held - high * mass >= other[0] - high * other[1] - near
        return held, mass, named, sure & (named == other[2])

    def best(self, rows: IntArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The likelihood sum and the mass of the best windows (or of a pass, which has none), and
        the mass of the heaviest that ties with it.
        """
        order, q, must = self.order, q[:, None], self.must[rows]
        begin, end, a, b = self.begin[rows], self.end[rows], self.a[rows], self.b[rows]
        same, some, u, v = a == b, end > begin, b - q, a - q
        at = np.where(u >= 0, end - 1, begin)
        at = np.clip(at, 0, len(order.low) - 1)
        high, low = order.high[at], order.low[at]
        mass = np.where(u >= -TIE * q, self.most[rows], self.least[rows])
        mass = np.where(same, mass, high - low)
        held = np.where(same, a * mass, b * high - a * low) + self.rest[rows]
        gain = np.where(some, held - q * mass, -np.inf)
        floor = gain.max(axis=1, keepdims=True)
        floor = np.where(must[:, None], floor, np.maximum(floor, 0.0)) - TIE * q
        asked = some & ~same & (u * v > 0)
        asked[asked] = self._bound(rows, asked, u[asked], v[asked]) > floor[np.nonzero(asked)[0], 0]
        for hulls, which in ((order.falling, asked & (u > 0)), (order.rising, asked & (u < 0))):
            if not which.any():
                continue
            x, y = (u, v) if hulls is order.falling else (-v, -u)
            at = hulls.furthest(begin[which], end[which], x[which], y[which])
            mass[which] = order.high[at] - order.low[at]
            held[which] = b[which] * order.high[at] - a[which] * order.low[at]
            held[which] += self.rest[rows][which]
            gain[which] = held[which] - (q * mass)[which]
        best, every = gain.max(axis=1), np.arange(len(rows))
        near = nearly(best, np.where(some, mass, 0.0).max(axis=1), q[:, 0])
        tied = gain >= (best - near)[:, None]
        named = np.where(tied, mass, 0.0).max(axis=1)
        named = np.where(must | (best >= -near), named, 0.0)
        chosen, passed = gain.argmax(axis=1), ~must & (best < 0)
        held, mass = held[every, chosen], mass[every, chosen]
        return np.where(passed, 0.0, held), np.where(passed, 0.0, mass), named

    def _bound(self, rows: IntArray, asked: BoolArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """No window of these runs gains more: a part as if it were the heaviest or lightest, the
        rest as if it were the last or the first.
        """
        order, begin, end = self.order, self.begin[rows][asked], self.end[rows][asked] - 1
        both = np.where(u > 0, np.minimum(u, v), np.maximum(u, v))
        mass = np.where(u > 0, self.most[rows][asked], self.least[rows][asked])
        more, less = u - both, v - both
        high = np.where(more > 0, order.high[end], order.high[begin])
        low = np.where(less > 0, order.low[begin], order.low[end])
        return np.asarray(both * mass + more * high - less * low + self.rest[rows][asked])
