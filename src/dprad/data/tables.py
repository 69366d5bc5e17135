"""Counting rows where they live.

A prior needs one number per distinct record, not the rows. The engine that holds the table
(pandas, polars, pyarrow, DuckDB, Dask, Spark; through narwhals) groups and counts; only the counts
come here. Files are opened by `dprad.data.files`. Cost: one scan of the data; memory here grows
with the distinct records alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.as_written import read as as_written
from dprad.data.files import SMALL, Limits, UnreadableError, is_text, opened
from dprad.data.text import Written, quoted
from dprad.errors import DpradError, column, part, told
from dprad.numerics.arrays import Column, FloatArray, IntArray, distinct
from dprad.runtime.memory import need

# Most columns of a table that make up a record, unless they are named: DuckDB takes two seconds for
# so many, and a hundred times that for ten times as many.
WIDEST = 1000
# Bytes that a value of a record takes here, beside those of a text.
CELL = 100


def count(
    data: Any,
    *,
    columns: Sequence[str] | None,
    weight: str | None,
    glob: bool = False,
    limits: Limits | None = None,
    written: Written | None = None,
) -> tuple[list[str], list[Column], FloatArray, IntArray, FloatArray]:
    """Distinct records of `data` and their (weighted) counts, counted inside its own engine.

    Returns column names, one array of values per column, the weights, the numbers of rows that
    weigh something, and the sums of their squared weights.
    """
    named = None
    if limits is not None and columns is not None:
        named = [*_wanted(columns), *([] if weight is None else [weight])]
    with opened(data, False, glob, limits, written, named) as (native, engine):
        return _counted(native, engine, columns, weight, limits)


def names_of(data: Any, *, written: Written | None = None) -> list[str]:
    """The names of the columns; the rows are not counted."""
    with opened(data, False, False, None, written) as (native, _):
        return list(_frame(native)[1].names())


def _counted(
    native: Any,
    engine: Any,
    columns: Sequence[str] | None,
    weight: str | None,
    limits: Limits | None,
) -> tuple[list[str], list[Column], FloatArray, IntArray, FloatArray]:
    frame, schema = _frame(native)
    keys = _keys(schema.names(), columns, weight)
    if weight is not None:
        column(weight, schema.names(), name="weight")
    plain = {name: f"c{i}" for i, name in enumerate(schema.names())}
    chosen = {
        name: plain[name] for name in dict.fromkeys([*keys, *([] if weight is None else [weight])])
    }
    frame, totals = _totals(_renamed(frame, plain, chosen), schema, plain, weight)
    grouped = _grouped(frame, [plain[k] for k in keys], totals, limits, engine)
    weights = _weights(grouped[len(keys) :], weight)
    rows = np.asarray(grouped[-1], dtype=np.int64)
    squares = weights if weight is None else np.asarray(grouped[-2], dtype=float)
    records = zip(keys, grouped[: len(keys)], strict=True)
    return keys, [_key(name, values) for name, values in records], weights, rows, squares


def _keys(present: list[Any], columns: Sequence[str] | None, weight: str | None) -> list[str]:
    """The columns that make up a record; by default all but the weight."""
    if not all(isinstance(name, str) for name in present):
        raise DpradError("column names must be text, but some are not. Rename those columns first.")
    keys = [c for c in present if c != weight] if columns is None else _wanted(columns)
    if columns is None and len(keys) > WIDEST:
        raise DpradError(
            f"data has {len(keys):,} columns; records of so many are nearly all different. Name "
            "those that make up a record with columns=, or --columns."
        )
    for name in keys:
        column(name, present, name="columns")
    if not keys:
        why = "it has none" if weight is None else f"it has none but the weight {weight!r}"
        raise DpradError(f"data must have a column that tells what the records are, but {why}.")
    return keys


def _renamed(frame: Any, names: dict[str, str], chosen: dict[str, str]) -> Any:
    """The chosen columns under other names: engines take time for each column, and some names for
    more than a name: a.b, *, or ^a.*$.
    """
    nw = part("narwhals", "tables", "tables")

    native: Any = frame.to_native()
    try:
        if frame.implementation.is_duckdb():
            native = native.project(", ".join(f"{quoted(n)} AS {new}" for n, new in chosen.items()))
        elif frame.implementation.is_pyspark():
            native = native.toDF(*names.values()).select(*chosen.values())
        else:
            return frame.rename(names).select(*chosen.values())
    except Exception as error:
        raise _failed(error) from None
    return nw.from_native(native)


def _totals(
    frame: Any, schema: Any, plain: dict[str, str], weight: str | None
) -> tuple[Any, list[Any]]:
    """The frame, and what is computed for each group of equal records.

    That is their number; with a weight its sum, its minimum, how often it is there, the number, the
    sum of squares, and how many weigh something.
    """
    nw = part("narwhals", "tables", "tables")

    if weight is None:
        return frame, [nw.len().alias("total")]
    if not schema[weight].is_numeric():
        raise DpradError(
            f"weight must be a column of numbers, but {weight!r} holds "
            f"{type(schema[weight]).__name__}. If it has decimal commas, read it with decimal=','."
        )
    w = nw.col("w")
    try:
        # as floats, so that no engine overflows; under a new name, as it may also be a key
        frame = frame.with_columns(w=nw.col(plain[weight]).cast(nw.Float64)).with_columns(
            square=w * w, heavy=nw.when(w > 0).then(nw.lit(1)).otherwise(nw.lit(0))
        )
    except Exception as error:
        raise _failed(error) from None
    return frame, [
        w.sum().alias("total"),
        w.min().alias("least"),
        w.count().alias("filled"),
        nw.len().alias("rows"),
        nw.col("square").sum().alias("squares"),
        nw.col("heavy").sum().alias("many"),
    ]


def _grouped(
    frame: Any, keys: list[str], totals: list[Any], limits: Limits | None, engine: Any
) -> list[list[Any]]:
    """The distinct records, a list per key, and their totals, a list for each.

    Those of a file stay with DuckDB, which spills to disk, until it is known that they fit here.
    """
    nw = part("narwhals", "tables", "tables")

    try:
        counted = frame.group_by(*(nw.col(c) for c in keys)).agg(*totals)
        if limits is not None:
            counted = counted.head(limits.distinct + 1)
        if engine is not None:
            counted.to_native().create("grouped")
            counted = nw.from_native(engine.table("grouped"))
            _fit(counted.to_native(), "different records")
        grouped = _fetch(counted)
    except DpradError:
        raise
    except Exception as error:
        raise _failed(error) from None
    if limits is not None and len(grouped[0]) > limits.distinct:
        raise DpradError(
            f"data has more than {limits.distinct:,} different records. Keep fewer columns, or "
            "coarser values, and load it again."
        )
    if not grouped[0]:
        raise DpradError("data must have at least one row, but the table is empty.")
    return grouped


def _weights(totals: list[list[Any]], weight: str | None) -> FloatArray:
    """What each distinct record weighs, from the totals of `_totals`."""
    weights = np.array([math.nan if v is None else float(v) for v in totals[0]])
    if weight is None:
        return weights
    _, least, filled, rows, *_ = totals
    smallest = min(math.nan if v is None else float(v) for v in least)
    if filled != rows or not np.all(np.isfinite(weights)) or not smallest >= 0:
        raise DpradError(
            f"weight must be a column of finite numbers of at least 0, but {weight!r} has "
            "missing, infinite or negative values. Clean or drop those rows first."
        )
    return weights


def _key(name: str, values: list[Any]) -> Column:
    """One column of the distinct records."""
    try:
        key = array(values)
        hash(key[0])
    except TypeError:
        raise DpradError(f"column {name!r} holds lists or the like; choose others.") from None
    return key


def read_rows(data: Any, literal: bool = False) -> tuple[list[str], list[Column]]:
    """All rows, in order: column names, and one array of values per column. They must fit here.

    If `literal`, values stay as they are (NaN is not None, 1 not 1.0), and columns of a text file
    that are no plain numbers come twice (`data.as_written`).
    """
    text = literal and is_text(data)
    with opened(data, True, False, None, Written(literal=text)) as (native, engine):
        frame, schema = _frame(native)
        try:
            if engine is not None:
                _fit(frame.to_native(), "rows")
            names, columns = schema.names(), _fetch(frame)
        except DpradError:
            raise
        except Exception as error:
            raise _failed(error) from None
    if text:
        read = [(n, c) for n, texts in zip(names, columns, strict=True) for c in as_written(texts)]
        names, columns = [n for n, _ in read], [c for _, c in read]
    return names, [_kept(values) if literal else array(values) for values in columns]


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing value of a kind of its own: NA, or NaT."""

    kind: str


def _kept(values: list[Any]) -> Column:
    """As they are: an array of numbers if all are of one type, else objects."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return np.asarray(values)
    if len(kinds) == 1 and kinds <= {int, bool}:
        return array(values)
    result = np.empty(len(values), dtype=object)
    named = {"NAType": Gap("NA"), "NaTType": Gap("NaT")}
    result[:] = [named.get(type(v).__name__, v) for v in values]
    return result


def _frame(native: Any) -> tuple[Any, Any]:
    """The table in its own engine, through narwhals, and its schema."""
    nw = part("narwhals", "tables", "tables")

    try:
        frame: Any = nw.from_native(native)
        return frame, frame.collect_schema()
    except TypeError:
        raise DpradError(
            "data must be a data frame (pandas, polars, pyarrow, DuckDB, Dask, Spark) or the path "
            f"of a CSV or Parquet file, but is a {type(native).__name__}."
        ) from None
    except Exception as error:
        raise _failed(error) from None


def _wanted(columns: Any) -> list[str]:
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise DpradError(f"columns must be a list of column names, but is {columns!r}.")
    if not names:
        raise DpradError("columns must name at least one column, but is empty.")
    if len(set(names)) != len(names):
        raise DpradError(f"columns must name each column once, but is {names!r}.")
    return list(names)


def _failed(error: Exception) -> UnreadableError:
    """What an engine complains about may show a value, so only the kind of it is told."""
    return UnreadableError(f"data: the table cannot be counted ({told(error)}).")


def _fit(table: Any, what: str) -> None:
    """Refuse a table of DuckDB whose rows would not fit here, before they come."""
    kinds = zip(table.columns, map(str, table.types), strict=True)
    long = [n for n, kind in kinds if kind == "VARCHAR" or not SMALL.fullmatch(kind)]
    sizes = [f"coalesce(sum(strlen(CAST({quoted(n)} AS VARCHAR))), 0)" for n in long]
    ((rows, size),) = table.aggregate(f"count(*), {' + '.join(sizes) or 0}").fetchall()
    need(
        rows * len(table.columns) * CELL + float(size),
        f"data: {rows:,} {what}",
        "Keep fewer rows or columns, or coarser values.",
    )


def _fetch(frame: Any) -> list[list[Any]]:
    """The columns of a small result, whatever engine computed it."""
    nw = part("narwhals", "tables", "tables")

    if isinstance(frame, nw.LazyFrame):
        native: Any = frame.to_native()
        width = len(frame.collect_schema().names())
        if frame.implementation.is_duckdb():
            rows = native.fetchall()
        elif frame.implementation.is_pyspark():
            rows = [tuple(row) for row in native.collect()]
        else:
            return _fetch(frame.collect())
        return [list(c) for c in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    return [frame[name].to_list() for name in frame.columns]


def array(values: Iterable[Any]) -> Column:
    """A column: integers, floats or booleans where all are, objects otherwise; missing is None.

    Nothing is rounded: what does not fit a machine number exactly stays an object, and so does
    text, whose longest value would otherwise set the width of all.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        return values
    items = [v.item() if isinstance(v, np.generic) else v for v in values]
    items = [None if is_missing(v) else v for v in items]
    kinds = {type(v) for v in items}
    if kinds == {bool}:
        return np.asarray(items, dtype=bool)
    if kinds == {int} and all(-(2**63) <= v < 2**63 for v in items):
        return np.asarray(items, dtype=np.int64)
    if kinds in ({float}, {int, float}) and all(
        isinstance(v, float) or abs(v) <= 2**53 for v in items
    ):
        return np.asarray(items, dtype=float)
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and NA, all of which differ from themselves or do not compare at all."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def codes(values: Column) -> tuple[IntArray, Column]:
    """The rank of each value among the distinct ones, and these in order; missing comes last."""
    if values.dtype != object:
        values_, ranks = distinct(values)
        return ranks, values_
    try:
        unique = set(values)
    except TypeError:
        raise DpradError("data holds lists or the like; choose other columns.") from None
    present = [v for v in unique if v is not None]
    try:
        present.sort()
    except TypeError:
        present.sort(key=lambda v: (type(v).__name__, repr(v)))
    ordered = present + [None] * (None in unique)
    rank = {v: i for i, v in enumerate(ordered)}
    different = np.empty(len(ordered), dtype=object)
    different[:] = ordered
    return np.fromiter((rank[v] for v in values), dtype=np.intp, count=len(values)), different


def joint_codes(arrays: Sequence[Column]) -> tuple[IntArray, int]:
    """One code per row for the tuple of its values, in the order of the tuples; and how many."""
    code, size = codes(arrays[0])[0], 0
    for values in arrays[1:]:
        more, different = codes(values)
        # renumbering after each column keeps the product within the range of integers
        code = distinct(code * len(different) + more)[1]
    size = int(code.max()) + 1 if len(code) else 0
    return code.astype(np.intp), size
