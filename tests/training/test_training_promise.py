"""Poisson DP-SGD: the pairs against plain numerics and dp-accounting, both directions."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm

from dprad import DpradError, GaussianDP, Prior, Threat, assess
from dprad.accounting import dpsgd, from_event
from dprad.model.gaussian_losses import sampled_gaussian_losses


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.6, 0.3), (4.0, 0.001), (1.0, 1.0)])
def test_one_step_dominates_and_is_tight(sigma, rate):
    """delta(eps) of both pairs in closed form: the best test is a threshold. Never below."""
    step = 1e-4

    def tails(x):
        """Absent and present beyond x."""
        absent = norm.sf(x, 0, sigma)
        return absent, (1 - rate) * absent + rate * norm.sf(x, 1, sigma)

    def threshold(loss):
        """Where log present/absent is this."""
        inside = np.exp(loss) - (1 - rate)
        return sigma**2 * np.log(inside / rate) + 0.5 if inside > 0 else -np.inf

    forward, backward = sampled_gaussian_losses(sigma, rate, step)
    for pair, sign in ((forward, 1), (backward, -1)):
        for epsilon in (-0.2, 0.0, 0.003, 0.05, 0.5, 1.5):
            absent, present = tails(threshold(sign * epsilon))
            if sign > 0:
                exact = present - np.exp(epsilon) * absent
            else:
                exact = (1 - absent) - np.exp(epsilon) * (1 - present)
            found = float(pair.delta(np.array(epsilon)))
            assert exact - 1e-10 <= found <= exact + 0.3 * step
        assert pair.p.sum() + pair.p_infinity == pytest.approx(1.0, abs=1e-12)
        assert pair.q.sum() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"),
    [(1.0, 0.01, 1000), (0.8, 0.002, 500), (5.0, 0.01, 10_000), (2.0, 0.2, 100), (1.0, 0.05, 20)],
)
def test_agrees_with_dp_accounting(sigma, rate, steps):
    ours = dpsgd(noise_multiplier=sigma, sample_rate=rate, steps=steps)
    sampled = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
    theirs = from_event(dp_event.SelfComposedDpEvent(sampled, steps))
    assert ours.neighbours == theirs.neighbours == "add-remove"
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        assert ours.delta(epsilon) == pytest.approx(theirs.delta(epsilon), rel=4e-3, abs=1e-8)
    assert ours.epsilon_at(1e-5) == pytest.approx(theirs.epsilon_at(1e-5), rel=2e-3)
    # total variation does not know directions
    both = [float(d.delta(np.array(0.0))) for d in ours.directions]
    assert both[0] == pytest.approx(both[1], rel=1e-8)


def test_a_finer_grid_is_never_riskier():
    coarse, fine = (
        dpsgd(noise_multiplier=1.0, sample_rate=0.02, steps=300, grid=g) for g in (1e-3, 1e-4)
    )
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        assert fine.delta(epsilon) <= coarse.delta(epsilon) + 1e-12
        assert fine.delta(epsilon) == pytest.approx(coarse.delta(epsilon), rel=0.02)


def test_one_transform_equals_many_convolutions():
    pair = sampled_gaussian_losses(1.0, 0.1, 0.01)[0]
    by_hand = pair
    for _ in range(19):
        by_hand = by_hand.compose(pair)
    once = pair.repeated(20)
    for epsilon in (-0.5, 0.0, 0.5, 1.0, 2.0, 4.0):
        a, b = (float(x.delta(np.array(epsilon))) for x in (once, by_hand))
        assert b - 1e-11 <= a <= b + 1e-10


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "tv"),
    [
        # total variations on a fine grid, by dp-accounting or many convolutions
        (1.0, 1e-4, 2, 5.955e-5),
        (1.0, 1e-4, 8, 1.343e-4),
        (1.0, 3e-4, 15, 5.69e-4),
        (1.0, 1e-4, 15, 1.90e-4),
    ],
)
def test_rare_sampling(sigma, rate, steps, tv):
    found = dpsgd(noise_multiplier=sigma, sample_rate=rate, steps=steps).tv
    assert found == pytest.approx(tv, rel=4e-3)


def test_more_steps_are_never_safer():
    values = [
        dpsgd(noise_multiplier=1.0, sample_rate=1e-3, steps=n).tv for n in (1, 2, 15, 16, 17, 100)
    ]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"),
    [(1.0, 1e-4, 1000), (0.5, 1e-4, 1000), (0.3, 1e-6, 10**6), (1.0, 1e-5, 10**6)],
)
def test_transforms_stay_small(sigma, rate, steps):
    """These once asked for hundreds of gigabytes."""
    promise = dpsgd(noise_multiplier=sigma, sample_rate=rate, steps=steps)
    assert 0 < promise.tv < 0.1 and len(promise.directions[0].p) <= 2**16 + 1


def test_full_batch_is_gaussian():
    promise = dpsgd(noise_multiplier=20.0, sample_rate=1.0, steps=100)
    assert isinstance(promise, GaussianDP) and promise.mu == 0.5
    nearly = dpsgd(noise_multiplier=20.0, sample_rate=1 - 1e-9, steps=100)
    assert nearly.delta(0.5) == pytest.approx(promise.delta(0.5), rel=1e-3)
    assert dpsgd(noise_multiplier=1.0, sample_rate=0.0, steps=5).tv == 0.0


def test_converting_both_directions_is_tighter_than_the_symmetric_hull():
    promise = dpsgd(noise_multiplier=0.8, sample_rate=0.05, steps=50)
    swapped = promise.replace_one()
    symmetric = promise.loss.chain()
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        assert swapped.delta(epsilon) <= float(symmetric.delta(np.array(epsilon))) + 1e-9
    assert promise.tv <= swapped.tv <= 2 * promise.tv + 1e-9


def test_replace_one_against_the_trade_off_curves():
    """f2(a) = f_add(1 - f_remove(a)): on the curves themselves."""
    promise = dpsgd(noise_multiplier=0.8, sample_rate=0.05, steps=50)
    present, absent = promise.directions
    for alpha in np.linspace(0.001, 0.999, 25):
        power = 1 - absent.tradeoff(np.array(alpha))
        expected = float(present.tradeoff(power))
        assert promise.replace_one().tradeoff(alpha) == pytest.approx(expected, abs=2e-4)


def test_composed_trainings():
    one = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=400)
    two = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=600)
    whole = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    for epsilon in (0.0, 0.5, 1.5):
        assert one.compose(two).delta(epsilon) == pytest.approx(whole.delta(epsilon), rel=5e-3)


def test_risk_of_a_training():
    promise = dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    member = assess(promise, prior=Prior.unknown(), threat=Threat(knows="everything"))
    assert member.method.startswith("absent record")
    assert promise.tv < member.rad < 1.3 * promise.tv
    assert assess(promise, prior=Prior.uniform(10)).rad < member.rad


def test_never_below_a_plain_pessimistic_pld():
    """Against dp-accounting on a grid ten times as fine: the truth, from above, and not missed."""
    sigma, rate, steps = 1.2, 0.02, 200
    ours = dpsgd(noise_multiplier=sigma, sample_rate=rate, steps=steps)
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-5, pessimistic_estimate=False
    ).self_compose(steps)
    for epsilon in (0.0, 0.2, 1.0, 2.0):
        optimistic = pld.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) >= optimistic - 1e-7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"noise_multiplier": 0}, "promises nothing"),
        ({"noise_multiplier": -1}, "noise_multiplier"),
        ({"sample_rate": 2}, "sample_rate"),
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"grid": 0}, "grid"),
        ({"grid": 1e-10}, "grid must be at least"),
    ],
)
def test_bad_input(arguments, words):
    usual = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 10}
    with pytest.raises(DpradError, match=words):
        dpsgd(**usual | arguments)
