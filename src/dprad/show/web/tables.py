"""The table releases that the page offers, with noise whose risk is exact or quick to estimate.

The page asks only which column is read. Bins are of equal width and clamps are the range of the
column, rounded outwards to a power of ten; what is published should not depend on the data, so its
name says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.model.priors import Prior
from dprad.show.scenario.release import Release

COUNTS, MARGINALS, HISTOGRAM, SUMS, MEAN = "counts", "marginals", "histogram", "sums", "mean"
TABLES = (COUNTS, MARGINALS, HISTOGRAM, SUMS, MEAN)
# Bins of a histogram.
BINS = 10
# Clamps and bins that follow the data are no promise.
GUESSED = ", seen in the data: fix your own before you publish"


def places(prior: Prior, few: bool) -> dict[str, tuple[str, ...]]:
    """What each table can be about: columns, or "" for all of them; `few`: of few records."""
    columns = prior.columns
    several = len(columns) > 1
    made: dict[str, tuple[str, ...]] = {COUNTS: ("", *columns) if several else ("",)}
    if several and few:
        made[MARGINALS] = ("",)
    spans = {name: _span(prior, name) for name in columns}
    numbers = tuple(name if several else "" for name, span in spans.items() if span is not None)
    if numbers:
        made |= {HISTOGRAM: numbers, SUMS: numbers} | ({MEAN: numbers} if few else {})
    return made


def table(prior: Prior, kind: str, reads: str, amount: dict[str, float], near: str) -> Release:
    """A release as a scenario has it: `reads` is a column, or "" for all of them."""
    columns = prior.columns
    if kind in (COUNTS, MARGINALS):
        by = [reads] if reads else list(columns)
        about: dict[str, Any] = {"by": by if kind == COUNTS else [[name] for name in by]}
        noise = "geometric"
        title = f"counts by {(', ' if kind == COUNTS else ', by ').join(by)}"
    else:
        name = reads or columns[0]
        low, high = _span(prior, name) or (0.0, 1.0)
        about, noise = {"of": name, "clamp": [low, high]}, "laplace"
        title = (
            f"{'sum' if kind == SUMS else 'mean'} of {name} clamped to {low:g}..{high:g}{GUESSED}"
        )
        if kind == HISTOGRAM:
            edges = np.linspace(low, high, BINS + 1).tolist()
            about, noise = {"of": name, "bins": edges}, "geometric"
            title = f"{name} in {BINS} bins from {low:g} to {high:g}{GUESSED}"
    about |= {"noise": noise, **amount, "neighbours": near}
    return Release(f"{title} ({noise} noise, {near})", kind, about, None)


def _span(prior: Prior, name: str) -> tuple[float, float] | None:
    """The range of a column of numbers, outwards to multiples of a power of ten that is no smaller
    than the range (nor than 10 for whole numbers, unless they are 0 and 1): its ends may be
    somebody's values. None if it has none.
    """
    values = prior.column(name)
    if values.dtype.kind not in "if":
        return None
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(high - low) and high > low):
        return None
    whole = np.all(values == np.rint(values)) and not (low == 0.0 and high == 1.0)
    unit = 10.0 ** np.ceil(np.log10(max(high - low, 10.0 if whole else 0.0)))
    return float(np.floor(low / unit) * unit), float(np.ceil(high / unit) * unit)
