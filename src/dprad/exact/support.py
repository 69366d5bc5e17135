"""Support mechanisms in closed form: any prior, any knowledge, one class per success set.

Given an output with support set A, a class inside gains ``pi_c (P_in - P_out)(1 - rho(A))``, one
outside loses; rho is the prior of the values read. So in each fiber the best guess is the likeliest
class whose value is in A, and with classes in order, n_c and a_c the number and mass (under rho) of
the values ahead of c in its fiber, h_k = Pr[z in A, k given others not | z],

    RAD* = (1 - P_out/P_in) sum_c pi_c ( a_c h_n + (1 - rho_c - a_c) h_{n+1} ) .

Each class that can be guessed must read one value. Of the classes in a fiber that read the same
value only the likeliest can ever be the best guess. O(m log m).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons, starts
from dprad.mechanisms.support import SupportMechanism
from dprad.numerics.arrays import FloatArray, IntArray, distinct

METHOD = "closed form for support mechanisms"


def closed_form(
    mechanism: SupportMechanism, game: Classes, codes: IntArray, pi: FloatArray
) -> Solution | None:
    """The solution, or None if a guess reads several values, a set has several classes, or passing
    is not allowed.
    """
    sets, kept = game.sets, np.flatnonzero(pi > 0)
    if not isinstance(sets, Singletons) or game.forced is not None:
        return None
    named = np.zeros(len(game.probabilities), dtype=bool)
    named[sets.index] = True
    read = kept[named[game.class_of[kept]]]
    pairs = distinct(game.class_of[read] * mechanism.size + codes[read])[0]
    if len(pairs) != len(sets.index):
        return None
    rho = np.zeros(mechanism.size)
    np.add.at(rho, codes[kept], pi[kept])
    positive = int(np.count_nonzero(rho))
    if len(sets.index) == 0:
        return Solution(rad=0.0, success_out=0.0, rero=0.0, method=METHOD)

    # classes that can be guessed, likeliest first within each fiber, each value once
    order = sets.index
    value_of = np.zeros(len(game.probabilities), dtype=np.intp)
    value_of[pairs // mechanism.size] = pairs % mechanism.size
    fiber, mass, value = game.fiber[order], game.probabilities[order], value_of[order]
    first = np.sort(np.unique(fiber * mechanism.size + value, return_index=True)[1])
    fiber, mass, value = fiber[first], mass[first], value[first]
    begin = starts(fiber)
    run = np.repeat(begin, np.diff(np.r_[begin, len(fiber)]))
    ahead = np.arange(len(fiber)) - run
    total = np.r_[0.0, np.cumsum(rho[value])]
    ahead_mass = np.clip(total[:-1] - total[run], 0.0, 1.0)

    law = mechanism.supports
    longest = int(ahead.max()) + 1
    hit, miss = law.hit(longest), law.miss(max(longest, positive) - 1)
    lift = float(-np.expm1(-law.log_ratio))
    rest = _rest(rho, value, run)
    rad = lift * float(mass @ (ahead_mass * hit[ahead] + rest * hit[ahead + 1]))

    # how often the attack is right: the class is in, nothing ahead of it is
    inside = float(mass @ hit[ahead])
    nobody = float(miss[positive - 1])  # no value of positive probability is in the support
    if lift == 0.0:
        success_in = 0.0 if game.membership else game.p_plus
    elif game.membership:
        # if all values are in, nothing is learnt, and a tie is a pass
        success_in = inside - float(mass.sum()) * law.full(positive - 1)
    else:
        success_in = inside + nobody * game.p_plus

    # the guess that is right most often: the likeliest inside, or the likeliest outside
    top = mass[run]
    with np.errstate(over="ignore"):
        beats = mass * np.exp(min(law.log_ratio, 700.0)) > top
    named = np.add.reduceat(np.where(beats, mass * hit[ahead], 0.0), begin)
    many = np.add.reduceat(beats.astype(np.intp), begin)
    # none of the first `many` classes is in: the first of all is named anyway
    silent = np.where(many > 0, miss[np.maximum(many, 1) - 1], 1.0)
    rero = float(np.sum(named + mass[begin] * silent))
    return Solution(rad=rad, success_out=success_in - rad, rero=rero, method=METHOD)


def _rest(rho: FloatArray, value: IntArray, run: IntArray) -> FloatArray:
    """Mass of all other values except those ahead, where one value may have nearly all."""
    heavy = int(np.argmax(rho))
    light = rho.copy()
    light[heavy] = 0.0
    upto = np.r_[0.0, np.cumsum(light[value])]
    seen = np.r_[0, np.cumsum(value == heavy)]
    # including itself; the heavy value remains unless it is this one or ahead
    left = light.sum() - (upto[1:] - upto[run])
    return np.asarray(np.clip(left + rho[heavy] * (seen[1:] == seen[run]), 0.0, 1.0))


# Most subsets times values enumerated if no closed form applies.
MAX_ENTRIES = 2**23


def chances(mechanism: SupportMechanism) -> tuple[float, float]:
    """Of independent memberships: the chance that the value itself, and that another, is in."""
    law = mechanism.supports
    own, both = law.full(0), law.full(1)
    if own > 0:
        return own, both / own  # not 1 minus the chance that it is out: it may be tiny
    miss = law.miss(1)
    return own, 1.0 - float(miss[1] / miss[0])


def enumerated(mechanism: SupportMechanism) -> FloatArray | None:
    """The channel over all support sets, values x sets; None if there are too many.

    Supports are exchangeable: all sets of one size are equally likely, given z inside or outside.
    O(m 2^m), or O(m C(m, w)) where the size is fixed.
    """
    m, law = mechanism.size, mechanism.supports
    subset = mechanism.members
    if subset is None and not mechanism.independent:
        return None  # exchangeable, but how sets of each size fall is not declared
    sets = 2**m if subset is None else math.comb(m, subset)
    if m > 64 or m * sets > MAX_ENTRIES:
        return None
    if subset is None:
        member = (np.arange(2**m)[None, :] >> np.arange(m)[:, None]) & 1 == 1
        # independent bits: own in or out, others in with chance q
        p, q = chances(mechanism)
        others = member.sum(axis=0) - member
        rest = q**others * (1.0 - q) ** (m - 1 - others)
        return np.asarray(np.where(member, p, 1.0 - p) * rest)
    chosen = np.array(list(itertools.combinations(range(m), subset)))
    member = np.zeros((m, len(chosen)), dtype=bool)
    member[chosen, np.arange(len(chosen))[:, None]] = True
    p = float(law.hit(0)[0])
    inside, outside = p / math.comb(m - 1, subset - 1), 0.0
    if subset < m:
        outside = (1.0 - p) / math.comb(m - 1, subset)
    return np.where(member, inside, outside)
