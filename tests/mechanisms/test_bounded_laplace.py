"""Laplace noise within bounds: sampler, promise and risk, each against another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from dprad import DpradError, Prior, Threat, assess, calibrate
from dprad.mechanisms import BoundedLaplace, Channel, ExponentialInterval, Laplace

CASES = [(0.0, 10.0, 1.0, 0.3), (-5.0, 5.0, 4.0, 1.0), (0.0, 1.0, 1.0, 2.0), (0.0, 100.0, 1.0, 5.0)]


@pytest.mark.parametrize(("low", "high", "step", "epsilon"), CASES)
def test_the_promise_is_kept_and_not_wasted(low, high, step, epsilon):
    noise = BoundedLaplace(epsilon=epsilon, bounds=(low, high), sensitivity=step)
    z = np.linspace(low, high, 401)
    log = noise.log_likelihood(z[None, :], z[:, None])
    near = np.abs(z[:, None] - z[None, :]) <= step * (1 + 1e-12)
    worst = max(float(np.abs(log[i] - log[near[i]]).max()) for i in range(len(z)))
    assert worst <= epsilon * (1 + 1e-9)
    # the worst pair: an end, and the number a step away
    pair = noise.log_likelihood(low, np.array([low, low + step]))
    assert pair[0] - pair[1] == pytest.approx(epsilon, rel=1e-9)
    assert noise.guarantee.epsilon == epsilon


@pytest.mark.parametrize(("low", "high", "step", "epsilon"), CASES)
def test_the_sampler_has_the_density(low, high, step, epsilon, rng):
    noise = BoundedLaplace(epsilon=epsilon, bounds=(low, high), sensitivity=step)
    for record in (low, (2 * low + high) / 3):
        total = integrate.quad(
            lambda t, z=record: float(np.exp(noise.log_likelihood(t, z))), low, high,
            points=[record], limit=200,
        )[0]  # fmt: skip
        assert total == pytest.approx(1.0, abs=1e-7)
        drawn = noise.sample(np.full(4000, record), rng)
        assert drawn.min() >= low and drawn.max() <= high
        grid = np.linspace(low, high, 4001)
        mass = np.exp(noise.log_likelihood(grid, record))
        steps = integrate.cumulative_trapezoid(mass, grid, initial=0.0)
        assert stats.kstest(np.interp(drawn, grid, steps / steps[-1]), "uniform").pvalue > 1e-4


THREATS = [Threat(), Threat(loss="absolute", eta=1.0), Threat(knows="everything")]


@pytest.mark.parametrize("threat", THREATS)
def test_the_risk_against_a_fine_channel(threat):
    prior = Prior.from_counts({3.0: 4, 4.0: 1, 5.0: 2, 6.0: 3})
    noise = BoundedLaplace(epsilon=2.0, bounds=(0, 10), sensitivity=3.0)
    edges = np.linspace(0, 10, 20_001)
    middle = (edges[1:] + edges[:-1]) / 2
    p = np.exp(noise.log_likelihood(middle[None, :], np.array([3.0, 4.0, 5.0, 6.0])[:, None]))
    p /= p.sum(axis=1, keepdims=True)
    risk = assess(noise, prior=prior, threat=threat)
    fine = assess(Channel(p), prior=prior, threat=threat, query=lambda s: (s - 3).astype(int))
    assert risk.kind == "exact" and risk.rad == pytest.approx(fine.rad, abs=2e-6)
    assert risk.success_in == pytest.approx(fine.success_in, abs=2e-4)


def test_the_whole_range_is_the_exponential_mechanism():
    prior = Prior.uniform(5)
    one = assess(BoundedLaplace(epsilon=1.0, bounds=(0, 4)), prior=prior)
    other = assess(ExponentialInterval(epsilon=1.0, bounds=(0, 4), factor=1.0), prior=prior)
    assert one.rad == pytest.approx(other.rad, rel=1e-12)
    # far from the ends it is Laplace noise of that scale
    wide = BoundedLaplace(epsilon=1.0, bounds=(-1e4, 1e4), sensitivity=4.0)
    plain = Laplace(epsilon=4.0 * wide.rate, sensitivity=4.0)
    far = assess(wide, prior=prior).rad
    assert far == pytest.approx(assess(plain, prior=prior).rad, rel=1e-6)


def test_calibration_and_extremes():
    prior = Prior.uniform(5)
    plan = calibrate(BoundedLaplace, max_risk=0.1, prior=prior, bounds=(0, 4))
    assert (
        plan.risk.rad
        <= 0.1
        < assess(BoundedLaplace(epsilon=plan.value * 1.001, bounds=(0, 4)), prior=prior).rad
    )
    assert assess(BoundedLaplace(epsilon=0.0, bounds=(0, 4)), prior=prior).rad < 1e-12
    assert assess(BoundedLaplace(epsilon=700.0, bounds=(0, 4)), prior=prior).rad > 0.79
    for wrong in ({"sensitivity": 0}, {"sensitivity": 9}, {"epsilon": -1}):
        with pytest.raises(DpradError):
            BoundedLaplace(**{"epsilon": 1.0, "bounds": (0, 4)} | wrong)
    with pytest.raises(DpradError, match="differ by more"):
        assess(BoundedLaplace(epsilon=1.0, bounds=(0, 9), sensitivity=2.0), prior=prior)
