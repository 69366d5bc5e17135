"""Gaussian noise: one class per success set, from the pieces of `heavier.py`.

The pieces of a fiber end where one guess falls behind another (`gaining.py`), or halfway between
two where hits are compared: there logarithms of bells differ by a line. Every piece gains a
difference of normal probabilities, less one of pbar. Ends depend on two values and the ratio of two
masses, and are found once for all fibers in which they are the same.

Next to an end the lighter guess may lead by the share NEAR of the heavier one's hits. That is lost
once at most for every time that halves of fibers are merged, log2 of the values times; rounding is
of that size: the stated error.

O(m) for each end of a piece and m values, for a few hundred of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.gaining import below, beside, until
from dprad.exact.heavier import Pieces, pieces
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons, starts
from dprad.mechanisms.gaussian import Gaussian
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray

# Most values that are compared with all, and most of those that are more than fibers: panels are
# faster then. How far apart two are told apart for certain, and the possible error per value.
VALUES, FEW, WIDE, ROUNDING = 1024, 128, 100.0, 2e-14

_METHOD = "by intervals of outputs"


def solve_normal(
    mechanism: Gaussian, game: Classes, weight: Any, points: FloatArray
) -> Solution | None:
    """Classes are read as these points with the probabilities `weight`; None if the game is of
    another kind, or there are one or many values.
    """
    sets = game.sets
    if game.forced is not None or game.weighted or game.probabilities.max() > HEAVY:
        return None
    if not isinstance(sets, Singletons) or not len(sets.mass):
        return None
    read = np.asarray(weight.sum(axis=0)).reshape(-1)
    most = min(VALUES, max(FEW, len(starts(sets.fiber))))
    if (
        not 1 < len(points) <= most
        or read.max() > HEAVY
        or np.any(np.diff(weight.indptr)[sets.index] != 1)
    ):
        return None
    x, low, high = _placed(mechanism, points)
    fiber, place, mass = _likeliest(sets, weight.indices[weight.indptr[sets.index]])
    hits = _Normal(x, None, low, high, fiber, place, mass).totals()[0]
    fibers = np.unique(fiber)
    none = np.zeros(len(fibers), dtype=np.intp)
    fiber, place, mass = np.r_[fibers, fiber], np.r_[none, place], np.r_[none, mass]
    order = np.lexsort((mass, fiber))
    own, others = _Normal(x, read, low, high, fiber[order], place[order], mass[order]).totals()
    outer = np.asarray(weight @ beyond(x, low, high))
    ends = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, _METHOD)
    rad, error = max(own - others, 0.0) + ends.rad, ROUNDING * len(x)
    return Solution(
        rad=rad + error,
        success_out=others + ends.success_out,
        rero=hits + ends.rero,
        method=_METHOD,
        interval=(max(0.0, rad - error), rad + error),
    )


def beyond(x: FloatArray, low: float, high: float) -> FloatArray:
    """The probability of outputs below low, and above high, by value."""
    from scipy.special import ndtr

    return np.asarray(ndtr(np.stack([low - x, x - high], axis=1)))


def _placed(mechanism: Gaussian, points: FloatArray) -> tuple[FloatArray, float, float]:
    """Values in units of the noise, and both ends of the outputs; far apart is near enough."""
    low, high = mechanism.clamp or (-np.inf, np.inf)
    with np.errstate(over="ignore"):
        gap = np.diff(points, prepend=low, append=high) / mechanism.sigma
    gap = np.minimum(gap, WIDE)
    x = np.r_[0.0, np.cumsum(gap[1:-1])]
    return x, -float(gap[0]), float(x[-1] + gap[-1])


def _likeliest(sets: Singletons, place: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Fiber, place and mass of the likeliest guess at each value, by fiber, lightest first."""
    order = np.lexsort((sets.mass, place, sets.fiber))
    fiber, place, mass = sets.fiber[order], place[order], sets.mass[order]
    last = np.r_[(fiber[1:] != fiber[:-1]) | (place[1:] != place[:-1]), True]
    fiber, place, mass = fiber[last], place[last], mass[last]
    order = np.lexsort((mass, fiber))
    return fiber[order], place[order], mass[order]


@dataclass(frozen=True, slots=True, eq=False)
class _Normal:
    """Guesses by fiber, lightest first; `read` is the probability of each value, None if hits are
    compared.
    """

    x: FloatArray
    read: FloatArray | None
    low: float
    high: float
    fiber: IntArray
    place: IntArray
    mass: FloatArray

    def totals(self) -> tuple[float, float]:
        """The probability that the best guess is right: of who is in the data, and of others."""
        from scipy.special import ndtr

        found: Pieces = pieces(self)
        mass, value = self.mass[found.guess], self.x[self.place[found.guess]]
        own = float(np.sum(mass * (ndtr(found.end - value) - ndtr(found.begin - value))))
        if self.read is None:
            return own, 0.0
        some = mass > 0  # a pass is never right
        ends = below(np.r_[found.begin[some], found.end[some]], self.x, self.read)
        begin, end = ends.reshape(2, -1)
        return own, float(np.sum(mass[some] * (end - begin)))

    def ends(
        self, heavy: IntArray, light: IntArray, begin: FloatArray, end: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See `Guesses`."""
        value, ratio = self.x[self.place[heavy]], self.mass[light] / self.mass[heavy]
        other, left, right = self.x[self.place[light]], begin.copy(), end.copy()
        for side, result, some in ((-1.0, left, value > begin), (1.0, right, value < end)):
            pair = (self.place[heavy] * len(self.x) + self.place[light])[some]
            reach = self._reach(side, side * value[some], side * other[some], ratio[some], pair)
            result[some] = np.clip(value[some] + side * reach, begin[some], end[some])
        return left, right

    def _reach(
        self, side: float, value: FloatArray, other: FloatArray, ratio: FloatArray, pair: IntArray
    ) -> FloatArray:
        """How far the heavier guess is ahead, each different end found once."""
        if self.read is None:
            return beside(value, other, ratio)
        order = np.lexsort((ratio, pair))
        new = (np.diff(pair[order]) != 0) | (np.diff(ratio[order]) != 0)
        new = np.r_[True, new][: len(order)]
        once, reach = order[new], np.empty(len(pair))
        found = until(value[once], side * self.x, self.read, other[once], ratio[once])
        reach[order] = found[np.cumsum(new) - 1]
        return reach
