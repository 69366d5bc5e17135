"""dp-accounting, Opacus and OpenDP: what they promise arrives as it was promised."""

from __future__ import annotations

import math
import warnings

import numpy as np
import opendp.prelude as dp
import pytest
import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from scipy.stats import kstest, laplace

from dprad import DpradError, Prior, PureDP, Threat, assess, simulate
from dprad.accounting import dpsgd, from_event, from_opacus, from_opendp, from_pld
from dprad.accounting.from_opendp import concentrated

dp.enable_features("contrib")


# -- dp-accounting -------------------------------------------------------------------------------
def test_a_pld_keeps_its_profile():
    pld = privacy_loss_distribution.from_laplace_mechanism(1.3).self_compose(3)
    promise = from_pld(pld, neighbours="add-remove")
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert promise.delta(epsilon) == pytest.approx(pld.get_delta_for_epsilon(epsilon), abs=1e-9)
    assert promise.tv == promise.delta(0.0)
    sampled = privacy_loss_distribution.from_gaussian_mechanism(1.0, sampling_prob=0.1)
    two = from_pld(sampled, neighbours="add-remove")
    assert not two.symmetric
    for epsilon in (0.0, 0.05, 0.3):
        expected = sampled.get_delta_for_epsilon(epsilon)
        assert two.delta(epsilon) == pytest.approx(expected, abs=1e-9)


def test_an_optimistic_distribution_is_refused():
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False
    )
    with pytest.raises(DpradError, match="optimistic"):
        from_pld(pld, neighbours="replace-one")


def test_the_curve_of_randomised_response():
    promise = PureDP(math.log(3), neighbours="replace-one")
    from_theirs = from_event(dp_event.RandomizedResponseDpEvent(0.5, 2), neighbours="replace-one")
    for alpha, beta in ((0, 1), (0.1, 0.7), (0.25, 0.25), (0.5, 1 / 6)):
        assert promise.tradeoff(alpha) == pytest.approx(beta, abs=1e-12)
        assert from_theirs.tradeoff(alpha) == pytest.approx(beta, abs=1e-4)
        assert from_theirs.tradeoff(alpha) <= beta + 1e-12


def test_repeated_randomised_response_is_counted_as_often_as_it_says():
    event = dp_event.RandomizedResponseDpEvent(0.5, 2)
    five = dp_event.SelfComposedDpEvent(event, 5)
    found = from_event(five, neighbours="replace-one")
    exact = PureDP(math.log(3), neighbours="replace-one").repeated(5)
    assert found.tv == pytest.approx(exact.tv, abs=1e-3) and found.tv >= exact.tv - 1e-9
    # what the accountant itself says: the repetition is lost
    from dp_accounting.privacy_accountant import NeighboringRelation

    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    accountant.compose(five)
    assert accountant.get_delta(0.0) == pytest.approx(0.5, abs=1e-3)


def test_events_of_events():
    gaussian = dp_event.GaussianDpEvent(2.0)
    event = dp_event.ComposedDpEvent(
        [dp_event.SelfComposedDpEvent(gaussian, 3), dp_event.LaplaceDpEvent(1.0)]
    )
    found = from_event(event)
    accountant = PLDAccountant()
    accountant.compose(event)
    for epsilon in (0.0, 1.0, 2.0):
        assert found.delta(epsilon) == pytest.approx(accountant.get_delta(epsilon), abs=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_pld(3, neighbours="add-remove"), "PrivacyLossDistribution"),
        (lambda: from_event(3), "takes a DpEvent"),
        (lambda: from_event(dp_event.NonPrivateDpEvent()), "promises nothing"),
        (lambda: from_event(dp_event.ComposedDpEvent([])), "empty"),
        (lambda: from_event(dp_event.UnsupportedDpEvent()), "cannot account"),
        (lambda: from_event(dp_event.GaussianDpEvent(1.0), neighbours="x"), "neighbours"),
        (
            lambda: from_event(dp_event.RandomizedResponseDpEvent(0.5, 2)),
            "cannot account",
        ),
    ],
)
def test_bad_events(call, words):
    with pytest.raises(DpradError, match=words):
        call()


# -- Opacus --------------------------------------------------------------------------------------
def trained(epochs=2):
    """A few steps of a toy model, with Opacus."""
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    return engine


def test_an_opacus_engine_says_what_dp_accounting_says():
    engine = trained()
    promise = from_opacus(engine)
    [(sigma, rate, steps)] = engine.accountant.history
    assert (sigma, rate) == (1.1, 1 / 8) and steps > 10
    sampled = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
    theirs = from_event(dp_event.SelfComposedDpEvent(sampled, steps))
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert promise.delta(epsilon) == pytest.approx(theirs.delta(epsilon), rel=2e-3, abs=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # their RDP epsilon is a looser reading of the same training
        assert promise.epsilon_at(1e-5) <= engine.get_epsilon(1e-5)
    assert from_opacus(engine.accountant).tv == promise.tv
    assert from_opacus(engine.accountant.history).tv == promise.tv


def test_bad_histories():
    with pytest.raises(DpradError, match="no step"):
        from_opacus([])
    with pytest.raises(DpradError, match="PrivacyEngine"):
        from_opacus(3)
    with pytest.raises(DpradError, match="steps"):
        from_opacus([(1.0, 0.5, 2.9)])
    pieces = from_opacus([(1.0, 0.001, 10)] * 20)
    assert pieces.tv == dpsgd(noise_multiplier=1.0, sample_rate=0.001, steps=200).tv
    mixed = from_opacus([(1.0, 1.0, 4), (2.0, 1.0, 4)])
    assert mixed.mu == pytest.approx(math.hypot(2.0, 1.0))


# -- OpenDP --------------------------------------------------------------------------------------
def test_a_laplace_measurement_is_assessed_and_sampled(rng):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    box = from_opendp(dp.m.make_laplace(*space, scale=5.0), span=10.0)
    assert isinstance(box.guarantee, PureDP) and box.guarantee.epsilon == pytest.approx(2.0)
    drawn = box.sample(np.full(4000, 3.0), rng)
    assert kstest(drawn, laplace(3.0, 5.0).cdf).pvalue > 1e-6
    prior = Prior.from_counts({float(v): 1 for v in range(11)})
    bound = assess(box.guarantee, prior=prior)
    found = simulate(box, lambda o, k: np.clip(np.rint(o), 0, 10), prior=prior, trials=4000)
    assert found.interval[0] <= bound.rad


def test_distances_of_metrics():
    values = dp.vector_domain(dp.atom_domain(bounds=(0, 10)))
    one_in_one_out = dp.t.make_sum(values, dp.symmetric_distance())
    measured = one_in_one_out >> dp.m.then_laplace(scale=10.0)
    box = from_opendp(measured, records=lambda record: [5, 7, record])
    assert box.guarantee.epsilon == pytest.approx(2.0)  # distance 2, each moves the sum by 10
    assert isinstance(box.sample([3], None)[0].item(), int)
    with pytest.raises(DpradError, match="span goes with"):
        from_opendp(measured, span=3.0)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with pytest.raises(DpradError, match="give span"):
        from_opendp(dp.m.make_laplace(*space, scale=5.0))
    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    with pytest.raises(DpradError, match="no known distance"):
        from_opendp(dp.m.make_laplace(*vectors, scale=5.0))
    with pytest.raises(DpradError, match="takes a Measurement"):
        from_opendp(3)


def test_a_span_between_whole_numbers_is_rounded_up():
    whole = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    assert from_opendp(whole, span=2.5).guarantee.epsilon == pytest.approx(3.0)


def test_concentrated_and_approximate_measures():
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=4.0)
    promise = from_opendp(gaussian, span=2.0).guarantee
    assert promise.delta(1.0) == pytest.approx(concentrated(2.0**2 / (2 * 4.0**2)).delta(1.0))
    approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    point = from_opendp(approximate, span=2.0).guarantee.point
    assert point[1] == 1e-6 and point[0] > 0
    curve = dp.c.make_zCDP_to_approxDP(gaussian)
    assert 0 < from_opendp(curve, span=2.0).guarantee.delta(1.0) < 0.1


def test_concentrated_promises_cover_the_gaussian():
    """rho-zCDP holds for Gaussian noise with mu = sqrt(2 rho): its profile lies below."""
    from dprad import GaussianDP

    for rho in (0.01, 0.1, 1.0):
        gaussian = GaussianDP(math.sqrt(2 * rho), neighbours="replace-one")
        for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
            assert concentrated(rho).delta(epsilon) >= gaussian.delta(epsilon) - 1e-12


def test_an_audit_subject_has_a_risk():
    """The whole chain for a training: history, guarantee, risk."""
    risk = assess(
        dpsgd(noise_multiplier=1.1, sample_rate=1 / 8, steps=16),
        prior=Prior.unknown(),
        threat=Threat(knows="everything"),
    )
    assert 0 < risk.rad < 1 and risk.kind == "upper-bound"
