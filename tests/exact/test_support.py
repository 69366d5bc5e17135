"""Support mechanisms: closed form against all support sets, and the paper's formulas."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess
from dprad.exact import support
from dprad.mechanisms import BLH, GRR, OLH, OUE, SUE, Channel, SubsetSelection, UnaryEncoding
from oracles import Instance, brute_force, random_instance


def unary_channel(m, p, q):
    """Every output and its probability, by plain loops."""
    rows = []
    for z in range(m):
        row = []
        for bits in itertools.product([0, 1], repeat=m):
            chance = 1.0
            for i, bit in enumerate(bits):
                one = p if i == z else q
                chance *= one if bit else 1 - one
            row.append(chance)
        rows.append(row)
    return np.array(rows)


def subset_channel(m, w, epsilon):
    rows = np.array(
        [
            [math.exp(epsilon) if z in s else 1.0 for s in itertools.combinations(range(m), w)]
            for z in range(m)
        ]
    )
    return rows / rows.sum(axis=1, keepdims=True)


def hashing_channel(m, g, truth, lie):
    """All g^m hash functions, uniformly: what an ideal family is."""
    functions = list(itertools.product(range(g), repeat=m))
    rows = [
        [(truth if h[z] == y else lie) / g**m for h in functions for y in range(g)]
        for z in range(m)
    ]
    return np.array(rows)


def mechanisms(m, epsilon):
    yield OUE(epsilon=epsilon, size=m), unary_channel(m, 0.5, 1 / (math.exp(epsilon) + 1))
    half = math.exp(epsilon / 2)
    yield SUE(epsilon=epsilon, size=m), unary_channel(m, half / (half + 1), 1 / (half + 1))
    yield UnaryEncoding(size=m, p=0.7, q=0.2), unary_channel(m, 0.7, 0.2)
    subset = SubsetSelection(epsilon=epsilon, size=m)
    yield subset, subset_channel(m, subset.members, epsilon)
    blh = BLH(epsilon=epsilon, size=m)
    yield blh, hashing_channel(m, 2, blh.truth, blh.lie)
    near = GRR(epsilon=epsilon, size=m, delta=0.1)
    yield near, np.full((m, m), near.lie) + near.gap * np.eye(m)
    if m <= 4 and epsilon <= 1:
        olh = OLH(epsilon=epsilon, size=m)
        yield olh, hashing_channel(m, olh.buckets, olh.truth, olh.lie)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_equals_brute_force(m, epsilon):
    rng = np.random.default_rng(m)
    for mechanism, channel in mechanisms(m, epsilon):
        assert channel.sum(axis=1) == pytest.approx(np.ones(m))
        for _ in range(6):
            instance = random_instance(rng, m)
            risk = assess(mechanism, prior=instance.prior, threat=instance.threat)
            rad, rero = brute_force(instance, channel)
            assert risk.rad == pytest.approx(rad, abs=1e-10), (mechanism, instance)
            assert risk.rero == pytest.approx(rero, abs=1e-10), (mechanism, instance)
            summed = assess(Channel(channel), prior=instance.prior, threat=instance.threat)
            assert risk.success_out == pytest.approx(summed.success_out, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_eight_values_and_any_partition(seed):
    """The closed form alone: singletons, random knowledge, m = 8."""
    rng = np.random.default_rng(seed)
    m, epsilon = 8, float(rng.uniform(0.2, 3))
    oue, subset = OUE(epsilon=epsilon, size=m), SubsetSelection(epsilon=epsilon, size=m)
    channels = [
        (oue, unary_channel(m, oue.p, oue.q)),
        (subset, subset_channel(m, subset.members, epsilon)),
    ]
    for mechanism, channel in channels:
        instance = random_instance(rng, m, knows="part", kind="exact")
        risk = assess(mechanism, prior=instance.prior, threat=instance.threat)
        assert risk.method == "closed form for support mechanisms"
        assert risk.rad == pytest.approx(brute_force(instance, channel)[0], abs=1e-10)


def test_a_column_is_read(rng):
    """Values shared between fibers, several classes a value, zero-probability values."""
    weights = rng.random((3, 4)) * (rng.random((3, 4)) < 0.8)
    weights[0, 0] = 1.0
    prior = Prior.from_counts(
        {(a, b): weights[a, b] for a in range(3) for b in range(4)}, columns=["a", "b"]
    )
    oue = OUE(epsilon=1.2, size=4)
    channel = Channel(unary_channel(4, oue.p, oue.q))
    for threat in (
        Threat(knows=["a"], target=["b"]),
        Threat(target=["a"]),
        Threat(),
        Threat(knows="everything"),
        Threat(knows=["a"]),
    ):
        one = assess(oue, prior=prior, threat=threat, query="b")
        two = assess(channel, prior=prior, threat=threat, query="b")
        for name in ("rad", "rero", "success_out"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-11), threat


def test_formulas_of_the_paper():
    for m, epsilon in itertools.product((2, 11, 100), (0.5, 2.0, 6.0)):
        e = math.exp(epsilon)
        oue = assess(OUE(epsilon=epsilon, size=m), prior=Prior.uniform(m)).rad
        assert oue == pytest.approx((e - 1) / (2 * m) * (1 - (e / (1 + e)) ** (m - 1)), rel=1e-12)
        subset = SubsetSelection(epsilon=epsilon, size=m)
        risk = assess(subset, prior=Prior.uniform(m)).rad
        w = subset.members
        assert risk == pytest.approx((subset.p * m - w) / (m * w), rel=1e-12)
        member = assess(
            OUE(epsilon=epsilon, size=m), prior=Prior.uniform(m), threat=Threat(knows="everything")
        )
        assert member.rad == pytest.approx(0.5 * (e - 1) / (e + 1) * (1 - 1 / m), rel=1e-12)


def test_oue_never_exceeds_its_limit():
    m = 50
    for epsilon in (1.0, 10.0, 50.0, 700.0):
        risk = assess(OUE(epsilon=epsilon, size=m), prior=Prior.uniform(m)).rad
        assert risk <= (m - 1) / (2 * m) + 1e-15


def test_risk_can_fall_where_epsilon_grows():
    """Subset selection, six values, two of them likely: a step of w."""
    prior = Prior.from_counts({0: 1, 1: 1, 2: 0, 3: 0, 4: 0, 5: 0})
    low = assess(SubsetSelection(epsilon=0.69, size=6), prior=prior)
    high = assess(SubsetSelection(epsilon=0.70, size=6), prior=prior)
    sizes = [SubsetSelection(epsilon=e, size=6).members for e in (0.69, 0.70)]
    assert sizes[0] >= sizes[1]
    steps = [
        assess(SubsetSelection(epsilon=e, size=6), prior=prior).rad for e in np.linspace(0, 3, 61)
    ]
    assert np.any(np.diff(steps) < -1e-3)
    assert low.rad > 0 and high.rad > 0


@pytest.mark.parametrize(
    ("m", "epsilon", "subset", "expected"),
    [
        (11, 1.0, "floor", 0.0974),
        (11, 1.0, "round", 0.0774),
        (5356, 8.0, "floor", 0.357),
        (5356, 8.0, "round", 0.263),
        (11, 1.0, 5, 0.0478),
    ],
)
def test_rules_for_the_size_of_a_subset(m, epsilon, subset, expected):
    mechanism = SubsetSelection(epsilon=epsilon, size=m, subset=subset)
    digits = len(str(expected)) - 2
    assert round(assess(mechanism, prior=Prior.uniform(m)).rad, digits) == expected
    assert SubsetSelection(epsilon=epsilon, size=m) == SubsetSelection(
        epsilon=epsilon, size=m, subset="floor"
    )


@pytest.mark.parametrize("rule", ["floor", "round"])
@pytest.mark.parametrize("m", [2, 7, 10])
def test_sizes_step_at_the_edges_and_nowhere_else(rule, m):
    def members(epsilon):
        return SubsetSelection(epsilon=epsilon, size=m, subset=rule).members

    edges = SubsetSelection(epsilon=1.0, size=m, subset=rule).edges()
    for edge in edges:
        assert members(edge - 1e-6) == members(edge + 1e-6) + 1
    grid = np.linspace(1e-6, 5.0, 2001)
    steps = sum(members(a) - members(b) for a, b in itertools.pairwise(grid))
    assert steps == len(edges)
    exact = {"floor": math.floor, "round": lambda x: math.floor(x + 0.5)}[rule]
    for w in range(1, m // 2 + 1):  # a whole number is not lost to rounding
        if m > 2 * w:
            assert members(math.log(m / w - 1)) == max(1, exact(w))


@pytest.mark.parametrize("subset", ["ceil", 0, 12, 2.5, None])
def test_sizes_that_cannot_be(subset):
    with pytest.raises(DpradError, match="subset"):
        SubsetSelection(epsilon=1.0, size=11, subset=subset)


def test_subset_selection_with_a_million_values():
    """Ratios one by one keep the digits that log-gamma would lose."""
    m, epsilon = 10**6, 2.0
    subset = SubsetSelection(epsilon=epsilon, size=m)
    rng = np.random.default_rng(0)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(m)))
    risk = assess(subset, prior=prior).rad
    pi = np.sort(prior.probabilities)[::-1]
    w = subset.members
    # 60 terms in 40 digits are enough: the chance that none of the 60 likeliest is in is 1e-4
    with mpmath.workdps(40):
        lift = 1 - mpmath.exp(-epsilon)
        hit, ahead, total = mpmath.mpf(subset.p), mpmath.mpf(0), mpmath.mpf(0)
        for n in range(400):
            following = hit * (m - w - n) / (m - 1 - n)
            x = mpmath.mpf(float(pi[n]))
            total += x * (ahead * hit + (1 - x - ahead) * following)
            ahead, hit = ahead + x, following
        exact = float(lift * total)
    assert risk == pytest.approx(exact, rel=1e-9)


def test_every_mechanism_stays_below_its_promise(rng):
    for _ in range(40):
        m = int(rng.integers(2, 7))
        instance = random_instance(rng, m, kind="exact")
        epsilon = float(rng.uniform(0, 4))
        for mechanism, _channel in mechanisms(m, epsilon) if m <= 4 else []:
            question = {"prior": instance.prior, "threat": instance.threat}
            bound = assess(mechanism.guarantee, **question).rad
            assert assess(mechanism, **question).rad <= bound + 1e-12


def test_too_many_sets_to_enumerate_are_sampled():
    threat = Threat(loss="absolute", eta=1)
    risk = assess(OUE(epsilon=2, size=100), prior=Prior.uniform(100), threat=threat, trials=4000)
    assert risk.kind == "estimate" and "Monte Carlo" in risk.method
    assert risk.interval[0] < risk.rad < risk.interval[1]
    bound = assess(OUE(epsilon=2, size=100).guarantee, prior=Prior.uniform(100), threat=threat)
    assert risk.interval[0] <= bound.rad
    assert support.enumerated(OUE(epsilon=1, size=100)) is None


def test_extreme_parameters():
    for epsilon in (1e-17, 1e-12):
        two = Prior.uniform(2)
        assert assess(OUE(epsilon=epsilon, size=2), prior=two).rad == pytest.approx(
            epsilon / 8, rel=1e-9
        )
    assert assess(SUE(epsilon=800, size=3), prior=Prior.uniform(3)).rad == pytest.approx(2 / 3)
    blind = UnaryEncoding(size=4, p=0.0, q=0.0)
    near = Threat(loss="absolute", eta=1)
    assert assess(blind, prior=Prior.uniform(4), threat=near).rad == 0.0
    hidden = assess(
        GRR(epsilon=1000, size=3), prior=Prior.uniform(3), threat=Threat(loss=np.diag([1, 1, 0]))
    )
    assert hidden.rad == pytest.approx(4 / 9)


def test_hashing_names_its_assumption():
    risk = assess(OLH(epsilon=1, size=4), prior=Prior.uniform(4))
    assert any("hash functions" in line for line in risk.assumptions)


def test_unsigned_codes_are_codes():
    prior = Prior.uniform(2)
    one = assess(GRR(epsilon=1, size=5), prior=prior, query=lambda s: s.astype(np.uint8))
    assert one.rad == assess(GRR(epsilon=1, size=5), prior=prior, query=lambda s: s).rad


def test_the_oracles_agree_with_one_another(rng):
    """Hashing over all functions is a unary encoding over all supports."""
    m, epsilon = 3, 0.8
    blh = BLH(epsilon=epsilon, size=m)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(m)))
    instance = Instance(
        prior.probabilities, np.zeros(m, dtype=int), np.eye(m, dtype=bool), prior, Threat()
    )
    full = brute_force(instance, hashing_channel(m, 2, blh.truth, blh.lie))
    sets = brute_force(instance, unary_channel(m, blh.truth, 0.5))
    assert full == pytest.approx(sets, abs=1e-12)


# -- exchangeable, but not independent ------------------------------------------------------------
def test_supports_of_mixed_sizes_are_not_taken_for_independent_bits():
    from dataclasses import dataclass

    from dprad import PureDP
    from dprad.mechanisms.support import SupportMechanism, Supports

    m, epsilon, sizes = 6, 1.0, (1, 5)
    sets = [s for k in sizes for s in itertools.combinations(range(m), k)]
    inside = np.array([[z in s for s in sets] for z in range(m)])
    weight = np.where(inside, np.exp(epsilon), 1.0)
    matrix = weight / weight.sum(axis=1, keepdims=True)

    @dataclass(frozen=True, kw_only=True)
    class Mixed(SupportMechanism):
        size: int = m

        @property
        def guarantee(self):
            return PureDP(epsilon, neighbours="replace-one")

        @property
        def supports(self):
            def chance(z_in, k, all_in):
                rest = range(1, m)[:k]
                good = [
                    (inside[0, o] == z_in) and all(inside[r, o] == all_in for r in rest)
                    for o in range(len(sets))
                ]
                return float(matrix[0][good].sum())

            return Supports(
                log_ratio=epsilon,
                hit=lambda n: np.array([chance(True, k, False) for k in range(n + 1)]),
                miss=lambda n: np.array([chance(False, k, False) for k in range(n + 1)]),
                full=lambda k: chance(True, k, True),
            )

        def sample(self, records, rng):
            return np.array([rng.choice(len(sets), p=matrix[r]) for r in np.asarray(records)])

        def log_likelihood(self, outputs, records):
            return np.log(matrix[np.asarray(records), np.asarray(outputs)])

    prior = Prior.uniform(m)
    for threat in (Threat(), Threat(loss="absolute", eta=1)):
        truth = assess(Channel(matrix), prior=prior, threat=threat)
        risk = assess(Mixed(), prior=prior, threat=threat)
        assert risk.interval[0] - 1e-9 <= truth.rad <= risk.interval[1] + 1e-9
        assert risk.kind == "estimate" or risk.rad == pytest.approx(truth.rad, abs=1e-12)
