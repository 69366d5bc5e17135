"""Piecewise constant densities, whole noise, codewords, utilities: against brute force to 1e-10."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import hadamard
from test_support import unary_channel

from dprad import Prior, Threat, assess
from dprad.exact import stepwise as steps
from dprad.exact.channel import Law, sum_by_likelihood
from dprad.exact.stepwise import columns_of
from dprad.game.game import play
from dprad.mechanisms import (
    THE,
    DiscreteGaussian,
    Duchi,
    Exponential,
    ExponentialInterval,
    Geometric,
    HadamardResponse,
    Hybrid,
    Laplace,
    Piecewise,
    Staircase,
)
from oracles import brute_force, random_channel, random_instance


def agrees(mechanism, channel, instance, query=None):
    assert channel.sum(axis=1) == pytest.approx(np.ones(len(channel)))
    risk = assess(mechanism, prior=instance.prior, threat=instance.threat, query=query)
    rad, rero = brute_force(instance, channel)
    assert risk.kind == "exact"
    assert risk.rad == pytest.approx(rad, abs=1e-10), (mechanism, instance)
    assert risk.rero == pytest.approx(rero, abs=1e-10), (mechanism, instance)
    assert -1e-12 <= risk.success_out <= risk.success_in <= risk.rero + 1e-12


def reading(values):
    """A query that reads these numbers."""
    return lambda support: values[np.asarray(support)].tolist()


@pytest.mark.parametrize("clamp", [None, (0.0, 8.0), (-7.0, 30.0), (0.0, 31.0), (-30.0, 8.0)])
@pytest.mark.parametrize("seed", range(8))
def test_staircase(seed, clamp):
    """Whole values, a step of 8 and gamma = 1/4: all pieces end at whole numbers."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    epsilon = float(rng.choice([0.4, 1.0, 4.0]))
    mechanism = Staircase(epsilon=epsilon, sensitivity=8, gamma=0.25, clamp=clamp)
    values = np.sort(rng.choice(9, size=m, replace=False)).astype(float)
    far = 8 * int(np.ceil(40 / epsilon))
    channel = np.zeros((m, 2 * far))
    for z in range(m):
        for k in range(-far, far):
            step, part = divmod(abs(k + 0.5 - values[z]), 8)
            channel[z, k + far] = np.exp(-epsilon * (step + (part >= 2)))
        channel[z] /= channel[z].sum()
    if clamp is not None:
        cells = np.arange(-far, far) + 0.5
        inside = (cells > clamp[0]) & (cells < clamp[1])
        low = channel[:, cells < clamp[0]].sum(axis=1)
        high = channel[:, cells > clamp[1]].sum(axis=1)
        channel = np.column_stack([low, channel[:, inside], high])
    agrees(mechanism, channel, random_instance(rng, m), reading(values))


@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid])
@pytest.mark.parametrize("seed", range(8))
def test_bounded(kind, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    epsilon = float(rng.choice([0.3, 1.0, 4.0]))
    mechanism = kind(epsilon=epsilon, bounds=(-1, 8))
    values = np.sort(rng.choice(9, size=m, replace=False)).astype(float)
    x = (values + 1) / 4.5 - 1
    e, h = np.exp(epsilon), np.exp(epsilon / 2)
    up = 0.5 + x * (e - 1) / (2 * (e + 1))
    coarse = np.column_stack([1 - up, up])
    c = (h + 1) / (h - 1)
    low = (c + 1) / 2 * x - (c - 1) / 2
    edges = np.unique(np.concatenate([[-c, c], low, low + c - 1]))
    top = (e - h) / (2 * h + 2)
    smooth = np.array(
        [
            [
                (b - a) * (top if low[z] <= (a + b) / 2 <= low[z] + c - 1 else top / e)
                for a, b in itertools.pairwise(edges)
            ]
            for z in range(m)
        ]
    )
    share = 1 - np.exp(-epsilon / 2) if epsilon > 0.61 else 0.0
    channel = {
        Duchi: coarse,
        Piecewise: smooth,
        Hybrid: np.column_stack([share * smooth, (1 - share) * coarse]),
    }[kind]
    agrees(mechanism, channel, random_instance(rng, m), reading(values))


@pytest.mark.parametrize("clamp", [None, (0, 8), (-3, 20)])
@pytest.mark.parametrize("kind", [Geometric, DiscreteGaussian])
@pytest.mark.parametrize("seed", range(6))
def test_whole_noise(kind, clamp, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    scale = float(rng.choice([0.6, 2.0, 7.0]))
    values = np.sort(rng.choice(9, size=m, replace=False))
    noise = np.arange(-800, 801)
    if kind is Geometric:
        mechanism = Geometric(epsilon=8 / scale, sensitivity=8, clamp=clamp)
        law = np.exp(-np.abs(noise) / scale)
    else:
        mechanism = DiscreteGaussian(sigma=scale, sensitivity=8, clamp=clamp)
        law = np.exp(-(noise**2) / (2 * scale**2))
    law /= law.sum()
    low, high = clamp or (-800, 820)
    channel = np.zeros((m, high - low + 1))
    for z in range(m):
        np.add.at(channel[z], np.clip(noise + values[z], low, high) - low, law)
    agrees(mechanism, channel, random_instance(rng, m), reading(values))


@pytest.mark.parametrize("seed", range(12))
def test_hadamard_response(seed):
    """Codewords from an explicit Hadamard matrix."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    epsilon = float(rng.choice([0.2, 1.0, 1.8, 3.0]))
    mechanism = HadamardResponse(epsilon=epsilon, size=m)
    blocks, b = mechanism.blocks, mechanism.block
    channel = np.ones((m, blocks * b))
    for z in range(m):
        block, row = z % blocks, z // blocks + 1
        channel[z, block * b : (block + 1) * b][hadamard(b)[row] > 0] = np.exp(epsilon)
    channel /= channel.sum(axis=1, keepdims=True)
    agrees(mechanism, channel, random_instance(rng, m))


@pytest.mark.parametrize("seed", range(8))
def test_exponential_and_thresholds(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    utility = rng.normal(size=(m, 5))
    mechanism = Exponential(epsilon=1.5, utility=utility, sensitivity=6.0)
    score = np.exp(1.5 * utility / 12)
    agrees(mechanism, score / score.sum(axis=1, keepdims=True), random_instance(rng, m))
    the = THE(epsilon=1.5, size=m)
    agrees(the, unary_channel(m, the.p, the.q), random_instance(rng, m))


@pytest.mark.parametrize("seed", range(8))
def test_exponential_on_an_interval(seed):
    """Against a channel of 4,000 cells: merging outputs lowers RAD, by little."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    instance = random_instance(rng, m)
    values = np.sort(rng.choice(9, size=m, replace=False)).astype(float)
    epsilon = float(rng.choice([0.0, 0.5, 3.0, 20.0]))
    mechanism = ExponentialInterval(epsilon=epsilon, bounds=(0, 8), factor=1.0)
    edges = np.linspace(0, 8, 4001)
    rate = max(epsilon / 8, 1e-7)
    below = np.where(
        edges < values[:, None],
        np.exp(-rate * (values[:, None] - edges)),
        2 - np.exp(-rate * (edges - values[:, None])),
    )
    channel = np.diff(below, axis=1)
    channel /= channel.sum(axis=1, keepdims=True)
    risk = assess(mechanism, prior=instance.prior, threat=instance.threat, query=reading(values))
    rad, rero = brute_force(instance, channel)
    assert rad - 1e-6 <= risk.rad <= rad + 1e-4
    assert rero - 1e-6 <= risk.rero <= rero + 1e-4


def test_staircase_beats_laplace_in_error_and_keeps_its_promise():
    prior, epsilon = Prior.uniform(9), 3.0
    bound = assess(Staircase(epsilon=epsilon, sensitivity=8).guarantee, prior=prior).rad
    risks = [assess(k(epsilon=epsilon, sensitivity=8), prior=prior) for k in (Staircase, Laplace)]
    assert all(r.rad <= bound + 1e-12 for r in risks)
    assert Staircase(epsilon=epsilon).error(0.5) < Laplace(epsilon=epsilon).error(0.5)


@pytest.mark.parametrize("epsilon", [0.0, 700.0])
def test_extremes(epsilon):
    prior = Prior.uniform(3)
    for mechanism in (
        Staircase(epsilon=epsilon, sensitivity=2),
        Staircase(epsilon=epsilon, sensitivity=2, clamp=(0, 2)),
        Piecewise(epsilon=epsilon, bounds=(0, 2)),
        Hybrid(epsilon=epsilon, bounds=(0, 2)),
        ExponentialInterval(epsilon=epsilon, bounds=(0, 2), factor=1.0),
        HadamardResponse(epsilon=epsilon, size=3),
    ):
        for threat in (Threat(), Threat(knows="everything"), Threat(loss="absolute", eta=1)):
            risk = assess(mechanism, prior=prior, threat=threat)
            if epsilon == 0:
                assert risk.rad == pytest.approx(0.0, abs=1e-12)
            elif threat.loss == "exact":
                assert risk.rad == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-4])
def test_staircase_at_a_tiny_epsilon(epsilon):
    """Nearly flat: risk goes like epsilon, with all digits."""
    prior = Prior.from_counts({0: 1, 3: 2, 7: 1, 10: 3})
    rate = [
        assess(Staircase(epsilon=e, sensitivity=10), prior=prior).rad / e for e in (epsilon, 1e-3)
    ]
    assert rate[0] == pytest.approx(rate[1], rel=2e-3)


@pytest.mark.parametrize("kind", [Piecewise, Hybrid])
def test_narrow_windows_far_from_zero(kind):
    prior = Prior.from_counts({0: 1, 1: 1})
    for epsilon in (60, 72, 80):
        risk = assess(kind(epsilon=epsilon, bounds=(0, 1e12)), prior=prior)
        assert risk.rad == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("epsilon", [20.0, 27.0])
def test_close_records_far_from_zero_keep_their_distance(epsilon):
    """Two windows that overlap: RAD is what one has and the other has not, to all its digits."""
    low, gap = 1e6, 0.25
    mechanism = Piecewise(epsilon=epsilon, bounds=(low, 2 * low))
    inside, outside = np.exp(mechanism.log_densities)
    apart = (mechanism.reach + 1) / 2 * gap / mechanism.half
    assert apart < mechanism.length
    risk = assess(mechanism, prior=Prior.from_counts({low: 1, low + gap: 1}))
    assert risk.rad == pytest.approx((inside - outside) * apart / 2, rel=1e-12)


def test_the_unit_of_a_staircase_does_not_matter():
    """A clamp of many small steps is one of many large ones."""
    risks = [
        assess(
            Staircase(epsilon=0.05, sensitivity=9 * unit, clamp=(-900 * unit, 900 * unit)),
            prior=Prior.from_counts({0: 1, 3 * unit: 3, 6 * unit: 1}),
        ).rad
        for unit in (1.0, 0.01)
    ]
    assert risks[0] == pytest.approx(risks[1], rel=1e-9) and risks[0] > 1e-3


def test_a_staircase_of_hardly_any_first_step():
    """A narrow step is not the absence of noise."""
    prior = Prior.from_counts({0: 1, 3: 2, 10: 3})
    narrow, narrower = (
        assess(Staircase(epsilon=1.0, sensitivity=10, gamma=g), prior=prior) for g in (1e-7, 0.0)
    )
    assert narrower.rad == pytest.approx(narrow.rad, rel=1e-5) and narrow.rad < 0.3


def test_two_neighbouring_numbers():
    """0 and 1: the smallest range there is."""
    risk = assess(Geometric(epsilon=1.0), prior=Prior.uniform(2))
    assert risk.rad == pytest.approx(np.tanh(0.5) / 2)


def test_a_mechanism_of_ones_own(rng):
    """Anything with a sampler and a likelihood gets an estimate."""
    matrix = random_channel(rng, 3, 4)

    class Mine:
        size = 3
        guarantee = None

        def sample(self, records, rng):
            return np.array([rng.choice(4, p=matrix[r]) for r in records])

        def log_likelihood(self, outputs, records):
            return np.log(matrix[np.asarray(records), np.asarray(outputs)])

        def describe(self):
            return {"kind": "Mine"}

    from dprad.mechanisms import Channel

    prior = Prior.uniform(3)
    risk = assess(Mine(), prior=prior, trials=4000, confidence=0.9999)
    exact = assess(Channel(matrix), prior=prior).rad
    assert risk.kind == "estimate" and risk.interval[0] <= exact <= risk.interval[1]


@pytest.mark.parametrize(
    "mechanism",
    [
        Duchi(epsilon=2.0, bounds=(0, 9)),
        Piecewise(epsilon=0.5, bounds=(0, 9)),
        Piecewise(epsilon=12.0, bounds=(0, 9)),
        Piecewise(epsilon=40.0, bounds=(0, 9)),  # windows that do not meet
        Hybrid(epsilon=3.0, bounds=(0, 9)),
        Staircase(epsilon=1.0, sensitivity=9),
        Staircase(epsilon=200.0, sensitivity=9),
        Staircase(epsilon=2.0, sensitivity=9, gamma=0.9),
        Staircase(epsilon=1.5, sensitivity=9, clamp=(-4.0, 20.0)),
        Staircase(epsilon=1.5, sensitivity=9, clamp=(0.0, 9.0)),
        Staircase(epsilon=0.0, sensitivity=9),
    ],
)
def test_pieces_are_channels(mechanism):
    """Chances of all pieces add up to one, record by record, and blocks are parts of the whole."""
    points = np.array([0.0, 0.5, 3.0, 4.25, 9.0])
    likelihood, width = steps.columns_of(mechanism, points)
    everything = likelihood(slice(0, 5), slice(0, width))
    assert everything.shape == (5, width) and np.all(everything >= 0)
    assert everything.sum(axis=1) == pytest.approx(np.ones(5), abs=1e-9)
    for part in (slice(width // 3, width), slice(0, width // 2), slice(width // 4, width // 2)):
        some = likelihood(np.array([3, 1]), part)
        assert some == pytest.approx(everything[[3, 1], part])
    alone, few = steps.columns_of(mechanism, points[2:3])
    assert alone(slice(0, 1), slice(0, few)).sum() == pytest.approx(1.0, abs=1e-9)
    change = moved(mechanism, 1000.0)
    there = replace(mechanism, **change) if change else mechanism
    shifted, same = steps.columns_of(there, points + 1000.0)
    assert same == width
    assert shifted(slice(0, 5), slice(0, width)) == pytest.approx(everything, abs=1e-9)


def moved(mechanism, by):
    """The parameters that must move with the values."""
    for name in ("bounds", "clamp"):
        if getattr(mechanism, name, None) is not None:
            return {name: tuple(x + by for x in getattr(mechanism, name))}
    return {}


@pytest.mark.parametrize("counts", [{0: 3, 1: 1, 9: 2}, {0: 1, 3: 3, 6: 1}])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_a_clamp_far_away_changes_nothing(epsilon, counts):
    prior, given = Prior.from_counts(counts), {"epsilon": epsilon, "sensitivity": 9}
    free = assess(Staircase(**given), prior=prior)
    far = assess(Staircase(**given, clamp=(-9000.0, 9000.0)), prior=prior)
    assert far.rad == pytest.approx(free.rad, rel=1e-9) and far.rad > 0


def by_hand(epsilon, sensitivity, points, sets, digits=60):
    """RAD of staircase noise with equally likely records, summed piece by piece by mpmath."""
    import mpmath as mp

    with mp.workdps(digits):
        eps, step = mp.mpf(epsilon), mp.mpf(sensitivity)
        gamma = 1 / (1 + mp.exp(eps / 2))
        top = (1 - mp.exp(-eps)) / (2 * step * (gamma + mp.exp(-eps) * (1 - gamma)))
        z = [mp.mpf(p) for p in points]
        offsets = [k + s * gamma for k in range(-6, 7) for s in (-1, 0, 1)]
        edges = sorted({p + step * o for p in z for o in offsets})

        def density(t, p):
            place = abs(t - p) / step
            k = mp.floor(place)
            return top * mp.exp(-eps * (k if place - k < gamma else k + 1))

        total = mp.mpf(0)
        for a, b in itertools.pairwise(edges):
            likely = [density((a + b) / 2, p) for p in z]
            mean = sum(likely) / len(z)
            gains = [sum(likely[i] - mean for i in s) / len(z) for s in sets]
            total += max(0, *gains) * (b - a)
        return float(total)


@pytest.mark.parametrize("epsilon", [5.0, 20.0, 37.0, 38.0, 39.5, 41.0, 41.2, 42.0, 60.0])
def test_narrow_steps_keep_their_digits(epsilon):
    # beyond six steps e^-5 eps of probability is left out by hand
    cases = [
        (2.0, [0.0, 1.0, 2.0], [[0, 1], [0, 1, 2], [1, 2]], 1.0),
        (1.0, [0.0, 0.1, 0.2, 0.3, 0.7, 1.0], [[i] for i in range(6)], 0.0),
    ]
    for sensitivity, points, sets, eta in cases:
        expected = by_hand(epsilon, sensitivity, points, sets)
        mechanism = Staircase(epsilon=epsilon, sensitivity=sensitivity)
        found = assess(
            mechanism,
            prior=Prior.from_counts(dict.fromkeys(points, 1)),
            threat=Threat(loss="absolute", eta=eta),
        )
        assert found.rad == pytest.approx(expected, abs=1e-13 + 3 * np.exp(-5 * epsilon))


@pytest.mark.parametrize("epsilon", [0.5, 38.0, 41.2, 55.0, 64.0, 700.0])
@pytest.mark.parametrize("clamp", [None, (0.0, 1.0), (-0.31, 2.2)])
def test_rows_of_staircases_sum_to_one(epsilon, clamp):
    points = np.array([0.0, 0.1, 0.2, 0.3, 0.7, 1.0])
    block, outputs = columns_of(Staircase(epsilon=epsilon, clamp=clamp), points)
    rows = block(slice(0, len(points)), slice(0, outputs)).sum(axis=1)
    assert rows == pytest.approx(np.ones(len(points)), abs=1e-12)


def test_what_does_not_sum_to_one_widens_the_interval():
    game = play(Prior.uniform(2), Threat())
    matrix = np.array([[0.7, 0.3 + 1e-7], [0.3, 0.7 + 1e-7]])
    pi, codes = np.full(2, 0.5), np.arange(2)
    found = sum_by_likelihood(Law.table(matrix), game, codes, pi, 2, "")
    assert found.interval[0] <= found.rad - 0.9e-7 and found.rad + 0.9e-7 <= found.interval[1]
