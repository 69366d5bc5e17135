"""What table releases say of themselves: sensitivity, scale, promise, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import dlaplace

import dprad
from dprad import DpradError, Prior, Threat, assess, audit, calibrate, compare
from dprad.mechanisms import Composed, Counts, Histogram, Marginals, Mean, Repeated, Sums
from effort import part_of

ONE = {"epsilon": 1.0, "neighbours": "replace-one"}
BIT = {"epsilon": 1.0, "neighbours": "add-remove"}
MANY = Prior.from_counts(
    {(a, b, c): 1.0 + a + b for a in range(3) for b in range(2) for c in (0.5, 7.0)},
    columns=["a", "b", "c"],
)


def test_sensitivity_follows_from_the_description():
    rows = [
        (Counts(by=["a"], **ONE), 2.0, 1.0),
        (Counts(where="a > 0", **ONE), 1.0, 1.0),
        (Counts(by=["a"], where="a > 0", **ONE), 2.0, 1.0),
        (Histogram(of="c", bins=[0, 1, 2], **ONE), 2.0, 1.0),
        (Histogram(of="c", bins=[0, 1], **ONE), 1.0, 1.0),
        (Sums(of="c", clamp=(0, 5), **ONE), 5.0, 5.0),
        (Sums(of="c", clamp=(3, 5), **ONE), 2.0, 5.0),
        (Sums(of="c", clamp=(3, 5), where="a > 0", **ONE), 5.0, 5.0),
        (Sums(of="c", clamp=(-4, 5), **ONE), 9.0, 5.0),
        (Sums(of="c", clamp=(-4, 5), by=["a"], **ONE), 10.0, 5.0),
        (Sums(of="c", clamp=(-4, -3), by=["a"], **ONE), 8.0, 4.0),
    ]
    for release, replaced, added in rows:
        assert release.sensitivity("replace-one") == (replaced,), release
        assert release.sensitivity("add-remove") == (added,), release
        assert release.noises[0].scale == replaced
    long = Sums(
        of="c", clamp=(-4, 5), by=["a"], noise="gaussian", rho=0.5, neighbours="replace-one"
    )
    assert long.sensitivity("replace-one") == (9.0,)  # in one cell; in two it is 5 sqrt 2


def test_the_sensitivity_is_attained():
    """The largest distance of two contributions, and of one from none, over all records."""
    from dprad.game.question import Question

    for release in (
        Counts(by=["a", "b"], **ONE),
        Sums(of="a", clamp=(0, 2), by=["b"], **ONE),
        Sums(of="a", clamp=(-1, 1), **ONE),
    ):
        part = release.prepared(Question.of(MANY)).parts[0]
        rows = np.zeros((len(part.place), part.cells))
        rows[np.arange(len(rows)), part.cell[part.place]] = part.value[part.place]
        apart = np.abs(rows[:, None] - rows).sum(axis=2).max()
        least = 2.0 if release.tables[0].clamp == (-1, 1) else apart
        assert release.sensitivity("replace-one")[0] in (apart, least)
        assert np.abs(rows).sum(axis=1).max() <= release.sensitivity("add-remove")[0]


def test_promises_are_tight():
    """Geometric noise on two cells, and on one: sums over all outputs."""
    table = Counts(by=["a"], noise="geometric", scale=1.5)
    k = np.arange(-60, 62)
    one, zero = dlaplace.pmf(k - 1, 1 / 1.5), dlaplace.pmf(k, 1 / 1.5)
    p, q = np.outer(one, zero), np.outer(zero, one)
    for epsilon in (0.0, 0.3, 1.0, 1.3, 1.4):
        delta = np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
        assert table.guarantee.delta(epsilon) == pytest.approx(delta, abs=1e-6)
        assert table.guarantee.delta(epsilon) >= delta - 1e-12
    released = Counts(by=["a"], noise="geometric", **BIT).stated
    assert released.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-9)
    assert released.tv == pytest.approx(np.tanh(0.5), rel=1e-6)


def test_promises_of_laplace_noise_against_draws():
    """Two Laplace tables, one person replaced: the loss of a million draws; 5 deviations."""
    both = Marginals([["a"], ["b"]], weights=[1, 2], **ONE)
    rng = np.random.default_rng(0)
    loss = np.zeros(10**6)
    for noise in both.noises:
        for _ in range(2):
            o = 1 + rng.laplace(0, noise.scale, len(loss))
            loss += (np.abs(o) - np.abs(o - 1)) / noise.scale
    for epsilon in (0.0, 0.4, 0.9):
        terms = np.maximum(-np.expm1(epsilon - loss), 0.0)
        error = 5 * terms.std() / 1000
        assert both.guarantee.delta(epsilon) == pytest.approx(terms.mean(), abs=error)
    assert both.guarantee.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("near", ["replace-one", "add-remove"])
def test_a_budget_is_spent_and_not_exceeded(near):
    for noise, amount, clamp in (("laplace", "epsilon", (-2, 7)), ("gaussian", "rho", (-2, 7))):
        given = {"noise": noise, amount: 0.8, "neighbours": near}
        for release in (
            Counts(by=["a"], **given),
            Marginals([["a"], ["b"], ["a", "b"]], weights=[1, 2, 3], **given),
            Sums(of="c", clamp=clamp, by=["b"], **given),
            Mean(of="c", clamp=clamp, **given),
            Mean(of="c", clamp=clamp, where="a > 0", **given),
        ):
            if noise == "gaussian":
                assert release.stated.mu**2 / 2 <= 0.8 * (1 + 1e-12), release
                spent = release.stated.mu**2 / 2
            else:
                spent = release.stated.epsilon_at(0.0)
                assert spent <= 0.8 * (1 + 1e-9), release
            if not isinstance(release, Mean):  # sum and count may not both be at their worst
                assert spent == pytest.approx(0.8, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Counts(by=["a"]), "given by epsilon or by scale, but got neither"),
        (lambda: Counts(by=["a"], epsilon=1.0), "neighbours must say what epsilon compares"),
        (lambda: Counts(by=["a"], epsilon=1.0, neighbours="both"), "neighbours must be one of"),
        (lambda: Counts(by=["a"], rho=1.0, neighbours="add-remove"), "epsilon or by scale"),
        (lambda: Counts(by=["a"], noise="gaussian", **ONE), "given by rho or by scale"),
        (lambda: Counts(by=["a"], noise="gauss", **ONE), "Did you mean 'gaussian'"),
        (lambda: Counts(by=["a"], epsilon=-1.0, neighbours="add-remove"), "at least 0"),
        (lambda: Counts(by=["a"], scale=0.0), "scale must be positive"),
        (lambda: Counts(by=["a", "a"], **ONE), "each column once"),
        (lambda: Counts(by=[["a"]], **ONE), "list of column names"),
        (lambda: Counts(**ONE), "does not change when one is replaced"),
        (lambda: Counts(by=["a"], where={}, **ONE), "where must be a comparison"),
        (lambda: Counts(by=["a"], times=0, **ONE), "times"),
        (lambda: Marginals([], **ONE), "a list of tables is needed"),
        (lambda: Marginals([["a"], []], **ONE), "one is empty"),
        (lambda: Marginals([["a", "b"], ["b", "a"]], **ONE), "there twice"),
        (lambda: Marginals([["a"], ["b"]], weights=[1], **ONE), "weights must be 2 positive"),
        (lambda: Marginals([["a"], ["b"]], weights=[1, 0], **ONE), "weights must be 2 positive"),
        (lambda: Marginals([["a"], ["b"]], weights=[1, 2], scale=1.0), "leave them out with scale"),
        (lambda: Sums(of="c", clamp=(5, -5), **ONE), "low < high"),
        (lambda: Sums(of="c", clamp=5, **ONE), "a pair"),
        (lambda: Sums(of="c", clamp=(0, 0.5), noise="geometric", **ONE), "whole numbers"),
        (lambda: Sums(of=["c"], clamp=(0, 1), **ONE), "of must name one column"),
        (lambda: Histogram(of="c", bins=10, **ONE), "ascending edges"),
        (lambda: Histogram(of="c", bins=[0, 0, 1], **ONE), "ascending edges"),
    ],
)  # fmt: skip
def test_descriptions_that_make_no_sense(make, said):
    with pytest.raises(DpradError, match=said):
        make()


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (Counts(by=["age"], **ONE), "by names the column 'age', which is not there"),
        (Sums(of="income", clamp=(0, 1), **ONE), "of names the column 'income'"),
        (Counts(by=["a"], where="d > 1", **ONE), "where names the column 'd'"),
        (Counts(by=["a"], where='a = "x"', **ONE), "where compares 'a' with text"),
        (Sums(of="c", clamp=(0, 7), noise="geometric", **ONE), "whole noise sums whole numbers"),
    ],
)
def test_descriptions_that_do_not_fit_the_records(release, said):
    with pytest.raises(DpradError, match=said):
        assess(release, prior=MANY)
    words = Prior.from_counts({"x": 1, "y": 1}, columns=["c"])
    if not release.where and not getattr(release, "by", ()):
        with pytest.raises(DpradError):
            assess(release, prior=words)


def test_what_a_release_cannot_be_asked():
    table = Counts(by=["a"], **ONE)
    with pytest.raises(DpradError, match="leave out query="):
        assess(table, prior=MANY, query="a")
    with pytest.raises(DpradError, match="table of records"):
        assess(table, prior=Prior.unknown())
    with pytest.raises(DpradError, match="needs records"):
        table.sample([0], np.random.default_rng(0))


def test_keys_that_one_person_has():
    """A cell with one person in it is a cell: the risk of this person is the largest."""
    prior = Prior.from_counts({"common": 999, "rare": 1})
    risk = assess(Counts(by=["value"], **BIT), prior=prior)
    assert risk.worst_record == "rare" and risk.worst > 0.3 > risk.rad


def test_calibrate_compare_and_audit():
    prior, threat = MANY, Threat(knows=["a"], target=["b"])
    for noise, parameter in part_of((("geometric", "epsilon"), ("gaussian", "rho")), 1):
        plan = calibrate(
            Counts, max_risk=0.05, prior=prior, threat=threat, by=["a", "b"], noise=noise,
            neighbours="add-remove", trials=2000,
        )  # fmt: skip
        assert plan.parameter == parameter and plan.risk.interval[1] <= 0.05
        assert plan.risk.rad > 0.04
    two = Counts(by=["a"], **ONE), Counts(by=["a"], epsilon=0.5, neighbours="replace-one")
    table = compare(two, prior=prior, trials=2000)
    assert [c.mechanism.epsilon for c in table] == [0.5, 1.0]
    assert [c.error for c in table] == pytest.approx([4 * np.log(20), 2 * np.log(20)])
    for claim, verdict in ((two[0].guarantee, "consistent"), (two[1].guarantee, "violated")):
        found = audit(two[0], claim=claim, prior=prior, trials=4000)
        assert found.verdict == verdict


def noisy(scale, others=0.0, named=False):
    """A function that publishes counts of a and b about one person and others."""

    def publish(record, rng):
        cells = {(a, b): others + rng.laplace(0.0, scale) for a in range(3) for b in range(2)}
        cells[record[:2]] += 1
        return cells if named else np.array(list(cells.values())).reshape(3, 2)

    return publish


@pytest.mark.parametrize("named", [True, False])
def test_functions_that_publish_tables_are_audited(named):
    """With a table as the model, and by learning; the second is told what it needs."""
    claim = dprad.PureDP(1.0, neighbours="replace-one")
    table = Counts(by=["a", "b"], **ONE)
    for scale, verdict in ((2.0, "consistent"), (0.4, "violated")):
        found = audit(noisy(scale, named=named), claim=claim, prior=MANY, model=table, trials=1500)
        assert found.verdict == verdict and any("everybody else" in n for n in found.notes)
    with pytest.raises(DpradError, match="returned 6 numbers, but these tables have 3 cells"):
        audit(noisy(2.0), claim=claim, prior=MANY, model=Counts(by=["a"], **ONE), trials=100)
    keys = Counts(by=["a", "b"], threshold=3.0, **ONE)
    with pytest.raises(DpradError, match="no model is known"):
        audit(noisy(2.0), claim=claim, prior=MANY, model=keys, trials=100)
    if named:
        learned = audit(noisy(0.4, 10.0, named), claim=claim, prior=MANY, trials=1000)
        assert learned.verdict == "violated"


def test_descriptions_are_plain():
    table = Marginals([["a"], ["b"]], where={"a": [1, 2], "b": 0}, times=2, **ONE)
    assert table.describe() == {
        "kind": "Marginals", "by": [["a"], ["b"]], "noise": "laplace", "epsilon": 1.0,
        "neighbours": "replace-one", "where": '"a" in (1, 2) and "b" = 0', "times": 2,
    }  # fmt: skip
    assert hash(table) == hash(Marginals([["a"], ["b"]], where=table.where, times=2, **ONE))
    for several in (Composed([table, table]), Repeated(table, 2)):
        assert assess(several, prior=MANY, trials=50).subject["kind"] == type(several).__name__
