"""Results in, one self-contained HTML file out.

The first page of a scenario's report is in `front.py`; then, for experts, audits, attackers,
bounds, curves and noise, each figure with its table, and how to reproduce the report.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dprad.errors import DpradError, part
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.audits import Audit
from dprad.model.comparisons import Comparison
from dprad.model.results import Calibration, Risk
from dprad.runtime.writing import may_lead, spared, write
from dprad.show.plots.odds import grids
from dprad.show.report import sections
from dprad.show.report.front import Front, front, narrowed
from dprad.show.report.ledger import fronted, ledger_section
from dprad.show.report.published import SAID as ROUNDED
from dprad.show.report.published import planned, published
from dprad.show.report.sections import Section, alone
from dprad.show.scenario import Answers, Scenario, answer
from dprad.show.scenario.release import Release

# How a report is told from other files (as in the template).
MADE = '<meta name="generator" content="dprad">'
# A longer table is cut, with a note.
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Page:
    """The input of the template."""

    title: str
    lead: str
    risk: Risk | None
    grids: tuple[tuple[str, str, list[str]], ...]
    number: str
    verdict: str
    assumptions: tuple[str, ...]
    sections: tuple[Section, ...] = field(default_factory=tuple)
    front: Front | None = None
    asked: bool = False  # whether the only question is if the record was used
    note: str = ROUNDED


def report(results: Any, path: Any, *, title: str = "What does epsilon mean here?") -> Path:
    """Write results of `assess`, `calibrate`, `compare` and `audit` as one HTML file.

    Parameters
    ----------
    results
        A result, or a list of results of any kind.
    path
        The file to write.
    title
        The headline.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import os, tempfile, dprad
    >>> promise = dprad.PureDP(1.0, neighbours="replace-one")
    >>> risk = dprad.assess(promise, prior=dprad.Prior.uniform(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dprad.report(risk, os.path.join(folder, "report.html")).name
    'report.html'

    """
    items = list(results) if isinstance(results, list | tuple) else [results]
    if not items:
        raise DpradError("report needs at least one result, but the list is empty.")
    for result in items:
        if not isinstance(result, Risk | Calibration | Comparison | Audit):
            raise DpradError(
                "report takes results of assess, calibrate, compare and audit, but got a "
                f"{type(result).__name__}."
            )
    may_lead(path)
    items = [published(result) for result in items]
    parts = [sections.result_section(result, f"{i}. ") for i, result in enumerate(items, 1)]
    risks = [r.risk if isinstance(r, Calibration) else r for r in items]
    risks = [r for r in risks if isinstance(r, Risk)]
    top = max(risks, key=lambda r: r.interval[1]) if risks else None
    lead = str(top) if top is not None else str(items[0]).split("\n")[0]
    return write(path, _render(_page(title, lead, top, "", tuple(parts))))


def report_sections(title: str, risk: Risk | None, verdict: str, parts: tuple[Section, ...]) -> str:
    """A report of some sections, headed by a risk, as text."""
    lead = "Nothing counts yet." if risk is None else str(risk)
    return _render(_page(title, lead, risk, verdict, parts))


def report_scenario(
    scenario: Scenario,
    path: Any,
    *,
    command: str = "",
    allow_code: bool = False,
    ledger: Any = None,
) -> Path:
    """Answer every question of a scenario and write the report, but not over its input files; with
    the ledger of its releases, if there is one.
    """
    inputs = (*scenario.files, *(() if ledger is None else ledger.files))
    spared(path, inputs)  # before the work, not after it
    if ledger is not None:
        ledger.keeps(scenario.name)
    needed()
    answers = answer(scenario, allow_code=allow_code)
    page = page_of(answers, command)
    if ledger is not None:
        assert page.front is not None
        standing = ledger.status()
        kept = ledger_section(standing)
        page = replace(page, sections=(kept, *page.sections), front=fronted(page.front, standing))
    return write(path, _render(page), inputs=inputs)


def html_of(answers: Answers, command: str = "", verdict: dict[str, Any] | None = None) -> str:
    """The report of a scenario's answers, as text; headed by a narrower `verdict`, if it is one."""
    page = page_of(answers, command)
    if verdict is not None and answers.verdict is not None and page.front is not None:
        page = replace(page, front=narrowed(page.front, answers.verdict.word, verdict))
    return _render(page)


def page_of(answers: Answers, command: str = "") -> Page:
    """The first page of a scenario's report, then everything an expert may ask for."""
    scenario = answers.scenario
    shown = replace(
        answers,
        joint=tuple(map(published, answers.joint)),
        risks=tuple(tuple(map(published, row)) for row in answers.risks),
        plans=_plans(answers),
        audits=tuple((name, published(result)) for name, result in answers.audits),
    )
    # rounded, several may gain the same
    most = [int(np.argmax([risk.interval[1] for risk in row])) for row in answers.risks]
    parts = [
        *[sections.audit(result, f"Audit: {name}") for name, result in shown.audits],
        sections.attackers(shown),
        *sections.bounds(shown, most),
        *sections.curves(shown, most),
        *sections.compared(shown),
        *sections.tables(shown),
        *sections.noise(shown),
        sections.again(scenario, command),
    ]
    first = front(answers, shown)
    return Page(scenario.title, "", None, (), "", "", (), tuple(parts), front=first)


def _plans(answers: Answers) -> tuple[tuple[Calibration | None, ...], ...]:
    """Plans with rounded values that keep the accepted risk all the same."""
    scenario = answers.scenario

    def rounded(release: Release, question: Question, plan: Calibration | None) -> Any:
        return plan and planned(plan, lambda value: alone(scenario, release.at(value), [question]))

    questions = [question for _, question in scenario.questions]
    rows = zip(scenario.releases, answers.plans, strict=True)
    return tuple(
        tuple(rounded(release, q, plan) for q, plan in zip(questions, row, strict=True))
        for release, row in rows
    )


# -- pieces ----------------------------------------------------------------------------------------
def _page(
    title: str, lead: str, risk: Risk | None, verdict: str, sections: tuple[Section, ...]
) -> Page:
    number = "" if risk is None else explain.number(risk)
    asked = risk is not None and explain.membership(risk.threat)
    assumptions = () if risk is None else risk.assumptions
    shown = () if risk is None else tuple(grids(risk))
    return Page(title, lead, risk, shown, number, verdict, assumptions, sections, asked=asked)


def needed() -> Any:
    """What reports are made with; asked for before the work, not after it."""
    part("matplotlib", "reports", "report")
    return part("jinja2", "reports", "report")


def _render(page: Page) -> str:
    jinja2 = needed()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dprad.show.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return str(environment.get_template("report.html.j2").render(page=page, longest=LONGEST))
