"""Piecewise constant densities on sorted values: each output sees a few zones of them.

Given an output of the staircase or piecewise mechanism, values on the line fall into a few
intervals, and within each all have the same likelihood. So pbar is a difference of running sums,
the best guess is the likeliest value of some zone, and whoever is known gains with their zone.
O((m + K) log m) for K outputs, nothing or everything known and one class per success set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.channel import TIE, Joint, sum_over_outputs
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray
from dprad.runtime.memory import block

# Outputs processed together, and the possible error of a sum of probabilities.
BLOCK_ENTRIES, ROUNDING = 2**15, 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """By zone (row) and output: values edge[i] .. edge[i+1]-1 have likelihood height[i]; `rest` is
    a few more outputs as a matrix, values x outputs.
    """

    edge: IntArray
    height: FloatArray
    rest: FloatArray

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Some outputs at a time."""
        step = block(BLOCK_ENTRIES)
        for a in range(0, self.height.shape[1], step):
            yield self.edge[:, a : a + step], self.height[:, a : a + step]


def solve_zones(zones: Zones, game: Classes, weight: Any, method: str) -> Solution | None:
    """`weight` is the probability of each class at each value; None if the game is of another
    kind.
    """
    sets = game.sets
    if (
        not isinstance(sets, Singletons)
        or not (game.nothing_known or game.everything_known)
        or game.forced is not None
        or game.probabilities.max() > HEAVY
        or not len(sets.mass)
        or np.any(np.diff(weight.indptr)[sets.index] != 1)
    ):
        return None
    place, mass = weight.indices[weight.indptr[sets.index]], sets.mass
    read = np.asarray(weight.sum(axis=0)).reshape(-1)
    upto, everything = np.r_[0.0, np.cumsum(read)], game.everything_known and len(mass) > 1
    outer = np.asarray(weight @ zones.rest)
    more = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, method)
    totals = np.array([more.rad, more.success_out, more.rero])
    if everything and not game.nothing_known:
        own = np.r_[0.0, np.cumsum(np.bincount(place, mass, len(read)))]
        for edge, height in zones.blocks():
            inside, pbar = np.diff(own[edge], axis=0), _pbar(upto, edge, height)
            ahead = height - pbar
            totals[0] += float(np.sum(inside * np.maximum(ahead, 0.0)))
            named = ahead > TIE * pbar if game.membership else ahead >= -TIE * pbar
            totals[1] += float(np.sum(np.where(named, inside, 0.0) @ pbar))
            totals[2] += float(np.sum(inside * height))
    else:
        top = np.zeros(len(read))
        np.maximum.at(top, place, mass)
        highest = _Highest.of(top)
        for edge, height in zones.blocks():
            totals += _best(highest, edge, height, _pbar(upto, edge, height))
    rad, luck, hits = totals.tolist()
    return Solution(rad=rad, success_out=luck, rero=hits, method=method)


def _pbar(upto: FloatArray, edge: IntArray, height: FloatArray) -> FloatArray:
    return np.asarray(np.sum(height * np.maximum(np.diff(upto[edge], axis=0), 0.0), axis=0))


def _best(highest: _Highest, edge: IntArray, height: FloatArray, pbar: FloatArray) -> FloatArray:
    """RAD, luck and hits of some outputs, nothing known: the likeliest value of the best zone."""
    top = highest.between(edge[:-1], edge[1:])
    gain = np.where(top > 0, top * (height - pbar), -np.inf)
    best, near = gain.max(axis=0), TIE * pbar
    chosen = np.where(gain >= best - near, top, 0.0).max(axis=0)
    named = np.where(best >= -near, chosen, 0.0)
    return np.array([np.maximum(best, 0.0).sum(), named @ pbar, (top * height).max(axis=0).sum()])


def own_zones(zones: Zones, mass: FloatArray) -> tuple[FloatArray, float]:
    """Own risks of values with these probabilities, and their possible error."""
    upto, change = np.r_[0.0, np.cumsum(mass)], np.zeros(len(mass) + 1)
    total = 0.0
    for edge, height in zones.blocks():
        pbar = _pbar(upto, edge, height)
        gained = np.maximum(height - pbar, 0.0)
        np.add.at(change, edge[:-1], gained)
        np.add.at(change, edge[1:], -gained)
        total += float(pbar.sum())
    apart = np.maximum(zones.rest - mass @ zones.rest, 0.0).sum(axis=1)
    total += float((mass @ zones.rest).sum())
    return np.cumsum(change)[:-1] + apart, abs(total - 1.0) + ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class _Highest:
    """The greatest of any run of values: of those of lengths 1, 2, 4, ... all are known."""

    table: list[FloatArray]

    @classmethod
    def of(cls, values: FloatArray) -> _Highest:
        """O(m log m)."""
        table, width = [values], 1
        while 2 * width <= len(values):
            last = table[-1]
            table.append(np.maximum(last[:-width], last[width:]))
            width *= 2
        return cls(table)

    def between(self, low: IntArray, high: IntArray) -> FloatArray:
        """The greatest of values low .. high-1; 0 if there are none."""
        size = high - low
        level = np.frexp(np.maximum(size, 1).astype(float))[1] - 1
        result = np.zeros(size.shape)
        for k, known in enumerate(self.table):
            some = (level == k) & (size > 0)
            if some.any():
                result[some] = np.maximum(known[low[some]], known[high[some] - (1 << k)])
        return result
