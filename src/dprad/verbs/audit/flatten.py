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
import re
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dprad.errors import DpradError, kind
from dprad.numerics.arrays import FloatArray
from dprad.verbs.audit import notation
from dprad.verbs.audit.named import Into, put

# How deep an output may be nested.
DEEPEST = 20
# Numbers from which an array is kept together, and pieces counted from the end of a text.
TOGETHER, ENDS = 65, 8

# What an enumeration may stand for.
_PLAIN = bool | int | float | str | bytes | None


# Numbers, words, names with digits in them, white space (one blank is left out), other signs.
_PIECES = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![^\W_])"
    r"|[^\W0-9_]+(?![0-9_])|\w+| (?=\S)|\s+|."
)
_LIKE_DATA = re.compile(r"[0-9]{6}|[0-9]\.[0-9]")


def coordinates(output: Any) -> Into:
    """The named coordinates of one output."""
    into = Into()
    try:
        _flatten(output, "", into, 0)
    except (TypeError, AttributeError):  # it only looks like a table, or an array
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
    here, whole = name or "output", name or "the output"
    if depth > DEEPEST:
        raise DpradError("run returned an output that is nested too deeply.")
    into.note(type(thing).__qualname__)
    if thing is None:
        put(into, here, "None")
    elif isinstance(thing, str):
        _text(str(thing), name, into, depth)
    elif isinstance(thing, bytes):
        _bytes(bytes(thing), name, into, depth)
    elif isinstance(thing, enum.Enum):
        put(into, here, str(thing.name))
        into.note(repr(thing.value) if isinstance(thing.value, _PLAIN) else "")
    elif isinstance(thing, Decimal | Fraction | date | time | timedelta | UUID):
        _text(str(thing), name, into, depth)
        into.note((getattr(thing, "tzname", str)(), getattr(thing, "fold", 0)))
    elif isinstance(thing, complex | np.complexfloating):
        _number(thing.real, f"{here}.real", into)
        _number(thing.imag, f"{here}.imag", into)
    elif isinstance(thing, np.void):
        names = thing.dtype.names
        inside: Any = {n: thing[n] for n in names} if names else thing.tobytes()
        _flatten(inside, name, into, depth + 1)
    elif isinstance(thing, bool | int | float | np.generic):
        _number(thing, here, into)
    elif isinstance(thing, Mapping):
        _mapping(thing, name, into, depth)
    elif isinstance(thing, set | frozenset):
        put(into, f"length of {whole}", float(len(thing)))
        for part in thing:
            put(into, f"{here}:{part!r}", 1.0)
        for i, part in enumerate(sorted(thing, key=repr)[:ENDS]):
            _flatten(part, f"{here}:[{i}]", into, depth + 1)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            _flatten(getattr(thing, field.name), f"{here}.{field.name}", into, depth + 1)
    elif isinstance(thing, list | tuple):
        put(into, f"length of {whole}", float(len(thing)))
        into.note(getattr(thing, "_fields", ""))
        if len(thing) >= TOGETHER and set(map(type, thing)) <= {bool, int, float}:
            block = _exact(thing)
            if block is not None:
                for sort, _ in itertools.groupby(map(type, thing)):
                    into.note(sort.__name__)
                put(into, f"{name}[]", block)
                return
        for i, part in enumerate(thing):
            _flatten(part, f"{name}[{i}]", into, depth + 1)
    else:
        _other(thing, name, into, depth)


def _exact(numbers: Any) -> FloatArray | None:
    """Numbers as floats; None if one is too large for that."""
    try:
        block = np.asarray(numbers, dtype=float)
    except OverflowError:
        return None
    return None if bool(np.any(np.abs(block) >= 2.0**53)) else block


def _mapping(thing: Any, name: str, into: Into, depth: int) -> None:
    """Values by key; and the keys in their order. Where they are few, one that looks like data is
    no name.
    """
    keys, few = list(thing), len(thing) < TOGETHER
    for key in keys:
        into.note(f"key of {type(key).__qualname__}")
    put(into, f"keys of {name or 'the output'}", repr([str(k) for k in keys]))
    for i, key in enumerate(keys):
        if few and isinstance(key, float | str) and _LIKE_DATA.search(str(key)):
            called = f"#{i}"
            _flatten(key, f"{name}.key {i}", into, depth + 1)
        elif isinstance(key, str):
            called = key if key.isidentifier() else repr(key)
        else:
            called = str(key) if isinstance(key, int) else f"<{key!r}>"
        _flatten(thing[key], f"{name}.{called}" if name else called, into, depth + 1)
    if few and sorted(map(str, keys)) != [str(k) for k in keys]:
        for i, key in enumerate(keys):
            put(into, f"{name}.key {i} in order", str(key))


# -- text and bytes --------------------------------------------------------------------------------
def _text(text: str, name: str, into: Into, depth: int) -> None:
    """A single word as it is; JSON by what it holds; else numbers and words by their place."""
    here, whole = name or "output", name or "the output"
    if text.isalpha():
        put(into, here, text)
        return
    into.note("".join(map(_sort, _PIECES.findall(text))))
    if text.lstrip()[:1] in ("{", "["):
        try:
            inside = notation.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            put(into, f"length of {whole}", float(len(text)))
            _flatten(inside, name, into, depth + 1)
            return
    pieces = [p for p in _PIECES.findall(text) if p != " "]
    if len(pieces) != 1:
        put(into, f"length of {whole}", float(len(text)))
        put(into, f"pieces of {whole}", float(len(pieces)))
    for i, piece in enumerate(pieces):
        _piece(piece, here if len(pieces) == 1 else f"{here}~{i}", into)
    for i, piece in enumerate(pieces[:-1][: -ENDS - 1 : -1] if len(pieces) > 2 else (), start=2):
        _piece(piece, f"{here}~-{i}", into)
    if len(pieces) > 2:
        _piece(pieces[-1], f"{here}~-1", into)
    if text:
        put(into, f"end of {whole}", text[-1])


def _sort(piece: str) -> str:
    """What a piece of a text is: a number (by its notation), a word, or the sign that it is."""
    if piece[-1] in "0123456789." and piece.strip(".+-"):
        return "0" + re.sub(r"^-|[0-9]", "", piece[:1]) + re.sub(r"[-+0-9]", "", piece[1:])
    return "w" if piece[0].isalnum() or piece[0] == "_" else piece


def _piece(piece: str, here: str, into: Into) -> None:
    try:
        number = int(piece) if piece.lstrip("+-").isdecimal() else float(piece)
        if piece[-1] in "0123456789.":
            _number(number, here, into)
            if notation.unusual(piece, number):
                _notation(piece, here, into)
            return
    except ValueError:
        pass
    if len(piece) == 1 or not any(c.isdigit() or c == "_" for c in piece):
        put(into, here, piece)
        return
    _signs(piece, here, into)


def _signs(piece: str, here: str, into: Into) -> None:
    """Letters and digits, each by its place."""
    put(into, f"length of {here}", float(len(piece)))
    for i, sign in enumerate(piece):
        put(into, f"{here}/{i}", sign)
    for i, sign in enumerate(piece[: -ENDS - 1 : -1], start=1):
        put(into, f"{here}/-{i}", sign)


def _notation(piece: str, here: str, into: Into) -> None:
    """How a number is written, unless as usual; and its digits, if a float would lose some."""
    put(into, f"notation of {here}", notation.pattern(piece))
    if sum(sign.isdigit() for sign in piece) > notation.KEPT:
        _signs(piece, f"digits of {here}", into)


def _bytes(raw: bytes, name: str, into: Into, depth: int) -> None:
    """Text if it is text, else each byte by its place, from the front and from the end."""
    here, whole = name or "output", name or "the output"
    try:
        text = raw.decode()
        if raw and text.isprintable():
            _text(text, f"{here} as text", into, depth)
            if len(raw) > len(text) or text.lstrip()[:1] in ("{", "["):
                return
    except UnicodeDecodeError:
        pass
    put(into, f"bytes of {whole}", float(len(raw)))
    _block(np.frombuffer(raw, dtype=np.uint8).astype(float), f"{here} as bytes", into)
    for i, byte in enumerate(raw[: -ENDS - 1 : -1], start=1):
        put(into, f"{here} as bytes[-{i}]", float(byte))


# -- numbers and arrays ----------------------------------------------------------------------------
def _number(thing: Any, here: str, into: Into) -> None:
    if isinstance(thing, np.datetime64 | np.timedelta64):
        put(into, f"unit of {here}", str(thing.dtype))
        thing = int(thing.astype(np.int64))
    if isinstance(thing, int | np.integer) and abs(int(thing)) >= 2**53:
        _large(int(thing), here, into)
        return
    try:
        value = float(thing)
    except (TypeError, ValueError, OverflowError):
        put(into, here, str(thing))
        return
    put(into, here, value if value == value else "NaN")
    if isinstance(thing, notation.Written):
        _notation(thing.text, here, into)


def _large(whole: int, here: str, into: Into) -> None:
    """A whole number that a float would round: as a word, about, and what is missing then."""
    put(into, here, hex(whole))
    try:
        about = float(whole)
    except OverflowError:
        about = float("inf") if whole > 0 else float("-inf")
        put(into, f"{here} about", about)
        put(into, f"{here} rest", float(abs(whole) % 2**53))
        return
    put(into, f"{here} about", about)
    put(into, f"{here} rest", float(whole - int(about)))


def _block(numbers: FloatArray, name: str, into: Into) -> None:
    """Numbers one by one, or together if there are many."""
    if numbers.size >= TOGETHER:
        put(into, f"{name}[]", numbers)
        return
    for i, v in enumerate(numbers.tolist()):
        put(into, f"{name}[{i}]", v if v == v else "NaN")


def _other(thing: Any, name: str, into: Into, depth: int) -> None:
    """Arrays, tensors, tables and models of other libraries."""
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
        for c in columns:
            _categories(thing[c], f"{whole}.{c}", into, depth)
            _gaps(thing[c], f"{name}.{c}", into, depth)
        _flatten(table, name, into, depth + 1)
        return
    _labels(thing, name, into, depth)
    if isinstance(thing, np.ma.MaskedArray):
        _flatten(np.ma.getmaskarray(thing), f"{name}.mask", into, depth + 1)
        thing = thing.filled()
    array = thing if isinstance(thing, np.ndarray) else getattr(thing, "__array__", None)
    if array is None:
        raise _opaque(thing)
    _gaps(thing, name, into, depth)
    array = np.asarray(thing)
    into.note(repr(array.dtype))
    if array.dtype.kind in "iufb" and not huge(array):
        put(into, f"shape of {whole}", repr(array.shape))
        _block(array.reshape(-1).astype(float), name, into)
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
