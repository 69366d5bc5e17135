"""The layout of the page: inputs on the left, answers on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htmltools import HTML, Tag, tags
from shiny import ui

from dprad.model.results import Risk
from dprad.show.plots.odds import grids
from dprad.show.web.question import SLIDERS, Population, Question

_STYLE = Path(__file__).with_name("page.css")


def page(places: dict[str, Population], first: Question, accepted: float) -> Tag:
    """All inputs, and a place for every answer."""
    noise = ui.card(
        ui.card_header("How much noise for an accepted risk?"),
        ui.input_numeric("accepted", "Accepted extra risk", accepted, min=0, max=1, step=0.01),
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
        _asked(places, first),
        tags.head(
            tags.style(HTML(_STYLE.read_text(encoding="utf-8"))),
            tags.link(rel="icon", href="data:,"),
        ),
        ui.card(ui.output_ui("answer")),
        noise,
        chart,
        same,
        title=tags.div("What does epsilon mean?", ui.input_dark_mode(id="dark"), class_="top"),
        window_title="dprad explore",
        fillable=False,
    )


def _asked(places: dict[str, Population], first: Question) -> Any:
    """Inputs: population, attacker, release."""
    key = next(k for k, p in places.items() if p is first.population)
    low, high, step = SLIDERS[first.parameter]
    return ui.sidebar(
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
            ui.input_file(
                "file", "CSV or Parquet, one row per person", accept=[".csv", ".parquet"]
            ),
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
        open={"desktop": "open", "mobile": "always-above"},
    )


def dots(risk: Risk) -> Tag:
    """A hundred people, marked: absent and present."""
    figures = []
    for title, count, kinds in grids(risk):
        circles = "".join(
            f'<circle cx="{5 + 10 * (i % 10)}" cy="{5 + 10 * (i // 10)}" r="3.6" class="{kind}"/>'
            for i, kind in enumerate(kinds)
        )
        picture = HTML(f'<svg viewBox="0 0 100 100" aria-hidden="true">{circles}</svg>')
        figures.append(tags.figure(tags.figcaption(f"{title}: {count}"), picture))
    return tags.div(*figures, class_="odds")


def sentence(message: str) -> Tag:
    """What is wrong with a question."""
    return tags.div(message, class_="alert alert-warning", role="alert")
