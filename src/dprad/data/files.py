"""Opening CSV and Parquet files as tables.

DuckDB reads them: it streams, and spills to disk, so they may be larger than memory. It sees the
files that were named and nothing else. What does not read as a table is refused in plain words.
"""

from __future__ import annotations

import csv
import glob as globbing
import gzip
import math
import re
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprad.data.text import COPY, Written, in_utf8, looks_like_utf16, quoted, why_not_utf8
from dprad.errors import DpradError, check_columns, part, told
from dprad.runtime.interrupts import interruptible
from dprad.runtime.memory import bounded

# Bytes that DuckDB may take to read what a Parquet file says of itself.
DESCRIBED = 2**30
# The longest header, in characters.
HEADER = 2**20
# The longest name of a column.
NAME = 2**17
# Types of columns whose values are small: numbers, times and (measured) text.
SMALL = re.compile(
    r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|BOOLEAN|UUID|VARCHAR"
    r'|DATE|(TIME|TIMESTAMP)(_S|_MS|_NS|TZ_NS| WITH TIME ZONE)?|INTERVAL|"?NULL"?'
)
# Numbers, dates and times of day are no names of columns.
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_TIME = r"\d{1,2}:\d\d(:[\d.,]+)? *([ap]m)? *(z|[-+]\d\d:?\d\d)?"
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_YEAR = r"(19|20)\d\d"
VALUE = (
    rf"[-+]?[\d.,]+(e[-+]?\d+)?|{_DATE}([ t]+{_TIME})?|{_TIME}"
    rf"|\d{{1,2}}[- .]*{_MONTH}[- .,]*\d{{2,4}}|{_MONTH} *\d{{1,2}},? *\d{{4}}"
    r"|\+\d[\d ()/-]{6,}|[$€£¥] *[\d.,]+|[\d.,]+ *([$€£¥%]|eur|usd|gbp|kg|cm)"
)
# What DuckDB may hold before it spills to disk; a count needs far less.
FILE_MEMORY = "512MB"
# "yes" and "no" are words, not truth values, so that type is not tried. Nothing is a comment, and
# only double quotes quote: where DuckDB guesses otherwise, it drops lines and cuts values.
_CSV = (
    "read_csv($1, header = true, skip = 0, comment = '', quote = '\"', escape = '\"', "
    "sample_size = $2, hive_partitioning = false, "
    "auto_type_candidates = [{}])".format(
        "'BIGINT', 'HUGEINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR'"
    )
)
# Files up to this size (unpacked) are read whole to find the types of their columns; of larger
# ones, this many rows. DuckDB hears no Ctrl-C meanwhile.
WHOLE, ROWS = 2**28, 200_000
_READERS = {".csv": _CSV, ".tsv": _CSV, ".parquet": "read_parquet($1, hive_partitioning = false)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a file is read on behalf of somebody else; checked before it costs anything."""

    columns: int  # of a record
    rows: int
    distinct: int
    seconds: float
    unpacked: int = 2**28  # bytes of a Parquet file, unpacked
    text: int = 200  # bytes of a value
    width: int | None = None  # columns of the file to choose from; None: as many as of a record


def is_text(data: Any) -> bool:
    """Whether this is the path of a text file, whose values have no types."""
    return isinstance(data, str | Path) and str(data).removesuffix(".gz").endswith((".csv", ".tsv"))


class UnreadableError(DpradError):
    """A table cannot be read; its encoding may be the reason."""


@contextmanager
def opened(
    data: Any,
    ordered: bool,
    glob: bool,
    limits: Limits | None,
    written: Written | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """A data frame as it is, and None; or the table of a file, and DuckDB that reads it meanwhile.

    Limits are those of `columns`, if some are named; of an empty choice nothing is checked but the
    size.

    DuckDB may read these files and its own folder (which is private, and removed), and nothing
    else: no other file, no extension, no address. An engine that was interrupted by Ctrl-C raises
    an error of its own; here it is an interrupt again.
    """
    written = written or Written()
    if not isinstance(data, str | Path):
        written.needs_text("a table")
        with interruptible():
            yield data, None
        return
    duckdb = part("duckdb", "files of data", "tables")

    files, reader = _files(str(data), glob)
    if reader != _CSV:
        written.needs_text("a Parquet file")
    with interruptible() as look, tempfile.TemporaryDirectory(prefix="dprad-") as folder:
        copies, named = files, [str(data)] if len(files) == 1 else list(map(str, files))
        if written.encoding is not None:
            most = limits.unpacked if limits else math.inf
            copies = in_utf8(files, folder, written.encoding, most)
        names, connection = connected(copies, folder, ordered)
        clock = threading.Timer(limits.seconds if limits else 0.0, connection.interrupt)
        clock.daemon = True
        try:
            if limits is not None:
                clock.start()
            if reader == _CSV and any(map(looks_like_utf16, copies)):
                raise UnreadableError
            table = _table(connection, names, copies, reader, limits, written, columns)
            yield table, connection
        except duckdb.InterruptException:
            raise DpradError("data: reading it takes too long. Load a smaller table.") from None
        except DpradError as error:
            look()  # rather than to read the file again
            raise _unread(error, copies, named, reader) from None
        except (duckdb.Error, RuntimeError, UnicodeError) as error:  # names that are no text, too
            look()
            hint = " Is it a table with one header line?" if reader == _CSV else ""
            said = f"data: the file {str(data)!r} cannot be read ({told(error)}).{hint}"
            raise _unread(UnreadableError(said), copies, named, reader) from None
        finally:
            clock.cancel()
            connection.close()


def _unread(error: DpradError, copies: list[Path], named: list[str], reader: str) -> DpradError:
    """Why a file cannot be read: its encoding, if that is the reason. At most one pass over it."""
    for copy, name in zip(copies, named, strict=True):
        if isinstance(error, UnreadableError) and reader == _CSV:
            said = why_not_utf8(copy)
            if said:
                return DpradError(f"data: the file {name!r} {said}")
        if copy.name.startswith(COPY) and str(copy) in str(error):
            return DpradError(str(error).replace(str(copy), name))
    return error


def connected(files: list[Path], folder: str, ordered: bool = True) -> tuple[list[str], Any]:
    """Names of the files, and a connection that may read them and use its folder: no more."""
    duckdb = part("duckdb", "files of data", "tables")

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
    allowed = ", ".join("'" + n.replace("'", "''") + "'" for n in names)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return names, connection


def _files(name: str, glob: bool) -> tuple[list[Path], str]:
    """The files that a path means, literally unless `glob`, and how they are read."""
    reader = next((r for s, r in _READERS.items() if name.removesuffix(".gz").endswith(s)), None)
    if reader is None:
        raise DpradError(
            f"data must be a path that ends in {', '.join(_READERS)} (or .csv.gz), but is {name!r}."
        )
    files = [Path(name)]
    if glob:
        files = sorted(map(Path, globbing.glob(name, recursive=True)))  # noqa: PTH207
    try:
        missing = [f for f in files if not f.exists()] or not files
        odd = [f for f in files if not f.is_file()]
    except (OSError, ValueError):
        missing, odd = True, []
    if missing:
        hint = "" if glob or not set(name) & set("*?[") else " For a pattern, ask for glob."
        raise DpradError(f"data: the file {name!r} cannot be read: it does not exist.{hint}")
    if odd:
        raise DpradError(f"data: {str(odd[0])!r} is not a file.")
    return [f.resolve() for f in files], reader


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
    connection: Any,
    names: list[str],
    files: list[Path],
    reader: str,
    limits: Limits | None,
    written: Written,
    columns: Sequence[str] | None,
) -> Any:
    """The rows of the files, after a look at what they are."""
    given: list[Any] = [names]
    csv_ = reader == _CSV
    if csv_:
        for file in files:
            _header(file, limits)
            _unpacked(file, limits)
        given.append(-1 if sum(_size(f, WHOLE) for f in files) <= WHOLE else ROWS)
        if limits is not None:
            given[1] = min(ROWS, limits.rows)
    else:
        _described(connection, names, limits)
    more = f"decimal_separator = '{written.decimal}', "
    if written.literal:
        more += "all_varchar = true, allow_quoted_nulls = false, "
    source = reader.replace("($1, ", f"($1, {more}") if csv_ else reader
    table = connection.sql(f"SELECT * FROM {source}", params=given)
    if csv_ and len(table.columns) == 1 and re.search("[,;|\t]", table.columns[0]):
        raise UnreadableError(
            f"data: the file {str(files[0])!r} does not read as a table: its rows have different "
            "numbers of fields, or its first line is not a list of names."
        )
    if limits is not None:
        _narrow(len(table.columns), limits)
    check_columns(table.columns)
    if csv_:
        _named(table)
    if limits is not None:
        chosen = table.columns if columns is None else columns
        _few(len(chosen), limits)
        rows = connection.sql(f"SELECT 1 FROM {source} LIMIT {limits.rows + 1}", params=given)
        if len(rows) > limits.rows:
            raise DpradError(f"data has more than {limits.rows:,} rows. Load a smaller table.")
        _short(table, chosen, limits)
    return table


def _short(table: Any, chosen: Sequence[str], limits: Limits) -> None:
    """Refuse values that are no categories or numbers but whole documents."""
    for name, kind in zip(table.columns, map(str, table.types), strict=True):
        if name not in chosen:
            continue
        odd = not SMALL.fullmatch(kind)
        long = kind == "VARCHAR" and (
            table.filter(f"strlen({quoted(name)}) > {limits.text}").limit(1).fetchall()
        )
        if odd or long:
            raise DpradError(
                f"data has values in {name!r} that are no numbers or short texts (up to "
                f"{limits.text:,} bytes). Leave that column out, and load it again."
            )


def _named(table: Any) -> None:
    """Refuse a file whose first line is a record: then names would be somebody's values."""
    names = table.columns
    numbers = [n for n in names if re.fullmatch(VALUE, n.strip(), re.I)]
    years = len(numbers) == len(names) and all(re.fullmatch(_YEAR, n) for n in names)
    same = " OR ".join(
        "CAST({} AS VARCHAR) = '{}'".format(quoted(n), n.replace("'", "''")) for n in names
    )
    if (numbers and not years) or table.limit(ROWS).filter(same).limit(1).fetchall():
        raise DpradError(
            "data: the first line of the file looks like a record, not like names of columns. Add "
            "a line with names, and load it again."
        )


def _described(connection: Any, names: list[str], limits: Limits | None) -> None:
    """Let DuckDB read what Parquet files say of themselves: they may claim to be huge."""
    try:
        with bounded(DESCRIBED):
            if limits is not None:
                _pages(connection, names, limits)
            connection.sql(f"SELECT * FROM {_READERS['.parquet']}", params=[names])
    except MemoryError:
        raise UnreadableError("data: what the file says of itself takes too much memory.") from None


def _pages(connection: Any, names: list[str], limits: Limits) -> None:
    """Refuse a Parquet file by what it says of itself, before anything is unpacked."""
    ((columns, rows, size, longest),) = connection.execute(
        "SELECT max(n), sum(r), sum(b), max(w) FROM (SELECT "
        "max(strlen(path_in_schema)) AS w, count(*) FILTER (WHERE row_group_id = 0) AS n, "
        "sum(row_group_num_rows) FILTER (WHERE column_id = 0) AS r, "
        "sum(total_uncompressed_size) AS b FROM parquet_metadata($1) GROUP BY file_name)",
        [names],
    ).fetchall()
    _narrow(int(columns or 0), limits)
    if int(longest or 0) > limits.text:
        raise DpradError(f"data has a column whose name takes more than {limits.text:,} bytes.")
    if int(size or 0) > limits.unpacked:
        raise DpradError(
            f"data takes more than {limits.unpacked / 1e6:,.0f} MB unpacked. Load a smaller table."
        )
    if int(rows or 0) > limits.rows:
        raise DpradError(f"data has more than {limits.rows:,} rows. Load a smaller table.")


def _unpacked(file: Path, limits: Limits | None) -> None:
    """Refuse a packed text file that is too large unpacked."""
    if limits is None or file.suffix != ".gz":
        return
    if _size(file, limits.unpacked) > limits.unpacked:
        raise DpradError(
            f"data takes more than {limits.unpacked / 1e6:,.0f} MB unpacked. Load a smaller table."
        )


def _size(file: Path, most: int) -> int:
    """The bytes of a file, unpacked; of what is larger than `most`, some number above."""
    size = file.stat().st_size
    if file.suffix != ".gz" or size > most:
        return size
    size = 0
    try:
        with gzip.open(file) as stream:
            while size <= most and (block := stream.read(2**20)):
                size += len(block)
    except (OSError, EOFError, zlib.error) as error:
        raise DpradError(f"data: the file {str(file)!r} cannot be read ({told(error)}).") from None
    return size


def _few(columns: int, limits: Limits) -> None:
    if columns > limits.columns:
        raise DpradError(
            f"data has {columns:,} columns; records of so many are nearly all different. Keep "
            f"those that matter, {limits.columns} at most, and load it again."
        )


def _narrow(columns: int, limits: Limits) -> None:
    """The same for all columns of a file, of which some will be chosen."""
    _few(columns, replace(limits, columns=limits.width or limits.columns))


def _header(path: Path, limits: Limits | None) -> None:
    """Refuse a header with empty names, or the same name twice; other engines would rename them."""
    packed = path.suffix == ".gz"
    reader: Any = gzip.open if packed else Path.open
    try:
        with reader(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            line = file.readline(HEADER + 1)
    except (OSError, EOFError, zlib.error):
        return  # it is refused when it is read
    separator = max(",;\t|", key=line.count)
    if limits is not None:
        _narrow(line.count(separator) + 1, limits)
    if len(line) > HEADER:
        raise DpradError(
            f"data: the first line of {str(path)!r} is longer than 1 MB. Is it a list of names? "
            "Keep fewer columns."
        )
    try:
        row = next(csv.reader([line.strip("\r\n")], delimiter=separator), [])
        if max(map(len, row), default=0) > NAME:  # csv's own limit may be raised elsewhere
            raise csv.Error
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
