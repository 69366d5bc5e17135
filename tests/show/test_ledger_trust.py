"""The ledger does not reassure falsely: nothing of a release is lost, what protects less than a
person is not accepted, and what changed meanwhile is told.
"""

from __future__ import annotations

import json
import math
import os
import stat

import pytest

from dprad import DpradError, GaussianDP, Ledger, Prior, PureDP, Threat, assess
from dprad.errors import CannotBeToldError
from dprad.game.question import Question
from dprad.mechanisms import (
    GRR,
    RAPPOR,
    ExponentialInterval,
    Histogram,
    Hybrid,
    Laplace,
    Piecewise,
    Staircase,
)
from dprad.runtime import journal
from dprad.runtime.journal import _line
from dprad.show.cli import main
from dprad.show.ledger import plan
from dprad.show.report.front import front
from dprad.show.report.ledger import fronted, ledger_section
from dprad.show.scenario import load
from dprad.show.scenario.answers import answer
from dprad.verbs.together import filtered

PRIOR = Prior.from_counts({0: 3, 1: 7}, columns=["b"])
ASKED = {"prior": PRIOR, "threats": [("a stranger", Threat())]}
START = """
title = "Monthly"
[population]
data = "people.csv"
columns = ["b", "c"]
[[threats]]
name = "a stranger"
target = ["b"]
[accepted]
risk = 0.3
"""
DOUBTED = """
[[releases]]
name = "January"
mu = 0.05
neighbours = "replace-one"
doubts = ["Nobody proved this."]
"""


@pytest.fixture
def home(tmp_path):
    rows = ["b,c", *["0,x"] * 30, *["1,x"] * 40, *["1,y"] * 30]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "s.toml").write_text(START + DOUBTED)
    return tmp_path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    told = capsys.readouterr()
    return ended.value.code, told.out + told.err


def started(home, capsys, text=None):
    if text is not None:
        (home / "s.toml").write_text(text)
    path = home / "releases.jsonl"
    assert run(capsys, "ledger", "init", path, "--scenario", home / "s.toml")[0] == 0
    return path


# -- nothing is lost -------------------------------------------------------------------------------
def test_doubts_reach_every_answer(home, capsys):
    assert run(capsys, "assess", home / "s.toml")[0] == 3
    path = started(home, capsys)
    for command in (("add", path, "--name", "January"), ("status", path), ("plan", path)):
        code, said = run(capsys, "ledger", *command)
        assert code == 3 and "Nobody proved this" in said and "Cannot be told" in said
        assert "Accepted." not in said
    code, said = run(capsys, "ledger", "add", path, "--name", "February", "--like", "January")
    assert code == 3 and Ledger.open(path).entries[1].doubts == ("Nobody proved this.",)


def test_doubts_of_a_guarantee(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.add(GRR(epsilon=0.1, size=2), name="sure")
    ledger.add(PureDP(0.1, neighbours="replace-one").doubted("The seed is known."), name="unsure")
    for adaptive in (False, True):
        standing = ledger.status(**ASKED, max_risk=0.9, adaptive=adaptive)
        assert standing.code == 3 and "The seed is known." in str(standing.verdict)
    assert "The seed is known." in " ".join(ledger_section(standing).text)
    assert standing.filtered.doubts == ("The seed is known.",)
    with pytest.raises(CannotBeToldError, match="seed"):
        ledger.plan("sure", **ASKED, max_risk=0.9)
    ledger.mark("unsure", "withdrawn")
    assert ledger.status(**ASKED, max_risk=0.9).code == 0
    with pytest.raises(CannotBeToldError, match="seed"):
        ledger.plan("unsure", **ASKED, max_risk=0.9)
    two = [(PureDP(1.0, neighbours="replace-one").doubted(d), None) for d in "ab"]
    assert filtered(two).doubts == ("a", "b")


RELEASES = [
    DOUBTED,
    'rho = 0.01\nneighbours = "unknown"\ntimes = 3\npeople = 2\ndoubts = ["Why?", "Really?"]',
    'mu = 0.3\nneighbours = "add-remove"',
    'epsilon = 0.3\ndelta = 1e-6\nneighbours = "unknown"\ntimes = 12',
    'mechanism = "grr"\nepsilon = 0.2\ndelta = 1e-3\nquery = "b"',
    'mechanism = "laplace"\nepsilon = 0.2\nsensitivity = 4.0\nclamp = [0, 9]\nquery = "b >= 1"',
    'mechanism = "rappor"\nf = 0.5\nbits = 8\nhashes = 1\nreports = 3\nquery = ["b", "c"]',
    'counts = ["c"]\nepsilon = 0.5\nneighbours = "add-remove"\ntimes = 2\nwhere = "b >= 1"',
    'marginals = [["b"], ["b", "c"]]\nnoise = "gaussian"\nrho = 0.1\nweights = [1, 3]\n'
    'neighbours = "replace-one"\nwhere = { c = ["x", "y"] }',
    'histogram = "b"\nbins = [0, 1, 2]\nscale = 9.0',
    'mean = "b"\nclamp = [0, 1]\nepsilon = 0.5\nneighbours = "replace-one"',
]


@pytest.mark.parametrize("table", RELEASES)
def test_every_field_of_a_release_survives(home, table):
    named = table if table is DOUBTED else f'[[releases]]\nname = "January"\n{table}\n'
    (home / "s.toml").write_text(START + named)
    scenario = load(home / "s.toml")
    (release,) = scenario.releases
    path = home / "l"
    Ledger(path, scenario=home / "s.toml").add(release, name="January")
    (entry,) = Ledger.open(path).entries
    again = entry.release
    same = lambda keys: json.loads(json.dumps(keys))  # noqa: E731 - lists and tuples alike
    assert (again.name, again.doubts) == (release.name, release.doubts)
    assert same(again.keys) == same(release.keys)
    question = Question.of(scenario.prior, Threat(target=["b"]))
    one, two = (r.subject(question.prior, question.threat) for r in (release, again))
    assert one.describe() == two.describe()
    entry.check(question)


def test_every_argument_of_a_mechanism_survives(tmp_path):
    ledger = Ledger(tmp_path / "l")
    made = [
        ExponentialInterval(epsilon=0.3, bounds=(-5.0, 9.0), factor=1.0),
        RAPPOR(f=0.4, size=2, bits=8, hashes=2, p=0.2, q=0.9, cohort=3),
        Staircase(epsilon=0.3, sensitivity=2.0, gamma=0.25),
        Laplace(epsilon=0.3, sensitivity=2.0, clamp=(0.0, 7.0)),
        Histogram(of="b", bins=[0, 1, 2], scale=9.0),
        GRR(epsilon=0.3, size=5),
        GaussianDP(0.3, neighbours="unknown").doubted("Why?"),
    ]
    for k, subject in enumerate(made):
        ledger.add(subject, name=f"r{k}")
    question = Question.of(PRIOR, Threat())
    for subject, entry in zip(made, Ledger.open(ledger.path).entries, strict=True):
        assert entry.subject(question).describe() == subject.describe()
        again = ledger.add(entry, name=f"{entry.name} again")
        assert again.subject(question).describe() == subject.describe()

    class Own(GRR):
        pass

    with pytest.raises(DpradError, match="short name"):
        ledger.add(Own(epsilon=1.0, size=2), name="own")


def test_doubts_that_cannot_be_kept_are_refused(home):
    (home / "s.toml").write_text(
        START + '[[releases]]\ncounts = ["c"]\nscale = 9.0\ndoubts = ["Why?"]\n'
    )
    with pytest.raises(DpradError, match="'doubts' does not go with counts"):
        load(home / "s.toml")


# -- units -----------------------------------------------------------------------------------------
def test_less_than_a_person_is_not_accepted(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.add(GRR(epsilon=0.1, size=2), name="visits", unit="visit")
    standing = ledger.status(**ASKED, max_risk=0.9)
    assert standing.code == 3 and "one visit" in str(standing.verdict)
    with pytest.raises(CannotBeToldError, match="one visit"):
        ledger.plan(**ASKED, max_risk=0.9)
    # the group guarantee counts, once it is known of how many
    known = Ledger(tmp_path / "k")
    known.add(GRR(epsilon=0.1, size=2), name="visits", unit="visit", people=5)
    promise = PureDP(0.1, neighbours="replace-one").group(5)
    risk = known.status(**ASKED, max_risk=0.9).strongest[1]
    assert risk.rad == pytest.approx(assess(promise, prior=PRIOR).rad, rel=1e-12)
    assert known.status(**ASKED, max_risk=0.9).code == 0
    assert known.status(**ASKED, max_risk=0.05).code == 1
    assert known.plan(**ASKED, max_risk=0.3).risk.interval[1] <= 0.3
    for wrong in ({"people": 5}, {"people": 0, "unit": "visit"}, {"people": -1, "unit": "visit"}):
        with pytest.raises(DpradError, match="people"):
            known.add(GRR(epsilon=0.1, size=2), name="x", **wrong)


def test_units_on_the_command_line(home, capsys):
    path = started(home, capsys)
    given = ("ledger", "add", path, "--mechanism", "grr", "--epsilon", 0.05, "--query", "b")
    code, said = run(capsys, *given, "--name", "a", "--unit", "visit", "--dry-run")
    assert code == 3 and "--people" in said
    code, said = run(capsys, *given, "--name", "a", "--unit", "visit", "--people", 4)
    assert code == 0 and "as many as were stated" in said
    # what is repeated protects no more than what it repeats
    assert run(capsys, "ledger", "add", path, "--name", "b", "--like", "a")[0] == 0
    (one, two) = Ledger.open(path).entries
    assert (two.unit, two.people) == (one.unit, one.people) == ("visit", 4)


# -- what changed meanwhile ------------------------------------------------------------------------
def test_of_two_at_the_same_time_the_later_is_told(home, capsys, monkeypatch):
    path = started(home, capsys)
    real, meanwhile = Ledger.add, []

    def add(self, release, **about):
        if not meanwhile:
            meanwhile.append(1)
            real(Ledger.open(path), GRR(epsilon=3.0, size=2), name="other", query="b")
        return real(self, release, **about)

    monkeypatch.setattr(Ledger, "add", add)
    code, said = run(capsys, "ledger", "add", path, "--name", "mine", "--mechanism", "grr",
                     "--epsilon", 0.1, "--query", "b")  # fmt: skip
    assert code == 1 and "Not accepted" in said and "other" in said


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("s.toml", "risk = 0.3", "risk = 0.9", "accepted risk"),
        ("s.toml", "risk = 0.3", "risk = 0.3\nworst = true", "accepted risk"),
        ("s.toml", 'target = ["b"]', 'target = ["c"]', "attackers"),
        ("s.toml", 'columns = ["b", "c"]', 'columns = ["c", "b"]', "population"),
        ("people.csv", "1,y", "1,z", "data"),
        ("s.toml", 'title = "Monthly"', 'title = "Weekly"', ""),
        ("s.toml", 'name = "January"', 'name = "March"', ""),
    ],
)
def test_a_changed_scenario_is_told(home, capsys, file, old, new, part):
    path = started(home, capsys)
    ledger = Ledger.open(path)
    ledger.add(GRR(epsilon=0.1, size=2), name="r", query="b")
    assert run(capsys, "ledger", "verify", path)[0] == 0 and ledger.changed == ()
    (home / file).write_text((home / file).read_text().replace(old, new))
    code, said = run(capsys, "ledger", "verify", path)
    words = f"the {part} of s.toml changed"
    assert (code, words in said) == ((1, True) if part else (0, False))
    told = ledger.status()
    assert (words in " ".join(told.notes())) == bool(part) == (words in str(told.to_dict()))
    assert (words in " ".join(ledger_section(told).text)) == bool(part)
    # and in a report, beside its headline
    answers = answer(load(home / "s.toml"))
    headline = fronted(front(answers, answers), told).sentence
    assert (words in headline) == bool(part)


def test_releases_of_the_scenario_that_are_not_entered_are_told(home, capsys):
    path = started(home, capsys)
    ledger = Ledger.open(path)
    ledger.add(GRR(epsilon=0.1, size=2), name="r", query="b")
    assert "also describes 'January'" in " ".join(ledger.status().notes())
    ledger.add(load(home / "s.toml").releases[0], name="January")
    assert "also describes" not in " ".join(ledger.status().notes())


def test_a_table_that_says_little_is_told(home, capsys):
    path = started(home, capsys)
    (home / "people.csv").write_text("b,c\n0,x\n1,y\n1,x\n")
    ledger = Ledger.open(path)
    ledger.add(GaussianDP(1.0, neighbours="replace-one"), name="r")
    standing = ledger.status(max_risk=0.3)
    assert standing.code == 3 and "says little" in " ".join(ledger_section(standing).text)
    with pytest.raises(CannotBeToldError, match="little"):
        ledger.plan(max_risk=0.3)


def test_other_data_is_told(home, capsys):
    path = started(home, capsys)
    (home / "other.csv").write_text("b,c\n0,x\n")
    ledger = Ledger.open(path)
    about = {"query": "b", "data": home / "people.csv"}
    ledger.add(GRR(epsilon=0.1, size=2), name="same", **about)
    assert ledger.changed == ()
    ledger.add(GRR(epsilon=0.1, size=2), name="r", query="b", data=home / "other.csv")
    assert "made from other data than s.toml" in ledger.status().notes()[0]


def test_a_report_is_judged_by_its_ledger(home, capsys):
    text = START + '[[releases]]\nname = "January"\nmechanism = "grr"\nepsilon = 0.1\nquery = "b"\n'
    path, out = started(home, capsys, text), home / "r.html"
    ledger, asked = Ledger.open(path), ("report", home / "s.toml", "--ledger", path, "-o", out)
    ledger.add(PureDP(0.1, neighbours="replace-one").doubted("The seed is known."), name="small")
    assert run(capsys, *asked)[0] == 0 and "The seed is known." in out.read_text()
    assert "Cannot be told: the releases of the ledger together (1 count" in out.read_text()
    ledger.add(GRR(epsilon=4.0, size=2), name="big", query="b")
    assert run(capsys, *asked)[0] == 0
    assert "Not accepted: the releases of the ledger together (2 count" in out.read_text()
    assert "publish as planned" not in out.read_text()
    (home / "t.toml").write_text(text)
    code, said = run(capsys, "report", home / "t.toml", "--ledger", path, "-o", out)
    assert code == 2 and "another scenario" in said


def test_steps_for_one_person_are_coarse(tmp_path):
    ledger = Ledger(tmp_path / "l")
    for k in range(3):
        ledger.add(GRR(epsilon=0.3, size=2), name=f"r{k}", date=f"2030-0{k + 1}-01")
    table = ledger_section(ledger.status(**ASKED, worst=True)).table
    for row in table[1:]:
        assert 20 * float(row[4]) == pytest.approx(round(20 * float(row[4])), abs=1e-9)


# -- files -----------------------------------------------------------------------------------------
def test_a_cut_end_is_told_and_what_is_whole_is_kept(home, capsys):
    path = started(home, capsys)
    ledger = Ledger.open(path)
    for name in ("one", "two"):
        ledger.add(GRR(epsilon=0.1, size=2), name=name, query="b")
    whole = path.read_bytes()
    for cut in (1, 40):
        path.write_bytes(whole[:-cut])
        code, said = run(capsys, "ledger", "verify", path)
        assert code == 1 and "last line of the ledger is incomplete" in said
        assert "is as it was written" not in said
        code, said = run(capsys, "ledger", "status", path)
        assert code == 3 and "a release may be missing" in said
        with pytest.raises(CannotBeToldError, match="missing"):
            Ledger.open(path).plan()
        Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="three", query="b")
        kept = [e.name for e in Ledger.open(path).entries]
        assert kept == (["one", "two", "three"] if cut == 1 else ["one", "three"])
        assert run(capsys, "ledger", "verify", path)[0] == (cut != 1)
    # what was lost is not forgotten with the next release, but only when it is there again
    code, said = run(capsys, "ledger", "status", path)
    assert code == 3 and "the release 'two' may be missing" in said
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="four", query="b")
    assert run(capsys, "ledger", "verify", path)[0] == 1
    code, said = run(
        capsys, "ledger", "add", path, "--name", "two", "--mechanism", "grr", "--epsilon", "0.1",
        "--query", "b",
    )  # fmt: skip
    assert code != 3 and "missing" not in said
    assert run(capsys, "ledger", "verify", path)[0] == 0


@pytest.mark.parametrize("upto", ['"people": 4, ', '"query": "b", ', '"mechanism": "grr", '])
def test_an_incomplete_line_is_not_settled_by_something_weaker(home, capsys, upto):
    """What can be read of it must be what is added again, under its name or another."""
    path = started(home, capsys)
    strong = {"query": "b", "unit": "visit", "people": 4}
    Ledger.open(path).add(GRR(epsilon=3.0, size=2), name="big", **strong)
    text = path.read_text()
    path.write_text(text[: text.rindex(upto) + len(upto)])
    Ledger.open(path).add(GRR(epsilon=0.01, size=2), name="big", query="b")
    code, said = run(capsys, "ledger", "status", path)
    legible = "mechanism" not in upto
    assert (code, "describes it otherwise" in said) == ((3, True) if legible else (0, False))
    assert run(capsys, "ledger", "verify", path)[0] == legible
    Ledger.open(path).add(GRR(epsilon=3.0, size=2), name="big, as it was", **strong)
    code, said = run(capsys, "ledger", "status", path)
    assert code == 1 and "describes it otherwise" not in said


def test_what_may_have_been_published_counts(home, capsys):
    """A line about the state of a release is incomplete: it counts, even if it is withdrawn."""
    path = started(home, capsys)
    Ledger.open(path).add(GRR(epsilon=3.0, size=2), name="big", query="b")
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="small", query="b")
    whole = path.read_bytes()
    for state in ("published", "withdrawn"):
        Ledger.open(path).mark("big", state)
        line = path.read_bytes().removeprefix(whole)
        for cut in (len(line) - 2, line.index(b'", "check'), 20, 12):
            path.write_bytes(whole + line[:cut])
            again = Ledger.open(path)
            again.mark("small", "withdrawn")
            if not again.told:  # it was withdrawn before
                assert state == "withdrawn" and cut > 20
                continue
            said = "incomplete and did not say" if cut == 12 else "counts as published"
            assert said in again.told[0]
            if cut > 12:
                again.mark("big", "withdrawn")
                assert [e.name for e in again.entries if e.counts] == ["big"]
            assert said in run(capsys, "ledger", "status", path)[1]
            assert said in run(capsys, "ledger", "verify", path)[1]
        path.write_bytes(whole)


def test_an_incomplete_line_is_told_by_the_first_who_adds(home, capsys):
    path = started(home, capsys)
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="one", query="b")
    path.write_bytes(path.read_bytes().rpartition(b'{"name"')[0] + b'{"name"')
    words = ["--name", "y", "--mechanism", "grr", "--epsilon", "0.05", "--query", "b"]
    assert "did not say which release" in run(capsys, "ledger", "add", path, *words)[1]


@pytest.mark.parametrize("keep", [1, 5, 9, 14, 18])
def test_what_names_no_release_is_dropped(home, capsys, keep):
    path = started(home, capsys)
    for name in ("one", 'tw"o'):
        Ledger.open(path).add(GRR(epsilon=0.1, size=2), name=name, query="b")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], lines[2][:keep]]))
    assert Ledger.open(path).missing
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="three", query="b")
    again = Ledger.open(path)
    assert [e.name for e in again.entries] == ["one", "three"]
    assert again.missing == () if keep < 18 else "'tw\"o' may be missing" in again.missing[0]


def test_a_first_release_that_was_cut_is_told(home, capsys):
    path = started(home, capsys)
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="one", query="b")
    path.write_bytes(path.read_bytes()[:-9])
    code, said = run(capsys, "ledger", "status", path)
    assert code == 3 and "a release may be missing" in said
    assert "a release may be missing" in ledger_section(Ledger.open(path).status()).text[1]


def test_a_key_that_occurs_twice_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.add(GRR(epsilon=0.5, size=2), name="one")
    text = ledger.path.read_text()
    for old, new in (
        ('"mechanism": "grr"', '"mechanism": "oue", "mechanism": "grr"'),
        ('"epsilon": 0.5', '"epsilon": 9.0, "epsilon": 0.5'),
        ('"epsilon": 0.5', '"epsilon": 0.50'),
    ):
        assert old in text
        ledger.path.write_text(text.replace(old, new))
        with pytest.raises(DpradError, match="line 2 is not what was written"):
            Ledger.open(ledger.path)


def test_a_line_with_a_checksum_but_without_sense_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "l")
    entry = ledger.add(GRR(epsilon=0.5, size=2), name="one")
    row = {k: v for k, v in entry.to_dict().items() if k != "seen"} | {"name": "two"}
    whole = ledger.path.read_bytes()
    spoiled = [row | {k: None} for k in row if k not in ("data", "scenario", "people", "query")]
    spoiled += [row | {"share": 7}, row | {"unit": 3}, row | {"state": "gone"}, {"name": "two"}]
    spoiled += [row | {"numbers": {"epsilon": -1.0}}, row | {"people": -2, "unit": "visit"}]
    promise = {"mechanism": None, "fixed": {}}
    stated = {"epsilon": 0.5, "neighbours": "replace-one"}
    spoiled += [row | promise | {"numbers": stated | {"times": n}} for n in (0, -3, 1.5)]
    spoiled += [{"mark": "one", "state": "planned"}, {"mark": "no", "state": "published"}]
    for line in spoiled:
        ledger.path.write_bytes(whole + _line(line, ledger.head)[0])
        with pytest.raises(DpradError, match="of a kind"):
            Ledger.open(ledger.path).entries  # noqa: B018
    ledger.path.write_bytes(whole + _line(row, ledger.head)[0])
    assert len(Ledger.open(ledger.path).entries) == 2


@pytest.mark.parametrize(
    "named",
    ["a\x1b[31m\nAccepted. All is well.toml", "\0", "\udcff.toml", "a" * 1001, 3, ["s.toml"]],
)
def test_a_path_that_is_not_a_line_is_refused(home, capsys, named):
    path = home / "releases.jsonl"
    path.write_bytes(_line({"dprad": "ledger", "version": 1, "scenario": named}, "")[0])
    for verb in ("status", "verify", "plan"):
        code, said = run(capsys, "ledger", verb, path)
        assert code == 2 and "must be one line" in said and "Accepted" not in said


def test_a_scenario_that_no_ledger_can_name_is_refused(home, capsys):
    for name in ("s\n.toml", "s\udcff.toml"):
        (home / name).write_text(START + DOUBTED)
        path = home / "releases.jsonl"
        with pytest.raises(DpradError, match="must be one line"):
            Ledger(path, scenario=home / name)
        assert not path.exists()
    with pytest.raises(DpradError, match="cannot be read"):
        load("\0")


def test_a_ledger_is_private(tmp_path):
    before = os.umask(0)
    try:
        path = Ledger(tmp_path / "l").path
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_data_without_an_end_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    ledger = Ledger(tmp_path / "l")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(DpradError, match="is not a file"):
            ledger.add(GRR(epsilon=0.5, size=2), name="one", data=path)


@pytest.mark.parametrize("command", ["status", "plan"])
def test_inputs_are_not_written_over(home, capsys, command):
    path = started(home, capsys)
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="r", query="b")
    os.link(home / "people.csv", home / "alias.svg")
    (home / "link.svg").symlink_to(home / "s.toml")
    for name in ("s.toml", "people.csv", "releases.jsonl", "alias.svg", "link.svg"):
        before = (home / name).read_bytes()
        more = ("--releases", 1) if command == "plan" else ()
        code, said = run(capsys, "ledger", command, path, *more, "-o", home / name)
        assert code == 2 and "is an input" in said and (home / name).read_bytes() == before
    out = home / "out.svg"
    out.write_text("old")
    out.chmod(0o640)
    more = ("--releases", 1) if command == "plan" else ()
    assert run(capsys, "ledger", command, path, *more, "-o", out)[0] == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o640 and "<svg" in out.read_text()
    assert not [p for p in home.iterdir() if p.name.startswith(".dprad-")]


def test_lines_are_added_to_the_file_that_was_read_and_to_no_other(home, capsys, monkeypatch):
    """Another file, or a link to one, in the place of the ledger between reading and writing."""
    path = started(home, capsys)
    ledger = Ledger.open(path)
    ledger.add(GRR(epsilon=0.1, size=2), name="one", query="b")
    other, away = home / "private", home / "away"
    copy = path.read_bytes() + b'{"name": "$(id)"'
    for make in (
        lambda: path.symlink_to(other),
        lambda: path.write_bytes(copy),
        lambda: path.hardlink_to(other),
    ):
        other.write_text("private" * 9999)
        path.rename(away)
        make()
        with pytest.raises((DpradError, OSError)):
            ledger.add(GRR(epsilon=0.1, size=2), name="two", query="b")
        assert other.read_text() == "private" * 9999 and (
            path.is_symlink() or path.read_bytes() in (copy, other.read_bytes())
        )
        path.unlink()
        away.rename(path)
    # only while the lock is waited for
    right = journal.opened

    def swapped(kept, how):
        return right(other if how & os.O_RDWR else kept, how)

    monkeypatch.setattr(journal, "opened", swapped)
    with pytest.raises(DpradError, match="replaced by another file"):
        ledger.add(GRR(epsilon=0.1, size=2), name="two", query="b")
    assert other.read_text() == "private" * 9999
    monkeypatch.undo()
    ledger.add(GRR(epsilon=0.1, size=2), name="two", query="b")
    assert [e.name for e in Ledger.open(path).entries] == ["one", "two"]


def test_an_entry_whose_scenario_is_no_hash_is_refused(home, capsys):
    path = started(home, capsys)
    Ledger.open(path).add(GRR(epsilon=0.1, size=2), name="one", query="b")
    first, line = (json.loads(text) for text in path.read_text().splitlines())
    for wrong in ("", "x", [1], {"data": 1}):
        text, check = _line({k: v for k, v in first.items() if k != "check"}, "")
        bare = {k: v for k, v in line.items() if k != "check"} | {"scenario": wrong}
        path.write_bytes(text + _line(bare, check)[0])
        code, said = run(capsys, "ledger", "verify", path)
        assert code == 2 and "line 2 of the ledger is of a kind" in said


@pytest.mark.parametrize(
    "release",
    [
        Staircase(epsilon=1e-300, sensitivity=1e300), PureDP(1e-300, neighbours="replace-one"),
        Laplace(epsilon=1e-300, sensitivity=1e300),
    ],
)  # fmt: skip
def test_an_error_without_bounds_is_no_internal_error(tmp_path, release):
    ledger = Ledger(tmp_path / "l")
    entry = ledger.add(release, name="r", query=None if isinstance(release, PureDP) else "value")
    asked = ledger.asked(Prior.uniform(2), max_risk=0.2)
    assert plan._error(entry, asked) == math.inf


def test_a_variance_beyond_the_range_of_numbers_is_infinite():
    far = (-1e300, 1e300)
    for each in (Piecewise(epsilon=1.0, bounds=far), Hybrid(epsilon=1.0, bounds=far)):
        assert each.variance() == math.inf
