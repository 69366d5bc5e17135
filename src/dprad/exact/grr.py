"""Randomised response, in closed form for every prior, knowledge and tolerance.

Output o raises record o alone: a set S of o's fiber gains ``gap pi_o (1{o in S} - pi(S))``, so the
best guess is the lightest set that contains o and, with pi(S) its mass within the fiber,

    RAD* = gap sum_o pi_o (1 - min_{S containing o} pi(S)) .

It requires that all records with one code belong to one class. O(m + success relation).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import tops
from dprad.mechanisms.grr import GRR
from dprad.numerics.arrays import FloatArray, IntArray, distinct

METHOD = "closed form for GRR"


def closed_form(mechanism: GRR, game: Classes, codes: IntArray, pi: FloatArray) -> Solution | None:
    """The solution, or None if one code belongs to several classes, or passing is not allowed."""
    pairs = None if game.forced is not None else raised(game, codes)
    if pairs is None:
        return None
    outputs, own = pairs
    kept = np.flatnonzero(game.class_of >= 0)
    mass = np.bincount(codes[kept], weights=pi[kept], minlength=mechanism.size)[outputs]
    gap, lie = mechanism.gap, mechanism.lie
    lightest, heaviest, spare = (ends[own] for ends in _ends(game))
    gain = gap * mass * np.maximum(spare, 0.0)
    rad = float(gain.sum())

    # without the person the attack is right by luck: with the mass of the set it names
    blind = 0.0 if game.membership else game.p_plus
    guessable = np.isfinite(lightest)
    if gap == 0.0:
        success_out = blind
    else:
        luck = np.where(guessable, np.minimum(lightest, 1.0), 0.0)
        if game.membership:
            luck = np.where(gain > 0, luck, 0.0)
        silent = lie * (mechanism.size - len(own))  # outputs that raise no record
        success_out = float((lie + gap * mass) @ luck) + silent * blind

    top = tops(game.sets, int(game.fiber.max()) + 1)
    here = top[game.fiber[own]]
    lifted = np.where(guessable, lie * np.where(guessable, heaviest, 0.0) + gap * mass, 0.0)
    everywhere = lie * float(top.sum()) * mechanism.size
    rero = everywhere + float(np.sum(np.maximum(lifted, lie * here) - lie * here))
    return Solution(rad=rad, success_out=success_out, rero=rero, method=METHOD)


def raised(game: Classes, codes: IntArray) -> tuple[IntArray, IntArray] | None:
    """Outputs that raise a record, in order, and the class of each; None if one has several."""
    kept, classes = np.flatnonzero(game.class_of >= 0), len(game.probabilities)
    outputs, own = np.divmod(distinct(codes[kept] * classes + game.class_of[kept])[0], classes)
    return None if np.any(outputs[1:] == outputs[:-1]) else (outputs, own)


@lru_cache(maxsize=2)  # many epsilons are asked about the same question
def _ends(game: Classes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each class, over the sets that contain it: the least and the greatest mass of one, and
    the greatest outside one.
    """
    sets: Any = game.sets
    many = len(game.probabilities)
    outside = replace(sets, mass=_outside(sets, game.probabilities))
    return sets.smallest(many), sets.largest(many), outside.largest(many)


def _outside(sets: Any, mass: FloatArray) -> FloatArray:
    """The mass outside each set, to all digits: the complement of a heavy class is summed."""
    heavy = np.zeros(len(mass))
    heavy[np.argmax(mass)] = 1.0
    light = np.where(heavy > 0, 0.0, mass)
    has, beside = sets.sums(np.stack([heavy, light], axis=1)).T
    return np.asarray(np.where(has > 0.5, np.maximum(light.sum() - beside, 0.0), 1.0 - sets.mass))
