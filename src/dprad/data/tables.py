"""Counting rows where they live.

A prior needs one number a distinct record, not the rows. The engine that holds the table (pandas,
polars, pyarrow, DuckDB, Dask, Spark; through narwhals) groups and counts; only the counts come
here. Files are read by DuckDB, which streams them and spills to disk, so they may be larger than
memory. Cost: one scan of the data; memory here grows with the distinct records alone.
"""

from __future__ import annotations

import csv
import glob as globbing
import math
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprad.errors import DpradError, column, one_of, told
from dprad.numerics.arrays import Column, FloatArray, IntArray, distinct

# The longest header that is looked at.
HEADER = 2**20
# What DuckDB may hold before it spills to disk; a count needs far less.
FILE_MEMORY = "512MB"
# "yes" and "no" are words, not truth values, so that type is not tried.
_CSV = (
    "read_csv($1, header = true, skip = 0, sample_size = $2, hive_partitioning = false, "
    "auto_type_candidates = [{}])".format(
        "'BIGINT', 'HUGEINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR'"
    )
)
# Files up to this size are read whole to find the types of their columns; of larger ones so many
# rows.
WHOLE, ROWS = 2**28, 200_000
_READERS = {".csv": _CSV, ".tsv": _CSV, ".parquet": "read_parquet($1, hive_partitioning = false)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a file is read on behalf of somebody else; checked before it costs anything."""

    columns: int
    rows: int
    distinct: int
    seconds: float


def count(
    data: Any,
    *,
    columns: Sequence[str] | None,
    weight: str | None,
    missing: str,
    glob: bool = False,
    limits: Limits | None = None,
) -> tuple[list[str], list[Column], FloatArray]:
    """Distinct records of `data` and their (weighted) counts, counted inside its own engine.

    Returns column names, one array of values a column, and the weights.
    """
    one_of(missing, "missing", ["keep", "drop", "refuse"])
    with _opened(data, False, glob, limits) as native:
        return _counted(native, columns, weight, missing, limits)


def _counted(
    native: Any,
    columns: Sequence[str] | None,
    weight: str | None,
    missing: str,
    limits: Limits | None,
) -> tuple[list[str], list[Column], FloatArray]:
    import narwhals as nw

    frame, schema = _frame(native)
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
        counted = frame.group_by(*(nw.col(c) for c in wanted)).agg(*totals)
        grouped = _fetch(counted if limits is None else counted.head(limits.distinct + 1))
    except Exception as error:
        raise _failed(error) from None
    if limits is not None and len(grouped[0]) > limits.distinct:
        raise DpradError(
            f"data has more than {limits.distinct:,} different records. Keep fewer columns, or "
            "coarser values, and load it again."
        )
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
    with _opened(data, True, False, None) as native:
        frame, schema = _frame(native)
        try:
            return schema.names(), [array(values) for values in _fetch(frame)]
        except Exception as error:
            raise _failed(error) from None


def _frame(native: Any) -> tuple[Any, Any]:
    """The table in its own engine, through narwhals, and its schema."""
    import narwhals as nw

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


def _unused(stem: str, present: Sequence[str]) -> str:
    name = f"__dprad_{stem}"
    while name in present:
        name += "_"
    return name


def _failed(error: Exception) -> DpradError:
    """What an engine complains about may show a value, so only the kind of it is told."""
    return DpradError(f"data: the table cannot be counted ({told(error)}).")


@contextmanager
def _opened(data: Any, ordered: bool, glob: bool, limits: Limits | None) -> Iterator[Any]:
    """A data frame as it is, or the table of a file, read by DuckDB while this is open.

    DuckDB may read these files and its own folder (which is private, and removed), and nothing
    else: no other file, no extension, no address.
    """
    if not isinstance(data, str | Path):
        yield data
        return
    import duckdb

    files, reader = _files(str(data), glob)
    with tempfile.TemporaryDirectory(prefix="dprad-") as folder:
        names = _plain_names(files, Path(folder))
        connection = duckdb.connect(
            config={
                "memory_limit": FILE_MEMORY,
                "temp_directory": folder,
                "preserve_insertion_order": str(ordered).lower(),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
            }
        )
        clock = threading.Timer(limits.seconds if limits else 0.0, connection.interrupt)
        clock.daemon = True
        try:
            allowed = ", ".join("'" + n.replace("'", "''") + "'" for n in names)
            connection.execute(f"SET allowed_paths = [{allowed}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            if limits is not None:
                clock.start()
            yield _table(connection, names, files, reader, limits)
        except duckdb.InterruptException:
            raise DpradError("data: reading it takes too long. Load a smaller table.") from None
        except duckdb.Error as error:
            hint = " Is it a table with one header line, in UTF-8?" if reader == _CSV else ""
            raise DpradError(
                f"data: the file {str(data)!r} cannot be read ({told(error)}).{hint}"
            ) from None
        finally:
            clock.cancel()
            connection.close()


def _files(name: str, glob: bool) -> tuple[list[Path], str]:
    """The files that a path means, literally unless `glob`, and how they are read."""
    reader = next((r for s, r in _READERS.items() if name.removesuffix(".gz").endswith(s)), None)
    if reader is None:
        raise DpradError(
            f"data must be a path that ends in {', '.join(_READERS)} (or .csv.gz), but is {name!r}."
        )
    found = [Path(name)]
    if glob:
        found = sorted(map(Path, globbing.glob(name, recursive=True)))  # noqa: PTH207
    try:
        missing = [f for f in found if not f.exists()] or not found
        odd = [f for f in found if not f.is_file()]
    except (OSError, ValueError):
        missing, odd = True, []
    if missing:
        hint = "" if glob or not set(name) & set("*?[") else " For a pattern, ask for glob."
        raise DpradError(f"data: the file {name!r} cannot be read: it does not exist.{hint}")
    if odd:
        raise DpradError(f"data: {str(odd[0])!r} is not a file.")
    return [f.resolve() for f in found], reader


def _plain_names(files: list[Path], folder: Path) -> list[str]:
    """Names without anything that DuckDB takes for a pattern: a link, where a file has one."""
    names = []
    for i, file in enumerate(files):
        name = file
        if set(str(file)) & set("*?[]{}"):
            name = folder / f"{i}{''.join(file.suffixes[-2:])}"
            name.symlink_to(file)
        names.append(str(name))
    return names


def _table(
    connection: Any, names: list[str], files: list[Path], reader: str, limits: Limits | None
) -> Any:
    """The rows of the files, after a look at what they are."""
    given: list[Any] = [names]
    if reader == _CSV:
        for file in files:
            _header(file, limits)
        given.append(-1 if sum(f.stat().st_size for f in files) <= WHOLE else ROWS)
        if limits is not None:
            given[1] = min(ROWS, limits.rows)
    elif limits is not None:
        _pages(connection, names, limits)
    table = connection.sql(f"SELECT * FROM {reader}", params=given)
    if reader == _CSV and len(table.columns) == 1 and re.search("[,;|\t]", table.columns[0]):
        raise DpradError(
            f"data: the file {str(files[0])!r} does not read as a table: its rows have different "
            "numbers of fields, or its first line is not a list of names."
        )
    if reader == _CSV:
        _named(table)
    if limits is not None:
        _few(len(table.columns), limits)
        rows = connection.sql(f"SELECT 1 FROM {reader} LIMIT {limits.rows + 1}", params=given)
        if len(rows) > limits.rows:
            raise DpradError(f"data has more than {limits.rows:,} rows. Load a smaller table.")
    return table


def _named(table: Any) -> None:
    """Refuse a file whose first line is a record: then names would be somebody's values."""
    names = table.columns
    numbers = [n for n in names if re.fullmatch(r"[-+]?[\d.,]+(e[-+]?\d+)?", n.strip(), re.I)]
    years = len(numbers) == len(names) and all(re.fullmatch(r"(19|20)\d\d", n) for n in names)
    same = " OR ".join(
        "CAST(\"{}\" AS VARCHAR) = '{}'".format(n.replace('"', '""'), n.replace("'", "''"))
        for n in names
    )
    if (numbers and not years) or table.limit(ROWS).filter(same).limit(1).fetchall():
        raise DpradError(
            "data: the first line of the file looks like a record, not like names of columns. Add "
            "a line with names, and load it again."
        )


def _pages(connection: Any, names: list[str], limits: Limits) -> None:
    """Refuse a Parquet file by what it says of itself, before anything is unpacked."""
    ((columns, rows),) = connection.execute(
        "SELECT max(n), sum(r) FROM (SELECT count(*) FILTER (WHERE row_group_id = 0) AS n, "
        "sum(row_group_num_rows) FILTER (WHERE column_id = 0) AS r "
        "FROM parquet_metadata($1) GROUP BY file_name)",
        [names],
    ).fetchall()
    _few(int(columns or 0), limits)
    if int(rows or 0) > limits.rows:
        raise DpradError(f"data has more than {limits.rows:,} rows. Load a smaller table.")


def _few(columns: int, limits: Limits) -> None:
    if columns > limits.columns:
        raise DpradError(
            f"data has {columns:,} columns; records of so many are nearly all different. Keep "
            f"those that matter, {limits.columns} at most, and load it again."
        )


def _header(path: Path, limits: Limits | None) -> None:
    """Refuse a header with empty names, or the same name twice; other engines would rename them."""
    if path.suffix not in (".csv", ".tsv"):
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        line = file.readline(HEADER)
    separator = max(",;\t|", key=line.count)
    if limits is not None:
        _few(line.count(separator) + 1, limits)
    try:
        row = next(csv.reader([line.strip("\r\n")], delimiter=separator), [])
    except csv.Error:
        raise DpradError(f"data: the first line of {str(path)!r} is not a list of names.") from None
    names = [n.strip() for n in row]
    if len(names) < 2:
        return
    twice = [n for n, times in Counter(names).items() if n and times > 1]
    if "" in names or twice:
        places = [str(i) for i, n in enumerate(names, 1) if twice and n == twice[0]]
        what = f"has one name for columns {' and '.join(places)}" if twice else "has an empty name"
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
        values_, ranks = distinct(values)
        return ranks, values_
    unique = set(values)
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
    """One code a row for the tuple of its values, in the order of the tuples; and how many."""
    code, size = codes(arrays[0])[0], 0
    for values in arrays[1:]:
        more, different = codes(values)
        # renumbering after each column keeps the product within the range of integers
        code = distinct(code * len(different) + more)[1]
    size = int(code.max()) + 1 if len(code) else 0
    return code.astype(np.intp), size
