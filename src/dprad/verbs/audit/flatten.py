"""One output of any kind as named coordinates, or a refusal.

Numbers, words, arrays, lists, dicts, data frames, tensors and dataclasses are flattened. Text is
read as JSON or else split into numbers and words, bytes are taken one by one, long arrays stay
together (`Value`). Beside the values stands their form: types, storage, spacing and notation, which
reveal as much as values do if they depend on the record. Anything else is refused: turned into a
string it could hide what it reveals.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dprad.errors import DpradError, kind
from dprad.numerics.arrays import FloatArray
from dprad.verbs.audit.named import Into, put
from dprad.verbs.audit.pieces import ENDS, TOGETHER, block_of, bytes_of, number_of, text_of

# What the coordinate with the keys of a mapping is called.
KEYS = "keys of "
# How deep an output may be nested.
DEEPEST = 20

# What an enumeration may stand for.
_PLAIN = bool | int | float | str | bytes | None


def coordinates(output: Any, *, by_place: bool = False) -> Into:
    """The named coordinates of one output; of mappings and tables by the place of each key, not by
    the key, if that is asked for.
    """
    into = Into(by_place)
    try:
        _flatten(output, "", into, 0)
    except (DpradError, MemoryError):
        raise
    except Exception:  # it only looks like a table, or like an array
        raise _opaque(output) from None
    return into


def _opaque(thing: Any) -> DpradError:
    return DpradError(
        f"run returned a {kind(type(thing))}, which cannot be looked into. Return numbers, "
        "text, or arrays, lists, dicts, data frames or dataclasses of these."
    )


def huge(array: Any) -> bool:
    """Whether whole numbers are too large for a float."""
    return array.dtype.kind in "iu" and bool(np.any(np.abs(array.astype(float)) >= 2.0**53))


def _flatten(thing: Any, name: str, into: Into, depth: int) -> None:
    if depth > DEEPEST:
        raise DpradError("run returned an output that is nested too deeply.")
    into.note(type(thing).__qualname__)
    alike, into.alike = into.alike, False
    _inside(thing, name, into, depth)
    into.alike = alike


def _inside(thing: Any, name: str, into: Into, depth: int) -> None:
    here, whole = name or "output", name or "the output"
    if thing is None:
        put(into, here, "None")
    elif isinstance(thing, str):
        inside = text_of(str(thing), name, into)
        if inside is not None:
            _flatten(inside, name, into, depth + 1)
    elif isinstance(thing, bytes):
        inside = bytes_of(bytes(thing), name, into)
        if inside is not None:
            _flatten(inside, f"{here} as text", into, depth + 1)
    elif isinstance(thing, enum.Enum):
        put(into, here, str(thing.name))
        into.note(repr(thing.value) if isinstance(thing.value, _PLAIN) else "")
    elif isinstance(thing, Decimal | Fraction | date | time | timedelta | UUID):
        text_of(str(thing), name, into)
        _zoned(thing, whole, into)
    elif isinstance(thing, complex | np.complexfloating):
        number_of(thing.real, f"{here}.real", into)
        number_of(thing.imag, f"{here}.imag", into)
    elif isinstance(thing, np.void):
        names = thing.dtype.names
        inside = {n: thing[n] for n in names} if names else thing.tobytes()
        _flatten(inside, name, into, depth + 1)
    elif isinstance(thing, bool | int | float | np.generic):
        number_of(thing, here, into)
    elif isinstance(thing, Mapping):
        _mapping(thing, name, into, depth)
    elif isinstance(thing, set | frozenset):
        _set(thing, here, into, depth)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            _flatten(getattr(thing, field.name), f"{here}.{field.name}", into, depth + 1)
    elif isinstance(thing, list | tuple):
        put(into, f"length of {whole}", float(len(thing)))
        into.note(getattr(thing, "_fields", ""))
        if len(thing) >= TOGETHER and set(map(type, thing)) <= {bool, int, float}:
            block = _exact(thing)
            if block is not None:
                sorts = [(k.__name__, len(list(g))) for k, g in itertools.groupby(map(type, thing))]
                into.note(sorts if len(sorts) > 1 else sorts[0][0])
                put(into, f"{name}[]", block)
                return
        alike = len(set(map(type, thing))) == 1
        for i, part in enumerate(thing):
            into.alike = alike and i > 0
            _flatten(part, f"{name}[{i}]", into, depth + 1)
    else:
        _other(thing, name, into, depth)


def _zoned(thing: Any, whole: str, into: Into) -> None:
    """The zone of a date or a time, however it is called, which of two equal hours it is, and the
    unit that it is counted in.
    """
    into.note((getattr(thing, "tzname", str)(), getattr(thing, "fold", 0)))
    into.note(getattr(thing, "unit", ""))
    zone = getattr(thing, "tzinfo", None)
    if zone is not None:
        put(into, f"zone of {whole}", f"{type(zone).__qualname__} {zone!r}")


def _exact(numbers: Any) -> FloatArray | None:
    """Numbers as floats; None if one is too large for that."""
    try:
        block = np.asarray(numbers, dtype=float)
    except OverflowError:
        return None
    return None if bool(np.any(np.abs(block) >= 2.0**53)) else block


def _mapping(thing: Any, name: str, into: Into, depth: int) -> None:
    """Values by key, and the keys in their order; or both by their place."""
    keys = list(thing)
    for key in keys:
        into.note(f"key of {type(key).__qualname__}")
    said = repr([str(k) for k in keys])
    into.keyed.add(said)
    if into.by_place:
        _flatten(keys, f"{name}.keys by place", into, depth)
        _flatten([thing[key] for key in keys], f"{name}.values by place", into, depth)
        return
    put(into, f"{KEYS}{name or 'the output'}", said)
    for key in keys:
        if isinstance(key, str):
            called = key if key.isidentifier() else repr(key)
        else:
            called = str(key) if isinstance(key, int) else f"<{key!r}>"
        _flatten(thing[key], f"{name}.{called}" if name else called, into, depth + 1)


def _set(thing: Any, here: str, into: Into, depth: int) -> None:
    """Which elements there are, and these in their order: numbers by size, others as text."""
    for part in thing:
        put(into, f"{here}:{part!r}", 1.0)
    numbers = all(isinstance(part, int | float) for part in thing)
    ordered = sorted(thing) if numbers else sorted(thing, key=repr)
    _flatten(ordered, f"{here}:in order", into, depth)
    for i, part in enumerate(ordered[: -ENDS - 1 : -1], start=1):
        _flatten(part, f"{here}:[-{i}]", into, depth + 1)


# -- of other libraries ---------------------------------------------------------------------------
def _other(thing: Any, name: str, into: Into, depth: int) -> None:
    """Arrays, tensors, tables and models of other libraries."""
    if not isinstance(thing, np.ndarray):
        into.foreign.add(kind(type(thing)))
    state = getattr(thing, "state_dict", None)
    if callable(state):
        for part, layer in getattr(thing, "named_modules", dict)() or ():
            training = getattr(layer, "training", "")
            into.note((part, type(layer).__qualname__, layer.extra_repr(), training))
            for label, buffer in layer.named_buffers(recurse=False):
                _flatten(buffer, f"{name}.{part}.{label}", into, depth + 1)
        _flatten(dict(state()), name, into, depth + 1)
        return
    if callable(getattr(thing, "detach", None)):
        thing = thing.detach().cpu()
        into.note((thing.dtype, getattr(thing, "layout", "")))
        if getattr(thing, "is_sparse", False):
            put(into, f"stored in {name or 'the output'}", float(thing._nnz()))
            thing = thing.to_dense()
        try:
            thing = thing.numpy()
        except TypeError:  # of a kind that numpy has not, such as bfloat16
            thing = thing.float().numpy()
    columns, whole = getattr(thing, "columns", None), name or "the output"
    if columns is not None and hasattr(thing, "__getitem__"):
        _labels(thing, name, into, depth)
        table = {c: np.asarray(thing[c]) for c in columns}
        if len(table) < len(columns):
            raise DpradError("run returned a table in which two columns have the same name.")
        for i, c in enumerate(columns):
            called = f"column {i} by place" if into.by_place else c
            _categories(thing[c], f"{whole}.{called}", into, depth)
            _gaps(thing[c], f"{name}.{called}", into, depth)
        _flatten(table, name, into, depth + 1)
        return
    _labels(thing, name, into, depth)
    if isinstance(thing, np.ma.MaskedArray):
        _flatten(np.ma.getmaskarray(thing), f"{name}.mask", into, depth + 1)
        into.note(repr(thing.fill_value))
        thing = thing.filled()
    array = thing if isinstance(thing, np.ndarray) else getattr(thing, "__array__", None)
    if array is None:
        raise _opaque(thing)
    _gaps(thing, name, into, depth)
    array = np.asarray(thing)
    into.note(repr(array.dtype))
    if array.dtype.kind in "iufb" and not huge(array):
        put(into, f"shape of {whole}", repr(array.shape))
        block_of(array.reshape(-1).astype(float), name, into)
        return
    if array.dtype.kind in "mM":
        put(into, f"unit of {whole}", str(array.dtype))
        array = array.astype(np.int64)
    if array.dtype.kind == "V" or array.ndim == 0:
        _flatten(list(array.reshape(-1)), name, into, depth + 1)
        return
    _flatten(array.tolist(), name, into, depth + 1)


def _gaps(thing: Any, name: str, into: Into, depth: int) -> None:
    """Where a column of pandas, polars or Arrow holds nothing, which an array shows as NaN."""
    inside = getattr(thing, "array", thing)
    mask = getattr(inside, "_mask", None)
    empty = getattr(thing, "is_null", None)
    if mask is None and callable(empty):
        mask = empty()
    if mask is not None and (found := np.asarray(mask)).any():
        _flatten(found, f"{name}.gaps", into, depth + 1)


def _labels(thing: Any, name: str, into: Into, depth: int) -> None:
    """The index, names, categories and notes of a table or a column. Places that are only counted
    say nothing.
    """
    index, whole = getattr(thing, "index", None), name or "the output"
    if index is not None and not callable(index):
        start, step = getattr(index, "start", None), getattr(index, "step", None)
        counted = (start, step) == (0, 1)
        labels = [v if isinstance(v, str | int | float) else str(v) for v in index]
        _flatten([len(labels)] if counted else labels, f"index of {whole}", into, depth + 1)
    called = getattr(thing, "name", None)
    if called is not None and not callable(called):
        _flatten(str(called), f"name of {whole}", into, depth + 1)
    for axis in ("index", "columns"):
        _axis(getattr(thing, axis, None), f"the {axis} of {whole}", into, depth)
    _categories(thing, whole, into, depth)
    into.note(getattr(getattr(thing, "flags", None), "allows_duplicate_labels", ""))
    notes = getattr(thing, "attrs", None)
    if isinstance(notes, dict) and notes:
        _flatten(notes, f"attrs of {whole}", into, depth + 1)


def _axis(axis: Any, whole: str, into: Into, depth: int) -> None:
    """Names, levels and categories of the labels of a table, whether they occur or not."""
    names = getattr(axis, "names", None)
    if names is None:
        return
    into.note((type(axis).__qualname__, str(getattr(axis, "freq", ""))))
    if any(n is not None for n in names):
        _flatten([str(n) for n in names], f"names of {whole}", into, depth + 1)
    _categories(axis, whole, into, depth)
    for i, level in enumerate(getattr(axis, "levels", ())):
        _flatten([str(value) for value in level], f"level {i} of {whole}", into, depth + 1)
        _axis(level, f"level {i} of {whole}", into, depth + 1)


def _categories(thing: Any, whole: str, into: Into, depth: int) -> None:
    """How a column is stored, and the possible values that it carries along, whether they occur or
    not.
    """
    stored = getattr(thing, "dtype", None)
    found = getattr(stored, "categories", None)
    into.note((str(stored), getattr(stored, "ordered", "")))
    if found is not None:
        _flatten([str(value) for value in found], f"categories of {whole}", into, depth + 1)
    inside = thing.array.__arrow_array__() if hasattr(stored, "pyarrow_dtype") else thing
    if callable(getattr(inside, "to_pylist", None)):
        _arrow(inside, whole, into, depth)


def _arrow(array: Any, whole: str, into: Into, depth: int) -> None:
    """The type, the chunks and the dictionaries of an Arrow array."""
    into.note(str(array.type))
    chunks = getattr(array, "chunks", [array])
    put(into, f"chunks of {whole}", repr([len(chunk) for chunk in chunks]))
    for i, chunk in enumerate(chunks):
        words = getattr(chunk, "dictionary", None)
        if words is not None:
            values = [str(value) for value in words.to_pylist()]
            _flatten(values, f"dictionary {i} of {whole}", into, depth + 1)
