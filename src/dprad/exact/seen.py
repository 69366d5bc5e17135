"""What is seen on a stretch of a line: the values whose noise reaches it, and what may be named.

Beyond FAR standard deviations a normal density counts as zero, which moves no more than OUTSIDE of
a value's probability. A set of classes then gains ``pi(S) (0 - pbar)`` where none of them is seen:
less than a pass. Of sets of a fiber with the same classes in sight, the lightest gains most, and
all hit alike. So of all sets there remain about as many as classes in sight, and stretches are
halved together with what is seen from them: O(m log m) for m values and sets, a pair of a set and a
class counted as one.

Where passing is not allowed, the lightest of the sets out of sight remains. Fibers that are out of
sight altogether lose ``pi(S) pbar`` with theirs, which is summed (`aside`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.game.game import Classes
from dprad.game.sets import Relation, Sets, Singletons, Windows
from dprad.numerics.arrays import HEAVY, BoolArray, FloatArray, gains

# In standard deviations, how far values are seen, and the probability beyond, on both sides.
FAR, OUTSIDE = 12.0, 4e-33
# Panels of a stretch that is not halved: as wide as what is seen from its ends on one side.
PANELS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Classes by the values they are read as (`points`, ascending), and the sets of them.

    `every` says which sets have all classes; their masses are with classes that are out of sight.
    `forced` is the game's. `probabilities` are those of all classes, or None if some are out of
    sight.
    """

    points: FloatArray
    weight: Any
    sets: Sets
    every: BoolArray
    forced: BoolArray | None
    probabilities: FloatArray | None
    aside: float = 0.0

    @classmethod
    def all(cls, game: Classes, weight: Any, points: FloatArray) -> Seen:
        """All of a game."""
        sets, pi = game.sets, game.probabilities
        return cls(points, weight, sets, sets.sizes == len(pi), game.forced, pi)

    @property
    def divisible(self) -> bool:
        """Whether there can be less to see: not of sets that are not listed, and not if one class
        has nearly all probability, since small gains would lose digits.
        """
        listed = isinstance(self.sets, Singletons | Windows | Relation)
        return listed and (self.probabilities is None or float(self.probabilities.max()) <= HEAVY)

    @property
    def width(self) -> int:
        """Rows of the largest array: of values, classes or sets."""
        return int(max(len(self.points), self.weight.shape[0], len(self.sets.mass)))

    def gains(self, joint: FloatArray, pbar: FloatArray, hit: FloatArray) -> FloatArray:
        """What the sets gain, from the joint probabilities of classes and from those of sets."""
        if self.probabilities is None:
            gain: FloatArray = hit - self.sets.mass[:, None] * pbar
        else:
            gain = self.sets.sums(gains(joint.copy(), self.probabilities, pbar))
        gain[self.every] = 0.0  # a set of all classes gains nothing, exactly
        return gain

    def stretches(self, low: float, step: float, begin: int, end: int) -> Iterator[Stretch]:
        """Panels begin .. end-1 of this width, the first of all at `low`, some at a time; without
        those from which nothing is seen.
        """
        there = self
        if self.divisible:
            there = self.between(low + begin * step - FAR, low + end * step + FAR)
        if not len(there.points):
            return
        if end - begin <= PANELS or not self.divisible:
            yield Stretch(there, begin, end)
            return
        middle = (begin + end) // 2
        yield from there.stretches(low, step, begin, middle)
        yield from there.stretches(low, step, middle, end)

    def between(self, low: float, high: float) -> Seen:
        """What is seen if no other points are."""
        a, b = np.searchsorted(self.points, [low, high])
        if b - a == len(self.points):
            return self
        weight = self.weight[:, a:b]
        seen = np.diff(weight.indptr) > 0
        sets, empty = _within(self.sets, seen)
        kept, aside = self._kept(sets, empty)
        return replace(
            self,
            points=self.points[a:b],
            # the row of a class that is never seen stands for a set out of sight
            weight=_with_none(weight[np.flatnonzero(seen)]),
            sets=_some(sets, kept),
            every=self.every[kept],
            probabilities=None,
            aside=self.aside + aside,
        )

    def _kept(self, sets: Sets, empty: BoolArray) -> tuple[Any, float]:
        """Which sets can be the best, in order, and the lightest ones of fibers out of sight."""
        kept = np.flatnonzero(~empty)
        if isinstance(sets, Windows):
            # sets of a fiber are in order of falling mass: the last of equal ones is the lightest
            low, high = sets.low[kept], sets.high[kept]
            order = np.lexsort((high, low))
            low, high = low[order], high[order]
            same = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
            kept = np.sort(kept[order[np.r_[~same, True][: len(order)]]])
        if self.forced is None:
            return kept, 0.0
        out = np.flatnonzero(empty & self.forced[sets.fiber])
        fiber = sets.fiber[out]
        out = out[np.r_[fiber[1:] != fiber[:-1], True][: len(out)]]
        beside = np.isin(sets.fiber[out], sets.fiber[kept])
        return np.sort(np.r_[kept, out[beside]]), float(sets.mass[out[~beside]].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Panels begin .. end-1, and what is seen there."""

    seen: Seen
    begin: int
    end: int


def _within(sets: Sets, seen: BoolArray) -> tuple[Sets, BoolArray]:
    """The same sets without classes out of sight, and which of them are empty then."""
    place = np.r_[0, np.cumsum(seen)]  # of each class among those seen
    if isinstance(sets, Singletons):
        empty = ~seen[sets.index]
        return replace(sets, index=np.where(empty, place[-1], place[sets.index])), empty
    if isinstance(sets, Windows):
        low, high = place[sets.low], place[sets.high]
        return replace(sets, low=low, high=high), low == high
    assert isinstance(sets, Relation)
    matrix = sets.matrix[:, np.flatnonzero(seen)]
    matrix.resize(matrix.shape[0], matrix.shape[1] + 1)  # no set has the class that is never seen
    return replace(sets, matrix=matrix), np.diff(matrix.indptr) == 0


def _some(sets: Sets, kept: Any) -> Sets:
    """Some of the sets, in order."""
    common = {name: getattr(sets, name)[kept] for name in ("fiber", "mass", "guess")}
    if isinstance(sets, Singletons):
        return replace(sets, index=sets.index[kept], **common)
    if isinstance(sets, Windows):
        return replace(sets, low=sets.low[kept], high=sets.high[kept], **common)
    assert isinstance(sets, Relation)
    return replace(sets, matrix=sets.matrix[kept], **common)


def _with_none(rows: Any) -> Any:
    """With one more row, of zeros."""
    rows.resize(rows.shape[0] + 1, rows.shape[1])
    return rows
