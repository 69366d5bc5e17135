"""Whether a vectorised function treats the records of one call independently.

An audit counts every record of a call as a separate run, so noise must be drawn for each, and an
output must not depend on the other records. Three things are tested, each with a chance of at most
about 1e-9 of a false alarm:

1. outputs of equal records, by rank: calls whose means differ too much share noise, calls whose
   means agree too well balance it; records at a distance of 1, 2, 4, ... in a call must not be
   correlated either;
2. outputs that repeat within a call and never elsewhere: noise is reused;
3. outputs of each record next to equal ones, and among others in random order: they must be alike,
   and must not be correlated with records at a distance of 1, 2, 4, ..., or at the mirrored place.

Not everything is detected: noise that is shared only occasionally, dependence hidden behind outputs
that are nearly always the same, or on other records in a way that moves an output little.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.trials import sample

# Calls with equal records of each kind, and with both in random order; records in each.
CALLS, MIXED, WIDTH = 12, 48, 64
# False-alarm probability of each test; ranks are discrete, so stay well below 1e-9.
ALARM = 1e-10
# Number of outputs other than the most common one from which sums are normal (correlations beyond
# FAR standard deviations), and from which equal counts in all calls are suspicious.
FEW, FAR, ENOUGH = 60, 9.0, 200
# Values that repeat within their call and nowhere else: each by a chance of 1 in 12.
REPEATED = 10


def check(subject: Any, read: Any, seed: int) -> None:
    """Raise a `DpradError` if records of one call are seen to be mixed. 4,608 runs."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    equal = [
        [_call(subject, np.repeat(read[[place]], WIDTH, axis=0), rng) for _ in range(CALLS)]
        for place in (0, -1)
    ]
    one = _ranks(np.array(equal[0]))
    problem = _together(one) or _apart(one) or _again(one)
    if not problem and len(read) > 1:
        which = np.array([rng.permutation(WIDTH) % 2 for _ in range(MIXED)])
        mixed = [_call(subject, read[[0, -1]][row], rng) for row in which]
        problem = _neighbours(np.array(equal), np.array(mixed), which)
    if problem:
        raise DpradError(
            f"run does not treat the records of one call independently: {problem}. An audit "
            "needs independent runs: draw noise for each record, or leave out vectorised=True."
        )


def _call(subject: Any, records: Any, rng: np.random.Generator) -> list[float]:
    """A number for each output of one call: equal outputs have equal numbers."""
    return [_number(o) for o in sample(subject, records, records, rng, 1)]


def _number(output: Any) -> float:
    """A number itself; a checksum of anything else."""
    value = np.asarray(output)
    if value.ndim == 0 and value.dtype.kind in "iufb":
        return float(value)
    raw = value.tobytes() if value.dtype.kind in "iufbSU" else repr(output).encode()
    return float(zlib.crc32(raw))


def _ranks(values: FloatArray) -> FloatArray:
    """From 0 to 1, ties in the middle."""
    place, count = np.unique(values, return_inverse=True, return_counts=True)[1:]
    return np.asarray(((np.cumsum(count) - count / 2) / values.size)[place.reshape(values.shape)])


def _together(rank: FloatArray) -> str:
    """Whether the calls differ by more, or by less, than chance."""
    from scipy.special import chdtrc, chdtri

    spread = float(rank.var())
    if spread == 0.0:
        return ""
    score = WIDTH * float(np.sum((rank.mean(axis=1) - rank.mean()) ** 2)) / spread
    if score > chdtri(CALLS - 1, ALARM):
        return "outputs of equal records are correlated, as if they shared their noise"
    if _others(rank) >= ENOUGH and 1.0 - chdtrc(CALLS - 1, score) < ALARM:
        return "outputs of equal records balance each other, as if their noise was stratified"
    return ""


def _apart(rank: FloatArray) -> str:
    """Whether records at some distance from each other are correlated."""
    centred = rank - rank.mean()
    spread = float(np.mean(centred**2))
    if spread == 0.0 or _others(rank) < FEW:
        return ""
    lag = 1
    while lag <= WIDTH // 2:
        product = centred[:, lag:] * centred[:, :-lag]
        if abs(float(product.sum())) > FAR * spread * np.sqrt(product.size):
            return f"outputs of equal records are correlated with those {lag} places further on"
        lag *= 2
    return ""


def _again(rank: FloatArray) -> str:
    """Whether outputs repeat within their call, and never in another one."""
    within = 0
    for row in rank:
        values, times = np.unique(row, return_counts=True)
        within += int(np.count_nonzero(times > 1))
        elsewhere = np.count_nonzero(np.isin(rank, values[times > 1])) - times[times > 1].sum()
        if elsewhere:
            return ""
    return "noise is reused" if within >= REPEATED else ""


def _others(rank: FloatArray) -> int:
    """Outputs that are not the most common one."""
    return int(rank.size - np.unique(rank, return_counts=True)[1].max())


def _neighbours(equal: FloatArray, mixed: FloatArray, which: IntArray) -> str:
    """Whether outputs of a record have another distribution among other records, or follow those at
    some distance. `equal` has calls of either record alone; `which` says which of them was where.
    """
    problem = "the output of a record depends on the other records"
    rank = _ranks(mixed)
    for place in (0, 1):
        one, two = equal[place].reshape(-1), mixed[which == place]
        grid = np.unique(np.r_[one, two])
        a, b = (np.searchsorted(np.sort(x), grid, "right") / len(x) for x in (one, two))
        limit = np.sqrt(-np.log(ALARM / 2) / 2 * (1 / len(one) + 1 / len(two)))
        if float(np.abs(a - b).max()) > limit:
            return problem
        rank[which == place] -= rank[which == place].mean()
    spread = float(np.mean(rank**2))
    if spread == 0.0 or _others(mixed) < FEW:
        return ""
    signs = 2.0 * which - 1.0
    pairs = [(rank[:, ::-1], signs)]
    for lag in range(1, WIDTH // 2 + 1):
        pairs += [(rank[:, lag:], signs[:, :-lag]), (rank[:, :-lag], signs[:, lag:])]
    far = any(abs(float((r * s).sum())) > FAR * np.sqrt(spread * r.size) for r, s in pairs)
    return problem if far else ""
