"""DP-SGD: the add-remove promise of a training, from noise multiplier, sample rate and steps.

Each step adds Gaussian noise of noise_multiplier times the clipping norm to a sum of clipped
gradients in which the person takes part with probability `sample_rate` (Poisson sampling). Full
batch is Gaussian DP with ``mu = sqrt(steps)/noise_multiplier``, exactly. Otherwise the distribution
of privacy losses of a step is put on a grid, each cell split between its ends so that the result
dominates, and composed by one Fourier transform; both directions, since they differ. The guarantee
itself converts to replace-one (removing, then adding).

Shuffled batches of fixed size are *not* covered; the Poisson numbers are customary for them, but
not proven.
"""

from __future__ import annotations

import math

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.model.gaussian_losses import sampled_gaussian_losses
from dprad.model.guarantees import ADD_REMOVE, GaussianDP, Guarantee, of_directions
from dprad.model.parameters import STEPS, Goal

# Grid points per standard deviation of one step's loss: the grid adds up to (1/2/FINE)^2 of its
# variance, so 0.01% of noise. Likewise for the loss of not being drawn, which is about the rate.
FINE, RATE = 40, 10
# Most points of one step's distribution, by default and at all.
MAX_POINTS, LIMIT = 2**20, 2**23
# Outside this range a noise multiplier means no noise, or only noise.
LEAST, MOST = 0.01, 1e6


def _first_guess(goal: Goal) -> float | None:
    """The central limit: mu = rate sqrt(steps (e^{1/sigma^2} - 1)), and TV = 2 Phi(mu/2) - 1."""
    from scipy.special import ndtri

    rate, steps = goal.fixed.get("sample_rate"), goal.fixed.get("steps")
    if not all(isinstance(v, int | float) and v > 0 for v in (rate, steps)):
        return None
    mu = 2.0 * float(ndtri((1.0 + min(goal.risk, 0.999)) / 2))
    moment = (mu / float(rate)) ** 2 / float(steps)  # type: ignore[arg-type]
    return 1.0 / math.sqrt(math.log1p(moment)) if moment > 0 else None


def dpsgd(
    *, noise_multiplier: float, sample_rate: float, steps: int, grid: float | None = None
) -> Guarantee:
    """The add-remove guarantee of DP-SGD with Poisson sampling. O(K log K) for K grid points.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise divided by the clipping norm.
    sample_rate
        Probability that a record takes part in a step; 1 for full batch.
    steps
        Number of steps.
    grid
        Spacing of the grid of privacy losses; default: a fortieth of the standard deviation of one
        step.

    Returns
    -------
    Guarantee
        Add-remove.

    Examples
    --------
    >>> promise = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> promise.neighbours, round(promise.epsilon_at(1e-5), 2)
    ('add-remove', 1.83)

    """
    sigma = number(noise_multiplier, "noise_multiplier", low=0, high=MOST)
    rate = number(sample_rate, "sample_rate", low=0, high=1)
    count = whole(steps, "steps", low=1, high=STEPS.high)
    if sigma < LEAST:
        raise DpradError(
            f"noise_multiplier must be at least {LEAST:g}, but is {noise_multiplier!r}, which "
            "promises nothing."
        )
    if rate == 0:
        return GaussianDP(0.0, neighbours=ADD_REMOVE)
    if rate == 1:
        return GaussianDP(float(np.sqrt(count)) / sigma, neighbours=ADD_REMOVE)
    top = max(1e-12, float(np.log(rate) + (10 * sigma + 1.5) / sigma**2))
    if grid is None:
        spread = float(np.sqrt(np.log1p(rate**2 * np.expm1(min(1 / sigma**2, 700.0)))))
        grid = max(min(spread / FINE, rate / RATE), top / MAX_POINTS)
    step = number(grid, "grid", low=0)
    if step * LIMIT < top:
        raise DpradError(f"grid must be at least {top / LIMIT:.1e} here, but is {grid!r}.")
    present, absent = sampled_gaussian_losses(sigma, rate, step)
    return of_directions(present.repeated(count), absent.repeated(count), ADD_REMOVE)


dpsgd.first_guess = _first_guess  # type: ignore[attr-defined]  # as mechanisms and guarantees have it
