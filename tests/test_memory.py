"""Limits of memory: the same answers within them, and a sentence beyond."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dprad import DpradError, Prior, PureDP, Threat, assess, memory, optimal_attack, simulate
from dprad.mechanisms import (
    GRR,
    Channel,
    Composed,
    Gaussian,
    Geometric,
    HadamardResponse,
    Laplace,
    Piecewise,
    Staircase,
)


def uneven(m):
    weights = np.random.default_rng(m).gamma(1.0, size=m)
    return Prior.from_counts(dict(enumerate(weights.tolist())))


def thirds(table):
    return [int(v) % 3 for v in table]


def random_channel(m):
    matrix = np.random.default_rng(0).random((m, m))
    return Channel(matrix / matrix.sum(axis=1, keepdims=True))


LARGE = {
    "channel": (lambda: random_channel(1500), 1500, Threat()),
    "channel, tolerance": (lambda: random_channel(800), 800, Threat(loss="absolute", eta=9)),
    "hadamard": (lambda: HadamardResponse(epsilon=1.0, size=2000), 2000, Threat()),
    "laplace": (lambda: Laplace(epsilon=1.0, sensitivity=19_999), 20_000, Threat()),
    "laplace, part": (lambda: Laplace(epsilon=1.0, sensitivity=1499), 1500, Threat(knows=thirds)),
    "laplace, all": (
        lambda: Laplace(epsilon=1.0, sensitivity=19_999), 20_000, Threat(knows="everything"),
    ),
    "geometric": (lambda: Geometric(epsilon=1.0, sensitivity=1999), 2000, Threat()),
    "staircase": (lambda: Staircase(epsilon=1.0, sensitivity=799), 800, Threat()),
    "next to no noise": (lambda: Staircase(epsilon=200.0, sensitivity=4999), 5000, Threat()),
    "piecewise": (lambda: Piecewise(epsilon=1.0, bounds=(0, 1499)), 1500, Threat()),
    "gaussian": (
        lambda: Gaussian(sigma=100.0, sensitivity=299), 300, Threat(loss="absolute", eta=3),
    ),
    "estimate": (
        lambda: Composed(
            [kind(sensitivity=19_999, **noise) for kind, noise in
             ((Gaussian, {"sigma": 9e3}), (Laplace, {"epsilon": 1.0}))]
        ),
        20_000, Threat(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_a_limit_is_kept_and_changes_nothing(name):
    make, m, threat = LARGE[name]
    mechanism, prior = make(), uneven(m)
    trials = {"trials": 200} if name == "estimate" else {}
    free = assess(mechanism, prior=prior, threat=threat, **trials)
    tracemalloc.start()
    tight = assess(mechanism, prior=prior, threat=threat, memory="16 MB", **trials)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if name != "estimate":  # its draws come in other blocks, with other random numbers
        assert tight.rad == pytest.approx(free.rad, rel=1e-9, abs=1e-12)
        assert tight.success_out == pytest.approx(free.success_out, abs=1e-6)
        assert tight.rero == pytest.approx(free.rero, rel=1e-9)
    assert peak < 16e6


def test_what_is_too_big_is_said_in_a_sentence():
    places = {(float(x) / 100, float(y) / 100): 1.0 for x in range(40) for y in range(40)}
    prior = Prior.from_counts(places, columns=("lat", "lon"))
    with pytest.raises(
        DpradError, match=r"pairs of the 1,600 target values .* smaller eta"
    ) as told:
        assess(
            GRR(epsilon=1.0, size=1600), prior=prior, memory="20 MB",
            threat=Threat(loss="haversine", eta=1e5),
        )  # fmt: skip
    assert "256 MB, but 20 MB may be used" in str(told.value)
    with pytest.raises(DpradError, match="smaller eta"):
        assess(
            PureDP(1.0, neighbours="replace-one"), prior=uneven(2000), memory=50e6,
            threat=Threat(loss=lambda a, b: np.abs(np.subtract.outer(a, b)), eta=1e9),
        )  # fmt: skip


def test_limits_nest_and_end():
    before = memory.allowed()
    with memory.limit("1 GB"):
        assert memory.allowed() == 1e9 and memory.block(2**18) == 2**18
        with memory.limit(2_000_000):
            assert memory.allowed() == 2e6 and memory.block(2**18) < 2**14
        with memory.limit(None):
            assert memory.allowed() == 1e9
    assert memory.allowed() == before > 1e8


def test_simulations_keep_it_too():
    grr, prior = GRR(epsilon=3.0, size=3000), uneven(3000)
    attack = optimal_attack(grr, prior=prior)
    with memory.limit("16 MB"):
        risk = simulate(grr, attack, prior=prior, trials=2000)
    assert risk.interval[0] <= assess(grr, prior=prior).rad <= risk.interval[1]


@pytest.mark.parametrize("given", ["much", "", -5, 0, "1 kB", float("nan"), True, [], "inf"])
def test_bad_limits(given):
    with pytest.raises(DpradError, match="memory must be a number of bytes"):
        assess(GRR(epsilon=1.0, size=2), prior=Prior.uniform(2), memory=given)
