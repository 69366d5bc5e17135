"""The attacker who knows only the population: what the simulation says, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

import dprad
from dprad import DpradError, Prior, Threat, assess, simulate_outsider
from dprad.mechanisms import GRR, Counts, Marginals, Sums

PRIOR = Prior.from_counts({(a, b): 1 + a + b for a in range(3) for b in range(2)},
                          columns=["a", "b"])  # fmt: skip
NEAR = {"neighbours": "add-remove"}
# Chance that an interval misses.
SURE = {"confidence": 1 - 1e-6, "trials": 4000}


@pytest.mark.parametrize("threat", [Threat(), Threat(knows=["a"], target=["b"])])
def test_without_others_it_is_the_informed_attacker(threat):
    """Then the normal distribution of Gaussian noise is right, and so is the attack."""
    table = Marginals([["a"], ["a", "b"]], noise="gaussian", rho=2.0, **NEAR)
    found = simulate_outsider(table, prior=PRIOR, people=1, threat=threat, **SURE)
    low, high = found.interval
    assert found.kind == "estimate" and low <= assess(table, prior=PRIOR, threat=threat).rad <= high


def test_others_hide_a_person_and_never_help():
    for table in (
        Counts(by=["a", "b"], noise="geometric", epsilon=3.0, **NEAR),
        Sums(of="a", clamp=(0, 2), epsilon=3.0, **NEAR),
    ):
        known = assess(table, prior=PRIOR).rad
        gained = [simulate_outsider(table, prior=PRIOR, people=n, **SURE) for n in (2, 30, 10_000)]
        assert all(found.interval[0] <= known for found in gained)
        assert gained[2].interval[0] <= 0 <= gained[0].rad
        assert gained[0].rad > gained[2].rad
    said = gained[0].assumptions[0]
    assert "not a bound" in said and "dprad.assess" in said


def test_two_people_and_hardly_any_noise():
    """The count of ones is 0, 1 or 2. At 0 or 2 the person is known; at 1 both are as likely, and a
    guess gains nothing. Of two equally likely values: right in 3/4, so a gain of 1/4.
    """
    table = Counts(where="value = 1", noise="gaussian", scale=0.02, **NEAR)
    found = simulate_outsider(table, prior=Prior.uniform(2), people=2, **SURE)
    assert found.interval[0] <= 0.25 <= found.interval[1]


def test_the_sampler_draws_whole_crowds():
    """Mean and covariance of the outputs are those that the attack supposes; 6 deviations."""
    from dprad.game.question import Question
    from dprad.verbs.outsider import _Crowd

    table = Counts(by=["a"], noise="gaussian", scale=1.5, **NEAR).prepared(Question.of(PRIOR))
    crowd = _Crowd.of(table, PRIOR.table, 50)
    rows = crowd.sample(np.zeros(20_000, dtype=int), np.random.default_rng(0))
    mass = crowd.mass
    spread = 49 * (np.diag(mass) - np.outer(mass, mass)) + 1.5**2 * np.eye(3)
    error = 6 * np.sqrt(np.diag(spread) / 20_000)
    assert np.all(np.abs(rows.mean(axis=0) - crowd.added[0]) <= error)
    assert np.allclose(np.cov(rows.T), spread, atol=6 * 2 * spread.max() / np.sqrt(20_000))
    away = rows[:5, None] - crowd.added
    naive = -np.einsum("kij,jl,kil->ki", away, np.linalg.inv(spread), away) / 2
    log = crowd.log_likelihood(rows[:5, None], np.arange(3))
    assert np.allclose(log - log[:, :1], naive - naive[:, :1])
    paired = crowd.log_likelihood(rows[:3], np.arange(3))
    assert np.allclose(paired, np.diagonal(log[:3]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"release": GRR(epsilon=1.0, size=6)}, "takes a table release"),
        ({"release": Counts(by=["a"], epsilon=1.0, threshold=3, **NEAR)}, "keys are public"),
        ({"release": Counts(by=["a"], epsilon=0.0, **NEAR)}, "finite noise"),
        ({"release": Counts(by=["a"], epsilon=1.0, times=1000, **NEAR)}, "2,000 cells at most"),
        ({"people": 0}, "people must be"),
        ({"prior": Prior.unknown()}, "table of records"),
    ],
)
def test_what_is_refused(given, said):
    usual = {"release": Counts(by=["a"], epsilon=1.0, **NEAR), "prior": PRIOR, "people": 10}
    chosen = usual | given
    with pytest.raises(DpradError, match=said):
        dprad.simulate_outsider(chosen.pop("release"), **chosen)
