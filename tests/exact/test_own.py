"""Risks of groups and of single people against brute force and linear programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dprad import ApproxDP, DpradError, GaussianDP, Prior, Profile, Threat, assess, by_group
from dprad.exact.own import own_risks
from dprad.exact.solution import Sampling
from dprad.mechanisms import (
    GRR,
    OLH,
    OUE,
    SUE,
    Channel,
    Composed,
    Duchi,
    Exponential,
    ExponentialInterval,
    Gaussian,
    Geometric,
    HadamardResponse,
    Laplace,
    Piecewise,
    Staircase,
    SubsetSelection,
)
from effort import some
from oracles import brute_force, lp_optimum, of_a_group, random_channel, random_instance

LP = 1e-7


def tv(channel, pi):
    return np.abs(channel - pi @ channel).sum(axis=1) / 2


@pytest.mark.parametrize("seed", range(some(30, 6)))
def test_groups_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        m = int(rng.integers(1, 8))
        instance = of_a_group(rng, random_instance(rng, m))
        channel = random_channel(rng, m, int(rng.integers(1, 7)))
        risk = assess(Channel(channel), prior=instance.prior, threat=instance.threat)
        rad, rero = brute_force(instance, channel)
        assert risk.rad == pytest.approx(rad, abs=1e-11)
        assert risk.rero == pytest.approx(rero, abs=1e-11)
        assert risk.success_in - risk.success_out == pytest.approx(rad, abs=1e-11)
        inside = instance.weight > 0
        assert risk.worst == pytest.approx(tv(channel, instance.pi)[inside].max(), abs=1e-11)


@pytest.mark.parametrize("seed", range(some(8, 3)))
def test_groups_of_every_mechanism(seed):
    """The solvers of families against sums over all outputs, or fine cells of them."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        m = int(rng.integers(2, 6))
        instance = of_a_group(rng, random_instance(rng, m))
        for mechanism, channel, off in channels(rng, m):
            risk = assess(mechanism, prior=instance.prior, threat=instance.threat)
            rad, _ = brute_force(instance, channel)
            assert risk.rad == pytest.approx(rad, abs=off), (mechanism, instance)
            worst = tv(channel, instance.pi)[instance.weight > 0].max()
            assert risk.worst == pytest.approx(worst, abs=off), (mechanism, instance)


def channels(rng, m):
    """Mechanisms on 0 .. m-1, each with its matrix and how far the matrix may be off."""
    epsilon = float(rng.choice([0.2, 1.0, 3.0]))
    grr = GRR(epsilon=epsilon, size=m)
    yield grr, np.full((m, m), grr.lie) + grr.gap * np.eye(m), 1e-11
    oue = OUE(epsilon=epsilon, size=m)
    q = 1 / (np.exp(epsilon) + 1)
    bits = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    own, other = np.where(bits, 0.5, 0.5), np.where(bits, q, 1 - q)
    rows = [np.prod(np.where(np.arange(m) == z, own, other), axis=1) for z in range(m)]
    yield oue, np.array(rows), 1e-11
    if rng.random() < 0.8:
        return  # long sums
    edges = np.linspace(-12.0, m + 12.0, 801)
    noise = Gaussian(sigma=float(rng.choice([0.5, 1.0, 3.0])), sensitivity=m - 1)
    z = (edges - np.arange(m)[:, None]) / noise.sigma
    yield noise, np.diff(norm.cdf(z), axis=1, prepend=0.0, append=1.0), 1e-3
    reach = 300
    geometric = Geometric(epsilon=epsilon, sensitivity=m - 1)
    a = np.exp(-epsilon / (m - 1))
    far = np.abs(np.arange(-reach, m + reach) - np.arange(m)[:, None])
    yield geometric, (1 - a) / (1 + a) * a**far, 1e-4


@pytest.mark.parametrize("seed", range(some(6, 2)))
def test_no_bound_for_a_group_falls_below_the_program(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(60):
        instance = of_a_group(rng, random_instance(rng, int(rng.integers(2, 5))))
        epsilon, delta = float(rng.choice([0.1, 0.7, 2.0])), float(rng.choice([0.0, 0.05]))
        where = str(rng.choice(["replace-one", "add-remove"]))
        promise = ApproxDP(epsilon, delta, neighbours=where)
        optimum = lp_optimum(instance, [(np.exp(epsilon), delta)], absent=where == "add-remove")
        risk = assess(promise, prior=instance.prior, threat=instance.threat)
        for bound in risk.bounds:
            if bound.measure == "rad" and bound.value is not None:
                assert bound.value >= optimum - LP, (bound, optimum, instance)
        assert risk.worst >= risk.rad - 1e-9


def test_no_bound_for_a_group_falls_below_the_program_of_a_profile():
    rng = np.random.default_rng(5)
    points = [(1.0, 0.3), (1.2, 0.2), (1.8, 0.05), (3.3, 0.0)]

    def delta(e):  # linear in e^epsilon between the points: no more than they imply
        return np.interp(np.exp(e), *zip(*points, strict=True), right=0.0)

    for _ in range(20):
        instance = of_a_group(rng, random_instance(rng, int(rng.integers(2, 5))))
        optimum = lp_optimum(instance, points)
        promise = Profile(delta, neighbours="replace-one")
        risk = assess(promise, prior=instance.prior, threat=instance.threat)
        for bound in risk.bounds:
            if bound.measure == "rad" and bound.value is not None:
                assert bound.value >= optimum - LP, (bound, optimum, instance)


@pytest.mark.parametrize("where", ["replace-one", "add-remove"])
def test_the_promise_of_one_person_is_attained(where):
    """Proposition I: (1 - pi_z) TV, and some mechanism reaches it, whatever is known."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        instance = random_instance(rng, int(rng.integers(2, 5)), kind="exact")
        z = int(rng.choice(np.flatnonzero(instance.pi > 0)))
        weight = np.eye(len(instance.pi))[z]
        member = weight > 0
        threat = replace(instance.threat, group=lambda _support, member=member: member)
        alone = replace(instance, weight=weight, threat=threat)
        epsilon, delta = float(rng.choice([0.2, 1.0])), float(rng.choice([0.0, 0.1]))
        promise = ApproxDP(epsilon, delta, neighbours=where)
        optimum = lp_optimum(alone, [(np.exp(epsilon), delta)], absent=where == "add-remove")
        risk = assess(promise, prior=alone.prior, threat=alone.threat)
        assert risk.worst == pytest.approx(optimum, abs=1e-6)
        assert risk.rad == pytest.approx(optimum, abs=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        SUE(epsilon=1.0, size=5),
        SubsetSelection(epsilon=1.0, size=5),
        OLH(epsilon=1.0, size=5),
        HadamardResponse(epsilon=1.0, size=5),
        Exponential(epsilon=1.0, utility=np.eye(5) + np.tri(5)),
        Laplace(epsilon=1.0, sensitivity=4.0),
        Laplace(epsilon=1.0, sensitivity=4.0, clamp=(0.0, 4.0)),
        Gaussian(sigma=2.0, sensitivity=4.0, clamp=(0.0, 4.0)),
        ExponentialInterval(epsilon=1.0, bounds=(0.0, 4.0)),
        Staircase(epsilon=1.0, sensitivity=4.0),
        Piecewise(epsilon=1.0, bounds=(0.0, 4.0)),
        Duchi(epsilon=1.0, bounds=(0.0, 4.0)),
        Composed([GRR(epsilon=1.0, size=5), OUE(epsilon=0.5, size=5)]),
    ],
    ids=lambda m: type(m).__name__,
)
def test_own_risk_is_that_of_an_attacker_who_is_after_one(mechanism):
    """By draws from the mechanism itself: E_{o ~ P_z} (1 - pbar/p_z)_+ ."""
    pi = np.array([0.5, 0.05, 0.25, 0.15, 0.05])
    prior = Prior.from_probabilities(pi)
    rng = np.random.default_rng(0)
    read = np.arange(5) if mechanism.reads_codes is not None else np.arange(5.0)
    own = own_risks(mechanism, read, pi, Sampling(trials=100_000))
    n = 60_000
    for z in range(5):
        outputs = mechanism.sample(np.repeat(read[z], n), rng)
        some = outputs if isinstance(outputs, tuple) else np.asarray(outputs)
        wide = tuple(o[:, None] for o in some) if isinstance(some, tuple) else some[:, None]
        log = mechanism.log_likelihood(wide, read)
        ratio = np.exp(log - log[:, [z]]) @ pi
        found = np.maximum(1.0 - ratio, 0.0)
        error = 5 * found.std() / np.sqrt(n) + 1e-9
        assert abs(own.rad[z] - found.mean()) <= error + (own.high[z] - own.low[z])
    risk = assess(mechanism, prior=prior, trials=20_000)
    assert risk.worst == pytest.approx(own.high.max(), abs=0.02)
    assert risk.worst >= risk.rad


@pytest.mark.parametrize("panels", [True, False])
def test_very_many_values(panels, monkeypatch):
    """Gaussian noise exactly, or where the range is too large for that, by bounds."""
    if not panels:
        monkeypatch.setattr("dprad.exact.own.own_normal", lambda *_: None)
    rng = np.random.default_rng(1)
    pi = rng.dirichlet(np.full(300, 0.5))
    values = np.sort(rng.random(300)) * 100
    for mechanism in (
        Laplace(epsilon=2.0, sensitivity=100.0), Gaussian(sigma=40.0, sensitivity=100.0)
    ):  # fmt: skip
        own = own_risks(mechanism, values, pi, Sampling())
        exactly = panels or isinstance(mechanism, Laplace)
        assert own.kind == ("exact" if exactly else "upper-bound")
        t = np.linspace(-1000.0, 1100.0, 60_001)
        step = t[1] - t[0]
        density = [
            np.exp(mechanism.log_likelihood(t[a : a + 6_000], values[:, None]))
            for a in range(0, len(t), 6_000)
        ]
        exact = sum(np.abs(part - pi @ part).sum(axis=1) for part in density) * step / 2
        assert np.all(own.high >= exact - 1e-6)
        assert np.all(own.low <= exact + 1e-6)
        assert np.max(own.high - exact) < (1e-6 if exactly else 0.02)


def test_own_risk_does_not_depend_on_the_attacker():
    prior = Prior.from_counts({("a", 1): 3, ("a", 2): 1, ("b", 1): 6}, columns=["x", "y"])
    mechanism = GRR(epsilon=1.0, size=3)
    found = {
        assess(mechanism, prior=prior, threat=threat, query=["x", "y"]).worst
        for threat in (Threat(), Threat(knows="everything"), Threat(knows=["x"], target=["y"]))
    }
    assert len(found) == 1


def test_the_largest_is_never_below_the_average():
    rng = np.random.default_rng(9)
    for k in range(200):
        m = int(rng.integers(1, 7))
        instance = random_instance(rng, m)
        channel = Channel(random_channel(rng, m, 5))
        risk = assess(channel, prior=instance.prior, threat=instance.threat)
        assert risk.worst >= risk.rad - 1e-12
        if k % 10:
            continue
        promise = GaussianDP(1.0, neighbours="add-remove")
        risk = assess(promise, prior=instance.prior, threat=instance.threat)
        assert risk.worst >= risk.rad - 1e-12


def test_a_group_averages_its_members():
    """With one record a group, groups weigh up to at least the whole."""
    prior = Prior.from_counts({"healthy": 76, "asthma": 10, "heart": 9, "lung": 5})
    mechanism = GRR(epsilon=1.0, size=4)
    table = by_group(mechanism, prior=prior, by="value")
    records = by_group(mechanism, prior=prior, by="record")
    assert [g.name for g in table] == ["lung", "heart", "asthma", "healthy"]
    for one, two in zip(table, records, strict=True):
        assert one.rad == pytest.approx(two.rad, abs=1e-12)
    total = sum(g.share * g.rad for g in table)
    assert total >= table.overall.rad - 1e-12
    # a prior of the group alone is another question, with nothing to guess
    assert assess(mechanism, prior=Prior.from_counts({"healthy": 0, "asthma": 0, "heart": 0,
                                                      "lung": 5})).rad == 0  # fmt: skip


def test_errors():
    prior = Prior.uniform(3)
    mechanism = GRR(epsilon=1.0, size=3)
    with pytest.raises(DpradError, match="nobody"):
        assess(mechanism, prior=prior, threat=Threat(group=lambda s: s > 5))
    with pytest.raises(DpradError, match="True or False"):
        assess(mechanism, prior=prior, threat=Threat(group=lambda s: s))
    with pytest.raises(DpradError, match="table of records"):
        by_group(GaussianDP(1.0, neighbours="replace-one"), prior=Prior.unknown(), by="record")
    with pytest.raises(DpradError, match="column"):
        by_group(mechanism, prior=prior, by="nowhere")
    with pytest.raises(DpradError, match="leave out"):
        by_group(mechanism, prior=prior, threat=Threat(group=lambda s: s > 0), by="value")
    with pytest.raises(DpradError, match="must_guess"):
        Threat(group=lambda s: s > 0, must_guess=True)


def test_gaussian_intervals_far_apart():
    """Values that the noise never confuses, at any distance, and values as near as its reach."""
    from dprad.exact.gaining import gaining

    mass = np.array([0.5, 0.25, 0.25])
    for far in (1e3, 1e17, 1e302):
        own, others = gaining(np.array([0.0, far, 3 * far]), np.array([0.0, far, 3 * far]), mass)
        assert own == pytest.approx(1.0)
        assert others == pytest.approx(mass)
    x = np.linspace(0.0, 60.0, 121)
    own, others = gaining(x, x, np.full(121, 1 / 121))
    grid = np.linspace(-15.0, 25.0, 20_001)
    density = np.exp(-((grid - x[3]) ** 2) / 2) / np.sqrt(2 * np.pi)
    mean = np.exp(-((grid[:, None] - x) ** 2) / 2).mean(axis=1) / np.sqrt(2 * np.pi)
    gain = np.clip(density - mean, 0.0, None).sum() * (grid[1] - grid[0])
    assert own[3] - others[3] == pytest.approx(gain, abs=1e-6)
