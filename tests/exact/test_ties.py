"""Whom the best attack names where those who are asked about are rare: all its gains are tiny, and
none of them is a tie. Against fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import hadamard
from test_ends import piecewise

from dprad import Prior, Threat, assess
from dprad.mechanisms import GRR, Channel, HadamardResponse, Mechanism, Piecewise


def named(channel, weights, group, fiber, eta):
    """Success with and without the person, of the attack that names the best set or passes; None if
    it hardly matters which.
    """
    weights = [Fraction(w) for w in weights]
    pi = [w / sum(weights) for w in weights]
    many = range(len(pi))
    present = absent = Fraction(0)
    for column in np.asarray(channel).T:
        p = [Fraction(float(x)) for x in column]
        mean = sum(q * x for q, x in zip(pi, p, strict=True))
        for x in {fiber[z] for z in many if group[z]}:
            sets = [
                [z for z in many if fiber[z] == x and group[z] and abs(z - g) <= eta] for g in many
            ]
            gains = [(sum(pi[z] * (p[z] - mean) for z in s), s) for s in sets]
            gain, guess = max(gains)
            near = mean * sum(pi[z] for s in sets for z in s) / 10**9
            if any(abs(gain - other) < near for other, s in [*gains, (0, [])] if s != guess):
                return None
            if gain > 0:
                present += sum(pi[z] * p[z] for z in guess)
                absent += sum(pi[z] for z in guess) * mean
    share = sum(q for q, one in zip(pi, group, strict=True) if one)
    return float(present / share), float(absent / share)


def mechanisms(rng):
    """Six values, and the chances of their outputs."""
    rows = rng.random((6, 5)) + 0.05
    rows /= rows.sum(axis=1, keepdims=True)
    yield Channel(rows), rows
    yield GRR(epsilon=1.0, size=6), np.where(np.eye(6) > 0, np.e, 1.0) / (np.e + 5)
    points = [float(k) for k in range(6)]
    yield Piecewise(epsilon=2.0, bounds=(0, 5)), piecewise(points, 2.0, (0, 5))
    table = HadamardResponse(epsilon=1.0, size=6)
    b, blocks = table.block, table.blocks
    codes = np.ones((6, blocks * b))
    for z in range(6):
        block, row = z % blocks, z // blocks + 1
        codes[z, block * b : (block + 1) * b][hadamard(b)[row] > 0] = np.e
    yield table, codes / codes.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("others", [[1.0, 1e-12], [1.0, 0.7]])
@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("knows", ["nothing", "everything", "part"])
@pytest.mark.parametrize("seed", range(3))
def test_rare_groups(seed, knows, eta, others):
    rng = np.random.default_rng(seed)
    weights = [*(1e-12 * rng.integers(3, 99, 4)), *others]
    group = np.arange(6) < 4
    fiber = {"nothing": [0] * 6, "everything": list(range(6)), "part": [0, 1, 1, 0, 1, 0]}[knows]
    threat = Threat(
        knows=knows if knows != "part" else lambda _: fiber,
        group=lambda _: group,
        loss="absolute" if eta else "exact",
        eta=eta,
    )
    prior = Prior.from_counts(dict(enumerate(weights)))
    for k, (mechanism, channel) in enumerate(mechanisms(rng)):
        expected = named(channel, weights, group, fiber, eta)
        assert expected is not None or k > 0
        if expected is not None:
            risk = assess(mechanism, prior=prior, threat=threat)
            found = risk.success_in, risk.success_out
            assert found == pytest.approx(expected, rel=1e-9), mechanism


class Drawn(Mechanism):
    """A channel that is known by a sampler and a likelihood only."""

    guarantee = None
    size = 6

    def __init__(self, rows):
        self.rows = rows

    def describe(self):
        return {"kind": "Drawn"}

    def sample(self, records, rng):
        upto = np.cumsum(self.rows, axis=1)[np.asarray(records)]
        return (rng.random((len(records), 1)) > upto[:, :-1]).sum(axis=1)

    def log_likelihood(self, outputs, records):
        return np.log(self.rows[np.asarray(records), np.asarray(outputs)])


def test_estimates_of_rare_groups():
    """Of 20,000 draws: six standard deviations are 0.02."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(5), size=6)
    weights, group = [*(1e-15 * rng.integers(3, 99, 4)), 1.0, 0.7], np.arange(6) < 4
    prior, threat = Prior.from_counts(dict(enumerate(weights))), Threat(group=lambda _: group)
    risk = assess(Drawn(rows), prior=prior, threat=threat)
    assert risk.kind == "estimate"
    expected = named(rows, weights, group, [0] * 6, 0.0)
    assert (risk.success_in, risk.success_out) == pytest.approx(expected, abs=0.02)
