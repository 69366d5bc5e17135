"""Bets on sets: which records an output of the supposed mechanism speaks for.

The likelihood of a support mechanism takes two values, so the best prediction of the record bets on
the set A of those with the larger one. Under an epsilon-DP claim the record is in A with chance at
most ``k e^eps/(k e^eps + 1 - k)``, k the prior chance of A given what is known: far more telling
than guessing the one record. For other mechanisms A is where the likelihood is above its mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.attacks.optimal import OptimalAttack, inside_of
from dprad.exact.posterior import expanded
from dprad.mechanisms import bits as packed
from dprad.mechanisms.support import SetMechanism
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime import memory

# Entries of a block; most different chances that are kept apart.
BLOCK_ENTRIES, KEPT = 2**22, 400


def support_bets(
    attack: OptimalAttack, outputs: Any, records: IntArray
) -> tuple[FloatArray, BoolArray]:
    """For each output the chance of its set (NaN: no bet), and whether the record is in it."""
    game = attack.game
    own = game.class_of[records]
    if (
        isinstance(attack.mechanism, SetMechanism)
        and attack.single is not None
        and game.nothing_known
        and game.uniform
        and len(game.probabilities) == attack.mechanism.size
    ):
        chance: FloatArray = packed.count(outputs) / attack.mechanism.size
        hit = packed.contains(outputs, attack.single[own])
    else:
        chance, hit = _blocks(attack, outputs, own)
    known = np.where((chance > 0) & (chance < 1), chance, np.nan)
    return _rounded(np.asarray(known, dtype=float)), np.asarray(hit, dtype=bool)


def _blocks(attack: OptimalAttack, outputs: Any, own: IntArray) -> tuple[FloatArray, BoolArray]:
    """By the likelihood of every class."""
    from dprad.exact.posterior import part

    game = attack.game
    mass, fiber = game.probabilities, np.asarray(game.fiber)
    total = np.bincount(fiber, weights=mass)
    inside = inside_of(attack.mechanism) if attack.single is not None else None
    weight, points = game.at_values(attack.read, game.pi)
    weight = weight.multiply(1.0 / mass[:, None]).tocsr()
    step = max(1, memory.block(BLOCK_ENTRIES) // max(len(points), len(mass)))
    chance, hit = np.empty(len(own)), np.empty(len(own), dtype=bool)
    for a in range(0, len(own), step):
        rows = slice(a, min(a + step, len(own)))
        block, mine = part(outputs, rows), own[rows]
        if inside is not None:
            among = np.asarray(inside(block, attack.single))
        else:
            log = attack.mechanism.log_likelihood(expanded(block), points[None, :])
            odds = np.exp(log - log.max(axis=1, keepdims=True))
            each = np.asarray((weight @ odds.T).T)  # outputs x classes
            here = fiber[None, :] == fiber[mine][:, None]
            mean = (each * mass * here).sum(axis=1) / total[fiber[mine]]
            among = each > mean[:, None]
        among = among & (fiber[None, :] == fiber[mine][:, None])
        chance[rows] = (among @ mass) / total[fiber[mine]]
        hit[rows] = among[np.arange(len(mine)), mine]
    return np.minimum(chance, 1.0), hit


def _rounded(chance: FloatArray) -> FloatArray:
    """Rounded up, so that few are different: a larger chance only makes a bet weaker."""
    exact = np.ceil(chance * 1e15) / 1e15
    if len(np.unique(exact)) <= KEPT:
        return np.asarray(exact)
    with np.errstate(invalid="ignore"):
        coarse = np.exp(np.ceil(np.log(exact) * 1000.0) / 1000.0)
    return np.asarray(np.where(coarse < 1.0, coarse, np.nan))
