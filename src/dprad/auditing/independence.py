"""Whether a vectorised function treats the records of one call apart, as far as can be seen.

An audit counts every record of a call as a run of its own, so noise must be drawn for each, and an
output must not depend on the records beside it. Three things are looked at, each with a chance of
at most some 1e-9 to complain about a function that is in order:

1. outputs of equal records, by rank: calls whose means differ too much share noise, calls whose
   means agree too well balance it;
2. outputs that repeat within a call, though others hardly do: noise is used again;
3. outputs of one record beside equal ones and beside another: they must be alike.

Not everything can be seen: noise that is shared with a chance of one in a thousand is not.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from dprad.arrays import FloatArray, IntArray
from dprad.errors import DpradError

# Calls of each kind, and records in each.
CALLS, WIDTH = 12, 64
# Chance of a false alarm of each test; ranks are discrete, so stay well below 1e-9.
ALARM = 1e-10


def check(subject: Any, read: Any, seed: int) -> None:
    """Raise a `DpradError` if records of one call are seen to be mixed. 2 x 768 runs."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    first, last = read[[0]], read[[-1]]
    alone = _calls(subject, np.repeat(first, WIDTH, axis=0), rng)
    mixed = _calls(subject, np.repeat(np.concatenate([first, last]), WIDTH // 2, axis=0), rng)
    beside = mixed[:, : WIDTH // 2]
    number = _ranks(np.concatenate([alone.reshape(-1), beside.reshape(-1)]))
    one, two = number[: alone.size].reshape(alone.shape), number[alone.size :]
    problem = _together(one) or _again(one) or _neighbours(one.reshape(-1), two)
    if problem:
        raise DpradError(
            f"run does not treat the records of one call apart: {problem}. An audit needs "
            "independent runs: draw noise for each record, or leave out vectorised=True."
        )


def _calls(subject: Any, records: Any, rng: np.random.Generator) -> IntArray:
    """A number for each output, calls x records: equal outputs have equal numbers."""
    return np.array([[_number(o) for o in subject.sample(records, rng)] for _ in range(CALLS)])


def _number(output: Any) -> float:
    """Of a number itself, of anything else a checksum."""
    value = np.asarray(output)
    if value.ndim == 0 and value.dtype.kind in "iufb":
        return float(value)
    raw = value.tobytes() if value.dtype.kind in "iufbSU" else repr(output).encode()
    return float(zlib.crc32(raw))


def _ranks(values: FloatArray) -> FloatArray:
    """From 0 to 1, ties in the middle."""
    place, count = np.unique(values, return_inverse=True, return_counts=True)[1:]
    return np.asarray(((np.cumsum(count) - count / 2) / len(values))[place.reshape(-1)])


def _together(rank: FloatArray) -> str:
    """Whether the calls differ by more, or by less, than chance."""
    from scipy.special import chdtrc, chdtri

    spread = float(rank.var())
    if spread == 0.0:
        return ""
    score = WIDTH * float(np.sum((rank.mean(axis=1) - rank.mean()) ** 2)) / spread
    if score > chdtri(CALLS - 1, ALARM):
        return "outputs of equal records go together, as if they shared their noise"
    if 1.0 - chdtrc(CALLS - 1, score) < ALARM:
        return "outputs of equal records balance each other, as if their noise was dealt out"
    return ""


def _again(rank: FloatArray) -> str:
    """Whether outputs repeat within calls where others hardly ever do."""
    from scipy.special import bdtrc

    within = sum(_pairs(row) for row in rank)
    everywhere = _pairs(rank.reshape(-1))
    distinct = len(np.unique(rank))
    share = CALLS * WIDTH * (WIDTH - 1) / (rank.size * (rank.size - 1))
    if within == 0 or distinct < rank.size / 4:
        return ""
    return "noise is used again" if bdtrc(within - 1, everywhere, share) < ALARM else ""


def _pairs(values: FloatArray) -> int:
    """Equal pairs."""
    count = np.unique(values, return_counts=True)[1]
    return int(np.sum(count * (count - 1)) // 2)


def _neighbours(one: FloatArray, two: FloatArray) -> str:
    """Whether outputs of a record have another distribution beside another record."""
    grid = np.unique(np.r_[one, two])
    a, b = (np.searchsorted(np.sort(x), grid, "right") / len(x) for x in (one, two))
    limit = np.sqrt(-np.log(ALARM / 2) / 2 * (1 / len(one) + 1 / len(two)))
    if float(np.abs(a - b).max()) > limit:
        return "the output of a record depends on those beside it"
    return ""
