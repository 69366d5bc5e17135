"""Protocols over time and over several attributes, by enumeration of everything they could report.

Written from their definitions: probabilities of whole sequences of reports, by matrices of single
rounds, sharing no code with the package. Columns that are alike up to a factor are summed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np


def bit_round(k, one, other, patterns=None):
    """Rows of bits given each value (or each row of bits, which is then copied bit by bit)."""
    rows = np.array(list(itertools.product([0, 1], repeat=k)))
    given = rows if patterns is None else np.array(patterns)
    return np.array(
        [
            [
                math.prod((one if s else other) if y else 1 - (one if s else other)
                          for s, y in zip(start, end, strict=True))
                for end in rows
            ]
            for start in given
        ]
    )  # fmt: skip


def response(k, ratio):
    """Randomised response with these odds of the truth against each lie."""
    return (np.ones((k, k)) + (ratio - 1) * np.eye(k)) / (ratio + k - 1)


def over_time(first, second, sequences, each):
    """All sequences of reports: `first` is drawn once per distinct value, `second` each time.

    Sequences list the value in each period, with `each` reports in it.
    """
    rows = []
    for sequence in sequences:
        kept = {}
        times = [v for v in sequence for _ in range(each)]
        for v in set(times):
            kept[v] = [t for t, u in enumerate(times) if u == v]
        # sum over what each value is kept as, one value after the other
        law = np.ones((1,) * len(times))
        for v, own in kept.items():
            part = np.zeros([second.shape[1] if t in own else 1 for t in range(len(times))])
            for m, chance in enumerate(first[v]):
                factor = np.full((1,) * len(times), chance)
                for t in own:
                    shape = [1] * len(times)
                    shape[t] = -1
                    factor = factor * second[m].reshape(shape)
                part = part + factor
            law = law * part
        rows.append(law.reshape(-1))
    return merged(np.array(rows))


def merged(channel):
    """Columns that say the same, summed."""
    channel = channel[:, channel.sum(axis=0) > 0]
    keys = np.round(channel / channel.sum(axis=0), 11)
    _, place = np.unique(keys, axis=1, return_inverse=True)
    total = np.zeros((len(channel), place.max() + 1))
    np.add.at(total.T, place.reshape(-1), channel.T)
    return total


def hashed(k, g, channel_of):
    """All functions from k values to g symbols, equally likely and public."""
    parts = [channel_of(h) for h in itertools.product(range(g), repeat=k)]
    return merged(np.concatenate(parts, axis=1) / g**k)


def bit_flip(k, buckets, drawn, epsilon, sequences):
    """Permanent bits: one row per distinct pattern of a person, repeated forever."""
    keep = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
    places = list(itertools.combinations(range(buckets), drawn))
    bits = list(itertools.product([0, 1], repeat=drawn))
    rows = []
    for sequence in sequences:
        row = []
        for place in places:
            shown = [tuple(int(v * buckets // k == p) for p in place) for v in sequence]
            for answer in itertools.product(bits, repeat=len(sequence)):
                memo, chance = {}, 1.0 / len(places)
                for pattern, y in zip(shown, answer, strict=True):
                    if pattern in memo:
                        chance *= memo[pattern] == y
                    else:
                        memo[pattern] = y
                        chance *= math.prod(keep if a == b else 1 - keep
                                            for a, b in zip(pattern, y, strict=True))  # fmt: skip
                row.append(chance)
        rows.append(row)
    return merged(np.array(rows))


def rappor(patterns, f, p, q, reports):
    """Permanent and instant bits, straight from the description."""
    width = len(patterns[0])
    permanent = bit_round(width, 1 - f / 2, f / 2, patterns)
    return over_time(
        permanent, bit_round(width, q, p), [(v,) for v in range(len(patterns))], reports
    )


def fakes(channels, laws):
    """One attribute is real, by its channel; the others are fakes with these laws."""
    sizes, d = [len(c) for c in channels], len(channels)
    rows = []
    # the first attribute is the lowest digit
    for digits in itertools.product(*[range(k) for k in reversed(sizes)]):
        record = digits[::-1]
        total = 0.0
        for real in range(d):
            law = np.ones(1)
            for j in range(d):
                law = np.outer(law, channels[j][record[j]] if j == real else laws[j]).reshape(-1)
            total = total + law / d
        rows.append(total)
    return np.array(rows)


def worst_ratio(channel, pairs=None):
    """The largest log-ratio of two rows: of all pairs, or of these."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(channel)
        if pairs is None:
            return float(np.nanmax(logs.max(axis=0) - logs.min(axis=0)))
        return max(float(np.nanmax(logs[a] - logs[b])) for a, b in pairs)
