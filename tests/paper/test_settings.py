"""LDP Auditor's settings with many reports and attributes: exact ratios, and its guesses."""

from __future__ import annotations

import numpy as np
import pytest

from dprad.mechanisms import GRR, RSFD
from dprad.paper.experiments.ldp_settings import guesser
from dprad.paper.settings import FAKED, PROTOCOLS, Longitudinal, Multidimensional


@pytest.mark.parametrize("protocol", FAKED)
def test_evidence_for_a_record_is_its_exact_likelihood_ratio(protocol):
    setting = Multidimensional(protocol, 1.0, 4, 3)
    records = np.arange(400) % 2
    found = setting.strength(records, np.random.default_rng(7))
    outputs = setting._drawn(records, np.random.default_rng(7))  # the same draws
    model = RSFD(protocol=protocol.lower(), sizes=(4, 4, 4), epsilon=1.0)
    entries = tuple(outputs[:, j] for j in range(3))
    first, last = (model.log_likelihood(entries, np.full(400, c)) for c in (0, 63))
    assert found == pytest.approx(first - last, abs=1e-9)
    assert np.ptp(found) > 0.5
    assert setting.true == pytest.approx(model.guarantee.epsilon)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [2, 7])
def test_evidence_of_many_reports_has_the_law_of_a_likelihood_ratio(protocol, size):
    """Its exponential has mean one under the other record: five standard errors."""
    setting = Longitudinal(protocol, 0.3, size, 4)
    rng, n = np.random.default_rng(size), 20_000
    for record, sign in ((0, -1.0), (1, 1.0)):
        ratio = np.exp(sign * setting.strength(np.full(n, record), rng))
        assert ratio.std() > 0.1
        assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(n)
        assert np.abs(np.log(ratio)).max() <= setting.true + 1e-9 <= setting.claimed + 2e-9


def test_the_guesses_of_ldp_auditor():
    """Randomised response by hand: two of two reports, or a coin; five standard errors."""
    n, rng = 40_000, np.random.default_rng(0)
    p = GRR(epsilon=1.0, size=2).truth
    for record, chance in ((0, p * p + p * (1 - p)), (1, (1 - p) ** 2 + p * (1 - p))):
        named = Longitudinal("GRR", 1.0, 2, 2).named(record, n, rng)
        assert abs(named / n - chance) < 5 * 0.5 / np.sqrt(n)
    # rows of noise summed, and the sums drawn at once
    setting = Longitudinal("SHE", 1.0, 3, 5)
    rows = setting.part.sample(np.zeros(5 * n, dtype=int), rng).reshape(n, 5, 3).sum(axis=1)
    named = setting.named(0, n, rng)
    assert abs(named / n - (rows.argmax(axis=1) == 0).mean()) < 5 * np.sqrt(0.5 / n)


def test_nothing_is_named_without_evidence():
    attack = guesser(np.zeros(1000))
    assert attack(np.zeros(3), None) == [None, None, None]
    sure = guesser(np.repeat([-3.0, 3.0], 500))
    assert sure(np.array([3.0, -3.0, 0.5]), None) == [0, 1, None]
