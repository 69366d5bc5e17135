"""Results in, one self-contained HTML file out.

The first screen is the sentence, the dots, the number and what it rests on. Then attackers,
releases, noise, audits, each figure with its table, and how to make the report again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.mechanisms.catalogue import NUMBERS
from dprad.model import explain
from dprad.model.parameters import TV
from dprad.model.results import Audit, Calibration, Comparison, Risk
from dprad.show import plots
from dprad.show.plots.odds import grids
from dprad.show.plots.style import svg
from dprad.show.report.published import SAID as ROUNDED
from dprad.show.report.published import published, why
from dprad.show.scenario import Answers, Scenario, answer
from dprad.show.scenario.release import Release
from dprad.verbs.compare import compared

# Values of the noise parameter on a curve, and how far it goes from the value in use.
POINTS, REACH = 25, 4.0
# A table longer than this is cut, and says so.
LONGEST = 60
# Bars in a figure, and sentences before it.
BARS, SAID = 12, 6


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences, a figure (SVG) and its table (first row: the heads)."""

    title: str
    text: tuple[str, ...] = ()
    figure: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    code: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What the template is given."""

    title: str
    lead: str
    risk: Risk | None
    grids: tuple[tuple[str, str, list[str]], ...]
    number: str
    verdict: str
    assumptions: tuple[str, ...]
    sections: tuple[Section, ...] = field(default_factory=tuple)
    asked: bool = False  # whether it is only asked if the record was used
    note: str = ROUNDED


def report(results: Any, path: Any, *, title: str = "What does epsilon mean here?") -> Path:
    """Write results of `assess`, `calibrate`, `compare` and `audit` as one HTML file.

    Parameters
    ----------
    results
        A result, or a list of them in any mixture.
    path
        The file to write.
    title
        The headline.

    """
    found = list(results) if isinstance(results, list | tuple) else [results]
    if not found:
        raise DpradError("report needs at least one result, but the list is empty.")
    for result in found:
        if not isinstance(result, Risk | Calibration | Comparison | Audit):
            raise DpradError(
                "report takes results of assess, calibrate, compare and audit, but got a "
                f"{type(result).__name__}."
            )
    found = [published(result) for result in found]
    sections = [_any(result, f"{i}. ") for i, result in enumerate(found, 1)]
    risks = [r.risk if isinstance(r, Calibration) else r for r in found]
    risks = [r for r in risks if isinstance(r, Risk)]
    top = max(risks, key=lambda r: r.interval[1]) if risks else None
    lead = str(top) if top is not None else str(found[0]).split("\n")[0]
    return _write(_page(title, lead, top, "", tuple(sections)), path)


def report_scenario(
    scenario: Scenario, path: Any, *, command: str = "", allow_code: bool = False
) -> Path:
    """Answer every question of a scenario and write the report, but not over what it reads."""
    out = Path(path).resolve()
    data = scenario.population.get("data")
    inputs = [Path(scenario.name), *([] if data is None else [scenario.folder / str(data)])]
    for read in inputs:
        if read.exists() and out == read.resolve():
            raise DpradError(f"{path} is read for this report; write it to another file.")
    found = answer(scenario, allow_code=allow_code)
    return _write(page_of(found, command), path)


def html_of(found: Answers, command: str = "") -> str:
    """The report of a scenario's answers, as text."""
    return _render(page_of(found, command))


def page_of(found: Answers, command: str = "") -> Page:
    """All sections of a scenario's report; the first release is told first."""
    scenario = found.scenario
    accepted, exceeded = scenario.accepted, found.exceeded
    found = replace(
        found,
        risks=tuple(tuple(map(published, row)) for row in found.risks),
        plans=tuple(tuple(p and published(p) for p in row) for row in found.plans),
        reasons=tuple(tuple(map(why, row)) for row in found.reasons),
        audits=tuple((name, published(result)) for name, result in found.audits),
    )
    first = max(found.risks[0], key=lambda r: r.interval[1])
    release, threat, worst = found.worst
    verdict = []
    if worst is not first:
        verdict.append(f"Largest here: {explain.number(worst)} ({release}, against {threat}).")
    if accepted is not None:
        word = "may exceed" if exceeded else "stays within"
        verdict.append(f"The extra risk {word} the accepted {accepted:g}.")
    sections = [
        _attackers(found),
        *_bounds(found),
        *_curves(found),
        *_compared(found),
        *_noise(found),
        *[_audit(result, f"Audit: {name}") for name, result in found.audits],
        _again(scenario, command),
    ]
    return _page(scenario.title, str(first), first, " ".join(verdict), tuple(sections))


# -- sections --------------------------------------------------------------------------------------
def _attackers(found: Answers) -> Section:
    scenario = found.scenario
    rows = [("attacker", "release", "extra risk", "not in the data", "in the data", "known as")]
    for (threat, _), column in zip(scenario.threats, zip(*found.risks, strict=True), strict=True):
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
    for release, row in zip(scenario.releases, found.risks, strict=True):
        for (threat, _), risk in zip(scenario.threats, row, strict=True):
            name = f"{threat}: {release.name}"
            named[name if name not in named else f"{name} ({len(named) + 1})"] = risk
    shown = dict(list(named.items())[:BARS])
    figure = svg(
        lambda ax: plots.plot_knowledge(shown, ax),
        label="Chance that each attacker is right, with and without the person in the data",
        size=(6.6, 1.1 + 0.42 * len(shown)),
    )
    said = [str(risk) for row in found.risks for risk in row]
    text = list(dict.fromkeys(said))[:SAID]
    if len(named) > len(shown):
        text.append(f"The figure shows the first {len(shown)} of {len(named)}; the table has more.")
    return Section("Who is feared", tuple(text), figure, tuple(rows))


def _bounds(found: Answers) -> list[Section]:
    """The table of bounds behind the first promise."""
    for release, row in zip(found.scenario.releases, found.risks, strict=True):
        risk = max(row, key=lambda r: r.rad)
        if risk.kind != "upper-bound":
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


def _curves(found: Answers) -> list[Section]:
    """Risk against the noise, for every release that shares the parameter, worst threat first."""
    scenario = found.scenario
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
            j = max(range(len(found.risks[k])), key=lambda i: found.risks[k][i].interval[1])
            threat_name, question = scenario.questions[j]
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
                many, ax, parameter=p, accepted=scenario.accepted, at=at
            ),
            label=f"Extra risk against {parameter}",
        )
        said = (
            f"How the extra risk changes with {parameter}, for the attacker who gains most. The "
            "dot is the value in use."
        )
        sections.append(Section(f"Risk and {parameter}", (said,), figure, tuple(rows)))
    return sections


def _compared(found: Answers) -> list[Section]:
    """Risk against error of the mechanisms, where there are several that read the same."""
    scenario = found.scenario
    attacker, question = scenario.questions[0]
    run = [r for r in scenario.releases if r.mechanism is not None]
    if len(run) < 2 or any(r.query != run[0].query for r in run):
        return []
    try:
        subjects = [r.subject(question.prior, question.threat) for r in run]
        table = compared(subjects, run[0].posed(question), Sampling())
    except DpradError:
        return []
    section = _any(published(table), "")
    said = f"What each mechanism costs in accuracy. The attacker: {attacker}."
    return [Section("Risk and usefulness", (said,), section.figure, section.table)]


def _line(release: Release, question: Question, values: list[float]) -> list[Risk] | None:
    try:
        return [published(release.at(v).risk(question, Sampling(trials=2000))) for v in values]
    except DpradError:
        return None


def _grid(low: float, high: float) -> list[float]:
    if high <= 0:
        return [0.1 * i for i in range(1, POINTS)]
    a, b = max(low, high / 100) / REACH, high * REACH
    return [a * (b / a) ** (i / (POINTS - 1)) for i in range(POINTS)]


def _noise(found: Answers) -> list[Section]:
    scenario = found.scenario
    if scenario.accepted is None:
        return []
    rows = [("release", "attacker", "set", "to", "95% error")]
    text = []
    for release, plans, reasons in zip(scenario.releases, found.plans, found.reasons, strict=True):
        safest = None
        for (threat, _), plan, reason in zip(scenario.threats, plans, reasons, strict=True):
            if plan is None:
                rows.append((release.name, threat, "", reason, ""))
                continue
            error = "" if plan.error is None else explain.amount(plan.error)
            value = explain.safely(plan.value, plan.rising)
            rows.append((release.name, threat, plan.parameter, value, error))
            better = safest is None or (plan.value < safest.value) == plan.rising
            safest = plan if better else safest
        if safest is not None and all(
            p is not None or "every" in r for p, r in zip(plans, reasons, strict=True)
        ):
            value = explain.safely(safest.value, safest.rising)
            text.append(
                f"{release.name}: {safest.parameter} = {value} keeps the extra risk at or below "
                f"{scenario.accepted:g} for every attacker here."
            )
    return [
        Section(
            f"Noise for an accepted risk of {scenario.accepted:g}", tuple(text), "", tuple(rows)
        )
    ]


def _audit(result: Audit, title: str) -> Section:
    figure = ""
    rows: tuple[tuple[str, ...], ...] = ()
    if result.trace:
        figure = svg(lambda ax: plots.plot_audit(result, ax), label="The audit as it went")
        rows = (
            ("runs", "certified epsilon", "estimate"),
            *(
                (f"{t:,}", explain.below(low), "" if e is None else f"{e:.3f}")
                for t, low, e in result.trace
            ),
        )
    return Section(title, tuple(str(result).split("\n")), figure, rows)


def _again(scenario: Scenario, command: str) -> Section:
    import dprad

    text = (
        f"Made by dprad {dprad.__version__} from this scenario file"
        + (f", with: {command}" if command else "")
        + ".",
    )
    # counts of people are theirs
    code = "(It holds counts of the population, and is not shown.)"
    code = code if "counts" in scenario.population else scenario.text
    return Section("Make this report again", text, code=code)


def _any(result: Any, prefix: str) -> Section:
    """One result as a section of its own."""
    if isinstance(result, Risk):
        details = tuple(line for line in explain.details(result).split("\n") if line.strip())
        figure = svg(lambda ax: plots.plot_odds(result, ax), label=_label(result), size=(5.6, 2.9))
        if result.kind == "upper-bound":
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
        rows: list[tuple[str, ...]] = [
            ("mechanism", "extra risk", "95% error", "variance", "unbeaten")
        ]
        for c in result:
            numbers = ("" if x is None else explain.amount(x) for x in (c.error, c.variance))
            rows.append((c.name, explain.number(c.risk), *numbers, "yes" if c.frontier else ""))
        figure = ""
        if any(c.error is not None or c.variance is not None for c in result):
            figure = svg(lambda ax: plots.plot_frontier(result, ax), label="Risk against error")
        return Section(f"{prefix}Comparison", (), figure, tuple(rows))
    return _audit(result, f"{prefix}Audit")


# -- pieces ----------------------------------------------------------------------------------------
def _label(risk: Risk) -> str:
    return ". ".join(f"{title}: {count}" for title, count, _ in grids(risk))


def _page(
    title: str, lead: str, risk: Risk | None, verdict: str, sections: tuple[Section, ...]
) -> Page:
    number = "" if risk is None else explain.number(risk)
    asked = risk is not None and explain.membership(risk.threat)
    assumptions = () if risk is None else risk.assumptions
    shown = () if risk is None else tuple(grids(risk))
    return Page(title, lead, risk, shown, number, verdict, assumptions, sections, asked)


def _render(page: Page) -> str:
    try:
        import jinja2
    except ImportError:
        raise DpradError("reports need jinja2: pip install jinja2.") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dprad.show.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(page=page, longest=LONGEST)


def _write(page: Page, path: Any) -> Path:
    """Beside it first, then in its place: never half a report."""
    file, text = Path(path), _render(page)
    try:
        if file.exists() and not file.is_file():  # a pipe, a terminal: not to be replaced
            file.write_text(text, encoding="utf-8")
            return file
        beside = file.with_name(f".dprad-{secrets.token_hex(8)}.html")
        try:
            with beside.open("x", encoding="utf-8") as out:
                out.write(text)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise DpradError(f"{file} cannot be written: {error.strerror}.") from None
    return file
