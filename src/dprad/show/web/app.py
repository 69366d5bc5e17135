"""The server side of the page: keeps the answer up to date.

Every answer is computed in a process of its own (`runtime.bench`), outside Shiny's reactive graph,
so that a slow question blocks nobody and ends when another one is asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from htmltools import HTML, TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, render, ui

from dprad.errors import DpradError, NothingToCalibrateError
from dprad.model import explain
from dprad.model.results import Calibration, Risk
from dprad.runtime.bench import Bench
from dprad.show import plots
from dprad.show.plots.style import svg
from dprad.show.report.page import html_of
from dprad.show.scenario import Scenario
from dprad.show.scenario import answer as answer_scenario
from dprad.show.web.controls import Controls
from dprad.show.web.page import dots, page, sentence
from dprad.show.web.question import (
    PROMISE,
    SLIDERS,
    Population,
    Question,
    of_scenario,
    parameter_of,
    patients,
    uniform,
)

# Seconds that an answer, a calibration, a line of the chart and a report may take.
ANSWER, PLAN, LINE, REPORT = 20.0, 30.0, 20.0, 120.0
POINTS = 12
# Lines of charts that are kept.
LINES = 40
USUAL = (PROMISE, "grr", "oue", "laplace")
_KINDS = {"exact": "exact", "estimate": "an estimate", "upper-bound": "a bound: never more"}


def make_app(scenario: Scenario | None = None, bench: Bench | None = None) -> App:
    """The page, with a scenario's population and first question if there is one."""
    places = _populations(scenario)
    first = _first(scenario, places)
    accepted = 0.1 if scenario is None or scenario.accepted is None else scenario.accepted
    shared = Bench() if bench is None else bench

    def server(input: Inputs, output: Outputs, session: Session) -> None:  # noqa: A002, ARG001
        controls = Controls(input, session, places, first, shared)
        told = _told(controls, shared)
        _answer(told)
        _plan(controls, told, shared)
        _chart(controls, told, shared)
        _elsewhere(controls, told, shared)
        session.on_ended(controls.cancel)

    app = App(page(places, first, accepted), server)
    app.sanitize_errors = True
    return app


def _populations(scenario: Scenario | None) -> dict[str, Population]:
    places = {"patients": patients(), "uniform": uniform(20)}
    if scenario is not None and scenario.prior.kind == "finite":
        places = {"scenario": of_scenario(scenario), **places}
    return places


def _first(scenario: Scenario | None, places: dict[str, Population]) -> Question:
    """The question with which the page opens."""
    if scenario is None or "scenario" not in places:
        return Question(population=places["patients"], target="diagnosis")
    threat, release = scenario.threats[0][1], scenario.releases[0]
    target = threat.target[0] if threat.target and len(threat.target) == 1 else None
    knows = threat.knows if isinstance(threat.knows, str) else list(threat.knows)  # type: ignore[arg-type]
    place, mechanism = places["scenario"], "release 0"
    return Question(
        population=place,
        knows=knows,
        target=target,
        eta=threat.eta if threat.loss == "absolute" else 0.0,
        mechanism=mechanism,
        value=float(release.numbers[parameter_of(place, mechanism)]),
    )


def _told(controls: Controls, bench: Bench) -> Any:
    """The latest question and its risk, or a sentence that says what is wrong."""

    @reactive.extended_task
    async def ask(asked: Question | None, problem: str) -> tuple[Question | None, Any, str]:
        if asked is None:
            return None, None, problem
        try:
            return asked, await bench.run(Question.risk, asked, seconds=ANSWER), ""
        except DpradError as error:
            return None, None, str(error)

    controls.tasks.append(ask)

    @reactive.effect
    def _ask() -> None:
        try:
            asked, problem = controls.question(), ""
        except DpradError as error:
            asked, problem = None, str(error)
        ask.cancel()
        ask(asked, problem)

    return ask.result


def _answer(told: Any) -> None:
    @render.ui
    def answer() -> Any:
        asked, risk, problem = told()
        if asked is None:
            return sentence(problem)
        return TagList(
            tags.p(str(risk), class_="lead", id="sentence"),
            dots(risk),
            tags.p(
                "Extra risk of taking part: ",
                tags.span(explain.number(risk), class_="number", id="rad"),
                f" ({_KINDS[risk.kind]})",
            ),
            tags.p(asked.error(), id="error"),
            tags.details(
                tags.summary("Assumptions and details"),
                tags.ul(*[tags.li(line) for line in risk.assumptions]),
                class_="soft",
            ),
        )


def _plan(controls: Controls, told: Any, bench: Bench) -> None:
    """How much noise for the accepted risk."""

    @reactive.extended_task
    async def find(
        asked: Question | None, problem: str, limit: float | None
    ) -> Calibration | DpradError:
        if asked is None or limit is None:
            return DpradError(problem or "give a risk between 0 and 1.")
        try:
            plan: Calibration = await bench.run(
                Question.plan, asked, float(limit), seconds=PLAN, long=True
            )
        except DpradError as error:
            return error
        return plan

    controls.tasks.append(find)

    @reactive.effect
    def _find() -> None:
        asked, _, problem = told()
        find.cancel()
        find(asked, problem, controls.input.accepted())

    @render.ui
    def plan() -> Any:
        result = find.result()
        if isinstance(result, NothingToCalibrateError):
            return tags.p(str(result))
        if isinstance(result, DpradError):
            return sentence(str(result))
        value = explain.safely(result.value, result.rising)
        return tags.p(
            f"Set {result.parameter} to ", tags.strong(value, id="needed"),
            f". {explain.calibration(result).splitlines()[0]}",
        )  # fmt: skip


class _Lines:
    """Lines of a chart; the same one is not computed twice."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.drawn: dict[Any, list[Risk] | None] = {}

    async def line(self, asked: Question, values: list[float]) -> list[Risk] | None:
        """Risks at all values; None if it cannot be drawn."""
        known = asked.knows if isinstance(asked.knows, str) else tuple(asked.knows)
        # the population itself, not its address, which another one may get
        key = (asked.population, known, asked.target, asked.eta, asked.mechanism, values[-1])
        if key not in self.drawn:
            while len(self.drawn) >= LINES:
                self.drawn.pop(next(iter(self.drawn)))
            try:
                self.drawn[key] = await self.bench.run(
                    Question.line, asked, values, seconds=LINE, long=True
                )
            except DpradError:
                self.drawn[key] = None
        return self.drawn.get(key)


def _chart(controls: Controls, told: Any, bench: Bench) -> None:
    """Risk against the noise, for the chosen mechanism and others."""
    kept = _Lines(bench)

    @render.ui
    def others() -> Any:
        choices = controls.menu()
        if not choices:
            return None
        usual = [m for m in USUAL if m in choices]
        return ui.input_checkbox_group("compared", None, choices, selected=usual, inline=True)

    @reactive.extended_task
    async def draw(asked: Question, names: tuple[str, ...]) -> tuple[Question, dict[str, Any]]:
        parameter = asked.parameter
        top = max(SLIDERS[parameter][1], asked.value)
        values = [top * (i + 1) / POINTS for i in range(POINTS)]
        several = [replace(asked, mechanism=name) for name in names]
        alike = [other for other in several if other.parameter == parameter]
        lines = await asyncio.gather(*[kept.line(other, values) for other in alike])
        pairs = zip(alike, lines, strict=True)
        return asked, {other.release.name: (values, risks) for other, risks in pairs if risks}

    controls.tasks.append(draw)

    @reactive.effect
    def _draw() -> None:
        asked, _, _ = told()
        if asked is not None:
            more = [n for n in controls.input.compared() if n != asked.mechanism]
            draw.cancel()
            draw(asked, (asked.mechanism, *more)[:5])

    @render.ui
    def chart() -> Any:
        _, _, problem = told()
        if problem:
            return sentence(problem)
        asked, lines = draw.result()
        if not lines:
            return None
        picture = svg(
            lambda ax: plots.plot_risk(
                lines,
                ax=ax,
                parameter=asked.parameter,
                accepted=controls.input.accepted(),
                at=asked.value,
            ),
            label=f"Extra risk against {asked.parameter}",
        )
        return tags.div(HTML(picture), class_="chart")


def _elsewhere(controls: Controls, told: Any, bench: Bench) -> None:
    """The same question in Python, as a command, as a scenario, and as a report."""
    input = controls.input  # noqa: A001

    @render.ui
    def elsewhere() -> Any:
        asked, _, problem = told()
        if asked is None:
            return sentence(problem)
        return TagList(
            tags.pre(asked.python(), id="python"), tags.pre(asked.command(), id="command")
        )

    @render.download_button(filename="scenario.toml")
    def scenario() -> Any:
        yield controls.question().toml(input.accepted())

    @render.download_button(filename="report.html")
    async def report() -> Any:
        asked = controls.question().scenario(input.accepted())
        yield await bench.run(_report, asked, seconds=REPORT, long=True)


def _report(asked: Scenario) -> str:
    return html_of(answer_scenario(asked), "dprad report scenario.toml -o report.html")
