"""The sections of a report: each a heading, sentences, a figure and the table behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dprad
from dprad.data.patients import PEOPLE
from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.mechanisms.catalogue import NUMBERS, TABLES
from dprad.model import explain
from dprad.model.audits import Audit
from dprad.model.comparisons import Comparison
from dprad.model.parameters import TV
from dprad.model.results import Calibration, Risk
from dprad.runtime.progress import steps
from dprad.show import plots, ranges
from dprad.show.plots.odds import grids
from dprad.show.plots.style import svg
from dprad.show.ranges import Useful, restated, useful
from dprad.show.report.published import coarse, published, two_digits, why
from dprad.show.scenario import Answers, Scenario
from dprad.show.scenario.advice import keeps
from dprad.show.scenario.release import Release
from dprad.verbs.compare import compared as side_by_side

# Number of values on a curve, and its range around the value in use.
POINTS, REACH = 25, 4.0
# Most bars in a figure.
BARS = 12


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences, a figure (SVG) and its table (first row: the headings)."""

    title: str
    text: tuple[str, ...] = ()
    figure: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    code: str = ""


def attackers(answers: Answers) -> Section:
    """Every attacker against every release."""
    scenario = answers.scenario
    rows = [("attacker", "release", "extra risk", "not in the data", "in the data", "known as")]
    for (threat, _), column in zip(scenario.threats, zip(*answers.risks, strict=True), strict=True):
        for release, risk in zip(scenario.releases, column, strict=True):
            out = (
                "" if risk.success_out is None else f"{explain.count(risk.success_out, 100)} of 100"
            )
            inside = (
                "" if risk.success_in is None else f"{explain.count(risk.success_in, 100)} of 100"
            )
            kinds = {"exact": "exact", "estimate": "estimate", "upper-bound": "bound"}
            rows.append((threat, release.name, explain.number(risk), out, inside, kinds[risk.kind]))
    named: dict[str, Risk] = {}
    for release, row in zip(scenario.releases, answers.risks, strict=True):
        for (threat, _), risk in zip(scenario.threats, row, strict=True):
            name = f"{threat}: {release.name}"
            named[name if name not in named else f"{name} ({len(named) + 1})"] = risk
    shown = dict(list(named.items())[:BARS])
    figure = svg(
        lambda ax: plots.plot_knowledge(shown, ax),
        label="Chance that each attacker is right, with and without the person in the data",
        size=(6.6, 1.1 + 0.42 * len(shown)),
    )
    text = []
    if len(named) > len(shown):
        text.append(f"The figure shows the first {len(shown)} of {len(named)}; the table has more.")
    return Section("The attackers", tuple(text), figure, tuple(rows))


def bounds(answers: Answers, most: Sequence[int]) -> list[Section]:
    """The table of bounds behind the first promise, against the attacker who gains `most`."""
    for release, row, j in zip(answers.scenario.releases, answers.risks, most, strict=True):
        risk = row[j]
        if not risk.bounds:
            continue
        valid = [b for b in risk.bounds if b.measure == "rad" and b.value is not None]
        figure = svg(
            lambda ax, r=risk: plots.plot_bounds(r, ax),  # type: ignore[misc]
            label="All bounds that apply",
            size=(6.6, 0.9 + 0.33 * len(valid)),
        )
        rows = [("bound", "extra risk, at most", "from")]
        rows += [(b.title, explain.above(b.value or 0.0), b.source) for b in valid]
        said = f"What follows from the promise alone ({release.name}). The smallest bound counts."
        return [Section("Bounds", (said,), figure, tuple(rows))]
    return []


def curves(answers: Answers, most: Sequence[int]) -> list[Section]:
    """Risk against the noise, for every release that shares the parameter and the attacker who
    gains `most` from it.
    """
    scenario = answers.scenario
    groups: dict[str, list[int]] = {}
    for k, release in enumerate(scenario.releases):
        groups.setdefault(release.parameter, []).append(k)
    sections = []
    for parameter, members in groups.items():
        if NUMBERS[parameter] is TV:
            continue
        lines, rows = {}, [("release", parameter, "extra risk")]
        used = [scenario.releases[k].numbers[parameter] for k in members]
        values = sorted({*_grid(min(used), max(used)), *used})
        at: dict[str, float] = {}
        for k in members:
            release = scenario.releases[k]
            threat_name, question = scenario.questions[most[k]]
            risks = _line(release, question, values)
            if risks is None:
                continue
            name = f"{release.name}, {threat_name}"
            lines[name] = (values, risks)
            at[name] = release.numbers[parameter]
            rows += [
                (name, explain.amount(v), explain.number(r))
                for k_, (v, r) in enumerate(zip(values, risks, strict=True))
                if k_ % 4 == 0 or v == at[name]
            ]
        if not lines:
            continue
        figure = svg(
            lambda ax, many=lines, p=parameter, at=at: plots.plot_risk(  # type: ignore[misc]
                many, ax=ax, parameter=p, accepted=scenario.accepted, at=at
            ),
            label=f"Extra risk against {parameter}",
        )
        said = (
            f"How the extra risk changes with {parameter}, for the attacker who gains most. The "
            "dot is the value in use."
        )
        sections.append(Section(f"Risk and {parameter}", (said,), figure, tuple(rows)))
    return sections


def compared(answers: Answers) -> list[Section]:
    """Risk against error of the mechanisms, if several read the same."""
    scenario = answers.scenario
    attacker, question = scenario.questions[0]
    run = [r for r in scenario.releases if r.mechanism is not None]
    if len(run) < 2 or any(r.query != run[0].query or r.mechanism in TABLES for r in run):
        return []
    try:
        subjects = [r.subject(question.prior, question.threat) for r in run]
        table = side_by_side(subjects, run[0].posed(question), Sampling())
    except DpradError:
        return []
    releases = {id(subject): release for subject, release in zip(subjects, run, strict=True)}
    shown, numbers = restated(table, lambda made: useful_of(scenario, releases[id(made)], made))
    figure, rows = _comparison(published(shown), [one.relative for one in numbers])
    said = [f"What each mechanism costs in accuracy. The attacker: {attacker}."]
    said += [ranges.SAID] if any(one.relative for one in numbers) else []
    return [Section("Risk and usefulness", tuple(said), figure, rows)]


def tables(answers: Answers) -> list[Section]:
    """What the noise does to published tables. Shares are rounded up to 5%: they follow from how
    many people have rare values.
    """
    scenario = answers.scenario
    rows: list[tuple[str, ...]] = [
        ("release", "table", "typical noise", "95% error", "cells with more noise than count")
    ]
    people = PEOPLE if "builtin" in scenario.population else None
    for release in scenario.releases:
        if release.mechanism not in TABLES:
            continue
        made = release.subject(scenario.prior, scenario.threats[0][1])
        for table in made.quality(scenario.prior, people):
            known = table.swamped
            share = "" if known is None else f"about {100 * coarse(known):.0f}%"
            noise = (explain.amount(two_digits(x)) for x in (table.typical, table.error))
            rows.append((release.name, table.title, *noise, share))
    said = (
        "What is left of the tables: the mean size of the noise of a cell, what it stays within in "
        "95 of 100 cells, and the share of cells (with somebody in them) whose noise exceeds the "
        "number itself."
    )
    return [Section("How useful the tables are", (said,), "", tuple(rows))] if rows[1:] else []


def useful_of(scenario: Scenario, release: Release, made: Any) -> Useful:
    """Error and variance of a release's mechanism, without the range of the data."""
    public = bool(ranges.PUBLIC & set(scenario.population)) or release.asks(scenario.prior)
    noise = {release.parameter: getattr(made, release.parameter)}
    return useful(made, str(release.mechanism), release.numbers | noise, public=public)


def _comparison(table: Comparison, relative: list[bool]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """A figure, if all errors have one unit, and the table."""
    rows: list[tuple[str, ...]] = [("mechanism", "extra risk", "95% error", "variance", "unbeaten")]
    for c, units in zip(table, relative, strict=True):
        numbers = Useful(c.error, c.variance, units).said
        rows.append((c.name, explain.number(c.risk), *numbers, "yes" if c.frontier else ""))
    drawn = {
        units
        for c, units in zip(table, relative, strict=True)
        if c.error is not None or c.variance is not None
    }
    if len(drawn) != 1:
        return "", tuple(rows)
    label = "error, in units of the range" if drawn == {True} else "error (smaller is more useful)"
    figure = svg(
        lambda ax: plots.plot_frontier(table, ax).set_xlabel(label), label="Risk against error"
    )
    return figure, tuple(rows)


def _line(release: Release, question: Question, values: list[float]) -> list[Risk] | None:
    try:
        asked = Sampling(trials=2000)
        return [
            published(release.at(v).risk(question, asked, own=False))
            for v in steps("points of the curve", values)
        ]
    except DpradError:
        return None


def _grid(low: float, high: float) -> list[float]:
    if high <= 0:
        return [0.1 * i for i in range(1, POINTS)]
    a, b = max(low, high / 100) / REACH, high * REACH
    return [a * (b / a) ** (i / (POINTS - 1)) for i in range(POINTS)]


def noise(answers: Answers) -> list[Section]:
    """How much noise each release needs for the accepted risk."""
    scenario = answers.scenario
    if scenario.accepted is None:
        return []
    rows = [("release", "attacker", "set", "to", "95% error")]
    text = []
    alone_ = ", if it were the only release" if len(scenario.releases) > 1 else ""
    for release, plans, reasons in zip(
        scenario.releases, answers.plans, answers.reasons, strict=True
    ):
        safest = None
        for (threat, _), plan, reason in zip(scenario.threats, plans, reasons, strict=True):
            if plan is None:
                rows.append((release.name, threat, "", why(reason), ""))
                continue
            error = _error(scenario, release, plan)
            value = explain.safely(plan.value, plan.rising)
            rows.append((release.name, threat, plan.parameter, value, error))
            better = safest is None or (plan.value < safest.value) == plan.rising
            safest = plan if better else safest
        if safest is None:
            continue
        # what one attacker needs may not be enough for another where risk is not monotone
        chosen = release.at(safest.value)
        if alone(scenario, chosen, [question for _, question in scenario.questions]):
            value = explain.safely(safest.value, safest.rising)
            text.append(
                f"{release.name}{alone_}: {safest.parameter} = {value} keeps the extra risk at or "
                f"below {scenario.accepted:g} for every attacker here."
            )
    return [
        Section(
            f"Noise for an accepted risk of {scenario.accepted:g}", tuple(text), "", tuple(rows)
        )
    ]


def _error(scenario: Scenario, release: Release, plan: Calibration) -> str:
    """The error of a plan, in units of the range if that is the data's."""
    if plan.error is None or release.mechanism is None:
        return ""
    found = useful_of(scenario, release, plan.mechanism)
    return replace(found, error=None if found.error is None else two_digits(found.error)).said[0]


def alone(scenario: Scenario, release: Release, questions: Sequence[Question]) -> bool:
    """Whether a release alone stays within the accepted risk against these attackers."""
    try:
        return keeps(scenario, [release], questions)
    except DpradError:
        return False


def audit(result: Audit, title: str) -> Section:
    """The result of an audit."""
    figure = ""
    rows: tuple[tuple[str, ...], ...] = ()
    if result.trace:
        figure = svg(lambda ax: plots.plot_audit(result, ax), label="The course of the audit")
        rows = (
            ("runs", "certified epsilon", "estimate"),
            *(
                (f"{t:,}", explain.below(low), "" if e is None else f"{e:.3f}")
                for t, low, e in result.trace
            ),
        )
    return Section(title, tuple(str(result).split("\n")), figure, rows)


def again(scenario: Scenario, command: str) -> Section:
    """The scenario file behind the report."""
    text = (
        f"Made by dprad {dprad.__version__} from this scenario file"
        + (f", with: {command}" if command else "")
        + ".",
    )
    # counts of people are private
    code = "(It contains counts of the population, so it is not shown.)"
    code = code if "counts" in scenario.population else scenario.text
    return Section("Reproduce this report", text, code=code)


def result_section(result: Any, prefix: str) -> Section:
    """One result as a section of its own."""
    if isinstance(result, Risk):
        details = tuple(line for line in explain.details(result).split("\n") if line.strip())
        figure = svg(lambda ax: plots.plot_odds(result, ax), label=_label(result), size=(5.6, 2.9))
        if result.bounds:
            count = sum(b.applies and b.measure == "rad" for b in result.bounds)
            figure = svg(
                lambda ax: plots.plot_bounds(result, ax),
                label="Bounds",
                size=(6.6, 0.9 + 0.33 * count),
            )
        return Section(f"{prefix}Risk of {result.subject['kind']}", (str(result), *details), figure)
    if isinstance(result, Calibration):
        return Section(f"{prefix}Noise for {result.family}", tuple(str(result).split("\n")))
    if isinstance(result, Comparison):
        figure, rows = _comparison(result, [False] * len(result))
        return Section(f"{prefix}Comparison", (), figure, rows)
    return audit(result, f"{prefix}Audit")


def _label(risk: Risk) -> str:
    return ". ".join(f"{title}: {count}" for title, count, _ in grids(risk))
