"""Broken mechanisms, and sound ones, written from their published descriptions.

Each is a function run(record, rng); `CASES` has name, function, records, claim and true epsilon.
"""

from __future__ import annotations

import math

import numpy as np

INF = math.inf


# -- additive noise ------------------------------------------------------------------------------
def laplace(record, rng):
    """Scale 1 on a number that moves by 1: epsilon 1."""
    return record + rng.laplace(0, 1.0)


def laplace_half_scale(record, rng):
    return record + rng.laplace(0, 0.5)


def laplace_third_sensitivity(record, rng):
    """The number moves by 3, the noise is for 1."""
    return 3 * record + rng.laplace(0, 1.0)


def histogram_scale_epsilon(record, rng):
    """Two counts, one of which moves by 1; noise of scale eps = 0.5 instead of 1/eps = 2."""
    counts = np.array([5.0 + record, 7.0])
    return (counts + rng.laplace(0, 0.5, 2)).tolist()


# -- local randomisers ---------------------------------------------------------------------------
def grr(record, rng, m=10, epsilon=1.0, p_size=None):
    p = math.exp(epsilon) / (math.exp(epsilon) + (p_size or m) - 1)
    if rng.random() < p:
        return record
    other = int(rng.integers(m - 1))
    return other + (other >= record)


def grr_wrong_size(record, rng):
    return grr(record, rng, m=10, p_size=5)


def oue(record, rng, m=10, epsilon=1.0):
    bits = rng.random(m) < 1 / (math.exp(epsilon) + 1)
    bits[record] = rng.random() < 0.5
    return bits.astype(int).tolist()


def oue_ored(record, rng, m=10, epsilon=1.0):
    """The true bit is or-ed with its noise."""
    bits = rng.random(m) < 1 / (math.exp(epsilon) + 1)
    bits[record] |= rng.random() < 0.5
    return bits.astype(int).tolist()


def subset_always(record, rng, m=10, w=3):
    others = np.delete(np.arange(m), record)
    chosen = rng.choice(others, size=w - 1, replace=False)
    return sorted([record, *chosen.tolist()])


def hashing_double(record, rng, epsilon=1.0, buckets=2):
    """Local hashing run at twice its epsilon; the seed is part of the output."""
    seed = int(rng.integers(64))
    own = (record * 2654435761 + seed * 40503) % 2**16 % buckets
    p = math.exp(2 * epsilon) / (math.exp(2 * epsilon) + buckets - 1)
    return (seed, int(own if rng.random() < p else 1 - own))


def fixed_seed(record, rng):
    del rng
    return record + float(np.random.default_rng(1000 + record).laplace(0, 1.0))


def reveals(record, rng):
    return record if rng.random() < 0.9 else -1


def ignores(record, rng):
    del record
    return float(rng.normal())


# -- selection -----------------------------------------------------------------------------------
def noisy_max(record, rng):
    """Five counts, of which one moves up and the others down by 1; noise for epsilon 1."""
    counts = np.array([1.0, 0, 0, 0, 0]) if record == 0 else np.array([0.0, 1, 1, 1, 1])
    return int(np.argmax(counts + rng.laplace(0, 2.0, 5)))


def noisy_max_with_value(record, rng):
    """Releases the noisy value as well: each of five answers moves by 1, at scale 2."""
    noisy = np.array([1.0] * 5) + record + rng.laplace(0, 2.0, 5)
    return float(np.max(noisy))


def _svt(answers, rng, *, threshold_scale, query_scale, cutoff, value=False, reset=False):
    """Above-threshold in the variants of Lyu et al.; a list of True, False (or the value)."""
    noise = rng.laplace(0, threshold_scale)
    found, count = [], 0
    for answer in answers:
        nu = rng.laplace(0, query_scale) if query_scale else 0.0
        if answer + nu >= noise:
            found.append(round(float(answer + nu), 12) if value else True)
            count += 1
            if reset:
                noise = rng.laplace(0, threshold_scale)
            if cutoff is not None and count >= cutoff:
                break
        else:
            found.append(False)
    return found


def svt1(record, rng):
    """Algorithm 1, epsilon 1, one positive answer: threshold 2/eps, queries 4/eps."""
    answers = [record] * 5
    return _svt(answers, rng, threshold_scale=2.0, query_scale=4.0, cutoff=1)


def svt3(record, rng):
    """Algorithm 3 releases the noisy answer itself."""
    answers = [0.0] * 3 + [1.0] if record == 0 else [1.0] * 3 + [0.0]
    return _svt(answers, rng, threshold_scale=2.0, query_scale=2.0, cutoff=1, value=True)


def svt5(record, rng):
    """Algorithm 5 adds no noise to the queries and has no cut-off."""
    answers = [0.0, 1.0] if record == 0 else [1.0, 0.0]
    return _svt(answers, rng, threshold_scale=2.0, query_scale=0.0, cutoff=None)


def svt6(record, rng):
    """Algorithm 6 has no cut-off, and noise that does not grow with the answers: ten queries."""
    answers = [0.0] * 5 + [1.0] * 5 if record == 0 else [1.0] * 5 + [0.0] * 5
    return _svt(answers, rng, threshold_scale=2.0, query_scale=2.0, cutoff=None)


BROKEN = [
    ("laplace, half the scale", laplace_half_scale, [0, 1], 1.0, 2.0),
    ("laplace, a third of the sensitivity", laplace_third_sensitivity, [0, 1], 1.0, 3.0),
    ("grr, p of another size", grr_wrong_size, list(range(10)), 1.0, 1.811),
    ("oue, or-ed", oue_ored, list(range(10)), 1.0, 1.551),
    ("subset, always the truth", subset_always, list(range(10)), 1.0, INF),
    ("hashing at twice epsilon", hashing_double, list(range(10)), 1.0, 2.0),
    ("a fixed seed", fixed_seed, [0, 1], 1.0, INF),
    ("noisy max with its value", noisy_max_with_value, [0, 1], 1.0, 2.5),
    ("svt 3", svt3, [0, 1], 1.0, INF),
    ("svt 5", svt5, [0, 1], 1.0, INF),
    ("svt 6", svt6, [0, 1], 1.0, 4.031),
    ("histogram, scale epsilon", histogram_scale_epsilon, [0, 1], 0.5, 2.0),
    ("reveals its input", reveals, [0, 1, 2], 1.0, INF),
]
SOUND = [
    ("laplace", laplace, [0, 1], 1.0),
    ("grr", grr, list(range(10)), 1.0),
    ("oue", oue, list(range(10)), 1.0),
    ("svt 1", svt1, [0, 1], 1.0),
    ("noisy max", noisy_max, [0, 1], 1.0),
    ("ignores its input", ignores, [0, 1], 1.0),
]
