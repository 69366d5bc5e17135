"""Which guesses are right about which target values: the success relation of a loss and its eta.

Single values, windows on a line (no pair is listed), or any relation (sparse, a block of rows at a
time). The losses themselves are in `model/losses.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, told
from dprad.game.sets import Relation, Sets, Singletons, Windows, starts
from dprad.model.losses import BLOCK_ENTRIES, LOSSES, Hits, Intervals, Pairs, matrix_of
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block


@dataclass(frozen=True, slots=True, eq=False)
class Success:
    """The success relation between target values and guesses.

    `signature` numbers the target values by the set of guesses that are right about them; `guess`
    is one of these for each signature. `sets` builds the sets over classes; None if each signature
    is hit only by its own guesses. `right` compares codes of targets and guesses; `weigh` maps the
    masses of the target values to the mass that each guess is right about.
    """

    signature: IntArray
    guessable: BoolArray
    guess: IntArray
    right: Callable[[IntArray, IntArray], BoolArray]
    weigh: Callable[[FloatArray], FloatArray]
    sets: Callable[[IntArray, IntArray, FloatArray], Sets] | None


def relate(threat: Threat, columns: tuple[str, ...], values: Any) -> Success:
    """The relation between these target values for a threat's loss and eta."""
    hits = _hits(threat, columns, values)
    if isinstance(hits, Intervals):
        return _line(hits.low, hits.high)
    if isinstance(hits, Pairs):
        return _general(hits.matrix)
    every = np.arange(len(values))
    return Success(every, np.ones(len(values), dtype=bool), every, np.equal, np.asarray, None)


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


def _line(low: IntArray, high: IntArray) -> Success:
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
        width = len(first)
        key = fiber * width + own
        pairs = np.stack([left, right], axis=1)
        windows, guess = np.unique(pairs, axis=0, return_index=True)
        rows: list[IntArray] = []
        many = max(1, block(BLOCK_ENTRIES) // len(windows))
        fibers = fiber[starts(fiber)]
        for begin in range(0, len(fibers), many):
            chunk = fibers[begin : begin + many, None]
            a = np.searchsorted(key, chunk * width + windows[:, 0])
            b = np.searchsorted(key, chunk * width + windows[:, 1])
            full = a < b
            bounds = np.stack([a[full], b[full]], axis=1)
            bounds, index = np.unique(bounds, axis=0, return_index=True)
            named = np.broadcast_to(guess, full.shape)[full][index]
            rows.append(np.column_stack([bounds, named]))
        a, b, named = np.concatenate(rows).T
        if np.all(b - a == 1):
            return Singletons.of(np.unique(a), fiber, mass, first[own])
        return Windows.of(a, b, fiber[a], mass, named)

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray((low[guesses] <= targets) & (targets < high[guesses]))

    def weigh(mass: FloatArray) -> FloatArray:
        total = np.r_[0.0, np.cumsum(mass)]
        return np.asarray(total[high] - total[low])

    return Success(signature, np.ones(len(first), dtype=bool), first, counts, weigh, sets)


def _general(matrix: Any) -> Success:
    """A sparse success relation, targets x guesses."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    rows: dict[bytes, int] = {}
    signature = np.empty(matrix.shape[0], dtype=np.intp)
    chosen: list[int] = []
    for i in range(matrix.shape[0]):
        row = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]].tobytes()
        if row not in rows:
            rows[row] = len(rows)
            chosen.append(i)
        signature[i] = rows[row]
    patterns = matrix[np.asarray(chosen)]  # one row per signature
    guessable = np.diff(patterns.indptr) > 0

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        from scipy import sparse

        mine = patterns[own].tocoo()  # classes x guesses
        key, row = np.unique(fiber[mine.row] * matrix.shape[1] + mine.col, return_inverse=True)
        member = sparse.csr_array((np.ones(len(row)), (row, mine.row)), shape=(len(key), len(mass)))
        if np.all(np.diff(member.indptr) == 1):
            return Singletons.of(np.unique(member.indices), fiber, mass, guess[own])
        return Relation.of(member, key // matrix.shape[1], mass, key % matrix.shape[1])

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray(matrix[targets, guesses], dtype=bool).reshape(-1)

    # any guess that is right about a signature suffices
    guess = np.full(len(chosen), -1, dtype=np.intp)
    guess[guessable] = patterns.indices[patterns.indptr[:-1][guessable]]
    return Success(signature, guessable, guess, counts, lambda mass: matrix.T @ mass, sets)


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
