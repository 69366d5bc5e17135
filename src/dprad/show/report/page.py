"""Results in, one self-contained HTML file out.

The first page of a scenario's report is in `front.py`; then, for experts, audits, attackers,
bounds, curves and noise, each figure with its table, and how to reproduce the report.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, part
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.audits import Audit
from dprad.model.comparisons import Comparison
from dprad.model.results import Calibration, Risk
from dprad.show.plots.odds import grids
from dprad.show.report import sections
from dprad.show.report.front import Front, front
from dprad.show.report.ledger import ledger_section
from dprad.show.report.published import SAID as ROUNDED
from dprad.show.report.published import planned, published
from dprad.show.report.sections import Section, keeps
from dprad.show.scenario import Answers, Scenario, answer
from dprad.show.scenario.release import Release

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
    items = [published(result) for result in items]
    parts = [sections.result_section(result, f"{i}. ") for i, result in enumerate(items, 1)]
    risks = [r.risk if isinstance(r, Calibration) else r for r in items]
    risks = [r for r in risks if isinstance(r, Risk)]
    top = max(risks, key=lambda r: r.interval[1]) if risks else None
    lead = str(top) if top is not None else str(items[0]).split("\n")[0]
    return _write(_page(title, lead, top, "", tuple(parts)), path)


def report_sections(
    title: str, risk: Risk | None, verdict: str, parts: tuple[Section, ...], path: Any
) -> Path:
    """A report of some sections, headed by a risk."""
    lead = "Nothing counts yet." if risk is None else str(risk)
    return _write(_page(title, lead, risk, verdict, parts), path)


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
    out = Path(path).resolve()
    data = scenario.population.get("data")
    inputs = [Path(scenario.name), *([] if data is None else [scenario.folder / str(data)])]
    for read in inputs:
        if read.exists() and out == read.resolve():
            raise DpradError(
                f"{path} is an input of this report; write the report to another file."
            )
    answers = answer(scenario, allow_code=allow_code)
    page = page_of(answers, command)
    if ledger is not None:
        if out == ledger.path.resolve():
            raise DpradError(f"{path} is the ledger; write the report to another file.")
        kept = ledger_section(ledger.status())
        page = replace(page, sections=(kept, *page.sections))
    return _write(page, path)


def html_of(answers: Answers, command: str = "") -> str:
    """The report of a scenario's answers, as text."""
    return _render(page_of(answers, command))


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
    parts = [
        *[sections.audit(result, f"Audit: {name}") for name, result in shown.audits],
        sections.attackers(shown),
        *sections.bounds(shown),
        *sections.curves(shown),
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
        return plan and planned(plan, lambda value: keeps(scenario, release.at(value), question))

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


def _render(page: Page) -> str:
    jinja2 = part("jinja2", "reports", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dprad.show.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return str(environment.get_template("report.html.j2").render(page=page, longest=LONGEST))


def _write(page: Page, path: Any) -> Path:
    """Write beside the file first, then replace it: never half a report."""
    file, text = Path(path), _render(page)
    try:
        if planted(file):
            raise DpradError(
                f"{file} leads through a link that somebody else put into a folder that others may "
                "write. Name the file itself, or another one."
            )
        if not replaceable(file):
            with file.open("a", encoding="utf-8") as out:
                out.write(text)
            return file
        kept = file.resolve()  # a link stays a link
        beside = kept.with_name(f".dprad-{secrets.token_hex(8)}.html")
        try:
            mode = stat.S_IMODE(kept.stat().st_mode) if kept.exists() else None
            # as private as what it replaces, from the first byte
            first = 0o666 if mode is None else 0o600
            opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first)
            with os.fdopen(opened, "w", encoding="utf-8") as out:
                out.write(text)
            if mode is not None:
                beside.chmod(mode)
            beside.replace(kept)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise DpradError(f"{file} cannot be written: {error.strerror}.") from None
    return file


def planted(file: Path) -> bool:
    """Whether a link on the way is neither ours nor the folder's owner's, where others may write.

    Linux refuses most of these itself, unless told not to.
    """
    todo, at = list(reversed(file.absolute().parts)), Path(file.absolute().anchor)
    for _ in range(1000):
        if not todo:
            break
        step = at / todo.pop()
        if not step.is_symlink():
            at = step
            continue
        folder = at.stat()
        trusted = (os.getuid(), folder.st_uid) if hasattr(os, "getuid") else (_owner(step),)
        if folder.st_mode & 0o022 and _owner(step) not in trusted:
            return True
        todo += reversed(Path(os.readlink(step)).parts)  # noqa: PTH115
    return False


def _owner(link: Path) -> int:
    return link.lstat().st_uid


def replaceable(file: Path) -> bool:
    """Whether this is a regular file, or nothing yet: a pipe or a terminal is written into."""
    step = file.absolute()
    for _ in range(40):  # links, one by one: those of open files lead through /proc
        if str(step).startswith(("/dev/fd", "/dev/std", "/proc/")):
            return False
        if not step.is_symlink():
            break
        step = step.parent / os.readlink(step)  # noqa: PTH115
    return file.is_file() or not file.exists()
