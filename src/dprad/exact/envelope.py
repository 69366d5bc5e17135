"""Laplace noise, exactly: any prior, knowledge and tolerance, no quadrature.

Between two neighbouring values v < w every record's density is a multiple of e^{t/b} or e^{-t/b},
so the gain of a success set is ``h (A/y + B y)`` with ``y = e^{-(t-v)/b} / h`` and
``h = e^{-(w-v)/(2b)}``: after a common factor a line A + B u in u = y^2. The best guess is the
upper envelope of these lines and of the zero line of passing, and each piece integrates in closed
form to ``h (A (1/y1 - 1/y2) + B (y2 - y1)) / 2``. Beyond the outermost values all outputs say
the same.

All gaps of a block and all fibers are walked at once, from one corner of the envelope to the next.
O(m R p) for m values, R sets and p pieces an envelope (few); memory a few blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprad.arrays import BoolArray, FloatArray, IntArray
from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.solution import Solution
from dprad.games import Game
from dprad.success import starts

# Entries of a block of gaps.
BLOCK_ENTRIES = 2**18
# e^-x is as good as zero beyond; keeps 1/h^2 finite.
MAX_EXPONENT = 600.0
# Lines that meet within this share of u meet in one point.
SAME = 1e-13

_METHOD = "by upper envelopes"


def solve_laplace(
    game: Game,
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
    assert sets is not None
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
    rad, luck, hits = tails.rad, tails.success_out, tails.rero
    if len(sets.mass):
        begin = starts(sets.fiber)
        block = max(1, BLOCK_ENTRIES // max(len(points), len(sets.mass)))
        for k in range(0, len(points) - 1, block):
            lower, upper = points[:-1][k : k + block], points[1:][k : k + block]
            h = np.exp(-np.minimum(upper - lower, MAX_EXPONENT) / 2)
            # weights of the classes as seen from the left and from the right end of each gap
            before = points[:, None] <= lower
            seen = np.exp(-np.where(before, lower - points[:, None], points[:, None] - upper))
            left = np.asarray(weight @ np.where(before, seen, 0.0))
            right = np.asarray(weight @ np.where(before, 0.0, seen))
            up, down = sets.sums(right), sets.sums(left)  # coefficients of 1/y and of y
            hits += _envelope(up, down, h, begin, None)[0]
            all_up, all_down = right.sum(axis=0), left.sum(axis=0)
            gain = up - sets.mass[:, None] * all_up, down - sets.mass[:, None] * all_down
            luck_of = sets.mass, all_up, all_down, game.membership
            more_rad, more_luck = _envelope(*gain, h, begin, luck_of)
            rad, luck = rad + more_rad, luck + more_luck
    return Solution(rad=rad, success_out=luck, rero=hits, method=_METHOD)


def _envelope(
    a: FloatArray,
    b: FloatArray,
    h: FloatArray,
    begin: IntArray,
    passing: tuple[FloatArray, FloatArray, FloatArray, bool] | None,
) -> tuple[float, float]:
    """The integral under the envelope of the lines a + b u, summed over fibers and gaps (columns).

    With `passing` (masses, the two coefficients of pbar, whether a tie is a pass) the zero line is
    one of them, and the prior mass of what is named, integrated against pbar, comes second.
    """
    runs = _Runs.of(begin, len(a))
    mass = np.zeros((len(a), 1)) if passing is None else passing[0][:, None]
    u, end = h * h, 1.0 / (h * h)
    start = a + b * u
    best = runs.top(start)
    near = SAME * runs.top(np.abs(a) + np.abs(b) * u)
    slope, line, named = _steepest(a, b, mass, start >= runs.spread(best - near), runs)
    if passing is not None:
        # the zero line: if it is higher, or as high and rising above, or (by rule) not beaten
        idle = (best < -near) | ((best <= near) & ((slope < 0) | (passing[3] & (slope == 0))))
        slope, line, named = (np.where(idle, 0.0, x) for x in (slope, line, named))
    at = np.broadcast_to(u, slope.shape)
    total = luck = 0.0
    while True:
        rise = b - runs.spread(slope)
        cross = np.full(rise.shape, np.inf)
        np.divide(runs.spread(line) - a, rise, out=cross, where=rise > 0)
        following = -runs.top(-cross)
        if passing is not None:
            zero = np.full(slope.shape, np.inf)
            np.divide(-line, slope, out=zero, where=slope < 0)
            following = np.minimum(following, zero)
        following = np.maximum(following, at)
        stop = np.minimum(following, end)
        y1, y2 = np.sqrt(at), np.sqrt(stop)
        # 1/y1 - 1/y2 and y2 - y1 without cancellation
        step = (stop - at) / (y1 + y2)
        inverse = step / (y1 * y2)
        total += float(np.sum(h * (line * inverse + slope * step))) / 2
        if passing is not None:
            luck += float(np.sum(named * h * (passing[1] * inverse + passing[2] * step))) / 2
        done = following >= end
        if done.all():
            return total, luck
        here = cross <= runs.spread(following * (1 + SAME))
        steep, new_line, new_named = _steepest(a, b, mass, here, runs)
        if passing is not None:
            rest = (zero <= following * (1 + SAME)) & (steep < 0)
            steep, new_line, new_named = (
                np.where(rest, 0.0, x) for x in (steep, new_line, new_named)
            )
        slope, line, named = (
            np.where(done, old, new)
            for old, new in ((slope, steep), (line, new_line), (named, new_named))
        )
        at = np.where(done, end, following)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Rows in runs, one a fiber: the greatest of each run, and back to all of its rows."""

    begin: IntArray
    run: IntArray | None

    @classmethod
    def of(cls, begin: IntArray, rows: int) -> _Runs:
        if len(begin) == 1:
            return cls(begin, None)  # broadcasting does it
        return cls(begin, np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, rows])))

    def top(self, values: FloatArray) -> FloatArray:
        if self.run is None:
            return np.asarray(values.max(axis=0, keepdims=True))
        return np.maximum.reduceat(values, self.begin, axis=0)

    def spread(self, values: FloatArray) -> FloatArray:
        return values if self.run is None else values[self.run]


def _steepest(
    a: FloatArray, b: FloatArray, mass: FloatArray, among: BoolArray, runs: _Runs
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of the lines marked, by fiber and gap: the steepest, of these the highest, the likeliest."""
    slope = runs.top(np.where(among, b, -np.inf))
    among = among & (b == runs.spread(slope))
    line = runs.top(np.where(among, a, -np.inf))
    among = among & (a == runs.spread(line))
    return slope, line, runs.top(np.where(among, mass, 0.0))
