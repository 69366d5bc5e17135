"""The server side of the page: keeps the answer up to date.

Every answer is computed in a process of its own (`runtime.bench`), outside Shiny's reactive graph,
so that a slow question blocks nobody and ends when another one is asked.
"""

from __future__ import annotations

import asyncio
from typing import Any

from htmltools import TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, render, req

from dprad.errors import DpradError
from dprad.model.results import Calibration, Risk
from dprad.runtime.bench import Bench
from dprad.show.report.page import html_of
from dprad.show.report.sections import Section
from dprad.show.scenario import Scenario
from dprad.show.scenario import answer as answer_scenario
from dprad.show.scenario.advice import Advice
from dprad.show.web import drawn
from dprad.show.web.chart import chart, latest
from dprad.show.web.controls import Controls
from dprad.show.web.page import page
from dprad.show.web.population import RELEASE, of_scenario, patients, uniform
from dprad.show.web.question import Question, Told
from dprad.show.web.upload import Waiting

# Seconds that the answer about an attacker, a calibration, a report, and all attackers may take.
ANSWER, PLAN, REPORT, TOTAL = 20.0, 30.0, 120.0, 60.0
# Seconds in which changes are collected before they are asked about, and between two looks.
PAUSE, LOOK = 0.1, 0.25


def make_app(
    scenario: Scenario | None = None, bench: Bench | None = None, ledger: Section | None = None
) -> App:
    """The page, with a scenario's population, attackers and releases if there is one."""
    places = {"patients": patients(), "uniform": uniform(20)}
    opening = [("grr", 1.0, "diagnosis")]
    accepted, worst = 0.1, False
    if scenario is not None:
        places = {"scenario": of_scenario(scenario), **places}
        opening = [
            (f"{RELEASE} {k}", float(r.numbers[r.parameter]), "")
            for k, r in enumerate(scenario.releases)
        ]
        accepted = 0.1 if scenario.accepted is None else scenario.accepted
        worst = scenario.worst
    shared = Bench() if bench is None else bench

    def server(input: Inputs, output: Outputs, session: Session) -> None:  # noqa: A002
        controls = Controls(input, output, session, places, opening, shared)
        told = _told(controls, shared)
        _answer(told)
        _plan(controls, told, shared)
        chart(controls, output, told, shared)
        _elsewhere(controls, told, shared)
        session.on_ended(controls.cancel)

    app = App(page(places, accepted, worst, len(opening), ledger), server)
    app.sanitize_errors = True
    return app


async def ask_each(asked: Question, bench: Bench, rows: dict[int, tuple[Risk, ...]]) -> None:
    """Fill in the risks, attacker by attacker; none gets more seconds than are left for all."""
    late = (
        f"this takes more than {TOTAL:g} seconds, too long for the page. Choose fewer columns or "
        "attackers, or use Python."
    )
    left = TOTAL
    for k in reversed(range(len(asked.attackers))):  # those who know most come last
        if left <= 0:
            raise DpradError(late)
        most, said = (ANSWER, "") if left >= ANSWER else (left, late)
        rows[k], took = await bench.run(Question.risks, asked, k, seconds=most, late=said)
        left -= took


def _told(controls: Controls, bench: Bench) -> Any:
    """The latest question with its risks, or a sentence that says what is wrong."""
    rows: dict[int, tuple[Risk, ...]] = {}  # risks by attacker, as far as they are known
    at: list[Question | None] = [None]

    @reactive.extended_task
    async def ask(asked: Question | None, problem: str) -> Told | str:
        rows.clear()
        at[0] = asked
        await asyncio.sleep(PAUSE)
        if asked is None:
            return problem
        try:
            await ask_each(asked, bench, rows)
        except DpradError as error:
            return str(error)
        return Told(asked, tuple(rows[k] for k in range(len(asked.attackers))))

    controls.tasks.append(ask)

    @reactive.effect
    def _ask() -> None:
        try:
            if isinstance(controls.place(), Waiting):
                return
            asked, problem = controls.question(), ""
        except DpradError as error:
            asked, problem = None, str(error)
        ask.cancel()
        ask(asked, problem)

    @render.ui
    def progress() -> Any:
        now = controls.place()
        if isinstance(now, Waiting):
            return drawn.progress(now)
        if ask.status() not in ("running", "cancelled"):
            return None
        reactive.invalidate_later(LOOK)
        return drawn.progress("Computing") if at[0] is None else drawn.so_far(at[0], rows)

    @reactive.calc
    def told() -> Told | str:
        req(not isinstance(controls.place(), Waiting), cancel_output="progress")
        found: Told | str = latest(ask)
        return found

    return told


def _answer(told: Any) -> None:
    """What is wrong is said here, and nowhere else."""

    def shown(draw: Any) -> Any:
        found = told()
        return None if isinstance(found, str) else draw(found)

    @render.ui
    def verdict() -> Any:
        return shown(drawn.verdict)

    @render.ui
    def answer() -> Any:
        found = told()
        return drawn.problem(found) if isinstance(found, str) else drawn.answer(found)

    @render.ui
    def attackers() -> Any:
        return shown(drawn.attackers)


def _plan(controls: Controls, told: Any, bench: Bench) -> None:
    """How much noise for the accepted risk."""

    @reactive.extended_task
    async def find(found: Told) -> tuple[Told, Calibration | Advice | DpradError | None]:
        try:
            work = (Question.plan, found.asked, found.cases[0][0])
            return found, await bench.run(*work, seconds=PLAN, long=True)
        except DpradError as error:
            return found, error

    controls.tasks.append(find)

    @reactive.effect
    def _find() -> None:
        found = told()
        find.cancel()
        if not isinstance(found, str) and found.asked.accepted is not None:
            find(found)

    @render.ui
    def plan() -> Any:
        found = told()
        if isinstance(found, str):
            return None
        if found.asked.accepted is None:
            return tags.p("Give an accepted risk first.")
        asked, result = latest(find)
        if isinstance(result, DpradError):
            return drawn.plan(result, asked) or tags.p(str(result))
        return drawn.plan(result, asked)


def _elsewhere(controls: Controls, told: Any, bench: Bench) -> None:
    """The same question in Python, as a command, as a scenario, and as a report."""

    @render.ui
    def elsewhere() -> Any:
        found = told()
        if isinstance(found, str):
            return None
        asked = found.asked
        return TagList(
            tags.pre(asked.python(), id="python"), tags.pre(asked.command(), id="command")
        )

    @render.download_button(filename="scenario.toml")
    def scenario() -> Any:
        yield controls.question().toml()

    @render.download_button(filename="report.html")
    async def report() -> Any:
        asked = controls.question()
        yield await bench.run(_report, asked, seconds=REPORT, long=True)


def _report(asked: Question) -> str:
    return html_of(answer_scenario(asked.scenario()), "dprad report scenario.toml -o report.html")
