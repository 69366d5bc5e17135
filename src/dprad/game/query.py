"""What a mechanism reads from a record: category codes, or the numbers (or values) of a column.

A predicate (`dprad.model.predicates`) reads 1 where it holds, and 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

from dprad.data.numbers import not_numbers
from dprad.data.tables import array, codes, joint_codes
from dprad.errors import DpradError, argument, column, told
from dprad.model.listing import Equal
from dprad.model.predicates import example, holds, is_predicate
from dprad.model.priors import Prior
from dprad.model.threats import Threat, target_values
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
            "query must be a column, a list of columns, a comparison or a callable, but is "
            f"{argument(query)}."
        )
    return tuple(column(c, prior.columns, name="query") for c in names)


def _asks(query: Query | None, prior: Prior) -> TypeGuard[str]:
    return isinstance(query, str) and is_predicate(query, prior.columns)


def distinct_read(prior: Prior, threat: Threat, query: Query | None = None) -> Column:
    """The different values that a mechanism may read, in order; of a predicate 0 and 1."""
    if _asks(query, prior):
        holds(query, prior)  # or an error
        return np.array([0, 1])
    return target_values(prior, columns_read(prior, threat, query))[1]


def range_read(prior: Prior, threat: Threat, query: Query | None = None) -> Column | range:
    """The same; equally likely values are a range, and not listed."""
    plain = not _asks(query, prior) and columns_read(prior, threat, query) == prior.columns
    if isinstance(prior.records, Equal) and plain:
        return range(prior.records.size)
    return distinct_read(prior, threat, query)


def number_read(prior: Prior, threat: Threat, query: Query | None = None) -> int:
    """How many different values a mechanism may read."""
    return len(range_read(prior, threat, query))


def numbers_needed(
    values: Iterable[Any], prior: Prior, threat: Threat, query: Query | None, who: str
) -> None:
    """Refuse values of a column that are not numbers, and say what to do about them."""
    if callable(query) or _asks(query, prior):
        return
    name = _one(columns_read(prior, threat, query))
    said = not_numbers(values, name)
    if said:
        ask = f" To count records, ask: query='{example(name)}'." if "holds" in said else ""
        raise DpradError(f"{who} reads numbers, but the column {said}{ask}")


def _one(names: tuple[str, ...]) -> str:
    if len(names) != 1:
        raise DpradError(
            f"a numeric mechanism reads one column, but here {', '.join(names)}. Choose one with "
            "query=."
        )
    return names[0]


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
    if _asks(query, prior):
        return list(holds(query, prior).astype(int).tolist())
    return list(prior.column(_one(columns_read(prior, threat, query))).tolist())


def numbers_as_they_are(prior: Prior, threat: Threat, query: Query | None) -> Column | None:
    """The same as an array, if a column of numbers is read as it is."""
    if callable(query) or _asks(query, prior):
        return None
    values = prior.column(_one(columns_read(prior, threat, query)))
    return values if values.dtype.kind in "iuf" else None


def records_read(prior: Prior, threat: Threat, query: Query | None) -> Column:
    """What a function is called with for each record: a value, or a tuple of several columns."""
    if not callable(query) and not _asks(query, prior):
        names = columns_read(prior, threat, query)
        if len(names) > 1:
            rows = zip(*(prior.column(name).tolist() for name in names), strict=True)
            result: Column = np.empty(prior.size or 0, dtype=object)
            result[:] = list(rows)
            return result
    return array(values_read(prior, threat, query))


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
    elif _asks(query, prior):
        code, count = holds(query, prior).astype(np.intp), 2
    else:
        names = columns_read(prior, threat, query)
        code, count = joint_codes([prior.column(c) for c in names])
    read_all(count, size, name, prior)
    return code


def read_all(count: int, size: int, name: str, prior: Prior) -> None:
    """Refuse a mechanism for another number of values than it reads."""
    if count != size:
        raise DpradError(
            f"{name} has size {size}, but reads {count} distinct values here. Use size "
            f"{count}, or say with query= which columns it reads (the prior has "
            f"{', '.join(prior.columns)})."
        )
