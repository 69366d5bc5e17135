"""One published table: in which cell a person is, what they add there, and how far it can move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprad.data.numbers import not_numbers
from dprad.data.tables import codes, joint_codes
from dprad.errors import DpradError, column, record
from dprad.model.guarantees import ADD_REMOVE
from dprad.model.guarantees.neighbours import Neighbours
from dprad.model.predicates import holds
from dprad.model.priors import Prior
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray

Moves = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Counts of people, or sums of a column, in the cells of some columns or bins.

    `by` are the columns that make a cell, none for a single number; `of` is the column that is
    summed, clamped to `clamp`, or cut at `edges`; `where` says who takes part.
    """

    by: tuple[str, ...] = ()
    of: str | None = None
    clamp: tuple[float, float] | None = None
    edges: tuple[float, ...] | None = None
    where: str | None = None

    def moves(self, neighbours: Neighbours) -> Moves:
        """By how much cells can move: of two people in different cells (or one who is not counted),
        and of two in the same cell. Every two people move it by no more than one of these.
        """
        low, high = (1.0, 1.0) if self.clamp is None else self.clamp
        most = max(abs(low), abs(high))
        alike = (high - low,) if high > low else ()
        if neighbours == ADD_REMOVE:
            return (most,), (most,)
        if self.by or len(self.edges or ()) > 2:
            return (most, most), alike
        some = self.where is not None or self.edges is not None  # who may be in no cell
        return ((most,) if some else alike), alike

    def cells(self, prior: Prior) -> tuple[IntArray, int]:
        """The cell of each record, -1 for those in none; and the number of cells."""
        if self.edges is not None:
            values = self._numbers(prior)
            cell = np.searchsorted(self.edges, values, "right") - 1
            last = len(self.edges) - 2
            cell = np.where(values == self.edges[-1], last, cell)
            cell, count = np.where((cell < 0) | (cell > last), -1, cell), last + 1
        elif self.by:
            names = [column(c, prior.columns, name="by") for c in self.by]
            cell, count = joint_codes([prior.column(c) for c in names])
        else:
            cell, count = np.zeros(len(prior.table), dtype=np.intp), 1
        inside = self.counted(prior)
        return np.where(inside, cell, -1).astype(np.intp), count

    def counted(self, prior: Prior) -> BoolArray:
        """Who takes part."""
        if self.where is None:
            return np.ones(len(prior.table), dtype=bool)
        try:
            return holds(self.where, prior)
        except DpradError as error:
            raise DpradError(str(error).replace("query", "where", 1)) from None

    def values(self, prior: Prior, whole: bool) -> FloatArray:
        """What each record adds to its cell."""
        if self.clamp is None:
            return np.ones(len(prior.table))
        values = np.clip(self._numbers(prior), *self.clamp)
        broken = np.flatnonzero(values != np.rint(values))
        if whole and len(broken):
            which = record(values[broken[0]], int(broken[0]) + 1)
            raise DpradError(
                f"whole noise sums whole numbers, but {self.of!r} of record {which} is not one."
            )
        return np.asarray(values)

    def _numbers(self, prior: Prior) -> FloatArray:
        assert self.of is not None
        cells = prior.column(column(self.of, prior.columns, name="of"))
        said = not_numbers(codes(cells)[1].tolist(), self.of)
        if said:
            raise DpradError(f"of must name a column of numbers, but {said}")
        return np.asarray(cells, dtype=float)
