"""The paper's experiments, one file each. Each writes a table and what it was made with.

An experiment is a function of `Options` that returns a `Made`; the registry says which there are.
"""

from __future__ import annotations

import csv
import importlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprad.errors import one_of

# Name: the module, what it remakes.
EXPERIMENTS = {
    "dpsgd-mnist": ("dpsgd", "DP-SGD on MNIST: three attackers, six noise levels"),
    "dpsgd-fashion": ("dpsgd", "DP-SGD on Fashion-MNIST: three attackers, six noise levels"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run: where data is, how many runs (None: as many as the paper), seed."""

    name: str
    data: str | None = None
    runs: int | None = None
    quick: bool = False
    rng: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A table (rows with the same keys), the parameters behind it, and a sentence about it."""

    name: str
    rows: list[dict[str, Any]]
    parameters: dict[str, Any]
    sentence: str


def run(options: Options) -> Made:
    """Run one experiment."""
    one_of(options.name, "name", EXPERIMENTS)
    module = importlib.import_module(f"dprad.experiments.{EXPERIMENTS[options.name][0]}")
    made: Made = module.run(options)
    return made


def write(made: Made, out: Any) -> list[Path]:
    """NAME.csv with the table, NAME.json with parameters and environment."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table, about = folder / f"{made.name}.csv", folder / f"{made.name}.json"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(made.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _short(v) for k, v in row.items()} for row in made.rows)
    about.write_text(json.dumps(made.parameters | {"environment": _environment()}, indent=2) + "\n")
    return [table, about]


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _environment() -> dict[str, str]:
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
