"""Densities on the line: panels with an error bound.

On each panel every density is a Legendre series, so every gain is one too. Let the attack name one
set per panel and fiber, that with the largest mean gain: its value is exact, and a lower bound on
RAD*. What another set T could add is the positive part of gain_T - gain_S, a series ``-d_0 - d_1 x
- ...`` that stays below the line ``-d_0 - d_1 x + sum_{k>=2} |d_k|``. The largest of these lines
and zero is convex in x, so its integral is at most half the width times the sum of its values at
both ends: the error bound of the panel. Rivals whose line is nowhere positive are dropped; panels
with an error left are halved, together with their rivals. Since differences of gains are bounded,
not the gains, nearly equal guesses are separated like any others.

A normal density is seen from near panels only, and so few sets are of interest on each (`seen.py`):
O(m log m) for m values, however small the noise is against their range. Otherwise O(P m) for P
initial panels. Then O(1) per round for each change of the best guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.normal import beyond, solve_normal
from dprad.exact.seen import OUTSIDE, Seen
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import starts
from dprad.mechanisms.density import Density
from dprad.mechanisms.gaussian import Gaussian
from dprad.numerics import legendre
from dprad.numerics.arrays import HEAVY, BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# The required error, the most halvings to reach it, and the largest error that is still accepted.
TOLERANCE = 1e-10
ROUNDS = 45
ACCEPTED = 1e-5
# Gains that differ by less than this share of an output's probability are ties.
TIE = 1e-13
# Half the width of a panel in standard deviations, and how far out the normal density reaches
# (1e-19 of probability beyond).
HALF = 0.25
REACH = 9.0
# Largest |derivative| of the normal density of the order of the series: an even one is largest at
# 0, since its Fourier transform does not change sign; (n-1)(n-3)...1 / sqrt(2 pi).
STEEP = float(np.prod(np.arange(1.0, legendre.TERMS, 2)) / np.sqrt(2 * np.pi))
# Most panels, of values that are seen from few of them, and of others: it is worth no more work.
MAX_PANELS, ALL_PANELS = 2**20, 2**15
# Coefficients held in memory at once, and most rivals of a block.
BLOCK_ENTRIES = 2**21
MAX_RIVALS = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Densities of values on the line: series on panels, block by block, and atoms.

    `blocks` gives (half widths, series: values x panels x terms, what is seen there). `atoms` is
    values x outputs of positive probability. `error` bounds what the series leave out, in total.
    """

    blocks: Iterator[tuple[FloatArray, FloatArray, Seen]]
    panels: int
    atoms: FloatArray
    error: float


def solve_gaussian(
    mechanism: Gaussian, game: Classes, values: FloatArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as values[z]; None if their range is too large."""
    weight, points = game.at_values(values, pi)
    found = solve_normal(mechanism, game, weight, points)
    if found is not None:
        return found
    with np.errstate(over="ignore"):
        scaled = (points - points[0]) / mechanism.sigma
    low, high = -REACH, float(scaled[-1]) + REACH
    seen = Seen.all(game, weight, scaled)
    if not (high - low) / (2 * HALF) <= (MAX_PANELS if seen.divisible else ALL_PANELS):
        return None
    if mechanism.clamp is not None:
        ends = ((c - points[0]) / mechanism.sigma for c in mechanism.clamp)
        low, high = max(low, next(ends)), min(high, next(ends))
    count = max(1, int(np.ceil((high - low) / (2 * HALF))))
    half = (high - low) / (2 * count)
    # both the gain of a set and pbar are off by this at most, and so is the best of all gains; over
    # the whole range, which also covers that places are rounded
    remainder = legendre.REMAINDER * STEEP * half**legendre.TERMS
    error = 2e-19 + 2 * OUTSIDE + 2 * remainder * (high - low)
    line = Line(_normal(seen, low, half, count), count, beyond(scaled, low, high), error)
    return _solve(line, game, weight, _PROVEN)


def _normal(
    seen: Seen, low: float, half: float, count: int
) -> Iterator[tuple[FloatArray, FloatArray, Seen]]:
    """Normal densities on panels from `low` on, each of width 2 `half`."""
    for stretch in seen.stretches(low, 2 * half, 0, count):
        there = stretch.seen
        step = max(1, block(BLOCK_ENTRIES) // (legendre.TERMS * there.width))
        for a in range(stretch.begin, stretch.end, step):
            panels = np.arange(a, min(a + step, stretch.end))
            width = np.full(len(panels), half)
            t = legendre.nodes(low + (2 * panels + 1) * half, width)
            x = t[None] - there.points[:, None, None]
            p = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
            yield width, legendre.series(p), there


def solve_density(
    mechanism: Density, game: Classes, values: FloatArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as values[z]; None if panels cannot decide."""
    weight, points = game.at_values(values, pi)
    panels = mechanism.panels(points)
    total = 2 * panels.series[..., 0] @ panels.half
    error = 2 * (float(panels.error.sum()) + float(np.abs(total - 1.0).max()))
    seen = Seen.all(game, weight, points)
    step = max(1, block(BLOCK_ENTRIES) // (legendre.TERMS * seen.width))
    parts = [slice(a, a + step) for a in range(0, len(panels.half), step)]
    blocks = ((panels.half[part], panels.series[:, part], seen) for part in parts)
    line = Line(blocks, len(panels.half), np.zeros((len(points), 0)), error)
    return _solve(line, game, weight, _ESTIMATED)


_PROVEN = "by panels with a proven error"
_ESTIMATED = "by panels; the error of resolving the density is estimated"


def _solve(line: Line, game: Classes, weight: Any, method: str) -> Solution | None:
    outer = np.asarray(weight @ line.atoms)
    ends = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, method)
    totals = np.array([ends.rad, ends.success_out, 0.0])
    hits = np.array([ends.rero, 0.0, 0.0])
    # all gains are sums over pairs of different classes; if these are rare, errors must be small
    scale = 1.0 if game.probabilities.max() <= HEAVY else game.unlike
    first = 0 if game.membership else -1  # the rank of passing among guesses that tie
    for some in _batches(line, first):
        share = scale * TOLERANCE * some[0].panels / line.panels
        totals += _refine(some[0], share, scale)
        hits += _refine(some[1], share, scale)
    rad, luck, owed = (float(x) for x in totals)
    error = owed + scale * line.error
    if error > scale * ACCEPTED:
        return None
    return Solution(
        rad=rad + error,
        success_out=luck,
        rero=float(hits[0] + hits[2]) + game.p_plus * line.error,
        method=method,
        interval=(max(0.0, rad - scale * line.error), rad + error),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rivals:
    """Series of sets and passes, by panel and fiber: rows are the rivals of a `group`, in order,
    with their prior masses. `width` and `mean` are half the width of the panel of each group, and
    pbar there. `settled` is what is known without comparison: value and mass against pbar.
    """

    panels: int
    rows: FloatArray
    mass: FloatArray
    group: IntArray
    width: FloatArray
    mean: FloatArray
    settled: FloatArray

    @classmethod
    def of(
        cls, series: FloatArray, half: FloatArray, pbar: FloatArray, seen: Seen, passing: int | None
    ) -> _Rivals:
        """`series` is sets x (panels x terms); `passing` is where a pass stands among ties."""
        slots, begin = _slots(seen.sets.fiber, passing, seen.forced)
        panels, terms, fibers = len(half), legendre.TERMS, len(begin)
        stack = np.zeros((panels, len(series) + 1, terms))
        stack[:, :-1] = series.reshape(-1, panels, terms).swapaxes(0, 1)
        run = np.repeat(np.arange(fibers), np.diff(np.r_[begin, len(slots)]))
        mean, lost = pbar.reshape(panels, terms), 0.0
        if passing is not None:
            lost = 2 * seen.aside * float(half @ mean[:, 0])
        return cls(
            panels,
            stack[:, slots].reshape(-1, terms),
            np.tile(np.r_[seen.sets.mass, 0.0][slots], panels),
            (np.arange(panels)[:, None] * fibers + run).reshape(-1),
            np.repeat(half, fibers),
            np.repeat(mean, fibers, axis=0),
            np.array([-lost, lost]),
        )

    @classmethod
    def together(cls, parts: list[_Rivals]) -> _Rivals:
        """One after the other."""
        before = np.cumsum([0] + [len(part.width) for part in parts])
        return cls(
            sum(part.panels for part in parts),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.mass for part in parts]),
            np.concatenate([p.group + k for p, k in zip(parts, before[:-1], strict=True)]),
            np.concatenate([part.width for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.sum([part.settled for part in parts], axis=0),
        )


def _batches(line: Line, first: int) -> Iterator[tuple[_Rivals, _Rivals]]:
    """Rivals for what is gained and for what is hit, of so many panels that it pays."""
    waiting: list[tuple[_Rivals, _Rivals]] = []
    rows, most = 0, block(BLOCK_ENTRIES) // legendre.TERMS
    for half, density, seen in line.blocks:
        joint = np.asarray(seen.weight @ density.reshape(len(density), -1))
        pbar = joint.sum(axis=0)
        hit = seen.sets.sums(joint)
        gain = seen.gains(joint, pbar, hit)
        waiting.append(
            (_Rivals.of(gain, half, pbar, seen, first), _Rivals.of(hit, half, pbar, seen, None))
        )
        rows += len(waiting[-1][0].rows)
        if rows >= most:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[tuple[_Rivals, _Rivals]]) -> tuple[_Rivals, _Rivals]:
    gain, hit = zip(*parts, strict=True)
    return _Rivals.together(list(gain)), _Rivals.together(list(hit))


def _refine(given: _Rivals, budget: float, scale: float) -> FloatArray:
    """Integral of the best series of each fiber, its prior mass against pbar, and the error owed.

    Series are of the size `scale`.
    """
    rows, mass, group, width, mean = (given.rows, given.mass, given.group, given.width, given.mean)
    value, luck = given.settled.tolist()
    error = 0.0
    if not len(rows):
        return np.array([value, luck, error])
    for rounds in range(ROUNDS + 1):
        begin = starts(group)
        best = np.maximum.reduceat(rows[:, 0], begin)
        near = scale * TIE * np.abs(mean[:, 0])
        tied = rows[:, 0] >= (best - near)[group]
        chosen = np.minimum.reduceat(np.where(tied, np.arange(len(rows)), len(rows)), begin)
        left, right = _ahead(rows, rows[chosen][group])
        ends = [np.maximum(np.maximum.reduceat(x, begin), 0.0) for x in (left, right)]
        owed = width * (ends[0] + ends[1])
        rival = (left > 0) | (right > 0)
        live = int(np.count_nonzero(rival))
        done = owed <= budget / (32 * max(1, len(begin)))
        if rounds == ROUNDS or live > MAX_RIVALS:
            done[:] = True
        value += 2 * float(width[done] @ rows[chosen[done], 0])
        luck += 2 * float((width * mass[chosen] * mean[:, 0])[done].sum())
        error += float(owed[done].sum())
        if done.all():
            break
        rival[chosen] = True
        kept = rival & ~done[group]
        number = np.cumsum(~done) - 1
        group = number[group[kept]]
        groups = int(number[-1]) + 1
        rows = np.concatenate([rows[kept] @ side for side in legendre.HALVES])
        mean = np.concatenate([mean[~done] @ side for side in legendre.HALVES])
        mass = np.tile(mass[kept], 2)
        width = np.tile(width[~done] / 2, 2)
        group = np.r_[group, group + groups]
    return np.array([value, luck, error])


def _ahead(rows: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much each row can exceed `own` at the left and at the right end of its panel."""
    d = own - rows
    wobble = np.abs(d[:, 2:]).sum(axis=1) - d[:, 0]
    return wobble + d[:, 1], wobble - d[:, 1]


def _slots(
    fiber: IntArray, passing: int | None, forced: BoolArray | None
) -> tuple[IntArray, IntArray]:
    """Sets by fiber, with a pass (the last index) before or after those of each, where that is
    possible; where runs begin.
    """
    begin = starts(fiber)
    if passing is None:
        return np.arange(len(fiber)), begin
    free = np.ones(len(begin), dtype=bool) if forced is None else ~forced[fiber[begin]]
    ends = np.r_[begin[1:], len(fiber)]
    where = begin if passing == 0 else ends
    slots = np.insert(np.arange(len(fiber)), where[free], len(fiber))
    return slots, begin + np.r_[0, np.cumsum(free)[:-1]]
