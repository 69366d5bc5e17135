"""Reference numbers, and each bound against a formula written independently."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from dprad import ApproxDP, GaussianDP, Prior, PureDP, Threat, TotalVariation, assess
from dprad.bounds import NEEDS, TABLE
from dprad.bounds.static import proposition_g
from dprad.game.game import play
from dprad.mechanisms import GRR
from effort import part_of

RO, AR = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
UNKNOWN, TEN = Prior.unknown(), Prior.uniform(10)
ALL, NOTHING = Threat(knows="everything"), Threat()


def values(promise, prior, threat=NOTHING):
    risk = assess(promise, prior=prior, threat=threat)
    return {b.name: b.value for b in risk.bounds} | {"": risk.rad}


@pytest.mark.parametrize(
    ("promise", "prior", "threat", "rad", "other"),
    [
        (PureDP(1, **RO), UNKNOWN, ALL, 0.244919, {"theorem-1": 0.462117}),
        (PureDP(1, **RO), TEN, ALL, 0.244405, {"theorem-1": 0.415905}),
        (ApproxDP(1, 0.01, **RO), UNKNOWN, ALL, 0.252469, {}),
        (ApproxDP(1, 1e-5, **RO), TEN, NOTHING, 0.131977, {}),
        (
            PureDP(1, **RO),
            Prior.from_probabilities([0.5, 0.2, 0.2, 0.1]),
            NOTHING,
            0.200296,
            {"theorem-4": 0.249611, "theorem-b": 0.200296},
        ),
        (GaussianDP(1, **RO), TEN, NOTHING, 0.228999, {}),
        (GaussianDP(1, **RO), UNKNOWN, ALL, 0.311956, {"theorem-1": 0.382925}),
        (GaussianDP(0.5, **RO), UNKNOWN, ALL, 0.158170, {"theorem-1": 0.197413}),
        (GaussianDP(2, **RO), UNKNOWN, ALL, 0.587646, {"theorem-1": 0.682689}),
    ],
)
def test_reference(promise, prior, threat, rad, other):
    found = values(promise, prior, threat)
    assert found[""] == pytest.approx(rad, abs=6e-7)
    for name, value in other.items():
        assert found[name] == pytest.approx(value, abs=6e-7)


def test_dpsgd_as_gaussian_dp():
    """Full-batch DP-SGD, everything known, nothing assumed of the prior."""
    promise = GaussianDP(1, **AR)
    found = values(promise, UNKNOWN, ALL)
    assert found[""] == found["theorem-e2"] == pytest.approx(0.4377, abs=5e-5)
    assert promise.replace_one().tv == pytest.approx(0.6827, abs=5e-5)


def test_a_target_merges_records_into_classes():
    prior = Prior.from_counts({(i, i % 2): 1 for i in range(100)}, columns=["id", "t"])
    risk = assess(PureDP(1, **RO), prior=prior, threat=Threat(target=["t"]))
    assert risk.rad == pytest.approx(0.231059, abs=6e-7)


def test_theorem_4_can_win():
    """m = 22, epsilon = 0.1, delta = 1e-5: against the paper's other bounds it does."""
    found = values(ApproxDP(0.1, 1e-5, **RO), Prior.uniform(22))
    paper = ["theorem-1", "theorem-3", "theorem-3-finite", "proposition-1"]
    assert found["theorem-4"] < min(found[n] for n in paper)
    assert found["theorem-b"] <= found["theorem-4"]


# -- Theorem C -------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=60)
@given(st.floats(0, 30), st.floats(0, 1))
def test_prior_free_closed_form(epsilon, delta):
    t = math.tanh(epsilon / 4)
    expected = t + delta * (1 - t)
    assert values(ApproxDP(epsilon, delta, **RO), UNKNOWN, ALL)["theorem-c"] == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("kappa", [0.0, 0.3])
def test_gaussian_closed_form(mu, kappa):
    """(C3), for masses anywhere in (0, 1): solve for c, from above."""
    cdf = norm.cdf

    def excess(c):
        both = cdf(mu - c) + cdf(-c) + 2 * math.exp(-mu * mu / 8) * cdf(mu / 2 - c)
        return (1 - kappa) * both - 1

    c = mu / 2 if excess(mu / 2) <= 0 else brentq(excess, mu / 2, 60)
    expected = (1 - kappa) * (cdf(mu - c) - cdf(-c))
    if kappa == 0:
        found = values(GaussianDP(mu, **RO), UNKNOWN, ALL)["theorem-c"]
        assert expected - 1e-12 <= found <= expected + 1e-6
    else:
        # many light records and one of mass sqrt(kappa): never above the unrefined form
        heavy = math.sqrt(kappa)
        prior = Prior.from_counts({0: heavy} | dict.fromkeys(range(1, 1000), (1 - heavy) / 999))
        found = values(GaussianDP(mu, **RO), prior, ALL)["theorem-c"]
        assert found <= expected + 1e-3


@pytest.mark.parametrize("m", [2, 3, 10, 1000])
@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_uniform_and_nothing_known_is_attained_by_grr(m, mu):
    """(m-1)/m (1 - m a), f(a) = (m-1) a."""
    f = GaussianDP(mu, **RO).tradeoff
    a = brentq(lambda a: f(a) - (m - 1) * a, 1e-300, 1.0 / m)
    expected = (m - 1) / m * (1 - m * a)
    found = values(GaussianDP(mu, **RO), Prior.uniform(m))
    assert expected - 1e-10 <= found["theorem-c"] <= expected + 1e-6
    assert expected - 1e-10 <= found["proposition-w"] <= expected + 1e-9
    assert found["theorem-b"] >= expected - 1e-10


def test_uniform_and_everything_known():
    """(1 - delta) max_w Psi(w/m) + delta (1 - 1/m)."""
    for m in (2, 3, 7, 50):
        for epsilon, delta in ((0.2, 0.0), (1.0, 0.05), (5.0, 0.3)):
            s = math.expm1(epsilon)
            psi = max(s * p * (1 - p) / (1 + s * p) for p in np.arange(1, m) / m)
            expected = (1 - delta) * psi + delta * (1 - 1 / m)
            found = values(ApproxDP(epsilon, delta, **RO), Prior.uniform(m), ALL)
            assert found["theorem-c"] == pytest.approx(expected, rel=1e-9)


def test_many_classes_with_knowledge_stay_quick_and_valid():
    """Beyond the pairwise limit one range a class is used: looser, never below."""
    small = Prior.from_counts({(x, y): 1 + x for x in range(10) for y in range(5)})
    large = Prior.from_counts({(x, y): 1 + x % 10 for x in range(1000) for y in range(5)})
    threat = Threat(knows=["column_0"])
    for promise in (PureDP(1, **RO), GaussianDP(1, **RO)):
        assert 0 < values(promise, small, threat)["theorem-c"] < 0.32
        assert values(promise, large, threat)["theorem-c"] <= 0.3121


# -- absent record ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("r", "expected"), [(0.1, 0.0448), (0.5, 0.2234), (1, 0.4377), (2, 0.7691), (3, 0.9331)]
)
def test_e2_values(r, expected):
    assert values(GaussianDP(r, **AR), UNKNOWN, ALL)["theorem-e2"] == pytest.approx(
        expected, abs=6e-5
    )


def test_e2_against_quadrature():
    r = 1.0

    def expectation(parameters):
        b, k = math.exp(parameters[0]), parameters[1]

        def psi(x):
            t = abs(x - k)
            return (b + t) ** 2 / (8 * b) if t <= 2 * b else (math.sqrt(t) - math.sqrt(b / 8)) ** 2

        def integrand(n):
            return psi(math.exp(r * n - r * r / 2)) * norm.pdf(n)

        return quad(integrand, -12, 14, limit=400, points=[0.0])[0]

    best = minimize(expectation, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-6})
    found = values(GaussianDP(r, **AR), UNKNOWN, ALL)["theorem-e2"]
    assert best.fun - 1e-6 <= found <= best.fun + 2e-6


@pytest.mark.parametrize("m", [2, 10, 100])
@pytest.mark.parametrize("r", [0.2, 1.0, 3.0])
def test_absent_record_bounds_agree_for_uniform_priors(m, r):
    """1 - f0(1/m) - 1/m, which adaptive training attains in the limit (Theorem D)."""
    expected = norm.cdf(r + norm.ppf(1 / m)) - 1 / m
    found = values(GaussianDP(r, **AR), Prior.uniform(m))
    assert expected - 1e-9 <= found["theorem-e1"] <= expected + 1e-6
    assert expected - 1e-9 <= found["proposition-f"] <= expected + 1e-5


def test_absent_record_calibration_numbers():
    """DP-SGD, T = 100, RAD 0.1: sigma 22.73 (nothing, m = 10) and 44.80 (everything)."""
    assert values(GaussianDP(10 / 22.73, **AR), TEN)[""] == pytest.approx(0.1, abs=2e-5)
    assert values(GaussianDP(10 / 44.80, **AR), UNKNOWN, ALL)[""] == pytest.approx(0.1, abs=2e-5)
    static = GaussianDP(10 / 21.57, **AR, static=True)
    assert values(static, TEN)["proposition-g"] == pytest.approx(0.1, abs=1e-4)


def test_proposition_f_on_uneven_priors(rng):
    """Never above E1's simple form, and about a third of it on average."""
    ratio = []
    for _ in range(15):
        prior = Prior.from_probabilities(rng.dirichlet(np.ones(6)))
        promise = GaussianDP(float(rng.uniform(0.3, 2.0)), **AR)
        found = values(promise, prior)
        game = play(prior, NOTHING)
        simple = 1 - promise.tradeoff(game.p_plus) - game.p_minus
        assert found["theorem-e1"] <= simple + 1e-9
        ratio.append(found["proposition-f"] / simple)
    assert np.mean(ratio) < 0.6 and max(ratio) <= 1 + 1e-6


def test_proposition_f_against_a_plain_maximisation():
    """A coarse primal maximum over q must stay below the dual value."""
    pi = np.array([0.5, 0.3, 0.2])
    promise = GaussianDP(1.0, **AR)
    f0 = promise.tradeoff
    grid = np.linspace(0, 1, 101)
    best = np.inf
    for b in np.linspace(0.0, 0.5, 26):

        def g(z, q, b=b):
            if pi[z] >= b:
                return pi[z] * (1 - pi[z] + b) * (1 - f0(q)) - (pi[z] - b) * (1 - pi[z]) * f0(1 - q)
            return b * (1 - f0(q))

        table = [g(z, grid) for z in range(3)]
        worst = max(
            table[0][i] + table[1][j] + table[2][100 - i - j]
            for i in range(101)
            for j in range(101 - i)
        )
        best = min(best, worst - b)
    found = values(promise, Prior.from_probabilities(pi))["proposition-f"]
    assert best - 2e-3 <= found <= best + 2e-3


@pytest.mark.parametrize(("m", "r"), [(3, 1.0), (3, 2.5), (6, 1.5)])
def test_proposition_g_by_simulation(m, r, rng):
    """Simplex vertices: equality for m = 3, below for more. Five standard errors."""
    corners = np.eye(m) - 1.0 / m
    corners *= r / np.linalg.norm(corners[0])
    n = 200_000
    noise = rng.standard_normal((n, m))
    right = np.mean(np.argmax((corners[0] + noise) @ corners.T, axis=1) == 0)
    error = 5 * math.sqrt(right * (1 - right) / n)
    bound = values(GaussianDP(r, **AR, static=True), Prior.uniform(m))["proposition-g"] + 1 / m
    assert right <= bound + error
    if m == 3:
        assert right == pytest.approx(bound, abs=error)


def test_proposition_g_for_two_points():
    game = play(Prior.uniform(2), NOTHING)
    found = proposition_g(GaussianDP(1.0, **AR, static=True), game)
    assert found == pytest.approx(norm.cdf(1.0) - 0.5)


def test_the_papers_dpsgd_bound_is_beaten():
    """Opposite clipped gradients: the add-remove mu read as replace-one understates the risk."""
    mu = 1.0
    attained = 0.5 * (2 * norm.cdf(mu) - 1)
    papers = 0.5 * (2 * norm.cdf(mu / 2) - 1)
    ours = values(GaussianDP(mu, **AR), Prior.uniform(2), ALL)[""]
    assert papers < attained <= ours


def test_the_distance_to_the_absent_record_is_no_bound():
    """docs/theory/absent-record.md: mass 0.13 at -e_0, n others at 0.155 e_0 + b e_i, r = 1."""
    mass, along, n = 0.13, 0.155, 2_000_000
    b = math.sqrt(1 - along**2)
    x = np.linspace(-10, 10, 8001)
    width = x[1] - x[0]
    one, other = norm.pdf(x + 1), norm.pdf(x - along)
    mixture = mass * one + (1 - mass) * other
    # an other candidate is likelier than the mixture where b y - b^2/2 > log(mixture/other)
    y = b / 2 + np.log(mixture / other) / b
    near = (other * norm.sf(y - b) - mixture * norm.sf(y)).sum() * width
    far = np.maximum(one - mixture, 0).sum() * width
    limit = mass * far + (1 - mass) * near
    assert limit == pytest.approx(0.38340, abs=5e-6)
    distance = 2 * norm.cdf(0.5) - 1
    assert distance == pytest.approx(0.38292, abs=5e-6)
    # total variation between the mixture of the n and its limit, by its chi-squared distance
    off = (1 - mass) * math.sqrt(math.expm1(b * b) / n) / 2
    assert distance < limit - off
    assert limit <= values(GaussianDP(1.0, **AR), UNKNOWN, ALL)["theorem-e2"]


def test_adaptive_gradients_beat_every_fixed_choice(rng):
    """Theorem D for three candidates: directions that keep the chances of the three events at one.

    T = 50, r = 2: above what fixed vectors can reach (Proposition G), below the supremum.
    """
    n, steps, r, h = 40_000, 50, 2.0, 1 / 50
    c = norm.isf(1 / 3)
    walk = np.zeros((n, 3))
    for k in range(steps):
        sides = norm.pdf((walk - c) / math.sqrt(1 - k * h)) + 1e-100
        order = np.argsort(-sides, axis=1)
        a = np.take_along_axis(sides, order, axis=1)
        squares = a**2
        # a triangle with these sides, flat if the longest exceeds the other two
        turn = [
            np.arccos(np.clip((squares[:, 0] + squares[:, i] - squares[:, j]) / side, -1, 1))
            for i, j, side in ((1, 2, 2 * a[:, 0] * a[:, 1]), (2, 1, 2 * a[:, 0] * a[:, 2]))
        ]
        angle = np.empty((n, 3))
        turned = np.stack([np.zeros(n), np.pi - turn[0], turn[1] - np.pi], axis=1)
        np.put_along_axis(angle, order, turned, axis=1)
        vectors = np.stack([np.cos(angle), np.sin(angle)], axis=2)
        seen = rng.standard_normal((n, 2)) + r * math.sqrt(h) * vectors[:, 0]  # the first is true
        walk += math.sqrt(h) * np.einsum("nij,nj->ni", vectors, seen)
    right = float(np.mean(walk.argmax(axis=1) == 0))
    error = 5 * math.sqrt(right * (1 - right) / n)
    fixed = values(GaussianDP(r, **AR, static=True), Prior.uniform(3))["proposition-g"] + 1 / 3
    supremum = norm.cdf(r + norm.ppf(1 / 3))
    assert fixed == pytest.approx(0.9262, abs=5e-5)
    assert fixed + error < right < supremum + error


def test_bounds_hold_when_a_class_cannot_be_guessed():
    """Propositions F and W, Theorem B: fewer guesses never gain more, and the bounds stay valid."""
    prior = Prior.from_probabilities([0.5, 0.3, 0.2])
    some = Threat(loss=np.diag([True, True, False]))  # nobody can name the third
    for epsilon in (0.5, 2.0):
        exact = assess(GRR(epsilon=epsilon, size=3), prior=prior, threat=some).rad
        assert 0 < exact < assess(GRR(epsilon=epsilon, size=3), prior=prior).rad
        for promise in (PureDP(epsilon, **RO), PureDP(epsilon, **AR)):
            risk = assess(promise, prior=prior, threat=some)
            held = {b.name: b.value for b in risk.bounds if b.measure == "rad" and b.applies}
            assert exact <= min(held.values()) + 1e-12 and "proposition-w" in held
        assert "proposition-f" in held


# -- ReRo ------------------------------------------------------------------------------------------
def test_rero_bounds():
    found = values(PureDP(1, **RO), TEN)
    assert found["balle"] == pytest.approx(0.1 * math.e)
    assert found["hayes"] == pytest.approx(0.1 * math.e)
    gaussian = values(GaussianDP(1, **RO), TEN)
    assert gaussian["hayes"] == pytest.approx(norm.cdf(1 + norm.ppf(0.1)))
    assert gaussian["balle"] >= gaussian["hayes"] - 1e-9


# -- the table -------------------------------------------------------------------------------------
def test_the_table_explains_itself():
    assert len({row.name for row in TABLE}) == len(TABLE)
    risk = assess(PureDP(1, **RO), prior=TEN, threat=ALL)
    for bound in risk.bounds:
        assert (bound.value is None) == bool(bound.reason)
    reasons = {b.name: b.reason for b in risk.bounds}
    assert reasons["theorem-b"] == NEEDS["nothing"]
    assert NEEDS["add-remove"] in reasons["theorem-e1"]
    assert (
        NEEDS["finite"]
        in {b.name: b.reason for b in assess(PureDP(1, **RO), prior=UNKNOWN).bounds}["theorem-b"]
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_more_epsilon_never_less_risk(seed):
    rng = np.random.default_rng(seed)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(int(rng.integers(2, 6)))))
    threat = [NOTHING, ALL, Threat(loss="absolute", eta=1)][int(rng.integers(3))]
    low, high = np.sort(rng.uniform(0, 4, 2))
    small = assess(PureDP(low, **RO), prior=prior, threat=threat).rad
    large = assess(PureDP(high, **RO), prior=prior, threat=threat).rad
    assert small <= large + 1e-12
    assert 0 <= small <= 1 - prior.kappa + 1e-12


EXTREMES = [PureDP(e, **n) for e in (0.0, 1e-12, 50.0, 700.0, 1e5) for n in (RO, AR)] + [
    ApproxDP(0.0, 0.0, **RO),
    ApproxDP(1.0, 1.0, **AR),
    ApproxDP(700.0, 1e-300, **AR),
    TotalVariation(0.0, **AR),
    TotalVariation(1.0, **RO),
    GaussianDP(0.0, **AR),
    GaussianDP(1e-8, **AR),
    GaussianDP(60.0, **AR),
    PureDP(0.5, **AR).compose(GaussianDP(0.5, **AR)),
]


PRIORS = [
    UNKNOWN,
    Prior.uniform(1),
    Prior.uniform(2),
    Prior.from_counts({0: 1.0, 1: 1e-300, 2: 0.0}),
    Prior.from_counts({0: 1.0, 1: 1e-12, 2: 1e-12}),
    Prior.uniform(1000),
]
WATCHERS = [NOTHING, ALL, Threat(loss="absolute", eta=5)]


@pytest.mark.parametrize(
    ("promise", "prior", "threat"), part_of(itertools.product(EXTREMES, PRIORS, WATCHERS), 149)
)
def test_extremes(promise, prior, threat):
    if promise.neighbours == "add-remove" and prior.size == 1000 and promise.point is None:
        prior = Prior.uniform(100)
    risk = assess(promise, prior=prior, threat=threat)
    assert 0.0 <= risk.rad <= play(prior, threat).unlike
    assert all(b.value is None or 0.0 <= b.value <= 1.0 for b in risk.bounds)
    if promise.tv == 0.0:
        assert risk.rad == pytest.approx(0.0, abs=1e-12)


def test_a_point_mass_has_no_risk():
    assert assess(PureDP(9, **RO), prior=Prior.uniform(1)).rad == 0.0


@pytest.mark.parametrize("weight", [1e-20, 1e-30, 1e-100, 1e-299])
@pytest.mark.parametrize("near", ["replace-one", "add-remove"])
def test_a_record_that_hardly_exists_lowers_no_bound(weight, near):
    """With a large epsilon (1 - TV)/2 is rounded to 0; Theorem 3 once took its peak for the end."""
    prior = Prior.from_counts({0: 0.72, 1: 0.11, 2: weight, 3: 0.17})
    exact = assess(GRR(epsilon=50.0, size=4), prior=prior).rad
    for bound in assess(PureDP(50.0, neighbours=near), prior=prior).bounds:
        if bound.applies and bound.measure == "rad":
            assert bound.value >= exact * (1 - 1e-12), bound
