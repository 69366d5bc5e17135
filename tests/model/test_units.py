"""Groups, repetitions, neighbours that are not stated, and summaries of a promise."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import dprad
from dprad import (
    ZCDP,
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    Profile,
    PureDP,
    RenyiDP,
    Threat,
    TotalVariation,
    assess,
    audit,
    calibrate,
)
from dprad.accounting import dpsgd
from dprad.mechanisms import catalogue
from oracles import renyi

RO = {"neighbours": "replace-one"}
AR = {"neighbours": "add-remove"}
UNKNOWN = {"neighbours": "unknown"}
EPS = np.linspace(0.0, 5.0, 26)
ORDERS = 1.0 + np.geomspace(0.05, 30.0, 16)


def chain(rng, steps, outputs):
    """Laws of the output on a chain of neighbours, each a small step from the one before."""
    laws = [rng.dirichlet(np.ones(outputs)) * 0.9 + 0.1 / outputs]
    for _ in range(steps):
        law = laws[-1] * np.exp(rng.uniform(-0.4, 0.4, outputs))
        laws.append(law / law.sum())
    return np.array(laws)


def profile(p, q, epsilon=EPS):
    return np.maximum(p - np.exp(epsilon)[:, None] * q, 0.0).sum(axis=1)


def promises_of(laws, near):
    """What is true of every step of the chain, in both directions."""
    steps = [(a, b) for a, b in zip(laws[1:], laws[:-1], strict=True)]
    steps += [(b, a) for a, b in steps]
    most = max(float(np.log(a / b).max()) for a, b in steps)
    half = most / 2
    delta = max(float(profile(a, b, np.array([half]))[0]) for a, b in steps)
    tv = max(float(profile(a, b, np.zeros(1))[0]) for a, b in steps)
    curve = np.max([renyi(a, b, ORDERS) for a, b in steps], axis=0)
    return [
        PureDP(most, **near),
        ApproxDP(half, delta, **near),
        TotalVariation(tv, **near),
        RenyiDP(ORDERS, curve, **near),
        ZCDP(float(np.max(curve / ORDERS)) * 1.02, **near),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_above_chains_of_neighbours(seed):
    """Profiles between the ends of random chains: 100 here, 500 in the campaign."""
    rng = np.random.default_rng(seed)
    for i in range(5):
        size = int(rng.integers(2, 6))
        near = AR if i % 2 else RO
        laws = chain(rng, 2 * size, int(rng.integers(2, 5)))
        for promise in promises_of(laws, near):
            if promise.moments and i > 1:
                continue
            grouped = promise.group(size)
            for start in range(size):
                p, q = laws[start + size], laws[start]
                true = np.maximum(profile(p, q), profile(q, p))
                assert np.all(grouped.delta(EPS) >= true - 1e-12), (promise, size)
            if near == AR:  # so many removed, so many added
                p, q = laws[2 * size], laws[0]
                true = np.maximum(profile(p, q), profile(q, p))
                assert np.all(grouped.replace_one().delta(EPS) >= true - 1e-12), (promise, size)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_groups_are_the_iterated_curve(size):
    """f after f after f, in plain numbers."""
    promises = [
        PureDP(0.4, **RO),
        ApproxDP(0.3, 0.01, **RO),
        GaussianDP(0.3, **RO).compose(PureDP(0.1, **RO)),
    ]
    for promise in promises:
        power = np.linspace(0.0, 1.0, 21)
        for _ in range(size):
            power = 1 - promise.tradeoff(power)
        assert 1 - promise.group(size).tradeoff(np.linspace(0, 1, 21)) == pytest.approx(
            power, abs=2e-5
        )


def test_groups_that_are_known_by_hand():
    assert GaussianDP(0.5, static=True, **AR).group(4) == GaussianDP(2.0, static=True, **AR)
    assert TotalVariation(0.3, **RO).group(4).tv == 1.0
    assert ZCDP(0.1, **RO).group(3).rho == pytest.approx(0.9)
    assert PureDP(1.0, **RO).group(1) == PureDP(1.0, **RO)
    pure = PureDP(0.5, **RO).group(4)
    assert pure.epsilon_at(1e-12) == pytest.approx(2.0, abs=1e-6) and pure.tv < PureDP(2.0, **RO).tv
    # one record replaced is one removed and one added
    assert PureDP(0.5, **RO).group(2).tv == pytest.approx(PureDP(0.5, **AR).replace_one().tv)
    with pytest.raises(DpradError, match="size must be"):
        pure.group(0)


def test_groups_of_a_training_keep_both_directions():
    training = dpsgd(noise_multiplier=2.0, sample_rate=0.1, steps=10)
    pair = training.group(2)
    assert not pair.symmetric and pair.tv > training.tv
    present, absent = (d.delta(EPS) for d in pair.directions)
    assert np.max(np.abs(present - absent)) > 1e-4
    assert np.all(pair.delta(EPS) >= np.maximum(present, absent) - 1e-15)


# -- neighbours that are not stated ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("promise", "prior"),
    [
        (PureDP(1.0, **UNKNOWN), Prior.uniform(5)),
        (ApproxDP(0.5, 0.01, **UNKNOWN), Prior.unknown()),
        (GaussianDP(0.7, **UNKNOWN), Prior.uniform(5)),
        (ZCDP(0.2, **UNKNOWN), Prior.unknown()),
    ],
    ids=repr,
)
def test_the_worse_reading_counts_and_both_are_named(promise, prior):
    risk = assess(promise, prior=prior)
    one, two = (assess(promise.reading(n), prior=prior) for n in ("replace-one", "add-remove"))
    assert risk.rad == max(one.rad, two.rad) == two.rad and risk.worst == two.worst
    assert risk.readings == {"replace-one": one.rad, "add-remove": two.rad}
    assert "does not say what it compares" in str(risk) and "not stated" in str(risk)
    assert risk.to_dict()["readings"] == risk.readings


def test_an_unstated_claim_gets_the_benefit_of_the_worse_reading():
    def leak(record, rng):
        return record if rng.random() < 0.85 else 1 - record  # log(0.85/0.15) = 1.73

    asked = {"prior": Prior.uniform(2), "trials": 1500, "rng": 0}
    assert audit(leak, claim=PureDP(1.0, **UNKNOWN), **asked).verdict == "consistent"
    assert audit(leak, claim=PureDP(1.0, **RO), **asked).verdict == "violated"
    with pytest.raises(DpradError, match="may be, about replaced"):
        audit(leak, claim=PureDP(1.0, **UNKNOWN), absent=0, **asked)


def test_calibration_holds_the_worse_reading():
    plan = calibrate(PureDP, max_risk=0.1, prior=Prior.uniform(4), neighbours="unknown")
    worse = assess(PureDP(plan.value, **AR), prior=Prior.uniform(4))
    assert worse.rad <= 0.1 < worse.rad * 1.001
    plan = calibrate(GaussianDP, max_risk=0.1, measure="tv", neighbours="unknown")
    assert GaussianDP(2 * plan.value, **RO).tv == pytest.approx(0.1, rel=1e-5)


# -- units by name -------------------------------------------------------------------------------
def test_units_of_a_named_promise():
    made = catalogue.promise({"mu": 0.1, "times": 4, "people": 3, **RO})
    assert made.mu == pytest.approx(0.6)
    plan = calibrate(
        catalogue.counted(GaussianDP, {"times": 4, "people": 3}), parameter="mu", max_risk=0.1, **RO
    )
    once = calibrate(GaussianDP, max_risk=0.1, **RO)
    assert plan.value == pytest.approx(once.value / 6, rel=1e-5) and plan.family == "GaussianDP"
    with pytest.raises(DpradError, match="times must be"):
        catalogue.promise({"mu": 0.1, "times": 0, **RO})


# -- summaries -----------------------------------------------------------------------------------
FITTED = [
    PureDP(1.0, **RO),
    PureDP(0.2, **AR).repeated(30),
    ZCDP(0.3, **RO),
    RenyiDP([2.0, 8.0, 32.0], [0.1, 0.4, 1.6], **RO),
    GaussianDP(1.3, **RO),
    dpsgd(noise_multiplier=1.0, sample_rate=0.02, steps=200),
    Profile(lambda e: 0.3 * math.exp(-3 * e), **RO).compose(PureDP(0.3, **RO)),
]


@pytest.mark.parametrize("promise", FITTED, ids=repr)
def test_a_fitted_gaussian_lies_above_and_hardly(promise):
    """On 10,000 points; a slightly smaller mu is below somewhere."""
    left_out = 1e-6
    fit = promise.fit_gaussian(ignore=left_out)
    e = np.linspace(0.0, 1.2 * float(promise.loss.losses[-1]), 10_000)
    assert fit.neighbours == promise.neighbours
    assert np.all(fit.delta(e) + left_out >= promise.delta(e))
    alpha = np.geomspace(1e-12, 0.5, 10_000)
    smaller = GaussianDP(fit.mu * 0.99, **RO)
    assert np.any(smaller.tradeoff(alpha) > promise.tradeoff(alpha))
    gap = promise.regret(fit)
    assert 0 <= gap < 0.07 and fit.regret(promise) <= left_out
    prior = 1 / (1 + np.exp(e))
    assert gap == pytest.approx(np.max(prior * (fit.delta(e) - promise.delta(e))), abs=1e-4)


def test_no_gaussian_covers_a_leak():
    with pytest.raises(DpradError, match="no Gaussian covers"):
        ApproxDP(1.0, 1e-3, **RO).fit_gaussian()
    assert ApproxDP(1.0, 1e-3, **RO).fit_gaussian(ignore=0.01).mu < 1.24


def test_summaries_of_randomised_response_by_hand():
    """Two outputs, e to 1: the best tests are known."""
    promise, e = PureDP(1.0, **AR), math.e
    assert promise.advantage == promise.tv == pytest.approx((e - 1) / (e + 1))
    assert promise.bayes_security == pytest.approx(2 / (e + 1))
    assert promise.tpr_at(fpr=0.1) == pytest.approx(0.1 * e)
    assert promise.tpr_at(fpr=0.9) == pytest.approx(1 - 0.1 / e)
    assert promise.ppv(prior=0.1) == pytest.approx(0.1 * e / (0.1 * e + 0.9))
    assert promise.posterior(prior=0.1) == pytest.approx(
        (0.1 / (0.1 + 0.9 * e), 0.1 * e / (0.1 * e + 0.9))
    )
    assert promise.ppv(prior=0.0) == 0.0 and promise.ppv(prior=1.0) == 1.0


def test_ppv_and_posterior_with_a_delta():
    promise = ApproxDP(1.0, 1e-3, **AR)
    assert promise.ppv(prior=0.1) == 1.0  # a rare output may reveal all
    tpr = 0.01 * math.e + 1e-3
    assert promise.ppv(prior=0.1, fpr=0.01) == pytest.approx(0.1 * tpr / (0.1 * tpr + 0.9 * 0.01))
    assert promise.posterior(prior=0.1) == (0.0, 1.0)
    # each end may fail: with 1 - e^(1-x) = 1e-3/0.01
    x = 1.0 - math.log(1 - 0.1)
    assert promise.posterior(prior=0.5, failure=0.01)[1] <= 1 / (1 + math.exp(-x)) + 1e-12


def test_posterior_holds_for_random_pairs(rng):
    """The belief after an output leaves the interval with at most the stated probability."""
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(6), 2) * 0.99 + 0.01 / 6
        epsilon, prior, failure = (
            rng.uniform(0, 1.5),
            rng.uniform(0.05, 0.95),
            rng.uniform(0.05, 0.4),
        )
        delta = max(float(profile(a, b, np.array([epsilon]))[0]) for a, b in ((p, q), (q, p)))
        low, high = ApproxDP(epsilon, delta, **AR).posterior(prior=prior, failure=failure)
        belief = prior * p / (prior * p + (1 - prior) * q)
        for law in (p, q):
            assert law[belief > high * (1 + 1e-9)].sum() <= failure + 1e-12
            assert law[belief < low * (1 - 1e-9)].sum() <= failure + 1e-12


@pytest.mark.parametrize(
    ("measure", "limit"),
    [
        (lambda p: p.tpr_at(fpr=0.01), 0.05),
        (lambda p: p.ppv(prior=0.5, fpr=0.1), 0.7),
        (lambda p: p.posterior(prior=0.1, failure=0.01)[1], 0.3),
        (lambda p: 1 - p.bayes_security, 0.2),
        (lambda p: p.epsilon_at(1e-5), 2.0),
        ("advantage", 0.2),
    ],
    ids=["tpr", "ppv", "posterior", "bayes security", "epsilon", "advantage"],
)
def test_every_summary_can_be_calibrated(measure, limit):
    plan = calibrate(GaussianDP, max_risk=limit, measure=measure, **AR)
    value = (lambda p: p.advantage) if measure == "advantage" else measure
    assert value(plan.mechanism) <= limit < value(GaussianDP(plan.value * 1.001, **AR))
    assert "Any less noise would exceed it" in str(plan)


def test_summaries_against_riskcal():
    riskcal = pytest.importorskip("riskcal.analysis.conversions")
    for mu in (0.3, 2.0):
        promise = GaussianDP(mu, **AR)
        assert promise.advantage == pytest.approx(riskcal.get_advantage_from_gdp(mu))
        assert promise.tpr_at(fpr=0.01) == pytest.approx(1 - riskcal.get_beta_from_gdp(mu, 0.01))
    promise = ApproxDP(1.0, 1e-5, **AR)
    assert promise.advantage == pytest.approx(riskcal.get_advantage_from_adp(1.0, 1e-5))
    beta = riskcal.get_beta_from_adp(alpha=0.01, epsilon=1.0, delta=1e-5)
    assert promise.tpr_at(fpr=0.01) == pytest.approx(1 - beta)
    assert assess(promise, prior=Prior.unknown(), threat=Threat(knows="everything")).rad <= 0.4623


def test_the_table_in_the_documentation():
    """Our numbers beside riskcal's, as printed."""
    riskcal = pytest.importorskip("riskcal.analysis.conversions")
    text = (Path(__file__).parents[2] / "docs/units.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(\w+)\((.*?)\)` ((?:\| [\d.]+ ){4})\|", text)
    assert [name for name, _, _ in rows] == ["PureDP", "ApproxDP", "GaussianDP", "ZCDP"]
    point = lambda e, d=0.0: (  # noqa: E731
        riskcal.get_advantage_from_adp(e, d),
        riskcal.get_beta_from_adp(alpha=0.1, epsilon=e, delta=d),
    )
    theirs = {
        "PureDP": point,
        "ApproxDP": point,
        "GaussianDP": lambda mu: (
            riskcal.get_advantage_from_gdp(mu),
            riskcal.get_beta_from_gdp(mu, 0.1),
        ),
        "ZCDP": lambda rho: (
            riskcal.get_advantage_from_zcdp(rho, grid_size=60),
            riskcal.get_beta_from_zcdp(rho, 0.1, grid_size=300),
        ),
    }
    for name, numbers, printed in rows:
        given = [float(x) for x in numbers.split(",")]
        promise = getattr(dprad, name)(*given, **RO)
        free = assess(promise, prior=Prior.unknown(), threat=Threat(knows="everything")).rad
        ten = assess(promise, prior=Prior.uniform(10)).rad
        advantage, beta = theirs[name](*given)
        found = [float(x) for x in printed.strip("| ").split(" | ")]
        assert found == pytest.approx([free, ten, advantage, 0.9 - beta], abs=6e-5)
        assert free < advantage and ten < 0.9 - beta
