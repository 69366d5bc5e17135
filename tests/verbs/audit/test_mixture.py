"""The mixture that predicts, and the rounds that choose among records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import Prior, PureDP, audit
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.edges import FARTHEST, NONE, SURE, Edges
from dprad.verbs.audit.learners import together
from dprad.verbs.audit.mixture import _Box, _regressions, mixture
from dprad.verbs.audit.session import Session
from dprad.verbs.audit.tables import tables

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


def answers(z, rng):
    """Twelve answers, of which the first six lean one way and the others the other way."""
    lean = np.where(np.arange(12) < 6, 0.1, -0.1)
    return (rng.random((len(z), 12)) < 0.5 + (2 * z[:, None] - 1) * lean).astype(int)


def answered(y):
    return 2.0 * math.log(1.5) * (y[:, :6].sum(axis=1) - y[:, 6:].sum(axis=1))


def cut(z, rng):
    """Noise of one scale, never beyond three."""
    size = -np.log1p(-rng.random(len(z)) * -math.expm1(-3.0))
    return z + size * rng.choice([-1.0, 1.0], len(z))


def beyond(y):
    return np.where(y > 3, 40.0, np.where(y < -2, -40.0, np.clip(2 * y - 1, -1, 1)))


def tagged(y):
    return math.log(9.0) * (2.0 * np.random.default_rng(5).integers(2, size=60)[y] - 1.0)


@pytest.mark.parametrize(
    ("run", "truth", "carried", "lost"),
    [
        (laplace, lambda y: np.abs(y) - np.abs(y - 2), ("line", "hinges", "boxes"), 0.04),
        (within, lambda y: 2.0 * (2.0 * y[:, 0] - 1.0) * y[:, 1], ("within", "boxes"), 0.03),
        (band, lambda y: math.log(4.0) - 1.875 * y**2, ("hinges", "boxes", "edges"), 0.03),
        (answers, answered, ("blocks",), 0.02),
        (cut, beyond, ("edges",), 0.03),
        (tags, tagged, ("counts",), 0.12),
    ],
)
def test_each_kind_is_learned_from_few_outputs(run, truth, carried, lost):
    """From 400, nearly as well as by somebody who knows the law."""
    reader = Reader()
    outputs, secret = sampled(run, 400, 1)
    fresh, known = sampled(run, 4000, 2)
    found = mixture(reader.rows(outputs), secret, bound=1.0 if run is cut else math.inf)
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


def test_evidence_of_what_the_claim_allows():
    """Odds cut off at the bound: rather below the integral, since the weights are those without;
    the same as without if none reaches it.
    """
    rng = np.random.default_rng(3)
    x = np.stack([np.ones(80), rng.normal(size=80)], axis=1)
    secret = (rng.random(80) < 1 / (1 + np.exp(-np.clip(3 * x[:, 1], -1, 1)))).astype(int)
    found = list(_regressions(x, secret, 1.0))[3]  # penalties 1 and 1
    grid = np.linspace(-5, 5, 401)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log = -(a**2 + b**2) / 2 - math.log(2 * math.pi)
    for row, z in zip(x, secret, strict=True):
        odds = np.clip(a * row[0] + b * row[1], -1.0, 1.0)
        log = log - np.logaddexp(0.0, -odds if z else odds)
    integral = math.log(float(np.exp(log).sum()) * (grid[1] - grid[0]) ** 2)
    assert found.inside != found.evidence
    assert integral - 2.5 < found.inside < integral
    assert np.all(np.abs(np.log(1 / found.allowed(x) - 1)) <= 1.0 + 1e-12)
    far = list(_regressions(x, secret, 50.0))[3]
    assert far.inside == far.evidence


def test_edges_by_hand():
    """Every edge of both ends, one at a time; none at either has the chance NONE."""
    none = math.sqrt(NONE)
    rng = np.random.default_rng(7)
    outputs, secret = sampled(cut, 100, 8)
    chance = 1 / (1 + np.exp(-np.clip(2 * outputs - 1, -1, 1)))
    found = Edges.of(Reader().rows(outputs), secret, chance)
    likely = np.where(secret == 1, chance, 1 - chance)
    ends, beyond = [], []
    for order in (np.argsort(-outputs), np.argsort(outputs)):
        sizes = range(1, int(FARTHEST * 100) + 1)
        total, mean = none, none * 0.5
        for n in sizes:
            one = int(secret[order[:n]].sum())
            beta = math.gamma(one + 0.5) * math.gamma(n - one + 0.5) / math.gamma(n + 1) / math.pi
            pure = 0.5 * (one in (0, n))
            share = (1 - none) / n / sum(1 / k for k in sizes) / 2 / math.prod(likely[order[:n]])
            total += share * (beta + pure)
            mean += share * beta * (one + 0.5) / (n + 1)
            mean += share * pure * (one + SURE) / (n + 2 * SURE)
        ends.append(total)
        beyond.append(mean / total)
    assert found.evidence == pytest.approx(math.log(ends[0] * ends[1] - NONE))
    fresh = Reader().rows(np.array([-9.0, 0.5, 9.0]))
    low, middle, high = found(fresh, np.full(3, 0.5)).tolist()
    assert [high, low] == pytest.approx(beyond, abs=1e-3) and middle == 0.5
    assert low < 0.3 and high > 0.7
    # nothing beyond what was predicted: weaker than none
    noise = rng.laplace(size=400) + (secret := rng.integers(2, size=400))
    chance = 1 / (1 + np.exp(-np.clip(2 * noise - 1, -1, 1)))
    assert Edges.of(Reader().rows(noise), secret, chance).evidence < 0.5


def test_blocks_count_values_where_lists_have_them():
    """Halves of lists of 0 and 1 that end early; the length is no part of them."""
    rng = np.random.default_rng(2)
    lists = [rng.integers(2, size=rng.integers(3, 7)).tolist() for _ in range(60)]
    rows, secret = Reader().rows(lists), rng.integers(2, size=60)
    found = {t(rows).shape[1]: t for name, t in tables(rows, secret) if name == "blocks"}
    assert sorted(found) == [3, 5]  # all, and halves: how often 0, how often 1
    again = Reader().rows([[0] * 6, [1, 1, 0, 1, 0], [0, 0, 1, 1, 1, 1]])
    table = found[5](again) * math.sqrt(3) / 2
    assert table[1:, 1:].round(9).tolist() == [[1, 1, 2, 1], [2, 0, 1, 3]]


@pytest.mark.parametrize(("run", "most"), [(cut, 1000), (answers, 200)])
def test_few_calls_suffice(run, most):
    """The median of five sessions; floors are 214 and 68."""
    needed = []
    for seed in range(5):
        rng, session = np.random.default_rng([seed, 3]), Session(CLAIM, seed)
        while session.best < math.log(20) and session.calls < 3 * most:
            z = rng.integers(2, size=32)
            session.take(run(z, rng), z)
        needed.append(session.calls)
    assert np.median(needed) <= most


def test_given_scores_are_weighed_too():
    """Outputs that nothing else reads: a score that is known beforehand does."""
    outputs, secret = sampled(tags, 64, 4)
    side = np.random.default_rng(5).integers(2, size=60)
    told = (lambda rows: 4.0 * side[np.array(rows.keys, dtype=int)] - 2.0,)
    rows = Reader().rows(outputs)
    found = together(rows, secret, 0, told, tried=False)
    assert found.shares["given"] > 0.8
    assert found.shares["given"] + found.shares["edges"] > 0.99  # edges beside it
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
