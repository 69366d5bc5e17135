"""Theorem 3 of the paper (f-DP), both forms, and Proposition 1 ((epsilon, delta)-DP).

Theorem 3: RAD <= max 1 - f(a) - a over the chances a that a guess is right by luck. First form: a
in [P-, P+]. Second form, finite priors: (1 - kappa) times the maximum over [0, P+ / (1 - kappa)].
The paper states them for an attacker who knows nothing and never passes. Its proof uses only that
the chance of success on an absent record is E[P(theta)], which lies in [P-, P+] for every knowledge
and with passing, as `Game` defines them; so they are applied to every threat.

``1 - f(a) - a`` is concave and f symmetric, so its maximum is at the fixed point f(a) = a, where
a = (1 - TV) / 2, or at the end of the range nearest to it: no grid, which would round down.
"""

from __future__ import annotations

import numpy as np

from dprad.bounds.profile import least_over_points
from dprad.game.game import Game
from dprad.model.guarantees import Guarantee

# Relative error that a trade-off curve may have.
ROUNDING = 1e-12


def _gap(guarantee: Guarantee, low: float, high: float) -> float:
    """Max of 1 - f(a) - a over [low, high].

    f falls, so the fixed point is beyond `low` if f(low) >= low, and before `high` if
    f(high) <= high. (Comparing with (1 - TV)/2 itself would be unsafe: for a large epsilon it is
    rounded to 0, below a tiny `low` that it exceeds.) If in doubt, it is inside: TV.
    """
    first, last = float(guarantee.tradeoff(low)), float(guarantee.tradeoff(high))
    if first >= low * (1.0 - ROUNDING) and last <= high * (1.0 + ROUNDING) + ROUNDING:
        return guarantee.tv
    return guarantee.gap(low if first < low else high)


def theorem_3(guarantee: Guarantee, game: Game) -> float:
    """First form. O(1)."""
    return _gap(guarantee, game.p_minus, game.p_plus)


def theorem_3_finite(guarantee: Guarantee, game: Game) -> float:
    """Second form. O(1)."""
    if game.unlike <= 0.0:
        return 0.0
    return game.unlike * _gap(guarantee, 0.0, min(1.0, game.p_plus / game.unlike))


def proposition_1(guarantee: Guarantee, game: Game) -> float:
    """min{ P+ (e-1) + delta, ((1-P-)(e-1) + delta)/e, TV (1-kappa) }, e = exp(epsilon). O(1)."""

    def at(epsilon: float, delta: float) -> float:
        shrink = -float(np.expm1(-epsilon))  # (e - 1)/e
        grow = float(np.expm1(min(epsilon, 700.0)))
        return min(
            game.p_plus * grow + delta,
            (1.0 - game.p_minus) * shrink + delta * float(np.exp(-epsilon)),
            game.unlike * point_tv(epsilon, delta),
        )

    return least_over_points(guarantee, at)


def point_tv(epsilon: float, delta: float) -> float:
    """The total variation that (epsilon, delta)-DP allows, (e - 1 + 2 delta)/(e + 1)."""
    return float(np.tanh(epsilon / 2)) * (1.0 - delta) + delta
