"""An output as it was when it was returned: a function may go on using the same object."""

from __future__ import annotations

import copy
import enum
from collections import OrderedDict
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dprad.errors import DpradError, kind

# What nobody can change.
PLAIN = frozenset({
    bool, int, float, complex, str, bytes, type(None), Decimal, Fraction, date, datetime, time,
    timedelta, UUID,
})  # fmt: skip


class CopyError(DpradError):
    """An output that cannot be copied."""


def frozen(output: Any) -> Any:
    """A copy that shares nothing with the output; what cannot be copied is refused.

    O(1) for numbers and text, else one copy.
    """
    if type(output) in PLAIN:
        return output
    try:
        return _copied(output, 0)
    except CopyError:
        raise
    except Exception:
        raise _refusal(output) from None


def _copied(thing: Any, depth: int) -> Any:
    known = type(thing)
    if known in PLAIN or isinstance(thing, enum.Enum) or thing is np.ma.masked:
        return thing
    if known is np.ndarray and not thing.dtype.hasobject:
        return thing.copy()
    if depth > 100:
        raise RecursionError
    if known in (list, tuple, set, frozenset):
        return known([_copied(v, depth + 1) for v in thing])
    if known in (dict, OrderedDict):
        return known([(_copied(k, depth + 1), _copied(v, depth + 1)) for k, v in thing.items()])
    if callable(getattr(thing, "detach", None)) and callable(getattr(thing, "clone", None)):
        return thing.detach().clone()
    taken = copy.deepcopy(thing)
    if taken is thing and not isinstance(thing, np.generic):
        raise _refusal(thing)
    _check_cells(taken)
    return taken


def _check_cells(thing: Any) -> None:
    """A table is copied, but not the lists and the like that may be in its cells."""
    columns = getattr(thing, "columns", None)
    if columns is not None and hasattr(thing, "__getitem__"):
        parts = [np.asarray(thing[c]) for c in columns]
    elif getattr(thing, "index", None) is not None and not callable(thing.index):
        parts = [np.asarray(thing)]
    else:
        return
    for part in parts:
        if part.dtype.hasobject and any(_opens(v) for v in part.reshape(-1)):
            raise CopyError("run returned a table with lists or the like in it, which cannot be "
                           "copied. Return numbers and text.")  # fmt: skip


def _opens(cell: Any) -> bool:
    """Whether a cell holds something that can change."""
    inside = hasattr(cell, "__len__") or hasattr(cell, "__array__") or hasattr(cell, "__dict__")
    return inside and not isinstance(cell, str | bytes | np.generic | enum.Enum)


def _refusal(thing: Any) -> CopyError:
    return CopyError(
        f"run returned a {kind(type(thing))}, which cannot be copied: a later call could change "
        "it. Return numbers, text, or arrays, lists, dicts, data frames or dataclasses of these."
    )
