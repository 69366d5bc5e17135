"""Several attributes: likelihoods, promises, risks and which attribute was real, by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dprad import DpradError, Prior, Threat, assess
from dprad.mechanisms import GRR, OUE, RSFD, RSRFD, SMP, SPL
from dprad.mechanisms import bits as packed
from protocols import bit_round, fakes, response, worst_ratio

SIZES = [(2, 2), (2, 3), (3, 2, 2)]


def channel_of(name, k, epsilon):
    """Of one attribute, all outputs, by hand."""
    if name == "grr":
        return response(k, math.exp(epsilon))
    p, q = (0.5, 1 / (math.exp(epsilon) + 1)) if name == "oue" else (
        1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2)))  # fmt: skip
    return bit_round(k, p, q, np.eye(k, dtype=int))


def amplified(epsilon, d):
    return math.log(d * (math.exp(epsilon) - 1) + 1)


def laws_of(name, channels, laws, epsilon):
    """The law of a fake report of each attribute."""
    base, _, kind = name.partition("-")
    if base == "grr":
        return laws
    if kind == "z":
        q = 1 / (math.exp(epsilon) + 1) if base == "oue" else 1 / (1 + math.exp(epsilon / 2))
        return [bit_round(len(c), 1 - q, q, [[0] * len(c)])[0] for c in channels]
    return [law @ c for law, c in zip(laws, channels, strict=True)]


def every(sizes, epsilon=1.0):
    d, rng = len(sizes), np.random.default_rng(len(sizes))
    uniform = [np.full(k, 1 / k) for k in sizes]
    skewed = [rng.dirichlet(np.ones(k)) for k in sizes]
    for name in ("grr", "sue", "oue"):
        split = [channel_of(name, k, epsilon / d) for k in sizes]
        yield SPL(protocol=name, sizes=sizes, epsilon=epsilon), products(split)
        alone = [channel_of(name, k, epsilon) for k in sizes]
        yield SMP(protocol=name, sizes=sizes, epsilon=epsilon), one_named(alone)
    for protects in ("attribute", "record"):
        spent = amplified(epsilon, d) if protects == "attribute" else epsilon
        for name in ("grr", "sue-z", "sue-r", "oue-z", "oue-r"):
            channels = [channel_of(name.partition("-")[0], k, spent) for k in sizes]
            made = RSFD(protocol=name, sizes=sizes, epsilon=epsilon, protects=protects)
            yield made, fakes(channels, laws_of(name, channels, uniform, spent))
            if not name.endswith("-z"):
                made = RSRFD(protocol=name, sizes=sizes, epsilon=epsilon, fakes=skewed,
                             protects=protects)  # fmt: skip
                yield made, fakes(channels, laws_of(name, channels, skewed, spent))


def records(sizes):
    """In the order of the codes: the first attribute changes fastest."""
    return [r[::-1] for r in itertools.product(*[range(k) for k in reversed(sizes)])]


def products(channels):
    rows = []
    for record in records([len(c) for c in channels]):
        law = np.ones(1)
        for c, v in zip(channels, record, strict=True):
            law = np.outer(law, c[v]).reshape(-1)
        rows.append(law)
    return np.array(rows)


def one_named(channels):
    rows = records([len(c) for c in channels])
    return np.array(
        [np.concatenate([c[v] / len(r) for c, v in zip(channels, r, strict=True)]) for r in rows]
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_promises_and_risks_equal_enumeration(sizes):
    rng = np.random.default_rng(sum(sizes))
    names = [f"a{j}" for j in range(len(sizes))]
    rows = records(sizes)
    weight = rng.random(len(rows)) * (rng.random(len(rows)) < 0.8) + 1e-3
    counts = dict(zip(rows, weight.tolist(), strict=True))
    prior = Prior.from_counts(counts, columns=names)
    one = [(a, b) for a, b in itertools.permutations(range(len(rows)), 2)
           if sum(x != y for x, y in zip(rows[a], rows[b], strict=True)) == 1]  # fmt: skip
    for made, channel in every(sizes):
        assert channel.sum(axis=1) == pytest.approx(np.ones(len(rows)))
        assert made.guarantee.epsilon == pytest.approx(worst_ratio(channel), abs=1e-9), made
        found = worst_ratio(channel, one)
        assert made.one_attribute.epsilon == pytest.approx(found, abs=1e-9), made
        for threat in (Threat(), Threat(target=["a1"]), Threat(knows=["a0"])):
            risk = assess(made, prior=prior, threat=threat, query=names)
            expected = by_hand(channel, np.array(rows), weight / weight.sum(), threat)
            assert risk.kind == "exact"
            assert risk.rad == pytest.approx(expected, abs=1e-10), (made, threat)


def by_hand(laws, rows, pi, threat):
    target = rows[:, 1] if threat.target else np.arange(len(rows))
    known = rows[:, 0] if threat.knows != "nothing" else np.zeros(len(rows), dtype=int)
    gain, total = pi[:, None] * (laws - pi @ laws), 0.0
    for x in set(known.tolist()):
        best = [gain[(known == x) & (target == g)].sum(axis=0) for g in set(target.tolist())]
        total += np.maximum(np.max(best, axis=0), 0.0).sum()
    return total


@pytest.mark.parametrize("sizes", [(2, 3)])
def test_samplers_match_likelihoods(sizes):
    """Chi-square over all outputs, false alarms 1e-6 each."""
    rng, n = np.random.default_rng(1), 30_000
    for made, channel in every(sizes):
        record = 3
        outputs = made.sample(np.full(n, record), rng)
        logs = made.log_likelihood(outputs, np.full(n, record))
        flat = np.stack([np.asarray(o).reshape(n) for o in outputs], axis=1)
        _, first, seen = np.unique(flat, axis=0, return_index=True, return_counts=True)
        expected = np.exp(logs[first]) * n
        common = expected > 5
        drawn = np.r_[seen[common], n - seen[common].sum()]
        rest = max(n - expected[common].sum(), 1e-9)
        if rest > 1e-6 or drawn[-1]:
            assert chisquare(drawn, np.r_[expected[common], rest]).pvalue > 1e-6, made
        assert channel[record].max() * n == pytest.approx(expected.max(), rel=0.2)


def test_which_attribute_was_real():
    """By counting all ways, and by draws of one's own."""
    made = RSFD(protocol="grr", sizes=(2, 3), epsilon=1.0)
    spent, pi = amplified(1.0, 2), np.array([0.3, 0.1, 0.2, 0.2, 0.05, 0.15])
    a, b = response(2, math.exp(spent)), response(3, math.exp(spent))
    for y0, y1 in itertools.product(range(2), range(3)):
        ways = np.zeros(2)
        for code, (v0, v1) in enumerate(records((2, 3))):
            both = np.array([a[v0, y0] / 3, b[v1, y1] / 2])
            ways += pi[code] * both
            output = (np.array([y0]), np.array([y1]))
            known = made.real(output, np.array([code]))[0]
            assert known == pytest.approx(both / both.sum(), abs=1e-12)
        unknown = made.real(output, np.arange(6), pi)[0]
        assert unknown == pytest.approx(ways / ways.sum(), abs=1e-12)


def test_smp_is_the_average_and_large():
    """A thousand values: closed forms of the attributes."""
    rng = np.random.default_rng(0)
    one, two = rng.dirichlet(np.ones(1000)), rng.dirichlet(np.ones(7))
    rows = {(a, b): one[a] * two[b] for a in range(1000) for b in range(7)}
    prior = Prior.from_counts(rows, columns=["a", "b"])
    for protocol, kind, threat in (("grr", GRR, Threat(target=["b"])), ("oue", OUE, Threat())):
        made = SMP(protocol=protocol, sizes=(1000, 7), epsilon=1.0)
        risk = assess(made, prior=prior, threat=threat, query=["a", "b"])
        parts = [
            assess(kind(epsilon=1.0, size=k), prior=prior, threat=threat, query=q)
            for q, k in (("a", 1000), ("b", 7))
        ]
        assert risk.kind == "exact"
        assert risk.rad == pytest.approx((parts[0].rad + parts[1].rad) / 2, abs=1e-12)
        assert risk.worst_kind == "exact" and risk.worst <= sum(p.worst for p in parts) / 2 + 1e-12


def test_the_record_of_the_published_sizes():
    """Ten attributes of Adult, as published, at epsilon 1."""
    adult = (74, 7, 16, 7, 14, 6, 5, 2, 41, 2)
    made = RSFD(protocol="grr", sizes=adult, epsilon=1.0)
    assert made.guarantee.epsilon == pytest.approx(2.900, abs=5e-4)
    assert made.one_attribute.epsilon == pytest.approx(1.558, abs=5e-4)
    zeros = RSFD(protocol="oue-z", sizes=adult, epsilon=1.0)
    assert zeros.one_attribute.epsilon == pytest.approx(1.0, abs=1e-9)
    record = RSFD(protocol="grr", sizes=adult, epsilon=1.0, protects="record")
    assert record.guarantee.epsilon == pytest.approx(1.0, abs=1e-9)
    assert record.one_attribute.epsilon < 1.0


def test_estimators_are_unbiased_and_as_variable_as_said():
    """Five standard errors; the variance of values that nobody has, within what 300 rounds tell."""
    rng, n, rounds = np.random.default_rng(2), 600, 300
    values = np.stack([np.repeat([0, 1], [400, 200]), np.tile([0, 1, 2], 200)], axis=1)
    sizes = (3, 4)  # the last value of each attribute is rare: nobody has it
    true = [np.array([2 / 3, 1 / 3, 0]), np.array([1 / 3, 1 / 3, 1 / 3, 0])]
    made = [
        SPL(protocol="oue", sizes=sizes, epsilon=2.0),
        SMP(protocol="grr", sizes=sizes, epsilon=2.0),
    ]
    made += [RSFD(protocol=p, sizes=sizes, epsilon=2.0) for p in ("grr", "oue-z", "sue-r")]
    made += [RSRFD(protocol="grr", sizes=sizes, epsilon=2.0,
                   fakes=[[0.5, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1]])]  # fmt: skip
    for mechanism in made:
        codes = mechanism.joined(values)
        found = [mechanism.estimate(mechanism.sample(codes, rng)) for _ in range(rounds)]
        for j in range(2):
            shares = np.array([f[j] for f in found])
            error = shares.std(axis=0) / math.sqrt(rounds)
            assert np.all(np.abs(shares.mean(axis=0) - true[j]) < 5 * error), mechanism
        if not isinstance(mechanism, RSRFD):
            rare = np.mean([np.array([f[j][-1] for f in found]).var() for j in range(2)])
            assert rare == pytest.approx(mechanism.variance(n), rel=0.3), mechanism


def test_published_estimators():
    """The formulas of the publication, on the same counts."""
    rng, n, d, sizes = np.random.default_rng(4), 5000, 2, (3, 3)
    codes = rng.integers(9, size=n)
    for protocol in ("grr", "oue-z", "oue-r"):
        made = RSFD(protocol=protocol, sizes=sizes, epsilon=1.0)
        outputs = made.sample(codes, rng)
        spent, k = amplified(1.0, d), 3
        if protocol == "grr":
            p, q = math.exp(spent) / (math.exp(spent) + 2), 1 / (math.exp(spent) + 2)
            count = np.bincount(outputs[0], minlength=3)
            expected = (count * d * k - n * (d - 1 + q * k)) / (n * k * (p - q))
        else:
            p, q = 0.5, 1 / (math.exp(spent) + 1)
            count = packed.unpack(outputs[0], 3).sum(axis=0)
            expected = d * (count - n * q) / (n * (p - q))
            if protocol == "oue-r":
                off = q * k + (p - q) * (d - 1) + q * k * (d - 1)
                expected = (count * d * k - n * off) / (n * k * (p - q))
        assert made.estimate(outputs)[0] == pytest.approx(expected, abs=1e-9)


def test_bad_input_is_refused():
    with pytest.raises(DpradError, match="protocol"):
        RSFD(protocol="subset", sizes=(2, 2), epsilon=1.0)
    with pytest.raises(DpradError, match="sizes"):
        SPL(protocol="grr", sizes=(), epsilon=1.0)
    with pytest.raises(DpradError, match="fakes"):
        RSRFD(protocol="grr", sizes=(2, 2), epsilon=1.0, fakes=[[0.5, 0.5]])
    with pytest.raises(DpradError, match="one per attribute"):
        assess(SPL(protocol="grr", sizes=(2, 2), epsilon=1.0), prior=Prior.uniform(4))
