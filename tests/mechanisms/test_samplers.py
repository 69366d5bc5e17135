"""Samplers against their own likelihoods: chi-square tests, false-alarm rate 1e-6 each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from dprad.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    Channel,
    Mechanism,
    SubsetSelection,
    UnaryEncoding,
)
from dprad.mechanisms import bits as packed
from oracles import random_channel

RNG = np.random.default_rng(5)
MECHANISMS = [
    GRR(epsilon=1.0, size=6),
    GRR(epsilon=0.0, size=3),
    GRR(epsilon=2.0, size=1),
    GRR(epsilon=1.0, size=4, delta=0.2),
    Channel(random_channel(RNG, 4, 7)),
    Channel(np.eye(3)),
]
SETS = [
    OUE(epsilon=1.0, size=5),
    OUE(epsilon=0.0, size=3),
    SUE(epsilon=1.5, size=4),
    SUE(epsilon=0.5, size=4, delta=0.1),
    UnaryEncoding(size=5, p=0.9, q=0.015),
    UnaryEncoding(size=3, p=1.0, q=0.0),
    UnaryEncoding(size=3, p=1.0, q=1.0),
    SubsetSelection(epsilon=0.2, size=6),
    SubsetSelection(epsilon=1.0, size=6),
    SubsetSelection(epsilon=3.0, size=4),
    SubsetSelection(epsilon=0.0, size=1),
]
ALPHA = 1e-6


def agree(drawn, expected, n):
    """Counts against probabilities; nothing impossible was drawn."""
    assert expected.sum() == pytest.approx(1.0)
    assert drawn[expected == 0].sum() == 0
    seen = expected > 0
    if seen.sum() > 1:
        assert chisquare(drawn[seen], n * expected[seen]).pvalue > ALPHA


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_sampler_matches_likelihood(mechanism, rng):
    assert isinstance(mechanism, Mechanism)
    outputs = mechanism.matrix.shape[1] if isinstance(mechanism, Channel) else mechanism.size
    n = 40_000
    for record in range(mechanism.size):
        expected = np.exp(mechanism.log_likelihood(np.arange(outputs), record))
        drawn = np.bincount(mechanism.sample(np.full(n, record), rng), minlength=outputs)
        agree(drawn, expected, n)


@pytest.mark.parametrize("epsilon", [0.0, 0.6, 1.1])
@pytest.mark.parametrize("small", [0, 100])
def test_subsets_are_uniform_however_they_begin(epsilon, small, rng, monkeypatch):
    """The ways of large sets (a share of bits, many values at once), forced on small ones."""
    from dprad.mechanisms import subset

    monkeypatch.setattr(subset, "SMALL", small)
    monkeypatch.setattr(subset, "BELOW", 0.5)
    monkeypatch.setattr(subset, "MANY", 0)
    mechanism, n = SubsetSelection(epsilon=epsilon, size=7), 60_000
    every = packed.pack((np.arange(2**7)[:, None] >> np.arange(7)) & 1 == 1)
    sets = mechanism.sample(np.full(n, 3), rng)
    agree(
        np.bincount(sets[:, 0].astype(int), minlength=2**7),
        np.exp(mechanism.log_likelihood(every, 3)),
        n,
    )


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5, 6.0])
def test_pairs_in_large_subsets(epsilon, rng):
    """How often two values are in together: what uniform sets of that size would give."""
    mechanism, n = SubsetSelection(epsilon=epsilon, size=700), 20_000
    w, p = mechanism.members, mechanism.p
    sets = mechanism.sample(np.full(n, 123), rng)
    assert np.all(packed.count(sets) == w)
    bits = packed.unpack(sets, 700)
    seen = bits[:, 123].mean()
    assert abs(seen - p) < 5 / np.sqrt(n)
    others = np.delete(bits, 123, axis=1).astype(np.float32)
    pairs = (others.T @ others).astype(float)
    a, b = w - 1, w  # members among the others
    together = (seen * a * (a - 1) + (1 - seen) * b * (b - 1)) / (699 * 698)
    upper = pairs[np.triu_indices(699, 1)]
    spread = upper.var() / (n * together * (1 - together)) if together else 1.0
    assert 0.9 < spread < 1.1
    single = np.diag(pairs)
    assert np.ptp(single) / n < 12 * np.sqrt(w / 700 / n) + 1e-9


@pytest.mark.parametrize("mechanism", SETS, ids=repr)
def test_sets_match_likelihood(mechanism, rng):
    assert isinstance(mechanism, Mechanism)
    m, n = mechanism.size, 40_000
    every = packed.pack((np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1)
    for record in range(m):
        expected = np.exp(mechanism.log_likelihood(every, record))
        drawn = mechanism.sample(np.full(n, record), rng)
        agree(np.bincount(drawn[:, 0].astype(int), minlength=2**m), expected, n)


@pytest.mark.parametrize("mechanism", [OLH(epsilon=1.0, size=50), BLH(epsilon=0.7, size=9)])
def test_hashing(mechanism, rng):
    """The bucket is true as often as it should be; another value shares it with chance 1/g."""
    n = 100_000
    codes = rng.integers(mechanism.size, size=n)
    out = mechanism.sample(codes, rng)
    bucket = out[:, 1].astype(int)
    true = int(np.sum(mechanism.bucket(out[:, 0], codes) == bucket))
    assert binomtest(true, n, mechanism.truth).pvalue > ALPHA
    other = (codes + 1) % mechanism.size
    shared = int(np.sum(mechanism.bucket(out[:, 0], other) == bucket))
    assert binomtest(shared, n, 1 / mechanism.buckets).pvalue > ALPHA
    both = mechanism.bucket(out[:, 0], codes) == mechanism.bucket(out[:, 0], other)
    assert binomtest(int(both.sum()), n, 1 / mechanism.buckets).pvalue > ALPHA
    likelihood = np.exp(mechanism.log_likelihood(out, codes) + 64 * np.log(2))
    assert set(np.round(likelihood, 12)) == {round(mechanism.truth, 12), round(mechanism.lie, 12)}


@pytest.mark.parametrize("q", [0.0, 1e-5, 0.018, 1 / 3, 0.5, 0.73, 0.9999, 1.0])
def test_random_bits(q, rng):
    """Each position, and each pair of neighbours, by itself; 130 is two words and a bit."""
    n, size = 40_000, 130
    bits = packed.unpack(packed.bernoulli(q, n, size, rng), size)
    ones = int(bits.sum())
    assert binomtest(ones, n * size, q).pvalue > ALPHA
    both = int(np.sum(bits[:, 1:] & bits[:, :-1]))
    # neighbours overlap in pairs, so a normal bound with room for that: six standard errors
    pairs = n * (size - 1)
    error = 6 * np.sqrt(3 * pairs * q**2 * (1 - q**2)) + 6
    assert abs(both - pairs * q * q) <= error
    columns = bits.sum(axis=0)
    assert np.all(np.abs(columns - n * q) <= 7 * np.sqrt(n * q * (1 - q)) + 7)


def test_packed_sets_round_trip(rng):
    rows = rng.random((20, 77)) < 0.3
    sets = packed.pack(rows)
    assert np.array_equal(packed.unpack(sets, 77), rows)
    assert np.array_equal(packed.count(sets), rows.sum(axis=1))
    assert np.array_equal(packed.contains(sets[:, None, :], np.arange(77)), rows)


@pytest.mark.parametrize(
    "mechanism",
    [
        OUE(epsilon=1.3, size=4),
        SUE(epsilon=1.3, size=4),
        SUE(epsilon=1.3, size=4, delta=0.07),
        SUE(epsilon=0.0, size=3, delta=0.2),
        SubsetSelection(epsilon=1.3, size=5),
        UnaryEncoding(size=3, p=0.8, q=0.3),
        UnaryEncoding(size=3, p=0.8, q=0.0),
        GRR(epsilon=1.0, size=4, delta=0.2),
    ],
    ids=repr,
)
def test_the_promise_is_what_the_mechanism_does(mechanism):
    m = mechanism.size
    if isinstance(mechanism, GRR):
        outputs = np.arange(m)
    else:
        outputs = packed.pack((np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1)
    matrix = np.array([np.exp(mechanism.log_likelihood(outputs, z)) for z in range(m)])
    promise = mechanism.guarantee
    epsilon, delta = promise.point
    worst = max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a in matrix for b in matrix)
    assert worst == pytest.approx(delta, abs=1e-12)
    if delta == 0:
        below = max(
            np.maximum(a - np.exp(epsilon - 1e-3) * b, 0).sum() for a in matrix for b in matrix
        )
        assert below > 0


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
