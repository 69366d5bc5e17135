"""Keys that come from the data: the real mechanism enumerated, for every number of other people."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import dlaplace, laplace, norm

from dprad import DpradError, Prior, Threat, assess, calibrate
from dprad.exact.solution import Sampling
from dprad.game.question import Question
from dprad.mechanisms import Channel, Composed, Counts, Histogram, Marginals
from dprad.mechanisms.tables.keys import chance, threshold
from dprad.mechanisms.tables.noise import Noise
from dprad.verbs.assess import answer
from effort import THOROUGH

NEAR = {"neighbours": "add-remove"}
MISSED = 1e-6


def pmf(noise, scale, reach=60):
    """Whole noise -reach .. reach, with the tails at the ends."""
    k = np.arange(-reach, reach + 1)
    geometric = noise == "geometric"
    p = dlaplace.pmf(k, 1 / scale) if geometric else np.exp(-((k / scale) ** 2) / 2)
    return k, p / p.sum()


def cell(noise, scale, others, mine, above):
    """Outputs of one cell as probabilities of absent, then of all whole numbers: the release as it
    is run. A cell with nobody in it is never there.
    """
    k, p = pmf(noise, scale)
    total = others + mine
    values = k + total
    shown = (values > above) & (total > 0)
    spots = np.zeros(200)
    np.add.at(spots, values[shown] + 70, p[shown])
    return np.r_[p[~shown].sum(), spots]


def released(release, contributions, others):
    """Probabilities of all outputs for each different record, for these other people."""
    scales = [noise.scale for noise in release.noises]
    above = release.thresholds
    result = np.ones((len(contributions[0]), 1))
    for table, scale, at, rest in zip(contributions, scales, above, others, strict=True):
        for j in range(rest.shape[0]):
            each = np.array(
                [cell(release.noise, scale, rest[j], int(own == j), at) for own in table]
            )
            each = each[:, each.any(axis=0)]
            result = (result[:, :, None] * each[:, None, :]).reshape(len(result), -1)
            # outputs with the same ratios are one
            top = np.maximum(result.max(axis=0), 1e-300)
            place = np.unique(np.round(result / top, 9), axis=1, return_inverse=True)[1]
            joined = np.zeros((len(result), place.max() + 1))
            np.add.at(joined.T, place.reshape(-1), result.T)
            result = joined
    return result / result.sum(axis=1, keepdims=True)


def some_release(rng):
    noise = str(rng.choice(["geometric", "discrete-gaussian"]))
    amount = {"rho" if "gaussian" in noise else "epsilon": float(rng.choice([0.5, 2.0]))}
    keys = {"threshold": float(rng.integers(0, 5))} if rng.random() < 0.6 else {"delta": 0.05}
    common = {"noise": noise, "neighbours": str(rng.choice(["replace-one", "add-remove"]))}
    if rng.random() < 0.7:
        by = [["a"], ["b"]][rng.integers(2)]
        return Counts(by=by, **common, **amount, **keys)
    return Marginals([["a"], ["b"]], **common, **amount, **keys)


def contributions_of(release, prior):
    tables = release.by if isinstance(release, Marginals) else [release.by]
    columns = [np.asarray(prior.column(by[0])) for by in tables]
    return [np.unique(column, return_inverse=True)[1] for column in columns]


@pytest.mark.parametrize("seed", range(60) if THOROUGH else (0, 2, 4, 5, 6))
def test_whoever_the_others_are_the_risk_is_no_higher(seed):
    """Every mixture of empty, nearly empty and crowded cells: enumerated outputs."""
    rng = np.random.default_rng([seed, 7])
    support = [(0, "x"), (1, "x"), (1, "y")]
    prior = Prior.from_counts({z: float(rng.exponential()) + 0.05 for z in support},
                              columns=["a", "b"])  # fmt: skip
    threat = (Threat(), Threat(knows=["a"], target=["b"]), Threat(knows="everything"))[seed % 3]
    release = some_release(rng)
    sampling = Sampling(trials=4000, confidence=1 - MISSED, seed=seed)
    found = answer(release, Question.of(prior, threat), sampling)
    codes = contributions_of(release, prior)
    promise = release.guarantee
    for counts in itertools.product((0, 1, 30), repeat=2):
        others = [np.array(counts) if k == 0 else np.array(counts[::-1]) for k in range(len(codes))]
        matrix = released(release, codes, others)
        real = assess(Channel(matrix), prior=prior, threat=threat, query=["a", "b"])
        assert real.rad <= found.interval[1] + 1e-7, (release, counts)
        assert real.worst <= found.worst_interval[1] + 1e-7, (release, counts)
        for epsilon in (0.0, 0.3, 1.0):
            apart = np.maximum(matrix[:, None] - np.exp(epsilon) * matrix, 0.0).sum(axis=2)
            assert apart.max() <= promise.delta(epsilon) + 1e-7, (release, counts)


def test_the_stated_delta_is_that_of_a_person_alone():
    """With and without a person whose key nobody has: delta is the chance that it is published."""
    for noise, amount in (("geometric", "epsilon"), ("laplace", "epsilon")):
        table = Counts(by=["a"], noise=noise, threshold=6.0, **{amount: 1.0}, **NEAR)
        alone = dlaplace.sf(5, 1.0) if noise == "geometric" else laplace.sf(5.0)
        assert table.stated.delta(1.0) == pytest.approx(alone, rel=1e-9)
    twice = Counts(by=["a"], noise="geometric", threshold=6.0, epsilon=1.0, times=2, **NEAR)
    assert twice.shown == pytest.approx(1 - (1 - dlaplace.sf(5, 1.0)) ** 2, rel=1e-9)


def test_an_attacker_is_never_told_less_than_without_noise_or_without_threshold():
    """The bound is at least that of all cells crowded, and that of all cells empty."""
    prior = Prior.from_counts({"common": 9, "rare": 1})
    plain = Counts(by=["value"], noise="geometric", epsilon=1.0, **NEAR)
    for above in (0.0, 1.0, 2.0, 10.0, 1000.0):
        table = Counts(by=["value"], noise="geometric", epsilon=1.0, threshold=above, **NEAR)
        risk = assess(table, prior=prior)
        assert risk.kind == "upper-bound"
        assert risk.rad >= assess(plain, prior=prior).rad
        assert risk.worst >= 0.9 * table.shown
    assert table.shown < 1e-200 and risk.rad == assess(plain, prior=prior).rad
    silent = Counts(by=["value"], epsilon=0.0, threshold=5.0, **NEAR)
    assert silent.shown == 0.5 and assess(silent, prior=prior).worst == pytest.approx(0.45)


@pytest.mark.parametrize("kind", ["laplace", "geometric", "gaussian", "discrete-gaussian"])
def test_thresholds_keep_delta(kind):
    for scale, delta in itertools.product((0.3, 1.0, 7.0), (1e-12, 1e-6, 0.1, 0.5, 0.9)):
        noise = Noise(kind, scale)
        at = threshold(noise, delta)
        assert chance(noise, at) <= delta
        assert chance(noise, at - (1.0 if noise.whole else 1e-6 * scale)) > delta * (1 - 1e-9)
        if kind == "gaussian":
            assert chance(noise, at) == pytest.approx(norm.sf((at - 1) / scale), rel=1e-9)


def test_draws_agree_with_likelihoods():
    """As part of something else the keys are drawn: the same risk, within the interval."""
    prior = Prior.from_counts({(a, b): 1.0 + a + b for a in range(2) for b in range(2)},
                              columns=["a", "b"])  # fmt: skip
    table = Counts(by=["a"], noise="geometric", epsilon=1.0, threshold=2.0, **NEAR)
    ready = table.prepared(Question.of(prior))
    rng = np.random.default_rng(0)
    rows = ready.sample(np.zeros(20_000, dtype=int), rng)
    told = (rows[:, -1] >= 0).mean()  # 5 deviations
    assert told == pytest.approx(table.shown, abs=5 * np.sqrt(table.shown / 20_000))
    log = ready.log_likelihood(rows[:50, None], np.arange(ready.kinds))
    assert np.all(np.isneginf(log[rows[:50, -1] == 0, 1]))
    assert np.allclose(log[:, 0], ready.log_likelihood(rows[:50], np.zeros(50, dtype=int)))
    both = assess(Composed([table, table]), prior=prior, trials=2000)
    assert both.interval[1] > assess(table, prior=prior).rad


def test_calibration_takes_delta():
    prior = Prior.from_counts({"common": 9, "rare": 1})
    fixed = {"by": ["value"], "noise": "geometric", **NEAR}
    plan = calibrate(Counts, max_risk=0.05, prior=prior, delta=1e-6, **fixed)
    assert assess(plan.mechanism, prior=prior).rad <= 0.05
    with pytest.raises(DpradError, match="give delta=: the threshold then follows"):
        calibrate(Counts, max_risk=0.05, prior=prior, threshold=5.0, **fixed)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Counts(by=["a"], scale=1.0, threshold=5, delta=1e-6), "threshold or delta, not"),
        (lambda: Counts(by=["a"], scale=1.0, threshold=-1), "threshold must be"),
        (lambda: Counts(by=["a"], scale=1.0, delta=0.0), "delta must be positive"),
        (lambda: Counts(by=["a"], scale=1.0, delta=2.0), "delta must be"),
        (lambda: Counts(where="a > 1", scale=1.0, threshold=5), "name columns with by="),
    ],
)
def test_thresholds_that_make_no_sense(make, said):
    with pytest.raises(DpradError, match=said):
        make()


def test_bins_are_fixed_beforehand():
    with pytest.raises(TypeError):
        Histogram(of="a", bins=[0, 1], scale=1.0, threshold=5)
