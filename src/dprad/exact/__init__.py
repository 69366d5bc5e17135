"""RAD of a known mechanism (Theorem 2 of the paper): the most exact solver that fits its family."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact import between, grr, memoised, support, took_part
from dprad.exact.bells import solve_bells
from dprad.exact.channel import Joint, Law, shares, sum_by_likelihood, sum_in_parts
from dprad.exact.collapse import collapsed
from dprad.exact.continuous import solve_continuous
from dprad.exact.hadamard import solve_hadamard
from dprad.exact.integers import solve_whole
from dprad.exact.laplace import solve_geometric, solve_laplace
from dprad.exact.line import solve_density, solve_gaussian
from dprad.exact.posterior import estimate
from dprad.exact.products import solve_composed
from dprad.exact.solution import Sampling, Solution
from dprad.exact.stepwise import solve_steps
from dprad.exact.tables import as_line, as_unary, either, told
from dprad.game.question import Posed
from dprad.mechanisms.additive import WholeNoise
from dprad.mechanisms.attributes.smp import SMP
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.categorical import Finite
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.density import Density
from dprad.mechanisms.exponential import CutLaplace, Exponential
from dprad.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.listed import Listed
from dprad.mechanisms.over_time.base import Memoised
from dprad.mechanisms.staircase import Staircase
from dprad.mechanisms.support import SupportMechanism
from dprad.mechanisms.tables.published import Published
from dprad.numerics.arrays import FloatArray, IntArray, distinct

_NOTHING = "the output is independent of the record"

__all__ = ["Sampling", "Solution", "solve", "solve_continuous"]


@singledispatch
def solve(mechanism: Mechanism, posed: Posed, sampling: Sampling) -> Solution:
    """The best attack on `mechanism`, which reads ``posed.read[z]`` of record z."""
    if mechanism.likelihood:
        return estimate(mechanism, posed.game, posed.read, posed.pi, sampling)
    kind = mechanism.describe()["kind"]
    raise DpradError(
        f"{kind} has no likelihood, so its risk cannot be computed. Assess its promise "
        "(assess(dprad.PureDP(...), ...)), or simulate an attack on it (dprad.simulate)."
    )


@solve.register
def _finite(mechanism: Finite, posed: Posed, sampling: Sampling) -> Solution:
    posed = collapsed(posed)
    law = Law(mechanism.count, mechanism.part, mechanism.light)
    return sum_by_likelihood(
        law, posed.game, posed.read, posed.pi, mechanism.size, mechanism.method
    )


@solve.register
def _hadamard(mechanism: HadamardResponse, posed: Posed, sampling: Sampling) -> Solution:
    solution = solve_hadamard(mechanism, posed.game, posed.read, posed.pi)
    return solution or _finite(mechanism, posed, sampling)


@solve.register
def _exponential(mechanism: Exponential, posed: Posed, sampling: Sampling) -> Solution:
    return _finite(mechanism.channel, posed, sampling)


@solve.register
def _grr(mechanism: GRR, posed: Posed, sampling: Sampling) -> Solution:
    game, codes, pi = posed.game, posed.read, posed.pi
    closed = grr.closed_form(mechanism, game, codes, pi)
    if closed is None:
        closed = support.closed_form(mechanism, game, codes, pi)
    if closed is not None:
        return closed
    joint = shares(game, codes, pi, mechanism.size)[0].tocsc()
    pbar = mechanism.lie + mechanism.gap * np.bincount(codes, pi, minlength=mechanism.size)
    lies = mechanism.lie * game.probabilities[:, None]

    def part_of(part: slice) -> Joint:
        some = joint[:, part].tocsr()

        def block(rows: slice | IntArray, columns: slice) -> FloatArray:
            return np.asarray(lies[rows] + mechanism.gap * some[rows][:, columns].toarray())

        return Joint(pbar[part], block)

    method = "sum over the outputs of GRR"
    return sum_in_parts(part_of, mechanism.size, mechanism.size, game, method, light=True)


@solve.register
def _support(mechanism: SupportMechanism, posed: Posed, sampling: Sampling) -> Solution:
    closed = support.closed_form(mechanism, posed.game, posed.read, posed.pi)
    if closed is not None:
        return closed
    matrix = support.enumerated(mechanism)
    if matrix is None:
        return estimate(mechanism, posed.game, posed.read, posed.pi, sampling)
    return _matrix(matrix, posed, "sum over all support sets")


def _matrix(matrix: FloatArray, posed: Posed, method: str) -> Solution:
    law = Law.table(matrix)
    return sum_by_likelihood(law, posed.game, posed.read, posed.pi, len(matrix), method)


@solve.register
def _listed(mechanism: Listed, posed: Posed, sampling: Sampling) -> Solution:
    if mechanism.alike is not None:
        return solve(mechanism.alike, posed, sampling)
    points, place = distinct(posed.read)
    if mechanism.outcomes * len(points) > support.MAX_ENTRIES:
        return estimate(mechanism, posed.game, posed.read, posed.pi, sampling)
    matrix = mechanism.matrix(points)
    return _matrix(matrix, Posed(posed.game, place), "sum over all outcomes")


@solve.register
def _one_of_many(mechanism: SMP, posed: Posed, sampling: Sampling) -> Solution:
    """The output names the attribute: an average."""
    values, parts = mechanism.values(posed.read), mechanism.parts
    # all intervals hold at once, so that their average does
    sampling = replace(sampling, confidence=1 - (1 - sampling.confidence) / len(parts))
    found = [solve(part, Posed(posed.game, values[:, j]), sampling) for j, part in enumerate(parts)]
    kinds = [s.kind for s in found]
    ends = [s.interval or (s.rad, s.rad) for s in found]
    return Solution(
        rad=float(np.mean([s.rad for s in found])),
        success_out=float(np.mean([s.success_out for s in found])),
        rero=float(np.mean([s.rero for s in found])),
        method=f"average over the attributes ({found[0].method})",
        kind="estimate" if "estimate" in kinds else "exact",
        interval=(float(np.mean([e[0] for e in ends])), float(np.mean([e[1] for e in ends]))),
    )


@solve.register
def _memoised(mechanism: Memoised, posed: Posed, sampling: Sampling) -> Solution:
    """In closed form or by listing everything, else between two protocols with one report."""
    if mechanism.alike is not None:
        return _listed(mechanism, posed, sampling)
    closed = memoised.closed_form(mechanism, posed.game, posed.read, posed.pi)
    if closed is not None:
        return closed
    if mechanism.outcomes * len(np.unique(posed.read)) <= support.MAX_ENTRIES:
        return _listed(mechanism, posed, sampling)

    def single(simple: SupportMechanism) -> Solution | None:
        if isinstance(simple, GRR):
            return _grr(simple, posed, sampling)
        return support.closed_form(simple, posed.game, posed.read, posed.pi)

    ends = between.enclosed(mechanism, single)
    around = between.both(ends, took_part.enclosed(mechanism, posed.game, posed.read, posed.pi))
    if around is not None and between.close(around):
        return around
    drawn = estimate(mechanism, posed.game, posed.read, posed.pi, sampling)
    return drawn if around is None else between.within(drawn, around)


@solve.register
def _composed(mechanism: Composed, posed: Posed, sampling: Sampling) -> Solution:
    return solve_composed(mechanism, posed, sampling, solve)


@solve.register
def _tables(mechanism: Published, posed: Posed, sampling: Sampling) -> Solution:
    if mechanism.shown:
        hidden = solve(replace(mechanism, shown=0.0), posed, sampling)
        return either(hidden, solve(told(mechanism), posed, sampling), mechanism.shown)
    if mechanism.kinds == 1 or mechanism.silent:
        silent = Posed(posed.game, np.zeros(len(posed.pi), dtype=np.intp))
        return _matrix(np.ones((1, 1)), silent, _NOTHING)
    simple = as_line(mechanism) or as_unary(mechanism)
    if simple is not None:
        alone, values = simple
        return solve(alone, Posed(posed.game, values[posed.read]), sampling)
    return estimate(mechanism, posed.game, posed.read, posed.pi, sampling)


@solve.register
def _laplace(mechanism: Laplace, posed: Posed, sampling: Sampling) -> Solution:
    # subtract first: a difference taken after scaling is rounded
    return solve_laplace(posed.game, mechanism.scaled(posed.read), posed.pi)


@solve.register
def _cut_laplace(mechanism: CutLaplace, posed: Posed, sampling: Sampling) -> Solution:
    low, high = mechanism.bounds
    ends = np.array([0.0, high - low]) * mechanism.rate
    if ends[1] < 1e-300:
        # the output is uninformative, and heights in units of the noise would overflow
        silent = Posed(posed.game, np.zeros(len(posed.pi), dtype=np.intp))
        return _matrix(np.ones((1, 1)), silent, _NOTHING)
    scaled = (posed.read - low) * mechanism.rate
    height = 1.0 / mechanism.total(posed.read)
    return solve_laplace(posed.game, scaled, posed.pi, height=height, ends=ends)


@solve.register
def _gaussian(mechanism: Gaussian, posed: Posed, sampling: Sampling) -> Solution:
    posed = collapsed(posed)
    solution = solve_gaussian(mechanism, posed.game, posed.read, posed.pi)
    return solution or estimate(mechanism, posed.game, posed.read, posed.pi, sampling)


@solve.register
def _density(mechanism: Density, posed: Posed, sampling: Sampling) -> Solution:
    posed = collapsed(posed)
    solution = solve_density(mechanism, posed.game, posed.read, posed.pi)
    return solution or estimate(mechanism, posed.game, posed.read, posed.pi, sampling)


@solve.register
def _geometric(mechanism: Geometric, posed: Posed, sampling: Sampling) -> Solution:
    solution = solve_geometric(posed.game, posed.read, posed.pi, mechanism.rate)
    return solution or _whole(mechanism, posed, sampling)


@solve.register
def _discrete_gaussian(mechanism: DiscreteGaussian, posed: Posed, sampling: Sampling) -> Solution:
    fewer = collapsed(posed)
    solution = solve_bells(mechanism, fewer.game, fewer.read, fewer.pi)
    return solution or _whole(mechanism, posed, sampling)


@solve.register
def _whole(mechanism: WholeNoise, posed: Posed, sampling: Sampling) -> Solution:
    posed = collapsed(posed)
    return solve_whole(mechanism, posed.game, posed.read, posed.pi)


@solve.register(Staircase)
@solve.register(Duchi)
@solve.register(Piecewise)
@solve.register(Hybrid)
def _steps(mechanism: Any, posed: Posed, sampling: Sampling) -> Solution:
    posed = collapsed(posed)
    return solve_steps(mechanism, posed.game, posed.read, posed.pi)
