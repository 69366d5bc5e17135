"""Equally likely values that are only counted: the same numbers as from their table."""

from __future__ import annotations

import pickle
from dataclasses import fields

import mpmath
import numpy as np
import pytest

from dprad import (
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    Threat,
    assess,
    by_group,
    calibrate,
    mechanisms,
    memory,
)
from dprad.exact.even import own_even, solve_even
from dprad.game import game as games
from dprad.game.game import Even, Game, play
from dprad.mechanisms.catalogue import parts
from dprad.model.guarantees import ZCDP

M = mechanisms
KNOWN = (Threat(), Threat(knows="everything"), Threat(loss="absolute", eta=0.5, must_guess=True))
MADE = [
    lambda m: M.GRR(epsilon=1.3, size=m),
    lambda m: M.GRR(epsilon=0.0, size=m),
    lambda m: M.GRR(epsilon=1.0, delta=0.01, size=m),
    lambda m: M.OUE(epsilon=2.0, size=m),
    lambda m: M.SUE(epsilon=9.0, size=m),
    lambda m: M.OLH(epsilon=3.0, size=m),
    lambda m: M.BLH(epsilon=1.0, size=m),
    lambda m: M.SubsetSelection(epsilon=0.5, size=m),
    lambda m: M.SubsetSelection(epsilon=12.0, size=m),
    lambda m: M.SubsetSelection(epsilon=1.0, size=m, subset=m),
    lambda m: M.HadamardResponse(epsilon=0.4, size=m),
    lambda m: M.HadamardResponse(epsilon=2.5, size=m),
    lambda m: M.HadamardResponse(epsilon=30.0, size=m),
    lambda m: M.LOSUE(size=m, epsilon_inf=2.0, epsilon_one=1.0, reports=5),
    lambda m: M.LOSUE(size=m, epsilon_inf=2.0, epsilon_one=1.0, reports=1),
    lambda m: M.LGRR(size=m, epsilon_inf=2.0, epsilon_one=1.0, reports=3),
]
PROMISES = [
    PureDP(1.0, neighbours="replace-one"),
    ApproxDP(0.5, 1e-3, neighbours="add-remove"),
    GaussianDP(1.0, neighbours="add-remove", static=True),
    ZCDP(0.1, neighbours="replace-one"),
]


@pytest.fixture
def both(monkeypatch):
    """An answer from the table, and one without it."""

    def ask(question):
        answers = []
        for large in (10**9, 1):
            monkeypatch.setattr(games, "LARGE", large)
            games._prepared.cache_clear()
            answers.append(question())
        games._prepared.cache_clear()
        return answers

    return ask


@pytest.mark.parametrize("m", [2, 3, 7, 64, 1000, 4097])
@pytest.mark.parametrize("threat", KNOWN)
def test_the_game_is_that_of_the_table(m, threat, both):
    table, even = both(lambda: play(Prior.uniform(m), threat))
    assert isinstance(even, Even)
    for name in (f.name for f in fields(Game)):
        assert getattr(even, name) == pytest.approx(getattr(table, name), abs=1e-12), name
    for mine, theirs in zip(even.levels, table.levels, strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert (even.uniform, even.count) == (table.uniform, table.count)


@pytest.mark.parametrize("m", [2, 5, 1000, 4099])
@pytest.mark.parametrize("which", range(len(MADE)))
def test_mechanisms(m, which, both):
    made, prior = MADE[which](m), Prior.uniform(m)
    for threat in KNOWN:
        table, even = both(lambda t=threat: assess(made, prior=prior, threat=t, trials=200))
        if threat.knows == "everything" and table.kind == "estimate":
            continue
        for name in ("rad", "success_in", "success_out", "rero", "baseline", "kappa", "worst"):
            mine, theirs = getattr(even, name), getattr(table, name)
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-13), (name, threat)
        assert (even.kind, even.method, even.worst_kind) == (
            table.kind, table.method, table.worst_kind
        )  # fmt: skip
        own = even.worst_record, table.worst_record
        assert own[0] == own[1] or even.worst == pytest.approx(table.worst, rel=1e-12)


@pytest.mark.parametrize("m", [3, 1000])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_promises(m, promise, both):
    for threat in KNOWN[:2]:
        table, even = both(lambda t=threat: assess(promise, prior=Prior.uniform(m), threat=t))
        for mine, theirs in zip(even.bounds, table.bounds, strict=True):
            assert (mine.value is None) == (theirs.value is None), mine.name
            if mine.value is not None:
                assert mine.value == pytest.approx(theirs.value, rel=1e-9), mine.name
        assert even.worst == pytest.approx(table.worst, rel=1e-12)
        assert even.worst_record == table.worst_record


def test_a_billion_values_need_no_memory():
    prior = Prior.uniform(10**9)
    with memory.limit("16 MB"):
        for threat in KNOWN[:2]:
            for promise in PROMISES[:3]:
                assert 0 < assess(promise, prior=prior, threat=threat).rad < 1
            for make in MADE[:13]:
                made = make(10**9)
                assert 0 <= assess(made, prior=prior, threat=threat).rad <= 1
        assert assess(MADE[13](10**9), prior=prior).rad > 0
        plan = calibrate(M.GRR, max_risk=1e-3, prior=prior)
        sets = calibrate(M.SubsetSelection, max_risk=1e-3, prior=prior, size=10**9)
        named = {
            name: parts(name, {"epsilon": 1.0}, prior, Threat())[1]
            for name in ("grr", "subset", "laplace", "piecewise")
        }
    assert plan.risk.rad <= 1e-3
    assert 0.999e-3 < sets.risk.rad <= 1e-3
    assert named["grr"]["size"] == named["subset"]["size"] == 10**9
    assert named["laplace"]["sensitivity"] == named["piecewise"]["bounds"][1] == 10**9 - 1


def test_what_needs_the_values_says_so():
    prior = Prior.uniform(10**12)
    with pytest.raises(DpradError, match="This question needs them one by one"):
        assess(M.Laplace(epsilon=1.0, sensitivity=1.0), prior=prior)
    with pytest.raises(DpradError, match="one by one"):
        by_group(M.GRR(epsilon=1.0, size=10**12), prior=prior, by="record")
    with pytest.raises(DpradError, match="GRR has size 5, but reads 1000000000000"):
        assess(M.GRR(epsilon=1.0, size=5), prior=prior)
    with pytest.raises(DpradError, match="target"):
        assess(PROMISES[0], prior=prior, threat=Threat(target=["age"]))


def test_uniform_priors_compare_as_before():
    few, table = Prior.uniform(4), Prior.from_counts(dict.fromkeys(range(4), 1.0))
    assert few == table and table == few and hash(few) == hash(table)
    assert few != Prior.uniform(5) and few != Prior.from_counts(dict.fromkeys("abcd", 1))
    many = Prior.uniform(10**9)
    again = pickle.loads(pickle.dumps(many))
    assert again == many and hash(again) == hash(many) and len(pickle.dumps(many)) < 1000
    assert "1000000000 records" in repr(many) and many.unlike + many.kappa == 1.0
    few.support  # noqa: B018 - makes it
    assert len(pickle.dumps(few)) < 1000


def test_large_tables_are_listed_where_they_must_be(both):
    """A query, a composition, a group: the usual way, with the same answer."""
    prior = Prior.uniform(300)
    twice = M.Composed([M.GRR(epsilon=1.0, size=300)] * 2)
    for made, asked in (
        (M.GRR(epsilon=1.0, size=2), {"query": "value > 7"}),
        (M.Laplace(epsilon=1.0, sensitivity=299.0), {}),
        (twice, {"trials": 2000}),
        (M.GRR(epsilon=1.0, size=300), {"threat": Threat(group="value < 5")}),
        (M.OUE(epsilon=1.0, size=300), {"query": "value"}),
    ):
        table, even = both(lambda a=made, k=asked: assess(a, prior=prior, **k))
        assert even.rad == pytest.approx(table.rad, rel=1e-9)


def test_other_mechanisms_are_not_guessed_at():
    game = Even.of(10**6, known=False)
    assert solve_even(M.Laplace(epsilon=1.0, sensitivity=1.0), game) is None
    assert own_even(M.Laplace(epsilon=1.0, sensitivity=1.0), game) is None


@pytest.mark.parametrize(("m", "epsilon"), [(10**9, 35.0), (10**12, 30.0), (10**15, 35.0)])
def test_a_tiny_chance_of_very_many_bits_keeps_its_digits(m, epsilon):
    """A set of s values gains (m - s)/m^2 times a difference; summed over all sizes, 60 digits."""
    with mpmath.workdps(60):
        p, q = mpmath.mpf(1) / 2, 1 / (mpmath.exp(epsilon) + 1)
        truth = (p - q) / (q * m) * (1 - (1 - q) ** (m - 1))
    risk = assess(M.OUE(epsilon=epsilon, size=m), prior=Prior.uniform(m))
    assert risk.rad == pytest.approx(float(truth), rel=1e-9)
