"""The best guess where outputs see zones of values (`zones.py`).

Nothing known: the likeliest value of the best zone. Everything known: whoever is known gains with
their zone. A part known: `stretches.py`. With a tolerance: `windows.py`.

O((m + K) log m) for m values, K outputs and one class per success set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.exact.channel import TIE, Joint, nearly, sum_over_outputs, totalled
from dprad.exact.solution import Solution
from dprad.exact.stretches import by_fiber
from dprad.exact.windows import by_window
from dprad.exact.zones import Highest, Zones, pbar_of
from dprad.game.game import Classes
from dprad.game.sets import Singletons, Windows
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray


def solve_zones(zones: Zones, game: Classes, weight: Any, method: str) -> Solution | None:
    """`weight` is the probability of each class at each value; None if the game is of another
    kind.
    """
    sets = game.sets
    if game.probabilities.max() > HEAVY or not len(sets.mass):
        return None
    read = np.asarray(weight.sum(axis=0)).reshape(-1)
    upto = np.r_[0.0, np.cumsum(read)]
    if isinstance(sets, Singletons) and game.forced is None:
        found = _of_classes(zones, game, weight, upto)
    elif isinstance(sets, Windows) and not (game.membership or game.weighted):
        every = _every_pbar(zones, upto)
        found = by_window(zones, every, game, weight)
        found = None if found is None else np.r_[found, every.sum()]
    else:
        found = None
    if found is None:
        return None
    outer = np.asarray(weight @ zones.rest)
    pbar = outer.sum(axis=0)
    more = sum_over_outputs(Joint(pbar, lambda r, c: outer[r, c]), game, method)
    return totalled(found + np.array([more.rad, more.success_out, more.rero, pbar.sum()]), method)


def _of_classes(zones: Zones, game: Classes, weight: Any, upto: FloatArray) -> FloatArray | None:
    """One class per set, each read as one value: RAD, luck, hits, and the sum of pbar."""
    sets = game.sets
    assert isinstance(sets, Singletons)
    if np.any(np.diff(weight.indptr)[sets.index] != 1):
        return None
    place, mass = weight.indices[weight.indptr[sets.index]], sets.mass
    values, totals = len(upto) - 1, np.zeros(4)
    if game.nothing_known or (game.everything_known and len(mass) == 1):
        top = np.zeros(values)
        np.maximum.at(top, place, mass)
        highest = Highest.of(top)
        for edge, height in zones.blocks():
            totals += _best(highest, edge, height, pbar_of(upto, edge, height))
        return totals
    if not game.everything_known:
        if game.membership or game.weighted:
            return None
        every = _every_pbar(zones, upto)
        found = by_fiber(zones, every, sets.fiber, place, mass)
        return None if found is None else np.r_[found, every.sum()]
    own = np.r_[0.0, np.cumsum(np.bincount(place, mass, values))]
    for edge, height in zones.blocks():
        inside, pbar = np.diff(own[edge], axis=0), pbar_of(upto, edge, height)
        ahead = height - pbar
        totals[0] += float(np.sum(inside * np.maximum(ahead, 0.0)))
        named = ahead > TIE * pbar if game.membership else ahead >= -TIE * pbar
        totals[1] += float(np.sum(np.where(named, inside, 0.0) @ pbar))
        totals[2:] += float(np.sum(inside * height)), pbar.sum()
    return totals


def _every_pbar(zones: Zones, upto: FloatArray) -> FloatArray:
    """The probabilities of all outputs."""
    return np.concatenate([pbar_of(upto, edge, height) for edge, height in zones.blocks()])


def _best(highest: Highest, edge: IntArray, height: FloatArray, pbar: FloatArray) -> FloatArray:
    """The same of some outputs, nothing known: the likeliest value of the best zone."""
    top = highest.between(edge[:-1], edge[1:])
    gain = np.where(top > 0, top * (height - pbar), -np.inf)
    best = gain.max(axis=0)
    near = nearly(best, top.max(axis=0), pbar)
    chosen = np.where(gain >= best - near, top, 0.0).max(axis=0)
    named = np.where(best >= -near, chosen, 0.0)
    hits = (top * height).max(axis=0)
    return np.array([np.maximum(best, 0.0).sum(), named @ pbar, hits.sum(), pbar.sum()])
