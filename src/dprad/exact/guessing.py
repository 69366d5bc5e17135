"""The best guess where outputs see zones of values (`zones.py`).

Nothing known: the likeliest value of the best zone. Everything known: whoever is known gains with
their zone. A part known: `stretches.py`. With a tolerance, and nothing known: the heaviest window
within a zone, or one of the few that hold an edge of one.

O((m + K) log m) for m values, K outputs and one class per success set; O(K w) more for windows of w
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.channel import TIE, Joint, nearly, sum_over_outputs, totalled
from dprad.exact.solution import Solution
from dprad.exact.stretches import by_fiber
from dprad.exact.zones import Highest, Zones, pbar_of
from dprad.game.game import Classes
from dprad.game.sets import Singletons, Windows
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray

# How many times all windows are those that may hold one value, so that zones pay.
NARROW = 16


def solve_zones(zones: Zones, game: Classes, weight: Any, method: str) -> Solution | None:
    """`weight` is the probability of each class at each value; None if the game is of another
    kind.
    """
    sets = game.sets
    if game.forced is not None or game.probabilities.max() > HEAVY or not len(sets.mass):
        return None
    read = np.asarray(weight.sum(axis=0)).reshape(-1)
    upto = np.r_[0.0, np.cumsum(read)]
    if isinstance(sets, Singletons):
        found = _of_classes(zones, game, weight, upto)
    elif isinstance(sets, Windows) and game.nothing_known and not game.weighted:
        found = _of_windows(zones, sets, weight, upto)
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
        every = np.concatenate([pbar_of(upto, edge, height) for edge, height in zones.blocks()])
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


def _of_windows(zones: Zones, sets: Windows, weight: Any, upto: FloatArray) -> FloatArray | None:
    """Intervals of classes that stand in order of their values; members are a class at a value."""
    order = np.lexsort((sets.high, sets.low))
    low, high = weight.indptr[sets.low[order]], weight.indptr[sets.high[order]]
    mass, place = sets.mass[order], weight.indices
    if np.any(np.diff(place) < 0) or np.any(np.diff(high) < 0):
        return None
    before = np.searchsorted(place, np.arange(len(upto)))  # members ahead of each value
    across = np.searchsorted(low, before) - np.searchsorted(high, before, "right")
    if NARROW * int(across.max()) > len(low):
        return None
    total = np.r_[0.0, np.cumsum(weight.data)]
    ends, highest, totals = np.stack([total[low], total[high]]), Highest.of(mass), np.zeros(4)
    for edge, height in zones.blocks():
        pbar, cut = pbar_of(upto, edge, height), before[edge]
        best = _Best.of(len(pbar), TIE * total[-1] * pbar)
        for inner, outer, tall in zip(cut[:-1], cut[1:], height, strict=True):
            first, last = np.searchsorted(low, inner), np.searchsorted(high, outer, "right")
            heaviest = highest.between(first, last)
            best.add(heaviest * (tall - pbar), heaviest * tall, heaviest)
        bend = total[cut]
        for inner in cut[1:-1]:
            first, last = np.searchsorted(high, inner, "right"), np.searchsorted(low, inner)
            for shift in range(int((last - first).max(initial=0))):
                some = np.flatnonzero(first + shift < last)
                one = first[some] + shift
                begin, end = ends[:, one]
                held = np.zeros(len(some))
                for z, tall in enumerate(height):
                    left, right = bend[z, some], bend[z + 1, some]
                    held += tall[some] * np.maximum(
                        np.minimum(end, right) - np.maximum(begin, left), 0.0
                    )
                best.add(held - mass[one] * pbar[some], held, mass[one], some)
        totals += best.totals(pbar)
    return totals


@dataclass(slots=True)
class _Best:
    """Of some outputs the best gain so far, the mass of its set (the heaviest of those that tie),
    and the most hits.
    """

    near: FloatArray
    gain: FloatArray
    mass: FloatArray
    hits: FloatArray

    @classmethod
    def of(cls, outputs: int, near: FloatArray) -> _Best:
        """Nothing yet."""
        return cls(near, np.full(outputs, -np.inf), np.zeros(outputs), np.zeros(outputs))

    def add(self, gain: FloatArray, hits: FloatArray, mass: FloatArray, at: Any = ...) -> None:
        """One set for each of these outputs; a mass of zero is none."""
        gain = np.where(mass > 0, gain, -np.inf)
        best, near = self.gain[at], self.near[at]
        tie = np.maximum(mass, self.mass[at])
        with np.errstate(invalid="ignore"):
            self.mass[at] = np.where(
                gain > best + near, mass, np.where(gain >= best - near, tie, self.mass[at])
            )
        self.gain[at] = np.maximum(best, gain)
        self.hits[at] = np.maximum(self.hits[at], hits)

    def totals(self, pbar: FloatArray) -> FloatArray:
        """RAD, luck, hits, and the sum of pbar: a tie with passing is a guess."""
        named = np.where(self.gain >= -self.near, self.mass, 0.0)
        gain = np.maximum(self.gain, 0.0)
        return np.array([gain.sum(), named @ pbar, self.hits.sum(), pbar.sum()])


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
