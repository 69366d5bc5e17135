"""Losses by name, against the matrix of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess
from dprad.game.game import play
from dprad.mechanisms import GRR, OUE, Laplace
from dprad.model.losses import LOSSES


@pytest.mark.parametrize("seed", range(12))
def test_relative_is_the_matrix_of_relative_distances(seed):
    rng = np.random.default_rng(seed)
    values = np.unique(np.round(rng.normal(0, 30, 9) * 10.0 ** rng.integers(-2, 3), 3))
    if seed % 3 == 0:
        values = np.unique(np.r_[values, 0.0])
    eta = float(rng.choice([0.0, 0.05, 0.3, 0.5, 0.9, 0.999]))
    prior = Prior.from_counts(dict(zip(values.tolist(), rng.random(len(values)), strict=True)))
    counts = np.abs(values[:, None] - values[None, :]) <= eta * np.abs(values[:, None])
    by_name = play(prior, Threat(loss="relative", eta=eta))
    by_matrix = play(prior, Threat(loss=counts))
    assert by_name.p_plus == pytest.approx(by_matrix.p_plus)
    assert by_name.kappa == pytest.approx(by_matrix.kappa)
    for mechanism in (GRR(epsilon=1.0, size=len(values)), OUE(epsilon=2.0, size=len(values)),
                      Laplace(epsilon=3.0, sensitivity=float(np.ptp(values)))):  # fmt: skip
        one = assess(mechanism, prior=prior, threat=Threat(loss="relative", eta=eta))
        two = assess(mechanism, prior=prior, threat=Threat(loss=counts))
        assert one.rad == pytest.approx(two.rad, abs=1e-12)


def test_relative_in_words_and_at_the_edge():
    prior = Prior.from_counts({100: 1, 110: 1, 121: 1, 1000: 1})
    risk = assess(GRR(epsilon=1.0, size=4), prior=prior, threat=Threat(loss="relative", eta=0.1))
    assert "to within a share of 0.1" in str(risk)
    # 110 is within 10% of 100 and of 121; 100 is not within 10% of 121
    game = play(prior, Threat(loss="relative", eta=0.1))
    assert game.p_plus == pytest.approx(3 / 4)
    with pytest.raises(DpradError, match="below 1"):
        Threat(loss="relative", eta=1.0)
    with pytest.raises(DpradError, match="numbers"):
        play(Prior.from_counts({"a": 1, "b": 1}), Threat(loss="relative", eta=0.1))


def test_every_loss_has_words():
    assert set(LOSSES) == {"exact", "absolute", "relative", "haversine"}
    assert all(loss.help for loss in LOSSES.values())
