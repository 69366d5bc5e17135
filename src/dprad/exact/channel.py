"""Theorem 2 of the paper for finitely many outputs: an exact sum.

    RAD* = sum_o sum_x max_{g or pass} sum_{z in S(g) & fiber x} pi_z ( p(o|z) - pbar(o) )

The outputs are taken in fixed parts, which workers can share. A part is processed in blocks: by
rows if one running maximum per output suffices (nothing known, one class per set), else by columns;
no array as large as the channel is made. Cost: O(m K) for one class per set and for windows,
O(members of the success relation x K) otherwise; memory for a few blocks of `BLOCK_ENTRIES`
numbers, and for a part of a channel that is stored in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons, starts
from dprad.mechanisms.categorical import Entries, shifted
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray, gains
from dprad.runtime.memory import allowed, block, given, limit
from dprad.runtime.progress import tell
from dprad.runtime.workers import LEAST, elsewhere, hands, stream

# Entries of a block: small enough for the cache, large enough to amortise the calls.
BLOCK_ENTRIES = 2**17
# Fewest rows of a block of a running maximum.
ROWS = 8
# Entries of the blocks from which pbar is summed.
PBAR_ENTRIES = 2**20
# Most entries of a part, and the bytes of memory for each.
PART_ENTRIES, PART_BYTES = 2**24, 256
# So many workers may share a memory limit and find the same digits.
SHARERS = 8
# Probabilities that sum to one within this are exact.
NORMALISED = 1e-11
# Gains that differ by less than this share of what they are made of are ties.
TIE = 1e-12
# Possible error of a sum of probabilities.
ROUNDING = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A channel: `part` returns the entries of some of its outputs. It is light if it can be sent
    to other machines.
    """

    outputs: int
    part: Callable[[slice], Entries]
    light: bool

    @classmethod
    def of(cls, entries: Entries, outputs: int) -> Law:
        """A channel that is computed on demand."""
        return cls(outputs, lambda part: shifted(entries, part.start), light=True)

    @classmethod
    def table(cls, matrix: FloatArray) -> Law:
        """A channel in memory."""
        return cls(matrix.shape[1], lambda part: lambda r, c: matrix[:, part][r, c], light=False)


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Joint probabilities of class and output: all of `pbar`, blocks of pi_c p(o|c) on demand."""

    pbar: FloatArray
    block: Callable[[slice | IntArray, slice], FloatArray]


def shares(
    game: Classes, codes: IntArray, pi: FloatArray, size: int
) -> tuple[Any, IntArray | None]:
    """Sparse joint probabilities, classes x codes; and the code of each class if it has only
    one.
    """
    from scipy import sparse

    kept = np.flatnonzero(game.class_of >= 0)
    joint = sparse.csr_array(
        (pi[kept], (game.class_of[kept], codes[kept])), shape=(len(game.probabilities), size)
    )
    joint.sum_duplicates()
    single = bool(np.all(np.diff(joint.indptr) == 1))
    return joint, joint.indices.astype(np.intp) if single else None


def sum_by_likelihood(
    law: Law, game: Classes, codes: IntArray, pi: FloatArray, size: int, method: str
) -> Solution:
    """The exact sum for a channel with `size` rows."""
    joint, code_of = shares(game, codes, pi, size)
    mass = game.probabilities[:, None]
    everyone = slice(0, size)
    in_order = code_of is not None and np.array_equal(code_of, np.arange(size))
    read = np.bincount(codes, weights=pi, minlength=size)

    def part_of(part: slice) -> Joint:
        entries, width = law.part(part), part.stop - part.start
        step = max(1, block(PBAR_ENTRIES) // size)
        pbar = [
            read @ entries(everyone, slice(a, min(a + step, width))) for a in range(0, width, step)
        ]

        def joint_of(rows: slice | IntArray, columns: slice) -> FloatArray:
            if code_of is None:
                return np.asarray(joint[rows] @ entries(everyone, columns))
            return np.asarray(mass[rows] * entries(rows if in_order else code_of[rows], columns))

        return Joint(np.concatenate(pbar), joint_of)

    return sum_in_parts(part_of, law.outputs, size, game, method, light=law.light)


def sum_in_parts(
    part_of: Callable[[slice], Joint],
    outputs: int,
    size: int,
    game: Classes,
    method: str,
    *,
    light: bool,
) -> Solution:
    """The exact sum, a part of the outputs at a time."""

    def solved(part: slice) -> FloatArray:
        joint = part_of(part)
        found = sum_over_outputs(joint, game, method)
        return np.array([found.rad, found.success_out, found.rero, joint.pbar.sum()])

    totals = np.zeros(4)
    for found in by_parts(solved, outputs, size, light=light):
        totals += found
    return totalled(totals, method)


def totalled(totals: FloatArray, method: str) -> Solution:
    """What RAD, luck, hits and pbar of all outputs say."""
    rad, success_out, rero, total = totals.tolist()
    solution = Solution(rad=rad, success_out=success_out, rero=rero, method=method)
    off = abs(total - 1.0)
    if off <= NORMALISED:
        return solution
    # any excess or deficit may have been gained or lost
    return replace(solution, interval=(rad - off, rad + off))


def from_mean(law: Law, mass: FloatArray) -> tuple[FloatArray, float]:
    """Total variation between each row and their mean, and the error of it."""
    everyone = slice(0, len(mass))

    def compared(part: slice) -> FloatArray:
        entries, width = law.part(part), part.stop - part.start
        sums = np.zeros((2, len(mass)))
        step = max(1, block(4 * BLOCK_ENTRIES) // len(mass))
        for a in range(0, width, step):
            some = entries(everyone, slice(a, min(a + step, width)))
            apart = some - mass @ some
            sums += np.maximum(apart, 0.0).sum(axis=1), np.maximum(-apart, 0.0).sum(axis=1)
        return sums

    sums = np.zeros((2, len(mass)))
    for found in by_parts(compared, law.outputs, len(mass), light=law.light):
        sums += found
    # both are equal if all probabilities sum to one
    return sums.max(axis=0), float(np.abs(sums[0] - sums[1]).max()) + ROUNDING


def by_parts(
    solved: Callable[[slice], FloatArray], outputs: int, size: int, *, light: bool
) -> Iterator[FloatArray]:
    """What is found for each part of the outputs, in order. The parts depend on the memory limit,
    not on the number of workers.
    """
    wide = max(1, min(PART_ENTRIES, int(allowed() / PART_BYTES)) // size)
    parts = [(slice(a, min(a + wide, outputs)),) for a in range(0, outputs, wide)]
    workers = hands() if light or not elsewhere() else 1
    share = None if given() is None else max(LEAST, allowed() / max(SHARERS, workers))

    def alike(part: slice) -> FloatArray:
        with limit(share):  # blocks do not depend on the number of workers, so sums do not
            return solved(part)

    found = stream(alike, parts, min(workers, len(parts)), threads=True)
    for (part,), result in zip(parts, found, strict=True):
        yield result
        tell("outputs", part.stop, outputs)


def sum_over_outputs(joint: Joint, game: Classes, method: str) -> Solution:
    """The exact sum, by whichever order of blocks fits the success sets."""
    sets = game.sets
    if len(sets.mass) == 0 or len(joint.pbar) == 0:
        return Solution(rad=0.0, success_out=0.0, rero=0.0, method=method)
    plain = game.nothing_known and not game.membership and game.probabilities.max() <= HEAVY
    if isinstance(sets, Singletons) and plain and game.forced is None:
        totals = _by_rows(joint, sets)
    else:
        totals = _by_columns(joint, game)
    rad, success_out, rero = totals
    return Solution(rad=rad, success_out=success_out, rero=rero, method=method)


def _by_rows(joint: Joint, sets: Singletons) -> tuple[float, float, float]:
    """One fiber, one class per set: a running maximum, likeliest class first."""
    in_order = bool(np.all(np.diff(sets.index) == 1)) and sets.index[0] == 0
    totals = np.zeros(3)
    # all outputs at once if a block can hold some rows of them
    wide = max(1, block(BLOCK_ENTRIES) // ROWS)
    for k in range(0, len(joint.pbar), wide):
        columns = slice(k, min(k + wide, len(joint.pbar)))
        totals += _running(joint, sets, columns, in_order)
    rad, luck, hits = totals.tolist()
    return rad, luck, hits


def nearly(best: FloatArray, mass: Any, pbar: FloatArray) -> FloatArray:
    """How far behind the best gain a tie may be: gains are differences of joint probabilities that
    exceed them by mass times pbar. Where all sets are rare, so are all gains.
    """
    return np.asarray(TIE * (np.abs(best) + mass * pbar))


def _running(joint: Joint, sets: Singletons, columns: slice, in_order: bool) -> FloatArray:
    pbar, heaviest = joint.pbar[columns], float(sets.mass.max())
    best, hit = np.full(len(pbar), -np.inf), np.zeros(len(pbar))
    luck = np.zeros(len(pbar))  # the mass of the guessed class
    step = max(1, block(BLOCK_ENTRIES) // len(pbar))
    for a in range(0, len(sets.mass), step):
        b = min(a + step, len(sets.mass))
        mass = sets.mass[a:b]
        gain = joint.block(slice(a, b) if in_order else sets.index[a:b], columns)
        np.maximum(hit, gain.max(axis=0), out=hit)
        gain -= mass[:, None] * pbar
        top = gain.max(axis=0)
        near = nearly(top, heaviest, pbar)
        better = np.flatnonzero(top > best + near)
        if len(better):
            tied = gain[:, better] >= (top - near)[better]
            luck[better] = mass[tied.argmax(axis=0)]
        np.maximum(best, top, out=best)
    # a tie with passing is a guess
    luck[best < -nearly(best, heaviest, pbar)] = 0.0
    return np.array([np.maximum(best, 0.0).sum(), luck @ pbar, hit.sum()])


def _by_columns(joint: Joint, game: Classes) -> tuple[float, float, float]:
    """Any sets: all classes of a few outputs."""
    pi, sets = game.probabilities, game.sets
    begin = starts(sets.fiber)
    run = np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, len(sets.fiber)]))
    classes = slice(0, len(pi))
    must, size = game.must(sets.fiber[begin]), made_of(game, begin)
    rad = success_out = rero = 0.0
    step = max(1, block(4 * BLOCK_ENTRIES) // max(len(pi), len(sets.mass)))
    for a in range(0, len(joint.pbar), step):
        columns = slice(a, min(a + step, len(joint.pbar)))
        pbar = joint.pbar[columns]
        weight = joint.block(classes, columns)
        rero += float(_best(sets.sums(weight), begin).sum())
        gain = sets.sums(gains(weight, pi, pbar))
        best = _best(gain, begin)
        rad += float(np.maximum(best, 0.0, where=~must, out=best.copy()).sum())
        near = nearly(best, size, pbar)
        if len(begin) == len(gain):
            # one set per fiber; a tie with passing is a pass if all is known
            chosen = np.broadcast_to(sets.mass[:, None], gain.shape)
        else:
            floor = best - near
            tied = gain >= (floor if len(begin) == 1 else floor[run])
            # the likeliest of the guesses that tie
            chosen = _best(np.where(tied, sets.mass[:, None], 0.0), begin)
        guess = best > near if game.membership else best >= -near
        success_out += float(np.sum(np.where(guess | must, chosen, 0.0) @ pbar))
    return rad, success_out, rero


def made_of(game: Classes, begin: IntArray) -> FloatArray:
    """What the gains of each fiber are made of (`gains`): its heaviest set, or whatever is not the
    class that has nearly all probability.
    """
    pi = game.probabilities
    heavy = int(np.argmax(pi))
    most = np.maximum.reduceat(game.sets.mass, begin)
    if pi[heavy] > HEAVY:
        most = np.minimum(most, pi[:heavy].sum() + pi[heavy + 1 :].sum())
    return np.asarray(most[:, None])


def _best(values: FloatArray, begin: IntArray) -> FloatArray:
    """The greatest of each run of rows."""
    if len(begin) == 1:
        return np.asarray(values.max(axis=0, keepdims=True))
    if len(begin) == len(values):
        return values
    return np.maximum.reduceat(values, begin, axis=0)
