"""RAD from a promise alone: every bound, and a table of when each applies.

The table is data: each row names a bound, its source, what it needs, and which form of the promise
it reads. None dominates everywhere, so the smallest of those that apply is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.bounds.absent import theorem_e1, theorem_e2
from dprad.bounds.absent_prior import proposition_f
from dprad.bounds.optimum import proposition_w, theorem_b
from dprad.bounds.perfect import corollary_2, theorem_4
from dprad.bounds.renyi import theorem_c_moments
from dprad.bounds.rero import balle, hayes
from dprad.bounds.static import proposition_g
from dprad.bounds.total_variation import theorem_1
from dprad.bounds.tradeoff import proposition_1, theorem_3, theorem_3_finite
from dprad.bounds.unified import theorem_c
from dprad.game.game import Game
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Guarantee
from dprad.model.results import Bound

# What a bound may need, and the reason given if it is missing.
NEEDS = {
    "finite": "needs a prior that is a table of records",
    "nothing": "holds only for an attacker who knows nothing about the target",
    "classes": "holds only if each guess is right about one class of records",
    "uniform": "holds only for equally likely classes",
    "add-remove": "needs an add-remove promise",
    "moments": "needs a Rényi or zero-concentrated promise",
    "static": "holds for one Gaussian release, not for every mechanism with this promise "
    "(set GaussianDP(..., static=True) if it is one)",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. `form`: the promise converted to replace-one, or as stated."""

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    form: str
    value: Callable[[Guarantee, Any], float]
    measure: str = "rad"


_NEW, _PAPER = "docs/theory", "the paper"
_PERFECT = ("finite", "nothing", "classes")
_SWAP, _GIVEN = "replace-one", "promise"
# The first of equal values is named, so exact results come before others.
TABLE = (
    Row(
        "theorem-b",
        "optimum for one (epsilon, delta) (Theorem B)",
        _NEW,
        _PERFECT,
        _SWAP,
        theorem_b,
    ),
    Row("theorem-c", "unified bound (Theorem C)", _NEW, (), _SWAP, theorem_c),
    Row(
        "theorem-c-moments",
        "unified bound from divergences (Theorem C)",
        _NEW,
        ("moments",),
        _SWAP,
        theorem_c_moments,
    ),
    Row("proposition-w", "water-filling (Proposition W)", _NEW, _PERFECT, _SWAP, proposition_w),
    Row("theorem-e1", "absent record (E1)", _NEW, ("add-remove",), _GIVEN, theorem_e1),
    Row("theorem-e2", "absent record (E2)", _NEW, ("add-remove",), _GIVEN, theorem_e2),
    Row(
        "proposition-f",
        "absent record, this prior (Proposition F)",
        _NEW,
        ("add-remove", *_PERFECT),
        _GIVEN,
        proposition_f,
    ),
    Row(
        "proposition-g",
        "one Gaussian release (Proposition G)",
        _NEW,
        ("add-remove", *_PERFECT, "uniform", "static"),
        _GIVEN,
        proposition_g,
    ),
    Row("theorem-1", "total variation (Theorem 1)", _PAPER, (), _SWAP, theorem_1),
    Row("theorem-3", "trade-off (Theorem 3, first form)", _PAPER, (), _SWAP, theorem_3),
    Row(
        "theorem-3-finite",
        "trade-off (Theorem 3, second form)",
        _PAPER,
        ("finite",),
        _SWAP,
        theorem_3_finite,
    ),
    Row("proposition-1", "Proposition 1", _PAPER, (), _SWAP, proposition_1),
    Row("theorem-4", "budget (Theorem 4)", _PAPER, _PERFECT, _SWAP, theorem_4),
    Row(
        "corollary-2",
        "uniform prior (Corollary 2)",
        _PAPER,
        (*_PERFECT, "uniform"),
        _SWAP,
        corollary_2,
    ),
    Row("balle", "ReRo (Balle et al. 2022)", "literature", (), _GIVEN, balle, "rero"),
    Row("hayes", "ReRo (Hayes et al. 2023)", "literature", (), _GIVEN, hayes, "rero"),
)

# Every value is raised by this share, which exceeds the rounding error of the sums behind it.
ROUNDING = 1e-12


def evaluate(guarantee: Guarantee, game: Game) -> tuple[Bound, ...]:
    """Every row of the table for this promise and game."""
    replaced = guarantee.replace_one()
    facts = {
        "finite": game.count is not None,
        "nothing": game.nothing_known,
        "classes": game.singletons,
        "uniform": game.uniform,
        # read either way, what holds for add-remove holds: any record may stand for "absent"
        "add-remove": guarantee.neighbours != REPLACE_ONE,
        "moments": guarantee.moments,
        "static": isinstance(guarantee, GaussianDP) and guarantee.static,
    }
    rows = []
    for row in TABLE:
        lacking = [NEEDS[need] for need in row.needs if not facts[need]]
        value = None
        if not lacking:
            raw = row.value(replaced if row.form == _SWAP else guarantee, game)
            # more than 1 - kappa is impossible, and so is any risk if nothing can be guessed
            most = 1.0 if row.measure == "rero" else game.unlike * (game.p_plus > 0) / game.share
            raised = max(0.0, raw) * (1.0 + ROUNDING) / game.share
            value = most if np.isnan(raw) else float(min(most, raised))
        rows.append(
            Bound(
                name=row.name,
                title=row.title,
                source=row.source,
                measure=row.measure,
                value=value,
                reason="; ".join(lacking),
            )
        )
    return tuple(rows)


def least(table: tuple[Bound, ...], measure: str) -> tuple[Bound, float]:
    """The smallest bound on `measure`: the first of those equal to nine digits, and its value."""
    valid = [(b, b.value) for b in table if b.value is not None and b.measure == measure]
    smallest = min(value for _, value in valid)
    return next(b for b, value in valid if value <= smallest * (1 + 1e-9)), smallest
