"""OpenDP measurements as table releases: the noise they add, and what cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import DpradError
from dprad.accounting import release_from_opendp
from dprad.mechanisms import GRR, Counts, Sums

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib")
PEOPLE = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
PAY = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0))), dp.symmetric_distance()
COUNT, LONG = (
    dp.t.then_count_by_categories(categories=["a", "b"], null_category=False, MO=distance)
    for distance in ("L1Distance<int>", "L2Distance<int>")
)


def test_the_noise_is_that_of_the_measurement():
    """Outputs of OpenDP minus the counts, against the noise that is said; 6 deviations."""
    cases = [
        (PEOPLE >> COUNT >> dp.m.then_laplace(scale=3.0), ["a", "b", "a"], [2, 1], Counts),
        (PEOPLE >> LONG >> dp.m.then_gaussian(scale=3.0), ["a", "b", "a"], [2, 1], Counts),
        (PAY >> dp.t.then_sum() >> dp.m.then_laplace(scale=30.0), [4.0, 5.0], 9.0, Sums),
    ]
    for measurement, data, truth, kind in cases:
        described = {"by": ["x"]} if kind is Counts else {"of": "x", "clamp": (0, 10)}
        release = release_from_opendp(measurement, kind, **described)
        drawn = np.array([measurement(data) for _ in range(1000)]) - truth
        line = release.noises[0].line()
        fourth = 24 if "gaussian" not in release.noise else 3  # of the fourth moment, about
        deviation = line.variance() * np.sqrt(fourth / drawn.size)
        assert np.mean(drawn**2) == pytest.approx(line.variance(), abs=6 * deviation)
        assert np.all(drawn == np.rint(drawn)) == release.noises[0].whole


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: release_from_opendp(3, Counts), "takes a Measurement"),
        (lambda: release_from_opendp(PEOPLE >> COUNT >> dp.m.then_laplace(1.0), GRR), "kind must"),
        (
            lambda: release_from_opendp(
                dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 1.0), Counts
            ),
            "does not say what one person changes",
        ),
        (
            lambda: release_from_opendp(
                dp.c.make_zCDP_to_approxDP(PEOPLE >> LONG >> dp.m.then_gaussian(1.0)), Counts
            ),
            "cannot be told from the privacy measure",
        ),
    ],
)
def test_what_cannot_be_read_is_told(make, said):
    with pytest.raises(DpradError, match=said):
        make()
