"""The first page of a scenario's report: what the risk is, for whom, whether it is accepted, and
what to do. Made to be understood in half a minute.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

import dprad
from dprad.data.patients import PEOPLE as PATIENTS
from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.results import Risk
from dprad.model.verdicts import LITTLE, Verdict, apart, broken, headed, sure, upper
from dprad.numerics.arrays import Column
from dprad.show.plots.odds import grids
from dprad.show.scenario import Answers, Scenario
from dprad.show.scenario.advice import advice
from dprad.verbs.by_group import asked_by, banded
from dprad.verbs.shown_groups import OTHERS, large, merged
from dprad.verbs.together import composed, promise

# Most groups, and draws for each.
GROUPS, DRAWS = 8, 2_000
TOGETHER = "all together"
ESTIMATED = (
    "Numbers that are estimated, by simulation, are upper ends of 95% confidence intervals: each "
    "holds with that confidence."
)
OTHERS_TOO = "Add the other attackers to the scenario, and decide about them before you publish."
NOTHING = "No accepted risk is given, so this report does not judge."


@dataclass(frozen=True, slots=True)
class Cell:
    """A number and whether it is accepted: "yes", "no", "unknown" or "" where nothing is."""

    text: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class Front:
    """The input of the template."""

    word: str
    state: str
    sentence: str
    lead: str
    cards: tuple[tuple[str, str, str], ...]
    grids: tuple[tuple[str, str, list[str]], ...]
    asked: bool
    worst: bool
    todo: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    groups_by: str
    groups: tuple[tuple[str, str], ...]
    rests: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def front(answers: Answers, shown: Answers) -> Front:
    """From the answers, and the same rounded for publication."""
    scenario, verdict = answers.scenario, answers.verdict
    name, _ = answers.strongest
    place = [n for n, _ in scenario.threats].index(name)
    risk = shown.joint[place]
    by, groups = _groups(answers, name)
    state = {"accepted": "yes", "exceeded": "no", "cannot be told": "unknown"}
    made = Front(
        word=_word(answers),
        state="no" if answers.refuted else "" if verdict is None else state[verdict.outcome],
        sentence=_sentence(answers, risk),
        lead=_lead(risk, _what(scenario)),
        cards=_cards(scenario, name, risk),
        grids=tuple(grids(risk)),
        asked=explain.membership(risk.threat),
        worst=scenario.worst,
        todo=_todo(answers),
        heads=_heads(scenario),
        rows=_rows(answers, shown),
        groups_by=by,
        groups=groups,
        rests=(*risk.assumptions, *((ESTIMATED,) if _estimated(shown) else ())),
        facts=_facts(scenario),
    )
    if verdict is None:
        return made
    said = {"word": headed(verdict, answers.unasked), "sentence": f"{verdict} {answers.unasked}"}
    return narrowed(made, verdict.word, said)


def narrowed(front: Front, word: str, verdict: dict[str, Any]) -> Front:
    """Headed by another word than its own, if the verdict has one: with less than full consent."""
    if verdict["word"] == word:
        return front
    return replace(
        front,
        word=verdict["word"],
        state="unknown",
        sentence=verdict["sentence"],
        todo=(OTHERS_TOO,),
    )


def _word(answers: Answers) -> str:
    if answers.verdict is not None:
        return answers.verdict.word
    return "Promise broken" if answers.refuted else "Not judged"


def _sentence(answers: Answers, risk: Risk) -> str:
    if answers.verdict is not None:
        return _judged(answers.verdict, risk, answers.scenario)
    return broken(answers.refuted) if answers.refuted else NOTHING


def _estimated(shown: Answers) -> bool:
    risks = [*shown.joint, *(risk for row in shown.risks for risk in row)]
    return any("estimate" in (risk.kind, risk.worst_kind) for risk in risks)


def _judged(verdict: Verdict, risk: Risk, scenario: Scenario) -> str:
    """The verdict in words, with the rounded number."""
    if verdict.refuted:
        return f"{_these(scenario)} should not be published. {broken(verdict.refuted)}"
    whose = "for the most exposed person" if verdict.worst else "on average over people"
    found = upper(risk, worst=verdict.worst)
    within = verdict.outcome == "accepted"
    value = _in_100(min(found, verdict.limit) if within else found)
    kind = risk.worst_kind if verdict.worst else risk.kind
    upto = "" if kind == "exact" else "up to "
    limit, these = _in_100(verdict.limit), _these(scenario)
    more = f"an attacker is right {upto}{value} more times in 100 because a person took part"
    if explain.membership(risk.threat):
        more = (
            f"an attacker finds out {upto}{value} more times in 100 that a person's record was used"
        )
    if within:
        said = f"{these} may be published: {more}, {whose}; {limit} is accepted."
        most = upper(risk, worst=True)
        if not verdict.worst and most > verdict.limit:
            said += (
                f" For the most exposed person it may be {_in_100(most)}, which is above; no limit "
                "is set for one person."
            )
        return said + apart(risk, worst=verdict.worst)
    if verdict.outcome == "exceeded":
        return f"{these} should not be published as planned: {more}, {whose}; {limit} is accepted."
    found_is = f"The number found, {value} in 100, would be within the accepted {limit}, but it"
    if risk.doubts:
        return f"{found_is} cannot be relied on: {' '.join(risk.doubts)}"
    return (
        f"{found_is} cannot be relied on. The table says little about the population: {LITTLE}. "
        "Choose fewer columns or coarser values, or say in the scenario that the table is the "
        "whole population (whole = true)."
    )


def _these(scenario: Scenario) -> str:
    many = len(scenario.releases)
    return f"These {many} releases" if many > 1 else "This release"


def _in_100(value: float) -> str:
    """So many in 100: whole, unless it is given in smaller parts."""
    return f"{round(100 * value, 4):g}"


def _lead(risk: Risk, what: str) -> str:
    """The sentence with the odds, without the method, which is for experts."""
    said = explain.sentence(risk, named=False)
    said = re.sub(r" \([^()]*(\([^()]*\)[^()]*)*\)\.$", ".", said)
    return f"With {what}, {said[0].lower()}{said[1:]}"


def _what(scenario: Scenario) -> str:
    many = len(scenario.releases)
    return f"all {many} releases together" if many > 1 else scenario.releases[0].name


def _cards(scenario: Scenario, name: str, risk: Risk) -> tuple[tuple[str, str, str], ...]:
    """So many more times in 100: the average, the most exposed person, what is accepted."""
    average = f"{'' if risk.kind == 'exact' else 'up to '}{_in_100(risk.interval[1])} in 100"
    cards = [("On average over people", average, f"{_what(scenario)}, against {name}")]
    if risk.worst_interval is not None:
        note = "one person, whose record stands out most, and the attacker who gains most from it"
        most = f"up to {_in_100(risk.worst_interval[1])} in 100"
        cards.append(("Most exposed person", most, note))
    if scenario.accepted is not None:
        whose = "for the most exposed person" if scenario.worst else "on average over people"
        who = f"; set by {scenario.decided['by']}" if "by" in scenario.decided else ""
        cards.append(("Accepted limit", f"{_in_100(scenario.accepted)} in 100", whose + who))
    return tuple(cards)


def _todo(answers: Answers) -> tuple[str, ...]:
    """What to change, if the accepted risk is not kept."""
    verdict = answers.verdict
    if answers.refuted:
        return (
            "Repair the implementation, and audit it again. More noise in the plan does not help.",
        )
    if verdict is None:
        return ("Decide which extra risk is acceptable, and write it into the scenario.",)
    if verdict.outcome == "accepted":
        return ("Nothing: publish as planned. Ask again if a release is added or repeated.",)
    if verdict.outcome == "cannot be told" and verdict.risk.doubts:
        return ("Remove the doubt, and ask again. More noise does not remove it.",)
    found = advice(answers)
    lines = []
    if found is not None:
        lines.append("Add noise. These values together would keep the accepted risk, for every "
                     "attacker here:")  # fmt: skip
        lines += [f"{name}: {key} = {new} (now {old})" for name, key, old, new in found.changes]
    else:
        lines.append("No amount of noise was found that keeps the accepted risk.")
    if len(answers.scenario.releases) > 1:
        lines.append("Or publish fewer of them: together they tell more than each alone.")
    if verdict.outcome == "cannot be told":
        lines.append("Or choose fewer columns or coarser values, so that fewer rows are unique.")
    return tuple(lines)


def _heads(scenario: Scenario) -> tuple[str, ...]:
    names = tuple(release.name for release in scenario.releases)
    return ("attacker", *((TOGETHER,) if len(names) > 1 else ()), *names)


def _rows(answers: Answers, shown: Answers) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
    """Attackers by releases, those who gain most first."""
    scenario = answers.scenario
    rows = []
    for k, (name, _) in enumerate(scenario.threats):
        exact = [row[k] for row in answers.risks]
        rounded = [row[k] for row in shown.risks]
        if len(exact) > 1:
            exact, rounded = [answers.joint[k], *exact], [shown.joint[k], *rounded]
        cells = [_cell(scenario, e, r) for e, r in zip(exact, rounded, strict=True)]
        rows.append((upper(shown.joint[k], worst=scenario.worst), name, tuple(cells)))
    rows.sort(key=lambda row: -row[0])
    return tuple((name, cells) for _, name, cells in rows)


def _cell(scenario: Scenario, exact: Risk, rounded: Risk) -> Cell:
    worst = scenario.worst
    text = explain.above(upper(rounded, worst=worst))
    if scenario.accepted is None:
        return Cell(text)
    if upper(exact, worst=worst) > scenario.accepted:
        return Cell(text, "no")
    return Cell(text, "yes" if sure(exact, scenario.accepted, worst=worst) else "unknown")


def _groups(answers: Answers, name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The groups that are exposed most, of one column; never a group of fewer than ten people."""
    scenario = answers.scenario
    question: Question = dict(scenario.questions)[name]
    prior = scenario.prior
    column = _column(scenario)
    if column is None:
        return "", ()
    names, label = banded(prior.column(column), prior.table)
    share = np.bincount(label, weights=prior.table, minlength=len(names))
    many = large(label, prior.table, _people(scenario))
    if len(many) < 2:
        return "", ()
    order = many[np.argsort(share[many])]
    chosen = order if len(order) <= GROUPS else np.r_[order[: GROUPS - 1], order[-1]]
    # everybody else is one group, which is not shown
    listed, place = merged(names, label, chosen)
    try:
        subject, posed = _subject(answers, question)
        table = asked_by(subject, posed, Sampling(trials=DRAWS), listed, place)
    except DpradError:
        return "", ()
    rows = []
    for group in table:
        if group.name is OTHERS:
            continue
        risk = explain.above(_up(group.interval[1]))
        rows.append((str(group.name), risk))
    return column, tuple(rows)


def _people(scenario: Scenario) -> float:
    """How many people were counted; 0 if that is not known, as with weights."""
    about = scenario.population
    counts = about.get("counts", {}).values()
    if "weight" in about or not all(float(n).is_integer() for n in counts):
        return 0.0
    return float(sum(counts) or (PATIENTS if "builtin" in about else scenario.prior.rows or 0))


def _up(value: float) -> float:
    """Up to hundredths."""
    return float(min(1.0, np.ceil(value * 100 - 1e-9) / 100))


def _column(scenario: Scenario) -> str | None:
    """The column that is guessed, or the first; none of numbers, whose bands would tell its
    range.
    """
    prior = scenario.prior
    if prior.kind != "finite":
        return None
    targets = [t.target[0] for _, t in scenario.threats if t.target and len(t.target) == 1]
    named = [*dict.fromkeys(targets), *prior.columns]
    return next((c for c in named if _words(prior.column(c))), None)


def _words(values: Column) -> bool:
    if values.dtype.kind == "O":
        return all(isinstance(v, str) for v in values if v is not None)
    return values.dtype.kind == "U"


def _subject(answers: Answers, question: Question) -> tuple[Any, Question]:
    """All releases as one subject: mechanisms where all are, else the composed promise."""
    releases = answers.scenario.releases
    subjects = [r.subject(question.prior, question.threat) for r in releases]
    if len(subjects) == 1:
        return subjects[0], releases[0].posed(question)
    posed = replace(question, query=None)
    parts = list(zip(subjects, (r.query for r in releases), strict=True))
    subject = composed(parts) or promise(parts)
    if subject is None:
        raise DpradError("one of the releases promises nothing.")
    return subject, posed


def _facts(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """When, by what, from what, and who accepted what."""
    facts = [("Made on", f"{datetime.now(UTC):%Y-%m-%d}"), ("dprad", dprad.__version__)]
    if "counts" not in scenario.population:  # few counts could be found by trying
        facts.append(("Scenario", _digest(scenario.text.encode())))
    if scenario.source is not None:
        facts.append(("Data", f"SHA-256 {scenario.source.sha256()}"))
    if {"by", "on"} & set(scenario.decided):
        who = scenario.decided.get("by", "")
        when = f" on {scenario.decided['on']}" if "on" in scenario.decided else ""
        facts.append(("Limit set by", f"{who}{when}".strip()))
    return tuple(facts)


def _digest(text: bytes) -> str:
    return f"SHA-256 {hashlib.sha256(text).hexdigest()}"
