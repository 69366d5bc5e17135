"""Table releases in scenario files, on the command line and in reports."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess, scenario
from dprad.data import patients
from dprad.mechanisms import Counts, Histogram, Sums
from dprad.model import explain
from dprad.show.cli import main
from dprad.show.report.page import html_of
from dprad.show.scenario.file import parse

BEGIN = '[population]\nbuiltin = "patients"\n[[releases]]\n'
NEAR = 'neighbours = "add-remove"\n'
KNOWN = '[[threats]]\nknows = ["age"]\ntarget = ["diagnosis"]\n'


def read(text, tmp_path):
    return parse(text, name="s.toml", folder=tmp_path)


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


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (
            'counts = ["age", "diagnosis"]\nepsilon = 1\nnoise = "geometric"\n' + NEAR,
            Counts(by=["age", "diagnosis"], epsilon=1, noise="geometric", neighbours="add-remove"),
        ),
        (
            'counts = "total"\nwhere = { smoker = "yes" }\nepsilon = 1\n' + NEAR,
            Counts(where={"smoker": "yes"}, epsilon=1, neighbours="add-remove"),
        ),
    ],
)
def test_a_scenario_is_answered_as_the_library_would(text, subject, tmp_path):
    found = read(BEGIN + text + KNOWN, tmp_path)
    answers = scenario.answer(found)
    threat = Threat(knows=["age"], target=["diagnosis"])
    assert answers.risks[0][0] == assess(subject, prior=patients.prior(), threat=threat)


def test_a_report_tells_how_useful_the_tables_are(tmp_path):
    text = (
        'counts = ["diagnosis"]\nnoise = "geometric"\nepsilon = 1\n'
        + NEAR + KNOWN + "[accepted]\nrisk = 0.3\n"
    )  # fmt: skip
    page = html_of(scenario.answer(read(BEGIN + text, tmp_path), audits=False))
    assert "How useful the tables are" in page and "count by diagnosis" in page


def test_two_releases_are_seen_together(tmp_path):
    begin = "[population]\nuniform = 4\n[[threats]]\nknows = 'nothing'\n"
    one = '[[releases]]\ncounts = ["value"]\nnoise = "gaussian"\nrho = 0.5\n' + NEAR
    two = '[[releases]]\nhistogram = "value"\nbins = [0, 2, 3]\nepsilon = 1\n' + NEAR
    answers = scenario.answer(read(begin + one + two, tmp_path), plans=False)
    assert answers.joint[0].rad > max(row[0].rad for row in answers.risks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('counts = ["agee"]\nepsilon = 1\n' + NEAR, "Did you mean 'age'"),
        ('counts = ["age"]\nepsilon = 1\n', "neighbours must say"),
        ('counts = ["age"]\nepsilon = 1\nmechanism = "grr"\n' + NEAR, "does not go with counts"),
        ('counts = ["age"]\nepsilon = 1\nquery = "age"\n' + NEAR, "Say with where"),
        ('counts = ["age"]\nsigma = 1\n' + NEAR, "'sigma' does not apply to counts"),
        ('counts = ["age"]\nmean = "age"\nepsilon = 1\n' + NEAR, "'mean' does not go with counts"),
        ('sums = "age"\nepsilon = 1\n' + NEAR, "sums needs clamp"),
        ('sums = "age"\nclamp = [0, 9]\nepsilon = 1\n' + NEAR, "'age' holds text"),
        ('histogram = "age"\nepsilon = 1\n' + NEAR, "histogram needs bins"),
        ('marginals = ["age"]\nepsilon = 1\n' + NEAR, "list of column names"),
        ('marginals = [["age"], ["age"]]\nepsilon = 1\n' + NEAR, "there twice"),
        ('counts = ["age"]\nwhere = "agee > 1"\nepsilon = 1\n' + NEAR, "where names the column"),
        ('mechanism = "grr"\nwhere = "age > 1"\nepsilon = 1\n', "'where' does not apply to grr"),
    ],
)
def test_wrong_releases_get_a_sentence(text, said, tmp_path):
    with pytest.raises(DpradError, match="line ") as error:
        read(BEGIN + text + KNOWN, tmp_path)
    assert said in str(error.value)


def test_the_questions_of_a_steward_are_one_line(capsys, table):
    base = ("--data", table, "--epsilon", 1, "--neighbours", "add-remove", "--json")
    about = ("--knows", "age,region", "--target", "diagnosis")
    one = ("--counts", "diagnosis", "--noise", "geometric")
    rads = []
    for asked in (
        one,
        (*one, "--times", 12),
        ("--marginals", "diagnosis;age,diagnosis"),
        ("--counts", "total", "--where", 'smoker = "yes"'),
    ):
        code, out, err = run(capsys, "assess", *asked, *base, *about)
        assert code == 0, err
        rads.append(json.loads(out)["rad"])
    assert rads[1] > rads[0] > rads[3]
    code, out, _ = run(
        capsys, "calibrate", "--max-risk", 0.1, *one, *base[:2], *base[4:], *about
    )  # fmt: skip
    plan = json.loads(out)
    assert code == 0 and plan["parameter"] == "epsilon" and plan["risk"]["interval"][1] <= 0.1
    code, out, _ = run(
        capsys, "compare", "--counts", "diagnosis", "--noise", "geometric,gaussian", "--rho", 0.5,
        *base[:-1], *about,
    )  # fmt: skip
    assert code == 0 and "noise=geometric" in out and "noise=gaussian" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--counts", "age", "--mean", "age"), "give one of"),
        (("--counts", "age", "--sigma", 1), "--sigma does not apply with --counts"),
        (("--counts", "age", "--cells", "age"), "--cells goes with --sums"),
        (("--counts", "age", "--query", "age"), "--query does not apply"),
        (("--sums", "age"), "--sums needs --clamp"),
        (("--histogram", "age", "--bins", "a,b"), "--bins"),
        (("--where", "age > 1"), "does not apply with anything but a table"),
    ],
)
def test_bad_questions(capsys, table, arguments, said):
    near = ("--data", table, "--epsilon", 1, "--neighbours", "add-remove")
    code, out, err = run(capsys, "assess", *arguments, *near)
    assert code == 2 and out == "" and said in err and err.count("\n") == 1


def test_words():
    near = {"epsilon": 1, "neighbours": "add-remove"}
    said = explain.subject(Counts(by=["age"], where="a > 1", times=12, **near).describe())
    assert said == "counts by age where a > 1 (laplace noise, epsilon 1, add-remove, 12 times)"
    said = explain.subject(Sums(of="pay", clamp=(0, 9), by=["a", "b"], scale=2).describe())
    assert said == "sums of pay by a and b (laplace noise, scale 2)"


def test_quality_against_draws():
    """The share of swamped cells and the size of the noise, counted; 6 deviations."""
    rng = np.random.default_rng(0)
    counts = [1, 2, 5, 30]
    prior = Prior.from_counts({(k, k): n for k, n in enumerate(counts)}, columns=["a", "b"])
    for noise in ("laplace", "geometric", "gaussian", "discrete-gaussian"):
        table = Counts(by=["a"], noise=noise, scale=2.5)
        drawn = np.abs(table.noises[0].sample((40_000, 4), rng))
        found = table.quality(prior, people=38)[0]
        assert found.typical == pytest.approx(drawn.mean(), abs=6 * drawn.std() / 400)
        assert found.swamped == pytest.approx((drawn > counts).mean(), abs=6 * 0.5 / 400)
        assert np.mean(drawn <= found.error) == pytest.approx(0.955, abs=0.02)
    bins = Histogram(of="a", bins=[0, 2, 9], scale=1.0)
    assert bins.quality(prior)[0].swamped == bins.quality(prior, people=38)[0].swamped
    shares = Prior.from_counts({(k, k): float(n) for k, n in enumerate(counts)}, columns=["a", "b"])
    assert bins.quality(shares)[0].swamped is None


def test_keys_from_the_data(tmp_path):
    """A scenario with a threshold, and its report; what makes no sense is refused."""
    text = BEGIN + 'counts = ["diagnosis"]\nnoise = "geometric"\nepsilon = 1\n' + NEAR
    found = read(text + "threshold = 12\n" + KNOWN, tmp_path)
    assert "keys by threshold 12" in explain.subject(
        found.releases[0].subject(found.prior, Threat()).describe()
    )
    assert "at most" in html_of(scenario.answer(found, audits=False))
    with pytest.raises(DpradError, match="threshold or delta, not both"):
        read(text + "threshold = 12\ndelta = 0.1\n" + KNOWN, tmp_path)


def test_a_table_is_the_model_of_an_audit(capsys, tmp_path, monkeypatch):
    (tmp_path / "publish.py").write_text(
        "def count(record, rng):\n    return [rng.laplace(0, 0.3) + (record == s) for s in 'ny']\n"
    )
    (tmp_path / "people.csv").write_text("smoker\nn\ny\nn\n")
    monkeypatch.syspath_prepend(tmp_path)
    asked = ["audit", "publish:count", "--claim", 1, "--neighbours", "replace-one", "--trials", 500]
    asked += ["--data", tmp_path / "people.csv"]
    code, out, _ = run(capsys, *asked, "--counts", "smoker")
    assert code == 1 and out.startswith("Violated")
    for wrong, said in (
        (["--model", "counts"], "described by its own options: --counts"),
        (["--scale", 1], "--scale does not apply"),
        (["--counts", "smoked"], "Did you mean 'smoker'"),
    ):
        code, _, err = run(capsys, *asked, *wrong)
        assert code == 2 and said in err
