"""Values behave like values: equality, hashes, copies, pickles, short representations."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats

import dprad
from dprad import (
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    Profile,
    PureDP,
    Threat,
    TotalVariation,
    assess,
    audit,
    calibrate,
    compare,
    mechanisms,
    simulate,
    worst_prior,
)
from dprad.mechanisms import GRR, Channel, Composed, Exponential, Laplace, Repeated

RO = {"neighbours": "replace-one"}


def profile(epsilon):
    return float(np.exp(-epsilon)) / 4


MAKERS = {
    "pure": lambda: PureDP(1.0, **RO),
    "approx": lambda: ApproxDP(1.0, 1e-6, **RO),
    "gaussian": lambda: GaussianDP(1.0, **RO),
    "tv": lambda: TotalVariation(0.1, **RO),
    "profile": lambda: Profile(profile, **RO),
    "composed": lambda: PureDP(1.0, **RO).compose(GaussianDP(1.0, **RO)),
    "uniform": lambda: Prior.uniform(3),
    "counts": lambda: Prior.from_counts({("a", 1): 2, ("b", 2): 1}, columns=["x", "y"]),
    "unknown": Prior.unknown,
    "threat": lambda: Threat(knows=["a"], target=["b"]),
    "matrix": lambda: Threat(loss=np.eye(3, dtype=bool)),
    "sparse": lambda: Threat(loss=sparse.csr_array(np.eye(3))),
    "grr": lambda: GRR(epsilon=1.0, size=3),
    "laplace": lambda: Laplace(epsilon=1.0, clamp=(0, 3)),
    "channel": lambda: Channel([[0.75, 0.25], [0.25, 0.75]]),
    "exponential": lambda: Exponential(epsilon=1.0, utility=[[1, 0], [0, 1]]),
    "several": lambda: Composed([GRR(epsilon=1.0, size=3), GRR(epsilon=2.0, size=3)]),
    "repeated": lambda: Repeated(GRR(epsilon=1.0, size=3), 4),
    "risk": lambda: assess(GRR(epsilon=1.0, size=3), prior=Prior.uniform(3)),
    "bound": lambda: assess(PureDP(1.0, **RO), prior=Prior.uniform(3)),
    "plan": lambda: calibrate(GRR, max_risk=0.1, prior=Prior.uniform(3)),
    "comparison": lambda: compare([GRR(epsilon=1.0, size=3)], prior=Prior.uniform(3)),
    "worst": lambda: worst_prior(GRR(epsilon=1.0, size=3)),
}
OTHERS = [PureDP(2.0, **RO), PureDP(1.0, neighbours="add-remove"), Prior.uniform(4), Threat()]


@pytest.mark.parametrize("name", MAKERS)
def test_equal_hashed_copied_pickled(name):
    one, two = MAKERS[name](), MAKERS[name]()
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one) == copy.copy(one)
    assert all(one != other for other in OTHERS) and one != "something else"
    assert len(repr(one)) < 500


def test_what_differs_is_different():
    assert PureDP(1.0, **RO) != ApproxDP(1.0, 0.0, **RO)
    assert TotalVariation(0.1, **RO) != ApproxDP(0.0, 0.1, **RO)
    assert Prior.from_counts({"a": 1, "b": 2}) != Prior.from_counts({"a": 1, "c": 2})
    assert Threat(loss=np.eye(3)) != Threat(loss=np.ones((3, 3)))
    assert Channel(np.eye(2)) != Channel(np.ones((2, 2)) / 2)
    near = Prior.continuous(stats.norm(), 0, 1)
    assert near == near and near != Prior.unknown()


def test_results_in_a_notebook_are_escaped():
    prior = Prior.from_counts({("<b>", 1): 1, ("x", 2): 1}, columns=["<i>", "n"])
    risk = assess(PureDP(1.0, **RO), prior=prior, threat=Threat(target=["<i>"]))
    table = compare([GRR(epsilon=1.0, size=2)], prior=prior, threat=Threat(target=["<i>"]))
    for thing in (risk, prior, table):
        text = thing._repr_html_()
        assert text.startswith("<") and "<i>" not in text and "<b>" not in text
    assert "<table>" in table._repr_html_()


def test_neighbours_are_asked_for_in_words():
    for made in (lambda: PureDP(1.0), lambda: GaussianDP(1.0), lambda: ApproxDP(1.0, 0.1)):
        with pytest.raises(DpradError, match="neighbours is missing"):
            made()
    with pytest.raises(DpradError, match="spelt neighbours"):
        PureDP(1.0, neighbors="replace-one")
    with pytest.raises(DpradError, match="Did you mean 'replace-one'"):
        PureDP(1.0, neighbours="replace one")


def test_seeds_of_every_kind():
    mechanism, prior = Repeated(GRR(epsilon=1.0, size=2), 2), Prior.uniform(2)

    def risks(rng):
        attack = lambda outputs, known: outputs[0]  # noqa: E731
        result = audit(lambda r, rng: r ^ (rng.random() < 0.3), claim=PureDP(1.0, **RO),
                       prior=prior, trials=200, rng=rng)  # fmt: skip
        return (
            assess(mechanism, prior=prior, trials=200, rng=rng).rad,
            simulate(mechanism, attack, prior=prior, trials=200, rng=rng).rad,
            result.successes,
        )

    assert risks(3) == risks(np.int64(3))
    assert risks(np.random.SeedSequence(3)) == risks(np.random.SeedSequence(3))
    assert risks(np.random.default_rng(3)) == risks(np.random.default_rng(3))
    for wrong in (-1, 1.5, "a", True, None):
        with pytest.raises(DpradError, match="rng must be"):
            risks(wrong)


def test_a_channel_with_a_zero_costs_nothing_to_look_at():
    p = np.full((300, 301), 1 / 300)
    p[:, 300] = 0.0
    p[0] = np.r_[0.0, np.full(299, 1 / 300), 1 / 300]
    channel = Channel(p)
    calls = []
    guarantee = Channel.guarantee
    try:
        Channel.guarantee = property(lambda self: calls.append(1) or guarantee.__get__(self))
        assess(Composed([channel]), prior=Prior.uniform(300))
        audit(channel, claim=PureDP(1.0, **RO), prior=Prior.uniform(300), trials=200)
    finally:
        Channel.guarantee = guarantee
    assert calls == []  # nothing asked what it promises, which takes seconds


def test_membership_means_one_thing():
    prior = Prior.from_counts({("a", 1): 1, ("b", 2): 1, ("b", 1): 1}, columns=["x", "n"])
    silent = GRR(epsilon=0.0, size=2)
    for threat in (Threat(knows="everything"), Threat(knows=["x"], target=["x"]),
                   Threat(knows=["x", "n"])):  # fmt: skip
        risk = assess(silent, prior=prior, threat=threat, query="x")
        assert risk.threat["membership"] and "asks whether" in str(risk)
        assert (risk.success_in, risk.success_out) == (0.0, 0.0)
        assert risk.attribute_advantage is None
    told = GRR(epsilon=1.0, size=2)
    whole = assess(told, prior=prior, threat=Threat(knows=["x", "n"]), query="x")
    same = assess(told, prior=prior, threat=Threat(knows="everything"), query="x")
    assert whole.rad == same.rad and whole.membership_advantage == same.membership_advantage


class Own:
    """A mechanism of somebody else."""

    size = 2

    def sample(self, records, rng):
        return np.asarray(records) ^ (rng.random(len(records)) < 0.25)

    def log_likelihood(self, outputs, records):
        return np.log(np.where(np.asarray(outputs) == np.asarray(records), 0.75, 0.25))


def test_objects_of_other_makers():
    prior = Prior.uniform(2)
    risk = assess(Own(), prior=prior)
    assert risk.kind == "estimate" and risk.interval[0] <= 0.25 <= risk.interval[1]
    assert risk.subject == {"kind": "Own"}
    attack = dprad.optimal_attack(Own(), prior=prior)
    assert simulate(Own(), attack, prior=prior).interval[0] > 0.2
    two = assess(Composed([Own(), GRR(epsilon=2.0, size=2)]), prior=prior)
    assert two.rad > risk.rad + 0.05
    assert audit(Own(), claim=PureDP(0.5, **RO), prior=prior, trials=5000).verdict == "violated"
    with pytest.raises(DpradError, match="needs the promise"):
        worst_prior(Own())
    with pytest.raises(DpradError, match="takes an object, but got the class"):
        assess(mechanisms.GRR, prior=prior)


def test_a_type_checker_refuses_missing_or_misspelt_neighbours(tmp_path):
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "snippet.py"
    file.write_text(
        "import dprad\n"
        "dprad.PureDP(1.0)\n"
        'dprad.GaussianDP(1.0, neighbours="replace")\n'
        'dprad.ApproxDP(1.0, 1e-6, neighbours="add-remove")\n'
    )
    root = Path(__file__).parents[1]
    out, _, _ = api.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache"),
         str(file)]
    )  # fmt: skip
    wrong = re.findall(r"snippet\.py:(\d+): error", out)
    assert wrong == ["2", "3"], out
