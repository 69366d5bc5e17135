"""The optimal attack, simulated: meets the exact value, for every mechanism and kind of threat."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

import dprad
from dprad import DpradError, Prior, Threat, assess, optimal_attack, simulate
from dprad.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    BlackBox,
    Channel,
    Composed,
    Density,
    DiscreteGaussian,
    Duchi,
    Exponential,
    ExponentialInterval,
    Gaussian,
    Geometric,
    HadamardResponse,
    Hybrid,
    Laplace,
    Piecewise,
    Repeated,
    Staircase,
    SubsetSelection,
    UnaryEncoding,
)
from dprad.mechanisms import bits as packed
from oracles import random_channel, random_instance

M = 6
RNG = np.random.default_rng(7)
MECHANISMS = [
    GRR(epsilon=1.0, size=M),
    GRR(epsilon=0.5, size=M, delta=0.1),
    OUE(epsilon=1.0, size=M),
    SUE(epsilon=1.0, size=M, delta=0.05),
    UnaryEncoding(size=M, p=0.7, q=0.2),
    THE(epsilon=2.0, size=M),
    SHE(epsilon=2.0, size=M),
    SubsetSelection(epsilon=1.0, size=M),
    OLH(epsilon=1.0, size=M),
    BLH(epsilon=1.0, size=M),
    HadamardResponse(epsilon=1.0, size=M),
    HadamardResponse(epsilon=3.0, size=M),
    Exponential(epsilon=2.0, utility=RNG.normal(size=(M, 4))),
    Channel(random_channel(RNG, M, 5)),
    Repeated(GRR(epsilon=0.5, size=M), 3),
    Laplace(epsilon=2.0, sensitivity=5),
    Laplace(epsilon=2.0, sensitivity=5, clamp=(0, 5)),
    Geometric(epsilon=2.0, sensitivity=5, clamp=(0, 5)),
    Staircase(epsilon=2.0, sensitivity=5),
    Staircase(epsilon=2.0, sensitivity=5, clamp=(-1, 7)),
    Gaussian(sigma=2.0, sensitivity=5),
    Gaussian(sigma=2.0, sensitivity=5, clamp=(0, 5)),
    DiscreteGaussian(sigma=2.0, sensitivity=5),
    ExponentialInterval(epsilon=4.0, bounds=(0, 5)),
    Duchi(epsilon=2.0, bounds=(0, 5)),
    Piecewise(epsilon=2.0, bounds=(0, 5)),
    Hybrid(epsilon=2.0, bounds=(0, 5)),
    Density(
        log_density=lambda t, z: -np.abs(t - z) - 2 * np.log1p(np.exp(-np.abs(t - z))),
        bounds=(-50, 60),
    ),
    Composed([Laplace(epsilon=1.0, sensitivity=5), Gaussian(sigma=3.0, sensitivity=5)]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_attains_the_exact_value(mechanism):
    """Four questions each; intervals of 1 - 1e-6 do not fail by chance."""
    rng = np.random.default_rng(3)
    for kind, knows in itertools.product(["exact", "absolute"], ["nothing", "part"]):
        instance = random_instance(rng, M, kind=kind, knows=knows)
        question = {"prior": instance.prior, "threat": instance.threat}
        exact = assess(mechanism, confidence=1 - 1e-6, **question)
        attack = optimal_attack(mechanism, **question)
        found = simulate(mechanism, attack, trials=4000, confidence=1 - 1e-6, **question)
        assert found.interval[0] <= exact.interval[1] and exact.interval[0] <= found.interval[1]
        assert found.rad == pytest.approx(exact.rad, abs=0.06)
        assert found.kind == "estimate"


@pytest.mark.parametrize("seed", range(10))
def test_any_success_relation(seed):
    """Matrices, classes, windows; every fiber; a channel, so the exact value is a plain sum."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 5)
    channel = Channel(random_channel(rng, 5, 6))
    question = {"prior": instance.prior, "threat": instance.threat}
    attack = optimal_attack(channel, **question)
    found = simulate(channel, attack, trials=20_000, confidence=1 - 1e-6, rng=seed, **question)
    exact = assess(channel, **question)
    assert found.interval[0] <= exact.rad <= found.interval[1]
    assert found.rad == pytest.approx(exact.rad, abs=0.03)


def test_membership(rng):
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(M)))
    for mechanism in (GRR(epsilon=2.0, size=M), Gaussian(sigma=3.0, sensitivity=5)):
        question = {"prior": prior, "threat": Threat(knows="everything")}
        attack = optimal_attack(mechanism, **question)
        found = simulate(mechanism, attack, trials=20_000, confidence=1 - 1e-6, **question)
        exact = assess(mechanism, **question)
        assert found.interval[0] <= exact.rad <= found.interval[1]
        assert found.membership_advantage == pytest.approx(exact.membership_advantage, abs=0.05)


def test_guesses_are_values_and_passes_are_none():
    prior = Prior.from_counts(
        {(a, d): 1 + a % 3 for a in range(4) for d in ("flu", "none")}, columns=["age", "disease"]
    )
    threat = Threat(knows=["age"], target=["disease"])
    mechanism = GRR(epsilon=2.0, size=8)
    attack = optimal_attack(mechanism, prior=prior, threat=threat, query=["age", "disease"])
    # output 3 is (1, none): about another age it says nothing good of any guess
    assert attack([3, 3, 2], [1, 0, 1]).tolist() == ["none", None, "flu"]
    whole = optimal_attack(mechanism, prior=prior)
    assert whole([3]).tolist() == [(1, "none")]
    both = optimal_attack(mechanism, prior=prior, threat=Threat(knows="everything"))
    assert both([3, 3], [(1, "none"), (1, "flu")]).tolist() == [(1, "none"), None]


def test_ties_are_broken_at_random(rng):
    """Uniform prior, unary bits: every set bit is as good, and is named as often."""
    mechanism = OUE(epsilon=0.5, size=70)
    prior = Prior.uniform(70)
    attack = optimal_attack(mechanism, prior=prior)
    one = packed.pack(np.isin(np.arange(70), [3, 40, 63, 64, 69])[None, :])
    named = attack(np.repeat(one, 20_000, axis=0), rng=5)
    counts = [np.sum(named == v) for v in (3, 40, 63, 64, 69)]
    assert sum(counts) == 20_000 and chisquare(counts).pvalue > 1e-6
    assert attack(np.zeros_like(one)).tolist() == [None]
    grr = optimal_attack(GRR(epsilon=0.0, size=2), prior=prior.from_counts({0: 1, 1: 1}))
    assert set(grr([0, 1])) == {0, 1}


def test_pick_is_uniform(rng):
    rows = rng.random((1, 130)) < 0.3
    members = np.flatnonzero(rows[0])
    drawn = packed.pick(np.repeat(packed.pack(rows), 40_000, axis=0), rng)
    assert chisquare(np.bincount(drawn, minlength=130)[members]).pvalue > 1e-6
    assert set(drawn.tolist()) <= set(members.tolist())


def test_the_same_seed_gives_the_same_guesses():
    mechanism, prior = OUE(epsilon=1.0, size=5), Prior.uniform(5)
    outputs = mechanism.sample(np.arange(5).repeat(20), np.random.default_rng(1))
    attack = optimal_attack(mechanism, prior=prior)
    assert attack(outputs, rng=3).tolist() == attack(outputs, rng=3).tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: optimal_attack(GRR(epsilon=1, size=2), prior=Prior.unknown()),
            "table of records",
        ),
        (lambda: optimal_attack(BlackBox(lambda r: r), prior=Prior.uniform(2)), "likelihood"),
        (lambda: optimal_attack(GRR(epsilon=1, size=3), prior=Prior.uniform(2)), "size 3"),
        (
            lambda: optimal_attack(GRR(epsilon=1, size=2), prior=Prior.uniform(2))([0], [1]),
            "left out",
        ),
        (
            lambda: optimal_attack(
                GRR(epsilon=1, size=2), prior=Prior.uniform(2), threat=Threat(knows="everything")
            )([0]),
            "missing",
        ),
        (
            lambda: optimal_attack(
                GRR(epsilon=1, size=2), prior=Prior.uniform(2), threat=Threat(knows="everything")
            )([0], [7]),
            "records of the prior, but holds",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


def test_public_names():
    assert dprad.optimal_attack is optimal_attack and dprad.simulate is simulate
