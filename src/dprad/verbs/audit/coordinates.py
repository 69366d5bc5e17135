"""Outputs of any kind as a table of coordinates, the same for all of them.

What a coordinate holds is a number or a word (`flatten.py`). Of outputs with very many, first calls
choose those that differ most between the records. On request (`bits`) floating-point numbers also
get the place of their lowest set bit: noise that is added in floating point leaves traces there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import records_shown
from dprad.model.explain import listed
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.apart import Moments
from dprad.verbs.audit.flatten import KEYS, coordinates, huge
from dprad.verbs.audit.keys import key_of, keys_of, negative_zeros, signed
from dprad.verbs.audit.named import FORM, ZEROS, Into, Value
from dprad.verbs.audit.pieces import TOGETHER

# Most coordinates that are learned from, most that these are chosen from, and the calls that choose
# (in all, and of each record).
MOST, EVER, CHOOSE, EACH = 4096, 2**24, 48, 8
# Names of coordinates that are remembered.
SEEN = 2**20
# Numbers that are looked at together, at most, and from where whole numbers have low bits, too.
BATCH, WIDE = 2**22, 2.0**20
# Ends the name of a column of words: a word beside numbers (NaN is one) must not pass for a number.
WORD = "\0"
# Words of a coordinate from which, and the share of new ones with which, it tells too little; and
# how many of what is read sign by sign are looked at for that.
WORDS, NEW, JUDGED = 64, 0.5, 4096


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some outputs: a key for each (equal outputs have equal keys), and their coordinates.

    `numbers` is outputs x coordinates, NaN where an output lacks one; a word is a number, too (its
    place among all words), in a column of its own where others hold numbers.
    """

    keys: list[Any]
    numbers: FloatArray
    raw: Any

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, where: Any) -> Rows:
        """Some of the outputs."""
        places = np.arange(len(self))[where]
        return Rows([self.keys[i] for i in places], self.numbers[places], part(self.raw, places))


class Reader:
    """Turns outputs into rows, with the same coordinates for all of them."""

    def __init__(self, bits: bool = False, signs: bool = True) -> None:
        self.bits = bits
        self.signs = signs
        self.place: dict[str, tuple[int, int]] = {}  # of a coordinate, or of several: start, size
        self.width = 0
        self.form = ""  # of the first output
        self.keyed: set[str] = set()  # the keys of its mappings
        self.foreign: set[str] = set()  # kinds of objects of other libraries
        self.words: dict[str, int] = {}
        self.told: dict[str, list[int]] = {}  # words of a coordinate, and new ones
        self.sealed: dict[str, list[int]] = {}  # hashes of what is read sign by sign, by coordinate
        self.floating = False  # whether an output has had many digits
        self.seen: list[Any] = []  # the first output
        self.varied = False  # whether another one has come
        self.settled = False
        self.fixed = False  # no more coordinates
        self.varies = False  # whether a first output has its coordinates
        self.once: set[str] = set()  # coordinates seen since, and most of them
        self.chosen: IntArray | None = None
        self.chose = 0  # by how many calls
        self.left_out = False

    def rows(self, outputs: Any) -> Rows:
        """Rows of some outputs; coordinates that appear later are added at the end."""
        rows = self._rows(outputs)
        self.seen = self.seen or rows.keys[:1]
        self.varied = self.varied or any(key != self.seen[0] for key in rows.keys)
        whole = np.rint(rows.numbers)
        with np.errstate(invalid="ignore"):
            apart, size = np.abs(rows.numbers - whole), np.abs(whole)
            self.floating |= bool(np.any((apart > 0) | (size >= WIDE)))
        if not self.bits:
            return rows
        both = np.stack([rows.numbers, lowest_bits(rows.numbers)], axis=2)
        return Rows(rows.keys, both.reshape(len(both), -1), rows.raw)

    def settle(self, parts: list[Rows], secrets: list[IntArray]) -> list[Rows]:
        """Choose coordinates, if there are too many and as soon as there are calls to choose by.

        The rows so far, with those. To be called before anything is learned from them.
        """
        if self.settled:
            return parts
        secret = np.concatenate(secrets)
        times = np.unique(secret, return_counts=True)[1]
        if len(secret) < CHOOSE or len(times) < 2 or times.min() < EACH:
            return parts
        self.settled = True
        if self.width <= MOST:
            return parts
        self.fixed = True
        tables = (table for p in parts for _, table in self.batches(p.raw))  # read again
        apart = Moments.of(self.width, tables, secret).apart()
        self.chosen = np.sort(np.argsort(-apart, kind="stable")[:MOST])
        self.chose = len(secret)
        return [self.rows(p.raw) for p in parts]

    def called(self, column: int) -> str:
        """A column of rows: the coordinate, by its place in the output; by its name where records
        may be shown, since names may hold values.
        """
        column, low = divmod(column, 2) if self.bits else (column, 0)
        column = column if self.chosen is None else int(self.chosen[column])
        name, (at, _) = max(
            ((n, p) for n, p in self.place.items() if p[0] <= column), key=lambda item: item[1][0]
        )
        name = f"{name}, {column - at + 1}" if name[:2] == "[]" else name.removesuffix(WORD)
        bits = ", its lowest bits" if low else ""
        return f"number {column + 1:,}{f' ({name})' if records_shown() else ''}{bits}"

    def notes(self) -> tuple[str, ...]:
        """What was not looked at."""
        said = ["all outputs looked the same"] if self.seen and not self.varied else []
        if self.chosen is not None:
            said.append(
                f"outputs hold {self.width:,} numbers: looked at were the {MOST:,} that differ "
                f"most between the records in the first {self.chose:,} calls"
            )
        elif self.left_out:
            said.append(
                f"outputs hold more than {MOST:,} different numbers and names: those that came "
                "later were only looked at as parts of whole outputs"
            )
        if self.foreign:
            what = listed(sorted(self.foreign))
            said.append(
                f"of {what} in outputs, values, labels, types and categories are looked at, and "
                "nothing else that they carry: return numbers, text, lists or dicts if that is all "
                "that goes out"
            )
        told = [*self.told.values(), *((len(h), len(set(h))) for h in self.sealed.values())]
        if any(n >= WORDS and new >= NEW * n for n, new in told):
            said.append(
                "outputs hold text, bytes or long numbers that are mostly new and have no "
                "parts, as ciphers are: what they hide is not found. Return what they are made of"
            )
        return tuple(said)

    # -- how it reads ------------------------------------------------------------------------------
    def _rows(self, outputs: Any) -> Rows:
        if isinstance(outputs, tuple):  # of a composition: the parts side by side
            several = [Reader(signs=False).rows(o).numbers for o in outputs]
            table = np.concatenate(several, axis=1)
            self.left_out |= table.shape[1] > MOST
            return Rows(list(map(tuple, table.tolist())), table[:, :MOST], outputs)
        where = slice(MOST) if self.chosen is None else self.chosen
        keys: list[Any] = []
        tables = []
        for some, table in self.batches(outputs):
            keys += some
            tables.append(table[:, where])
        return Rows(keys, _stacked(tables), _array(outputs))

    def batches(self, outputs: Any) -> Iterator[tuple[list[Any], FloatArray]]:
        """Keys and all coordinates, some outputs at a time."""
        plain = np.asarray(outputs) if isinstance(outputs, np.ndarray) else None
        if plain is not None and plain.dtype.kind in "iufb" and plain.ndim <= 2 and not huge(plain):
            flat = plain.reshape(len(plain), -1)
            places = self._columns(flat.shape[1], plain.ndim)
            step = max(1, BATCH // max(1, self.width))
            for a in range(0, max(1, len(flat)), step):
                some = flat[a : a + step].astype(float)
                minus = ((some == 0) & np.signbit(some)).sum(axis=1)
                keys, room = keys_of(some, plain.ndim), (0, 0)
                if self.signs and minus.any():
                    room = self._room(ZEROS, 1)
                    keys = [signed(k, n) for k, n in zip(keys, minus.tolist(), strict=True)]
                table = np.full((len(some), max(1, self.width)), np.nan)
                table[:, places] = some[:, : len(places)]
                if room[1]:
                    table[:, room[0]] = np.where(minus > 0, minus, np.nan)
                yield keys, table
            return
        a = 0
        while a < len(outputs) or a == 0:
            step = max(1, BATCH // (16 * self.width)) if self.width else 1
            here = outputs[a : a + step]
            every = [self._formed(coordinates(o), o) for o in here]
            minus = [negative_zeros(row) if self.signs else 0 for row in every]
            keys = [signed(key_of(o, r), n) for o, r, n in zip(here, every, minus, strict=True)]
            for row, count in zip(every, minus, strict=True):
                row |= {ZEROS: float(count)} if count else {}
            yield keys, _stacked([np.atleast_2d(self._line(row)) for row in every])
            a += max(1, len(every))

    def _formed(self, row: Into, output: Any) -> Into:
        """With its form as a coordinate, if that is not that of the first output; and by place,
        too, what has other keys.
        """
        self.foreign |= row.foreign
        for name, signs in row.sealed:
            if name in self.sealed or len(self.sealed) < MOST:
                found = self.sealed.setdefault(name, [])
                found += [hash(signs)] if len(found) < JUDGED else []
        if not self.form:
            self.form, self.keyed = row.form, row.keyed
        if row.form != self.form:
            row[FORM] = row.form
        if not row.keyed <= self.keyed:
            placed = coordinates(output, by_place=True)
            row |= {name: value for name, value in placed.items() if name not in row}
        return row

    def _columns(self, size: int, dimensions: int) -> IntArray:
        """Where the columns of an array are; as many as there is room for."""
        if dimensions == 1 or size < TOGETHER:
            names = [f"[{j}]" for j in range(size)] if dimensions == 2 else ["output"]
            found = [self._room(name, 1) for name in names]
            return np.array([at for at, room in found if room], dtype=np.intp)
        at, room = self._room("[]", size)
        rest = self._columns_after(size, room)
        return np.concatenate([np.arange(at, at + room), rest])

    def _columns_after(self, size: int, room: int) -> IntArray:
        name, places = "[]", [np.zeros(0, dtype=np.intp)]
        while room < size:
            name += "+"
            at, more = self._room(name, size - room)
            if not more:
                break
            places.append(np.arange(at, at + min(more, size - room)))
            room += more
        return np.concatenate(places)

    def _room(self, name: str, size: int) -> tuple[int, int]:
        """Where a coordinate (or several) is, and how many there is room for."""
        found = self.place.get(name)
        if found is not None:
            return found[0], min(found[1], size)
        most = MOST if self.settled else EVER
        room = 0 if self.fixed else min(size, most - self.width)
        if room < size:
            self.left_out = True
        if room <= 0:
            return 0, 0
        self.place[name] = self.width, room
        self.width += room
        return self.place[name]

    def _line(self, row: Into) -> Any:
        """All coordinates of an output. O(their number)."""
        columns = [(n + WORD if isinstance(v, str) else n, n, v) for n, v in row.items()]
        for column, _, value in columns:
            if column not in self.place and not self._new(column):
                self._room(column, 1 if isinstance(value, float | str) else len(value))
        self.varies = True
        line: Any = [np.nan] * max(1, self.width)
        many = []
        for column, name, value in columns:
            at, room = self.place.get(column, (0, 0))
            if isinstance(value, float | str):
                if room:
                    line[at] = self._number(name, value)
            else:
                many.append((name, value))
        if many:
            line = np.array(line)
        for name, values in many:
            line = self._fill(line, name, values)
        return line

    def _new(self, column: str) -> bool:
        """Whether it has not been seen before: one that comes once only tells nothing. All of the
        first output get room.
        """
        named = self.varies and column.removesuffix(WORD) not in (FORM, ZEROS)
        new = named and column not in self.once and len(self.once) < SEEN
        if new:
            self.once.add(column)
        return new

    def _fill(self, line: FloatArray, name: str, values: FloatArray) -> FloatArray:
        """Put many numbers into a line; those beyond the room they had so far come after all."""
        while len(values):
            at, room = self._room(name, len(values))
            if not room:
                break
            if len(line) < self.width:
                line = np.pad(line, (0, self.width - len(line)), constant_values=np.nan)
            line[at : at + room] = values[:room]
            values, name = values[room:], f"{name}+"
        return line

    def _number(self, name: str, value: Value) -> Any:
        if not isinstance(value, str):
            return value
        apart = name == FORM or name.startswith(KEYS)  # looked into elsewhere
        told = [0, 0] if apart else self.told.setdefault(name, [0, 0])
        told[0] += 1
        at = self.words.get(value)
        if at is None:
            told[1] += 1
            at = self.words[value] = len(self.words)
        return float(at)


def _stacked(tables: list[FloatArray]) -> FloatArray:
    """Rows of several tables; what the narrower ones lack is missing."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return np.zeros((0, 1))
    wide = max(t.shape[1] for t in tables)
    if all(t.shape[1] == wide for t in tables):
        return np.concatenate(tables)
    result, a = np.full((sum(map(len, tables)), wide), np.nan), 0
    for t in tables:
        result[a : a + len(t), : t.shape[1]] = t
        a += len(t)
    return result


def part(outputs: Any, where: Any) -> Any:
    """Some of the outputs; those of a composition are a tuple of arrays."""
    if isinstance(outputs, tuple):
        return tuple(part(o, where) for o in outputs)
    return outputs[where]


def joined(parts: list[Rows]) -> Rows:
    """All rows; coordinates that came later are missing in those before."""
    keys = [k for p in parts for k in p.keys]
    return Rows(keys, _stacked([p.numbers for p in parts]), _together([p.raw for p in parts]))


def _together(parts: list[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(_together([p[i] for p in parts]) for i in range(len(parts[0])))
    if len({(p.shape[1:], p.dtype.kind == "O") for p in parts}) == 1:
        return np.concatenate(parts)
    return _array([o for p in parts for o in p])  # lists that only sometimes have one length


def _array(outputs: Any) -> Any:
    if isinstance(outputs, np.ndarray | tuple):
        return outputs
    objects = np.empty(len(outputs), dtype=object)
    objects[:] = list(outputs)
    return objects


def lowest_bits(values: FloatArray) -> FloatArray:
    """The exponent of the lowest set bit of each number; 0 for zero, NaN where there is none."""
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = whole & -whole
    place = np.where(lowest > 0, np.log2(np.maximum(lowest, 1).astype(float)) + exponent - 53, 0.0)
    return np.asarray(np.where(finite, place, np.nan))
