"""Privacy losses of Gaussian noise: by itself, and on a sum in which a person may take part."""

from __future__ import annotations

import numpy as np

from dprad.model.privacy_loss import GRID, MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray


def gaussian_loss(mu: float) -> PrivacyLoss:
    """N(mu, 1) against N(0, 1), each cell of losses split between its two ends."""
    from scipy.special import ndtr

    top = min(mu * mu / 2 + 9 * mu, MAX_LOSS)
    index = np.arange(-GRID, GRID + 1)
    step = top / GRID
    losses = step * index

    def cells(mean: float) -> tuple[FloatArray, FloatArray, float, float]:
        """For a loss N(mean, mu^2): mass of each cell, its tail, the mass below and above."""
        x = (losses - mean) / mu
        left, right = ndtr(x), ndtr(-x)
        # differences taken in the smaller tail keep their relative precision
        mass = np.where(x[1:] > 0, right[:-1] - right[1:], left[1:] - left[:-1])
        return mass, np.minimum(left[1:], right[:-1]), float(left[0]), float(right[-1])

    p, p_tail, p_below, p_above = cells(mu * mu / 2)
    q, q_tail, _, q_above = cells(-mu * mu / 2)
    # each difference of tails is off by a few rounding errors of the tails
    slack = 4 * np.finfo(float).eps * (p_tail + q_tail * np.exp(losses[:-1]))
    split = _split(p, q, losses[:-1], step, slack)
    masses = np.r_[split[0], 0.0] + np.r_[0.0, split[1]]
    # above the last point: p_above = p' + infinity with q' = q_above at the last loss
    last = min(p_above, q_above * float(np.exp(losses[-1])))
    masses[-1] += last
    masses[0] += p_below  # a loss may be raised
    return PrivacyLoss.closed(step, -GRID, masses, p_above - last)


def sampled_gaussian_losses(
    sigma: float, rate: float, step: float
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Gaussian noise on a sum in which the person takes part with probability `rate`.

    The pair present against absent, ``(1-rate) N(0, sigma^2) + rate N(1, sigma^2)`` against
    ``N(0, sigma^2)``, and the pair absent against present.
    """
    from scipy.special import ndtr

    reach = 10.0 * sigma + 1.0
    lowest = float(np.log1p(-rate)) if rate < 1 else -np.inf
    floor = float(np.logaddexp(lowest, np.log(rate) + (-2 * reach - 1) / (2 * sigma**2)))
    top = float(np.logaddexp(lowest, np.log(rate) + (2 * reach - 1) / (2 * sigma**2)))
    first, last = int(np.floor(floor / step)), int(np.ceil(min(top, MAX_LOSS) / step))
    losses = step * np.arange(first, last + 1)
    # the output with this loss; there is none below the least loss
    with np.errstate(divide="ignore", invalid="ignore"):
        # e^loss - (1 - rate) = rate + expm1(loss)
        odds = np.log(np.maximum(rate + np.expm1(losses), 0.0) / rate)
    x = sigma**2 * odds + 0.5

    def cells(mean: float) -> tuple[FloatArray, FloatArray, float, float]:
        """Mass of each cell, its tail, the mass below the first and above the last point."""
        u = (x - mean) / sigma
        left, right = ndtr(u), ndtr(-u)
        mass = np.where(u[1:] > 0, right[:-1] - right[1:], left[1:] - left[:-1])
        return mass, np.minimum(left[1:], right[:-1]), float(left[0]), float(right[-1])

    absent, absent_tail, absent_below, absent_above = cells(0.0)
    one, one_tail, one_below, one_above = cells(1.0)
    present = (1.0 - rate) * absent + rate * one
    tail = (1.0 - rate) * absent_tail + rate * one_tail
    below = (1.0 - rate) * absent_below + rate * one_below
    above = (1.0 - rate) * absent_above + rate * one_above
    rounding = 4 * np.finfo(float).eps
    low, high = losses[:-1], losses[1:]

    slack = rounding * (tail + absent_tail * np.exp(low))
    split = _split(present, absent, low, step, slack)
    masses = np.r_[split[0], 0.0] + np.r_[0.0, split[1]]
    masses[0] += below
    finite = min(above, absent_above * float(np.exp(losses[-1])))
    masses[-1] += finite
    forward = PrivacyLoss.closed(step, first, masses, above - finite)

    slack = rounding * (absent_tail + tail * np.exp(-high))
    split = _split(absent, present, -high, step, slack)
    masses = (np.r_[0.0, split[0]] + np.r_[split[1], 0.0])[::-1]
    masses[0] += absent_above
    # the outputs below the first point have the largest losses of this direction
    finite = min(absent_below, below * float(np.exp(-losses[0])))
    masses[-1] += finite
    backward = PrivacyLoss.closed(step, -last, masses, absent_below - finite)
    return forward, backward


def _split(
    p: FloatArray, q: FloatArray, low: FloatArray, step: float, slack: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Split the P-mass p and Q-mass q of cells [low, low + step] between their ends.

    `slack` covers the rounding of ``p - q e^low``, which must not lower the upper share.
    """
    upper = np.clip((p - q * np.exp(low) + slack) / -np.expm1(-step), 0.0, p)
    return p - upper, upper
