"""Protocols over time: likelihoods, promises and risks against all sequences of reports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dprad import DpradError, Prior, Threat, assess, calibrate
from dprad.exact import memoised
from dprad.mechanisms import (
    GRR,
    LGRR,
    LOLOHA,
    LOSUE,
    LOUE,
    LSOUE,
    LSUE,
    RAPPOR,
    DBitFlip,
    UnaryEncoding,
)
from oracles import brute_force, random_instance
from protocols import (
    bit_flip,
    bit_round,
    hashed,
    merged,
    over_time,
    rappor,
    response,
    worst_ratio,
)

BUDGETS = {"epsilon_inf": 2.0, "epsilon_one": 1.0}
A, E, ROOT, HALF = math.exp(2.0), math.exp(1.0), math.exp(1.0), math.exp(0.5)


def first_rounds():
    """p1, q1 by hand, and the kind of the second round."""
    symmetric, optimal = (ROOT / (ROOT + 1), 1 / (ROOT + 1)), (0.5, 1 / (A + 1))
    return {LSUE: symmetric, LOSUE: optimal, LOUE: optimal, LSOUE: symmetric}


def unary(made, sequences, each):
    """With the second round that the class declares: that it keeps epsilon_one is tested too."""
    k, (p1, q1) = made.size, first_rounds()[type(made)]
    p2, q2 = made.rounds[2:]
    first = bit_round(k, p1, q1, np.eye(k, dtype=int))
    return over_time(first, bit_round(k, p2, q2), sequences, each)


def symbols(k, published=False):
    b = (A * E - 1) / (A - E) if published else (E * (A + k - 2) - (k - 1)) / (A - E)
    return response(k, A), response(k, b)


def every(k, reports, periods=1):
    """Each protocol, with the channel of all its reports."""
    asked = {"size": k, "reports": reports, "periods": periods, **BUDGETS}
    sequences = [s[::-1] for s in itertools.product(range(k), repeat=periods)]
    each = reports // periods
    if k * reports <= 16:
        for kind in first_rounds():
            yield kind(**asked), unary(kind(**asked), sequences, each)
    for published in (False, True):
        made = LGRR(**asked, published=published)
        yield made, over_time(*symbols(k, published), sequences, each)
    for g in (2, 3):
        if g**k * g**reports <= 4000:
            made = LOLOHA(**asked, buckets=g)
            yield (
                made,
                hashed(k, g, lambda h, g=g: unmerged(symbols(g), h, sequences, each)),
            )
    for buckets, drawn in {(k, k), (k, 1), (2, 2), (k, min(2, k))}:
        if 2 ** (drawn * periods) <= 256:
            made = DBitFlip(size=k, epsilon_inf=2.0, buckets=buckets, bits=drawn, reports=reports,
                            periods=periods)  # fmt: skip
            yield made, bit_flip(k, buckets, drawn, 2.0, sequences)


def unmerged(rounds, h, sequences, each):
    """All reports about hashed values, as they are."""
    first, second = rounds
    codes = [[h[v] for v in s] for s in sequences]
    names = sorted({tuple(c) for c in codes})
    whole = []
    for name in names:
        times = [v for v in name for _ in range(each)]
        law = np.zeros([len(first)] * len(times))
        for y in itertools.product(range(len(first)), repeat=len(times)):
            chance = 1.0
            for v in set(times):
                own = [t for t, u in enumerate(times) if u == v]
                chance *= sum(
                    first[v][m] * math.prod(second[m][y[t]] for t in own) for m in range(len(first))
                )
            law[y] = chance
        whole.append(law.reshape(-1))
    return np.array([whole[names.index(tuple(c))] for c in codes])


CASES = [(2, 2), (2, 4), (3, 2), (3, 3), (4, 2), (3, 4), (4, 3), (4, 4)]


@pytest.mark.parametrize(("k", "reports"), [*CASES, (2, 1), (4, 1)])
def test_equals_all_reports(k, reports):
    rng = np.random.default_rng(10 * k + reports)
    for made, channel in every(k, reports):
        assert channel.sum(axis=1) == pytest.approx(np.ones(k))
        assert made.guarantee.epsilon == pytest.approx(worst_ratio(channel), abs=1e-9), made
        table = merged(made.matrix(np.arange(k)))
        assert table.max(axis=0).sum() == pytest.approx(channel.max(axis=0).sum(), abs=1e-12)
        same = assess(made, prior=Prior.uniform(k))
        assert same.rad == pytest.approx((channel.max(axis=0).sum() - 1) / k, abs=1e-12)
        for _ in range(3):
            instance = random_instance(rng, k)
            risk = assess(made, prior=instance.prior, threat=instance.threat)
            rad, rero = brute_force(instance, channel)
            assert risk.rad == pytest.approx(rad, abs=1e-10), (made, instance)
            assert risk.rero == pytest.approx(rero, abs=1e-10), (made, instance)


@pytest.mark.parametrize(("k", "reports", "periods"), [(2, 2, 2), (3, 2, 2), (2, 4, 2), (2, 3, 3)])
def test_values_that_change(k, reports, periods):
    """Records with one column per point in time; the promise is that of all pairs of sequences."""
    rng = np.random.default_rng(periods)
    names = [f"t{j}" for j in range(periods)]
    rows = list(itertools.product(range(k), repeat=periods))  # as the prior sorts them
    weight = rng.random(len(rows))
    prior = Prior.from_counts(dict(zip(rows, weight.tolist(), strict=True)), columns=names)
    for made, channel in every(k, reports, periods):
        place = [made.joined(row) for row in rows]
        laws = channel[place]
        for threat in (Threat(), Threat(knows=["t0"]), Threat(target=["t1"])):
            risk = assess(made, prior=prior, threat=threat, query=names)
            assert risk.kind == "exact"
            assert risk.rad == pytest.approx(by_hand(laws, rows, weight, threat), abs=1e-10), made
        promise = made.guarantee
        worst = worst_ratio(channel)
        if promise is None:
            assert not np.isfinite(worst)  # permanent bits show a change for certain
        else:
            assert promise.epsilon == pytest.approx(worst, abs=1e-9)


def by_hand(laws, rows, weight, threat):
    """RAD of the best attack on an attribute or a whole record."""
    pi, rows = weight / weight.sum(), np.array(rows)
    target = rows[:, 1] if threat.target else np.arange(len(rows))
    known = rows[:, 0] if threat.knows != "nothing" else np.zeros(len(rows), dtype=int)
    gain = pi[:, None] * (laws - pi @ laws)
    total = 0.0
    for x in set(known.tolist()):
        best = [gain[(known == x) & (target == g)].sum(axis=0) for g in set(target.tolist())]
        total += np.maximum(np.max(best, axis=0), 0.0).sum()
    return total


def test_a_changing_value_costs_more_than_its_distinct_values():
    """Memoised noise shows *that* a value changed: epsilon_inf times the number of distinct values
    bounds pairs of sequences that change at the same times, not others.
    """
    found = []
    for k in (2, 3, 4):
        made = LOSUE(size=k, reports=2, periods=2, **BUDGETS)
        found.append(made.guarantee.epsilon)
        together = made.matrix(np.arange(k * k))
        # sequences that change at the same times keep the bound
        steady = [v * (k + 1) for v in range(k)]
        moving = [s for s in range(k * k) if s not in steady]
        for group, bound in ((steady, made.epsilon_after(2)), (moving, 2 * made.epsilon_after(1))):
            pairs = list(itertools.permutations(group, 2))
            assert worst_ratio(together, pairs) <= bound + 1e-9
    assert found[0] <= 2.0 + 1e-9 < found[1] < found[2]  # two reports at epsilon_one = 1 each
    # more than epsilon_inf = 2 for each of the two values that a person can have had: for more
    # reports of two values, and for two reports of more values
    often = LGRR(size=2, reports=16, periods=2, **BUDGETS)
    assert often.guarantee.epsilon == pytest.approx(11.007, abs=5e-4) and often.epsilon_inf == 2
    seven = LOSUE(size=7, reports=2, periods=2, **BUDGETS)
    assert seven.guarantee.epsilon == pytest.approx(4.166, abs=5e-4)


def test_rappor_with_a_bloom_filter():
    made = RAPPOR(size=3, f=0.4, hashes=2, bits=4, p=0.3, q=0.8, reports=2)
    patterns = made.sets(np.arange(3)).astype(int)
    channel = rappor(patterns.tolist(), 0.4, 0.3, 0.8, 2)
    assert made.guarantee.epsilon == pytest.approx(worst_ratio(channel), abs=1e-9)
    for seed in range(4):
        instance = random_instance(np.random.default_rng(seed), 3)
        risk = assess(made, prior=instance.prior, threat=instance.threat)
        assert risk.rad == pytest.approx(brute_force(instance, channel)[0], abs=1e-10)
    # published: h times the loss of a bit, and 2 h ln((1 - f/2)/(f/2)) in the end
    wide = RAPPOR(size=400, f=0.4, hashes=2, bits=64, p=0.3, q=0.8)
    one, zero = (0.4 * 1.1 / 2 + 0.6 * x for x in (0.8, 0.3))
    single = 2 * math.log(one * (1 - zero) / (zero * (1 - one)))
    assert wide.epsilon_after(1) == pytest.approx(single, abs=1e-9)
    assert wide.epsilon_after(3000) == pytest.approx(4 * math.log(0.8 / 0.2), abs=1e-9)


@pytest.mark.parametrize(("inf", "one"), [(2.0, 1.0), (4.0, 1.2), (0.5, 0.1), (8.0, 4.0)])
def test_one_report_keeps_epsilon_one_and_all_keep_epsilon_inf(inf, one):
    for kind in (LSUE, LOSUE, LOUE, LSOUE, LGRR, LOLOHA):
        made = kind(size=6, epsilon_inf=inf, epsilon_one=one)
        assert made.guarantee.epsilon == pytest.approx(one, abs=1e-9)
        after = [made.epsilon_after(t) for t in (1, 2, 5, 20, 1000, 100_000)]
        assert all(a < b + 1e-9 for a, b in itertools.pairwise(after))
        assert after[-1] == pytest.approx(inf, abs=1e-6)
        p1, q1, _, _ = made.rounds
        ratio = p1 / q1 if kind in (LGRR, LOLOHA) else p1 * (1 - q1) / (q1 * (1 - p1))
        assert math.log(ratio) == pytest.approx(inf, abs=1e-9)
    assert LOSUE(size=9, **BUDGETS).epsilon_after(5) == pytest.approx(1.994, abs=5e-4)


def test_infeasible_budgets_and_bad_input_are_refused():
    for kind, inf, one in ((LOUE, 1.0, 0.9), (LSOUE, 2.0, 1.9), (LGRR, 1.0, 1.0), (LSUE, 1.0, 0.0)):
        with pytest.raises(DpradError, match="epsilon_one"):
            kind(size=4, epsilon_inf=inf, epsilon_one=one)
    with pytest.raises(DpradError, match="multiple of periods"):
        LSUE(size=3, epsilon_inf=2.0, reports=3, periods=2)
    with pytest.raises(DpradError, match="reads as many columns"):
        assess(LSUE(size=3, epsilon_inf=2.0, reports=2, periods=2), prior=Prior.uniform(3))
    with pytest.raises(DpradError, match="at most buckets"):
        DBitFlip(size=3, epsilon_inf=2.0, buckets=2, bits=3)


def test_one_report_is_the_protocol_without_memory():
    """Any prior and knowledge in closed form, at any size."""
    rng = np.random.default_rng(0)
    prior = Prior.from_probabilities(rng.dirichlet(np.full(300, 0.2)))
    for kind in (LSUE, LGRR, LOLOHA):
        risk = assess(kind(size=300, **BUDGETS), prior=prior)
        assert risk.kind == "exact" and "closed form" in risk.method
    grr = assess(GRR(epsilon=1.0, size=300), prior=prior).rad
    assert assess(LGRR(size=300, **BUDGETS), prior=prior).rad == pytest.approx(grr, abs=1e-12)
    p, q = LSUE(size=300, **BUDGETS).single
    bits = assess(UnaryEncoding(size=300, p=p, q=q), prior=prior).rad
    assert assess(LSUE(size=300, **BUDGETS), prior=prior).rad == pytest.approx(bits, abs=1e-12)


@pytest.mark.parametrize("kind", [LSUE, LOUE, LGRR, LOLOHA, DBitFlip])
def test_closed_form_against_draws(kind):
    """Sizes where nothing can be listed: the posterior of drawn reports, false alarms 1e-9."""
    budgets = {"epsilon_inf": 3.0} if kind is DBitFlip else {"epsilon_inf": 3.0, "epsilon_one": 1.0}
    made = kind(size=40, reports=6, **budgets)
    exact = assess(made, prior=Prior.uniform(40))
    assert exact.kind == "exact"
    # a prior that differs in the last digits is not recognised as uniform
    weights = np.full(40, 1.0) + 1e-7 * np.arange(40)
    near = assess(made, prior=Prior.from_probabilities(weights / weights.sum()), trials=4000,
                  confidence=1 - 1e-9)  # fmt: skip
    assert near.kind == "estimate"
    assert near.interval[0] - 1e-6 <= exact.rad <= near.interval[1] + 1e-6
    assert near.interval[1] - near.interval[0] < 0.1


def test_large_and_long():
    """10,000 values and a year of daily reports: near the limit of the first round alone."""
    prior = Prior.uniform(10_000)
    for kind in (LSUE, LOSUE):
        made = kind(size=10_000, reports=365, **BUDGETS)
        p1, q1 = made.rounds[:2]
        first = assess(UnaryEncoding(size=10_000, p=p1, q=q1), prior=prior).rad
        assert assess(made, prior=prior).rad == pytest.approx(first, rel=1e-3)
    grr = assess(GRR(epsilon=2.0, size=10_000), prior=prior).rad
    made = LGRR(size=10_000, reports=365, **BUDGETS)
    assert assess(made, prior=prior).rad == pytest.approx(grr, rel=1e-3)


def test_balls_in_bins_against_exact_counts():
    """The sum of maxima by listing all counts, for named and free symbols."""
    made = LOLOHA(size=9, reports=7, buckets=4, **BUDGETS)
    _, _, p2, q2 = made.rounds
    for named in range(5):
        total = 0.0
        for n in itertools.product(range(8), repeat=4):
            if sum(n) == 7:
                orders = math.factorial(7) / math.prod(math.factorial(c) for c in n)
                top = max(n[:named], default=None)
                total += orders * (p2**top * q2 ** (7 - top) if named else 0.0)
        expected = total if named else 1.0
        assert memoised.balls(made, named) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("periods", [1, 2])
def test_samplers_match_likelihoods(periods):
    """Chi-square on the counts of a few records, false alarms 1e-6 each."""
    rng, n = np.random.default_rng(periods), 20_000
    asked = {"size": 3, "reports": 2, "periods": periods, **BUDGETS}
    made = [kind(**asked) for kind in (LSUE, LOSUE, LOUE, LSOUE, LGRR)]
    made += [LGRR(**asked, published=True)]
    made += [RAPPOR(size=3, bits=3, reports=2, periods=periods)]
    made += [DBitFlip(size=3, epsilon_inf=2.0, bits=2, periods=periods)]
    made += [LOLOHA(**asked, buckets=2)]
    for mechanism in made:
        for record in (0, mechanism.reads_codes - 2):
            outputs = mechanism.sample(np.full(n, record), rng)
            logs = mechanism.log_likelihood(outputs, np.full(n, record))
            flat = outputs
            if isinstance(mechanism, LOLOHA):
                logs = logs + 64 * math.log(2.0)
                shown = mechanism.bucket(outputs[0][:, None], mechanism.sequences(record))
                flat = np.concatenate([shown, outputs[1].reshape(n, -1)], axis=1)
            rows, first, seen = np.unique(
                flat.reshape(n, -1), axis=0, return_index=True, return_counts=True
            )
            expected = np.exp(logs[first]) * n
            if isinstance(mechanism, LOLOHA):  # the symbol of each distinct value is a coin
                expected /= 2 ** len(set(mechanism.sequences(record).tolist()))
            common = expected > 5
            rest = max(n - expected[common].sum(), 1e-9)
            drawn = np.r_[seen[common], n - seen[common].sum()]
            pvalue = chisquare(drawn, np.r_[expected[common], rest]).pvalue
            assert len(rows) > 2 and pvalue > 1e-6, mechanism


def test_estimators_are_unbiased_and_as_variable_as_said():
    """Five standard errors; the variance of a value that nobody has, within a tenth."""
    rng, n, rounds = np.random.default_rng(3), 400, 400
    values = np.repeat([0, 1, 2], [200, 120, 80])  # value 3 is rare: nobody has it
    true = np.array([0.5, 0.3, 0.2, 0.0])
    asked = {"size": 4, **BUDGETS}
    made = [kind(**asked) for kind in (LSUE, LOSUE, LOUE, LSOUE, LGRR, LOLOHA)]
    made += [LGRR(**asked, published=True), DBitFlip(size=4, epsilon_inf=2.0, bits=2)]
    for mechanism in made:
        found = np.array([mechanism.estimate(mechanism.sample(values, rng))[0]
                          for _ in range(rounds)])  # fmt: skip
        error = found.std(axis=0) / math.sqrt(rounds)
        assert np.all(np.abs(found.mean(axis=0) - true) < 5 * error), mechanism
        if not isinstance(mechanism, DBitFlip):
            # two standard deviations of a variance from 400 rounds are 14%
            assert found[:, 3].var() == pytest.approx(mechanism.variance(n), rel=0.3), mechanism


def test_the_published_second_rounds_waste_noise():
    asked = {"size": 100, "epsilon_inf": 1.0, "epsilon_one": 0.5}
    exact, published = LGRR(**asked), LGRR(**asked, published=True)
    assert published.guarantee.epsilon == pytest.approx(0.037, abs=5e-4)
    assert exact.variance() / published.variance() == pytest.approx(0.003, abs=5e-4)
    two = {**asked, "size": 2}  # nothing is forgotten for two values
    assert LGRR(**two).rounds == pytest.approx(LGRR(**two, published=True).rounds)
    # the published number of symbols, at a pair of budgets worked by hand in its formula
    a, e = math.exp(5.0), math.exp(3.0)
    root = a**4 - 14 * a**2 - 12 * (a * e) ** 2 + 12 * a * e + 12 * a**3 * e + 1
    by_hand = round((math.sqrt(root) - a**2 + 6 * a - 6 * e + 1) / (6 * (a - e)))
    made = LOLOHA(size=50, epsilon_inf=5.0, epsilon_one=3.0, published=True)
    assert made.symbols == max(2, by_hand)


def test_calibration_holds_after_many_reports():
    for kind in (LSUE, LGRR, LOLOHA):
        plan = calibrate(kind, max_risk=0.1, prior=Prior.uniform(10), reports=30)
        assert plan.risk.interval[1] <= 0.1
        assert plan.mechanism.reports == 30 and plan.risk.rad > 0.09


def test_nobody_can_be_named():
    """Only a value that never occurs counts as right."""
    right = np.zeros((3, 3), dtype=bool)
    right[0, 0] = True
    made = LGRR(size=3, epsilon_inf=2.0, epsilon_one=1.0, reports=2)
    prior = Prior.from_probabilities([0.0, 0.5, 0.5])
    assert assess(made, prior=prior, threat=Threat(loss=right)).rad == 0.0
