"""The paper's experiments, one file each, and one beyond it.

An experiment is a function of `Options` that returns a `Made`: a table, a figure, what it was made
with, and what to say about the paper's numbers. `write` makes NAME.csv, .json, .svg, .png and .md
of it. Long ones keep finished cells in NAME.cells.jsonl and go on from there.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import platform
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dprad.data import datasets
from dprad.errors import DpradError, one_of, part
from dprad.runtime.journal import Journal, first_line
from dprad.runtime.progress import steps
from dprad.runtime.workers import stream
from dprad.runtime.writing import folder as made_folder
from dprad.runtime.writing import write as write_file

Row = dict[str, Any]
# Name: the module, the figure or table of the paper, what it shows.
EXPERIMENTS = {
    "mechanisms": ("mechanisms", "figure optimal_examples", "five mechanisms, one risk each"),
    "laplace-utility": ("laplace_utility", "figure laplace_accu", "error at equal risk"),
    "black-box": ("black_box", "figure black_box bounds", "bounds from a promise alone"),
    "dpsgd-mnist": ("dpsgd", "figure dp-sgd_mnist", "private training on MNIST, three attackers"),
    "dpsgd-fashion": ("dpsgd", "figure dp-sgd_fashion", "the same on Fashion-MNIST"),
    "laplace-adult": ("laplace_adult", "figure census_attack", "hours per week with Laplace noise"),
    "imputation": ("imputation", "table bb_ml", "guessing without looking at the release"),
    "ldp-attacks": ("ldp_attacks", "figure LDP_attacks", "attacks on GRR, OUE, subset selection"),
    "ldp-audit": (
        "ldp_audit",
        "figures audit_porto, audit_beijing",
        "the paper's audits, LDP Auditor and ours",
    ),
    "monte-carlo": (
        "monte_carlo",
        "figures MC_results, MC_results_beta",
        "nested Monte Carlo against exact values",
    ),
    "ldp-settings": (
        "ldp_settings",
        "beyond the paper",
        "audits of many reports and of many attributes",
    ),
    "over-time": ("over_time", "beyond the paper", "what the next report tells"),
    "locations": ("locations", "beyond the paper", "what epsilon means on a map"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run: data, runs (None: as many as the paper), seed, where to put it, processes."""

    name: str
    data: str | None = None
    runs: int | None = None
    quick: bool = False
    rng: int = 0
    out: Path | None = None
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Rows with the same keys, a figure, the parameters, and sentences about the paper's numbers.

    `shown` names the columns of the printed table (default: all); `draw` takes a matplotlib figure.
    """

    name: str
    rows: list[Row]
    parameters: Row
    sentences: tuple[str, ...]
    draw: Callable[[Any], None]
    size: tuple[float, float] = (7.0, 4.0)
    shown: tuple[str, ...] = ()


def run(options: Options) -> Made:
    """Run one experiment."""
    one_of(options.name, "name", EXPERIMENTS)
    module = importlib.import_module(f"dprad.paper.experiments.{EXPERIMENTS[options.name][0]}")
    made: Made = module.run(options)
    return made


def cells(options: Options, grid: list[Row], work: Callable[[Row, int], list[Row]]) -> list[Row]:
    """Rows of all cells of a grid; finished ones are kept on disk and not run again.

    `work(cell, seed)` gives a cell's rows; the seed depends on the cell's place and nothing else.
    """
    plain = {"out": None, "workers": None, "data": None}  # no number depends on where these are
    about = {"dprad": "experiment", "options": asdict(options) | plain}
    journal = None if options.out is None else _journal(options, about)
    done: dict[str, list[Row]] = {}
    if journal is not None:
        done = {row["cell"]: row["rows"] for row in journal.rows}
    keys = [json.dumps(cell, sort_keys=True) for cell in grid]
    new = [i for i, key in enumerate(keys) if key not in done and keys.index(key) == i]
    tasks = [(grid[i], 1000 * options.rng + i) for i in new]
    with closing(stream(work, tasks, options.workers, threads=False)) as fresh:
        for key in steps(f"{options.name}, cells", keys):
            if key not in done:
                done[key] = json.loads(json.dumps(next(fresh), default=float))
                if journal is not None:
                    journal.append({"cell": key, "rows": done[key]})
    return [row for key in keys for row in done[key]]


def _digest(data: str | None) -> str | None:
    """A hash of all files of the data directory; None if there is none. Reads them."""
    given = datasets.given(data)
    if given is None:
        return None
    place = Path(given)
    whole = hashlib.sha256()
    for path in sorted(p for p in [place, *place.rglob("*")] if p.is_file()):
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(place)} {own}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _journal(options: Options, about: Row) -> Journal:
    """Finished cells of this experiment. Those of other options, data, versions or code are put
    aside, and begun anew.
    """
    assert options.out is not None
    file = made_folder(options.out) / f"{options.name}.cells.jsonl"
    about |= {"data": _digest(options.data), "environment": _environment(), "code": _code()}
    plain = json.loads(json.dumps(about, default=str))
    before = first_line(file)
    ours = before is not None and before.get("dprad") == "experiment"
    if ours and before != plain | {"check": before.get("check")}:  # type: ignore[union-attr]
        file.replace(options.out / f"{options.name}.cells.earlier.jsonl")
    return Journal.open(
        file, plain, lambda first: "" if first.get("dprad") == "experiment" else "it is not ours"
    )


def _code() -> str:
    """A digest of the source files of dprad, as they are now."""
    home = Path(__file__).parents[2]
    found = hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        found.update(f"{file.relative_to(home)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


# -- what is written -------------------------------------------------------------------------------
def write(made: Made, out: Any, command: str = "") -> list[Path]:
    """NAME.csv, .json (parameters, environment, date), .svg, .png and .md (all of it to read)."""
    folder = Path(out)
    when = datetime.now(UTC).date().isoformat()
    about = made.parameters | {"date": when, "command": command, "environment": _environment()}
    files = [folder / f"{made.name}.{ending}" for ending in ("csv", "json", "svg", "png", "md")]
    parts: tuple[str | bytes, ...] = (
        _table(made),
        json.dumps(about, indent=2) + "\n",
        *_figure(made),
        _page(made, about),
    )
    made_folder(folder)
    for file, content in zip(files, parts, strict=True):
        write_file(file, content)
    finished = folder / f"{made.name}.cells.jsonl"
    finished.unlink(missing_ok=True)
    return files


def _table(made: Made) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(made.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _short(v, 6) for k, v in row.items()} for row in made.rows)
    return text.getvalue()


def _figure(made: Made) -> tuple[bytes, bytes]:
    """As SVG and PNG."""
    matplotlib = part("matplotlib", "figures", "plots")
    figures = part("matplotlib.figure", "figures", "plots")
    style = {"svg.hashsalt": "dprad", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(style):
        figure = figures.Figure(figsize=made.size, layout="constrained")
        made.draw(figure)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=110)
    return svg.getvalue(), png.getvalue()


def _page(made: Made, about: Mapping[str, Any]) -> str:
    _, where, title = EXPERIMENTS[made.name]
    columns = made.shown or tuple(made.rows[0])
    table = [f"| {' | '.join(c.replace('_', ' ') for c in columns)} |", "|---" * len(columns) + "|"]
    table += [f"| {' | '.join(str(_short(r[c], 4)) for c in columns)} |" for r in made.rows]
    parameters = {k: v for k, v in about.items() if k not in ("environment", "date", "command")}
    lines = [
        f"# {made.name}: {title}",
        "",
        f"The paper's {where}." if where != "beyond the paper" else "Beyond the paper.",
        f"Made on {about['date']} by `{about['command']}`.",
        "",
        f"![{title}]({made.name}.svg)",
        "",
        *[line for sentence in made.sentences for line in (sentence, "")],
        *table,
        "",
        f"All columns are in `{made.name}.csv`. Made with: "
        + "; ".join(f"{k.replace('_', ' ')} {_plain(v)}" for k, v in parameters.items())
        + ".",
        "",
    ]
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(value: Any, digits: int) -> Any:
    if value is None:
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else value


def _environment() -> Row:
    import numpy
    import scipy

    import dprad

    return {
        "dprad": dprad.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
    }


def agrees(found: float, printed: float, digits: int) -> bool:
    """Whether a number is the printed one, to its digits."""
    return abs(found - printed) <= 0.5 * 10.0**-digits + 1e-12


def verdict(checks: list[tuple[str, float, float, int]], source: str = "reference numbers") -> str:
    """How many numbers (name, ours, theirs, digits) came out, and which did not.

    `source` says whose they are: the paper's printed ones, or our own by other means.
    """
    wrong = [c for c in checks if not agrees(*c[1:])]
    text = f"{len(checks) - len(wrong)} of {len(checks)} {source} agree to their digits."
    for name, ours, theirs, digits in wrong:
        text += f" {name}: {ours:.{digits + 1}f}, not {theirs:.{digits}f}."
    return text


def needs(what: str, options: Options) -> None:
    """Say what to download."""
    raise DpradError(
        f"{options.name} needs {what} in the data directory (--data or DPRAD_DATA); --quick "
        f"runs on "
        "a built-in substitute."
    )
