"""When a guess counts: the named losses, declared once.

A loss says which guesses are right about which target values at a tolerance eta, in one of four
forms: each value is hit only by itself (`EQUAL`), by an interval of the sorted values
(`Intervals`), as a sparse matrix says (`Pairs`), or by the places near it (`Near`). Threats, the
command line, scenario files and texts all use this table: a new loss is a function and a line in
`LOSSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.numbers import not_numbers
from dprad.errors import DpradError
from dprad.model.near import Near
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.runtime.memory import need

# Distances within this many units in the last place of eta count as equal to it.
ULPS = 4
# entries of a relation that are processed at a time
BLOCK_ENTRIES = 2**22
# bytes per pair of a target and a right guess, while sets are built
MEMBER = 100


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Guess g is right about the values low[g] .. high[g]-1; both ends increase with g."""

    low: IntArray
    high: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """``matrix[t, g]`` says whether guess g is right about target t; sparse."""

    matrix: Any


EQUAL = None
Hits = Intervals | Pairs | Near | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A named loss.

    `hits` gives the right guesses among target values of these columns; `words` says how close a
    guess must be; `most` is the largest sensible eta.
    """

    name: str
    help: str
    hits: Callable[[Any, tuple[str, ...], float], Hits]
    words: Callable[[str], str]
    most: float = np.inf


def _exact(values: Any, columns: tuple[str, ...], eta: float) -> Hits:  # noqa: ARG001
    return EQUAL


def _absolute(values: Any, columns: tuple[str, ...], eta: float) -> Hits:
    line = numbers(values, columns, "absolute")
    if line.dtype.kind == "i":
        # exact: a whole distance is at most eta iff it is at most its whole part
        reach = min(int(eta), int(line[-1])) if len(line) else 0
        low = np.searchsorted(line, line - reach, "left")
        return Intervals(low, np.searchsorted(line, line + reach, "right"))
    # |0.3 - 0.1| <= 0.2 must hold although floating point says otherwise: a few units in the
    # last place of what is compared
    slack = ULPS * np.finfo(float).eps * (np.abs(line) + eta) if eta > 0 else 0.0
    low = np.searchsorted(line, line - eta - slack, "left")
    return Intervals(low, np.searchsorted(line, line + eta + slack, "right"))


def _relative(values: Any, columns: tuple[str, ...], eta: float) -> Hits:
    """``|t - g| <= eta |t|``: t between g/(1 + eta) and g/(1 - eta), of the sign of g."""
    line = numbers(values, columns, "relative", whole=False)
    near, far = line / (1.0 + eta), line / (1.0 - eta)
    slack = ULPS * np.finfo(float).eps * np.abs(far) if eta > 0 else 0.0
    low = np.searchsorted(line, np.minimum(near, far) - slack, "left")
    return Intervals(low, np.searchsorted(line, np.maximum(near, far) + slack, "right"))


def _haversine(values: Any, columns: tuple[str, ...], eta: float) -> Hits:
    """Places within eta metres of each other."""
    return Near.of(*_places(values, columns), eta)


def _places(values: Any, columns: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Latitudes and longitudes in radians."""
    if len(columns) != 2 or not all(values[c].dtype.kind in "iuf" for c in columns):
        raise DpradError(
            "loss='haversine' needs two target columns, latitude and longitude in degrees, but the "
            f"target is {', '.join(columns)}."
        )
    lat, lon = (np.radians(values[c].astype(float)) for c in columns)
    if np.any(np.abs(lat) > np.pi / 2 + 1e-12) or np.any(np.abs(lon) > 2 * np.pi + 1e-12):
        raise DpradError(
            f"loss='haversine' needs {columns[0]!r} in [-90, 90] and {columns[1]!r} in [-360, 360] "
            "degrees, latitude first."
        )
    return lat, lon


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("exact", "the guess must be the value itself", _exact, lambda eta: "", most=0.0),  # noqa: ARG005
        Loss(
            "absolute",
            "a number, within eta",
            _absolute,
            lambda eta: f" to within {eta}",
        ),
        Loss(
            "relative",
            "a number, within a share eta of it, such as 0.1",
            _relative,
            lambda eta: f" to within a share of {eta}",
            most=1.0,
        ),
        Loss(
            "haversine",
            "latitude,longitude, within eta metres",
            _haversine,
            lambda eta: f" to within {eta} metres",
        ),
    )
}


def numbers(values: Column, columns: tuple[str, ...], loss: str, *, whole: bool = True) -> Column:
    """The values of one numeric column, in order: integers counted from 0, or floats."""
    if len(columns) > 1:
        raise DpradError(
            f"loss={loss!r} needs one target column of numbers, but the target is "
            f"{', '.join(columns)}. Name one of them with target=."
        )
    items: list[Any] = values.tolist()
    integers = all(isinstance(v, int) and not isinstance(v, bool) for v in items)
    if whole and integers and items[-1] - items[0] < 2**62:
        # relative to the first, which keeps large integers (timestamps) exact
        return np.asarray([v - items[0] for v in items], dtype=np.int64)
    if items[-1] is None:
        raise DpradError(
            f"loss={loss!r} needs numbers, but {columns[0]!r} has missing values. Drop them "
            "with missing='drop'."
        )
    try:
        if any(isinstance(v, str | bool) or v is None for v in items):
            raise TypeError
        line = np.asarray([float(v) for v in items])
    except (TypeError, ValueError, OverflowError):
        said = not_numbers(items, columns[0]) or f"{columns[0]!r} has values that are too large."
        raise DpradError(f"loss={loss!r} needs one target column of numbers, but {said}") from None
    if not np.all(np.isfinite(line)) or np.any(np.diff(line) <= 0):
        raise DpradError(
            f"loss={loss!r} needs finite numbers that differ as floats, but {columns[0]!r} has "
            "infinite values or values too close to tell apart."
        )
    return line


def affordable(members: int, values: int) -> None:
    """Refuse a relation that would not fit into memory."""
    need(
        MEMBER * members,
        f"The tolerance (at least {members:,} pairs of the {values:,} target values count as hits)",
        "Choose a smaller eta or coarser values.",
    )


def matrix_of(blocks: Iterable[Any], values: int) -> Pairs:
    """A relation from dense blocks of its rows."""
    from scipy import sparse

    rows: list[Any] = []
    members = 0
    for part in blocks:
        rows.append(sparse.csr_array(part))
        members += rows[-1].nnz
        affordable(members, values)
    return Pairs(sparse.vstack(rows, format="csr"))
