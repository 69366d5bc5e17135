"""Files in other encodings, decimal commas, percentages, missing values."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dprad import DpradError, Prior, PureDP, Threat, assess, mechanisms, scenario
from dprad.data import files, text
from dprad.data.files import Limits
from dprad.errors import share
from dprad.show.cli import main
from dprad.show.report import report_scenario
from dprad.show.web.population import from_file

ROWS = "name;size\nJosé;1,5\nZoë;2,5\nAna;10\n"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in arguments])
    return done.value.code, capsys.readouterr()


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "CP-850", "utf-32"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_encodings(encoding, packed, tmp_path):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    raw = ROWS.encode(encoding.replace("CP-", "cp"))
    path.write_bytes(gzip.compress(raw) if packed else raw)
    name = encoding.replace("CP-", "cp")
    prior = Prior.from_data(path, columns=["name"], encoding=name)
    assert prior.support.tolist() == ["Ana", "José", "Zoë"]
    with pytest.raises(DpradError) as raised:
        Prior.from_data(path)
    said = str(raised.value)
    assert "encoding= (--encoding)" in said and "'utf-16'" in said and repr(str(path)) in said
    assert ("in UTF-16" if "utf" in encoding else "'latin-1', 'cp1252' or 'utf-16'") in said
    assert "Jos" not in said


def test_utf8_needs_nothing(tmp_path):
    path = tmp_path / "t.csv"
    for mark in ("utf-8", "utf-8-sig"):
        path.write_bytes(ROWS.encode(mark))
        for given in (None, "utf-8", "UTF8", "utf-8-sig"):
            assert Prior.from_data(path, encoding=given).columns == ("name", "size")
    # a mark does not hide that a name occurs twice
    raw, packed = "a,a\n1,2\n".encode("utf-8-sig"), tmp_path / "t.csv.gz"
    path.write_bytes(raw)
    packed.write_bytes(gzip.compress(raw))
    for file in (path, packed):
        with pytest.raises(DpradError, match="one name for columns 1 and 2"):
            Prior.from_data(file)


def test_a_late_byte_is_found(tmp_path, monkeypatch):
    """Also where the types of the columns come from the first rows alone."""
    monkeypatch.setattr(files, "WHOLE", 0)
    monkeypatch.setattr(files, "ROWS", 100)
    path = tmp_path / "t.csv"
    path.write_bytes(b"name,n\n" + b"Ana,1\n" * 400_000 + b"Jos\xe9,2\n")
    with pytest.raises(DpradError, match="is not in UTF-8"):
        Prior.from_data(path)
    assert Prior.from_data(path, encoding="latin-1").size == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"encoding": "latin-l"}, "Did you mean 'latin-1'"),
        ({"encoding": "punycode"}, "encoding must be one such as"),
        ({"encoding": "../../os"}, "encoding must be one such as"),
        ({"encoding": 5}, "encoding must be one such as"),
        ({"encoding": "utf-16"}, "is not in utf-16"),
        ({"encoding": "shift_jis"}, "is not in shift_jis"),
        ({"decimal": ";"}, "decimal must be"),
        ({"missing": "skip"}, "missing must be"),
    ],
)
def test_wrong_options(given, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,n\nJosé,1\nÿ\xa0,3\n".encode("latin-1"))
    with pytest.raises(DpradError) as raised:
        Prior.from_data(path, **given)
    assert words in str(raised.value) and "Jos" not in str(raised.value)


def test_options_of_text_go_with_text(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    for given, name in (({"encoding": "latin-1"}, "encoding"), ({"decimal": ","}, "decimal")):
        with pytest.raises(DpradError, match=f"{name} goes with a CSV file"):
            Prior.from_data(frame, **given)
        with pytest.raises(DpradError, match=f"{name} goes with a CSV file"):
            Prior.from_data(tmp_path / "t.parquet", **given)


def test_copies_are_private_limited_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = tmp_path / "t.csv"
    path.write_bytes("a;a\nJosé;2\n".encode("latin-1"))
    seen = []
    header = files._header

    def spy(file, limits):
        seen.append((stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)))
        header(file, limits)

    monkeypatch.setattr(files, "_header", spy)
    with pytest.raises(DpradError) as raised:
        Prior.from_data(path, encoding="latin-1")
    # errors name the file, not its copy
    assert seen == [(0o600, 0o700)] and f"header of {str(path)!r}" in str(raised.value)
    limits = Limits(columns=5, rows=100, distinct=100, seconds=20.0, unpacked=10_000)
    path.write_bytes(b"a\n" + b"\xe9\n" * 5_000)
    with pytest.raises(DpradError, match="MB in UTF-8"):
        Prior.from_data(path, encoding="latin-1", limits=limits)
    assert list(Path(tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("packed", [False, True])
def test_copies_leave_room_on_the_disk(packed, tmp_path, monkeypatch):
    """A file is copied until the copy takes four times what is left, whatever it is packed into."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    asked = []

    def usage(folder):
        assert Path(folder).parent == tmp_path / "temporary"
        written = sum(f.stat().st_size for f in Path(folder).iterdir())
        asked.append(5_000_000 - written)
        return SimpleNamespace(free=asked[-1])

    monkeypatch.setattr(shutil, "disk_usage", usage)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    for size, fits in ((1_000_000, True), (30_000_000, False)):
        rows = b"a\n" + b"1\n" * (size // 2)
        path.write_bytes(gzip.compress(rows) if packed else rows)
        if fits:
            assert Prior.from_data(path, encoding="latin-1").size == 1
        else:
            with pytest.raises(DpradError, match="no room for more"):
                Prior.from_data(path, encoding="latin-1")
    assert asked[-1] > 0 and list((tmp_path / "temporary").iterdir()) == []


def test_utf_16_under_another_name_is_told_before_it_is_copied(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS.encode("utf-16"))
    monkeypatch.setattr(text, "_copied", lambda *_: pytest.fail("it is copied"))
    with pytest.raises(DpradError, match=r"t\.csv' is in UTF-16\. Save it"):
        Prior.from_data(path, encoding="latin-1")
    monkeypatch.undo()
    assert Prior.from_data(path, encoding="utf-16").size > 1


def test_the_page_says_what_to_do(tmp_path):
    path = tmp_path / "0.csv"
    path.write_bytes(ROWS.encode("latin-1"))
    with pytest.raises(DpradError) as raised:
        from_file(str(path), "people.csv")
    said = str(raised.value)
    assert "'people.csv' is not in UTF-8" in said and "On this page: save it as UTF-8" in said


def test_decimal_commas(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(ROWS, encoding="utf-8")
    assert Prior.from_data(path, columns=["size"]).support.tolist() == ["1,5", "10", "2,5"]
    prior = Prior.from_data(path, columns=["size"], decimal=",")
    assert prior.support.tolist() == [1.5, 2.5, 10.0]
    path.write_text('size,name\n"1,5",a\n"2,5",b\n')
    assert Prior.from_data(path, decimal=",").column("size").tolist() == [1.5, 2.5]
    command = [
        "assess",
        "--mechanism",
        "laplace",
        "--epsilon",
        1,
        "--data",
        path,
        "--target",
        "size",
    ]
    code, out = run(capsys, *command)
    assert code == 2 and "'size' has decimal commas" in out.err and "--decimal ," in out.err
    assert run(capsys, *command, "--decimal", ",")[0] == 0
    path.write_text("w;n\n1,5;a\n2,5;b\n")
    with pytest.raises(DpradError, match="decimal commas, read it with decimal"):
        Prior.from_data(path, weight="w")
    weighed = Prior.from_data(path, weight="w", decimal=",")
    assert weighed.probabilities.tolist() == pytest.approx([0.375, 0.625])
    path.write_bytes(ROWS.encode("utf-16"))
    both = ["--decimal", ",", "--encoding", "utf-16"]
    assert run(capsys, *command, *both)[0] == 0
    code, out = run(capsys, "assess", "--epsilon", 1, "--neighbours", "add-remove", "--uniform", 3,
                    "--encoding", "utf-8")  # fmt: skip
    assert code == 2 and "--encoding needs --data" in out.err


def test_percentages(capsys, tmp_path):
    assert share("5%", "risk") == share(" 5 % ", "risk") == share(0.05, "risk") == 0.05
    for wrong in ("5", "101%", "-1%", "%", "nan%", "five%", None):
        with pytest.raises(DpradError, match="risk must be"):
            share(wrong, "risk")
    promise = ["--epsilon", 1, "--neighbours", "replace-one", "--uniform", 3]
    code, out = run(capsys, "assess", *promise, "--max-risk", "5%")
    assert code == 1 and "above the accepted 0.05" in out.out
    assert run(capsys, "assess", *promise, "--max-risk", "95%")[0] == 0
    code, out = run(capsys, "assess", *promise, "--max-risk", 5)
    assert code == 2 and "--max-risk: must be a number between 0 and 1" in out.err
    assert "written with its sign, as in 5%" in out.err
    plan = ["calibrate", "--mechanism", "grr", "--uniform", 3]
    percent, plain = (run(capsys, *plan, "--max-risk", r)[1].out for r in ("10%", 0.1))
    assert percent == plain != ""
    audit = ["audit", "dprad.examples:coin", "--claim", 1, "--neighbours", "replace-one",
             "--records", "0,1", "--trials", 400, "--confidence"]  # fmt: skip
    assert run(capsys, *audit, "90%")[1].out == run(capsys, *audit, 0.9)[1].out != ""


# -- missing values --------------------------------------------------------------------------------
@pytest.fixture
def gaps(tmp_path):
    """40 rows: age is missing in 5, smoker in 1, with both missing in one row."""
    rows = ["30,yes"] * 20 + ["40,no"] * 15 + [",yes"] * 4 + [","]
    path = tmp_path / "gaps.csv"
    path.write_text("age,smoker\n" + "\n".join(rows) + "\n")
    return path


def test_missing_values_are_counted(gaps):
    kept = Prior.from_data(gaps)
    assert kept.missing.counts == (("age", 5), ("smoker", 1))
    assert (kept.missing.rows, kept.missing.dropped, kept.missing.policy) == (40, 0, "keep")
    dropped = Prior.from_data(gaps, missing="drop")
    assert dropped.missing.counts == kept.missing.counts and dropped.missing.dropped == 5
    assert dropped.rows == 35 and dropped.column("age").dtype.kind == "i"
    assert Prior.from_data(gaps, columns=["smoker"]).missing.counts == (("smoker", 1),)
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "w": [1.0, 50.0, 1.0]})
    # rows, not weights, are counted
    assert Prior.from_data(frame, weight="w").missing.counts == (("a", 1),)
    assert Prior.from_data(frame, columns=["w"]).missing.counts == ()
    assert Prior.uniform(3).missing is None
    with pytest.raises(DpradError, match=r"'age' and 'smoker' have missing values \(about 10% of"):
        Prior.from_data(gaps, missing="refuse")
    with pytest.raises(DpradError, match="every row has a missing value"):
        Prior.from_data(pd.DataFrame({"a": [None, 1.0], "b": [1.0, None]}), missing="drop")


KEPT = (
    "About 10% of the values of 'age' and less than 5% of the values of 'smoker' are missing; "
    "missing counts as a value of its own."
)


def test_missing_values_are_told_roughly(gaps, tmp_path, capsys):
    promise = PureDP(1.0, neighbours="replace-one")
    assert KEPT in assess(promise, prior=Prior.from_data(gaps)).assumptions
    grr = mechanisms.GRR(epsilon=1.0, size=2)
    asked = {"threat": Threat(target=["smoker"]), "query": "smoker"}
    said = assess(grr, prior=Prior.from_data(gaps, missing="drop"), **asked).assumptions
    assert any(line.endswith("are missing; those rows were left out.") for line in said)
    whole = assess(promise, prior=Prior.uniform(3)).assumptions
    assert not any("missing" in line for line in whole)
    code, out = run(capsys, "assess", "--mechanism", "grr", "--epsilon", 1, "--data", gaps)
    assert code == 0 and KEPT in out.out
    path = tmp_path / "s.toml"
    path.write_text(
        "[population]\ndata = 'gaps.csv'\n[[releases]]\nmechanism = 'grr'\nepsilon = 1\n"
    )
    made = report_scenario(scenario.load(path), tmp_path / "r.html").read_text()
    assert "less than 5% of the values of" in made and "missing counts as a value" in made


def test_many_columns_are_not_all_named():
    frame = pd.DataFrame({f"c{i}": [None] * (i + 1) + ["x"] * (20 - i) for i in range(8)})
    said = Prior.from_data(frame).missing.sentence()
    assert said.startswith("About 40% of the values of 'c7', ") and "'c2'" not in said
    assert "and some of 3 more columns are missing" in said
    every = pd.DataFrame({"a": [None] * 20, "b": range(20)})
    assert Prior.from_data(every).missing.sentence().startswith("Nearly all of the values of 'a'")


@pytest.mark.parametrize("size", [10_000, 10**6])
def test_packed_files_are_looked_at_as_others(tmp_path, monkeypatch, size):
    """Whether a file is large is decided by what is in it, not by how well it packs."""
    monkeypatch.setattr(files, "WHOLE", size)
    monkeypatch.setattr(files, "ROWS", 100)
    text = "a,b\n" + "1,2\n" * 20_000 + "x,2\n"  # of the first rows, all are numbers
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert (tmp_path / "t.csv.gz").stat().st_size < 10_000 < len(text) < 10**6
    for name in ("t.csv", "t.csv.gz"):
        if size == 10_000:
            with pytest.raises(DpradError, match=r"cannot be (read|counted)"):
                Prior.from_data(tmp_path / name)
        else:
            assert set(Prior.from_data(tmp_path / name, columns=["a"]).support) == {"1", "x"}


@pytest.mark.parametrize("frame", [False, True])
def test_an_interrupted_count_is_no_unreadable_file(tmp_path, monkeypatch, capsys, frame):
    def interrupted(_):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        raise RuntimeError("Query interrupted")

    def again(_):
        raise AssertionError("it is read again")

    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setattr("dprad.data.tables._fetch", interrupted)
    monkeypatch.setattr(files, "why_not_utf8", again)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Prior.from_data(pd.DataFrame({"a": [1]}) if frame else path)
        question = ["--epsilon", 1, "--neighbours", "replace-one", "--data", path, "--quiet"]
        code, said = run(capsys, "assess", *question)
        assert code == 130 and "interrupted" in said.err
    finally:
        signal.signal(signal.SIGINT, before)
