"""Membership under unary encodings over time: two closed forms around the sum over all counts."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import Prior, Threat, assess
from dprad.exact import between, took_part
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling, Solution
from dprad.game.question import Question
from dprad.mechanisms import LGRR, LOSUE, LOUE, LSOUE, LSUE

BUDGETS = {"epsilon_inf": 3.0, "epsilon_one": 1.0}
EVERYTHING = Threat(knows="everything")


def around(made, prior, threat=EVERYTHING, query=None):
    question = Question.of(prior, threat, query)
    return took_part.enclosed(made, question.game, made.read(question), question.game.pi)


@pytest.mark.parametrize("kind", [LSUE, LOSUE, LOUE, LSOUE])
@pytest.mark.parametrize(("k", "reports"), [(2, 2), (3, 4), (4, 6)])
def test_contains_the_sum_over_all_counts(kind, k, reports):
    rng = np.random.default_rng(k)
    made = kind(size=k, reports=reports, **BUDGETS)
    channel = made.matrix(np.arange(k))
    for weight in (np.ones(k), *rng.dirichlet(np.full(k, 0.5), size=4)):
        pi = weight / weight.sum()
        low, high = around(made, Prior.from_probabilities(pi)).interval
        exact = float((pi[:, None] * np.maximum(channel - pi @ channel, 0)).sum())
        assert low <= exact <= high
        # the lower end is an attack: one that looks at its own bit
        counts = np.arange(channel.shape[1])[:, None] // (reports + 1) ** np.arange(k)
        own = counts % (reports + 1)
        says = (made.laws(reports)[1] > 0)[own].T
        gained = float((pi[:, None] * (channel - pi @ channel) * says).sum())
        assert low == pytest.approx(gained, rel=1e-9)


def test_of_several_people_with_one_value_and_of_a_group():
    """A query that merges records, and a group: against lists of all counts."""
    counts = {("a", 0): 3, ("b", 0): 1, ("a", 1): 2, ("b", 1): 2}
    prior = Prior.from_counts(counts, columns=["n", "v"])
    made = LSUE(size=2, reports=3, **BUDGETS)
    for group in (None, "n = 'a'"):
        threat = Threat(knows="everything", group=group)
        exact = assess(made, prior=prior, threat=threat, query="v")
        share = 1.0 if group is None else 5 / 8
        low, high = around(made, prior, threat, "v").interval
        assert exact.kind == "exact" and low <= exact.rad * share <= high


def test_narrow_for_many_values_and_as_draws_say():
    """Draws at an error of 1e-9; the interval of a spread-out prior is narrower than theirs."""
    rng = np.random.default_rng(0)
    prior = Prior.from_probabilities(rng.dirichlet(np.full(2000, 1.0)))
    made = LOSUE(size=2000, reports=5, **BUDGETS)
    question = Question.of(prior, EVERYTHING, None)
    sampling = Sampling(trials=300, confidence=1 - 1e-9)
    drawn = estimate(made, question.game, made.read(question), question.game.pi, sampling)
    low, high = around(made, prior).interval
    assert drawn.interval[0] <= high and low <= drawn.interval[1]
    assert high - low < 3e-3 < drawn.interval[1] - drawn.interval[0]


def test_for_whom_it_is():
    prior = Prior.uniform(3)
    assert around(LSUE(size=3, reports=4, **BUDGETS), prior, Threat()) is None
    assert around(LGRR(size=3, reports=4, **BUDGETS), prior) is None


def test_two_enclosures_together():
    def solution(low, high):
        return Solution(rad=0.0, success_out=0.0, rero=0.0, method="", interval=(low, high))

    assert between.both(None, None) is None
    assert between.both(solution(0.1, 0.2), None).interval == (0.1, 0.2)
    assert between.both(solution(0.1, 0.3), solution(0.2, 0.5)).interval == (0.2, 0.3)


def test_somebody_with_nearly_all_of_the_mass():
    """Two values: the risk of the likelier one is the mass of the other times total variation."""
    light, made = 1e-9, LSUE(size=12, reports=3, **BUDGETS)
    prior = Prior.from_probabilities([1 - light, light, *[0.0] * 10])
    unset, lift = made.laws(3)
    law = np.exp(unset) * [1, 3, 3, 1]
    law /= law.sum()
    pair = np.outer(law * np.exp(lift), law)
    truth = light * np.abs(pair - pair.T).sum() / 2
    threat = Threat(knows="everything", group=lambda table: np.arange(12) == 0)
    low, high = assess(made, prior=prior, threat=threat).interval
    assert low <= truth * (1 + 1e-9) and truth <= high * (1 + 1e-9)
