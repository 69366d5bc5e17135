"""Own risks under Gaussian noise: pbar on panels, and where each value's density exceeds it.

A value gains on one interval of outputs around it (`gaining.py`). pbar is a Legendre series on each
of many panels, from the values that are near, so both ends of all intervals are found by bisection
together, and what pbar has between them is a sum over panels. Any other interval would give less,
so ends that are off by CLOSE cost no more than ``CLOSE^2``: densities change by less than 1/4 per
unit of the noise. What lies beyond a clamp is one output.

O(m) for m values, times some hundred terms of pbar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprad.exact.line import HALF, MAX_PANELS, REACH, STEEP
from dprad.exact.normal import beyond
from dprad.exact.seen import FAR, OUTSIDE, PANELS
from dprad.mechanisms.gaussian import Gaussian
from dprad.numerics import legendre
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import allowed, block

# To what ends are found, and the halvings for it.
CLOSE, HALVINGS = REACH * 2.0**-28, 28
# Entries of a block, and the largest share of memory for panels.
BLOCK_ENTRIES, SHARE = 2**17, 0.1


def own_normal(
    mechanism: Gaussian, points: FloatArray, mass: FloatArray
) -> tuple[FloatArray, float] | None:
    """Own risks of values with these probabilities, and their possible error; None if their range
    is too large.
    """
    with np.errstate(over="ignore"):
        x = (points - points[0]) / mechanism.sigma
    low, high = -REACH, float(x[-1]) + REACH
    most = min(MAX_PANELS, SHARE * allowed() / (8 * legendre.TERMS))
    if not (high - low) / (2 * HALF) <= most:
        return None
    if mechanism.clamp is not None:
        ends = ((c - points[0]) / mechanism.sigma for c in mechanism.clamp)
        low, high = max(low, next(ends)), min(high, next(ends))
    mean = _Mean.of(x, mass, low, high)
    outer = beyond(x, low, high)
    rad = np.maximum(outer - mass @ outer, 0.0).sum(axis=1)
    step = block(BLOCK_ENTRIES)
    for a in range(0, len(x), step):
        part = slice(a, a + step)
        rad[part] += mean.gained(x[part])
    # over the whole range, which also covers that places are rounded
    remainder = legendre.REMAINDER * STEEP * mean.half**legendre.TERMS
    return rad, 4e-19 + 2 * OUTSIDE + 2 * CLOSE**2 + 2 * remainder * (high - low)


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """pbar from `low` to `high`, as series on panels of width 2 `half`; and its mass in each."""

    low: float
    high: float
    half: float
    series: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, x: FloatArray, mass: FloatArray, low: float, high: float) -> _Mean:
        """Of the values in order."""
        count = max(1, int(np.ceil((high - low) / (2 * HALF))))
        half = (high - low) / (2 * count)
        series: FloatArray = np.zeros((count, legendre.TERMS))
        for a in range(0, count, PANELS):
            panels = np.arange(a, min(a + PANELS, count))
            t = legendre.nodes(low + (2 * panels + 1) * half, np.full(len(panels), half))
            first, last = np.searchsorted(x, [t[0, 0] - FAR, t[-1, -1] + FAR])
            step = max(1, block(BLOCK_ENTRIES) // t.size)
            for k in range(first, last, step):
                some = slice(k, min(k + step, last))
                away = t.reshape(-1) - x[some, None]
                bells = mass[some] @ np.exp(-away * away / 2)
                series[panels] += bells.reshape(t.shape) / np.sqrt(2 * np.pi)
        series = legendre.series(series)
        return cls(low, high, half, series, 2 * half * series[:, 0])

    def gained(self, x: FloatArray) -> FloatArray:
        """By how much outputs between the clamps that favour each value are likelier with it."""
        from scipy.special import ndtr

        begin, end = (np.clip(self._end(x, way), self.low, self.high) for way in (-1.0, 1.0))
        inside = ndtr(end - x) - ndtr(begin - x) - self._between(begin, end)
        return np.asarray(np.where(begin < end, np.maximum(inside, 0.0), 0.0))

    def _end(self, x: FloatArray, way: float) -> FloatArray:
        """Up to where, this way from each value, its density is above pbar."""
        near, far = np.zeros(len(x)), np.full(len(x), REACH)
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            t = x + way * middle
            panel, place = self._at(np.clip(t, self.low, self.high))
            pbar = legendre.evaluate(self.series[panel], place)
            ahead = np.exp(-middle * middle / 2) / np.sqrt(2 * np.pi) >= pbar
            near, far = np.where(ahead, middle, near), np.where(ahead, far, middle)
        return np.asarray(x + way * near)

    def _at(self, t: FloatArray) -> tuple[IntArray, FloatArray]:
        """The panel of each output, and its place there, from -1 to 1."""
        along = (t - self.low) / (2 * self.half)
        panel = np.minimum(along.astype(np.intp), len(self.mass) - 1)
        return panel, np.clip(2 * (along - panel) - 1, -1.0, 1.0)

    def _between(self, begin: FloatArray, end: FloatArray) -> FloatArray:
        """The probability of outputs between; sums of few panels, which lose no digits."""
        (first, left), (last, right) = self._at(begin), self._at(end)
        rows = np.stack([first, last], axis=1).reshape(-1)
        whole = np.where(last > first, np.add.reduceat(self.mass, rows)[::2], 0.0)
        below = [
            self.half * _integral(self.series[panel], place)
            for panel, place in ((first, left), (last, right))
        ]
        return np.asarray(whole - below[0] + below[1])


def _integral(series: FloatArray, x: FloatArray) -> FloatArray:
    """Of each series, from -1 to x: of P_k, ``(P_{k+1} - P_{k-1}) / (2k + 1)``."""
    p = np.polynomial.legendre.legvander(x, legendre.TERMS)
    k = np.arange(1.0, legendre.TERMS)
    parts = (p[:, 2:] - p[:, :-2]) / (2 * k + 1)
    return np.asarray(series[:, 0] * (x + 1) + np.sum(series[:, 1:] * parts, axis=1))
