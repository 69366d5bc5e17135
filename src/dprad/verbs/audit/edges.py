"""Edges: beyond some value of a coordinate, outputs are from one record (nearly) only.

Noise that is cut off, or a range that follows the data, speaks in few outputs: the largest and the
smallest. Each end of a coordinate may have such an edge, at any rank, few outputs more likely than
many; all of this is averaged, given what is predicted elsewhere and as if ends of several
coordinates did not overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows
from dprad.verbs.audit.tables import columns, differing

# Coordinates that are looked at, the largest share of outputs beyond an edge, the chance beforehand
# that there is none at all, and how many outputs of the other record are thought to be missing.
ENDS, FARTHEST, NONE, SURE = 4, 0.12, 0.05, 0.05
# Edges that weigh less than this are left out.
LIGHT = 1e-4
LOG_PI, LOG_TWO = math.log(math.pi), math.log(2.0)


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """One end of a coordinate: where edges may be, their weights, and the chances beyond."""

    place: int
    sign: float
    cuts: FloatArray
    weights: FloatArray
    chances: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """`evidence`: how much likelier what was seen is with one edge or more than without any."""

    chosen: IntArray
    ends: tuple[_End, ...]
    evidence: float

    @classmethod
    def of(cls, rows: Rows, secret: IntArray, chance: FloatArray) -> Edges:
        """From outputs, and the chances of the second record without edges."""
        chosen = differing(rows.numbers, secret, ENDS)
        known = np.log(np.clip(np.where(secret == 1, chance, 1.0 - chance), 1e-15, 1.0))
        ends, total, without = [], 0.0, 0.0
        none = NONE ** (1.0 / max(2 * len(chosen), 1))
        for j, x in enumerate(columns(rows, chosen).T):
            for sign in (1.0, -1.0):
                found = _end(j, sign, x, secret, known, none)
                if found is not None:
                    end, gain = found
                    ends.append(end)
                    total += gain
                    without += math.log(none)
        some = total + math.log(max(-math.expm1(min(without - total, 0.0)), 1e-300))
        return cls(chosen, tuple(ends), some)

    def __call__(self, rows: Rows, chance: FloatArray) -> FloatArray:
        """Chances of the second record, from those without edges."""
        x = columns(rows, self.chosen)
        for end in self.ends:
            beyond = end.sign * x[:, [end.place]] > end.cuts
            chance = chance * (1.0 - beyond @ end.weights) + beyond @ (end.weights * end.chances)
        return chance


def _end(
    place: int, sign: float, x: FloatArray, secret: IntArray, known: FloatArray, none: float
) -> tuple[_End, float] | None:
    """Edges after 1, 2, ... outputs from this end, and how much likelier they make what was seen;
    nothing if no two outputs differ there. `none` is the chance beforehand that there is no edge.
    """
    value = np.where(np.isnan(x), -np.inf, sign * x)
    order = np.argsort(-value, kind="stable")
    value, n = value[order], np.arange(1, int(FARTHEST * len(x)) + 1)
    apart = value[n - 1] > value[n]
    if not apart.any():
        return None
    one, plain = np.cumsum(secret[order])[n - 1], np.cumsum(known[order])[n - 1]
    # of one record only (either, equally likely), or a coin of unknown chance
    pure = np.where((one == n) | (one == 0), -LOG_TWO, -np.inf)
    coin = betaln(one + 0.5, n - one + 0.5) - LOG_PI
    either = np.logaddexp(pure, coin)
    share = np.exp(pure - either)
    chance = share * (one + SURE) / (n + 2 * SURE) + (1.0 - share) * (one + 0.5) / (n + 1.0)
    log = np.where(apart, either - LOG_TWO - plain - np.log(n), -np.inf) - np.log((1.0 / n).sum())
    log = log + math.log1p(-none)
    total = float(np.logaddexp(np.logaddexp.reduce(log), math.log(none)))
    weight = np.exp(log - total)
    kept = weight > LIGHT
    with np.errstate(invalid="ignore"):
        cuts = (value[n - 1] / 2 + value[n] / 2)[kept]
    return _End(place, sign, cuts, weight[kept], chance[kept]), total
