"""Theorem 1 of the paper: RAD <= TV (1 - kappa).

Any prior, any knowledge, any tolerance; replace-one. From total variation alone nothing better is
possible: "reveal with probability TV, else say nothing" attains it (with exact success).
"""

from __future__ import annotations

from dprad.game.game import Game
from dprad.model.guarantees import Guarantee


def theorem_1(guarantee: Guarantee, game: Game) -> float:
    """TV (1 - kappa). O(1)."""
    return guarantee.tv * game.unlike
