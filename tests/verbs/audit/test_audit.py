"""audit: known mechanisms, state, workers, words."""

from __future__ import annotations

import json
import math
import pickle
import time
import warnings

import numpy as np
import pytest

from dprad import (
    ApproxDP,
    AuditInterrupt,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    Threat,
    audit,
    mechanisms,
    show_records,
)
from dprad.paper.audit import paper_audit
from gallery_runs import oue_ored
from oracles import random_instance

ONE = PureDP(1.0, neighbours="replace-one")


def records(values):
    return Prior.from_counts(dict.fromkeys(values, 1))


def test_two_well_chosen_records_need_few_calls():
    """The or-ed encoding, sequentially: two records and the bits that tell them apart."""
    calls = []
    for seed in range(8):

        def attack(outputs, known):
            first, second = outputs[:, 0] == 1, outputs[:, 1] == 1
            return [None if a == b else int(b) for a, b in zip(first, second, strict=True)]

        result = audit(
            oue_ored,
            claim=ONE,
            prior=records([0, 1]),
            attack=attack,
            trials=2000,
            sequential=True,
            rng=seed,
        )
        calls.append(result.trials)
        assert result.verdict == "violated"
    assert np.median(calls) <= 1000


@pytest.mark.parametrize("kind", ["GRR", "SubsetSelection", "OUE"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 7.0])
def test_model_based_estimates(kind, epsilon):
    """Within their interval (1 - 1e-4) of the truth; the certificate stays below it."""
    mechanism = getattr(mechanisms, kind)(epsilon=epsilon, size=200)
    result = audit(
        mechanism,
        claim=PureDP(epsilon, neighbours="replace-one"),
        prior=Prior.uniform(200),
        trials=100_000,
        confidence=0.9999,
    )
    low, high = result.epsilon_interval
    assert low <= epsilon <= high and result.verdict == "consistent"
    assert result.epsilon_lower <= epsilon
    assert result.epsilon_estimate == pytest.approx(epsilon, abs=max(0.1, high - low))


def test_no_silent_ceiling():
    """OUE tells epsilons apart only up to a point: the interval opens, and a note says so."""
    mechanism = mechanisms.OUE(epsilon=14.0, size=50)
    claim = PureDP(14, neighbours="replace-one")
    with pytest.warns(UserWarning, match="cannot refute"):
        result = audit(mechanism, claim=claim, prior=Prior.uniform(50), trials=20_000)
    assert result.epsilon_interval[1] == math.inf and result.epsilon_interval[0] < 14
    assert any("no upper end" in note for note in result.notes)
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_function_that_claims_to_be_a_mechanism():
    grr = mechanisms.GRR(epsilon=2.0, size=5)

    def run(record, rng):
        return int(grr.sample(np.array([record]), rng)[0])

    result = audit(
        run, claim=ONE, prior=Prior.uniform(5), model=grr, trials=5000, confidence=0.9999
    )
    assert result.verdict == "violated" and 1.5 < result.epsilon_lower < 2.0
    assert result.epsilon_interval[0] <= 2.0 <= result.epsilon_interval[1]
    assert "behaves like epsilon" in str(result)


def test_knowledge_tolerance_and_membership():
    prior = Prior.from_counts(
        {(a, d): 1 + a for a in range(3) for d in range(2)}, columns=["a", "d"]
    )
    wrong = mechanisms.GRR(epsilon=3.0, size=2)
    for threat in (
        Threat(knows=["a"], target=["d"]),
        Threat(knows="everything", target=["d"]),
    ):
        result = audit(wrong, claim=ONE, prior=prior, threat=threat, query="d", trials=20_000)
        assert result.verdict == "violated", threat
        assert result.epsilon_lower <= 3.0
    near = audit(
        mechanisms.Laplace(epsilon=6.0, sensitivity=4),
        claim=ONE,
        prior=Prior.uniform(5),
        threat=Threat(loss="absolute", eta=1),
        trials=20_000,
    )
    assert near.verdict == "violated"


@pytest.mark.parametrize("seed", range(6))
def test_any_game_stays_below_the_truth(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 4)
    mechanism = mechanisms.GRR(epsilon=1.0, size=4)
    result = audit(
        mechanism,
        claim=ONE,
        prior=instance.prior,
        threat=instance.threat,
        trials=4000,
        confidence=0.9999,
        rng=seed,
    )
    assert result.verdict == "consistent"


def test_claims_of_other_kinds():
    grr = mechanisms.GRR(epsilon=3.0, size=2)
    prior = Prior.uniform(2)
    added = audit(grr, claim=PureDP(1.0, neighbours="add-remove"), prior=prior, trials=2_500)
    assert added.epsilon_claimed == 2.0 and added.verdict == "violated"
    loose = audit(
        grr, claim=ApproxDP(1.0, 0.01, neighbours="replace-one"), prior=prior, trials=2_500
    )
    assert loose.verdict == "violated" and loose.delta == 0.01 and loose.epsilon_lower < 3.0
    gaussian = audit(
        mechanisms.Gaussian(sigma=0.2),
        claim=GaussianDP(1.0, neighbours="replace-one"),
        prior=prior,
        trials=2_500,
    )
    assert gaussian.verdict == "violated" and gaussian.delta > 0
    fine = audit(
        mechanisms.Gaussian(sigma=1.0),
        claim=GaussianDP(1.0, neighbours="replace-one"),
        prior=prior,
        trials=2_500,
    )
    assert fine.verdict == "consistent"


# -- long runs -----------------------------------------------------------------------------------
def noisy_coin(record, rng):
    return record if rng.random() < 0.8 else 1 - record


def numbers(result):
    plain = result.to_dict()
    plain.pop("seconds")
    return plain


def test_workers_do_not_matter():
    question = {"claim": ONE, "prior": Prior.uniform(2), "trials": 3000, "rng": 5}
    alone = numbers(audit(noisy_coin, **question))
    assert numbers(audit(noisy_coin, workers=2, **question)) == alone
    assert numbers(audit(noisy_coin, workers=4, sequential=True, **question)) == numbers(
        audit(noisy_coin, sequential=True, **question)
    )


class OwnSeed:
    """A correct, tight coin that brings its own random numbers."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def randomise(self, record):
        return record if self.rng.random() < math.e / (1 + math.e) else 1 - record


def test_noise_must_not_be_repeated(tmp_path):
    """In another process or session it would start from its seed again."""
    question = {"claim": ONE, "prior": Prior.uniform(2), "trials": 500}
    with pytest.raises(DpradError, match="workers must be 1"):
        audit(OwnSeed(), workers=2, **question)
    path = tmp_path / "state"
    audit(OwnSeed(), state=path, **question)
    with pytest.raises(DpradError, match="cannot be continued"):
        audit(OwnSeed(), state=path, **question)


def first_guess(outputs, known):
    return outputs


def test_natural_outputs_of_a_model():
    """Values, rows of bits and lists of members are read as the model's own."""

    def bits(record, rng):
        row = rng.random(6) < 1 / (math.e + 1)
        row[record] = rng.random() < 0.5
        return row.astype(int).tolist()

    def word(record, rng):
        return record if rng.random() < 0.7 else str(rng.choice(list("abc")))

    encoded = audit(
        bits, claim=ONE, prior=Prior.uniform(6), model=mechanisms.OUE(epsilon=1.0, size=6),
        trials=4000, confidence=0.9999,
    )  # fmt: skip
    assert encoded.verdict == "consistent" and encoded.epsilon_interval[0] < 1.0
    words = audit(
        word, claim=ONE, prior=records(list("abc")), model=mechanisms.GRR(epsilon=1.0, size=3),
        trials=4000,
    )  # fmt: skip
    assert words.verdict == "violated"
    with pytest.raises(DpradError, match="must return values of the prior"):
        audit(
            lambda r, rng: -2, claim=ONE, prior=Prior.uniform(3),
            model=mechanisms.GRR(epsilon=1.0, size=3), trials=100,
        )  # fmt: skip


def test_outputs_of_any_length_and_kind(tmp_path):
    def ragged(record, rng):
        return list(rng.random(1 if rng.random() < 0.99 else 3) + record)

    def raw(record, rng):
        return bytes([record, int(rng.integers(4))])

    for run in (ragged, raw):
        found = audit(
            run, claim=ONE, prior=records([0, 1]), trials=3000, state=tmp_path / run.__name__
        )
        assert found.verdict == "violated"


def test_a_clock_and_an_interruption():
    def slow(record, rng):
        time.sleep(0.001)
        return noisy_coin(record, rng)

    def attack(outputs, known):
        return outputs

    result = audit(
        slow, claim=ONE, prior=Prior.uniform(2), attack=attack, trials=100_000, max_seconds=0.5
    )
    assert 0 < result.trials < 5000 and result.sequential
    calls = [0]

    def stopped(record, rng):
        calls[0] += 1
        if calls[0] > 500:
            raise KeyboardInterrupt
        return noisy_coin(record, rng)

    with pytest.raises(AuditInterrupt) as stop:
        audit(stopped, claim=ONE, prior=Prior.uniform(2), attack=attack, trials=100_000)
    result = stop.value.result
    assert 0 < result.trials <= 500
    assert any("interrupted" in note for note in result.notes)
    assert pickle.loads(pickle.dumps(stop.value)).result.trials == result.trials


def test_ctrl_c_ends_a_loop_of_audits():
    begun = []

    def stopped(record, rng):
        if len(begun) == 2 and rng.random() < 0.01:
            raise KeyboardInterrupt
        return noisy_coin(record, rng)

    def loop():
        for k in range(3):
            begun.append(k)
            audit(stopped, claim=ONE, prior=Prior.uniform(2), trials=2000)

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert begun == [0, 1]


@pytest.mark.parametrize("after", [7_000, 7_995])  # counted, and before any of them counts
def test_ctrl_c_while_learned_bets_follow_guesses(after):
    calls = [0]

    def stopped(record, rng):
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return noisy_coin(record, rng)

    with pytest.raises(AuditInterrupt) as stop:
        audit(
            stopped, claim=PureDP(5.0, neighbours="replace-one"), prior=Prior.uniform(2),
            attack=lambda outputs, known: outputs, trials=8_000,
        )  # fmt: skip
    result = stop.value.result
    assert result.confidence == 0.95 and any("interrupted" in note for note in result.notes)


def test_precision(capsys):
    result = audit(
        mechanisms.GRR(epsilon=1.0, size=2),
        claim=PureDP(3.0, neighbours="replace-one"),
        prior=Prior.uniform(2),
        trials=100_000,
        sequential=True,
        precision=0.1,
        progress=True,
    )
    assert result.trials < 50_000
    assert result.rad_interval[1] - result.rad_interval[0] <= 0.1
    assert "runs," in capsys.readouterr().err


def test_a_claim_out_of_reach_is_said_beforehand():
    with pytest.warns(UserWarning, match="10 runs cannot refute epsilon = 8, .* that takes"):
        audit(
            mechanisms.GRR(epsilon=8.0, size=2),
            claim=PureDP(8.0, neighbours="replace-one"),
            prior=Prior.uniform(2),
            trials=10,
        )


def test_the_audit_of_the_paper():
    found = paper_audit(
        mechanisms.GRR(epsilon=2.0, size=20), prior=Prior.uniform(20), trials=40_000
    )
    assert len(found.estimates) == 5
    assert found.epsilon == pytest.approx(2.0, abs=0.1) and 0 < found.deviation < 0.1


class Randomiser:
    """The shape of diffprivlib's mechanisms."""

    def randomise(self, value):
        return float(value + np.random.default_rng().laplace(0, 0.4))


def test_objects_that_randomise():
    result = audit(Randomiser(), claim=ONE, prior=records([0, 1]), trials=8000)
    assert result.verdict == "violated"


def test_objects_of_diffprivlib_and_opendp():
    import opendp.prelude as dp
    from diffprivlib.mechanisms import Laplace

    from dprad.accounting import from_opendp

    sound = Laplace(epsilon=1.0, sensitivity=1.0, random_state=1)
    passed = audit(sound, claim=ONE, prior=records([0.0, 1.0]), trials=4000, confidence=0.999)
    assert passed.verdict == "consistent" and passed.epsilon_lower > 0.3
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    box = from_opendp(dp.m.make_laplace(*space, scale=0.3), span=1.0)
    assert audit(box, claim=ONE, prior=records([0.0, 1.0]), trials=2000).verdict == "violated"
    kept = audit(box, claim=box.guarantee, prior=records([0.0, 1.0]), trials=3000, confidence=0.999)
    assert kept.verdict == "consistent"


def vectorised(values, rng):
    return np.asarray(values) + rng.laplace(0, 0.4, len(values))


def test_vectorised_functions():
    result = audit(vectorised, claim=ONE, prior=records([0, 1]), trials=20_000, vectorised=True)
    assert result.verdict == "violated"


def fails(record, rng):
    if rng.random() < 0.01:
        raise RuntimeError("oh")
    return record


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (fails, r"run failed at call [\d,]+, on a record: RuntimeError\..* To see its text"),
        (lambda r, rng: None, r"returned None at call 1, on a record"),
        (lambda r, rng: float("nan"), "returned NaN at call 1"),
        (lambda r, rng: np.zeros(1 + int(rng.random() < 0.1)), "an output of another shape"),
    ],
)
def test_a_subject_that_misbehaves(run, words):
    with pytest.raises(DpradError, match=words):
        audit(run, claim=ONE, prior=records([0, 1]), trials=2000)


def test_a_subject_that_misbehaves_is_shown_if_asked():
    words = r"run failed at call [\d,]+, on the record [01]: RuntimeError: oh"
    with pytest.raises(DpradError, match=words), show_records():
        audit(fails, claim=ONE, prior=records([0, 1]), trials=2000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"claim": 1.0}, "claim must be a guarantee"),
        ({"prior": Prior.unknown()}, "table of records"),
        ({"trials": 3}, "trials"),
        ({"confidence": 1.0}, "strictly between"),
        ({"workers": 0}, "workers"),
        ({"rng": -1}, "rng"),
        ({"prior": Prior.uniform(1)}, "at least two"),
        ({"run": 3}, "function of a record"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"precision": -0.1}, "precision"),
    ],
)
def test_bad_input(arguments, words):
    question = {
        "run": noisy_coin,
        "claim": ONE,
        "prior": Prior.uniform(2),
        "trials": 100,
    } | arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DpradError, match=words):
            audit(**question)


def test_lists_within_lists_are_outputs():
    """Outputs of uneven lists have no shape of their own; found by fuzzing."""
    found = audit(
        lambda record, rng: [1, [int(rng.integers(2))]],
        claim=ONE,
        prior=Prior.uniform(2),
        trials=300,
    )
    assert found.verdict == "consistent"


TWO = mechanisms.Channel([[0.6, 0.4], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("run", "model", "words"),
    [
        (mechanisms.Channel(np.full((2, 5), 0.2)), TWO, "not return what a Channel does. Give"),
        (mechanisms.Laplace(epsilon=1.0), TWO, "not return what a Channel does. Give"),
        (lambda record, rng: int(rng.integers(5)), TWO, "a number from 0 to 1"),
        (TWO, mechanisms.OUE(epsilon=1.0, size=2), "not return what a OUE does"),
        (TWO, mechanisms.GRR, "got the class GRR, which needs more than an epsilon"),
        (TWO, lambda epsilon: 3, "model takes a mechanism"),
    ],
)
def test_a_model_of_something_else(run, model, words):
    claim = PureDP(1.0, neighbours="replace-one")
    with pytest.raises(DpradError, match=words):
        audit(run, claim=claim, prior=Prior.uniform(2), model=model, trials=2000)


def test_a_model_without_an_epsilon_gives_no_estimate_and_says_so():
    claim = PureDP(1.0, neighbours="replace-one")
    result = audit(TWO, claim=claim, prior=Prior.uniform(2), model=TWO, trials=2000)
    assert result.epsilon_estimate is None and "Give a function epsilon" in result.notes[0]
    family = lambda epsilon: mechanisms.GRR(epsilon=epsilon, size=2)  # noqa: E731
    result = audit(TWO, claim=claim, prior=Prior.uniform(2), model=family, trials=20_000)
    assert result.epsilon_estimate == pytest.approx(math.log(1.5), abs=0.1) and not result.notes
