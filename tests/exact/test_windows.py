"""Windows of any width, in fibers or not: against brute force, and against the channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprad import Prior, Threat, assess, exact
from dprad.exact import branching, guessing, stepwise
from dprad.exact.hulls import Hulls
from dprad.game.game import play
from dprad.mechanisms import Geometric, Hybrid, Laplace, Piecewise, Staircase
from effort import some
from oracles import brute_force, of_a_group, random_instance


@pytest.fixture
def counted(monkeypatch):
    """Of each question that was asked of windows, whether they answered it."""
    used, real = [], guessing.by_window

    def found(*given):
        result = real(*given)
        used.append(result is not None)
        return result

    monkeypatch.setattr(guessing, "by_window", found)
    return used


@pytest.mark.parametrize("kind", ["random", "even", "concave", "equal"])
def test_the_furthest_point_of_a_run(kind):
    """Every run of few points, one by one; equal points, and points on one line."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        m = int(rng.integers(1, 120))
        step = {
            "random": rng.gamma(0.3, size=(2, m)), "even": np.ones((2, m)),
            "concave": np.stack([np.ones(m), np.arange(m)]),
            "equal": rng.integers(0, 3, (2, m)) * 1.0,
        }[kind]  # fmt: skip
        x, fall = np.cumsum(step, axis=1) / step.sum()
        a = rng.integers(0, m, 60)
        b = a + 1 + (rng.random(60) * (m - a)).astype(int)
        u, v = rng.random((2, 60)) * rng.integers(0, 2, (2, 60))
        found = Hulls(x, -fall).furthest(a, b, u, v)
        for i in range(60):
            value = u[i] * x[a[i] : b[i]] - v[i] * fall[a[i] : b[i]]
            assert a[i] <= found[i] < b[i]
            assert u[i] * x[found[i]] - v[i] * fall[found[i]] >= value.max() - 1e-14


def with_a_tolerance(rng, m):
    """A random question about intervals, absolute or relative; of a group, or one must guess."""
    instance = random_instance(rng, m, knows=rng.choice(["nothing", "part"]), kind="absolute")
    at = np.arange(m)
    if rng.random() < 0.5:
        eta = float(rng.choice([0.2, 0.34, 0.5, 0.9]))
        threat = replace(instance.threat, loss="relative", eta=eta)
        success = np.abs(at[:, None] - at) <= eta * at[:, None] + 1e-12
        instance = replace(instance, threat=threat, success=success)
    kind = rng.integers(3)
    if kind == 1:
        return of_a_group(rng, instance)
    return replace(instance, threat=replace(instance.threat, must_guess=bool(kind == 2)))


def cells_of(noise, values, clamp):
    """Probabilities of cells of length one, of noise with steps of 8; whole values."""
    far = 8 * int(np.ceil(40 / noise.epsilon))
    cells = np.arange(-far, far) + 0.5
    step, part = np.divmod(np.abs(cells - values[:, None]), 8)
    channel = np.exp(-noise.epsilon * (step + (part >= 2)))
    channel /= channel.sum(axis=1, keepdims=True)
    if clamp is None:
        return channel
    inside = (cells > clamp[0]) & (cells < clamp[1])
    low, high = (channel[:, beyond].sum(axis=1) for beyond in (cells < clamp[0], cells > clamp[1]))
    return np.column_stack([low, channel[:, inside], high])


@pytest.mark.parametrize("clamp", [None, (0.0, 8.0), (-7.0, 30.0)])
def test_staircase_with_a_tolerance_by_brute_force(clamp, counted):
    rng = np.random.default_rng(1)
    for _ in range(some(200, 40)):
        m = int(rng.integers(2, 8))
        instance = with_a_tolerance(rng, m)
        noise = Staircase(
            epsilon=float(rng.choice([0.4, 1.0, 4.0])), sensitivity=8, gamma=0.25, clamp=clamp
        )
        values = np.sort(rng.choice(9, size=m, replace=False)).astype(float)
        asked = {"query": lambda s, v=values: v[np.asarray(s)].tolist()}
        risk = assess(noise, prior=instance.prior, threat=instance.threat, **asked)
        rad, rero = brute_force(instance, cells_of(noise, values, clamp))
        assert risk.rad == pytest.approx(rad, abs=1e-12), instance
        if not instance.threat.must_guess:
            assert risk.rero == pytest.approx(rero, abs=1e-12)
    assert sum(counted) > 10
    assert all(counted)


def question(rng, m, whole):
    """Values even or far apart, with ties and zeros; known in part, of a group, ..."""
    x = np.cumsum(rng.choice([1.0, 1.0, 2.0, 3.0 if whole else 0.37, 40.0], size=m))
    x -= rng.choice([0.0, x[m // 3]])
    weight = [
        np.ones(m), rng.gamma(0.2, size=m), rng.gamma(1.0, size=m) * (rng.random(m) < 0.8),
        rng.integers(0, 3, m) * 1.0,
    ][rng.integers(4)]  # fmt: skip
    weight[rng.integers(m)] += 0.1
    fibers, span, given = int(rng.choice([1, 2, 3, 11, m])), float(np.ptp(x)), {}
    label = rng.integers(0, fibers, m)
    if fibers > 1:
        given["knows"] = lambda table: [int(label[np.searchsorted(x, v)]) for v in table]
    given["loss"] = str(rng.choice(["absolute", "relative"]))
    widths = [1.5, 3, 45, span // 4, span // 2] if given["loss"] == "absolute" else [0.05, 0.2, 0.7]
    given["eta"] = float(rng.choice(widths))
    kind = rng.integers(4)
    if kind == 0:
        given["must_guess"] = True
    elif kind == 1:
        inside = rng.random(m) < 0.5
        inside[weight.argmax()] = True
        given["group"] = lambda table: inside[np.searchsorted(x, table)].tolist()
    prior = Prior.from_counts(dict(zip(x.tolist(), weight.tolist(), strict=True)))
    return x, {"prior": prior, "threat": Threat(**given)}


def same(one, other):
    assert one.rad == pytest.approx(other.rad, abs=1e-13)
    assert one.rero == pytest.approx(other.rero, abs=1e-13)
    # whichever of the guesses is named that differ by rounding
    assert one.success_out == pytest.approx(other.success_out, abs=1e-4)


@pytest.mark.parametrize("most", [25, 200])
def test_windows_equal_the_channel(most, monkeypatch, counted):
    rng = np.random.default_rng(most)
    for _ in range(some(150, 25 if most < 100 else 6)):
        m, epsilon = int(rng.integers(2, most)), float(rng.choice([0.01, 0.3, 1, 3, 10, 30]))
        x, asked = question(rng, m, whole=False)
        step, ends = float(np.ptp(x)) * float(rng.choice([1.0, 1.3])), (x[0], x[-1] + 0.001)
        clamp = x[0] - step * rng.choice([0, 0.1, 3.3]), x[-1] + step * rng.choice([0.01, 1, 7.2])
        for mechanism in (
            Staircase(epsilon=epsilon, sensitivity=step),
            Staircase(epsilon=epsilon, sensitivity=step, clamp=clamp),
            Staircase(epsilon=epsilon, sensitivity=step, gamma=float(rng.random())),
            Piecewise(epsilon=epsilon, bounds=ends),
            Hybrid(epsilon=epsilon, bounds=ends),
        ):
            fast = assess(mechanism, **asked)
            with monkeypatch.context() as patch:
                patch.setattr(stepwise, "zones_of", lambda *_: None)
                same(fast, assess(mechanism, **asked))
    assert sum(counted) > 20
    assert all(counted)


@pytest.mark.parametrize("most", [40, 600])
def test_wide_windows_of_geometric_noise(most, monkeypatch):
    rng, used, real = np.random.default_rng(most), [], exact.solve_geometric

    def found(*given):
        solution = real(*given)
        used.append(solution is not None)
        return solution

    for _ in range(some(150, 40 if most < 100 else 8)):
        m, rate = int(rng.integers(2, most)), float(rng.choice([1e-6, 1e-3, 0.05, 0.2, 1, 3, 30]))
        x, asked = question(rng, m, whole=True)
        if asked["threat"].must_guess:
            continue
        span = float(np.ptp(x))
        noise = Geometric(epsilon=rate * span, sensitivity=span)
        with monkeypatch.context() as patch:
            patch.setattr(exact, "solve_geometric", found)
            fast = assess(noise, **asked)
            patch.setattr(exact, "solve_geometric", lambda *_: None)
            same(fast, assess(noise, **asked))
    assert sum(used) > 4


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("loss", ["absolute", "relative"])
@pytest.mark.parametrize("kind", [Laplace, Geometric])
def test_few_of_wide_windows_are_followed(kind, loss, even, monkeypatch):
    """Noise far narrower than the windows: most hold everything near an output."""
    m, real, followed = 4000, branching._narrowed, []

    def narrowed(line, work, **given):
        followed.append(len(work.sets))
        return real(line, work, **given)

    monkeypatch.setattr(branching, "_narrowed", narrowed)
    weight = np.ones(m) if even else np.random.default_rng(0).gamma(1.0, size=m)
    prior = Prior.from_counts(dict(zip(range(1, m + 1), weight.tolist(), strict=True)))
    threat = Threat(loss=loss, eta=m / 5 if loss == "absolute" else 0.1)
    assess(kind(epsilon=m / 5, sensitivity=m - 1), prior=prior, threat=threat)
    assert m < sum(followed) < 100 * m


def test_windows_of_fibers_are_those_of_each_value():
    """One by one: what lies within the tolerance of each value, in each fiber."""
    rng = np.random.default_rng(7)
    for turn in range(some(150, 40)):
        m = int(rng.integers(2, 40))
        x, asked = question(rng, m, whole=bool(turn % 2))
        threat = replace(asked["threat"], must_guess=False, group=None)
        game = play(asked["prior"], threat)
        kept = asked["prior"].table > 0
        label = np.asarray(threat.fibers(asked["prior"]))[kept]
        t = x[kept]
        reach = threat.eta * (np.abs(t) if threat.loss == "relative" else np.ones(len(t)))
        near = np.abs(t[:, None] - x) <= (reach * (1 + 1e-12) + 1e-12)[:, None]
        pi, sets = asked["prior"].table[kept], set()
        for f in np.unique(label):
            sets |= {(f, tuple(np.flatnonzero(g & (label == f)))) for g in near.T}
        sets = {s for s in sets if s[1]}
        mass = sorted(pi[list(s[1])].sum() for s in sets)
        assert np.sort(game.sets.mass) == pytest.approx(mass, abs=1e-14)
