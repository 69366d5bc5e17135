"""The layout of the page: the verdict and the answer first, then the inputs, then the rest.

On a wide screen the inputs stand on the left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htmltools import HTML, Tag, tags
from shiny import ui

from dprad.show.report.sections import Section
from dprad.show.web.controls import ATTACKERS, RELEASES
from dprad.show.web.field import field
from dprad.show.web.population import Population

_STYLE = Path(__file__).with_name("page.css")


def page(
    places: dict[str, Population],
    accepted: float,
    worst: bool,
    releases: int,
    ledger: Section | None = None,
) -> Tag:
    """All inputs, and a place for every answer; a ledger as it was when the page was started."""
    return ui.page_fluid(
        tags.head(
            tags.style(HTML(_STYLE.read_text(encoding="utf-8"))),
            tags.link(rel="icon", href="data:,"),
        ),
        tags.header(
            tags.h1("What does epsilon mean?"),
            tags.div(ui.input_dark_mode(id="dark"), title="Light or dark", class_="dark"),
        ),
        tags.main(
            tags.section(ui.output_ui("progress"), ui.output_ui("verdict"), id="top"),
            tags.section(ui.output_ui("answer"), id="first"),
            tags.section(*_asked(places, accepted, worst, releases), id="controls"),
            tags.section(*_rest(), *([] if ledger is None else [_ledger(ledger)]), id="rest"),
        ),
        title="dprad explore",
        lang="en",
    )


def _rest() -> list[Tag]:
    return [
        _part("Attackers", ui.output_ui("attackers")),
        _part("How much noise is enough?", ui.output_ui("plan")),
        _part("Compare", ui.output_ui("others"), ui.output_ui("chart")),
        _part(
            "The same answer elsewhere",
            ui.output_ui("elsewhere"),
            tags.div(
                field("scenario", ui.download_button("scenario", "Scenario (TOML)")),
                field("report", ui.download_button("report", "Report (HTML)")),
                class_="downloads",
            ),
        ),
    ]


def _ledger(section: Section) -> Tag:
    """Text, figure and table of the ledger."""
    head, *rows = section.table or ((),)
    table = tags.table(
        tags.thead(tags.tr(*map(tags.th, head))),
        tags.tbody(*(tags.tr(*map(tags.td, row)) for row in rows)),
        class_="table",
    )
    return _part(
        section.title, *map(tags.p, section.text), HTML(section.figure), *([table] if rows else [])
    )


def _part(title: str, *inside: Any) -> Tag:
    return tags.div(tags.h2(title), *inside, class_="part")


def _asked(places: dict[str, Population], accepted: float, worst: bool, releases: int) -> list[Tag]:
    """Inputs: data, attackers, releases, accepted risk."""
    named = {k: p.title for k, p in places.items()} | {"file": "a file ..."}
    size = ui.input_numeric("size", "How many values", 20, min=1)
    file = ui.input_file("file", "One row per person", accept=[".csv", ".parquet"])
    slots = [ui.output_ui(f"release{k}") for k in range(max(RELEASES, releases))]
    own = [ui.output_ui(f"attacker{k}") for k in range(ATTACKERS)]
    whose = {"average": "on average over people", "worst": "for the most exposed person"}
    chosen = "worst" if worst else "average"
    return [
        _part(
            "Data",
            field("population", ui.input_select("population", None, named)),
            ui.panel_conditional("input.population === 'uniform'", field("size", size)),
            ui.panel_conditional(
                "input.population === 'file'", field("file", file), ui.output_ui("columns")
            ),
            ui.output_ui("whole_table"),
        ),
        _part(
            "Attackers",
            ui.output_ui("who_is_it"),
            ui.panel_conditional(
                "input.who === 'own'",
                *own,
                field(
                    "more_attackers",
                    ui.input_action_button(
                        "more_attackers", "Add an attacker", class_="btn-sm btn-outline-primary"
                    ),
                ),
            ),
        ),
        _part(
            "Releases",
            *slots,
            field(
                "more",
                ui.input_action_button(
                    "more", "Add a release", class_="btn-sm btn-outline-primary"
                ),
            ),
        ),
        _part(
            "Accepted risk",
            field(
                "accepted",
                ui.input_numeric("accepted", "Extra risk", accepted, min=0, max=1, step=0.01),
            ),
            field("worst", ui.input_radio_buttons("worst", None, whose, selected=chosen)),
        ),
    ]
