"""Census19 and Texas-100X, the tables of the paper's imputation attack, from text or Parquet files.

Both are read as prepared by their authors (Jayaraman and Evans 2022), or from the public files that
they were made of: then the same rows are kept and the same codes are used. Their pickle files are
not read, since opening a pickle runs whatever code it holds. Codes of categories come as text, so
that nobody takes them for quantities.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dprad.data.files import connected
from dprad.errors import DpradError, part, told
from dprad.runtime.interrupts import interruptible

ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
CENSUS_NUMBERS = ("AGEP", "WKHP", "PUMA", "PINCP")
DIFFICULTIES = ("DREM", "DPHY", "DEAR", "DEYE")
CENSUS_CATEGORIES = ("COW", "SCHL", "MAR", "RAC1P", "SEX", *DIFFICULTIES, "WAOB", "ST")
# What the imputation attack knows: neither the place nor the income.
CENSUS_KNOWN = ("AGEP", "COW", "SCHL", "MAR", "SEX", *DIFFICULTIES, "WKHP", "WAOB")
TEXAS_NUMBERS = ("LENGTH_OF_STAY", "PAT_AGE", "TOTAL_CHARGES")
TEXAS_CATEGORIES = (
    "SEX_CODE",
    "TYPE_OF_ADMISSION",
    "SOURCE_OF_ADMISSION",
    "PAT_STATUS",
    "RACE",
    "ETHNICITY",
    "ADMITTING_DIAGNOSIS",
    "PRINC_SURG_PROC_CODE",
)
# Neither the hospital nor the race, which is nearly the ethnicity, nor what is to be predicted.
TEXAS_KNOWN = (
    "SEX_CODE",
    "TYPE_OF_ADMISSION",
    "SOURCE_OF_ADMISSION",
    "LENGTH_OF_STAY",
    "PAT_AGE",
    "PAT_STATUS",
    "TOTAL_CHARGES",
    "ADMITTING_DIAGNOSIS",
)
# Name in a data directory, and the files that the table is made of.
FILES = {
    "census19": ("psam_pus?.csv", "psam_p??.csv"),
    "texas100x": ("PUDF_base?q2006_tab.txt",),
}
# Folders of the tables that were read: a relation may spill until the process ends.
_FOLDERS: list[Any] = []


def census19(path: Any) -> Any:
    """Census19: working people of the American Community Survey 2019, 1,676,013 rows.

    Parameters
    ----------
    path
        A CSV, tab-separated or Parquet file with the columns AGEP, COW, SCHL, MAR, RAC1P, SEX,
        DREM, DPHY, DEAR, DEYE, WKHP, WAOB, ST, PUMA, PINCP; a list of such files; or a directory
        with ``census19.*`` or the survey's person files (``psam_pusa.csv``, ``psam_pusb.csv``).
        Codes are those of the survey, or of the prepared table, in which they begin at 0.

    Returns
    -------
    table
        A DuckDB relation: people over 16 who work, race (RAC1P) in seven categories.

    Examples
    --------
    ::

        found = dprad.attacks.impute(dprad.datasets.census19("data"), secret="RAC1P",
                                     known=list(dprad.datasets.CENSUS_KNOWN), public=49_000)

    """
    return _opened("census19", path, (*CENSUS_NUMBERS, *CENSUS_CATEGORIES), _people)


def _people(rows: Any, wanted: Sequence[str]) -> Any:
    """People over 16 who work, in the codes of the prepared table."""
    whole = ", ".join(f"TRY_CAST({c} AS DOUBLE) AS {c}" for c in wanted)
    people = rows.query("t", f"SELECT {whole} FROM t").filter("AGEP > 16 AND WKHP > 0")
    lowest, broken = _only(people, "min(RAC1P), max(abs(RAC1P - round(RAC1P)))")
    if lowest is None or broken > 0:
        raise DpradError(
            "census19: RAC1P must hold whole codes, of people over 16 who work (WKHP > 0). "
            "Features that were divided by their maxima must be multiplied by them first."
        )
    race, first = "RAC1P", 0
    if lowest > 0:  # the survey's own codes begin at 1 and tell three groups of natives apart
        first = 1
        race = "CASE WHEN RAC1P <= 2 THEN RAC1P - 1 WHEN RAC1P <= 5 THEN 2 ELSE RAC1P - 3 END"
    codes = {c: f"{c} - {first}" for c in CENSUS_CATEGORIES}
    codes |= {c: f"{c} % 2" for c in DIFFICULTIES}  # 1 is yes, 2 is no
    codes |= {"RAC1P": race, "ST": "ST"}
    chosen = [_text(codes[c], c) if c in codes else f"CAST({c} AS BIGINT) AS {c}" for c in wanted]
    return people.query("t", f"SELECT {', '.join(chosen)} FROM t")


def texas100x(path: Any) -> Any:
    """Texas-100X: hospital stays of 2006 with one of the 100 commonest procedures, 925,128 rows.

    Parameters
    ----------
    path
        The prepared ``texas_100x.csv``, or another CSV, tab-separated or Parquet file with its
        twelve columns; a list of the four quarterly files ``PUDF_base1q2006_tab.txt`` ...; or a
        directory with ``texas100x.*`` or those four.

    Returns
    -------
    table
        A DuckDB relation; ETHNICITY is "0" (Hispanic) or "1" (not Hispanic).

    Examples
    --------
    ::

        found = dprad.attacks.impute(dprad.datasets.texas100x("data"), secret="ETHNICITY",
                                     known=list(dprad.datasets.TEXAS_KNOWN), public=49_000)

    """
    return _opened("texas100x", path, ("THCIC_ID", *TEXAS_NUMBERS, *TEXAS_CATEGORIES), _stays)


def _stays(rows: Any, wanted: Sequence[str]) -> Any:
    """Stays with one of the 100 commonest procedures, in the codes of the prepared table."""
    names = ", ".join(wanted)
    ((raw,),) = rows.query("t", "SELECT bool_or(SEX_CODE IN ('M', 'F')) FROM t").fetchall()
    if raw:
        rows = rows.query("t", f"SELECT DISTINCT {names} FROM t")
    sex = "CASE SEX_CODE WHEN 'M' THEN 0 WHEN 'F' THEN 1 ELSE TRY_CAST(SEX_CODE AS DOUBLE) END"
    numbers = {c: f"TRY_CAST({c} AS DOUBLE)" for c in wanted if c != "THCIC_ID"}
    numbers |= {"SEX_CODE": sex, "THCIC_ID": "THCIC_ID"}
    chosen = [f"{value} AS {c}" for c, value in numbers.items()]
    stays = rows.query("t", f"SELECT {', '.join(chosen)} FROM t")
    stays = stays.filter(" AND ".join(f"{c} IS NOT NULL" for c in wanted))
    if raw:
        common = "SELECT PRINC_SURG_PROC_CODE FROM t GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 100"
        stays = stays.query("t", f"SELECT * FROM t WHERE PRINC_SURG_PROC_CODE IN ({common})")
    first = {"RACE": 1, "ETHNICITY": 1} if raw else {}
    chosen = [_text(f"{c} - {first.get(c, 0)}", c) for c in TEXAS_CATEGORIES]
    chosen += ["THCIC_ID", *TEXAS_NUMBERS]
    order = " ORDER BY ALL" if raw else ""  # distinct rows come in any order
    table = stays.query("t", f"SELECT {', '.join(chosen)} FROM t{order}")
    kinds = sorted(v for (v,) in table.query("t", "SELECT DISTINCT ETHNICITY FROM t").fetchall())
    if kinds != ["0", "1"]:
        raise DpradError(
            "texas100x: ETHNICITY must have two values, coded 0 and 1 (1 and 2 in the quarterly "
            f"files), but has {len(kinds)}."
        )
    return table


def find(name: str, directory: Any) -> list[Path]:
    """The files of a table in a data directory, prepared before raw; none if it is not there.

    Parameters
    ----------
    name
        ``"census19"`` or ``"texas100x"``.
    directory
        The data directory; a folder of that name in it is searched too.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> find("census19", "no-such-directory")
    []

    """
    for folder in (Path(directory), Path(directory) / name):
        for ending in ENDINGS:
            if (folder / f"{name}{ending}").is_file():
                return [folder / f"{name}{ending}"]
        for pattern in FILES[name]:
            raw = sorted(folder.glob(pattern))
            if raw:
                return raw
    return []


def _opened(
    name: str, path: Any, wanted: Sequence[str], made: Callable[[Any, Sequence[str]], Any]
) -> Any:
    """The table that is made of all rows of the files, as text, after a look at their columns."""
    files = [Path(p) for p in path] if isinstance(path, list | tuple) else [Path(path)]
    if len(files) == 1 and files[0].is_dir():
        files = find(name, files[0])
        if not files:
            raise DpradError(
                f"{name}: neither {name}.csv (.tsv, .txt, .parquet, .gz) nor {FILES[name][0]} is "
                f"in {str(path)!r}."
            )
    _readable(name, files)
    reader = "read_parquet($1, hive_partitioning = false)"
    if files[0].suffix != ".parquet":
        reader = (
            "read_csv($1, header = true, all_varchar = true, union_by_name = true, "
            "hive_partitioning = false)"
        )

    def table(connection: Any, names: list[str]) -> Any:
        rows = connection.sql(f"SELECT * FROM {reader}", params=[names])
        missing = [c for c in wanted if c not in rows.columns]
        if missing:
            raise DpradError(
                f"{name}: {files[0].name} lacks the columns {', '.join(missing)}. The first line "
                "must hold the names of the columns, in capitals."
            )
        text = ", ".join(f"CAST({c} AS VARCHAR) AS {c}" for c in wanted)
        return made(rows.query("t", f"SELECT {text} FROM t"), wanted)

    return materialised(name, files, table)


def materialised(name: str, files: list[Path], table: Callable[[Any, list[str]], Any]) -> Any:
    """A table of files, as a relation that was computed: later nothing in the files can fail.

    What DuckDB says of a line that it cannot read quotes it, so only the kind of it is told.
    """
    duckdb = part("duckdb", "files of data", "tables")

    folder = tempfile.TemporaryDirectory(prefix="dprad-")
    _FOLDERS.append(folder)
    try:
        with interruptible():
            names, connection = connected([f.resolve() for f in files], folder.name)
            table(connection, names).create(name)
            return connection.table(name)
    except (duckdb.Error, ValueError, RuntimeError) as error:
        if isinstance(error, DpradError):
            raise
        raise DpradError(f"{name}: {str(files[0])!r} cannot be read ({told(error)}).") from None


def _readable(name: str, files: list[Path]) -> None:
    """Refuse files that are not there, of another format, and pickles."""
    for file in files:
        if file.suffix in (".p", ".pkl", ".pickle"):
            raise DpradError(
                f"{name}: {file.name} is a pickle, which runs code when it is opened, so dprad "
                "does not. Give the public files instead, or a CSV or Parquet file."
            )
        if not file.is_file():
            raise DpradError(f"{name}: the file {str(file)!r} does not exist.")
        if not file.name.endswith(ENDINGS):
            raise DpradError(f"{name}: {file.name} must end in one of {', '.join(ENDINGS)}.")


def _text(number: str, name: str) -> str:
    return f"CAST(CAST({number} AS BIGINT) AS VARCHAR) AS {name}"


def _only(rows: Any, what: str) -> tuple[Any, ...]:
    """The only row of a summary."""
    ((*values,),) = rows.query("t", f"SELECT {what} FROM t").fetchall()
    return tuple(values)
