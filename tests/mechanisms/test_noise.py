"""Additive noise: samplers against likelihoods (KS or chi-square, false-alarm rate 1e-6 each)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, kstest, laplace, norm

from dprad.mechanisms import Gaussian, Geometric, Laplace, Mechanism

ALPHA = 1e-6
N = 50_000


def test_laplace_sampler(rng):
    mechanism = Laplace(epsilon=2.0, sensitivity=10)
    assert isinstance(mechanism, Mechanism)
    drawn = mechanism.sample(np.full(N, 3.0), rng)
    assert kstest(drawn, laplace(3.0, 5.0).cdf).pvalue > ALPHA
    t = np.linspace(-10, 20, 7)
    assert np.exp(mechanism.log_likelihood(t, 3.0)) == pytest.approx(laplace(3.0, 5.0).pdf(t))


def test_clamped_laplace_has_atoms(rng):
    mechanism = Laplace(epsilon=2.0, sensitivity=10, clamp=(0, 10))
    drawn = mechanism.sample(np.full(N, 3.0), rng)
    for end in (0.0, 10.0):
        chance = float(np.exp(mechanism.log_likelihood(end, 3.0)))
        assert binomtest(int(np.sum(drawn == end)), N, chance).pvalue > ALPHA
    low = float(np.exp(mechanism.log_likelihood(0.0, 3.0)))
    assert low == pytest.approx(laplace(3.0, 5.0).cdf(0))


def test_gaussian_sampler(rng):
    mechanism = Gaussian(sigma=2.0, sensitivity=10)
    assert isinstance(mechanism, Mechanism)
    drawn = mechanism.sample(np.full(N, 3.0), rng)
    assert kstest(drawn, norm(3.0, 2.0).cdf).pvalue > ALPHA
    t = np.linspace(-10, 20, 7)
    assert np.exp(mechanism.log_likelihood(t, 3.0)) == pytest.approx(norm(3.0, 2.0).pdf(t))
    clamped = Gaussian(sigma=2.0, sensitivity=10, clamp=(0, 10))
    atoms = clamped.sample(np.full(N, 3.0), rng)
    chance = float(np.exp(clamped.log_likelihood(0.0, 3.0)))
    assert chance == pytest.approx(norm(3.0, 2.0).cdf(0))
    assert binomtest(int(np.sum(atoms == 0.0)), N, chance).pvalue > ALPHA
    inside = int(np.sum(np.abs(drawn - 3.0) <= mechanism.error(0.9)))
    assert binomtest(inside, N, 0.9).pvalue > ALPHA
    assert mechanism.guarantee.mu == 5.0


@pytest.mark.parametrize("clamp", [None, (0, 6)])
def test_geometric_sampler(clamp, rng):
    mechanism = Geometric(epsilon=3.0, sensitivity=6, clamp=clamp)
    assert isinstance(mechanism, Mechanism)
    drawn = mechanism.sample(np.full(N, 2), rng)
    outputs = np.arange(-60, 70) if clamp is None else np.arange(0, 7)
    expected = np.exp(mechanism.log_likelihood(outputs, 2))
    assert expected.sum() == pytest.approx(1.0)
    counts = np.array([np.sum(drawn == t) for t in outputs])
    common = expected * N >= 5
    seen, hoped = counts[common], expected[common] * N
    rare, hoped_rare = N - seen.sum(), N - hoped.sum()
    if hoped_rare >= 5:
        seen, hoped = np.r_[seen, rare], np.r_[hoped, hoped_rare]
    assert chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue > ALPHA


@pytest.mark.parametrize("kind", [Laplace, Geometric])
def test_error_is_met(kind, rng):
    mechanism = kind(epsilon=1.0, sensitivity=4)
    bound = mechanism.error(0.95)
    inside = int(np.sum(np.abs(mechanism.sample(np.zeros(N), rng)) <= bound))
    if kind is Laplace:
        assert binomtest(inside, N, 0.95).pvalue > ALPHA
    else:
        assert binomtest(inside, N, 0.95, alternative="less").pvalue > ALPHA
        fewer = int(np.sum(np.abs(mechanism.sample(np.zeros(N), rng)) <= bound - 1))
        assert fewer / N < 0.95
    assert kind(epsilon=0.0).error() == np.inf


@pytest.mark.parametrize("kind", [Laplace, Geometric])
def test_the_promise_is_what_the_mechanism_does(kind):
    mechanism = kind(epsilon=1.7, sensitivity=5, clamp=(0, 5))
    t = np.linspace(0, 5, 26) if kind is Laplace else np.arange(6)
    ratio = mechanism.log_likelihood(t, 0.0) - mechanism.log_likelihood(t, 5.0)
    assert np.abs(ratio).max() == pytest.approx(1.7)


def test_no_epsilon_no_information(rng):
    for kind in (Laplace, Geometric):
        drawn = kind(epsilon=0.0, clamp=(0, 1)).sample(np.zeros(1000), rng)
        assert set(drawn) == {0.0, 1.0}


def test_variance_of_noise(rng):
    from dprad.mechanisms import DiscreteGaussian, Staircase

    for mechanism in (
        Laplace(epsilon=1.3, sensitivity=4),
        Geometric(epsilon=1.3, sensitivity=4),
        Gaussian(sigma=2.5, sensitivity=4),
        DiscreteGaussian(sigma=2.5, sensitivity=4),
        Staircase(epsilon=1.3, sensitivity=4),
        Staircase(epsilon=0.4, sensitivity=2, gamma=0.7),
    ):
        drawn = mechanism.sample(np.zeros(400_000), rng)
        assert drawn.var() == pytest.approx(mechanism.variance(), rel=0.05)
    assert Laplace(epsilon=0.1, clamp=(0, 1)).error() == 1.0
