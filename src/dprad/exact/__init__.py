"""RAD of a known mechanism (Theorem 2 of the paper): the most exact solver that fits its type."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.arrays import FloatArray, IntArray
from dprad.errors import DpradError
from dprad.exact import grr, support
from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.envelope import solve_laplace
from dprad.exact.line import solve_gaussian
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling, Solution
from dprad.games import Game
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.gaussian import Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hashing import BLH, OLH
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.unary import OUE, SUE, UnaryEncoding

# Outputs of a geometric mechanism that are summed one by one.
MAX_SPAN = 10_000_000

__all__ = ["Sampling", "Solution", "solve"]


@singledispatch
def solve(
    mechanism: Any,
    game: Game,
    read: Any,
    pi: FloatArray,
    sampling: Sampling,
) -> Solution:
    """The best attack on `mechanism`: record z has probability pi[z] and is read as read[z]."""
    raise DpradError(
        "assess takes a guarantee (such as dprad.PureDP) or a mechanism (such as "
        f"dprad.mechanisms.GRR), but got a {type(mechanism).__name__}."
    )


@solve.register
def _channel(
    mechanism: Channel, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    matrix = mechanism.matrix
    shares, code_of = _shares(game, codes, pi, mechanism.size)
    pbar = np.bincount(codes, weights=pi, minlength=mechanism.size) @ matrix
    mass = game.probabilities[:, None]  # type: ignore[index]

    def mixed(rows: slice | IntArray, columns: slice) -> FloatArray:
        return np.asarray(shares[rows] @ matrix[:, columns])

    def straight(rows: slice | IntArray, columns: slice) -> FloatArray:
        return np.asarray(mass[rows] * matrix[rows, columns])

    def picked(rows: slice | IntArray, columns: slice) -> FloatArray:
        assert code_of is not None
        return np.asarray(mass[rows] * matrix[code_of[rows], columns])

    if code_of is None:
        block = mixed
    else:
        block = straight if np.array_equal(code_of, np.arange(mechanism.size)) else picked
    return sum_over_outputs(Joint(pbar, block), game, "exact sum over the channel")


@solve.register
def _grr(
    mechanism: GRR, game: Game, codes: IntArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    closed = grr.closed_form(mechanism, game, codes, pi)
    if closed is None:
        closed = support.closed_form(mechanism, game, codes, pi)
    if closed is not None:
        return closed
    shares = _shares(game, codes, pi, mechanism.size)[0]
    read = np.bincount(codes, weights=pi, minlength=mechanism.size)
    lies = mechanism.lie * game.probabilities[:, None]  # type: ignore[index]

    def block(rows: slice | IntArray, columns: slice) -> FloatArray:
        return np.asarray(lies[rows] + mechanism.gap * shares[rows][:, columns].toarray())

    pbar = mechanism.lie + mechanism.gap * read
    return sum_over_outputs(Joint(pbar, block), game, "exact sum over the outputs of GRR")


@solve.register(UnaryEncoding)
@solve.register(OUE)
@solve.register(SUE)
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
    return replace(
        _channel(Channel(matrix), game, codes, pi, sampling),
        method="exact sum over all support sets",
    )


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
def _gaussian(
    mechanism: Gaussian, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    found = solve_gaussian(mechanism.sigma, mechanism.clamp, game, values, pi)
    return found or estimate(mechanism, game, values, pi, sampling)


@solve.register
def _geometric(
    mechanism: Geometric, game: Game, values: FloatArray, pi: FloatArray, sampling: Sampling
) -> Solution:
    """A channel: every whole number between the outermost values, and one output beyond each."""
    points, place = np.unique(values[pi > 0] - values[pi > 0].min(), return_inverse=True)
    codes = np.zeros(len(pi), dtype=np.intp)
    codes[pi > 0] = place
    rate, ratio, span = mechanism.rate, mechanism.ratio, float(points[-1])
    if span == 0 or rate == 0:
        return _channel(Channel(np.ones((len(points), 1))), game, codes, pi, sampling)
    if span > MAX_SPAN:
        raise DpradError(
            f"Geometric over a range of {span:g} has too many outputs to sum. Laplace with the "
            "same parameters has nearly the same risk."
        )
    shares, code_of = _shares(game, codes, pi, len(points))
    mass = game.probabilities[:, None]  # type: ignore[index]

    def likelihood(which: FloatArray, columns: slice) -> FloatArray:
        t = np.arange(columns.start, columns.stop, dtype=float)
        p = np.exp(-rate * np.abs(which[:, None] - t)) / (1.0 + ratio)
        # the outermost columns stand for all that lies beyond as well
        p[:, (t > 0) & (t < span)] *= -np.expm1(-rate)
        return np.asarray(p)

    def block(rows: slice | IntArray, columns: slice) -> FloatArray:
        if code_of is not None:
            return np.asarray(mass[rows] * likelihood(points[code_of[rows]], columns))
        return np.asarray(shares[rows] @ likelihood(points, columns))

    read = np.bincount(codes, weights=pi, minlength=len(points))
    outputs = int(span) + 1
    step = max(1, 2**20 // len(points))
    parts = [slice(a, min(a + step, outputs)) for a in range(0, outputs, step)]
    pbar = np.concatenate([read @ likelihood(points, part) for part in parts])
    return sum_over_outputs(Joint(pbar, block), game, "exact sum over whole numbers")


def _shares(game: Game, codes: IntArray, pi: FloatArray, size: int) -> tuple[Any, IntArray | None]:
    """Sparse joint probabilities, classes x codes; and the code of each class if it has one."""
    from scipy import sparse

    assert game.class_of is not None and game.probabilities is not None
    kept = np.flatnonzero(game.class_of >= 0)
    shares = sparse.csr_array(
        (pi[kept], (game.class_of[kept], codes[kept])), shape=(len(game.probabilities), size)
    )
    shares.sum_duplicates()
    single = bool(np.all(np.diff(shares.indptr) == 1))
    return shares, shares.indices.astype(np.intp) if single else None
