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
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.stats import kstest, laplace

from dprad import ZCDP, DpradError, GaussianDP, Prior, PureDP, RenyiDP, Threat, assess, simulate
from dprad.accounting import (
    dpsgd,
    from_accountant,
    from_context,
    from_event,
    from_opacus,
    from_opendp,
    from_pld,
)

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


def test_an_rdp_accountant_keeps_its_moments():
    accountant = RdpAccountant().compose(dp_event.GaussianDpEvent(2.0), 4)
    promise = from_accountant(accountant)
    assert isinstance(promise, RenyiDP) and promise.neighbours == "add-remove"
    assert promise.epsilons[0] == pytest.approx(promise.orders[0] / 2)  # rho = 1/2
    # no worse than its own conversion, no better than the Gaussian itself
    gaussian = GaussianDP(1.0, neighbours="add-remove")
    for delta in (1e-3, 1e-6):
        found = promise.epsilon_at(delta)
        assert gaussian.epsilon_at(delta) <= found <= accountant.get_epsilon(delta) * (1 + 1e-9)
    with pytest.raises(DpradError, match="promise nothing"):
        from_accountant(RdpAccountant().compose(dp_event.NonPrivateDpEvent()))


def test_a_replaced_record_moves_the_sum_by_two():
    """The two accountants of dp-accounting disagree; the larger is right, and is read here."""
    event = dp_event.GaussianDpEvent(2.0)  # noise of two clipping norms
    relation = NeighboringRelation.REPLACE_ONE
    true = GaussianDP(0.5, neighbours="add-remove").replace_one()
    moments = RdpAccountant(neighboring_relation=relation).compose(event)
    assert moments.get_epsilon(1e-5) < 0.6 * true.epsilon_at(1e-5)  # as if it moved by one
    repeated = dp_event.RepeatAndSelectDpEvent(event, 1.0, 1.0)
    for promise in (
        from_accountant(moments),
        from_accountant(PLDAccountant(relation).compose(event)),
        from_event(event, neighbours="replace-one"),
        from_event(repeated, neighbours="replace-one"),
        from_event(dp_event.ComposedDpEvent([event]), neighbours="replace-one"),
    ):
        assert promise.tv >= true.tv - 1e-9
    laplace = from_event(dp_event.LaplaceDpEvent(2.0), neighbours="replace-one")
    assert laplace.epsilon_at(1e-9) > 0.99  # not 1/2


def test_a_pld_accountant_is_read_again():
    event = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
    accountant = PLDAccountant().compose(event, 10)
    promise = from_accountant(accountant)
    for epsilon in (0.0, 0.5, 1.0):
        assert promise.delta(epsilon) == pytest.approx(accountant.get_delta(epsilon), abs=1e-9)
    five = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    five.compose(dp_event.RandomizedResponseDpEvent(0.5, 2), 5)  # which it counts once
    exact = PureDP(math.log(3), neighbours="replace-one").repeated(5)
    assert from_accountant(five).tv >= exact.tv - 1e-9 > five.get_delta(0.0)
    special = PLDAccountant(NeighboringRelation.REPLACE_SPECIAL)
    special.compose(dp_event.RandomizedResponseDpEvent(0.5, 2))
    assert from_accountant(special).neighbours == "add-remove"


def test_zero_concentrated_events():
    assert from_event(dp_event.ZCDpEvent(0.1)) == ZCDP(0.1, neighbours="add-remove")
    three = dp_event.SelfComposedDpEvent(dp_event.ZCDpEvent(0.1), 3)
    found = from_event(three, neighbours="replace-one")
    assert found.rho == pytest.approx(0.3) and found.neighbours == "replace-one"
    shifted = from_event(dp_event.ZCDpEvent(0.1, 0.2))
    assert shifted.epsilons[0] == pytest.approx(0.2 + 0.1 * shifted.orders[0])


def test_sampling_without_replacement():
    """Less than the full batch, and more than one step reveals."""
    inner = dp_event.GaussianDpEvent(2.0)
    event = dp_event.SampledWithoutReplacementDpEvent(100, 10, inner)
    promise = from_event(dp_event.SelfComposedDpEvent(event, 5), neighbours="replace-one")
    # a replaced record moves the sum by two clipping norms: the full batch has mu = 2/2
    assert promise.tv < GaussianDP(math.sqrt(5), neighbours="replace-one").tv
    # one step: the replaced record is in the batch once in ten times
    assert promise.tv > 0.1 * GaussianDP(1.0, neighbours="replace-one").tv
    everybody = dp_event.SampledWithoutReplacementDpEvent(10, 10, inner)
    whole = from_event(everybody, neighbours="replace-one")
    assert whole.epsilons[0] == pytest.approx(whole.orders[0] / 2)
    with pytest.raises(DpradError, match="REPLACE_ONE"):
        from_event(event)


def test_tree_aggregation():
    tree = dp_event.SingleEpochTreeAggregationDpEvent(4.0, 8)
    promise = from_event(tree)
    assert promise.neighbours == "add-remove"
    # a record is in the four nodes above its leaf, each with noise of its own
    exact = GaussianDP(math.sqrt(4) / 4.0, neighbours="add-remove")
    for epsilon in (0.0, 0.5, 1.0):
        assert promise.delta(epsilon) >= exact.delta(epsilon)
    assert promise.tv == pytest.approx(ZCDP(0.125, neighbours="add-remove").tv, rel=0.05)
    special = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    assert from_accountant(special.compose(tree)) == promise
    with pytest.raises(DpradError, match="REPLACE_SPECIAL"):
        from_event(tree, neighbours="replace-one")


def test_matrix_mechanisms_are_gaussian_events():
    """Noise C^-1 Z, as in BandMF: the norm of the columns a record takes part in counts."""
    bands = np.array([1.0, 0.5, 0.25])
    steps, apart = 12, 3
    strategy = sum(np.diag(np.full(steps - k, b), -k) for k, b in enumerate(bands))
    # taking part every third step, the columns are orthogonal: the squares add up
    columns = strategy[:, np.arange(0, steps, apart)]
    sensitivity = float(np.linalg.norm(columns.sum(axis=1)))
    assert sensitivity == pytest.approx(float(np.linalg.norm(columns)))
    promise = from_event(dp_event.GaussianDpEvent(4.0 / sensitivity))
    exact = GaussianDP(sensitivity / 4.0, neighbours="add-remove")
    assert promise.tv == pytest.approx(exact.tv, abs=1e-3) and promise.tv >= exact.tv - 1e-9


def test_events_known_in_different_ways_compose():
    parts = [dp_event.GaussianDpEvent(4.0), dp_event.ZCDpEvent(0.02), dp_event.NoOpDpEvent()]
    found = from_event(dp_event.ComposedDpEvent(parts))
    exact = GaussianDP(0.25, neighbours="add-remove").compose(
        GaussianDP(0.2, neighbours="add-remove")
    )
    for epsilon in (0.0, 0.3, 1.0):
        assert found.delta(epsilon) >= exact.delta(epsilon) - 1e-12
    assert found.tv <= 0.25


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_accountant(3), "takes a PLDAccountant"),
        (lambda: from_accountant(RdpAccountant()), "nothing was released"),
        (lambda: from_accountant(PLDAccountant()), "nothing was released"),
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
    assert box.guarantee == PureDP(1.0, neighbours="add-remove")  # one row moves the sum by 10
    assert isinstance(box.sample([3], None)[0].item(), int)
    with pytest.raises(DpradError, match="span goes with"):
        from_opendp(measured, span=3.0)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with pytest.raises(DpradError, match="give span"):
        from_opendp(dp.m.make_laplace(*space, scale=5.0))
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    one = from_opendp(dp.m.make_laplace(floats, dp.l1_distance(T=float), scale=5.0), span=2.0)
    assert one.guarantee.epsilon == pytest.approx(0.4)
    two = from_opendp(dp.m.make_gaussian(floats, dp.l2_distance(T=float), scale=5.0), span=2.0)
    assert two.guarantee.rho == pytest.approx(0.08)
    with pytest.raises(DpradError, match="L2Distance depends on how far"):
        from_opendp(dp.m.make_gaussian(floats, dp.l2_distance(T=float), scale=5.0))
    with pytest.raises(DpradError, match="takes a Measurement"):
        from_opendp(3)


def test_rows_that_come_and_go_are_not_replaced_at_distance_two():
    """A clamped sum, five values: the add-remove promise says more."""
    values = dp.vector_domain(dp.atom_domain(bounds=(0, 4)))
    measured = dp.t.make_sum(values, dp.symmetric_distance()) >> dp.m.then_laplace(scale=4.0)
    assert measured.map(2) == pytest.approx(2.0)
    promise = from_opendp(measured).guarantee
    risk = assess(promise, prior=Prior.uniform(5)).rad
    assert risk == pytest.approx(0.3437, abs=1e-4)
    coarse = assess(PureDP(2.0, neighbours="replace-one"), prior=Prior.uniform(5)).rad
    assert coarse == pytest.approx(0.4488, abs=1e-4)
    gaussian = dp.t.make_sum(values, dp.symmetric_distance()) >> dp.m.then_gaussian(scale=4.0)
    assert from_opendp(gaussian).guarantee == ZCDP(0.5, neighbours="add-remove")


@pytest.mark.parametrize("make", [dp.t.make_sum, dp.t.make_mean])
def test_a_fixed_number_of_rows_has_no_neighbours_at_distance_one(make):
    """There the map says 0, and reading it as add-remove would promise perfect privacy."""
    values = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=5)
    measured = make(values, dp.symmetric_distance()) >> dp.m.then_laplace(scale=10.0)
    assert measured.map(1) < 1e-9 < measured.map(2)
    promise = from_opendp(measured).guarantee
    assert promise == PureDP(measured.map(2), neighbours="replace-one")

    class Hidden:  # a size that is not declared shows in the map
        input_metric, output_measure, map = (
            measured.input_metric,
            measured.output_measure,
            measured.map,
        )
        input_domain = None

    assert from_opendp(Hidden()).guarantee == promise


def context(unit, loss, size=None, **split):
    return dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=dp.loss_of(**loss),
        domain=dp.vector_domain(dp.atom_domain(bounds=(0, 10)), size=size),
        **split,
    )


def test_contexts():
    two = {"split_evenly_over": 2}
    rows = context({"contributions": 1}, {"epsilon": 1.0}, **two)
    assert from_context(rows) == PureDP(1.0, neighbours="add-remove")
    rows.query().count().laplace().release()
    assert from_context(rows) == PureDP(1.0, neighbours="add-remove")  # what is left counts too
    changed = context({"changes": 1}, {"rho": 0.2}, split_by_weights=[1, 2])
    found = from_context(changed)
    assert found.neighbours == "replace-one" and found.rho == pytest.approx(0.2, rel=1e-9)
    user = from_context(context({"contributions": 3}, {"epsilon": 1.0, "delta": 1e-6}, **two))
    assert user.point == pytest.approx((1.0, 1e-6)) and user.neighbours == "add-remove"
    whole = from_context(context({"contributions": 1}, {"epsilon": 0.7}))
    assert whole == PureDP(0.7, neighbours="add-remove")
    with pytest.raises(DpradError, match="promises nothing"):
        from_context(context({"contributions": 1}, {"epsilon": 1.0}, size=3))
    fixed = from_context(context({"contributions": 2}, {"epsilon": 1.0}, size=3))
    assert fixed == PureDP(1.0, neighbours="replace-one")
    with pytest.raises(DpradError, match="takes a Context"):
        from_context(3)


def test_a_span_between_whole_numbers_is_rounded_up():
    whole = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    assert from_opendp(whole, span=2.5).guarantee.epsilon == pytest.approx(3.0)


def test_concentrated_and_approximate_measures():
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=4.0)
    promise = from_opendp(gaussian, span=2.0).guarantee
    assert promise == ZCDP(2.0**2 / (2 * 4.0**2), neighbours="replace-one")
    approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    point = from_opendp(approximate, span=2.0).guarantee.point
    assert point[1] == 1e-6 and point[0] > 0
    curve = dp.c.make_zCDP_to_approxDP(gaussian)
    assert 0 < from_opendp(curve, span=2.0).guarantee.delta(1.0) < 0.1


def test_an_audit_subject_has_a_risk():
    """The whole chain for a training: history, guarantee, risk."""
    risk = assess(
        dpsgd(noise_multiplier=1.1, sample_rate=1 / 8, steps=16),
        prior=Prior.unknown(),
        threat=Threat(knows="everything"),
    )
    assert 0 < risk.rad < 1 and risk.kind == "upper-bound"
