"""Errors without the range of the data: in units of it, where it sets the noise.

If nobody gives a sensitivity or bounds, they are the range of the data, and an error such as
``range * ln(20)/epsilon`` tells it. What is shared says "3 times the range" instead, which depends
on epsilon only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.catalogue import FAMILIES, card
from dprad.model import explain
from dprad.model.comparisons import Comparison
from dprad.verbs.compare import beats

# A range that is not that of the data, and how close to proportional is proportional.
STANDARD, CLOSE = 2.0**20, 1e-3

# What a population is given by, if its range is known anyway.
PUBLIC = {"uniform", "builtin", "domain"}
SAID = (
    "The range of the data sets the noise of some, and is not shown: their errors are in units of "
    "it. Give a sensitivity for other units."
)


@dataclass(frozen=True, slots=True)
class Useful:
    """Error and variance; `relative`: in units of the range and of its square."""

    error: float | None
    variance: float | None
    relative: bool = False

    @property
    def said(self) -> tuple[str, str]:
        """Both as text."""
        units = (" times the range", " times its square") if self.relative else ("", "")
        values = (self.error, self.variance)
        error, variance = (
            "" if x is None else explain.amount(x) + (unit if math.isfinite(x) else "")
            for x, unit in zip(values, units, strict=True)
        )
        return error, variance


def useful(mechanism: Any, name: str, given: dict[str, Any], *, public: bool) -> Useful:
    """Error and variance of a mechanism by name, made from these arguments and the data.

    `public`: whether the range is no secret of the data, but was given.
    """
    exact = Useful(mechanism.error(), mechanism.variance())
    if public or card(name).reads in ("codes", "records"):
        return exact
    try:
        one, two = (_at(name, given, length) for length in (STANDARD, 2 * STANDARD))
    except DpradError:  # what was given does not go with another range
        return Useful(None, None)
    error = _unit(exact.error, one.error, two.error, 1)
    variance = _unit(exact.variance, one.variance, two.variance, 2)
    relative = any(x is not None and x[1] for x in (error, variance))
    shown = [x[0] if x is not None and x[1] == relative else None for x in (error, variance)]
    return Useful(shown[0], shown[1], relative)


def _at(name: str, given: dict[str, Any], length: float) -> Useful:
    """The same if the data had another range."""
    arguments = FAMILIES[name].arguments(np.array([0.0, length]), given)
    mechanism = FAMILIES[name](**arguments)
    return Useful(mechanism.error(), mechanism.variance())


def _unit(
    exact: float | None, one: float | None, two: float | None, power: int
) -> tuple[float, bool] | None:
    """A number that the range does not change, or a multiple of it (True); None if neither."""
    if exact is None or one is None or two is None:
        return None
    if exact == one == two:
        return exact, False
    if one > 0 and math.isclose(two / one, 2.0**power, rel_tol=CLOSE):
        return one / STANDARD**power, True
    return None


def restated(
    table: Comparison, of: Callable[[Any], Useful]
) -> tuple[Comparison, tuple[Useful, ...]]:
    """A comparison in these units, each compared only with those of the same."""
    all_useful = tuple(of(c.mechanism) for c in table)
    rows = [(c, c.risk, u.error, u.variance) for c, u in zip(table, all_useful, strict=True)]
    candidates = []
    for row, mine in zip(rows, all_useful, strict=True):
        same = [r for r, u in zip(rows, all_useful, strict=True) if u.relative == mine.relative]
        frontier = not any(beats(other, row[1:]) for other in same)
        error, variance = row[2:]
        candidates.append(replace(row[0], error=error, variance=variance, frontier=frontier))
    return Comparison(candidates=tuple(candidates)), all_useful
