"""RAD of a known mechanism (Theorem 2 of the paper): the most exact solver that fits its type."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact import grr, support
from dprad.exact.channel import Joint, shares, sum_by_likelihood, sum_over_outputs
from dprad.exact.continuous import solve_continuous
from dprad.exact.envelope import solve_laplace
from dprad.exact.integers import solve_whole
from dprad.exact.line import solve_density, solve_gaussian
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling, Solution
from dprad.exact.stepwise import solve_steps
from dprad.game.game import Game
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.density import Density
from dprad.mechanisms.exponential import Exponential, ExponentialInterval
from dprad.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.hashing import BLH, OLH
from dprad.mechanisms.histogram import THE
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.staircase import Staircase
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.unary import OUE, SUE, UnaryEncoding
from dprad.numerics.arrays import FloatArray, IntArray

_NOTHING = "the output says nothing"

__all__ = ["Sampling", "Solution", "solve", "solve_continuous"]


@singledispatch
def solve(
    mechanism: Any,
    game: Game,
    read: Any,
    pi: FloatArray,
    sampling: Sampling,
) -> Solution:
    """The best attack on `mechanism`: record z has probability pi[z] and is read as read[z]."""
    if hasattr(mechanism, "log_likelihood") and hasattr(mechanism, "sample"):
        return estimate(mechanism, game, read, pi, sampling)
    raise DpradError(
        f"{type(mechanism).__name__} has no likelihood, so its risk cannot be computed. Assess its "
        "promise (assess(dprad.PureDP(...), ...)), or simulate an attack on it (dprad.simulate)."
    )


@solve.register
def _channel(
    mechanism: Channel, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    return _matrix(mechanism.matrix, game, codes, pi, "sum over the channel")


def _matrix(
    matrix: FloatArray, game: Game, codes: IntArray, pi: FloatArray, method: str
) -> Solution:
    def entries(rows: slice | IntArray, columns: slice) -> FloatArray:
        return np.asarray(matrix[rows, columns])

    return sum_by_likelihood(entries, matrix.shape[1], game, codes, pi, len(matrix), method)


@solve.register
def _exponential(
    mechanism: Exponential, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    return _channel(mechanism.channel, game, codes, pi, sampling)


@solve.register
def _hadamard(
    mechanism: HadamardResponse, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    values = np.arange(mechanism.size)

    def entries(rows: slice | IntArray, columns: slice) -> FloatArray:
        outputs = np.arange(columns.start, columns.stop)
        return np.exp(mechanism.log_likelihood(outputs, values[rows][:, None]))

    method = "sum over the codewords"
    size = mechanism.size
    return sum_by_likelihood(entries, mechanism.outputs, game, codes, pi, size, method)


@solve.register
def _grr(
    mechanism: GRR, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    closed = grr.closed_form(mechanism, game, codes, pi)
    if closed is None:
        closed = support.closed_form(mechanism, game, codes, pi)
    if closed is not None:
        return closed
    joint = shares(game, codes, pi, mechanism.size)[0]
    read = np.bincount(codes, weights=pi, minlength=mechanism.size)
    lies = mechanism.lie * game.probabilities[:, None]  # type: ignore[index]

    def block(rows: slice | IntArray, columns: slice) -> FloatArray:
        return np.asarray(lies[rows] + mechanism.gap * joint[rows][:, columns].toarray())

    pbar = mechanism.lie + mechanism.gap * read
    return sum_over_outputs(Joint(pbar, block), game, "sum over the outputs of GRR")


@solve.register(UnaryEncoding)
@solve.register(OUE)
@solve.register(SUE)
@solve.register(THE)
@solve.register(SubsetSelection)
@solve.register(OLH)
@solve.register(BLH)
def _support(
    mechanism: Any, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    closed = support.closed_form(mechanism, game, codes, pi)
    if closed is not None:
        return closed
    matrix = support.enumerated(mechanism)
    if matrix is None:
        return estimate(mechanism, game, codes, pi, sampling)
    return _matrix(matrix, game, codes, pi, "sum over all support sets")


@solve.register
def _composed(
    mechanism: Composed, game: Game, read: Any, pi: FloatArray, sampling: Sampling
) -> Solution:
    if len(mechanism.mechanisms) == 1:
        return solve(mechanism.mechanisms[0], game, read, pi, sampling)
    return estimate(mechanism, game, read, pi, sampling)


@solve.register
def _laplace(
    mechanism: Laplace, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    # subtract first: what is left of a difference after scaling is rounded
    return solve_laplace(game, mechanism.scaled(values), pi)


@solve.register
def _exponential_interval(
    mechanism: ExponentialInterval,
    game: Game,
    values: FloatArray,
    pi: FloatArray,
    sampling: Sampling,
) -> Solution:
    low, high = mechanism.bounds
    ends = np.array([0.0, high - low]) * mechanism.rate
    if ends[1] < 1e-300:
        # it says nothing, and heights in units of the noise would overflow
        return _matrix(np.ones((1, 1)), game, np.zeros(len(pi), dtype=np.intp), pi, _NOTHING)
    scaled = (values - low) * mechanism.rate
    return solve_laplace(game, scaled, pi, height=1.0 / mechanism.total(values), ends=ends)


@solve.register
def _gaussian(
    mechanism: Gaussian, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    found = solve_gaussian(mechanism, game, values, pi)
    return found or estimate(mechanism, game, values, pi, sampling)


@solve.register
def _density(
    mechanism: Density, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    found = solve_density(mechanism, game, values, pi)
    return found or estimate(mechanism, game, values, pi, sampling)


@solve.register(Geometric)
@solve.register(DiscreteGaussian)
def _whole(
    mechanism: Geometric | DiscreteGaussian,
    game: Game,
    values: FloatArray,
    pi: FloatArray,
    sampling: Sampling,
) -> Solution:
    return solve_whole(mechanism, game, values, pi)


@solve.register(Staircase)
@solve.register(Duchi)
@solve.register(Piecewise)
@solve.register(Hybrid)
def _steps(
    mechanism: Any, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    return solve_steps(mechanism, game, values, pi)
