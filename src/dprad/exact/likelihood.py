"""Whether a likelihood belongs to its sampler, as far as draws can tell.

For records z and z', draws o of z, ``w = p(o | z') / p(o | z)`` and every set A of outputs,

    E_z[ 1_A min(w, C) ] <= E_z[ 1_A w ] <= P_z'[ A ].

A likelihood that breaks this is not the sampler's, and a risk that is computed from it may be far
too low. The margins are empirical Bernstein bounds (Maurer and Pontil 2009, Theorem 4), so a right
one is refused with a chance of at most `RARE` for each of some hundred sets. Factors that depend on
the output only do not matter, here or for the risk.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.foreign import Foreign
from dprad.numerics.arrays import FloatArray, IntArray

# Draws of each record, where weights are cut, and the chance of a false refusal.
DRAWS, CUT, RARE = 10_000, 2.0, 1e-8
# Outputs that repeat are told apart up to this many; others are put into so many bins. Coordinates
# that are looked at.
VALUES, BINS, WIDTH = 20, 8, 4

WRONG = (
    "log_likelihood does not belong to sample: outputs that were drawn come more or less often "
    "than it says. A risk computed from it would be wrong."
)


# What was checked, as long as it lives: a search asks many times about one mechanism.
_CHECKED: weakref.WeakSet[Any] = weakref.WeakSet()


@singledispatch
def ours(mechanism: Any) -> bool:
    """Whether it is of this package, and so are its parts: these likelihoods are tested."""
    return type(mechanism).__module__.split(".")[0] == __name__.split(".")[0]


@ours.register
def _composed(mechanism: Composed) -> bool:
    return all(map(ours, mechanism.mechanisms))


@ours.register
def _foreign(mechanism: Foreign) -> bool:  # noqa: ARG001
    return False


def believed(mechanism: Any) -> bool:
    """Whether it needs no check: ours, too dear to run more often, or checked before."""
    if mechanism.costly or ours(mechanism):
        return True
    with suppress(TypeError):  # of what cannot be remembered
        return _made(mechanism) in _CHECKED
    return False


def believe(mechanism: Any) -> None:
    """It was checked."""
    with suppress(TypeError):
        _CHECKED.add(_made(mechanism))


def _made(mechanism: Any) -> Any:
    return mechanism.inner if isinstance(mechanism, Foreign) else mechanism


def sound(log: Any) -> FloatArray:
    """Log-likelihoods of outputs that were drawn, by record (the last axis); refused if they are
    not numbers, or if no record can give an output.
    """
    found = np.asarray(log)
    with np.errstate(invalid="ignore"):
        if found.dtype.kind in "iufb" and np.all(np.isfinite(found.max(axis=-1))):
            return found.astype(float, copy=False)
    raise DpradError(
        "log_likelihood must give numbers (minus infinity for what is impossible), but"
        " gave NaN, infinity, or minus infinity for an output that was drawn."
    )


def check(drawn: list[tuple[Any, FloatArray]]) -> None:
    """Outputs of some records, and their log-likelihoods (draws x the same records)."""
    for a, b in itertools.permutations(range(len(drawn)), 2):
        (mine, log), (others, _) = drawn[a], drawn[b]
        own = log[:, a]
        if not np.all(np.isfinite(own)):
            raise DpradError(WRONG)
        ratio = np.clip(log[:, b] - own, -700.0, math.log(CUT))
        weight = np.exp(ratio)
        for here, there in _partitions(mine, others):
            for cell in range(int(max(here.max(), there.max())) + 1):
                low = _mean(np.where(here == cell, weight, 0.0), CUT)[0]
                if low > _mean((there == cell).astype(float), 1.0)[1]:
                    raise DpradError(WRONG)


def _mean(values: FloatArray, most: float) -> tuple[float, float]:
    """Where the mean of values in [0, most] lies."""
    n, rare = len(values), math.log(2.0 / RARE)
    margin = math.sqrt(2 * float(values.var(ddof=1)) * rare / n) + 7 * most * rare / (3 * (n - 1))
    mean = float(values.mean())
    return mean - margin, mean + margin


def _partitions(mine: Any, others: Any) -> Iterator[tuple[IntArray, IntArray]]:
    """Sets of outputs: which one each output is in. The first is of all."""
    if isinstance(mine, tuple):
        for one, two in zip(mine[:WIDTH], others, strict=False):
            yield from _partitions(one, two)
        return
    both = np.concatenate([np.asarray(mine), np.asarray(others)])
    yield np.zeros(len(mine), dtype=np.intp), np.zeros(len(others), dtype=np.intp)
    if both.dtype.kind not in "iufbU":
        return
    columns = [both] if both.ndim == 1 else list(both.reshape(len(both), -1).T[:WIDTH])
    for column in columns:
        label = _label(column)
        yield label[: len(mine)], label[len(mine) :]


def _label(column: Any) -> IntArray:
    values, place, times = np.unique(column, return_inverse=True, return_counts=True)
    if len(values) <= len(column) // 2 or column.dtype.kind == "U":
        kept = np.argsort(-times, kind="stable")[:VALUES]
        rank = np.full(len(values), VALUES)
        rank[kept] = np.arange(len(kept))
        return rank[place]
    return np.minimum(BINS * np.argsort(np.argsort(column, kind="stable")) // len(column), BINS - 1)
