"""What the page does: the answer to what is asked, always up to date."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from dataclasses import replace
from typing import Any

from htmltools import HTML, TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, render, ui

from dprad.errors import DpradError
from dprad.model import explain
from dprad.model.results import Risk
from dprad.show import plots
from dprad.show.plots.style import svg
from dprad.show.report.page import html_of
from dprad.show.scenario import Scenario
from dprad.show.scenario import answer as answer_scenario
from dprad.show.web.guard import uploaded
from dprad.show.web.page import dots, page, sentence
from dprad.show.web.question import (
    PROMISE,
    SLIDERS,
    Population,
    Question,
    from_file,
    mechanisms_for,
    of_scenario,
    parameter_of,
    patients,
    uniform,
)

POINTS, LARGEST = 12, 10_000
USUAL = (PROMISE, "grr", "oue", "laplace")
NEAR = "A guess counts to within"


def make_app(scenario: Scenario | None = None) -> App:
    """The page, with a scenario's population and first question if there is one."""
    places = _populations(scenario)
    first = _first(scenario, places)
    accepted = 0.1 if scenario is None or scenario.accepted is None else scenario.accepted
    return App(page(places, first, accepted), _server(places, first))


def _populations(scenario: Scenario | None) -> dict[str, Population]:
    found = {"patients": patients(), "uniform": uniform(20)}
    if scenario is not None and scenario.prior.kind == "finite":
        found = {"scenario": of_scenario(scenario), **found}
    return found


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


def _server(places: dict[str, Population], first: Question) -> Any:
    def server(input: Inputs, output: Outputs, session: Session) -> None:  # noqa: A002, ARG001
        @reactive.extended_task
        async def load(path: str, name: str) -> Population | str:
            """In a thread of its own, so that nobody else waits; what is wrong is a sentence."""
            try:
                return await asyncio.to_thread(from_file, path, name)
            except DpradError as error:
                return str(error)

        @reactive.effect
        @reactive.event(input.file)
        def _load() -> None:
            files = input.file()
            if files:
                load.cancel()
                try:
                    load(uploaded(files[0]["datapath"], _uploads(session)), str(files[0]["name"]))
                except (DpradError, KeyError, TypeError):
                    load(os.devnull, "the file")

        @reactive.calc
        def population() -> Population:
            key = input.population()
            if key == "uniform":
                size = input.size()
                if not size or not 1 <= size <= LARGEST:
                    raise DpradError(f"choose between 1 and {LARGEST:,} values.")
                return uniform(int(size))
            if key == "file":
                if load.status() == "initial":
                    raise DpradError("choose a file first.")
                if load.status() == "running":
                    raise DpradError("reading the file ...")
                found = load.result()
                if isinstance(found, str):
                    raise DpradError(found)
                return found
            return places[key]

        @reactive.calc
        def place() -> Population | str:
            try:
                return population()
            except DpradError as error:
                return str(error)

        shape: reactive.Value[Any] = reactive.Value(None)

        @reactive.effect
        def _reshape() -> None:
            """Other columns need other inputs; the same ones keep what was chosen."""
            now = place()
            found = None if isinstance(now, str) else (now.prior.columns, _numeric(now))
            with reactive.isolate():
                if shape() != found:
                    shape.set(found)

        @render.ui
        def attacker() -> Any:
            if shape() is None:
                return None
            with reactive.isolate():
                now = place()
            if isinstance(now, str):
                return None
            columns = list(now.prior.columns)
            opening = now is first.population
            known = first.knows if opening else "nothing"
            kind = known if isinstance(known, str) else "columns"
            choices = {"nothing": "knows nothing of the person"}
            if len(columns) > 1:
                choices["columns"] = "knows some columns"
            choices["everything"] = "has the whole record; was it used?"
            chosen = first.target if opening else (columns[-1] if len(columns) > 1 else None)
            targets = (
                {"": "the whole record"} | {c: c for c in columns}
                if len(columns) > 1
                else {"": columns[0]}
            )
            return TagList(
                ui.input_radio_buttons("kind", None, choices, selected=kind),
                ui.panel_conditional(
                    "input.kind === 'columns'",
                    ui.input_checkbox_group(
                        "columns", "He knows", columns,
                        selected=[] if isinstance(known, str) else known,
                    ),
                ),
                ui.panel_conditional(
                    "input.kind !== 'everything'",
                    ui.input_select("target", "He is after", targets, selected=chosen or ""),
                ),
                ui.panel_conditional(
                    "input.kind !== 'everything' && " + _numeric(now),
                    ui.input_numeric("eta", NEAR, first.eta if opening else 0, min=0),
                ),
            )  # fmt: skip

        @reactive.calc
        def target() -> str | None:
            known = shape()
            name = input.target() if "target" in input else first.target
            return name if name and known is not None and name in known[0] else None

        menu: reactive.Value[dict[str, str]] = reactive.Value({})

        @reactive.effect
        def _remenu() -> None:
            """What can run here."""
            now, after = place(), target()
            found = {} if isinstance(now, str) else mechanisms_for(now, after)
            with reactive.isolate():
                if menu() != found:
                    menu.set(found)

        @render.ui
        def release() -> Any:
            choices = menu()
            if not choices:
                return None
            with reactive.isolate():
                old = input.mechanism() if "mechanism" in input else first.mechanism
            usual = first.mechanism if first.mechanism in choices else "grr"
            chosen = old if old in choices else usual
            return ui.input_select("mechanism", None, choices, selected=chosen)

        @reactive.effect
        @reactive.event(input.slider)
        def _slide() -> None:
            low, high, _ = SLIDERS[_parameter()]
            now = input.value()
            if now is None or min(max(now, low), high) != input.slider():
                ui.update_numeric("value", value=input.slider())

        @reactive.effect
        @reactive.event(input.value)
        def _type() -> None:
            low, high, _ = SLIDERS[_parameter()]
            if input.value() is not None:
                ui.update_slider("slider", value=min(max(input.value(), low), high))

        def _parameter() -> str:
            name = input.mechanism() if "mechanism" in input else first.mechanism
            now = place()
            here = first.population if isinstance(now, str) else now
            if name.startswith("release") and not here.releases:
                return "epsilon"
            return parameter_of(here, name)

        turned: reactive.Value[str] = reactive.Value(first.parameter)

        @reactive.effect
        @reactive.event(input.mechanism)
        def _turn() -> None:
            """Another mechanism may have another parameter."""
            parameter = _parameter()
            low, high, step = SLIDERS[parameter]
            if parameter == turned():
                return
            turned.set(parameter)
            now = 1.0
            name = input.mechanism()
            here = place()
            if name.startswith("release") and not isinstance(here, str):
                now = here.releases[int(name.partition(" ")[2])].numbers[parameter]
            ui.update_slider(
                "slider",
                label=parameter,
                min=low,
                max=high,
                step=step,
                value=min(max(now, low), high),
            )
            ui.update_numeric("value", label=parameter, value=now)

        @reactive.calc
        def question() -> Question:
            now = place()
            if isinstance(now, str):
                raise DpradError(now)
            kind = input.kind()
            knows: Any = kind
            if kind == "columns":
                knows = [c for c in input.columns() if c in now.prior.columns]
                knows = knows or "nothing"
            value = input.value()
            if value is None or value < 0:
                raise DpradError(f"{_parameter()} must be a number of at least 0.")
            after = None if kind == "everything" else target()
            column = after or (now.prior.columns[0] if len(now.prior.columns) == 1 else None)
            numeric = column is not None and now.prior.column(column).dtype.kind in "if"
            eta = float(input.eta() or 0.0) if numeric and kind != "everything" else 0.0
            mechanism = input.mechanism()
            if kind == "everything" and mechanism != PROMISE:
                after = target()
            return Question(
                population=now, knows=knows, target=after, eta=max(0.0, eta), mechanism=mechanism,
                value=float(value),
            )  # fmt: skip

        @reactive.calc
        async def told() -> tuple[Question | None, Risk | None, str]:
            try:
                asked = question()
                # in a thread, so that the server goes on answering
                return asked, await asyncio.to_thread(asked.risk), ""
            except DpradError as error:
                return None, None, str(error)

        @render.ui
        async def answer() -> Any:
            asked, risk, problem = await told()
            if asked is None or risk is None:
                return sentence(problem)
            kind = {
                "exact": "exact",
                "estimate": "an estimate",
                "upper-bound": "a bound: never more",
            }
            return TagList(
                tags.p(str(risk), class_="lead", id="sentence"),
                dots(risk),
                tags.p(
                    "Extra risk of taking part: ",
                    tags.span(explain.number(risk), class_="number", id="rad"),
                    f" ({kind[risk.kind]})",
                ),
                tags.p(asked.error(), id="error"),
                tags.details(
                    tags.summary("What this rests on"),
                    tags.ul(*[tags.li(line) for line in risk.assumptions]),
                    class_="soft",
                ),
            )

        @render.ui
        async def plan() -> Any:
            asked, _, problem = await told()
            limit = input.accepted()
            if asked is None:
                return sentence(problem)
            try:
                if limit is None:
                    raise DpradError("give a risk between 0 and 1.")
                found = await asyncio.to_thread(asked.plan, float(limit))
            except DpradError as error:
                good = "nothing to calibrate" in str(error)
                return tags.p(str(error)) if good else sentence(str(error))
            value = explain.safely(found.value, found.rising)
            return tags.p(
                f"Set {found.parameter} to ", tags.strong(value, id="needed"),
                f". {explain.calibration(found).splitlines()[0]}",
            )  # fmt: skip

        @render.ui
        def others() -> Any:
            choices = menu()
            if not choices:
                return None
            usual = [m for m in USUAL if m in choices]
            return ui.input_checkbox_group("compared", None, choices, selected=usual, inline=True)

        drawn: dict[Any, Any] = {}

        @render.ui
        async def chart() -> Any:
            asked, _, problem = await told()
            if asked is None:
                return sentence(problem)
            names = [asked.mechanism, *[n for n in input.compared() if n != asked.mechanism]]
            parameter = asked.parameter
            _, high, _ = SLIDERS[parameter]
            top = max(high, asked.value)
            values = [top * (i + 1) / POINTS for i in range(POINTS)]
            compared = [replace(asked, mechanism=name) for name in names[:5]]
            alike = [other for other in compared if other.parameter == parameter]
            # not in the way of other tabs
            found = await asyncio.gather(
                *[asyncio.to_thread(_line, other, values, drawn) for other in alike]
            )
            lines = {
                other.release.name: (values, line)
                for other, line in zip(alike, found, strict=True)
                if line is not None
            }
            if not lines:
                return None
            picture = svg(
                lambda ax: plots.plot_risk(
                    lines, ax, parameter=parameter, accepted=input.accepted(), at=asked.value
                ),
                label=f"Extra risk against {parameter}",
            )  # fmt: skip
            return tags.div(HTML(picture), class_="chart")

        @render.ui
        async def elsewhere() -> Any:
            asked, _, problem = await told()
            if asked is None:
                return sentence(problem)
            return TagList(
                tags.pre(asked.python(), id="python"), tags.pre(asked.command(), id="command")
            )

        @render.download_button(filename="scenario.toml")
        def scenario() -> Any:
            yield question().toml(input.accepted())

        @render.download_button(filename="report.html")
        async def report() -> Any:
            asked = question().scenario(input.accepted())
            made = await asyncio.to_thread(answer_scenario, asked)
            command = "dprad report scenario.toml -o report.html"
            yield await asyncio.to_thread(html_of, made, command)

    return server


def _uploads(session: Session) -> str:
    """The folder of this session's uploads; of all, where Shiny does not tell."""
    manager = getattr(session, "_file_upload_manager", None)
    return str(getattr(manager, "_basedir", tempfile.gettempdir()))


def _line(asked: Question, values: list[float], drawn: dict[Any, Any]) -> list[Risk] | None:
    """Risks at all values; the same line is not computed twice."""
    known = asked.knows if isinstance(asked.knows, str) else tuple(asked.knows)
    key = (id(asked.population), known, asked.target, asked.eta, asked.mechanism, values[-1])
    if key not in drawn:
        try:
            drawn[key] = asked.line(values)
        except DpradError:
            drawn[key] = None
    line: list[Risk] | None = drawn[key]
    return line


def _numeric(population: Population) -> str:
    """A condition for the page: whether what is guessed is a number."""
    columns = population.prior.columns
    numbers = [c for c in columns if population.prior.column(c).dtype.kind in "if"]
    if len(columns) == 1:
        return "true" if numbers else "false"
    return f"{json.dumps(numbers)}.includes(input.target)"
