"""Records as columns: split, checked, extended to their domain, and sorted."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from dprad.data.tables import array, codes, joint_codes
from dprad.errors import DpradError, column, record
from dprad.numerics.arrays import Column, FloatArray

# A sum of probabilities this close to one is a rounding error, and is renormalised.
SUM_TOLERANCE = 1e-9
# A larger product of domains is probably a mistake.
MAX_DOMAIN = 10_000_000
# Weights below this share of the largest count as zero: floats have no digits left there.
TINY = 1e-300


def split(
    records: Sequence[Any], columns: Sequence[str] | None
) -> tuple[tuple[str, ...], list[Column]]:
    """Records (values, or tuples of values) as named columns."""
    several = bool(records) and all(isinstance(r, tuple) for r in records)
    width = len(records[0]) if several else 1
    if several and any(len(r) != width for r in records):
        raise DpradError("records must all have the same number of columns, but differ in length.")
    names = _names(columns, width, several)
    arrays = [array(v) for v in zip(*records, strict=True)] if several else [array(records)]
    try:
        distinct = len(set(records))
    except TypeError:
        raise DpradError("records must be values or tuples of values, but are lists.") from None
    if distinct != len(records):
        raise DpradError("support must list each record once, but one occurs twice.")
    return names, arrays


def _names(columns: Sequence[str] | None, width: int, several: bool) -> tuple[str, ...]:
    if columns is None:
        return tuple(f"column_{i}" for i in range(width)) if several else ("value",)
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not all(isinstance(n, str) and n for n in names) or len(set(names)) != len(names):
        raise DpradError(f"columns must be different, non-empty names, but is {columns!r}.")
    if len(names) != width:
        raise DpradError(f"columns must name the {width} columns of a record, but is {columns!r}.")
    return names


def widen(
    columns: tuple[str, ...],
    arrays: Sequence[Column],
    weights: FloatArray,
    domain: Iterable[Any] | Mapping[str, Iterable[Any]],
) -> tuple[list[Column], FloatArray]:
    """Add the records of the domain that were never observed, with weight zero."""
    given: Mapping[str, Any]
    if isinstance(domain, Mapping):
        given = {column(c, columns, name="domain"): v for c, v in domain.items()}
    elif len(columns) == 1:
        given = {columns[0]: domain}
    else:
        raise DpradError(
            "domain must be a mapping from column to values if there are several columns, "
            f"but is a {type(domain).__name__}."
        )
    domains = {name: _possible(name, values) for name, values in given.items()}
    values = []
    for name, observed in zip(columns, arrays, strict=True):
        seen = codes(observed)[1].tolist()
        allowed = domains.get(name, seen)
        outside = set(seen) - set(allowed)
        if outside:
            first = next(v for v in seen if v in outside)
            raise DpradError(
                f"domain of {name!r} must contain every observed value, but lacks {len(outside):,} "
                f"of {len(seen):,} (first: {record(first, seen.index(first) + 1)} in order). Widen "
                "the domain, or drop those rows."
            )
        values.append(allowed)
    size = math.prod(len(v) for v in values)
    if size > MAX_DOMAIN:
        raise DpradError(
            f"domain must span at most {MAX_DOMAIN:,} records, but its product has {size:,}. Give "
            "domains for fewer columns."
        )
    table = dict.fromkeys(itertools.product(*values), 0.0)
    observed_rows = zip(*(a.tolist() for a in arrays), strict=True)
    table.update(zip(observed_rows, weights.tolist(), strict=True))
    wide = [array(v) for v in zip(*table, strict=True)]
    return wide, np.asarray(list(table.values()), dtype=float)


def _possible(name: str, values: Any) -> list[Any]:
    """A domain as a list; refused before it gets too long."""
    try:
        size = len(values) if isinstance(values, Sized) else 0
    except OverflowError:
        size = sys.maxsize
    if size > MAX_DOMAIN:
        more = f"{size:,}" if size < sys.maxsize else "too many to count"
        raise DpradError(
            f"domain of {name!r} must have at most {MAX_DOMAIN:,} values, but has {more}."
        )
    try:
        items = list(values)
        set(items)
    except TypeError:
        raise DpradError(
            f"domain of {name!r} must be a list of values, but is a {type(values).__name__}."
        ) from None
    return items


def weights_of(values: Iterable[Any], name: str) -> FloatArray:
    """Numbers, or a `DpradError`."""
    try:
        return np.asarray([float(v) for v in values], dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DpradError(f"{name} must be a list of numbers, but one is not a number.") from None


def probabilities_of(values: Iterable[Any]) -> FloatArray:
    """Numbers that sum to 1, or a `DpradError`."""
    weights = weights_of(values, "probabilities")
    total = float(weights.sum()) if weights.size else 0.0
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise DpradError(
            f"probabilities must sum to 1, but sum to {total!r}. For weights that do not, use "
            "Prior.from_counts."
        )
    return weights


def in_order(arrays: Sequence[Column], weights: FloatArray) -> tuple[list[Column], FloatArray]:
    """Sorted, each record once; null and NaN, which engines keep apart, are one record here."""
    key, size = joint_codes(arrays)
    first = np.unique(key, return_index=True)[1]
    total = np.bincount(key, weights=weights, minlength=size)
    return [a[first] for a in arrays], np.asarray(total, dtype=float)


def as_table(columns: tuple[str, ...], arrays: Sequence[Column]) -> Column:
    """One column: its array. Several: a structured array."""
    if len(columns) == 1:
        return arrays[0]
    table = np.empty(
        len(arrays[0]), dtype=[(n, a.dtype) for n, a in zip(columns, arrays, strict=True)]
    )
    for name, values in zip(columns, arrays, strict=True):
        table[name] = values
    return table


def normalised(
    columns: tuple[str, ...],
    arrays: Sequence[Column],
    weights: FloatArray,
    domain: Iterable[Any] | Mapping[str, Iterable[Any]] | None,
) -> tuple[Column, FloatArray]:
    """Check the weights, extend to the domain, sort and normalise."""
    if weights.size == 0:
        raise DpradError("a prior must have at least one record, but the table is empty.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise DpradError(
            "probabilities and weights must be finite numbers of at least 0, but record "
            f"{int(bad[0])} has {float(weights[bad[0]])!r}."
        )
    largest = float(weights.max())
    if largest == 0:
        raise DpradError("weights must have a positive sum, but all are 0.")
    arrays, weights = in_order(arrays, weights)
    if domain is not None:
        arrays, weights = in_order(*widen(columns, arrays, weights, domain))
    scaled = weights / largest
    scaled[scaled < TINY] = 0.0
    return as_table(columns, arrays), scaled / scaled.sum()
