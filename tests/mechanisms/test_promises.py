"""Every newer mechanism: sampler against likelihood, promise against likelihood, stated errors.

Chi-square, KS and binomial tests; false-alarm rate 1e-6 each.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, chisquare, kstest

from dprad import DpradError, PureDP
from dprad.mechanisms import (
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    BlackBox,
    Density,
    DiscreteGaussian,
    Duchi,
    Exponential,
    ExponentialInterval,
    HadamardResponse,
    Hybrid,
    Mechanism,
    Piecewise,
    Staircase,
    SubsetSelection,
)
from dprad.mechanisms import bits as packed

ALPHA = 1e-6
N = 40_000


def log_logistic(t, z):
    x = np.abs(t - z)
    return -x - 2 * np.log1p(np.exp(-x))


CONTINUOUS = [
    (Staircase(epsilon=1.5, sensitivity=4), -60, 60),
    (Staircase(epsilon=0.3, sensitivity=1, gamma=0.8), -90, 90),
    (ExponentialInterval(epsilon=4.0, bounds=(0, 4)), 0, 4),
    (ExponentialInterval(epsilon=0.0, bounds=(0, 4)), 0, 4),
    (Piecewise(epsilon=1.0, bounds=(0, 4)), -20, 24),
    (Piecewise(epsilon=5.0, bounds=(0, 4)), -20, 24),
    (Density(log_density=log_logistic, bounds=(-50, 60)), -50, 60),
    (
        # two jumps, at places nobody has told it
        Density(
            log_density=lambda t, z: np.log(np.where(np.abs(t - z / 3) < 1, 0.4, 0.2 / 8)),
            bounds=(-5, 5),
        ),
        -5,
        5,
    ),
]


@pytest.mark.parametrize(("mechanism", "low", "high"), CONTINUOUS, ids=lambda x: repr(x)[:30])
def test_densities(mechanism, low, high, rng):
    assert isinstance(mechanism, Mechanism)
    for record in (0.0, 1.3, 4.0):
        t = np.linspace(low, high, 400_001)
        p = np.exp(mechanism.log_likelihood((t[1:] + t[:-1]) / 2, record))
        cdf = np.r_[0.0, np.cumsum(p) * (t[1] - t[0])]
        assert cdf[-1] == pytest.approx(1.0, abs=2e-4)
        drawn = mechanism.sample(np.full(N, record), rng)
        assert kstest(drawn, lambda x, t=t, cdf=cdf: np.interp(x, t, cdf)).pvalue > ALPHA
    assert np.exp(mechanism.log_likelihood(low - 1e3, 1.0)) < 1e-6


def counts_agree(drawn, outputs, expected):
    """Counts of outputs against their probabilities, rare ones together."""
    n = len(drawn)
    seen = np.array([np.sum(drawn == o) for o in outputs])
    assert seen.sum() == n
    common = expected * n >= 10
    rest = 1.0 - expected[common].sum()
    hoped, found = expected[common] * n, seen[common]
    if rest * n >= 10:
        hoped, found = np.r_[hoped, rest * n], np.r_[found, n - found.sum()]
    if len(hoped) > 1:
        assert chisquare(found, hoped * found.sum() / hoped.sum()).pvalue > ALPHA


@pytest.mark.parametrize("clamp", [None, (-2, 6)])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7])
def test_discrete_gaussian(sigma, clamp, rng):
    mechanism = DiscreteGaussian(sigma=sigma, sensitivity=4, clamp=clamp)
    outputs = np.arange(-200, 206) if clamp is None else np.arange(-2, 7)
    for record in (0, 3):
        # by the definition, in plain loops
        weight = {k: np.exp(-(k**2) / (2 * sigma**2)) for k in range(-300, 301)}
        total = sum(weight.values())
        expected = np.zeros(len(outputs))
        for k, w in weight.items():
            at = k + record if clamp is None else min(max(k + record, -2), 6)
            if outputs[0] <= at <= outputs[-1]:
                expected[at - outputs[0]] += w / total
        found = np.exp(mechanism.log_likelihood(outputs, record))
        assert found == pytest.approx(expected, abs=1e-14, rel=1e-9)
        counts_agree(mechanism.sample(np.full(N, record), rng), outputs, expected)
    inside = mechanism.sample(np.full(N, 2), rng)
    if clamp is None:
        error = mechanism.error(0.9)
        assert binomtest(int(np.sum(np.abs(inside - 2) <= error)), N, 0.9, "less").pvalue > ALPHA
        assert np.mean(np.abs(inside - 2) <= error - 1) < 0.9


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("sensitivity", [1, 3, 6.5])
def test_discrete_gaussian_promises_its_profile(sigma, sensitivity):
    mechanism = DiscreteGaussian(sigma=sigma, sensitivity=sensitivity)
    outputs = np.arange(-400, 401)
    law = np.exp(mechanism.log_likelihood(outputs, 0))
    for epsilon in (0.0, 0.1, 0.7, 2.0, 6.0):
        worst = 0.0
        for shift in range(int(sensitivity) + 1):
            moved = np.exp(mechanism.log_likelihood(outputs, shift))
            worst = max(worst, np.maximum(law - np.exp(epsilon) * moved, 0).sum())
        assert mechanism.guarantee.delta(epsilon) == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 5), (1.0, 3), (2.0, 9), (4.0, 13), (1.0, 1)])
def test_hadamard_response(epsilon, size, rng):
    mechanism = HadamardResponse(epsilon=epsilon, size=size)
    assert isinstance(mechanism, Mechanism)
    outputs = np.arange(mechanism.outputs)
    matrix = np.exp(mechanism.log_likelihood(outputs, np.arange(size)[:, None]))
    assert matrix.sum(axis=1) == pytest.approx(np.ones(size))
    for record in range(size):
        counts_agree(mechanism.sample(np.full(N, record), rng), outputs, matrix[record])
    # the code: supports of one block share exactly half of their outputs
    supports = matrix > matrix.min() * (1 + 1e-9)
    for a, b in itertools.combinations(range(size), 2):
        together = a % mechanism.blocks == b % mechanism.blocks
        shared = int(np.sum(supports[a] & supports[b]))
        assert shared == (mechanism.block // 4 if together else 0)
    assert np.ptp(np.log(matrix), axis=0).max() == pytest.approx(mechanism.guarantee.epsilon)


def test_hadamard_variance(rng):
    """The stated variance is that of the stated estimate."""
    mechanism = HadamardResponse(epsilon=2.5, size=64)
    n = 200_000
    out = mechanism.sample(rng.integers(64, size=n), rng)
    block = out // mechanism.block == 5 % mechanism.blocks
    count = mechanism.inside(out, 5) - block / 2.0
    gain = mechanism.block / 4 * -np.expm1(-2.5) / mechanism._weight
    assert np.var(count / gain) == pytest.approx(mechanism.variance(), rel=0.05)
    assert np.mean(count / gain) == pytest.approx(1 / 64, abs=6 * (mechanism.variance(n)) ** 0.5)


@pytest.mark.parametrize("mechanism", [THE(epsilon=1.5, size=4), THE(epsilon=4.0, size=3)])
def test_thresholded_histogram(mechanism, rng):
    """The bits are Laplace noise cut at the threshold; the promise is what bits promise."""
    m = mechanism.size
    noise = rng.laplace(0, 2 / mechanism.epsilon, N)
    p = int(np.sum(1 + noise > mechanism.threshold))
    assert binomtest(p, N, mechanism.p).pvalue > ALPHA
    q = int(np.sum(noise > mechanism.threshold))
    assert binomtest(q, N, mechanism.q).pvalue > ALPHA
    every = packed.pack((np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1)
    matrix = np.exp([mechanism.log_likelihood(every, z) for z in range(m)])
    assert np.ptp(np.log(matrix), axis=0).max() == pytest.approx(mechanism.guarantee.epsilon)
    assert mechanism.guarantee.epsilon < mechanism.epsilon
    other = [THE(epsilon=mechanism.epsilon, size=m, threshold=t) for t in np.linspace(0.5, 1, 200)]
    assert mechanism.variance() <= min(o.variance() for o in other) * (1 + 1e-9)


def test_summed_histogram(rng):
    mechanism = SHE(epsilon=1.2, size=3)
    assert isinstance(mechanism, Mechanism)
    rows = mechanism.sample(np.full(N, 1), rng)
    for j in range(3):
        centre = float(j == 1)
        law = lambda x, c=centre: 0.5 + np.sign(x - c) * 0.5 * -np.expm1(-0.6 * np.abs(x - c))  # noqa: E731
        assert kstest(rows[:, j], law).pvalue > ALPHA
    by_hand = np.sum(np.log(0.3) - 0.6 * np.abs(rows[:5] - np.array([0, 1.0, 0])), axis=1)
    assert mechanism.log_likelihood(rows[:5], 1) == pytest.approx(by_hand)
    ratio = mechanism.log_likelihood(rows, 1) - mechanism.log_likelihood(rows, 0)
    assert np.abs(ratio).max() == pytest.approx(1.2)
    assert mechanism.guarantee.epsilon == 1.2


@pytest.mark.parametrize(
    ("mechanism", "outputs"),
    [
        (Staircase(epsilon=1.7, sensitivity=4), np.linspace(-20, 24, 9001)),
        (Staircase(epsilon=1.7, sensitivity=4, clamp=(0, 4)), np.linspace(0, 4, 9001)),
        (Duchi(epsilon=1.7, bounds=(0, 4)), np.array([-9.0, 9.0])),
        (Piecewise(epsilon=1.7, bounds=(0, 4)), np.linspace(-3.5, 7.5, 9001)),
        (Hybrid(epsilon=1.7, bounds=(0, 4)), np.linspace(-3.5, 7.5, 9001)),
        (ExponentialInterval(epsilon=1.7, bounds=(0, 4)), np.linspace(0, 4, 401)),
        (ExponentialInterval(epsilon=1.7, bounds=(0, 4), factor=1.0), np.linspace(0, 4, 401)),
        (ExponentialInterval(epsilon=30, bounds=(0, 4), factor=1.0), np.linspace(0, 4, 401)),
    ],
    ids=lambda x: repr(x)[:40],
)
def test_the_promise_is_what_the_mechanism_does(mechanism, outputs):
    records = np.linspace(0, 4, 81)
    log = mechanism.log_likelihood(outputs, records[:, None])
    log = log[:, (log > -np.inf).all(axis=0)]
    assert isinstance(mechanism.guarantee, PureDP)
    assert np.ptp(log, axis=0).max() == pytest.approx(mechanism.guarantee.epsilon)


def test_exponential_promises_what_it_does(rng):
    utility = rng.normal(size=(5, 7))
    mechanism = Exponential(epsilon=2.0, utility=utility)
    score = np.exp(2.0 * utility / (2 * np.ptp(utility, axis=0).max()))
    matrix = score / score.sum(axis=1, keepdims=True)
    assert mechanism.channel.matrix == pytest.approx(matrix)
    assert np.ptp(np.log(matrix), axis=0).max() == pytest.approx(mechanism.guarantee.epsilon)
    assert mechanism.guarantee.epsilon <= 2.0
    for record in range(5):
        counts_agree(mechanism.sample(np.full(N, record), rng), np.arange(7), matrix[record])


@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_bounded_reports_are_unbiased_with_the_stated_variance(kind, epsilon, rng):
    mechanism = kind(epsilon=epsilon, bounds=(10, 14))
    assert isinstance(mechanism, Mechanism)
    variances = []
    for record in (10.0, 11.0, 12.0, 14.0):
        drawn = mechanism.sample(np.full(4 * N, record), rng)
        assert drawn.mean() == pytest.approx(record, abs=6 * (mechanism.variance(4 * N)) ** 0.5)
        variances.append(drawn.var())
    assert max(variances) == pytest.approx(mechanism.variance(), rel=0.05)


def test_hybrid_is_a_mixture(rng):
    mechanism = Hybrid(epsilon=2.0, bounds=(0, 4))
    drawn = mechanism.sample(np.full(N, 1.0), rng)
    ends = mechanism.parts[1].sample(np.full(100, 1.0), rng)
    atoms = np.isin(drawn, np.unique(ends))
    for end in np.unique(ends):
        chance = float(np.exp(mechanism.log_likelihood(end, 1.0)))
        assert binomtest(int(np.sum(drawn == end)), N, chance).pvalue > ALPHA
    low, high = -2.5, 6.5
    total = quad(lambda t: float(np.exp(mechanism.log_likelihood(t, 1.0))), low, high, limit=500)[0]
    assert np.mean(~atoms) == pytest.approx(total, abs=0.02)


def test_a_staircase_follows_its_epsilon():
    """The best share of a step is that of the new epsilon, unless one was given."""
    assert replace(Staircase(epsilon=200.0), epsilon=1.0).high == Staircase(epsilon=1.0).high
    assert replace(Staircase(epsilon=3.0, gamma=0.6), epsilon=1.0).high == 0.6


def test_stated_errors(rng):
    for mechanism in (Staircase(epsilon=1.0, sensitivity=2), Staircase(epsilon=3.0, gamma=0.6)):
        for level in (0.5, 0.9, 0.99):
            away = np.abs(mechanism.sample(np.zeros(N), rng))
            inside = int(np.sum(away <= mechanism.error(level)))
            assert binomtest(inside, N, level).pvalue > ALPHA
        assert 2 * mechanism.beyond(mechanism.error(0.9)) == pytest.approx(0.1)
    mechanism = ExponentialInterval(epsilon=5.0)
    at_end = np.abs(mechanism.sample(np.zeros(N), rng)) <= mechanism.error(0.9)
    assert binomtest(int(at_end.sum()), N, 0.9).pvalue > ALPHA
    middle = np.abs(mechanism.sample(np.full(N, 0.5), rng) - 0.5) <= mechanism.error(0.9)
    assert middle.mean() >= 0.9


@pytest.mark.parametrize("epsilon", [0.0, 50.0, 700.0])
def test_extremes(epsilon, rng):
    for mechanism in (
        Staircase(epsilon=epsilon),
        Staircase(epsilon=epsilon, clamp=(0, 1)),
        Duchi(epsilon=epsilon, bounds=(0, 1)),
        Piecewise(epsilon=epsilon, bounds=(0, 1)),
        Hybrid(epsilon=epsilon, bounds=(0, 1)),
        ExponentialInterval(epsilon=epsilon),
    ):
        drawn = mechanism.sample(np.array([0.0, 1.0]), rng)
        assert not np.isnan(drawn).any()
        assert not np.isnan(mechanism.log_likelihood(drawn, np.array([0.0, 1.0]))).any()
    for mechanism in (
        HadamardResponse(epsilon=epsilon, size=3),
        THE(epsilon=epsilon, size=3),
        SHE(epsilon=epsilon, size=3),
        Exponential(epsilon=epsilon, utility=np.eye(3)),
    ):
        drawn = mechanism.sample(np.array([0, 1, 2]), rng)
        log = mechanism.log_likelihood(drawn, np.array([0, 1, 2]))
        assert not np.isnan(log).any() and mechanism.guarantee.epsilon <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 1e-300])
def test_variance_without_information(epsilon):
    for mechanism in (
        GRR(epsilon=epsilon, size=3),
        OUE(epsilon=epsilon, size=3),
        SUE(epsilon=epsilon, size=3),
        THE(epsilon=epsilon, size=3),
        SHE(epsilon=epsilon, size=3),
        SubsetSelection(epsilon=epsilon, size=4),
        OLH(epsilon=epsilon, size=3),
        HadamardResponse(epsilon=epsilon, size=3),
        Duchi(epsilon=epsilon),
        Piecewise(epsilon=epsilon),
        Hybrid(epsilon=epsilon),
    ):
        assert mechanism.variance(10) > 1e30


def test_hybrid_outputs_stay_possible(rng):
    """At a large epsilon both parts of the hybrid round to the same outputs."""
    records = np.array([0.0, 3.0, 10.0]).repeat(1000)
    for epsilon in (74, 80, 700):
        mechanism = Hybrid(epsilon=epsilon, bounds=(0, 10))
        assert np.all(mechanism.log_likelihood(mechanism.sample(records, rng), records) > -np.inf)


def test_discrete_gaussian_profile_far_out():
    promise = DiscreteGaussian(sigma=0.1, sensitivity=10).guarantee
    assert promise.function(700.0) == promise.function(750.0) == 1.0
    assert ExponentialInterval(epsilon=100, bounds=(0, 10)).error(1.0) == 10.0


def test_black_box(rng):
    seen = []
    plain = BlackBox(lambda record: seen.append(record) or record + 1)
    assert plain.sample(np.array([1, 2]), rng).tolist() == [2, 3]
    assert seen == [1, 2] and not plain.takes_rng and type(seen[0]) is int
    noisy = BlackBox(lambda record, rng: record + rng.random())
    named = BlackBox(lambda record, scale=1.0, *, rng=None: record + scale * rng.random())
    draws = []
    for box in (noisy, named):
        assert box.takes_rng
        draws += [box.sample([1, 2], np.random.default_rng(3)).tolist() for _ in range(2)]
    assert draws == [draws[0]] * 4
    many = BlackBox(lambda records: np.asarray(records) * 2, vectorised=True)
    assert many.sample(np.array([1, 2]), rng).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Staircase(epsilon=-1), "epsilon"),
        (lambda: Staircase(epsilon=1, gamma=2), "gamma"),
        (lambda: Piecewise(epsilon=1, bounds=(1, 0)), "pair low < high"),
        (lambda: Duchi(epsilon=1, bounds=3), "pair"),
        (lambda: Duchi(epsilon=1).reads([0.0, 3.0]), "record number 2 lies outside"),
        (lambda: ExponentialInterval(epsilon=1).reads([0.0, "x"]), "number 2 is not a number"),
        (lambda: ExponentialInterval(epsilon=1, factor=0.5), "factor"),
        (lambda: Exponential(epsilon=1, utility=[[1, 2], [3]]), "utility"),
        (lambda: Exponential(epsilon=1, utility=[[1, np.inf]]), "finite"),
        (lambda: Exponential(epsilon=1, utility=[[1], [3]], sensitivity=1), "differ by more"),
        (lambda: DiscreteGaussian(sigma=1).reads([0, 0.5]), "whole numbers"),
        (lambda: DiscreteGaussian(sigma=1e7), "use Gaussian"),
        (lambda: THE(epsilon=1, size=2, threshold=2), "threshold"),
        (lambda: HadamardResponse(epsilon=1, size=0), "size"),
        (lambda: SHE(epsilon=1, size=3).sample([3], np.random.default_rng(0)), "codes 0 .. 2"),
        (lambda: BlackBox(3), "function"),
        (lambda: Duchi(epsilon=1).sample([7.0], np.random.default_rng(0)), "got others"),
        (
            lambda: ExponentialInterval(epsilon=1).sample([7.0], np.random.default_rng(0)),
            "got others",
        ),
        (lambda: Density(log_density=np.add, bounds=(0, 1), kinks=5), "kinks"),
        (
            lambda: BlackBox(lambda r: r[:1], vectorised=True).sample([1, 2], None),
            "returned 1 for 2",
        ),
        (lambda: Density(log_density=3, bounds=(0, 1)), "log_density"),
        (lambda: Density(log_density=np.add, bounds=(0, np.inf)), "bounds high"),
        (
            lambda: Density(log_density=lambda t, z: 0.0 * t - 1, bounds=(0, 1)).reads([0.5]),
            "record number 1 its integral is 0.367879",
        ),
        (
            lambda: Density(log_density=lambda t, z: t * np.nan, bounds=(0, 1)).reads([0.5]),
            "below infinity",
        ),
        (
            lambda: Density(log_density=lambda t, z: np.zeros(3), bounds=(0, 1)).reads([0.5]),
            "broadcast",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()
