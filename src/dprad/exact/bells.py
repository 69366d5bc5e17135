"""Discrete Gaussian noise: one class per success set, from the pieces of `heavier.py`.

pbar is a smooth function of the output, of which only what is near counts: it is summed at the
outputs, or at a few nodes of every half standard deviation, between which a polynomial gives it to
all digits (terms of a Chebyshev series of ``exp(z s)``, |z| < 4, fall as ``(z/2)^n / n!``). Every
piece gains a difference of tails of the noise, less a sum of pbar. The outermost outputs, which
stand for all beyond them, are summed by themselves.

O(m log m log K) for m values and K outputs, and some hundred terms of pbar per output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import chebyshev

from dprad.exact.channel import NORMALISED, TIE, Joint, sum_over_outputs
from dprad.exact.heavier import Bells, pieces
from dprad.exact.integers import outermost, whole_channel
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons
from dprad.mechanisms.gaussian import DiscreteGaussian
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray
from dprad.runtime.memory import block

# With so few values times outputs, all at once is faster.
SMALL = 2**18
# No value is less likely than this in pbar; in standard deviations, how far outputs are from some
# value (1e-18 of probability beyond), and how far values matter (less than 1e-20 of pbar beyond).
FAINT, NEAR, FAR = 1e-30, 9.0, 18.0
# Nodes of a stretch of outputs, and entries of a block.
NODES, BLOCK_ENTRIES = 24, 2**17
# Outputs whose sums are running sums.
ROW = 512
# Possible error of a sum of probabilities.
ROUNDING = 1e-13

_METHOD = "sum over whole numbers, by their best guesses"


def solve_bells(
    mechanism: DiscreteGaussian, game: Classes, values: FloatArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as values[z]; None if the game is of another kind, or
    small.
    """
    sets = game.sets
    if game.forced is not None or game.weighted or game.probabilities.max() > HEAVY:
        return None
    if not isinstance(sets, Singletons) or not len(sets.mass):
        return None
    weight, points = game.at_values(values, pi)
    if np.any(np.diff(weight.indptr)[sets.index] != 1):
        return None
    read = np.asarray(weight.sum(axis=0)).reshape(-1)
    along = Along.of(mechanism, points, read)
    if along is None:
        return None
    place = weight.indices[weight.indptr[sets.index]]
    fiber, x, mass = sets.fiber, along.points[place], sets.mass
    # a tie with passing is a guess; a pass if all is known
    rad, luck = along.gained(fiber, x, mass, TIE if game.membership else -TIE)
    hits = along.hits(fiber, x, mass)
    outer = np.asarray(weight @ along.ends)
    more = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, _METHOD)
    total = float(rad.sum()) + more.rad
    off = abs(along.total + float(outer.sum()) - 1.0)
    return Solution(
        rad=total,
        success_out=float(luck.sum()) + more.success_out,
        rero=hits + more.rero,
        method=_METHOD,
        interval=None if off <= NORMALISED else (total - off, total + off),
    )


def own_bells(
    mechanism: DiscreteGaussian, points: FloatArray, mass: FloatArray
) -> tuple[FloatArray, float] | None:
    """Own risks of values with these probabilities, and their possible error; None if few."""
    along = Along.of(mechanism, points, mass)
    if along is None:
        return None
    every = np.arange(len(points))
    rad = along.gained(every, along.points, np.ones(len(points)), 0.0)[0]
    apart = np.maximum(along.ends - mass @ along.ends, 0.0).sum(axis=1)
    off = abs(along.total + float((mass @ along.ends).sum()) - 1.0)
    return rad + apart, off + ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """Outputs near some value, without the outermost two: their places, relative to the first of
    the points, the log of pbar over the height of the noise, and pbar. `ends` is the probability of
    the outermost two, by value.
    """

    mechanism: DiscreteGaussian
    points: FloatArray
    ends: FloatArray
    at: FloatArray
    log_pbar: FloatArray
    pbar: _Sums

    @classmethod
    def of(cls, mechanism: DiscreteGaussian, points: FloatArray, read: FloatArray) -> Along | None:
        """None if there are few values and outputs, or none between the outermost two."""
        low, high = outermost(mechanism, points)
        if high - low < 2 or len(points) * (high - low) <= SMALL:
            return None
        likelihood, count = whole_channel(mechanism, points)
        everyone = slice(0, len(points))
        ends = [likelihood(everyone, slice(k, k + 1)) for k in (0, count - 1)]
        points = points - points[0]
        begin, end = _near(points, float(int(NEAR * mechanism.sigma)), low, high)
        if not len(begin):
            return None
        relative = _mixture(points, np.maximum(read, FAINT), mechanism.sigma, begin, end)
        free = replace(mechanism, clamp=None)
        height = float(np.exp(free.log_likelihood(0.0, 0.0)))
        return cls(
            mechanism, points, np.concatenate(ends, axis=1), _ranges(begin, end), np.log(relative),
            _Sums.of(height * relative),
        )  # fmt: skip

    @property
    def total(self) -> float:
        """The probability of all these outputs."""
        return float(self.pbar.upto[-1])

    def gained(
        self, fiber: IntArray, x: FloatArray, mass: FloatArray, least: float
    ) -> tuple[FloatArray, FloatArray]:
        """What each guess gains where it is the best of its fiber, and its luck there."""
        fibers = np.unique(fiber)
        none = np.zeros(len(fibers))
        fiber, x, mass = np.r_[fiber, fibers], np.r_[x, none], np.r_[mass, none]
        own, others, guess = self._sums(self.log_pbar, fiber, x, mass, least)
        gain, luck = np.zeros(len(x)), np.zeros(len(x))
        np.add.at(gain, guess, mass[guess] * (own - others))
        np.add.at(luck, guess, mass[guess] * others)
        return gain[: -len(none)], luck[: -len(none)]

    def hits(self, fiber: IntArray, x: FloatArray, mass: FloatArray) -> float:
        """How often the likeliest guesses of each fiber are right."""
        own, _, guess = self._sums(None, fiber, x, mass, 0.0)
        return float(mass[guess] @ own)

    def _sums(
        self,
        log_pbar: FloatArray | None,
        fiber: IntArray,
        x: FloatArray,
        mass: FloatArray,
        least: float,
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Of all pieces the probability with their guess, with anybody, and the guess."""
        order = np.lexsort((mass, fiber))
        bells = Bells(
            self.at, log_pbar, self.mechanism.sigma, fiber[order], x[order], mass[order], least
        )
        found = pieces(bells)
        guess = order[found.guess]
        low, high = self.at[found.begin] - x[guess], self.at[found.end - 1] + 1.0 - x[guess]
        # the small tails, which have all their digits
        low, high = np.where(high <= 0, 1.0 - high, low), np.where(high <= 0, 1.0 - low, high)
        own = self.mechanism.above(low) - self.mechanism.above(high)
        return own, self.pbar.between(found.begin, found.end), guess


def _near(
    points: FloatArray, reach: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Ranges of whole numbers strictly between the two ends, within reach of a point."""
    apart = np.flatnonzero(np.diff(points) > 2 * reach + 1)
    begin = np.maximum(points[np.r_[0, apart + 1]] - reach, low + 1)
    end = np.minimum(points[np.r_[apart, len(points) - 1]] + reach + 1, high)
    return begin[begin < end], end[begin < end]


def _ranges(begin: FloatArray, end: FloatArray) -> FloatArray:
    """All whole numbers of these ranges."""
    size = (end - begin).astype(np.intp)
    ahead = np.cumsum(size) - size
    return np.asarray(np.arange(size.sum()) + np.repeat(begin - ahead, size))


def _mixture(
    points: FloatArray, read: FloatArray, sigma: float, begin: FloatArray, end: FloatArray
) -> FloatArray:
    """The sum of bells, each with its probability, at all whole numbers of these ranges."""
    width = int(sigma / 2)
    if width <= NODES:
        at = _ranges(begin, end)
        parts = [at[a : a + NODES] for a in range(0, len(at), NODES)]
        return np.concatenate([_bells(part, points, read, sigma) for part in parts])
    nodes = chebyshev.chebpts1(NODES)
    terms = chebyshev.chebvander(nodes, NODES - 1) * (2.0 / NODES)
    terms[:, 0] /= 2
    places = (2 * np.arange(width) + 1) / width - 1  # of outputs, from -1 to 1
    between, found = chebyshev.chebvander(places, NODES - 1) @ terms.T, []
    for first, last in zip(begin.tolist(), end.tolist(), strict=True):
        for a in np.arange(first, last, width):
            at = a - 0.5 + (nodes + 1) / 2 * width
            found.append((between @ _bells(at, points, read, sigma))[: int(last - a)])
    return np.concatenate(found)


def _bells(at: FloatArray, points: FloatArray, read: FloatArray, sigma: float) -> FloatArray:
    """The same at few places, ascending: a sum over the values near them."""
    a, b = np.searchsorted(points, [at[0] - FAR * sigma, at[-1] + FAR * sigma])
    step, total = max(1, block(BLOCK_ENTRIES) // len(at)), np.zeros(len(at))
    for k in range(a, b, step):
        part = slice(k, min(k + step, b))
        total += np.exp(((at[:, None] - points[part]) / sigma) ** 2 / -2) @ read[part]
    return total


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Running sums within rows of numbers, and of the rows: short ones lose fewer digits."""

    within: FloatArray
    upto: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> _Sums:
        """O(K)."""
        rows = np.pad(values, (0, ROW - len(values) % ROW)).reshape(-1, ROW)
        within = np.cumsum(rows, axis=1) - rows
        return cls(within.reshape(-1), np.r_[0.0, np.cumsum(rows.sum(axis=1))])

    def between(self, begin: IntArray, end: IntArray) -> FloatArray:
        """Sums of values begin .. end-1."""
        inner = self.within[end] - self.within[begin]
        return np.asarray(self.upto[end // ROW] - self.upto[begin // ROW] + inner)
