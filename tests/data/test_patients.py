from __future__ import annotations

from collections import Counter

import numpy as np

from dprad import Prior, patients


def test_the_same_seed_gives_the_same_people(tmp_path):
    assert patients.records(500) == patients.records(500)
    assert patients.records(500) != patients.records(500, seed=1)
    prior = patients.prior()
    patients.save(tmp_path / "p.csv")
    read = Prior.from_data(tmp_path / "p.csv")
    assert read.columns == prior.columns
    assert np.allclose(read.probabilities, prior.probabilities)
    assert read.support.tolist() == prior.support.tolist()


def test_the_columns_depend_on_one_another():
    rows = patients.records()
    share = {
        group: Counter(r[3] for r in rows if (r[0], r[2]) == group)
        for group in (("60-79", "yes"), ("60-79", "no"), ("20-39", "no"))
    }

    def rate(group, diagnosis):
        return share[group][diagnosis] / share[group].total()

    assert rate(("60-79", "yes"), "lung") > 3 * rate(("60-79", "no"), "lung")
    assert rate(("60-79", "no"), "heart") > 5 * rate(("20-39", "no"), "heart")
