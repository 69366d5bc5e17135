"""The fast ways of one mechanism against its channel, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import GaussianDP, Prior, Threat, assess, exact
from dprad.bounds import absent_prior
from dprad.exact import _finite, bells, heavier, own, solve, stepwise
from dprad.exact.channel import Law, from_mean
from dprad.exact.solution import Sampling
from dprad.game.game import play
from dprad.game.question import Posed, Question
from dprad.mechanisms import (
    Channel,
    DiscreteGaussian,
    Gaussian,
    Geometric,
    HadamardResponse,
    Hybrid,
    Laplace,
    Piecewise,
    Staircase,
)
from dprad.mechanisms.channel import profile_of


def weights(rng, m):
    """Even ones, or uneven ones with zeros."""
    if rng.random() < 0.25:
        return np.ones(m)
    weight = rng.gamma(rng.choice([0.2, 1.0]), size=m) * (rng.random(m) < 0.8)
    weight[rng.integers(m)] += 0.1
    return weight


def same(one, other):
    assert one.rad == pytest.approx(other.rad, abs=1e-14, rel=1e-12)
    assert one.rero == pytest.approx(other.rero, abs=1e-14, rel=1e-12)
    assert one.success_out == pytest.approx(other.success_out, abs=1e-5)


@pytest.mark.parametrize("knows", ["nothing", "everything"])
@pytest.mark.parametrize("seed", range(5))
def test_hadamard_response_by_its_transform(seed, knows):
    rng = np.random.default_rng(seed)
    for turn in range(12):
        m, epsilon = int(rng.integers(2, 40)), float(rng.choice([0.0, 0.3, 1.0, 2.0, 5.0, 30.0]))
        prior, query = Prior.from_counts(dict(enumerate(weights(rng, m).tolist()))), None
        if turn % 3 == 0:  # several classes that read the same code
            counts = {(i, k): float(rng.gamma(0.5)) for i in range(m) for k in range(2)}
            prior, query = Prior.from_counts(counts, columns=["a", "b"]), "a"
        question = Question.of(prior, Threat(knows=knows), query)
        noise = HadamardResponse(epsilon=epsilon, size=m)
        posed = Posed(question.game, noise.read(question))
        same(solve(noise, posed, Sampling()), _finite(noise, posed, Sampling()))


def test_own_risks_by_transform_by_intervals_and_by_zones():
    rng = np.random.default_rng(3)
    for _ in range(60):
        m = int(rng.integers(2, 40))
        x = np.cumsum(rng.choice([1, 1, 2, 5, 40], size=m)).astype(float)
        mass = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0]))) + 1e-9
        mass /= mass.sum()
        epsilon, span = float(rng.choice([0.01, 0.1, 1.0, 3.0, 10.0, 50.0])), float(np.ptp(x))
        noise = {"epsilon": epsilon, "sensitivity": span}
        laplace = Laplace(**noise)
        direct = own._laplace_tv(laplace.scaled(x), mass, np.arange(m))
        assert own.of_values(laplace, x, mass, None).rad == pytest.approx(direct, abs=1e-13)
        codes = HadamardResponse(epsilon=epsilon, size=m)
        pairs = [
            (codes, np.arange(m), own._finite(codes, np.arange(m), mass, None)),
            (Geometric(**noise), x, own._whole(Geometric(**noise), x, mass, None)),
        ]
        ends = (x[0], x[-1] + 0.5)
        stepped = (
            Staircase(**noise), Staircase(**noise, clamp=(x[0] - 0.3 * span, x[-1] + 2.6 * span)),
            Piecewise(epsilon=epsilon, bounds=ends), Hybrid(epsilon=epsilon, bounds=ends),
        )  # fmt: skip
        pairs += [
            (s, x, own.Own.exactly(*from_mean(Law.of(*stepwise.columns_of(s, x)), mass)))
            for s in stepped
        ]
        for mechanism, values, slow in pairs:
            fast = own.of_values(mechanism, values, mass, None)
            assert fast.rad == pytest.approx(slow.rad, abs=2e-12)
            assert np.all(fast.high >= slow.low - 1e-15)


THREATS = {
    "nothing": Threat(), "everything": Threat(knows="everything"),
    "thirds": Threat(knows=lambda table: [int(3 * v) % 3 for v in table]),
    "many fibers": Threat(knows=lambda table: [int(7 * v) % 11 for v in table]),
    "halves": Threat(knows=lambda table: [v > np.median(table) for v in table]),
    "tolerance": Threat(loss="absolute", eta=1.5), "wide": Threat(loss="absolute", eta=45),
}  # fmt: skip


@pytest.mark.parametrize("threat", THREATS.values(), ids=list(THREATS))
@pytest.mark.parametrize("seed", range(4))
def test_zones_equal_the_channel(seed, threat, monkeypatch):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        m, epsilon = int(rng.integers(2, 25)), float(rng.choice([0.0, 0.01, 1.0, 3.0, 10.0, 30.0]))
        x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 0.37, 40.0], size=m))
        counts = dict(zip(x.tolist(), weights(rng, m).tolist(), strict=True))
        asked = {"prior": Prior.from_counts(counts), "threat": threat}
        step, ends = float(np.ptp(x)) * float(rng.choice([1.0, 1.3])), (x[0], x[-1] + 0.001)
        clamp = x[0] - step * rng.choice([0, 0.1, 3.3]), x[-1] + step * rng.choice([0.01, 1, 7.2])
        for mechanism in (
            Staircase(epsilon=epsilon, sensitivity=step),
            Staircase(epsilon=epsilon, sensitivity=step, clamp=clamp),
            Piecewise(epsilon=epsilon, bounds=ends),
            Hybrid(epsilon=epsilon, bounds=ends),
        ):
            fast = assess(mechanism, **asked)
            with monkeypatch.context() as patch:
                patch.setattr(stepwise, "zones_of", lambda *_: None)
                same(fast, assess(mechanism, **asked))


def discrete_gaussian(rng, x):
    """With or without a clamp, at or beyond the outermost of these values."""
    sigma = float(rng.choice([0.02, 0.1, 0.3, 0.7, 1.0, 3.0, 50.0, rng.uniform(0.3, 60.0), 300.0]))
    room = rng.integers(0, int(9 * sigma) + 3, 2) * rng.integers(0, 2, 2)
    clamp = (float(x[0] - room[0]), float(x[-1] + room[1])) if rng.random() < 0.5 else None
    return DiscreteGaussian(sigma=sigma, sensitivity=float(np.ptp(x)) or 1.0, clamp=clamp)


def by_both(monkeypatch, task, *given, **more):
    """By the pieces of the best guesses, and entry by entry."""
    found = []
    for small in (0, np.inf):
        monkeypatch.setattr(bells, "SMALL", small)
        found.append(task(*given, **more))
    return found


@pytest.mark.parametrize("threat", list(THREATS.values())[:5], ids=list(THREATS)[:5])
@pytest.mark.parametrize("seed", range(3))
def test_bells_equal_the_channel(seed, threat, monkeypatch):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        m = int(rng.integers(2, 60))
        x = np.cumsum(rng.choice(rng.choice([1, 1, 2, 3, 5, 40], 2), size=m)) + rng.integers(
            -99, 99
        )
        counts = dict(zip(x.tolist(), weights(rng, m).tolist(), strict=True))
        noise = discrete_gaussian(rng, x)
        asked = {"prior": Prior.from_counts(counts), "threat": threat}
        same(*by_both(monkeypatch, assess, noise, **asked))


@pytest.mark.parametrize(
    "threat",
    [
        Threat(), Threat(knows="everything"), Threat(knows=["a"]),
        Threat(knows=["a"], target=["h"]), Threat(knows=["a"], target=["a"]),
        Threat(target=["h"]), Threat(knows=["b"], target=["h"], must_guess=True),
        Threat(group=lambda table: [v > 1 for v in table["a"]]),
    ],
)  # fmt: skip
def test_bells_of_records_equal_the_channel(threat, monkeypatch):
    """Columns that are not read, values far apart, and weights from 1e-40 to 1."""
    rng, used, real = np.random.default_rng(8), [], bells.pieces
    monkeypatch.setattr(bells, "pieces", lambda given: used.append(1) or real(given))
    for turn in range(20):
        place = np.cumsum(rng.choice([1, 1, 2, 7, 200, 3000], size=14))
        counts = {
            (*rng.integers([4, 5]).tolist(), int(rng.choice(place))):
                float(10.0 ** rng.uniform(-40, 0) if turn % 2 else rng.gamma(0.3))
            for _ in range(40)
        }  # fmt: skip
        noise = discrete_gaussian(rng, np.array(sorted(c[2] for c in counts)))
        asked = {"prior": Prior.from_counts(counts, columns=["a", "b", "h"]), "threat": threat}
        same(*by_both(monkeypatch, assess, noise, **asked, query="h"))
    assert used


def test_own_risks_by_bells(monkeypatch):
    rng = np.random.default_rng(6)
    for _ in range(80):
        m = int(rng.integers(2, 50))
        x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 5.0, 40.0, 900.0], size=m))
        mass = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0]))) + rng.choice([1e-12, 1e-80])
        noise = discrete_gaussian(rng, x)
        fast, slow = by_both(monkeypatch, own.of_values, noise, x, mass / mass.sum(), None)
        assert fast.rad == pytest.approx(slow.rad, abs=1e-13)
        assert np.all(fast.high >= slow.low - 1e-15)
        assert np.all(fast.low <= slow.high + 1e-15)


@pytest.mark.parametrize("hits", [False, True])
def test_the_pieces_are_those_of_the_best_guesses(hits):
    """Every output of every fiber, one by one."""
    rng = np.random.default_rng(int(hits))
    for _ in range(60):
        m, wide = int(rng.integers(1, 30)), float(rng.choice([0.5, 2.0, 9.0]))
        x = rng.integers(0, rng.choice([5, 60]), m).astype(float)
        mass = rng.choice(rng.gamma(0.3, size=4), m) + 1e-9
        mass /= mass.sum()
        fiber = rng.integers(0, 3, m)
        at = np.arange(x.min() - 8 * wide // 1, x.max() + 8 * wide // 1)
        bell = np.exp(-(((at - x[:, None]) / wide) ** 2) / 2)
        mean = np.log(mass @ bell)
        fibers = np.unique(fiber)
        if not hits:  # a pass has no mass
            fiber, x, mass = np.r_[fiber, fibers], np.r_[x, 0 * fibers], np.r_[mass, 0 * fibers]
        order = np.lexsort((mass, fiber))
        found = heavier.pieces(
            heavier.Bells(at, None if hits else mean, wide, fiber[order], x[order], mass[order])
        )
        guess = np.repeat(order[found.guess], found.end - found.begin).reshape(len(fibers), -1)
        bell = np.exp(-(((at - x[:, None]) / wide) ** 2) / 2)
        value = mass[:, None] * (bell if hits else bell - np.exp(mean))
        for f, chosen in zip(fibers, guess, strict=True):
            best = value[fiber == f].max(axis=0)
            assert value[chosen, np.arange(len(at))] == pytest.approx(best, abs=1e-12)


def test_a_clamped_staircase_by_its_distribution():
    """Two values and clamps some steps away: the masses of all pieces, one by one."""
    noise = Staircase(epsilon=1.5, sensitivity=2.0, clamp=(-5.3, 9.1))
    x, cut = np.array([0.0, 1.7]), np.array([noise.high * 2.0, 2.0])
    ends = (
        x[:, None, None]
        + np.array([-1, 1])[:, None] * cut
        + 2.0 * np.arange(-9, 9)[:, None, None, None]
    )
    ends = np.unique(np.r_[ends.ravel(), x, -5.3, 9.1])
    ends = ends[(ends >= -5.3) & (ends <= 9.1)]
    above = np.array(
        [[noise.beyond(t - v) if t >= v else 1 - noise.beyond(v - t) for t in ends] for v in x]
    )
    p = np.concatenate([1 - above[:, :1], -np.diff(above, axis=1), above[:, -1:]], axis=1)
    rad = np.abs(p[0] - p[1]).sum() / 4  # of two equally likely records
    prior = Prior.from_counts({0.0: 1.0, 1.7: 1.0})
    assert assess(noise, prior=prior).rad == pytest.approx(float(rad), abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_the_profile_of_a_channel_is_that_of_its_worst_pair(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        m, k = rng.integers(1, 9, 2)
        matrix = rng.random((m, k)) * (rng.random((m, k)) < 0.7) + 1e-9 * (rng.random((m, k)) < 0.3)
        matrix[:, 0] += 1e-3
        matrix /= matrix.sum(axis=1, keepdims=True)
        epsilon = np.r_[np.sort(rng.random(40) * 8), 300.0, 0.0]
        apart = matrix[:, None, None] - np.exp(epsilon)[:, None] * matrix[None, :, None]
        worst = np.maximum(apart, 0.0).sum(axis=-1).max(axis=(0, 1))
        assert profile_of(matrix, epsilon) == pytest.approx(worst, abs=1e-14)


def test_the_profile_of_a_symmetric_channel():
    """All pairs are the worst at once: randomised response that also says nothing at times."""
    matrix = 0.7 * np.eye(12) + 0.3 / 12
    matrix = np.c_[0.9 * matrix, np.full(12, 0.1)]
    matrix[0, -1], matrix[0, 0] = 0.0, matrix[0, 0] + 0.1
    promise = Channel(matrix).guarantee
    slow = max(np.maximum(p - np.e * q, 0.0).sum() for p in matrix for q in matrix)
    assert promise.delta(1.0) == pytest.approx(slow, abs=1e-12)


def test_proposition_f_with_many_masses(monkeypatch):
    """Searched on few masses, evaluated on all: valid, and as good as a full search."""
    rng, promise = np.random.default_rng(0), GaussianDP(1.0, neighbours="add-remove")
    weight = rng.gamma(0.5, size=600) + 1e-9
    game = play(Prior.from_counts(dict(enumerate(weight.tolist()))), Threat())
    full = absent_prior.proposition_f(promise, game)
    monkeypatch.setattr(absent_prior, "COARSE", 64)
    few = absent_prior.proposition_f(promise, game)
    assert full * (1 - 1e-9) <= few <= full * (1 + 1e-4)


@pytest.mark.parametrize(
    "threat",
    [Threat(), Threat(knows="everything"), Threat(knows=["a"]), Threat(knows=["a"], target=["b"])],
)
def test_records_that_read_alike_stand_together(threat, monkeypatch):
    """Three columns of which one is read: fewer guesses, the same risk."""
    rng = np.random.default_rng(5)
    counts = {tuple(rng.integers([3, 6, 4]).tolist()): float(rng.gamma(0.5)) for _ in range(60)}
    asked = {"prior": Prior.from_counts(counts, columns=["a", "b", "h"]), "threat": threat}
    real, sizes = exact.collapsed, []

    def counted(posed):
        fewer = real(posed)
        sizes.append((len(posed.game.sets.mass), len(fewer.game.sets.mass)))
        return fewer

    for mechanism in (
        Gaussian(sigma=2.0, sensitivity=3), Gaussian(sigma=2.0, sensitivity=3, clamp=(-1, 4)),
        DiscreteGaussian(sigma=2.0, sensitivity=3), Staircase(epsilon=2.0, sensitivity=3),
        Channel(rng.dirichlet(np.ones(5), 4)),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(exact, "collapsed", counted)
            fast = assess(mechanism, **asked, query="h")
            patch.setattr(exact, "collapsed", lambda posed: posed)
            slow = assess(mechanism, **asked, query="h")
        assert fast.rad == pytest.approx(slow.rad, abs=1e-10)
        assert fast.rero == pytest.approx(slow.rero, abs=1e-10)
        assert fast.success_out == pytest.approx(slow.success_out, abs=1e-5)
    assert all(fewer <= many for many, fewer in sizes)
    if threat.target is None:
        assert any(2 * fewer <= many for many, fewer in sizes)
