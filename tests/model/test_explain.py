"""Results in words: odds that are possible, what is left out, and what is not known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import dprad
from dprad import (
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    Threat,
    TotalVariation,
    assess,
    audit,
    by_group,
    calibrate,
)
from dprad.mechanisms import (
    GRR,
    LGRR,
    LSUE,
    RAPPOR,
    RSFD,
    Channel,
    Composed,
    Gaussian,
    Mechanism,
    Repeated,
)
from dprad.model import explain

RO, AR = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
UNEVEN = Prior.from_counts({"healthy": 79, "asthma": 12, "diabetes": 5, "lung": 3, "rare": 1})


# -- the odds --------------------------------------------------------------------------------------
def test_exact_odds_say_who_what_and_which_release():
    first = str(assess(GRR(epsilon=1.0, size=5), prior=UNEVEN)).splitlines()[0]
    assert first == (
        "Against GRR with epsilon 1, an attacker who knows nothing about the person and guesses "
        "the whole record is right in 31 of 100 tries if the person is not in the data, and in 40 "
        "of 100 if they are (extra risk 0.0916, exact)."
    )


def test_the_odds_of_a_bound_are_possible():
    risk = assess(PureDP(8.0, **AR), prior=Prior.uniform(11))
    assert "may rise from 9 to 100 of 100 tries" in str(risk) and risk.rad < 0.91
    tight = replace(risk, rad=0.91, interval=(0.0, 0.91), baseline=0.79, rero=1.0)
    assert "may rise from 9 to 100 of 100" in str(tight)
    low = replace(risk, rad=0.2, interval=(0.0, 0.2), baseline=0.3, rero=0.6)
    assert "may rise from 30 to 50 of 100" in str(low)
    # nobody is right more often than is possible in all
    assert "may rise from 20 to 40 of 100" in str(replace(low, rero=0.4))
    for baseline in (0.0, 1e-6, 0.004, 0.5, 0.995, 1.0):
        for rad in (1e-7, 0.0004, 0.013, 0.5, 0.999, 1.0):
            text = str(replace(risk, rad=rad, interval=(0.0, rad), baseline=baseline, rero=1.0))
            found = re.search(r"from (fewer than 1|[\d,]+) to ([\d,]+) of ([\d,]+)", text)
            start, end, n = (int(x.replace(",", "").replace("fewer than 1", "0"))
                             for x in found.groups())  # fmt: skip
            assert end <= n and (end - start) / n >= rad - 1e-9
            assert start <= baseline * n + 0.5


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (0.95, "95%"),
        (0.999, "99.9%"),
        (0.9999999999, "99.99999999%"),
        (1 - 1e-16, "99.9999999999%"),
    ],
)
def test_no_confidence_is_called_certain(level, said):
    promise = PureDP(1.0, neighbours="replace-one")
    found = audit(lambda r, rng: 0, claim=promise, prior=Prior.uniform(2), trials=100)
    shown = str(replace(found, confidence=level, verdict="violated"))
    assert f"at {said} confidence" in shown


def test_a_class_that_cannot_describe_itself_is_told_how():
    class Own(Mechanism):
        guarantee = None

        def sample(self, records, rng):
            return np.asarray(records) + rng.normal(size=len(records))

        def log_likelihood(self, outputs, records):
            return -((outputs - np.asarray(records)) ** 2) / 2

    with pytest.raises(DpradError, match="Own must be a dataclass"):
        assess(Own(), prior=Prior.uniform(2), trials=100)


def test_an_unknown_prior_says_so():
    text = str(assess(PureDP(1.0, **RO), prior=Prior.unknown()))
    assert "right at most 25 more times in 100 tries if the person takes part, whatever" in text
    assert "whatever was known before (extra risk at most 0.2450)." in text


def test_membership_has_its_own_words():
    member = Threat(knows="everything")
    exact = str(assess(GRR(epsilon=1.0, size=5), prior=UNEVEN, threat=member))
    assert (
        "says 'in the data' in 31 of 100 tries if it was not, and in 40 of 100 if it was" in exact
    )
    bound = str(assess(PureDP(1.0, **RO), prior=UNEVEN, threat=member))
    assert "says 'in the data' at most" in bound and "may rise" not in bound


def test_the_blind_guess_is_told_once_and_apart():
    risk = assess(PureDP(8.0, **AR), prior=UNEVEN)
    assert "79 of 100" not in str(risk)
    assert risk.details().count("blind guess") == 1 and "79 of 100" in risk.details()
    assert f"Method: {risk.method}." in risk.details() and risk.method not in str(risk)


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (GRR(epsilon=1.0, size=5), "GRR with epsilon 1"),
        (GRR(epsilon=0.4054651, size=5), "GRR with epsilon 0.4055"),
        (Gaussian(sigma=12345.678), "Gaussian with sigma 12,350"),
        (Repeated(GRR(epsilon=0.5, size=2), 3), "3 runs of GRR with epsilon 0.5"),
        (Composed([GRR(epsilon=0.5, size=2), GRR(epsilon=1, size=2)]), "2 releases together"),
        (Channel([[0.5, 0.5], [0.4, 0.6]]), "the mechanism Channel"),
        (LSUE(size=3, epsilon_inf=2.0), "one report of LSUE with epsilon_inf 2 and epsilon_one 1"),
        (
            LGRR(size=3, epsilon_inf=2.0, epsilon_one=0.5, reports=1000),
            "1,000 reports of LGRR with epsilon_inf 2 and epsilon_one 0.5",
        ),
        (RAPPOR(size=3, f=0.25, reports=7), "7 reports of RAPPOR with f 0.25"),
        (
            RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0),
            "RSFD with epsilon 1 (1.49 for the whole record)",
        ),
        (RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0, protects="record"), "RSFD with epsilon 1"),
        (PureDP(8.0, **AR), "a promise of epsilon 8 (add-remove)"),
        (ApproxDP(1.0, 1e-5, **RO), "a promise of epsilon 1 and delta 1e-05 (replace-one)"),
        (GaussianDP(0.5, **AR), "a promise of mu 0.5 (add-remove)"),
        (TotalVariation(0.3, **RO), "a promise of total variation 0.3 (replace-one)"),
        (dprad.Profile(lambda e: 0.1, **RO), "a promised profile (replace-one)"),
    ],
)
def test_subjects_in_a_few_words(subject, words):
    assert explain.subject(subject.describe()) == words


def test_how_many_reports_are_seen_is_said():
    """Nobody should take the risk of one report for that of all."""
    prior = dprad.Prior.uniform(5)
    once = assess(LSUE(size=5, epsilon_inf=2.0), prior=prior)
    assert any("single report" in said and "add to the risk" in said for said in once.assumptions)
    often = assess(LSUE(size=5, epsilon_inf=2.0, reports=3), prior=prior)
    assert any("at most 3 reports" in said for said in often.assumptions)
    for reports, words in ((1, "after one report"), (3, "after 3 reports")):
        plan = dprad.calibrate(LSUE, max_risk=0.1, prior=prior, reports=reports)
        assert words in str(plan)


def test_functions_are_named():
    plain = {"kind": "BlackBox", "function": "noisy_mean"}
    assert explain.subject(plain) == "the function noisy_mean"


# -- who is left out -------------------------------------------------------------------------------
def test_the_most_exposed_person_and_stronger_attackers_follow():
    _, exposed, asked = str(assess(GRR(epsilon=1.0, size=5), prior=UNEVEN)).splitlines()
    assert exposed == (
        "For the most exposed person the extra risk is 0.2532; the number above is the average "
        "over people."
    )
    assert asked == ("Asked about an attacker who knows nothing; one who knows more may gain more.")
    lines = str(assess(PureDP(1.0, **RO), prior=UNEVEN, threat=Threat(knows="everything")))
    assert "For the most exposed person the extra risk is at most 0.4575;" in lines
    assert "Asked about" not in lines  # nobody knows more than everything


def test_nothing_follows_if_no_one_gains_more():
    even = assess(GRR(epsilon=1.0, size=4), prior=Prior.uniform(4))
    assert even.worst == pytest.approx(even.rad) and "\n" not in str(even)
    assert "\n" not in str(assess(PureDP(0.0, **RO), prior=UNEVEN))
    assert "most exposed" not in str(replace(assess(GRR(epsilon=1.0, size=5), prior=UNEVEN),
                                             worst=None))  # fmt: skip


def test_a_group_is_named():
    prior = dprad.patients.prior()
    threat = Threat(knows=["age"], target=["diagnosis"], group='smoker = "yes"')
    text = str(assess(GRR(epsilon=1.0, size=5), prior=prior, threat=threat, query="diagnosis"))
    assert 'epsilon 1, for people with smoker = "yes", an attacker who knows age' in text
    assert 'the average over people with smoker = "yes".' in text
    assert "Asked about an attacker who knows age; one who knows more may gain more." in text


def test_tables_of_groups_round_bounds_up():
    text = str(by_group(PureDP(1.0, **RO), prior=UNEVEN, by="record"))
    assert text.splitlines()[1].split(None, 2) == [
        "rare", "1%", "at most 0.4575  at most 0.4575",
    ]  # fmt: skip
    assert "Everybody, on average: extra risk at most" in text


# -- limits ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("interval", "kind", "words"),
    [
        ((0.2, 0.2), "exact", "exceeds"),
        ((0.0, 0.2), "upper-bound", "may exceed"),
        ((0.05, 0.2), "estimate", "may exceed"),
        ((0.15, 0.2), "estimate", "exceeds"),
        ((0.1, 0.1), "exact", "stays within"),
        ((0.0, 0.09), "upper-bound", "stays within"),
    ],
)
def test_only_what_is_not_known_may_be(interval, kind, words):
    assert explain.compared(interval, kind, 0.1) == words


def test_calibrations_say_whose_risk_is_kept():
    average = str(calibrate(GRR, max_risk=0.1, prior=UNEVEN))
    assert "keeps the extra risk at or below 0.1 on average over people. Any less" in average
    assert "For the most exposed person the extra risk is 0.27" in average
    one = str(calibrate(GRR, max_risk=0.1, prior=UNEVEN, worst=True))
    assert "keeps the extra risk of the most exposed person at or below 0.1. Any less" in one
    assert "Against" not in one and "on average" not in one


def test_less_noise_is_not_known_to_exceed_a_bound():
    promise = str(calibrate(PureDP, max_risk=0.1, prior=UNEVEN, **RO))
    assert "Less noise is not known to keep it." in promise and "would exceed" not in promise
    named = str(calibrate(PureDP, max_risk=0.1, prior=UNEVEN, measure="theorem-1", **RO))
    assert "Less noise would exceed the bound, but not necessarily the risk." in named
    # an exact average beside a bound for one person
    plan = calibrate(GRR, max_risk=0.1, prior=UNEVEN, worst=True)
    rough = replace(plan, risk=replace(plan.risk, worst_kind="upper-bound"))
    assert "Less noise is not known to keep it." in str(rough)


@pytest.mark.parametrize(
    ("value", "rising", "text"),
    [
        (0.4054651, True, "0.4054"),
        (0.4054651, False, "0.4055"),
        (3.1059, True, "3.105"),
        (99999.9, False, "100000"),
        (1234567.8, False, "1235000"),
        (0.1, True, "0.1"),
        (0.1, False, "0.1"),
        (12.3, False, "12.3"),
        (1234567, True, "1234567"),
        (3.33333e-13, True, "3.333e-13"),
    ],
)
def test_four_digits_on_the_safe_side(value, rising, text):
    assert explain.safely(value, rising) == text


# -- audits ----------------------------------------------------------------------------------------
def test_a_violation_is_not_told_beside_a_harmless_number():
    coin, prior = GRR(epsilon=2.0, size=2), Prior.uniform(2)
    broken = audit(coin, claim=PureDP(1.0, **RO), prior=prior, trials=3000)
    assert str(broken).startswith("Violated") and "but 1 was claimed" in str(broken)
    assert "extra risk" not in str(broken) and "The attack guessed in" in str(broken)
    vague = str(replace(broken, epsilon_lower=0.5, delta=1e-5))
    assert (
        "the outputs tell more than the claimed epsilon 1 allows (replaced records, delta" in vague
    )
    kept = audit(coin, claim=PureDP(2.0, **RO), prior=prior, trials=3000)
    assert kept.verdict == "consistent" and "extra risk" in str(kept)
