"""Channel: any mechanism with finitely many outputs, given as a matrix, or as a file of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.categorical import Entries, Finite, categories
from dprad.mechanisms.stored import Stored
from dprad.model.guarantees import REPLACE_ONE, Guarantee, Profile, PureDP
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# Entries compared at once.
BLOCK_ENTRIES = 2**17
# A row sum this close to one is a rounding error.
ROW_TOLERANCE = 1e-9
# Differences of profiles that do not matter.
ROUNDING = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class Channel(Finite):
    """Any mechanism with finitely many outputs, as a matrix of probabilities.

    Parameters
    ----------
    matrix
        ``matrix[z, o]`` is the probability of output o given record z, with rows in the order of
        the support. Or the path of a NumPy file (``numpy.save``) of it, which may be larger than
        the memory: a part of its columns is read at a time.

    Examples
    --------
    >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).guarantee.epsilon, 6)     # ln 3
    1.098612

    """

    matrix: FloatArray = field(repr=False)
    _file: Stored | None = field(default=None, init=False, repr=False)

    method: ClassVar = "sum over the channel"

    def __post_init__(self) -> None:
        matrix: Any = self.matrix
        if isinstance(matrix, (str, os.PathLike)):
            object.__setattr__(self, "_file", Stored.of(matrix))
        try:
            matrix = np.asarray(matrix, dtype=float) if self._file is None else self._file.matrix
        except (TypeError, ValueError):
            raise DpradError("matrix must be a table of numbers.") from None
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise DpradError(
                "matrix must have one row per record and one column per output, but has shape "
                f"{matrix.shape}."
            )
        # by rows, to avoid a second matrix
        sums, least = self._file.rows() if self._file else (matrix.sum(axis=1), matrix.min(axis=1))
        bad = np.flatnonzero(~((least >= 0) & (np.abs(sums - 1.0) <= ROW_TOLERANCE)))
        if bad.size:
            row = int(bad[0])
            what = f"sums to {float(sums[row])!r}"
            if not least[row] >= 0:
                what = f"contains {float(least[row])!r}"
            raise DpradError(
                f"matrix must have rows of probabilities that sum to 1, but row {row} {what}. "
                "Rows are records, columns are outputs."
            )
        object.__setattr__(self, "matrix", matrix)

    def __reduce__(self) -> tuple[Any, ...]:
        """A file travels as its path."""
        return (Channel, (self.matrix,)) if self._file is None else (_opened, (self._file,))

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of records."""
        return int(self.matrix.shape[0])

    @property
    def count(self) -> int:
        """Number of outputs."""
        return int(self.matrix.shape[1])

    def entries(self, rows: slice | IntArray, columns: slice) -> FloatArray:
        """Entries of the matrix.

        Parameters
        ----------
        rows
            Codes of records.
        columns
            A slice of outputs.

        Returns
        -------
        ndarray
            Records x outputs.

        Examples
        --------
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).entries(slice(0, 1), slice(0, 2)).tolist()
        [[0.75, 0.25]]

        """
        file = self._file
        if file is None:
            return np.asarray(self.matrix[rows, columns])
        if isinstance(rows, slice):
            return file.block(rows, columns)
        file.check()
        return file.take(rows, columns)

    @property
    def light(self) -> bool:
        """A file is not sent."""
        return self._file is not None

    def part(self, columns: slice) -> Entries:
        """The entries of some outputs, which are then counted from 0; of a file, read once."""
        file = self._file
        some = self.matrix[:, columns] if file is None else file.block(slice(None), columns)
        return lambda rows, within: some[rows, within]

    @property
    def guarantee(self) -> Guarantee:
        """The profile of the matrix: pure DP if it has a finite epsilon, else that of the worst
        pair. O(m^2 K), and O(K) for each pair that is the worst somewhere.
        """
        matrix, file = self.matrix, self._file
        top, bottom = file.ends() if file else (matrix.max(axis=0), matrix.min(axis=0))
        seen = top > 0
        if np.all(bottom[seen] > 0):
            ratio = float(np.max(np.log(top[seen]) - np.log(bottom[seen])))
            return PureDP(ratio, neighbours=REPLACE_ONE)

        def delta(epsilon: float) -> float:
            return float(profile_of(file or matrix, np.array([epsilon]))[0])

        return _OfMatrix(delta, file or matrix, neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output per record, by inversion. O(K) once per distinct record, O(log K) per draw."""
        codes = categories(records, self.size, "Channel")
        u = rng.random(codes.shape)
        result = np.empty(codes.shape, dtype=np.intp)
        for code in np.unique(codes):
            here = codes == code
            row = self.entries(np.array([code]), slice(None))[0]
            steps, last = np.cumsum(row), int(np.flatnonzero(row)[-1])
            drawn = np.searchsorted(steps, u[here], "right")
            result[here] = np.minimum(drawn, last)
        return result

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; minus infinity where impossible."""
        records, outputs = np.asarray(records), np.asarray(outputs)
        if self._file is None:
            found = self.matrix[records, outputs]
        else:
            self._file.check()
            found = self._file.points(records, outputs)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        file = self._file or other._file
        if file is None or self.matrix.shape != other.matrix.shape:
            return file is None and np.array_equal(self.matrix, other.matrix)
        theirs = other if self._file else self
        return all(np.array_equal(some, theirs.entries(r, c)) for r, c, some in file.parts())

    def __hash__(self) -> int:
        return hash((self.matrix.shape, *self.entries(slice(0, 1), slice(0, 2))[0].tolist()))

    def __repr__(self) -> str:
        return f"Channel({self.matrix.shape[0]} records, {self.matrix.shape[1]} outputs)"

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Channel", "records": self.size, "outputs": int(self.matrix.shape[1])}


def _opened(file: Stored) -> Channel:
    """A channel whose rows were checked before."""
    file.check()
    channel = object.__new__(Channel)
    object.__setattr__(channel, "_file", file)
    object.__setattr__(channel, "matrix", file.matrix)
    return channel


@dataclass(frozen=True, eq=False, repr=False)
class _OfMatrix(Profile):
    """A profile that is read at many places together."""

    matrix: FloatArray | Stored

    def _read(self, epsilon: FloatArray) -> FloatArray:
        return np.minimum(profile_of(self.matrix, np.ravel(epsilon)).reshape(epsilon.shape), 1.0)


def profile_of(matrix: FloatArray | Stored, epsilon: FloatArray) -> FloatArray:
    """The greatest ``sum_o (p_o - e^epsilon q_o)_+`` of two rows, for each epsilon.

    As a function of e^epsilon that of each pair is convex, so between two places it lies below its
    chord, and that of the worst pair above its own tangents: pairs that cannot be the worst in
    between are dropped, and the rest is compared in the middle.
    """
    if isinstance(matrix, Stored):
        matrix.check()
    places, back = np.unique(epsilon, return_inverse=True)
    scale, most = np.exp(places), np.zeros(len(places))
    m, last = matrix.shape[0], len(places) - 1
    pair = np.flatnonzero(~np.eye(m, dtype=bool).reshape(-1))
    if not len(pair):
        return most[back]
    left, right = np.zeros(len(pair), dtype=np.intp), np.full(len(pair), last)
    at_left, at_right = (_excess(matrix, pair, scale[end]) for end in (left, right))
    while True:
        np.maximum.at(most, left, at_left[0])
        np.maximum.at(most, right, at_right[0])
        begin = np.flatnonzero(np.r_[True, left[1:] != left[:-1]])
        group = np.cumsum(np.r_[False, left[1:] != left[:-1]])
        kept = (right - left > 1) & _rivals(
            at_left, at_right, scale[left], scale[right], begin, group
        )
        if not kept.any():
            return most[back]
        pair, left, right = pair[kept], left[kept], right[kept]
        at_left, at_right = at_left[:, kept], at_right[:, kept]
        middle = (left + right) // 2
        here = _excess(matrix, pair, scale[middle])
        order = np.argsort(np.r_[left, middle], kind="stable")
        at_left = np.concatenate([at_left, here], axis=1)[:, order]
        at_right = np.concatenate([here, at_right], axis=1)[:, order]
        left, right = np.r_[left, middle][order], np.r_[middle, right][order]
        pair = np.r_[pair, pair][order]


def _rivals(
    at_left: FloatArray,
    at_right: FloatArray,
    s: FloatArray,
    t: FloatArray,
    begin: IntArray,
    group: IntArray,
) -> BoolArray:
    """Which pairs (columns: value and slope) may be the worst strictly between s and t."""
    best = [np.maximum.reduceat(end[0], begin)[group] for end in (at_left, at_right)]
    # of those that are the worst at an end, the least steep tangent there
    tangent = [
        np.maximum.reduceat(np.where(end[0] >= top, sign * end[1], -np.inf), begin)[group] * sign
        for end, top, sign in ((at_left, best[0], 1.0), (at_right, best[1], -1.0))
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (best[1] - tangent[1] * t - best[0] + tangent[0] * s) / (tangent[0] - tangent[1])
        share = np.clip(np.nan_to_num((cross - s) / (t - s), nan=0.0), 0.0, 1.0)
    apart = t - s
    floor = np.maximum(
        best[0] + tangent[0] * share * apart, best[1] - tangent[1] * (1 - share) * apart
    )
    chord = (1 - share) * at_left[0] + share * at_right[0]
    kept = chord > floor + ROUNDING
    number = np.arange(len(kept))
    for end, top, slope in zip((at_left, at_right), best, tangent, strict=True):
        # whose tangent it is stays
        own = np.where((end[0] >= top) & (end[1] == slope), number, len(number))
        kept[np.minimum.reduceat(own, begin)] = True
    return np.asarray(kept)


def _excess(matrix: FloatArray | Stored, pair: IntArray, scale: FloatArray) -> FloatArray:
    """Value and slope of pairs (numbers i m + j), each at its own scale."""
    i, j = np.divmod(pair, matrix.shape[0])
    found = np.empty((2, len(pair)))
    step = max(1, block(BLOCK_ENTRIES) // matrix.shape[1])
    for a in range(0, len(pair), step):
        some = slice(a, a + step)
        q = matrix[j[some]]
        excess = matrix[i[some]] - scale[some, None] * q
        found[0, some] = np.maximum(excess, 0.0).sum(axis=1)
        found[1, some] = -np.where(excess > 0, q, 0.0).sum(axis=1)
    return found
