"""The chart of the page: risk against the noise, for the first release and others in its place."""

from __future__ import annotations

import asyncio
from typing import Any

from htmltools import HTML, Tag, tags
from shiny import Outputs, reactive, render, req, ui

from dprad.errors import DpradError
from dprad.mechanisms.catalogue import TABLES
from dprad.model.results import Risk
from dprad.runtime.bench import Bench
from dprad.show import plots
from dprad.show.plots.style import svg
from dprad.show.scenario.release import Release
from dprad.show.web.controls import Controls
from dprad.show.web.field import field
from dprad.show.web.population import (
    PROMISE,
    PROMISED,
    SLIDERS,
    Population,
    menu,
    parameter_of,
    readable,
    released,
)
from dprad.show.web.question import Question, Told

# Seconds that a line may take.
LINE = 20.0
POINTS = 12
# Lines that are kept.
LINES = 40
USUAL = (PROMISE, "grr", "oue", "laplace")


def latest(task: Any) -> Any:
    """The result; until there is one, what is on the page stays, in grey."""
    req(task.status() not in ("running", "cancelled"), cancel_output="progress")
    return task.result()


class _Lines:
    """Lines of a chart; the same one is not computed twice."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.drawn: dict[Any, list[Risk] | None] = {}

    async def line(
        self, asked: Question, k: int, release: Release, values: list[float]
    ) -> list[Risk] | None:
        """Risks at all values; None if it cannot be drawn."""
        others = sorted((n, str(v)) for n, v in release.numbers.items() if n != release.parameter)
        # the population itself, not its address, which another one may get
        what = (release.mechanism, str(release.query), *others)
        key = (asked.population, asked.attackers[k][1], what, values[-1])
        if key not in self.drawn:
            while len(self.drawn) >= LINES:
                self.drawn.pop(next(iter(self.drawn)))
            try:
                self.drawn[key] = await self.bench.run(
                    Question.line, asked, k, release, values, seconds=LINE, long=True
                )
            except DpradError:
                self.drawn[key] = None
        return self.drawn.get(key)


def _others(population: Population, release: Release) -> list[str]:
    """Mechanisms that could take the place of a release: same column, same parameter."""
    if release.mechanism in TABLES:
        return []
    columns = population.prior.columns
    reads = release.query if isinstance(release.query, str) else ""
    place = reads if reads in columns and len(columns) > 1 else ""
    able = [n for n, at in readable(population).items() if place in at and n not in TABLES]
    return [
        name for name in (*PROMISED, *able) if parameter_of(population, name) == release.parameter
    ]


def _drawing(kept: _Lines) -> Any:
    """The task that computes all lines."""

    @reactive.extended_task
    async def draw(found: Told, names: tuple[str, ...]) -> tuple[Told, dict[str, Any]]:
        asked, k, own = found.asked, found.strongest, found.asked.releases[0]
        now = float(own.numbers[own.parameter])
        top = max(SLIDERS[own.parameter][1], now)
        values = [top * (i + 1) / POINTS for i in range(POINTS)]
        reads = own.query if isinstance(own.query, str) else ""
        several = {own.name: own}
        for name in names:
            other = released(asked.population, name, now, reads=reads)
            title = f"any with this {own.parameter}" if other.mechanism is None else other.name
            several.setdefault(title, other)
        lines = await asyncio.gather(*[kept.line(asked, k, r, values) for r in several.values()])
        pairs = zip(several, lines, strict=True)
        return found, {name: (values, risks) for name, risks in pairs if risks}

    return draw


def chart(controls: Controls, output: Outputs, told: Any, bench: Bench) -> None:
    """Risk against the noise, for the first release alone and others in its place."""
    offered: reactive.Value[dict[str, str]] = reactive.Value({})

    @reactive.effect
    def _offer() -> None:
        found = told()
        if isinstance(found, str):
            return
        asked, release = found.asked, found.asked.releases[0]
        titles = menu(asked.population)
        names = [n for n in _others(asked.population, release) if n != release.mechanism]
        choices = {n: titles[n] for n in names}
        with reactive.isolate():
            if offered() != choices:
                offered.set(choices)

    @render.ui
    def others() -> Any:
        choices = offered()
        if not choices:
            return None
        usual = [m for m in USUAL if m in choices]
        boxes = ui.input_checkbox_group("compared", None, choices, selected=usual, inline=True)
        return field("compared", boxes)

    draw = _drawing(_Lines(bench))
    controls.tasks.append(draw)

    @reactive.effect
    def _draw() -> None:
        found = told()
        if not isinstance(found, str):
            chosen = controls.input.compared() if "compared" in controls.input else ()
            names = [n for n in chosen if n in offered()]
            draw.cancel()
            draw(found, tuple(names)[:4])

    @output(id="chart")
    @render.ui
    def picture() -> Any:
        if isinstance(told(), str):
            return None
        found, lines = latest(draw)
        if not lines:
            return None
        return _picture(found, lines)


def _picture(found: Told, lines: dict[str, Any]) -> Tag:
    asked, own = found.asked, found.asked.releases[0]
    picture = svg(
        lambda ax: plots.plot_risk(
            lines,
            ax=ax,
            parameter=own.parameter,
            accepted=None if asked.worst else asked.accepted,
            at=float(own.numbers[own.parameter]),
        ),
        label=f"Extra risk against {own.parameter}",
    )
    alone = "The first release alone, on" if len(asked.releases) > 1 else "On"
    said = f"{alone} average over people; {found.cases[0][0]}."
    return tags.div(HTML(picture), tags.p(said, class_="soft"), class_="chart")
