"""The page: inputs on the left, the answer on the right, always up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htmltools import HTML, Tag, TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, render, ui

from dprad import catalogue, explain, plots
from dprad.errors import DpradError
from dprad.plots.odds import grids
from dprad.plots.style import svg
from dprad.report.page import html_of
from dprad.results import Risk
from dprad.scenario import Scenario, answer
from dprad.web.question import (
    PROMISE,
    SLIDERS,
    Population,
    Question,
    from_file,
    mechanisms_for,
    patients,
    uniform,
)

POINTS = 16
_STYLE = """
:root { --anyway: #0072b2; --extra: #d55e00; }
[data-bs-theme=dark] { --anyway: #56b4e9; --extra: #f28e3c; }
.odds { display: flex; flex-wrap: wrap; gap: 1rem 2rem; margin: .8rem 0; }
.odds figure { margin: 0; } .odds svg { width: 10.5rem; height: 10.5rem; display: block; }
.anyway { fill: var(--anyway); stroke: var(--anyway); } .extra { fill: var(--extra); stroke: var(--extra); }
.no { fill: none; stroke: currentColor; opacity: .55; }
.lead { font-size: 1.12rem; overflow-wrap: anywhere; } .number { font-size: 1.9rem; font-weight: 600; }
.soft { opacity: .8; font-size: .93rem; } pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .82rem; }
.chart svg { max-width: 100%; height: auto; } .card { margin-bottom: 1rem; }
"""


def make_app(scenario: Scenario | None = None) -> App:
    """The page, with a scenario's population and first question if there is one."""
    places = _populations(scenario)
    first = _first(scenario, places)
    return App(_page(places, first), _server(places, first))


def _populations(scenario: Scenario | None) -> dict[str, Population]:
    found = {"patients": patients(), "uniform": uniform(20)}
    if scenario is not None and scenario.prior.kind == "finite":
        data = scenario.population
        lines = [line for line in scenario.text.splitlines()]
        own = "\n".join(_section(lines, "population"))
        name = str(data.get("data", "scenario.toml"))
        python = 'dprad.scenario.load("scenario.toml").prior'
        options = f"--data {name}" if "data" in data else "scenario.toml"
        title = f"{scenario.title} (scenario)"
        found = {"scenario": Population(title, scenario.prior, own, python, options), **found}
    return found


def _section(lines: list[str], name: str) -> list[str]:
    """The lines of one table of a TOML file, as they are."""
    inside, found = False, []
    for line in lines:
        if line.strip().startswith("["):
            inside = line.strip().startswith(f"[{name}]")
        elif inside and line.strip() and not line.strip().startswith("#"):
            found.append(line)
    return found


def _first(scenario: Scenario | None, places: dict[str, Population]) -> Question:
    """The question with which the page opens."""
    if scenario is None or "scenario" not in places:
        return Question(population=places["patients"], target="diagnosis")
    threat, release = scenario.threats[0][1], scenario.releases[0]
    target = threat.target[0] if threat.target and len(threat.target) == 1 else None
    knows = threat.knows if isinstance(threat.knows, str) else list(threat.knows)  # type: ignore[arg-type]
    mechanism = release.mechanism or PROMISE
    family = catalogue.FAMILIES.get(mechanism)
    parameter = "epsilon" if family is None else family.noise
    return Question(
        population=places["scenario"],
        knows=knows,
        target=target,
        eta=threat.eta if threat.loss == "absolute" else 0.0,
        mechanism=mechanism,
        value=float(release.numbers.get(parameter, 1.0)),
    )


# -- what is drawn ---------------------------------------------------------------------------------
def _page(places: dict[str, Population], first: Question) -> Tag:
    key = next(k for k, p in places.items() if p is first.population)
    low, high, step = SLIDERS[first.parameter]
    side = ui.sidebar(
        ui.h5("Data"),
        ui.input_select(
            "population",
            None,
            {k: p.title for k, p in places.items()} | {"file": "a file ..."},
            selected=key,
        ),
        ui.panel_conditional(
            "input.population === 'uniform'", ui.input_numeric("size", "How many values", 20, min=1)
        ),
        ui.panel_conditional(
            "input.population === 'file'",
            ui.input_file("file", "CSV or Parquet, one row a person", accept=[".csv", ".parquet"]),
        ),
        ui.h5("Attacker"),
        ui.output_ui("attacker"),
        ui.h5("Release"),
        ui.output_ui("release"),
        ui.input_slider(
            "slider", first.parameter, low, high, min(max(first.value, low), high), step=step
        ),
        ui.input_numeric("value", first.parameter, first.value, min=0, step=step),
        width=320,
        title="dprad explore",
    )
    answer_ = ui.card(
        ui.output_ui("answer"),
    )
    noise = ui.card(
        ui.card_header("How much noise for an accepted risk?"),
        ui.input_numeric("accepted", "Accepted extra risk", 0.1, min=0, max=1, step=0.01),
        ui.output_ui("plan"),
    )
    chart = ui.card(
        ui.card_header("Compare"),
        ui.output_ui("others"),
        ui.output_ui("chart"),
    )
    same = ui.card(
        ui.card_header("The same answer elsewhere"),
        ui.output_ui("elsewhere"),
        tags.div(
            ui.download_button("scenario", "Scenario (TOML)"),
            " ",
            ui.download_button("report", "Report (HTML)"),
        ),
    )
    return ui.page_sidebar(
        side,
        tags.head(tags.style(HTML(_STYLE))),
        tags.div(ui.input_dark_mode(id="dark"), style="position:absolute; right:1rem; top:.6rem"),
        answer_,
        noise,
        chart,
        same,
        title="What does epsilon mean?",
        window_title="dprad explore",
        fillable=False,
    )


def _dots(risk: Risk) -> Tag:
    figures = []
    for title, count, kinds in grids(risk):
        circles = "".join(
            f'<circle cx="{5 + 10 * (i % 10)}" cy="{5 + 10 * (i // 10)}" r="3.6" class="{kind}"/>'
            for i, kind in enumerate(kinds)
        )
        picture = HTML(f'<svg viewBox="0 0 100 100" aria-hidden="true">{circles}</svg>')
        figures.append(tags.figure(tags.figcaption(f"{title}: {count}"), picture))
    return tags.div(*figures, class_="odds")


def _sentence(message: str) -> Tag:
    return tags.div(message, class_="alert alert-warning", role="alert")


# -- what happens ----------------------------------------------------------------------------------
def _server(places: dict[str, Population], first: Question) -> Any:
    def server(input: Inputs, output: Outputs, session: Session) -> None:  # noqa: A002, ARG001
        @reactive.calc
        def population() -> Population:
            key = input.population()
            if key == "uniform":
                size = input.size()
                if not size or not 1 <= size <= 100_000:
                    raise DpradError("choose between 1 and 100,000 values.")
                return uniform(int(size))
            if key == "file":
                files = input.file()
                if not files:
                    raise DpradError("choose a file first.")
                return from_file(files[0]["datapath"], files[0]["name"])
            return places[key]

        @reactive.calc
        def place() -> Population | str:
            try:
                return population()
            except DpradError as error:
                return str(error)

        @render.ui
        def attacker() -> Any:
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
                    ui.input_numeric("eta", "A number counts as guessed to within", first.eta if opening else 0, min=0),
                ),
            )  # fmt: skip

        @reactive.calc
        def target() -> str | None:
            name = input.target()
            now = place()
            assert not isinstance(now, str)
            return name if name and name in now.prior.columns else None

        @render.ui
        def release() -> Any:
            now = place()
            if isinstance(now, str):
                return None
            choices = mechanisms_for(now, target())
            with reactive.isolate():
                old = input.mechanism() if "mechanism" in input else first.mechanism
            return ui.input_select(
                "mechanism", None, choices, selected=old if old in choices else "grr"
            )

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
            family = catalogue.FAMILIES.get(name)
            return "epsilon" if family is None else family.noise

        @reactive.effect
        @reactive.event(input.mechanism)
        def _turn() -> None:
            """Another mechanism may have another parameter."""
            parameter = _parameter()
            low, high, step = SLIDERS[parameter]
            now = input.value() or 1.0
            ui.update_slider(
                "slider",
                label=parameter,
                min=low,
                max=high,
                step=step,
                value=min(max(now, low), high),
            )
            ui.update_numeric("value", label=parameter)

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
        def told() -> tuple[Question | None, Risk | None, str]:
            try:
                asked = question()
                return asked, asked.risk(), ""
            except DpradError as error:
                return None, None, str(error)

        @render.ui
        def answer() -> Any:
            asked, risk, problem = told()
            if asked is None or risk is None:
                return _sentence(problem)
            kind = {
                "exact": "exact",
                "estimate": "an estimate",
                "upper-bound": "a bound: never more",
            }
            return TagList(
                tags.p(str(risk), class_="lead", id="sentence"),
                _dots(risk),
                tags.p(
                    "Extra risk of taking part: ",
                    tags.span(_number(risk), class_="number", id="rad"),
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
        def plan() -> Any:
            asked, _, problem = told()
            limit = input.accepted()
            if asked is None:
                return _sentence(problem)
            try:
                if limit is None:
                    raise DpradError("give a risk between 0 and 1.")
                found = asked.plan(float(limit))
            except DpradError as error:
                return _sentence(str(error))
            value = explain.safely(found.value, found.rising)
            return tags.p(
                f"Set {found.parameter} to ", tags.strong(value, id="needed"),
                f". {explain.calibration(found).splitlines()[0]}",
            )  # fmt: skip

        @render.ui
        def others() -> Any:
            now = place()
            if isinstance(now, str):
                return None
            choices = mechanisms_for(now, target())
            return ui.input_checkbox_group(
                "compared", None, choices, selected=[m for m in ("promise", "grr", "oue") if m in choices],
                inline=True,
            )  # fmt: skip

        @render.ui
        def chart() -> Any:
            asked, _, problem = told()
            if asked is None:
                return _sentence(problem)
            names = [asked.mechanism, *[n for n in input.compared() if n != asked.mechanism]]
            lines: dict[str, Any] = {}
            from dataclasses import replace

            parameter = asked.parameter
            _, high, _ = SLIDERS[parameter]
            top = max(high, asked.value)
            values = [top * (i + 1) / POINTS for i in range(POINTS)]
            for name in names[:5]:
                other = replace(asked, mechanism=name)
                if other.parameter != parameter:
                    continue
                try:
                    lines[other.release.name] = (values, other.line(values))
                except DpradError:
                    continue
            if not lines:
                return None
            picture = svg(
                lambda ax: plots.plot_risk(lines, ax, parameter=parameter, accepted=input.accepted(), at=asked.value),
                label=f"Extra risk against {parameter}",
            )  # fmt: skip
            return tags.div(HTML(picture), class_="chart")

        @render.ui
        def elsewhere() -> Any:
            asked, _, problem = told()
            if asked is None:
                return _sentence(problem)
            return TagList(
                tags.pre(asked.python(), id="python"), tags.pre(asked.command(), id="command")
            )

        @render.download(filename="scenario.toml")
        def scenario() -> Any:
            yield question().toml(input.accepted())

        @render.download(filename="report.html")
        def report() -> Any:
            asked = question()
            text = asked.toml(input.accepted())
            made = _scenario(asked, text)
            yield html_of(answer_of(made), "dprad report scenario.toml -o report.html")

    return server


def answer_of(scenario: Scenario) -> Any:
    """All answers of a scenario."""
    return answer(scenario)


def _scenario(asked: Question, text: str) -> Scenario:
    """The scenario that was asked; its population is the one on the page."""
    from dataclasses import replace

    plain = "\n".join(
        "uniform = 2" if line == asked.population.toml else line for line in text.splitlines()
    )
    del plain
    probe = Scenario(
        title="Made by dprad explore",
        text=text,
        prior=asked.prior,
        population={},
        threats=(("the attacker", asked.threat),),
        releases=(asked.release,),
        accepted=None,
        audit=None,
        folder=Path(),
    )
    limit = [line for line in text.splitlines() if line.startswith("risk = ")]
    return replace(probe, accepted=float(limit[0].split("=")[1])) if limit else probe


def _number(risk: Risk) -> str:
    if risk.kind == "estimate":
        return f"{risk.rad:.4f} ({risk.interval[0]:.4f} to {risk.interval[1]:.4f})"
    return explain.above(risk.rad)
