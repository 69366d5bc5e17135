"""What a mechanism reads from a record: category codes, or the numbers (or values) of a column."""

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


def columns_read(prior: Prior, threat: Threat, query: Query | None = None) -> tuple[str, ...]:
    """What a mechanism reads: the query, else the target if it is one column, else the record."""
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
        raise DpradError(
            f"query must return one value per record, but raised {told(error)}."
        ) from None


def values_read(prior: Prior, threat: Threat, query: Query | None) -> list[Any]:
    """The value that the mechanism reads from each record."""
    if callable(query):
        values = _called(query, prior)
        if len(values) != prior.size:
            raise DpradError(
                f"query must return one value per record, but returned {len(values)} for "
                f"{prior.size} records."
            )
        return values
    names = columns_read(prior, threat, query)
    if len(names) != 1:
        raise DpradError(
            f"a numeric mechanism reads one column, but here {', '.join(names)}. Choose one with "
            "query=."
        )
    return list(prior.column(names[0]).tolist())


def numbers_of(
    column_read: str, size: int, name: str, prior: Prior, query: Query | None
) -> IntArray:
    """The numbers 0 .. size-1 that a column holds, unchanged: their order has no meaning."""
    alone = prior.columns[0] if len(prior.columns) == 1 else None
    chosen = query or (column_read if column_read in prior.columns else alone)
    if not isinstance(chosen, str):
        raise DpradError(
            f"a {name} reads the column {column_read!r}, which the prior does not have. Say with "
            "query= which column numbers the candidates."
        )
    numbers = prior.column(column(chosen, prior.columns, name="query"))
    if numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= size:
        raise DpradError(
            f"a {name} of size {size} reads numbers 0 .. {size - 1} of candidates, but the column "
            f"{chosen!r} holds something else."
        )
    return numbers.astype(np.intp)


def codes_read(prior: Prior, threat: Threat, query: Query | None, size: int, name: str) -> IntArray:
    """The category code that the mechanism reads from each record."""
    if callable(query):
        labels = array(_called(query, prior))
        if labels.shape != (prior.size,):
            raise DpradError(
                f"query must return one value per record, but returned {len(labels)} for "
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
            f"{name} has size {size}, but reads {count} distinct values here. Use size "
            f"{count}, or say with query= which columns it reads (the prior has "
            f"{', '.join(prior.columns)})."
        )
    return code
