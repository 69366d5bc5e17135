"""Piecewise constant densities on sorted values: each output sees a few zones of them.

Given an output of the staircase or piecewise mechanism, values on the line fall into a few
intervals, and within each all have the same likelihood. So pbar is a difference of running sums,
and so is what values gain (`own_zones`). The best guess: `guessing.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import block

# Outputs processed together, and the possible error of a sum of probabilities.
BLOCK_ENTRIES, ROUNDING = 2**15, 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """By zone (row) and output: values edge[i] .. edge[i+1]-1 have the likelihood level[i] times
    the scale of the output; `rest` is a few more outputs as a matrix, values x outputs.
    """

    edge: IntArray
    level: FloatArray
    scale: FloatArray
    rest: FloatArray

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Some outputs at a time."""
        step = block(BLOCK_ENTRIES)
        for a in range(0, len(self.scale), step):
            yield self.edge[:, a : a + step], np.outer(self.level, self.scale[a : a + step])


def pbar_of(upto: FloatArray, edge: IntArray, height: FloatArray) -> FloatArray:
    """The probability of each output, from the running sums of what is read."""
    return np.asarray(np.sum(height * np.maximum(np.diff(upto[edge], axis=0), 0.0), axis=0))


def own_zones(zones: Zones, mass: FloatArray) -> tuple[FloatArray, float]:
    """Own risks of values with these probabilities, and their possible error."""
    upto, change = np.r_[0.0, np.cumsum(mass)], np.zeros(len(mass) + 1)
    total = 0.0
    for edge, height in zones.blocks():
        pbar = pbar_of(upto, edge, height)
        # where nobody is, the density may be a billion, and would leave its rounding behind
        gained = np.where(np.diff(edge, axis=0) > 0, np.maximum(height - pbar, 0.0), 0.0)
        np.add.at(change, edge[:-1], gained)
        np.add.at(change, edge[1:], -gained)
        total += float(pbar.sum())
    apart = np.maximum(zones.rest - mass @ zones.rest, 0.0).sum(axis=1)
    total += float((mass @ zones.rest).sum())
    return np.cumsum(change)[:-1] + apart, abs(total - 1.0) + ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class Highest:
    """The greatest of any run of values: of those of lengths 1, 2, 4, ... all are known."""

    table: list[FloatArray]

    @classmethod
    def of(cls, values: FloatArray) -> Highest:
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
