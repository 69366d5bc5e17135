"""Compositions, exactly where possible: sufficient statistics and products of finite channels.

Parts that read the same value and are equal are reduced to what matters about all of them:
Gaussian noise to one Gaussian (precisions add), any finite channel to how often each output
occurred (`counted`; a unary encoding or ideal hashing bit by bit), other releases to themselves.
The product of finite channels is a finite channel. One part with continuous outputs is allowed: for
each output o of the others its own solver answers the same game, with records weighted by
``pi_z p(o|z)``; the prior that is subtracted stays that of the game. Anything else is estimated,
from counts where the parts are support mechanisms or add Laplace noise.

O(values x outputs) of the product, up to `MAX_ENTRIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.data.tables import codes, joint_codes
from dprad.errors import DpradError
from dprad.exact.channel import Law, sum_by_likelihood
from dprad.exact.integers import whole_channel
from dprad.exact.likelihood import ours
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling, Solution
from dprad.exact.stepwise import columns_of
from dprad.exact.support import chances, enumerated
from dprad.exact.tails import Tails
from dprad.exact.tally import Tally
from dprad.game.question import Posed
from dprad.mechanisms.additive import WholeNoise
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.categorical import Entries, Finite
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.exponential import CutLaplace, Exponential
from dprad.mechanisms.gaussian import Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.laplace import Laplace
from dprad.mechanisms.staircase import Staircase
from dprad.mechanisms.support import SupportMechanism
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.runtime.memory import block

# Most entries of a product, values x outputs.
MAX_ENTRIES = 2**22
# Most work where one part is continuous: outputs of the others x values^2, and outputs.
MAX_WORK, MAX_SOLVED = 2e7, 600

_METHOD = "sum over all combinations of outputs"

Solver = Callable[[Mechanism, Posed, Sampling], Solution]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A mechanism that is run several times on what it reads from each record."""

    mechanism: Mechanism
    read: Column
    times: int = 1


def factors(mechanism: Mechanism, read: Column) -> list[Factor]:
    """The parts of a composition, equal ones counted, Gaussian noise on the same value merged."""
    alike: dict[Any, list[Factor]] = {}  # by what they read
    for part in _parts(mechanism, read):
        place, points = codes(part.read)
        known = alike.setdefault((place.tobytes(), tuple(points.tolist())), [])
        same = [k for k, other in enumerate(known) if _same(other, part)]
        if same:
            times = known[same[0]].times + part.times
            known[same[0]] = replace(known[same[0]], times=times)
        else:
            known.append(part)
    result = []
    for known in alike.values():
        normal = [part for part in known if _plain_gaussian(part.mechanism)]
        result += [part for part in known if part not in normal]
        result += [replace(normal[0], mechanism=_merged(normal), times=1)] if normal else []
    return result


def _parts(mechanism: Mechanism, read: Column) -> list[Factor]:
    if not isinstance(mechanism, Composed):
        return [Factor(mechanism, read)]
    first, alike = mechanism.mechanisms[0], len(set(map(id, mechanism.mechanisms))) == 1
    if alike and read.dtype.names is None and not isinstance(first, Composed):
        return [Factor(first, read, len(mechanism.mechanisms))]
    pairs = zip(mechanism.mechanisms, mechanism.split(read), strict=True)
    return [factor for part, column in pairs for factor in _parts(part, column)]


def _same(one: Factor, other: Factor) -> bool:
    """Whether two parts that read the same are runs of the same mechanism."""
    a, b = one.mechanism, other.mechanism
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except ValueError:  # arrays inside
        return False


def _plain_gaussian(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, Gaussian) and mechanism.clamp is None


def _merged(parts: Sequence[Factor]) -> Gaussian:
    """One release that tells as much as all: the mean, weighted by precision."""
    sigmas: list[Any] = [(part.mechanism, part.times) for part in parts]
    least = min(noise.sigma for noise, _ in sigmas)
    precision = sum(times * (least / noise.sigma) ** 2 for noise, times in sigmas)
    noise = parts[0].mechanism
    assert isinstance(noise, Gaussian)
    return noise if precision == 1.0 else replace(noise, sigma=least / math.sqrt(precision))


# -- finite channels -------------------------------------------------------------------------------
Lazy = tuple[Entries, int]  # blocks of a channel, and its outputs


@singledispatch
def pieces(mechanism: Any, points: Column) -> list[Lazy] | None:  # noqa: ARG001
    """Independent finite channels from these values, ascending, that together tell as much as one
    output; None if outputs are continuous, or too many.
    """
    return None


@pieces.register
def _finite(mechanism: Finite, points: Column) -> list[Lazy] | None:
    return [(lambda rows, columns: mechanism.entries(points[rows], columns), mechanism.count)]


@pieces.register
def _exponential(mechanism: Exponential, points: Column) -> list[Lazy] | None:
    return _finite(mechanism.channel, points)


@pieces.register
def _grr(mechanism: GRR, points: Column) -> list[Lazy] | None:
    def entries(rows: Any, columns: slice) -> FloatArray:
        outputs = np.arange(columns.start, columns.stop)
        return np.exp(mechanism.log_likelihood(outputs, points[rows][:, None]))

    return [(entries, mechanism.size)]


@pieces.register
def _support(mechanism: SupportMechanism, points: Column) -> list[Lazy] | None:
    if not mechanism.independent:
        matrix = enumerated(mechanism)
        return None if matrix is None else [_dense(matrix[points])]
    own, other = chances(mechanism)
    if mechanism.size > 64:
        return None
    bits = [np.where(points == code, own, other) for code in range(mechanism.size)]
    return [_dense(np.stack([1.0 - p, p], axis=1)) for p in bits]


@pieces.register
def _whole(mechanism: WholeNoise, points: Column) -> list[Lazy] | None:
    try:
        return [whole_channel(mechanism, points)]
    except DpradError:  # too wide a range
        return None


@pieces.register(Staircase)
@pieces.register(Duchi)
@pieces.register(Piecewise)
@pieces.register(Hybrid)
def _steps(mechanism: Any, points: Column) -> list[Lazy] | None:
    return [columns_of(mechanism, points)]


def _dense(matrix: FloatArray) -> Lazy:
    return (lambda rows, columns: matrix[rows, columns]), matrix.shape[1]


def counted(matrix: FloatArray, times: int) -> FloatArray:
    """The channel (values x outputs) run `times` times, seen as how often each output occurred.

    One column for each of the C(K + times - 1, times) tables of counts. O(min(K, times)) per entry.
    """
    from scipy.special import gammaln, xlogy

    if times == 1:
        return matrix
    if times < matrix.shape[1]:
        return _listed(matrix, times)
    tables = _tables(matrix.shape[1], times)
    log = gammaln(times + 1) - gammaln(tables + 1.0).sum(axis=1)
    for output in range(matrix.shape[1]):
        log = log + xlogy(tables[:, output], matrix[:, output, None])
    return np.asarray(np.exp(log))


def _listed(matrix: FloatArray, times: int) -> FloatArray:
    """The same by lists of the outputs that occurred, in order: shorter if the runs are few."""
    last = np.arange(matrix.shape[1])
    channel, run, ways = matrix, np.ones(len(last)), np.ones(len(last))
    for k in range(2, times + 1):
        more = matrix.shape[1] - last
        begin = np.repeat(np.cumsum(more) - more, more)
        again = np.repeat(np.arange(len(last)), more)
        following = last[again] + np.arange(len(again)) - begin
        run = np.where(following == last[again], run[again] + 1, 1.0)
        ways = ways[again] * k / run
        channel, last = channel[:, again] * matrix[:, following], following
    return np.asarray(channel * ways)


def _tables(outputs: int, times: int) -> IntArray:
    """All ways to distribute `times` over the outputs, one per row."""
    rows = np.zeros((1, 0), dtype=np.intp)
    for _ in range(outputs - 1):
        left = times - rows.sum(axis=1)
        again = np.repeat(rows, left + 1, axis=0)
        begin = np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        rows = np.column_stack([again, np.arange(len(again)) - begin])
    return np.column_stack([rows, times - rows.sum(axis=1)])


def runs(mechanism: Mechanism, read: Column) -> int:
    """How many likelihoods a draw takes: one for parts that have counts, else about one per run."""
    total = 0
    for part in factors(mechanism, read):
        counts = _counts(part.mechanism, part.times, part.read)
        each = part.times if counts is None else 1
        total += each if not isinstance(counts, Tails) else each + counts.between
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """The product of finite channels: `matrix` (values x outputs), and the value of each record."""

    matrix: FloatArray
    place: IntArray


def product(parts: Sequence[Factor], pi: FloatArray) -> Product | None:
    """All parts as one channel; None if a part is continuous, or entries would be too many."""
    kept = np.flatnonzero(pi > 0)
    read = [codes(part.read[kept]) for part in parts]
    at, count = joint_codes([place for place, _ in read])
    first = np.empty(count, dtype=np.intp)
    first[at[::-1]] = np.arange(len(at))[::-1]
    channels: list[tuple[Lazy, int, IntArray]] = []
    entries = float(count)
    for part, (place, points) in zip(parts, read, strict=True):
        found = pieces(part.mechanism, points)
        if found is None:
            return None
        for lazy in found:
            entries *= math.comb(lazy[1] + part.times - 1, part.times)
            channels.append((lazy, part.times, place[first]))
    if entries > block(MAX_ENTRIES):
        return None
    matrix = np.ones((count, 1))
    for (entries_of, outputs), times, rows in channels:
        # the values may be a few of all codes
        channel = counted(np.asarray(entries_of(slice(None), slice(0, outputs))), times)[rows]
        matrix = (matrix[:, :, None] * channel[:, None, :]).reshape(count, -1)
    place = np.zeros(len(pi), dtype=np.intp)
    place[kept] = at
    return Product(matrix[:, matrix.any(axis=0)], place)


# -- the risk --------------------------------------------------------------------------------------
def solve_composed(
    mechanism: Composed, posed: Posed, sampling: Sampling, solve: Solver
) -> Solution:
    """The best attack on all parts together; `solve` answers for one mechanism."""
    if mechanism.costly or not mechanism.likelihood:
        return drawn([Factor(mechanism, posed.read)], posed, sampling)
    parts = factors(mechanism, posed.read)
    if len(parts) == 1 and parts[0].times == 1:
        return solve(parts[0].mechanism, Posed(posed.game, parts[0].read), sampling)
    smooth = [part for part in parts if isinstance(part.mechanism, (Laplace, CutLaplace, Gaussian))]
    finite = [part for part in parts if part not in smooth]
    if len(smooth) <= 1 and all(part.times == 1 for part in smooth):
        all_else = product(finite, posed.pi)
        if all_else is not None and not smooth:
            return _summed(all_else, posed)
        if all_else is not None:
            found = _conditionally(all_else, smooth[0], posed, sampling, solve)
            if found is not None:
                return found
    return drawn(parts, posed, sampling)


def _summed(joint: Product, posed: Posed) -> Solution:
    law = Law.table(joint.matrix)
    return sum_by_likelihood(law, posed.game, joint.place, posed.pi, len(joint.matrix), _METHOD)


def _conditionally(
    others: Product, line: Factor, posed: Posed, sampling: Sampling, solve: Solver
) -> Solution | None:
    """One solution for each output of the others, with records weighted by it."""
    game, outputs = posed.game, others.matrix.shape[1]
    points = len(np.unique(line.read[posed.pi > 0]))
    if outputs > MAX_SOLVED or outputs * float(points) ** 2 > MAX_WORK:
        return None
    rad = out = rero = low = high = 0.0
    method = ""
    for column in others.matrix.T:
        weighted = replace(game, pi=posed.pi * column[others.place])
        found = solve(line.mechanism, Posed(weighted, line.read), sampling)
        if found.kind != "exact":
            return None
        ends = found.interval or (found.rad, found.rad)
        rad, out, rero = rad + found.rad, out + found.success_out, rero + found.rero
        low, high, method = low + ends[0], high + ends[1], found.method
    return Solution(
        rad=rad,
        success_out=out,
        rero=rero,
        method=f"{_METHOD} but one part, which is solved {method}",
        interval=(low, high),
    )


# -- draws -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Together:
    """Factors and, for each, what it reads at every combination of values."""

    parts: list[tuple[Any, Column]]
    costly: bool
    width: int

    def sample(self, places: IntArray, rng: np.random.Generator) -> tuple[Any, ...]:
        return tuple(part.sample(values[places], rng) for part, values in self.parts)

    def log_likelihood(self, outputs: Any, places: IntArray) -> FloatArray:
        both = zip(self.parts, outputs, strict=True)
        terms = (part.log_likelihood(out, values[places]) for (part, values), out in both)
        return np.asarray(sum(terms))


@ours.register
def _all_ours(together: _Together) -> bool:
    return all(ours(part) for part, _ in together.parts)


def _counts(mechanism: Mechanism, times: int, values: Column) -> Tally | Tails | None:
    """What is drawn instead of equal runs one by one, if there is something."""
    return Tally.of(mechanism, times) or Tails.of(mechanism, times, values)


def drawn(parts: Sequence[Factor], posed: Posed, sampling: Sampling) -> Solution:
    """Posterior Monte Carlo; equal parts by counts, where these are all that matters."""
    kept = np.flatnonzero(posed.pi > 0)
    at, count = joint_codes([codes(part.read[kept])[0] for part in parts])
    first = np.empty(count, dtype=np.intp)
    first[at[::-1]] = kept[::-1]
    place = np.zeros(len(posed.pi), dtype=np.intp)
    place[kept] = at
    listed: list[tuple[Any, Column]] = []
    for part in parts:
        values = part.read[first]
        counts = _counts(part.mechanism, part.times, values)
        runs = [part.mechanism] * part.times if counts is None else [counts]
        listed += [(run, values) for run in runs]
    costly = any(part.mechanism.costly for part in parts)
    width = sum(part.mechanism.width for part in parts)
    return estimate(_Together(listed, costly, width), posed.game, place, posed.pi, sampling)
