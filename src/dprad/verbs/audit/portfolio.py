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
# Stakes of a single bet; the rest is on the coins.
ALONE = 1.0 - np.geomspace(1e-6, 1.0, 25)[:-1]
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

    Where there is little to gain, weights hardly move in so many steps; then the best single bet
    beside the coins is better.

    Complexity: (steps + stakes) x predictions x slopes x cells.
    """
    at = slopes(claim)
    unit = 2.0 / (np.exp(at) + np.asarray(claim.delta(at), dtype=float)) / (1.0 + 1e-12)
    units = np.stack([unit * np.exp(at), unit])  # what is paid on each secret
    bets, _, cells = law.shape
    coins = np.full((bets, 2), 0.25)
    share = 0.5 / max(len(at) * (cells - 1), 1)
    weights = np.full((bets, len(at), cells - 1), share)
    inside = np.empty((bets, 2, cells - 1))  # below each threshold, and beyond it
    for _ in range(steps):
        # the gain of each bet, next to that of the whole: one for all that are used, in the end
        gain = law / _paid(coins, weights, units) / 2
        either = gain.sum(axis=2)
        gain[:, 0, :-1].cumsum(axis=1, out=inside[:, 0])
        gain[:, 1, :0:-1].cumsum(axis=1, out=inside[:, 1, ::-1])
        weights *= np.einsum("zj,nzt->njt", units, inside) ** LENGTH
        coins *= (2.0 * either) ** LENGTH
        total = weights.sum(axis=(1, 2)) + coins.sum(axis=1)
        weights /= total[:, None, None]
        coins /= total[:, None]
    pay = np.stack([_paid(coins, weights, units), _alone(law, units)])
    grown = np.einsum("nzt,pnzt->pn", law, np.log(pay))
    return np.asarray(pay[grown.argmax(axis=0), np.arange(bets)])


def _alone(law: FloatArray, units: FloatArray) -> FloatArray:
    """The pay of the best single bet, with the best stake; the rest of the wealth on both coins."""
    low = np.cumsum(law[:, 0], axis=1)[:, :-1]  # of the first secret, below each threshold
    high = np.cumsum(law[:, 1, ::-1], axis=1)[:, -2::-1]
    lost = law.sum(axis=(1, 2))[:, None] - low - high
    # stakes x predictions x slopes x thresholds
    stake = ALONE[:, None, None, None]
    won = [np.log1p(stake * (u[:, None] - 1.0)) for u in units]
    grown = low[:, None] * won[0] + high[:, None] * won[1] + lost[:, None] * np.log1p(-stake)
    best = grown.transpose(1, 0, 2, 3).reshape(len(law), -1).argmax(axis=1)
    staked, slope, cut = np.unravel_index(best, (len(ALONE), *grown.shape[2:]))
    pay = np.repeat((1.0 - ALONE[staked])[:, None, None], law.shape[1], axis=1)
    pay = np.repeat(pay, law.shape[2], axis=2)
    cell = np.arange(law.shape[2])
    below = cell[None] <= cut[:, None]
    pay[:, 0] += below * (ALONE[staked] * units[0, slope])[:, None]
    pay[:, 1] += ~below * (ALONE[staked] * units[1, slope])[:, None]
    return pay


def _paid(coins: FloatArray, weights: FloatArray, units: FloatArray) -> FloatArray:
    """Predictions x secret x cell."""
    each = np.einsum("zj,njt->nzt", units, weights)
    pay = np.empty((*coins.shape, weights.shape[2] + 1))
    pay[:] = 2.0 * coins[:, :, None]
    pay[:, 0, :-1] += each[:, 0, ::-1].cumsum(axis=1)[:, ::-1]
    pay[:, 1, 1:] += each[:, 1].cumsum(axis=1)
    return pay
