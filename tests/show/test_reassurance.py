"""What a reader concludes is true: each case once reassured somebody wrongly."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dprad
from dprad import ApproxDP, GaussianDP, Ledger, Prior, PureDP, Threat, assess, calibrate
from dprad.mechanisms import GRR, Composed, Gaussian
from dprad.model.groups import part
from dprad.model.verdicts import judge
from dprad.show import scenario
from dprad.show.cli import main
from dprad.show.report.page import html_of, page_of
from dprad.show.report.published import drawn
from dprad.show.scenario.advice import advice
from dprad.show.scenario.answers import together
from dprad.show.scenario.file import parse
from dprad.verbs.attackers import INSIDER, STRANGER, standard


def answers(text):
    return scenario.answer(parse(text, name="s", folder=Path()), audits=False)


def code(arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


TWO = """
[population]
builtin = "patients"
columns = ["diagnosis"]
[[releases]]
name = "little"
mechanism = "grr"
epsilon = 0.05
[[releases]]
name = "much"
mechanism = "grr"
epsilon = 8
[accepted]
risk = 0.1
by = "the board"
"""


def test_the_average_does_not_hide_the_sick():
    """1. Healthy people 0.061, the ill 0.24; the average is 0.104."""
    prior = dprad.patients.prior(["diagnosis"])
    mechanism = GRR(epsilon=1.0, size=prior.size)
    risk = assess(mechanism, prior=prior)
    assert risk.rad == pytest.approx(0.1042, abs=1e-4)
    assert risk.worst == pytest.approx(0.2478, abs=1e-4)
    assert risk.worst_record == "lung"
    assert "0.2478" in str(risk)
    rare = assess(mechanism, prior=prior, threat=Threat(group='diagnosis = "lung"'))
    assert rare.rad == pytest.approx(0.2478, abs=1e-4)
    plan = calibrate(GRR, max_risk=0.1, prior=prior)
    assert "average" in str(plan) and "exposed" in str(plan)
    kept = calibrate(GRR, max_risk=0.1, prior=prior, worst=True)
    assert kept.risk.worst <= 0.1 and kept.value < plan.value


def test_the_report_headlines_all_releases_not_the_first():
    """2. epsilon 0.05 first, 8 second: the headline is that of both together."""
    found = answers(TWO)
    first = page_of(found).front
    each = [max(r.interval[1] for r in row) for row in found.risks]
    both = int(re.search(r"\d+", first.cards[0][1]).group()) / 100
    assert both >= round(max(each), 2) > 0.39 > min(each)
    assert "2 releases together" in first.cards[0][2]


@pytest.fixture
def unique(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{i},{rng.integers(90)},{rng.choice(['a', 'b'])}" for i in range(400)]
    file = tmp_path / "people.csv"
    file.write_text("number,age,illness\n" + "\n".join(rows) + "\n")
    return str(file)


def test_the_weakest_attacker_is_not_the_default(unique, capsys):
    """3. The gate fails: somebody who knows the rest gains nearly everything."""
    promise = ["assess", "--epsilon", "8", "--neighbours", "add-remove", "--data", unique]
    assert code([*promise, "--max-risk", "0.1"]) == 1
    said = capsys.readouterr().out
    assert "knows all but illness" in said and "Not accepted" in said
    assert code([*promise, "--whole", "--max-risk", "0.1"]) == 1


def test_a_doubtful_prior_does_not_pass(unique, capsys):
    """3. A stranger gains little from unique rows; but that is the sample, not the population."""
    asked = ["assess", "--epsilon", "0.5", "--neighbours", "add-remove", "--data", unique]
    asked += ["--target", "number", "--max-risk", "0.2"]
    assert code(asked) == 3
    assert "Cannot be told" in capsys.readouterr().out
    assert code([*asked, "--whole"]) == 0
    assert code([*asked[:-1], "0.25"]) == 0  # holds for every population


def test_a_doubtful_prior_of_a_group_counts_as_one_person():
    """What holds on average for every population does not hold for a group, which may be one."""
    pandas = pytest.importorskip("pandas")
    prior = Prior.from_data(
        pandas.DataFrame({"number": range(300), "ill": [i % 2 for i in range(300)]})
    )
    promise = PureDP(1.0, neighbours="replace-one")
    everybody = assess(promise, prior=prior)
    group = assess(promise, prior=prior, threat=Threat(group="number < 3"))
    assert everybody.any_prior[0] == pytest.approx(np.tanh(0.25), abs=1e-6)
    assert group.any_prior[0] == pytest.approx(np.tanh(0.5), abs=1e-6)
    tiny = Gaussian(sigma=1e-300, sensitivity=300.0)  # too little noise to promise anything
    assert assess(tiny, prior=prior, query="number").any_prior == (1.0, 1.0)


def test_calibration_is_for_every_attacker(unique, capsys):
    """The noise is enough for the strongest of a standard set, not for the weakest."""
    known = ["calibrate", "--max-risk", "0.1", "--mechanism", "grr", "--uniform", "2"]
    assert code([*known, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert {case["attacker"] for case in plan["attackers"]} == {STRANGER, INSIDER}
    assert max(case["risk"]["rad"] for case in plan["attackers"]) == pytest.approx(0.1, abs=1e-6)
    table = ["calibrate", "--max-risk", "0.1", "--promise", "pure", "--neighbours", "replace-one"]
    table += ["--data", unique]
    assert code([*table, "--whole", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["attackers"]) > 2
    assert max(case["risk"]["interval"][1] for case in plan["attackers"]) <= 0.1
    weaker = calibrate(PureDP, max_risk=0.1, prior=Prior.from_data(unique, whole=True),
                       neighbours="replace-one")  # fmt: skip
    assert plan["value"] < 0.9 * weaker.value


def test_calibration_does_not_trust_a_doubtful_prior(unique, capsys):
    """What is found passes the gate of `assess`, which holds for every population."""
    table = ["--neighbours", "replace-one", "--data", unique]
    assert code(["calibrate", "--max-risk", "0.1", "--promise", "pure", *table]) == 0
    said = capsys.readouterr().out
    assert "enough for every population" in said and "Any less" not in said
    value = re.search(r"epsilon = ([0-9.]+)", said)[1]
    assert code(["assess", "--epsilon", value, "--max-risk", "0.1", *table]) == 0
    more = f"{float(value) * 1.01}"
    assert code(["assess", "--epsilon", more, "--max-risk", "0.1", *table]) != 0
    plan = calibrate(PureDP, max_risk=0.1, prior=Prior.unknown(), neighbours="replace-one",
                     threat=Threat(knows="everything"))  # fmt: skip
    assert float(value) == pytest.approx(plan.value, rel=1e-3)


def test_weights_do_not_hide_unique_rows():
    """A weight says how many people a row stands for, not that it was seen more often."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"number": range(100), "weight": [3.0] * 100})
    assert Prior.from_data(table, columns=["number"], weight="weight").missing.single == 1.0
    table["number"] //= 2
    assert Prior.from_data(table, columns=["number"], weight="weight").missing.single == 0.0


def test_weights_do_not_hide_few_rows():
    """Rows that weigh nothing tell nothing; rows that weigh little, little."""
    pandas = pytest.importorskip("pandas")

    def doubt(values, weights, **given):
        table = pandas.DataFrame({"ill": values, "w": weights})
        return Prior.from_data(table, columns=["ill"], weight="w", **given).doubt

    six = ["a", "a", "a", "b", "b", "c"]
    assert "fewer than 100 rows" in doubt(six, [10.0] * 6)
    assert "fewer than 100 rows" in doubt(six + ["a", "b", "c"] * 200, [10.0] * 6 + [0.0] * 600)
    assert "alike" in doubt(["a"] * 300 + ["b"] * 300, [1.0] * 300 + [0.0] * 300)
    heavy = doubt(["a", "b", "c"] * 1000, [1e6] + [1e-6] * 2999)
    assert "few rows weigh most" in heavy
    assert doubt(["a", "b", "c"] * 1000, [2.5, 1.0, 0.5] * 1000) == ""
    assert doubt(["a", "b", "c"] * 1000, [1e6] + [1e-6] * 2999, whole=True) == ""
    # Kish: (sum w)^2 / sum w^2 is 210^2 / 300 = 147, and 220^2 / 600 = 81
    assert doubt(["a", "b"] * 100 + ["a"], [1.0] * 200 + [10.0]) == ""
    assert "few rows weigh most" in doubt(["a", "b"] * 100 + ["a"], [1.0] * 200 + [20.0])


def test_several_releases_are_added_up():
    """4. Exactly as one mechanism with both outputs, and never below one of them."""
    prior = Prior.from_counts({("a", 1): 4, ("a", 2): 1, ("b", 1): 3, ("b", 2): 2},
                              columns=["x", "y"])  # fmt: skip
    one, two = GRR(epsilon=1.0, size=2), GRR(epsilon=2.0, size=2)
    for threat in (Threat(), Threat(knows="everything"), Threat(knows=["x"], target=["y"])):
        both = Composed([one, two], queries=["x", "y"])
        risk = assess(both, prior=prior, threat=threat)
        channel = np.zeros((4, 4))
        for z, (x, y) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
            for o, (a, b) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
                channel[z, o] = (one.lie + one.gap * (a == x)) * (two.lie + two.gap * (b == y))
        exact = assess(dprad.mechanisms.Channel(channel), prior=prior, threat=threat,
                       query=["x", "y"])  # fmt: skip
        assert risk.rad == pytest.approx(exact.rad, abs=1e-12) and risk.kind == "exact"
        assert risk.worst == pytest.approx(exact.worst, abs=1e-12)


def test_what_is_promised_is_added_up_too():
    text = TWO.replace('mechanism = "grr"\nepsilon = 8', 'epsilon = 1\nneighbours = "replace-one"')
    found = answers(text)
    for k, risk in enumerate(found.joint):
        assert risk.interval[1] >= max(row[k].interval[1] for row in found.risks) - 1e-9
        assert risk.kind == "upper-bound"


def test_odds_never_exceed_the_possible():
    """5. A bound of 0.91 beside a blind guess of 0.79 is told as odds that exist."""
    prior = Prior.from_counts({"no": 79, "yes": 21})
    risk = assess(PureDP(8.0, neighbours="add-remove"), prior=prior)
    numbers = [int(n) for n in re.findall(r"(\d+) (?:of|to)", str(risk).split("\n")[0])]
    assert numbers and max(numbers) <= 100
    for _, count, dots in dprad.show.plots.odds.grids(risk):
        assert len(dots) == 100 and int(re.search(r"\d+", count).group()) <= 100


def test_words_of_a_calibration_are_known():
    """6. Less noise may also do, where only a bound is known."""
    prior = Prior.uniform(10)
    bound = calibrate(PureDP, max_risk=0.1, prior=prior, neighbours="replace-one")
    exact = calibrate(GRR, max_risk=0.1, prior=prior)
    assert "would exceed" not in str(bound) and "would exceed" in str(exact)
    for plan in (bound, exact):
        digits = re.findall(r"epsilon = ([\d.]+)", str(plan))
        assert digits and all(len(d.replace(".", "").lstrip("0")) <= 5 for d in digits)


def test_a_board_member_finds_the_verdict_first():
    """7. Verdict, number, what to do; no theorem before the part for experts."""
    html = html_of(answers(TWO))
    head, experts = html.split("For experts", 1)
    text = re.sub(r"<[^>]+>", " ", head.split("</style>")[1])
    assert text.index("Not accepted") < text.index("What to do") < text.index("Who can learn")
    assert "Theorem" not in text and "Monte Carlo" not in text
    assert re.search(r"20\d\d-\d\d-\d\d", text) and "the board" in text and "SHA-256" in text
    assert "epsilon = " in text  # what to change
    assert "above" in text and "within" in text and "should not be published" in text
    assert "Reproduce" in experts


def test_the_advice_keeps_the_risk():
    found = answers(TWO)
    made = advice(found)
    values = {name: float(new) for name, _, _, new in made.changes}
    changed = [r.at(values[r.name]) for r in found.scenario.releases]
    for _, question in found.scenario.questions:
        assert together(changed, question).interval[1] <= 0.1
    assert values["much"] > 0.1  # not needlessly little
    assert advice(answers(TWO.replace("risk = 0.1", "risk = 0.9"))) is None


def test_an_average_that_passes_says_whom_it_hides():
    found = answers(TWO.replace("epsilon = 8", "epsilon = 0.7"))
    first = page_of(found).front
    assert first.word == "Accepted" and "most exposed" in first.sentence
    strict = answers(TWO.replace("epsilon = 8", "epsilon = 0.7").replace(
        "risk = 0.1", "risk = 0.1\nworst = true"))  # fmt: skip
    assert strict.verdict.outcome == "exceeded"


def test_small_groups_are_not_in_the_report():
    text = """
[population]
counts = { common = 500, usual = 300, rare = 3 }
[[releases]]
mechanism = "grr"
epsilon = 1
[accepted]
risk = 0.1
"""
    html = html_of(answers(text))
    body = html.split("</style>")[1].split("For experts")[0]
    assert ">usual<" in body and ">rare<" not in body


def test_the_command_line_calibrates_for_one_person_too(capsys):
    asked = ["calibrate", "--max-risk", "0.1", "--mechanism", "grr", "--uniform", "4"]
    values = []
    for more in ([], ["--worst"]):
        assert code([*asked, *more]) == 0
        values.append(float(re.search(r"epsilon = ([\d.]+)", capsys.readouterr().out).group(1)))
    assert values[1] <= values[0]


def test_standard_attackers():
    prior = dprad.patients.prior()
    names = [name for name, _ in standard(prior, ["diagnosis"])]
    assert names[0] == STRANGER and names[-1] == INSIDER and len(names) == 4
    assert len(standard(prior)) == 2 + 2 * len(prior.columns)
    assert len(standard(Prior.unknown())) == 2
    with pytest.raises(dprad.DpradError, match="sensitive"):
        standard(prior, ["nothing"])


def test_the_largest_decides():
    prior = Prior.uniform(4)
    small = assess(ApproxDP(0.1, 0.0, neighbours="replace-one"), prior=prior)
    large = assess(GaussianDP(3.0, neighbours="replace-one"), prior=prior)
    assert judge([("a", small), ("b", large)], 0.2).attacker == "b"
    assert judge([("a", small)], 0.2).code == 0
    assert judge([("a", small)], 0.03, worst=True).code == 1  # tanh(0.05) (1 - 1/4) = 0.037


def test_by_group_is_fast():
    """Many records: one question a group, all together about one."""
    rng = np.random.default_rng(0)
    records = {(int(a), int(b), int(c)): 1.0 + rng.random()
               for a in range(20, 80) for b in range(12) for c in range(4)}  # fmt: skip
    prior = Prior.from_counts(records, columns=["age", "school", "sex"])
    table = dprad.by_group(Gaussian(sigma=60.0, sensitivity=59.0), prior=prior,
                           threat=Threat(knows=["sex"], target=["school"]), query="age",
                           by="school")  # fmt: skip
    assert len(table) == 12
    assert sum(g.share * g.rad for g in table) >= table.overall.rad - 1e-9


@pytest.mark.parametrize("limit", ["[accepted]\nrisk = 0.9\n", ""])
def test_a_refuted_promise_is_never_accepted(limit, tmp_path):
    (tmp_path / "tells_all.py").write_text("def f(record, rng):\n    return record\n")
    text = (
        "[population]\nuniform = 2\n[[releases]]\nmechanism = 'grr'\nepsilon = 0.1\n"
        f"{limit}[audit]\nfunction = 'tells_all:f'\nclaim = 0.1\ntrials = 500\n"
    )
    asked = parse(text, name="s", folder=tmp_path)
    found = scenario.answer(asked, plans=False, allow_code=True)
    page = html_of(found)
    assert found.refuted and found.code == 1 and "An audit found that tells_all" in page
    assert "may be published" not in page and "publish as planned" not in page
    assert '<div class="verdict no">' in page and "Repair the implementation" in page
    if found.verdict is not None:
        assert found.verdict.word == "Not accepted" and found.verdict.to_dict()["refuted"]


@pytest.mark.filterwarnings("ignore:10 runs cannot refute")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("claim = 0.1\ntrials = 10", "too short to find anything"),
        ("claim = 5.0\ntrials = 2000", "weaker than what every release here promises"),
        ("claim = 0.1\ntrials = 2000", ""),
    ],
)
def test_an_audit_that_says_nothing_of_the_release_reassures_nobody(asked, words, tmp_path):
    (tmp_path / "tells_little.py").write_text(
        "def f(record, rng):\n    return record if rng.random() < 0.52 else 1 - record\n"
    )
    text = (
        "[population]\nuniform = 2\n[[releases]]\nmechanism = 'grr'\nepsilon = 0.1\n"
        f"[accepted]\nrisk = 0.9\n[audit]\nfunction = 'tells_little:f'\n{asked}\n"
    )
    found = scenario.answer(parse(text, name="s", folder=tmp_path), allow_code=True)
    page = html_of(found)
    assert found.audits[0][1].verdict == "consistent"
    assert found.code == (3 if words else 0)
    assert found.verdict.word == ("Cannot be told" if words else "Accepted")
    assert words in page and ("publish as planned" in page) is not bool(words)
    assert ("Remove the doubt" in page) is bool(words)


def test_a_promise_may_be_about_every_column(tmp_path, capsys):
    """One harmless attacker is not all that there is to fear from any mechanism."""
    file = tmp_path / "s.toml"
    file.write_text(
        "[population]\nbuiltin = 'patients'\n[[threats]]\nname = 'n'\ntarget = ['smoker']\n"
        "[[releases]]\nepsilon = 0.2\nneighbours = 'replace-one'\n[accepted]\nrisk = 0.2\n"
    )
    assert code(["assess", str(file)]) == 0
    said = capsys.readouterr().out
    assert "Accepted for the attackers of the scenario only" in said
    assert "guesses 'age', 'region' and 'diagnosis', which may be read by a release" in said
    page = html_of(answers(file.read_text()))
    assert "for the attackers of the scenario only" in page and "publish as planned" not in page
    file.write_text(file.read_text().replace("target = ['smoker']", "knows = 'everything'"))
    assert code(["assess", str(file)]) == 0
    assert "\nAccepted. " in capsys.readouterr().out


def test_few_rows_prove_nothing(tmp_path, capsys):
    """One value seen twice is no population of one value; unless they are everybody."""
    few = tmp_path / "few.csv"
    few.write_text("v\n1\n1\n")
    noise = ["--mechanism", "laplace", "--epsilon", "1000", "--sensitivity", "1"]
    assert code(["assess", "--data", str(few), *noise, "--max-risk", "0.001"]) == 3
    assert "few rows" in capsys.readouterr().out
    release = "[[releases]]\nmechanism = 'laplace'\nepsilon = 1000\nsensitivity = 1\n"
    text = f"[population]\ndata = 'few.csv'\n{release}[accepted]\nrisk = 0.001\n"
    for more, outcome in (("", "cannot be told"), ("whole = true\n", "accepted")):
        asked = parse(text.replace("\n", f"\n{more}", 1), name="s", folder=tmp_path)
        found = scenario.answer(asked, plans=False)
        assert found.verdict.outcome == outcome


def test_counts_of_ones_are_unique_rows():
    counts = ", ".join(f"v{i} = 1" for i in range(100))
    text = (
        f"[population]\ncounts = {{ {counts} }}\n[[releases]]\nepsilon = 1\n"
        "neighbours = 'replace-one'\n[[threats]]\n[accepted]\nrisk = 0.1\n"
    )
    assert answers(text).verdict.outcome == "cannot be told"
    told = text.replace("]\ncounts", "]\nwhole = true\ncounts", 1)
    assert answers(told).verdict.outcome == "accepted"
    shares = text.replace("= 1,", "= 0.01,").replace("v99 = 1 ", "v99 = 0.01 ")
    assert answers(shares).verdict.outcome == "accepted"


@pytest.mark.parametrize(
    ("population", "outcome"),
    [
        ("counts = { a = 50 }", "cannot be told"),
        ("counts = { a = 0.5 }", "cannot be told"),
        ("counts = { a = 98, b = 1 }", "cannot be told"),
        ("counts = { healthy = 0.5, 'healthy ' = 0.0 }", "cannot be told"),
        ("counts = { 1 = 1 }", "cannot be told"),
        ("uniform = 1", "cannot be told"),
        ("counts = { a = 50 }\nwhole = true", "accepted"),
        ("counts = { a = 70, b = 30 }", "accepted"),
        ("counts = { a = 0.7, b = 0.3 }", "accepted"),
        ("counts = { a = 69.5, b = 29.5 }", "accepted"),
        ("uniform = 2", "accepted"),
    ],
)
def test_few_rows_and_one_value_are_doubtful_wherever_they_are_said(population, outcome):
    text = (
        f"[population]\n{population}\n[[releases]]\nepsilon = 4\nneighbours = 'replace-one'\n"
        "[[threats]]\n[accepted]\nrisk = 0.7\n"
    )
    assert answers(text).verdict.outcome == outcome


def test_one_value_of_an_option_is_doubtful(capsys):
    command = "assess --uniform 1 --epsilon 10 --neighbours replace-one --max-risk 0.01"
    assert code(command.split()) == 3
    assert "only one value" in capsys.readouterr().out


def test_an_audit_that_measures_more_than_is_accepted(tmp_path):
    """Its claim is kept, but is not that of the release."""
    (tmp_path / "nearly_all.py").write_text(
        "def f(record, rng):\n    return record if rng.random() < 0.99 else 1 - record\n"
    )
    text = (
        "[population]\nuniform = 2\n[[releases]]\nmechanism = 'grr'\nepsilon = 0.1\n"
        "[accepted]\nrisk = 0.1\n"
        "[audit]\nfunction = 'nearly_all:f'\nclaim = 6.0\ntrials = 6000\n"
    )
    asked = parse(text, name="s", folder=tmp_path)
    found = scenario.answer(asked, plans=False, allow_code=True)
    assert found.audits[0][1].verdict == "consistent" and found.verdict.outcome == "exceeded"


def test_one_value_in_all_rows_proves_nothing():
    pandas = pytest.importorskip("pandas")
    alike = Prior.from_data(pandas.DataFrame({"ill": ["no"] * 500}))
    risk = assess(GRR(epsilon=20.0, size=1), prior=alike)
    assert judge([("", risk)], 0.1).outcome == "cannot be told"
    rows = Prior.from_data(pandas.DataFrame({"ill": ["no", "yes"] * 100}))
    assert any(
        "Each row is one person" in a
        for a in assess(GRR(epsilon=1, size=2), prior=rows).assumptions
    )


def test_a_pack_says_whom_it_was_not_decided_for(tmp_path):
    """The scenario asks only about an attacker who guesses what the release does not read."""
    text = (
        "[population]\nbuiltin = 'patients'\ncolumns = ['region', 'diagnosis']\n"
        "[[threats]]\nname = 'n'\ntarget = ['region']\n"
        "[[releases]]\nmechanism = 'grr'\nepsilon = 8\nquery = 'diagnosis'\n"
        "[accepted]\nrisk = 0.2\n"
    )
    file = tmp_path / "s.toml"
    file.write_text(text)
    assert code(["report", str(file), "--evidence", str(tmp_path / "pack")]) == 0
    said = (tmp_path / "pack" / "evidence.md").read_text()
    assert "**Accepted for the attackers of the scenario only.**" in said


def test_an_outsider_vouches_for_nothing():
    table = dprad.mechanisms.Counts(
        by=["value"], noise="geometric", epsilon=0.1, neighbours="add-remove"
    )
    risk = dprad.simulate_outsider(table, prior=Prior.uniform(4), people=50, trials=200)
    assert "none of the others" in str(risk) and judge([("", risk)], 0.9).code == 3


def test_records_that_are_alike_in_what_matters_prove_nothing(tmp_path):
    """One more column does not make a register of one diagnosis a population."""
    rows = "".join(f"{20 + k % 50},lung\n" for k in range(400))
    (tmp_path / "r.csv").write_text(f"age,diagnosis\n{rows}")
    target = '[[threats]]\nname="a"\nknows="everything"\ntarget=["diagnosis"]\n[[releases]]\n'
    ages = target.replace("diagnosis", "age").replace("everything", "nothing")
    total = f'{ages}counts="total"\nepsilon=8.0\n'
    release = f'{target}mechanism="grr"\nepsilon=6.0\nquery="diagnosis"\n'
    asked = {
        release: "cannot be told",
        f'{target}epsilon=6.0\nneighbours="replace-one"\n': "exceeded",
        f'{total}neighbours="add-remove"\nwhere={{diagnosis="lung"}}\n': "cannot be told",
        f'{total}neighbours="add-remove"\n': "accepted",  # of everybody: nothing is read
    }
    text = '[population]\ndata="r.csv"\n{}[accepted]\nrisk=0.05\n'
    for more, outcome in asked.items():
        for columns in ("", 'columns=["age","diagnosis"]\n'):
            said = parse(text.format(columns + more), name="s", folder=tmp_path)
            assert scenario.answer(said, plans=False).verdict.outcome == outcome, more
    told = parse(text.format(f"whole=true\n{release}"), name="s", folder=tmp_path)
    assert scenario.answer(told, plans=False).verdict.outcome == "accepted"
    question = {
        "prior": Prior.from_data(tmp_path / "r.csv"), "query": "diagnosis",
        "threat": Threat(target=["diagnosis"], knows="everything"),
    }  # fmt: skip
    with pytest.raises(dprad.DpradError):
        calibrate(GRR, max_risk=0.05, **question)
    risk = assess(GRR(epsilon=6.0, size=1), **question)
    assert "alike in what is guessed" in " ".join(risk.assumptions)


# -- found by a sixteenth reader -------------------------------------------------------------------
def test_an_attacker_who_is_always_right_shows_nothing():
    """A tolerance as wide as the values: whatever is published, nothing is gained."""
    noise = dprad.mechanisms.Laplace(epsilon=5.0, sensitivity=9)
    for prior in (Prior.uniform(10), Prior.from_probabilities([0.05] * 9 + [0.55])):
        for eta, doubtful in ((4, False), (9, True), (1e9, True)):
            threat = Threat(loss="absolute", eta=eta)
            risk = assess(noise, prior=prior, threat=threat)
            assert any("always right" in d for d in risk.doubts) == doubtful
            promised = assess(noise.guarantee, prior=prior, threat=threat)
            assert any("always right" in d for d in promised.doubts) == doubtful
    wide = TWO.replace("[accepted]", '[[threats]]\nname="n"\nloss="absolute"\neta=9\n[accepted]')
    wide = wide.replace('builtin = "patients"\ncolumns = ["diagnosis"]', "uniform = 10")
    found = answers(wide)
    assert found.code == 3 and found.verdict.outcome == "cannot be told"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "much"', 'name = "little"', "another one is called 'little'"),
        ("[accepted]", "[[threats]]\nname='x'\n[[threats]]\nname='x'\n[accepted]", "is called 'x'"),
        ("risk = 0.1\n", "", "risk is missing"),
        ("risk = 0.1\n", "worst = true\n", "risk is missing"),
    ],
)
def test_what_would_pass_for_another_or_for_no_limit_is_refused(old, new, said):
    with pytest.raises(dprad.DpradError, match=said):
        answers(TWO.replace(old, new))


def test_few_people_who_were_counted_prove_nothing_in_python_either():
    few, mechanism = {"asthma": 5, "diabetes": 3, "healthy": 12}, GRR(epsilon=0.7, size=3)
    counted = Prior.from_counts(few)
    assert counted.rows == 20 and "fewer than 100 people" in counted.doubt
    risk = assess(mechanism, prior=counted)
    assert risk.rad < 0.16 < risk.any_prior[0]
    assert judge([("x", risk)], 0.16).outcome == "cannot be told"
    shares = {k: float(n) for k, n in few.items()}
    for prior in (Prior.from_counts(few, whole=True), Prior.from_counts(shares)):
        assert not prior.doubt and prior.kappa == counted.kappa
        assert judge([("x", assess(mechanism, prior=prior))], 0.16).outcome == "accepted"
    ones = Prior.from_counts(dict.fromkeys(range(500), 1))
    assert "only ones of their kind" in ones.doubt and ones.rows == 500
    many = Prior.from_counts({k: 50 * n for k, n in few.items()})
    assert many.rows == 1000 and not many.doubt


def test_a_name_is_not_a_line_of_its_own(tmp_path, capsys):
    """A release that is called like a verdict, and a file that nobody named."""
    verdict = "Accepted. The extra risk on average over people stays within the accepted 0.1."
    file = tmp_path / "s.toml"
    file.write_text(TWO.replace('name = "much"', f'name = "{verdict}"'))
    for command in ("assess", "calibrate"):
        code([command, str(file)])
        lines = capsys.readouterr().out.splitlines()
        assert any(verdict in line for line in lines)
        assert not any(line.startswith("Accepted") for line in lines)
    code(["assess", str(file), "--format", "markdown"])
    capsys.readouterr()
    file.write_text(TWO.replace('name = "much"', 'name = "x @all http://a.b www.c.d"'))
    code(["assess", str(file), "--format", "markdown"])
    said = capsys.readouterr().out
    assert "@all" not in said and "://" not in said and "www.c" not in said and "a.b" in said


def test_one_attacker_is_accepted_as_one(capsys):
    """Who describes an attacker is told that only this one was asked about, in every format."""
    call = ["assess", "--mechanism", "grr", "--epsilon", "1", "--uniform", "4"]
    for limit, words in (("0.5", True), ("0.01", False)):
        for form in ("text", "markdown", "junit", "sarif"):
            one = [*call, "--max-risk", limit, "--target", "value", "--format", form]
            assert code(one) == (0 if words else 1)
            said = capsys.readouterr().out
            assert ("Accepted for this attacker only" in said) is words
            assert "another one may gain more" in said or not words
    assert code([*call, "--max-risk", "0.5"]) == 0
    assert "\nAccepted. " in capsys.readouterr().out


def test_columns_and_near_guesses_that_nobody_asked_about(tmp_path, capsys):
    """Options are told what scenarios are: which columns are read and not guessed, and that a
    number must be guessed exactly.
    """
    people = tmp_path / "people.csv"
    rows = [f"{'ill' if k % 7 else 'well'},{k % 7 // 4},{100 * (k % 50)}" for k in range(1000)]
    people.write_text("health,smoker,income\n" + "\n".join(rows))
    grr = ["--mechanism", "grr", "--query", "health", "--data", str(people), "--target", "smoker"]
    other = "No attacker asked about guesses 'health', which is read by a release."
    for form in ("text", "markdown", "junit", "sarif"):
        asked = [*grr, "--epsilon", "8", "--max-risk", "0.2", "--format", form]
        assert code(["assess", *asked]) == 0
        said = capsys.readouterr().out
        assert other in said and "Accepted for this attacker only" in said
    assert code(["calibrate", *grr, "--max-risk", "0.01"]) == 0 and other in capsys.readouterr().out
    noise = ["--mechanism", "laplace", "--data", str(people), "--columns", "income"]
    exact, near = [*noise, "--target", "income"], ["--loss", "absolute", "--eta", "300"]
    told = "must guess 'income' exactly"
    assert code(["assess", *exact, "--epsilon", "9", "--max-risk", "0.15"]) == 0
    assert told in capsys.readouterr().out
    assert code(["assess", *exact, *near, "--epsilon", "9", "--max-risk", "0.15"]) == 1
    said = capsys.readouterr().out
    assert told not in said and "()" not in said
    file = tmp_path / "s.toml"
    file.write_text(
        'title = "t"\n[population]\ndata = "people.csv"\ncolumns = ["income"]\n'
        "[accepted]\nrisk = 0.15\n"
        '[[threats]]\nname = "a"\ntarget = ["income"]\n'
        '[[releases]]\nname = "b"\nmechanism = "laplace"\nepsilon = 9\n'
    )
    assert code(["assess", str(file)]) == 0
    said = capsys.readouterr().out
    assert told in said and "Accepted for the attackers of the scenario only" in said
    file.write_text(file.read_text().replace("[[rel", 'loss = "absolute"\neta = 3\n[[rel'))
    assert code(["assess", str(file)]) == 0
    said = capsys.readouterr().out
    assert told not in said and "\nAccepted. " in said


def test_the_figure_of_a_plan_is_rounded(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.add(GRR(epsilon=0.3, size=2), name="r", date="2030-01-01")
    asked = {"prior": Prior.from_counts({0: 3.0, 1: 7.0}), "max_risk": 0.6}
    for worst, parts in ((False, 100), (True, 20)):
        plan = ledger.plan(releases=6, worst=worst, **asked)
        exact, shown = [r for _, r in plan.curve], [r for _, r in drawn(plan).curve]
        assert exact == sorted(exact) != shown
        assert all(s >= e for s, e in zip(shown, exact, strict=True))
        assert [parts * s for s in shown] == pytest.approx([round(parts * s) for s in shown])


def test_a_share_is_a_number():
    assert [part(s) for s in (1.0, 0.996, 0.123456, 0.00123)] == ["100%", "100%", "12%", "0.12%"]


def test_what_an_accepted_risk_rests_on_is_said(tmp_path, capsys):
    """A table of few rows is accepted for what holds for every population: in every format."""
    few = tmp_path / "few.csv"
    few.write_text("a,b\nx,1\nx,2\nx,3\n")
    call = ["assess", "--data", str(few), "--columns", "a", "--epsilon", "5", "--neighbours"]
    for form in ("text", "markdown", "junit", "sarif"):
        asked = [*call, "replace-one", "--max-risk", "0.99", "--format", form]
        assert code(asked) == 0
        said = capsys.readouterr().out
        assert "says little about the population" in said and "every population" in said
        assert "0.98" in said or "0.99" in said


def test_a_file_that_nobody_named_is_not_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = Path("report.html")
    file.write_text("precious")
    assert code(["report"]) == 2 and file.read_text() == "precious"
    assert "name a file with -o" in capsys.readouterr().err
    file.unlink()
    quick = tmp_path / "s.toml"
    quick.write_text(TWO)
    assert code(["report", str(quick)]) == 0 == code(["report", str(quick)])


def test_noise_for_each_release_alone_is_not_told_as_noise_for_all(tmp_path, capsys):
    """Nor are doubts left out, nor whom nobody asked about."""
    file = tmp_path / "s.toml"
    both = TWO.replace("epsilon = 8", "epsilon = 1").replace("epsilon = 0.05", "epsilon = 1")
    file.write_text(both)
    assert code(["calibrate", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.count("if it were the only one") == 2
    together = re.search(r"little: epsilon (\S+) instead of 1; much: epsilon (\S+) instead", said)
    assert together is not None
    for k, value in enumerate(together.groups()):
        both = both.replace("epsilon = 1\n", f"epsilon = {value}\n", 1) if k < 2 else both
    assert answers(both).verdict.outcome == "accepted"
    promise = "[[releases]]\nepsilon = 0.4\nneighbours = 'replace-one'\ndoubts = ['Not checked.']\n"
    file.write_text(
        "[population]\nbuiltin = 'patients'\n[[threats]]\nname = 'n'\ntarget = ['smoker']\n"
        + promise + "[[releases]]\nmechanism = 'grr'\nepsilon = 1\nquery = 'diagnosis'\n"
        "[accepted]\nrisk = 0.1\n"
    )  # fmt: skip
    code(["calibrate", str(file)])
    said = capsys.readouterr().out
    assert "Cannot be relied on: Not checked." in said
    assert "guesses 'age', 'region' and 'diagnosis', which may be read by a release" in said


def test_a_limit_that_accepts_everything_says_so(capsys):
    call = ["assess", "--mechanism", "grr", "--epsilon", "50", "--uniform", "5", "--max-risk"]
    assert code([*call, "1"]) == 0
    assert "accepts everything (1% is written 1%)" in capsys.readouterr().out
    assert code([*call, "1%"]) == 1
