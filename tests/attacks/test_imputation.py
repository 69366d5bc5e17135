"""Imputation: success without a release is no extra risk; with one it is measured."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dprad import DpradError, Prior, assess
from dprad.attacks import impute
from dprad.mechanisms import GRR, OUE, Laplace


@pytest.fixture
def table(rng):
    """The secret is the known colour in 3 of 4 cases, else another one."""
    colour = rng.integers(3, size=3000)
    secret = np.where(rng.random(3000) < 0.75, colour, rng.integers(3, size=3000))
    words = np.array(["blue", "green", "red"])
    noise = rng.normal(size=3000)
    return pd.DataFrame({"colour": words[colour], "noise": noise, "secret": words[secret]})


def test_success_without_risk(table):
    found = impute(table, secret="secret", classifier=LogisticRegression(), people=500, repeats=4)
    assert found.rero_interval[0] <= 0.75 + 0.25 / 3 <= found.rero_interval[1]
    assert found.rad == 0.0 and found.release_rad is None and 0.3 < found.baseline < 0.4
    assert "Extra risk of taking part: 0." in str(found) and "0.8" not in str(found)
    low, high = found.measured_interval
    assert low < 0 < high and high - low < 0.4 and low <= found.measured_rad <= high
    assert found.measured_rad != 0.0  # measured, not known
    assert found.known == ("colour", "noise") and found.to_dict()["repeats"] == 4


@pytest.mark.parametrize("release", [GRR(epsilon=1.5, size=3), OUE(epsilon=1.5, size=3)])
def test_with_a_release(table, release):
    """With nothing useful known the attack is the optimal one on the release alone."""
    found = impute(
        table, secret="secret", known=["noise"], classifier=LogisticRegression(),
        release=release, people=1000, repeats=3,
    )  # fmt: skip
    exact = assess(release, prior=Prior.uniform(3)).rad
    low, high = found.release_interval
    assert low <= exact <= high and high - low < 0.2
    assert found.success_in - found.success_out == pytest.approx(found.release_rad)
    assert "With the release" in str(found)
    # who knows the colour gains less from the release
    more = impute(
        table, secret="secret", classifier=LogisticRegression(), release=release, repeats=3
    )
    assert more.rero > found.rero and more.release_rad < found.release_rad + 0.02


def test_few_public_records(table):
    """Who has seen eight people guesses worse than who has seen 2,500."""
    few = impute(table, secret="secret", classifier=LogisticRegression(), people=500, public=8)
    many = impute(table, secret="secret", classifier=LogisticRegression(), people=500)
    assert (few.public, many.public) == (8, 2500) and few.rero < many.rero - 0.02
    most = impute(table, secret="secret", classifier=LogisticRegression(), people=500, public=9000)
    assert most == many
    with pytest.raises(DpradError, match="public"):
        impute(table, secret="secret", public=0)


def test_the_default_classifier_and_files(table, tmp_path):
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    found = impute(str(path), secret="secret", people=300, repeats=1)
    assert found.classifier == "MLPClassifier" and found.rero > 0.7
    assert found == impute(table, secret="secret", people=300, repeats=1)


def test_untidy_columns(table, rng):
    """Missing numbers, thousands of names, a value that only one person has, one known column."""
    table["noise"] = table["noise"].mask(rng.random(3000) < 0.1)
    table["name"] = [f"person {i}" for i in range(3000)]
    table.loc[0, "secret"] = "violet"
    found = impute(table, secret="secret", classifier=LogisticRegression(), people=500, repeats=2)
    assert found.rero > 0.7
    assert impute(table, secret="secret", known="colour", people=500, repeats=1).known == (
        "colour",
    )
    tiny = pd.DataFrame({"a": range(12), "secret": ["x"] * 11 + ["y"]})
    for model in (None, LogisticRegression()):
        assert 0 <= impute(tiny, secret="secret", classifier=model, people=11, repeats=3).rero <= 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secret": "sekret"}, "Did you mean 'secret'"),
        ({"known": ["color"]}, "Did you mean 'colour'"),
        ({"known": ["secret"]}, "other than 'secret'"),
        ({"known": []}, "other than"),
        ({"people": 5000}, "fewer than the 3,000 rows"),
        ({"release": GRR(epsilon=1, size=2)}, "mechanism of size 3"),
        ({"release": 7}, "mechanism of size 3"),
        ({"release": Laplace(epsilon=1, sensitivity=2)}, "mechanism of size 3"),
        ({"classifier": LinearSVC()}, "predict_proba"),
        ({"repeats": 0}, "repeats"),
        ({"table": 3}, "data frame"),
    ],
)
def test_bad_input(table, changes, words):
    with pytest.raises(DpradError, match=words):
        impute(**{"table": table, "secret": "secret"} | changes)
    table["secret"] = "red"
    with pytest.raises(DpradError, match="at least two values"):
        impute(table, secret="secret")
