"""Which guesses are right about which target values: the success relation of a loss and its eta.

Single values, windows on a line (no pair is listed), or any relation (sparse, a block of rows at a
time); of near places, pairs are listed if they fit into memory, else passed by where sums suffice.
The losses themselves are in `model/losses.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, told
from dprad.game.around import Around
from dprad.game.sets import Relation, Sets, Singletons, Windows, row_blocks, starts
from dprad.model.losses import (
    BLOCK_ENTRIES,
    LOSSES,
    Hits,
    Intervals,
    Pairs,
    affordable,
    matrix_of,
)
from dprad.model.near import Near
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray, distinct
from dprad.runtime.memory import block


@dataclass(frozen=True, slots=True, eq=False)
class Success:
    """The success relation between target values and guesses.

    `signature` numbers the target values by the set of guesses that are right about them; `guess`
    is one of these for each signature; the number after the last stands for whom nobody can guess.
    `sets` builds the sets over classes; None if each signature is hit only by its own guesses.
    `right` compares codes of targets and guesses; `luck` is the mass of the target values that each
    guess is right about; `spare` gives, for each fiber of classes (fibers and signatures, in
    order), a guess that is right about nobody there, or -1.
    """

    signature: IntArray
    guessable: BoolArray
    guess: IntArray
    right: Callable[[IntArray, IntArray], BoolArray]
    luck: FloatArray
    sets: Callable[[IntArray, IntArray, FloatArray], Sets] | None
    spare: Callable[[IntArray, IntArray], IntArray]


def relate(
    threat: Threat, columns: tuple[str, ...], values: Any, mass: FloatArray, *, listed: bool = True
) -> Success:
    """The relation between these target values, of this mass, for a threat's loss and eta; unless
    it must be `listed`, too many pairs of near places need not be.
    """
    hits = _hits(threat, columns, values)
    if isinstance(hits, Intervals):
        return _line(hits.low, hits.high, mass)
    if isinstance(hits, Pairs):
        return _general(hits.matrix, mass)
    if isinstance(hits, Near):
        try:
            return _general(hits.listed(affordable), mass, symmetric=True)
        except DpradError:
            if listed:
                raise
            return _passed(hits, mass)
    every, size = np.arange(len(values)), len(values)
    return Success(
        every, np.ones(size, dtype=bool), every, np.equal, mass, None,
        lambda fiber, own: _absent(fiber, own, size),
    )  # fmt: skip


def _hits(threat: Threat, columns: tuple[str, ...], values: Any) -> Hits:
    if isinstance(threat.loss, str):
        return LOSSES[threat.loss].hits(values, columns, threat.eta)
    if callable(threat.loss):
        return _evaluate(threat.loss, values, threat.eta)
    matrix = threat.loss
    if matrix.shape[0] != len(values):
        raise DpradError(
            f"loss as a matrix must have one row and column for each of the {len(values)} "
            f"target values, but has shape {matrix.shape}."
        )
    return Pairs(matrix)


def _line(low: IntArray, high: IntArray, mass: FloatArray) -> Success:
    """Windows on a line: guess g is right about the values low[g] .. high[g]-1."""
    # both ends increase with g, so the guesses that are right about value i are an interval too
    position = np.arange(len(low))
    pairs = np.stack(
        [np.searchsorted(high, position, "right"), np.searchsorted(low, position, "right")], axis=1
    )
    first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)[1:]
    signature = inverse.reshape(-1)
    # signatures low[g] .. high[g]-1, with values numbered by signature
    left = signature[low]
    right = signature[high - 1] + 1

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        width = len(first) + 1  # the last is nobody's
        key = fiber * width + own
        pairs = np.stack([left, right], axis=1)
        windows, guess = np.unique(pairs, axis=0, return_index=True)
        # what a window holds of a fiber changes where an end of it passes one of the classes
        begin, most = fiber[starts(fiber)], len(windows)
        passed = [np.searchsorted(end, own, "right") for end in windows.T]
        changed = [(fiber * most + at)[at < most] for at in passed]
        group, which = np.divmod(np.unique(np.concatenate([begin * most, *changed])), most)
        a, b = (np.searchsorted(key, group * width + end[which]) for end in windows.T)
        full = a < b
        a, b, which = a[full], b[full], which[full]
        new = np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])]
        a, b, named = a[new], b[new], guess[which[new]]
        if np.all(b - a == 1):
            return Singletons.of(np.unique(a), fiber, mass, np.r_[first, -1][own])
        return Windows.of(a, b, fiber[a], mass, named)

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray((low[guesses] <= targets) & (targets < high[guesses]))

    def spare(fiber: IntArray, own: IntArray) -> IntArray:
        # the first window that begins beyond a class, if it ends before the next
        begin = starts(fiber)
        ends = np.r_[begin[1:] - 1, len(fiber) - 1]
        after = np.r_[own[1:], len(first)]
        after[ends] = len(first)
        edge = np.r_[own, np.full(len(begin), -1)]
        after = np.r_[after, own[begin]]
        named = np.minimum(np.searchsorted(left, edge, "right"), len(left) - 1)
        free = (left[named] > edge) & (right[named] <= after)
        result = np.full(len(begin), -1, dtype=np.intp)
        place = np.r_[np.repeat(np.arange(len(begin)), ends - begin + 1), np.arange(len(begin))]
        result[place[free]] = named[free]
        return result

    ones, total = np.ones(len(first), dtype=bool), np.r_[0.0, np.cumsum(mass)]
    return Success(signature, ones, first, counts, total[high] - total[low], sets, spare)


def _general(matrix: Any, luck: FloatArray, *, symmetric: bool = False) -> Success:
    """A sparse success relation, targets x guesses."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    signature, chosen = _alike(matrix)
    # one row per signature
    patterns = matrix if len(chosen) == matrix.shape[0] else matrix[chosen]
    guessable = np.diff(patterns.indptr) > 0

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        from scipy import sparse

        inside = np.flatnonzero(own < len(chosen))  # the last is nobody's
        if fiber[0] == fiber[-1] and len(inside) == len(own):
            # one fiber: the relation itself, by guess
            if symmetric and len(own) == matrix.shape[0] and np.all(own == np.arange(len(own))):
                member = patterns
            else:
                member = patterns[own].T.tocsr()
            key = np.flatnonzero(np.diff(member.indptr))
            member = member if len(key) == member.shape[0] else member[key]
            key = fiber[0] * matrix.shape[1] + key
        else:
            mine = patterns[own[inside]].tocoo()  # classes x guesses
            mine.row = inside[mine.row]
            key, row = np.unique(fiber[mine.row] * matrix.shape[1] + mine.col, return_inverse=True)
            ones = np.ones(len(row), dtype=bool)
            member = sparse.csr_array((ones, (row, mine.row)), shape=(len(key), len(mass)))
        if np.all(np.diff(member.indptr) == 1):
            return Singletons.of(np.unique(member.indices), fiber, mass, np.r_[guess, -1][own])
        return Relation.of(member, key // matrix.shape[1], mass, key % matrix.shape[1])

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray(matrix[targets, guesses], dtype=bool).reshape(-1)

    # any guess that is right about a signature suffices
    guess = np.full(len(chosen), -1, dtype=np.intp)
    guess[guessable] = patterns.indices[patterns.indptr[:-1][guessable]]

    def spare(fiber: IntArray, own: IntArray) -> IntArray:
        mine = patterns[own].tocoo()
        every = np.unique(fiber[mine.row] * matrix.shape[1] + mine.col)
        named = _absent(every // matrix.shape[1], every % matrix.shape[1], matrix.shape[1])
        result = np.zeros(int(fiber[-1]) + 1, dtype=np.intp)  # where nothing is right, any guess is
        result[np.unique(every // matrix.shape[1])] = named
        return result

    return Success(signature, guessable, guess, counts, matrix.T @ luck, sets, spare)


def _passed(near: Near, mass: FloatArray) -> Success:
    """Near places whose pairs are not listed: where everybody is in one fiber, or alone in theirs.

    Signatures are told by fingerprints alone: sums of 128 random bits, one number per place, which
    are the same for two different sets of places with probability 2^-128.
    """
    size = len(mass)
    bits = np.random.default_rng(0).integers(2**64, size=(size, 2), dtype=np.uint64)
    prints, lowest, luck = near.fold((np.add, bits), (np.minimum, np.arange(size)), (np.add, mass))
    place = distinct(prints.view([("high", np.uint64), ("low", np.uint64)]).reshape(-1))[1]
    first = np.unique(place, return_index=True)[1][place]
    chosen, signature = np.unique(first, return_inverse=True)

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        alike = np.r_[chosen, -1][own]  # the last is nobody's
        return Around.of(near, alike, fiber, mass) or Singletons.of(
            np.flatnonzero(alike >= 0), fiber, mass, np.r_[lowest[chosen], -1][own]
        )

    def spare(fiber: IntArray, own: IntArray) -> IntArray:
        return _general(near.listed(affordable), luck, symmetric=True).spare(fiber, own)

    every = np.ones(len(chosen), dtype=bool)
    return Success(signature, every, lowest[chosen], near.are, luck, sets, spare)


def _alike(matrix: Any) -> tuple[IntArray, IntArray]:
    """Rows numbered by the columns they list, in order of appearance; the first row of each.

    Rows whose fingerprints (sums of random numbers, one per column) differ do differ. The others
    are compared.
    """
    size, ends = matrix.shape[0], matrix.indptr
    print_of = np.random.default_rng(0).integers(2**63, size=matrix.shape[1], dtype=np.uint64)
    prints = np.empty(size, dtype=np.uint64)
    for a, b in row_blocks(ends):
        part = np.cumsum(print_of[matrix.indices[ends[a] : ends[b]]], dtype=np.uint64)
        prints[a:b] = np.diff(np.r_[np.uint64(0), part][ends[a : b + 1] - ends[a]])
    place, many = np.unique(prints, return_inverse=True, return_counts=True)[1:]
    first = np.arange(size)
    rows: dict[bytes, int] = {}
    for i in np.flatnonzero(many[place] > 1).tolist():
        first[i] = rows.setdefault(matrix.indices[ends[i] : ends[i + 1]].tobytes(), i)
    chosen, signature = np.unique(first, return_inverse=True)
    return signature, chosen


def _absent(fiber: IntArray, own: IntArray, size: int) -> IntArray:
    """For each run of equal fibers the first number below `size` not among its own (ascending);
    -1 if all are there.
    """
    begin = starts(fiber)
    count = np.diff(np.r_[begin, len(fiber)])
    place = np.arange(len(fiber)) - np.repeat(begin, count)
    # ascending numbers: those before the first gap are at their own place
    first = np.minimum.reduceat(np.where(own > place, place, size), begin)
    first = np.minimum(first, count)
    return np.where(first < size, first, -1)


def _evaluate(loss: Callable[[Any, Any], Any], values: Any, eta: float) -> Pairs:
    """A callable loss as a sparse success relation."""
    size = len(values)
    step = max(1, block(BLOCK_ENTRIES) // size)

    def right(part: Any) -> Any:
        try:
            losses = np.asarray(loss(part, values))
        except Exception as error:
            raise DpradError(f"loss failed: {told(error)}.") from None
        if losses.shape != (len(part), size):
            raise DpradError(
                f"loss must return a matrix of shape ({len(part)}, {size}), one row for each "
                f"target and one column for each guess, but returned shape {losses.shape}."
            )
        if losses.dtype.kind not in "iufb" or np.isnan(losses).any():
            raise DpradError("loss must return numbers, but returned NaN or other values.")
        return losses <= eta

    return matrix_of((right(values[a : a + step]) for a in range(0, size, step)), size)
