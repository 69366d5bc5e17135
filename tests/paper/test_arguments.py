"""Wrong arguments: a sentence that names the argument, never a raw error."""

from __future__ import annotations

import pytest
from scipy.stats import uniform

from dprad import DpradError, Prior, datasets, plots
from dprad.mechanisms import GRR, ExponentialInterval, SubsetSelection
from dprad.paper import nested_monte_carlo

LINE = Prior.continuous(uniform(), 0, 1)
NOISE = ExponentialInterval(epsilon=1.0, factor=1.0)
TEN = {"prior": Prior.uniform(10)}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nested_monte_carlo(NOISE, LINE, eta=0.1, draws=10, rng="x"), "rng must be a seed"),
        (lambda: next(datasets.porto_points("nope.csv")), "there is no file 'nope.csv'"),
        (lambda: SubsetSelection(epsilon=1.0, size=10, subset=True), "subset must be 'floor'"),
        (lambda: plots.plot_risk(GRR, [1.0, 2.0]), "prior must be given: GRR"),
        (lambda: plots.plot_risk(GRR, [1.0], ax=3, **TEN), "ax must be a matplotlib axis"),
        (lambda: plots.plot_risk(GRR, [1.0], accepted=2, **TEN), "accepted must be a number"),
    ],
)
def test_it_is_said_what_to_do(call, words):
    with pytest.raises(DpradError, match=words):
        call()


def test_a_size_stands_for_a_prior_that_is_missing():
    """Then the promise of the mechanism is drawn, or it is said that a prior is needed."""
    with pytest.raises(DpradError) as told:
        plots.plot_risk(GRR, [1.0], size=5)
    assert "cannot be made" not in str(told.value)


def test_few_draws_say_nothing():
    found = nested_monte_carlo(NOISE, LINE, eta=0.1, draws=10)
    assert found.interval == (0.0, 1.0)
