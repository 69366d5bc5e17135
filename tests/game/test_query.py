"""A mechanism reads a comparison as 1 or 0; numbers that are text are refused with a next step."""

from __future__ import annotations

import pytest

import dprad
from dprad import DpradError, Prior, Threat, assess, calibrate, compare, mechanisms, scenario
from dprad.show.cli import main
from dprad.show.report import report_scenario

PEOPLE = dprad.patients.prior()
SMOKES = 'smoker = "yes"'
THREAT = Threat(target=["smoker"])


@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.Geometric(epsilon=1.0),
        mechanisms.Laplace(epsilon=1.0),
        mechanisms.Gaussian(sigma=1.0),
        mechanisms.Duchi(epsilon=1.0, bounds=(0, 1)),
        mechanisms.GRR(epsilon=1.0, size=2),
        mechanisms.OUE(epsilon=1.0, size=2),
    ],
)
def test_a_comparison_is_one_or_zero(mechanism):
    asked = assess(mechanism, prior=PEOPLE, threat=THREAT, query=SMOKES)
    as_function = [int(v == "yes") for v in PEOPLE.column("smoker")]
    called = assess(mechanism, prior=PEOPLE, threat=THREAT, query=lambda _: as_function)
    assert asked.rad == called.rad > 0 and asked.kind == called.kind


def test_every_verb_takes_one():
    asked = {"prior": PEOPLE, "threat": THREAT, "query": SMOKES}
    plan = calibrate(mechanisms.GRR, max_risk=0.1, **asked)
    assert plan.mechanism.size == 2 and plan.risk.interval[1] <= 0.1
    assert len(compare([mechanisms.Geometric(epsilon=1.0)], **asked).candidates) == 1
    claim = dprad.PureDP(1.0, neighbours="replace-one")
    grr = mechanisms.GRR(epsilon=1.0, size=2)
    assert dprad.audit(grr, claim=claim, trials=400, **asked).verdict == "consistent"
    # all records, or none, answer alike
    always = assess(grr, prior=PEOPLE, threat=THREAT, query="smoker in ('yes', 'no')")
    assert always.rad == 0
    with pytest.raises(DpradError, match="GRR has size 3, but reads 2"):
        assess(mechanisms.GRR(epsilon=1.0, size=3), **asked)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"yes": 1, "no": 1}, r"'smoker' holds text\. .* query='smoker = \"\.\.\.\"'\.$"),
        ({"1,5": 1, "2": 1, "-,25": 1}, r"decimal commas.* decimal=','"),
        ({"5%": 1, "7.5 %": 1}, "percent signs"),
        ({"5": 1, "n/a": 1}, "text beside its numbers.* a word such as NA"),
        ({5: 1, "n/a": 1}, "text beside its numbers"),
        ({5: 1, None: 1}, "missing values.*missing='drop'"),
        ({True: 1, False: 1}, "values that are not numbers"),
    ],
)
def test_what_is_not_a_number_gets_a_next_step(counts, words):
    prior = Prior.from_counts(counts, columns="smoker")
    for mechanism in (mechanisms.Laplace(epsilon=1.0), mechanisms.Duchi(epsilon=1.0)):
        with pytest.raises(DpradError, match="reads numbers, but the column") as raised:
            assess(mechanism, prior=prior)
        assert raised.match(words)
        for value in counts:
            assert not isinstance(value, str) or repr(value) not in str(raised.value)
    if None not in counts:
        with pytest.raises(DpradError, match="needs one target column of numbers, but 'smoker'"):
            assess(mechanisms.GRR(epsilon=1.0, size=len(counts)), prior=prior,
                   threat=Threat(loss="absolute", eta=1))  # fmt: skip


def test_a_name_with_spaces_is_quoted_in_the_suggestion():
    prior = Prior.from_counts({"yes": 1, "no": 1}, columns="smokes now")
    with pytest.raises(DpradError, match=r"""query='"smokes now" = "\.\.\.\"'"""):
        assess(mechanisms.Laplace(epsilon=1.0), prior=prior)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in arguments])
    return done.value.code, capsys.readouterr()


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("smoker,age\n" + "yes,30\nno,40\nno,50\n" * 20)
    return path


def test_the_command_line_takes_one(people, capsys):
    asked = ["--data", people, "--target", "smoker", "--query", SMOKES]
    code, out = run(capsys, "assess", "--mechanism", "geometric", "--epsilon", 1, *asked)
    assert code == 0 and "guesses smoker" in out.out
    noise = ["--mechanism", "geometric"]
    code, out = run(capsys, "calibrate", "--max-risk", 0.1, *noise, *asked)
    # the range is public: 0 and 1
    assert code == 0 and "times the range" not in out.out
    code, out = run(capsys, "compare", "--mechanisms", "grr,laplace", "--epsilon", 1, *asked)
    assert code == 0 and "size=2" in out.out and "times the range" not in out.out
    whole = ["assess", "--mechanism", "grr", "--epsilon", 1, "--data", people]
    assert run(capsys, *whole, "--query", "smoker,age")[0] == 0
    code, out = run(capsys, *whole, "--query", "smokr")
    assert code == 2 and "Did you mean 'smoker'" in out.err
    code, out = run(capsys, "assess", "--mechanism", "laplace", "--epsilon", 1, "--data", people,
                    "--target", "smoker")  # fmt: skip
    assert code == 2 and "query='smoker = \"...\"'" in out.err and "yes" not in out.err
    promise = ["--epsilon", 1, "--neighbours", "replace-one", "--uniform", 3]
    code, out = run(capsys, "assess", *promise, "--query", "value")
    assert code == 2 and "--query does not apply with a promise" in out.err


def test_scenarios_and_reports_take_one(people, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        "[population]\ndata = 'people.csv'\n[[threats]]\ntarget = ['smoker']\n"
        f"[[releases]]\nmechanism = 'geometric'\nepsilon = 1\nquery = '{SMOKES}'\n"
        f"[[releases]]\nmechanism = 'grr'\nepsilon = 1\nquery = '{SMOKES}'\n"
        "[accepted]\nrisk = 0.1\n[audit]\ntrials = 400\n"
    )
    loaded = scenario.load(path)
    found = scenario.answer(loaded)
    wanted = assess(mechanisms.Geometric(epsilon=1.0), prior=loaded.prior, threat=THREAT,
                    query=SMOKES)  # fmt: skip
    assert [row[0].rad for row in found.risks] == pytest.approx([wanted.rad] * 2)
    made = report_scenario(loaded, tmp_path / "r.html").read_text()
    assert "times the range" not in made and "geometric" in made.lower()
