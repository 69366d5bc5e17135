"""No bound may fall below the linear program: thousands of random questions."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import ApproxDP, GaussianDP, Prior, Profile, PureDP, Threat, TotalVariation, assess
from dprad.bounds import evaluate, unified
from dprad.game.game import play
from effort import some
from oracles import attacks, lp_optimum, random_instance

LP = 1e-7  # tolerance of the linear program's solver

PAPER = {
    "theorem-1",
    "theorem-3",
    "theorem-3-finite",
    "proposition-1",
    "theorem-4",
    "corollary-2",
}


def check(instance, guarantee, optimum):
    """Every bound is above the optimum; the one reported is the least."""
    found = evaluate(guarantee, play(instance.prior, instance.threat))
    values = {b.name: b.value for b in found if b.value is not None and b.measure == "rad"}
    for name, value in values.items():
        assert value >= optimum - LP, (name, value, optimum, instance, guarantee)
    risk = assess(guarantee, prior=instance.prior, threat=instance.threat)
    assert risk.rad == min(values.values())
    assert risk.rad <= min(v for n, v in values.items() if n in PAPER)
    return values


def random_point(rng):
    epsilon = float(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0, 4.0]) * rng.uniform(0.5, 1.0))
    delta = float(rng.choice([0.0, 0.0, 1e-3, 0.05, 0.3]))
    return epsilon, delta


@pytest.mark.parametrize("seed", range(some(20, 6)))
def test_replace_one(seed):
    rng = np.random.default_rng(seed)
    for _ in range(120):
        instance = random_instance(rng, int(rng.integers(1, 5)))
        epsilon, delta = random_point(rng)
        optimum = lp_optimum(instance, [(np.exp(epsilon), delta)])
        check(instance, ApproxDP(epsilon, delta, neighbours="replace-one"), optimum)


@pytest.mark.parametrize("seed", range(some(10, 3)))
def test_add_remove(seed):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(30):
        instance = random_instance(rng, int(rng.integers(2, 5)))
        epsilon, delta = random_point(rng)
        optimum = lp_optimum(instance, [(np.exp(epsilon), delta)], absent=True)
        check(instance, ApproxDP(epsilon, delta, neighbours="add-remove"), optimum)


@pytest.mark.parametrize("seed", range(some(6, 3)))
def test_profiles_with_several_points(seed):
    """A composition has a polygonal profile: the program needs its corners only."""
    rng = np.random.default_rng(2000 + seed)
    for _ in range(12):
        instance = random_instance(rng, int(rng.integers(2, 4)))
        epsilon, delta = random_point(rng)
        where = rng.choice(["replace-one", "add-remove"])
        promise = ApproxDP(epsilon, delta, neighbours=where).compose(
            ApproxDP(epsilon, delta, neighbours=where)
        )
        corners = np.unique(np.maximum(promise.loss.losses, 0.0))
        points = [(np.exp(e), float(promise.delta(e))) for e in corners]
        check(instance, promise, lp_optimum(instance, points, absent=where == "add-remove"))


@pytest.mark.parametrize("seed", range(4))
def test_a_profile_given_as_a_function(seed):
    """GDP is below any of its chords; the program sees eight points of it, and so does Profile."""
    rng = np.random.default_rng(3000 + seed)
    for _ in range(6):
        instance = random_instance(rng, int(rng.integers(2, 4)))
        gdp = GaussianDP(float(rng.uniform(0.2, 3.0)), neighbours="replace-one")
        corners = np.linspace(0.0, 4.0, 8)
        known = gdp.delta(corners)
        points = [(np.exp(e), float(d)) for e, d in zip(corners, known, strict=True)]

        def delta(epsilon, corners=corners, known=known):
            return float(np.interp(np.exp(epsilon), np.exp(corners), known))

        check(instance, Profile(delta, neighbours="replace-one"), lp_optimum(instance, points))


@pytest.mark.parametrize(
    "limits",
    [{"LISTED": 1}, {"LISTED": 1, "PAIR_CLASSES": 0}, {"MAX_TERMS": 3}],
    ids=["ranges by pair", "ranges by class", "shared ranges"],
)
def test_what_large_questions_use_is_valid_on_small_ones(limits, monkeypatch, rng):
    """The cruder forms of Theorem C, forced on questions the program can check."""
    for name, value in limits.items():
        monkeypatch.setattr(unified, name, value)
    for _ in range(120):
        instance = random_instance(rng, int(rng.integers(2, 5)))
        epsilon, delta = random_point(rng)
        optimum = lp_optimum(instance, [(np.exp(epsilon), delta)])
        check(instance, ApproxDP(epsilon, delta, neighbours="replace-one"), optimum)


def test_theorem_b_is_the_optimum(rng):
    for _ in range(150):
        instance = random_instance(rng, int(rng.integers(2, 7)), knows="nothing", kind="exact")
        epsilon, delta = random_point(rng)
        values = check(
            instance,
            ApproxDP(epsilon, delta, neighbours="replace-one"),
            optimum := lp_optimum(instance, [(np.exp(epsilon), delta)]),
        )
        assert values["theorem-b"] == pytest.approx(optimum, abs=LP)


def test_theorem_c_is_exact_for_uniform_priors_when_everything_is_known(rng):
    for m in (2, 3, 4, 5):
        prior, threat = Prior.uniform(m), Threat(knows="everything")
        instance = random_instance(rng, m, knows="everything", kind="exact")
        instance.pi = np.full(m, 1.0 / m)
        for epsilon, delta in ((0.5, 0.0), (1.0, 0.02), (3.0, 0.3)):
            promise = ApproxDP(epsilon, delta, neighbours="replace-one")
            optimum = lp_optimum(instance, [(np.exp(epsilon), delta)])
            assert assess(promise, prior=prior, threat=threat).rad == pytest.approx(optimum, abs=LP)


def test_theorem_1_is_exact_for_total_variation(rng):
    for _ in range(20):
        instance = random_instance(rng, int(rng.integers(2, 5)), kind="exact")
        tv = float(rng.uniform(0, 1))
        optimum = lp_optimum(instance, [(1.0, tv)])
        assert assess(
            TotalVariation(tv, neighbours="replace-one"),
            prior=instance.prior,
            threat=instance.threat,
        ).rad == pytest.approx(optimum, abs=LP)


def test_pair_refinement_is_close_to_the_program(rng):
    """Mean excess of the reported bound over the program, with knowledge and tolerance."""
    excess = []
    for _ in range(60):
        instance = random_instance(rng, 4, knows="everything", kind="exact")
        epsilon = float(rng.uniform(0.3, 3.0))
        optimum = lp_optimum(instance, [(np.exp(epsilon), 0.0)])
        if optimum > 1e-6:
            promise = PureDP(epsilon, neighbours="replace-one")
            value = assess(promise, prior=instance.prior, threat=instance.threat).rad
            excess.append(value / optimum - 1.0)
    assert np.mean(excess) < 0.03


def test_the_oracle_itself_on_a_case_known_by_hand():
    """Two records, everything known, epsilon = ln 3: randomised response, gap 1/2, times 1/2."""
    instance = random_instance(np.random.default_rng(0), 2, knows="everything", kind="exact")
    instance.pi = np.array([0.5, 0.5])
    assert len(attacks(instance)) == 4
    assert lp_optimum(instance, [(3.0, 0.0)]) == pytest.approx(0.25, abs=1e-9)
