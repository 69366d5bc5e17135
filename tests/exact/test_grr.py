"""Randomised response: the closed form against the channel, and numbers from the paper."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.ndimage import minimum_filter1d

from dprad import Prior, Threat, assess
from dprad.mechanisms import GRR, Channel
from oracles import brute_force, random_instance


def matrix(epsilon, m):
    rows = np.ones((m, m)) + math.expm1(epsilon) * np.eye(m)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(10))
def test_closed_form_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        m = int(rng.integers(1, 9))
        instance = random_instance(rng, m)
        epsilon = float(rng.choice([0.0, 0.3, 1.0, 4.0]))
        question = {"prior": instance.prior, "threat": instance.threat}
        risk = assess(GRR(epsilon=epsilon, size=m), **question)
        rad, rero = brute_force(instance, matrix(epsilon, m))
        assert risk.rad == pytest.approx(rad, abs=1e-12)
        assert risk.rero == pytest.approx(rero, abs=1e-12)
        summed = assess(Channel(matrix(epsilon, m)), **question)
        assert risk.method != summed.method
        assert risk.success_out == pytest.approx(summed.success_out, abs=1e-9)


def test_codes_that_span_classes_use_the_sum(rng):
    weights = rng.random((3, 4))
    prior = Prior.from_counts(
        {(a, b): weights[a, b] for a in range(3) for b in range(4)}, columns=["a", "b"]
    )
    for threat in (
        Threat(target=["a"]),
        Threat(knows=["a"], target=["b"]),
        Threat(knows="everything"),
    ):
        one = assess(GRR(epsilon=1.0, size=4), prior=prior, threat=threat, query="b")
        two = assess(Channel(matrix(1.0, 4)), prior=prior, threat=threat, query="b")
        assert one.rad == pytest.approx(two.rad, abs=1e-13)
        assert one.rero == pytest.approx(two.rero, abs=1e-13)


def test_a_class_that_no_guess_is_right_about():
    """It raises its own output, and that helps nobody."""
    pi, success = np.array([0.5, 0.3, 0.2]), np.diag([True, True, False])
    prior, threat = Prior.from_probabilities(pi), Threat(loss=success)
    risk = assess(GRR(epsilon=1.0, size=3), prior=prior, threat=threat)
    gap = math.expm1(1.0) / (math.e + 2)
    assert risk.rad == pytest.approx(gap * (0.5 * 0.5 + 0.3 * 0.7))
    summed = assess(Channel(matrix(1.0, 3)), prior=prior, threat=threat)
    assert risk.success_out == pytest.approx(summed.success_out)


def test_hand_calculation():
    """Two values, uniform, RAD 0.1 <-> epsilon = ln 1.5."""
    risk = assess(GRR(epsilon=math.log(1.5), size=2), prior=Prior.uniform(2))
    assert risk.rad == pytest.approx(0.1, abs=1e-15)


def test_erratum_of_the_paper():
    """m = 100, RAD 0.1 needs epsilon = 2.504379, not ln 12.2087."""
    epsilon = math.log((1 + 0.1 * 99 / 0.99) / (1 - 0.1 / 0.99))
    assert round(epsilon, 6) == 2.504379
    right = assess(GRR(epsilon=epsilon, size=100), prior=Prior.uniform(100)).rad
    wrong = assess(GRR(epsilon=math.log(12.2087), size=100), prior=Prior.uniform(100)).rad
    assert right == pytest.approx(0.1, abs=1e-15)
    assert abs(wrong - 0.1) > 1e-5


@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 50.0, 700.0, 5000.0])
@pytest.mark.parametrize("m", [2, 1000, 10**6])
def test_extremes_against_fifty_digits(epsilon, m):
    with mpmath.workdps(50):
        e = mpmath.exp(epsilon)
        exact = float((e - 1) / (e + m - 1) * (1 - mpmath.mpf(1) / m))
    assert assess(GRR(epsilon=epsilon, size=m), prior=Prior.uniform(m)).rad == pytest.approx(
        exact, rel=1e-12
    )


def test_grr_attains_theorem_b_for_uniform_priors():
    for m in (2, 5, 30):
        mechanism = GRR(epsilon=1.3, size=m)
        exact = assess(mechanism, prior=Prior.uniform(m)).rad
        bound = assess(mechanism.guarantee, prior=Prior.uniform(m)).rad
        assert exact <= bound <= exact * (1 + 1e-9)


def test_many_values_with_a_tolerance():
    """Windows on a line of 10^5 values: no quadratic array, and the paper's formula."""
    m, eta = 100_000, 7
    mechanism = GRR(epsilon=8.0, size=m)
    risk = assess(mechanism, prior=Prior.uniform(m), threat=Threat(loss="absolute", eta=eta))
    centre = np.arange(m)
    width = np.minimum(centre + eta, m - 1) - np.maximum(centre - eta, 0) + 1
    lightest = minimum_filter1d(width, 2 * eta + 1, mode="nearest") / m
    assert risk.rad == pytest.approx(mechanism.gap * (1 - lightest.mean()), rel=1e-10)
