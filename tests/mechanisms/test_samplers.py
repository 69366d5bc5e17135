"""Samplers against their own likelihoods: chi-square tests, false-alarm rate 1e-6 each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from dprad.mechanisms import GRR, Channel, Mechanism
from oracles import random_channel

RNG = np.random.default_rng(5)
MECHANISMS = [
    GRR(epsilon=1.0, size=6),
    GRR(epsilon=0.0, size=3),
    GRR(epsilon=2.0, size=1),
    Channel(random_channel(RNG, 4, 7)),
    Channel(np.eye(3)),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_sampler_matches_likelihood(mechanism, rng):
    assert isinstance(mechanism, Mechanism)
    outputs = mechanism.matrix.shape[1] if isinstance(mechanism, Channel) else mechanism.size
    n = 40_000
    for record in range(mechanism.size):
        expected = np.exp(mechanism.log_likelihood(np.arange(outputs), record))
        assert expected.sum() == pytest.approx(1.0)
        drawn = np.bincount(mechanism.sample(np.full(n, record), rng), minlength=outputs)
        assert drawn[expected == 0].sum() == 0
        seen = expected > 0
        if seen.sum() > 1:
            assert chisquare(drawn[seen], n * expected[seen]).pvalue > 1e-6


def test_guarantees_are_met():
    """The largest likelihood ratio is what is promised; with zeros, the profile is."""
    mechanism = GRR(epsilon=1.3, size=5)
    m = np.exp(mechanism.log_likelihood(np.arange(5)[None, :], np.arange(5)[:, None]))
    assert Channel(m).guarantee.epsilon == pytest.approx(1.3)
    assert mechanism.guarantee.epsilon == 1.3
    with_zero = Channel([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
    promise = with_zero.guarantee
    for eps in (0.0, 0.4, 1.0):
        e = np.exp(eps)
        worst = max(
            np.maximum(a - e * b, 0).sum() for a in with_zero.matrix for b in with_zero.matrix
        )
        assert promise.delta(eps) == pytest.approx(worst)
    assert promise.neighbours == "replace-one"
