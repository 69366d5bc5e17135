"""Nothing that dprad says or writes names a value of a record, unless that is asked for."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dprad
from dprad import (
    DpradError,
    Prior,
    PureDP,
    Threat,
    assess,
    audit,
    mechanisms,
    scenario,
    show_records,
)
from dprad.data.files import Limits
from dprad.errors import _unset
from dprad.show.cli import main
from dprad.show.cli.output import clean
from dprad.show.report import report
from effort import some
from strangers import theirs

SECRETS = ("Zyxwvut", "Quuxitis", "918273", "Plugh")
ONE = PureDP(1.0, neighbours="replace-one")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    rows = ["Zyxwvut,93,Quuxitis,918273", *(f"Plugh{i},{30 + i % 9},none,{i}" for i in range(40))]
    path.write_text("name,age,diagnosis,salary\n" + "\n".join(rows) + "\n")
    return path


def silent(text):
    return not any(secret in text for secret in SECRETS)


MODULE = """
def plain(record, rng):
    return len(record)
def fails(record, rng):
    raise ValueError(f"cannot handle {record!r}")
def returns_nothing(record, rng):
    return None
"""


def run(arguments, capsys):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    out = capsys.readouterr()
    return done.value.code, out.out + out.err


COMMANDS = [
    "assess --mechanism grr --epsilon 1 --data {data} --columns diagnosis",
    "assess --mechanism grr --epsilon 1 --data {data} --knows age --target diagnosis --bounds",
    "assess --mechanism laplace --epsilon 1 --data {data} --columns name",
    "assess --mechanism laplace --epsilon 1 --data {data} --columns salary --sensitivity 3",
    "assess --mechanism laplace --epsilon 1 --data {data} --columns salary --clamp 0:9",
    "assess --mechanism duchi --epsilon 1 --data {data} --columns diagnosis",
    "assess --mechanism grr --epsilon 1 --data {data} --columns salary --domain 0:10",
    "assess --mechanism grr --epsilon 1 --data {data} --columns nam",
    "assess --mechanism grr --epsilon 1 --data {data} --columns name --loss absolute --eta 1",
    "assess --mechanism grr --epsilon 1 --data {data} --weight name --columns age",
    "assess --mechanism grr --epsilon 1 --data {data} --weight diagnosis --columns age --json",
    "calibrate --max-risk 0.1 --mechanism grr --data {data} --columns diagnosis",
    "compare --mechanisms grr,oue --epsilon 1,2 --data {data} --columns diagnosis",
    "audit own_module:plain --claim 1 --neighbours replace-one --data {data} --columns name "
    "--trials 400",
    "audit own_module:fails --claim 1 --neighbours replace-one --data {data} --columns name "
    "--trials 400",
    "audit own_module:fails --claim 1 --neighbours replace-one --data {data} --columns name "
    "--trials 400 --workers 2",
    "audit own_module:returns_nothing --claim 1 --neighbours replace-one --data {data} "
    "--columns diagnosis",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_silent(command, table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    code, text = run(command.format(data=table).split(), capsys)
    assert code in (0, 1, 2) and "internal error" not in text
    assert silent(text), text


def test_they_speak_if_asked(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    command = f"audit own_module:fails --claim 1 --neighbours replace-one --data {table} "
    command += "--columns name"
    code, text = run([*command.split(), "--show-records"], capsys)
    assert code == 2 and "cannot handle" in text and not silent(text)


SCENARIO = """title = "Ours"
[population]
data = "people.csv"
columns = ["diagnosis", "age"]
[[threats]]
target = ["diagnosis"]
[[releases]]
mechanism = "grr"
epsilon = 1.0
query = "diagnosis"
[accepted]
risk = 0.1
[audit]
trials = 2000
"""


def test_reports_are_silent(table, tmp_path, capsys):
    (tmp_path / "own.toml").write_text(SCENARIO)
    code, text = run(["report", str(tmp_path / "own.toml"), "-o", str(tmp_path / "r.html")], capsys)
    assert code == 0, text
    html = (tmp_path / "r.html").read_text()
    assert silent(html) and silent(text)
    prior = Prior.from_data(table, columns=["name"])
    found = audit(lambda record, rng: record, claim=ONE, prior=prior, trials=400)
    assert found.verdict == "violated"
    report([found], tmp_path / "a.html")
    assert silent((tmp_path / "a.html").read_text()) and silent(str(found))
    assert re.search(r"compared record number \d+ and record number \d+ of 41", str(found))
    with show_records():
        shown = audit(lambda record, rng: record, claim=ONE, prior=prior, trials=400)
    assert not silent(str(shown))


def test_reports_do_not_tell_one_positive_from_five(tmp_path):
    texts = set()
    for positives in range(1, 6):
        prior = Prior.from_counts({"no": 1000 - positives, "yes": positives})
        risk = assess(mechanisms.GRR(epsilon=1.0, size=2), prior=prior)
        bound = assess(ONE, prior=prior, threat=Threat(knows="everything"))
        path = tmp_path / f"{positives}.html"
        report([risk, bound], path)
        texts.add(path.read_text())
    assert len(texts) == 1
    assert "rounded up to hundredths" in texts.pop()


def test_counts_of_a_scenario_stay_with_its_owner(tmp_path, capsys):
    scenario = tmp_path / "own.toml"
    scenario.write_text(
        "[population]\ncounts = { no = 99887, Quuxitis = 3 }\n"
        '[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n'
    )
    code, text = run(["report", str(scenario), "-o", str(tmp_path / "r.html")], capsys)
    assert code == 0, text
    html = (tmp_path / "r.html").read_text()
    assert "99887" not in html and "Quuxitis" not in html


def test_evidence_packs_are_silent(table, tmp_path, capsys):
    text = SCENARIO.replace('"age"]', '"age", "salary"]')
    text += '[[releases]]\nmechanism = "laplace"\nepsilon = 1.0\nquery = "salary"\n'
    (tmp_path / "own.toml").write_text(text)
    target = tmp_path / "pack"
    code, said = run(["report", str(tmp_path / "own.toml"), "--evidence", str(target)], capsys)
    assert code == 0 and silent(said), said
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    for path in target.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # the range of the salaries sets the noise; the other numbers of a row are in no file
        assert silent(path.read_text()), path.name
    found = (target / "results.json").read_text()
    plain = json.loads(found)
    assert all(one.pop("sentences") for one in plain["audits"])  # about runs, not people
    del plain["methods"]  # the number of a paper
    assert not re.search(r"\d\.\d{3,}", json.dumps(plain)) and "kappa" not in found
    for form in ("junit", "sarif", "markdown"):
        code, said = run(["assess", str(tmp_path / "own.toml"), "--format", form], capsys)
        assert code in (0, 1, 3) and silent(said), said


@pytest.mark.parametrize("accepted", ["", "[accepted]\nrisk = 1e-7\n"])
def test_evidence_packs_do_not_tell_one_positive_from_five(accepted, tmp_path, capsys):
    seen = set()
    for positives in range(1, 6):
        (tmp_path / "own.toml").write_text(
            f"[population]\ncounts = {{ no = {100_000 - positives}, Quuxitis = {positives} }}\n"
            f'[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n{accepted}'
        )
        target = tmp_path / "pack"
        code, text = run(["report", str(tmp_path / "own.toml"), "--evidence", str(target)], capsys)
        assert code == 0, text
        files = {path.name: path.read_text() for path in sorted(target.iterdir())}
        assert "scenario.toml" not in files and silent("".join(files.values()))
        names = ("evidence.md", "results.json") if accepted else tuple(files)  # the hashes too
        seen.add(str([files[name] for name in names]))
    assert len(seen) == 1


# -- files -----------------------------------------------------------------------------------------
def test_reports_are_whole_and_never_over_what_they_read(table, tmp_path, capsys, monkeypatch):
    scenario = tmp_path / "own.toml"
    scenario.write_text(SCENARIO.replace("[audit]\ntrials = 2000\n", ""))
    for path in (scenario, table, tmp_path / "." / "people.csv"):
        before = path.read_text()
        code, text = run(["report", str(scenario), "-o", str(path)], capsys)
        assert code == 2 and "write to another file" in text
        assert path.read_text() == before
    target = tmp_path / "r.html"
    target.write_text("an earlier report")
    monkeypatch.setattr("dprad.show.report.page._render", broken)
    code, _ = run(["report", str(scenario), "-o", str(target)], capsys)
    assert code == 2 and target.read_text() == "an earlier report"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".dprad-")] == []


def broken(page):
    raise OSError(28, "No space left on device")


def test_what_duckdb_spills_is_private(table, monkeypatch):
    seen = []
    real = duckdb.connect

    def watched(*args, **kwargs):
        folder = Path(kwargs["config"]["temp_directory"])
        seen.append((folder, stat.S_IMODE(folder.stat().st_mode)))
        return real(*args, **kwargs)

    monkeypatch.setattr(duckdb, "connect", watched)
    Prior.from_data(table, columns=["diagnosis"])
    (folder, mode) = seen[0]
    assert mode == 0o700 and folder != Path(tempfile.gettempdir()) and not folder.exists()


def test_duckdb_reads_the_named_file_and_nothing_else(table, tmp_path, monkeypatch):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    caught = []
    real = dprad.data.files._table

    def prying(connection, *rest):
        for statement in (
            f"SELECT * FROM read_csv('{other}')",
            "SELECT * FROM read_csv('https://example.com/x.csv')",
            "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
            "INSTALL httpfs",
            "LOAD httpfs",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/db.duckdb'",
            "SET enable_external_access = true",
            "SET allowed_paths = ['/etc/passwd']",
        ):
            with pytest.raises(duckdb.Error) as error:
                connection.execute(statement).fetchall()
            caught.append(type(error.value).__name__)
        return real(connection, *rest)

    monkeypatch.setattr(dprad.data.files, "_table", prying)
    assert Prior.from_data(table, columns=["age"]).size > 3
    assert len(caught) == 9
    assert not (tmp_path / "out.csv").exists() and not (tmp_path / "db.duckdb").exists()


@pytest.mark.parametrize(
    "path",
    [
        "http://127.0.0.1:9/x.csv", "https://example.com/x.csv", "s3://bucket/x.parquet",
        "gs://bucket/x.csv", "hf://datasets/x.csv", "file:///etc/passwd.csv",
    ],
)  # fmt: skip
def test_addresses_are_not_paths(path, capsys):
    with pytest.raises(DpradError, match="does not exist"):
        Prior.from_data(path)
    code, _ = run(["assess", "--mechanism", "grr", "--epsilon", "1", "--data", path], capsys)
    assert code == 2


def test_paths_are_literal_unless_glob(tmp_path, capsys):
    (tmp_path / "data1.csv").write_text("v\n1\n2\n")
    (tmp_path / "data[1].csv").write_text("v\n3\n4\n5\n")
    (tmp_path / "a*b.csv").write_text("v\n7\n8\n")
    (tmp_path / "a{x,y}'?.csv").write_text("v\n9\n")
    assert Prior.from_data(tmp_path / "data[1].csv").support.tolist() == [3, 4, 5]
    assert Prior.from_data(tmp_path / "a*b.csv").support.tolist() == [7, 8]
    assert Prior.from_data(tmp_path / "a{x,y}'?.csv").support.tolist() == [9]
    assert Prior.from_data(f"{tmp_path}/data[1].csv", glob=True).support.tolist() == [1, 2]
    assert Prior.from_data(f"{tmp_path}/data*.csv", glob=True).size == 5
    with pytest.raises(DpradError, match="ask for glob"):
        Prior.from_data(f"{tmp_path}/d*.csv")
    command = ["assess", "--mechanism", "grr", "--epsilon", "1", "--data", f"{tmp_path}/d*.csv"]
    assert run(command, capsys)[0] == 2
    assert run([*command, "--glob"], capsys)[0] == 0


def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(DpradError, match="is not a file"):
        Prior.from_data(pipe)
    toml = tmp_path / "pipe.toml"
    os.mkfifo(toml)
    assert run(["assess", str(toml)], capsys) == (2, f"dprad: {toml} is not a file.\n")
    with pytest.raises(DpradError, match="not a file"):
        audit(lambda r, rng: r, claim=ONE, prior=Prior.uniform(2), state=pipe)


LIMITS = Limits(columns=5, rows=1000, distinct=50, seconds=20.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",".join(f"c{i}" for i in range(5000)) + "\n" + ",".join("1" * 5000) + "\n", "columns"),
        ("a\n" + "1\n" * 1001, "1,000 rows"),
        ("a\n" + "\n".join(map(str, range(51))) + "\n", "50 different records"),
    ],
)
def test_limits_of_files(text, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DpradError, match=words):
        Prior.from_data(path, limits=LIMITS)


FORGED = "diagnosis).\n\nAccepted. The extra risk is at most 0.01"


@pytest.mark.parametrize(
    "name", [FORGED, "a" + 4 * " " + "b", "a\x1b[2J", 301 * "a", "a\u2800b", "a\u3164b"]
)
def test_names_of_columns_that_could_pass_for_a_line_are_refused(name, tmp_path):
    """A file must not write dprad's verdict."""
    import pandas as pd

    frame = pd.DataFrame({"area": [1, 2], name: ["x", "y"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [frame, tmp_path / "t.csv", tmp_path / "t.parquet"]
    asked = [lambda data=data: Prior.from_data(data) for data in sources]
    for ask in [*asked, lambda: Prior.from_counts({(1, 2): 3}, columns=["area", name])]:
        with pytest.raises(DpradError, match="column 2 must be one line of printable text") as said:
            ask()
        assert "Accepted" not in str(said.value)


def test_groups_are_named_in_one_line(tmp_path, capsys):
    rows = [f'"{FORGED}",{i % 5}' for i in range(500)] + [f"south,{i % 5}" for i in range(500)]
    path = tmp_path / "t.csv"
    path.write_text("area,age\n" + "\n".join(rows) + "\n")
    given = ["assess", "--data", str(path), "--epsilon", "1", "--neighbours", "replace-one"]
    code, said = run([*given, "--by", "area", "--max-risk", "0.1"], capsys)
    assert code == 1
    assert [line for line in said.splitlines() if line.startswith("Accepted")] == []


def test_a_line_break_in_a_name_hides_no_columns(tmp_path):
    path = tmp_path / "t.csv"
    names = ",".join(f"c{i}" for i in range(5000))
    path.write_text(f'"x\ny",{names}\n' + ",".join("1" * 5001) + "\n")
    with pytest.raises(DpradError, match="columns"):
        Prior.from_data(path, limits=LIMITS)


def test_parquet_is_refused_by_what_it_says_of_itself(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"a": pyarrow.array(np.zeros(3_000_000))}), path)
    assert path.stat().st_size < 1_000_000
    begin = time.monotonic()
    with pytest.raises(DpradError, match="1,000 rows"):
        Prior.from_data(path, limits=LIMITS)
    assert time.monotonic() - begin < 30
    wide = pyarrow.table({f"c{i}": [1] for i in range(300)})
    parquet.write_table(wide, path)
    with pytest.raises(DpradError, match="columns"):
        Prior.from_data(path, limits=LIMITS)


def test_slow_files_are_interrupted(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")

    def endless(connection, *_):
        return connection.table_function("range", [10**12])

    monkeypatch.setattr(dprad.data.files, "_table", endless)
    quick = Limits(columns=5, rows=10**13, distinct=10**13, seconds=0.5)
    with pytest.raises(DpradError):
        Prior.from_data(path, limits=quick)


def test_long_headers_are_a_sentence(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a," + "b" * 200_000 + "\n1,2\n")
    code, text = run(
        ["assess", "--mechanism", "grr", "--epsilon", "1", "--data", str(path)], capsys
    )
    assert code == 2 and "internal error" not in text
    path.write_text(",".join(f"c{i}" for i in range(200_000)) + "\n1,2\n")  # all different
    with pytest.raises(DpradError, match="longer than 1 MB"):
        Prior.from_data(path)


# -- scenario files --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    ["x = " + "9" * 5000, "x = " + "[" * 100_000, "x = " + "{a=" * 5000, "a." * 3_000 + "b = 1"],
)
def test_monstrous_toml_is_a_sentence(text, tmp_path, capsys):
    path = tmp_path / "t.toml"
    path.write_text(text)
    code, said = run(["assess", str(path)], capsys)
    assert code == 2 and "internal error" not in said and len(said) < 500


CODE = """[population]
uniform = 2
[[releases]]
mechanism = "grr"
epsilon = 1.0
[audit]
trials = 400
function = "{}"
claim = 1.0
"""


def test_code_runs_only_if_allowed(tmp_path, capsys, monkeypatch):
    mark = tmp_path / "ran"
    (tmp_path / "beside.py").write_text(
        f"open({str(mark)!r}, 'w').close()\ndef run(record, rng):\n    return record\n"
    )
    # a file beside the scenario must not take the place of an installed module
    (tmp_path / "matplotlib.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise OSError\n")
    scenario = tmp_path / "own.toml"
    scenario.write_text(CODE.format("beside:run"))
    target = str(tmp_path / "r.html")
    code, text = run(["report", str(scenario), "-o", target], capsys)
    assert code == 2 and "--allow-code" in text and not mark.exists()
    scenario.write_text(CODE.format("os:system"))
    assert run(["report", str(scenario), "-o", target], capsys)[0] == 2
    for command in ("assess", "calibrate"):
        run([command, str(scenario)], capsys)
    assert not mark.exists()
    scenario.write_text(CODE.format("beside:run"))
    done = subprocess.run(
        [sys.executable, "-m", "dprad", "report", "own.toml", "-o", target, "--allow-code"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "imported and ran beside:run" in Path(target).read_text()


def test_nothing_in_the_current_folder_comes_first(tmp_path):
    (tmp_path / "scipy.py").write_text("raise SystemExit('hijacked')\n")
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')\n")
    command = "assess --epsilon 1 --neighbours replace-one --uniform 20"
    for start in ([sys.executable, "-m", "dprad"], [str(Path(sys.executable).with_name("dprad"))]):
        if not Path(start[0]).exists():
            continue
        done = subprocess.run(
            [*start, *command.split()], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0 and "hijacked" not in done.stdout + done.stderr


# -- time and memory -------------------------------------------------------------------------------
def test_a_trillion_runs_stop_in_time():
    result = audit(
        mechanisms.GRR(epsilon=1.0, size=2), claim=ONE, prior=Prior.uniform(2), trials=10**12,
        max_seconds=0.5,
    )  # fmt: skip
    assert 0 < result.trials < 10**10


SLOW = """
import time
def slow(record, rng):
    time.sleep(0.002)
    return record
"""


def test_an_interrupted_audit_exits_130_with_what_is_known(tmp_path):
    (tmp_path / "slow_module.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "dprad", "audit", "slow_module:slow", "--claim", "9",
         "--neighbours", "replace-one", "--records", "0,1", "--trials", "6000",
         "--state", "kept"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # what starts in the background may ignore it, and pass that on
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    kept = tmp_path / "kept"
    while time.monotonic() < deadline and not (
        kept.exists() and kept.read_text().count('"phase": "runs"') > 1
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Cannot be told" in out and "interrupted" in out
    assert "Traceback" not in err


def test_state_of_an_experiment_is_watched(tmp_path, monkeypatch):
    from dprad.paper import experiments

    options = experiments.Options(name="mechanisms", out=tmp_path)
    grid = [{"a": 1}, {"a": 2}]
    calls = []

    def work(cell, seed):
        calls.append(cell)
        return [{"a": cell["a"], "seed": seed}]

    rows = experiments.cells(options, grid, work)
    assert experiments.cells(options, grid, work) == rows and len(calls) == 2
    file = tmp_path / "mechanisms.cells.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    file.write_text(text.replace('"seed": 0', '"seed": 7'))
    with pytest.raises(DpradError, match="damaged"):
        experiments.cells(options, grid, work)
    file.write_text("somebody else's file\n")
    with pytest.raises(DpradError):
        experiments.cells(options, grid, work)
    assert file.read_text() == "somebody else's file\n"
    file.unlink()
    experiments.cells(options, grid, work)
    other = experiments.Options(name="mechanisms", out=tmp_path, rng=3)
    assert experiments.cells(other, grid, work) != rows  # begun anew
    assert json.loads(file.read_text().splitlines()[0])["options"]["rng"] == 3


def test_threads_see_their_own_choice():
    """Whether records are shown is a matter of the call, not of the process."""
    heard = []
    with show_records():
        thread = threading.Thread(target=lambda: heard.append(dprad.errors.records_shown()))
        thread.start()
        thread.join()
    assert heard == [False]


# -- found by a second reader ----------------------------------------------------------------------
RANGES = """[population]
data = "pay.csv"
[[threats]]
target = ["salary"]
loss = "absolute"
eta = 1000
[[releases]]
mechanism = "laplace"
epsilon = 1.0
query = "salary"
[[releases]]
mechanism = "piecewise"
epsilon = 1.0
query = "salary"
[[releases]]
mechanism = "gaussian"
sigma = 90000
query = "salary"
[accepted]
risk = 0.9
[audit]
trials = 500
"""


def test_reports_and_comparisons_do_not_tell_the_range(tmp_path, capsys):
    rows = [1234, 187654, *range(20_000, 60_000, 1000)]
    (tmp_path / "pay.csv").write_text("salary\n" + "\n".join(map(str, rows)) + "\n")
    (tmp_path / "own.toml").write_text(RANGES)
    code, text = run(["report", str(tmp_path / "own.toml"), "-o", str(tmp_path / "r.html")], capsys)
    assert code == 0, text
    html = (tmp_path / "r.html").read_text()
    command = f"compare --mechanisms laplace,piecewise,duchi --epsilon 1 --data {tmp_path}/pay.csv"
    code, said = run(command.split(), capsys)
    assert code == 0
    for text in (html, said):
        for value in ("1234", "187654", "187,654", "186420", "186,420", "18.642"):
            assert value not in text.replace("123456", "")
    exact = scenario.answer(scenario.load(tmp_path / "own.toml"))
    for risk in (r for row in exact.risks for r in row):
        assert f"{risk.rad:.4f}"[1:] not in html


SCALED = """[population]
data = "ages.csv"
[accepted]
risk = 0.02
""" + "".join(
    f'[[releases]]\nmechanism = "{name}"\nepsilon = {epsilon}\nquery = "age"\n'
    for name in ("laplace", "staircase", "bounded-laplace", "duchi", "piecewise", "hybrid")
    for epsilon in (0.5, 1.0)
)


def shared(folder, capsys, scale):
    """A report and a comparison of the same people, in other units of age."""
    ages = [scale * age for age in (*range(0, 61, 4), 104)]
    (folder / "ages.csv").write_text("age\n" + "\n".join(f"{a:g}" for a in ages) + "\n")
    (folder / "own.toml").write_text(SCALED)
    code, _ = run(["report", str(folder / "own.toml"), "-o", str(folder / "r.html")], capsys)
    assert code == 0
    # a hash of the data differs, and tells nothing but whether a guess of all of it is right
    text = [re.sub(r"SHA-256 [0-9a-f]{64}", "hash", (folder / "r.html").read_text())]
    for command in (
        "compare --mechanisms laplace,staircase,bounded-laplace,duchi,piecewise,hybrid "
        "--epsilon 0.5,1",
        "calibrate --mechanism laplace --max-risk 0.02",
    ):
        code, said = run([*command.split(), "--data", str(folder / "ages.csv")], capsys)
        assert code == 0
        text.append(said)
    return text


def test_every_range_gives_the_same_report(tmp_path, capsys):
    """Risks do not depend on the unit, so that whatever differs would tell the range."""
    one = shared(tmp_path, capsys, 1)
    for scale in (700, 0.25, 3)[: some(3, 1)]:
        assert shared(tmp_path, capsys, scale) == one
    assert "times the range" in one[0] and "times the range" in one[1]
    assert "times the range of the data" in one[2]


def test_no_range_can_be_solved_for(tmp_path, capsys):
    """By brute force: each range whose errors and variances, to two digits, are in the report."""
    html = shared(tmp_path, capsys, 1)[0]
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.S)
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows]
    useful = {row[0]: row[2:4] for row in cells if len(row) == 5 and "(epsilon=" in row[0]}
    assert len(useful) == 12

    def fits(length):
        for name, (error, variance) in useful.items():
            kind = getattr(mechanisms, name.split("(")[0])
            epsilon = float(re.search(r"epsilon=([\d.]+)", name).group(1))
            made = kind(**kind.arguments(np.array([0.0, length]), {"epsilon": epsilon}))
            for shown, exact in ((error, made.error()), (variance, made.variance())):
                number = shown.replace(",", "")
                if re.fullmatch(r"[\d.]+", number) and float(number) != float(f"{exact:.2g}"):
                    return False
        return True

    assert sum(fits(float(length)) for length in range(1, 200)) == 199


def test_a_given_sensitivity_is_shown_in_its_units(tmp_path, capsys):
    (tmp_path / "ages.csv").write_text("age\n" + "\n".join(map(str, (*range(0, 61, 4), 104))))
    text = SCALED.split("[[")[0] + '[[releases]]\nmechanism = "laplace"\nepsilon = 1\n'
    text = text.replace("0.02", "0.05") + 'query = "age"\nsensitivity = 120\n'
    (tmp_path / "own.toml").write_text(text + text[text.index("[[") :].replace("= 1\n", "= 2\n"))
    code, _ = run(["report", str(tmp_path / "own.toml"), "-o", str(tmp_path / "r.html")], capsys)
    html = (tmp_path / "r.html").read_text()
    assert code == 0 and "<td>360</td><td>29,000</td>" in html and "times the range" not in html
    command = f"compare --mechanisms laplace --epsilon 1 --data {tmp_path}/ages.csv --sensitivity"
    code, said = run([*command.split(), "120"], capsys)
    assert code == 0 and "359.5" in said and "times" not in said
    # neither a number of one's own nor a multiple of the range: left out
    command = f"compare --mechanisms laplace --epsilon 1 --data {tmp_path}/ages.csv --clamp 0:400"
    code, said = run(command.split(), capsys)
    assert code == 0 and "clamp=[0.0, 400.0]" in said
    assert "311.6" not in said and " 400 " not in said and "2 times its square" in said


def test_bounded_laplace_does_not_tell_the_bounds(tmp_path, capsys):
    (tmp_path / "ages.csv").write_text("age\n0\n30\n104\n")
    command = "assess --mechanism bounded-laplace --epsilon 1 --sensitivity 2000 --data"
    code, said = run([*command.split(), str(tmp_path / "ages.csv")], capsys)
    assert code == 2 and "at most the length of the bounds" in said and "104" not in said


def test_audits_in_reports_are_rounded(tmp_path):
    prior = Prior.from_counts({"a": 3, "b": 997})
    found = audit(
        mechanisms.GRR(epsilon=1.0, size=2), claim=PureDP(0.2, neighbours="replace-one"),
        prior=prior, trials=50_000, trace=True,
    )  # fmt: skip
    report([found], tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text()
    body = re.sub(r"<svg.*?</svg>|<style.*?</style>", "", html, flags=re.S)
    assert f"{found.rad:.4f}" not in body and f"{found.successes:,}" not in body
    assert re.findall(r"\d\.\d{4,}", body) == []


def test_the_report_of_the_page_hides_counts_too(tmp_path):
    from dprad.show.report.page import html_of
    from dprad.show.scenario.file import parse
    from dprad.show.web.population import of_scenario
    from dprad.show.web.question import Question

    text = (
        "[population]\ncounts = { no = 99887, Quuxitis = 3 }\n"
        '[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n'
    )
    place = of_scenario(parse(text, name="own.toml", folder=tmp_path))
    asked = Question(
        population=place, attackers=place.attackers, releases=place.releases, accepted=0.1
    )
    html = html_of(scenario.answer(asked.scenario()))
    assert "99887" not in html and "Quuxitis" not in html


@pytest.mark.parametrize(
    "text",
    [
        "[population]\ncounts = { Quuxitis = -1 }\n[[releases]]\nmu = 1\nneighbours = 'add-remove'",
        '[population]\ncounts = [["Quuxitis", 3]]\n[[releases]]\nmu = 1\n',
        "[population]\nQuuxitis = 3\nuniform = 3\n[[releases]]\nmu = 1\n",
        "[population]\ncounts = { Quuxitis = 1, Quuxitis = 2 }\n[[releases]]\nmu = 1\n",
        "[population]\ndata = ['Quuxitis', 'Plugh']\n[[releases]]\nmu = 1\n",
        "[population]\ncounts = { a = 'Quuxitis' }\n[[releases]]\nmu = 1\n",
        "[population]\nuniform = 'Quuxitis'\n[[releases]]\nmu = 1\n",
        "Quuxitis = 3\n[[releases]]\nmu = 1\n",
    ],
)
def test_counts_are_not_echoed(text, tmp_path, capsys):
    path = tmp_path / "own.toml"
    path.write_text(text)
    code, said = run(["assess", str(path)], capsys)
    assert code == 2 and silent(said), said


@pytest.mark.parametrize(
    "text",
    [
        "Zyxwvut,no\nAbc,no\nDef,yes\n",
        "Zyxwvut,93\nAbc,31\nDef,40\n",
        "Quuxitis,Quuxitis\nflu,no\n",
        "918273,83.77\n5559876,61.25\n5550001,70.5\n",
        "1980-05-17,Quuxitis\n1975-01-02,flu\n",
        "17/05/1980,Quuxitis\n02/01/1975,flu\n",
        "17.5.80,Quuxitis\n2.1.75,flu\n",
        "1980-05-17 12:30:00,Quuxitis\n1975-01-02 08:00:00,flu\n",
        "1980-05-17T12:30:00Z,Quuxitis\n1975-01-02T08:00:00Z,flu\n",
        "17 May 1980,Quuxitis\n2 Jan 1975,flu\n",
        "May 17 1980,Quuxitis\nJan 2 1975,flu\n",
        "12:30,Quuxitis\n08:00,flu\n",
        "$1200,Quuxitis\n$900,flu\n",
        "+49 170 1234567,Quuxitis\n+49 171 1234567,flu\n",
    ],
)
def test_a_file_without_names_is_refused_and_not_echoed(text, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(text)
    command = ["assess", "--mechanism", "grr", "--epsilon", "1", "--data", str(path)]
    for more in ([], ["--columns", "diagnosis"]):
        code, said = run([*command, *more], capsys)
        assert code == 2 and silent(said), said


def test_names_that_only_resemble_values_are_names(tmp_path):
    path = tmp_path / "t.csv"
    names = ("z", "am", "may", "1st quarter", "2020-01", "t", "date 1", "june 2020", "q1:2")
    for name in names:
        path.write_text(f"{name},no\n3,x\n4,y\n")
        assert Prior.from_data(path).columns == (name, "no")


def test_own_functions_are_told_by_kind(tmp_path, capsys, monkeypatch):
    prior = Prior.from_counts({"Quuxitis": 1, "none": 3})

    def bad(*_):
        raise ValueError("bad Quuxitis")

    def worse(*_):
        raise DpradError("bad Quuxitis")

    grr = mechanisms.GRR(epsilon=1.0, size=2)
    for asked in (
        lambda: assess(grr, prior=prior, threat=Threat(knows=bad)),
        lambda: assess(grr, prior=prior, query=bad),
        lambda: assess(grr, prior=prior, threat=Threat(loss=bad)),
        lambda: assess(grr, prior=prior, query=lambda s: [int(x) for x in s]),
        lambda: dprad.simulate(grr, bad, prior=prior),
        lambda: audit(bad, claim=ONE, prior=prior, vectorised=True),
        lambda: audit(worse, claim=ONE, prior=prior, vectorised=True),
        lambda: audit(worse, claim=ONE, prior=prior),
    ):
        with pytest.raises(DpradError) as error:
            asked()
        assert silent(str(error.value)), error.value
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breaks.py").write_text("int('Quuxitis')\n")
    command = "audit breaks:f --claim 1 --neighbours replace-one --records 0,1"
    code, said = run(command.split(), capsys)
    assert code == 2 and silent(said)


def test_terminals_are_not_commanded(tmp_path, capsys):
    path = tmp_path / "own.toml"
    title = 'title = "\\u001b]0;PWN\\u0007\\u001b[2J"'
    path.write_text(
        title + '\n[population]\nuniform = 3\n[[releases]]\nmechanism = "grr"\nepsilon = 1\n'
    )
    code, said = run(["assess", str(path)], capsys)
    assert code == 2 and "PWN" in said and "\x1b" not in said and "\x07" not in said
    assert clean("\x1b]0;PWN\x07") == "\ufffd]0;PWN\ufffd"


def test_small_parquet_files_pass_the_limits(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path / "x=SECRETDIR"
    folder.mkdir()
    parquet.write_table(pyarrow.table({"a": [1, 2, 3], "b": ["u", "v", "w"]}), folder / "t.parquet")
    (folder / "t.csv").write_text("a,b\n1,u\n2,v\n")
    for name in ("t.parquet", "t.csv"):
        # the name of a folder is not a column
        assert Prior.from_data(folder / name, limits=LIMITS).columns == ("a", "b")
        assert Prior.from_data(folder / name).columns == ("a", "b")


def test_scenarios_do_not_run_for_ever(tmp_path, capsys):
    path = tmp_path / "own.toml"
    path.write_text(
        '[population]\nuniform = 2\n[[releases]]\nmechanism = "grr"\nepsilon = 1\n'
        "[audit]\ntrials = 10000000000000\n"
    )
    code, said = run(["report", str(path), "-o", str(tmp_path / "r.html")], capsys)
    assert code == 2 and "10,000,000" in said


def test_settings_of_the_folder_do_not_reach_figures(tmp_path):
    """Matplotlib reads ./matplotlibrc, which could have LaTeX started, and warns of what it does
    not know in its words; older releases evaluated a line of it.
    """
    (tmp_path / "matplotlibrc").write_text(
        "text.usetex: True\naxes.facecolor: ff0000\n\x1b[2JAccepted. All is well: 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "dprad", "report", "-o", "r.html"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "#ff0000" not in (tmp_path / "r.html").read_text()
    assert "Accepted. All" not in done.stderr and "\x1b" not in done.stderr


def test_an_import_moves_nobody(tmp_path, monkeypatch):
    """Other threads write and see their files meanwhile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    Path("matplotlibrc").write_text("theirs")
    seen = []

    def look():
        seen.append((os.path.exists("matplotlibrc"), Path.cwd()))  # noqa: PTH110

    with _unset("not_imported_yet"):
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()
    look()
    assert seen == [(False, tmp_path), (True, tmp_path), (True, tmp_path)]


def test_notes_of_audits_are_rounded(tmp_path):
    from dprad.show.report.published import published

    found = audit(lambda r, rng: r, claim=ONE, prior=Prior.uniform(42), trials=400)
    note = "the mechanism's extra risk does not exceed 0.00207411, which is within the interval"
    told = published(dataclasses.replace(found, notes=(*found.notes, note))).notes
    assert "does not exceed 0.01," in told[-1]
    assert "of 42" in found.notes[0] and "of 42" not in told[0]


def test_dear_questions_are_not_offered_on_the_page():
    from dprad.show.web.population import Population, readable

    values = np.random.default_rng(0).choice(10**6, 1999, replace=False).tolist()
    for counts in (dict.fromkeys(values, 1), {0: 1, 10**6: 1}):
        place = Population("", Prior.from_counts(counts), "", "", None)
        offered = readable(place)
        assert "laplace" in offered and "discrete-gaussian" not in offered
        assert "staircase" not in offered
    small = Population("", Prior.uniform(20), "", "", None)
    assert "discrete-gaussian" in readable(small)


# -- found by a fourth reader ----------------------------------------------------------------------
def test_a_report_into_a_pipe_or_a_device(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "dprad", "report", "-o", str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as writing:
        text = fifo.read_text()
        assert writing.wait(120) == 0
    assert fifo.is_fifo() and text.rstrip().endswith("</html>")


def test_the_current_folder_is_not_imported_however_dprad_is_started(tmp_path):
    (tmp_path / "cyclopts.py").write_text("raise SystemExit('EVIL')\n")
    for flags in (["-u", "-m", "dprad"], ["-X", "utf8", "-m", "dprad"], ["-mdprad"],
                  ["-m", "dprad.show.cli"], ["-m", "dprad.__main__"]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, *flags, "--version"], cwd=tmp_path, capture_output=True, text=True
        )
        assert "EVIL" not in done.stderr + done.stdout


def test_shapes_of_outputs_are_not_told():
    def run(record, rng):
        return np.zeros(10 + record)

    question = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2)}
    with pytest.raises(DpradError, match="another shape than before") as found:
        audit(run, **question, trials=100)
    assert "10" not in str(found.value) and "11" not in str(found.value)
    with show_records(), pytest.raises(DpradError, match=r"of shape \(1[01],\) after one of shape"):
        audit(run, **question, trials=100)


def test_names_of_classes_made_from_values_are_not_told():
    def run(record, rng):
        raise type(f"ZEBRA{record}", (Exception,), {})()

    question = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2)}
    with pytest.raises(DpradError) as found:
        dprad.audit(run, trials=100, **question)
    assert "ZEBRA" not in str(found.value) and "class made while running" in str(found.value)


def test_monstrous_sizes_are_one_sentence():
    with pytest.raises(DpradError, match="may be used"):
        dprad.assess(dprad.mechanisms.Laplace(epsilon=1.0), prior=Prior.uniform(10**12))
    with pytest.raises(DpradError, match="too many to count"):
        Prior.from_counts({1: 1}, domain=range(10**20))


# -- found by a fifth reader -----------------------------------------------------------------------
def test_small_files_with_large_values_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    text = ["x" * 200_000 + str(i) for i in range(300)]
    parquet.write_table(pyarrow.table({"a": text}), path, compression="zstd", row_group_size=50)
    with pytest.raises(DpradError, match="short texts"):
        Prior.from_data(path, limits=LIMITS)
    parquet.write_table(pyarrow.table({"a": [b"x" * 50_000, b"y"]}), path)
    with pytest.raises(DpradError, match="short texts"):
        Prior.from_data(path, limits=LIMITS)
    parquet.write_table(pyarrow.table({"a": [[1, 2], [3]]}), path)
    with pytest.raises(DpradError, match="short texts"):
        Prior.from_data(path, limits=LIMITS)
    parquet.write_table(pyarrow.table({"a": text * 6}), path, compression="zstd", row_group_size=50)
    with pytest.raises(DpradError, match="unpacked"):
        Prior.from_data(path, limits=LIMITS)


def test_a_report_keeps_links_and_modes(tmp_path, monkeypatch):
    from dprad.show.report import report_scenario
    from dprad.show.scenario import builtin

    private = tmp_path / "private.html"
    private.write_text("old")
    private.chmod(0o600)
    link = tmp_path / "link.html"
    link.symlink_to(private)
    modes = []
    write, chmod = os.fdopen, os.fchmod
    monkeypatch.setattr(
        os, "fdopen", lambda fd, *a, **k: (modes.append(os.fstat(fd)), write(fd, *a, **k))[1]
    )
    monkeypatch.setattr(
        os, "fchmod", lambda fd, mode: (chmod(fd, mode), modes.append(os.fstat(fd)))[0]
    )
    report_scenario(builtin(), link)
    monkeypatch.undo()
    assert [stat.S_IMODE(m.st_mode) for m in modes] == [0o600, 0o600]  # also before it is in place
    assert link.is_symlink() and private.read_text().rstrip().endswith("</html>")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    out = tmp_path / "out.html"
    with out.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "dprad", "--quiet", "report", "-o", "/dev/stdout"],
            stdout=file, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0 and Path("/dev/stdout").is_symlink()
    assert out.read_text().startswith("<!") and "</html>" in out.read_text()


@pytest.mark.parametrize(
    "part", ["a", '" "', "' '", '"."', '"\\""', "'\"'", '""', " a ", '"#"', "a-1"]
)
def test_dotted_keys_do_not_take_quadratic_time(part):
    from dprad.show.scenario.file import parse

    key = ".".join([part] * 100_000)
    begin = time.monotonic()
    for text in (
        f"{key} = 1", f"x = {{{key} = 1}}", f"[{key}]", f"[[{key}]]", f"x = [1, {{{key} = 2}}]",
        f"title = 'a' # it's \n{key} = 1", f'title = """\n"\n"""\n{key} = 1',
        f"title = \'\'\'\n'\n\'\'\'\n{key} = 1", f'x = {{a = """b"""", {key} = 1}}',
    ):  # fmt: skip
        with pytest.raises(DpradError, match="nested too deeply"):
            parse(text, name="s", folder=Path())
    assert time.monotonic() - begin < 10


ODD = ['"\\', '\\"""', "'\n", '"""\\', "''''", '"', "#", '." ', "\\"]


@pytest.mark.parametrize("odd", ODD)
def test_texts_without_an_end_are_read_once(odd):
    from dprad.show.scenario.file import parse

    begin = time.monotonic()
    for text in ("." * 29 + "\n." + odd * 200_000, 'a = """' + "." * 40 + odd * 200_000 + "\\"):
        with pytest.raises(DpradError):
            parse(text, name="s", folder=Path())
    assert time.monotonic() - begin < 10


def test_dots_in_texts_and_numbers_are_no_keys():
    from dprad.show.scenario.file import parse

    rest = (
        '[population]\nuniform = 2\n[[releases]]\nmechanism = "grr"\nepsilon = 1.0 # ' + "a." * 99
    )
    for title in ('"' + "a." * 140 + '"', "'" + '" ".' * 70 + "'", '"""' + '"." . ' * 49 + '"""'):
        assert parse(f"title = {title}\n{rest}\n", name="s", folder=Path()).title
    assert parse(rest, name="s", folder=Path()).releases


# -- found by a sixth reader -----------------------------------------------------------------------
def test_packed_text_is_measured_unpacked(tmp_path):
    import gzip

    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a\n" + b"1\n" * 2_000_000)
    small = Limits(columns=5, rows=10**7, distinct=100, seconds=30, unpacked=10**6)
    with pytest.raises(DpradError, match="unpacked"):
        Prior.from_data(path, limits=small)


def test_long_words_in_a_scenario_do_not_take_long():
    from dprad.show.scenario.file import parse

    begin = time.monotonic()
    text = (
        'title = "'
        + "a" * 900_000
        + '"\n[population]\nuniform = 2\n[[releases]]\nmechanism="grr"\n'
    )
    with pytest.raises(DpradError, match="title must be one line"):
        parse(text + "epsilon = 1\n", name="s", folder=Path())
    assert time.monotonic() - begin < 20


def test_errors_of_every_kind_are_told_without_values():
    import asyncio

    def cancelled(record, rng):
        raise asyncio.CancelledError(f"SECRET{record}")

    def named(record, rng):
        return type(f"SECRET{record}", (), {"__hash__": None})()

    question = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2)}
    for run in (cancelled, named):
        with pytest.raises(DpradError) as found:
            dprad.audit(run, trials=200, **question)
        assert "SECRET" not in str(found.value)


# -- found by a ninth reader -----------------------------------------------------------------------


def test_why_there_is_no_noise_does_not_tell_the_range(tmp_path):
    from dprad.show.report.published import WHY, _note, why
    from dprad.show.scenario.answers import Reason

    mixed = {("a", 0): 1, ("b", 7): 1, ("a", 18_273_645): 1}
    prior = Prior.from_counts(mixed, columns=["t", "x"])
    for noise in (mechanisms.Geometric, mechanisms.DiscreteGaussian):
        given = {"epsilon": 1.0} if noise is mechanisms.Geometric else {"sigma": 1e3}
        asked = {"prior": prior, "threat": Threat(target=["t"]), "query": "x"}
        with pytest.raises(DpradError, match="too many outputs") as error:
            assess(noise(**given, sensitivity=50_000_000), **asked)
        assert not re.search(r"1\.8\d*e|\d{5}", str(error.value))
    assert why(Reason("a range of 918273", "error")) == WHY["error"]
    assert silent(_note("no model-based estimate: a range of 918273"))


def test_limits_of_a_search_do_not_tell_the_range(tmp_path, capsys):
    """The search range is in units of the default sensitivity, which is the range of the data."""
    (tmp_path / "pay.csv").write_text("pay\n0\n918273\n")
    command = f"calibrate --mechanism gaussian --max-risk 0.9 --whole --data {tmp_path}/pay.csv"
    code, said = run(command.split(), capsys)
    assert code == 2 and "every sigma" in said and not re.search(r"9\.?18", said), said
    with pytest.raises(DpradError, match="sensitivity must cover") as error:
        mechanisms.Exponential(epsilon=1.0, utility=[[0.0], [918273.0]], sensitivity=1.0)
    assert silent(str(error.value))


def test_more_own_functions_are_told_by_kind():
    import pandas as pd
    from sklearn.base import BaseEstimator

    class Bad(BaseEstimator):
        def fit(self, x, y):
            raise ValueError(f"Quuxitis {x[0]}")

        def predict_proba(self, x):
            return x

    def bad(*_):
        raise KeyError("Quuxitis")

    def made(epsilon):
        return bad()

    table = pd.DataFrame({"a": ["x", "y"] * 20, "s": [0, 1] * 20})
    huge = table.assign(a=[10**400 + i for i in range(40)])
    lists = table.assign(a=[["Quuxitis"]] * 40)
    calibrated = {"max_risk": 0.1, "prior": Prior.uniform(2), "between": (0.1, 1.0)}
    for asked in (
        lambda: dprad.attacks.impute(table, secret="s", people=5, classifier=Bad()),
        lambda: dprad.attacks.impute(huge, secret="s", people=5),
        lambda: dprad.attacks.impute(lists, secret="s", people=5),
        lambda: dprad.attacks.impute(lists, secret="a", people=5),
        lambda: dprad.Profile(bad, neighbours="replace-one"),
        lambda: audit(lambda r, rng: r, claim=ONE, prior=Prior.uniform(2), model=made, trials=200),
        lambda: dprad.calibrate(lambda epsilon: int(["Quuxitis"]) + epsilon, **calibrated),
    ):
        with pytest.raises(DpradError) as error:
            asked()
        assert silent(str(error.value)), error.value


def test_only_small_types_pass_the_limits(tmp_path):
    path = tmp_path / "t.parquet"
    for value in ("'1'::BIGNUM", "{'a': 1}", "[1]", "'x'::BLOB", "'POINT(1 2)'::GEOMETRY",
                  "1::VARIANT"):  # fmt: skip
        try:
            duckdb.sql(f"COPY (SELECT {value} AS a) TO '{path}'")
        except duckdb.Error:
            continue  # not in this version, or no text of it
        if str(duckdb.read_parquet(str(path)).types[0]) in ("DOUBLE", "VARCHAR"):
            continue
        with pytest.raises(DpradError, match="short texts"):
            Prior.from_data(path, limits=LIMITS)
    for kind in ("GEOMETRY", "VARIANT", "BIGNUM", "STRUCT(a INTEGER)", "INTEGER[]", "BLOB", "JSON"):
        assert not dprad.data.files.SMALL.fullmatch(kind)
    for value in ("true", "1::UTINYINT", "1::HUGEINT", "1.5::DECIMAL(9,2)", "1.5::FLOAT", "uuid()",
                  "DATE '2020-01-01'", "TIME '10:00'", "'2020-01-01'::TIMESTAMP_NS",
                  "NULL::INTEGER", "'short'"):  # fmt: skip
        duckdb.sql(f"COPY (SELECT {value} AS a, 1 AS b) TO '{path}'")
        assert Prior.from_data(path, missing="keep", limits=LIMITS).size == 1


def test_broken_archives_are_a_sentence(tmp_path):
    import gzip

    path = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"a,b\n" + os.urandom(5000).hex().encode())
    for broken in (whole[:900], whole[:60] + b"\xff" * 60 + whole[120:], b"a,b\n1,2\n"):
        path.write_bytes(broken)
        with pytest.raises(DpradError, match="cannot be read"):
            Prior.from_data(path, limits=LIMITS)


def test_a_link_of_somebody_else_is_not_followed(tmp_path, monkeypatch):
    from dprad.show import atlas
    from dprad.show.report.evidence.folder import usable

    risk = assess(ONE, prior=Prior.uniform(4))
    folder, victim = tmp_path / "open", tmp_path / "victim"
    folder.mkdir()
    victim.mkdir()
    (victim / "r.html").write_text("mine")
    (folder / "r.html").symlink_to(victim / "r.html")
    (folder / "way").symlink_to(victim)
    with monkeypatch.context() as patch:
        theirs(patch, folder / "r.html", folder / "way")
        for mode in (0o777, 0o755):  # whoever may put links there
            folder.chmod(mode)
            for path in (folder / "r.html", folder / "way" / "r.html", folder / "way" / "new.html"):
                with pytest.raises(DpradError, match="somebody else"):
                    report(risk, path)
        with pytest.raises(DpradError, match="somebody else"):
            atlas.write([], folder / "way" / "atlas", atlas.Source("a", date(2030, 1, 1)))
        with pytest.raises(DpradError, match="somebody else"):
            usable(folder / "way" / "pack")
        assert (victim / "r.html").read_text() == "mine" and len(list(victim.iterdir())) == 1
    (folder / "r.html").unlink()
    (folder / "r.html").symlink_to(victim / "r.html")
    folder.chmod(0o777)
    assert report(risk, folder / "r.html")  # a link of one's own
    assert (victim / "r.html").read_text() != "mine" and (folder / "r.html").is_symlink()


# -- found by a tenth reader -----------------------------------------------------------------------
def test_nothing_in_a_file_is_a_comment(tmp_path):
    path = tmp_path / "clinic.csv"
    path.write_text("# name,diagnosis\nsmith,hiv\ndoe,flu\nroe,cold\n# 3 rows\n")
    with pytest.raises(dprad.DpradError) as caught:
        dprad.Prior.from_data(str(path))
    assert "smith" not in str(caught.value) and "hiv" not in str(caught.value)
    path.write_text("# of the clinic\nname,diagnosis\nsmith,hiv\ndoe,flu\n")
    assert dprad.Prior.from_data(str(path)).columns == ("# of the clinic",)


def test_values_are_not_cut(tmp_path):
    path = tmp_path / "addresses.csv"
    path.write_text("name,address\nsmith,Main St #12\nsmith,Main St #13\ndoe,Side St\n#x,y\n")
    assert dprad.Prior.from_data(str(path)).size == 4


def test_apostrophes_and_categories_are_not_told(tmp_path):
    import pandas as pd

    path = tmp_path / "s.toml"
    path.write_text('[population]\ncounts = {"O\'Brien" = 1, "O\'Brien" = 2}\n')
    with pytest.raises(dprad.DpradError, match="not TOML") as caught:
        dprad.scenario.load(path)
    assert "Brien" not in str(caught.value) and "line" in str(caught.value)
    weight = pd.Categorical(["SECRET1", "SECRET2"], ordered=True)
    frame = pd.DataFrame({"x": [1, 2], "w": weight})
    with pytest.raises(dprad.DpradError, match="numbers") as caught:
        dprad.Prior.from_data(frame, weight="w")
    assert "SECRET" not in str(caught.value)


def test_rounded_counts_of_an_audit_are_possible():
    from dprad.show.report.published import published

    result = audit(lambda r, rng: r, claim=ONE, prior=Prior.uniform(2), trials=100)
    for trials, passes, right in ((1896, 0, 1896), (1896, 1, 1890), (949, 2, 947)):
        shown = published(
            dataclasses.replace(result, trials=trials, passes=passes, successes=right)
        )
        assert shown.successes <= shown.trials - shown.passes <= shown.trials


def test_an_experiment_with_other_data_is_begun_anew(tmp_path, monkeypatch):
    from dprad.paper import experiments

    data, calls = tmp_path / "data", []
    (data / "adult").mkdir(parents=True)
    (data / "adult" / "adult.data").write_text("1\n2\n")

    def work(cell, seed):
        calls.append(seed)
        return [cell]

    def asked(**more):
        options = experiments.Options(name="laplace-adult", out=tmp_path / "out", **more)
        experiments.cells(options, [{"a": 1}], work)
        return len(calls)

    assert asked(data=str(data)) == asked(data=str(data)) == 1
    monkeypatch.setenv("DPRAD_DATA", str(data))
    assert asked() == 1  # the same files
    (data / "adult" / "adult.data").write_text("1\n3\n")
    assert asked(data=str(data)) == asked() == 2
    monkeypatch.delenv("DPRAD_DATA")
    assert asked() == 3
    monkeypatch.setattr(dprad, "__version__", "another")
    assert asked() == 4


@pytest.mark.parametrize(
    "command",
    ["--mechanism lgrr --epsilon-inf 1 --reports 1e18", "--mechanism rappor --f .5 --hashes 1e17",
     "--mechanism lsue --epsilon-inf 1 --reports 100000000", "--mechanism rappor --f .5 --bits 1e9",
     "--counts value --epsilon 1 --neighbours add-remove --times 1000000000000000000"],
)  # fmt: skip
def test_monstrous_numbers_are_one_sentence(command, capsys):
    code, said = run(["assess", *command.split(), "--uniform", "4"], capsys)
    assert code == 2 and re.search(r"must be a (whole )?number", said) and "internal" not in said
    with pytest.raises(DpradError, match="steps must be a number between 1 and 1e"):
        dprad.accounting.dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=10**9)


# -- found by an eleventh reader -------------------------------------------------------------------
def many(tmp_path):
    path = tmp_path / "many.csv"
    rows = [f"Plugh{i},{'flu' if i % 2 else 'none'},{20_000 + 137 * i}" for i in range(299)]
    path.write_text("name,diagnosis,salary\n" + "\n".join([*rows, "Zyxwvut,Quuxitis,918273"]))
    return path


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize("by", ["record", "name", "diagnosis", "salary"])
def test_groups_do_not_name_few_people(by, form, tmp_path, capsys):
    command = f"assess --epsilon 1 --neighbours replace-one --data {many(tmp_path)} --by {by}"
    asked = [*command.split(), "--target", "diagnosis", *form.split()]
    code, said = run(asked, capsys)
    assert code == 0 and silent(said), said
    assert not re.search(r"\b\d*[1-9]\d{0,2}137\b|20000", said)
    shown = {
        "record": "number 2", "name": "fewer than ten people", "diagnosis": "flu",
        "salary": "or more",
    }  # fmt: skip
    assert shown[by] in said
    code, said = run([*asked, "--show-records"], capsys)
    assert code == 0 and (not silent(said) or by == "salary")


def test_groups_of_a_weighted_table_are_not_named(tmp_path, capsys):
    path = tmp_path / "w.csv"
    path.write_text("town,w\n" + "big,1\n" * 90 + "Quuxitis,100\n")
    command = f"assess --epsilon 1 --neighbours replace-one --data {path} --weight w --by town"
    code, said = run([*command.split(), "--columns", "town"], capsys)
    assert code == 0 and silent(said) and "how many people" in said


def test_bands_hold_what_their_names_say():
    from dprad.verbs.shown_groups import rounded

    draws = np.random.default_rng(0)
    for values in (draws.normal(0, 1e-7, 200), draws.integers(0, 10**9, 200),
                   1.7e9 + draws.random(200), draws.pareto(0.3, 200)):  # fmt: skip
        values = np.unique(values)
        names, label = rounded(values, np.full(len(values), 1 / len(values)), len(values))
        assert len(names) > 3 and len(set(names)) == len(names)
        for value, k in zip(values.tolist(), label.tolist(), strict=True):
            low, _, high = names[k].removesuffix(" or more").partition("below ")
            low = low.removesuffix(" to ").strip()
            assert (not low or float(low) <= value) and (not high or value < float(high))


def test_what_is_no_number_in_a_box_is_refused():
    from dprad.show.web.cards import typed

    assert typed(1) == 1 and typed(0.5) == 0.5
    assert [typed(x) for x in ([1, 2], "x", {"a": 1}, None, math.inf, math.nan)] == [None] * 6


@pytest.mark.parametrize(
    "value",
    ["DATE '2020-01-01'", "TIMESTAMP '2020-01-01 10:00:00'", "TIME '10:00'", "1.5::DECIMAL(9,2)",
     "'x'::BLOB"],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", "--show-records"])
def test_groups_of_any_type_are_json(value, more, tmp_path, capsys):
    path = tmp_path / "t.parquet"
    rows = f"SELECT {value} AS a, i % 2 AS b FROM range(200) AS t(i)"
    duckdb.sql(f"COPY ({rows} UNION ALL SELECT NULL, 1 FROM range(20)) TO '{path}'")
    command = f"assess --epsilon 1 --neighbours replace-one --data {path} --by a --target b --json"
    code, said = run([*command.split(), *more.split()], capsys)
    assert code == 0, said
    names = [group["name"] for group in json.JSONDecoder().raw_decode(said)[0]["groups"]]
    assert len(names) == 2 and all(name is None or isinstance(name, str | float) for name in names)


def test_arguments_that_hold_records_are_not_printed():
    from dprad.game.query import columns_read
    from dprad.mechanisms.tables.release import predicate

    records = [{"illness": "Brugada"}]
    for call in (
        lambda: PureDP(records, neighbours="replace-one"),
        lambda: PureDP(1.0, neighbours=records),
        lambda: columns_read(Prior.uniform(2), Threat(), {1: records}),
        lambda: predicate(records),
    ):
        with pytest.raises(DpradError) as error:
            call()
        assert "Brugada" not in str(error.value)


# -- found by a nineteenth reader ------------------------------------------------------------------
def test_a_plan_does_not_tell_the_range(tmp_path, capsys):
    """Its errors are in units of the range, if nobody gave a sensitivity."""
    rows = [*(f"{37 * i}" for i in range(60)), "918273"]
    (tmp_path / "pay.csv").write_text("income\n" + "\n".join(rows) + "\n")
    (tmp_path / "s.toml").write_text(
        '[population]\ndata = "pay.csv"\nwhole = true\n[[releases]]\nname = "Z"\n'
        'mechanism = "laplace"\nepsilon = 0.5\nquery = "income"\n[accepted]\nrisk = 0.5\n'
    )
    for given, told in (("", "times the range of the data"), ("\nsensitivity = 1e6", "within ")):
        scenario = tmp_path / f"{len(given)}.toml"
        text = (tmp_path / "s.toml").read_text()
        scenario.write_text(text.replace("epsilon = 0.5", f"epsilon = 0.5{given}"))
        ledger = str(tmp_path / f"{len(given)}.jsonl")
        for command in (f"init {ledger} --scenario {scenario}", f"add {ledger} --name Z"):
            assert run(["ledger", *command.split()], capsys)[0] in (0, 1, 3)
        _, said = run(["ledger", "plan", ledger, "--releases", "3"], capsys)
        reach = re.search(r"The noise then stays within ([\d,.]+)(.*) in 95", said)
        epsilon = re.search(r"least noise .*: epsilon = ([\d,.]+)", said)
        found, value = (float(m.group(1).replace(",", "")) for m in (reach, epsilon))
        assert told in said and bool(given) == (not reach.group(2))
        assert math.isclose(found * value / math.log(20), 1e6 if given else 1, rel_tol=1e-2)
        _, plain = run(["ledger", "plan", ledger, "--releases", "3", "--json"], capsys)
        exact = json.JSONDecoder().raw_decode(plain)[0]["errors"][0]  # for the owner of the data
        assert math.isclose(exact, found if given else 918273 * found, rel_tol=1e-2)


def test_nothing_in_the_folder_is_loaded_for_an_installed_function(tmp_path):
    """Not even what a library asks for in vain, here or in a worker."""
    for name in ("msvcrt", "_winapi", "sitecustomize", "no_such_library"):
        (tmp_path / f"{name}.py").write_text("import pathlib; pathlib.Path('ran').write_text('')\n")
    done = subprocess.run(
        [
            sys.executable, "-P", "-m", "dprad", "audit", "dprad.examples:coin", "--claim", "3",
            "--neighbours", "replace-one", "--records", "0,1", "--trials", "2000", "--workers", "2",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


# -- found by a twentieth reader -------------------------------------------------------------------
def test_a_message_repeats_little_of_what_it_was_given():
    import pickle

    from dprad import errors

    huge, many = "é" * 10**6, [f"column {k}" for k in range(10**5)]
    for call in (
        lambda: errors.number(huge, "a"),
        lambda: errors.number("\0" * 10**6, "a"),
        lambda: errors.one_of(huge, "a", ["b"]),
        lambda: errors.one_of(1 << 10**6, "a", ["b"]),
        lambda: errors.column(huge, ["b"], name="a"),
        lambda: errors.column("b", many, name="a"),
        lambda: Threat(loss=huge),
    ):
        with pytest.raises(DpradError) as error:
            call()
        assert len(str(error.value)) <= errors.LONG
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    short = DpradError("a\n" + "b" * 10**6 + "\nc")
    assert [len(line) for line in str(short).split("\n")] == [1, errors.LONG, 1]
    assert errors.argument("x" * 298) == repr("x" * 298)
    assert errors.argument("x" * 299).endswith("...") and len(errors.argument("x" * 299)) == 300
