"""Guessing without looking at the release (table bb_ml), and with it, for comparison.

Census19 and Texas-100X are used if the data directory has them (`datasets.find`); Adult and an
excerpt of the American Community Survey stand in for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dprad.attacks.imputation import impute
from dprad.data import datasets
from dprad.data.tables import codes, read_rows
from dprad.mechanisms import GRR
from dprad.paper.experiments import Made, Options, Row, cells, needs
from dprad.show.plots.style import COLOURS

PEOPLE, PUBLIC, REPEATS, EPSILON = 1000, 49_000, 5, 1.0
# The paper's tables: loader, secret, what is known, and the paper's ReRo (its RAD is 0).
PAPER: dict[str, tuple[Any, str, tuple[str, ...], float]] = {
    "census19": (datasets.census19, "RAC1P", datasets.CENSUS_KNOWN, 0.81),
    "texas100x": (datasets.texas100x, "ETHNICITY", datasets.TEXAS_KNOWN, 0.73),
}
NAMES = {"census19": "Census19, race", "texas100x": "Texas-100X, ethnicity"}
# Census19 merges three codes of RAC1P.
RACE = {"1": "0", "2": "1", "3": "2", "4": "2", "5": "2", "6": "3", "7": "4", "8": "5", "9": "6"}
# Table, secret, known columns (None: all others).
Task = tuple[Any, str, list[str] | None]


class Sample(NamedTuple):
    """Rows to draw people from, the secret, how many values it has, and the rows of the table."""

    frame: Any
    secret: str
    size: int
    total: int


def tables(options: Options) -> dict[str, Task]:
    """Tables and secrets."""
    place = datasets.given(options.data)
    if place is None:
        if not options.quick:
            needs("adult/adult.data and census/nist_acs2019_national.csv.gz", options)
        from dprad.data import patients

        rows = np.array(patients.records(4000), dtype=object)
        built_in = _frame(patients.COLUMNS, list(rows.T))
        return {"patients (built in), diagnosis": (built_in, "diagnosis", None)}
    found: dict[str, Task] = {}
    for name, (load, secret, known, _) in PAPER.items():
        if datasets.find(name, place):
            found[NAMES[name]] = (load(place), secret, list(known))
    folder = Path(place)
    if any((f / "adult.data").exists() for f in (folder, folder / "adult")):
        for secret in ("race", "sex"):
            found[f"Adult, {secret}"] = (_adult(place), secret, None)
    census = folder / "census" / "nist_acs2019_national.csv.gz"
    if census.exists():
        names, columns = read_rows(str(census))
        at = names.index("RAC1P")
        columns[at] = np.array([RACE[str(v)] for v in columns[at]], dtype=object)
        found["ACS 2019 excerpt, race"] = (_frame(names, columns), "RAC1P", None)
    if not found:
        needs("census19.csv, texas100x.csv or adult/adult.data", options)
    return found


def _adult(place: Any) -> Any:
    """Training and test rows, if the test file is there."""
    folder = Path(place)
    both = any((f / "adult.test").exists() for f in (folder, folder / "adult"))
    return datasets.adult(place, test=both)


def _frame(names: Any, columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame({n: list(c) for n, c in zip(names, columns, strict=True)})


def run(options: Options) -> Made:
    """A row for each table and secret."""
    chosen = tables(options)
    repeats = 1 if options.quick else REPEATS
    people = 300 if options.quick else PEOPLE
    needed = repeats * (people + PUBLIC)
    known = {name: _rows(task, needed) for name, task in chosen.items()}

    def work(cell: Row, seed: int) -> list[Row]:
        return [_row(cell, seed, known[cell["table"]], people, repeats)]

    rows = cells(options, [{"table": name} for name in known], work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            "people": people,
            "repetitions": repeats,
            "classifier": "perceptron (256, 256), 10 epochs, batches of 500",
            "release of the other attack": f"GRR, epsilon {EPSILON:g}, on the secret",
        },
        sentences=_sentences(rows),
        draw=lambda figure: _draw(figure, rows),
        size=(7.0, 1.4 + 0.55 * len(rows)),
        shown=(
            "table", "records", "public", "values", "blind_guess", "rero", "rero_low",
            "rero_high", "rad", "rad_low", "rad_high", "with_release_rad", "with_release_low",
            "with_release_high",
        ),
    )  # fmt: skip


def _rows(task: Task, needed: int) -> Sample:
    """The columns that are used, as a data frame that other processes can be given.

    Of a table of the paper only as many rows, drawn at random, as all repetitions need.
    """
    table, secret, known = task
    if known is None:
        frame = _frame(*read_rows(table))
    else:
        frame = table.project(", ".join([*known, secret])).df()
    total = len(frame)
    if total > needed:
        frame = frame.sample(n=needed, random_state=0)
    return Sample(frame, secret, len(codes(frame[secret].to_numpy())[1]), total)


def _row(cell: Row, seed: int, task: Sample, people: int, repeats: int) -> Row:
    table, secret, size, total = task
    found = impute(
        table, secret=secret, release=GRR(epsilon=EPSILON, size=size), people=people,
        public=PUBLIC, repeats=repeats, rng=seed,
    )  # fmt: skip
    assert found.release_interval is not None
    return cell | {
        "records": total,
        "public": found.public,
        "values": size,
        "blind_guess": found.baseline,
        "rero": found.rero,
        "rero_low": found.rero_interval[0],
        "rero_high": found.rero_interval[1],
        "rad": found.measured_rad,
        "rad_low": found.measured_interval[0],
        "rad_high": found.measured_interval[1],
        "with_release_in": found.success_in,
        "with_release_out": found.success_out,
        "with_release_rad": found.release_rad,
        "with_release_low": found.release_interval[0],
        "with_release_high": found.release_interval[1],
    }


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    held = sum(r["rad_low"] <= 0 <= r["rad_high"] for r in rows)
    gains = sum(r["with_release_low"] > 0 for r in rows)
    return (
        _paper(rows),
        f"The imputation attack is right for {_span(r['rero'] for r in rows)} of the people "
        f"(ReRo). Its measured RAD is {_span(r['rad'] for r in rows)}, and {held} of {len(rows)} "
        "intervals (95%) hold 0. It is measured in pairs: a guess about somebody who took part, "
        "and one about somebody else, drawn alike, who did not. By Definition 1 it is exactly 0, "
        "because the attack does not read the release.",
        f"Ours, in the second colour, is another attack, which reads a release (GRR, epsilon "
        f"{EPSILON:g}, on the secret): its RAD is {_span(r['with_release_rad'] for r in rows)}, "
        f"above 0 beyond its interval in {gains} of {len(rows)} tables.",
        f"The paper's classifier learns from {PUBLIC:,} records (D_-); here from "
        + ", ".join(f"{r['public']:,} ({r['table']}, {r['records']:,} records)" for r in rows)
        + ".",
    )


def _paper(rows: list[Row]) -> str:
    """The paper's numbers beside ours, where its tables are at hand."""
    own = {r["table"]: r for r in rows}
    text = []
    for name, (*_, rero) in PAPER.items():
        row = own.get(NAMES[name])
        ours = "not at hand here" if row is None else f"here {row['rero']:.2f}, {row['rad']:.3f}"
        text.append(f"{NAMES[name]}: ReRo {rero:.2f}, RAD 0 ({ours})")
    others = [r["table"] for r in rows if r["table"] not in NAMES.values()]
    instead = f" Other tables here: {'; '.join(others)}." if others else ""
    return f"The paper has {'; '.join(text)}.{instead}"


def _span(values: Any) -> str:
    every = sorted(round(v, 3) for v in values)
    same = every[0] == every[-1]
    return f"{every[0]:.3f}" if same else f"{every[0]:.3f} to {every[-1]:.3f}"


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    at = np.arange(len(rows))[::-1]
    bars = (
        ("rero", "rero_low", "rero_high", 0.27, COLOURS[0], "imputation: success (ReRo)"),
        ("rad", "rad_low", "rad_high", 0.0, COLOURS[5], "imputation: extra risk (RAD)"),
        ("with_release_rad", "with_release_low", "with_release_high", -0.27, COLOURS[1],
         "ours, an attack that reads a release: RAD"),
    )  # fmt: skip
    for name, low, high, shift, colour, label in bars:
        value = np.array([r[name] for r in rows])
        ends = [value - [r[low] for r in rows], [r[high] for r in rows] - value]
        ax.barh(at + shift, value, 0.25, color=colour, label=label)
        ax.errorbar(value, at + shift, xerr=ends, fmt=".", color="black", markersize=2,
                    elinewidth=0.8, capsize=2)  # fmt: skip
    ax.axvline(0.0, color="black", linewidth=0.6)
    ax.set_yticks(at, [r["table"] for r in rows])
    ax.set_xlim(-0.12, 1)
    ax.set_xlabel("share of people (ReRo), difference of shares (RAD)")
    ax.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3,
              columnspacing=1.0)  # fmt: skip
