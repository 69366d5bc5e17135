"""Laplace and geometric noise, exactly: any prior, knowledge and tolerance, no quadrature.

Beyond the outermost values all outputs say the same. In between, where classes are in order along
the line, by `exact/branching.py`; everything known under Laplace noise by one interval for each
record: P/X (pbar over the noise) rises to its right, and to its left, so it gains as far as P/X
reaches its own height, O(m log m). Otherwise all gaps of a block and all sets are processed at once
by `exact/envelope.py`: O(m R p) for m values, R sets and p pieces per envelope (few). Memory a few
blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.exact import branching
from dprad.exact.branching import Line, scan
from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.envelope import WHOLE, Passing, Steps, envelope
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Sets, Singletons, starts
from dprad.numerics.arrays import HEAVY, BoolArray, FloatArray, IntArray, gains
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# Entries of a block of gaps.
BLOCK_ENTRIES = 2**18
# Distances (in units of the noise) up to which logarithms of densities keep their digits.
FAR = 1e6
# Largest rate of geometric noise: beyond, there is next to none.
FEW = 500.0
# With so few sets times gaps, all at once is faster than branching.
SMALL = 2**13

_METHOD = "by upper envelopes"

Totals = tuple[float, float, float]  # RAD, luck and hits


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


def solve_geometric(
    game: Classes, values: FloatArray, pi: FloatArray, rate: float
) -> Solution | None:
    """Records z with probability pi[z] read as the whole number values[z]; None if the noise is
    none, or if classes are not in order along the line.
    """
    if game.probabilities.max() > HEAVY or game.forced is not None or not 0 < rate < FEW:
        return None
    weight, points = game.at_values(values, pi)
    steps, points = Steps(rate), (points - points[0]) * rate
    line = Line.of(game, weight, points, steps) if len(game.sets.mass) else None
    if line is None:
        return None
    # the last value and everything beyond, and everything below the first
    seen = np.stack([np.exp(-points) * steps.rising, np.exp(points - points[-1]) * steps.falling])
    outer = np.asarray(weight @ seen.T)
    tails = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, _METHOD)
    rad, luck, hits = _along(line, game.membership) if len(points) > 1 else (0.0, 0.0, 0.0)
    return Solution(
        rad=tails.rad + rad,
        success_out=tails.success_out + luck,
        rero=tails.rero + hits,
        method=_METHOD,
    )


def _between(game: Classes, sets: Sets, weight: Any, points: FloatArray) -> Totals:
    """All gaps, by the fastest method that applies."""
    if len(points) == 1 or not len(sets.mass):
        return 0.0, 0.0, 0.0
    if game.probabilities.max() <= HEAVY and game.forced is None:
        if isinstance(sets, Singletons) and _apart(game, weight) and points[-1] - points[0] <= FAR:
            return _alone(sets, weight, points)
        small = len(points) * len(sets.mass) <= SMALL
        # of classes at one value a line keeps the likeliest, which must also gain most
        line = None if small or game.weighted else Line.of(game, weight, points, Steps())
        if line is not None:
            return _along(line, game.membership)
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


def _along(line: Line, tie: bool) -> Totals:
    """RAD, luck and hits of all gaps of a line."""
    rad, luck = branching.between(line, tie=tie, gained=True)
    return rad, luck, branching.between(line, tie=tie, gained=False)[0]


def _apart(game: Classes, weight: Any) -> bool:
    """Whether each class is a fiber of its own and at one value."""
    return game.everything_known and bool(np.all(np.diff(weight.indptr) == 1))


def _alone(sets: Singletons, weight: Any, points: FloatArray) -> Totals:
    """RAD, luck and hits of all gaps if every class is its own fiber."""
    place, own, mass = weight.indices[sets.index], weight.data[sets.index], sets.mass
    total, last = np.asarray(weight.sum(axis=0)).reshape(-1), len(points) - 1
    right = _until(points, total, place, own / mass, Steps())
    left = _until(-points[::-1], total[::-1], last - place, own / mass, Steps())
    luck = mass * (right[1] + left[1])
    gain = own * -(np.expm1(-right[0]) + np.expm1(-left[0])) / 2 - luck
    ends = np.expm1(points[0] - points) + np.expm1(points - points[-1])
    return float(gain.sum()), float(luck.sum()), -float(own @ ends[place]) / 2


def _until(
    x: FloatArray, total: FloatArray, place: IntArray, level: FloatArray, steps: Steps
) -> tuple[FloatArray, FloatArray]:
    """How far to the right of x[place] a density of this height is above P; the integral of P."""
    before, after = scan(total, x), scan(total[::-1], -x[::-1])[::-1]
    gap, p = np.diff(x), before + after - total
    passed = (steps.falling * before[:-1] + steps.rising * after[1:]) * -np.expm1(-gap)
    area = np.r_[0.0, np.cumsum(passed)]
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
    if steps.rate:
        s = np.minimum(steps.rate * np.ceil((s - WHOLE) / steps.rate), gap[j])
    more = steps.falling * before[j] + steps.rising * after[j + 1] * np.exp(s - gap[j])
    more *= -np.expm1(-s)
    upto = area[k] - area[place] + np.where(s > 0, more, 0.0)
    return np.where(above, x[k] - x[place] + s, 0.0), np.where(above, upto, 0.0)


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
    hits = envelope(*seen, gap, begin, None)[0]
    for part in gain:
        part[whole] = 0.0  # a set of all classes gains nothing, exactly
    rad, luck = envelope(gain[0], gain[1], gap, begin, passing, pbar)
    return rad, luck, hits


def own_risks_along(x: FloatArray, mass: FloatArray, steps: Steps) -> FloatArray:
    """For each of these points, in units of the noise, TV of its outputs from those of a random
    one: it gains on one interval around it. O(m log m).
    """
    every, ones, last = np.arange(len(x)), np.ones(len(x)), len(x) - 1
    right = _until(x, mass, every, ones, steps)
    left = [side[::-1] for side in _until(-x[::-1], mass[::-1], every, ones, steps)]
    gained = steps.falling * -(np.expm1(-right[0]) + np.expm1(-left[0])) - right[1] - left[1]
    p = scan(mass, x) + scan(mass[::-1], -x[::-1])[::-1] - mass
    beyond = np.maximum(np.exp(x[0] - x) - p[0], 0.0) + np.maximum(np.exp(x - x[last]) - p[last], 0)
    # its own place was counted on both sides
    twice = (steps.falling - steps.rising) * np.maximum(1.0 - p, 0.0)
    return np.asarray(np.clip(gained + steps.falling * beyond - twice, 0.0, 1.0))
