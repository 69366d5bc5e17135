"""The verb, its result, and what it says."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import polars as pl
import pytest

import dprad
from dprad import DpradError, Prior, PureDP, Threat, assess
from dprad.mechanisms import GRR, Channel, catalogue
from dprad.model import explain

RO = {"neighbours": "replace-one"}


def test_a_guarantee_gives_a_bound():
    risk = assess(PureDP(1.0, **RO), prior=Prior.uniform(10))
    assert risk.kind == "upper-bound" and risk.interval == (0.0, risk.rad)
    assert risk.method == "optimum for one (epsilon, delta) (Theorem B)"
    assert risk.success_in is None and risk.success_out is None
    assert risk.rad == min(b.value for b in risk.bounds if b.measure == "rad" and b.applies)
    assert risk.rero == min(b.value for b in risk.bounds if b.measure == "rero")
    assert risk.baseline == pytest.approx(0.1)
    assert any("promise is kept" in line for line in risk.assumptions)


def test_a_mechanism_gives_the_exact_risk():
    risk = assess(GRR(epsilon=1.0, size=10), prior=Prior.uniform(10))
    assert risk.kind == "exact" and risk.interval == (risk.rad, risk.rad) and risk.bounds == ()
    truth = math.e / (math.e + 9)
    assert risk.success_in == pytest.approx(truth) and risk.success_out == pytest.approx(0.1)
    assert risk.rero == pytest.approx(truth)


def test_special_cases_carry_their_names():
    prior = Prior.from_counts({(a, b): 1 + a + b for a in range(3) for b in range(2)})
    promise = PureDP(1.0, **RO)
    attribute = assess(promise, prior=prior, threat=Threat(knows=["column_0"], target=["column_1"]))
    assert attribute.attribute_advantage == attribute.rad
    assert attribute.membership_advantage is None
    member = assess(promise, prior=prior, threat=Threat(knows="everything"))
    assert member.membership_advantage == pytest.approx(member.rad / (1 - prior.kappa))
    assert member.attribute_advantage is None
    near = assess(promise, prior=prior, threat=Threat(target=["column_0"], loss="absolute", eta=1))
    assert near.attribute_advantage is None


def test_membership_advantage_is_tpr_less_fpr(rng):
    """By simulation: a member against somebody else. Five standard errors."""
    prior = Prior.from_probabilities([0.5, 0.3, 0.2])
    mechanism = GRR(epsilon=1.0, size=3)
    risk = assess(mechanism, prior=prior, threat=Threat(knows="everything"))
    n = 200_000
    target = rng.choice(3, size=n, p=prior.probabilities)
    other = rng.choice(3, size=n, p=prior.probabilities)
    hit = np.mean(mechanism.sample(target, rng) == target)
    differ = target != other
    false = np.mean(mechanism.sample(other[differ], rng) == target[differ])
    # the two groups differ in who the target is; weigh false alarms as RAD does
    expected = hit - (false * (1 - prior.kappa) + np.mean(~differ) * hit)
    assert risk.rad == pytest.approx(expected, abs=0.01)
    assert risk.membership_advantage == pytest.approx(hit - false, abs=0.01)


def test_normalised():
    assert assess(PureDP(1.0, **RO), prior=Prior.uniform(1)).normalised == 0.0
    risk = assess(PureDP(1.0, **RO), prior=Prior.uniform(2))
    assert risk.normalised == pytest.approx(2 * risk.rad)


def test_query_says_what_is_read():
    prior = Prior.from_counts(
        {("a", 0): 1, ("a", 1): 2, ("b", 0): 3, ("b", 1): 4}, columns=["x", "y"]
    )
    mechanism = GRR(epsilon=1.0, size=2)
    by_target = assess(mechanism, prior=prior, threat=Threat(target=["y"]))
    named = assess(mechanism, prior=prior, threat=Threat(target=["y"]), query="y")
    called = assess(mechanism, prior=prior, threat=Threat(target=["y"]), query=lambda t: t["y"])
    assert by_target.rad == named.rad == called.rad
    crossed = assess(mechanism, prior=prior, threat=Threat(target=["y"]), query="x")
    assert crossed.rad < named.rad
    whole = assess(GRR(epsilon=1.0, size=4), prior=prior)
    assert whole.rad == assess(GRR(epsilon=1.0, size=4), prior=prior, query=["x", "y"]).rad


def test_a_tolerance_that_covers_all_is_always_right():
    """One class is no membership question: the guess is right, with or without the person."""
    threat = Threat(loss="absolute", eta=10)
    for mechanism in (GRR(epsilon=1, size=5), Channel(np.full((5, 2), 0.5))):
        risk = assess(mechanism, prior=Prior.uniform(5), threat=threat)
        assert (risk.success_in, risk.success_out) == pytest.approx((1.0, 1.0))
    alone = assess(GRR(epsilon=1, size=1), prior=Prior.uniform(1))
    assert (alone.success_in, alone.success_out) == (1.0, 1.0)


def test_a_query_may_return_codes():
    prior = Prior.from_counts({"a": 1, "b": 2})
    risk = assess(GRR(epsilon=1.0, size=3), prior=prior, query=lambda t: [0, 2])
    channel = np.full((3, 3), 1.0) + (math.e - 1) * np.eye(3)
    channel /= channel.sum(axis=1, keepdims=True)
    assert risk.rad == pytest.approx(assess(Channel(channel[[0, 2]]), prior=prior).rad)


def test_nearly_certain_records_keep_their_digits():
    for weight in (1e13, 1e16):
        prior = Prior.from_counts({"a": weight, "b": 1.0})
        expected = 2 * weight / (weight + 1) ** 2
        risk = assess(dprad.TotalVariation(1.0, **RO), prior=prior)
        assert risk.rad == pytest.approx(expected, rel=1e-9, abs=0)
        assert risk.normalised == pytest.approx(1.0)
        every = assess(PureDP(1.0, **RO), prior=prior)
        assert every.rad == pytest.approx(math.tanh(0.5) * expected, rel=1e-6, abs=0)
        # a sum over outputs is right to the rounding of one, here a few 1e-16
        exact = assess(Channel(np.eye(2)), prior=prior)
        assert exact.rad == pytest.approx(expected, rel=0, abs=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assess(3, prior=Prior.uniform(2)), "guarantee.*or a mechanism"),
        (lambda: assess(3, prior=Prior.unknown()), "guarantee.*or a mechanism"),
        (lambda: assess(GRR, prior=Prior.uniform(2)), "got the class GRR"),
        (lambda: assess(PureDP, prior=Prior.uniform(2)), "got the class PureDP"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.unknown()), "needs a prior"),
        (lambda: assess(GRR(epsilon=1, size=3), prior=Prior.uniform(2)), "size 3, but reads 2"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), query="x"), "query names"),
        (
            lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), query=lambda t: [1]),
            "one value per record",
        ),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), query=[]), "query must be"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), query=5), "query must be"),
        (lambda: assess(PureDP(1, **RO), prior=Prior.uniform(2), query="value"), "leave it out"),
        (lambda: GRR(epsilon=1, size=3).sample([7], np.random.default_rng(0)), "codes 0 .. 2"),
        (lambda: Channel(np.eye(2)).sample([0.5], np.random.default_rng(0)), "codes 0 .. 1"),
        (lambda: GRR(epsilon=-1, size=2), "epsilon must be"),
        (lambda: GRR(epsilon=1, size=0), "size must be"),
        (lambda: assess(PureDP(1, **RO), prior=None), "prior must be a dprad.Prior"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


# -- words -----------------------------------------------------------------------------------------
def test_one_plain_sentence():
    exact = assess(GRR(epsilon=math.log(3), size=2), prior=Prior.uniform(2))
    assert str(exact).startswith("Against GRR with epsilon 1.099, an attacker who knows nothing")
    assert "50 of 100" in str(exact) and "75 of 100" in str(exact) and "\n" not in str(exact)
    bound = assess(PureDP(1.0, **RO), prior=Prior.unknown(), threat=Threat(knows="everything"))
    assert "at most 25 more times in 100 tries" in str(bound) and "0.2450" in str(bound)


def test_bounds_are_rounded_up_and_small_risks_are_told():
    bound = assess(PureDP(0.001, **RO), prior=Prior.unknown())
    assert "at most 3 more times in 10,000 tries" in str(bound)
    none = assess(PureDP(0.0, **RO), prior=Prior.uniform(5))
    assert "gains nothing if the person takes part" in str(none)
    assert "at most 2.5e-04" in str(bound)
    tiny = assess(PureDP(1e-9, **RO), prior=Prior.unknown())
    assert "at most 1 more time in 1,000,000 tries" in str(tiny)
    assert explain.above(0.24491) == "0.2450" and explain.above(0.25) == "0.25"


@pytest.mark.parametrize(
    ("threat", "words"),
    [
        (Threat(knows=["a", "b", "c"], target=["d"]), "knows a, b and c and guesses d"),
        (Threat(loss="absolute", eta=5), "to within 5"),
        (Threat(loss="haversine", eta=200), "to within 200 metres"),
        (Threat(loss=lambda t, g: 0), "closely enough"),
        (Threat(knows=lambda s: s), "knows part of the record"),
        (Threat(knows="everything"), "asks whether it was used"),
    ],
)
def test_the_attacker_in_words(threat, words):
    assert words in explain.attacker(threat.describe())


def test_details_list_every_bound():
    risk = assess(PureDP(1.0, **RO), prior=Prior.uniform(10))
    text = risk.details()
    assert "(Theorem B)" in text and "This holds if:" in text
    assert "needs an add-remove promise" not in text
    assert "needs an add-remove promise" in explain.details(risk, every_bound=True)
    exact = explain.details(assess(GRR(epsilon=1, size=4), prior=Prior.uniform(4)))
    assert "gains most from the person taking part" in exact


def test_a_sample_of_strangers_is_called_what_it_is():
    """Rows that are all different say little about the population."""
    table = pl.DataFrame({"id": range(100), "x": [i % 2 for i in range(100)]})
    doubtful = assess(PureDP(1.0, **RO), prior=Prior.from_data(table))
    assert any("rows are unique" in line for line in doubtful.assumptions)
    plain = assess(PureDP(1.0, **RO), prior=Prior.from_data(table, columns=["x"]))
    assert not any("rows are unique" in line for line in plain.assumptions)


def test_to_dict_is_plain():
    for risk in (
        assess(PureDP(1.0, **RO), prior=Prior.uniform(10)),
        assess(Channel(np.eye(2)), prior=Prior.uniform(2)),
    ):
        plain = json.loads(json.dumps(risk.to_dict()))
        assert plain["rad"] == risk.rad and plain["interval"] == list(risk.interval)
        for name in ("kind", "method", "success_in", "success_out", "normalised", "bounds"):
            assert name in plain


def test_the_public_names():
    for name in dprad.__all__:
        assert getattr(dprad, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dprad.nothing
    assert set(dir(dprad)) == set(dprad.__all__)


@pytest.mark.parametrize("name", catalogue.FAMILIES)
def test_numbers_of_results_are_plain(name):
    """Not those of numpy, which print and compare differently."""
    prior = Prior.from_counts({0.0: 1, 1.0: 2, 2.0: 0.5})
    for threat in (Threat(), Threat(group=lambda values: [v > 0 for v in values])):
        family = catalogue.FAMILIES[name]
        kind, given = catalogue.parts(name, {family.noise.name: 1.0}, prior, threat)
        risk = assess(kind(**given), prior=prior, threat=threat, trials=100)
        numbers = [getattr(risk, field.name) for field in dataclasses.fields(risk)]
        numbers += [*risk.interval, *risk.worst_interval]
        assert not [x for x in numbers if isinstance(x, np.generic) and x is not risk.worst_record]
