"""Success sets of near places: whoever lives near the guess, no pair of places listed.

Each set is the classes with a place within reach of the guess. What is summed over its members, and
what is the least or the greatest over the sets of a class, is found while the pairs pass by
(`Near.fold`): O(pairs) time, O(m) memory, and the numbers of a `Relation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dprad.game.sets import likeliest_first
from dprad.model.near import Near
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The sets around places `guess`. `place` is one of each class, whose places are all alike; -1
    if nobody can guess it.
    """

    near: Near
    place: IntArray
    fiber: IntArray
    mass: FloatArray
    guess: IntArray
    sizes: IntArray
    ends: list[FloatArray] = field(default_factory=list, init=False)

    @classmethod
    def of(cls, near: Near, place: IntArray, fiber: IntArray, mass: FloatArray) -> Around | None:
        """Given a place and the mass of every class, of one fiber; None if each set is a class."""
        (found,) = near.fold((np.add, _placed(near, place, np.stack([mass, mass >= 0], axis=1))))
        weight, size = found.T
        guess = np.flatnonzero(size)
        if np.all(size[guess] == 1):
            return None
        weight, own = np.minimum(weight[guess], 1.0), np.full(len(guess), fiber[0])
        order = likeliest_first(own, weight)
        sizes = size[guess][order].astype(np.intp)
        return cls(near, place, own, weight[order], guess[order], sizes)

    def sums(self, values: FloatArray) -> FloatArray:
        """One pass over the pairs."""
        placed = _placed(self.near, self.place, values)
        return np.asarray(self.near.fold((np.add, placed), rows=self.guess)[0][self.guess])

    def members(self, classes: int) -> BoolArray:
        """See `Sets`."""
        result = np.zeros((len(self.guess), classes), dtype=bool)
        for k in np.flatnonzero(self.place >= 0):
            result[:, k] = self.near.are(np.full(len(self.guess), self.place[k]), self.guess)
        return result

    def smallest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        assert classes == len(self.place)
        return self._extremes()[0]

    def largest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        assert classes == len(self.place)
        return self._extremes()[1]

    def _extremes(self) -> list[FloatArray]:
        """Both, by one pass over the pairs: whom a guess is near to is near the guess."""
        if not self.ends:
            kept, places = np.flatnonzero(self.place >= 0), self.near.tree.n
            folds = [(np.minimum, np.full(places, np.inf)), (np.maximum, np.full(places, -np.inf))]
            for _, mass in folds:
                mass[self.guess] = self.mass
            least, most = self.near.fold(*folds, rows=self.place[kept])
            for extreme, none in ((least, np.inf), (most, -np.inf)):
                # nobody guesses whom no place stands for
                self.ends.append(np.where(self.place >= 0, extreme[self.place], none))
        return self.ends


def _placed(near: Near, place: IntArray, values: FloatArray) -> FloatArray:
    """Numbers of classes at their places, 0 elsewhere."""
    kept = np.flatnonzero(place >= 0)
    result = np.zeros((near.tree.n, *values.shape[1:]))
    result[place[kept]] = values[kept]
    return result
