"""The own risk of one person (Proposition I): how far their output is from that of anybody.

    RAD_z = TV( P_z, pbar ) ,        pbar = sum_u pi_u P_u ,

for every knowledge and every loss under which z can be named: an attacker who is after z alone
names it on a set of outputs or passes. So it depends only on what is read from z, and it is found
once for each distinct value. From a promise alone: at most ``(1 - pi_z) TV``, and that is attained.

Support mechanisms: ``(1 - pi_z)`` times the total variation of two records, exactly (the outputs
whose support contains z tell it from all others at once). Finite channels: a sum over the outputs.
Laplace and Gaussian noise: intervals of outputs on which z gains (`apart.py` for many values).
Otherwise the family's solver answers a game in which only z counts, or the promise must do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact import solve
from dprad.exact.apart import own_normal
from dprad.exact.bells import own_bells
from dprad.exact.branching import scan
from dprad.exact.channel import ROUNDING, Law, from_mean
from dprad.exact.envelope import WHOLE, Steps
from dprad.exact.gaining import gaining
from dprad.exact.hadamard import own_hadamard
from dprad.exact.integers import whole_channel
from dprad.exact.laplace import FAR, FEW, own_risks_along
from dprad.exact.products import Factor, factors, product
from dprad.exact.solution import Sampling
from dprad.exact.stepwise import columns_of, zones_of
from dprad.exact.support import MAX_ENTRIES
from dprad.exact.tables import as_line, as_unary, drawn
from dprad.exact.zones import own_zones
from dprad.game.game import Classes
from dprad.game.question import Posed
from dprad.game.sets import Singletons
from dprad.mechanisms.additive import WholeNoise
from dprad.mechanisms.attributes.smp import SMP
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.categorical import Entries, Finite
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.exponential import Exponential
from dprad.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.listed import Listed
from dprad.mechanisms.staircase import Staircase
from dprad.mechanisms.support import SupportMechanism
from dprad.mechanisms.tables.published import Published
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import Column, FloatArray, IntArray, complements, distinct
from dprad.runtime.progress import quietly, tell

# Most values that are solved one by one: by a solver, by draws, and on a line.
MANY, DRAWN, SOLVED = 96, 24, 256
# Of a composition: fewest draws for one value, and those for all in terms of one estimate.
FEWEST, SHARED = 2_000, 4


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The own risk of every record, by what is read from it.

    `place` is the value of each record; `rad`, `low` and `high` belong to the values; `low` and
    `high` hold with the requested confidence, for all values at once, if `kind` is "estimate".
    """

    place: Column
    rad: FloatArray
    low: FloatArray
    high: FloatArray
    kind: str

    @classmethod
    def exactly(cls, rad: FloatArray, error: float = 0.0) -> Own:
        """Risks that are known up to rounding, of the values in order."""
        low, high = np.clip(rad - error, 0.0, 1.0), np.clip(rad + error, 0.0, 1.0)
        return cls(np.arange(len(rad)), rad, low, high, "exact")


def own_risks(mechanism: Mechanism, read: Column, pi: FloatArray, sampling: Sampling) -> Own:
    """Own risks where record z, of probability pi[z], is read as read[z].

    O(values x outputs) for channels, values times the cost of the solver otherwise.
    """
    kept = np.flatnonzero(pi > 0)
    points, at = distinct(read[kept])
    mass = np.minimum(np.bincount(at, weights=pi[kept], minlength=len(points)), 1.0)
    place = np.full(len(pi), -1, dtype=np.intp)
    place[kept] = at
    if len(points) == 1:
        return replace(Own.exactly(np.zeros(1)), place=place)
    found = of_values(mechanism, points, mass, sampling)
    rest = complements(mass)
    low, high = np.minimum(found.low, rest), np.minimum(found.high, rest)
    return replace(found, place=place, rad=np.clip(found.rad, low, high), low=low, high=high)


@singledispatch
def of_values(mechanism: Any, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    """Own risks of these values, ascending, with these probabilities."""
    if mechanism.costly or len(points) > (DRAWN if isinstance(mechanism, Composed) else MANY):
        return promised(mechanism, mass)
    return _each(mechanism, points, mass, sampling)


def promised(mechanism: Mechanism, mass: FloatArray) -> Own:
    """What the promise allows."""
    high = promised_tv(mechanism) * complements(mass)
    return Own(np.arange(len(mass)), high, np.zeros(len(mass)), high, "upper-bound")


def promise_of(mechanism: Mechanism) -> Guarantee | None:
    """The promise of a mechanism; None if there is none, or too little noise to state it."""
    try:
        return mechanism.guarantee
    except DpradError:
        return None


def promised_tv(mechanism: Mechanism) -> float:
    """The total variation that the promise allows between two people; 1 if there is none."""
    promise = promise_of(mechanism)
    return 1.0 if promise is None else promise.replace_one().tv


def _each(mechanism: Any, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    """A game for each value, in which only that one counts."""
    rest = complements(mass)
    alone, every = np.zeros(1, dtype=np.intp), np.arange(len(mass))
    trials = sampling.trials
    if isinstance(mechanism, Composed):
        trials = max(min(trials, FEWEST), min(trials, SHARED * trials // len(mass)))
    confidence = 1.0 - (1.0 - sampling.confidence) / len(mass)
    sampling = replace(sampling, trials=trials, confidence=confidence, aim=None)
    rows = []
    for k, share in enumerate(mass.tolist()):
        game = Classes(
            unlike=share * float(rest[k]),
            p_plus=share,
            p_minus=0.0,
            least=share,
            most=share,
            nothing_known=True,
            everything_known=False,
            membership=False,
            singletons=True,
            share=share,
            pi=mass,
            probabilities=np.array([share, float(rest[k])]),
            fiber=np.zeros(2, dtype=np.intp),
            sets=Singletons(alone, alone, mass[k : k + 1], alone),
            class_of=(every != k).astype(np.intp),
        )
        with quietly():
            found = solve(mechanism, Posed(game, points), sampling)
        tell("people", k + 1, len(mass))
        low, high = found.interval or (found.rad, found.rad)
        rows.append((found.rad / share, low / share, high / share, found.kind))
    rad, low, high = np.array([row[:3] for row in rows]).T
    kind = "estimate" if any(row[3] == "estimate" for row in rows) else "exact"
    return Own(every, rad, low, high, kind)


# -- noise on a line -----------------------------------------------------------------------------
@of_values.register
def _laplace(mechanism: Laplace, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    # values lie within a clamp, and beyond them all outputs say the same
    x = mechanism.scaled(points)
    x = x - x[0]
    if x[-1] <= FAR:
        return Own.exactly(own_risks_along(x, mass, Steps()), ROUNDING * len(x))
    return _spaced(x, lambda some: (_laplace_tv(x, mass, some), 0.0), lambda d: -np.expm1(-d / 2))


@of_values.register
def _geometric(mechanism: Geometric, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    x = (points - points[0]) * mechanism.rate
    if not 0 < mechanism.rate < FEW or x[-1] > FAR:
        return _whole(mechanism, points, mass, sampling)
    return Own.exactly(own_risks_along(x, mass, Steps(mechanism.rate)), WHOLE + ROUNDING * len(x))


@of_values.register
def _gaussian(mechanism: Gaussian, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    if len(points) > (SOLVED if mechanism.clamp is None else MANY):
        found = own_normal(mechanism, points, mass)
        if found is not None:
            return Own.exactly(*found)
    if mechanism.clamp is not None:
        return of_values.dispatch(object)(mechanism, points, mass, sampling)
    from scipy.special import erf

    with np.errstate(over="ignore"):
        x = (points - points[0]) / mechanism.sigma
    if not np.isfinite(x[-1]):
        return promised(mechanism, mass)

    def apart(distance: FloatArray) -> FloatArray:
        return np.asarray(erf(distance / np.sqrt(8.0)))

    # very many values in pbar: neighbours stand together at their mean
    cell = np.floor((x - x[0]) / x[-1] * SOLVED * (1 - ROUNDING)).astype(np.intp)
    cell = np.arange(len(x)) if len(x) <= SOLVED else distinct(cell)[1]
    total: FloatArray = np.bincount(cell, weights=mass).astype(float)
    centre = np.bincount(cell, weights=mass * x) / total
    moved = float(mass @ apart(np.abs(x - centre[cell]))) if len(x) > SOLVED else 0.0
    return _spaced(x, lambda some: (_gaussian_tv(x[some], centre, total), moved), apart)


def _spaced(
    x: FloatArray,
    solved: Callable[[IntArray], tuple[FloatArray, float]],
    apart: Callable[[FloatArray], FloatArray],
) -> Own:
    """All values, or some of them (risks and an error), and bounds for those in between: the own
    risks of two values differ by no more than their outputs do, ``apart(distance)``.
    """
    every = np.arange(len(x))
    if len(x) <= SOLVED:
        return Own.exactly(solved(every)[0], ROUNDING * len(x))
    some = np.unique(np.linspace(0, len(x) - 1, SOLVED // 2).astype(np.intp))
    rad, error = solved(some)
    right = np.searchsorted(some, every)
    left = right - (some[right] > every)
    far = [apart(np.abs(x - x[some[side]])) for side in (left, right)]
    error += ROUNDING * len(x)
    high = np.minimum(rad[left] + far[0], rad[right] + far[1]) + error
    low = np.maximum(rad[left] - far[0], rad[right] - far[1]) - error
    return Own(every, high, np.maximum(low, 0.0), high, "upper-bound")


def _gaussian_tv(values: FloatArray, x: FloatArray, mass: FloatArray) -> FloatArray:
    own, others = gaining(values, x, mass)
    return own - others


def _laplace_tv(x: FloatArray, mass: FloatArray, some: IntArray) -> FloatArray:
    """Closed form in every gap: there all densities are multiples of e^t and e^-t. O(m) a value."""
    gap = np.diff(x)
    left, right = scan(mass, x), scan(mass[::-1], -x[::-1])[::-1]
    result = np.empty(len(some))
    for i, k in enumerate(some):
        own = np.exp(-np.abs(x - x[k]))
        ends = max(own[0] - right[0], 0.0) + max(own[-1] - left[-1], 0.0)
        # gaps to the right of the value, and those to the left, seen from their other end
        near = np.r_[own[k:-1] - left[k:-1], (own[1 : k + 1] - right[1 : k + 1])]
        away, width = np.r_[right[k + 1 :], left[:k]], np.r_[gap[k:], gap[:k]]
        with np.errstate(divide="ignore", invalid="ignore"):
            until = (width + np.log(np.maximum(near, 0.0) / away)) / 2
        until = np.clip(np.nan_to_num(until, nan=0.0, posinf=np.inf), 0.0, width)
        gained = near * -np.expm1(-until) - away * (np.exp(until - width) - np.exp(-width))
        result[i] = (ends + float(np.maximum(gained, 0.0).sum())) / 2
    return result


# -- finitely many outputs -----------------------------------------------------------------------
@of_values.register
def _support(
    mechanism: SupportMechanism, points: Column, mass: FloatArray, sampling: Sampling
) -> Own:
    law = mechanism.supports
    between = float(-np.expm1(-law.log_ratio)) * float(law.hit(1)[1])
    return Own.exactly(between * complements(mass))


@of_values.register
def _finite(mechanism: Finite, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    def part_of(columns: slice) -> Entries:
        entries = mechanism.part(columns)
        return lambda rows, some: entries(points[rows], some)

    return Own.exactly(*from_mean(Law(mechanism.count, part_of, mechanism.light), mass))


@of_values.register
def _listed(mechanism: Listed, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    if mechanism.alike is not None:
        return of_values(mechanism.alike, points, mass, sampling)
    if mechanism.outcomes * len(points) <= MAX_ENTRIES:
        return Own.exactly(*from_mean(Law.table(mechanism.matrix(points)), mass))
    if mechanism.pair_tv is None:
        return promised(mechanism, mass)
    # pbar is a mixture: no farther away than the average of the others
    high = np.minimum(mechanism.pair_tv, promised_tv(mechanism)) * complements(mass)
    return Own(np.arange(len(mass)), high, np.zeros(len(mass)), high, "upper-bound")


@of_values.register
def _one_of_many(mechanism: SMP, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    """The output names the attribute: an average."""
    values = mechanism.values(points)
    found = [own_risks(p, values[:, j], mass, sampling) for j, p in enumerate(mechanism.parts)]
    rad, low, high = (
        np.asarray(np.mean([getattr(own, name)[own.place] for own in found], axis=0))
        for name in ("rad", "low", "high")
    )
    kinds = {own.kind for own in found}
    kind = next((k for k in ("upper-bound", "estimate") if k in kinds), "exact")
    return Own(np.arange(len(mass)), rad, low, high, kind)


@of_values.register
def _hadamard(
    mechanism: HadamardResponse, points: Column, mass: FloatArray, sampling: Sampling
) -> Own:
    return Own.exactly(own_hadamard(mechanism, points, mass), ROUNDING)


@of_values.register
def _exponential(
    mechanism: Exponential, points: Column, mass: FloatArray, sampling: Sampling
) -> Own:
    return _finite(mechanism.channel, points, mass, sampling)


@of_values.register
def _whole(mechanism: WholeNoise, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    return Own.exactly(*from_mean(Law.of(*whole_channel(mechanism, points)), mass))


@of_values.register(DiscreteGaussian)
def _bells(mechanism: Any, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    found = own_bells(mechanism, points, mass)
    return _whole(mechanism, points, mass, sampling) if found is None else Own.exactly(*found)


@of_values.register(Staircase)
@of_values.register(Duchi)
@of_values.register(Piecewise)
@of_values.register(Hybrid)
def _steps(mechanism: Any, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    zones = zones_of(mechanism, points)
    if zones is None:
        return Own.exactly(*from_mean(Law.of(*columns_of(mechanism, points)), mass))
    return Own.exactly(*own_zones(zones, mass))


@of_values.register
def _composed(mechanism: Composed, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    if mechanism.costly or not mechanism.likelihood:
        return promised(mechanism, mass)
    parts = factors(mechanism, points)
    if len(parts) == 1 and parts[0].times == 1:
        return _one(parts[0], points, mass, sampling)
    joint = product(parts, mass)
    if joint is not None:
        return Own.exactly(*from_mean(Law.table(joint.matrix[joint.place]), mass))
    return of_values.dispatch(object)(mechanism, points, mass, sampling)


def _one(part: Factor, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    """A composition that comes down to one mechanism, which reads each point as something."""
    read, at = distinct(part.read)
    if len(read) == 1:
        return Own.exactly(np.zeros(len(points)))
    found = of_values(part.mechanism, read, np.bincount(at, weights=mass).astype(float), sampling)
    return replace(found, place=np.arange(len(points)), rad=found.rad[at], low=found.low[at],
                   high=found.high[at])  # fmt: skip


@of_values.register
def _tables(mechanism: Published, points: Column, mass: FloatArray, sampling: Sampling) -> Own:
    if mechanism.shown:
        found = of_values(replace(mechanism, shown=0.0), points, mass, sampling)
        told, rest = mechanism.shown, complements(mass)
        mean, most = (x + told * (rest - x) for x in (found.rad, found.high))
        kind = "estimate" if found.kind == "estimate" else "upper-bound"
        return replace(found, rad=mean, high=most, kind=kind)
    if mechanism.silent:
        return Own.exactly(np.zeros(len(points)))
    simple = as_line(mechanism) or as_unary(mechanism)
    if simple is not None:
        alone, values = simple
        return _one(Factor(alone, values[points]), points, mass, sampling)
    rad, low, high = drawn(mechanism, points, mass, sampling)
    found = promised(mechanism, mass)
    high = np.minimum(high, found.high)
    rad, low = np.minimum(rad, high), np.minimum(low, high)
    return replace(found, rad=rad, low=low, high=high, kind="estimate")
