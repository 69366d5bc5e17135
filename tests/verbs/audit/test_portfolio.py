"""Bets on several cells: no allowed law is paid more than one, and they grow as fast as can be."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import norm

from dprad import ApproxDP, DpradError, GaussianDP, TotalVariation
from dprad.verbs.audit.allowed import cell_bets, growth
from dprad.verbs.audit.books import Cells
from dprad.verbs.audit.portfolio import portfolio

REPLACE = {"neighbours": "replace-one"}


def point(epsilon, delta):
    """The worst pair of laws of an (epsilon, delta) claim: all others are made from it."""
    high, low = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[delta, high, low, 0.0], [0.0, low, high, delta]])


def both(*pairs):
    """What is seen of several mechanisms."""
    return functools.reduce(lambda x, y: np.stack([np.kron(x[z], y[z]) for z in (0, 1)]), pairs)


def normal(mu):
    edges = np.r_[-np.inf, np.linspace(-9, 9 + mu, 20_000), np.inf]
    return np.stack([np.diff(norm.cdf(edges - m)) for m in (0.0, mu)])


CLAIMS = {
    "approximate": (ApproxDP(1.0, 0.01, **REPLACE), point(1.0, 0.01)),
    "approximate, nearly pure": (ApproxDP(2.0, 1e-5, **REPLACE), point(2.0, 1e-5)),
    "total variation": (TotalVariation(0.3, **REPLACE), point(0.0, 0.3)),
    "Gaussian": (GaussianDP(1.0, **REPLACE), normal(1.0)),
    "Gaussian, weak": (GaussianDP(3.0, **REPLACE), normal(3.0)),
    "Gaussian, hardly any": (GaussianDP(6.0, **REPLACE), normal(6.0)),
    "composed": (
        ApproxDP(1.0, 1e-3, **REPLACE).compose(ApproxDP(0.5, 0.02, **REPLACE)),
        both(point(1.0, 1e-3), point(0.5, 0.02)),
    ),
    "composed with noise": (
        GaussianDP(1.0, **REPLACE).compose(ApproxDP(0.5, 0.01, **REPLACE)),
        both(normal(1.0), point(0.5, 0.01)),
    ),
}


def predicted(rng, times, cells):
    """Laws of all kinds: any, nearly certain ones, and those of a score."""
    law = rng.dirichlet(np.full(cells, 0.7), size=(times, 2))
    law[: times // 3] = law[: times // 3] ** 4
    order = np.argsort(law[times // 2 :, 1] / law[times // 2 :, 0], axis=1)
    law[times // 2 :] = np.take_along_axis(law[times // 2 :], order[:, None], axis=2)
    law += 1e-9
    return law / law.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("name", CLAIMS)
def test_no_allowed_law_pays_more_than_one(name, rng):
    """An allowed pair of laws is made from the worst one (Blackwell): the most that can be paid on
    average sends each of its outcomes to the cell that pays most. It is paid nearly one.
    """
    claim, worst = CLAIMS[name]
    for cells in (2, 3, 6, 13):
        pay = portfolio(predicted(rng, 12, cells), claim)
        assert np.all(pay >= 0)
        for table in pay:
            most = (table[0][:, None] * worst[0] + table[1][:, None] * worst[1]).max(axis=0)
            assert most.sum() / 2 <= 1 + 1e-9
    law = np.array([[[0.7, 0.2, 0.1], [0.01, 0.09, 0.9]]])  # far from what is allowed
    table = portfolio(law, claim)[0]
    most = (table[0][:, None] * worst[0] + table[1][:, None] * worst[1]).max(axis=0)
    assert most.sum() / 2 > 0.97


def test_no_law_within_all_unions_pays_more_than_one(rng):
    """The same by linear programs: laws of cells with P1(S) <= e^eps P0(S) + delta for all S."""
    claim, cells = ApproxDP(1.0, 0.05, **REPLACE), 4
    rows = []
    for inside in itertools.product((0.0, 1.0), repeat=cells):
        s = np.array(inside)
        rows += [np.r_[-math.e * s, s], np.r_[s, -math.e * s]]
    sums = np.kron(np.eye(2), np.ones(cells))
    for table in portfolio(predicted(rng, 12, cells), claim):
        found = linprog(-table.ravel() / 2, A_ub=rows, b_ub=[0.05] * len(rows), A_eq=sums,
                        b_eq=[1.0, 1.0])  # fmt: skip
        assert -found.fun <= 1 + 1e-9


def test_two_cells_grow_as_fast_as_a_bet_on_one_set(rng):
    for claim, _ in CLAIMS.values():
        a, b = rng.uniform(0.02, 0.3, 8), rng.uniform(0.75, 0.98, 8)
        law = np.stack([np.stack([1 - a, a], axis=1), np.stack([1 - b, b], axis=1)], axis=1)
        found = (law * np.log(portfolio(law, claim))).sum(axis=(1, 2)) / 2
        best = growth(a, b, cell_bets(a, b, claim))
        assert np.all(found >= 0.97 * best - 6e-4)


@pytest.mark.parametrize("mu", [0.5, 3.0, 4.5, 6.0, 8.0])
def test_what_reveals_the_record_grows_against_any_claim(mu):
    """A claim with this total variation t allows a right guess with chance (1 + t) / 2, no more."""
    claim, law = GaussianDP(mu, **REPLACE), np.kron(np.eye(2), np.full(3, 1 / 3))
    found = float((law[law > 0] * np.log(portfolio(law[None], claim)[0][law > 0])).sum() / 2)
    best = math.log(2.0 / (1.0 + claim.tv))
    assert 0.99 * best <= found <= best * (1 + 1e-9)


@pytest.mark.parametrize("mu", [1.3, 1.5, 2.0])
def test_growth_is_that_of_the_closest_allowed_law(mu):
    """Against the relative entropy to laws whose tails are allowed, by another solver."""
    claim, edges = GaussianDP(1.0, **REPLACE), np.array([-0.2, 0.6, 1.6])
    law = np.stack([np.diff(np.r_[0.0, norm.cdf(edges - m), 1.0]) for m in (0.0, mu)])

    def unpacked(v):
        s = np.exp(v.reshape(2, 4))
        return s / s.sum(axis=1, keepdims=True)

    def slack(v):
        s = unpacked(v)
        up, down = s[:, ::-1].cumsum(axis=1)[:, :-1], s.cumsum(axis=1)[:, :-1]
        return np.r_[1 - claim.tradeoff(up[0]) - up[1], 1 - claim.tradeoff(down[1]) - down[0]]

    start = np.log(0.4 * law + 0.6 * law.mean(axis=0)).ravel()
    best = minimize(
        lambda v: float((law * np.log(law / unpacked(v))).sum() / 2), start,
        constraints={"type": "ineq", "fun": slack}, options={"maxiter": 300, "ftol": 1e-12},
    )  # fmt: skip
    assert slack(best.x).min() > -1e-7
    found = float((law * np.log(portfolio(law[None], claim)[0])).sum() / 2)
    assert 0.93 * best.fun <= found <= best.fun * (1 + 1e-4)
    two = max(
        growth(*pair, cell_bets(*pair, claim))[0]
        for pair in zip(*(1 - norm.cdf(edges - m).reshape(-1, 1) for m in (0.0, mu)), strict=True)
    )
    assert found > 1.2 * two


def test_books_of_cells_by_hand():
    claim, other = ApproxDP(1.0, 0.01, **REPLACE), GaussianDP(0.5, **REPLACE)
    laws = [np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([[0.9, 0.1], [0.2, 0.8]])]
    seen = [(np.array([2, 0, 0]), np.array([1, 0, 1])), (np.array([1, 1]), np.array([1, 0]))]
    book, again = Cells(claim), Cells(claim)
    for law, (cell, secret) in zip(laws, seen, strict=True):
        book.begin(law)
        again.begin(law)
        again.put(book.add(cell, secret))
    for wrong in ([], [[1, 1]], [[1, 1, 0], [0, 0, 1]]):
        with pytest.raises(DpradError, match="do not fit"):
            again.put(wrong)
    for tested in (claim, other):
        pay = np.concatenate([portfolio(law[None], tested)[0][z, c]
                              for law, (c, z) in zip(laws, seen, strict=True)])  # fmt: skip
        expected = math.log(0.9 * np.prod(pay) + 0.1 * np.prod(0.6 + 0.4 * pay))
        for each in (book, again):
            assert each.log_wealth(tested) == pytest.approx(expected, rel=1e-3)
