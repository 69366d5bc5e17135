"""compare and worst_prior."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dprad import (
    Calibration,
    DpradError,
    Prior,
    PureDP,
    Threat,
    assess,
    calibrate,
    compare,
    worst_prior,
)
from dprad.game.question import Question
from dprad.mechanisms import (
    GRR,
    OUE,
    BlackBox,
    Channel,
    Density,
    Gaussian,
    Laplace,
    Piecewise,
    Repeated,
    Staircase,
)
from dprad.runtime.progress import listen
from dprad.verbs import worst_prior as worst_module
from dprad.verbs.ascent import Sketch


def test_a_frontier():
    prior = Prior.uniform(10)
    table = compare(
        [k(epsilon=e, size=10) for k in (GRR, OUE) for e in (0.5, 1.0, 2.0)], prior=prior
    )
    rows = list(table)
    assert len(table) == 6 and [r.risk.rad for r in rows] == sorted(r.risk.rad for r in rows)
    for row in rows:
        beaten = any(
            o.risk.rad <= row.risk.rad
            and o.variance <= row.variance
            and (o.risk.rad, o.variance) != (row.risk.rad, row.variance)
            for o in rows
        )
        assert row.frontier == (not beaten)
    text = str(table)
    assert "OUE(epsilon=0.5, size=10)" in text and text.count("\n*") == 1 + sum(
        r.frontier for r in rows
    )
    assert table.to_dict()["candidates"][0]["mechanism"]["kind"] == "OUE"


def test_noise_promises_and_plans_side_by_side():
    prior = Prior.uniform(5)
    plan = calibrate(Laplace, max_risk=0.1, prior=prior, sensitivity=4)
    assert isinstance(plan, Calibration)
    promise = PureDP(1.0, neighbours="replace-one")
    table = compare(
        [plan, Gaussian(sigma=8, sensitivity=4), Staircase(epsilon=1.0, sensitivity=4), promise],
        prior=prior,
        threat=Threat(loss="absolute", eta=1),
    )
    assert {c.error is None for c in table} == {True, False}
    assert all(c.frontier for c in table if c.mechanism is promise)


def test_the_two_point_rule_is_not_the_worst_case():
    worst = worst_prior(GRR(epsilon=1.0, size=10))
    assert worst.risk.rad == pytest.approx(0.132, abs=1e-3)
    assert worst.prior.probabilities == pytest.approx(np.full(10, 0.1), abs=0.01)
    two = Prior.from_probabilities([0.5, 0.5, *[0] * 8])
    assert assess(GRR(epsilon=1.0, size=10), prior=two).rad == pytest.approx(0.073, abs=1e-3)
    assert worst.risk.rad <= worst.bound.rad
    assert "between 0.1319 and 0.2450" in str(worst)


def test_a_guarantee_below_what_was_found_is_called_wrong():
    class Promised(GRR):
        @property
        def guarantee(self):
            return PureDP(1e-3, neighbours="replace-one")

    said = str(worst_prior(Promised(epsilon=5.0, size=3)))
    assert said.startswith("The guarantee is wrong, or the likelihood is") and "between" not in said
    assert "is between" in str(worst_prior(GRR(epsilon=5.0, size=3)))


@pytest.mark.parametrize(
    ("mechanism", "threat"),
    [
        (Laplace(epsilon=2.0, sensitivity=1.0), Threat()),
        (Laplace(epsilon=2.0, sensitivity=4.0, clamp=(0, 4)), Threat(loss="absolute", eta=1)),
        (Piecewise(epsilon=1.0), Threat(knows="everything")),
        (OUE(epsilon=1.0, size=4), Threat()),
    ],
)
def test_worse_than_random_priors(mechanism, threat):
    worst = worst_prior(mechanism, threat=threat, size=4 if hasattr(mechanism, "size") else 5)
    rng = np.random.default_rng(0)
    values = worst.prior.support.tolist()
    for _ in range(60):
        weight = rng.dirichlet(np.full(len(values), float(rng.choice([0.2, 1.0, 5.0]))))
        prior = Prior.from_counts(dict(zip(values, weight.tolist(), strict=True)))
        assert assess(mechanism, prior=prior, threat=threat).rad <= worst.risk.rad * (1 + 5e-3)
    assert worst.risk.rad <= worst.bound.rad * (1 + 1e-9)
    assert worst.to_dict()["risk"]["rad"] == worst.risk.rad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare([], prior=Prior.uniform(2)), "empty"),
        (lambda: compare(3, prior=Prior.uniform(2)), "list of mechanisms"),
        (lambda: worst_prior(PureDP(1.0, neighbours="replace-one")), "takes a mechanism"),
        (lambda: worst_prior(GRR(epsilon=1, size=3), size=4), "size must be that"),
        (lambda: worst_prior(BlackBox(lambda r: r)), "cannot tell which numbers .* values="),
        (lambda: worst_prior(GRR(epsilon=1, size=2), size=2, values=[0, 1]), "either size or"),
        (lambda: worst_prior(GRR(epsilon=1, size=2), values=[0, 0]), "distinct records"),
        (lambda: worst_prior(GRR(epsilon=1, size=2), values=[]), "distinct records"),
        (lambda: worst_prior(GRR(epsilon=1, size=2), values=3), "list of records"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


def test_shares_and_distances_are_not_compared():
    """Laplace errs in the unit of the values, OUE in shares: neither beats the other."""
    prior = Prior.from_counts({1000.0 * i: 1 for i in range(1, 9)})
    both = [Laplace(epsilon=2.0, sensitivity=7000), OUE(epsilon=0.1, size=8)]
    assert all(c.frontier for c in compare(both, prior=prior))


FIVE = [[0.5, 0.4, 0.1], [0.4, 0.1, 0.5], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]]


def two_of(m, i, j):
    return Prior.from_probabilities([0.5 if k in (i, j) else 0.0 for k in range(m)])


def test_no_pair_is_worse_than_the_worst_prior():
    worst = worst_prior(Channel(FIVE))
    assert worst.risk.rad >= 0.25
    rng = np.random.default_rng(7)
    for _ in range(12):
        m, outputs = (int(k) for k in rng.integers(2, 7, 2))
        matrix = rng.dirichlet(np.full(outputs, 0.7), m)
        channel = Channel(matrix)
        found = worst_prior(channel).risk.rad
        for i, j in itertools.combinations(range(m), 2):
            # half of the total variation between two rows
            assert found >= np.abs(matrix[i] - matrix[j]).sum() / 4 - 1e-12
            assert found >= assess(channel, prior=two_of(m, i, j)).rad - 1e-12


KNOWN = (
    Threat(),
    Threat(knows="everything"),
    Threat(loss="absolute", eta=1),
)


@pytest.mark.parametrize("threat", KNOWN)
def test_the_gradient_is_that_of_the_risk(threat):
    """On a channel the sketch is exact: its value is the risk, its slope a difference quotient."""
    rng = np.random.default_rng(5)
    channel = Channel(rng.dirichlet(np.full(6, 0.7), 5))
    question = Question.of(Prior.uniform(5), threat)
    sketch = Sketch.of(channel, question, 0)
    for _ in range(5):
        prior = rng.dirichlet(np.full(5, 2.0))
        value, slope = sketch.at(prior)
        people = Prior.from_probabilities(prior)
        assert value == pytest.approx(assess(channel, prior=people, threat=threat).rad, abs=1e-12)
        way = rng.normal(size=5) * prior
        way -= prior * way.sum()  # stays a prior
        ahead, behind = (sketch.at(prior + 1e-7 * step * way)[0] for step in (1, -1))
        assert (ahead - behind) / 2e-7 == pytest.approx(slope @ way, abs=1e-6)


@pytest.mark.parametrize("threat", KNOWN)
def test_the_sketch_finds_no_less_than_a_search_without_it(threat, monkeypatch):
    rng = np.random.default_rng(11)
    made = [Channel(rng.dirichlet(np.full(4, 0.3), 3)) for _ in range(2)]
    quick = [worst_prior(m, size=3, threat=threat) for m in made]
    monkeypatch.setattr(Sketch, "of", lambda *_: None)
    for mechanism, found in zip(made, quick, strict=True):
        plain = worst_prior(mechanism, size=3, threat=threat)
        assert found.risk.rad >= plain.risk.rad * (1 - 1e-7)
        assert found.tried < plain.tried


class OwnCoin:
    """Someone's own mechanism: estimated, so dear."""

    size = 12

    def __init__(self):
        self.calls = 0

    @property
    def guarantee(self):
        return PureDP(1.0, neighbours="replace-one")

    def sample(self, records, rng):
        self.calls += 1
        return GRR(epsilon=1.0, size=12).sample(records, rng)

    def log_likelihood(self, outputs, records):
        return GRR(epsilon=1.0, size=12).log_likelihood(outputs, records)

    def describe(self):
        return {"kind": "OwnCoin"}


def test_a_search_ends_and_says_how_far_it_is(capsys):
    told = []
    own = OwnCoin()
    with listen(lambda what, done, total: told.append((what, done, total))):
        worst = worst_prior(own, trials=500)
    assert own.calls <= worst_module.ROUGH_BUDGET + 10
    progress = [t for t in told if t[0] == "priors"]
    assert progress[-1][2] == worst_module.ROUGH_BUDGET
    assert worst.risk.interval[1] > 0.07 and worst.tried <= worst_module.ROUGH_BUDGET
    even = assess(own, prior=Prior.uniform(12), rng=5)
    assert worst.risk.interval[1] > even.interval[0]  # no less than the typical priors
    worst_prior(GRR(epsilon=1.0, size=3), progress=True)
    assert "priors" in capsys.readouterr().err


def test_a_search_that_is_stopped_says_so(capsys, monkeypatch):
    monkeypatch.setattr(worst_module, "QUIET", 0.0)
    worst = worst_prior(OwnCoin(), trials=500, max_seconds=0)
    assert worst.tried == 1 and worst.stopped and "1 priors" not in str(worst)
    assert "1 prior was tried; then the search was stopped" in str(worst)
    assert "of 500 priors" in capsys.readouterr().err
    done = worst_prior(GRR(epsilon=1.0, size=3), progress=False)
    assert not done.stopped and "stopped" not in str(done) and f"{done.tried:,} priors" in str(done)
    assert done.to_dict()["tried"] == done.tried
    assert capsys.readouterr().err == ""


def test_the_possible_records_can_be_given():
    def log_density(outputs, records):
        far = np.abs(outputs - records)
        return -far - 2 * np.log1p(np.exp(-far))

    logistic = Density(
        log_density=log_density, bounds=(-60, 60), guarantee=PureDP(1.0, neighbours="replace-one")
    )
    with pytest.raises(DpradError, match="bounds must hold all outputs of every record"):
        worst_prior(logistic)  # records at the very ends
    worst = worst_prior(logistic, values=np.array([0.0, 1.0]))
    assert worst.prior.support.tolist() == [0.0, 1.0]
    assert worst.risk.rad == pytest.approx(np.tanh(0.25) / 2, abs=1e-9)


def test_compositions_have_a_worst_prior():
    assert worst_prior(Repeated(Laplace(epsilon=1.0), 1), size=3).risk.rad > 0.1


def test_names_of_ones_own():
    def coin(p):
        return Channel([[p, 1 - p], [1 - p, p]])

    table = compare(
        {"rough": coin(0.6), "fine": coin(0.9), "own": OwnPair()}, prior=Prior.uniform(2)
    )
    assert [c.name for c in table] == ["rough", "own", "fine"] and "own" in str(table)
    (alone,) = compare([OwnPair()], prior=Prior.uniform(2))
    assert alone.name == "OwnPair()" and alone.to_dict()["mechanism"] == {"kind": "OwnPair"}


def test_an_object_without_a_description_is_calibrated():
    plan = calibrate(lambda keep: OwnPair(keep), max_risk=0.1, prior=Prior.uniform(2),
                     between=(0.5, 0.99), trials=2000)  # fmt: skip
    assert plan.family == "OwnPair" and plan.to_dict()["mechanism"] == {"kind": "OwnPair"}
    assert 0.58 < plan.value < 0.6


class OwnPair:
    """Told truly with probability `keep`."""

    size = 2

    def __init__(self, keep=0.7):
        self.keep = keep

    def sample(self, records, rng):
        return np.asarray(records) ^ (rng.random(len(records)) >= self.keep)

    def log_likelihood(self, outputs, records):
        same = np.asarray(outputs) == np.asarray(records)
        return np.log(np.where(same, self.keep, 1 - self.keep))
