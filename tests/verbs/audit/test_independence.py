"""Vectorised functions: shared noise is refused, honest functions pass."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import DpradError, Prior, PureDP, audit
from effort import some

ASKED = {
    "claim": PureDP(1.0, neighbours="replace-one"),
    "prior": Prior.uniform(2),
    "trials": 400,
    "vectorised": True,
    "attack": lambda outputs, known: [None] * len(outputs),
}


def shared(records, rng):
    return np.asarray(records) + rng.laplace()


def shared_bit(records, rng):
    return np.asarray(records) ^ int(rng.random() < 0.4)


def mostly_own(records, rng):
    return np.asarray(records) + rng.laplace(size=len(records)) + 2 * rng.laplace()


def tiled(records, rng):
    n = len(records)
    return np.asarray(records) + np.resize(rng.laplace(size=(n + 1) // 2), n)


def dealt(records, rng):
    n = len(records)
    return np.asarray(records) ^ rng.permutation(np.arange(n) < 0.3 * n)


def grouped(size):
    def run(records, rng):
        n = len(records)
        coin = np.repeat(rng.random(-(-n // size)), size)[:n]
        return np.where(coin < 0.3, 1 - np.asarray(records), records)

    run.__name__ = f"groups of {size}"
    return run


def rarely_true(records, rng):
    return rng.random(len(records)) < 1 / 64


def with_an_atom(records, rng):
    return np.maximum(rng.random(len(records)), 0.03)


def centred(records, rng):
    records = np.asarray(records, dtype=float)
    return records - records.mean() + rng.laplace(size=len(records)) / 4


def own(records, rng):
    return np.asarray(records) + rng.laplace(size=len(records))


def own_bits(records, rng):
    return np.asarray(records) ^ (rng.random(len(records)) < 0.3)


def rare(records, rng):
    return np.asarray(records) * (rng.random(len(records)) < 0.005)


def constant(records, rng):
    return np.zeros(len(records))


def vectors(records, rng):
    return np.asarray(records)[:, None] ^ (rng.random((len(records), 5)) < 0.3)


def words(records, rng):
    return np.array(["yes", "no"])[np.asarray(records) ^ (rng.random(len(records)) < 0.3)]


def ordered(records, rng):
    return np.sort(records)


def ordered_noise(records, rng):
    return np.sort(records) + rng.normal(size=len(records))


def turned(records, rng):
    return np.asarray(records)[::-1] + 2 * rng.laplace(size=len(records))


def moved(places):
    def run(records, rng):
        return np.roll(records, places) + 2 * rng.laplace(size=len(records))

    run.__name__ = f"moved by {places}"
    return run


def shuffled(records, rng):
    return rng.permutation(records) + rng.integers(0, 2, len(records))


MIXED = [
    shared, shared_bit, mostly_own, tiled, dealt, centred, *map(grouped, (2, 3, 4, 6, 8)),
    ordered, ordered_noise, turned, shuffled, *map(moved, (1, -1, 5, -11)),
]  # fmt: skip


@pytest.mark.parametrize("run", MIXED, ids=lambda run: run.__name__)
def test_mixed_records_are_refused(run):
    for seed in range(5):
        with pytest.raises(DpradError, match="records of one call independently"):
            audit(run, rng=seed, **ASKED)


@pytest.mark.parametrize(
    "run", [own, own_bits, rare, constant, vectors, words, rarely_true, with_an_atom]
)
def test_honest_functions_pass(run):
    # a false alarm has a chance of about 1e-9 each
    for seed in range(some(50, 6)):
        audit(run, rng=seed, **ASKED)


def test_own_randomness_is_said():
    stream = np.random.default_rng(0)
    said = "cannot be replayed: the function has its own random numbers"
    one = {k: v for k, v in ASKED.items() if k != "vectorised"}
    assert said in str(audit(lambda record: record ^ int(stream.random() < 0.3), **one))
    assert said in str(audit(lambda records: np.asarray(records) ^ 0, **ASKED))
    assert said not in str(audit(own, **ASKED))


@pytest.mark.parametrize("run", [rarely_true, with_an_atom])
@pytest.mark.parametrize("seed", [283771, 339545, 402254, 468857, 644187, 808632])
def test_seeds_that_once_gave_a_false_alarm(run, seed):
    audit(run, rng=seed, **ASKED)
