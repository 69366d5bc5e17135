"""One record has nearly all probability: what is left of the risk keeps its digits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dprad import Prior, Threat, assess
from dprad.mechanisms import GRR, Channel, catalogue
from effort import part_of

HEAVY = [name for name in catalogue.FAMILIES if name not in ("she", "rappor")]  # estimated
WATCHERS = {
    "exact": Threat(),
    "near": Threat(loss="absolute", eta=1.0),
    "everything": Threat(knows="everything"),
    "part": Threat(knows=lambda table: [int(v) % 2 for v in table]),
}


@pytest.mark.parametrize(
    ("name", "heavy", "watcher"), part_of(itertools.product(HEAVY, [0.0, 1.0], WATCHERS), 101)
)
def test_normalised_risk_where_one_record_has_nearly_all(name, heavy, watcher):
    # as the others get rarer the share of 1 - kappa settles: their distance is of first order
    family, threat = catalogue.FAMILIES[name], WATCHERS[watcher]

    def normalised(rare):
        weights = {0.0: rare, 1.0: 2 * rare, 2.0: rare / 2, 3.0: rare, heavy: 1.0}
        prior = Prior.from_counts(weights)
        kind, given = catalogue.parts(name, {family.noise.name: 1.0}, prior, threat)
        return assess(kind(**given), prior=prior, threat=threat).normalised

    limit = normalised(1e-5)
    for rare in (9e-7, 1e-12, 1e-16, 1e-30, 1e-200):
        assert normalised(rare) == pytest.approx(limit, rel=3e-4)


@pytest.mark.parametrize("rare", [1e-6, 1e-10, 1e-16, 1e-40])
def test_two_answers_by_hand(rare):
    # 2 pi_0 pi_1 tanh(epsilon/2), and 1 - kappa is 2 pi_0 pi_1
    found = assess(GRR(epsilon=1.0, size=2), prior=Prior.from_counts({0: 1, 1: rare}))
    assert found.normalised == pytest.approx(math.tanh(0.5), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_channels_by_fractions(seed):
    rng = np.random.default_rng(seed)
    weights = [Fraction(1), *(Fraction(int(k), 10**18) for k in rng.integers(1, 99, 3))]
    rows = [[Fraction(int(k)) for k in rng.integers(1, 9, 4)] for _ in weights]
    rows = [[x / sum(row) for x in row] for row in rows]
    pi = [w / sum(weights) for w in weights]
    total = Fraction(0)
    for column in zip(*rows, strict=True):
        mean = sum(p * x for p, x in zip(pi, column, strict=True))
        total += max(0, *(p * (x - mean) for p, x in zip(pi, column, strict=True)))
    unlike = 1 - sum(p * p for p in pi)
    prior = Prior.from_counts({i: float(w) for i, w in enumerate(weights)})
    found = assess(Channel(np.array(rows, dtype=float)), prior=prior)
    assert found.normalised == pytest.approx(float(total / unlike), rel=1e-9)
