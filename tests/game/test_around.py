"""Places whose pairs are not listed: the numbers of the list, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import ApproxDP, DpradError, GaussianDP, Prior, PureDP, Threat, assess, calibrate
from dprad.game import game
from dprad.game.around import Around
from dprad.game.sets import Relation, Singletons
from dprad.mechanisms import GRR, Channel, HadamardResponse
from dprad.model import losses, near
from effort import some


@pytest.fixture
def unlisted(monkeypatch):
    """Within: no list of pairs fits."""

    def switch(on):
        monkeypatch.setattr(losses, "MEMBER", 1e15 if on else 100)
        game._prepared.cache_clear()
        game.listed.cache_clear()

    monkeypatch.setattr(near, "PART", 150)
    yield switch
    switch(False)


def places(rng, m):
    """Some in the same spot as others but for a metre, some that nobody visits."""
    at = rng.uniform(0, 1, (m, 2)) * [0.1, 0.2] + [41.1, -8.7]
    if rng.random() < 0.4:
        at = np.round(at, 2) + 1e-5 * rng.integers(0, 2, (m, 1))
    weight = rng.gamma(0.3, size=m) * (rng.random(m) < 0.8)
    weight[0] = rng.choice([1.0, 1e7])
    return Prior.from_counts(
        dict(zip(map(tuple, at.tolist()), weight, strict=True)), columns=list("ab")
    )


def southern(table):
    return table["a"] <= np.median(table["a"])


@pytest.mark.parametrize("seed", range(some(40, 4)))
def test_all_numbers_are_those_of_the_list(seed, unlisted):
    rng = np.random.default_rng(seed)
    prior = places(rng, int(rng.choice([1, 9, 80, 300, 700])))
    feared = {"eta": float(rng.choice([0.0, 1.0, 50.0, 500.0, 3000.0, 1e5]))}
    feared |= [{}, {}, {"knows": "everything"}, {"group": southern}][seed % 4]
    threat = Threat(loss="haversine", **feared)
    subjects = [
        GRR(epsilon=2.0, size=prior.size),
        GRR(epsilon=0.0, size=prior.size),
        PureDP(1.0, neighbours="replace-one"),
        ApproxDP(1.0, 1e-5, neighbours="add-remove"),
        GaussianDP(1.0, neighbours="add-remove"),
    ]
    found, games = [], []
    for on, workers in ((False, 1), (True, 1), (True, 3)):
        unlisted(on)
        games.append(game.play(prior, threat))
        found.append([assess(s, prior=prior, threat=threat, workers=workers) for s in subjects])
    assert found[0] == found[1] == found[2]
    listed, passed = games[:2]
    for name in ("class_of", "probabilities", "luck", "target_of"):
        assert np.array_equal(getattr(listed, name), getattr(passed, name))
    for name in ("fiber", "mass", "guess", "sizes"):
        assert np.array_equal(getattr(listed.sets, name), getattr(passed.sets, name))
    assert type(passed.sets) is (Around if isinstance(listed.sets, Relation) else Singletons)
    k, weight = len(listed.probabilities), rng.random((len(listed.probabilities), 2))
    assert np.array_equal(listed.sets.sums(weight), passed.sets.sums(weight))
    assert np.array_equal(listed.sets.members(k), passed.sets.members(k))
    records, guess = rng.integers(len(listed.class_of), size=(2, 100))
    assert np.array_equal(listed.hits(records, guess), passed.hits(records, guess))


def test_calibrated_alike(unlisted, rng):
    prior = places(rng, 200)
    question = {"prior": prior, "threat": Threat(loss="haversine", eta=500.0)}
    for kind, more in ((GRR, {"size": prior.size}), (PureDP, {"neighbours": "replace-one"})):
        values = []
        for on in (False, True):
            unlisted(on)
            values.append(calibrate(kind, max_risk=0.1, **question, **more).value)
        assert values[0] == values[1]


def test_where_the_list_is_needed_it_is_refused(unlisted, rng):
    prior = places(rng, 60)
    m = prior.size
    unlisted(True)
    within = {"loss": "haversine", "eta": 500.0}
    refused = [
        (GRR(epsilon=1.0, size=m), {"must_guess": True}),
        (GRR(epsilon=1.0, size=m), {"knows": southern}),
        (HadamardResponse(epsilon=1.0, size=m), {}),
        (Channel(np.full((m, 3), 1 / 3)), {}),
        (PureDP(1.0, neighbours="replace-one"), {"knows": southern}),
    ]
    for subject, threat in refused:
        with pytest.raises(DpradError, match=rf"pairs of the {m} target values .* smaller eta"):
            assess(subject, prior=prior, threat=Threat(**within, **threat))
    with pytest.raises(DpradError, match="smaller eta"):  # several classes for one code
        assess(
            GRR(epsilon=1.0, size=2), prior=prior, threat=Threat(**within),
            query=lambda table: southern(table).astype(int),
        )  # fmt: skip


def test_everything_known_needs_no_list(unlisted, rng):
    prior = places(rng, 60)
    question = {"prior": prior, "threat": Threat(loss="haversine", eta=500.0, knows="everything")}
    risks = []
    for on in (False, True):
        unlisted(on)
        risks.append(assess(HadamardResponse(epsilon=1.0, size=prior.size), **question))
    assert risks[0] == risks[1]
