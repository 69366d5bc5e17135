"""Limits of memory: the same answers within them, and a sentence beyond."""

from __future__ import annotations

import sys
import threading
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
from dprad.runtime.workers import stream


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
    assert tight.rad == pytest.approx(free.rad, rel=1e-9, abs=1e-12)
    assert tight.success_out == pytest.approx(free.success_out, abs=1e-6)
    assert tight.rero == pytest.approx(free.rero, rel=1e-9)
    assert peak < 16e6


def test_few_classes_of_many_values_keep_the_limit():
    m = 6000
    counts = {(i // (m // 2), float(i)): 1.0 + i % 7 for i in range(m)}
    question = {
        "prior": Prior.from_counts(counts, columns=["half", "x"]),
        "threat": Threat(target=["half"]),
        "query": "x",
    }
    noise = Laplace(epsilon=5.0, sensitivity=m)
    free = assess(noise, **question)
    tracemalloc.start()
    tight = assess(noise, **question, memory="4 MB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6
    assert tight.rad == pytest.approx(free.rad, rel=1e-12)


def test_what_is_too_big_is_said_in_a_sentence():
    places = {(float(x) / 100, float(y) / 100): 1.0 for x in range(40) for y in range(40)}
    prior = Prior.from_counts(places, columns=("lat", "lon"))
    with pytest.raises(
        DpradError, match=r"pairs of the 1,600 target values count .* smaller eta"
    ) as told:
        assess(
            HadamardResponse(epsilon=1.0, size=1600), prior=prior, memory="20 MB",
            threat=Threat(loss="haversine", eta=1e4),
        )  # fmt: skip
    assert "33 MB, but only 20 MB may be used" in str(told.value)
    with pytest.raises(DpradError, match="smaller eta"):
        assess(
            PureDP(1.0, neighbours="replace-one"), prior=uneven(2000), memory=50e6,
            threat=Threat(loss=lambda a, b: np.abs(np.subtract.outer(a, b)), eta=1e9),
        )  # fmt: skip


@pytest.mark.parametrize("workers", [1, 3])
def test_places_keep_it_whose_pairs_would_not_fit(workers):
    """30,000 places, 15 million pairs within 200 m."""
    side = np.sqrt(30_000 / (1484 * 500))
    at = np.random.default_rng(0).uniform(0, side, (30_000, 2)) * [0.1, 0.2] + [41.1, -8.7]
    prior = Prior.from_counts({tuple(place): 1.0 for place in at.tolist()}, columns=["lat", "lon"])
    question = {"prior": prior, "threat": Threat(loss="haversine", eta=200), "workers": workers}
    grr, few = GRR(epsilon=8.0, size=30_000), {(0.0, 0.0): 1.0, (0.0, 1.0): 1.0}
    assess(  # what is imported on the way is not counted
        GRR(epsilon=1.0, size=2), prior=Prior.from_counts(few, columns=["lat", "lon"]),
        threat=question["threat"],
    )  # fmt: skip
    tracemalloc.start()
    risk = assess(grr, **question, memory="20 MB")
    bound = assess(PureDP(8.0, neighbours="replace-one"), **question, memory="20 MB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < risk.rad <= bound.rad < 1
    assert peak < 20e6, peak


def test_limits_nest_and_end():
    before = memory.allowed()
    with memory.limit("1 GB"):
        assert memory.allowed() == 1e9 and memory.block(2**18) == 2**18
        with memory.limit(2_000_000):
            assert memory.allowed() == 2e6 and memory.block(2**18) < 2**14
        with memory.limit(None):
            assert memory.allowed() == 1e9
    assert memory.allowed() == before > 1e8


def test_many_records_that_read_alike():
    """More classes than values: the limit counts what there is most of."""
    n = 20_000
    five = (np.arange(n) % 5).astype(float).tolist()
    tracemalloc.start()
    assess(
        Gaussian(sigma=1.0, sensitivity=4), prior=Prior.uniform(n), query=lambda _: five,
        memory="50 MB",
    )  # fmt: skip
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.parametrize("threat", [Threat(), Threat(knows=thirds)])
def test_simulations_keep_it_too(threat):
    noise, prior = Composed([GRR(epsilon=3.0, size=300)] * 2), uneven(300)
    attack = optimal_attack(noise, prior=prior, threat=threat)
    risks = []
    for limit in ("2 MB", None, "100 MB"):
        with memory.limit(limit):
            risks.append(simulate(noise, attack, prior=prior, threat=threat, trials=2000))
    assert risks[0] == risks[1] == risks[2]


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are bounded on Linux")
def test_a_bound_of_addresses_ends_with_its_thread():
    """Two that overlap would each restore what the other has set."""
    import resource

    before, entered = resource.getrlimit(resource.RLIMIT_AS), []

    def grow(first):
        if not first:
            started.wait()
        with memory.bounded(2**30):
            entered.append(resource.getrlimit(resource.RLIMIT_AS))
            started.set()
            later.wait(0.2)  # the second one is here too, if it may be

    started, later = threading.Event(), threading.Event()
    threads = [threading.Thread(target=grow, args=(first,)) for first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert len(entered) == 2 and before not in entered


def allowed(_):
    return memory.allowed()


@pytest.mark.parametrize("threads", [True, False])
def test_workers_share_the_limit(threads):
    with memory.limit("100 MB"):
        assert list(stream(allowed, [(0,)] * 3, 2, threads=threads)) == [50e6] * 3
        assert list(stream(allowed, [(0,)] * 3, 1, threads=threads)) == [100e6] * 3
    assert list(stream(allowed, [(0,)], 2, threads=threads)) == [memory.allowed()]


def test_what_cannot_be_sent_is_said():
    lock = threading.Lock()
    with pytest.raises(DpradError, match="workers must be 1 here"):
        list(stream(lambda _: lock, [(0,)] * 3, 2, threads=False))


@pytest.mark.parametrize("given", ["much", "", -5, 0, "1 kB", float("nan"), True, [], "inf"])
def test_bad_limits(given):
    with pytest.raises(DpradError, match="memory must be at least 1 MB"):
        assess(GRR(epsilon=1.0, size=2), prior=Prior.uniform(2), memory=given)


def test_equal_arrays_of_a_game_are_shared():
    import tracemalloc

    from dprad.game.game import _prepared

    m = 1_000_000
    tracemalloc.start()
    try:
        prior = Prior.uniform(m)
        risk = assess(PureDP(1.0, neighbours="replace-one"), prior=prior)
        held, peak = (x / m for x in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
        _prepared.cache_clear()
    assert risk.rad < 1.0
    assert held < 75 and peak < 120, (held, peak)  # bytes for each record; 176 before


def test_numbers_and_releases_that_do_not_fit_are_refused_before_they_are_made():
    noise = Laplace(epsilon=1.0, sensitivity=3e6)
    with memory.limit("50 MB"), pytest.raises(DpradError, match="Reading 3,000,000 numbers would"):
        noise.reads(np.arange(3_000_000))
    with memory.limit("50 MB"), pytest.raises(DpradError, match="releases would take"):
        PureDP(1.0, neighbours="replace-one").repeated(10**14)
