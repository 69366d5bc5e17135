"""Theorem C, the unified bound: any prior, any knowledge, any tolerance, any guarantee.

For a replace-one guarantee with dominating pair (p, q) and every nu >= 0,

    RAD <= nu + sum_{z != z0} pi_z pi_z0 int ( p - q - nu n_{z,z0}(p, q) )_+ ,
    n_{z,z0}(p, q) = min_P [ q/P + p/(1-P) ] ,

where the minimum is over the prior masses P of success sets that contain z and not z0; the pair is
omitted if there is none (`separations` below). nu = 0 is Theorem 1. On the atoms of a
privacy-loss distribution the right side is convex and piecewise linear in nu, so its minimum over
nu is found exactly by sorting.

Exact for equally likely classes when nothing (singletons) or everything is known; with nothing
assumed at all it is ``(1 - delta) tanh(epsilon/4) + delta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dprad.game.game import Classes, Even, Game
from dprad.game.sets import Sets, starts, tops
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray, complements, distinct

# Up to this many sets times pairs of classes, every mass that separates a pair is listed.
LISTED = 2**23
# Up to this many classes, and sets times pairs, every pair has its own range of masses.
PAIR_CLASSES = 512
PAIR_STEPS = 2**28
# Most pairs times atoms sorted at once; beyond, ranges are rounded outwards and shared.
MAX_TERMS = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Separations:
    """Pairs of classes by the possible masses of a success set that separates them.

    `weight` sums to at most 1 - kappa. Masses range over [low, high], or, if `listed` is given,
    over the values listed for each group, or, if `steps` is, over multiples of 1/steps.
    """

    weight: FloatArray
    low: FloatArray
    high: FloatArray
    listed: tuple[FloatArray, ...] | None = None
    steps: int | None = None


def theorem_c(guarantee: Guarantee, game: Game) -> float:
    """The least value over nu. O(N log N), N = groups of pairs times privacy-loss atoms."""
    loss = guarantee.loss
    alive = (loss.losses > 0) & (loss.p > 0)
    p, q = loss.p[alive], loss.q[alive]
    more = p * -np.expm1(-loss.losses[alive])  # p - q without cancellation
    groups = share(separations(game), MAX_TERMS // (len(p) + 1))
    # each term is c (1 - nu/b)_+ : the gain c at nu = 0, and the price b at which it vanishes
    gain = [np.outer(groups.weight, more).ravel(), groups.weight * loss.p_infinity]
    price = [(more / least_cost(p, q, groups)).ravel(), _rest(groups.low)]
    return _minimise(np.concatenate(gain), np.concatenate(price))


def least_cost(p: FloatArray, q: FloatArray, groups: Separations) -> FloatArray:
    """n(p, q) of each group (rows) and atom (columns)."""
    best = np.sqrt(q) / (np.sqrt(p) + np.sqrt(q))
    low, high = groups.low[:, None], groups.high[:, None]
    if groups.steps is not None:
        # the cost is convex in the mass: the best multiple is next to the best of all
        below, above = (step(best * groups.steps) / groups.steps for step in (np.floor, np.ceil))
        nearest = (np.clip(mass, low, high) for mass in (below, above))
        return np.asarray(np.minimum(*(_cost(p, q, mass) for mass in nearest)))
    if groups.listed is None:
        return _cost(p, q, np.clip(best, low, high))
    rows = []
    for masses in groups.listed:
        at = np.searchsorted(masses, best)
        below, above = masses[np.maximum(at - 1, 0)], masses[np.minimum(at, len(masses) - 1)]
        rows.append(np.minimum(_cost(p, q, below), _cost(p, q, above)))
    return np.stack(rows) if rows else np.zeros((0, len(p)))


def _cost(p: FloatArray, q: FloatArray, mass: FloatArray) -> FloatArray:
    # q may vanish where the mass does: that side then costs nothing; a mass of one costs all
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(q > 0, q / mass, 0.0) + p / _rest(mass))


def _rest(mass: FloatArray) -> FloatArray:
    """1 - mass, never too small: a mass close to one is itself rounded."""
    return np.asarray(np.maximum(1.0 - mass, 0.0) + np.finfo(float).eps)


def _minimise(gain: FloatArray, price: FloatArray) -> float:
    """The minimum over nu >= 0 of nu + sum gain (1 - nu/price)_+ ."""
    live = (gain > 0) & (price > 0)
    gain, price = gain[live], price[live]
    if not len(gain):
        return 0.0
    order = np.argsort(-price)
    gain, price = gain[order], price[order]
    slope = np.cumsum(gain / price)
    # terms with a price above nu are active; the sum falls while their slopes exceed one
    alive = int(np.searchsorted(slope, 1.0, "right"))
    if alive == len(gain):
        return float(gain.sum())
    nu = price[alive]
    return float(nu + np.sum(gain[:alive] * (1.0 - nu / price[:alive])))


# -- which masses tell two classes apart ----------------------------------------------------------
@lru_cache(maxsize=2)  # many promises are asked about the same question
def separations(game: Game) -> Separations:
    """Groups of pairs. O(m) for the usual threats; every pair separately if there are few."""
    one = np.ones(1)
    if isinstance(game, Even):
        whole = game.values if game.everything_known else None
        return Separations(one * game.unlike, one * game.least, one * game.most, steps=whole)
    if not isinstance(game, Classes):
        return Separations(one, one * game.least, one * game.most)
    pi, sets = game.probabilities, game.sets
    m = len(pi)
    if game.everything_known and game.uniform and len(sets.mass) == m and m > 1:
        # any number of classes, but not all
        return Separations(one * game.unlike, one / m, one * ((m - 1) / m), steps=m)
    if game.singletons and game.nothing_known:
        return _grouped(*_alone(pi, sets))
    counts = np.diff(np.r_[starts(sets.fiber), len(sets.fiber)])
    if np.log2(counts + 1.0).sum() + 2 * np.log2(m) <= np.log2(LISTED):
        return _listed(game)
    if game.everything_known:
        return _grouped(*_everything(pi, sets))
    if m <= PAIR_CLASSES and len(sets.mass) * m**2 <= PAIR_STEPS:
        return _grouped(*_pairs(game))
    return _grouped(*_classes(game))


def _grouped(weight: FloatArray, low: FloatArray, high: FloatArray) -> Separations:
    """Pairs with the same range, merged."""
    low, high = np.minimum(low, 1.0), np.clip(high, low, 1.0)
    keep = weight > 0
    if np.array_equal(low, high):
        # one mass per pair: no need to sort pairs of numbers
        masses, group = distinct(low[keep])
        total = np.asarray(np.bincount(group, weights=weight[keep]), dtype=float)
        return Separations(total, masses, masses)
    bounds, group = np.unique(
        np.stack([low[keep], high[keep]], axis=1), axis=0, return_inverse=True
    )
    total = np.zeros(len(bounds))
    np.add.at(total, group.reshape(-1), weight[keep])
    return Separations(total, bounds[:, 0], bounds[:, 1])


def _listed(game: Classes) -> Separations:
    """Every set an attack can be right about, and for each pair the masses that separate it."""
    pi, sets = game.probabilities, game.sets
    m = len(pi)
    member = sets.members(m)
    attacks = np.zeros((1, m), dtype=bool)
    for x in np.unique(sets.fiber):
        options = member[sets.fiber == x]
        if not game.must(np.array([x])).any():
            options = np.vstack([options, np.zeros((1, m), dtype=bool)])
        attacks = (attacks[:, None, :] | options[None, :, :]).reshape(-1, m)
    mass = attacks @ pi
    groups: dict[bytes, tuple[FloatArray, float]] = {}
    for z in range(m):
        inside = attacks[:, z]
        for z0 in np.flatnonzero(~attacks[inside].all(axis=0)):
            masses = np.unique(mass[inside & ~attacks[:, z0]])
            key = masses.tobytes()
            groups[key] = masses, groups.get(key, (masses, 0.0))[1] + pi[z] * pi[z0]
    weight = np.array([w for _, w in groups.values()])
    listed = tuple(masses for masses, _ in groups.values())
    low = np.array([masses[0] for masses in listed])
    high = np.array([masses[-1] for masses in listed])
    return Separations(weight, low, high, listed)


Parts = tuple[FloatArray, FloatArray, FloatArray]


def _alone(pi: FloatArray, sets: Sets) -> Parts:
    """Nothing known, one class per set: the mass is that of z."""
    index = np.isfinite(sets.smallest(len(pi)))
    return (pi * complements(pi))[index], pi[index], pi[index]


def _everything(pi: FloatArray, sets: Sets) -> Parts:
    """Any set of guessable classes is possible: [pi_z, 1 - pi_z0].

    The upper end matters only below 1/2, so for one z0 at most.
    """
    guessable = np.isfinite(sets.smallest(len(pi)))
    weight, low, high = pi * complements(pi), pi, np.ones(len(pi))
    heavy = int(np.argmax(pi))
    if pi[heavy] > 0.5:
        towards = pi * pi[heavy]  # pairs with the heavy class outside
        towards[heavy] = 0.0
        weight = np.r_[np.maximum(weight - towards, 0.0), towards]
        low, high = np.r_[low, low], np.r_[high, high * complements(pi)[heavy]]
        guessable = np.r_[guessable, guessable]
    return weight[guessable], low[guessable], high[guessable]


def _classes(game: Classes) -> Parts:
    """One range per class z, whatever z0: wider than necessary, so valid."""
    pi, fiber, sets = game.probabilities, game.fiber, game.sets
    assert pi is not None and fiber is not None and sets is not None
    elsewhere = game.p_plus - tops(sets, int(fiber.max()) + 1)[fiber]
    low, high = sets.smallest(len(pi)), sets.largest(len(pi)) + elsewhere
    hit = np.isfinite(low)
    return (pi * complements(pi))[hit], low[hit], high[hit]


def _pairs(game: Classes) -> Parts:
    """One range per pair."""
    pi, fiber, sets = game.probabilities, game.fiber, game.sets
    assert pi is not None and fiber is not None and sets is not None
    m = len(pi)
    top = tops(sets, int(fiber.max()) + 1)
    same = fiber[:, None] == fiber[None, :]
    member = sets.members(m)
    low, high = np.full((m, m), np.inf), np.full((m, m), -np.inf)
    avoid = np.zeros(m)  # the heaviest set of its own fiber that lacks z0
    for inside, own, mass in zip(member, sets.fiber, sets.mass, strict=True):
        outside = np.flatnonzero((fiber == own) & ~inside)
        block = np.ix_(np.flatnonzero(inside), outside)
        low[block] = np.minimum(low[block], mass)
        high[block] = np.maximum(high[block], mass)
        avoid[outside] = np.maximum(avoid[outside], mass)
    elsewhere = game.p_plus - top[fiber]
    high += elsewhere[:, None]
    # in another fiber z0 is avoided by any guess that lacks it, or by passing
    far_low = np.broadcast_to(sets.smallest(m)[:, None], (m, m))
    far_high = (sets.largest(m) + elsewhere)[:, None] - (top[fiber] - avoid)[None, :]
    low = np.where(same, low, far_low)
    high = np.where(same, high, far_high)
    keep = np.isfinite(low)
    return np.outer(pi, pi)[keep], low[keep], np.maximum(high[keep], low[keep])


def share(groups: Separations, limit: int) -> Separations:
    """At most about `limit` groups; each range is rounded outwards to that of its neighbours."""
    if len(groups.weight) <= limit:
        return groups
    order = np.lexsort((groups.high, groups.low))
    begin = np.linspace(0, len(order), max(limit, 1), endpoint=False).astype(np.intp)
    return Separations(
        np.add.reduceat(groups.weight[order], begin),
        np.minimum.reduceat(groups.low[order], begin),
        np.maximum.reduceat(groups.high[order], begin),
    )
