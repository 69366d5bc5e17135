"""The search on analytic functions: safe side, few evaluations, none twice."""

from __future__ import annotations

import math

import pytest

from dprad.numerics.search import Search, UnattainableError

FUNCTIONS = [
    (lambda x: math.tanh(x / 4), True),
    (lambda x: 1 - math.exp(-x), True),
    (lambda x: x**3 / (1 + x**3), True),
    (lambda x: 1e-6 * x if x < 1 else 1 - 1e-3 / x, True),  # nearly a step
    (lambda x: math.erf(1 / x), False),
    (lambda x: 1 / (1 + x**2), False),
    (lambda x: min(1.0, math.exp(-x)), False),
]


@pytest.mark.parametrize("start", [1e-6, 0.3, 1.0, 500.0])
@pytest.mark.parametrize("target", [1e-5, 0.1, 0.7])
@pytest.mark.parametrize(("function", "rising"), FUNCTIONS)
def test_safe_and_tight(function, rising, target, start):
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    search = Search(counted, target, 1e-9, 700.0, rising)
    ends = [function(x) <= target for x in (1e-9, 700.0)]
    if ends[0] == ends[1]:
        with pytest.raises(UnattainableError) as limit:
            search.weakest(start)
        assert limit.value.every == ends[0]
        return
    value = search.weakest(start)
    assert function(value) <= target
    assert function(value * (1 + 2e-7 if rising else 1 - 2e-7)) > target
    # a step costs as much as bisection; smooth functions a fraction of that
    assert len(calls) == len(set(calls)) <= 60


def test_a_good_start_costs_little():
    search = Search(lambda x: math.tanh(x / 4), 0.1, 1e-9, 700.0)
    search.weakest(0.5)
    assert len(search.seen) <= 8


def test_whole_numbers():
    for target in (0.001, 0.2, 0.5, 0.93):
        search = Search(lambda n: 1 - 0.99**n, target, 1.0, 1e6, whole=True)
        if target < 0.01:
            with pytest.raises(UnattainableError):
                search.weakest(10.0)
            continue
        value = search.weakest(10.0)
        assert value == int(value)
        assert 1 - 0.99**value <= target < 1 - 0.99 ** (value + 1)


def test_a_saw():
    """Risk that falls at whole numbers: the last piece that still has an answer."""

    def saw(x):
        return 0.02 * x + 0.3 * (x - math.floor(x))

    for pieces in (9, 900):
        top = float(pieces + 1)
        search = Search(saw, 0.1, 0.5, top)
        value = search.weakest(1.0, [float(k) for k in range(1, pieces + 1)])
        assert saw(value) <= 0.1 and value > 4.06
        assert all(saw(value + d) > 0.1 for d in (1e-5, 0.01, 0.5, 0.99, 2.0))
