"""Profiles, trade-off curves, composition and neighbours."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

from dprad import (
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    Profile,
    PureDP,
    TotalVariation,
    assess,
)
from dprad.accounting import dpsgd

RO = {"neighbours": "replace-one"}
AR = {"neighbours": "add-remove"}
EPS = np.linspace(0.0, 6.0, 25)
ALPHA = np.linspace(0.0, 1.0, 41)


def some():
    return [
        PureDP(1.0, **RO),
        PureDP(0.0, **RO),
        ApproxDP(0.7, 0.05, **RO),
        ApproxDP(2.0, 1.0, **RO),
        TotalVariation(0.3, **RO),
        GaussianDP(1.3, **RO),
        GaussianDP(0.0, **RO),
        Profile(lambda e: 0.4 * math.exp(-2 * e), **RO),
        PureDP(1.0, **RO).compose(GaussianDP(0.5, **RO)),
        PureDP(0.4, **AR).replace_one(),
    ]


@pytest.mark.parametrize("promise", some(), ids=repr)
def test_profile_and_curve_are_two_views_of_one_thing(promise):
    """f(a) = sup_E max(1 - delta - E a, (1 - delta - a)/E), and f is convex and symmetric."""
    corners = promise.loss.losses[promise.loss.losses > 0]
    grid = np.r_[np.linspace(0.0, 30.0, 4001), corners[corners < 30]]
    delta, e = promise.delta(grid), np.exp(grid)
    for a in ALPHA:
        steep, flat = 1 - delta - e * a, (1 - delta - a) / e
        expected = max(0.0, steep.max(), flat.max())
        assert promise.tradeoff(a) == pytest.approx(expected, abs=1e-5)
    f = promise.tradeoff(ALPHA)
    assert np.all(np.diff(f) <= 1e-12) and np.all(np.diff(f, 2) >= -1e-9)
    assert np.all(f <= 1 - ALPHA + 1e-9)
    fixed = (1 - promise.tv) / 2
    assert promise.tradeoff(fixed) == pytest.approx(fixed, abs=1e-5)


@pytest.mark.parametrize("promise", some(), ids=repr)
def test_the_grid_errs_on_the_safe_side(promise):
    """The dominating pair has at least the profile, and hardly more."""
    exact, gridded = promise.delta(EPS), promise.loss.delta(EPS)
    assert np.all(gridded >= exact - 1e-15)
    assert np.all(gridded <= exact + 3e-4)
    loss = promise.loss
    assert loss.p.sum() + loss.p_infinity == pytest.approx(1.0, abs=1e-12)
    assert loss.q.sum() <= 1.0 + 1e-12


def test_gaussian_grid_is_tight():
    for mu in (1e-9, 1e-3, 0.5, 1.0, 4.0, 10.0, 30.0):
        promise = GaussianDP(mu, **RO)
        eps = np.linspace(0.0, min(mu * mu / 2 + 4 * mu, 290.0), 40)
        assert promise.loss.delta(eps) == pytest.approx(promise.delta(eps), rel=2e-5, abs=2e-5)


def test_gaussian_profile_against_fifty_digits():
    for mu, eps in itertools.product((0.1, 1.0, 3.0), (0.0, 0.5, 4.0)):
        with mpmath.workdps(50):
            exact = mpmath.ncdf(mpmath.mpf(mu) / 2 - eps / mpmath.mpf(mu)) - mpmath.exp(
                eps
            ) * mpmath.ncdf(-mpmath.mpf(mu) / 2 - eps / mpmath.mpf(mu))
        assert GaussianDP(mu, **RO).delta(eps) == pytest.approx(float(exact), rel=1e-9, abs=1e-17)


def test_an_impossible_profile_is_sharpened():
    """0.4 exp(-2 eps) falls too fast to be a profile: its total variation is less than 0.4."""
    promise = Profile(lambda e: 0.4 * math.exp(-2 * e), **RO)
    assert 0.33 < promise.tv < 0.34
    # the chord from (E, delta) to its mirror image, at E = 1, is the reason
    e = math.exp(0.41)
    delta = 0.4 * math.exp(-0.82)
    mirrored = 1 - (1 - delta) / e
    chord = delta + (e - 1) / (e - 1 / e) * (mirrored - delta)
    assert promise.tv <= chord + 1e-6


def test_negative_epsilon():
    promise = ApproxDP(1.0, 0.1, **RO)
    assert promise.delta(-1.0) == pytest.approx(1 - math.exp(-1) * (1 - 0.1))


def test_scalars_and_arrays():
    promise = PureDP(1.0, **RO)
    assert isinstance(promise.delta(0.5), float) and isinstance(promise.tradeoff(0.5), float)
    assert promise.delta([0.0, 0.5]).shape == (2,)


def test_epsilon_at_inverts_the_profile():
    for promise in (*some(), PureDP(1.0, **AR).repeated(3)):
        for delta in (1e-6, 1e-2, 0.2):
            epsilon = promise.epsilon_at(delta)
            if math.isfinite(epsilon):
                assert promise.delta(epsilon) <= delta
                assert epsilon == 0.0 or promise.delta(epsilon * (1 - 1e-9)) >= delta * (1 - 1e-6)
    assert PureDP(1.0, **RO).epsilon_at(0.0) == 1.0
    assert ApproxDP(1.0, 0.1, **RO).epsilon_at(0.01) == math.inf
    assert "epsilon 2 at" in repr(PureDP(1.0, **RO).repeated(2))


# -- composition ---------------------------------------------------------------------------------
def kov(epsilon, delta, times, j):
    """Kairouz, Oh and Viswanath 2015: delta at (times - 2 j) epsilon, in plain sums."""
    top = (
        sum(
            math.comb(times, i)
            * (math.exp((times - i) * epsilon) - math.exp((times - 2 * j + i) * epsilon))
            for i in range(j)
        )
        / (1 + math.exp(epsilon)) ** times
    )
    return 1 - (1 - delta) ** times * (1 - top)


@pytest.mark.parametrize("times", [2, 3, 10])
def test_repeated_points_compose_optimally(times):
    epsilon, delta = 0.3, 0.01
    promise = ApproxDP(epsilon, delta, **RO)
    powered = promise.repeated(times)
    chained = promise.compose(*[promise] * (times - 1))
    for j in range(times // 2 + 1):
        expected = kov(epsilon, delta, times, j)
        at = (times - 2 * j) * epsilon
        assert powered.delta(at) == pytest.approx(expected, rel=1e-9, abs=1e-14)
        assert chained.delta(at) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_repeated_pure_dp_stays_pure():
    assert PureDP(0.5, **RO).repeated(8).delta(4.0) <= 1e-14
    assert PureDP(0.5, **RO).repeated(8).delta(3.9) > 0


def test_exact_rules():
    assert GaussianDP(3.0, **RO).compose(GaussianDP(4.0, **RO)).mu == 5.0
    assert GaussianDP(1.0, **AR).repeated(100).mu == 10.0
    tv = TotalVariation(0.1, **RO).compose(TotalVariation(0.2, **RO))
    assert tv.tv == pytest.approx(1 - 0.9 * 0.8)
    assert TotalVariation(0.1, **RO).repeated(5).tv == pytest.approx(1 - 0.9**5)


def test_numerical_composition_agrees_with_the_gaussian_rule():
    """A Gaussian hidden behind a profile composes to a Gaussian, from above."""
    gdp = GaussianDP(0.7, **RO)
    hidden = Profile(gdp.delta, **RO)
    eps = np.linspace(0.0, 4.0, 17)
    for composed, exact in (
        (hidden.compose(hidden), gdp.repeated(2)),
        (hidden.compose(gdp), gdp.repeated(2)),
        (hidden.repeated(16), gdp.repeated(16)),
    ):
        assert np.all(composed.delta(eps) >= exact.delta(eps) - 1e-13)
        assert composed.delta(eps) == pytest.approx(exact.delta(eps), abs=1e-4)


def discrete_profile(pairs, eps):
    """The profile of a product of finite pairs, by enumerating outcomes."""
    worst = 0.0
    for outcome in itertools.product(*[range(len(p)) for p, _ in pairs]):
        p = math.prod(pair[0][i] for pair, i in zip(pairs, outcome, strict=True))
        q = math.prod(pair[1][i] for pair, i in zip(pairs, outcome, strict=True))
        worst += max(p - math.exp(eps) * q, 0.0)
    return worst


def point_pair(epsilon, delta):
    up = (1 - delta) / (1 + math.exp(-epsilon))
    down = (1 - delta) - up
    return (np.array([delta, up, down, 0.0]), np.array([0.0, down, up, delta]))


def test_mixed_lists_are_valid_and_tight():
    points = [(1.0, 0.0), (0.3, 0.02), (0.77, 0.001), (0.0, 0.05)]
    composed = ApproxDP(*points[0], **RO).compose(*[ApproxDP(*p, **RO) for p in points[1:]])
    pairs = [point_pair(*p) for p in points]
    for eps in np.linspace(0.0, 2.2, 12):
        exact = discrete_profile(pairs, eps)
        assert exact - 1e-13 <= composed.delta(eps) <= exact + 1e-4


def test_long_compositions_stay_small():
    promise = ApproxDP(0.01, 1e-9, **RO).repeated(100_000)
    assert len(promise.loss.p) <= 2**15 + 1
    # about mu = 0.01 sqrt(100000) of Gaussian DP
    assert promise.tv == pytest.approx(GaussianDP(0.01 * 100_000**0.5, **RO).tv, abs=1e-2)
    wild = PureDP(50.0, **RO).repeated(100)
    assert wild.tv == pytest.approx(1.0) and wild.delta(600.0) <= 1.0


def test_mixed_neighbours_become_replace_one():
    both = PureDP(1.0, **AR).compose(PureDP(1.0, **RO))
    assert both.neighbours == "replace-one"
    assert both.delta(3.0) <= 1e-13 and both.delta(2.9) > 0


# -- neighbours ----------------------------------------------------------------------------------
def test_pure_add_remove_keeps_its_profile():
    assert PureDP(1.0, **AR).replace_one().tv == pytest.approx(1 - math.exp(-1), abs=1e-12)
    assert PureDP(1.0, **AR).replace_one().tv < PureDP(2.0, **RO).tv


def test_profile_at_twice_epsilon():
    eps, delta = 0.8, 0.01
    converted = ApproxDP(eps, delta, **AR).replace_one()
    assert converted.delta(2 * eps) == pytest.approx((1 + math.exp(eps)) * delta, rel=1e-9)


@pytest.mark.parametrize(
    "promise",
    [
        PureDP(0.6, **AR),
        ApproxDP(1.2, 0.03, **AR),
        TotalVariation(0.2, **AR),
        TotalVariation(0.7, **AR),
        GaussianDP(0.9, **AR),
        Profile(lambda e: 0.4 * math.exp(-2 * e), **AR),
        PureDP(0.3, **AR).repeated(3),
    ],
    ids=repr,
)
def test_conversion_is_the_composed_curve(promise):
    """f2(a) = f(1 - f(a))."""
    converted = promise.replace_one()
    expected = promise.tradeoff(1 - promise.tradeoff(ALPHA))
    assert converted.tradeoff(ALPHA) == pytest.approx(expected, abs=1e-6)
    assert converted.neighbours == "replace-one" and converted.replace_one() is converted


def test_conversion_keeps_the_smallest_deltas():
    """No part of delta may be lost to rounding, however small."""
    for delta in (1e-18, 2e-15, 1e-11, 1e-3):
        converted = ApproxDP(0.1, delta, **AR).replace_one()
        assert converted.delta(0.2) == pytest.approx((1 + math.exp(0.1)) * delta, rel=1e-9)
    mixed = PureDP(0.1, **AR).compose(PureDP(0.03, **AR), ApproxDP(0.01, 1e-11, **AR))
    assert mixed.replace_one().delta(1.0) >= 2e-11


def test_conversion_at_large_delta():
    """Beyond delta = 1/(2 + e^eps) the profile at 2 eps is 1 - (1 - 2 delta)_+ / e^eps."""
    converted = ApproxDP(1.0, 0.25, **AR).replace_one()
    assert converted.delta(2.0) == pytest.approx(1 - 0.5 / math.e, rel=1e-9)


def test_tiny_promises_are_never_understated():
    for mu in (1e-15, 1e-12, 1e-9, 1e-6):
        tv = mu / math.sqrt(2 * math.pi)
        promise = GaussianDP(mu, **RO)
        assert promise.loss.delta(np.zeros(1))[0] >= tv * (1 - 1e-12)
        eps = mu * np.linspace(0, 3, 7)
        # mu times the expected excess of a standard normal over eps/mu, to first order in mu
        x = eps / mu
        exact = mu * (norm.pdf(x) - x * norm.sf(x))
        assert np.all(promise.delta(eps) >= exact * (1 - 10 * mu) - 1e-30)
    for epsilon in (1e-320, 1e-300, 1e-15, 1e-12):
        composed = PureDP(epsilon, **RO).compose(PureDP(epsilon, **RO))
        assert composed.tv >= 2 * math.tanh(epsilon / 2) / 2
        assert PureDP(epsilon, **AR).replace_one().tv >= epsilon * (1 - 1e-9)


def test_gaussian_conversion_through_the_grid():
    """The general rule, applied to a Gaussian, gives twice the mu, from above."""
    loss = GaussianDP(0.8, **AR).loss.chain()
    eps = np.linspace(0, 6, 20)
    exact = GaussianDP(1.6, **RO).delta(eps)
    assert np.all(loss.delta(eps) >= exact - 1e-13)
    assert loss.delta(eps) == pytest.approx(exact, abs=1e-6)


def test_a_real_pair_of_neighbours_obeys_the_conversion():
    """Laplace counts: P_z and P_z0 each within eps of Q0 on opposite sides."""
    eps = 0.7
    x = np.linspace(-60, 60, 400_001)
    p, q = np.exp(-eps * np.abs(x - 1)), np.exp(-eps * np.abs(x + 1))
    p, q = p / p.sum(), q / q.sum()
    converted = PureDP(eps, **AR).replace_one()
    for e in (0.0, 0.5, 1.0, 1.3):
        assert np.maximum(p - math.exp(e) * q, 0).sum() <= converted.delta(e) + 1e-6


# -- extremes and errors -------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 50.0, 700.0, 1e6])
def test_extreme_epsilon(epsilon):
    promise = PureDP(epsilon, **RO)
    assert 0.0 <= promise.tv <= 1.0 and 0.0 <= promise.tradeoff(0.5) <= 1.0
    assert promise.delta(epsilon) == 0.0
    assert 0.0 <= promise.loss.delta(np.array([0.0]))[0] <= 1.0
    assert PureDP(epsilon, **AR).replace_one().tv <= 1.0


@pytest.mark.parametrize("mu", [0.0, 1e-200, 1e-6, 40.0, 1e4, 1e200])
def test_extreme_mu(mu):
    promise = GaussianDP(mu, **RO)
    assert 0.0 <= promise.tv <= 1.0
    assert promise.loss.delta(np.array([0.0]))[0] == pytest.approx(promise.tv, abs=1e-6)
    assert promise.tv == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PureDP(1.0), "neighbours is missing.*replace-one.*add-remove"),
        (lambda: PureDP(1.0, neighbours="replace"), "Did you mean 'replace-one'"),
        (lambda: PureDP(-1.0, **RO), "epsilon must be a finite number of at least 0, but is -1"),
        (lambda: PureDP(math.nan, **RO), "epsilon"),
        (lambda: PureDP(math.inf, **RO), "epsilon"),
        (lambda: PureDP("one", **RO), "epsilon must be a number"),
        (lambda: ApproxDP(1.0, 1.5, **RO), "delta must be a number between 0 and 1"),
        (lambda: ApproxDP(1.0, -0.1, **RO), "delta"),
        (lambda: GaussianDP(-1.0, **RO), "mu"),
        (lambda: TotalVariation(2.0, **RO), "tv"),
        (lambda: Profile(3, **RO), "callable"),
        (lambda: Profile(lambda e: 2.0, **RO), "returned 2.0 at epsilon = 0"),
        (lambda: PureDP(1.0, **RO).compose(3), "compose takes guarantees"),
        (lambda: PureDP(1.0, **RO).repeated(0), "times"),
        (lambda: PureDP(1.0, **RO).tradeoff(1.5), "alpha must be between"),
        (lambda: PureDP(1.0, **RO).delta(math.nan), "epsilon must be"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(DpradError, match=words):
        make()


def test_a_profile_may_leave_its_range_by_rounding():
    """Found by the soundness campaign: -5e-324 is 0, -0.1 is an error."""
    near = Profile(lambda e: -5e-324 if e > 1 else 1.0 + 1e-16, neighbours="replace-one")
    assert near.delta(2.0) == 0.0
    with pytest.raises(DpradError, match="between 0 and 1"):
        Profile(lambda e: -0.1, neighbours="replace-one").delta(1.0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "times"),
    [(0.5, 0.0, 7), (0.1, 1e-4, 101), (1e-3, 0.0, 10**6), (1e-4, 0.0, 10**8), (1e-6, 1e-9, 10**6)],
)
@pytest.mark.parametrize("at", [0.0, 0.3, 1.5])
def test_many_releases_of_one_promise_are_binomial(epsilon, delta, times, at):
    up = 1 / (1 + np.exp(-epsilon))
    reach = 40 * np.sqrt(times)
    j = np.arange(max(0, int(times * up - reach)), min(times, int(times * up + reach)) + 1)
    losses = epsilon * (2 * j - times)
    gained = binom.pmf(j, times, up) @ np.maximum(-np.expm1(at - losses), 0.0)
    expected = -np.expm1(times * np.log1p(-delta)) + (1 - delta) ** times * gained
    found = ApproxDP(epsilon, delta, neighbours="replace-one").repeated(times).delta(at)
    assert expected * (1 - 1e-8) <= found <= expected * (1 + 1e-8) + 1e-15


def test_pure_promises_stay_pure():
    assert PureDP(0.01, neighbours="replace-one").repeated(1000).epsilon_at(0.0) == pytest.approx(
        10
    )


def test_next_to_nothing_finite_is_no_promise():
    # what is left finite falls below every float: once a bare ValueError of numpy
    weak = ApproxDP(1, 0.3, neighbours="replace-one").compose(
        GaussianDP(0.5, neighbours="replace-one")
    )
    assert weak.repeated(200).tv == 1.0
    assert dpsgd(noise_multiplier=0.04, sample_rate=0.5, steps=1000).tv == 1.0


@pytest.mark.parametrize("mu", [0.0, 1e-320, 1e-200, 1e-100])
def test_promises_below_every_float(mu):
    promise = GaussianDP(mu, neighbours="replace-one")
    assert promise.delta(1e-3) == 0.0
    assert 0.0 <= assess(promise, prior=Prior.uniform(10)).rad <= mu
