"""Table releases against brute force: every output of small tables, with cut-up noise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from dprad import Prior, Threat, assess, by_group
from dprad.exact.solution import Sampling
from dprad.game.question import Question
from dprad.mechanisms import (
    SHE,
    Channel,
    Composed,
    Counts,
    Gaussian,
    Geometric,
    Histogram,
    Laplace,
    Marginals,
    Mean,
    Repeated,
    Sums,
)
from dprad.verbs.assess import answer
from effort import some

COLUMNS = ["a", "b", "c"]
SHAPE = (4, 3, 2)
# Chance that an interval misses; there are some hundreds of them.
MISSED = 1e-5
# Outputs that are kept apart.
MANY = 5_000


def some_prior(rng, records):
    """Some of the 4 x 3 x 2 records; the numbers of column c are -3 and 5."""
    every = list(itertools.product(range(4), "xyz", (-3, 5)))
    chosen = rng.choice(len(every), size=records, replace=False)
    return Prior.from_counts(
        {every[i]: float(rng.choice([1.0, rng.exponential()])) + 1e-3 for i in chosen},
        columns=COLUMNS,
    )


def some_threat(rng):
    return (
        Threat(),
        Threat(knows=["a"], target=["b"]),
        Threat(knows=["b"], target=["a"], loss="absolute", eta=1.0),
        Threat(knows="everything"),
    )[rng.integers(4)]


def some_release(rng, noise, tables):
    """A random release with about this many tables."""
    amount = {"rho" if "gaussian" in noise else "epsilon": float(rng.choice([0.3, 1.0, 3.0]))}
    common = amount | {
        "noise": noise, "neighbours": str(rng.choice(["replace-one", "add-remove"])),
        "where": rng.choice([None, "a >= 1", "c > 0"], p=[0.6, 0.2, 0.2]),
    }  # fmt: skip
    by = [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["a", "c"], ["a", "b", "c"]]
    which = rng.choice(len(by), size=tables, replace=False)
    if tables > 1:
        weights = rng.uniform(0.5, 2.0, tables).tolist() if rng.random() < 0.5 else None
        return Marginals([by[i] for i in which], weights=weights, **common)
    kind = rng.integers(4)
    if kind == 0:
        return Counts(by=by[which[0]], **common)
    if kind == 1:
        return Sums(of="c", clamp=(-2, 4), by=["b"] if rng.random() < 0.5 else [], **common)
    if kind == 2:
        return Mean(of="a", clamp=(0, 2), **common)
    return Histogram(of="a", bins=[0, 1, 3], **common)


def contributions(release, prior):
    """What each record adds to each number that is published, written out from the description,
    and the scale of its noise.
    """
    rows = [r.tolist() if hasattr(r, "tolist") else r for r in prior.support]
    inside = [{None: True, "a >= 1": r[0] >= 1, "c > 0": r[2] > 0}[release.where] for r in rows]

    def table(cell, value=lambda _: 1.0, cells=None):
        cells = sorted({cell(r) for r in rows}) if cells is None else cells
        return np.array(
            [
                [value(r) * (i and cell(r) == c) for c in cells]
                for r, i in zip(rows, inside, strict=True)
            ]
        )

    def of(names):
        return lambda r: tuple(r[COLUMNS.index(n)] for n in names)

    if isinstance(release, Marginals):
        made = [table(of(by)) for by in release.by]
    elif isinstance(release, Sums):
        at, (low, high) = COLUMNS.index(release.of), release.clamp
        made = [table(of(release.by), lambda r: min(max(r[at], low), high))]
        if len(release.tables) == 2:
            made.append(table(of(release.by)))
    elif isinstance(release, Histogram):
        made = [table(lambda r: int(r[0] >= 1), cells=[0, 1])]
    else:
        made = [table(of(release.by))]
    scales = np.concatenate(
        [np.full(t.shape[1], n.scale) for t, n in zip(made, release.noises, strict=True)]
    )
    return np.concatenate(made, axis=1), scales


def cut(noise, scale, values, pieces):
    """Probabilities of pieces of the output of one cell, for each value: whole numbers, or
    intervals between edges.
    """
    low, high = min(0.0, values.min()), max(0.0, values.max())
    if noise == "geometric":
        # further out all ratios are the same
        below = np.array([_less(np.arange(low, high + 1) + 1 - v, scale) for v in values])
    elif noise == "laplace":
        edges = np.linspace(low, high, pieces)
        tail = np.exp(-np.abs(edges - values[:, None]) / scale) / 2
        below = np.where(edges < values[:, None], tail, 1 - tail)
    elif noise == "gaussian":
        edges = np.linspace(low - 3.5 * scale, high + 3.5 * scale, pieces)
        below = ndtr((edges - values[:, None]) / scale)
    else:
        reach = int(np.ceil(9 * scale + high - low)) + 1
        p = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
        total = np.r_[0.0, np.cumsum(p / p.sum())]
        edges = np.arange(low - np.ceil(4 * scale), high + np.ceil(4 * scale))
        at = np.clip(edges - values[:, None] + reach, 0, 2 * reach + 1)
        below = total[at.astype(int)]
    return np.diff(np.c_[np.zeros(len(values)), below, np.ones(len(values))], axis=1)


def _less(t, scale):
    """Pr[noise < t] for geometric noise and whole t."""
    a = np.exp(-1 / scale)
    return np.where(t <= 0, np.exp((t - 1) / scale), 1 + a - np.exp(-t / scale)) / (1 + a)


def joined(matrix, digits):
    """Outputs whose log-ratios agree to so many digits as one: an attacker loses next to nothing,
    since only an output that is as likely as not can be guessed wrongly by that.
    """
    log = np.log(np.maximum(matrix, 1e-300))
    ratios = np.round(log[1:] - log[0], digits)
    keys, place = np.zeros(matrix.shape[1], dtype=np.int64), None
    for row in ratios:
        keys = np.unique(keys, return_inverse=True)[1]
        place = np.unique(row, return_inverse=True)[1]
        keys = keys * (place.max() + 1) + place
    place = np.unique(keys, return_inverse=True)[1]
    return np.stack([np.bincount(place, weights=row) for row in matrix])


def channel(release, prior):
    """The probabilities of all (cut) outputs for each record."""
    matrix, scales = contributions(release, prior)
    kept = np.any(matrix != 0, axis=0)  # what nobody moves says nothing
    matrix, scales = matrix[:, kept], scales[kept]
    pieces = {1: 400, 2: 120, 3: 50}.get(len(scales), 24)
    digits = 9 if release.noise == "geometric" else 3 if len(matrix) == 2 else 2
    result = np.ones((len(matrix), 1))
    for column, scale in zip(matrix.T, scales, strict=True):
        each = cut(release.noise, scale, column, pieces)
        result = (result[:, :, None] * each[:, None, :]).reshape(len(result), -1)
        if digits == 9 or result.shape[1] > MANY:  # outputs that say (nearly) the same are one
            result = joined(result, digits)
    return result / result.sum(axis=1, keepdims=True)


def check(rng, noise, records, tables, off, *, trials=800, promised=False):
    """One instance against brute force: the average, the most exposed, and what is promised."""
    prior, threat = some_prior(rng, records), some_threat(rng)
    release = some_release(rng, noise, tables)
    matrix = channel(release, prior)
    exact = assess(Channel(matrix), prior=prior, threat=threat, query=COLUMNS)
    sampling = Sampling(trials=trials, confidence=1 - MISSED, seed=int(rng.integers(2**31)))
    found = answer(release, Question.of(prior, threat), sampling)
    low, high = found.interval
    assert low - off <= exact.rad <= high + off, (release, threat)
    assert found.worst_interval[0] - off <= exact.worst <= found.worst_interval[1] + off
    if promised:
        promise = release.guarantee
        for epsilon in (0.0, 0.2, 1.0):
            apart = np.maximum(matrix[:, None] - np.exp(epsilon) * matrix, 0.0).sum(axis=2)
            assert apart.max() <= promise.delta(epsilon) + 1e-9, release
    return found


def instance(rng, noise, **more):
    """A random one of one to three tables, of a size that can be enumerated."""
    tables = int(rng.choice([1, 1, 2, 3]))
    if noise == "geometric":
        return check(rng, noise, int(rng.integers(2, 5)), tables, 1e-9, **more)
    return check(rng, noise, int(rng.integers(2, 4)) if tables == 1 else 2, tables, 5e-3, **more)


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian", "discrete-gaussian"])
def test_small_tables_equal_brute_force(noise):
    """500 instances, a few of them in every run."""
    rng = np.random.default_rng(len(noise))
    for k in range(some(125, 8)):
        instance(rng, noise, promised=k < 40)


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian", "discrete-gaussian"])
def test_the_posterior_is_that_of_all_cells(noise):
    """The likelihood of all cells of 4 x 3 x 2 and three marginals, written out: 500 instances."""
    rng = np.random.default_rng(len(noise))
    for _ in range(125):
        prior = some_prior(rng, int(rng.integers(1, 25)))
        release = some_release(rng, noise, int(rng.integers(1, 4)))
        ready = release.prepared(Question.of(prior))
        matrix, scale = contributions(release, prior)
        assert ready.width == matrix.shape[1]
        rows = ready.sample(ready.place, rng)
        away = (rows[:, None] - matrix) / scale
        naive = (-(away**2) / 2 if "gaussian" in noise else -np.abs(away)).sum(axis=2)
        log = ready.log_likelihood(rows[:, None], ready.place)
        assert np.allclose(log - log[:, :1], naive - naive[:, :1], atol=1e-9), release
        paired = ready.log_likelihood(rows, ready.place)
        assert np.allclose(np.diagonal(log), paired)
        if not release.noise.startswith("disc"):
            line = {"laplace": Laplace, "geometric": Geometric, "gaussian": Gaussian}[noise]
            key = "sigma" if noise == "gaussian" else "epsilon"
            each = [
                line(**{key: s if noise == "gaussian" else 1 / s}).log_likelihood(o, 0.0)
                for o, s in zip((rows - matrix)[0], scale, strict=True)
            ]
            assert np.sum(each) == pytest.approx(paired[0])
        again = ready.sample(np.full(4000, ready.place[0]), rng)
        # a mean of noise: 8 deviations, of at most 2 scales each (Laplace)
        spread = np.sqrt(2) * scale + 1e-9
        assert np.all(np.abs(again.mean(axis=0) - matrix[0]) <= 8 * spread / np.sqrt(4000))


def people():
    return some_prior(np.random.default_rng(3), 20)


@pytest.mark.parametrize("threat", [Threat(), Threat(knows=["a"], target=["b"])])
@pytest.mark.parametrize("near", ["replace-one", "add-remove"])
def test_a_single_count_is_a_line(threat, near):
    """Of who has c > 0: noise on 0 or 1, solved by the same solver."""
    prior, common = people(), {"where": "c > 0", "neighbours": near}
    amounts = [
        ({"noise": "laplace", "epsilon": 0.7}, Laplace(epsilon=0.7)),
        ({"noise": "geometric", "epsilon": 0.7}, Geometric(epsilon=0.7)),
        ({"noise": "gaussian", "rho": 0.5}, Gaussian(sigma=1.0)),
    ]
    for given, line in amounts:
        risk = assess(Counts(**common, **given), prior=prior, threat=threat)
        known = assess(line, prior=prior, threat=threat, query="c > 0")
        assert (risk.rad, risk.kind, risk.worst) == (known.rad, "exact", known.worst)
    twelve = assess(
        Counts(**common, noise="gaussian", rho=0.5, times=4), prior=prior, threat=threat
    )
    known = assess(Gaussian(sigma=0.5), prior=prior, threat=threat, query="c > 0")
    assert twelve.rad == pytest.approx(known.rad, abs=1e-12)


def test_a_sum_is_a_line():
    prior = Prior.uniform(11)
    released = Sums(of="value", clamp=(2, 8), epsilon=1.0, neighbours="replace-one")
    risk = assess(released, prior=prior)
    clipped = assess(
        Laplace(epsilon=1.0, sensitivity=6.0), prior=prior, query=lambda v: np.clip(v, 2, 8)
    )
    assert risk.kind == "exact" and risk.rad == pytest.approx(clipped.rad, abs=1e-12)


def test_two_contributions_under_gaussian_noise_are_a_line():
    prior = Prior.from_counts({"no": 3, "yes": 1})
    risk = assess(
        Counts(by=["value"], noise="gaussian", rho=0.5, neighbours="replace-one"), prior=prior
    )
    known = assess(Gaussian(sigma=1.0), prior=prior, query='value = "yes"')
    assert risk.kind == "exact" and risk.rad == pytest.approx(known.rad, abs=1e-12)


@pytest.mark.parametrize("threat", [Threat(), Threat(knows=["a"], target=["b"])])
def test_a_laplace_table_is_she(threat):
    prior = people()
    size = len({(a, b) for a, b, _ in prior.support.tolist()})
    table = assess(
        Counts(by=["a", "b"], epsilon=1.0, neighbours="replace-one"), prior=prior, threat=threat
    )
    she = assess(SHE(epsilon=1.0, size=size), prior=prior, threat=threat, query=["a", "b"], rng=1)
    assert table.interval[0] <= she.interval[1] and she.interval[0] <= table.interval[1]
    assert table.interval[1] - table.interval[0] < 0.005


def test_releases_together():
    """A second table, and repeats: described as one release, or composed, they are the same."""
    prior, common = people(), {"noise": "laplace", "scale": 1.0}
    one, two = Counts(by=["a"], **common), Counts(by=["b"], **common)
    both = assess(Composed([one, two]), prior=prior)
    assert both.rad == assess(Marginals([["a"], ["b"]], **common), prior=prior).rad
    assert both.rad > assess(one, prior=prior).rad
    often = assess(Repeated(one, 3), prior=prior)
    assert often.rad == pytest.approx(assess(replace(one, times=3), prior=prior).rad, abs=5e-3)
    mixed = assess(Composed([one, one]), prior=prior)
    assert often.rad > mixed.rad > assess(one, prior=prior).rad


def test_groups_and_records():
    """Everybody is the average of the groups; and the most exposed is one of the records."""
    prior = people()
    table = Counts(by=["a", "b"], noise="gaussian", rho=0.5, neighbours="add-remove")
    groups = by_group(table, prior=prior, threat=Threat(knows="everything"), by="c")
    mean = sum(group.share * group.rad for group in groups)
    assert mean == pytest.approx(groups.overall.rad, abs=0.01)
    records = by_group(table, prior=prior, by="record")
    assert records.groups[0].worst == pytest.approx(groups.overall.worst, abs=1e-12)


def test_nobody_counted_and_no_information():
    prior = people()
    for release in (
        Counts(by=["a"], where="a > 99", epsilon=1.0, neighbours="add-remove"),
        Counts(by=["a"], epsilon=0.0, neighbours="add-remove"),
        Counts(epsilon=1.0, neighbours="add-remove"),
        Counts(by=["a"], noise="gaussian", rho=0.0, neighbours="replace-one", times=2),
    ):
        risk = assess(release, prior=prior)
        assert (risk.rad, risk.worst, risk.kind) == (0.0, 0.0, "exact"), release
