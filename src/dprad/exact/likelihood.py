"""Whether a likelihood belongs to its sampler, as far as draws can tell.

For records z and z', draws o of z, ``w = p(o | z') / p(o | z)`` and every set A of outputs,

    E_z[ 1_A min(w, C) ] <= E_z[ 1_A w ] <= P_z'[ A ].

A likelihood that breaks this is not the sampler's, and a risk that is computed from it may be far
too low. The sets are values or stretches of one coordinate of an output, of the sum or difference
of two, and of the combination of all that tells two records apart best (found from half of the
draws, and looked at in the others). The margins are empirical Bernstein bounds (Maurer and Pontil
2009, Theorem 4), so a right one is refused with a chance of at most `RARE` for each of some
thousand sets. Factors that depend on the output only do not matter, here or for the risk.

A second look: of outputs whose record, z or z', was chosen by a coin, those of z' must be as many
as the likelihood says: ``w/(1 + w)`` for each, given the output. So sums of what is left, however
weighted by w, are sums of independent differences whose law is known, and Chernoff's bound says how
rare they are. Noise of 1.25 times the scale is found by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.foreign import Foreign
from dprad.numerics.arrays import FloatArray, IntArray

# Draws of the first, second and last record, of each of the others, and fewest; where weights are
# cut, and the chance of a false refusal.
DRAWS, OTHERS, LEAST, CUT, RARE = 10_000, 2_000, 1_000, 2.0, 1e-9
# Outputs that repeat are told apart up to this many; others are put into so many bins. Coordinates
# that are looked at: those whose means differ most; pairs of them; what keeps a matrix regular.
VALUES, BINS, WIDTH, PAIRS, RIDGE = 20, 8, 16, 16, 1e-9
# Where log w is cut as a weight; one over the difference up to which values of it are alike;
# halvings towards the best exponent of Chernoff's bound.
LEAD, ALIKE, STEPS = 4.0, 1e6, 30

WRONG = (
    "log_likelihood does not belong to sample: outputs that were drawn come more or less often "
    "than it says. A risk computed from it would be wrong."
)


# What was checked within a call, and on which values: a search asks many times about one mechanism.
_Checked = dict[int, tuple[Any, list[Any]]]
_CHECKED: ContextVar[_Checked | None] = ContextVar("checked", default=None)


@contextmanager
def remembered() -> Iterator[None]:
    """Within, a mechanism is checked once, unless other values are asked about."""
    token = _CHECKED.set({}) if _CHECKED.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _CHECKED.reset(token)


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


def believed(mechanism: Any, points: Any) -> bool:
    """Whether it needs no check: ours, too dear to run more often, or checked in this call with all
    these values.
    """
    if mechanism.costly or ours(mechanism):
        return True
    _, seen = (_CHECKED.get() or {}).get(id(_made(mechanism)), (None, []))
    return any(bool(np.isin(points, known).all()) for known in seen)


def believe(mechanism: Any, points: Any) -> None:
    """It was checked."""
    checked, made = _CHECKED.get(), _made(mechanism)
    if checked is not None and np.asarray(points).dtype.kind in "iufb":
        checked.setdefault(id(made), (made, []))[1].append(points)


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


def check(drawn: Iterable[tuple[Any, FloatArray]]) -> None:
    """Outputs of some records, and their log-likelihoods (draws x the same records). Each record is
    compared with the next, and the last with the first: outputs of three are held at a time.
    """
    rest = iter(drawn)
    first = last = next(rest)
    count = 1
    for now in rest:
        _compare(last, now, count - 1, count)
        last, count = now, count + 1
    if count > 2:
        _compare(last, first, count - 1, 0)


def _compare(one: tuple[Any, FloatArray], two: tuple[Any, FloatArray], a: int, b: int) -> None:
    """Both ways."""
    for (mine, log), (others, _), z, y in ((one, two, a, b), (two, one, b, a)):
        own = log[:, z]
        if not np.all(np.isfinite(own)):
            raise DpradError(WRONG)
        weight = np.exp(np.clip(log[:, y] - own, -700.0, math.log(CUT)))
        for here, there in _partitions(mine, others):
            size = int(max(here.max(), there.max())) + 1
            used = here >= 0
            low, _ = _means(weight[used], here[used], size, CUT)
            there = there[there >= 0]
            _, high = _means(np.ones(len(there)), there, size, 1.0)
            if np.any(low > high):
                raise DpradError(WRONG)
    first, second = one[1], two[1]
    _calibrated(first[:, b] - first[:, a], second[:, b] - second[:, a], a)


def _calibrated(one: FloatArray, two: FloatArray, place: int) -> None:
    """Draws of two records, by how much the second is likelier: its share is as said."""
    most = min(len(one), len(two))
    size = 2 * most - 8 * math.isqrt(most)
    of_two = int(np.random.default_rng(place).binomial(size, 0.5))
    of_two = min(max(of_two, size - most), most)
    lead = np.concatenate([one[: size - of_two], two[:of_two]])
    share = 1.0 / (1.0 + np.exp(-np.clip(lead, -700.0, 700.0)))
    left = np.where(np.arange(size) < size - of_two, -share, 1.0 - share)
    # the last digits of noise tell the record, which is not what a likelihood is for
    weight, rank = np.clip(lead, -LEAD, LEAD), _label(np.floor(lead * ALIKE + math.pi))
    for h in (np.ones(size), weight, *(rank == k for k in range(int(rank.max()) + 1))):
        kept = h != 0
        if _exponent(left[kept], share[kept], h[kept].astype(float)) > -math.log(RARE):
            raise DpradError(WRONG)


def _exponent(left: FloatArray, share: FloatArray, weight: FloatArray) -> float:
    """Minus the log of a bound on the chance of a sum so far out: Chernoff's, of differences
    between 0 or 1 and their chances.
    """
    far, spread = abs(float(left @ weight)), float((share * (1.0 - share)) @ weight**2)
    if far**2 < -math.log(RARE) * spread:
        return 0.0  # at most 4.5 standard deviations
    if spread == 0.0:
        return math.inf if far > 1e-9 else 0.0
    weight = weight if left @ weight > 0 else -weight
    with np.errstate(divide="ignore"):
        yes, no = np.log(share), np.log1p(-share)
    low, high, best = 0.0, 700.0 / float(np.abs(weight).max()), 0.0
    for _ in range(STEPS):  # any t gives a bound
        t = (low + high) / 2
        both = np.logaddexp(yes + t * weight, no)
        best = max(best, t * far - float(np.sum(both - t * share * weight)))
        rise = float((np.exp(yes + t * weight - both) - share) @ weight)
        low, high = (t, high) if rise < far else (low, t)
    return best


def _means(
    values: FloatArray, cell: IntArray, size: int, most: float
) -> tuple[FloatArray, FloatArray]:
    """Where the means of values in [0, most] lie, if they count in one cell only, for each cell."""
    n, rare = len(values), math.log(2.0 / RARE)
    mean = np.bincount(cell, values, size) / n
    variance = np.maximum(np.bincount(cell, values**2, size) / n - mean**2, 0.0) * n / (n - 1)
    margin = np.sqrt(2 * variance * rare / n) + 7 * most * rare / (3 * (n - 1))
    return mean - margin, mean + margin


def _partitions(mine: Any, others: Any) -> Iterator[tuple[IntArray, IntArray]]:
    """Sets of outputs: which one each output is in, or -1. The first is of all."""
    numbers = []
    for one, two in _parts(mine, others):
        count = len(one)
        both = np.concatenate([np.asarray(one), np.asarray(two)])
        yield np.zeros(count, dtype=np.intp), np.zeros(len(two), dtype=np.intp)
        columns = _columns(both)
        plain = columns.dtype.kind != "U"
        if plain and columns.shape[1] > WIDTH:
            columns = columns[:, _apart(columns.astype(float), count)]
        for column in columns.T[:WIDTH]:
            yield _split(_label(column), count)
        numbers += [columns.astype(float)] if plain else []
    together = np.concatenate(numbers, axis=1) if numbers else np.empty((0, 0))
    if together.shape[1] > WIDTH:
        together = together[:, _apart(together, count)]
    for label in _mixed(together, count):
        yield _split(label, count)


def _parts(mine: Any, others: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of outputs."""
    if not isinstance(mine, tuple):
        yield mine, others
        return
    for one, two in zip(mine, others, strict=False):
        yield from _parts(one, two)


def _split(label: IntArray, count: int) -> tuple[IntArray, IntArray]:
    return label[:count], label[count:]


def _mixed(columns: FloatArray, count: int) -> Iterator[IntArray]:
    """Sets of several coordinates: sums and differences of some pairs, and what tells most."""
    width = columns.shape[1]
    if width < 2:
        return
    pairs = [(k, k + far) for far in range(1, width) for k in range(width - far)][:PAIRS]
    with np.errstate(invalid="ignore", over="ignore"):
        for a, b in pairs:
            yield _label(columns[:, a] + columns[:, b])
            yield _label(columns[:, a] - columns[:, b])
        scale = columns.std(axis=0)
    if not np.all(np.isfinite(scale)):
        return
    # Fisher's discriminant
    columns = (columns - columns.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    half = np.arange(len(columns)) % 2 == 0
    first = np.arange(len(columns)) < count
    one, two = columns[half & first], columns[half & ~first]
    inside = np.concatenate([one - one.mean(axis=0), two - two.mean(axis=0)])
    spread = inside.T @ inside / len(inside) + RIDGE * np.eye(width)
    found = columns @ np.linalg.solve(spread, one.mean(axis=0) - two.mean(axis=0))
    label = np.full(len(columns), -1)
    label[~half] = _label(found[~half])
    yield label


def _columns(outputs: Any) -> Any:
    """Numbers, or words, of outputs of any kind that an array holds."""
    kind = outputs.dtype.kind
    if kind == "V" and outputs.dtype.names:
        parts = [_columns(np.ascontiguousarray(outputs[name])) for name in outputs.dtype.names]
        if any(p.dtype.kind == "U" for p in parts):
            parts = [p.astype(str) for p in parts]
        return np.concatenate(parts, axis=1)
    flat = outputs.reshape(len(outputs), -1)
    if kind == "c":
        return np.concatenate([flat.real, flat.imag], axis=1)
    if kind in "mM":
        return flat.view(np.int64)
    if kind in "iufbU":
        return flat
    return np.array([[repr(v) for v in row] for row in flat.tolist()])


def _apart(columns: FloatArray, mine: int) -> IntArray:
    """The coordinates whose means differ most."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        gap = np.abs(columns[:mine].mean(axis=0) - columns[mine:].mean(axis=0))
        far = gap / (columns[:mine].std(axis=0) + columns[mine:].std(axis=0))
    far = np.where(gap > 0, np.nan_to_num(far, nan=np.inf, posinf=np.inf), 0.0)
    return np.asarray(np.argsort(-far, kind="stable")[:WIDTH])


def _label(column: Any) -> IntArray:
    """The most frequent values, if they repeat; else stretches, where equal ones stay together."""
    ranked = np.sort(column)
    if column.dtype.kind != "U" and 2 * np.count_nonzero(ranked[1:] != ranked[:-1]) >= len(column):
        edges = ranked[len(column) * np.arange(1, BINS) // BINS]
        return np.asarray(np.searchsorted(edges, column, side="right"))
    values, place, times = np.unique(column, return_inverse=True, return_counts=True)
    kept = np.argsort(-times, kind="stable")[:VALUES]
    rank = np.full(len(values), VALUES)
    rank[kept] = np.arange(len(kept))
    return rank[place]
