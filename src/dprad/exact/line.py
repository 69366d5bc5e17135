"""Densities on the line: panels with an error bound.

On each panel every density is a Legendre series, so every gain is one too. Let the attack name one
set per panel and fiber, that with the largest mean gain: its value is exact, and a lower bound on
RAD*. What another set T could add is the positive part of gain_T - gain_S, a series ``-d_0 - d_1 x
- ...`` that stays below the line ``-d_0 - d_1 x + sum_{k>=2} |d_k|``. The largest of these lines
and zero is convex in x, so its integral is at most half the width times the sum of its values at
both ends: the error bound of the panel. Rivals whose line is nowhere positive are dropped; panels
with an error left are halved, together with their rivals. Since differences of gains are bounded,
not the gains, nearly equal guesses are separated like any others.

O(P m) for P initial panels and m values, then O(1) per round for each change of the best guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.normal import beyond, solve_normal
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import starts
from dprad.mechanisms.density import Density
from dprad.mechanisms.gaussian import Gaussian
from dprad.numerics import legendre
from dprad.numerics.arrays import HEAVY, BoolArray, FloatArray, IntArray, gains
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
_STEEP = float(np.prod(np.arange(1.0, legendre.TERMS, 2)) / np.sqrt(2 * np.pi))
# Largest range, in standard deviations, that is worth the work.
MAX_PANELS = 2**15
# Coefficients held in memory at once, and most rivals of a block.
BLOCK_ENTRIES = 2**21
MAX_RIVALS = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Densities of values on the line: series on panels, block by block, and atoms.

    `blocks` gives (half widths, series: values x panels x terms). `atoms` is values x outputs of
    positive probability. `error` bounds what the series leave out, in total.
    """

    blocks: Iterator[tuple[FloatArray, FloatArray]]
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
    if not (high - low) / (2 * HALF) <= MAX_PANELS:
        return None
    if mechanism.clamp is not None:
        ends = ((c - points[0]) / mechanism.sigma for c in mechanism.clamp)
        low, high = max(low, next(ends)), min(high, next(ends))
    atoms = beyond(scaled, low, high)
    count = max(1, int(np.ceil((high - low) / (2 * HALF))))
    edges = np.linspace(low, high, count + 1)
    half = np.full(count, (high - low) / (2 * count))
    centre = (edges[1:] + edges[:-1]) / 2

    def blocks() -> Iterator[tuple[FloatArray, FloatArray]]:
        step = max(1, block(BLOCK_ENTRIES) // (legendre.TERMS * _width(game, points)))
        for a in range(0, count, step):
            t = legendre.nodes(centre[a : a + step], half[a : a + step])
            x = t[None] - scaled[:, None, None]
            p = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
            yield half[a : a + step], legendre.series(p)

    # both the gain of a set and pbar are off by this at most, and so is the best of all gains
    remainder = legendre.REMAINDER * _STEEP * half[0] ** legendre.TERMS
    error = 2e-19 + 2 * remainder * (high - low)
    return _solve(Line(blocks(), count, atoms, error), game, weight, _PROVEN)


def solve_density(
    mechanism: Density, game: Classes, values: FloatArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as values[z]; None if panels cannot decide."""
    weight, points = game.at_values(values, pi)
    panels = mechanism.panels(points)
    total = 2 * panels.series[..., 0] @ panels.half
    error = 2 * (float(panels.error.sum()) + float(np.abs(total - 1.0).max()))
    step = max(1, block(BLOCK_ENTRIES) // (legendre.TERMS * _width(game, points)))
    parts = [slice(a, a + step) for a in range(0, len(panels.half), step)]
    blocks = ((panels.half[part], panels.series[:, part]) for part in parts)
    line = Line(blocks, len(panels.half), np.zeros((len(points), 0)), error)
    return _solve(line, game, weight, _ESTIMATED)


def _width(game: Classes, points: FloatArray) -> int:
    """Rows of the largest array: of values, classes or sets."""
    return max(len(points), len(game.probabilities), len(game.sets.mass))


_PROVEN = "by panels with a proven error"
_ESTIMATED = "by panels; the error of resolving the density is estimated"


def _solve(line: Line, game: Classes, weight: Any, method: str) -> Solution | None:
    sets = game.sets
    outer = np.asarray(weight @ line.atoms)
    ends = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, method)
    totals = np.array([ends.rad, ends.success_out, 0.0])
    hits = np.array([ends.rero, 0.0, 0.0])
    # all gains are sums over pairs of different classes; if these are rare, errors must be small
    scale = 1.0 if game.probabilities.max() <= HEAVY else game.unlike
    if len(sets.mass):
        whole = sets.sizes == len(game.probabilities)
        for half, density in line.blocks:
            shape = (len(half), legendre.TERMS)
            joint = np.asarray(weight @ density.reshape(len(density), -1))
            pbar = joint.sum(axis=0)
            hit = sets.sums(joint)
            gain = sets.sums(gains(joint.copy(), game.probabilities, pbar))
            gain[whole] = 0.0  # a set of all classes gains nothing, exactly
            share = scale * TOLERANCE * len(half) / line.panels
            stacks = [x.reshape(-1, *shape).swapaxes(0, 1) for x in (gain, hit)]
            first = 0 if game.membership else -1  # the rank of passing among guesses that tie
            totals += _refine(stacks[0], pbar.reshape(shape), half, game, share, scale, first)
            hits += _refine(stacks[1], pbar.reshape(shape), half, game, share, scale, None)
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


def _refine(
    series: FloatArray,
    pbar: FloatArray,
    half: FloatArray,
    game: Classes,
    budget: float,
    scale: float,
    passing: int | None,
) -> FloatArray:
    """Integral of the best series of each fiber, its prior mass against pbar, and the error owed.

    `series` is panels x sets x terms, of the size `scale`. A group is a panel and a fiber; rows are
    the rivals of groups, in order.
    """
    sets = game.sets
    slots, begin = _slots(sets.fiber, passing, game.forced)
    zero = np.zeros((len(half), 1, legendre.TERMS))
    rows = np.concatenate([series, zero], axis=1)[:, slots].reshape(-1, legendre.TERMS)
    mass = np.tile(np.r_[sets.mass, 0.0][slots], len(half))
    fibers = len(begin)
    run = np.repeat(np.arange(fibers), np.diff(np.r_[begin, len(slots)]))
    group = (np.arange(len(half))[:, None] * fibers + run).reshape(-1)
    width, mean = np.repeat(half, fibers), np.repeat(pbar, fibers, axis=0)
    value = luck = error = 0.0
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
