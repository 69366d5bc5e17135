"""Options that describe a table release: what is published, in which cells, with which noise."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any

from cyclopts import Group, Parameter

from dprad.errors import DpradError, number
from dprad.mechanisms.catalogue import TABLES, card
from dprad.show.cli.options import listed, without

TABLE = Group("Or a table about many people", sort_key=2)
# What `--counts` is set to for a single number, unless a column is called so.
TOTAL = "total"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Published:
    """A table release.

    Parameters
    ----------
    counts
        Publish a table of counts: its columns, comma-separated; or total, for one number.
    marginals
        Publish several: columns of each, comma-separated, with a semicolon between tables.
    sums
        Publish sums of this column, each value moved to --clamp first.
    mean
        Publish the mean of this column.
    histogram
        Publish counts of this column in --bins.
    cells
        The columns whose values make the cells of --sums and --mean (default: one number).
    bins
        Ascending edges of the bins, comma-separated.
    where
        Who is counted, as in 'smoker = "yes" and age >= 40'.
    noise
        laplace (default), geometric, gaussian or discrete-gaussian, on every cell. The first two
        take --epsilon, the others --rho; all take --scale instead.
    weights
        Shares of the tables in --epsilon or --rho, comma-separated (default: equal).

    """

    counts: Annotated[str | None, Parameter(group=TABLE)] = None
    marginals: Annotated[str | None, Parameter(group=TABLE)] = None
    sums: Annotated[str | None, Parameter(group=TABLE)] = None
    mean: Annotated[str | None, Parameter(group=TABLE)] = None
    histogram: Annotated[str | None, Parameter(group=TABLE)] = None
    cells: Annotated[str | None, Parameter(group=TABLE)] = None
    bins: Annotated[str | None, Parameter(group=TABLE)] = None
    where: Annotated[str | None, Parameter(group=TABLE)] = None
    noise: Annotated[str | None, Parameter(group=TABLE)] = None
    weights: Annotated[str | None, Parameter(group=TABLE)] = None

    def given(self) -> dict[str, Any]:
        """Options that were used."""
        return {f"--{f.name}": getattr(self, f.name) for f in fields(self)}

    def release(
        self, numbers: dict[str, Any], neighbours: str | None, columns: tuple[str, ...]
    ) -> tuple[str, dict[str, Any]] | None:
        """The name of the release and its arguments; None if no table is asked for."""
        named = [name for name in TABLES if getattr(self, name) is not None]
        if not named:
            without("anything but a table", self.given())
            return None
        if len(named) > 1:
            raise DpradError(f"give one of {', '.join(f'--{name}' for name in named)}.")
        name = named[0]
        words = self._words(name, columns) | {"neighbours": neighbours}
        given = {k.removeprefix("--"): v for k, v in numbers.items()} | words
        takes = card(name).names
        options = {"by": "cells"} if name in ("sums", "mean") else {}
        refused = {f"--{options.get(k, k)}": v for k, v in given.items() if k not in takes}
        without(f"--{name}", refused)
        chosen = {k: v for k, v in given.items() if v is not None}
        for field in fields(TABLES[name]):  # type: ignore[arg-type]
            required = field.init and field.default is MISSING
            if required and field.name not in chosen:
                raise DpradError(f"--{name} needs --{field.name}.")
        return name, chosen

    def _words(self, name: str, columns: tuple[str, ...]) -> dict[str, Any]:
        """What is not a number, by its name in Python."""
        text = str(getattr(self, name))
        first: Any = text
        if name == "marginals":
            first = [listed(part, "--marginals") for part in text.split(";") if part.strip()]
        elif name == "counts":
            first = [] if text == TOTAL and TOTAL not in columns else listed(text, "--counts")
        by = listed(self.cells, "--cells")
        if by is not None and name not in ("sums", "mean"):
            raise DpradError(f"--cells goes with --sums and --mean, not with --{name}.")
        words = {"where": self.where, "noise": self.noise}
        return (
            words
            | {
                "weights": _numbers(self.weights, "--weights"),
                "bins": _numbers(self.bins, "--bins"),
            }
            | ({} if by is None else {"by": by})
            | {card(name).words[0]: first}
        )


def _numbers(text: str | None, option: str) -> list[float] | None:
    values = listed(text, option)
    return None if values is None else [number(v, option) for v in values]
