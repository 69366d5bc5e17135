"""The atlas as a page (HTML), a table (CSV, Markdown) and a figure (SVG)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import dprad
from dprad.errors import part
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.runtime.writing import folder as made_folder
from dprad.runtime.writing import spared
from dprad.runtime.writing import write as write_file
from dprad.show.atlas.rows import HEADS, SECRET, Row, csv_of, table
from dprad.show.plots.style import COLOURS, svg
from dprad.show.report.evidence.text import plain
from dprad.verbs.assess import assess

# Points of a curve.
POINTS = 60
TITLE = "An atlas of deployments"
LABEL = "Epsilon against the extra risk for a secret of ten equally likely values"
INTRO = (
    "How much more often an attacker can be right about a person because that person is in the "
    "data, for published deployments of differential privacy: at most, by what each promise allows."
)
COLUMNS = {
    "average": "extra risk of one unit, averaged over people, whatever is known of the population "
    "and of the person (no prior).",
    "one person": "the same for a single person, the most exposed.",
    "secret of 10": "extra risk where the secret is one of ten equally likely values and nothing "
    "else is known.",
    "a year": "the average and the secret again, if the same promise is made in every period of a "
    "year and the person takes part each time. Empty if the entry does not say that it repeats.",
}
READINGS = (
    "Two numbers, as in 0.25 or 0.47, are the two readings of a promise whose neighbours are not "
    "stated: one record is replaced, or added and removed. Take the larger one. All numbers are "
    "upper bounds, rounded up to hundredths. Guessing one of ten values blindly is right in 0.10 "
    "of all cases, so the extra risk is at most 0.90. If rho and epsilon are given, rho counts."
)
AGAIN = "The same without rounding: [atlas.csv](atlas.csv). `dprad atlas DIR` makes this page."
CAUTION = (
    "They are limits, not measurements. A bound of 1.00 says that the promise alone rules nothing "
    "out. It does not say that anybody was harmed, or that an attack is known; mechanisms are "
    "often better than their promise.",
    "They are for one unit. If the unit is an event, a device or a day, a person has many units, "
    "and their risk is larger. Two rows with different units cannot be compared.",
    "They are not a ranking. Promises cover different data, attackers and units, and the best "
    "documented deployments show the most. A deployment without parameters is not safer.",
    "Quantities published without protection (invariants), tuning on the data, other releases "
    "about the same people, and errors of the implementation are not in the numbers.",
    "The year assumes the worst case: the person is in every release, every release spends the "
    "whole promise, and an attacker links them all. Many deployments limit this in ways that the "
    "entry does not tell.",
    "The neighbours and the rhythm are read from the words of an entry, by a program. The entries "
    "are drafts by volunteers, most of them not yet approved, and may be wrong.",
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the entries are from, in words, and the day the atlas was made."""

    name: str
    day: date

    def sentence(self, rows: Sequence[Row]) -> str:
        """Source, date and counts."""
        known = sum(bool(row.unit) for row in rows)
        return (
            f"Source: {self.name}. Made on {self.day.isoformat()} by dprad {dprad.__version__}: "
            f"{len(rows)} deployments, {known} with parameters."
        )


def write(
    rows: Sequence[Row], folder: Path, source: Source, inputs: Sequence[Path] = ()
) -> list[Path]:
    """All files, but not over `inputs`; returns their paths."""
    figure = svg(lambda ax: draw(rows, ax), label=LABEL, size=(7.2, 4.4))
    files = {
        "atlas.html": html(rows, source, figure),
        "atlas.md": markdown(rows, source, "atlas.svg"),
        "atlas.csv": csv_of(rows),
        "atlas.svg": figure.replace("<svg ", '<svg style="color:#1a1b1c;background:#ffffff" ', 1),
    }
    made_folder(folder)
    for name in files:
        spared(folder / name, inputs)
    for name, text in files.items():
        write_file(folder / name, text)
    return [folder / name for name in files]


def markdown(rows: Sequence[Row], source: Source, picture: str) -> str:
    """The page in Markdown."""
    lines = [f"# {TITLE}", "", INTRO, "", source.sentence(rows), "", f"![{LABEL}]({picture})", ""]
    lines += ["## What the numbers do not say", "", *[f"- {line}" for line in CAUTION], ""]
    lines += ["## The columns", "", *[f"- **{name}**: {text}" for name, text in COLUMNS.items()]]
    lines += ["", READINGS, "", AGAIN, "", "## The deployments", ""]
    lines += [f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    lines += [f"| {' | '.join(plain(cell) for cell in row.cells())} |" for row in rows]
    return "\n".join(lines) + "\n"


def html(rows: Sequence[Row], source: Source, figure: str) -> str:
    """The page in HTML: one file, no script."""
    jinja2 = part("jinja2", "reports", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dprad.show.atlas", "."),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    heads, *cells = table(rows)
    return str(
        environment.get_template("atlas.html.j2").render(
            title=TITLE,
            intro=INTRO,
            source=source.sentence(rows),
            figure=figure,
            caution=CAUTION,
            columns=COLUMNS,
            readings=READINGS,
            heads=heads,
            rows=cells,
        )
    )


def draw(rows: Sequence[Row], ax: Any) -> None:
    """A deployment is a dot, or a line between its two readings; curves are pure epsilon-DP."""
    shown = [row for row in rows if row.unit and math.isfinite(row.epsilon)]
    grid = np.geomspace(0.05, 60.0, POINTS)
    names = {REPLACE_ONE: "replaced", ADD_REMOVE: "added or removed"}
    for k, (neighbours, name) in enumerate(names.items()):
        prior = Prior.uniform(SECRET)
        risks = [assess(PureDP(float(e), neighbours=neighbours), prior=prior).rad for e in grid]
        ax.plot(grid, risks, color=COLOURS[k], linewidth=1, label=f"epsilon-DP, {name}")
    for row in shown:
        ends = [n.secret for n in row.unit]
        ax.plot([row.epsilon] * len(ends), ends, color=COLOURS[-1], linewidth=1.2, zorder=3)
        exact = next(iter(row.read.promises.values())).point is not None
        face = COLOURS[2] if exact else "none"
        ax.scatter([row.epsilon] * len(ends), ends, s=22, facecolor=face, edgecolor=COLOURS[2],
                   zorder=4)  # fmt: skip
    ax.scatter([], [], s=22, color=COLOURS[2], label="deployment, epsilon as stated")
    ax.scatter([], [], s=22, facecolor="none", edgecolor=COLOURS[2],
               label="deployment, rho as epsilon at delta 1e-6")  # fmt: skip
    ax.set_xscale("log")
    ax.set_ylim(0.0, 1.0)
    ax.set_xlabel("epsilon")
    ax.set_ylabel("extra risk, secret of 10, at most")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
