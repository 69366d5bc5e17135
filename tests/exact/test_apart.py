"""Own risks under Gaussian noise, of many values: against cells of outputs, and the old ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dprad import Prior, Threat, assess, memory
from dprad.exact import apart, own
from dprad.exact.apart import own_normal
from dprad.exact.solution import Sampling
from dprad.mechanisms import Gaussian


def values(rng, m):
    """Places with gaps of all sizes, and probabilities of all sizes."""
    x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 0.3, 40.0], size=m))
    mass = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0]))) + rng.choice([1e-12, 1e-40])
    return x, mass / mass.sum()


def noise(rng, x, sigma):
    clamp = (x[0] - rng.choice([0, 1, 20]) * sigma, x[-1] + rng.gamma(1.0) * sigma)
    return Gaussian(
        sigma=sigma, sensitivity=float(np.ptp(x)), clamp=clamp if rng.random() < 0.5 else None
    )


@pytest.mark.parametrize("seed", range(4))
def test_as_one_game_for_each_value(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        x, mass = values(rng, int(rng.integers(2, 40)))
        mechanism = noise(rng, x, float(10 ** rng.uniform(-1.5, 2.5)))
        rad, error = own_normal(mechanism, x, mass)
        slow = own.of_values(mechanism, x, mass, Sampling())
        assert error < 1e-10
        assert np.all(rad - error <= slow.high + 1e-15)
        assert np.all(rad + error >= slow.low - 1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_as_cells_of_outputs(seed):
    """Total variation to pbar over 20,000 cells: a lower bound, and near."""
    rng = np.random.default_rng(10 + seed)
    x, mass = values(rng, 300)
    mechanism = noise(rng, x, float(rng.choice([1.0, 5.0, 100.0])))
    sigma = mechanism.sigma
    low, high = mechanism.clamp or (x[0] - 9 * sigma, x[-1] + 9 * sigma)
    edges = np.r_[-np.inf, np.linspace(low, high, 20_000), np.inf]
    p = np.diff(norm.cdf((edges - x[:, None]) / sigma), axis=1)
    cells = np.maximum(p - mass @ p, 0.0).sum(axis=1)
    found = own.of_values(mechanism, x, mass, Sampling())
    assert found.kind == "exact" and np.all(found.high - found.low < 1e-10)
    width = (edges[2] - edges[1]) / sigma
    assert np.all(cells <= found.high + 1e-12)
    assert np.all(found.low <= cells + width**2)


@pytest.mark.parametrize("clamp", [None, (-3.0, 3005.0)])
def test_many_values_are_exact_and_only_near_ones_count(clamp, monkeypatch):
    m = 3000
    mass = np.random.default_rng(0).dirichlet(np.ones(m))
    mechanism, x = Gaussian(sigma=2.0, sensitivity=m, clamp=clamp), np.arange(float(m))
    rad, error = own_normal(mechanism, x, mass)
    assert error < 1e-11
    for k in (0, 1, 700, m - 1):
        near = slice(max(k - 100, 0), k + 100)
        t = np.linspace(x[k] - 18, x[k] + 18, 40_001)
        if clamp is not None:
            t = t[(t >= clamp[0]) & (t <= clamp[1])]
        pbar = mass[near] @ norm.pdf(t, x[near, None], 2.0)
        gained = np.trapezoid(np.maximum(norm.pdf(t, x[k], 2.0) - pbar, 0.0), t)
        if clamp is not None:
            for tail in (norm.cdf(t[0], x, 2.0), norm.sf(t[-1], x, 2.0)):
                gained += max(tail[k] - mass @ tail, 0.0) if t[0] < 0 or t[-1] > m else 0.0
        assert rad[k] == pytest.approx(gained, abs=1e-7)
    # without the values beyond sight, the same
    real, seen = np.searchsorted, []

    def searched(*given):
        found = real(*given)
        seen.append(int(np.ptp(found)))
        return found

    monkeypatch.setattr(apart.np, "searchsorted", searched)
    own_normal(mechanism, x, mass)
    assert len(seen) > 20 and max(seen) < 100


def test_the_worst_of_an_assessment_is_exact():
    prior = Prior.from_counts(dict(enumerate(np.random.default_rng(1).gamma(1.0, size=600))))
    for clamp in (None, (-5.0, 700.0)):
        risk = assess(Gaussian(sigma=5.0, sensitivity=599, clamp=clamp), prior=prior)
        pi = prior.probabilities
        edges = np.r_[-np.inf, np.linspace(-50, 650, 20_001), np.inf]
        if clamp is not None:
            edges = np.r_[-np.inf, np.linspace(*clamp, 20_001), np.inf]
        p = np.diff(norm.cdf((edges - np.arange(600.0)[:, None]) / 5), axis=1)
        worst = float(np.maximum(p - pi @ p, 0.0).sum(axis=1).max())
        assert worst - 1e-12 <= risk.worst <= worst + 1e-5
        assert risk.rad <= risk.worst
        known = assess(
            Gaussian(sigma=5.0, sensitivity=599, clamp=clamp), prior=prior,
            threat=Threat(knows="everything"),
        )  # fmt: skip
        assert known.worst == pytest.approx(risk.worst)


def test_a_range_beyond_memory_or_reach_is_left_to_bounds():
    x, mass = np.array([0.0, 1.0, 1e9]), np.array([0.2, 0.3, 0.5])
    assert own_normal(Gaussian(sigma=1.0, sensitivity=1e9), x, mass) is None
    far = Gaussian(sigma=1.0, sensitivity=1e5)
    assert own_normal(far, x * 1e-4, mass) is not None
    with memory.limit("16 MB"):
        assert own_normal(far, x * 1e-4, mass) is None
