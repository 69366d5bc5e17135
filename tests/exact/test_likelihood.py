"""A likelihood that is not the sampler's is refused; a right one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import DpradError, Prior, assess, by_group
from dprad.exact import likelihood
from dprad.mechanisms import Composed, Mechanism
from effort import some


class Told:
    """Gives the record away, and says something else."""

    size = 3

    def __init__(self, log):
        self.log = log

    def sample(self, records, rng):
        return np.asarray(records)

    def log_likelihood(self, outputs, records):
        same = np.asarray(outputs) == np.asarray(records)
        return np.where(same, *self.log)


@pytest.mark.parametrize("log", [(-20.0, -20.0), (-math.log(3), -math.log(3)), (-0.1, -2.0)])
def test_a_flat_likelihood_is_not_believed(log):
    for subject in (Told(log), Composed([Told(log), Told(log)])):
        for _ in range(2):
            with pytest.raises(DpradError, match="does not belong to sample"):
                assess(subject, prior=Prior.uniform(3))
    with pytest.raises(DpradError, match="does not belong to sample"):
        by_group(Told(log), prior=Prior.uniform(3), by="record")


@pytest.mark.parametrize("log", [(np.nan, -5.0), (np.inf, 0.0), (-np.inf, -np.inf), ("a", "b")])
def test_what_is_no_likelihood_is_one_sentence(log):
    with pytest.raises(DpradError, match="must give numbers"):
        assess(Told(log), prior=Prior.uniform(3))


class Noise(Mechanism):
    """Laplace noise of one scale, and the likelihood of another."""

    guarantee = None

    def __init__(self, scale, said, tilt=0.0):
        self.scale, self.said, self.tilt = scale, said, tilt

    def describe(self):
        return {"kind": "Noise"}

    def sample(self, records, rng):
        return records + rng.laplace(scale=self.scale, size=len(records))

    def log_likelihood(self, outputs, records):
        return -np.abs(outputs - records) / self.said + self.tilt * records


def test_noise_of_another_scale():
    prior = Prior.uniform(8)
    for scale, said, tilt in ((1.0, 2.0, 0.0), (0.1, 10.0, 0.0), (1.0, 1.0, 0.5)):
        with pytest.raises(DpradError, match="does not belong to sample"):
            assess(Noise(scale, said, tilt), prior=prior, trials=100)
    for scale in (1e-9, 0.3, 1.0, 30.0):
        assert assess(Noise(scale, scale), prior=prior, trials=100).kind == "estimate"


def test_right_likelihoods_are_not_refused(monkeypatch):
    """The margins hold: with a chance of 5% for each set, hardly one is crossed."""
    monkeypatch.setattr(likelihood, "RARE", 0.05)
    refused = 0
    for seed in range(some(300, 8)):
        try:
            assess(Noise(1.0, 1.0), prior=Prior.uniform(3), trials=10, rng=seed)
        except DpradError:
            refused += 1
    assert refused <= some(30, 1)
