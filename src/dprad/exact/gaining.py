"""Gaussian noise: how far from its value one guess is ahead, of another or of a pass.

A guess of mass w_c at x_c gains ``w_c (p_c - pbar)``, and is ahead of a lighter one at x_d where

    G = log( r p_d/p_c + (1 - r) pbar/p_c ) <= 0 ,     r = w_d/w_c ;

a pass has r = 0. G is the logarithm of a sum of exponentials of the output, so it is convex, and at
x_c no density is larger than p_c, so G <= 0 there. Hence Newton's method from beyond falls to the
end without passing it, and stops where ``e^G - 1 <= NEAR``: up to there the other leads by ``w_c
p_c NEAR`` at most. O(m) a step for m values; some eight steps.
"""

from __future__ import annotations

import numpy as np

from dprad.numerics.arrays import FloatArray
from dprad.runtime.memory import block

# How far out a normal density reaches, a distance from which nothing is seen there, a ratio
# that counts as one but for this, most steps, and entries of a block.
REACH, FAR, NEAR, STEPS, BLOCK_ENTRIES = 37.0, 1000.0, 1e-14, 200, 2**16


def until(
    value: FloatArray, x: FloatArray, mass: FloatArray, other: FloatArray, share: FloatArray
) -> FloatArray:
    """How far to the right guesses at `value` are ahead of those at `other`, which have this
    `share` of their mass; in units of the noise, where `x` are all values with probabilities
    `mass`.
    """
    away, end = other - value, beside(value, other, share)
    with np.errstate(divide="ignore"):
        log_mass, log_share, log_rest = np.log(mass), np.log(share), np.log1p(-share)
    step, some = max(1, block(BLOCK_ENTRIES) // len(x)), np.arange(len(value))
    for _ in range(STEPS):
        found, slope = np.empty(len(some)), np.empty(len(some))
        for a in range(0, len(some), step):
            rows, part = some[a : a + step], slice(a, a + step)
            at, far = end[rows], np.clip(away[rows], -FAR, FAR)
            near = np.clip(x - value[rows, None], -FAR, FAR)
            bells = np.exp(near * (at[:, None] - near / 2) + log_mass + log_rest[rows, None])
            bell = np.exp(far * (at - far / 2) + log_share[rows])
            found[part] = bells.sum(axis=1) + bell
            slope[part] = np.einsum("ij,ij->i", bells, near) + bell * far
        over = found > 1 + NEAR
        if not over.any():
            break
        some, found, slope = some[over], found[over], slope[over]
        end[some] -= np.log(found) * found / slope
    return np.maximum(end, 0.0)


def beside(value: FloatArray, other: FloatArray, share: FloatArray) -> FloatArray:
    """The same if pbar does not count: where two bells are as high."""
    away = other - value
    with np.errstate(divide="ignore", invalid="ignore"):
        end = np.where(away > 0, away / 2 - np.log(share) / away, REACH)
    return np.minimum(end, REACH)


def gaining(values: FloatArray, x: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The probability of where a value gains against a pass, an interval: with the value, and with
    a random one.
    """
    from scipy.special import ndtr

    none, others = np.zeros(len(values)), np.empty(len(values))
    begin = -until(-values, -x, mass, -values, none)
    end = until(values, x, mass, values, none)
    step = max(1, block(BLOCK_ENTRIES) // len(x))
    for a in range(0, len(values), step):
        part = slice(a, a + step)
        away = x - values[part, None]
        others[part] = (ndtr(end[part, None] - away) - ndtr(begin[part, None] - away)) @ mass
    return ndtr(end) - ndtr(begin), others


def below(t: FloatArray, x: FloatArray, mass: FloatArray) -> FloatArray:
    """The probability of outputs below each t."""
    from scipy.special import ndtr

    at, place = np.unique(t, return_inverse=True)
    step = max(1, block(BLOCK_ENTRIES) // len(x))
    parts = [ndtr(at[a : a + step, None] - x) @ mass for a in range(0, len(at), step)]
    return np.asarray(np.concatenate(parts)[place])
