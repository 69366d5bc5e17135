"""Gaussian noise: on which outputs one value gains against the mixture of all.

pbar/p_z is a sum of exponentials of the output, so it is convex, and z gains on one interval. Its
ends are found by bisection: an error there changes the gain only in second order. O(m) a value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray
from dprad.runtime.memory import block

# How far out a normal density reaches, steps of a bisection, and entries of a block.
REACH, STEPS, BLOCK_ENTRIES = 40.0, 50, 2**17


def gaining(values: FloatArray, x: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The probability of that interval with the value, and with a random one; in units of the
    noise, where `x` are all values with probabilities `mass`.
    """
    from scipy.special import ndtr

    log_mass, own, others = np.log(mass), np.empty(len(values)), np.empty(len(values))
    step = max(1, block(BLOCK_ENTRIES) // len(x))
    for a in range(0, len(values), step):
        v = values[a : a + step][:, None]

        def ratio(t: FloatArray, v: FloatArray = v) -> tuple[FloatArray, FloatArray]:
            """log(pbar/p_z), and its slope."""
            power = log_mass + (x - v) * (t[:, None] - (x + v) / 2)
            top = power.max(axis=1, keepdims=True)
            odds = np.exp(power - top)
            total = odds.sum(axis=1)
            return top[:, 0] + np.log(total), (odds @ x) / total - v[:, 0]

        low, high = np.full(len(v), x[0] - REACH), np.full(len(v), x[-1] + REACH)
        least = _bisected(lambda t: ratio(t)[1] < 0, low, high)
        begin = _bisected(lambda t: ratio(t)[0] > 0, low, least)
        end = _bisected(lambda t: ratio(t)[0] <= 0, least, high)
        own[a : a + step] = ndtr(end - v[:, 0]) - ndtr(begin - v[:, 0])
        others[a : a + step] = (ndtr(end[:, None] - x) - ndtr(begin[:, None] - x)) @ mass
    return own, others


def _bisected(
    below: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Where a condition that holds first ceases to."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        yes = below(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return (low + high) / 2
