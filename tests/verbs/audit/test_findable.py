"""What audits say they would have found is found, and what they call hopeless is."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from dprad import ApproxDP, GaussianDP, Prior, PureDP, audit
from dprad.numerics.bisection import last
from dprad.verbs.audit import findable
from dprad.verbs.audit.findable import LESSON, fewest, least_learned, of_session
from dprad.verbs.audit.plan import as_tested
from dprad.verbs.audit.session import Session
from dprad.verbs.audit.trials import Chunks
from effort import part_of, some

RO, AR = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
ALPHA = 0.05
# claims, and calls from just enough to many
CASES = [
    (PureDP(0.1, **RO), (800,)), (PureDP(1.0, **RO), (70, 100, 1000)),
    (PureDP(2.0, **RO), (100, 150)), (PureDP(3.0, **RO), (180, 400)),
    (PureDP(5.0, **RO), (1400,)), (ApproxDP(1.0, 1e-5, **RO), (70, 300)),
    (ApproxDP(1.0, 0.01, **RO), (70, 150)), (ApproxDP(3.0, 1e-5, **RO), (190, 300)),
    (ApproxDP(4.0, 1e-3, **RO), (500,)), (ApproxDP(2.0, 1e-5, **AR), (600,)),
    (GaussianDP(1.0, **RO), (70, 300, 1000)), (GaussianDP(2.0, **RO), (90, 200)),
    (GaussianDP(3.0, **RO), (200, 400)), (GaussianDP(1.0, **AR), (150,)),
]  # fmt: skip


def held(claim, calls, draw, seed):
    """A session of so many calls: whether it refutes, and itself."""
    session, rng = Session(as_tested(claim, False)[0], seed), np.random.default_rng(seed)
    chunks = Chunks(calls)
    for k in range(len(chunks)):
        secret = rng.integers(0, 2, chunks[k])
        session.take(draw(secret, rng), secret)
        if session.best >= -math.log(ALPHA):
            return True, session
    return False, session


def response(epsilon):
    right = 1 / (1 + math.exp(-epsilon))
    return lambda z, rng: np.where(rng.random(len(z)) < right, z, 1 - z)


def noisy(epsilon, delta):
    """Gaussian noise with just this (epsilon, delta)."""

    def least(mu):
        return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(
            -epsilon / mu - mu / 2
        )

    mu = last(lambda m: least(m) <= delta, 1e-3, 30.0)
    return lambda z, rng: rng.normal(size=len(z)) + mu * z


@pytest.mark.parametrize(
    ("claim", "calls"), part_of([(c, n) for c, many in CASES for n in many], 8)
)
def test_what_would_have_been_found_is_found(claim, calls):
    """In 19 of 20 sessions, as far as so few can tell."""
    tested, point = as_tested(claim, False)
    fair = held(claim, calls, lambda z, rng: rng.integers(0, 2, len(z)), 0)[1]
    epsilon = of_session(findable.Tested(tested, point, ALPHA), fair)
    assert epsilon is not None and epsilon > 0
    curve = isinstance(claim, GaussianDP)
    draw = noisy(epsilon, point[1]) if curve else response(epsilon)
    seeds = range(1, 1 + some(60, 3 if calls > 250 else 6))
    found = sum(held(claim, calls, draw, seed)[0] for seed in seeds)
    assert found >= 0.9 * len(seeds) - 1


@pytest.mark.parametrize("claim", part_of([c for c, _ in CASES], 4))
def test_what_is_said_to_suffice_does(claim):
    """With so many calls outputs that reveal the record refute the claim; with a third of them
    they do not, in most cases.
    """
    case = findable.Tested(*as_tested(claim, False), ALPHA)

    def enough(n):
        return least_learned(case, n - LESSON, n) is not None

    calls = fewest(enough, 10)
    if calls > 2000:
        pytest.skip("takes long")
    assert not enough(int(0.97 * calls))
    seeds = range(some(20, 4))
    kept = [held(claim, calls, lambda z, rng: z, seed)[0] for seed in seeds]
    assert sum(kept) >= 0.75 * len(seeds)
    hopeless = [held(claim, calls // 3, lambda z, rng: z, seed)[0] for seed in seeds]
    assert sum(hopeless) <= 0.5 * len(seeds)


def test_a_warning_comes_before_the_first_call_whenever_nothing_can_be_told():
    """For every number of calls: warned, or conclusive."""
    for claim in (PureDP(3.0, **RO), ApproxDP(3.0, 1e-5, **RO), GaussianDP(2.0, **RO)):
        for trials in range(20, 320, some(10, 60)):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                result = audit(
                    lambda record, rng: rng.integers(2), claim=claim, prior=Prior.uniform(2),
                    trials=trials, confidence=1 - 1e-9 if trials == 20 else 0.95,
                )  # fmt: skip
            assert bool(said) or result.conclusive, (claim, trials)


def test_guesses_are_not_all_that_is_looked_at():
    """A function is not what the model takes it for, or nobody guesses."""
    from dprad.mechanisms import GRR, Laplace

    claim = {"claim": PureDP(1.0, **RO), "trials": 4000}
    ten, two = {"prior": Prior.uniform(10)}, {"prior": Prior.uniform(2)}
    found = [
        audit(lambda r, rng: r / 1000 - 5, model=Laplace(epsilon=1, sensitivity=9), **claim, **ten),
        audit(lambda r, rng: (r + 1) % 10, model=GRR(epsilon=1, size=10), **claim, **ten),
        audit(lambda r, rng: r, attack=lambda o, known: [None] * len(o), **claim, **two),
    ]
    for result in found:
        assert result.verdict == "violated" and "besides" not in str(result)
    honest = audit(lambda r, rng: r + rng.laplace(0, 9.0), model=Laplace(epsilon=1, sensitivity=9),
                   **claim, **ten)  # fmt: skip
    assert honest.verdict == "consistent" and honest.confidence == pytest.approx(0.95)
    assert "1,000 more calls were bet on by what outputs show" in str(honest)
    few = audit(lambda r, rng: r + rng.laplace(0, 9.0), model=Laplace(epsilon=1, sensitivity=9),
                **claim | {"trials": 100}, **ten)  # fmt: skip
    assert not few.conclusive and "no calls were left" in str(few)


def test_coordinates_that_differ_are_named_by_their_places():
    from dprad import show_records

    def leaky(record, rng):
        return {"noise": rng.normal(), "secret name": record + 0.3 * rng.normal()}

    result = audit(leaky, claim=PureDP(1.0, **RO), prior=Prior.uniform(2), trials=400)
    assert len(result.differ) == 1 and "secret name" not in str(result)
    assert f"differs most between the two, of all that outputs hold: {result.differ[0]}." in str(
        result
    )
    with show_records():
        shown = audit(leaky, claim=PureDP(1.0, **RO), prior=Prior.uniform(2), trials=400)
    assert "secret name" in shown.differ[0]
    fair = audit(lambda r, rng: rng.normal(size=5), claim=PureDP(1.0, **RO),
                 prior=Prior.uniform(2), trials=400)  # fmt: skip
    assert fair.differ == ()


def test_objects_do_not_choose_the_only_attack_on_themselves():
    """Their likelihood may hide what they return."""
    from dprad import mechanisms

    class Release:
        size = 2

        def __init__(self, column):
            self.column = column

        def sample(self, records, rng):
            z = np.asarray(records)
            noisy = np.where(rng.random(len(z)) < 0.7, z, 1 - z)
            return np.stack([noisy, z], axis=1) if self.column else z

        def log_likelihood(self, outputs, records):
            first = np.asarray(outputs)[..., 0] if self.column else np.asarray(outputs)
            said = np.where(first == records, np.log(0.7), np.log(0.3))
            return said if self.column else np.zeros(np.broadcast(outputs, records).shape)

    question = {"claim": PureDP(1.0, **RO), "prior": Prior.uniform(2), "trials": 4000}
    assert audit(Release(column=False), **question).verdict == "violated"
    assert audit(Release(column=True), **question).verdict == "violated"
    noise = mechanisms.Laplace(epsilon=1.0, sensitivity=1)
    assert audit(noise, **question).verdict == "consistent"
    assert audit(noise, **question, bits=True).verdict == "violated"
    fine = mechanisms.Composed([mechanisms.GRR(epsilon=0.5, size=2)] * 2)
    assert not any("besides" in note for note in audit(fine, **question).notes)


def test_a_function_is_called_whatever_else_it_has():
    def release(record, rng):
        return record

    def honest(records, rng):
        z = np.asarray(records)
        return np.where(rng.random(len(z)) < 0.7, z, 1 - z)

    release.sample, release.size = honest, 2
    question = {"claim": PureDP(1.0, **RO), "prior": Prior.uniform(2), "trials": 400}
    assert audit(release, **question).verdict == "violated"

    class Both:
        def randomise(self, record):
            return np.random.default_rng().integers(2)

        def __call__(self, record):
            return record

    notes = audit(Both(), **question).notes
    assert any(
        "called was the method randomise of the object, not a call of itself" in n for n in notes
    )
