"""Two published claims, held against implementations that follow the publications."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import Prior, PureDP, assess, audit
from dprad.mechanisms import (
    GRR,
    LGRR,
    LOLOHA,
    LOSUE,
    LOUE,
    LSOUE,
    LSUE,
    RAPPOR,
    RSFD,
    RSRFD,
    SMP,
    SPL,
    DBitFlip,
)
from effort import THOROUGH

RO = {"neighbours": "replace-one"}
AMPLIFIED = math.log(2 * (math.exp(1.0) - 1) + 1)


def response(values, ratio, size, rng):
    """Randomised response as it is written down."""
    lies = rng.random(values.shape) >= ratio / (ratio + size - 1)
    return np.where(lies, (values + rng.integers(1, size, size=values.shape)) % size, values)


def sampled_with_fakes(codes, rng, spent):
    """RS+FD with randomised response, two binary attributes: one is reported, the other a fake."""
    values = np.stack([np.asarray(codes) % 2, np.asarray(codes) // 2], axis=1)
    answers = rng.integers(2, size=values.shape)  # fakes
    real, every = rng.integers(2, size=len(values)), np.arange(len(values))
    answers[every, real] = response(values[every, real], math.exp(spent), 2, rng)
    return answers


def published(codes, rng):
    return sampled_with_fakes(codes, rng, AMPLIFIED)


def repaired(codes, rng):
    return sampled_with_fakes(codes, rng, 1.0)


def both_or_nothing(outputs, _known):
    """The posterior of two opposite records: mixed answers say nothing."""
    return [{0: 0, 2: 3}.get(int(sum(row))) for row in outputs]


OPPOSITE = Prior.from_counts({0: 1, 3: 1})


def test_the_claim_for_a_record_is_refuted_and_the_repaired_one_is_not():
    asked = {"claim": PureDP(1.0, **RO), "prior": OPPOSITE, "attack": both_or_nothing,
             "trials": 200_000, "vectorised": True}  # fmt: skip
    found = audit(published, **asked)
    assert found.verdict == "violated"
    assert 1.45 <= found.epsilon_lower <= 1.490  # the truth
    fine = audit(repaired, **asked)
    assert fine.verdict == "consistent" and 0.95 < fine.epsilon_lower <= 1.0


def test_exact_posteriors_are_bets():
    two = Prior.from_counts({(0, 0): 1, (1, 1): 1}, columns=["a", "b"])
    made = RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0)
    found = audit(made, claim=PureDP(1.0, **RO), prior=two, trials=50_000)
    assert found.verdict == "violated" and found.epsilon_lower > 1.4
    kept = audit(made, claim=made.guarantee, prior=two, trials=50_000)
    assert kept.verdict == "consistent"
    # five reports of a protocol that promises epsilon_one for one of them
    for kind in (LSUE, LOLOHA):
        chain = kind(size=4, epsilon_inf=2.0, epsilon_one=1.0, reports=5)
        prior = Prior.uniform(4)
        many = audit(chain, claim=PureDP(1.0, **RO), prior=prior, trials=20_000)
        assert many.verdict == "violated" and many.epsilon_lower < chain.guarantee.epsilon
        kept = audit(chain, claim=chain.guarantee, prior=prior, trials=20_000)
        assert kept.verdict == "consistent"


def test_bets_on_every_other_protocol():
    """A third of the promise is refuted, the promise is not; some of them in every run."""
    over_time = {"size": 3, "epsilon_inf": 2.0, "reports": 5}
    made = [kind(**over_time) for kind in (LOSUE, LOUE, LSOUE, LGRR, DBitFlip)]
    made += [RAPPOR(size=3, bits=6, reports=5)]
    both = {"sizes": (2, 2), "epsilon": 1.0}
    made += [SPL(protocol="oue", **both), SMP(protocol="grr", **both)]
    made += [RSFD(protocol=p, **both) for p in ("sue-z", "oue-r")]
    made += [RSRFD(protocol="grr", fakes=[[0.9, 0.1], [0.5, 0.5]], **both)]
    two = Prior.from_counts({(0, 0): 1, (1, 1): 1}, columns=["a", "b"])
    for mechanism in made[:: 1 if THOROUGH else 3]:
        prior = two if hasattr(mechanism, "sizes") else Prior.uniform(3)
        promise = mechanism.guarantee
        asked = {"prior": prior, "trials": 4000}
        kept = audit(mechanism, claim=promise, **asked)
        assert kept.verdict == "consistent" and kept.epsilon_lower <= promise.epsilon, mechanism
        third = PureDP(promise.epsilon / 3, **RO)
        assert audit(mechanism, claim=third, **asked).verdict == "violated", mechanism


def memoised(codes, rng, second):
    """L-GRR, one report: randomised response twice."""
    kept = response(np.asarray(codes), math.exp(1.0), 100, rng)
    return response(kept, second, 100, rng)


def test_the_published_second_round_hides_more_than_it_claims():
    """Claimed 0.5; the truth is 0.037. The exact second round has 0.5."""
    a, e, k = math.exp(1.0), math.exp(0.5), 100
    seconds = {0.0366: (a * e - 1) / (a - e), 0.5: (e * (a + k - 2) - (k - 1)) / (a - e)}
    for truth, second in seconds.items():
        found = audit(
            lambda codes, rng, second=second: memoised(codes, rng, second),
            claim=PureDP(0.5, **RO), prior=Prior.uniform(k), model=lambda x: GRR(epsilon=x, size=k),
            trials=200_000, vectorised=True,
        )  # fmt: skip
        assert found.verdict == "consistent" and found.epsilon_lower <= truth
        low, high = found.epsilon_interval
        assert low <= truth <= high and high - low < 0.1


def test_reports_of_an_implementation_are_understood():
    """An own implementation of L-SUE that returns rows of bits, bet on with exact posteriors."""
    model = LSUE(size=3, epsilon_inf=2.0, epsilon_one=1.0, reports=4)
    p1, q1, p2, q2 = model.rounds

    def run(codes, rng):
        kept = rng.random((len(codes), 3)) < np.where(np.eye(3)[codes] > 0, p1, q1)
        return (rng.random((len(codes), 4, 3)) < np.where(kept, p2, q2)[:, None]).astype(int)

    asked = {"prior": Prior.uniform(3), "model": model, "trials": 40_000, "vectorised": True}
    assert audit(run, claim=PureDP(0.8, **RO), **asked).verdict == "violated"
    kept = audit(run, claim=model.guarantee, **asked)
    assert kept.verdict == "consistent"
    low, high = kept.rad_interval
    assert low <= assess(model, prior=Prior.uniform(3)).rad <= high


@pytest.mark.parametrize("protects", ["attribute", "record"])
def test_one_changed_attribute_keeps_the_claim(protects):
    one = Prior.from_counts({(0, 0): 1, (1, 0): 1, (0, 1): 0, (1, 1): 0}, columns=["a", "b"])
    made = RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0, protects=protects)
    found = audit(made, claim=made.one_attribute, prior=one, trials=20_000)
    assert found.verdict == "consistent"
