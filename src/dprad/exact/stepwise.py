"""Piecewise constant densities (staircase, Duchi, piecewise, hybrid): exact channels.

Between two neighbouring ends of pieces, of any record, all outputs carry the same information: one
column of a channel. The staircase repeats beyond the outermost records, each period e^-epsilon
times as likely as the last: one period stands for all, up to a clamp. O(m) columns: one class per
set, and windows where nothing is known, by zones of values (`exact/guessing.py`), otherwise as a
channel, O(m^2).
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact.channel import Law, sum_by_likelihood
from dprad.exact.ends import Ends, Places
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
    zones = _piecewise_zones(mechanism, points)
    return _silent(points) if zones is None else _columns(zones)


@zones_of.register
def _piecewise_zones(mechanism: Piecewise, points: FloatArray) -> Zones | None:
    if not np.isfinite(mechanism.reach):
        return None
    # windows begin at the values, in whose units they are so long
    slope = (mechanism.reach + 1.0) / 2
    low = Places.of(points)
    ends = Ends.of([low.moved(mechanism.length / slope * mechanism.half), low])
    width = ends.width / mechanism.half * slope
    rest = max(2 * mechanism.reach - float(width.sum()), 0.0)  # in nobody's window
    first, last = ends.passed
    edge = np.stack([np.zeros_like(first), first, last, np.full_like(first, len(points))])
    inside, outside = (float(np.exp(d)) for d in mechanism.log_densities)
    level = np.array([outside, inside, outside])
    return Zones(edge, level, np.r_[width, rest], np.zeros((len(points), 0)))


def _columns(zones: Zones) -> tuple[Entries, int]:
    """The same as a channel."""
    count, inner, every = len(zones.scale), zones.edge[1:-1], np.arange(zones.edge[-1, 0])

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        a, b = columns.start, columns.stop
        here = slice(min(a, count), min(b, count))
        code = every[rows][:, None]
        zone = np.zeros((len(code), here.stop - here.start), dtype=np.intp)
        for cut in inner[:, here]:
            zone += code >= cut
        more = zones.rest[rows, max(a - count, 0) : max(b - count, 0)]
        return np.concatenate([zones.level[zone] * zones.scale[here], more], axis=1)

    return likelihood, count + zones.rest.shape[1]


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
    if mechanism.epsilon == 0:
        return _silent(points)
    zones = _staircase_zones(mechanism, points)
    if zones is None:
        # almost no noise: every record is revealed, except with probability below APART
        every = np.arange(len(points))
        return (lambda rows, columns: np.equal.outer(every[rows], every[columns]) * 1.0), len(every)
    return _columns(zones)


@zones_of.register
def _staircase_zones(mechanism: Staircase, points: FloatArray) -> Zones | None:
    """Pieces around the values and up to a step beyond, each with the density at its top times its
    length and repetitions; and what is clamped to either end, by value.
    """
    step, epsilon, share = mechanism.sensitivity, mechanism.epsilon, mechanism.high
    if epsilon == 0 or (share < APART and mechanism.beyond(APART * step) < APART):
        return None
    places, high = Places.of(points), step * share
    first, last = Places.of(points[0]), Places.of(points[-1])
    near = [places.moved(high), places.moved(-high)]
    after, ahead = places.moved(step).moved(high), places.moved(-step).moved(-high)
    low, top = first.moved(-step), last.moved(step)
    cuts, periods = _clamps(mechanism, first, last)
    families = [after, *near, ahead, first, last, *cuts]
    ends = Ends.of(families, [low, top]).within(low, top)
    passed = ends.passed[:, :-1]
    left, right = passed[4] == 0, passed[5] > 0
    # the sum over all periods cancels the factor 1 - e^-epsilon
    times = np.where(left | right, np.inf, 1.0)
    clamped = mechanism.beyond(np.zeros((len(points), 0)))
    if mechanism.clamp is not None:
        times[left] = periods[0] + passed[6, left]
        times[right] = periods[1] + 1 - passed[7, right]
        away = np.stack([points - mechanism.clamp[0], mechanism.clamp[1] - points], axis=1)
        clamped = mechanism.beyond(away)
    height = share + (1.0 - share) * float(np.exp(-epsilon))
    scale = ends.width * -np.expm1(-epsilon * times) / (2 * step * height)
    none, every = np.zeros_like(passed[:1]), np.full_like(passed[:1], len(points))
    level = np.exp(-epsilon * np.array([2.0, 1.0, 0.0, 1.0, 2.0]))
    return Zones(np.concatenate([none, passed[:4], every]), level, scale, clamped)


def _clamps(mechanism: Staircase, first: Places, last: Places) -> tuple[list[Places], list[float]]:
    """How far both clamps lie into a period beyond the values, and the periods before."""
    if mechanism.clamp is None:
        return [], []
    step, (low, high) = mechanism.sensitivity, mechanism.clamp
    (before, part), (later, rest) = (
        divmod(float(x), step) for x in (first.main[0] - low, high - last.main[0])
    )
    return [
        first.moved(-part) if before else Places.of(low),
        last.moved(rest) if later else Places.of(high),
    ], [before, later]


def _silent(points: FloatArray) -> tuple[Entries, int]:
    """One output, whatever the record."""
    matrix = np.ones((len(points), 1))
    return (lambda rows, columns: matrix[rows, columns]), 1
