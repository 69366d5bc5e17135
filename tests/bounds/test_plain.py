"""Every bound again, as plain loops over what its theorem says: the same number, not just a valid
one. (Valid is what test_against_lp.py shows; a bound that is merely too high would pass there.)
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import nct, t, uniform

from dprad import ApproxDP, GaussianDP, Prior, PureDP, Threat, accounting
from dprad.bounds import (
    absent,
    absent_prior,
    evaluate,
    least,
    optimum,
    perfect,
    rero,
    static,
    tradeoff,
    unified,
)
from dprad.bounds import profile as points
from dprad.game.game import play
from dprad.model.guarantees import of_directions
from dprad.model.privacy_loss import PrivacyLoss
from oracles import attacks, random_instance

RO, AR = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
# a training, whose two directions differ
POISSON = accounting.dpsgd(noise_multiplier=0.7, sample_rate=0.05, steps=20)
# few losses, nothing alike in the two directions; the absent record may give what no other does
LOPSIDED = of_directions(
    PrivacyLoss(0.5, -1, np.array([0.1, 0.2, 0.4, 0.25]), 0.05),
    PrivacyLoss(0.5, -2, np.array([0.05, 0.1, 0.2, 0.35, 0.3]), 0.0),
    "add-remove",
)
POINTS = [(0.3, 0.0), (1.0, 0.02), (2.5, 0.3), (6.0, 1e-6)]


def games(seed, count=6, **fixed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        instance = random_instance(rng, int(rng.integers(2, 6)), **fixed)
        yield instance, play(instance.prior, instance.threat)


# -- Theorem C ------------------------------------------------------------------------------------
def classes(instance, game):
    """Attacks as sets of classes, with their masses, by enumeration."""
    members = {c: np.flatnonzero(game.class_of == c) for c in range(len(game.probabilities))}
    found = set()
    for attack in attacks(instance):
        if all(len({bool(attack[i]) for i in m}) == 1 for m in members.values()):
            found.add(tuple(bool(attack[m[0]]) for m in members.values()))
    return [
        (a, sum(p for p, inside in zip(game.probabilities, a, strict=True) if inside))
        for a in found
    ]


def theorem_c(promise, pairs):
    """min over nu of nu + sum w (p - q - nu n)_+, at every nu where a term vanishes."""
    loss = promise.loss
    atoms = [(p, q) for p, q in zip(loss.p, loss.q, strict=True) if p > q and p > 0]
    terms = []
    for weight, cost in pairs:
        terms += [(weight * (p - q), (p - q) / cost(p, q)) for p, q in atoms]
        if loss.p_infinity > 0:
            terms.append((weight * loss.p_infinity, 1.0 / cost(1.0, 0.0)))
    terms = [(c, b) for c, b in terms if c > 0 and b > 0]
    return min(
        (
            nu + sum(c * max(0.0, 1 - nu / b) for c, b in terms)
            for nu in [0.0, *(b for _, b in terms)]
        ),
        default=0.0,
    )


def cheapest(masses):
    def cost(p, q):
        return min((q / m if q > 0 else 0.0) + (p / (1 - m) if m < 1 else math.inf) for m in masses)

    return cost


def ranged(low, high):
    """The cost at the best mass of a range: between the ends, where the derivative vanishes."""

    def cost(p, q):
        best = math.sqrt(q) / (math.sqrt(p) + math.sqrt(q))
        return cheapest([min(max(best, low), high)])(p, q)

    return cost


@pytest.mark.parametrize("form", ["listed", "pairs", "classes"])
@pytest.mark.parametrize("seed", range(5))
def test_theorem_c(form, seed, monkeypatch):
    if form != "listed":
        monkeypatch.setattr(unified, "LISTED", 1)
    if form == "classes":
        monkeypatch.setattr(unified, "PAIR_CLASSES", 0)
    for instance, game in games(seed):
        special = (game.singletons and game.nothing_known) or game.everything_known
        if form != "listed" and special:
            continue
        pi, sets = game.probabilities, classes(instance, game)
        pairs = []
        for z in range(len(pi)):
            for z0 in range(len(pi)):
                apart = [mass for a, mass in sets if a[z] and not a[z0]]
                around = [mass for a, mass in sets if a[z]]
                if z == z0 or not (apart if form != "classes" else around):
                    continue
                cost = cheapest(apart) if form == "listed" else None
                if form == "pairs":
                    cost = ranged(min(apart), max(apart))
                elif form == "classes":
                    cost = ranged(min(around), max(around))
                pairs.append((pi[z] * pi[z0], cost))
        for epsilon, delta in POINTS:
            promise = ApproxDP(epsilon, delta, **RO)
            expected = theorem_c(promise, pairs)
            assert unified.theorem_c(promise, game) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("weights", [[0.6, 0.25, 0.15], [0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4]])
def test_theorem_c_for_many_classes_when_everything_is_known(weights, monkeypatch):
    """Any set is possible: [pi_z, 1 - pi_z0], of which the upper end matters below 1/2 alone."""
    monkeypatch.setattr(unified, "LISTED", 1)
    game = play(Prior.from_probabilities(weights), Threat(knows="everything"))
    pairs = [
        (a * b, ranged(a, 1 - b if b > 0.5 else 1.0))
        for i, a in enumerate(weights)
        for j, b in enumerate(weights)
        if i != j
    ]
    for epsilon, delta in POINTS:
        promise = ApproxDP(epsilon, delta, **RO)
        assert unified.theorem_c(promise, game) == pytest.approx(
            theorem_c(promise, pairs), rel=1e-9
        )


def test_ranges_that_are_shared_are_wider(monkeypatch, rng):
    game = play(Prior.from_probabilities(rng.dirichlet(np.ones(40))), Threat())
    groups = unified.separations(game)
    shared = unified.share(groups, 7)
    assert len(shared.weight) == 7 and shared.weight.sum() == pytest.approx(groups.weight.sum())
    for w, low, high in zip(groups.weight, groups.low, groups.high, strict=True):
        assert any(a <= low and high <= b for a, b in zip(shared.low, shared.high, strict=True)), w
    assert unified.share(groups, 40) is groups


# -- add-remove -----------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_theorem_e1(seed):
    for _, game in games(seed, count=3):
        for promise in (
            PureDP(0.8, **AR),
            ApproxDP(1.5, 0.05, **AR),
            GaussianDP(1.2, **AR),
            POISSON,
            PureDP(8.0, **AR),
            ApproxDP(1.0, 0.9, **AR),
            LOPSIDED,
        ):
            loss = promise.directions[0]
            best = 1.0 - game.least  # k = 0
            for x in loss.losses[:: max(1, len(loss.losses) // 400)]:
                excess = np.sum(np.maximum(loss.p - np.exp(x) * loss.q, 0.0)) + loss.p_infinity
                best = min(best, (1 + game.most - game.least) * excess + math.expm1(x) * game.most)
            found = absent.theorem_e1(promise, game)
            assert best - 2e-3 * best <= found + 1e-12 and found <= best * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "promise",
    [PureDP(1.0, **AR), ApproxDP(0.5, 0.1, **AR), GaussianDP(2.0, **AR), POISSON, LOPSIDED],
)
def test_theorem_e2(promise):
    """On a grid of b and k, psi from its definition."""
    loss = promise.directions[0]
    x, q = np.exp(loss.losses), loss.q

    def psi(value, b, k):
        distance = abs(value - k)
        if distance <= 2 * b:
            return (b + distance) ** 2 / (8 * b)
        return (math.sqrt(distance) - math.sqrt(b / 8)) ** 2

    keep = q > 0
    best = 1.0
    vector = np.vectorize(psi)
    sample = slice(None, None, max(1, int(keep.sum()) // 300))
    xs, qs = x[keep][sample], q[keep][sample]
    for b in np.geomspace(0.02, 20, 25):
        for k in np.linspace(0.5, 2.5, 21):
            value = float(qs * (q[keep].sum() / qs.sum()) @ vector(xs, b, k))
            value += max(0.0, 1 - q.sum()) * psi(0.0, b, k) + loss.p_infinity
            best = min(best, value)
    found = absent.theorem_e2(promise, play(Prior.unknown(), Threat()))
    assert found <= best * 1.01 and found >= 0.93 * best


def proposition_f(loss, pi):
    """min over b of max { sum g_z(q_z) : sum q = 1 } - b; the steepest pieces are filled first."""
    tail = np.r_[0.0, np.cumsum(loss.q[::-1])]
    power = loss.p_infinity + np.r_[0.0, np.cumsum(loss.p[::-1])]

    def f0(q):
        return 1 - np.interp(q, np.r_[tail, 1.0], np.r_[power, 1.0])

    ends = np.unique(np.clip(np.r_[0.0, 1.0, tail, 1 - tail], 0, 1))

    def at(b):
        first, gains, widths = 0.0, [], []
        for p in pi:
            if p >= b:
                g = p * (1 - p + b) * (1 - f0(ends)) - (p - b) * (1 - p) * f0(1 - ends)
            else:
                g = b * (1 - f0(ends))
            first += g[0]
            gains.append(np.diff(g)), widths.append(np.diff(ends))
        gain, width = np.concatenate(gains), np.concatenate(widths)
        order = np.argsort(-gain / width)
        left = np.clip(1.0 - np.r_[0.0, np.cumsum(width[order])[:-1]], 0.0, width[order])
        return first + float(np.sum(gain[order] * left / width[order])) - b

    found = minimize_scalar(at, bounds=(0, max(pi)), method="bounded", options={"xatol": 1e-10})
    return min(found.fun, at(0.0), at(max(pi)))


@pytest.mark.parametrize(
    "promise",
    [PureDP(0.4, **AR), ApproxDP(1.5, 0.05, **AR), GaussianDP(0.8, **AR), POISSON, LOPSIDED],
)
@pytest.mark.parametrize("pi", [[0.5, 0.5], [0.7, 0.3], [0.6, 0.25, 0.1, 0.05], [0.1] * 10])
def test_proposition_f(promise, pi):
    game = play(Prior.from_probabilities(pi), Threat())
    expected = proposition_f(promise.directions[0], pi)
    assert expected > 0
    assert absent_prior.proposition_f(promise, game) == pytest.approx(expected, rel=1e-5)


# -- nothing known, one class a set ---------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_theorem_b_and_its_inverse(seed):
    for _, game in games(seed, knows="nothing", kind="exact"):
        pi = sorted(game.probabilities, reverse=True)
        for epsilon, delta in POINTS:
            s, values = math.expm1(epsilon), [0.0]
            for k in range(1, len(pi) + 1):
                f = sum(p * (1 - p) for p in pi[:k]) - pi[k - 1] * sum(pi[k:])
                values.append(s * f / (s + k))
            expected = (1 - delta) * max(values) + delta * (1 - sum(p * p for p in pi))
            promise = ApproxDP(epsilon, delta, **RO)
            assert optimum.theorem_b(promise, game) == pytest.approx(expected, rel=1e-9, abs=1e-15)
            if expected > 1e-9 and epsilon < 5:
                back = optimum.inverse_b(expected, game, delta)
                assert back == pytest.approx(epsilon, rel=1e-6)
    assert optimum.theorem_b(PureDP(0.0, **RO), game) == 0.0
    assert optimum.inverse_b(0.99999, game, 0.0) == math.inf
    assert optimum.inverse_b(0.5, game, 1.0) == 0.0
    assert optimum.inverse_b(1e-9, game, 0.5) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_proposition_w(seed):
    for _, game in games(seed, knows="nothing", kind="exact"):
        pi = game.probabilities
        if len(pi) < 2:
            assert optimum.proposition_w(PureDP(1.0, **RO), game) == 0.0
            continue
        cap = [p * (1 - p + min(np.delete(pi, z))) for z, p in enumerate(pi)]
        whole = 1 - float(pi @ pi)
        for promise in (PureDP(1.0, **RO), ApproxDP(0.5, 0.1, **RO), GaussianDP(1.0, **RO)):
            filled = np.minimum(np.geomspace(1e-6, max(cap), 6000)[:, None], cap)
            filled = filled[filled.sum(axis=1) <= whole]
            v = whole - filled.sum(axis=1)
            deltas = promise.delta(np.log1p(v[:, None] / filled).ravel()).reshape(filled.shape)
            best = min(whole, float(np.min(v + (filled * deltas).sum(axis=1))))
            assert optimum.proposition_w(promise, game) == pytest.approx(best, rel=3e-3, abs=1e-6)
            assert optimum.proposition_w(promise, game) <= best * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_theorem_4_and_corollary_2(seed):
    for _, game in games(seed, knows="nothing", kind="exact"):
        pi, m = sorted(game.probabilities, reverse=True), len(game.probabilities)
        for epsilon, delta in POINTS:
            e = math.exp(epsilon)
            tv = (e - 1 + 2 * delta) / (e + 1)
            gamma = left = (m - 1) * (e - 1 + delta * m) / (e + m - 1)
            total = 0.0
            for p in pi:
                share = min(left, tv * (1 - p))
                total, left = total + p * share, left - share
            promise = ApproxDP(epsilon, delta, **RO)
            assert perfect.theorem_4(promise, game) == pytest.approx(total, rel=1e-9, abs=1e-15)
            assert perfect.corollary_2(promise, game) == pytest.approx(
                gamma / m, rel=1e-9, abs=1e-15
            )


@pytest.mark.parametrize("m", [1, 2, 3, 10])
def test_proposition_g(m):
    promise = GaussianDP(0.7, static=True, **AR)
    power = {1: 1.0, 2: ndtr(0.7)}.get(m) or nct.sf(t.ppf(1 - 1 / m, m - 2), m - 2, 0.7)
    found = static.proposition_g(promise, play(Prior.uniform(m), Threat()))
    assert found == pytest.approx(power - 1 / m, abs=1e-9)


# -- the paper's others ---------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_and_proposition_1(seed):
    for _, game in games(seed):
        for epsilon, delta in POINTS[:3]:
            promise, e = ApproxDP(epsilon, delta, **RO), math.exp(epsilon)
            f = promise.tradeoff
            for found, low, high, scale in (
                (tradeoff.theorem_3(promise, game), game.p_minus, game.p_plus, 1.0),
                (
                    tradeoff.theorem_3_finite(promise, game),
                    0.0,
                    min(1.0, game.p_plus / game.unlike) if game.unlike else 0.0,
                    game.unlike,
                ),
            ):
                a = np.linspace(low, high, 4001)
                best = scale * max(0.0, float(np.max(1 - f(a) - a)))
                assert best - 1e-9 <= found <= best + 2e-3 * scale
            one = min(
                game.p_plus * (e - 1) + delta,
                ((1 - game.p_minus) * (e - 1) + delta) / e,
                game.unlike * (e - 1 + 2 * delta) / (e + 1),
            )
            assert tradeoff.proposition_1(promise, game) == pytest.approx(one, rel=1e-9, abs=1e-15)
            assert rero.balle(promise, game) == pytest.approx(min(1, game.p_plus * e + delta))
            assert rero.hayes(promise, game) == pytest.approx(1 - float(f(game.p_plus)), abs=1e-9)


@pytest.mark.parametrize("where", [0.03, 1.2345, 4.3])
def test_the_least_over_a_profile(where):
    """A function of (epsilon, delta) with its least value between the points of the first grid."""
    promise = GaussianDP(1.0, **RO)
    at = lambda e, d: 100 * (e - where) ** 2 + d  # noqa: E731
    fine = np.linspace(0, 5, 100_001)
    expected = float(np.min(at(fine, promise.delta(fine))))
    assert points.least_over_points(promise, at) == pytest.approx(expected, abs=1e-5)
    assert points.least_over_points(ApproxDP(0.7, 0.1, **RO), lambda e, d: e + 10 * d) == 1.7


def test_many_records_with_little_noise_to_hide_them():
    """P+ (e - 1) + delta is the least of the three where P+ is small."""
    game = play(Prior.uniform(40), Threat())
    for epsilon, delta in ((0.3, 0.0), (1.0, 1e-3)):
        promise = ApproxDP(epsilon, delta, **RO)
        assert tradeoff.proposition_1(promise, game) == pytest.approx(
            math.expm1(epsilon) / 40 + delta, rel=1e-9
        )


@pytest.mark.parametrize("m", [2, 3, 7])
def test_theorem_c_for_equal_classes_when_everything_is_known(m):
    """Any number of classes but all: masses 1/m, ..., (m - 1)/m for every pair."""
    game = play(Prior.uniform(m), Threat(knows="everything"))
    pairs = [(1 - 1 / m, cheapest([k / m for k in range(1, m)]))]
    for epsilon, delta in POINTS:
        promise = ApproxDP(epsilon, delta, **RO)
        assert unified.theorem_c(promise, game) == pytest.approx(
            theorem_c(promise, pairs), rel=1e-9
        )


def test_one_class_has_no_risk():
    game = play(Prior.uniform(1), Threat())
    for bound, near in ((optimum.proposition_w, RO), (absent_prior.proposition_f, AR)):
        assert bound(PureDP(1.0, **near), game) == 0.0
    assert optimum.theorem_b(PureDP(1.0, **RO), game) == 0.0


def test_the_smallest_bound_is_named():
    """The value is the smallest, the name that of the first in the table within nine digits."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        instance = random_instance(rng, 4)
        game = play(instance.prior, instance.threat)
        found = evaluate(ApproxDP(1.0, 0.01, **RO), game)
        rows = [b for b in found if b.value is not None and b.measure == "rad"]
        smallest = min(b.value for b in rows)
        chosen, value = least(found, "rad")
        first = next(b for b in rows if b.value <= smallest * (1 + 1e-9))
        assert (chosen.name, value) == (first.name, smallest)


def test_the_name_is_not_simply_the_first():
    game = play(Prior.uniform(3), Threat())
    found = evaluate(PureDP(1.0, **RO), game)
    rows = [b for b in found if b.measure == "rad" and b.value is not None]
    values = [0.3, 0.2 * (1 + 5e-10), 0.2, 0.25]
    some = tuple(replace(b, value=v) for b, v in zip(rows, values, strict=False))
    chosen, value = least(some, "rad")
    assert (chosen.name, value) == (rows[1].name, 0.2)
    wider = (some[0], replace(some[1], value=0.2 * (1 + 5e-9)), some[2])
    assert least(wider, "rad")[0].name == rows[2].name


def test_where_nothing_can_be_guessed_nothing_is_gained():
    game = play(Prior.continuous(uniform(), 0, 1), Threat())
    found = evaluate(PureDP(1.0, **RO), game)
    assert game.p_plus == 0.0
    assert {b.value for b in found if b.measure == "rad" and b.value is not None} == {0.0}
