"""Table releases: which of them are a known mechanism, and the own risk of everybody else.

A single number (one count, one sum) is additive noise on a line. So is Gaussian noise if only two
contributions differ: all it says lies in the direction of their difference. One table of counts
with geometric noise tells of every cell only whether the output is positive, since all positive
outputs have the same ratio, and so have all others: it is a symmetric unary encoding.

Otherwise draws. For the own risk of all records at once, with ``w_z = p_z/pbar``,

    TV(P_z, pbar) = E_{o ~ pbar} [ (1 - w_z(o))_+ ] ,

the mean of a number in [0, 1], so that the empirical Bernstein bound of Maurer and Pontil (2009)
holds for every record, at the confidence divided by their number. O(n K) for K different records.

If keys come from the data (`mechanisms/tables/keys.py`), the risk is at most a weighted mean: of
these tables, and of tables without noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.exact.posterior import CACHED, expanded
from dprad.exact.solution import Sampling, Solution
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.tables.published import Published
from dprad.mechanisms.unary import SUE
from dprad.numerics.arrays import Column, FloatArray
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# About how many likelihoods are computed for own risks, and the fewest draws.
WORK, FEWEST = 1e8, 1_000
# e to minus this is zero beside any probability.
CERTAIN = 700.0
Simple = tuple[Any, Column]


def as_line(mechanism: Published) -> Simple | None:
    """The same noise on one number, and that number for every different record; None if it is not.

    Exact: the line's solver answers.
    """
    parts = [part for part in mechanism.parts if not part.noise.silent]
    gaussian = all(part.noise.kind == "gaussian" for part in parts)
    if len(parts) == 1 and parts[0].cells == parts[0].times == 1:
        part = parts[0]
        values = part.value[part.place]
        if part.noise.whole:
            values = np.rint(values)
        return part.noise.line(float(values.max() - values.min()) or 1.0), values
    if gaussian and mechanism.kinds == 2:
        squares = [_distance(part) / part.noise.scale**2 for part in parts]
        apart = float(np.sqrt(sum(squares)))
        return type(parts[0].noise.line())(sigma=1.0, sensitivity=apart), np.array([0.0, apart])
    return None


def _distance(part: Any) -> float:
    """The squared distance of the two contributions to a table."""
    (one, two), (x, y) = part.cell[part.place], part.value[part.place]
    return float((x - y) ** 2 if one == two else x**2 + y**2)


def as_unary(mechanism: Published) -> Simple | None:
    """The unary encoding that says the same, and what it reads from every different record."""
    part = mechanism.parts[0]
    counts = bool(np.all(part.value[part.place] == 1.0))
    if len(mechanism.parts) > 1 or part.noise.kind != "geometric" or part.times > 1 or not counts:
        return None
    return SUE(epsilon=2.0 / part.noise.scale, size=part.cells), part.cell[part.place]


def told(mechanism: Published) -> GRR:
    """The tables without noise: which of the different records it is."""
    return GRR(epsilon=CERTAIN, size=mechanism.kinds)


def either(one: Solution, other: Solution, chance: float) -> Solution:
    """The risk if the attacker sees one output, or with this chance the other, and which it is.

    An upper bound of tables with keys from the data, unless drawn; then its interval holds.
    """

    def mean(x: float, y: float) -> float:
        return (1.0 - chance) * x + chance * y

    ends = [s.interval or (s.rad, s.rad) for s in (one, other)]
    high = mean(ends[0][1], ends[1][1])
    bound = one.kind != "estimate"
    return Solution(
        rad=high if bound else mean(one.rad, other.rad),
        success_out=mean(one.success_out, other.success_out),
        rero=mean(one.rero, other.rero),
        method=f"{one.method}; keys of one person shown with probability {chance:.2g}",
        kind="upper-bound" if bound else one.kind,
        interval=(0.0 if bound else ends[0][0], high),
    )


def drawn(
    mechanism: Published, points: Column, mass: FloatArray, sampling: Sampling
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Own risks of these records, with bounds that hold for all at once."""
    n = int(min(sampling.trials, max(FEWEST, WORK / len(points))))
    step = max(1, block(CACHED) // max(len(points), mechanism.width))
    rng = np.random.default_rng(np.random.SeedSequence(sampling.seed, spawn_key=(1, 0)))
    total, square = np.zeros(len(points)), np.zeros(len(points))
    for a in range(0, n, step):
        count = min(step, n - a)
        outputs = mechanism.sample(points[rng.choice(len(points), size=count, p=mass)], rng)
        odds = mechanism.log_likelihood(expanded(outputs), points)
        odds -= odds.max(axis=1, keepdims=True)
        np.exp(odds, out=odds)
        odds /= (odds @ mass)[:, None]
        short = np.clip(1.0 - odds, 0.0, 1.0, out=odds)
        total += short.sum(axis=0)
        square += np.einsum("ij,ij->j", short, short)
        tell("draws", a + count, n)
    mean = total / n
    variance = np.maximum(square - n * mean**2, 0.0) / (n - 1)
    # log(2/delta) for each side, shared by all records
    level = np.log(4.0 * len(points) / max(1.0 - sampling.confidence, 1e-300))
    error = np.sqrt(2 * variance * level / n) + 7 * level / (3 * (n - 1))
    return mean, np.maximum(mean - error, 0.0), np.minimum(mean + error, 1.0)
