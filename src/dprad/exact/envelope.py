"""Laplace noise, exactly: any prior, knowledge and tolerance, no quadrature.

Between two neighbouring values v < w every record's density is a multiple of e^{t/b} or e^{-t/b},
so the gain of a success set is ``h (A/y + B y)`` with ``y = e^{-(t-v)/b} / h`` and
``h = e^{-(w-v)/(2b)}``: after a common factor a line A + B u in u = y^2. The best guess is the
upper envelope of these lines and of the zero line of passing, and each piece integrates in closed
form to ``h (A (1/y1 - 1/y2) + B (y2 - y1)) / 2``. Beyond the outermost values all outputs say
the same.

All gaps of a block and all fibers are processed at once, from one corner of the envelope to the
next. O(m R p) for m values, R sets and p pieces per envelope (few); memory a few blocks.

Nothing known, and one class per set or records read in the order of their targets: most sets can be
skipped. All sets to the left of a block of gaps gain ``a X - b P``, with a their weight seen
from there, b their mass, X the noise and P = pbar; P/X rises along the block, so the set that is
best at its beginning and the one that is best at its end beat all others that they beat where they
cross. Likewise on the right. O(m (W + sqrt(m))) for sets of up to W values.

Everything known: P/X rises to the right of a record, and to its left, so it gains on one interval
around it, which ends where P/X reaches its own height. O(m log m).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.runs import Runs, steepest
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Sets, Singletons, Windows, starts
from dprad.numerics.arrays import HEAVY, BoolArray, FloatArray, IntArray, gains
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# Entries of a block of gaps.
BLOCK_ENTRIES = 2**18
# e^-x counts as zero beyond; keeps 1/h^2 finite.
MAX_EXPONENT = 600.0
# Distances (in units of the noise) up to which logarithms of densities keep their digits.
FAR = 1e6
# Lines that meet within this share of u meet in one point.
SAME = 1e-13

_METHOD = "by upper envelopes"


def solve_laplace(
    game: Classes,
    values: FloatArray,
    pi: FloatArray,
    *,
    height: FloatArray | None = None,
    ends: FloatArray | None = None,
) -> Solution:
    """Records z with probability pi[z] read as values[z], in units of the noise.

    With `height` and `ends` the density of record z is height[z] e^{-|t - values[z]|} between the
    ends and zero beyond (the exponential mechanism), instead of half of it everywhere.
    """
    from scipy import sparse

    sets = game.sets
    weight, points = game.at_values(values, pi)
    if height is not None:
        # all records at a value have the same height
        level = np.empty(len(points))
        level[np.searchsorted(points, values[pi > 0])] = 2 * height[pi > 0]
        weight = weight @ sparse.diags_array(level)
    # beyond the outermost values: one output each, the weight of the records as seen from there
    seen = np.stack([np.exp(points[0] - points), np.exp(points - points[-1])], axis=1) / 2
    if ends is not None:
        seen *= -np.expm1([ends[0] - points[0], points[-1] - ends[1]])
    outer = np.asarray(weight @ seen)
    tails = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, _METHOD)
    rad, luck, hits = _between(game, sets, weight, points)
    return Solution(
        rad=tails.rad + rad,
        success_out=tails.success_out + luck,
        rero=tails.rero + hits,
        method=_METHOD,
    )


Totals = tuple[float, float, float]  # RAD, luck and hits


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """Masses of the sets, whether a tie is a pass, and the fibers (rows) without one."""

    mass: FloatArray
    tie: bool
    must: BoolArray = field(default_factory=lambda: np.zeros((1, 1), dtype=bool))


def _between(game: Classes, sets: Sets, weight: Any, points: FloatArray) -> Totals:
    """All gaps, by the fastest method that applies."""
    if len(points) == 1 or not len(sets.mass):
        return 0.0, 0.0, 0.0
    if game.probabilities.max() <= HEAVY and game.forced is None:
        line = _Line.of(game, weight)
        if line is not None:
            return line.between(points, game.membership)
        if isinstance(sets, Singletons) and _apart(game, weight) and points[-1] - points[0] <= FAR:
            return _alone(sets, weight, points)
    total = np.zeros(3)
    begin, whole = starts(sets.fiber), sets.sizes == weight.shape[0]
    passing = Passing(sets.mass, game.membership, game.must(sets.fiber[begin]))
    step = max(1, block(BLOCK_ENTRIES) // max(len(points), *weight.shape, len(sets.mass)))
    for k in range(0, len(points) - 1, step):
        lower, upper = points[:-1][k : k + step], points[1:][k : k + step]
        # weights of the classes as seen from the left and from the right end of each gap
        before = points[:, None] <= lower
        seen = np.exp(-np.where(before, lower - points[:, None], points[:, None] - upper))
        left = np.asarray(weight @ np.where(before, seen, 0.0))
        right = np.asarray(weight @ np.where(before, 0.0, seen))
        seen_by = sets.sums(right), sets.sums(left)  # coefficients of 1/y and of y
        pbar = right.sum(axis=0), left.sum(axis=0)
        gain = [
            sets.sums(gains(side.copy(), game.probabilities, mean))
            for side, mean in zip((right, left), pbar, strict=True)
        ]
        total += _gaps(seen_by, gain, pbar, upper - lower, begin, whole, passing)
        tell("values", k + len(lower), len(points) - 1)
    return float(total[0]), float(total[1]), float(total[2])


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """One fiber, its classes one after the other along the points, and sets that are intervals.

    A member is a class at one of its values: its `weight` and `place` (which of the points). Of
    each set, along the line, the members low .. high-1 and the prior mass.
    """

    weight: FloatArray
    place: IntArray
    low: IntArray
    high: IntArray
    mass: FloatArray

    @classmethod
    def of(cls, game: Classes, weight: Any) -> _Line | None:
        """The line, if the game is of this kind; else None."""
        sets, weight = game.sets, weight.sorted_indices()
        if not game.nothing_known or np.any(np.diff(weight.indptr) == 0):
            return None
        if isinstance(sets, Windows):
            low, high = sets.low, sets.high
        elif isinstance(sets, Singletons):
            # one class per set: any order works, so use that of the values
            ends = weight.indptr[1:] - 1, weight.indptr[:-1]
            along = np.lexsort([weight.indices[end] for end in ends])
            rank = np.empty_like(along)
            rank[along] = np.arange(len(along))
            weight, low, high = weight[along], rank[sets.index], rank[sets.index] + 1
        else:
            return None
        place, low, high = weight.indices.astype(np.intp), weight.indptr[low], weight.indptr[high]
        order = np.lexsort((high, low))
        line = cls(weight.data, place, low[order], high[order], sets.mass[order])
        in_order = np.all(np.diff(place) >= 0) and np.all(np.diff(line.high) >= 0)
        return line if in_order else None

    def between(self, points: FloatArray, membership: bool) -> Totals:
        """RAD, luck and hits of all gaps."""
        value, one = points[self.place], self.high - self.low == 1
        before, after = _scan(self.weight, value), _scan(self.weight[::-1], -value[::-1])[::-1]
        # of each set: its ends, and its weight as seen from its right and from its left end
        first, last = self.place[self.low], self.place[self.high - 1]
        start, end = points[first], points[last]
        inside = np.maximum(self.low - 1, 0), np.minimum(self.high, len(value) - 1)
        less = np.where(self.low > 0, before[inside[0]] * np.exp(value[inside[0]] - end), 0.0)
        more = np.where(self.high < len(value), after[inside[1]], 0.0)
        more = more * np.exp(start - value[inside[1]])
        own = self.weight[self.low]
        from_right = np.where(one, own, np.maximum(before[self.high - 1] - less, 0.0))
        from_left = np.where(one, own, np.maximum(after[self.low] - more, 0.0))
        # of each point: all to its left and right, itself in both, and pbar
        numbers = np.arange(len(points))
        left = before[np.searchsorted(self.place, numbers, "right") - 1]
        right = after[np.searchsorted(self.place, numbers, "left")]
        pbar = left + right - np.bincount(self.place, weights=self.weight)
        total = np.zeros(3)
        step = max(32, int(np.sqrt(len(points) / 8)))
        for k in range(0, len(points) - 1, step):
            j = min(k + step, len(points) - 1)
            near = int(np.searchsorted(last, k, "right"))
            far = max(near, int(np.searchsorted(first, j, "left")))
            a = from_right[:near] * np.exp(end[:near] - points[k])
            c = from_left[far:] * np.exp(points[j] - start[far:])
            # pbar lies below its values at the points; anything that decays further is negligible
            most = pbar[k : j + 1].max() * np.exp(min(points[j] - points[k], MAX_EXPONENT))
            west = _rivals(a, self.mass[:near], pbar[k], most)
            east = _rivals(c, self.mass[far:], pbar[j], most)
            rows = len(west) + len(east) + far - near
            mass = np.r_[self.mass[:near][west], self.mass[far:][east], self.mass[near:far]]
            whole = np.zeros(rows, dtype=bool)
            whole[rows - (far - near) :] = (self.high - self.low)[near:far] == len(value)
            reached = int(self.high[far - 1] - self.low[near]) if near < far else 1
            narrow = max(1, block(BLOCK_ENTRIES) // max(rows, reached))
            for g in range(k, j, narrow):
                lower, upper = (
                    points[g : min(g + narrow, j)],
                    points[g + 1 : min(g + narrow, j) + 1],
                )
                up, down = np.zeros((rows, len(lower))), np.zeros((rows, len(lower)))
                down[: len(west)] = a[west, None] * np.exp(points[k] - lower)
                up[len(west) : len(west) + len(east)] = c[east, None] * np.exp(upper - points[j])
                self._across(slice(near, far), value, lower, upper, up, down)
                all_up, all_down = right[g + 1 : g + 1 + len(lower)], left[g : g + len(lower)]
                begin = np.zeros(1, dtype=np.intp)
                gain = [up - mass[:, None] * all_up, down - mass[:, None] * all_down]
                total += _gaps(
                    (up, down), gain, (all_up, all_down), upper - lower, begin, whole,
                    Passing(mass, membership),
                )  # fmt: skip
            tell("values", j, len(points) - 1)
        return float(total[0]), float(total[1]), float(total[2])

    def _across(
        self,
        some: slice,
        value: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        up: FloatArray,
        down: FloatArray,
    ) -> None:
        """Fill the last rows: sets with members on both sides of some gap, by prefix sums."""
        low, high = self.low[some], self.high[some]
        if not len(low):
            return
        part = slice(int(low[0]), int(high[-1]))
        at, weight = value[part, None], self.weight[part, None]
        side = at <= lower
        seen = weight * np.exp(-np.where(side, lower - at, at - upper))
        for rows, kept in ((up, ~side), (down, side)):
            total = np.zeros((len(at) + 1, len(lower)))
            np.cumsum(np.where(kept, seen, 0.0), axis=0, out=total[1:])
            rows[len(rows) - len(low) :] = total[high - part.start] - total[low - part.start]


def _apart(game: Classes, weight: Any) -> bool:
    """Whether each class is a fiber of its own and at one value."""
    return game.everything_known and bool(np.all(np.diff(weight.indptr) == 1))


def _alone(sets: Singletons, weight: Any, points: FloatArray) -> Totals:
    """RAD, luck and hits of all gaps if every class is its own fiber."""
    place, own, mass = weight.indices[sets.index], weight.data[sets.index], sets.mass
    total, last = np.asarray(weight.sum(axis=0)).reshape(-1), len(points) - 1
    right = _until(points, total, place, own / mass)
    left = _until(-points[::-1], total[::-1], last - place, own / mass)
    luck = mass * (right[1] + left[1])
    gain = own * -(np.expm1(-right[0]) + np.expm1(-left[0])) - luck
    ends = np.expm1(points[0] - points) + np.expm1(points - points[-1])
    return float(gain.sum()) / 2, float(luck.sum()) / 2, -float(own @ ends[place]) / 2


def _until(
    x: FloatArray, total: FloatArray, place: IntArray, level: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far to the right of x[place] a density of this height is above P; the integral of P."""
    before, after = _scan(total, x), _scan(total[::-1], -x[::-1])[::-1]
    gap, p = np.diff(x), before + after - total
    area = np.r_[0.0, np.cumsum((before[:-1] + after[1:]) * -np.expm1(-gap))]
    with np.errstate(divide="ignore"):
        rise = np.maximum.accumulate(np.log(p) + (x - x[0]))
        k = np.searchsorted(rise, np.log(level) + (x[place] - x[0])) - 1
    above, k = p[place] < level, np.maximum(k, place)
    j = np.minimum(k, len(x) - 2)
    # within the gap P is before e^-s + after e^(s - gap), s from its left end
    with np.errstate(divide="ignore"):
        height = level * np.exp(np.minimum(x[place] - x[j], 0.0))
        over = np.log(np.maximum(height - before[j], 0.0))
        s = (over - np.log(after[j + 1]) + gap[j]) / 2
    s = np.where(above & (k < len(x) - 1), np.clip(s, 0.0, gap[j]), 0.0)
    more = (before[j] + after[j + 1] * np.exp(s - gap[j])) * -np.expm1(-s)
    upto = area[k] - area[place] + np.where(s > 0, more, 0.0)
    return np.where(above, x[k] - x[place] + s, 0.0), np.where(above, upto, 0.0)


def _scan(weight: FloatArray, value: FloatArray) -> FloatArray:
    """Of each member, all weight up to it as seen from there: a recurrence, nothing cancels."""
    total, sums = 0.0, []
    fade = np.exp(-np.diff(value, prepend=value[:1]))
    for w, f in zip(weight.tolist(), fade.tolist(), strict=True):
        total = total * f + w
        sums.append(total)
    return np.array(sums)


def _rivals(a: FloatArray, b: FloatArray, begin: float, end: float) -> IntArray:
    """Which lines a - b r can be the highest for some r from `begin` to `end`, and the largest a.

    A line that exceeds the best lines of the beginning and of the end does so where these two
    cross.
    """
    if not len(a):
        return np.zeros(0, dtype=np.intp)
    i, j = int(np.argmax(a - b * begin)), int(np.argmax(a - b * end))
    steep = b[i] - b[j]
    r = min(max((a[i] - a[j]) / steep, begin), end) if steep > 0 else begin
    top = max(a[i] - b[i] * r, a[j] - b[j] * r)
    kept = a - b * r >= top - SAME * (a + b * r)
    kept[[i, j, int(np.argmax(a))]] = True
    places = np.flatnonzero(kept)
    # one of several equal lines suffices
    return places[np.unique(np.stack([a[places], b[places]]), axis=1, return_index=True)[1]]


def _gaps(
    seen: tuple[FloatArray, FloatArray],
    gain: list[FloatArray],
    pbar: tuple[FloatArray, FloatArray],
    gap: FloatArray,
    begin: IntArray,
    whole: BoolArray,
    passing: Passing,
) -> Totals:
    """RAD, luck and hits of some gaps: coefficients of 1/y and of y, of sets (rows), everyone."""
    hits = _envelope(*seen, gap, begin, None)[0]
    for part in gain:
        part[whole] = 0.0  # a set of all classes gains nothing, exactly
    rad, luck = _envelope(gain[0], gain[1], gap, begin, passing, pbar)
    return rad, luck, hits


def _envelope(
    a: FloatArray,
    b: FloatArray,
    gap: FloatArray,
    begin: IntArray,
    passing: Passing | None,
    pbar: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[float, float]:
    """The integral under the envelope of the lines a + b u, summed over fibers and gaps (columns).

    Small gaps, on which u is close to one, are processed in u - 1, so that no digits are lost.
    With `passing` the zero line is one of them where it is allowed, and the prior mass of what is
    named, integrated against pbar (its two coefficients), comes second.
    """
    runs = Runs.of(begin, len(a))
    mass = np.zeros((len(a), 1)) if passing is None else passing.mass[:, None]
    gap = np.minimum(gap, MAX_EXPONENT)
    zero = np.where(gap < 1.0, 1.0, 0.0)  # the origin of u
    h, end = np.exp(-gap / 2), np.where(gap < 1.0, np.expm1(gap), np.exp(gap))
    at = np.where(gap < 1.0, np.expm1(-gap), np.exp(-gap))
    near = SAME * runs.top(np.abs(a) + np.abs(b) * np.exp(-gap))
    a = a + b * zero
    start = a + b * at
    best = runs.top(start)
    slope, line, named = steepest(a, b, mass, start >= runs.spread(best - near), runs)
    if passing is not None:
        # the zero line: if it is higher, or as high and rising above, or (by rule) not beaten
        idle = (best < -near) | ((best <= near) & ((slope < 0) | (passing.tie & (slope == 0))))
        idle &= ~passing.must
        slope, line, named = (np.where(idle, 0.0, x) for x in (slope, line, named))
    at = np.broadcast_to(at, slope.shape)
    total = luck = 0.0
    while True:
        rise = b - runs.spread(slope)
        cross = np.full(rise.shape, np.inf)
        with np.errstate(over="ignore"):
            np.divide(runs.spread(line) - a, rise, out=cross, where=rise > 0)
        following = -runs.top(-cross)
        if passing is not None:
            sinks = np.full(slope.shape, np.inf)
            np.divide(-line, slope, out=sinks, where=(slope < 0) & ~passing.must)
            following = np.minimum(following, sinks)
        following = np.maximum(following, at)
        stop = np.minimum(following, end)
        y1, y2 = np.sqrt(zero + at), np.sqrt(zero + stop)
        # 1/y1 - 1/y2 and y2 - y1 without cancellation
        step = (stop - at) / (y1 + y2)
        inverse = step / (y1 * y2)
        total += float(np.sum(h * (line * inverse + slope * (step - zero * inverse)))) / 2
        if pbar is not None:
            luck += float(np.sum(named * h * (pbar[0] * inverse + pbar[1] * step))) / 2
        done = following >= end
        if done.all():
            return total, luck
        close = following + SAME * np.abs(following)
        here = cross <= runs.spread(close)
        steep, new_line, new_named = steepest(a, b, mass, here, runs)
        if passing is not None:
            rest = (sinks <= close) & (steep < 0)
            steep, new_line, new_named = (
                np.where(rest, 0.0, x) for x in (steep, new_line, new_named)
            )
        slope, line, named = (
            np.where(done, old, new)
            for old, new in ((slope, steep), (line, new_line), (named, new_named))
        )
        at = np.where(done, end, following)
