"""Runs of rows: the sets of each fiber, one after the other, as the envelopes process them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Rows in runs, one per fiber: the greatest of each run, and back to all of its rows."""

    begin: IntArray
    run: IntArray | None

    @classmethod
    def of(cls, begin: IntArray, rows: int) -> Runs:
        """Runs that begin at these rows, given the total."""
        if len(begin) == 1:
            return cls(begin, None)  # broadcasting suffices
        return cls(begin, np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, rows])))

    def top(self, values: FloatArray) -> FloatArray:
        """The greatest of each run."""
        if self.run is None:
            return np.asarray(values.max(axis=0, keepdims=True))
        return np.maximum.reduceat(values, self.begin, axis=0)

    def spread(self, values: FloatArray) -> FloatArray:
        """For every row, the value of its run."""
        return values if self.run is None else values[self.run]


def steepest(
    a: FloatArray, b: FloatArray, mass: FloatArray, among: BoolArray, runs: Runs
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Among the marked lines, by fiber and gap: the steepest, then the highest, then the
    likeliest.
    """
    slope = runs.top(np.where(among, b, -np.inf))
    among = among & (b == runs.spread(slope))
    line = runs.top(np.where(among, a, -np.inf))
    among = among & (a == runs.spread(line))
    return slope, line, runs.top(np.where(among, mass, 0.0))
