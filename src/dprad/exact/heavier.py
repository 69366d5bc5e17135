"""Equal bells on a line: where along the outputs each guess is the best of its fiber.

A guess at class c, of mass w_c at x_c, gains ``w_c (p_c - pbar)`` at an output t, where p_c is a
bell ``exp(-(t - x_c)^2 / (2 sigma^2))`` and pbar a mixture of such bells. Of two guesses the
heavier one, c, is ahead of d on one interval, and x_c lies in it: divided by ``exp(-t^2 / (2
sigma^2))``, the difference is a sum of exponentials ``a_k exp(x_k t / sigma^2)`` whose factors are
negative but for that of x_c. Their signs change twice at most, so the difference has at most two
zeros (Descartes' rule of signs for exponentials). At x_c no bell is higher than c's own. A pass is
a guess of mass zero, and hits are gains without pbar.

So the outputs of a fiber are pieces, each with one best guess. Light and heavy halves of the
guesses are merged: of every overlap of two pieces the heavier guess has what lies between its two
ends, one on each side of x_c. Whole numbers: two bisections each, all fibers together
O(m log m log K) for m guesses and K outputs at worst; the fewer guesses are the best somewhere, the
faster. Other outputs: `normal.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from dprad.exact.channel import TIE
from dprad.game.sets import starts
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# Parts of pieces that are searched together.
BLOCK_ENTRIES = 2**16


class Guesses(Protocol):
    """Guesses by fiber, lightest first, along outputs from `low` to `high`."""

    @property
    def fiber(self) -> IntArray:
        """The fiber of each guess."""

    @property
    def low(self) -> Any:
        """Where outputs begin."""

    @property
    def high(self) -> Any:
        """Where they end."""

    def ends(self, heavy: IntArray, light: IntArray, begin: Any, end: Any) -> tuple[Any, Any]:
        """From where to where, between begin and end, the heavier guess is ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class Bells:
    """The same at the outputs `at`, ascending, by their numbers.

    `log_pbar` is relative to the height of a bell; None if hits are compared. Bells are `wide`.
    A guess gains this share (`least`) of its mass times pbar, or it is a pass.
    """

    at: FloatArray
    log_pbar: FloatArray | None
    wide: float
    fiber: IntArray
    x: FloatArray
    mass: FloatArray
    least: float = 0.0
    low: ClassVar[int] = 0

    @property
    def high(self) -> int:
        """How many outputs there are."""
        return len(self.at)

    def ends(
        self, heavy: IntArray, light: IntArray, begin: IntArray, end: IntArray
    ) -> tuple[IntArray, IntArray]:
        """See `Guesses`."""
        middle = np.clip(np.searchsorted(self.at, self.x[heavy]), begin, end)
        left = middle - _won(self, heavy, light, middle - 1, middle - begin, -1)
        return left, middle + _won(self, heavy, light, middle, end - middle, 1)

    def ahead(self, heavy: IntArray, light: IntArray, output: IntArray) -> BoolArray:
        """Whether the heavier guess is better at this output, or as good."""
        t, more, less = self.at[output], self.mass[heavy], self.mass[light]
        own, other = ((t - self.x[one]) ** 2 / (2 * self.wide**2) for one in (heavy, light))
        with np.errstate(divide="ignore"):
            nearer = np.log(more) - np.log(less) >= own - other
        if self.log_pbar is None:
            return np.asarray(nearer)
        log_pbar = self.log_pbar[output]
        lead = more * np.exp(-own - log_pbar) - less * np.exp(-other - log_pbar) - (more - less)
        least = np.where(less == 0, self.least, -TIE) * more
        # equal guesses: what they would name differs by place only
        return np.asarray(np.where(more - less > TIE * more, lead >= least, nearer))


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Outputs from begin to before end have this best guess."""

    guess: IntArray
    begin: Any
    end: Any


def pieces(guesses: Guesses) -> Pieces:
    """Of all fibers, one after the other."""
    many, first = len(guesses.fiber), starts(guesses.fiber)
    size = np.diff(np.r_[first, many])
    head = np.repeat(first, size)
    rank, size = np.arange(many) - head, np.repeat(size, size)
    guess, begin = np.arange(many), np.full(many, guesses.low)
    level = 0
    while 1 << level < int(size.max(initial=1)):
        group = rank >> (level + 1) << (level + 1)
        pair = (group + (1 << level) < size)[guess]
        merged = _merged(guesses, guess[pair], begin[pair], head + group, rank >> level & 1)
        guess, begin = np.r_[guess[~pair], merged[0]], np.r_[begin[~pair], merged[1]]
        level += 1
    order = np.lexsort((begin, head[guess]))
    guess, begin = guess[order], begin[order]
    end = np.r_[begin[1:], guesses.high]
    end[end == guesses.low] = guesses.high
    return Pieces(guess, begin, end)


def _merged(
    guesses: Guesses, guess: IntArray, begin: Any, group: IntArray, half: IntArray
) -> tuple[IntArray, Any]:
    """Pieces of the light (0) and the heavy (1) half of each group, as pieces of both."""
    order = np.lexsort((begin, group[guess]))
    guess, begin = guess[order], begin[order]
    owner, number = group[guess], np.arange(len(guess))
    light, heavy = (
        np.maximum.accumulate(np.where(half[guess] == side, number, 0)) for side in (0, 1)
    )
    same = owner[1:] == owner[:-1]
    last = np.r_[~same | (begin[1:] != begin[:-1]), True]
    light, heavy, begin, owner = guess[light[last]], guess[heavy[last]], begin[last], owner[last]
    end = np.r_[begin[1:], guesses.high]
    end[np.flatnonzero(owner[1:] != owner[:-1])] = guesses.high
    left, right = guesses.ends(heavy, light, begin, end)
    guess = np.stack([light, heavy, light], axis=1).reshape(-1)
    edge = np.stack([begin, left, right, end], axis=1)
    some = (edge[:, 1:] > edge[:, :-1]).reshape(-1)
    guess, begin = guess[some], edge[:, :-1].reshape(-1)[some]
    kept = np.r_[True, (guess[1:] != guess[:-1]) | (begin[1:] == guesses.low)]
    return guess[kept], begin[kept]


def _won(
    bells: Bells, heavy: IntArray, light: IntArray, first: IntArray, length: IntArray, way: int
) -> IntArray:
    """On how many of so many outputs, from the first one on, the heavier guess is ahead."""
    found = np.zeros(len(length), dtype=np.intp)
    step = block(BLOCK_ENTRIES)
    for a in range(0, len(length), step):
        part = slice(a, a + step)
        found[part] = _bisected(bells, heavy[part], light[part], first[part], length[part], way)
    return found


def _bisected(
    bells: Bells, heavy: IntArray, light: IntArray, first: IntArray, length: IntArray, way: int
) -> IntArray:
    won = np.zeros(len(length), dtype=np.intp)
    some = np.flatnonzero(length > 0)
    far = first[some] + way * (length[some] - 1)
    every = bells.ahead(heavy[some], light[some], far)
    won[some[every]] = length[some[every]]
    some = some[~every]
    # ahead on `low` outputs at least, on fewer than `high`
    low, high = np.zeros(len(some), dtype=np.intp), length[some]
    while len(some):
        open_ = high - low > 1
        won[some[~open_]] = low[~open_]
        some, low, high = some[open_], low[open_], high[open_]
        middle = (low + high) // 2
        yes = bells.ahead(heavy[some], light[some], first[some] + way * (middle - 1))
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return won
