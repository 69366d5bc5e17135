"""Promising priors for `worst_prior`, found on a sketch of the mechanism by exact derivatives.

A sketch is a channel p(o|z) over some outputs: all of them if they are few, else draws from every
record, each weighted by its chance. For a fixed attack (o names the records C_o) the extra risk

    RAD = sum_o [ sum_z pi_z C_oz p(o|z)  -  pi(C_o) pbar(o) ]

is quadratic in the prior, and the best attack does not move to first order, so its gradient is that
of RAD*. Ascent multiplies probabilities, so they stay positive and sum to one. What is found are
only candidates: their risk is assessed by the solver of the mechanism.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.posterior import expanded
from dprad.exact.support import enumerated
from dprad.game.game import Classes
from dprad.game.question import Question
from dprad.game.sets import starts
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.categorical import Finite
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.support import SupportMechanism
from dprad.numerics.arrays import FloatArray, IntArray

# Outputs of a sketch; most entries of one (outputs x records, outputs x sets).
OUTPUTS, ENTRIES = 2_000, 2**23
# Most values of which all support sets are listed.
LISTED = 11
# Most pairs that are compared, those from which the search climbs, and starts drawn at random.
PAIRS, KEPT, RANDOM = 500, 4, 24
# Steps of a first and of a full ascent, the share of all records in its start, and the gain at
# which it ends.
FIRST, STEPS, MIXED, ENOUGH = 30, 300, 0.1, 1e-10
# Records with less than this share of the likeliest may be left out.
RARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """A channel (outputs x records), success sets (x records) and where their fibers begin."""

    channel: FloatArray
    member: FloatArray
    begin: IntArray
    seed: int

    @classmethod
    def of(cls, mechanism: Mechanism, question: Question, seed: int) -> Sketch | None:
        """Of all records of a question; None if there is no likelihood, or too much of it."""
        game, size = question.game, question.prior.size or 0
        if not isinstance(game, Classes) or not mechanism.likelihood or mechanism.costly:
            return None
        if question.threat.must_guess or game.share < 1.0:
            return None  # whether there is a wrong guess depends on which records are possible
        if max(size, len(game.sets.mass)) * OUTPUTS > ENTRIES:
            return None
        member = game.sets.members(game.count)[:, game.class_of].astype(float)
        if not len(member):
            return None
        channel = _channel(mechanism, mechanism.read(question), seed)
        return cls(channel, member, starts(game.sets.fiber), seed)

    def at(self, prior: FloatArray) -> tuple[float, FloatArray]:
        """The extra risk, and its gradient. O(outputs x (records + members of sets))."""
        joint = self.channel * prior
        pbar = joint.sum(axis=1)
        gain = (joint - prior * pbar[:, None]) @ self.member.T
        best = np.maximum.reduceat(gain, self.begin, axis=1)
        size = np.diff(np.r_[self.begin, gain.shape[1]])
        run = np.repeat(np.arange(len(size)), size)
        chosen = (gain >= best[:, run]) & (gain > 0.0)
        # equally good sets are named equally often
        ties = np.add.reduceat(chosen, self.begin, axis=1)[:, run]
        named = (chosen / np.maximum(ties, 1)) @ self.member
        luck = named @ prior
        slope = ((named - luck[:, None]) * self.channel - named * pbar[:, None]).sum(axis=0)
        return float(np.maximum(best, 0.0).sum()), slope

    def climbed(self, prior: FloatArray, steps: int) -> tuple[float, FloatArray]:
        """The end of an ascent from a prior."""
        value, slope = self.at(prior)
        step = 1.0
        for _ in range(steps):
            moved = prior * np.exp(step * (slope - slope @ prior))
            moved /= moved.sum()
            risk, further = self.at(moved)
            if risk <= value:
                step /= 4.0
                if step < 1e-3:
                    break
                continue
            done = risk <= value * (1.0 + ENOUGH)
            prior, value, slope, step = moved, risk, further, 2.0 * step
            if done:
                break
        return value, prior

    def candidates(self, usual: list[FloatArray]) -> list[FloatArray]:
        """The best pairs, and ends of ascents from them, from typical priors and from random ones;
        also without their rare records: an ascent only comes near zero.
        """
        m = self.channel.shape[1]
        pairs = []
        for i, j in itertools.islice(_far_first(m), PAIRS):
            weight = np.zeros(m)
            weight[[i, j]] = 0.5
            pairs.append(weight)
        pairs = sorted(pairs, key=lambda w: -self.at(w)[0])[:KEPT]
        rng = np.random.default_rng(self.seed)
        drawn = [
            rng.dirichlet(np.full(m, share)) for share in (0.2, 1.0) for _ in range(RANDOM // 2)
        ]
        mixed = ((1.0 - MIXED) * w + MIXED / m for w in (*usual, *pairs, *drawn))
        ends = sorted((self.climbed(w, FIRST) for w in mixed), key=lambda end: -end[0])
        best = [self.climbed(w, STEPS)[1] for _, w in ends[:KEPT]]
        return [*pairs, *(_without(w, RARE) for w in best), *best]


def _without(prior: FloatArray, share: float) -> FloatArray:
    """Without records that are rarer than a share of the likeliest."""
    kept = np.where(prior < share * prior.max(), 0.0, prior)
    return np.asarray(kept / kept.sum())


def _far_first(m: int) -> list[tuple[int, int]]:
    """All pairs, the most distant first: of numbers these are the riskiest."""
    return sorted(itertools.combinations(range(m), 2), key=lambda pair: pair[0] - pair[1])


def _channel(mechanism: Any, read: Any, seed: int) -> FloatArray:
    """All outputs if they are few, else draws from every record, weighted by their chance."""
    few = mechanism.count if isinstance(mechanism, Finite) else 0
    few = mechanism.size if isinstance(mechanism, GRR) else few
    if 0 < few <= OUTPUTS:
        return np.asarray(np.exp(mechanism.log_likelihood(np.arange(few)[:, None], read)))
    if isinstance(mechanism, SupportMechanism):
        matrix = enumerated(mechanism) if mechanism.size <= LISTED else None
        if matrix is not None:
            return np.asarray(matrix[read].T)
    rng = np.random.default_rng(seed)
    drawn = np.resize(np.arange(len(read)), max(OUTPUTS, len(read)))
    log = mechanism.log_likelihood(expanded(mechanism.sample(read[drawn], rng)), read)
    odds = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.mean(axis=1, keepdims=True) / len(drawn))
