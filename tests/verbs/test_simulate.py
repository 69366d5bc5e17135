"""simulate: coverage of its intervals over seeds, the user's own attacks, black boxes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from dprad import DpradError, Prior, Threat, assess, optimal_attack, simulate
from dprad.mechanisms import GRR, BlackBox, Channel, Laplace
from dprad.numerics.intervals import clopper_pearson
from oracles import random_channel, random_instance


@pytest.mark.parametrize("knows", ["nothing", "part", "everything"])
def test_coverage_over_seeds(knows):
    """Nominal 90%; more than 44 misses in 200 has probability below 1e-6."""
    rng = np.random.default_rng(11)
    instance = random_instance(rng, 4, knows=knows, kind="exact")
    channel = Channel(random_channel(rng, 4, 5))
    question = {"prior": instance.prior, "threat": instance.threat}
    exact, attack = assess(channel, **question).rad, optimal_attack(channel, **question)
    misses = 0
    for seed in range(200):
        low, high = simulate(
            channel, attack, trials=300, confidence=0.9, rng=seed, **question
        ).interval
        misses += not low <= exact <= high
    assert misses <= 44


def test_equally_lucky_guesses_get_binomial_intervals():
    mechanism, prior = GRR(epsilon=1.0, size=4), Prior.uniform(4)
    found = simulate(mechanism, lambda o, k: o, prior=prior, trials=1000)
    low, high = clopper_pearson(round(found.success_in * 1000), 1000, 0.955)
    least = clopper_pearson(1000, 1000, 0.995)[0]
    assert found.interval == pytest.approx((low - 0.25, high - 0.25 * least))
    assert found.success_out == 0.25


def test_the_interval_does_not_depend_on_what_was_seen():
    """A rare record: in most samples all guesses happen to be equally lucky. 95%, 300 seeds."""
    prior, mechanism = Prior.from_probabilities([0.95, 0.05]), GRR(epsilon=40, size=2)
    attack, exact = optimal_attack(mechanism, prior=prior), assess(mechanism, prior=prior).rad
    misses = 0
    for seed in range(300):
        low, high = simulate(mechanism, attack, prior=prior, trials=20, rng=seed).interval
        misses += not low <= exact <= high
    assert misses <= 38  # binomial(300, 0.05) exceeds this with probability below 1e-6


def test_an_attack_made_for_another_game():
    """Its codes mean something else: it is played by values, or refused."""
    mechanism, prior = GRR(epsilon=1, size=3), Prior.uniform(3)
    attack = optimal_attack(mechanism, prior=prior)
    member = {"prior": prior, "threat": Threat(knows="everything"), "trials": 5000}
    with pytest.raises(DpradError, match="left out"):
        simulate(mechanism, attack, **member)
    by_value = simulate(mechanism, lambda o, k: attack(o), **member)
    assert by_value.interval[0] <= assess(mechanism, prior=prior).rad <= by_value.interval[1]
    other = Prior.from_counts({"b": 5, "c": 3, "d": 1})
    strange = optimal_attack(mechanism, prior=Prior.from_counts({"a": 5, "b": 3, "c": 1}))
    with pytest.raises(DpradError, match="guessed a str"):
        simulate(mechanism, strange, prior=other)


def test_clopper_pearson():
    for k, n in ((0, 10), (3, 10), (10, 10), (40, 1000)):
        expected = binomtest(k, n).proportion_ci(0.9, method="exact")
        assert clopper_pearson(k, n, 0.9) == pytest.approx((expected.low, expected.high))


def test_an_attack_that_ignores_the_output_gains_nothing():
    prior = Prior.from_counts({"a": 5, "b": 1})
    mechanism = GRR(epsilon=5.0, size=2)
    always = simulate(mechanism, lambda o, k: ["a"] * len(o), prior=prior, trials=5000)
    assert always.success_in == pytest.approx(5 / 6, abs=0.03)
    assert always.interval[0] <= 0 <= always.interval[1]
    never = simulate(mechanism, lambda o, k: [None] * len(o), prior=prior)
    assert never.rad == 0.0 and never.success_in == 0.0


def test_knowledge_reaches_the_attack():
    prior = Prior.from_counts({(a, d): 1 for a in range(3) for d in range(2)}, columns=["a", "d"])
    seen = []

    def attack(outputs, known):
        seen.append(known)
        return outputs

    threat = Threat(knows=["a"], target=["d"])
    found = simulate(GRR(epsilon=2.0, size=2), attack, prior=prior, threat=threat, trials=4000)
    assert set(seen[0].tolist()) == {0, 1, 2}
    exact = assess(GRR(epsilon=2.0, size=2), prior=prior, threat=threat).rad
    assert found.interval[0] <= exact <= found.interval[1]


def test_a_black_box_and_its_seed():
    box = BlackBox(lambda record, rng: record if rng.random() < 0.75 else 1 - record)
    prior = Prior.uniform(2)
    one, two = (simulate(box, lambda o, k: o, prior=prior, rng=4) for _ in range(2))
    assert one.rad == two.rad
    assert one.interval[0] <= 0.25 <= one.interval[1]
    with pytest.raises(DpradError, match="no likelihood"):
        assess(box, prior=prior)


def test_words():
    prior = Prior.uniform(3)
    found = simulate(
        Laplace(epsilon=2.0, sensitivity=2),
        lambda o, k: np.clip(np.rint(o), 0, 2).astype(int),
        prior=prior,
    )
    assert "simulated attack, 10,000 runs" in str(found)
    assert any("a better one" in line for line in found.assumptions)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"attack": 3}, "must be a function"),
        ({"attack": lambda o, k: [0]}, "returned 1 for"),
        ({"attack": lambda o, k: [9] * len(o)}, "guessed a int"),
        ({"attack": lambda o, k: [[0]] * len(o)}, "guessed a list"),
        ({"attack": lambda o, k: None}, "list of guesses"),
        ({"trials": 1}, "trials"),
        ({"rng": -1}, "rng"),
        ({"mechanism": 3}, "takes a mechanism"),
        ({"prior": Prior.unknown()}, "table of records"),
    ],
)
def test_bad_input(arguments, words):
    question = {
        "mechanism": GRR(epsilon=1, size=2),
        "attack": lambda o, k: o,
        "prior": Prior.uniform(2),
    } | arguments
    with pytest.raises(DpradError, match=words):
        simulate(**question)


@pytest.mark.parametrize("n", [1, 7])
def test_clopper_pearson_at_the_ends(n):
    for k in (0, n):
        low, high = clopper_pearson(k, n, 0.9)
        assert low == (0.0 if k == 0 else pytest.approx(0.05 ** (1 / n)))
        assert high == (1.0 if k == n else pytest.approx(1 - 0.05 ** (1 / n)))
