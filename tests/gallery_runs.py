"""The mechanisms of the gallery: functions run(record, rng), broken ones beside sound ones."""

from __future__ import annotations

import math

import numpy as np

import gallery_laws as laws

INF = math.inf


# -- additive noise --------------------------------------------------------------------------------
def laplace(record, rng, scale=1.0, times=1.0):
    """A number that moves by `times`."""
    return times * record + rng.laplace(0, scale)


def half_scale(record, rng):
    return laplace(record, rng, 0.5)


def third_sensitivity(record, rng):
    """The number moves by 3, the noise is for 1."""
    return laplace(record, rng, times=3)


def full_sensitivity(record, rng):
    return laplace(record, rng, scale=3.0, times=3)


def histogram(record, rng, scale=2.0):
    """Two counts, one of which moves by 1."""
    return (np.array([5.0 + record, 7.0]) + rng.laplace(0, scale, 2)).tolist()


def histogram_scale_epsilon(record, rng):
    """Noise of scale eps = 0.5 instead of 1/eps = 2."""
    return histogram(record, rng, 0.5)


def truncated(record, rng):
    """Noise beyond three scales is drawn again."""
    noise = rng.laplace(0, 1.0)
    while abs(noise) > 3.0:
        noise = rng.laplace(0, 1.0)
    return record + noise


def two_sums(record, rng, scale=2.0):
    """A sum by sex and one over all: a person moves both."""
    return [record + rng.laplace(0, scale), 9.0 + record + rng.laplace(0, scale)]


def one_of_two_sums(record, rng):
    """Sensitivity counted for one cell."""
    return two_sums(record, rng, 1.0)


def two_answers(record, rng):
    """A count that moves and one that does not, each with its own noise."""
    return [record + rng.laplace(0, 1.0), 5.0 + rng.laplace(0, 1.0)]


def reused_noise(record, rng):
    """The same noise in both: their difference is exact."""
    noise = rng.laplace(0, 1.0)
    return [record + noise, 5.0 + noise]


OTHERS = np.arange(1, 10) / 10


def mean_fixed_range(record, rng):
    """The mean of ten numbers, cut to [0, 1]."""
    values = np.clip(np.r_[OTHERS, record], 0.0, 1.0)
    return float(values.mean() + rng.laplace(0, 0.1))


def mean_own_range(record, rng):
    """Cut to, and noise for, the range of the data."""
    values = np.r_[OTHERS, record]
    return float(values.mean() + rng.laplace(0, np.ptp(values) / 10))


def snapped(record, rng):
    """Rounded to a grid: no trace of the number below it."""
    return math.floor(64 * (record + rng.laplace(0, 1.0))) / 64


def geometric(rng):
    """Two-sided, epsilon 1."""
    ratio = math.exp(-1.0)
    return int(rng.geometric(1 - ratio) - rng.geometric(1 - ratio))


def count_then_round(record, rng):
    """A count of 12 or 13, with noise, to the nearest five."""
    return 5 * round((12 + record + geometric(rng)) / 5)


def round_then_count(record, rng):
    """Rounded before noise: it moves by 5."""
    return 5 * round((12 + record) / 5) + geometric(rng)


def gaussian(record, rng, mu=1.0):
    return mu * record + rng.normal()


def gaussian_too_little(record, rng):
    return gaussian(record, rng, 1.5)


def fixed_seed(record, rng):
    del rng
    return record + float(np.random.default_rng(1000 + record).laplace(0, 1.0))


def ignores(record, rng):
    del record
    return float(rng.normal())


# -- local randomisers -----------------------------------------------------------------------------
def grr(record, rng, m=10, epsilon=1.0, p_size=None):
    p = math.exp(epsilon) / (math.exp(epsilon) + (p_size or m) - 1)
    if rng.random() < p:
        return record
    other = int(rng.integers(m - 1))
    return other + (other >= record)


def grr_wrong_size(record, rng):
    return grr(record, rng, m=10, p_size=5)


def reveals(record, rng):
    return record if rng.random() < 0.9 else -1


def grr_three(record, rng):
    return grr(record, rng, m=3)


def oue(record, rng, m=10, epsilon=1.0):
    bits = rng.random(m) < 1 / (math.exp(epsilon) + 1)
    bits[record] = rng.random() < 0.5
    return bits.astype(int).tolist()


def oue_ored(record, rng, m=10, epsilon=1.0):
    """The true bit is or-ed with its noise."""
    bits = rng.random(m) < 1 / (math.exp(epsilon) + 1)
    bits[record] |= rng.random() < 0.5
    return bits.astype(int).tolist()


def unary(record, rng, m=10, epsilon=0.5):
    """Every bit flips with `epsilon`; two differ."""
    bits = np.arange(m) == record
    return (bits ^ (rng.random(m) < 1 / (math.exp(epsilon) + 1))).astype(int).tolist()


def unary_one_bit(record, rng):
    """The budget of one bit."""
    return unary(record, rng, epsilon=1.0)


def subset(record, rng, m=10, w=3):
    """The record is among the three with the odds of epsilon 1."""
    p = w * math.e / (w * math.e + m - w)
    inside = rng.random() < p
    chosen = rng.choice(np.delete(np.arange(m), record), size=w - inside, replace=False)
    return sorted([record] * inside + chosen.tolist())


def subset_always(record, rng, m=10, w=3):
    chosen = rng.choice(np.delete(np.arange(m), record), size=w - 1, replace=False)
    return sorted([record, *chosen.tolist()])


def bucket(record, seed):
    return (record * 2654435761 + seed * 40503) % 2**16 % 2


def hashing(record, rng, epsilon=1.0):
    """Local hashing into two; the seed is part of the output."""
    seed = int(rng.integers(64))
    own = bucket(record, seed)
    return (seed, own if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - own)


def hashing_double(record, rng):
    return hashing(record, rng, 2.0)


def both_answers(record, rng, epsilon=0.5):
    """A noisy number and a randomised response about the same person."""
    said = record if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - record
    return [record + rng.laplace(0, 1 / epsilon), said]


def budget_twice(record, rng):
    """Each with the whole budget."""
    return both_answers(record, rng, 1.0)


# -- selection -------------------------------------------------------------------------------------
def noisy_max(record, rng):
    """Five counts, of which one moves up and the others down by 1; noise for epsilon 1."""
    counts = np.array([1.0, 0, 0, 0, 0]) if record == 0 else np.array([0.0, 1, 1, 1, 1])
    return int(np.argmax(counts + rng.laplace(0, 2.0, 5)))


def max_value(record, rng, scale=5.0):
    """The largest of five answers that all move by 1."""
    return float(np.max(1.0 + record + rng.laplace(0, scale, 5)))


def noisy_max_with_value(record, rng):
    """At the scale of the place alone."""
    return max_value(record, rng, 2.0)


def max_and_gap(record, rng, scale=2.0):
    """Place and lead of the largest of three counts that move up or down (Ding et al. 2019)."""
    noisy = np.array(laws.COUNTS[record]) + rng.laplace(0, scale, 3)
    first = int(np.argmax(noisy))
    return [first, float(noisy[first] - np.delete(noisy, first).max())]


def max_and_gap_one_way(record, rng):
    """At the scale for counts that all move one way."""
    return max_and_gap(record, rng, 1.0)


def svt(answers, rng, *, threshold_scale, query_scale, cutoff, value=False):
    """Above-threshold in the variants of Lyu et al.; a list of True, False (or the value)."""
    noise = rng.laplace(0, threshold_scale)
    found, count = [], 0
    for answer in answers:
        nu = rng.laplace(0, query_scale) if query_scale else 0.0
        if answer + nu >= noise:
            found.append(round(float(answer + nu), 12) if value else True)
            count += 1
            if cutoff is not None and count >= cutoff:
                break
        else:
            found.append(False)
    return found


def svt1(record, rng):
    """Algorithm 1, epsilon 1, one positive answer: threshold 2/eps, queries 4/eps."""
    return svt(laws.svt_answers(3)[record], rng, threshold_scale=2, query_scale=4, cutoff=1)


def svt1_half(record, rng):
    """Algorithm 1, epsilon 0.5, four positive answers."""
    return svt(laws.svt_answers(5)[record], rng, threshold_scale=4, query_scale=32, cutoff=4)


def svt3(record, rng):
    """Algorithm 3 releases the noisy answer itself."""
    answers = [0.0] * 3 + [1.0] if record == 0 else [1.0] * 3 + [0.0]
    return svt(answers, rng, threshold_scale=2, query_scale=2, cutoff=1, value=True)


def svt4(record, rng):
    """Algorithm 4 forgets that four answers may be positive; epsilon 0.5."""
    return svt(laws.svt_answers(5)[record], rng, threshold_scale=8, query_scale=8 / 3, cutoff=4)


def svt5(record, rng):
    """Algorithm 5 adds no noise to the queries and has no cut-off."""
    return svt(laws.svt_answers(1)[record], rng, threshold_scale=2, query_scale=0, cutoff=None)


def svt6(record, rng):
    """Algorithm 6 has no cut-off, and noise that does not grow with the answers: ten queries."""
    return svt(laws.svt_answers(5)[record], rng, threshold_scale=2, query_scale=2, cutoff=None)


# -- add-remove: with the person, or without (None) ------------------------------------------------
DELTA = 0.05
KEPT = 1.0 + math.log(1 / (2 * DELTA))  # of a stability histogram with epsilon 1


def stability(count, rng, threshold=KEPT):
    """A value nobody has is never named; others if their noisy count reaches the threshold."""
    noisy = count + rng.laplace(0, 1.0) if count else -INF
    return {"rare": noisy} if noisy >= threshold else {}


def only_one(record, rng):
    """The person is the only one with a value."""
    return stability(int(record is not None), rng)


def only_one_low(record, rng):
    """The threshold without the one that the person adds."""
    return stability(int(record is not None), rng, KEPT - 1.0)


def one_of_two(record, rng):
    return stability(1 + int(record is not None), rng)


def true_threshold(record, rng):
    """Values are named if two people have them, with a noisy count."""
    count = 1 + int(record is not None)
    return {"rare": count + rng.laplace(0, 1.0)} if count >= 2 else {}


def poisson_steps(record, rng):
    """An epoch of four noisy sums; the person is in each batch with probability 1/4."""
    joined = (rng.random(4) < 0.25) & (record is not None)
    return (joined + laws.SIGMA * rng.normal(size=4)).tolist()


def shuffled_steps(record, rng):
    """Shuffled data, cut into four batches: the person is in one of them."""
    joined = (np.arange(4) == rng.integers(4)) & (record is not None)
    return (joined + laws.SIGMA * rng.normal(size=4)).tolist()
