"""The command line, in process; and how little it loads."""

from __future__ import annotations

import inspect
import json
import shlex
import subprocess
import sys

import numpy as np
import pytest

from dprad.data import patients
from dprad.show.cli import app, main


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No progress on standard error, however busy the machine is."""
    monkeypatch.setattr("dprad.show.cli.progress.PATIENCE", 600.0)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    out = capsys.readouterr()
    return stop.value.code, out.out, out.err


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    patients.save(path)
    return path


def test_demo(capsys):
    code, out, _ = run(capsys, "demo")
    assert code == 0 and "What does epsilon = 1 mean" in out
    for name in ("a stranger", "an acquaintance", "someone with the record", "In words"):
        assert name in out


def test_demo_saves_its_table(capsys, tmp_path):
    path = tmp_path / "p.csv"
    code, out, _ = run(capsys, "demo", "--save", path)
    assert code == 0 and f"--data {path}" in out.replace("\n", "")
    assert len(path.read_text().splitlines()) == 20_001
    path.write_text("mine\n")
    code, _, err = run(capsys, "demo", "--save", path)
    assert code == 2 and "already exists" in err and path.read_text() == "mine\n"


def test_demo_json(capsys):
    code, out, _ = run(capsys, "demo", "--json")
    answers = json.loads(out)
    assert code == 0 and len(answers) == 3
    # what is promised is never below what one such mechanism does
    for risks in answers.values():
        assert risks["mechanism"]["rad"] <= risks["promise"]["rad"]


def test_assess(capsys, table):
    code, out, _ = run(
        capsys, "assess", "--epsilon", 1, "--neighbours", "replace-one", "--data", table,
        "--knows", "age,region", "--target", "diagnosis",
    )  # fmt: skip
    assert code == 0 and "knows age and region and guesses diagnosis" in out
    assert "This holds if:" in out


def test_assess_json(capsys):
    code, out, _ = run(
        capsys, "assess", "--epsilon", 1, "--neighbours", "replace-one", "--uniform", 10, "--json",
        "--knows", "nothing",
    )  # fmt: skip
    risk = json.loads(out)
    assert code == 0 and risk["kind"] == "upper-bound"
    assert risk["rad"] == pytest.approx(0.131970, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "rad"),
    [
        (["--epsilon", 1, "--delta", 0.01, "--neighbours", "replace-one"], 0.252469),
        (["--mu", 1, "--neighbours", "replace-one"], 0.311956),
        (["--tv", 0.3, "--neighbours", "replace-one"], 0.3),
        (["--mu", 1, "--neighbours", "add-remove", "--knows", "everything"], 0.437735),
        (["--mechanism", "grr", "--epsilon", 1.0986122886681098, "--uniform", 2], 0.25),
        # by hand: (e-1)/22 (1 - (e/(1+e))^10), and (11 p - 3)/33 with p = 3e/(3e+8)
        (["--mechanism", "oue", "--epsilon", 1, "--uniform", 11], 0.074698),
        (["--mechanism", "subset", "--epsilon", 1, "--uniform", 11], 0.097382),
        # 10/11 (1 - e^-0.05), 10/11 (2 Phi(1/4) - 1), and with a = e^(-2/9): (3-a)/(1+a)/3 - 1/3
        (["--mechanism", "laplace", "--epsilon", 1, "--uniform", 11], 0.044337),
        (["--mechanism", "gaussian", "--sigma", 2, "--uniform", 11], 0.179466),
        (["--mechanism", "geometric", "--epsilon", 2, "--sensitivity", 9, "--uniform", 3], 0.07377),
    ],
)
def test_promises(capsys, options, rad):
    knows = () if "--knows" in options else ("--knows", "nothing")
    code, out, _ = run(capsys, "assess", *options, *knows, "--json")
    assert code == 0 and json.loads(out)["rad"] == pytest.approx(rad, abs=1e-6)


def test_max_risk_decides_the_exit_code(capsys):
    call = ("assess", "--epsilon", 1, "--neighbours", "replace-one")
    code, out, _ = run(capsys, *call, "--max-risk", 0.25)
    assert code == 0 and "stays within the accepted 0.25" in out
    code, out, _ = run(capsys, *call, "--max-risk", 0.24)
    assert code == 1 and "may be as high as 0.2450, above the accepted 0.24" in out
    code, out, _ = run(capsys, *call, "--max-risk", 0.24, "--json")
    assert code == 1 and json.loads(out)["verdict"]["outcome"] == "exceeded"
    assert "Bounds that do not apply" in run(capsys, *call, "--bounds")[1]


def test_domain_and_tolerance(capsys, tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text("hours\n" + "\n".join(str(40 + i % 5) for i in range(50)) + "\n")
    code, out, _ = run(
        capsys, "assess", "--epsilon", 1, "--neighbours", "replace-one", "--data", path,
        "--columns", "hours", "--domain", "0:100", "--loss", "absolute", "--eta", 1, "--json",
    )  # fmt: skip
    assert code == 0 and "101 records" in json.loads(out)["prior"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give one of --epsilon, --mu, --rho and --tv, but got none"),
        (["--epsilon", 1, "--mu", 1], "--epsilon and --mu"),
        (["--epsilon", 1], "neighbours is missing"),
        (["--epsilon", -1, "--neighbours", "replace-one"], "epsilon must be"),
        (["--epsilon", "nan", "--neighbours", "replace-one"], "epsilon must be"),
        (["--epsilon", "inf", "--neighbours", "replace-one"], "epsilon must be"),
        (["--epsilon", "one"], "--epsilon"),
        (["--epsilon", 1, "--delta", 2, "--neighbours", "replace-one"], "delta must be"),
        (["--epsilon", 1, "--neighbours", "both"], "neighbours must be one of"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--eta", -1], "eta must be"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--loss", "l2"], "loss must be one of"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--columns", "a"], "needs --data"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--data", "no.csv"], "cannot be read"),
        (["--epsilon", 1, "--uniform", 3, "--data", "no.csv"], "not both"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--uniform", 0], "size must be"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--max-risk", 3], "--max-risk"),
        (["--mechanism", "grr", "--uniform", 3], "needs --epsilon"),
        (["--mechanism", "grr", "--epsilon", 1], "needs a population"),
        (["--mechanism", "laplac", "--epsilon", 1, "--uniform", 3], "Did you mean 'laplace'"),
        (["--mechanism", "oue", "--epsilon", 1, "--sigma", 1, "--uniform", 3], "does not apply"),
        (
            ["--mechanism", "laplace", "--epsilon", 1, "--clamp", "x", "--uniform", 3],
            "--clamp must",
        ),
        (["--epsilon", 1, "--neighbours", "replace-one", "--sigma", 3], "does not apply"),
        (["--mechanism", "gaussian", "--epsilon", 1, "--uniform", 3], "needs --sigma"),
        (["--nonsense"], "--nonsense"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--knows", ""], "--knows must be a list"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--uniform", 2.5], "whole number"),
        (
            ["--mu", 1, "--delta", 0.1, "--neighbours", "replace-one"],
            "delta goes with epsilon",
        ),
        (["--mechanism", "grr", "--epsilon", 1, "--mu", 1, "--uniform", 2], "does not apply"),
        (["--epsilon", 1, "--neighbours", "replace-one", "--missing", "keep"], "needs --data"),
        (["--mechanism", "laplace", "--epsilon", 1, "--uniform", 10**14], "may be used"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(capsys, options, words):
    code, out, err = run(capsys, "assess", *options)
    assert code == 2 and out == ""
    assert err.startswith("dprad: ") and err.count("\n") == 1 and words in err


def test_unknown_column_and_empty_table(capsys, table, tmp_path):
    call = ("assess", "--epsilon", 1, "--neighbours", "replace-one", "--data")
    code, _, err = run(capsys, *call, table, "--knows", "agee")
    assert code == 2 and "Did you mean 'age'" in err
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    code, _, err = run(capsys, *call, empty)
    assert code == 2 and "empty" in err
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("")
    code, _, err = run(capsys, *call, nothing)
    assert code == 2 and err.count("\n") == 1
    bad = tmp_path / "domain.csv"
    bad.write_text("a\n1\n")
    code, _, err = run(capsys, *call, bad, "--domain", "x")
    assert code == 2 and "0:100" in err


def test_files_that_cannot_be_written(capsys, tmp_path):
    code, _, err = run(capsys, "demo", "--save", tmp_path / "no" / "p.csv")
    assert code == 2 and err.count("\n") == 1 and str(tmp_path) in err


def test_a_text_weight_and_a_huge_domain(capsys, table):
    call = ("assess", "--epsilon", 1, "--neighbours", "replace-one", "--data", table)
    code, _, err = run(capsys, *call, "--weight", "diagnosis")
    assert code == 2 and "column of numbers" in err
    code, _, err = run(capsys, *call, "--columns", "age", "--domain", "0:1000000000")
    assert code == 2 and "at most" in err


def test_a_closed_pipe_keeps_the_exit_code():
    command = "assess --epsilon 1 --neighbours replace-one --max-risk 0.01 --json --quiet"
    script = f"{sys.executable} -m dprad {command} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == ""


LIGHT = """
import sys
{body}
heavy = {{m.split('.')[0] for m in sys.modules}} & {{
    'scipy', 'duckdb', 'narwhals', 'pandas', 'matplotlib', 'torch'}}
print(sorted(heavy))
"""


@pytest.mark.parametrize(
    "body",
    [
        "import dprad",
        "from dprad.show.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from dprad.show.cli import main\ntry: main(['assess', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_little_is_loaded(body):
    script = LIGHT.format(body=body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_module_entry():
    done = subprocess.run(
        [sys.executable, "-m", "dprad", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip()


def test_calibrate(capsys, table):
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--mechanism", "grr", "--data", table,
        "--knows", "age,region", "--target", "diagnosis",
    )  # fmt: skip
    assert code == 0 and "GRR with epsilon = " in out and "at or below 0.1" in out
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--mechanism", "grr", "--uniform", 2,
        "--knows", "everything", "--json",
    )  # fmt: skip
    plan = json.loads(out)
    assert code == 0 and plan["value"] == pytest.approx(0.405465, abs=1e-6)
    assert plan["parameter"] == "epsilon" and plan["risk"]["interval"][1] <= 0.1


def test_calibrate_noise_promises_and_trainings(capsys):
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--mechanism", "gaussian", "--uniform", 11,
        "--loss", "absolute", "--eta", 1,
    )  # fmt: skip
    assert code == 0 and "Gaussian with sigma = " in out and "The noise stays within" in out
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--promise", "pure", "--neighbours", "replace-one"
    )
    assert code == 0 and "epsilon = 0.4013 " in out
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--promise", "approx", "--delta", 1e-6,
        "--neighbours", "add-remove", "--json",
    )  # fmt: skip
    assert code == 0 and json.loads(out)["mechanism"]["delta"] == 1e-6
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, "--mechanism", "dpsgd", "--sample-rate", 1,
        "--steps", 100, "--knows", "everything",
    )  # fmt: skip
    assert code == 0 and "noise_multiplier = 44.8 " in out


def test_compare(capsys):
    code, out, _ = run(
        capsys, "compare", "--mechanisms", "grr,oue", "--epsilon", "0.5,1", "--uniform", 5
    )
    assert code == 0 and out.count("GRR(") == 2 and out.count("OUE(") == 2
    code, out, _ = run(
        capsys, "compare", "--mechanisms", "laplace,gaussian", "--epsilon", "1", "--sigma", "3",
        "--uniform", 5, "--json",
    )  # fmt: skip
    rows = json.loads(out)["candidates"]
    assert code == 0 and {r["mechanism"]["kind"] for r in rows} == {"Laplace", "Gaussian"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("calibrate",), "max-risk"),
        (("calibrate", "--max-risk", 0.1), "one of --mechanism and --promise"),
        (("calibrate", "--max-risk", 0.1, "--mechanism", "grr"), "needs a population"),
        (("calibrate", "--max-risk", 0.1, "--mechanism", "gr", "--uniform", 3), "Did you mean"),
        (("calibrate", "--max-risk", 0.1, "--mechanism", "dpsgd"), "needs --sample-rate"),
        (("calibrate", "--max-risk", 0.1, "--promise", "pur"), "Did you mean"),
        (("calibrate", "--max-risk", 0.1, "--promise", "pure"), "neighbours is missing"),
        (
            ("calibrate", "--max-risk", 0.9, "--mechanism", "oue", "--uniform", 5),
            "nothing to calibrate",
        ),
        (("compare", "--mechanisms", "grr", "--uniform", 5), "needs values of --epsilon"),
        (("compare", "--mechanisms", "x", "--epsilon", "1", "--uniform", 5), "--mechanism"),
        (("compare", "--mechanisms", "grr", "--epsilon", "a", "--uniform", 5), "--epsilon"),
    ],
)
def test_bad_questions_of_the_other_commands(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == "" and words in err and err.count("\n") == 1


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the current folder, with a function that claims too much."""
    (tmp_path / "vendor_release.py").write_text(
        "class Box:\n"
        "    def randomise(self, value):\n"
        "        return value\n\n\n"
        "box = Box()\n\n\n"
        "def coin(record, rng):\n"
        "    return record if rng.random() < 0.9 else 1 - record\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "vendor_release"
    sys.modules.pop("vendor_release", None)


def test_audit(capsys, module, tmp_path):
    usual = ("--neighbours", "replace-one", "--records", "0,1", "--trials", 4000)
    code, out, _ = run(capsys, "audit", f"{module}:coin", "--claim", 1, *usual)
    assert code == 1 and "Violated, at 95% confidence" in out
    code, out, _ = run(
        capsys, "audit", f"{module}:coin", "--claim", 2.5, *usual, "--model", "grr", "--json",
        "--state", tmp_path / "state",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0 and found["verdict"] == "consistent" and found["trials"] == 3000
    assert found["epsilon_interval"][0] < 2.45 and (tmp_path / "state").exists()
    code, out, _ = run(capsys, "audit", f"{module}:box", "--claim", 1, *usual, "--sequential")
    assert code == 1 and "refute" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", "--claim", 1), "package.module:function"),
        (("no_such_module_here:f", "--claim", 1), "cannot be imported"),
        (("math:nothing", "--claim", 1), "nothing called"),
        (("math:sqrt", "--claim", 1), "give the records to run it on"),
        (("math:sqrt", "--claim", 1, "--records", "0,1"), "neighbours is missing"),
        (("--claim", 1, "--neighbours", "replace-one"), "--outputs"),
        (("math:sqrt", "--claim", 1, "--neighbours", "replace-one", "--one-run"), "--one-run"),
        (("--outputs", "no.csv", "--claim", 1, "--neighbours", "replace-one"), "does not exist"),
        (
            ("--outputs", "no.csv", "--claim", 1, "--neighbours", "replace-one", "--trials", 5),
            "--trials does not apply",
        ),
        (("math:sqrt", "--claim", 1, "--records", "0,1", "--uniform", 3), "not both"),
        (
            ("math:sqrt", "--claim", 1, "--neighbours", "replace-one", "--records", "0,-1"),
            "run failed at call",
        ),
    ],
)
def test_bad_audits(capsys, arguments, words):
    code, out, err = run(capsys, "audit", *arguments)
    assert code == 2 and out == "" and words in err and err.count("\n") == 1


def test_reproduce(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPRAD_DATA", raising=False)
    code, out, _ = run(capsys, "reproduce", "--list")
    assert code == 0 and "dpsgd-mnist" in out
    made = tmp_path / "made"
    code, out, _ = run(capsys, "reproduce", "dpsgd-mnist", "--quick", "--out", str(made))
    assert code == 0 and "(built in)" in out and "never above our bound" in out
    rows = (made / "dpsgd-mnist.csv").read_text().splitlines()
    assert len(rows) == 19 and rows[0].startswith("sigma,")
    about = json.loads((made / "dpsgd-mnist.json").read_text())
    assert about["trainings"] == 96 and about["environment"]["dprad"]
    code, _, err = run(capsys, "reproduce", "dpsgd-minst")
    assert code == 2 and "Did you mean 'dpsgd-mnist'?" in err
    code, _, err = run(capsys, "reproduce", "dpsgd-mnist", "--data", str(tmp_path / "none"))
    assert code == 2 and "does not exist" in err


def examples():
    """The example of every command's help."""
    for name in app:
        if not name.startswith("-"):
            command = app[name].default_command
            text = app[name].help if command is None else inspect.getdoc(command)
            example = text.partition("Example: ")[2].partition("\n\n")[0]
            yield name, " ".join(example.split())
    yield "dprad", app.help.partition("Example: ")[2].partition("\n\n")[0]


@pytest.mark.parametrize(("name", "example"), list(examples()))
def test_examples_work_as_typed(capsys, tmp_path, monkeypatch, name, example):
    assert example.startswith("dprad ")
    monkeypatch.chdir(tmp_path)
    if name == "explore":
        return  # it would serve for ever; the page's own tests start it
    if name == "ledger":  # it starts with a scenario
        run(capsys, "init")
    if name == "atlas":  # it reads a folder that its reader has
        (tmp_path / "registry").mkdir()
        run(capsys, "init")
        run(capsys, "atlas", "--export", "scenario.toml", "--out", "registry/entry.yaml")
    code, out, err = run(capsys, *shlex.split(example)[1:])
    assert code == (1 if name == "audit" else 0) and out and err == ""


def test_scenarios(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "init")[0] == 0
    code, _, err = run(capsys, "init")
    assert code == 2 and "already exists" in err
    assert run(capsys, "init", "--force")[0] == 0
    code, out, _ = run(capsys, "assess", "scenario.toml")
    assert code == 1 and "All releases together" in out and "Not accepted" in out
    code, out, _ = run(capsys, "assess", "scenario.toml", "--json")
    assert code == 1 and len(json.loads(out)["answers"]) == 4
    code, out, _ = run(capsys, "calibrate", "scenario.toml")
    assert code == 0 and "GRR with epsilon = 0.9657 " in out
    code, out, _ = run(capsys, "calibrate", "scenario.toml", "--json")
    assert json.loads(out)["answers"][0]["calibration"]["parameter"] == "epsilon"
    code, out, _ = run(capsys, "report", "scenario.toml", "-o", "r.html")
    assert code == 0 and (tmp_path / "r.html").stat().st_size < 300_000
    for arguments, words in [
        (("assess", "scenario.toml", "--epsilon", 1), "--epsilon does not apply with a scenario"),
        (("assess", "scenario.toml", "--uniform", 3), "--uniform does not apply"),
        (("calibrate", "scenario.toml", "--knows", "age"), "--knows does not apply"),
        (("report", "none.toml"), "does not exist"),
        (("explore", "none.toml"), "does not exist"),
        (("explore", "--port", 0), "port"),
    ]:
        code, _, err = run(capsys, *arguments)
        assert code == 2 and words in err
    (tmp_path / "bad.toml").write_text("a = 1\nb = 2\n")
    code, _, err = run(capsys, "assess", "bad.toml")
    assert code == 2 and err.count("\n") == 4 and "line 2" in err and "[[releases]]" in err
    (tmp_path / "bare.toml").write_text("[[releases]]\nmu=1\nneighbours='add-remove'\n")
    code, _, err = run(capsys, "calibrate", "bare.toml")
    assert code == 2 and "accepted risk" in err


def test_audits_of_a_table(capsys, tmp_path):
    noise = np.random.default_rng(2)
    coins = noise.integers(2, size=500)
    file = tmp_path / "runs.csv"
    rows = [f"{'in' if z else 'out'},{z + noise.laplace(0, 0.3)}" for z in coins]
    file.write_text("who,score\n" + "\n".join(rows) + "\n")
    usual = ("audit", "--outputs", file, "--secret", "who", "--neighbours", "add-remove")
    code, out, _ = run(capsys, *usual, "--claim", 1)
    assert code == 1 and "added or removed" in out
    code, out, _ = run(capsys, *usual, "--claim", 4, "--json")
    assert code == 0 and json.loads(out)["verdict"] == "consistent"
    code, out, _ = run(capsys, *usual, "--claim", 1, "--delta", 1e-5, "--one-run")
    assert code == 1 and "one run: the 500 rows" in out


@pytest.mark.filterwarnings("ignore:.*cannot refute")
def test_audits_that_could_find_nothing_exit_3(capsys, tmp_path, module):
    usual = ("--claim", 1, "--neighbours", "replace-one")
    code, out, _ = run(
        capsys, "audit", f"{module}:coin", *usual, "--records", "0,1", "--trials", 10
    )
    assert code == 3 and out.startswith("Cannot be told: 10 runs are too few")
    (tmp_path / "few.csv").write_text("secret,score\n" + "0,0\n1,1\n" * 5)
    file = str(tmp_path / "few.csv")
    code, out, _ = run(capsys, "audit", "--outputs", file, "--one-run", *usual)
    assert code == 3 and out.startswith("Cannot be told: 10 runs are too few")


def test_audits_with_somebody_absent_and_low_bits(capsys, tmp_path, monkeypatch):
    (tmp_path / "counted.py").write_text(
        "def run(record, rng):\n    return (record is not None) + rng.laplace(0, 0.5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    call = ("audit", "counted:run", "--claim", 1, "--neighbours", "add-remove", "--records", "ann")
    code, out, _ = run(capsys, *call, "--absent", "none", "--trials", 3000)
    assert code == 1 and "added or removed" in out and "a data set without it" in out
    call = ("audit", "counted:run", "--claim", 1, "--neighbours", "replace-one", "--records", "a,b")
    code, out, _ = run(capsys, *call, "--bits", "--trials", 200)
    assert code == 0 and "bits=True" not in out


def test_rho_units_and_unstated_neighbours(capsys):
    promise = ("assess", "--rho", 0.01, "--neighbours", "unknown", "--knows", "nothing")
    code, out, _ = run(capsys, *promise, "--uniform", 4, "--max-risk", 0.1)
    assert (
        code == 0 and "does not say what it compares" in out and "If the noise is Gaussian" in out
    )
    code, out, _ = run(capsys, *promise, "--uniform", 4, "--times", 4, "--people", 3, "--json")
    assert code == 0 and json.loads(out)["subject"]["rho"] == pytest.approx(0.36)
    call = ("calibrate", "--max-risk", 0.1, "--promise", "gaussian", "--neighbours", "replace-one")
    once, many = (
        json.loads(run(capsys, *call, "--json", *more)[1])["value"]
        for more in ((), ("--times", 9, "--people", 2))
    )
    assert many == pytest.approx(once / 6, rel=1e-5)
    code, _, err = run(capsys, "assess", "--mechanism", "grr", "--epsilon", 1, "--times", 3)
    assert code == 2 and "--times does not apply" in err
