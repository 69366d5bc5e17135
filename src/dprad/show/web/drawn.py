"""The answers of the page as HTML: the verdict, the strongest attacker, everybody, what to change.

No value of a record is among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htmltools import HTML, Tag, TagList, tags

from dprad.errors import DpradError, NothingToCalibrateError
from dprad.model import explain, explain_plan
from dprad.model.results import Calibration, Risk
from dprad.model.verdicts import headed, upper
from dprad.show.plots.odds import grids
from dprad.show.scenario.advice import Advice
from dprad.show.web.question import Question, Told

KINDS = {"exact": "exact", "estimate": "an estimate", "upper-bound": "a bound: never more"}
COLOURS = {"accepted": "good", "exceeded": "bad", "cannot be told": "unsure"}


def exposed(risk: Risk) -> str:
    """The risk of the most exposed person."""
    if risk.worst is None or risk.worst_interval is None or risk.worst_kind is None:
        return "at most 1"
    return explain.bounded(risk.worst, risk.worst_interval, risk.worst_kind)


def verdict(told: Told) -> Tag:
    """Word, colour and number, of all releases together and the strongest attacker."""
    name, risk, _ = told.cases[0]
    said, asked = told.verdict, told.asked
    word = "Extra risk" if said is None else headed(said, told.unasked)
    colour = "none" if said is None else COLOURS[said.outcome]
    whose = "for the most exposed person" if asked.worst else "on average"
    limit = "" if asked.accepted is None else f"You accept {asked.accepted:g} {whose}."
    together = f" All {len(asked.releases)} releases together." if len(asked.releases) > 1 else ""
    return tags.div(
        tags.div(word, class_="word", id="word"),
        tags.dl(
            _number("rad", "on average", explain.number(risk), asked.worst),
            _number("exposed", "most exposed person", exposed(risk), not asked.worst),
        ),
        tags.div(
            tags.span(f"Strongest attacker: {name}.", id="strongest"),
            tags.span(f"{together} {limit}"),
            class_="by",
        ),
        class_=f"verdict {colour}",
        role="status",
    )


def _number(id_: str, label: str, text: str, second: bool) -> Tag:
    return tags.div(
        tags.dt(label), tags.dd(text, id=id_), class_="number second" if second else "number"
    )


def answer(told: Told) -> TagList:
    """The sentence of the verdict and of the strongest attacker, with dots."""
    _, risk, _ = told.cases[0]
    said = told.verdict
    costs = [told.asked.error(release) for release in told.asked.releases]
    return TagList(
        None if said is None else tags.p(str(said), class_="lead", id="said"),
        tags.p(told.unasked, id="unasked") if told.unasked else None,
        tags.p(str(risk), id="sentence"),
        dots(risk),
        *[tags.p(cost, class_="soft") for cost in dict.fromkeys(costs) if cost],
        tags.details(
            tags.summary("Assumptions and details"),
            tags.p(
                f"The average is {KINDS[risk.kind]}. The most exposed person is the one with the "
                "largest risk of their own."
            ),
            tags.ul(*[tags.li(line) for line in risk.assumptions]),
            class_="soft",
        ),
    )  # fmt: skip


def attackers(told: Told) -> Tag:
    """A card for each attacker, the strongest first and marked."""
    limit, worst = told.asked.accepted, told.asked.worst
    cards = []
    for k, (name, risk, alone) in enumerate(told.cases):
        over = limit is not None and upper(risk, worst=worst) > limit
        width = f"{100 * min(1.0, risk.interval[1]):.3g}%"
        mark = tags.span("strongest", class_="most") if k == 0 and len(told.cases) > 1 else None
        rows: list[Any] = []
        if len(alone) > 1:
            names = [r.name for r in told.asked.releases]
            pairs = zip(names, alone, strict=True)
            rows = [tags.li(f"{n} alone: {explain.number(r)}") for n, r in pairs]
        cards.append(
            tags.li(
                tags.div(name, " ", mark, class_="name"),
                tags.div(tags.div(style=f"width: {width}"), class_="bar", aria_hidden="true"),
                tags.div(
                    tags.strong(explain.number(risk)), " on average, ",
                    tags.strong(exposed(risk)), " most exposed",
                ),
                tags.ul(*rows, class_="soft") if rows else None,
                class_="case strongest" if k == 0 else "case",
                data_over="yes" if over else "no",
            )
        )  # fmt: skip
    return tags.ul(*cards, class_="cases")


def plan(result: Calibration | Advice | DpradError | None, told: Told) -> Any:
    """How much noise is enough."""
    if isinstance(result, DpradError):
        return tags.p(str(result)) if isinstance(result, NothingToCalibrateError) else None
    several = len(told.asked.releases) > 1
    if result is None:
        kept = told.verdict is not None and told.verdict.outcome == "accepted"
        none = "No amount of noise was found that keeps the accepted risk for every attacker."
        return tags.p("The accepted risk is kept; nothing has to change." if kept else none)
    if isinstance(result, Advice):
        changes = [
            tags.li(f"{name}: set {parameter} to ", tags.strong(new), f" instead of {old}")
            for name, parameter, old, new in result.changes
        ]
        also = "All together then keep" if several else "This keeps"
        return TagList(
            tags.ul(*changes, id="needed"),
            tags.p(f"{also} the accepted risk, for every attacker.", class_="soft"),
        )
    value = explain.safely(result.value, result.rising)
    return tags.p(
        f"Set {result.parameter} to ", tags.strong(value, id="needed"),
        f". {explain_plan.calibration(result).splitlines()[0]}",
        " This holds for every attacker above." if len(told.asked.attackers) > 1 else "",
    )  # fmt: skip


def dots(risk: Risk) -> Tag:
    """A hundred people, marked: absent and present."""
    figures = []
    for title, count, kinds in grids(risk):
        circles = "".join(
            f'<circle cx="{5 + 10 * (i % 10)}" cy="{5 + 10 * (i // 10)}" r="3.6" class="{kind}"/>'
            for i, kind in enumerate(kinds)
        )
        picture = HTML(f'<svg viewBox="0 0 100 100" aria-hidden="true">{circles}</svg>')
        figures.append(tags.figure(tags.figcaption(title, tags.br(), tags.strong(count)), picture))
    return tags.div(*figures, class_="odds")


def problem(message: str) -> Tag:
    """What is wrong with a question."""
    return tags.div(message[:1].upper() + message[1:], class_="alert alert-warning", role="alert")


def so_far(asked: Question, rows: Mapping[int, tuple[Risk, ...]]) -> Tag:
    """How far the work is, and the largest risk of the attackers that were asked about."""
    told = None
    if rows:
        k = max(rows, key=lambda i: upper(rows[i][0], worst=asked.worst))
        risk = rows[k][0]
        number = exposed(risk) if asked.worst else explain.number(risk)
        whose = "for the most exposed person" if asked.worst else "on average"
        told = tags.p(
            "The largest extra risk so far, others may be larger: ", tags.strong(number),
            f" {whose} ({asked.attackers[k][0]}).", id="sofar",
        )  # fmt: skip
    return progress("Computing", len(rows), len(asked.attackers), told)


def progress(what: str, done: int = 0, total: int = 0, told: Tag | None = None) -> Tag:
    """How far the work is."""
    width = f"{100 * done / total:.0f}%" if total else "100%"
    count = f": {done} of {total} attackers" if total > 1 else ""
    bar = tags.div(class_=f"progress-bar{'' if total > 1 else ' moving'}", style=f"width: {width}")
    return tags.div(
        tags.span(f"{what}{count} ..."), tags.div(bar, class_="progress"), told, class_="working"
    )
