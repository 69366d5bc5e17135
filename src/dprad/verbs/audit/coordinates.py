"""Outputs of any kind as named coordinates, or a refusal.

Numbers, words, arrays, lists, dicts, data frames, tensors and dataclasses are flattened; what a
coordinate holds is a number or a word. Anything else is refused: turned into a string it could hide
what it reveals. On request (`bits`) floating-point numbers also get the place of their lowest set
bit: noise that is added in floating point leaves traces there.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, kind
from dprad.numerics.arrays import FloatArray

# Most coordinates of an output that are looked at.
MOST = 4096
# How deep an output may be nested.
DEEPEST = 20

Value = float | str


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some outputs: a key for each (equal outputs have equal keys), and their coordinates.

    `numbers` is outputs x coordinates, NaN where an output lacks one; a word is the number of its
    place in `words`, one dict for each coordinate (empty if that holds numbers).
    """

    keys: list[Any]
    names: tuple[str, ...]
    numbers: FloatArray
    raw: Any

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, where: Any) -> Rows:
        """Some of the outputs."""
        places = np.arange(len(self))[where]
        return Rows(
            [self.keys[i] for i in places], self.names, self.numbers[places], part(self.raw, places)
        )


class Reader:
    """Turns outputs into rows, with the same coordinates for all of them."""

    def __init__(self, bits: bool = False) -> None:
        self.bits = bits
        self.place: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.floating = False  # whether an output has had a fraction

    def rows(self, outputs: Any) -> Rows:
        """Rows of some outputs; coordinates that appear later are added at the end."""
        rows = self._rows(outputs)
        whole = np.rint(rows.numbers)
        with np.errstate(invalid="ignore"):
            self.floating |= bool(np.any(np.abs(rows.numbers - whole) > 0))
        if not self.bits:
            return rows
        names = tuple(n for name in rows.names for n in (name, f"lowest bit of {name}"))
        both = np.stack([rows.numbers, lowest_bits(rows.numbers)], axis=2)
        return Rows(rows.keys, names, both.reshape(len(both), -1), rows.raw)

    def _rows(self, outputs: Any) -> Rows:
        plain = np.asarray(outputs) if isinstance(outputs, np.ndarray) else None
        simple = plain is not None and plain.dtype.kind in "iufb" and plain.ndim <= 2
        if simple and plain is not None and not _huge(plain):
            flat = plain.reshape(len(plain), -1).astype(float)[:, :MOST]
            names = [f"[{j}]" for j in range(flat.shape[1])] if plain.ndim == 2 else ["output"]
            for name in names:
                self.place.setdefault(name, len(self.place))
            table = np.full((len(flat), len(self.place)), np.nan)
            table[:, [self.place[name] for name in names]] = flat
            keys = flat[:, 0].tolist() if plain.ndim == 1 else list(map(tuple, flat.tolist()))
            return Rows(keys, tuple(self.place), table, outputs)
        if isinstance(outputs, tuple):  # of a composition: the parts side by side
            several = [Reader().rows(o).numbers for o in outputs]
            table = np.concatenate(several, axis=1)[:, :MOST]
            keys = list(map(tuple, table.tolist()))
            return Rows(keys, tuple(f"[{j}]" for j in range(table.shape[1])), table, outputs)
        every = [coordinates(o) for o in outputs]
        for row in every:
            for name in row:
                if name not in self.place and len(self.place) < MOST:
                    self.place[name] = len(self.place)
        table = np.full((len(every), max(1, len(self.place))), np.nan)
        for i, row in enumerate(every):
            for name, value in row.items():
                at = self.place.get(name)
                if at is not None:
                    table[i, at] = self._number(value)
        keys = [_key(output, row) for output, row in zip(outputs, every, strict=True)]
        return Rows(keys, tuple(self.place) or ("output",), table, _array(outputs))

    def _number(self, value: Value) -> float:
        if isinstance(value, str):
            return float(self.words.setdefault(value, len(self.words)))
        return value


def _key(output: Any, row: dict[str, Value]) -> Any:
    """The same for equal outputs, whether they came alone or in an array."""
    if isinstance(output, bool | int | float | np.number):
        return row.get("output")
    plain = isinstance(output, list | tuple)
    if plain and all(isinstance(v, bool | int | float) and abs(v) <= 2**53 for v in output):
        return tuple(map(float, output))
    return tuple(sorted(row.items(), key=lambda item: item[0]))


def part(outputs: Any, where: Any) -> Any:
    """Some of the outputs; those of a composition are a tuple of arrays."""
    if isinstance(outputs, tuple):
        return tuple(part(o, where) for o in outputs)
    return outputs[where]


def joined(parts: list[Rows]) -> Rows:
    """All rows; coordinates that came later are missing in those before."""
    wide = max(p.numbers.shape[1] for p in parts)
    padded = [
        np.pad(p.numbers, ((0, 0), (0, wide - p.numbers.shape[1])), constant_values=np.nan)
        for p in parts
    ]
    keys = [k for p in parts for k in p.keys]
    return Rows(keys, parts[-1].names, np.concatenate(padded), _together([p.raw for p in parts]))


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


def coordinates(output: Any) -> dict[str, Value]:
    """The named coordinates of one output."""
    into: dict[str, Value] = {}
    _flatten(output, "", into, 0)
    return into


def _flatten(thing: Any, name: str, into: dict[str, Value], depth: int) -> None:
    here = name or "output"
    if depth > DEEPEST:
        raise DpradError("run returned an output that is nested too deeply.")
    if thing is None or isinstance(thing, str | bytes):
        into[here] = thing if isinstance(thing, str) else repr(thing)
    elif isinstance(thing, bool | int | float | np.generic):
        _number(thing, here, into)
    elif isinstance(thing, complex):
        into[f"{here}.real"], into[f"{here}.imag"] = thing.real, thing.imag
    elif isinstance(thing, enum.Enum):
        into[here] = str(thing.name)
    elif isinstance(thing, Mapping):
        into[f"{here}.keys"] = repr(sorted(map(str, thing)))
        for key in thing:
            _flatten(thing[key], f"{name}.{key}" if name else str(key), into, depth + 1)
    elif isinstance(thing, set | frozenset):
        for part in thing:
            into[f"{here}:{part!r}"] = 1.0
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            _flatten(getattr(thing, field.name), f"{here}.{field.name}", into, depth + 1)
    elif isinstance(thing, list | tuple):
        into[f"{here}.length"] = float(len(thing))
        for i, part in enumerate(thing):
            _flatten(part, f"{name}[{i}]", into, depth + 1)
    else:
        _other(thing, name, into, depth)


def _number(thing: Any, here: str, into: dict[str, Value]) -> None:
    if isinstance(thing, int | np.integer) and abs(int(thing)) > 2**53:
        into[here] = str(thing)  # a float would lose digits
        return
    try:
        value = float(thing)
    except OverflowError:
        value = float("inf") if thing > 0 else float("-inf")
    except (TypeError, ValueError):
        into[here] = str(thing)
        return
    into[here] = value if value == value else "NaN"


def _other(thing: Any, name: str, into: dict[str, Value], depth: int) -> None:
    """Arrays, tensors, tables and models of other libraries."""
    state = getattr(thing, "state_dict", None)
    if callable(state):
        _flatten(dict(state()), name, into, depth + 1)
        return
    if callable(getattr(thing, "detach", None)):
        thing = thing.detach().cpu().numpy()
    columns = getattr(thing, "columns", None)
    if columns is not None and hasattr(thing, "__getitem__"):
        into[f"{name or 'output'}.columns"] = repr(list(map(str, columns)))
        _labels(thing, name, into)
        for column in columns:
            _flatten(np.asarray(thing[column]), f"{name}.{column}", into, depth + 1)
        return
    _labels(thing, name, into)
    if isinstance(thing, np.ma.MaskedArray):
        _flatten(np.ma.getmaskarray(thing), f"{name}.mask", into, depth + 1)
        thing = thing.filled()
    array = thing if isinstance(thing, np.ndarray) else getattr(thing, "__array__", None)
    if array is None:
        raise DpradError(
            f"run returned a {kind(type(thing))}, which cannot be looked into. Return numbers, "
            "text, or arrays, lists, dicts, data frames or dataclasses of these."
        )
    array = np.asarray(thing)
    if array.dtype.kind in "iufb" and not _huge(array):
        flat = array.reshape(-1)[:MOST].astype(float)
        into[f"{name or 'output'}.shape"] = repr(array.shape)
        into.update({f"{name}[{i}]": float(v) if v == v else "NaN" for i, v in enumerate(flat)})
        return
    _flatten(array.tolist(), name, into, depth + 1)


def _labels(thing: Any, name: str, into: dict[str, Value]) -> None:
    """The index and the name of a table or a column."""
    index = getattr(thing, "index", None)
    if index is not None and not callable(index):
        into[f"{name or 'output'}.index"] = repr(list(map(str, index)))
    called = getattr(thing, "name", None)
    if called is not None and not callable(called):
        into[f"{name or 'output'}.name"] = str(called)


def _huge(array: Any) -> bool:
    """Whether whole numbers are too large for a float."""
    return array.dtype.kind in "iu" and bool(np.any(np.abs(array.astype(float)) > 2.0**53))


def lowest_bits(values: FloatArray) -> FloatArray:
    """The exponent of the lowest set bit of each number; 0 for zero, NaN where there is none."""
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = whole & -whole
    place = np.where(lowest > 0, np.log2(np.maximum(lowest, 1).astype(float)) + exponent - 53, 0.0)
    return np.asarray(np.where(finite, place, np.nan))
