"""The ledger in a report: a time line, the joint risk, and what each release added."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from dprad.model import explain
from dprad.model.verdicts import upper
from dprad.show import plots
from dprad.show.ledger import Standing
from dprad.show.ledger.standing import Step
from dprad.show.plots.style import svg
from dprad.show.report.published import published
from dprad.show.report.sections import Section


def ledger_section(standing: Standing) -> Section:
    """The section: risks rounded up to hundredths, like everything in a report."""
    if not standing.cases:
        return Section("Releases over time", ("The ledger has no release that counts.",))
    shown = replace(
        standing,
        cases=tuple((name, published(risk)) for name, risk in standing.cases),
        steps=_rounded(standing.steps),
    )
    name, risk = shown.strongest
    whose = "most exposed person" if standing.asked.worst else "average over people"
    value = upper(risk, worst=standing.asked.worst)
    text = [
        f"{len(standing.counted):,} of {len(standing.entries):,} releases in the ledger count. All "
        f"together, the extra risk is {explain.above(value)} ({whose}; {name})."
    ]
    if standing.verdict is not None:
        text.append(
            f"{standing.verdict.word}: {explain.above(standing.verdict.limit)} is accepted."
        )
    text += shown.notes()
    rows = [("date", "release", "state", "covers", "risk up to it", "added")]
    rows += [
        (s.entry.date, s.entry.name, s.entry.state, f"{100 * s.entry.share:g}%",
         explain.above(s.risk), explain.above(max(0.0, s.added)))
        for s in shown.steps
    ]  # fmt: skip
    figure = svg(lambda ax: plots.plot_ledger(shown, ax), label="joint risk after each release")
    return Section("Releases over time", tuple(text), figure, tuple(rows))


def _rounded(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Risks up to hundredths; what was added is their difference."""
    result: list[Step] = []
    for step in steps:
        now = min(1.0, math.ceil(100 * step.risk - 1e-9) / 100)
        start = math.ceil(100 * (step.risk - step.added) - 1e-9) / 100
        before = result[-1].risk if result else max(0.0, start)
        now = max(now, before)  # an estimate may be lower by chance
        result.append(Step(step.entry, now, now - before))
    return tuple(result)


def report_ledger(standing: Standing, path: Any, *, title: str) -> Path:
    """A report of the ledger alone."""
    from dprad.show.report.page import report_sections

    risk = published(standing.strongest[1]) if standing.cases else None
    verdict = "" if standing.verdict is None else standing.verdict.word
    return report_sections(title, risk, verdict, (ledger_section(standing),), path)
