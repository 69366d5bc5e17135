"""Bets on several cells of a score: a portfolio of elementary ones.

A secret z is a fair coin between two data sets, and the output falls into one of the cells of a
score, ordered from low to high. For a threshold t and a slope k the elementary bet pays

    m on (z = 1, score >= t),  k m on (z = 0, score < t),  m = 2 / (k + delta(log k)),

and nothing else. Its mean is m (b + k (1 - a)) / 2 <= 1, since the claim says that the chances a
and b of scores beyond t satisfy b - k a <= delta(log k). Coins that pay 2 on one secret have mean
1. So has every average of these, whatever the weights: validity does not depend on how they are
found. And no bet on the cells that uses nothing but the claim at thresholds is better than the best
average (docs/theory/audit.md).
"""

from __future__ import annotations

import numpy as np

from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray

# Steps towards the best weights, and their length (1 is that of the EM algorithm, 2 its limit).
STEPS, LENGTH = 150, 1.8
# Levels at which slopes of a trade-off curve are taken.
LEVELS = 1.0 / (1.0 + np.exp(-np.linspace(-7.0, 7.0, 33)))


def slopes(claim: Guarantee) -> FloatArray:
    """Logs of slopes of the trade-off curve, those that a claim needs."""
    if claim.point is not None:  # all others follow from these two
        return np.unique([-claim.point[0], claim.point[0]])
    curve = np.asarray(claim.tradeoff(LEVELS), dtype=float)
    fall = -np.diff(curve) / np.diff(LEVELS)
    found = np.log(fall[fall > 1e-9])
    return np.unique(np.round(np.r_[found, -found, 0.0], 4))


def portfolio(law: FloatArray, claim: Guarantee, steps: int = STEPS) -> FloatArray:
    """The pay of the (nearly) best average for predicted laws, of the same shape: predictions x
    secret x cell, from the lowest score to the highest.

    Complexity: steps x predictions x slopes x cells.
    """
    at = slopes(claim)
    unit = 2.0 / (np.exp(at) + np.asarray(claim.delta(at), dtype=float)) / (1.0 + 1e-12)
    units = np.stack([unit * np.exp(at), unit])  # what is paid on each secret
    bets, _, cells = law.shape
    coins = np.full((bets, 2), 0.25)
    share = 0.5 / max(len(at) * (cells - 1), 1)
    weights = np.full((bets, len(at), cells - 1), share)
    for _ in range(steps):
        # the gain of each bet, next to that of the whole: one for all that are used, in the end
        gain = law / _paid(coins, weights, units) / 2
        either = gain.sum(axis=2)
        below = np.cumsum(gain[:, 0], axis=1)[:, :-1]
        beyond = np.cumsum(gain[:, 1, ::-1], axis=1)[:, -2::-1]
        weights *= np.einsum("zj,nzt->njt", units, np.stack([below, beyond], axis=1)) ** LENGTH
        coins *= (2.0 * either) ** LENGTH
        total = weights.sum(axis=(1, 2)) + coins.sum(axis=1)
        weights /= total[:, None, None]
        coins /= total[:, None]
    return _paid(coins, weights, units)


def _paid(coins: FloatArray, weights: FloatArray, units: FloatArray) -> FloatArray:
    """Predictions x secret x cell."""
    each = np.einsum("zj,njt->nzt", units, weights)
    pay = np.repeat(2.0 * coins[:, :, None], weights.shape[2] + 1, axis=2)
    pay[:, 0, :-1] += np.cumsum(each[:, 0, ::-1], axis=1)[:, ::-1]
    pay[:, 1, 1:] += np.cumsum(each[:, 1], axis=1)
    return np.asarray(pay)
