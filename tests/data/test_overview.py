"""What a file holds, before any of it is chosen."""

from __future__ import annotations

import pytest

from dprad import DpradError, Prior
from dprad.data.files import Limits
from dprad.data.overview import overview

LIMITS = Limits(columns=2, rows=1000, distinct=50, seconds=20.0, text=20, width=6)


def table(path, rows=40):
    lines = [
        f"{i % 2},{i % 5 / 2},{'ab'[i % 2]},{'x' * (30 if i else 1)},2024-01-{i % 9 + 1:02}"
        for i in range(rows)
    ]
    path.write_text("whole,half,text,long,day\n" + "\n".join(lines) + "\n")
    return path


def test_names_types_and_counts(tmp_path):
    seen = overview(table(tmp_path / "t.csv"), LIMITS)
    assert [(s.name, s.kind, s.distinct) for s in seen] == [
        ("whole", "whole number", 2),
        ("half", "number", 5),
        ("text", "text", 2),
        ("long", "text", 2),
        ("day", "date", 9),
    ]
    assert [s.name for s in seen if not s.fits] == ["long"]


def test_a_wide_file_is_read_by_what_is_chosen(tmp_path):
    path = table(tmp_path / "t.csv")
    assert Prior.from_data(path, columns=["whole", "text"], limits=LIMITS).size == 2
    with pytest.raises(DpradError, match="has 3 columns"):
        Prior.from_data(path, columns=["whole", "text", "half"], limits=LIMITS)
    with pytest.raises(DpradError, match="'long'"):
        Prior.from_data(path, columns=["long"], limits=LIMITS)
    with pytest.raises(DpradError, match="has 5 columns"):
        Prior.from_data(path, limits=LIMITS)
    path.write_text("a,b,c,d,e,f,g\n" + "1,2,3,4,5,6,7\n" * 3)
    with pytest.raises(DpradError, match="has 7 columns"):
        overview(path, LIMITS)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"a": [1, 2, 2], "b": [[1], [2], [3]]}), path)
    one, other = overview(path, LIMITS)
    assert (one.kind, one.distinct, one.fits) == ("whole number", 2, True)
    assert not other.fits and other.distinct is None
    assert Prior.from_data(path, columns=["a"], limits=LIMITS).size == 2
