"""Tiny promises: no bound falls below what is attained, by 60-digit arithmetic."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dprad import ApproxDP, GaussianDP, Prior, Profile, PureDP, Threat, assess, bounds, calibrate
from dprad.game.game import play
from dprad.mechanisms import GRR
from effort import part_of
from oracles import gaussian_gap, gaussian_optimum

SIZES = (2, 3, 22, 10**4)
TINY = (1e-200, 1e-20, 1e-16, 1e-13, 1e-11, 1e-8, 1e-6, 1e-3, 0.5, 3.0)


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("mu", part_of(TINY, 2))
def test_gaussian_promises(mu, m):
    no_bound_is_too_low(mu, m)


def test_a_million_records():
    no_bound_is_too_low(1e-8, 10**6)


def no_bound_is_too_low(mu, m):
    game = play(Prior.uniform(m), Threat())
    truth = gaussian_optimum(mu, m)
    assert truth > 0
    found = bounds.evaluate(GaussianDP(mu, neighbours="replace-one"), game)
    for bound in found:
        if bound.measure == "rad" and bound.value is not None:
            assert bound.value >= truth * (1 - 1e-15), bound.name
    # and the best of them is not far above
    if mu >= 1e-16:
        assert bounds.least(found, "rad")[1] <= truth * 1.002
    # with and without the person: 1 - f(1/m) - 1/m is attained (Theorem D)
    attained = gaussian_gap(mu, 1 / m)
    for bound in bounds.evaluate(GaussianDP(mu, neighbours="add-remove"), game):
        if bound.measure == "rad" and bound.value is not None:
            assert bound.value >= attained * (1 - 1e-15), bound.name


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("epsilon", [*TINY, 40.0, 700.0])
def test_pure_promises(epsilon, m):
    prior = Prior.uniform(m)
    with mp.workdps(400):
        s = mp.expm1(mp.mpf(epsilon))
        truth = float(s / (s + m) * (m - 1) / mp.mpf(m))
    for bound in bounds.evaluate(PureDP(epsilon, neighbours="replace-one"), play(prior, Threat())):
        if bound.measure == "rad" and bound.value is not None:
            assert bound.value >= truth * (1 - 1e-15), bound.name
    if m <= 10**4:
        attained = assess(GRR(epsilon=epsilon, size=m), prior=prior).rad
        assert attained == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("target", [1e-15, 1e-14, 1e-12, 1e-9])
def test_tiny_targets_are_met(target):
    m = 10**4
    plan = calibrate(GaussianDP, max_risk=target, prior=Prior.uniform(m), neighbours="replace-one")
    assert gaussian_optimum(plan.value, m) <= target
    assert plan.risk.rad <= target
    assert gaussian_optimum(plan.value, m) >= 0.99 * target


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-2, 0.3, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 2.0, 6.0])
def test_profiles_keep_their_digits(mu, share):
    promise = GaussianDP(mu, neighbours="replace-one")
    epsilon = share * mu
    with mp.workdps(60):
        a, e = mp.mpf(mu), mp.mpf(epsilon)
        true = mp.ncdf(a / 2 - e / a) - mp.exp(e) * mp.ncdf(-a / 2 - e / a)
        truth = float(true)
    assert truth <= promise.delta(epsilon) <= truth * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-4, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(
    "promise",
    [
        PureDP(1e-13, neighbours="replace-one"),
        PureDP(2.0, neighbours="replace-one"),
        ApproxDP(0.5, 0.01, neighbours="replace-one"),
        GaussianDP(1.0, neighbours="replace-one"),
        GaussianDP(2.5, neighbours="replace-one"),
        GaussianDP(0.7, neighbours="replace-one").compose(PureDP(0.5, neighbours="replace-one")),
        Profile(lambda e: np.exp(-e) / 4, neighbours="replace-one"),
    ],
    ids=lambda promise: promise.name,
)
def test_the_gap_is_that_of_the_trade_off(promise, alpha):
    plain = 1.0 - promise.tradeoff(alpha) - alpha
    assert promise.gap(alpha) == pytest.approx(plain, abs=1e-10)
    assert 0.0 <= promise.gap(alpha) <= promise.tv * (1 + 1e-9)
