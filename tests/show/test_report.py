"""Reports and figures: self-contained, escaped, the same bytes for the same input."""

from __future__ import annotations

import dataclasses
import html
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dprad
from dprad import DpradError, Prior, PureDP, Threat, mechanisms, plots, scenario
from dprad.game.question import Question
from dprad.model import explain
from dprad.show.cli import main
from dprad.show.report import report_scenario
from dprad.show.report.page import html_of, page_of
from dprad.show.report.published import published
from dprad.show.scenario.file import parse
from effort import some

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


class Reader(HTMLParser):
    """Tags, attributes that could fetch something, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        fetching = ("src", "href", "action", "data", "xlink:href", "srcset")
        self.addresses += [v for k, v in attrs if k in fetching or k.startswith("on")]

    def handle_data(self, data):
        self.text += data


def checked(path):
    """What every report must be; returns its text."""
    text = Path(path).read_text(encoding="utf-8")
    page = Reader(text)
    assert len(text.encode()) < 300_000
    assert not {"script", "iframe", "object", "link", "img", "form"} & set(page.tags)
    assert all(a.startswith("#") for a in page.addresses)  # figures refer to their own parts
    assert not re.search(r"url\((?!#)|@import", text)
    return page.text


@pytest.fixture(scope="module")
def answers():
    return scenario.answer(scenario.builtin())


def test_the_example(answers, tmp_path):
    one = report_scenario(scenario.builtin(), tmp_path / "a.html", command="dprad report")
    two = report_scenario(scenario.builtin(), tmp_path / "b.html", command="dprad report")
    assert one.read_bytes() == two.read_bytes()
    text = checked(one)
    for risk in answers.joint:
        assert explain.above(published(risk).interval[1]) in text  # in the table
    for words in ("Not accepted", "What to do", "This holds if", "2 releases together"):
        assert words in text
    for words in ("Audit", "unified bound (Theorem C)", "again", 'builtin = "patients"'):
        assert words in text
    html = one.read_text()
    more = round(100 * published(answers.strongest[1]).rad)
    assert html.count('class="extra"') == more and html.count("<circle") == 200


def test_any_results(tmp_path):
    prior = Prior.uniform(5)
    grr = mechanisms.GRR(epsilon=1.0, size=5)
    risk = dprad.assess(grr, prior=prior)
    bound = dprad.assess(PureDP(1.0, neighbours="replace-one"), prior=prior)
    plan = dprad.calibrate(mechanisms.GRR, max_risk=0.1, prior=prior, size=5)
    table = dprad.compare([grr, mechanisms.OUE(epsilon=1.0, size=5)], prior=prior)
    result = dprad.audit(grr, claim=grr.guarantee, prior=prior, trials=2000, trace=True)
    made = dprad.report(
        [risk, bound, plan, table, result], tmp_path / "r.html", title="All <b>five"
    )
    text = checked(made)
    told = (str(published(x)).split("\n")[0] for x in (risk, bound, plan, result))
    assert all(line in text for line in told)
    assert "All <b>five" in text
    checked(dprad.report(result, tmp_path / "one.html"))
    for wrong, words in [
        ([], "at least one"),
        (3, "results of assess"),
        ([risk, "x"], "got a str"),
    ]:
        with pytest.raises(DpradError, match=words):
            dprad.report(wrong, tmp_path / "no.html")
    with pytest.raises(DpradError, match="cannot be written"):
        dprad.report(risk, tmp_path / "none" / "r.html")


EVIL = [
    "<script>alert(1)</script>", '"quotes" & \'more\'', "two\nlines", "\U0001f600 emoji",
    "$x^2$ $ _ % \\frac", "</title></svg>", "{{ page }}", "x" * 300,
]  # fmt: skip


def test_a_hostile_table(tmp_path):
    """Names and values with markup, quotes, newlines, emoji, mathematics: shown as they are."""
    prior = {(a, b): i + j + 1 for i, a in enumerate(EVIL) for j, b in enumerate(EVIL)}
    made = Prior.from_counts(prior, columns=[EVIL[0], EVIL[4]])
    text = "title = 'x'\n[population]\nuniform = 2\n[[releases]]\nmechanism='grr'\nepsilon=1\n"
    base = parse(text, name="s", folder=tmp_path)
    asked = Question.of(made, Threat(knows=[EVIL[4]], target=[EVIL[0]]))
    question = dataclasses.replace(
        base,
        title=EVIL[0] + EVIL[2],
        text=text + "# " + EVIL[5],
        prior=made,
        questions=tuple((e, asked) for e in EVIL),
        releases=tuple(
            dataclasses.replace(base.releases[0], name=e, query=EVIL[0]) for e in EVIL[:3]
        ),
        accepted=0.05,
    )
    path = report_scenario(question, tmp_path / "evil.html")
    told = checked(path)
    for words in (*EVIL[:2], *EVIL[3:7]):
        assert words in told


def test_many_categories(tmp_path):
    text = (
        f"[population]\nuniform = {some(10_000, 2_000)}\n"
        "[[releases]]\nmechanism = 'grr'\nepsilon = 5\n"
        "[[releases]]\nmechanism = 'oue'\nepsilon = 5\n[accepted]\nrisk = 0.01\n"
    )
    checked(report_scenario(parse(text, name="s", folder=tmp_path), tmp_path / "big.html"))


def test_numbers_in_figures_are_whole(tmp_path):
    """What is read is not shortened with the paths: a bound must not be rounded down."""
    text = (
        "[population]\nuniform = 5\n[[releases]]\nname = 'v2.71828'\nepsilon = 1\n"
        "neighbours = 'replace-one'\n"
    )
    made = report_scenario(parse(text, name="s", folder=tmp_path), tmp_path / "r.html")
    risk = dprad.assess(PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(5))
    html = made.read_text()
    assert f">{dprad.model.explain.above(published(risk).rad)}<" in html and "2.71828" in html
    assert "at most 0.21" in checked(made)


def test_membership_is_not_called_right(tmp_path):
    prior = Prior.from_counts({("a", "x"): 3, ("b", "y"): 2, ("c", "x"): 1}, columns=["k", "d"])
    for threat in (Threat(knows="everything"), Threat(knows=["k", "d"], target=["d"])):
        risk = dprad.assess(
            mechanisms.GRR(epsilon=1.0, size=2), prior=prior, threat=threat, query="d"
        )
        assert "says 'in the data'" in str(risk) and "is right" not in str(risk)
        assert "anyway" in checked(dprad.report(risk, tmp_path / "m.html"))


def test_figures(answers):
    prior = Prior.uniform(5)
    risks = {
        f"{n}": dprad.assess(mechanisms.GRR(epsilon=n, size=5), prior=prior) for n in (1, 2, 3)
    }
    bound = dprad.assess(PureDP(1.0, neighbours="replace-one"), prior=prior)
    twice = mechanisms.Repeated(mechanisms.GRR(epsilon=1, size=5), 2)
    rough = dprad.assess(twice, prior=prior, trials=200)
    table = dprad.compare([mechanisms.OUE(epsilon=e, size=5) for e in (1, 2)], prior=prior)
    _, result = answers.audits[0]
    figure = matplotlib.figure.Figure()
    for k, (draw, what) in enumerate([
        (plots.plot_risk, {"a": ([1, 2, 3], list(risks.values())), "b": ([1], [rough])}),
        (plots.plot_odds, risks["1"]), (plots.plot_odds, bound), (plots.plot_frontier, table),
        (plots.plot_audit, result), (plots.plot_bounds, bound), (plots.plot_knowledge, risks),
        (plots.plot_promise, {"one": PureDP(1.0, neighbours="replace-one")}),
    ]):  # fmt: skip
        ax = figure.add_subplot(3, 3, k + 1)
        assert draw(what, ax=ax) is ax
    alone = plots.plot_bounds(bound)
    matplotlib.pyplot.close(alone.figure)
    line = figure.axes[0].lines[0]
    assert line.get_ydata().tolist() == [r.rad for r in risks.values()]
    dots = figure.axes[1].lines
    assert sum(d.get_markerfacecolor() == "#D55E00" for d in dots) == round(
        100 * risks["1"].success_in
    ) - round(100 * risks["1"].success_out)
    curve = figure.axes[7].lines[0]
    assert curve.get_ydata()[0] == pytest.approx(math.e * curve.get_xdata()[0], rel=1e-6)
    with pytest.raises(DpradError, match="there are none"):
        plots.plot_promise({})
    with pytest.raises(DpradError, match="no bounds"):
        plots.plot_bounds(risks["1"], figure.axes[0])
    quick = dprad.audit(
        mechanisms.GRR(epsilon=1, size=2), claim=PureDP(1.0, neighbours="replace-one"),
        prior=Prior.uniform(2), trials=100,
    )  # fmt: skip
    with pytest.raises(DpradError, match="no trace"):
        plots.plot_audit(quick, figure.axes[0])
    channel = mechanisms.Channel([[0.5, 0.5], [0.2, 0.8]])
    silent = dprad.compare([channel], prior=Prior.uniform(2))
    with pytest.raises(DpradError, match="error to draw"):
        plots.plot_frontier(silent, figure.axes[0])


def test_for_every_attacker_is_said_only_after_a_look(tmp_path, monkeypatch):
    """The sentence holds at the value it names, for each attacker; else it is not there."""
    text = (
        "[population]\nuniform = 8\n[[threats]]\nname = 'one'\n[[threats]]\nname = 'two'\n"
        "knows = 'everything'\n[[releases]]\nname = 'coded'\nmechanism = 'hadamard'\nepsilon = 1\n"
        "[accepted]\nrisk = 0.1\n"
    )
    made = parse(text, name="s", folder=tmp_path)
    told = checked(report_scenario(made, tmp_path / "r.html"))
    value = float(re.search(r"coded: epsilon = ([\d.]+) keeps the extra risk", told).group(1))
    for _, question in made.questions:
        risk = dprad.assess(
            mechanisms.HadamardResponse(epsilon=value, size=8),
            prior=question.prior,
            threat=question.threat,
        )
        assert risk.rad <= 0.1
    advised = float(re.search(r"coded: epsilon = ([\d.]+) \(now 1\)", told).group(1))
    assert advised <= value
    monkeypatch.setattr("dprad.show.report.sections.keeps", lambda *_: False)
    experts = checked(report_scenario(made, tmp_path / "r.html")).split("For experts")[1]
    assert "for every attacker" not in experts


def test_curve_is_that_of_the_attacker_who_gains_most():
    answers = scenario.answer(scenario.builtin(), plans=False, audits=False)
    names = [name for name, _ in answers.scenario.threats]
    gains = [risk.rad for risk in answers.risks[0]]
    assert gains[0] < gains[1]  # by less than a hundredth, so that both are published as the same
    assert published(answers.risks[0][0]).rad == published(answers.risks[0][1]).rad
    (curve,) = [s for s in page_of(answers).sections if s.title == "Risk and epsilon"]
    assert curve.table[1][0] == f"{answers.scenario.releases[0].name}, {names[1]}"


def test_a_column_that_nobody_is_after_narrows_the_verdict(tmp_path):
    """Read by a release, guessed by no attacker: the report does not simply accept."""
    text = """
[population]
builtin = "patients"
columns = ["smoker", "diagnosis"]
[[threats]]
name = "a stranger"
target = ["smoker"]
[[releases]]
name = "reports"
mechanism = "grr"
epsilon = 1.0
query = "diagnosis"
[accepted]
risk = 0.1
"""
    asked = scenario.load(_written(tmp_path / "a.toml", text))
    answers = scenario.answer(asked, plans=False, audits=False)
    assert answers.unasked == (
        "No attacker asked about guesses 'diagnosis', which is read by a release."
    )
    assert answers.to_dict()["unasked"] == answers.unasked
    said = html.unescape(html_of(answers))
    assert "Accepted for the attackers of the scenario only" in said and answers.unasked in said
    assert "publish as planned" not in said and "Add the other attackers" in said
    for target in ('target = ["smoker", "diagnosis"]', "", 'knows = "everything"'):
        more = text.replace('target = ["smoker"]', target).replace("risk = 0.1", "risk = 0.5")
        answers = scenario.answer(scenario.load(_written(tmp_path / "b.toml", more)), audits=False)
        assert answers.unasked == "" and "publish as planned" in html_of(answers)
    asks = text.replace('query = "diagnosis"', "query = 'diagnosis = \"asthma\"'")
    asks = asks.replace('"grr"', '"laplace"')
    answers = scenario.answer(scenario.load(_written(tmp_path / "d.toml", asks)), audits=False)
    assert "'diagnosis'" in answers.unasked
    tables = text.replace('mechanism = "grr"', 'counts = ["diagnosis"]\nnoise = "geometric"')
    tables = tables.replace('query = "diagnosis"', 'neighbours = "replace-one"')
    answers = scenario.answer(scenario.load(_written(tmp_path / "c.toml", tables)), audits=False)
    assert "'diagnosis'" in answers.unasked


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "sarif", "json", "ledger"])
def test_whom_it_was_not_decided_for_is_said_wherever_it_is_accepted(form, tmp_path, capsys):
    """Rounding does not matter here, nor does the way of asking."""
    file = _written(
        tmp_path / "s.toml",
        "[population]\nbuiltin = 'patients'\n[[threats]]\nname = 'everybody'\n"
        "target = ['smoker']\n[[releases]]\nname = 'r'\nmechanism = 'grr'\nepsilon = 5\n"
        "query = 'diagnosis'\n[accepted]\nrisk = 0.1\n",
    )
    narrow = "Accepted for the attackers of the scenario only"
    unasked = "No attacker asked about guesses 'diagnosis', which is read by a release."

    def said(*arguments):
        with pytest.raises(SystemExit) as done:
            main(list(map(str, arguments)))
        assert done.value.code == 0
        return capsys.readouterr().out

    if form == "json":
        assert unasked in said("assess", file, "--json")
        return
    if form != "ledger":
        told = said("assess", file, "--format", form)
        assert narrow in told and unasked in told
        return
    ledger = tmp_path / "l.jsonl"
    said("ledger", "init", ledger, "--scenario", file)
    page = tmp_path / "l.html"
    for told in (
        said("ledger", "add", ledger, "--name", "r"),
        said("ledger", "status", ledger, "-o", page),
        html.unescape(page.read_text()),
    ):
        assert narrow in told and unasked in told and "Accepted." not in told
    for command in ("status", "plan"):
        for options in ([], ["--json"]):
            assert unasked in said("ledger", command, ledger, *options)
    said("report", file, "--ledger", ledger, "-o", page)
    assert "publish as planned" not in page.read_text()
    # the scenario no longer has it, the ledger still does
    other = file.read_text().replace("query = 'diagnosis'", "query = 'smoker'")
    file.write_text(other.replace("epsilon = 5", "epsilon = 0.1").replace("'r'", "'s'"))
    said("report", file, "--ledger", ledger, "-o", page)
    told = html.unescape(page.read_text())
    assert told.count(narrow) == 2 and unasked in told and "publish as planned" not in told


def _written(path, text):
    path.write_text(text)
    return path
