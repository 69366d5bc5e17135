"""Channel: any mechanism with finitely many outputs, given as a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.categorical import Finite, categories
from dprad.model.guarantees import REPLACE_ONE, Guarantee, Profile, PureDP
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import block

# Entries compared at once.
BLOCK_ENTRIES = 2**17
# A row sum this close to one is a rounding error.
ROW_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Channel(Finite):
    """Any mechanism with finitely many outputs, as a matrix of probabilities.

    Parameters
    ----------
    matrix
        ``matrix[z, o]`` is the probability of output o given record z, with rows in the order of
        the support.

    Examples
    --------
    >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).guarantee.epsilon, 6)     # ln 3
    1.098612

    """

    matrix: FloatArray = field(repr=False)

    method: ClassVar = "sum over the channel"

    def __post_init__(self) -> None:
        try:
            matrix = np.asarray(self.matrix, dtype=float)
        except (TypeError, ValueError):
            raise DpradError("matrix must be a table of numbers.") from None
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise DpradError(
                "matrix must have one row per record and one column per output, but has shape "
                f"{matrix.shape}."
            )
        # by rows, to avoid a second matrix
        sums = matrix.sum(axis=1)
        least = matrix.min(axis=1)
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
        return np.asarray(self.matrix[rows, columns])

    @property
    def guarantee(self) -> Guarantee:
        """The profile of the matrix: pure DP if it has a finite epsilon, else pair by pair.
        O(m^2 K).
        """
        top, bottom = self.matrix.max(axis=0), self.matrix.min(axis=0)
        seen = top > 0
        if np.all(bottom[seen] > 0):
            ratio = float(np.max(np.log(top[seen]) - np.log(bottom[seen])))
            return PureDP(ratio, neighbours=REPLACE_ONE)

        def delta(epsilon: float) -> float:
            e = np.exp(epsilon)
            worst = 0.0
            step = max(1, block(BLOCK_ENTRIES) // self.matrix.shape[1])
            for a in range(0, self.size, step):
                scaled = e * self.matrix[a : a + step]
                for row in self.matrix:
                    excess = np.maximum(row - scaled, 0.0).sum(axis=1)
                    worst = max(worst, float(excess.max()))
            return min(1.0, worst)

        return Profile(delta, neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output per record, by inversion. O(K) once per distinct record, O(log K) per draw."""
        codes = categories(records, self.size, "Channel")
        u = rng.random(codes.shape)
        result = np.empty(codes.shape, dtype=np.intp)
        for code in np.unique(codes):
            here = codes == code
            steps = np.cumsum(self.matrix[code])
            last = int(np.flatnonzero(self.matrix[code])[-1])
            drawn = np.searchsorted(steps, u[here], "right")
            result[here] = np.minimum(drawn, last)
        return result

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; minus infinity where impossible."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.matrix[np.asarray(records), np.asarray(outputs)]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        return np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, *self.matrix[0, :2].tolist()))

    def __repr__(self) -> str:
        return f"Channel({self.matrix.shape[0]} records, {self.matrix.shape[1]} outputs)"

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Channel", "records": self.size, "outputs": int(self.matrix.shape[1])}
