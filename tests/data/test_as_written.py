"""How numbers are written in a text file is kept."""

from __future__ import annotations

import numpy as np
import pytest

import dprad
from dprad.data.as_written import read
from dprad.verbs.audit.rows import Runs

DRAWS = np.random.default_rng(0).normal(size=50).tolist()


@pytest.mark.parametrize(
    "form",
    [repr, "{:.3f}".format, "{:.18e}".format, "{:.15g}".format, "{:.17g}".format, "{:.6g}".format,
     lambda x: f"{int(100 * x)}", lambda x: f"{int(abs(100 * x)):05d}", "{:.2E}".format],
)  # fmt: skip
def test_numbers_that_are_written_alike_are_numbers_only(form):
    (values,) = read([form(x) for x in DRAWS])
    assert all(isinstance(v, int | float) for v in values)
    assert values == [float(form(x)) for x in DRAWS]


@pytest.mark.parametrize(
    "texts",
    [["1", "01"], ["0.50", "0.5"], ["1", "1.0"], ["1", "+1"], [" 1", "1"], ["1e0", "1E0"],
     ["1e400", "1e401"], ["0.12345678901234567890", "0.12345678901234567891"], ["1_0", "10"]],
)  # fmt: skip
def test_numbers_that_are_written_otherwise_come_with_their_texts(texts):
    values, written = read(texts)
    assert [v.decode() for v in written] == texts
    assert values == [float(t) for t in texts]


def test_gaps_of_several_kinds_differ():
    for gaps in ([None, "", "nan"], ["nan", "NaN", None]):
        (values,) = read([*gaps, "1"])
        assert len(set(values[:3])) == 3 and values[3] == 1
    for gap in (None, "", "nan"):
        assert next(read([gap, "1"])) == [None, 1]
    assert list(read(["9" * 5000, "x", "true"])) == [["9" * 5000, "x", "true"]]
    assert next(read(["9" * 5000])) == [float("inf")]
    assert list(read([None, None])) == [[None, None]]


SAID = [
    lambda s: str(2**127 + s),
    lambda s: f"0.1234567890123456789{s}",
    lambda s: f"0.1234567890123456789{s}5",
    lambda s: ("1", "01")[s],
    lambda s: ("", '""')[s],
    lambda s: ("2020-01-01 00:00:00+00", "2020-01-01 01:00:00+01")[s],
    lambda s: f"2020-01-01 00:00:00.000000{s}",
]


@pytest.mark.parametrize("said", SAID)
def test_an_audit_sees_what_a_file_says(said, tmp_path):
    path = tmp_path / "runs.csv"
    secrets = np.random.default_rng(1).integers(0, 2, size=400).tolist()
    path.write_text("secret,out\n" + "".join(f"{s},{said(s)}\n" for s in secrets))
    claim = dprad.PureDP(1.0, neighbours="replace-one")
    assert dprad.audit_outputs(path, claim=claim).verdict == "violated"


def test_parquet_keeps_its_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    parquet.write_table(pyarrow.table({"secret": [0, 1], "out": ["1", "01"]}), path)
    assert Runs.of(path, "secret", absent=0).outputs.tolist() == ["1", "01"]


@pytest.mark.parametrize(
    "texts", [["-0.0", "0.0"], ["-0.00", "0.00"], ["-0", "0"], ["0.04", "-0.0"]]
)
def test_the_sign_of_a_zero_is_kept(texts):
    assert list(read(texts))[1] == [t.encode() for t in texts]
