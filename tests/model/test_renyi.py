"""Rényi and zero-concentrated promises against brute force, riskcal, and real mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import (
    ZCDP,
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    RenyiDP,
    Threat,
    assess,
    bounds,
)
from dprad.game.game import play
from oracles import brute_force, moment_optimum, random_channel, random_instance, renyi

RO = {"neighbours": "replace-one"}
AR = {"neighbours": "add-remove"}
ORDERS = np.r_[1.0, 1.0 + np.geomspace(0.02, 60.0, 40)]


def divergences(channel):
    """The largest divergence between any two rows, at every order."""
    rows = range(len(channel))
    pairs = [(a, b) for a in rows for b in rows if a != b]
    return np.max([renyi(channel[a], channel[b], ORDERS) for a, b in pairs], axis=0)


def hockey(p, q, epsilon):
    """The profile of a pair, at many epsilons."""
    return np.maximum(p[:, None] - np.exp(epsilon) * q[:, None], 0.0).sum(axis=0)


def binary_optimum(e, orders, limits):
    """The largest a - E b of two outputs that keep the limits both ways, on a fine grid."""
    x = 1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 1201)))
    a, b = x[:, None], x[None, :]
    fine = a >= b
    for k, limit in zip(orders, limits, strict=True):
        for p, q in ((a, b), (b, a)):
            if k == 1:
                moment = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
                fine = fine & (moment <= limit)
            else:
                moment = p**k * q ** (1 - k) + (1 - p) ** k * (1 - q) ** (1 - k)
                fine = fine & (moment <= math.exp((k - 1) * limit))
    return np.max(np.where(fine, a - e * b, 0.0))


@pytest.mark.parametrize("epsilons", [(0.02, 0.05), (0.3, 0.9), (1.5, 3.0)])
def test_the_profile_is_the_largest_that_the_limits_allow(epsilons):
    promise = RenyiDP([1.5, 6.0], epsilons, **RO)
    kept = [(1.0, epsilons[0]), (1.5, epsilons[0]), (6.0, epsilons[1])]
    for epsilon in (0.0, 0.2, 0.7, 1.5):
        found = binary_optimum(math.exp(epsilon), *zip(*kept, strict=True))
        assert found - 1e-12 <= promise.delta(epsilon) <= found + 4e-3


def test_random_pairs_keep_the_promise_made_for_them(rng):
    """Profiles and trade-off curves of random pairs are within what their divergences allow."""
    epsilon = np.linspace(0.0, 4.0, 30)
    for i in range(14):
        p, q = random_channel(rng, 2, int(rng.integers(2, 5))) * 0.98 + 0.02 / 3
        p, q = p / p.sum(), q / q.sum()
        limits = divergences(np.array([p, q]))
        if i % 2:
            rho = float(np.max(limits / ORDERS)) * (1 + 1e-3)
            promise = ZCDP(max(rho, float(np.log(p / q).max() / 61)), **RO)
        else:
            promise = RenyiDP(ORDERS[1::4], limits[1::4], **RO)
        true = np.maximum(hockey(p, q, epsilon), hockey(q, p, epsilon))
        assert np.all(promise.delta(epsilon) >= true - 1e-12)
        assert promise.loss.delta(epsilon) == pytest.approx(promise.delta(epsilon), abs=2e-3)


@pytest.mark.parametrize("rho", [0.0, 1e-12, 1e-9, 1e-4, 0.005, 0.5, 2.0, 40.0, 1e3])
def test_total_variation_is_never_above_pinsker_nor_below_gaussian(rho):
    promise = ZCDP(rho, **RO)
    assert promise.gaussian.tv * (1 - 1e-12) <= promise.tv <= min(1.0, math.sqrt(rho / 2))
    spent = RenyiDP([2.0], [rho], **RO)
    assert spent.tv <= math.sqrt(rho / 2) + 1e-15


def test_against_riskcal():
    """The same curve: never below theirs (which reads finitely many orders), and as tight."""
    riskcal = pytest.importorskip("riskcal.analysis.conversions")
    fpr = np.array([0.001, 0.01, 0.1, 0.3, 0.6])
    for rho in (0.02, 0.5):
        theirs = 1 - riskcal.get_beta_from_zcdp(rho, fpr, grid_size=300)
        promise = ZCDP(rho, **RO)
        ours = [promise.tpr_at(fpr=a) for a in fpr]
        assert ours == pytest.approx(theirs, abs=1e-4)
        assert promise.tv <= riskcal.get_advantage_from_zcdp(rho, grid_size=60) + 1e-6
        # what the attacker gains is below their advantage
        risk = assess(promise, prior=Prior.unknown(), threat=Threat(knows="everything"))
        assert risk.rad < riskcal.get_advantage_from_zcdp(rho, grid_size=60)
    for order, epsilon in ((1.5, 0.1), (2.0, 0.4), (8.0, 0.8)):
        theirs = 1 - riskcal.get_beta_from_rdp(epsilon, fpr, order)
        promise = RenyiDP([order], [epsilon], **RO)
        assert [promise.tpr_at(fpr=a) for a in fpr] == pytest.approx(theirs, abs=1e-4)


def test_tails_are_those_of_the_known_conversion():
    promise = ZCDP(0.1, **RO)
    k = 1 + np.geomspace(1e-2, 1e3, 4000)
    for epsilon in (2.0, 4.0):
        tail = (k - 1) * (0.1 * k - epsilon) + (k - 1) * np.log1p(-1 / k) - np.log(k)
        assert promise.delta(epsilon) <= math.exp(tail.min()) * (1 + 1e-2)


# -- composition, groups, neighbours -------------------------------------------------------------
def test_divergences_add_up():
    assert ZCDP(0.1, **AR).compose(ZCDP(0.2, **AR), GaussianDP(1.0, **AR)).rho == pytest.approx(0.8)
    curve = RenyiDP([2.0, 8.0], [0.1, 0.4], **AR)
    both = PureDP(0.3, **AR).compose(curve)
    assert both.orders == (2.0, 8.0)
    p = np.array([math.exp(0.3), 1.0]) / (1 + math.exp(0.3))
    added = renyi(p, p[::-1], np.array([2.0, 8.0]))
    assert np.array(both.epsilons) - np.array(curve.epsilons) == pytest.approx(added)
    assert curve.compose(ZCDP(0.05, **AR)).epsilons == pytest.approx((0.2, 0.8))
    # with a delta there is no divergence to add: by the profile
    mixed = curve.compose(ApproxDP(0.1, 0.01, **AR))
    assert mixed.delta(0.0) <= curve.tv + 0.06 and mixed.delta(9.0) >= 0.01


def test_limits_between_orders_and_repeated_orders():
    curve = RenyiDP([8.0, 2.0, 4.0, 3.0], [0.8, 0.3, 0.2, math.inf], **RO)
    assert curve.orders == (2.0, 4.0, 8.0) and curve.epsilons == (0.2, 0.2, 0.8)
    # (k - 1) R(k) is convex: between 0.6 at 4 and 5.6 at 8
    assert curve._renyi(np.array([6.0, 9.0])) == pytest.approx([3.1 / 5, math.inf])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([2.0], [0.1, 0.2]), "equally many"),
        (([1.0], [0.1]), "above 1"),
        (([2.0], [-0.1]), "at least 0"),
        (([2.0], [math.inf]), "one finite"),
        ((["a"], [0.1]), "list of numbers"),
        (([], []), "list of numbers"),
    ],
)
def test_bad_curves(given, words):
    with pytest.raises(DpradError, match=words):
        RenyiDP(*given, **RO)


def test_the_triangle_of_a_curve_is_close_to_that_of_rho():
    rho = ZCDP(0.1, **AR)
    orders = rho.read_at
    curve = RenyiDP(orders, rho._renyi(orders), **AR).replace_one()
    assert curve.neighbours == "replace-one"
    at = np.linspace(0.0, 3.0, 7)
    assert np.all(curve.delta(at) >= rho.replace_one().delta(at) * (1 - 1e-3))
    assert curve.delta(at) == pytest.approx(rho.replace_one().delta(at), rel=0.03)


# -- straight from the moments -------------------------------------------------------------------
def test_no_bound_is_below_mechanisms_with_these_divergences(rng):
    """A family whose best member is a linear program: 10 cases here, 1,000 in the campaign."""
    for i in range(10):
        m, everything = int(rng.integers(2, 12)), bool(i % 2)
        rho = float(10.0 ** rng.uniform(-3, 0.7))
        promise = ZCDP(rho, **RO)
        optimum = moment_optimum(m, everything, rho)
        game = play(Prior.uniform(m), Threat(knows="everything" if everything else "nothing"))
        found = {b.name: b.value for b in bounds.evaluate(promise, game) if b.measure == "rad"}
        for name, value in found.items():
            assert value is None or value >= optimum - 1e-7, (name, value, optimum, m, rho)
        least = min(v for v in found.values() if v is not None)
        assert least <= 1.01 * optimum  # it is attained, up to the grids


def test_no_bound_is_below_random_channels(rng):
    """Any prior, knowledge and tolerance; replace-one and add-remove."""
    for i in range(9):
        m = int(rng.integers(2, 5))
        instance = random_instance(rng, m)
        channel = random_channel(rng, m + 1, 4) * 0.9 + 0.025
        present, limits = channel[:m], divergences(channel[:m])
        if i % 3 == 0:  # the last law is that without the record
            both = [(channel[z], channel[m]) for z in range(m)]
            both += [(q, p) for p, q in both]
            limits = np.max([renyi(p, q, ORDERS) for p, q in both], axis=0)
        near = AR if i % 3 == 0 else RO
        rad, _ = brute_force(instance, present)
        promise = RenyiDP(ORDERS[1:], limits[1:], **near)
        game = play(instance.prior, instance.threat)
        for b in bounds.evaluate(promise, game):
            assert b.measure != "rad" or b.value is None or b.value >= rad - 1e-12, (b, rad)


def test_moments_are_tighter_than_the_profile():
    for rho, most in ((0.005, 0.0354), (0.05, 0.1117), (0.5, 0.3465)):
        risk = assess(ZCDP(rho, **RO), prior=Prior.unknown(), threat=Threat(knows="everything"))
        found = {b.name: b.value for b in risk.bounds}
        assert risk.rad == found["theorem-c-moments"] <= most < 0.95 * found["theorem-c"]
        gaussian = assess(ZCDP(rho, **RO).gaussian, prior=Prior.unknown())
        assert gaussian.rad < risk.rad and "GaussianDP" in risk.notes[0]
