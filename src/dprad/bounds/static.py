"""Proposition G: one Gaussian release (or vectors fixed in advance), nothing known, uniform prior.

m points in a ball of radius r around the absent record, in units of the noise: the attacker is
right with at most the power of the one-sided t-test of level 1/m, m - 2 degrees of freedom and
non-centrality r (Shannon's cone argument); Phi(r) for m = 2. It is false for adaptive training,
hence the flag `GaussianDP(..., static=True)`, with which the caller confirms the assumption.
"""

from __future__ import annotations

import numpy as np

from dprad.game.game import Classes, Even
from dprad.model.guarantees import GaussianDP, Guarantee

# Relative error of the power.
ROUNDING = 1e-12


def proposition_g(guarantee: Guarantee, game: Classes | Even) -> float:
    """Power of the test minus 1/m. O(1)."""
    from scipy.special import erf
    from scipy.stats import nct, t

    assert isinstance(guarantee, GaussianDP)
    m, r = game.count, guarantee.mu
    if m == 1:
        return 0.0
    if m == 2:
        return float(erf(r / np.sqrt(2.0))) / 2
    power = float(nct.sf(t.isf(1.0 / m, m - 2), m - 2, r))
    return power - 1.0 / m + ROUNDING * power
