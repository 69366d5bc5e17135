"""Whole numbers plus whole noise (geometric, discrete Gaussian): an exact sum over the outputs.

Every whole number between the outermost values is an output. Beyond them all outputs of geometric
noise carry the same information, so one on each side stands for the rest; discrete Gaussian noise
continues until no probability is left. With a clamp, all outputs beyond it are one.

O(m (range + reach)) time, a few blocks of memory. Discrete Gaussian noise and one class per success
set: `exact/bells.py`, nearly linear; geometric noise and intervals of classes: `exact/laplace.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact.channel import Law, sum_by_likelihood
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.mechanisms.additive import WholeNoise
from dprad.mechanisms.categorical import Entries
from dprad.numerics.arrays import FloatArray, IntArray

# Most outputs summed one by one.
MAX_SPAN = 10_000_000

_METHOD = "sum over whole numbers"


def solve_whole(
    mechanism: WholeNoise, game: Classes, values: FloatArray, pi: FloatArray
) -> Solution:
    """Records z with probability pi[z] read as the whole number values[z]."""
    kept = pi > 0
    points, place = np.unique(values[kept], return_inverse=True)
    codes = np.zeros(len(pi), dtype=np.intp)
    codes[kept] = place
    law = Law.of(*whole_channel(mechanism, points))
    return sum_by_likelihood(law, game, codes, pi, len(points), _METHOD)


def outermost(mechanism: WholeNoise, points: FloatArray) -> tuple[float, float]:
    """The first and the last output, relative to the first of these values, ascending."""
    base, low, high = float(points[0]), 0.0, float(points[-1] - points[0])
    if mechanism.reach > 0:
        low, high = low - mechanism.reach, high + mechanism.reach
        if mechanism.clamp is not None:
            low, high = max(low, mechanism.clamp[0] - base), min(high, mechanism.clamp[1] - base)
    elif mechanism.silent:
        low = high = 0.0
    if high - low > MAX_SPAN:
        raise DpradError(
            f"{type(mechanism).__name__} over so wide a range has too many outputs to sum. Laplace "
            "or Gaussian with the same parameters has nearly the same risk."
        )
    return low, high


def whole_channel(mechanism: WholeNoise, points: FloatArray) -> tuple[Entries, int]:
    """The channel of these values, ascending, and its width."""
    low, high = outermost(mechanism, points)
    points = points - points[0]

    # as if clamped to the first and the last output, which also stand for all beyond
    noise: Any = mechanism
    clamped = None if low == high else replace(noise, clamp=(low, high))

    def likelihood(rows: slice | IntArray, columns: slice) -> FloatArray:
        t, v = low + np.arange(columns.start, columns.stop), points[rows][:, None]
        if clamped is None:
            return np.ones((len(v), len(t)))
        return np.asarray(np.exp(clamped.log_likelihood(t, v)))

    return likelihood, int(high - low) + 1
