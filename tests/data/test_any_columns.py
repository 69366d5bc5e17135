"""Any column name is read as it stands, and a small file with very many records is no way to take
all memory.
"""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dprad import DpradError, Prior
from dprad.data import tables
from dprad.data.files import Limits
from dprad.data.overview import overview
from dprad.runtime.memory import limit

LIMITS = Limits(columns=5, rows=10**6, distinct=1_000, seconds=60)
NAMES = ["a.b", "A.b.c", 'q"x', "it's", "two words", "*", "t.*", "COLUMNS(*)", "^a.*$", "`x`", "\\"]


def kinds(frame, folder):
    """The same table as a frame of every engine, and as files."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    import dask.dataframe as dd

    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    yield from (frame, polars.from_pandas(frame), polars.from_pandas(frame).lazy())
    yield from (duckdb.connect().from_df(frame), dd.from_pandas(frame, npartitions=1))
    yield from (folder / "t.csv", folder / "t.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_column_is_a_name(name, tmp_path):
    frame = pd.DataFrame({name: ["u", "$1", "u"], "w": [1.0, 2.0, 3.0], "a": ["x", "x", "x"]})
    for data in kinds(frame, tmp_path):
        whole = Prior.from_data(data, columns=[name])
        assert dict(zip(whole.support, whole.probabilities * 3, strict=True)) == {"u": 2, "$1": 1}
        by = Prior.from_data(data, columns=[name, "a"], weight="w")
        assert list(by.columns) == [name, "a"]
        assert sorted(by.probabilities) == pytest.approx([1 / 3, 2 / 3])
        assert Prior.from_data(data, weight="w").size == 2


@pytest.mark.parametrize("name", NAMES)
def test_any_name_may_be_the_weight(name, tmp_path):
    frame = pd.DataFrame({"a": ["u", "v", "u"], name: [1.0, 2.0, 3.0]})
    for data in kinds(frame, tmp_path):
        found = Prior.from_data(data, weight=name)
        assert dict(zip(found.support, found.probabilities, strict=True)) == pytest.approx(
            {"u": 2 / 3, "v": 1 / 3}
        )
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert [s.name for s in overview(path, LIMITS)] == ["a", name]
        assert Prior.from_data(path, columns=[name], limits=LIMITS).size == 3
        assert tables.read_rows(path)[0] == ["a", name]


def test_names_that_cannot_be_shown_are_still_refused(tmp_path):
    (tmp_path / "t.csv").write_text('"a\u202eb",w\nx,1\ny,2\n', encoding="utf-8")
    with pytest.raises(DpradError, match="printable"):
        Prior.from_data(tmp_path / "t.csv")


@pytest.mark.parametrize("text", [False, True])
def test_a_small_file_with_very_many_records_is_refused_by_their_number(
    text, tmp_path, monkeypatch
):
    """Of 300,000 numbers (or a few long texts) in a file of some kilobytes nothing comes here."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "bomb.parquet"
    values = ["x" * 20_000 + str(i) for i in range(500)] if text else np.arange(300_000)
    parquet.write_table(
        pyarrow.table({"a": values}),
        path,
        use_dictionary=False,
        column_encoding={"a": "PLAIN" if text else "DELTA_BINARY_PACKED"},
        compression="zstd",
        write_statistics=False,
    )
    assert path.stat().st_size < 20_000
    fetched = []
    monkeypatch.setattr(tables, "_fetch", fetched.append)
    for read in (lambda: Prior.from_data(path), lambda: tables.read_rows(path)):
        with limit("5 MB"), pytest.raises(DpradError, match="MB, but only 5 MB may be used"):
            read()
    assert not fetched
    monkeypatch.undo()
    with limit("100 MB"):
        assert len(tables.read_rows(path)[1][0]) == len(values)


def test_rows_of_a_file_keep_their_order(tmp_path):
    frame = pd.DataFrame({"a": np.arange(300_000)[::-1], "b": "x"})
    frame.to_parquet(tmp_path / "t.parquet")
    assert tables.read_rows(tmp_path / "t.parquet")[1][0].tolist() == frame["a"].tolist()


@pytest.mark.parametrize("file", [False, True])
def test_a_weight_alone_is_no_table(file, tmp_path):
    data = pd.DataFrame({"income": [1.0, 2.0]})
    if file:
        data.to_csv(tmp_path / "t.csv", index=False)
        data = tmp_path / "t.csv"
    with pytest.raises(DpradError, match="none but the weight 'income'"):
        Prior.from_data(data, weight="income")
    with pytest.raises(DpradError, match="has none"):
        Prior.from_data(pd.DataFrame(index=[0, 1]))


LYING = """
import resource, sys
import dprad
try:
    dprad.Prior.from_data(sys.argv[1])
except dprad.DpradError as error:
    print("cannot be read" in str(error))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_800_000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is bounded on Linux")
def test_what_a_parquet_file_claims_to_hold_takes_no_memory(tmp_path):
    """44 bytes that claim six million columns: 2.6 GB, before anything could be counted."""
    claimed = bytes([0x80, 0x9B, 0xEE, 0x02])  # 6,000,000, as a number of any length
    foot = b"\x15\x02\x19\xfc" + claimed + b"\0" * 16
    file = tmp_path / "lie.parquet"
    file.write_bytes(b"PAR1" + b"\0" * 8 + foot + struct.pack("<I", len(foot)) + b"PAR1")
    command = [sys.executable, "-c", LYING, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
    with pytest.raises(DpradError):
        overview(str(file), LIMITS)


def test_a_name_that_is_no_text_is_a_sentence(tmp_path):
    file = tmp_path / "odd.parquet"
    pd.DataFrame({"abcdefgh": [1, 2], "b": [1, 1]}).to_parquet(file)
    file.write_bytes(file.read_bytes().replace(b"abcdefgh", b"\xffbcdefgh"))
    with pytest.raises(DpradError):
        Prior.from_data(file)
    with pytest.raises(DpradError):
        overview(str(file), LIMITS)


def test_a_record_of_very_many_columns_is_refused_and_some_of_them_are_quick(tmp_path, monkeypatch):
    import duckdb

    path, many = tmp_path / "wide.parquet", 1001
    duckdb.sql(
        f"COPY (SELECT {', '.join(f'i % 2 AS c{k}' for k in range(many))} FROM range(3) t(i)) "
        f"TO '{path}'"
    )
    frame = pd.DataFrame(np.ones((3, many), dtype=int), columns=[f"c{k}" for k in range(many)])
    seen, real = [], tables._grouped
    monkeypatch.setattr(
        tables,
        "_grouped",
        lambda *asked: seen.append(asked[0].collect_schema().names()) or real(*asked),
    )
    for data in (path, frame):
        with pytest.raises(DpradError, match=r"data has 1,001 columns; .* Name those"):
            Prior.from_data(data)
        assert Prior.from_data(data, columns=["c7", "c3"], weight="c0").columns == ("c7", "c3")
        assert seen.pop()[:3] == ["c7", "c3", "c0"] and not seen
