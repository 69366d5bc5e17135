"""The paper's attacker, who must always guess: against brute force and the linear program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprad import ApproxDP, DpradError, Prior, Threat, assess, optimal_attack, simulate
from dprad.bounds import evaluate
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling
from dprad.game.game import Table, play
from dprad.game.question import Question
from dprad.mechanisms import GRR, OUE, Channel, Gaussian, Geometric, Laplace, Repeated
from effort import some
from oracles import brute_force, lp_optimum, random_channel, random_instance


def must(instance):
    return replace(instance, threat=replace(instance.threat, must_guess=True))


def binding(instance):
    """Whether guessing is forced somewhere that it matters."""
    game = play(instance.prior, instance.threat)
    assert isinstance(game, Table)
    return game.forced is not None


@pytest.mark.parametrize("seed", range(some(6, 2)))
def test_channels_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    forced = differs = 0
    for _ in range(120):
        m = int(rng.integers(1, 6))
        free = random_instance(rng, m)
        channel = random_channel(rng, m, int(rng.integers(1, 6)))
        values = []
        for instance in (free, must(free)):
            risk = assess(Channel(channel), prior=instance.prior, threat=instance.threat)
            rad, rero = brute_force(instance, channel)
            assert risk.rad == pytest.approx(rad, abs=1e-12)
            assert risk.rero == pytest.approx(rero, abs=1e-12)
            assert risk.success_in - risk.success_out == pytest.approx(rad, abs=1e-12)
            values.append(rad)
        assert values[1] <= values[0] + 1e-12
        forced += binding(must(free))
        differs += values[1] < values[0] - 1e-9
        if not binding(must(free)):  # then both are the same attacker
            assert values[1] == pytest.approx(values[0], abs=1e-12)
    assert forced > 10 and differs > 5


@pytest.mark.parametrize("seed", range(some(4, 1)))
def test_bounds_against_the_linear_program(seed):
    rng = np.random.default_rng(100 + seed)
    smaller = 0
    for k in range(60):
        free = random_instance(rng, int(rng.integers(2, 5)))
        instance = must(free)
        epsilon, delta = float(rng.uniform(0.1, 3)), float(rng.choice([0.0, 0.05]))
        where = ("replace-one", "add-remove")[k % 2]
        optimum = lp_optimum(instance, [(np.exp(epsilon), delta)], absent=where == "add-remove")
        promise = ApproxDP(epsilon, delta, neighbours=where)
        for bound in evaluate(promise, play(instance.prior, instance.threat)):
            if bound.value is not None and bound.measure == "rad":
                assert bound.value >= optimum - 1e-7, (bound, optimum, instance)
        risks = [assess(promise, prior=free.prior, threat=i.threat).rad for i in (free, instance)]
        assert risks[1] <= risks[0] + 1e-12
        smaller += risks[1] < risks[0] - 1e-9
    assert smaller > 0


def integrated(instance, density, grid):
    """RAD by a plain sum over a fine grid of outputs."""
    pi, step = instance.pi, grid[1] - grid[0]
    p = np.array([density(grid - z) for z in range(len(pi))])
    gain = pi[:, None] * (p - pi @ p)
    total = 0.0
    for x in np.unique(instance.fiber):
        sums = [
            gain[(instance.fiber == x) & instance.success[:, g]].sum(axis=0) for g in range(len(pi))
        ]
        best = np.max(sums, axis=0)
        total += float((best if instance.threat.must_guess else np.maximum(best, 0)).sum() * step)
    return total


@pytest.mark.parametrize("seed", range(some(12, 4)))
def test_noise_against_a_grid(seed):
    rng = np.random.default_rng(200 + seed)
    instance = must(random_instance(rng, int(rng.integers(3, 6)), kind="absolute", knows="part"))
    question = {"prior": instance.prior, "threat": instance.threat}
    grid = np.linspace(-60, 65, 1_250_001)
    laplace = assess(Laplace(epsilon=6.5, sensitivity=5.0), **question)
    expected = integrated(instance, lambda t: 0.65 * np.exp(-1.3 * np.abs(t)), grid)
    assert laplace.kind == "exact" and laplace.rad == pytest.approx(expected, abs=1e-6)
    gaussian = assess(Gaussian(sigma=1.7, sensitivity=5.0), **question)
    expected = integrated(
        instance, lambda t: np.exp(-t * t / (2 * 1.7**2)) / (1.7 * np.sqrt(2 * np.pi)), grid
    )
    assert gaussian.kind == "exact" and gaussian.rad == pytest.approx(expected, abs=1e-6)
    whole = assess(Geometric(epsilon=6.5, sensitivity=5), **question)
    k = np.arange(-80.0, 90.0)
    expected = integrated(instance, lambda t: np.tanh(0.65) * np.exp(-1.3 * np.abs(t)), k)
    assert whole.rad == pytest.approx(expected, abs=1e-9)


# two people of each kind; who sees the kind guesses one of two illnesses, which both kinds have
PEOPLE = Prior.from_counts(
    {(kind, ill): n for kind, ill, n in [(0, 0, 3), (0, 1, 1), (1, 0, 1), (1, 1, 3)]},
    columns=["kind", "ill"],
)


@pytest.mark.parametrize(
    "mechanism", [GRR(epsilon=1.0, size=4), OUE(epsilon=1.0, size=4), GRR(epsilon=3.0, size=4)]
)
def test_the_attack_attains_it_and_never_passes(mechanism):
    free = Threat(knows=["kind"], target=["ill"])
    forced = Threat(knows=["kind"], target=["ill"], must_guess=True)
    risks = [
        assess(mechanism, prior=PEOPLE, threat=t, query=["kind", "ill"]) for t in (free, forced)
    ]
    assert all(r.kind == "exact" for r in risks) and risks[1].rad < risks[0].rad - 1e-3
    question = {"prior": PEOPLE, "threat": forced, "query": ["kind", "ill"]}
    attack = optimal_attack(mechanism, **question)
    tried = simulate(mechanism, attack, **question, trials=40_000, rng=1)
    assert tried.interval[0] <= risks[1].rad <= tried.interval[1]
    outputs = mechanism.sample(np.zeros(200, dtype=int), np.random.default_rng(0))
    assert all(g is not None for g in attack(outputs, np.zeros(200, dtype=int)))
    with pytest.raises(DpradError, match="must always guess"):
        simulate(mechanism, lambda o, known: [None] * len(known), **question, trials=10)


def test_an_estimate_may_be_forced():
    twice = Repeated(GRR(epsilon=1.0, size=4), 2)
    forced = Threat(knows=["kind"], target=["ill"], must_guess=True)
    p = np.full((4, 4), 1 / (np.e + 3)) + np.eye(4) * (np.e - 1) / (np.e + 3)
    pair = np.einsum("zi,zj->zij", p, p).reshape(4, 16)
    question = {"prior": PEOPLE, "threat": forced, "query": ["kind", "ill"]}
    exact = assess(Channel(pair), **question)
    asked = Question.of(**question)
    risk = estimate(twice, asked.game, twice.read(asked), asked.game.pi, Sampling(seed=3))
    assert risk.interval[0] <= exact.rad <= risk.interval[1]
    counted = assess(twice, **question)
    assert counted.kind == "exact" and counted.rad == pytest.approx(exact.rad, abs=1e-12)


def test_three_by_two():
    """The example of docs/theory/game.md: it takes a loss on the column that is guessed."""
    rows = {(a, b): 1 for a in range(3) for b in range(2)}
    prior = Prior.from_counts(rows, columns=["a", "b"])

    def rad(**threat):
        threat = Threat(knows=["a"], **threat)
        noise = GRR(epsilon=1.0, size=6)
        return round(assess(noise, prior=prior, threat=threat, query=["a", "b"]).rad, 3)

    assert rad(target=["b"]) == 0.186 and rad(target=["b"], must_guess=True) == 0.111
    # a whole record of another fiber is a guess that cannot be right
    assert rad() == rad(must_guess=True) == 0.186


def test_somebody_impossible_serves_as_a_pass():
    """With a third illness that the first kind never has, and a fourth that nobody has."""
    rows = {(0, 0): 3, (0, 1): 1, (1, 0): 1, (1, 1): 3, (1, 2): 1, (0, 3): 0}
    prior = Prior.from_counts(rows, columns=["kind", "ill"])
    noise = GRR(epsilon=1.0, size=6)
    threats = [Threat(knows=["kind"], target=["ill"], must_guess=b) for b in (False, True)]
    risks = [assess(noise, prior=prior, threat=t, query=["kind", "ill"]) for t in threats]
    assert risks[0].rad == risks[1].rad
    attack = optimal_attack(noise, prior=prior, threat=threats[1], query=["kind", "ill"])
    assert 3 in set(attack(np.zeros(50, dtype=int), np.ones(50, dtype=int)).tolist())


def test_an_impossible_value_need_not_be_a_pass():
    """Nobody of kind a has 1, but within the tolerance it is right about both of them."""
    rows = {("a", 0): 1, ("a", 2): 1, ("b", 1): 2}
    prior = Prior.from_counts(rows, columns=["x", "y"])
    channel = np.full((3, 3), 1 / (np.e + 2)) + np.eye(3) * (np.e - 1) / (np.e + 2)
    gain = prior.probabilities * (channel - channel @ prior.probabilities[:, None])
    right = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]])  # records (a,0), (a,2), (b,1) by 0, 1, 2
    fibers = [gain[:, [0, 1]] @ right[[0, 1]], gain[:, [2]] @ right[[2]]]
    expected = {
        False: sum(np.maximum(f.max(axis=1), 0).sum() for f in fibers),
        True: sum(f.max(axis=1).sum() for f in fibers),
    }
    question = {"prior": prior, "query": ["x", "y"]}
    for forced, value in ((False, 0.2276), (True, 0.0910)):
        threat = Threat(knows=["x"], target=["y"], loss="absolute", eta=1, must_guess=forced)
        risk = assess(GRR(epsilon=1.0, size=3), threat=threat, **question)
        assert risk.rad == pytest.approx(expected[forced], abs=1e-12)
        assert round(risk.rad, 4) == value


def test_threats_that_must_guess_are_values():
    assert Threat(must_guess=True) != Threat() and Threat(must_guess=True).describe()["must_guess"]
    assert len({Threat(), Threat(must_guess=True), Threat(must_guess=True)}) == 2
    with pytest.raises(DpradError, match="must_guess"):
        Threat(must_guess=1)
