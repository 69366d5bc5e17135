"""Noise that is small against the range of the values: only what is near is looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dprad import Prior, Threat, assess
from dprad.exact import line, seen
from dprad.exact.line import solve_gaussian
from dprad.exact.seen import Seen
from dprad.game.game import play
from dprad.game.sets import Relation, Windows
from dprad.mechanisms import GRR, Composed, Gaussian
from effort import part_of, some
from oracles import brute_force, of_a_group, random_instance


@pytest.fixture(autouse=True)
def panels(monkeypatch):
    """Without the faster way of `normal.py`."""
    monkeypatch.setattr(line, "solve_normal", lambda *_: None)


def blind(monkeypatch):
    """Every panel against all values."""
    monkeypatch.setattr(Seen, "divisible", property(lambda _: False))


def around(a, b):
    """Numbers on a ring of ten are one apart at most: no windows on a line."""
    gap = np.abs(np.subtract.outer(np.asarray(a, float), np.asarray(b, float))) % 10
    return (np.minimum(gap, 10 - gap) > 1).astype(float)


def thirds(table):
    return [int(v) % 3 for v in table]


def tens(table):
    return [int(v) // 10 for v in table]


THREATS = {
    "nothing": Threat(), "everything": Threat(knows="everything"), "thirds": Threat(knows=thirds),
    "tens": Threat(knows=tens), "tolerance": Threat(loss="absolute", eta=2),
    "wide": Threat(loss="absolute", eta=150), "whole": Threat(loss="absolute", eta=1e6),
    "tolerance, thirds": Threat(loss="absolute", eta=7, knows=thirds),
    "wide, thirds": Threat(loss="absolute", eta=120, knows=thirds),
    "relation": Threat(loss=around, eta=0), "relation, thirds":
        Threat(loss=around, eta=0, knows=thirds),
    "must guess": Threat(knows=thirds, must_guess=True),
    "must guess, tens": Threat(knows=tens, must_guess=True, loss="absolute", eta=4),
    "must guess, wide": Threat(knows=thirds, must_guess=True, loss="absolute", eta=120),
    "must guess, relation": Threat(knows=tens, must_guess=True, loss=around, eta=0),
    "group": Threat(group=lambda t: [int(v) % 4 > 0 for v in t], loss="absolute", eta=3),
    "group, tens": Threat(group=lambda t: [int(v) % 50 > 20 for v in t], knows=tens),
}  # fmt: skip


def agree(fast, slow):
    """Within what both state."""
    assert fast.kind == slow.kind == "exact"
    assert fast.interval[0] <= slow.interval[1] + 1e-15
    assert slow.interval[0] <= fast.interval[1] + 1e-15
    assert fast.interval[1] - fast.interval[0] <= 2 * line.TOLERANCE
    assert fast.rero == pytest.approx(slow.rero, abs=2e-9)
    assert fast.success_out == pytest.approx(slow.success_out, abs=1e-5)


@pytest.mark.parametrize("threat", THREATS.values(), ids=list(THREATS))
@pytest.mark.parametrize("seed", range(some(2, 1)))
def test_as_if_every_panel_saw_all(seed, threat, monkeypatch):
    rng = np.random.default_rng(seed)
    for turn in range(2):
        m = int(rng.integers(100, 200))
        x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 0.3, 60.0], size=m, p=[0.5, 0.2, 0.2, 0.09, 0.01]))
        weights = rng.gamma(rng.choice([0.1, 1.0]), size=m) + 1e-12
        if turn:
            weights = np.ceil(2 * weights)  # ties
        prior = Prior.from_counts(dict(zip(x.tolist(), weights.tolist(), strict=True)))
        sigma = float(rng.choice([0.2, 1.0, 4.0]))
        clamp = (x[0] - rng.gamma(1.0) * sigma, x[-1] + rng.gamma(1.0)) if turn else None
        noise = Gaussian(sigma=sigma, sensitivity=float(np.ptp(x)), clamp=clamp)
        fast = assess(noise, prior=prior, threat=threat)
        with monkeypatch.context() as patch:
            blind(patch)
            agree(fast, assess(noise, prior=prior, threat=threat))


@pytest.mark.parametrize("threat", part_of(THREATS.values(), 8), ids=part_of(THREATS, 8))
def test_where_one_must_name_somebody_who_is_possible(threat, monkeypatch):
    """In some of the fibers, whatever the threat says."""
    rng = np.random.default_rng(5)
    x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 25.0], size=90))
    weights = rng.gamma(0.5, size=90) + 1e-3
    prior = Prior.from_counts(dict(zip(x.tolist(), weights.tolist(), strict=True)))
    game = play(prior, threat)
    for forced in (True, rng.random(int(game.fiber.max()) + 1) < 0.5):
        several = replace(game, forced=np.full(int(game.fiber.max()) + 1, forced))
        asked = Gaussian(sigma=0.8, sensitivity=x[-1]), several, x, prior.probabilities
        fast = solve_gaussian(*asked)
        with monkeypatch.context() as patch:
            blind(patch)
            agree(fast, solve_gaussian(*asked))


@pytest.mark.parametrize(
    "threat",
    [
        Threat(target=["b"]), Threat(knows=["a"]), Threat(knows=["a"], target=["b"]),
        Threat(knows=["a"], target=["h"]), Threat(knows=["b"], target=["a"], must_guess=True),
        Threat(knows=["a"], target=["h"], must_guess=True), Threat(target=["a"]),
        Threat(target=["a"], loss="absolute", eta=8),
        Threat(target=["a"], loss="absolute", eta=8, knows=["b"]),
        Threat(knows=["b"], group=lambda t: [v > 1 for v in t["a"]]),
    ],
)  # fmt: skip
def test_records_whose_targets_are_not_in_order_along_the_line(threat, monkeypatch):
    """Classes that are read as several values, and targets that are not read."""
    rng = np.random.default_rng(3)
    counts = {
        (*rng.integers([40, 3]).tolist(), float(rng.integers(400))): float(rng.gamma(0.5))
        for _ in range(300)
    }
    prior = Prior.from_counts(counts, columns=["a", "b", "h"])
    noise = Gaussian(sigma=1.5, sensitivity=400)
    fast = assess(noise, prior=prior, threat=threat, query="h")
    blind(monkeypatch)
    agree(fast, assess(noise, prior=prior, threat=threat, query="h"))


def test_after_another_release(monkeypatch):
    """Records are weighted by what the other part of a composition said."""
    weights = np.random.default_rng(4).gamma(0.5, size=60) + 1e-6
    asked = {
        "prior": Prior.from_counts(dict(enumerate(weights.tolist()))),
        "threat": Threat(knows=thirds),
    }
    noise = Composed([GRR(epsilon=2.0, size=60), Gaussian(sigma=0.7, sensitivity=59)])
    fast = assess(noise, **asked)
    blind(monkeypatch)
    slow = assess(noise, **asked)
    assert "panels" in fast.method and fast.rad == pytest.approx(slow.rad, abs=1e-8)
    assert fast.interval[0] <= slow.interval[1] and slow.interval[0] <= fast.interval[1]
    assert fast.rero == pytest.approx(slow.rero, abs=1e-8)


@pytest.mark.parametrize("must", [False, True])
@pytest.mark.parametrize("seed", range(some(12, 5)))
def test_between_a_coarse_and_a_fine_channel(seed, must, monkeypatch):
    """Merging outputs lowers RAD; slopes bound what is lost. 3,000 outputs, by plain loops."""
    monkeypatch.setattr(seen, "PANELS", 3)
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    instance = random_instance(rng, m, kind=["exact", "absolute"][seed % 2])
    if must:
        instance.threat = Threat(
            knows=instance.threat.knows, loss=instance.threat.loss, eta=instance.threat.eta,
            must_guess=True,
        )  # fmt: skip
        if instance.threat.knows == "nothing" or np.any(instance.pi == 0):
            return  # who may be named is told apart from who is likely: see tests of the game
    elif seed % 3 == 0:
        instance = of_a_group(rng, instance)
    values = np.cumsum(rng.choice([0.5, 1.5, 14.0, 40.0], size=m))
    found = assess(
        Gaussian(sigma=1.0, sensitivity=float(np.ptp(values)) + 1e-9),
        prior=instance.prior, threat=instance.threat,
        query=lambda s: values[np.asarray(s)].tolist(),
    )  # fmt: skip
    edges = np.r_[-np.inf, np.linspace(values[0] - 9, values[-1] + 9, 3000), np.inf]
    channel = np.diff(norm.cdf(edges[None, :] - values[:, None]), axis=1)
    rad, rero = brute_force(instance, channel)
    assert rad - 1e-12 <= found.rad <= rad + 2e-3
    assert rero - 1e-12 <= found.rero <= rero + 2e-3


def looked_at(monkeypatch, prior, threat, sigma):
    """What each stretch of panels sees."""
    views, real = [], Seen.stretches

    def stretches(self, low, step, begin, end):
        found = list(real(self, low, step, begin, end))
        if begin == 0 and self.probabilities is not None and not views:
            views.extend(found)
        return iter(found)

    with monkeypatch.context() as patch:
        patch.setattr(Seen, "stretches", stretches)
        assess(Gaussian(sigma=sigma, sensitivity=1e6), prior=prior, threat=threat)
    return views


@pytest.mark.parametrize("name", ["nothing", "everything", "thirds", "tolerance", "wide, thirds"])
def test_far_values_and_sets_are_not_looked_at(name, monkeypatch):
    m, sigma = 2000, 2.0
    weights = np.random.default_rng(0).gamma(1.0, size=m)
    prior = Prior.from_counts(dict(enumerate(weights.tolist())))
    views = looked_at(monkeypatch, prior, THREATS[name], sigma)
    ends = [0, *(v.end for v in views)]
    assert [v.begin for v in views] == ends[:-1]  # no panel is left out
    for view in views:
        width = (view.end - view.begin) * 0.5 + 2 * seen.FAR
        points = len(view.seen.points)
        assert points <= width * sigma + 2
        # one set per class, or windows: each differs from the next by a class at one of its ends
        assert len(view.seen.sets.mass) <= 2 * points + 3 * 3
    assert sum((v.end - v.begin) * len(v.seen.points) for v in views) < 200 * m


def test_nothing_is_computed_in_gaps(monkeypatch):
    """Two values very far apart: only panels around each."""
    prior = Prior.from_counts({0.0: 1.0, 3e5: 2.0})
    views = looked_at(monkeypatch, prior, Threat(), 1.0)
    assert sum(v.end - v.begin for v in views) < 8 * seen.FAR + 4 * seen.PANELS
    risk = assess(Gaussian(sigma=1.0, sensitivity=3e5), prior=prior)
    assert risk.kind == "exact" and risk.rad == pytest.approx(4 / 9, abs=1e-9)
    assert risk.interval[0] <= 4 / 9 <= risk.interval[1]


def test_of_windows_with_the_same_classes_in_sight_the_lightest_is_kept():
    prior = Prior.from_counts({float(i): 1.0 + i % 5 for i in range(60)})
    game = play(prior, Threat(loss="absolute", eta=10, knows=lambda t: [v > 30 for v in t]))
    every = np.arange(60.0)
    weight, points = game.at_values(every, prior.probabilities)
    near = Seen.all(game, weight, points).between(28.5, 34.5)
    assert isinstance(near.sets, Windows)
    assert near.points.tolist() == [29, 30, 31, 32, 33, 34]
    all_sets = game.sets.members(60)
    lightest = {}
    for row, fiber, mass in zip(all_sets, game.sets.fiber, game.sets.mass, strict=True):
        key = (int(fiber), *np.flatnonzero(row[29:35]).tolist())
        lightest[key] = min(lightest.get(key, 1.0), float(mass))
    expected = {k: v for k, v in lightest.items() if len(k) > 1}
    members = near.sets.members(7)
    assert not members[:, 6].any()  # the class that is never seen
    found = {
        (int(f), *np.flatnonzero(row).tolist()): float(mass)
        for row, f, mass in zip(members, near.sets.fiber, near.sets.mass, strict=True)
    }
    assert found == pytest.approx(expected) and len(near.sets.mass) == len(expected)


@pytest.mark.parametrize("loss", ["exact", "absolute", around])
def test_sets_out_of_sight_where_one_must_guess(loss):
    """In sight: the lightest of them for each fiber that is; out of sight: only their masses."""
    counts = {float(i): 1.0 + (7 * i) % 11 for i in range(90)}
    threat = Threat(knows=tens, must_guess=True, loss=loss, eta=0)
    prior = Prior.from_counts(counts)
    game = replace(play(prior, threat), forced=np.ones(9, dtype=bool))
    weight, points = game.at_values(np.arange(90.0), prior.probabilities)
    near = Seen.all(game, weight, points).between(17.5, 32.5)
    nearer = near.between(24.5, 32.5)
    for view, low, high in ((near, 18, 33), (nearer, 25, 33)):
        assert isinstance(view.sets, Relation) == (loss is around)
        members = view.sets.members(high - low + 1)
        lost = 0.0
        for f in range(9):
            mine = game.sets.fiber == f
            sight = game.sets.members(90)[mine][:, low:high]
            mass = game.sets.mass[mine]
            if not sight.any():
                lost += mass.min()
                assert f not in view.sets.fiber
                continue
            out = mass[~sight.any(axis=1)]
            here = view.sets.fiber == f
            none = here & ~members[:, : high - low].any(axis=1)
            assert np.count_nonzero(none) == min(1, len(out))
            if len(out):
                assert view.sets.mass[none] == pytest.approx(out.min())
            assert np.count_nonzero(here & ~none) == np.count_nonzero(sight.any(axis=1))
        assert view.aside == pytest.approx(lost)


def test_one_value_with_nearly_all_probability_is_not_cut():
    """Gains are small there, and would lose digits."""
    counts = dict.fromkeys(range(400), 1e-12) | {200: 1.0}
    risk = assess(Gaussian(sigma=2.0, sensitivity=399), prior=Prior.from_counts(counts))
    unlike = 1.0 - float(
        np.sum(np.square(risk_pi := np.array(list(counts.values())) / sum(counts.values())))
    )
    assert not Seen.all(play(Prior.from_counts(counts), Threat()), None, np.zeros(1)).divisible
    assert risk_pi.max() > 1 - 1e-6 and 0 < risk.rad <= unlike * (1 + 1e-6)


def test_what_is_beyond_sight():
    assert 2 * norm.sf(seen.FAR) <= seen.OUTSIDE < 3 * norm.sf(seen.FAR)
