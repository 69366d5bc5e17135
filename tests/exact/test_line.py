"""Gaussian noise: panels against formulas, quadrature and a fine channel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dprad import DpradError, Prior, Threat, assess
from dprad.exact import line, seen
from dprad.game.game import play
from dprad.mechanisms import Density, Gaussian, Laplace, Piecewise
from dprad.numerics import legendre
from oracles import brute_force, random_instance


@pytest.mark.parametrize(("m", "sigma"), [(2, 1.0), (11, 2.0), (40, 5.0), (5, 0.05), (3, 10.0)])
def test_formula_of_the_paper(m, sigma):
    risk = assess(Gaussian(sigma=sigma, sensitivity=m - 1), prior=Prior.uniform(m))
    exact = (m - 1) / m * (2 * norm.cdf(1 / (2 * sigma)) - 1)
    assert risk.interval[0] - 1e-13 <= exact <= risk.interval[1] + 1e-13
    assert risk.interval[1] - risk.interval[0] <= line.TOLERANCE
    assert risk.rad == risk.interval[1] and risk.kind == "exact"


@pytest.mark.parametrize("clamp", [None, (-1.0, 14.0)])
@pytest.mark.parametrize("seed", range(6))
def test_between_a_coarse_and_a_fine_channel(seed, clamp):
    """Merging outputs lowers RAD; slopes bound what is lost. 20,000 outputs, by plain loops."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    instance = random_instance(rng, m)
    values = np.sort(rng.choice(12, size=m, replace=False)).astype(float)
    sigma = float(rng.choice([0.7, 3.0, 10.0]))
    risk = assess(
        Gaussian(sigma=sigma, sensitivity=12, clamp=clamp),
        prior=instance.prior,
        threat=instance.threat,
        query=lambda s: values[np.asarray(s)].tolist(),
    )
    low, high = clamp or (-9 * sigma, 12 + 9 * sigma)
    edges = np.r_[-np.inf, np.linspace(low, high, 2000), np.inf]
    channel = np.diff(norm.cdf((edges[None, :] - values[:, None]) / sigma), axis=1)
    rad, rero = brute_force(instance, channel)
    assert risk.kind == "exact"
    assert rad - 1e-12 <= risk.rad <= rad + 2e-4
    assert rero - 1e-12 <= risk.rero <= rero + 2e-4
    assert risk.success_in <= risk.rero + 1e-9


def test_ties_in_the_middle_of_a_panel():
    """Crossings that fall on the centre of a panel, where averages tie: they owe all the same."""
    for m in (2, 4, 6, 10):
        for sigma in np.arange(0.3, 4.0, 0.1):
            risk = assess(Gaussian(sigma=float(sigma), sensitivity=m - 1), prior=Prior.uniform(m))
            exact = (m - 1) / m * (2 * norm.cdf(1 / (2 * sigma)) - 1)
            assert risk.interval[0] - 1e-13 <= exact <= risk.interval[1] + 1e-13
            assert risk.rero >= exact + 1 / m - 1e-13
    for distance in (0.125, 1.0, 2.1, 5.0):
        prior = Prior.from_probabilities([0.5, 0.5], support=[-distance / 2, distance / 2])
        risk = assess(
            Gaussian(sigma=1.0, sensitivity=distance),
            prior=prior,
            threat=Threat(knows="everything"),
        )
        exact = norm.cdf(distance / 2) - 0.5
        assert risk.interval[0] - 1e-13 <= exact <= risk.interval[1] + 1e-13


@pytest.mark.parametrize(
    ("mechanism", "counts", "threat", "exact"),
    [
        (Gaussian(sigma=1e-9), {0.0: 1, 1.0: 1}, Threat(), 0.5),
        (Gaussian(sigma=1e-310), {0.0: 1, 1.0: 1}, Threat(), 0.5),
    ],
)
def test_what_panels_cannot_decide_is_estimated(mechanism, counts, threat, exact):
    risk = assess(mechanism, prior=Prior.from_counts(counts), threat=threat, confidence=0.9999)
    assert risk.interval[0] <= exact <= risk.interval[1]


@pytest.mark.parametrize("eta", [0, 50, 300])
@pytest.mark.parametrize("sigma", [100, 5000])
def test_nearly_equal_gains_are_told_apart(sigma, eta):
    """A thousand windows that differ by two records each: proven, not estimated."""
    prior, threat = Prior.uniform(1001), Threat(loss="absolute", eta=eta)
    risk = assess(Gaussian(sigma=sigma, sensitivity=1000), prior=prior, threat=threat)
    assert risk.kind == "exact" and risk.interval[1] - risk.interval[0] <= line.TOLERANCE
    # the midpoint rule over 4,000 outputs
    edges = np.linspace(-9 * sigma, 1000 + 9 * sigma, 4001)
    t, values = (edges[1:] + edges[:-1]) / 2, np.arange(1001)
    low, high = np.maximum(values - eta, 0), np.minimum(values + eta + 1, 1001)
    total = 0.0
    for part in np.array_split(t, 40):
        p = norm.pdf(part[:, None], values, sigma) / 1001
        prefix = np.concatenate([np.zeros((len(p), 1)), np.cumsum(p, axis=1)], axis=1)
        gain = prefix[:, high] - prefix[:, low] - (high - low) / 1001 * p.sum(axis=1)[:, None]
        total += np.maximum(gain.max(axis=1), 0).sum() * (edges[1] - edges[0])
    assert risk.rad == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_density_that_is_known_by_another_name(seed):
    """Gaussian, Laplace and piecewise noise given as log-densities: the same risk."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    instance = random_instance(rng, m)
    values = np.sort(rng.choice(9, size=m, replace=False)).astype(float)
    question = {
        "prior": instance.prior,
        "threat": instance.threat,
        "query": lambda s: values[np.asarray(s)].tolist(),
    }
    for known, bounds in (
        (Gaussian(sigma=1.5, sensitivity=8), (-20, 28)),
        (Laplace(epsilon=6.0, sensitivity=8), (-50, 58)),
        (Piecewise(epsilon=1.5, bounds=(0, 8)), (-8, 16)),  # jumps, at places it is not told
    ):
        density = Density(log_density=known.log_likelihood, bounds=bounds)
        found, exact = assess(density, **question), assess(known, **question)
        assert found.kind == "exact"
        assert found.interval[0] - 1e-9 <= exact.rad <= found.interval[1] + 1e-9
        assert found.rad == pytest.approx(exact.rad, abs=1e-5)
        assert found.rero == pytest.approx(exact.rero, abs=1e-5)
        assert found.success_out == pytest.approx(exact.success_out, abs=1e-4)


def uniform_noise(width, bounds):
    def log_density(t, z):
        return np.where(np.abs(t - z) < width, -np.log(2 * width), -np.inf)

    return Density(log_density=log_density, bounds=bounds)


@pytest.mark.parametrize("distance", [0.004, 0.5, 1.3])
def test_jumps_next_to_the_ends_of_panels(distance):
    """Two records under uniform noise: what one can reach and the other cannot."""
    risk = assess(
        uniform_noise(1.0, (0, 64)), prior=Prior.from_counts({20.0: 1, 20.0 + distance: 1})
    )
    assert risk.interval[0] - 1e-9 <= min(distance, 2) / 4 <= risk.interval[1] + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_uniform_noise_of_any_width(seed):
    width = float(np.random.default_rng(seed).uniform(0.2, 0.9))
    risk = assess(uniform_noise(width, (-1, 2)), prior=Prior.uniform(2))
    exact = min(1.0, 1 / (2 * width)) / 2
    assert risk.interval[0] - 1e-9 <= exact <= risk.interval[1] + 1e-9


def test_a_density_that_is_not_one():
    half = Density(log_density=lambda t, z: norm.logpdf(t, z) - np.log(2), bounds=(-9, 10))
    with pytest.raises(DpradError, match=r"record number 1 its integral is 0\.5"):
        assess(half, prior=Prior.uniform(2))
    narrow = Density(log_density=lambda t, z: norm.logpdf(t, z), bounds=(0, 1))
    with pytest.raises(DpradError, match=r"integral is 0\.341"):
        assess(narrow, prior=Prior.uniform(2))


def test_a_target_that_is_not_read():
    prior = Prior.from_counts(
        {(d, a): 1 + a % 3 for d in "xy" for a in range(0, 50, 10)}, columns=["d", "age"]
    )
    risk = assess(
        Gaussian(sigma=10, sensitivity=40), prior=prior, threat=Threat(target=["d"]), query="age"
    )
    assert risk.interval[0] == 0.0 and risk.rad < 1e-9


def test_stays_below_its_promise(rng):
    for eta in (0, 2):
        prior, threat = Prior.uniform(6), Threat(loss="absolute", eta=eta)
        mechanism = Gaussian(sigma=4.0, sensitivity=5)
        bound = assess(mechanism.guarantee, prior=prior, threat=threat).rad
        assert assess(mechanism, prior=prior, threat=threat).rad <= bound


def test_knowing_more_never_lowers_the_risk():
    prior = Prior.from_counts({i: 1 + i % 3 for i in range(12)})
    risks = [
        assess(Gaussian(sigma=5, sensitivity=11), prior=prior, threat=Threat(knows=knows)).rad
        for knows in ("nothing", lambda s: (s % 2).tolist(), "everything")
    ]
    assert risks[0] <= risks[1] + 1e-9 <= risks[2] + 2e-9


def test_bad_input():
    with pytest.raises(DpradError, match="sigma must be positive"):
        Gaussian(sigma=0)
    with pytest.raises(DpradError, match="records differ by more"):
        assess(Gaussian(sigma=1), prior=Prior.uniform(3))


# -- what the error bound rests on ----------------------------------------------------------------
def test_the_steepest_derivative_of_the_normal_density():
    """The derivative of the order of the series, from Hermite polynomials on a grid through 0."""
    from numpy.polynomial import hermite_e

    x = np.linspace(-9, 9, 200_001)
    n = legendre.TERMS
    derivative = hermite_e.hermeval(x, [0.0] * n + [1.0]) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    assert pytest.approx(float(np.abs(derivative).max()), rel=1e-12) == line.STEEP


def test_the_reported_error_is_the_one_of_the_panels():
    """The interval of an easy question is as wide as the remainder of the series says."""
    sigma, values = 1.0, 7.0
    prior = Prior.from_counts({0.0: 1.0, values: 2.0})
    risk = assess(Gaussian(sigma=sigma, sensitivity=values), prior=prior)
    reach = 2 * line.REACH + values
    half = reach / 2 / np.ceil(reach / (2 * line.HALF))
    remainder = legendre.REMAINDER * line.STEEP * half**legendre.TERMS
    error = 2e-19 + 2 * remainder * reach
    low, high = risk.interval
    assert error <= high - low <= 2 * error + 2e-10
    assert low <= risk.rad <= high
    # the likelier of the two is named where its weighted density is larger than pbar's share
    grid = np.linspace(-9, values + 9, 400_001)
    p = norm.pdf(grid[None, :] - np.array([[0.0], [values]]))
    pi = np.array([[1.0], [2.0]]) / 3
    gain = (pi * (p - (pi * p).sum(axis=0))).max(axis=0)
    assert risk.rad == pytest.approx(np.trapezoid(gain, grid), abs=1e-8)


def test_clamps_closer_than_a_panel():
    """Nearly all is beyond them: two outputs, and next to nothing in between."""
    for sigma in (20.0, 1e4, 1e300):
        risk = assess(Gaussian(sigma=sigma, clamp=(0.0, 1.0)), prior=Prior.uniform(2))
        assert risk.kind == "exact"
        assert risk.rad == pytest.approx(norm.cdf(0.5 / sigma) - 0.5, abs=1e-10)


@pytest.mark.parametrize("clamp", [None, (0.0, 5.0), (-1.0, 5.5), (-0.1, 60.0), (-60.0, 5.1)])
def test_a_clamp_makes_one_output_of_all_beyond_it(clamp):
    """Three values by a fine sum: what lies beyond a clamp is one output, on its own side."""
    pi, values, sigma = np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, 5.0]), 2.0
    prior = Prior.from_counts(dict(zip(values.tolist(), pi.tolist(), strict=True)))
    risk = assess(Gaussian(sigma=sigma, sensitivity=5, clamp=clamp), prior=prior)
    low, high = clamp or (-60.0, 65.0)
    edges = np.r_[-np.inf, np.linspace(max(low, -20), min(high, 25), 100_001), np.inf]
    p = np.diff(norm.cdf((edges - values[:, None]) / sigma), axis=1) * pi[:, None]
    gain = np.maximum((p - pi[:, None] * p.sum(axis=0)).max(axis=0), 0).sum()
    assert risk.rad == pytest.approx(gain, abs=1e-7)
    assert risk.rero == pytest.approx(p.max(axis=0).sum(), abs=1e-7)


@pytest.fixture
def panels(monkeypatch):
    """Without the faster way of `normal.py`."""
    monkeypatch.setattr(line, "solve_normal", lambda *_: None)


def lines(monkeypatch, mechanism, prior):
    """The densities that the solver is given."""
    seen = []

    def solve(line, game, weight, method):
        half, series, _ = zip(*line.blocks, strict=True)
        seen.append((line, np.concatenate(half), np.concatenate(series, axis=1)))
        return

    with monkeypatch.context() as patch:
        patch.setattr(line, "_solve", solve)
        patch.setattr(line, "BLOCK_ENTRIES", 200)
        assess(mechanism, prior=prior, trials=2)
    return seen[0]


@pytest.mark.usefixtures("panels")
def test_what_the_panels_leave_out(monkeypatch):
    """Their number, widths, masses, and the error that is told, from the definition."""
    values = np.array([0.0, 1.3, 7.1])
    prior = Prior.from_counts(dict.fromkeys(values.tolist(), 1.0))
    found, half, series = lines(monkeypatch, Gaussian(sigma=1.0, sensitivity=7.1), prior)
    reach = 2 * line.REACH + 7.1
    count = int(np.ceil(reach / (2 * line.HALF)))
    assert (found.panels, len(half)) == (count, count)
    assert half == pytest.approx(np.full(count, reach / count / 2))
    edges = np.linspace(-line.REACH, 7.1 + line.REACH, count + 1)
    masses = np.diff(norm.cdf(edges - values[:, None]), axis=1)
    assert 2 * series[..., 0] * half == pytest.approx(masses, abs=1e-13)
    assert found.atoms == pytest.approx(
        np.stack([norm.cdf(edges[0] - values), norm.sf(edges[-1] - values)], axis=1)
    )
    steep = 3 * 5 * 7 * 9 * 11 / np.sqrt(2 * np.pi)  # the twelfth derivative at 0
    remainder = legendre.REMAINDER * steep * half[0] ** legendre.TERMS
    assert found.error == pytest.approx(2e-19 + 2 * remainder * reach, rel=1e-9, abs=0.0)


def test_what_is_told_of_a_density(monkeypatch):
    """Twice what its panels are off by, and by which the worst integral misses one."""
    density = Density(log_density=lambda t, z: norm.logpdf(t, z), bounds=(-4.9, 7.5))
    prior = Prior.from_counts({0.0: 1.0, 2.0: 1.0})
    found, half, series = lines(monkeypatch, density, prior)
    panels = density.panels(np.array([0.0, 2.0]))
    assert len(half) == len(panels.half) and series == pytest.approx(panels.series)
    missing = np.abs(2 * series[..., 0] @ half - 1)
    assert missing.max() > 4e-7 and missing.min() < missing.max() / 2
    assert found.error == pytest.approx(2 * (panels.error.sum() + missing.max()), rel=1e-9)


def test_the_error_of_the_densities_goes_to_both_sides():
    prior, sigma = Prior.from_counts({0.0: 1.0, 1.0: 2.0, 4.0: 1.0}), 1.5
    game = play(prior, Threat())
    weight, points = game.at_values(np.array([0.0, 1.0, 4.0]), prior.probabilities)
    half = np.full(100, 0.25)
    centre = -20.75 + np.arange(100) * 0.5
    t = legendre.nodes(centre, half)
    series = legendre.series(norm.pdf(t[None] - points[:, None, None], scale=sigma))
    none, all_ = np.zeros((3, 0)), seen.Seen.all(game, weight, points)
    exact, off = (
        line._solve(
            line.Line(iter([(half, series, all_)]), 100, none, error), game, weight, "given"
        )
        for error in (0.0, 1e-6)
    )
    assert off.rad - exact.rad == pytest.approx(1e-6, rel=1e-6)
    assert off.rero - exact.rero == pytest.approx(game.p_plus * 1e-6, rel=1e-6)
    assert off.interval[0] - exact.interval[0] == pytest.approx(-1e-6, rel=1e-6)
    assert off.interval[1] - exact.interval[1] == pytest.approx(1e-6, rel=1e-6)
    given = line.Line(iter([(half, series, all_)]), 100, none, 2e-5)
    assert line._solve(given, game, weight, "given") is None  # too much for an answer


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize(("rounds", "rivals"), [(0, 2**20), (3, 2**20), (45, 1)])
def test_panels_that_run_out_of_halvings_are_counted_with_what_they_owe(
    rounds, rivals, monkeypatch
):
    values = np.array([0.0, 1.0, 1.7, 4.0])
    prior = Prior.from_counts(dict(zip(values.tolist(), [1.0, 2.0, 1.5, 1.0], strict=True)))
    exact = assess(Gaussian(sigma=1.0, sensitivity=4), prior=prior)
    for name, value in (("ROUNDS", rounds), ("MAX_RIVALS", rivals), ("ACCEPTED", 1.0)):
        monkeypatch.setattr(line, name, value)
    rough = assess(Gaussian(sigma=1.0, sensitivity=4), prior=prior)
    low, high = rough.interval
    assert low - 1e-9 <= exact.rad <= high + 1e-9 and 1e-7 < high - low < 0.2
    assert exact.rero - 1e-9 <= rough.rero <= exact.rero + 0.2
    assert low > exact.rad - 0.05


@pytest.mark.parametrize(("knows", "luck"), [("nothing", 1.0), ("everything", 0.0)])
def test_a_guess_that_gains_nothing_is_made_unless_it_is_about_membership(knows, luck):
    """One record: nothing can be learnt about it."""
    prior = Prior.from_counts({3.0: 1})
    risk = assess(Gaussian(sigma=1.0), prior=prior, threat=Threat(knows=knows))
    assert risk.interval[0] == 0.0 and risk.success_out == pytest.approx(luck)


def test_mass_in_the_first_panel():
    """Uniform noise that fills its bounds to the ends."""
    risk = assess(uniform_noise(0.5, (-0.5, 1.5)), prior=Prior.uniform(2))
    assert risk.rad == pytest.approx(0.5, abs=1e-9)


@pytest.mark.usefixtures("panels")
def test_too_wide_a_range_is_estimated():
    prior = Prior.from_counts({0.0: 1.0, 2.0 * line.MAX_PANELS * line.HALF + 1: 1.0})
    span = float(max(prior.support))
    assert assess(Gaussian(sigma=1.0, sensitivity=span), prior=prior, trials=50).kind == "estimate"
    near = Prior.from_counts({0.0: 1.0, span - 2 * line.REACH - 2: 1.0})
    risk = assess(Gaussian(sigma=1.0, sensitivity=span), prior=near, trials=50)
    assert risk.kind == "exact" and risk.rad == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("rare", [1e-4, 1e-9, 1e-12])
def test_rare_people_are_reconstructed_no_more_often(rare):
    """Two equally rare values, 0.04 standard deviations apart: the nearer one is right."""
    prior = Prior.from_counts({10.0: rare, 10.001: 1.0, 10.002: rare})
    threat = Threat(group=lambda values: [v != 10.001 for v in values])
    risk = assess(Gaussian(sigma=0.05), prior=prior, threat=threat)
    assert risk.rero == pytest.approx(norm.cdf(0.02), abs=1e-8)
