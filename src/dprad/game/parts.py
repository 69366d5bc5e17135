"""The classes of a finite game, and the masses that an attack can be right about."""

from __future__ import annotations

import numpy as np

from dprad.game.around import Around
from dprad.game.relations import Success
from dprad.game.sets import Relation, Sets, Singletons, Windows, starts, tops
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray, distinct


def classes(
    relation: Success, label: IntArray, labels: int, code: IntArray, pi: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Fiber, signature and mass of each class, and the class of each record: same fiber, same
    success sets; ordered by fiber, then along the line.
    """
    width = int(relation.signature.max()) + 1
    own = relation.signature[code] if labels == 1 else label * width + relation.signature[code]
    key, class_of = distinct(own)
    mass = pi
    if key is not own:  # otherwise every record is a class, and they are in order
        mass = np.minimum(np.bincount(class_of, weights=pi), 1.0)
    if labels == 1:
        return np.broadcast_to(np.intp(0), len(key)), key, mass, class_of
    return key // width, key % width, mass, class_of


def fibers(known: IntArray, labels: IntArray) -> IntArray:
    """The place of what is known about each record among the labels; -1 if it is not there."""
    place = np.minimum(np.searchsorted(labels, known), len(labels) - 1)
    return np.where(labels[place] == known, place, -1)


def masses(code: IntArray, pi: FloatArray, size: int) -> FloatArray:
    """The probability of each target value."""
    if len(code) == size and bool(np.all(code[1:] > code[:-1])):
        return pi
    return np.bincount(code, weights=pi, minlength=size).astype(float)


def reach(sets: Sets, fiber: IntArray) -> tuple[float, float]:
    """The greatest mass an attack can be right about, and the greatest below everything."""
    if not len(sets.mass):
        return 0.0, 0.0
    best = tops(sets, int(fiber.max()) + 1)
    total = min(1.0, float(best.sum()))
    whole = sets.sizes == np.bincount(fiber)[sets.fiber]
    if np.count_nonzero(whole) < len(best) or len(np.unique(sets.fiber[whole])) < len(best):
        return total, total
    # everything is possible; so one fiber must take its second best, which may be a pass
    second = np.zeros(len(best))
    np.maximum.at(second, sets.fiber[~whole], sets.mass[~whole])
    return total, max(0.0, 1.0 - float(np.min(best - second)))


def least_mass(sets: Sets, forced: BoolArray | None, p_plus: float, splits: bool) -> float:
    """The least mass that a best attack is right about: 0 unless it never helps, or is not
    allowed, to pass.
    """
    if splits:
        return min(float(sets.mass.min()), p_plus)
    if forced is None:
        return 0.0
    begin = starts(sets.fiber)
    return min(
        float(np.minimum.reduceat(sets.mass, begin)[forced[sets.fiber[begin]]].sum()), p_plus
    )


def partitions(sets: Sets, classes: int) -> bool:
    """Whether some of the sets (one fiber) partition the classes; then passing never helps."""
    if isinstance(sets, Singletons):
        return len(sets.index) == classes
    if isinstance(sets, Windows):
        reached = np.zeros(classes + 1, dtype=bool)
        reached[0] = True
        for i in np.argsort(sets.low, kind="stable"):
            reached[sets.high[i]] |= reached[sets.low[i]]
        return bool(reached[classes])
    assert isinstance(sets, Relation | Around)
    # an exact cover is hard to find in general; a single set that covers all is easy
    return bool(np.any(sets.sizes == classes))
