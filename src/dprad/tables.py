"""Counting rows where they live.

A prior needs one number a distinct record, not the rows. The engine that holds the table (pandas,
polars, pyarrow, DuckDB, Dask, Spark; through narwhals) groups and counts; only the counts come
here. Files are read by DuckDB, which streams them and spills to disk, so they may be larger than
memory. Cost: one scan of the data; memory here grows with the distinct records alone.
"""

from __future__ import annotations

import csv
import math
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprad.arrays import Column, FloatArray, IntArray
from dprad.errors import DpradError, column, one_of

# What DuckDB may hold before it spills to disk; a count needs far less.
FILE_MEMORY = "512MB"
# "yes" and "no" are words, not truth values, so that type is not tried.
_CSV = (
    "read_csv($1, header = true, skip = 0, sample_size = $2, auto_type_candidates = [{}])".format(
        "'BIGINT', 'HUGEINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR'"
    )
)
# Files up to this size are read whole to find the types of their columns; of larger ones so many
# rows.
WHOLE, ROWS = 2**28, 200_000
_READERS = {".csv": _CSV, ".tsv": _CSV, ".parquet": "read_parquet($1)"}


def count(
    data: Any,
    *,
    columns: Sequence[str] | None,
    weight: str | None,
    missing: str,
) -> tuple[list[str], list[Column], FloatArray]:
    """Distinct records of `data` and their (weighted) counts, counted inside its own engine.

    Returns column names, one array of values a column, and the weights.
    """
    import narwhals as nw

    one_of(missing, "missing", ["keep", "drop", "refuse"])
    frame, schema = _frame(data, ordered=False)
    present = schema.names()
    if not all(isinstance(name, str) for name in present):
        raise DpradError("column names must be text, but some are not. Rename those columns first.")
    wanted = [c for c in present if c != weight] if columns is None else _wanted(columns)
    for name in wanted:
        column(name, present, name="columns")
    # names for the counts that no column has
    total, least, filled, rows, weights_ = (_unused(n, present) for n in "tlfrw")
    if weight is None:
        totals = [nw.len().alias(total)]
    else:
        column(weight, present, name="weight")
        if not schema[weight].is_numeric():
            raise DpradError(
                f"weight must be a column of numbers, but {weight!r} holds {schema[weight]}."
            )
        # as floats, so that no engine overflows; under a new name, as it may also be a key
        frame = frame.with_columns(nw.col(weight).cast(nw.Float64).alias(weights_))
        w = nw.col(weights_)
        totals = [
            w.sum().alias(total),
            w.min().alias(least),
            w.count().alias(filled),
            nw.len().alias(rows),
        ]
    try:
        grouped = _fetch(frame.group_by(*(nw.col(c) for c in wanted)).agg(*totals))
    except Exception as error:
        raise _failed(error) from None
    if not grouped[0]:
        raise DpradError("data must have at least one row, but the table is empty.")
    found, rest = grouped[: len(wanted)], grouped[len(wanted) :]
    weights = np.array([math.nan if v is None else float(v) for v in rest[0]])
    if weight is not None:
        smallest = min(math.nan if v is None else float(v) for v in rest[1])
        if rest[2] != rest[3] or not np.all(np.isfinite(weights)) or not smallest >= 0:
            raise DpradError(
                f"weight must be a column of finite numbers of at least 0, but {weight!r} has "
                "missing, infinite or negative values. Clean or drop those rows first."
            )
    arrays = []
    for name, values in zip(wanted, found, strict=True):
        try:
            arrays.append(array(values))
            hash(arrays[-1][0])
        except TypeError:
            raise DpradError(f"column {name!r} holds lists or the like; choose others.") from None
        if missing == "refuse" and arrays[-1].dtype == object and None in set(arrays[-1]):
            raise DpradError(
                f"column {name!r} has missing values. Pass missing='drop' to leave such rows out, "
                "or 'keep' to count missing as a category of its own."
            )
    return wanted, arrays, weights


def read_rows(data: Any) -> tuple[list[str], list[Column]]:
    """All rows, in order: column names, and one array of values a column. They must fit here."""
    frame, schema = _frame(data, ordered=True)
    try:
        return schema.names(), [array(values) for values in _fetch(frame)]
    except Exception as error:
        raise _failed(error) from None


def _frame(data: Any, *, ordered: bool) -> tuple[Any, Any]:
    """The table in its own engine, through narwhals, and its schema."""
    import narwhals as nw

    native = _open(data, ordered) if isinstance(data, str | Path) else data
    try:
        frame: Any = nw.from_native(native)
        return frame, frame.collect_schema()
    except TypeError:
        raise DpradError(
            "data must be a data frame (pandas, polars, pyarrow, DuckDB, Dask, Spark) or the path "
            f"of a CSV or Parquet file, but is a {type(data).__name__}."
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


def _unused(stem: str, present: Sequence[str]) -> str:
    name = f"__dprad_{stem}"
    while name in present:
        name += "_"
    return name


def _failed(error: Exception) -> DpradError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return DpradError(f"data: the table cannot be counted ({reason}).")


def _open(path: str | Path, ordered: bool) -> Any:
    import duckdb

    name = str(path)
    if not any(c in name for c in "*?[") and not Path(name).exists():
        raise DpradError(f"data: the file {name!r} cannot be read: it does not exist.")
    reader = next((r for s, r in _READERS.items() if name.removesuffix(".gz").endswith(s)), None)
    if reader is None:
        raise DpradError(
            f"data must be a path that ends in {', '.join(_READERS)} (or .csv.gz), but is {name!r}."
        )
    connection = duckdb.connect(
        config={
            "memory_limit": FILE_MEMORY,
            "temp_directory": tempfile.gettempdir(),
            "preserve_insertion_order": str(ordered).lower(),
        }
    )
    try:
        given: list[Any] = [name]
        if reader == _CSV:
            path_ = Path(name)
            given.append(-1 if path_.exists() and path_.stat().st_size <= WHOLE else ROWS)
            _header(path_)
        table = connection.sql(f"SELECT * FROM {reader}", params=given)
        if reader == _CSV and len(table.columns) == 1 and re.search("[,;|\t]", table.columns[0]):
            raise DpradError(
                f"data: the file {name!r} does not read as a table: its rows have different "
                f"numbers of fields, or its header ({table.columns[0]!r}) is no list of names."
            )
        return table
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        hint = " Is it a table with one header line, in UTF-8?" if reader == _CSV else ""
        raise DpradError(f"data: the file {name!r} cannot be read ({reason}).{hint}") from None


def _header(path: Path) -> None:
    """Refuse a header with empty names, or the same name twice; other engines would rename them."""
    if path.suffix not in (".csv", ".tsv") or not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        line = file.readline(2**20)
    separator = max(",;\t|", key=line.count)
    names = [n.strip() for n in next(csv.reader([line.strip("\r\n")], delimiter=separator), [])]
    if len(names) < 2:
        return
    twice = [n for n in names if n and names.count(n) > 1]
    if "" in names or twice:
        what = f"has the name {twice[0]!r} twice" if twice else "has an empty name"
        raise DpradError(f"data: the header of {str(path)!r} {what}. Each column needs its own.")


def _fetch(frame: Any) -> list[list[Any]]:
    """The columns of a small result, whatever engine computed it."""
    import narwhals as nw

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
        distinct, ranks = np.unique(values, return_inverse=True)
        return ranks.astype(np.intp), distinct
    unique = set(values)
    present = [v for v in unique if v is not None]
    try:
        present.sort()
    except TypeError:
        present.sort(key=lambda v: (type(v).__name__, repr(v)))
    ordered = present + [None] * (None in unique)
    rank = {v: i for i, v in enumerate(ordered)}
    distinct = np.empty(len(ordered), dtype=object)
    distinct[:] = ordered
    return np.fromiter((rank[v] for v in values), dtype=np.intp, count=len(values)), distinct


def joint_codes(arrays: Sequence[Column]) -> tuple[IntArray, int]:
    """One code a row for the tuple of its values, in the order of the tuples; and how many."""
    code, size = codes(arrays[0])[0], 0
    for values in arrays[1:]:
        more, distinct = codes(values)
        # renumbering after each column keeps the product within the range of integers
        code = np.unique(code * len(distinct) + more, return_inverse=True)[1]
    size = int(code.max()) + 1 if len(code) else 0
    return code.astype(np.intp), size
