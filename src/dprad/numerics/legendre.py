"""Functions on panels as Legendre series: sample at the nodes, transform, halve.

A panel is an interval [centre - half, centre + half]; a series is its `TERMS` coefficients c, the
function being ``sum_k c_k P_k(x)`` with x from -1 to 1. Its integral is ``2 half c_0``, and since
|P_k| <= 1 it stays within ``sum_{k>=1} |c_k|`` of its mean.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre as _legendre

from dprad.numerics.arrays import FloatArray

TERMS = 12
NODES, _WEIGHTS = _legendre.leggauss(TERMS)
_BASIS = _legendre.legvander(NODES, TERMS - 1)
# values at the nodes -> coefficients
_TRANSFORM = (_WEIGHTS[:, None] * _BASIS) * (np.arange(TERMS) + 0.5)
# coefficients on a panel -> coefficients on its left and its right half
HALVES = tuple(
    (_legendre.legvander((NODES + side) / 2, TERMS - 1).T @ _TRANSFORM) for side in (-1.0, 1.0)
)
# |f - series| <= REMAINDER half^TERMS max |f^(TERMS)|: 2^n n!/(2n)! for n nodes
REMAINDER = float(2.0**TERMS / np.prod(np.arange(TERMS + 1.0, 2 * TERMS + 1.0)))


def nodes(centre: FloatArray, half: FloatArray) -> FloatArray:
    """Where panels are sampled, panels x nodes."""
    return np.asarray(centre[:, None] + half[:, None] * NODES)


def series(values: FloatArray) -> FloatArray:
    """Coefficients from values at the nodes (last axis)."""
    return np.asarray(values @ _TRANSFORM)


def evaluate(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """The series (rows) at x in [-1, 1], one x per row."""
    return np.asarray(np.sum(coefficients * _legendre.legvander(x, TERMS - 1), axis=-1))
