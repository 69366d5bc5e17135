"""Theorem 2 in posterior form: any mechanism with a likelihood, compositions included.

    RAD* = E_{o ~ pbar} [ sum_x max(0, max_g sum_{z in S(g) & fiber x} ( pi(z | o) - pi(z) )) ]

Draw a record from the prior and an output of the mechanism, and average the bracket, which lies in
[0, 1]: an unbiased estimate with a valid confidence interval, and far less variance than counted
successes. (The paper's table says that Theorem 2 does not compose; in this form it does.) For a
group the record is drawn from it, and the bracket divided by the posterior of the group, which it
never exceeds.

O(n (m + members of the success relation)) for n draws; memory a few blocks per worker. Every block
has its own random numbers, so the number of workers does not change the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dprad.exact.channel import made_of, nearly
from dprad.exact.likelihood import DRAWS, LEAST, OTHERS, believe, believed, check, sound
from dprad.exact.solution import Sampling, Solution
from dprad.game.game import Classes
from dprad.game.sets import starts
from dprad.numerics.arrays import HEAVY, FloatArray, gains
from dprad.numerics.intervals import betting
from dprad.runtime.memory import block
from dprad.runtime.progress import tell
from dprad.runtime.workers import stream

# Likelihoods of a task, those that fit a fast cache, and draws per task.
BLOCK_ENTRIES = 2**20
CACHED = 2**18
BLOCK_DRAWS = 2**13
# To find how many draws an aim needs: draws, their place among the streams of random numbers, a
# margin for what they say about the spread, and the most likelihoods that are computed.
PILOT, _PILOT, MARGIN, MOST_ENTRIES = 2_000, 2**31, 1.1, 2**25
# The place of the draws that the likelihood is checked with, and how many values are drawn from.
_CHECK, FEW = 2**31 + 1, 14
# Numbers of the outputs of one value in that check.
LARGE = 2**22


def estimate(
    mechanism: Any, game: Classes, read: Any, pi: FloatArray, sampling: Sampling
) -> Solution:
    """The average bracket over `sampling.trials` draws, or as many as the aim needs."""
    sets = game.sets
    if len(sets.mass) == 0:
        return Solution(rad=0.0, success_out=0.0, rero=0.0, method="no guess is ever right")
    weight, points = game.at_values(read, pi)
    value_mass = np.asarray(weight[game.asked].sum(axis=0)).reshape(-1)
    value_mass /= value_mass.sum()

    def draw(index: int, n: int) -> FloatArray:
        rng = np.random.default_rng(np.random.SeedSequence(sampling.seed, spawn_key=(index,)))
        drawn = rng.choice(len(points), size=n, p=value_mass)
        outputs = mechanism.sample(points[drawn], rng)
        few = max(1, block(CACHED) // width)
        some = (expanded(part(outputs, slice(a, a + few))) for a in range(0, n, few))
        logs = (sound(mechanism.log_likelihood(o, points)) for o in some)
        return np.concatenate([brackets(game, weight, log) for log in logs], axis=1)

    if not believed(mechanism, points):
        check(_drawn(mechanism, points, value_mass, sampling.seed))
        believe(mechanism, points)
    width = max(len(points), len(sets.mass), len(game.probabilities), mechanism.width)
    # independent of the memory limit, so that it does not change the draws
    step = max(1, min(BLOCK_DRAWS, BLOCK_ENTRIES // width))
    trials = sampling.trials
    if sampling.aim is not None and sampling.confidence < 1 and not mechanism.costly:
        # how many, from draws that are not used again
        spread = float(draw(_PILOT, PILOT)[0].var())
        wanted = 2 * np.log(2 / (1 - sampling.confidence)) * spread / sampling.aim**2
        trials = max(trials, int(min(MARGIN * wanted, MOST_ENTRIES // width)))
    plan = [min(step, trials - a) for a in range(0, trials, step)]
    method = f"posterior Monte Carlo, {trials:,} draws"
    blocks, done = [], 0
    for drawn in stream(draw, list(enumerate(plan)), sampling.workers, threads=True):
        blocks.append(drawn)
        done += drawn.shape[1]
        tell("draws", done, trials)
    gain, luck, hits = np.concatenate(blocks, axis=1)
    interval = betting(gain, sampling.confidence)
    if game.forced is not None:  # somebody who must guess may lose
        low, high = betting((1.0 + gain) / 2, sampling.confidence)
        interval = (max(0.0, 2 * low - 1), 2 * high - 1)
    share = game.share
    return Solution(
        rad=share * float(gain.mean()),
        success_out=share * float(luck.mean()),
        rero=share * float(hits.mean()),
        method=method,
        kind="estimate",
        interval=(share * interval[0], share * interval[1]),
    )


def _drawn(
    mechanism: Any, points: Any, mass: FloatArray, seed: int
) -> Iterator[tuple[Any, FloatArray]]:
    """Outputs of some values, and their log-likelihoods: of all values if they are few, else of the
    ends, the likeliest, and some at random. Of large outputs fewer are drawn.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_CHECK,)))
    few = np.arange(len(points))
    if len(few) > FEW:
        likeliest = np.argpartition(-mass, 2)[:3]
        few = np.unique(np.r_[0, 1, len(points) - 1, likeliest, rng.choice(few, FEW - 6)])
    one = mechanism.sample(points[:1], rng)
    size = sum(np.asarray(o).size for o in (one if isinstance(one, tuple) else (one,)))
    most = max(block(LARGE) // max(size, 1), LEAST)
    for place in few:
        draws = min(DRAWS if place in (0, 1, few[-1]) else OTHERS, most)
        outputs = mechanism.sample(points[np.full(draws, place)], rng)
        log = mechanism.log_likelihood(expanded(outputs), points[few])
        yield outputs, sound(log)


def brackets(game: Classes, weight: Any, log: FloatArray) -> FloatArray:
    """Rows for the draws with log-likelihoods `log` (draws x values): three terms in [0, 1] each.

    The bracket above; the success on an absent person of the attack that attains it; the success of
    the attack that maximises just that. `weight` (classes x values) is from ``Game.at_values``.
    """
    sets = game.sets
    begin = starts(sets.fiber)
    # the posterior of the values, then of the classes: columns are draws
    odds = np.exp(log - log.max(axis=1, keepdims=True)).T
    posterior = np.asarray(weight @ odds)
    total = posterior.sum(axis=0)
    posterior /= total
    hit = sets.sums(posterior)
    if game.probabilities.max() > HEAVY:
        gain = sets.sums(gains(posterior.copy(), game.probabilities, np.ones(len(total))))
    else:
        gain = hit - sets.mass[:, None]
    best = np.maximum.reduceat(gain, begin, axis=0)
    near = nearly(best, made_of(game, begin), np.ones(len(total)))
    floor = best - near
    if len(begin) > 1:
        floor = np.repeat(floor, np.diff(np.r_[begin, len(gain)]), axis=0)
    named = np.where(gain >= floor, sets.mass[:, None], 0.0)
    chosen = np.maximum.reduceat(named, begin, axis=0)
    guess = best > near if game.membership else best >= -near
    must = game.must(sets.fiber[begin])
    terms = [
        np.where(must, best, np.maximum(best, 0.0)).sum(axis=0),
        np.where(guess | must, chosen, 0.0).sum(axis=0),
        np.maximum.reduceat(hit, begin, axis=0).sum(axis=0),
    ]
    # rounding may push a term slightly out of [0, 1]
    least = 0.0 if game.forced is None else -1.0
    if game.share == 1.0:
        return np.asarray(np.clip(np.stack(terms), least, 1.0))
    return np.asarray(np.clip(np.stack(terms) / posterior[game.asked].sum(axis=0), 0.0, 1.0))


def part(outputs: Any, some: Any) -> Any:
    """Some of the outputs; those of a composition are a tuple."""
    return tuple(part(o, some) for o in outputs) if isinstance(outputs, tuple) else outputs[some]


def expanded(outputs: Any) -> Any:
    """Outputs with a new axis for the values they are compared with."""
    if isinstance(outputs, tuple):
        return tuple(expanded(o) for o in outputs)
    return np.asarray(outputs)[:, None]
