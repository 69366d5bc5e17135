"""The ledger in a report: a time line, the joint risk, and what each release added."""

from __future__ import annotations

import math
from dataclasses import replace

from dprad.model import explain
from dprad.model.verdicts import LITTLE, WORDS, upper
from dprad.show import plots
from dprad.show.ledger import Standing
from dprad.show.ledger.standing import Step
from dprad.show.plots.style import svg
from dprad.show.report.front import Front, narrowed
from dprad.show.report.published import published
from dprad.show.report.sections import Section

TITLE = "Releases over time"


def ledger_section(standing: Standing) -> Section:
    """The section: risks rounded up to hundredths, like everything in a report."""
    if not standing.cases:
        doubts = explain.doubtful(standing.asked.doubts)
        return Section(TITLE, ("The ledger has no release that counts.", *doubts))
    shown = replace(
        standing,
        cases=tuple((name, published(risk)) for name, risk in standing.cases),
        steps=_rounded(standing.steps, 20 if standing.asked.worst else 100),
    )
    name, risk = shown.strongest
    whose = "most exposed person" if standing.asked.worst else "average over people"
    value = upper(risk, worst=standing.asked.worst)
    text = [
        f"{len(standing.counted):,} of {len(standing.entries):,} releases in the ledger count. All "
        f"together, the extra risk is {explain.above(value)} ({whose}; {name})."
    ]
    if standing.verdict is not None:
        text.append(f"{standing.word}: {explain.above(standing.verdict.limit)} is accepted.")
        if standing.verdict.outcome == "cannot be told" and not risk.doubts:
            text.append(f"The table says little about the population: {LITTLE}.")
    text += [standing.unasked] if standing.unasked else []
    text += explain.doubtful(risk.doubts)
    text += shown.notes()
    rows = [("date", "release", "state", "covers", "risk up to it", "added")]
    rows += [
        (s.entry.date, s.entry.name, s.entry.state, f"{100 * s.entry.share:g}%",
         explain.above(s.risk), explain.above(max(0.0, s.added)))
        for s in shown.steps
    ]  # fmt: skip
    figure = svg(lambda ax: plots.plot_ledger(shown, ax), label="joint risk after each release")
    return Section(TITLE, tuple(text), figure, tuple(rows))


def _rounded(steps: tuple[Step, ...], parts: int) -> tuple[Step, ...]:
    """Risks up to so many parts of 1; what was added is their difference."""
    result: list[Step] = []
    for step in steps:
        now = min(1.0, math.ceil(parts * step.risk - 1e-9) / parts)
        start = math.ceil(parts * (step.risk - step.added) - 1e-9) / parts
        before = result[-1].risk if result else max(0.0, start)
        now = max(now, before)  # an estimate may be lower by chance
        result.append(Step(step.entry, now, now - before))
    return tuple(result)


def fronted(front: Front, standing: Standing) -> Front:
    """The first page of a scenario, judged by all releases of its ledger if these are too many;
    it says what of the scenario changed since they were entered.
    """
    made = _fronted(front, standing)
    return replace(made, sentence=" ".join([made.sentence, *standing.asked.notes]))


def _fronted(front: Front, standing: Standing) -> Front:
    verdict = standing.verdict
    if front.state == "no":
        return front
    if standing.code == 0:
        if front.state != "yes" or verdict is None or not standing.unasked:
            return front
        said = f"{verdict} {standing.unasked}"
        return narrowed(front, verdict.word, {"word": standing.word, "sentence": said})
    exceeded = verdict is not None and verdict.outcome == "exceeded"
    word = WORDS["exceeded" if exceeded else "cannot be told"]
    alone = "They would be accepted." if front.state == "yes" else front.sentence
    return replace(
        front,
        word=word,
        state="no" if exceeded else "unknown",
        sentence=f"{word}: the releases of the ledger together ({len(standing.counted):,} count; "
        f"see {TITLE}). What follows is about the releases of the scenario by themselves. {alone}",
        todo=(f"See {TITLE}: publish no more before all releases together are accepted.",),
    )


def report_ledger(standing: Standing, *, title: str) -> str:
    """A report of the ledger alone, as HTML."""
    from dprad.show.report.page import report_sections

    risk = published(standing.strongest[1]) if standing.cases else None
    return report_sections(title, risk, standing.word, (ledger_section(standing),))
