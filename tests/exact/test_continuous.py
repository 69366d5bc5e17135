"""Continuous priors: reference numbers, plain quadrature, closed forms, the paper's Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dprad import DpradError, Prior, Threat, assess
from dprad.mechanisms import GRR, Duchi, ExponentialInterval, Gaussian, Laplace, Piecewise
from dprad.paper.nested import nested_monte_carlo

UNIFORM = Prior.continuous(stats.uniform(), 0, 1)
BETA = Prior.continuous(stats.beta(0.1, 0.1), 0, 1)
EPSILONS = (0.1, 2.08, 4.06, 6.04, 8.02, 10)


SMALL = (0.0057, 0.1257, 0.2422, 0.3425, 0.4255, 0.4934)
LARGE = (0.0085, 0.1653, 0.2799, 0.3515, 0.3946, 0.4212)
NUMBERS = [
    *((UNIFORM, 0.1, *pair) for pair in zip(EPSILONS, SMALL, strict=True)),
    *((UNIFORM, 0.5, *pair) for pair in zip(EPSILONS, LARGE, strict=True)),
    (BETA, 0.25, 0.1, 0.0118),
    (BETA, 0.25, 5.05, 0.4231),
    # the reference prints .5272; finer and finer grids converge to 0.527261
    (BETA, 0.25, 10, 0.5273),
]


@pytest.mark.parametrize(("prior", "eta", "epsilon", "value"), NUMBERS)
def test_the_numbers_of_the_paper(prior, eta, epsilon, value):
    """Exponential mechanism with the scale of the paper's code, to four digits."""
    risk = assess(
        ExponentialInterval(epsilon=epsilon, factor=1.0),
        prior=prior,
        threat=Threat(loss="absolute", eta=eta),
    )
    assert round(risk.rad, 4) == value
    assert risk.kind == "exact"
    assert risk.interval[0] <= risk.rad <= risk.interval[1]
    assert risk.interval[1] - risk.interval[0] < 6e-5


def plain(density, eta, points=4000, outputs=4000, low=0.0, high=1.0):
    """Uniform prior on [0, 1]: a fine midpoint rule in both variables, written from the formula.

    Its own error is below 4/points for the windows and of second order otherwise.
    """
    z = (np.arange(points) + 0.5) / points
    t = low + (high - low) * (np.arange(outputs) + 0.5) / outputs
    reach = round(eta * points)
    centre = np.arange(0, points + 1)
    a, b = np.maximum(centre - reach, 0), np.minimum(centre + reach, points)
    total = 0.0
    for k in range(0, outputs, 200):
        p = density(t[k : k + 200, None], z)
        prefix = np.concatenate(
            [np.zeros((len(p), 1)), np.cumsum(p - p.mean(axis=1, keepdims=True), axis=1)], axis=1
        )
        total += (prefix[:, b] - prefix[:, a]).max(axis=1).sum() / points
    return total * (high - low) / outputs


@pytest.mark.parametrize("eta", [0.05, 0.25, 0.7])
def test_uniform_prior_against_a_plain_rule(eta):
    threat = Threat(loss="absolute", eta=eta)
    for mechanism, low, high in (
        (Laplace(epsilon=5.0), -2.0, 3.0),
        (Gaussian(sigma=0.3), -2.5, 3.5),
    ):
        risk = assess(mechanism, prior=UNIFORM, threat=threat)
        value = plain(
            lambda t, z, m=mechanism: np.exp(m.log_likelihood(t, z)), eta, low=low, high=high
        )
        assert value == pytest.approx(risk.rad, abs=3e-4)
        assert risk.interval[1] - risk.interval[0] < 6e-5


def test_duchi_in_closed_form():
    """Two outputs, linear in the record: the best window is at an end."""
    t, eta = np.tanh(1.0), 0.2
    risk = assess(
        Duchi(epsilon=2.0, bounds=(0, 1)), prior=UNIFORM, threat=Threat(loss="absolute", eta=eta)
    )
    # p(up|z) - 1/2 = t (2z - 1)/2; the integral over [1-2 eta, 1], for both outputs
    exact = 2 * t / 2 * (2 * eta) * (1 - 2 * eta)
    assert risk.interval[0] - 1e-12 <= exact <= risk.interval[1] + 1e-12


@pytest.mark.parametrize("prior", [UNIFORM, BETA])
def test_everything_known(prior):
    """Membership: a plain double sum over quantiles."""
    mechanism = Laplace(epsilon=3.0)
    risk = assess(mechanism, prior=prior, threat=Threat(knows="everything"))
    distribution = prior.continuous_on[0]
    z = distribution.ppf((np.arange(1500) + 0.5) / 1500)
    t = np.linspace(-4, 5, 6001)
    p = np.exp(mechanism.log_likelihood((t[1:] + t[:-1])[:, None] / 2, z))
    value = np.maximum(p - p.mean(axis=1, keepdims=True), 0).mean(axis=1).sum() * (t[1] - t[0])
    assert value == pytest.approx(risk.rad, abs=3e-4)
    assert risk.interval[1] - risk.interval[0] < 2e-4


def test_the_error_bound_holds_when_it_is_coarse(monkeypatch):
    """With few cells the interval is wide, and still holds the value of many."""
    from dprad.exact import continuous

    for prior in (UNIFORM, BETA, Prior.continuous(stats.norm(0.3, 0.2), 0, 1)):
        for eta in (0.07, 0.25, 0.5, 0.8):
            for mechanism in (
                ExponentialInterval(epsilon=8, factor=1.0),
                Laplace(epsilon=6),
                Gaussian(sigma=0.1),
            ):
                threat = Threat(loss="absolute", eta=eta)
                monkeypatch.setattr(continuous, "TOLERANCE", 2e-4)
                fine = assess(mechanism, prior=prior, threat=threat)
                for tolerance in (0.3, 0.01):
                    monkeypatch.setattr(continuous, "TOLERANCE", tolerance)
                    coarse = assess(mechanism, prior=prior, threat=threat)
                    assert coarse.interval[0] <= fine.interval[1] + 1e-12
                    assert coarse.interval[1] >= fine.interval[0] - 1e-12
                    assert coarse.interval[1] - coarse.interval[0] <= 2 * tolerance


@pytest.mark.parametrize("places", [(0.3003, 0.6997), (0.11, 0.52)])
def test_mass_between_the_points_that_are_read(places):
    """Two spikes, 1e-5 wide: nearly a prior on two records, whose risk is known exactly."""
    edges = [0.0]
    for place in places:
        edges += [place, place + 1e-5]
    spikes = stats.rv_histogram(([0, 1, 0, 1, 0], [*edges, 1.0]), density=False)
    prior = Prior.continuous(spikes, 0, 1)
    points = Prior.from_counts({p + 5e-6: 1 for p in places})
    for mechanism in (Laplace(epsilon=1), Gaussian(sigma=0.5), Laplace(epsilon=3)):
        for threat in (Threat(loss="absolute", eta=0.1), Threat(knows="everything")):
            risk = assess(mechanism, prior=prior, threat=threat)
            exact = assess(mechanism, prior=points, threat=threat).rad
            assert risk.interval[0] - 2e-5 <= exact <= risk.interval[1] + 2e-5


def test_both_tails_count_alike():
    threat, mechanism = Threat(loss="absolute", eta=0.05), Laplace(epsilon=3)
    right = assess(mechanism, prior=Prior.continuous(stats.norm(), 8, 8.2), threat=threat)
    left = assess(mechanism, prior=Prior.continuous(stats.norm(), -8.2, -8), threat=threat)
    assert right.rad == pytest.approx(left.rad, rel=1e-6)


def test_what_cells_cannot_resolve_is_a_bound():
    risk = assess(Laplace(epsilon=1e4), prior=UNIFORM, threat=Threat(loss="absolute", eta=0.1))
    assert risk.kind == "upper-bound" and risk.rad == risk.interval[1]
    assert risk.success_in is None and "at most" in str(risk)


def test_a_distribution_with_little():
    class Plain:
        def cdf(self, x):
            return np.clip(x, 0, 1)

        def pdf(self, x):
            return np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 1.0, 0.0)

    threat = Threat(loss="absolute", eta=0.1)
    plain = assess(Laplace(epsilon=2), prior=Prior.continuous(Plain(), 0, 1), threat=threat)
    assert plain.rad == assess(Laplace(epsilon=2), prior=UNIFORM, threat=threat).rad


def test_stays_below_its_promise():
    mechanism = ExponentialInterval(epsilon=2.0)
    for threat in (Threat(loss="absolute", eta=0.2), Threat(knows="everything")):
        bound = assess(mechanism.guarantee, prior=UNIFORM, threat=threat).rad
        assert assess(mechanism, prior=UNIFORM, threat=threat).interval[0] <= bound


def test_nothing_to_hit_and_nothing_to_miss():
    mechanism = Laplace(epsilon=2.0)
    assert assess(mechanism, prior=UNIFORM).rad == 0.0
    wide = assess(mechanism, prior=UNIFORM, threat=Threat(loss="absolute", eta=2))
    assert wide.rad == 0.0 and wide.success_out == 1.0
    silent = assess(
        ExponentialInterval(epsilon=0.0), prior=UNIFORM, threat=Threat(loss="absolute", eta=0.2)
    )
    assert silent.rad == pytest.approx(0.0, abs=1e-12)


def test_nested_monte_carlo():
    """The paper's method is near the exact value; its error bound is honest (and very wide)."""
    prior, threat = UNIFORM, Threat(loss="absolute", eta=0.1)
    mechanism = ExponentialInterval(epsilon=4.06, factor=1.0)
    exact = assess(mechanism, prior=prior, threat=threat).rad
    runs = [
        nested_monte_carlo(mechanism, prior, eta=0.1, draws=400, rng=seed) for seed in range(12)
    ]
    assert np.mean([r.rad for r in runs]) == pytest.approx(exact, abs=0.006)
    assert all(r.interval[0] <= exact <= r.interval[1] for r in runs)
    assert runs[0].kind == "estimate"
    again = nested_monte_carlo(mechanism, prior, eta=0.1, draws=400, rng=0)
    assert again.rad == runs[0].rad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assess(Piecewise(epsilon=1), prior=UNIFORM), "needs a prior that is a table"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=UNIFORM), "needs a prior that is a table"),
        (lambda: assess(Laplace(epsilon=1), prior=UNIFORM, query="value"), "query"),
        (
            lambda: assess(
                Laplace(epsilon=1), prior=UNIFORM, threat=Threat(loss="absolute", eta=1e-5)
            ),
            "too small .* at most 0.0001",
        ),
        (
            lambda: assess(
                Laplace(epsilon=1, sensitivity=0.5),
                prior=UNIFORM,
                threat=Threat(loss="absolute", eta=0.1),
            ),
            "sensitivity",
        ),
        (
            lambda: nested_monte_carlo(Laplace(epsilon=1), UNIFORM, eta=0.1, draws=10),
            "ExponentialInterval",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()
