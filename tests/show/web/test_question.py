"""The questions of the page, without a browser: the page says what a scenario and a report say."""

from __future__ import annotations

import asyncio
import html
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess, patients
from dprad.data.overview import Seen
from dprad.model import explain
from dprad.show.report.page import html_of
from dprad.show.scenario import answer, builtin
from dprad.show.scenario.file import parse
from dprad.show.web import population, tables
from dprad.show.web.app import ask_each
from dprad.show.web.drawn import answer as answered
from dprad.show.web.drawn import so_far, verdict
from dprad.show.web.guard import forgotten
from dprad.show.web.population import PROMISE, from_file, of_scenario, picked, released, toml_of
from dprad.show.web.question import Question, Told
from dprad.verbs.attackers import standard
from effort import part_of

PLACE = population.patients()
GRR = released(PLACE, "grr", 1.0, reads="diagnosis")
WEAK = released(PLACE, "grr", 0.1, reads="smoker")
ADDED = released(PLACE, PROMISE, 0.1, delta=1e-5, neighbours="add-remove")
TABLE = released(PLACE, "counts", 0.2, reads="diagnosis", neighbours="add-remove")
MU = released(PLACE, "promise-mu", 0.05, neighbours="replace-one")


def told(asked):
    return Told(asked, tuple(asked.risks(k)[0] for k in range(len(asked.attackers))))


@pytest.mark.parametrize(
    ("releases", "worst"),
    part_of([((GRR,), False), ((GRR,), True), ((ADDED,), False), ((MU,), True), ((TABLE,), False),
     ((TABLE,), True), ((GRR, WEAK), True), ((WEAK, ADDED, MU), False)], 4),
)  # fmt: skip
def test_the_verdict_is_that_of_the_scenario(releases, worst):
    asked = Question(
        population=PLACE, attackers=tuple(standard(patients.prior())), releases=releases,
        accepted=0.1, worst=worst, standard=True,
    )  # fmt: skip
    page = told(asked)
    again = answer(parse(asked.toml(), name="again", folder=Path()), plans=False, audits=False)
    assert again.verdict is not None and page.verdict is not None
    assert str(page.verdict) == str(again.verdict) and page.verdict.word == again.verdict.word
    assert (page.cases[0][0], str(page.cases[0][1])) == (
        again.strongest[0], str(again.strongest[1]),
    )  # fmt: skip
    if releases in ((GRR,), (TABLE,)):
        report = html.unescape(html_of(answer(asked.scenario(), plans=False, audits=False)))
        assert page.verdict.word in report


@pytest.mark.parametrize("reads", ["", "b"])
def test_tables_of_numbers(reads):
    """Offered where there are numbers; the scenario file that the page gives asks the same."""
    one = population.uniform(20)
    pairs = {("x", 5): 3, ("y", 5): 1, ("x", 25): 2}
    prior = Prior.from_counts(pairs, columns=["a", "b"])
    place = replace(one, prior=prior) if reads else one
    offered = population.readable(place)
    for kind in ("histogram", "sums", "mean"):
        assert offered[kind] == (reads,)
        release = released(place, kind, 1.0, reads=reads, neighbours="add-remove")
        risk = assess(release.subject(place.prior, Threat()), prior=place.prior, trials=500)
        assert 0 < risk.rad < 1
        lines = [f"{k} = {toml_of(v)}" for k, v in release.keys.items()]
        begin = "[population]\nuniform = 20\n[[releases]]\n"
        if not reads:
            again = parse(begin + "\n".join(lines), name="again", folder=Path())
            assert again.releases[0].numbers == release.numbers
    assert "histogram" not in population.readable(PLACE)
    several = released(PLACE, "marginals", 1.0, neighbours="add-remove")
    assert several.keys["marginals"] == [[name] for name in PLACE.prior.columns]


def test_a_scenario_comes_back_as_it_was(tmp_path):
    own = builtin()
    place = of_scenario(own)
    asked = Question(
        population=place, attackers=place.attackers, releases=place.releases, accepted=own.accepted
    )
    again = parse(asked.toml(), name="again", folder=tmp_path)
    assert again.threats == own.threats and len(again.releases) == len(own.releases)
    assert str(told(asked).verdict) == str(answer(own, plans=False, audits=False).verdict)


def test_enough_noise_is_enough_for_every_attacker():
    asked = Question(
        population=PLACE, attackers=tuple(standard(patients.prior())), releases=(GRR,),
        accepted=0.05, standard=True,
    )  # fmt: skip
    for name, _ in asked.attackers[:3]:
        plan = asked.plan(name)
        changed = Question(
            population=PLACE, attackers=asked.attackers, releases=(GRR.at(plan.value),),
            accepted=0.05,
        )  # fmt: skip
        assert told(changed).verdict.outcome == "accepted"
    both = Question(
        population=PLACE, attackers=asked.attackers, releases=(GRR, ADDED), accepted=0.05
    )
    changes = {name: float(new) for name, _, _, new in both.plan("").changes}
    made = tuple(r.at(changes[r.name]) for r in both.releases)
    kept = Question(population=PLACE, attackers=asked.attackers, releases=made, accepted=0.05)
    assert told(kept).verdict.outcome == "accepted"


def test_columns_that_are_picked_at_first():
    def seen(*distinct):
        return [Seen(f"c{i}", "text", d, True) for i, d in enumerate(distinct)]

    assert picked(seen(1, 2, 50_000, 3)) == ["c1", "c3"]
    assert picked(seen(60_000)) == ["c0"] and picked(seen(1, 1)) == ["c0"]
    assert len(picked(seen(*[2] * 15))) == population.PICKED
    assert picked([Seen("long", "text", 2, False), *seen(4)]) == ["c0"]


def test_fifteen_columns_are_a_choice_and_thirteen_too_many(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(15)]
    path.write_text(
        ",".join(names) + "\n" + "".join(",".join("01"[i % 2] * 15) + "\n" for i in range(9))
    )
    assert [s.name for s in population.look(str(path), "wide.csv")] == names
    place = from_file(str(path), "wide.csv", names[:3])
    assert place.prior.columns == tuple(names[:3]) and "columns = " in place.toml
    with pytest.raises(DpradError, match="13 columns are picked"):
        from_file(str(path), "wide.csv", names[:13])


def test_a_table_of_unique_rows_proves_nothing_unless_it_is_everybody(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,born\n" + "".join(f"{i},{1900 + i % 90}\n" for i in range(400)))
    place = from_file(str(path), "people.csv", ["zip", "born"])
    weak = released(place, PROMISE, 0.01)
    asked = {"attackers": (("a stranger", Threat()),), "releases": (weak,), "accepted": 0.002}
    assert told(Question(population=place, **asked)).verdict.word == "Cannot be told"
    sure = Question(population=place.whole(), **asked)
    assert told(sure).verdict.word == "Accepted"
    assert parse(sure.toml(), name="again", folder=tmp_path).prior.whole
    assert "whole=True" in sure.python() and "scenario.toml" in sure.command()


def test_the_largest_risk_so_far_is_told_as_such():
    asked = Question(population=PLACE, attackers=tuple(standard(patients.prior())), releases=(GRR,))
    found = told(asked)
    last = len(asked.attackers) - 1
    said = str(so_far(asked, {last: found.risks[last]}))
    assert f"1 of {last + 1} attackers" in said and "others may be larger" in said
    assert asked.attackers[last][0] in said and explain.number(found.risks[last][0]) in said
    everybody = str(so_far(asked, dict(enumerate(found.risks))))
    assert found.cases[0][0] in everybody  # the strongest, whatever the order
    assert "sofar" not in str(so_far(asked, {}))


@pytest.mark.parametrize("kind", ["histogram", "sums", "mean"])
def test_tables_of_the_page_do_not_show_the_ends_of_a_column(kind):
    incomes = Prior.from_counts({20_000 + 10 * i: 1 for i in range(60)} | {987_653: 1})
    made = tables.table(incomes, kind, "", {"epsilon": 1.0}, "add-remove")
    told = made.name + str(made.numbers)
    assert "987653" not in told and "987_653" not in told and "fix your own" in made.name
    assert "1e+06" in made.name


def test_what_the_page_proposes_tells_no_value(tmp_path):
    """Ends of bins and clamps are multiples of a power of ten above the range."""
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "age": np.r_[rng.integers(20, 90, 399), 110], "children": np.r_[rng.integers(0, 5, 399), 7],
        "year": rng.integers(1987, 2005, 400), "ill": rng.integers(0, 2, 400),
        "share": rng.uniform(0.013, 0.92, 400),
    })  # fmt: skip
    prior = Prior.from_data(table)
    ends = {"age": (0, 200), "children": (0, 10), "year": (1900, 2100), "ill": (0, 1)}
    for name, expected in (ends | {"share": (0.0, 1.0)}).items():
        assert tables._span(prior, name) == expected


def test_the_page_says_whom_it_was_not_decided_for():
    """A release of what no attacker is after: not plainly accepted, as everywhere else."""
    attackers = (("n", Threat(target=["smoker"])),)
    strong = released(PLACE, "grr", 8.0, reads="diagnosis")
    found = told(Question(population=PLACE, attackers=attackers, releases=(strong,), accepted=0.1))
    assert found.verdict.outcome == "accepted"
    assert "Accepted for the attackers of the scenario only" in str(verdict(found))
    said = html.unescape(str(answered(found)))
    assert "No attacker asked about guesses 'diagnosis'" in said


def test_no_path_of_the_server_is_in_an_error_of_an_upload():
    path = "/somewhere/fileupload/0.csv\n\x1b[31m"
    error = DpradError(f"data must be a file, but is {path!r}; {path} is not there.")
    assert "somewhere" not in str(population._named(error, path, "a.csv\n\x1b[31m"))
    assert "\x1b" not in str(population._named(error, path, "a.csv\n\x1b[31m"))


def test_what_nobody_asked_about_is_told_without_any_game(monkeypatch):
    """It is told where the page is served: a large game there would keep everybody waiting."""
    asked = Question(
        population=PLACE, attackers=tuple(standard(patients.prior()))[1:2], releases=(GRR,),
        accepted=0.1, worst=False, standard=False,
    )  # fmt: skip
    monkeypatch.setattr("dprad.game.question.play", lambda *_: pytest.fail("a game was prepared"))
    assert "guesses 'diagnosis'" in Told(asked, ()).unasked


@pytest.mark.parametrize(("takes", "given"), [(19.9, [20, 20, 20, 0.3]), (1, [20, 20, 20, 20])])
def test_all_attackers_together_get_a_minute(takes, given):
    four = tuple(standard(patients.prior())[:1] * 4)
    asked = Question(population=PLACE, attackers=four, releases=(GRR,))
    got, rows = [], {}

    class Taken:
        async def run(self, work, question, k, *, seconds, late):
            got.append(seconds)
            if takes > seconds:
                raise DpradError(late)
            return k, takes

    if takes > given[-1]:
        with pytest.raises(DpradError, match="takes more than 60 seconds"):
            asyncio.run(ask_each(asked, Taken(), rows))
    else:
        asyncio.run(ask_each(asked, Taken(), rows))
    assert got == pytest.approx(given) and all(rows[k] == k for k in rows)


def test_an_upload_that_is_replaced_is_deleted_and_no_other_file(tmp_path):
    folder, other = tmp_path / "uploads", tmp_path / "other"
    (folder / "job").mkdir(parents=True)
    for file in (folder / "job" / "0.csv", other):
        file.write_text("a,b\n")
        forgotten(str(file), folder)
    (folder / "link").symlink_to(other)
    for odd in ("", os.devnull, folder / "link", folder / "job", folder / "none", None):
        forgotten(odd, folder)
    assert other.exists() and list((folder / "job").iterdir()) == []
