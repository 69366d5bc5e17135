"""The ledger: nothing that was reported is lost, nothing that was edited is accepted, and what it
says is what the composition of its releases says.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dprad import ApproxDP, DpradError, GaussianDP, Ledger, Prior, PureDP, Threat, assess, plots
from dprad.errors import NoNoiseSufficesError
from dprad.game.question import Question
from dprad.mechanisms import GRR, Channel, Composed, Gaussian, Laplace, Repeated
from dprad.runtime.journal import Log
from dprad.show.cli import main
from dprad.show.ledger.entry import Entry
from dprad.show.report.ledger import ledger_section
from dprad.verbs.together import filtered, jointly, together

PRIOR = Prior.from_counts(
    {(a, b): 1.0 + a * b for a in range(2) for b in range(3)}, columns=["a", "b"]
)
STRANGER = ("a stranger", Threat(target=["b"]))
INSIDER = ("an insider", Threat(knows="everything"))
ASKED = {"prior": PRIOR, "threats": [STRANGER, INSIDER]}
SCENARIO = """
title = "Monthly"
[population]
counts = { yes = 3, no = 7 }
[[threats]]
name = "a stranger"
knows = "nothing"
[[releases]]
name = "January"
mechanism = "grr"
epsilon = 0.5
[accepted]
risk = 0.15
"""


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "releases.jsonl")


# -- the file --------------------------------------------------------------------------------------
WRITER = """
import os, sys
from dprad.runtime.journal import Log
log = Log.open(sys.argv[1], {}, "ledger")
for k in range(int(sys.argv[3])):
    log.append(lambda: {"name": f"{sys.argv[2]}-{k}"})
    os.write(1, f"{sys.argv[2]}-{k}\\n".encode())
"""


def writer(path, name, count):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(count)],
                            stdout=subprocess.PIPE)  # fmt: skip


def test_two_writers_and_kill_9(tmp_path):
    """Whatever a writer reported is there once, in its order, after kills at random moments."""
    path, rng, told = tmp_path / "log", np.random.default_rng(0), []
    for turn in range(3):
        pair = [writer(path, f"{turn}{side}", 100_000) for side in "ab"]
        told += [one.stdout.readline().decode().strip() for one in pair]
        time.sleep(float(rng.uniform(0.02, 0.2)))
        for one in pair:
            one.send_signal(signal.SIGKILL)
            told += one.communicate()[0].decode().split("\n")[:-1]  # a torn report is none
    names = [row["name"] for row in Log.open(path, None, "ledger").rows[1:]]
    assert len(set(names)) == len(names) >= len(told) > 20 and set(told) <= set(names)
    for turn in range(3):
        for side in "ab":
            own = [int(n.split("-")[1]) for n in names if n.startswith(f"{turn}{side}-")]
            assert own == list(range(len(own)))


def test_a_torn_line_is_repaired_and_an_edited_one_refused(ledger):
    for k in range(3):
        ledger.add(GRR(epsilon=1.0, size=3), name=f"r{k}", query="b", date="2030-01-31")
    whole = ledger.path.read_bytes()
    for cut in range(1, 60, 7):
        ledger.path.write_bytes(whole + whole.split(b"\n")[2][:cut])
        again = Ledger.open(ledger.path)
        assert len(again.entries) == 3 and again.head == ledger.head
    again.add(GRR(epsilon=1.0, size=3), name="r3", query="b", date="2030-01-31")
    assert len(Ledger.open(ledger.path).entries) == 4
    assert Ledger.open(ledger.path).verify(ledger.head) == 6  # what was torn is kept
    whole, lines = ledger.path.read_bytes(), ledger.path.read_bytes().split(b"\n")
    edited = [
        whole.replace(b'"epsilon": 1.0', b'"epsilon": 0.1', 1),
        b"\n".join([*lines[:2], *lines[3:]]),
        b"\n".join([lines[0], lines[2], lines[1], *lines[3:]]),
        b"\n".join([*lines[:3], *lines[2:]]),
    ]
    for text in edited:
        ledger.path.write_bytes(text)
        with pytest.raises(DpradError, match="is not what was written"):
            Ledger.open(ledger.path)
    # what is cut off at the end is noticed by a head that was kept
    ledger.path.write_bytes(b"\n".join([*lines[:3], b""]))
    short = Ledger.open(ledger.path)
    with pytest.raises(DpradError, match="cut off"):
        short.verify(again.head)
    with pytest.raises(DpradError, match="became shorter"):
        again.entries  # noqa: B018


def test_a_line_between_is_seen_by_the_other(ledger):
    other = Ledger.open(ledger.path)
    ledger.add(PureDP(1.0, neighbours="replace-one"), name="one")
    with pytest.raises(DpradError, match="already"):
        other.add(PureDP(1.0, neighbours="replace-one"), name="one")
    other.add(PureDP(1.0, neighbours="replace-one"), name="two")
    assert [e.name for e in ledger.entries] == ["one", "two"]


def test_a_line_is_read_once(ledger, monkeypatch):
    """Adding and marking look at new lines only, one's own and those of others."""
    read = []
    made = Entry.of.__func__
    monkeypatch.setattr(Entry, "of", classmethod(lambda c, row: read.append(1) or made(c, row)))
    other, release = Ledger.open(ledger.path), PureDP(1.0, neighbours="replace-one")
    for k in range(30):
        (ledger, other)[k % 2].add(release, name=f"r{k}")
    for k in range(30):
        assert (ledger, other)[k % 3 == 0].mark(f"r{k}", "published").seen
    assert len(read) <= 30 * 3  # made once, and read once by each of the two
    assert ledger.entries == other.entries == Ledger.open(ledger.path).entries
    with pytest.raises(DpradError, match="published already"):
        other.mark("r1", "published")
    assert [e.state for e in ledger.entries] == ["published"] * 30 and ledger.verify() == 61


def test_a_line_of_another_kind_is_refused_every_time(ledger):
    ledger.add(PureDP(1.0, neighbours="replace-one"), name="one")
    Log.open(ledger.path, None, "ledger").append(lambda: {"note": "of a later version"})
    for _ in range(2):
        with pytest.raises(DpradError, match="line 3 of the ledger is of a kind"):
            _ = ledger.entries
        with pytest.raises(DpradError, match="line 3 of the ledger is of a kind"):
            ledger.add(PureDP(1.0, neighbours="replace-one"), name="two")


def test_many_entries(tmp_path):
    """10,000 lines, written at once; five kinds of release."""
    path = tmp_path / "many.jsonl"
    log = Log.open(path, {"version": 1, "scenario": None}, "ledger")
    entry = Ledger.open(path).made(
        GRR(epsilon=0.01, size=3), name="x", query="b", date="2030-01-31"
    )
    row = {k: v for k, v in entry.to_dict().items() if k != "seen"}
    from dprad.runtime.journal import _line

    text, check = [], log.checks[-1]
    for k in range(10_000):
        numbers = {"epsilon": (1 + k % 5) / 1000}
        line, check = _line(row | {"name": f"r{k}", "numbers": numbers}, check)
        text.append(line)
    with path.open("ab") as file:
        file.write(b"".join(text))
    standing = Ledger.open(path).status(prior=PRIOR, threats=[STRANGER], max_risk=0.9)
    assert len(standing.counted) == 10_000 and len(standing.steps) == 12
    once = assess(GRR(epsilon=0.005, size=3), prior=PRIOR, threat=STRANGER[1], query="b").rad
    assert standing.strongest[1].interval[0] > once


# -- what it says ----------------------------------------------------------------------------------
def test_the_standing_is_the_composition(ledger):
    parts = [(Laplace(epsilon=1.0, sensitivity=2.0), "b"), (GRR(epsilon=0.5, size=2), "a"),
             (GRR(epsilon=0.5, size=2), "a")]  # fmt: skip
    for k, (mechanism, query) in enumerate(parts):
        ledger.add(
            mechanism, name=f"r{k}", query=query, date=f"2030-0{k + 1}-01", state="published"
        )
    standing = ledger.status(**ASKED)
    whole = Composed([m for m, _ in parts], queries=[q for _, q in parts])
    for name, risk in standing.cases:
        exact = assess(whole, prior=PRIOR, threat=dict([STRANGER, INSIDER])[name])
        assert exact.kind == "exact" and risk.rad <= risk.interval[1]
        assert risk.interval[1] >= exact.rad - 1e-12
    name, risk = standing.strongest
    assert risk.rad == pytest.approx(exact_of(whole, name), abs=1e-12)
    first = assess(parts[0][0], prior=PRIOR, threat=dict([STRANGER, INSIDER])[name], query="b").rad
    assert standing.steps[0].risk == pytest.approx(first, abs=1e-12)
    assert standing.steps[-1].risk == pytest.approx(risk.rad, abs=1e-12)
    assert sum(s.added for s in standing.steps) == pytest.approx(risk.rad, abs=1e-12)
    assert standing.verdict is None and standing.code == 0


def exact_of(mechanism, name):
    return assess(mechanism, prior=PRIOR, threat=dict([STRANGER, INSIDER])[name]).rad


def test_a_guarantee_among_them_is_composed_and_said(ledger):
    ledger.add(GRR(epsilon=0.5, size=3), name="one", query="b")
    ledger.add(ApproxDP(0.5, 1e-6, neighbours="replace-one"), name="two")
    standing = ledger.status(**ASKED)
    promise = GRR(epsilon=0.5, size=3).guarantee.compose(
        ApproxDP(0.5, 1e-6, neighbours="replace-one")
    )
    for name, risk in standing.cases:
        bound = assess(promise, prior=PRIOR, threat=dict([STRANGER, INSIDER])[name])
        assert risk.kind == "upper-bound" and risk.rad == pytest.approx(bound.rad, rel=1e-9)
        assert "2 releases were composed" in risk.assumptions[0]
    assert standing.filtered is None and "even if a release was chosen" in standing.notes()[-1]


def test_adaptive_numbers_are_never_below_fixed_ones(ledger):
    for k in range(3):
        ledger.add(GRR(epsilon=0.4, size=3), name=f"r{k}", query="b")
    fixed, free = (ledger.status(**ASKED, adaptive=a) for a in (False, True))
    for name, risk in free.cases:
        assert risk.kind == "upper-bound" and risk.rad >= dict(fixed.cases)[name].rad - 1e-12
    assert free.filtered.interval[1] >= free.strongest[1].interval[1] - 1e-9
    said = dict(fixed.cases)["a stranger"].assumptions
    assert "fixed beforehand" in " ".join(said)


def test_a_filter_adds_up_squares():
    pure, normal = (k(1.0, neighbours="replace-one") for k in (PureDP, GaussianDP))
    away = GaussianDP(0.5, neighbours="add-remove")
    one = filtered([(pure, None)])
    # pure DP is Gaussian DP with the same total variation, and no better at any epsilon
    assert one.tv == pytest.approx(pure.tv, abs=1e-12)
    for e in np.linspace(0.0, 3.0, 31):
        assert one.delta(e) >= pure.delta(e) - 1e-12
    both = filtered([(pure, None), (normal, None), (away, None)])
    assert both.mu == pytest.approx(np.sqrt(one.mu**2 + 2.0), rel=1e-12)
    assert filtered([(ApproxDP(1.0, 1e-6, neighbours="replace-one"), None)]) is None


def test_withdrawn_releases_count_if_they_were_seen(ledger):
    ledger.add(GRR(epsilon=1.0, size=3), name="seen", query="b", state="published")
    ledger.add(GRR(epsilon=1.0, size=3), name="never", query="b")
    two = ledger.status(**ASKED).strongest[1].rad
    ledger.mark("never", "withdrawn")
    one = ledger.status(**ASKED)
    assert one.strongest[1].rad < two and [e.name for e in one.counted] == ["seen"]
    assert ledger.mark("seen", "withdrawn").counts
    assert ledger.status(**ASKED).strongest[1].rad == one.strongest[1].rad
    assert "still count" in " ".join(ledger.status(**ASKED).notes())
    with pytest.raises(DpradError, match="already"):
        ledger.mark("seen", "published")


def test_shares_and_units_are_told(ledger):
    ledger.add(GRR(epsilon=1.0, size=3), name="one", query="b", share=0.2)
    ledger.add(GRR(epsilon=1.0, size=3), name="two", query="b", share=0.3, unit="visit")
    standing = ledger.status(**ASKED)
    said = " ".join(standing.notes())
    most = 0.5 * standing.strongest[1].interval[1]
    assert standing.covered == 0.5 and "50% of the population" in said
    assert "one visit" in " ".join(standing.strongest[1].doubts)
    assert f"{most:.2f}"[:4] in said


def test_shares_bound_the_average_over_the_population(rng):
    """Whoever is in which release: at most the share of those in any, times the joint risk."""
    one, two = GRR(epsilon=1.0, size=3), GRR(epsilon=0.5, size=3)
    threat, shares = STRANGER[1], (0.4, 0.35)
    alone = [assess(m, prior=PRIOR, threat=threat, query="b").rad for m in (one, two)]
    both = assess(Composed([one, two], queries=["b", "b"]), prior=PRIOR, threat=threat).rad
    for overlap in np.linspace(0.0, min(shares), 9):
        mean = overlap * both + (shares[0] - overlap) * alone[0] + (shares[1] - overlap) * alone[1]
        assert mean <= min(1.0, sum(shares)) * both + 1e-12


# -- plans -----------------------------------------------------------------------------------------
def test_a_plan_keeps_the_limit_and_wastes_little(ledger):
    ledger.add(GRR(epsilon=0.6, size=3), name="one", query="b")
    plan = ledger.plan(**ASKED, max_risk=0.25, releases=3)
    assert plan.parameter == "epsilon" and len(set(plan.values)) == 1
    parts = [GRR(epsilon=0.6, size=3), *(GRR(epsilon=v, size=3) for v in plan.values)]
    more = [GRR(epsilon=0.6, size=3), *(GRR(epsilon=1.03 * v, size=3) for v in plan.values)]
    now, then = (
        max(
            assess(Composed(m, queries=["b"] * 4), prior=PRIOR, threat=t).rad
            for _, t in (STRANGER, INSIDER)
        )
        for m in (parts, more)
    )
    assert now <= 0.25 < then and plan.risk.rad == pytest.approx(now, abs=1e-12)
    assert [k for k, _ in plan.curve] == [0, 1, 2, 3]
    four = Repeated(GRR(epsilon=0.6, size=3), 4)
    worst = max(assess(four, prior=PRIOR, threat=t, query="b").rad for _, t in (STRANGER, INSIDER))
    assert plan.curve[-1][1] == pytest.approx(worst, abs=1e-9)
    assert (plan.affordable == 3) == (worst <= 0.25)


def test_weights_split_gaussian_noise_as_they_should(ledger):
    """sigma proportional to w^-1/4: no other split of the same precision has less error."""
    ledger.add(Gaussian(sigma=9.0, sensitivity=2.0), name="one", query="b")
    asked = {"prior": PRIOR, "threats": [STRANGER], "max_risk": 0.2}
    plan = ledger.plan(**asked, releases=2, weights=[1.0, 16.0])
    assert plan.values[0] / plan.values[1] == pytest.approx(2.0, rel=0.02)
    equal = ledger.plan(**asked, releases=2)
    error = plan.values[0] ** 2 + 16 * plan.values[1] ** 2
    assert error < 17 * equal.values[0] ** 2
    sigma = sum(s**-2 for s in (9.0, *plan.values)) ** -0.5
    one = assess(Gaussian(sigma=sigma, sensitivity=2.0), prior=PRIOR, threat=STRANGER[1], query="b")
    assert 0.195 < one.rad <= 0.2


def test_no_noise_suffices_once_the_past_exceeds(ledger):
    ledger.add(GRR(epsilon=3.0, size=3), name="one", query="b")
    with pytest.raises(NoNoiseSufficesError, match="already exceed"):
        ledger.plan(**ASKED, max_risk=0.1)


def test_jointly_shares_the_risk_of_one_person():
    parts = [(Laplace(epsilon=1.0, sensitivity=2.0), "b"), (Laplace(epsilon=1.0), "a")]
    questions = [Question.of(PRIOR, t) for _, t in (STRANGER, INSIDER)]
    risks = jointly(lambda _: parts, questions, worst=False)
    alone = [together(parts, q) for q in questions]
    for risk, one in zip(risks, alone, strict=True):
        assert risk.worst >= one.worst - 0.03 and risk.interval[1] >= one.interval[0]


# -- pictures, report, command line ----------------------------------------------------------------
def test_pictures_and_a_section_with_rounded_numbers(ledger):
    import matplotlib.figure

    for k in range(3):
        ledger.add(GRR(epsilon=0.4, size=3), name=f"r{k}", query="b", date=f"2030-0{k + 1}-01")
    standing, plan = ledger.status(**ASKED, max_risk=0.3), ledger.plan(**ASKED, max_risk=0.3)
    ax = plots.plot_ledger(standing, matplotlib.figure.Figure().add_subplot())
    assert ax.patches[-1].get_y() + ax.patches[-1].get_height() == pytest.approx(
        standing.steps[-1].risk
    )
    ax = plots.plot_plan(plan, matplotlib.figure.Figure().add_subplot())
    assert ax.lines[0].get_ydata().tolist() == [r for _, r in plan.curve]
    section = ledger_section(standing)
    risks = [float(row[4]) for row in section.table[1:]]
    assert all(round(100 * r) == pytest.approx(100 * r) for r in risks)
    assert all(r >= s.risk - 1e-9 for r, s in zip(risks, standing.steps, strict=True))
    assert "<svg" in section.figure


def test_the_page_shows_the_ledger(ledger):
    pytest.importorskip("shiny")
    from dprad.show.web.page import page
    from dprad.show.web.population import patients

    ledger.add(GRR(epsilon=0.4, size=3), name="<b>bold</b>", query="b", date="2030-01-01")
    section = ledger_section(ledger.status(**ASKED, max_risk=0.3))
    text = str(page({"patients": patients()}, 0.1, False, 1, section))
    assert "Releases over time" in text and "<svg" in text and "risk up to it" in text
    assert "<b>bold</b>" not in text and "&lt;b&gt;bold" in text


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["ledger", *map(str, arguments)])
    told = capsys.readouterr()
    return ended.value.code, told.out, told.err


def test_commands(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCENARIO)
    path = tmp_path / "releases.jsonl"
    assert run(capsys, "init", path, "--scenario", tmp_path / "s.toml")[0] == 0
    assert run(capsys, "init", path, "--scenario", tmp_path / "s.toml")[0] == 2
    code, out, _ = run(capsys, "add", path, "--name", "January", "--state", "published")
    assert code == 0 and "<- this one" in out and "Accepted" in out
    # what would exceed the limit is told by the exit code, and not written
    strong = ("--mechanism", "grr", "--epsilon", "3")
    code, out, _ = run(capsys, "add", path, "--name", "Big", *strong, "--dry-run")
    assert code == 1 and "Not accepted" in out and len(Ledger.open(path).entries) == 1
    code, out, _ = run(capsys, "status", path, "--json", "-o", tmp_path / "r.html")
    plain = json.loads(out)
    assert code == 0 and plain["attackers"][0]["risk"]["kind"] == "exact"
    text = (tmp_path / "r.html").read_text()
    assert "January" in text and "Releases over time" in text
    code, out, _ = run(capsys, "plan", path, "--releases", "2", "-o", tmp_path / "p.svg")
    assert code in (0, 1) and "least noise" in out and "<svg" in (tmp_path / "p.svg").read_text()
    # a release that was made is entered, and the code says that it is too much
    code, out, _ = run(capsys, "add", path, "--name", "Big", *strong, "--state", "published")
    assert code == 1 and len(Ledger.open(path).entries) == 2
    code, out, _ = run(capsys, "plan", path)
    assert code == 1 and "Not possible" in out
    assert run(capsys, "add", path, "--name", "Big", "--state", "withdrawn")[0] == 1
    head = Ledger.open(path).head
    assert run(capsys, "verify", path, "--head", head)[0] == 0
    path.write_text(path.read_text().replace('"epsilon": 3.0', '"epsilon": 0.3'))
    code, _, err = run(capsys, "verify", path)
    assert code == 2 and "line 3 is not what was written" in err


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.add(Channel(np.eye(2)), name="a"), "short name"),
        (lambda x: x.add(GRR(epsilon=1.0, size=2).guarantee.compose(
            ApproxDP(1.0, 0.1, neighbours="replace-one")), name="a"), "a few numbers"),
        (lambda x: x.add(GRR(epsilon=1.0, size=2), name=" "), "short text"),
        (lambda x: x.add(GRR(epsilon=1.0, size=2), name="a", date="31.1.2030"), "a date"),
        (lambda x: x.add(GRR(epsilon=1.0, size=2), name="a", share=0), "share"),
        (lambda x: x.add(GRR(epsilon=1.0, size=2), name="a", state="gone"), "state"),
        (lambda x: x.status(), "which population"),
        (lambda x: x.plan(prior=PRIOR, max_risk=0.1), "no release"),
        (lambda x: x.mark("b", "published"), "name"),
        (lambda x: Ledger.open(x.path.parent / "none"), "does not exist"),
        (lambda x: Ledger(x.path, scenario=x.path), "not TOML|cannot"),
    ],
)  # fmt: skip
def test_bad_input(ledger, call, words):
    with pytest.raises(DpradError, match=words):
        call(ledger)


def test_another_file_is_not_touched(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(DpradError, match="not a dprad ledger"):
        Ledger(path)
    assert path.read_text() == "mine\n" and [f.name for f in tmp_path.iterdir()] == ["notes.txt"]
    assert isinstance(Ledger(tmp_path / "new").entries, tuple) and Entry.__slots__


def test_what_is_said_of_a_known_release_is_not_dropped(tmp_path, capsys):
    """Only its state can be changed: all else is refused, and nothing is written."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    path = tmp_path / "l.jsonl"
    run(capsys, "init", path, "--scenario", tmp_path / "s.toml")
    noise = ("--mechanism", "grr", "--epsilon", "0.01")
    assert run(capsys, "add", path, "--name", "a", *noise)[0] in (0, 1)
    before = path.read_bytes()
    for more in (["--mechanism", "grr"], ["--epsilon", "8"], ["--neighbours", "replace-one"],
                 ["--query", "b"], ["--date", "2030-01-01"], ["--share", "0.5"],
                 ["--unit", "visit"], ["--data", "x.csv"], ["--like", "a"]):  # fmt: skip
        code, _, said = run(capsys, "add", path, "--name", "a", "--state", "published", *more)
        assert code == 2 and "in the ledger already" in said
    assert path.read_bytes() == before
    run(capsys, "add", path, "--name", "a", "--state", "published")
    assert path.read_bytes() != before


@pytest.mark.parametrize("limit", [math.nan, 2.0, -1.0, math.inf])
def test_limits_that_are_none_are_refused(limit, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCENARIO)
    run(capsys, "init", tmp_path / "l.jsonl", "--scenario", tmp_path / "s.toml")
    ledger = Ledger.open(tmp_path / "l.jsonl")
    with pytest.raises(DpradError, match="max_risk must be"):
        ledger.status(max_risk=limit)
    with pytest.raises(DpradError, match="max_risk must be"):
        ledger.plan("January", max_risk=limit, releases=2)


@pytest.mark.parametrize("name", ["two\nlines", "bad\udcff", "bell\x07"])
def test_names_that_cannot_be_shown_are_refused(name, ledger):
    with pytest.raises(DpradError, match="one line of printable text"):
        ledger.add(GRR(epsilon=1.0, size=3), name=name, query="b")
    with pytest.raises(DpradError, match="one line of printable text"):
        PureDP(1.0, neighbours="replace-one").doubted(f"fine{name}")


def test_a_release_that_the_scenario_describes_otherwise_is_not_accepted(tmp_path, capsys):
    """Planned, then weakened, then published: which of the two it was is not known."""
    scenario, path = tmp_path / "scenario.toml", tmp_path / "releases.jsonl"
    text = SCENARIO.replace("yes = 3, no = 7", "yes = 300, no = 700")
    scenario.write_text(text)
    tried = lambda *words: run(capsys, *words)[0]  # noqa: E731
    assert tried("init", path, "--scenario", scenario) == 0
    assert tried("add", path, "--name", "January") == 0
    assert tried("verify", path) == 0 and tried("status", path) == 0
    scenario.write_text(text.replace("epsilon = 0.5", "epsilon = 5"))
    for words in (("add", path, "--name", "January", "--state", "published"), ("status", path)):
        code, out, _ = run(capsys, *words)
        assert code == 3 and "describes 'January' otherwise than the ledger" in out
    assert tried("verify", path) == 1 and tried("plan", path) == 3
    for other in (text.replace('name = "January"', 'name = "June"'), text):
        scenario.write_text(other)
        assert tried("status", path) == 0 and tried("verify", path) == 0
    # a new entry is compared as well
    scenario.write_text(text + '[[releases]]\nname = "July"\nmechanism = "grr"\nepsilon = 1\n')
    small = ("--mechanism", "grr", "--epsilon", 0.1)
    assert tried("add", path, "--name", "July", *small, "--dry-run") == 3
    assert tried("add", path, "--name", "May", *small) == 0
