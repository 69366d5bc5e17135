"""Bounds on the *success probability* (ReRo), for comparison: Balle et al. and Hayes et al.

They bound how often the attacker is right, not how much more often because the person took part;
they are large for an attacker who would be right anyway. P+ is the best chance of a blind guess.
Either kind of neighbours: the reference is a data set without the record, or with another one.
"""

from __future__ import annotations

import numpy as np

from dprad.bounds.profile import least_over_points
from dprad.game.game import Game
from dprad.model.guarantees import Guarantee


def balle(guarantee: Guarantee, game: Game) -> float:
    """P+ e^epsilon + delta (Balle, Cherubin and Hayes 2022). O(1)."""

    def at(epsilon: float, delta: float) -> float:
        return game.p_plus * float(np.exp(min(epsilon, 700.0))) + delta

    return min(1.0, least_over_points(guarantee, at))


def hayes(guarantee: Guarantee, game: Game) -> float:
    """1 - f(P+) (Hayes, Mahloujifar and Balle 2023). O(1)."""
    return min(1.0, game.p_plus + guarantee.gap(game.p_plus))
