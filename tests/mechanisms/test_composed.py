"""Several releases: one is itself, and two never tell less than one."""

from dataclasses import replace

import numpy as np
import pytest

from dprad import (
    DpradError,
    Prior,
    PureDP,
    Threat,
    assess,
    audit,
    compare,
    mechanisms,
    optimal_attack,
    simulate,
)
from dprad.mechanisms import (
    Composed,
    Density,
    Duchi,
    Hybrid,
    Laplace,
    Piecewise,
    Repeated,
    Staircase,
    catalogue,
)
from effort import part_of

EPSILONS = (0.0, 0.3, 1.0, 4.0, 20.0, 38.0, 41.2, 80.0, 300.0, 700.0)
NUMBERS = Prior.from_counts({-1.0: 4, -0.3: 1, 0.2: 2, 1.0: 3})
CODES = Prior.from_counts({0: 4, 1: 1, 2: 2, 3: 3})
WHOLE = Prior.from_counts({0.0: 4, 1.0: 1, 2.0: 2, 3.0: 3})
TEXT = {"duchi": NUMBERS, "piecewise": NUMBERS, "hybrid": NUMBERS}
THREATS = {
    "exact": Threat(),
    "near": Threat(loss="absolute", eta=1.0),
    "everything": Threat(knows="everything"),
}


def every():
    for name, family in catalogue.FAMILIES.items():
        prior = TEXT.get(name, CODES if catalogue.card(name).reads == "codes" else WHOLE)
        values = (0.01, 0.3, 3.0, 100.0) if family.noise.name == "sigma" else EPSILONS
        for value in values:
            try:
                made(name, prior, value)
            except DpradError:
                continue  # not offered at this value
            yield pytest.param(name, prior, value, id=f"{name}-{value:g}")


def made(name, prior, value):
    family = catalogue.FAMILIES[name]
    kind, arguments = catalogue.parts(name, {family.noise.name: value}, prior, Threat())
    return kind(**arguments)


@pytest.mark.parametrize(("name", "prior", "value"), part_of(every(), 40))
def test_one_release_is_itself_and_two_tell_no_less(name, prior, value):
    # false alarms: 3 threats x some 200 cases, each at 1e-9
    mechanism = made(name, prior, value)
    for threat in THREATS.values():
        asked = {"prior": prior, "threat": threat, "trials": 2_000, "confidence": 1 - 1e-9}
        one = assess(mechanism, **asked)
        assert assess(Repeated(mechanism, 1), **asked).rad == one.rad
        two = assess(Repeated(mechanism, 2), **asked)
        assert two.interval[1] >= one.interval[0] - 1e-9
        # beside something that says next to nothing the first is still seen
        mute = Composed([mechanism, mechanism if value == 0 else weak(mechanism)])
        assert assess(mute, **asked).interval[1] >= one.interval[0] - 1e-9


def weak(mechanism):
    noise = mechanism.noise.name
    changed = {noise: {"sigma": 1e4, "f": 0.999}.get(noise, 0.01)}
    if hasattr(mechanism, "epsilon_one"):
        changed["epsilon_one"] = 0.005
    return replace(mechanism, **changed)


@pytest.mark.parametrize("epsilon", [60.0, 80.0, 200.0, 700.0])
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 1e6), (1e5, 1e5 + 2)])
def test_outputs_next_to_the_record_are_told_from_atoms(epsilon, bounds):
    low, high = bounds
    values = np.linspace(low, high, 4)
    prior = Prior.from_counts(dict.fromkeys(values.tolist(), 1))
    for kind in (Hybrid, Piecewise):
        found = assess(Repeated(kind(epsilon=epsilon, bounds=bounds), 2), prior=prior)
        assert found.interval[0] <= 0.75 <= found.interval[1] + 1e-12
    chain = Composed(
        [Piecewise(epsilon=epsilon, bounds=bounds), Duchi(epsilon=0.01, bounds=bounds)]
    )
    low_end, high_end = assess(chain, prior=prior).interval
    assert low_end <= 0.75 <= high_end + 1e-12


def test_parts_that_read_different_numbers_are_told_apart():
    """What is read is moved by one, which changes nothing."""
    plain = Laplace(epsilon=1.0, sensitivity=2.0)
    both = Composed([Shifted(epsilon=1.0, sensitivity=2.0), plain])
    found, same = (assess(m, prior=Prior.uniform(3)) for m in (both, Repeated(plain, 2)))
    assert found.rad == pytest.approx(same.rad, abs=0.004)
    assert found.interval[0] <= same.interval[1] and same.interval[0] <= found.interval[1]


class Shifted(Laplace):
    __slots__ = ()

    def reads(self, values):
        return Laplace.reads(self, values) + 1.0


def test_a_part_without_a_promise_leaves_the_whole_without_one():
    plain = Density(log_density=lambda t, z: -((t - z) ** 2) - np.log(np.pi) / 2, bounds=(-9, 9))
    assert Composed([plain, plain]).guarantee is None
    assert Repeated(plain, 2).guarantee is None


def test_trainings_repeated_read_the_candidates_of_one():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    norms = np.array([8.0, 8.0, 0.01, 0.012])
    direction = rng.normal(size=(4, 4))
    candidates = direction / np.linalg.norm(direction, axis=1, keepdims=True) * norms[:, None]
    labels = [1, 1, 0, 0]
    torch.manual_seed(0)
    one = mechanisms.DPSGD(
        model=torch.nn.Linear(4, 3),
        known=(rng.normal(size=(5, 4)), [0, 1, 2, 0, 1]),
        candidates=(candidates, labels),
        clip=1.0,
        sigma=0.5,
        steps=3,
        learning_rate=0.1,
        device="cpu",
    )
    prior = Prior.from_counts(
        {(1, 0): 10, (1, 1): 10, (0, 2): 1, (0, 3): 1}, columns=["label", "candidate"]
    )
    asked = {"prior": prior, "trials": 4_000, "confidence": 1 - 1e-9}
    single = assess(one, **asked)
    again = assess(Repeated(one, 1), **asked)
    assert (again.rad, again.interval) == (single.rad, single.interval)
    twice = assess(Repeated(one, 2), **asked)
    assert twice.interval[1] >= single.interval[0]
    assert twice.rad > single.rad  # by 0.01 and more, many standard errors
    assert one.assumes in twice.assumptions


@pytest.mark.parametrize(
    ("base", "epsilon"), [(1e6, 46.0), (0.0, 74.0), (0.0, 75.0), (100.0, 64.0), (1e4, 55.0)]
)
def test_steps_narrower_than_a_float_are_still_steps(base, epsilon):
    values = [base, base + 0.3, base + 0.7]
    prior = Prior.from_counts(dict(zip(values, [0.2, 0.3, 0.5], strict=True)))
    mechanism = Staircase(epsilon=epsilon)
    exact = assess(mechanism, prior=prior).rad
    twice = assess(Repeated(mechanism, 2), prior=prior, trials=4_000, confidence=1 - 1e-6)
    assert twice.interval[1] >= exact - 1e-9
    played = simulate(
        mechanism, optimal_attack(mechanism, prior=prior), prior=prior, trials=4_000,
        confidence=1 - 1e-6,
    )  # fmt: skip
    assert played.interval[0] <= exact <= played.interval[1]


def test_a_class_that_draws_otherwise_than_its_parent_is_refused():
    class Quiet(Laplace):
        def sample(self, records, rng):
            return np.asarray(records, dtype=float)

    quiet = Quiet(epsilon=1.0, sensitivity=1)
    for ask in (assess, lambda s, prior: compare([s], prior=prior)):
        with pytest.raises(DpradError, match="changes sample of Laplace"):
            ask(quiet, prior=Prior.uniform(2))
    question = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2)}
    assert audit(quiet, trials=2000, **question).verdict == "violated"
