"""Gaussian noise: on which outputs one value gains against the mixture of all.

pbar/p_z is a sum of exponentials of the output, so it is convex, and z gains on one interval; the
value itself lies in it, for there p_z is at its largest and no other density is larger. Its ends
are found by bisection: an error there changes the gain only in second order. O(m) a value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray
from dprad.runtime.memory import block

# How far out a normal density reaches, a distance from which nothing is seen there, steps of a
# bisection, and entries of a block.
REACH, FAR, STEPS, BLOCK_ENTRIES = 37.0, 1000.0, 48, 2**17


def gaining(values: FloatArray, x: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The probability of that interval with the value, and with a random one; in units of the
    noise, where `x` are all values with probabilities `mass`.
    """
    from scipy.special import ndtr

    log_mass, own, others = np.log(mass), np.empty(len(values)), np.empty(len(values))
    step = max(1, block(BLOCK_ENTRIES) // len(x))
    for a in range(0, len(values), step):
        away = np.clip(x - values[a : a + step][:, None], -FAR, FAR)

        def gains(t: FloatArray, away: FloatArray = away) -> BoolArray:
            """Whether pbar <= p_z at this distance from the value."""
            return np.asarray(np.exp(log_mass + away * (t[:, None] - away / 2)).sum(axis=1) <= 1)

        start = np.zeros(len(away))
        begin = -_bisected(lambda t: gains(-t), start)
        end = _bisected(gains, start)
        own[a : a + step] = ndtr(end) - ndtr(begin)
        others[a : a + step] = (ndtr(end[:, None] - away) - ndtr(begin[:, None] - away)) @ mass
    return own, others


def _bisected(holds: Callable[[FloatArray], BoolArray], low: FloatArray) -> FloatArray:
    """Where a condition that holds first ceases to."""
    high = low + REACH
    for _ in range(STEPS):
        middle = (low + high) / 2
        yes = holds(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return (low + high) / 2
