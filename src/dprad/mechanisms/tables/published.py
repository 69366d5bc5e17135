"""A table release for known records: noise on every cell, and one person's part in it.

The attacker knows everybody else and subtracts them, so an output is the noise, plus the person's
value in one cell of every table. The log-likelihood of a record is a sum over tables of a log-ratio
that depends only on its cell and value there: it is computed once per cell and spread over the
records. O(cells + tables x different records) per output, and no array of records x cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.tables import joint_codes
from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.tables.noise import Noise
from dprad.mechanisms.tables.table import Table
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.numerics.arrays import Column, FloatArray, IntArray, distinct

_ASSUMED = (
    "The attacker subtracts everybody else from the tables; one who knows less of the others gains "
    "no more. Rounding or clamping what is published does not raise the risk."
)
_KEYS = (
    "The names of the cells come from the data. Nothing is assumed about the others: a cell counts "
    "as shared with them or as the person's own, whichever is worse."
)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One table for known records, published `times` times.

    `place` says for every record (later: for every different one) which of the contributions
    ``(cell, value)`` it makes; the last of them is none, with value 0.
    """

    noise: Noise
    times: int
    cells: int
    cell: IntArray
    value: FloatArray
    place: IntArray

    @classmethod
    def of(cls, table: Table, noise: Noise, times: int, prior: Prior) -> Part:
        """The contributions of all records of a prior. O(m log m)."""
        cell, cells = table.cells(prior)
        value = table.values(prior, noise.whole)
        inside = np.flatnonzero((cell >= 0) & (value != 0))
        if noise.kind == "gaussian" and times > 1:
            noise, times = noise.of_mean(times), 1
        place = np.empty(len(cell), dtype=np.intp)
        if table.clamp is None:
            made, at = distinct(cell[inside])
            worth = np.ones(len(made))
        else:
            level, rank = distinct(value[inside])
            key, at = distinct(cell[inside] * max(len(level), 1) + rank)
            made, worth = key // max(len(level), 1), level[key % max(len(level), 1)]
        place[:] = len(made)
        place[inside] = at
        return cls(noise, times, cells, np.r_[made, 0], np.r_[worth, 0.0], place)

    @property
    def width(self) -> int:
        """Numbers that are published."""
        return self.times * self.cells

    def sample(self, kinds: IntArray, rng: np.random.Generator) -> FloatArray:
        """Rows of all cells, for these different records."""
        rows = self.noise.sample((len(kinds), self.times, self.cells), rng)
        at = self.place[kinds]
        rows[np.arange(len(kinds)), :, self.cell[at]] += self.value[at, None]
        return rows.reshape(len(kinds), self.width)

    def ratios(self, rows: FloatArray) -> FloatArray:
        """Log-ratios of every contribution (columns) given rows of all cells."""
        seen = rows.reshape(len(rows), self.times, self.cells)[:, :, self.cell]
        return np.asarray(self.noise.ratio(seen, self.value).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Published(Mechanism):
    """Tables for the records of a question, made by `TableRelease.prepared`.

    `place` is the number of each record among those that contribute differently; `source` is what
    was described; `shown` is the probability that the record's own cells are given away
    (`keys.py`): if positive, an output has one more number, the record or -1.
    """

    parts: tuple[Part, ...]
    place: IntArray
    source: Mechanism
    shown: float = 0.0

    @classmethod
    def of(cls, parts: Sequence[Part], source: Mechanism, shown: float) -> Published:
        """Merge records that contribute alike. O(m log m) per table."""
        place, count = joint_codes([part.place for part in parts])
        first = np.empty(count, dtype=np.intp)
        first[place[::-1]] = np.arange(len(place))[::-1]
        merged = tuple(
            Part(p.noise, p.times, p.cells, p.cell, p.value, p.place[first]) for p in parts
        )
        return cls(merged, place, source, shown)

    @classmethod
    def together(cls, several: Sequence[Published], source: Mechanism) -> Published:
        """Several releases about the same records, seen by one attacker."""
        parts = [
            Part(p.noise, p.times, p.cells, p.cell, p.value, p.place[one.place])
            for one in several
            for p in one.parts
        ]
        with np.errstate(divide="ignore"):
            stays = sum(float(np.log1p(-one.shown)) for one in several)
        return cls.of(parts, source, -float(np.expm1(stays)))

    @property
    def kinds(self) -> int:
        """How many records contribute differently."""
        return len(self.parts[0].place)

    @property
    def silent(self) -> bool:
        """Whether the noise is infinite everywhere."""
        return all(part.noise.silent for part in self.parts)

    @property
    def width(self) -> int:
        """Numbers in an output."""
        return sum(part.width for part in self.parts) + (self.shown > 0)

    @property
    def guarantee(self) -> Guarantee | None:
        """That of the release."""
        return self.source.guarantee

    @property
    def assumes(self) -> str:
        """What the attacker does with the tables."""
        return f"{_ASSUMED} {_KEYS}" if self.shown else _ASSUMED

    def read(self, question: Question) -> Column:  # noqa: ARG002
        """The number of each record among the different ones, as prepared."""
        return self.place

    def spread(self, count: int) -> list[Any]:  # noqa: ARG002
        """The different records."""
        return list(range(self.kinds))

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One row of all cells of all tables per record. O(n cells)."""
        kinds = np.asarray(records, dtype=np.intp).reshape(-1)
        rows = [part.sample(kinds, rng) for part in self.parts]
        if self.shown:
            rows.append(np.where(rng.random(len(kinds)) < self.shown, kinds, -1)[:, None])
        return np.concatenate(rows, axis=1)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density of the rows; broadcasts over the leading axes."""
        rows, kinds = np.asarray(outputs, dtype=float), np.asarray(records, dtype=np.intp)
        shape = np.broadcast_shapes(rows.shape[:-1], kinds.shape)
        if rows.ndim > 1 and rows.shape[-2] == 1 and kinds.size == shape[-1]:
            # every row with all of the records
            flat = self._against(rows.reshape(-1, self.width), kinds.reshape(-1))
            return flat.reshape(shape)
        rows = np.broadcast_to(rows, (*shape, self.width)).reshape(-1, self.width)
        each = np.broadcast_to(kinds, shape).reshape(-1)
        total = np.zeros(len(rows))
        for part, own in self._split(rows):
            ratio, at = part.noise, part.place[each]
            cells = own.reshape(len(own), part.times, part.cells)
            seen = np.take_along_axis(cells, part.cell[at][:, None, None], axis=2)[:, :, 0]
            total += ratio.ratio(seen, part.value[at, None]).sum(axis=1)
            total += part.noise.log_density(own).sum(axis=1)
        if self.shown:
            total += self._told(rows[:, -1], each)
        return total.reshape(shape)

    def _against(self, rows: FloatArray, kinds: IntArray) -> FloatArray:
        result = np.zeros((len(rows), len(kinds)))
        base = np.zeros(len(rows))
        for part, own in self._split(rows):
            # contributions first: each of their rows is then spread over a row of the result
            result += part.ratios(own)[:, part.place[kinds]]
            base += part.noise.log_density(own).sum(axis=1)
        if self.shown:
            result += self._told(rows[:, -1, None], kinds)
        result += base[:, None]
        return result

    def _told(self, seen: FloatArray, kinds: IntArray) -> FloatArray:
        """Log-probability of whether, and which, record is given away."""
        with np.errstate(divide="ignore"):
            hidden, told = np.log1p(-self.shown), np.log(self.shown)
        return np.where(seen < 0, hidden, np.where(seen == kinds, told, -np.inf))

    def _split(self, rows: FloatArray) -> list[tuple[Part, FloatArray]]:
        ends = np.cumsum([part.width for part in self.parts])
        begins = np.r_[0, ends[:-1]]
        cut = zip(self.parts, begins, ends, strict=True)
        return [(part, rows[:, a:b]) for part, a, b in cut]

    def understood(self, outputs: Any, support: Column) -> FloatArray:  # noqa: ARG002
        """Tables of another implementation: mappings by cell, or arrays of all cells in order."""
        if self.shown:
            raise DpradError("of tables with keys from the data no model is known: leave it out.")
        rows = [_numbers(output) for output in outputs]
        if any(len(row) != self.width for row in rows):
            raise DpradError(
                f"run returned {len(rows[0])} numbers, but these tables have {self.width} cells. "
                "Return all cells, ordered by their values, or leave out the model."
            )
        return np.asarray(rows, dtype=float)

    def describe(self) -> dict[str, Any]:
        """What is published, as it was described."""
        return self.source.describe()


def _numbers(output: Any) -> list[Any]:
    """The cells of a table, in order of their names if it has names."""
    if isinstance(output, Mapping):
        return [output[name] for name in sorted(output)]
    return list(np.asarray(output).reshape(-1).tolist())
