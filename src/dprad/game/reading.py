"""What a mechanism reads of a record: category codes, or the numbers (or values) of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dprad.data.tables import array, codes, joint_codes
from dprad.errors import DpradError, column, told
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.arrays import Column, IntArray

Query = str | Sequence[str] | Callable[[Column], Sequence[Any]]


def reads(mechanism: Any, prior: Prior, threat: Threat, query: Query | None = None) -> Column:
    """What the mechanism reads of each record of a finite prior, as its `sample` takes it."""
    parts = getattr(mechanism, "mechanisms", None)
    if parts is not None:
        return _agreed(parts, prior, threat, query)
    if hasattr(mechanism, "column") and not callable(query):
        return _numbered(mechanism, prior, query)
    if hasattr(mechanism, "size"):
        return _codes(prior, threat, query, mechanism.size, type(mechanism).__name__)
    if hasattr(mechanism, "reads"):
        return np.asarray(mechanism.reads(_values(prior, threat, query)))
    raise DpradError(
        "expected a guarantee (such as dprad.PureDP) or a mechanism (such as "
        f"dprad.mechanisms.GRR), but got a {type(mechanism).__name__}."
    )


def _agreed(parts: Sequence[Any], prior: Prior, threat: Threat, query: Query | None) -> Column:
    """What the parts of a composition read, each asked for itself: all must read the same."""
    unlike = {id(m): m for m in parts}.values()  # one mechanism repeated is asked once
    first, *others = [reads(m, prior, threat, query) for m in unlike]
    if not all(np.array_equal(first, other) for other in others):
        names = ", ".join(type(m).__name__ for m in parts)
        raise DpradError(
            f"the mechanisms of a composition ({names}) read different things of a record here. "
            "Say with query= which column all of them read."
        )
    return first


def columns_read(prior: Prior, threat: Threat, query: Query | None = None) -> tuple[str, ...]:
    """What a mechanism reads: as told, else the target if that is one column, else the record."""
    if query is None:
        target = threat.target_columns(prior)
        return target if len(target) == 1 else prior.columns
    names = (query,) if isinstance(query, str) else query
    if callable(names) or not isinstance(names, Sequence) or not names:
        raise DpradError(
            f"query must be a column, a list of columns or a callable, but is {query!r}."
        )
    return tuple(column(c, prior.columns, name="query") for c in names)


def _called(query: Callable[[Column], Sequence[Any]], prior: Prior) -> list[Any]:
    try:
        return list(query(prior.support))  # type: ignore[arg-type]
    except Exception as error:
        raise DpradError(f"query must return one value a record, but: {told(error)}.") from None


def _values(prior: Prior, threat: Threat, query: Query | None) -> list[Any]:
    """The value that the mechanism reads of each record."""
    if callable(query):
        values = _called(query, prior)
        if len(values) != prior.size:
            raise DpradError(
                f"query must return one value a record, but returned {len(values)} for "
                f"{prior.size} records."
            )
        return values
    names = columns_read(prior, threat, query)
    if len(names) != 1:
        raise DpradError(
            f"a numeric mechanism reads one column, but here {', '.join(names)}. Say which with "
            "query=."
        )
    return list(prior.column(names[0]).tolist())


def _numbered(mechanism: Any, prior: Prior, query: Query | None) -> IntArray:
    """Numbers 0 .. size-1 that a column holds as they are: here an order would mean nothing."""
    alone = prior.columns[0] if len(prior.columns) == 1 else None
    name = query or (mechanism.column if mechanism.column in prior.columns else alone)
    if not isinstance(name, str):
        raise DpradError(
            f"a {type(mechanism).__name__} reads the column {mechanism.column!r}, which the prior "
            "does not have. Say with query= which column numbers the candidates."
        )
    numbers = prior.column(column(name, prior.columns, name="query"))
    if numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= mechanism.size:
        raise DpradError(
            f"a {type(mechanism).__name__} of size {mechanism.size} reads numbers 0 .. "
            f"{mechanism.size - 1} of candidates, but the column {name!r} holds something else."
        )
    return numbers.astype(np.intp)


def _codes(prior: Prior, threat: Threat, query: Query | None, size: int, name: str) -> IntArray:
    """The category code that the mechanism reads of each record."""
    if callable(query):
        labels = array(_called(query, prior))
        if labels.shape != (prior.size,):
            raise DpradError(
                f"query must return one value a record, but returned {len(labels)} for "
                f"{prior.size} records."
            )
        if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < size:
            return labels.astype(np.intp)  # codes already
        code, distinct = codes(labels)
        count = len(distinct)
    else:
        names = columns_read(prior, threat, query)
        code, count = joint_codes([prior.column(c) for c in names])
    if count != size:
        raise DpradError(
            f"{name} has size {size}, but reads {count} different values here. Make it of size "
            f"{count}, or say with query= which columns it reads (the prior has "
            f"{', '.join(prior.columns)})."
        )
    return code
