"""Guessing without looking at the release (table bb_ml), and with it, for comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dprad.attacks.imputation import impute
from dprad.data import datasets
from dprad.data.tables import codes, read_rows
from dprad.mechanisms import GRR
from dprad.paper.experiments import Made, Options, Row, cells, needs
from dprad.show.plots.style import COLOURS

PEOPLE, REPEATS, EPSILON = 1000, 5, 1.0
# The paper's numbers, for data that is not at hand: Census19 race, Texas-100X ethnicity.
PAPER = "ReRo 0.81 (Census19, race) and 0.73 (Texas-100X, ethnicity), RAD 0 for both"
# Census19 merges three codes of RAC1P.
RACE = {"1": "0", "2": "1", "3": "2", "4": "2", "5": "2", "6": "3", "7": "4", "8": "5", "9": "6"}


def tables(options: Options) -> dict[str, tuple[Any, str]]:
    """Tables and secrets."""
    place = datasets.given(options.data)
    if place is None:
        if not options.quick:
            needs("adult/adult.data and census/nist_acs2019_national.csv.gz", options)
        from dprad.data import patients

        rows = np.array(patients.records(4000), dtype=object)
        return {
            "patients (built in), diagnosis": (_frame(patients.COLUMNS, list(rows.T)), "diagnosis")
        }
    adult = datasets.adult(place)
    found: dict[str, tuple[Any, str]] = {
        "Adult, race": (adult, "race"),
        "Adult, sex": (datasets.adult(place), "sex"),
    }
    census = Path(place) / "census" / "nist_acs2019_national.csv.gz"
    if census.exists():
        names, columns = read_rows(str(census))
        at = names.index("RAC1P")
        columns[at] = np.array([RACE[str(v)] for v in columns[at]], dtype=object)
        found["ACS 2019 excerpt, race"] = (_frame(names, columns), "RAC1P")
    return found


def _frame(names: Any, columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame({n: list(c) for n, c in zip(names, columns, strict=True)})


def run(options: Options) -> Made:
    """A row for each table and secret."""
    known = tables(options)
    repeats = 1 if options.quick else REPEATS
    people = 300 if options.quick else PEOPLE

    def work(cell: Row, seed: int) -> list[Row]:
        table, secret = known[cell["table"]]
        names, columns = read_rows(table)
        size = len(codes(columns[names.index(secret)])[1])
        table, secret = known[cell["table"]]
        found = impute(
            table, secret=secret, release=GRR(epsilon=EPSILON, size=size), people=people,
            repeats=repeats, rng=seed,
        )  # fmt: skip
        assert found.release_interval is not None
        return [
            cell
            | {
                "values": size,
                "blind_guess": found.baseline,
                "rero": found.rero,
                "rero_low": found.rero_interval[0],
                "rero_high": found.rero_interval[1],
                "rad": found.rad,
                "with_release_in": found.success_in,
                "with_release_out": found.success_out,
                "with_release_rad": found.release_rad,
                "with_release_low": found.release_interval[0],
                "with_release_high": found.release_interval[1],
            }
        ]

    rows = cells(options, [{"table": name} for name in known], work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            "people": people,
            "repetitions": repeats,
            "classifier": "perceptron (256, 256), 10 epochs, batches of 500",
            "release": f"GRR, epsilon {EPSILON:g}, on the secret",
        },
        sentences=(
            f"The paper has {PAPER}; its two tables are not at hand, so these are other ones. The "
            "picture is the same: the classifier is right often, and that is no extra risk. The "
            "attack that reads a release gains, and only that counts.",
        ),
        draw=lambda figure: _draw(figure, rows),
        size=(7.0, 2.6),
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    at = range(len(rows))[::-1]
    ax.barh(
        [y + 0.2 for y in at],
        [r["rero"] for r in rows],
        0.35,
        color=COLOURS[0],
        label="success of imputation (ReRo)",
    )
    ax.barh(
        [y - 0.2 for y in at],
        [r["with_release_rad"] for r in rows],
        0.35,
        color=COLOURS[1],
        label="extra risk of a release (RAD)",
    )
    ax.set_yticks(list(at), [r["table"] for r in rows])
    ax.set_xlim(0, 1)
    ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
