"""What the error bounds of continuous priors rest on, against sums over fine grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, norm, truncnorm, uniform

from dprad import DpradError, Prior, Threat, assess
from dprad.exact import continuous
from dprad.exact.solution import Solution
from dprad.game.game import play
from dprad.mechanisms import Duchi, ExponentialInterval, Gaussian, Laplace
from dprad.paper import nested

LOW, HIGH = 1.0, 4.0


def densities(mechanism, z, t):
    """Of outputs t given records z, on a grid."""
    return np.exp(mechanism.log_likelihood(t[None, :], z[:, None]))


@pytest.mark.parametrize(
    ("mechanism", "ends", "slack", "exact"),
    [
        (Laplace(epsilon=2.0, sensitivity=3.0), (-40, 45), 1.002, True),
        (Laplace(epsilon=9.0, sensitivity=3.0), (-10, 15), 1.01, True),
        (Gaussian(sigma=0.8), (-8, 13), 1.2, True),
        (ExponentialInterval(epsilon=3.0, bounds=(0.0, 6.0)), (0, 6), 1.05, False),
        (ExponentialInterval(epsilon=5.0, bounds=(-6.0, 6.0)), (-6, 6), 1.05, False),
        (ExponentialInterval(epsilon=30.0, bounds=(LOW, HIGH)), (LOW, HIGH), 1.2, False),
    ],
)
def test_smoothness_is_an_upper_bound_and_near(mechanism, ends, slack, exact):
    """Integrals of sup p and sup |dp/dz|; the variation of the first and second derivative."""
    smooth = continuous.smoothness(mechanism, LOW, HIGH)
    t = np.linspace(*ends, 12_001)
    dt = t[1] - t[0]
    z = np.linspace(LOW, HIGH, 301)
    p = densities(mechanism, z, t)
    step = 1e-5
    inner = z[1:-1]
    change = (densities(mechanism, inner + step, t) - densities(mechanism, inner - step, t)) / (
        2 * step
    )
    peak = p.max(axis=0).sum() * dt
    slope = np.abs(change).max(axis=0).sum() * dt
    assert peak * 0.998 <= smooth.peak <= peak * slack
    assert slope * 0.99 <= smooth.slope <= slope * max(slack, 1.35)
    variation = np.abs(change).sum(axis=1) * dt
    bound = smooth.variation(inner)
    assert np.all(bound >= variation * 0.998) and np.median(bound / variation) <= (
        1.003 if exact else 1.6
    )
    some = inner[::30]
    wide = 0.02  # the second derivative may be a mass at t = z: by differences of the first
    first = [
        (densities(mechanism, some + wide + s, t) - densities(mechanism, some - wide + s, t))
        / (2 * wide)
        for s in (-wide, wide)
    ]
    second = np.abs(first[1] - first[0]).sum(axis=1) * dt / (2 * wide)
    bound = smooth.curvature(some)
    assert np.all(bound >= second * 0.97) and np.median(bound / second) <= (1.14 if exact else 2.5)


def test_the_exponential_mechanism_by_hand():
    """V = r (1 + tilt), C = r^2 (4/T + 2 tilt + 2 tilt^2), tilt = |T'|/(r T), T' by differences."""
    noise = ExponentialInterval(epsilon=4.0, bounds=(0.5, 6.0))
    smooth, r = continuous.smoothness(noise, LOW, HIGH), noise.rate
    z, step = np.linspace(LOW, HIGH, 9), 1e-6
    total = noise.total(z)
    tilt = np.abs(noise.total(z + step) - noise.total(z - step)) / (2 * step) / (r * total)
    assert smooth.variation(z) == pytest.approx(r * (1 + tilt), rel=1e-6)
    expected = r * r * (4 / total + 2 * tilt + 2 * tilt**2)
    assert smooth.curvature(z) == pytest.approx(expected, rel=1e-6)
    grid = np.linspace(LOW, HIGH, 4001)
    miss = math.exp(4 * r * (HIGH - LOW) / 4000)
    ridge = continuous._ridge(r / noise.total(grid), grid, r, (0.5, 6.0))
    assert smooth.peak == pytest.approx(miss * ridge, rel=1e-12)


def test_a_ridge_by_hand():
    """The integral over t of the largest height(z) e^{-r|t - z|}: all z, all t."""
    z, r, ends = np.linspace(1.0, 3.0, 401), 2.5, (0.25, 5.0)
    height = 1.0 + np.sin(4 * z) ** 2
    t = np.linspace(*ends, 20_001)
    plain = np.max(height * np.exp(-r * np.abs(t[:, None] - z)), axis=1)
    expected = float(np.trapezoid(plain, t))
    found = continuous._ridge(height, z, r, ends)
    assert expected <= found <= expected * 1.01


def test_a_ridge_point_by_point():
    """Few points, a steep peak: between two points the higher of their tops counts, beyond them
    what decays from the outermost."""
    z, r, ends = np.linspace(1.0, 3.0, 5), 0.7, (0.25, 5.0)
    for height in (np.array([0.1, 0.2, 9.0, 0.3, 0.1]), np.array([5.0, 0.1, 1.0, 0.1, 7.0])):
        top = [
            max(h * math.exp(-r * abs(t - x)) for h, x in zip(height, z, strict=True)) for t in z
        ]
        expected = sum(max(a, b) * 0.5 for a, b in itertools.pairwise(top))
        expected += top[0] * (1 - math.exp(-r * 0.75)) / r + top[-1] * (1 - math.exp(-r * 2)) / r
        assert continuous._ridge(height, z, r, ends) == pytest.approx(expected, rel=1e-12)


def test_two_outputs():
    """Duchi: the chances of both are lines in z."""
    mechanism = Duchi(epsilon=2.0, bounds=(0.0, 5.0))
    smooth = continuous.smoothness(mechanism, LOW, HIGH)
    up = mechanism.up(mechanism.scaled(np.array([LOW, HIGH])))
    rise = (up[1] - up[0]) / (HIGH - LOW)
    assert smooth.peak >= up[1] + 1 - up[0]
    assert smooth.peak == pytest.approx(1 + math.tanh(1.0))
    assert smooth.slope == pytest.approx(2 * rise)
    assert smooth.variation(np.array([2.0]))[0] == pytest.approx(2 * rise)
    assert smooth.curvature(np.array([2.0]))[0] == 0.0


def test_no_noise_scale_no_smoothness():
    smooth = continuous.smoothness(ExponentialInterval(epsilon=0.0, bounds=(0, 5)), LOW, HIGH)
    assert (smooth.peak, smooth.slope) == (1.0, 0.0)
    assert smooth.variation(np.ones(3)).tolist() == smooth.curvature(np.ones(3)).tolist() == [0] * 3


@pytest.mark.parametrize("low", [0.0, 0.2])
def test_cells_of_a_prior(low):
    """Masses, and the range of the density within each cell, on a distribution that is cut off."""
    prior = Prior.continuous(beta(2, 5), low, 0.9)
    edges = np.array([low, 0.3, 0.35, 0.6, 0.9])
    cells = continuous._measure(prior, edges)
    whole = beta(2, 5).cdf(0.9) - beta(2, 5).cdf(low)
    assert cells.mass == pytest.approx(np.diff(beta(2, 5).cdf(edges)) / whole, rel=1e-12)
    assert cells.mass.sum() == pytest.approx(1.0)
    for i in range(4):
        values = beta(2, 5).pdf(np.linspace(edges[i], edges[i + 1], 5)) / whole
        assert cells.density[i] == pytest.approx(values.max())
        assert cells.wobble[i] == pytest.approx(np.ptp(values))
    pole = continuous._measure(Prior.continuous(beta(0.5, 1), 0, 1), np.array([0.0, 0.5, 1.0]))
    assert np.isinf(pole.wobble[0]) and np.isfinite(pole.wobble[1])


def test_a_distribution_cut_off_far_out():
    """Its distribution function is one there; the other tail still has digits."""
    prior = Prior.continuous(norm(), 9, 12)
    assert continuous._scale(prior) == pytest.approx(1 / (norm.sf(9) - norm.sf(12)), rel=1e-12)
    other = Prior.continuous(norm(), -12, -9)
    assert continuous._scale(other) == pytest.approx(continuous._scale(prior), rel=1e-12)


def test_a_density_that_lies_is_caught():
    """A spike between the points at which the density is read: it may vary by anything."""

    class Spiked:
        def cdf(self, x):
            return 0.5 * np.clip(x, 0, 1) + 0.5 * np.clip((np.asarray(x) - 0.51) / 0.01, 0, 1)

        def pdf(self, x):
            return np.full(np.shape(x), 0.5)

    cells = continuous._measure(Prior.continuous(Spiked(), 0, 1), np.array([0.0, 0.4, 0.8, 1.0]))
    assert np.isinf(cells.wobble[1]) and cells.wobble[0] == cells.wobble[2] == pytest.approx(0)


def test_what_is_owed_by_hand():
    smooth = continuous.Smoothness(1.7, 2.3, lambda z: 1 + z, lambda z: 3 + z * z)
    edges = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    mass, wobble = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, np.inf, 40.0, 0.0])
    density = np.array([2.0, np.inf, 41.0, 1.0])
    cells = continuous._Cells(edges, mass, wobble, density)
    for i, found in enumerate(continuous._moved(cells, smooth)):
        w, v, c = edges[i + 1] - edges[i], 1 + edges[i + 1], 3 + edges[i + 1] ** 2
        choices = [(mass[i] * c + v * wobble[i]) * w * w / 8, mass[i] * v * w / 2]
        assert found == pytest.approx(min(choices))
    assert cells.middle == pytest.approx([0.05, 0.2, 0.45, 0.8])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bend", [1.0, 1e-3])
def test_windows_that_slide_by_hand(bend, seed):
    """Cells of width 1/2, windows of 4 cells on 10: which windows there are, what each owes."""
    smooth = continuous.Smoothness(1.7, 2.3, lambda z: z, lambda z: z)
    rng = np.random.default_rng(seed)
    edges, mass = 0.5 * np.arange(11.0), rng.dirichlet(np.ones(10))
    wobble, density = rng.random(10) * 0.2 * bend, rng.random(10) * 0.3 * bend
    wobble[5] = density[5] = np.inf
    cells = continuous._Cells(edges, mass, wobble, density)
    owed, (begin, end) = continuous._slid(cells, 1.0, 4, smooth)
    windows = {(int(a), int(b)) for a, b in zip(begin, end, strict=True)}
    whole = {(k, k + 4) for k in range(7)}
    assert windows == whole | {(0, 2), (0, 3), (0, 4)} | {(6, 10), (7, 10), (8, 10)}
    for k in range(6):
        a, b = mass[k], mass[k + 4]
        choices = [
            [(wobble[k] + wobble[k + 4]) / 8 * 1.7, (density[k] + density[k + 4]) / 16 * 2.3],
            [2 * a * 1.7, b / 2 * 2.3],
            [2 * b * 1.7, a / 2 * 2.3],
        ]
        best = min(choices, key=sum)
        cut = mass[k] / 2 * 2.3 if k in (2, 3) else 0.0  # also where a window is cut off at an end
        assert owed[:, k] == pytest.approx([best[0], max(best[1], cut)])
    assert owed[1, 6:8] == pytest.approx(mass[6:8] / 2 * 2.3) and owed[0, 6:].max() == 0.0


# -- the paper's nested Monte Carlo ----------------------------------------------------------------
@pytest.mark.parametrize("n", [50, 4000, 10**7])
@pytest.mark.parametrize(("top", "heaviest"), [(1.2, 0.3), (4.0, 1.0)])
@pytest.mark.parametrize("confidence", [0.1, 0.9, 0.999])
def test_the_error_of_nested_monte_carlo_by_hand(n, top, heaviest, confidence):
    k = 4

    def chance(s):
        first = 2 * math.exp(-n * s * s / (18 * top**2))
        inner = max(0.0, s / 3 - top * math.sqrt(2 * math.log(2 * k) / n))
        mean = max(0.0, s / (3 * heaviest) - top / (2 * math.sqrt(n)))
        second = math.exp(-n * inner**2 / (2 * top**2))
        return first + second + math.exp(-2 * n * mean**2 / top**2) - (1 - confidence)

    expected = brentq(chance, 1e-9, 1e4, xtol=1e-15)
    assert nested._error(n, top, heaviest, confidence) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("distribution", "ends", "epsilon"),
    [
        (uniform(), (0.0, 1.0), 5.0),
        (uniform(), (0.0, 1.0), 0.5),
        (truncnorm(-1, 3), (-1.0, 3.0), 5.0),
        (norm(), (0.3, 2.0), 0.8),
    ],
)
def test_nested_monte_carlo_estimates_all_three(distribution, ends, epsilon):
    """RAD, the success on absent people, and that of the best attack, near the exact ones."""
    prior = Prior.continuous(distribution, *ends)
    eta = 0.2 * (ends[1] - ends[0])
    noise = ExponentialInterval(epsilon=epsilon, bounds=(ends[0], ends[1]), factor=1.0)
    exact = assess(noise, prior=prior, threat=Threat(loss="absolute", eta=eta))
    found = nested.nested_monte_carlo(noise, prior, eta=eta, draws=2000)
    assert found.rad == pytest.approx(exact.rad, abs=0.015)
    assert found.success_out == pytest.approx(exact.success_out, abs=0.02)
    assert found.rero == pytest.approx(found.rad + found.success_out, abs=1e-12)
    assert 0.0 <= found.interval[0] <= found.interval[1] <= 1.0


def test_what_the_error_of_nested_monte_carlo_is_made_of(monkeypatch):
    """The largest density of an output, the heaviest window, and the length of the line."""
    asked = []
    monkeypatch.setattr(nested, "_error", lambda *given: asked.append(given) or 0.01)
    noise, law = ExponentialInterval(epsilon=4.0, bounds=(0.0, 3.0)), beta(2, 5)
    prior = Prior.continuous(law, 0.0, 0.9)
    found = nested.nested_monte_carlo(noise, prior, eta=0.1, draws=300, confidence=0.8)
    ((n, top, heaviest, confidence),) = asked
    z = np.linspace(0.0, 0.9, 2001)
    densest = np.exp(noise.log_likelihood(z[:, None], z[None, :])).max()
    assert (n, confidence) == (300, 0.8)
    assert top == pytest.approx(densest, rel=1e-9)
    windows = law.cdf(np.minimum(z + 0.1, 0.9)) - law.cdf(np.maximum(z - 0.1, 0.0))
    assert heaviest == pytest.approx(windows.max() / law.cdf(0.9), rel=1e-3)
    assert found.interval == pytest.approx((max(0.0, found.rad - 0.03), found.rad + 0.03))
    monkeypatch.undo()
    with pytest.raises(DpradError, match="confidence"):
        nested.nested_monte_carlo(noise, prior, eta=0.1, draws=300, confidence=1.5)


def test_nested_monte_carlo_draws_as_often_as_it_says(monkeypatch):
    """Twice n records for each of n outputs, whatever the block."""
    monkeypatch.setattr(nested.Numpy, "block", 700)

    class Counted:
        drawn = 0

        def rvs(self, size, random_state):
            Counted.drawn += size[0] * size[1]
            return random_state.random(size)

        def cdf(self, x):
            return np.clip(x, 0.0, 1.0)

        def pdf(self, x):
            return np.ones(np.shape(x))

    prior = Prior.continuous(Counted(), 0, 1)
    nested.nested_monte_carlo(ExponentialInterval(epsilon=1.0), prior, eta=0.1, draws=100)
    assert Counted.drawn == 2 * 100 * 100


class Bumps:
    """A density with eight tops: more windows that could be the best than are tried."""

    def pdf(self, x):
        return 1 + 0.9 * np.sin(16 * np.pi * np.asarray(x))

    def cdf(self, x):
        return x + 0.9 * (1 - np.cos(16 * np.pi * np.asarray(x))) / (16 * np.pi)


@pytest.mark.parametrize(("law", "order"), [(beta(2, 3), 2e-3), (Bumps(), 2e-2)])
def test_candidates_hold_the_best_window(law, order):
    """Among the four windows that are tried is (nearly) the best one of all on the grid.

    The first is about as good: gains are told apart to the width of the grid.
    """
    prior = Prior.continuous(law, 0, 1)
    noise = ExponentialInterval(epsilon=6.0, factor=1.0)
    line = nested._line(prior)
    windows = nested._Windows.of(line, 0.1)
    fine = np.linspace(0, 1, 20_001)
    weight = law.pdf(fine) / 20_000
    t = np.linspace(0.01, 0.99, 15)
    p = np.exp(noise.log_likelihood(t[:, None], fine))
    pbar = p @ weight
    chosen = nested._candidates(noise, t, pbar[:, None], windows, line, nested.Numpy(0))
    assert chosen.shape == (15, nested.CANDIDATES)
    for i in range(len(t)):
        total = np.r_[0.0, np.cumsum(weight * (p[i] - pbar[i]))]

        def gain(x, total=total):
            ends = np.searchsorted(fine, [x - 0.1, x + 0.1])
            return total[ends[1]] - total[ends[0]]

        most = gain(windows.guess).max()
        assert gain(chosen[i]).max() >= most - 2e-4
        assert gain(chosen[i, 0]) >= most - order


# -- how the parts are put together ----------------------------------------------------------------
def solved(rad, interval=None, kind="exact"):
    return Solution(
        rad=rad, success_out=0.2, rero=0.5, method="given", kind=kind, interval=interval
    )


@pytest.mark.parametrize("eta", [0.1, 0.13, 0.6])
def test_the_interval_is_made_of_the_two_errors(eta):
    prior = Prior.continuous(beta(2, 3), 0, 1)
    noise = Laplace(epsilon=2.0, sensitivity=1.0)
    game = play(prior, Threat(loss="absolute", eta=eta))
    cells, (begin, end), (moved, slid) = continuous._windows(
        prior, eta, continuous.smoothness(noise, 0, 1)
    )
    assert 0 < moved + slid <= continuous.TOLERANCE and len(cells.mass) <= continuous.MAX_CELLS
    smooth = continuous.smoothness(noise, 0, 1)
    assert moved == pytest.approx(continuous._moved(cells, smooth).sum())
    length = cells.edges[end] - cells.edges[begin]
    whole = (begin > 0) & (end < len(cells.mass))
    assert length[whole] == pytest.approx(2 * eta)
    assert length.min() == pytest.approx(min(eta, 1.0 - 1e-9), abs=1e-8)
    assert length.max() == pytest.approx(min(1.0, 2 * eta))
    for cut in (begin == 0, end == len(cells.mass)):
        assert length[cut].min() == pytest.approx(eta)
    period = int((end - begin)[begin == 0].max())
    owed, _ = continuous._slid(cells, eta, period, smooth)
    assert slid == pytest.approx(owed[0].max() + owed[1].max()) and slid > 0
    seen = []

    def finite(posed):
        seen.append(posed.game)
        assert posed.read == pytest.approx(cells.middle) and posed.pi == pytest.approx(cells.mass)
        return solved(0.3, (0.298, 0.302))

    found = continuous.solve_continuous(noise, prior, eta, game, finite)
    assert found.interval == pytest.approx((0.298 - moved, 0.302 + moved + slid), abs=2e-14)
    assert found.interval[0] < 0.298 - moved and found.interval[1] > 0.302 + moved + slid
    table = seen[0]
    pairs = set(zip(begin.tolist(), end.tolist(), strict=True))
    assert set(zip(table.sets.low.tolist(), table.sets.high.tolist(), strict=True)) == pairs
    assert table.class_of.tolist() == list(range(len(cells.mass))) and table.fiber.max() == 0
    assert (found.rad, found.kind) == (0.3, "exact")

    def at(rad, interval=None, kind="exact"):
        given = solved(rad, interval, kind)
        return continuous.solve_continuous(noise, prior, eta, game, lambda *_: given)

    assert at(0.3, (0.2, 0.4)).kind == "upper-bound"
    assert at(0.3, (0.2, 0.4)).rad == pytest.approx(0.4 + moved + slid)
    assert at(0.3, (0.2, 0.4), "estimate").kind == "estimate"
    assert at(0.0).interval[0] == 0.0
    assert at(0.3).interval == pytest.approx((0.3 - moved, 0.3 + moved + slid))


def test_membership_lies_between_middles_and_ends():
    prior = Prior.continuous(beta(2, 3), 0, 1)
    noise = Laplace(epsilon=2.0, sensitivity=1.0)
    game = play(prior, Threat(knows="everything"))
    asked = []

    def finite(posed):
        asked.append((posed.read, posed.pi, posed.game))
        return solved(0.30 if len(asked) == 1 else 0.302)

    found = continuous.solve_continuous(noise, prior, 0.0, game, finite)
    (middles, mass, table), (ends, halves, _) = asked
    assert mass.sum() == pytest.approx(1) and halves.sum() == pytest.approx(1)
    assert middles == pytest.approx((ends[1:] + ends[:-1]) / 2)
    assert halves[1:-1] == pytest.approx((mass[1:] + mass[:-1]) / 2)
    assert halves[0] == pytest.approx(mass[0] / 2) and halves[-1] == pytest.approx(mass[-1] / 2)
    assert table.fiber.tolist() == table.class_of.tolist() == list(range(len(mass)))
    cells = continuous._measure(prior, ends)
    error = continuous._moved(cells, continuous.smoothness(noise, 0, 1)).sum()
    assert error <= continuous.TOLERANCE
    assert found.rad == pytest.approx(0.301)
    assert found.interval == pytest.approx((0.30 - error, 0.302 + 2 * error), abs=1e-12)
    wide = lambda *_: solved(0.3, (0.298, 0.303))  # noqa: E731
    found = continuous.solve_continuous(noise, prior, 0.0, game, wide)
    assert found.interval == pytest.approx((0.298 - error, 0.303 + 2 * error), abs=1e-12)


def test_halving_takes_the_cells_that_owe_most():
    edges = np.array([0.0, 1.0, 2.0, 4.0])
    assert continuous._halved(edges, np.array([8.0, 0.9, 1.0])).tolist() == [0, 0.5, 1, 2, 3, 4]


def test_nothing_can_be_hit_or_missed():
    prior, noise = Prior.continuous(uniform(), 0, 1), Laplace(epsilon=1.0)
    never = assess(noise, prior=prior, threat=Threat(loss="absolute", eta=0.0))
    assert (never.rad, never.success_out, never.rero) == (0.0, 0.0, 0.0)
    always = assess(noise, prior=prior, threat=Threat(loss="absolute", eta=1.0))
    assert (always.rad, always.success_out, always.rero) == (0.0, 1.0, 1.0)
    game = play(prior, Threat(loss="absolute", eta=1.0))
    plain = continuous.solve_continuous(noise, prior, 1.0, game, lambda *_: None)
    assert (plain.success_out, plain.rero) == (1.0, 1.0)
