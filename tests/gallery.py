"""Broken mechanisms, each with the one it should have been, written from published descriptions.

`gallery_runs.py` has the mechanisms, functions run(record, rng). A `Case` has the true epsilon of
the broken one, and `odds`, ln p(output | second) / p(output | first) for the two records that are
easiest to tell apart (`gallery_laws.py`): epsilons are checked against it, and the least number of
calls that refutes the claim follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gallery_laws as laws
import gallery_runs as runs
from dprad import ApproxDP, GaussianDP, Guarantee, PureDP
from dprad.accounting import dpsgd

INF = math.inf
REPLACE, ADD = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
ONE, HALF = PureDP(1.0, **REPLACE), PureDP(0.5, **REPLACE)
STABLE = ApproxDP(1.0, runs.DELTA, **ADD)
# of Poisson batches: four steps, a quarter of the records each
_POISSON = dpsgd(noise_multiplier=laws.SIGMA, sample_rate=0.25, steps=4)
TRAINED = ApproxDP(1.0, float(_POISSON.delta(1.0)), **ADD)


@dataclass(frozen=True, kw_only=True)
class Case:
    """`true` is the least epsilon (with the delta of the claim) that the broken one keeps on its
    records. At the outputs `extreme` the odds come within 0.001 of it, or are infinite. `absent`:
    the first data set is one without the record. `local`: outputs are read by LDP Auditor.
    """

    name: str
    run: Callable[..., Any]
    sound: Callable[..., Any]
    odds: Callable[[Any], float]
    true: float
    extreme: tuple[Any, ...]
    records: tuple[Any, ...] = (0, 1)
    claim: Guarantee = ONE
    bits: bool = False
    absent: bool = False
    local: bool = False

    @property
    def pair(self) -> tuple[Any, Any]:
        """The two data sets of `odds`."""
        return (None, self.records[0]) if self.absent else (self.records[0], self.records[-1])


TEN = tuple(range(10))
ENDS, PERSON = (-60.0, 60.0), ("Ann",)


CASES = (
    Case(name="laplace, half the scale", run=runs.half_scale, sound=runs.laplace,
         odds=lambda y: laws.moved(y, 1, 0.5), true=2.0, extreme=ENDS),
    Case(name="laplace, a third of the sensitivity", run=runs.third_sensitivity,
         sound=runs.full_sensitivity, odds=lambda y: laws.moved(y, 3), true=3.0, extreme=ENDS),
    Case(name="histogram, scale epsilon", run=runs.histogram_scale_epsilon, sound=runs.histogram,
         odds=lambda y: laws.moved(y[0] - 5, 1, 0.5), true=2.0, extreme=((0.0, 0.0), (9.0, 0.0)),
         claim=HALF),
    Case(name="truncated noise", run=runs.truncated, sound=runs.laplace, odds=laws.truncated,
         true=INF, extreme=(-2.5, 3.5)),
    Case(name="one of two sums", run=runs.one_of_two_sums, sound=runs.two_sums,
         odds=lambda y: laws.moved(y[0]) + laws.moved(y[1] - 9), true=2.0,
         extreme=((-1.0, 0.0), (2.0, 20.0))),
    Case(name="reused noise", run=runs.reused_noise, sound=runs.two_answers,
         odds=lambda y: INF if y[0] - y[1] > -4.5 else -INF, true=INF,
         extreme=((0.0, 5.0), (1.0, 5.0))),
    Case(name="range of the data", run=runs.mean_own_range, sound=runs.mean_fixed_range,
         odds=laws.own_range, true=INF, extreme=(1e9,), records=(0.5, 10.0)),
    Case(name="floating-point noise", run=runs.laplace, sound=runs.snapped, odds=laws.floating,
         true=INF, extreme=(2.0**-60,), bits=True),
    Case(name="rounded before noise", run=runs.round_then_count, sound=runs.count_then_round,
         odds=lambda y: laws.moved(y - 10, 5), true=5.0, extreme=(0, 10, 15, 30)),
    Case(name="gaussian, mu 1.5 for 1", run=runs.gaussian_too_little, sound=runs.gaussian,
         odds=lambda y: 1.5 * y - 1.125, true=GaussianDP(1.5, **REPLACE).epsilon_at(1e-6),
         extreme=(), claim=GaussianDP(1.0, **REPLACE)),
    Case(name="a fixed seed", run=runs.fixed_seed, sound=runs.laplace,
         odds=lambda y: INF if y == runs.fixed_seed(1, None) else -INF, true=INF,
         extreme=(runs.fixed_seed(0, None), runs.fixed_seed(1, None))),
    Case(name="budget spent twice", run=runs.budget_twice, sound=runs.both_answers,
         odds=lambda y: laws.moved(y[0]) + 2 * y[1] - 1, true=2.0, extreme=((-1.0, 0), (2.0, 1))),
    Case(name="grr, p of another size", run=runs.grr_wrong_size, sound=runs.grr, odds=laws.grr,
         true=1.811, extreme=(0, 9), records=TEN, local=True),
    Case(name="oue, or-ed", run=runs.oue_ored, sound=runs.oue, odds=laws.oue_ored, true=1.551,
         extreme=((1, *[0] * 9), (0, *[1] * 9)), records=TEN, local=True),
    Case(name="unary, the budget of one bit", run=runs.unary_one_bit, sound=runs.unary,
         odds=lambda y: 2.0 * (y[-1] - y[0]), true=2.0, extreme=((1, *[0] * 9),), records=TEN,
         local=True),
    Case(name="subset, always the truth", run=runs.subset_always, sound=runs.subset,
         odds=lambda y: 0.0 if 0 in y and 9 in y else INF if 9 in y else -INF, true=INF,
         extreme=((0, 1, 2),), records=TEN, local=True),
    Case(name="hashing at twice epsilon", run=runs.hashing_double, sound=runs.hashing,
         odds=laws.hashing, true=2.0, extreme=tuple((s, b) for s in range(64) for b in (0, 1)),
         records=TEN),
    Case(name="reveals its input", run=runs.reveals, sound=runs.grr_three,
         odds=lambda y: {-1: 0.0, 0: -INF, 2: INF}[y], true=INF, extreme=(0,), records=(0, 1, 2),
         local=True),
    Case(name="noisy max with its value", run=runs.noisy_max_with_value, sound=runs.max_value,
         odds=laws.largest, true=2.5, extreme=(-50.0,)),
    Case(name="noisy max with the gap", run=runs.max_and_gap_one_way, sound=runs.max_and_gap,
         odds=laws.gap, true=2.0, extreme=((0, 20.0),)),
    Case(name="svt 3", run=runs.svt3, sound=runs.svt1, odds=laws.svt3, true=1.837,
         extreme=((False, False, False, 1.0),)),
    Case(name="svt 4", run=runs.svt4, sound=runs.svt1_half,
         odds=lambda y: laws.svt(y, 5, 8.0, 8 / 3), true=2.637,
         extreme=(tuple([False] * 5 + [True] * 4),), claim=HALF),
    Case(name="svt 5", run=runs.svt5, sound=runs.svt1, odds=laws.svt5, true=INF,
         extreme=((True, False),)),
    Case(name="svt 6", run=runs.svt6, sound=runs.svt1, odds=laws.svt, true=4.031,
         extreme=(tuple([False] * 5 + [True] * 5),)),
    Case(name="stability, threshold on the truth", run=runs.true_threshold, sound=runs.one_of_two,
         odds=lambda y: INF if y else -INF, true=INF, extreme=({},), records=PERSON,
         claim=STABLE, absent=True),
    Case(name="stability, threshold too low", run=runs.only_one_low, sound=runs.only_one,
         odds=laws.only_one_low, true=INF, extreme=({"rare": 3.0},), records=PERSON, claim=STABLE,
         absent=True),
    Case(name="shuffled, not sampled", run=runs.shuffled_steps, sound=runs.poisson_steps,
         odds=laws.shuffled, true=2.899, extreme=(), records=PERSON, claim=TRAINED, absent=True),
)  # fmt: skip
