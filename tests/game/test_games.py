"""Fibers, classes and success sets."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
import scipy.stats
from scipy import sparse

from dprad import DpradError, Prior, PureDP, Threat, assess
from dprad.data.places import EARTH
from dprad.game import sets
from dprad.game.game import play
from dprad.game.sets import Singletons, Windows
from dprad.mechanisms import GRR, OUE
from dprad.runtime import memory
from oracles import random_instance


@pytest.mark.parametrize("seed", range(10))
def test_summary_equals_the_definition(seed):
    """kappa, P+ and P- by plain loops."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        m = int(rng.integers(1, 7))
        instance = random_instance(rng, m)
        game = play(instance.prior, instance.threat)
        pi, fiber, success = instance.pi, instance.fiber, instance.success
        best = 0.0
        for x in np.unique(fiber):
            best += max(pi[success[:, g] & (fiber == x)].sum() for g in range(m))
        assert game.p_plus == pytest.approx(best, abs=1e-12)
        keys = {(int(fiber[z]), success[z].tobytes()): 0.0 for z in range(m) if pi[z] > 0}
        for z in range(m):
            if pi[z] > 0:
                keys[(int(fiber[z]), success[z].tobytes())] += pi[z]
        assert game.kappa == pytest.approx(sum(v * v for v in keys.values()), abs=1e-12)
        # P- claims that a best guess never has less mass: true of every guess, or 0
        if game.p_minus > 0:
            masses = [pi[success[:, g]].sum() for g in range(m)]
            assert game.p_minus == pytest.approx(min(v for v in masses if v > 0), abs=1e-12)
            assert len(np.unique(fiber[pi > 0])) == 1


def test_classes_are_merged():
    prior = Prior.from_counts({(i, i % 2): 1 for i in range(100)}, columns=["id", "t"])
    game = play(prior, Threat(target=["t"]))
    assert game.probabilities.tolist() == pytest.approx([0.5, 0.5]) and game.singletons
    assert game.kappa == pytest.approx(0.5)
    unmerged = play(prior, Threat(target=["t"], knows=["id"]))
    assert len(unmerged.probabilities) == 100 and unmerged.everything_known


def test_windows_that_cover_all_leave_one_class():
    game = play(Prior.uniform(101), Threat(loss="absolute", eta=100))
    assert game.kappa == 1.0 and game.p_minus == pytest.approx(1.0)
    risk = assess(
        PureDP(5.0, neighbours="replace-one"),
        prior=Prior.uniform(101),
        threat=Threat(loss="absolute", eta=100),
    )
    assert risk.rad == 0.0 and risk.normalised == 0.0


def test_windows_on_an_evenly_filled_line_partition_it():
    game = play(Prior.uniform(9), Threat(loss="absolute", eta=1))
    assert isinstance(game.sets, Windows)
    assert (game.p_minus, game.p_plus) == pytest.approx((2 / 9, 3 / 9))
    # 0, 1 | 3 can be covered side by side
    uneven = Prior.from_counts({0: 1, 1: 1, 3: 1})
    assert play(uneven, Threat(loss="absolute", eta=1)).p_minus == pytest.approx(1 / 3)
    # 0, 2, 3, 5 within 2: {0,2}, {0,2,3}, {2,3,5}, {3,5}: the first and the last
    gap = Prior.from_counts({0: 1, 2: 1, 3: 1, 5: 1})
    assert play(gap, Threat(loss="absolute", eta=2)).p_minus == pytest.approx(2 / 4)
    # 0, 1, 2 within 1: {0,1}, {0,1,2}, {1,2}: the second alone
    assert play(Prior.uniform(3), Threat(loss="absolute", eta=1)).p_minus == pytest.approx(2 / 3)
    # 0, 2, 3, 4, 6 within 2: {0,2}, {0,2,3,4}, {2,3,4}, {2,3,4,6}, {4,6}: none
    none = Prior.from_counts(dict.fromkeys((0, 2, 3, 4, 6), 1))
    assert play(none, Threat(loss="absolute", eta=2)).p_minus == 0.0


def test_rounding_of_tolerances_is_forgiving():
    prior = Prior.from_probabilities([0.25] * 4, support=[0.1, 0.2, 0.3, 0.4])
    game = play(prior, Threat(loss="absolute", eta=0.1))
    assert sorted(np.round(game.sets.mass, 9).tolist()) == [0.5, 0.5, 0.75, 0.75]


def test_absolute_equals_matrix_equals_callable(rng):
    for _ in range(20):
        m, eta = int(rng.integers(2, 9)), float(rng.integers(0, 4))
        values = np.sort(rng.choice(20, size=m, replace=False)).astype(float)
        prior = Prior.from_probabilities(rng.dirichlet(np.ones(m)), support=values.tolist())
        distance = np.abs(np.subtract.outer(values, values))
        labels = rng.integers(2, size=m).tolist()
        games = [
            play(prior, Threat(knows=lambda _, labels=labels: labels, loss="absolute", eta=eta)),
            play(prior, Threat(knows=lambda _, labels=labels: labels, loss=distance <= eta)),
            play(
                prior,
                Threat(
                    knows=lambda _, labels=labels: labels, loss=sparse.csr_array(distance <= eta)
                ),
            ),
            play(
                prior,
                Threat(
                    knows=lambda _, labels=labels: labels,
                    loss=lambda t, g: np.abs(t[:, None] - g[None, :]),
                    eta=eta,
                ),
            ),
        ]
        for game in games[1:]:
            assert game.kappa == pytest.approx(games[0].kappa)
            assert game.p_plus == pytest.approx(games[0].p_plus)
            for which in ("smallest", "largest"):
                a = getattr(game.sets, which)(len(game.probabilities))
                b = getattr(games[0].sets, which)(len(games[0].probabilities))
                assert np.sort(a) == pytest.approx(np.sort(b))


def test_haversine_against_the_formula(rng):
    lat, lon = rng.uniform(41.1, 41.2, 60), rng.uniform(-8.7, -8.5, 60)
    prior = Prior.from_data(pl.DataFrame({"lat": lat, "lon": lon}))
    eta = 1500.0
    game = play(prior, Threat(loss="haversine", eta=eta))
    a, b = np.radians(prior.support["lat"]), np.radians(prior.support["lon"])
    cosine = np.sin(a)[:, None] * np.sin(a) + np.cos(a)[:, None] * np.cos(a) * np.cos(
        b[:, None] - b
    )
    near = EARTH * np.arccos(np.clip(cosine, -1, 1)) <= eta
    assert game.p_plus == pytest.approx(near.sum(axis=0).max() / 60)
    assert play(prior, Threat(loss="haversine", eta=0)).singletons
    assert play(prior, Threat(loss="haversine", eta=1e9)).kappa == pytest.approx(1.0)


def test_large_sparse_relations_stay_sparse(rng):
    """20,000 places, 100 metres: 4 x 10^8 pairs are never made."""
    lat, lon = rng.uniform(41.0, 41.5, 20_000), rng.uniform(-9, -8, 20_000)
    prior = Prior.from_data(pl.DataFrame({"lat": lat, "lon": lon}))
    game = play(prior, Threat(loss="haversine", eta=100.0))
    assert game.sets.matrix.nnz < 10**6


def test_many_fibers_on_a_line():
    """50,000 records in 5,000 fibers, windows of the guess's own reach."""
    prior = Prior.from_counts(
        {(x, y): 1 + (x * y) % 7 for x in range(500) for y in range(100)}, columns=["x", "y"]
    )
    game = play(prior, Threat(knows=["x"], target=["y"], loss="absolute", eta=3))
    assert game.p_plus < 1 and isinstance(game.sets, Windows)
    assert np.all(np.diff(game.sets.fiber) >= 0)


def test_continuous_priors():
    uniform = Prior.continuous(scipy.stats.uniform(), 0, 1)
    game = play(uniform, Threat(loss="absolute", eta=0.1))
    assert (game.p_minus, game.p_plus) == pytest.approx((0.1, 0.2), abs=1e-4)
    assert game.p_plus >= 0.2 and game.p_minus <= 0.1
    beta = Prior.continuous(scipy.stats.beta(0.1, 0.1), 0, 1)
    assert play(beta, Threat(loss="absolute", eta=0.25)).p_plus < 0.6
    assert play(uniform, Threat()).p_plus == 0.0
    promise = PureDP(1.0, neighbours="replace-one")
    assert assess(promise, prior=uniform).rad == 0.0
    known = assess(promise, prior=uniform, threat=Threat(knows="everything"))
    assert known.rad == pytest.approx(np.tanh(0.25))
    with pytest.raises(DpradError, match="continuous prior takes"):
        play(uniform, Threat(knows=["value"]))


def test_singletons_need_no_order():
    game = play(Prior.from_counts({"a": 1, "b": 3, "c": 2}), Threat())
    assert isinstance(game.sets, Singletons)
    assert game.sets.mass.tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 6])  # likeliest first


def test_large_numbers_do_not_widen_the_windows():
    """One far value, an offset, or nanosecond timestamps must not change who is within 1."""
    near = Threat(loss="absolute", eta=1)
    promise = PureDP(1, neighbours="replace-one")
    plain = assess(promise, prior=Prior.uniform(10), threat=near).rad
    for offset in (10**13, 1_700_000_000_000_000_000, -(2**62)):
        moved = Prior.from_counts({offset + i: 1 for i in range(10)})
        assert assess(promise, prior=moved, threat=near).rad == plain
    far = Prior.from_counts({**dict.fromkeys(range(10), 1), 10**15: 1e-9})
    assert assess(promise, prior=far, threat=near).rad == pytest.approx(plain, rel=1e-3)
    floats = Prior.from_counts({**{i + 0.5: 1 for i in range(10)}, 1e13: 1e-9})
    assert assess(promise, prior=floats, threat=near).rad == pytest.approx(plain, rel=1e-3)
    with pytest.raises(DpradError, match="infinite"):
        play(Prior.from_counts({0.5: 1, float("inf"): 1}), near)


def test_decimals_are_numbers():
    prior = Prior.from_counts({Decimal("0.1"): 1, Decimal("0.2"): 1, Decimal("0.4"): 2})
    game = play(prior, Threat(loss="absolute", eta=0.1))
    assert sorted(game.sets.mass.tolist()) == pytest.approx([0.5, 0.5])


def test_lightest_and_heaviest_windows_by_brute_force(rng):
    for _ in range(30):
        m, eta = int(rng.integers(2, 12)), int(rng.integers(1, 5))
        values = np.sort(rng.choice(30, m, replace=False)).tolist()
        prior = Prior.from_probabilities(rng.dirichlet(np.ones(m)), support=values)
        game = play(prior, Threat(loss="absolute", eta=eta))
        member, mass = game.sets.members(len(game.probabilities)), game.sets.mass
        for c in range(len(game.probabilities)):
            inside = mass[member[:, c]]
            assert game.sets.smallest(len(game.probabilities))[c] == inside.min()
            assert game.sets.largest(len(game.probabilities))[c] == inside.max()


def test_many_near_places_come_in_blocks(rng, monkeypatch):
    lat, lon = rng.uniform(41.1, 41.2, 80), rng.uniform(-8.7, -8.5, 80)
    prior = Prior.from_data(pl.DataFrame({"lat": lat, "lon": lon}))
    threat = Threat(loss="haversine", eta=3000.0)
    at_once = play(prior, threat)
    monkeypatch.setattr(sets, "BLOCK_ENTRIES", 100)
    monkeypatch.setattr(memory, "SMALLEST", 1)
    # not from the cache: another number of metres, and the same pairs
    in_blocks = play(prior, Threat(loss="haversine", eta=3000.0001))
    assert at_once.sets.matrix.nnz > 400
    assert at_once.sets.mass.tolist() == in_blocks.sets.mass.tolist()
    for which in ("smallest", "largest"):
        a, b = (getattr(game.sets, which)(80).tolist() for game in (at_once, in_blocks))
        assert a == b


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Threat(eta=-1), "eta must be a finite number of at least 0, but is -1"),
        (lambda: Threat(eta=float("nan")), "eta must be"),
        (lambda: Threat(knows="age"), r"knows=\['age'\]"),
        (lambda: Threat(knows="everythin"), "Did you mean 'everything'"),
        (lambda: Threat(knows=[]), "list of different column names"),
        (lambda: Threat(loss="euclid"), "loss must be one of"),
        (lambda: Threat(loss=np.ones((2, 3))), "square"),
        (lambda: Threat(loss=np.full((2, 2), 0.5)), "True or False"),
        (lambda: Threat(loss=1 - np.eye(3)), "losses <= eta"),
        (lambda: Threat(loss=np.eye(3), eta=1), "left out"),
        (lambda: play(Prior.uniform(3), Threat(knows=["x"])), "knows names the column 'x'"),
        (lambda: play(Prior.uniform(3), Threat(target=["valu"])), "Did you mean 'value'"),
        (lambda: play(Prior.uniform(3), Threat(loss=np.eye(4))), "3 target values"),
        (lambda: play(Prior.uniform(3), Threat(loss=lambda t, g: np.zeros(3))), "shape"),
        (lambda: play(Prior.uniform(3), Threat(loss=lambda t, g: np.full((3, 3), np.nan))), "NaN"),
        (lambda: play(Prior.uniform(3), Threat(knows=lambda s: [1])), "one label per record"),
        (lambda: play(Prior.uniform(2), Threat(knows=lambda s: [[], []])), "hashable"),
        (lambda: play(Prior.from_counts({"a": 1}), Threat(loss="absolute")), "column of numbers"),
        (lambda: play(Prior.uniform(3), Threat(loss="haversine")), "two target columns"),
        (lambda: play(Prior.from_counts({(99, 5): 1}), Threat(loss="haversine")), "degrees"),
        (lambda: Threat(eta=1), "eta must be 0 with loss='exact'"),
        (
            lambda: play(Prior.from_counts({1: 1, None: 1}), Threat(loss="absolute", eta=1)),
            "has missing values",
        ),
        (lambda: Threat(target=["a", "a"]), "different column names"),
        (lambda: Threat(loss=[[1, 0], [1]]), "equal length"),
        (lambda: play(Prior.uniform(2), Threat(knows=lambda s: 1)), "one label per record"),
        (
            lambda: play(Prior.continuous(scipy.stats.norm(), 0, 1), Threat(loss=np.eye(2))),
            "continuous prior takes",
        ),
        (lambda: play([0.5, 0.5], Threat()), "prior must be a dprad.Prior"),
        (lambda: play(Prior.uniform(3), "nothing"), "threat must be a dprad.Threat"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(DpradError, match=words):
        make()


def test_functions_are_asked_again():
    scale = [100.0]

    def loss(targets, guesses):
        return np.abs(np.subtract.outer(targets, guesses)) * scale[0]

    prior, mechanism = Prior.uniform(9), GRR(epsilon=1.0, size=9)
    strict = assess(mechanism, prior=prior, threat=Threat(loss=loss, eta=1))
    scale[0] = 1.0  # the same function, which now counts neighbours too
    wide = assess(mechanism, prior=prior, threat=Threat(loss=loss, eta=1))
    truth = assess(mechanism, prior=prior, threat=Threat(loss="absolute", eta=1))
    assert wide.rad == pytest.approx(truth.rad) and wide.rad != pytest.approx(strict.rad)
    labels, bits = [0] * 9, OUE(epsilon=2.0, size=9)

    def knows(_):
        return list(labels)

    before = assess(bits, prior=prior, threat=Threat(knows=knows))
    labels[:] = range(9)
    after = assess(bits, prior=prior, threat=Threat(knows=knows))
    informed = assess(bits, prior=prior, threat=Threat(knows="everything"))
    assert after.rad == pytest.approx(informed.rad) and after.rad > before.rad + 0.01
