"""Bets: valid for every claim, near the best possible, and what engineers tried first."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from dprad import (
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    Threat,
    TotalVariation,
    audit,
    mechanisms,
)
from dprad.verbs.audit.allowed import cell_bets, growth, posterior_bets
from dprad.verbs.audit.books import ASIDE, SIDES, Cells, Odds, _sided
from dprad.verbs.audit.coordinates import Reader, lowest_bits
from dprad.verbs.audit.flatten import coordinates
from dprad.verbs.audit.session import Session, _against
from effort import some

REPLACE = {"neighbours": "replace-one"}
CLAIMS = [
    PureDP(0.5, **REPLACE),
    ApproxDP(1.0, 0.01, **REPLACE),
    ApproxDP(2.0, 1e-5, **REPLACE),
    GaussianDP(1.0, **REPLACE),
    TotalVariation(0.3, **REPLACE),
    ApproxDP(1.0, 1e-3, **REPLACE).compose(ApproxDP(0.5, 1e-3, **REPLACE)),
]


# -- validity --------------------------------------------------------------------------------------
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: type(c).__name__)
def test_no_allowed_law_pays_more_than_one(claim, rng):
    """At thousands of points of the curve, for hundreds of predictions."""
    a, b = rng.random(400), rng.random(400)
    a[:60] = 10.0 ** -rng.uniform(1, 12, 60)
    pay = cell_bets(a, b, claim)
    assert np.all(pay >= 0)
    grid = np.r_[0.0, np.geomspace(1e-12, 1, 3000)]
    curve = 1 - claim.tradeoff(grid)
    for one, two in ((grid, curve), (curve, grid), (grid, grid)):
        mean = (
            np.outer(pay[:, 0, 0], 1 - one) + np.outer(pay[:, 0, 1], one)
            + np.outer(pay[:, 1, 0], 1 - two) + np.outer(pay[:, 1, 1], two)
        ) / 2  # fmt: skip
        assert mean.max() <= 1 + 1e-9


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: type(c).__name__)
def test_bets_grow_nearly_as_fast_as_possible(claim, rng):
    """Against the relative entropy to the curve, by another minimiser."""

    def far(p, q):
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    seen = 0
    for _ in range(60):
        a, b = np.sort(rng.uniform(0.01, 0.99, 2))
        if b <= 1 - float(claim.tradeoff(a)) + 0.03:
            continue
        best = minimize_scalar(
            lambda t, a=a, b=b: far(a, t) + far(b, min(1 - 1e-12, 1 - float(claim.tradeoff(t)))),
            bounds=(a, b), method="bounded", options={"xatol": 1e-12},
        ).fun  # fmt: skip
        pair = np.array([a]), np.array([b])
        assert growth(*pair, cell_bets(*pair, claim))[0] == pytest.approx(best / 2, rel=0.02)
        seen += 1
    assert seen >= 10


def test_posteriors_are_paid_no_more_than_allowed(rng):
    odds, epsilon = rng.normal(0, 3, 300), np.array([0.0, 0.5, 2.0, 700.0])
    pay = np.exp(posterior_bets(odds, epsilon))
    for j, e in enumerate(epsilon):
        for q in (1 / (1 + math.exp(min(e, 700))), 0.5, 1 / (1 + math.exp(-e))):
            assert ((1 - q) * pay[:, j, 0] + q * pay[:, j, 1]).max() <= 1 + 1e-12


def test_books_by_hand(rng):
    odds, secret = np.array([1.0, 1.0, -0.5, 3.0]), np.array([1, 0, 0, 1])
    book = Odds()
    book.add(odds, secret)
    pay = []
    for o, z in zip(odds, secret, strict=True):
        r = 1 / (1 + math.exp(-o))
        s = min(max(r, 1 / (1 + math.exp(0.4))), 1 / (1 + math.exp(-0.4)))
        pay.append(r / s if z else (1 - r) / (1 - s))
    expected = 0.9 * np.prod(pay) + 0.1 * np.prod([0.6 + 0.4 * p for p in pay])
    # beside them, bets on sides: three of four were right
    sided = np.mean([(1 + s * math.exp(-0.4)) ** 3 * (1 - s) for s in SIDES])
    expected = (1 - ASIDE) * expected + ASIDE * sided
    assert book.log_wealth(0.4)[0] == pytest.approx(math.log(expected))


def test_bets_on_sides_gain_nothing_under_the_claim():
    """For every stake, whatever the chance of being right that the claim allows."""
    for e in (0.0, 0.3, 2.0, 50.0):
        cap = 1 / (1 + math.exp(-e))
        for right in (0.0, 0.5 * cap, cap):
            for s in SIDES:
                mean = right * (1 + s * math.exp(-e)) + (1 - right) * (1 - s)
                assert mean <= 1 + 1e-12
                assert right < cap or mean == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_false_alarms_of_bets_on_sides(epsilon, rng):
    """On a tight mechanism whose sides are known, bet on alone, at any look: at most 5% of 1,000.

    More than 80 alarms have a chance below 1e-4 if the rate is 5%.
    """
    right = np.cumsum(rng.random((1000, 1500)) < 1 / (1 + math.exp(-epsilon)), axis=1)
    wrong = np.arange(1, 1501) - right
    wealth = _sided(right.reshape(-1), wrong.reshape(-1), np.array([epsilon]))
    alarms = np.count_nonzero(wealth.reshape(right.shape).max(axis=1) >= math.log(20))
    assert alarms <= 80


def test_wealth_is_looked_at_after_every_call(rng):
    """Inside a chunk it is what single calls would have booked, for odds and for cells."""
    odds, secret = rng.normal(0, 2, 40), rng.integers(2, size=40)
    book, single = Odds(), Odds()
    for half in (slice(20), slice(20, 40)):
        path = book.path(odds[half], secret[half], 0.4)
        for o, z, here in zip(odds[half], secret[half], path, strict=True):
            single.add(np.array([o]), np.array([z]))
            assert here == pytest.approx(single.log_wealth(0.4)[0], abs=1e-9)
        book.add(odds[half], secret[half])
    claim, cell = GaussianDP(1.0, **REPLACE), rng.integers(3, size=40)
    cells, alone = Cells(claim), Cells(claim)
    for half, law in (
        (slice(20), [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]),
        (slice(20, 40), [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
    ):
        cells.begin(np.array(law))
        alone.begin(np.array(law))
        path = cells.path(cell[half], secret[half])
        for c, z, here in zip(cell[half], secret[half], path, strict=True):
            alone.add(np.array([c]), np.array([z]))
            assert here == pytest.approx(alone.log_wealth(claim), abs=1e-9)
        cells.add(cell[half], secret[half])
    session = Session(PureDP(1.0, **REPLACE), 0)
    highest = 0.0
    for _ in range(6):
        z = rng.integers(2, size=32)
        session.take(np.where(rng.random(32) < 0.95, z, 1 - z), z)
        highest = max(highest, session.log_wealth())
        assert session.best >= highest - 1e-9
    assert session.best > 0


def test_what_was_refuted_stays_so():
    """Wealth that falls again within a chunk: the claim, and all smaller ones, were refuted."""
    session, rng = Session(PureDP(0.1, **REPLACE), 0), np.random.default_rng(2)
    z = rng.integers(2, size=64)
    session.take(z, z)
    z = rng.integers(2, size=80)
    session.take(np.r_[z[:30], 1 - z[30:]], z)
    assert session.log_wealth() < 0 < math.log(20) < session.best
    assert session.refuted(0.0, 0.05) > 0.1 > session.refuted(0.0, 1e-12)
    assert session.best == pytest.approx(_against(session.peak, session.claim))


TIGHT = [
    ("randomised response", PureDP(1.0, **REPLACE),
     lambda z, rng: np.where(rng.random(len(z)) < 1 / (1 + math.exp(-1)), z, 1 - z)),
    ("Gaussian", GaussianDP(1.0, **REPLACE), lambda z, rng: z + rng.normal(size=len(z))),
    ("revealed with delta", ApproxDP(1.0, 0.05, **REPLACE),
     lambda z, rng: np.where(rng.random(len(z)) < 0.05, 2 + z,
                             np.where(rng.random(len(z)) < 1 / (1 + math.exp(-1)), z, 1 - z))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "claim", "run"), TIGHT, ids=[t[0] for t in TIGHT])
def test_false_alarms_of_learned_bets(name, claim, run):
    """Tight mechanisms, audits of 512 calls at 80%, looked at after every call."""
    alarms = 0
    for seed in range(audits := some(60, 10)):
        rng = np.random.default_rng(seed)
        session = Session(claim, seed)
        for _ in range(8):
            z = rng.integers(2, size=64)
            session.take(run(z, rng), z)
        alarms += session.best >= math.log(5)
    assert alarms <= binom.isf(1e-4, audits, 0.2), name


# -- what engineers tried first --------------------------------------------------------------------
def test_the_identity_is_refuted_whatever_the_claim():
    for claim in (ApproxDP(2.0, 1e-5, neighbours="add-remove"), *CLAIMS):
        result = audit(
            lambda record, rng: record, claim=claim, prior=Prior.uniform(2), trials=4000,
            sequential=True,
        )  # fmt: skip
        assert result.verdict == "violated", claim


@dataclasses.dataclass
class Mean:
    mean: float


def test_outputs_of_any_kind_are_looked_into():
    import pandas as pd
    import torch

    for wrap in (
        lambda x: {"mean": x},
        Mean,
        lambda x: pd.DataFrame({"mean": [x]}),
        lambda x: {"layer.weight": torch.tensor([x, 0.0])},
        lambda x: [x, "word"],
    ):
        result = audit(
            lambda record, rng, wrap=wrap: wrap(float(record + rng.laplace(0, 0.05))),
            claim=PureDP(1.0, **REPLACE), prior=Prior.uniform(2), trials=1000, sequential=True,
        )  # fmt: skip
        assert result.verdict == "violated"
    with pytest.raises(DpradError, match="cannot be looked into"):
        audit(lambda record, rng: object(), claim=CLAIMS[0], prior=Prior.uniform(2), trials=100)


def test_a_little_too_little_gaussian_noise():
    """mu = 1.5 against a claim of 1: within 600 calls in the median."""
    calls = []
    for seed in range(some(9, 5)):
        result = audit(
            lambda record, rng: 1.5 * record + rng.normal(), claim=GaussianDP(1.0, **REPLACE),
            prior=Prior.uniform(2), trials=5000, sequential=True, rng=seed,
        )  # fmt: skip
        assert result.verdict == "violated"
        calls.append(result.trials)
    assert np.median(calls) <= 600


def sparse_vector(record, rng, e=0.5):
    noise, count, seen = rng.laplace(0, 4 / e), 0, []
    for answer in [0] * 5 + [1] * 5 if record == 0 else [1] * 5 + [0] * 5:
        above = bool(answer + rng.laplace(0, 4 / (3 * e)) >= noise)
        seen.append(above)
        count += above
        if count == 4:
            break
    return seen


def test_a_sparse_vector_with_too_little_noise():
    """True epsilon 2.63 against 0.5: within 5,000 calls."""
    result = audit(
        sparse_vector, claim=PureDP(0.5, **REPLACE), prior=Prior.uniform(2), trials=8000,
        sequential=True, rng=1,
    )  # fmt: skip
    assert result.verdict == "violated" and result.trials <= 5000


@pytest.mark.parametrize(("kind", "least"), [("SubsetSelection", 3.98), ("OUE", 3.98)])
def test_bets_on_the_support_of_an_output(kind, least):
    """3,052 values, 400,000 runs, 99%, truth 4; a guess of the one record certifies 3.3."""
    mechanism = getattr(mechanisms, kind)(epsilon=4.0, size=3052)
    result = audit(
        mechanism, claim=PureDP(4.0, **REPLACE), prior=Prior.uniform(3052), trials=400_000,
        confidence=0.99, rng=2,
    )  # fmt: skip
    assert least <= result.epsilon_lower <= 4.0 and result.verdict == "consistent"


@pytest.mark.parametrize("knows", ["nothing", ["a"]])
def test_bets_on_sets_with_knowledge_and_any_prior(knows):
    prior = Prior.from_counts(
        {(a, b): 1 + a + b for a in range(2) for b in range(4)}, columns=["a", "b"]
    )
    threat = Threat(knows=knows, target=["b"])
    for noise in (mechanisms.GRR(epsilon=2.0, size=8), mechanisms.OUE(epsilon=2.0, size=8)):
        result = audit(
            noise, claim=PureDP(1.0, **REPLACE), prior=prior, threat=threat, query=["a", "b"],
            trials=30_000, confidence=0.999,
        )  # fmt: skip
        assert result.verdict == "violated" and 1.2 < result.epsilon_lower < 2.0


# -- neighbours ------------------------------------------------------------------------------------
def present_or_not(record, rng):
    """A count that is 1 with the person and 0 without, Laplace noise of scale 1/2."""
    return (record is not None) + rng.laplace(0, 0.5)


def test_an_add_remove_claim_is_tested_as_it_stands():
    claim = PureDP(1.0, neighbours="add-remove")
    one = {"claim": claim, "prior": Prior.from_counts({"Ann": 1}), "trials": 3000}
    result = audit(present_or_not, absent=None, **one)
    assert result.verdict == "violated" and 1.0 < result.epsilon_lower <= 2.0
    assert "added or removed" in str(result) and result.in_out
    sound = audit(
        lambda record, rng: (record is not None) + rng.laplace(), absent=None, confidence=0.999,
        **one,
    )  # fmt: skip
    assert sound.verdict == "consistent" and sound.epsilon_claimed == 1.0
    with pytest.raises(DpradError, match="the record itself"):
        audit(lambda record, rng: record, absent="Ann", **one)
    # two present records: the claim is converted, and a note says so
    both = audit(
        lambda record, rng: record + rng.laplace(0, 0.6), claim=claim, prior=Prior.uniform(2),
        trials=3000, confidence=0.999,
    )  # fmt: skip
    assert both.verdict == "consistent" and both.epsilon_claimed == 2.0
    assert any("converted" in note for note in both.notes)
    for wrong in ({"claim": PureDP(1.0, **REPLACE)}, {"attack": lambda o, k: [None] * len(o)}):
        with pytest.raises(DpradError, match="absent"):
            audit(present_or_not, absent=None, **(one | wrong))


# -- low bits, and how hard it looked --------------------------------------------------------------
def test_low_bits_of_floating_point_noise():
    def plain(record, rng):
        return record + rng.laplace(0, 1.0)

    def snapped(record, rng):
        return math.floor(64 * (record + rng.laplace(0, 1.0))) / 64

    question = {"claim": PureDP(1.0, **REPLACE), "prior": Prior.uniform(2), "trials": 6000}
    assert audit(plain, **question, confidence=0.999).verdict == "consistent"
    assert audit(plain, **question, bits=True).verdict == "violated"
    assert audit(snapped, **question, bits=True, confidence=0.999).verdict == "consistent"
    assert lowest_bits(np.array([0.75, 6.0, 0.0, 1.0, np.nan])).tolist()[:4] == [-2, 1, 0, 0]


def test_consistent_never_stands_alone():
    result = audit(
        lambda record, rng: record + rng.laplace(), claim=PureDP(1.0, **REPLACE),
        prior=Prior.uniform(2), trials=4000, confidence=0.999,
    )  # fmt: skip
    assert result.verdict == "consistent" and 1.0 < result.would_find < 1.5
    assert "would have been found" in str(result)
    assert result.wealth[-1][0] == result.trials and len(result.carried) >= 3


@pytest.mark.filterwarnings("ignore:.*cannot refute")
def test_an_audit_that_could_find_nothing_does_not_reassure():
    few = {"claim": PureDP(1.0, **REPLACE), "prior": Prior.uniform(2)}
    for result in (
        audit(lambda record, rng: record, trials=10, **few),
        audit(lambda record, rng: record, trials=20_000, max_seconds=1e-6, **few),
        audit(lambda record, rng: record, trials=300, **few | {"claim": PureDP(50.0, **REPLACE)}),
    ):
        assert result.verdict == "consistent" and result.would_find is None
        assert not result.conclusive
        assert str(result).startswith("Cannot be told") and "Consistent" not in str(result)
    with pytest.warns(UserWarning, match="more runs than anybody can make"):
        audit(lambda record, rng: record, trials=300, **few | {"claim": PureDP(50.0, **REPLACE)})


def test_hopeless_audits_are_told_before_they_start():
    for claim in (
        PureDP(9.0, **REPLACE),
        GaussianDP(9.0, **REPLACE),
        ApproxDP(9.0, 0.1, **REPLACE),
    ):
        with pytest.warns(UserWarning, match="cannot refute"):
            audit(lambda record, rng: record, claim=claim, prior=Prior.uniform(2), trials=200)


@pytest.mark.filterwarnings("error")
def test_weak_claims_are_not_called_hopeless():
    """Gaussian claims of mu 6 hardly promise anything, but what reveals the record breaks them."""
    claim = GaussianDP(6.0, **REPLACE)
    found = audit(
        lambda record, rng: record, claim=claim, prior=Prior.uniform(2), trials=50_000,
        sequential=True,
    )  # fmt: skip
    assert found.verdict == "violated" and found.trials < 20_000


def test_coordinates_have_names_and_grow():
    assert coordinates({"a": [1, 2.5]}) == {
        "keys of the output": "['a']", "length of a": 2.0, "a[0]": 1.0, "a[1]": 2.5,
    }  # fmt: skip
    reader = Reader()
    one, two = reader.rows([[1.0], [2.0]]), reader.rows([[1.0, 5.0], [2.0], [3.0, 4.0]])
    assert one.keys[0] == (1.0,) and two.keys[1] == (2.0,)
    assert two.numbers.shape[1] > one.numbers.shape[1]
    packed = Reader().rows(np.array([[1.0], [2.0]]))
    assert packed.keys == one.keys


def test_labels_masks_and_long_numbers_are_part_of_an_output():
    """Noise only on categories that occur: the labels tell them, and nothing else."""
    import pandas as pd

    base = ["flu"] * 4 + ["cold"] * 3

    def counted(record, rng):
        counts = pd.Series([*base, record]).value_counts().sort_index()
        return counts + rng.laplace(0, 2.0, len(counts))

    prior = Prior.from_counts({"hiv": 1, "hepatitis": 1})
    shapes = [
        counted,
        lambda record, rng: counted(record, rng).to_frame("n"),
        lambda record, rng: np.ma.MaskedArray([1.0, 2.0], mask=[record == "hiv", False]),
        lambda record, rng: 2**60 + (record == "hiv"),
        lambda record, rng: [2**60, 2**60 + (record == "hiv")],
        lambda record, rng: pd.Series([1.0], name=record),
    ]
    for run in shapes:
        result = audit(run, claim=PureDP(1.0, **REPLACE), prior=prior, trials=600, sequential=True)
        assert result.verdict == "violated"


def test_chunks_that_are_kept_as_counts_say_the_same(monkeypatch):
    """Once nothing is learned, wealth counts at the ends of chunks, first and after a resume."""
    monkeypatch.setattr("dprad.verbs.audit.session.MOST", 300)
    rng = np.random.default_rng(4)
    first, again = (Session(PureDP(0.3, **REPLACE), 0) for _ in range(2))
    for k in range(12):
        z = rng.integers(2, size=96)
        outputs = np.where(rng.random(96) < (0.9 if k < 4 else 0.2), z, 1 - z)
        learned = first.learning
        booked = first.take(outputs, z)
        if learned:
            again.take(outputs, z)
        else:
            again.put(booked)
        assert (again.best, again.calls) == (pytest.approx(first.best), first.calls)
    assert not first.learning and first.best > first.log_wealth()
    assert again.refuted(0.0, 0.05) == pytest.approx(first.refuted(0.0, 0.05), abs=1e-6)
