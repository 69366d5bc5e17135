"""The risk behind every deployment: numbers for each reading of its promise, and the table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import category

from dprad.errors import DpradError
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.runtime.progress import steps
from dprad.show.atlas.reading import Read, read_entry
from dprad.show.atlas.schema import read
from dprad.verbs.assess import assess

# Values of the secret, and the delta at which other promises are stated as an epsilon.
SECRET, DELTA = 10, 1e-6
# Signs that begin a formula: = + - @, also in wide and small form, and a minus.
_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
HEADS = (
    *("deployment", "by", "since", "unit", "parameters", "neighbours", "average", "one person"),
    *("secret of 10", "a year", "a year, secret of 10", "not known"),
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Upper bounds on the extra risk: no prior, on average over people and of one person; and of a
    secret of ten equally likely values.
    """

    average: float
    person: float
    secret: float

    @classmethod
    def of(cls, promise: Guarantee) -> Numbers:
        """By `assess`."""
        free = assess(promise, prior=Prior.unknown())
        ten = assess(promise, prior=Prior.uniform(SECRET))
        assert free.worst is not None
        return cls(free.rad, free.worst, ten.rad)


@dataclass(frozen=True, slots=True)
class Row:
    """A deployment: what was read, and for each reading the numbers of one unit and of a year."""

    read: Read
    epsilon: float
    unit: tuple[Numbers, ...]
    year: tuple[Numbers, ...]

    @classmethod
    def of(cls, found: Read) -> Row:
        """Costs a few seconds where a release repeats."""
        promises = list(found.promises.values())
        year = [p.repeated(found.times) for p in promises] if found.times > 1 else []
        return cls(
            read=found,
            epsilon=_epsilon(promises[0]) if promises else math.nan,
            unit=tuple(map(Numbers.of, promises)),
            year=tuple(map(Numbers.of, year)),
        )

    def cells(self) -> tuple[str, ...]:
        """The row as text, as in `HEADS`; two numbers are the two readings of the neighbours."""
        r = self.read
        numbers = [
            *(span(n.average for n in self.unit), span(n.person for n in self.unit)),
            *(span(n.secret for n in self.unit), span(n.average for n in self.year)),
            span(n.secret for n in self.year),
        ]
        unknown = "; ".join([*([r.reason.rstrip(".")] if r.reason else []), *r.unknown])
        when = r.date[:4]
        texts = (r.name, r.curators, when, r.unit, r.parameters, r.stated, *numbers, unknown)
        return tuple(map(_visible, texts))


def registered(folder: Path) -> list[Path]:
    """The registry files of a folder, or of its subfolder `deployments`."""
    if not folder.is_dir():
        raise DpradError(f"{folder} is not a folder of registry files.")
    inner = folder / "deployments"
    home = inner if inner.is_dir() else folder
    files = sorted(p for p in home.iterdir() if p.suffix in (".yaml", ".yml"))
    if not files:
        raise DpradError(f"{folder} has no registry files (*.yaml).")
    return files


def collect(folder: Path) -> list[Row]:
    """A row for every registry file of a folder, by name."""
    files = registered(folder)
    rows = [Row.of(read_entry(read(file))) for file in steps("deployments", files)]
    return sorted(rows, key=lambda row: row.read.name.lower())


def span(values: Iterable[float]) -> str:
    """One number, or the two readings: rounded up to hundredths."""
    text = list(dict.fromkeys(up(v) for v in values))
    return " or ".join(text)


def up(value: float) -> str:
    """Rounded up to hundredths."""
    return f"{min(1.0, math.ceil(value * 100 - 1e-9) / 100):.2f}"


def _epsilon(promise: Guarantee) -> float:
    """An epsilon to draw: as stated, or at a small delta."""
    return promise.point[0] if promise.point is not None else promise.epsilon_at(DELTA)


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Headings and cells."""
    return [HEADS, *(row.cells() for row in rows)]


def csv_of(rows: Sequence[Row]) -> str:
    """The table for programs: a line for each reading of the neighbours, unrounded."""
    heads: list[Any] = ["deployment", "by", "date", "unit", "parameters", "stated", "neighbours"]
    heads += ["average", "person", "secret", "times_a_year"]
    heads += ["year_average", "year_person", "year_secret", "not_known"]
    lines = [heads]
    for row in rows:
        r = row.read
        told = [_cell(t) for t in (r.name, r.curators, r.date, r.unit, r.parameters, r.stated)]
        unknown = _cell("; ".join([*([r.reason] if r.reason else []), *r.unknown]))
        for k, reading in enumerate(r.promises or {"": None}):
            unit = _plain(row.unit[k]) if row.unit else ["", "", ""]
            year = _plain(row.year[k]) if row.year else ["", "", ""]
            lines.append([*told, reading, *unit, r.times, *year, unknown])
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines)


def _quoted(value: Any) -> str:
    """A cell of a line: in quotes if it holds one, a comma, or a semicolon, where some split."""
    text = str(value)
    return '"{}"'.format(text.replace('"', '""')) if set(text) & set('",;') else text


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula, even if it begins a cell at a semicolon."""
    return re.sub(rf"(^|;\s*)(?=[\"\s]*[{_SIGNS}])", r"\1'", _visible(text))


def _visible(text: str) -> str:
    """Without control characters, and signs that are not seen or turn the text around."""
    hidden = ("Cc", "Cf")
    return " ".join("".join(c for c in text if c.isspace() or category(c) not in hidden).split())


def _plain(numbers: Numbers) -> list[str]:
    return [f"{v:.6f}" for v in (numbers.average, numbers.person, numbers.secret)]
