"""Protocols over time between two protocols with one report: against lists of all counts."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import Prior, Threat, assess
from dprad.exact import between
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling, Solution
from dprad.game.question import Question
from dprad.mechanisms import GRR, LGRR, LOLOHA, LOSUE, LOUE, LSOUE, LSUE, DBitFlip
from oracles import brute_force, random_instance

BUDGETS = {"epsilon_inf": 2.0, "epsilon_one": 1.0}
KINDS = (LSUE, LOSUE, LOUE, LSOUE, LGRR, LOLOHA)


def enclosure(made, prior, threat):
    """By the public solvers of the two ends."""

    def single(simple):
        risk = assess(simple, prior=prior, threat=threat, trials=100)
        if risk.kind != "exact":
            return None
        return Solution(rad=risk.rad, success_out=risk.success_out, rero=risk.rero, method="")

    return between.enclosed(made, single)


@pytest.mark.parametrize("reports", [2, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_contains_the_risk_by_listing_all_counts(kind, reports):
    """Any prior, knowledge and loss; the listed channel is tested against all sequences."""
    rng = np.random.default_rng(reports)
    two = {"buckets": 2} if kind is LOLOHA else {}
    made = kind(size=3, reports=reports, **two, **BUDGETS)
    channel = made.matrix(np.arange(3))
    for _ in range(4):
        instance = random_instance(rng, 3)
        found = enclosure(made, instance.prior, instance.threat)
        low, high = found.interval
        assert low - 1e-15 <= brute_force(instance, channel)[0] <= high + 1e-15
        assert high > 0 or low == 0


def test_a_summary_is_what_it_says():
    """The symbol reported most, and the bits that were one often enough, from all counts."""
    made = LGRR(size=3, reports=4, **BUDGETS)
    counts, law = made._listed()[:, 0], made.matrix(np.arange(3))
    most = counts == counts.max(axis=1, keepdims=True)
    truth = float(law[0] @ (most[:, 0] / most.sum(axis=1)))
    kept, (summary,) = between.ends_of(made)
    assert kept == GRR(epsilon=2.0, size=3)
    assert summary.truth == pytest.approx(truth, abs=1e-12)
    chain = LOUE(size=2, reports=5, **BUDGETS)
    p1, q1, _, _ = chain.rounds
    rng, n = np.random.default_rng(0), 200_000
    own = chain.sample(np.zeros(n, dtype=int), rng)[:, 0]
    for bits in between.ends_of(chain)[1]:
        # five standard errors, for one of the thresholds
        rates = [((own >= c).mean(axis=0)) for c in range(1, 6)]
        assert any(np.allclose(r, [bits.p, bits.q], atol=5 * 0.5 / np.sqrt(n)) for r in rates)
    assert between.ends_of(chain)[0].p == p1 and between.ends_of(chain)[0].q == q1


@pytest.mark.parametrize("kind", KINDS)
def test_a_year_of_reports_for_any_prior(kind):
    """10,000 values, a skewed prior, and everything known: both ends meet, without draws."""
    weight = 1.0 / np.arange(1, 10_001)
    prior = Prior.from_probabilities(weight / weight.sum())
    made = kind(size=10_000, reports=365, epsilon_inf=4.0, epsilon_one=1.2)
    for threat in (Threat(), Threat(knows="everything")):
        risk = assess(made, prior=prior, threat=threat)
        low, high = risk.interval
        assert risk.kind == "exact" and low <= risk.rad <= high
        assert high - low <= 2e-5 * high
        kept = assess(between.ends_of(made)[0], prior=prior, threat=threat)
        assert risk.rad <= kept.rad * (1 + 1e-9)


def test_an_estimate_reaches_no_further_than_what_is_certain():
    """Few reports: draws, cut to the enclosure; more draws by themselves agree (error 1e-9)."""
    rng = np.random.default_rng(1)
    prior = Prior.from_probabilities(rng.dirichlet(np.full(60, 0.5)))
    made = LOSUE(size=60, reports=4, **BUDGETS)
    around = enclosure(made, prior, Threat())
    few = assess(made, prior=prior, trials=20, confidence=1 - 1e-9)
    assert few.kind == "estimate"
    assert around.interval[0] <= few.interval[0] <= few.rad
    assert few.rad <= few.interval[1] <= around.interval[1]
    question = Question.of(prior, None, None)
    many = Sampling(trials=4000, confidence=1 - 1e-9)
    drawn = estimate(made, question.game, made.read(question), question.game.pi, many)
    assert drawn.interval[0] <= around.interval[1] and around.interval[0] <= drawn.interval[1]
    assert between.within(drawn, around).interval == (
        max(drawn.interval[0], around.interval[0]),
        min(drawn.interval[1], around.interval[1]),
    )


def test_where_it_does_not_apply():
    changing = LSUE(size=2, reports=4, periods=2, **BUDGETS)
    for made in (changing, LSUE(size=3, **BUDGETS), DBitFlip(size=3, epsilon_inf=2.0, reports=4)):
        assert enclosure(made, Prior.uniform(made.size), Threat()) is None
