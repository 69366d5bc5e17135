"""Risks of a training: the three attackers on digits, the paper's rule, words."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dprad
from dprad import DpradError, Prior, Threat
from dprad.attacks import paper_attack
from dprad.data.datasets import digits
from dprad.mechanisms import DPSGD, GRR

torch = pytest.importorskip("torch")
nn = torch.nn
CANDIDATES = [1000, 1003, 1005, 1010, 1013, 1016]


def training(sigma, **changes):
    x, y = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    given = {"clip": 0.1, "steps": 20, "learning_rate": 9.0}
    given |= {"known": (x[:200], y[:200]), "candidates": (x[CANDIDATES], y[CANDIDATES])}
    return DPSGD(model=model, sigma=sigma, **given | changes)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_three_attackers_on_digits(rate):
    labels = training(1.0).labels
    assert len(set(labels.tolist())) < len(labels)  # so that knowing the label is not everything
    for sigma in (20.0, 5.0, 2.0, 0.8):
        risks = dprad.training_risks(
            training(sigma, sample_rate=rate), trials=200, confidence=0.999
        )
        nothing, label, everything = risks
        assert nothing.rad <= label.rad <= everything.rad
        # the rule guesses more often than the attack with the largest extra risk
        assert everything.paper_rule_success >= everything.success > 0.4
        for risk in risks:
            assert risk.interval[0] <= risk.rad <= risk.interval[1]
            assert risk.interval[0] <= risk.bound
            assert risk.error < risk.counted_error
            gap = abs(risk.counted - risk.rad)
            assert gap < 5 * math.hypot(risk.counted_error, risk.error)
            assert risk.paper_rule_interval[0] <= risk.interval[1]
            assert max(0.0, risk.paper_rule) <= risk.paper_rule_success <= 1.0
            assert risk.rero_interval[0] <= risk.rero <= risk.rero_interval[1]
            assert (risk.paper_bound is None) == (rate < 1)
            assert "extra risk" in str(risk) and risk.to_dict()["trainings"] == 200


def test_the_rule_of_the_paper():
    """Scores 3, 1, 2, 0, 1, 2 (mean 1.5): the best, if it is above the mean."""
    training_ = training(1.0)
    prior = training_.prior()
    outputs = np.zeros((1, 2, 6))
    outputs[0, 1] = [3.0, 1.0, 2.0, 0.0, 1.0, 2.0]
    assert paper_attack(training_, prior=prior)(outputs) == [tuple(prior.support[0].tolist())]
    everything = paper_attack(training_, prior=prior, threat=Threat(knows="everything"))
    found = everything(np.repeat(outputs, 6, axis=0), prior.support)
    assert [g is not None for g in found] == [True, False, True, False, False, True]
    with pytest.raises(DpradError, match="for DPSGD"):
        paper_attack(GRR(epsilon=1, size=2), prior=Prior.uniform(2))


def test_bad_input():
    with pytest.raises(DpradError, match="for DPSGD"):
        dprad.training_risks(GRR(epsilon=1, size=2))
    one = training(1.0)
    with pytest.raises(DpradError, match="table of records"):
        dprad.training_risks(one, prior=Prior.unknown())
    for prior, words in [
        (Prior.uniform(7), "holds something else"),
        (Prior.from_counts({"zoe": 1, "amy": 2}), "holds something else"),
        (Prior.from_counts({(0, 1): 1, (1, 1): 2}, columns=["a", "b"]), "query="),
        ("uniform", "must be a dprad.Prior"),
    ]:
        with pytest.raises(DpradError, match=words):
            dprad.training_risks(one, prior=prior, threats=Threat())
    with pytest.raises(DpradError, match=r"list of dprad\.Threat"):
        dprad.training_risks(one, threats=[])
    records = pd.DataFrame({"name": ["zoe"]})
    for wrong in ({"prior": records}, {"threats": records}):
        with pytest.raises(DpradError, match=r"is a DataFrame\.$"):
            dprad.training_risks(one, trials=2, **wrong)
    with pytest.raises(DpradError, match="known must be given"):
        paper_attack(one, prior=one.prior(), threat=Threat(knows=["label"]))(np.zeros((1, 2, 6)))


def test_candidates_are_numbered_not_sorted():
    """A threat on the label, and labels that are all different: still the candidate is read."""
    one = training(2.0)
    x, y = digits()
    rows = [np.flatnonzero(y[1000:] == label)[0] + 1000 for label in (2, 0, 1)]
    one = training(2.0, candidates=(x[rows], y[rows]))
    prior = Prior.from_counts({(0, 2): 2, (1, 0): 49, (2, 1): 49}, columns=["candidate", "label"])
    label = dprad.training_risks(one, prior=prior, threats=Threat(target=["label"]), trials=150)[0]
    whole = dprad.training_risks(one, prior=prior, threats=Threat(), trials=150)[0]
    assert label.rad == pytest.approx(whole.rad, abs=1e-12)
    few = dprad.training_risks(one, prior=Prior.from_counts({0: 2, 1: 49, 2: 49}), trials=150)
    assert len(few) == 2 and few[0].rad == pytest.approx(whole.rad, abs=1e-12)
