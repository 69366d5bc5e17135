"""The mixture that predicts, and the rounds that choose among records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import Prior, PureDP, audit
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.learners import together
from dprad.verbs.audit.mixture import _Box, _regressions, mixture

CLAIM = PureDP(1.0, neighbours="replace-one")


def bounded(odds, secret):
    """Mean log of the chance that was given to the secret."""
    return -float(np.logaddexp(0.0, np.where(secret == 1, -odds, odds)).mean())


def sampled(run, n, seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(2, size=n)
    return run(secret, rng), secret


def laplace(z, rng):
    return 2.0 * z + rng.laplace(size=len(z))


def within(z, rng):
    """The number speaks for one record or the other, depending on the word before it."""
    word = rng.integers(2, size=len(z))
    return np.stack([word, (2 * word - 1) * (2 * z - 1) + rng.normal(size=len(z))], axis=1)


def band(z, rng):
    """The second record is in the middle more often."""
    return np.where(z == 1, rng.normal(0, 0.5, len(z)), rng.normal(0, 2.0, len(z)))


def tags(z, rng):
    """Of sixty outputs each is from one record with chance 0.9; which one follows no order."""
    side = np.random.default_rng(5).integers(2, size=60)
    own = np.where(rng.random(len(z)) < 0.9, z, 1 - z)
    return np.array([rng.choice(np.flatnonzero(side == s)) for s in own])


def tagged(y):
    return math.log(9.0) * (2.0 * np.random.default_rng(5).integers(2, size=60)[y] - 1.0)


@pytest.mark.parametrize(
    ("run", "truth", "carried", "lost"),
    [
        (laplace, lambda y: np.abs(y) - np.abs(y - 2), ("line", "hinges", "boxes"), 0.04),
        (within, lambda y: 2.0 * (2.0 * y[:, 0] - 1.0) * y[:, 1], ("within", "boxes"), 0.03),
        (band, lambda y: math.log(4.0) - 1.875 * y**2, ("hinges", "boxes"), 0.03),
        (tags, tagged, ("counts",), 0.12),
    ],
)
def test_each_kind_is_learned_from_few_outputs(run, truth, carried, lost):
    """From 400, nearly as well as by somebody who knows the law."""
    reader = Reader()
    outputs, secret = sampled(run, 400, 1)
    fresh, known = sampled(run, 4000, 2)
    found = mixture(reader.rows(outputs), secret)
    best = bounded(truth(fresh), known)
    assert best - lost < bounded(found(reader.rows(fresh)), known) < best + 0.01
    assert sum(found.shares[name] for name in carried) > 0.5
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_it_is_careful_where_there_is_nothing_to_learn():
    """Odds of noise alone stay near 0, from few outputs of many numbers, too."""
    reader, rng = Reader(), np.random.default_rng(0)
    for n in (32, 200):
        secret = rng.integers(2, size=n)
        found = mixture(reader.rows(rng.normal(size=(n, 5))), secret)
        odds = found(reader.rows(rng.normal(size=(2000, 5))))
        assert np.quantile(np.abs(odds), 0.95) < 1.0


def test_evidence_by_hand():
    """One box is a coin: the integral of its chance; a regression: Laplace's formula."""
    secret = np.array([1, 1, 0, 1])
    box = _Box.of(np.zeros((4, 1)), secret, 3)
    exact = math.gamma(3.5) * math.gamma(1.5) / math.gamma(5.0) / math.pi
    assert box.evidence == pytest.approx(math.log(exact)) and box.chance == pytest.approx(0.7)
    rng = np.random.default_rng(3)
    x = np.stack([np.ones(60), rng.normal(size=60)], axis=1)
    secret = (rng.random(60) < 1 / (1 + np.exp(-x[:, 1]))).astype(int)
    found = list(_regressions(x, secret))[2]  # penalties 1 and 4
    grid = np.linspace(-3, 3, 301)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log = -(a**2 + 4 * b**2) / 2 + math.log(2.0 / (2 * math.pi))
    for row, z in zip(x, secret, strict=True):
        odds = a * row[0] + b * row[1]
        log = log - np.logaddexp(0.0, -odds if z else odds)
    integral = float(np.exp(log).sum()) * (grid[1] - grid[0]) ** 2
    assert found.evidence == pytest.approx(math.log(integral), abs=0.05)


def test_given_scores_are_weighed_too():
    """Outputs that nothing else reads: a score that is known beforehand does."""
    outputs, secret = sampled(tags, 64, 4)
    side = np.random.default_rng(5).integers(2, size=60)
    told = (lambda rows: 4.0 * side[np.array(rows.keys, dtype=int)] - 2.0,)
    rows = Reader().rows(outputs)
    found = together(rows, secret, 0, told, tried=False)
    assert found.shares["given"] > 0.9
    fresh, known = sampled(tags, 2000, 6)
    assert bounded(found(Reader().rows(fresh)), known) > -0.4


def test_one_record_of_ten_is_found_by_few_calls():
    """Nine say the same; the eighth does not. The rounds find it, and cost less than 500 calls."""

    def run(record, rng):
        return 3.0 * (record == 7) + rng.laplace()

    found = 0
    for seed in range(2):
        result = audit(
            run, claim=CLAIM, prior=Prior.uniform(10), trials=20_000, sequential=True, rng=seed
        )
        assert result.studied < 500
        found += result.verdict == "violated" and result.trials < 600
    assert found == 2


def test_records_that_speak_alike_are_not_compared():
    """An answer is about the parity of the record, through a hash: nothing orders the records."""

    def run(record, rng):
        seed = int(rng.integers(16))
        own = (record + seed) % 2
        return (seed, own if rng.random() < 0.9 else 1 - own)

    for seed in range(3):
        result = audit(
            run, claim=CLAIM, prior=Prior.uniform(10), trials=20_000, sequential=True, rng=seed
        )
        assert result.verdict == "violated"


def test_the_first_bets_come_early():
    """An output that is the record: refuted within a hundred calls."""
    result = audit(
        lambda record, rng: record, claim=CLAIM, prior=Prior.uniform(2), trials=2000,
        sequential=True,
    )  # fmt: skip
    assert result.verdict == "violated" and result.trials <= 96
