"""Compositions: exact ones against products of channels, estimates against exact ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess, optimal_attack, simulate
from dprad.exact import solve
from dprad.exact.products import Factor, counted, drawn, factors
from dprad.exact.solution import Sampling
from dprad.game.question import Posed, Question
from dprad.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    Channel,
    Composed,
    DiscreteGaussian,
    Duchi,
    Exponential,
    ExponentialInterval,
    Gaussian,
    Geometric,
    HadamardResponse,
    Laplace,
    Piecewise,
    Repeated,
    Staircase,
    SubsetSelection,
    UnaryEncoding,
    bits,
)
from oracles import of_a_group, random_channel, random_instance

M = 4
# how to make each family over four values, and its outputs or what to enumerate
FAMILIES = {
    "grr": lambda e, rng: GRR(epsilon=e, size=M, delta=float(rng.choice([0.0, 0.1]))),
    "channel": lambda _, rng: Channel(random_channel(rng, M, 5)),
    "oue": lambda e, _: OUE(epsilon=e, size=M),
    "sue": lambda e, _: SUE(epsilon=e, size=M),
    "unary": lambda _, rng: UnaryEncoding(size=M, p=float(rng.uniform(0.5, 1)), q=0.25),
    "subset": lambda e, _: SubsetSelection(epsilon=e, size=M, subset=2),
    "blh": lambda e, _: BLH(epsilon=e, size=M),
    "olh": lambda e, _: OLH(epsilon=e, size=M),
    "hadamard": lambda e, _: HadamardResponse(epsilon=e, size=M),
    "exponential": lambda e, rng: Exponential(epsilon=e, utility=rng.random((M, 5))),
    "geometric": lambda e, _: Geometric(epsilon=e, sensitivity=3, clamp=(0, 3)),
    "discrete": lambda e, _: DiscreteGaussian(sigma=2 / e, sensitivity=3, clamp=(0, 4)),
    "duchi": lambda e, _: Duchi(epsilon=e, bounds=(0, 3)),
}


def enumerated(mechanism) -> np.ndarray:
    """The channel by its likelihood, output by output; hashing as independent memberships."""
    records, sets = np.arange(M)[:, None], np.array(list(itertools.product([0, 1], repeat=M))) == 1
    if isinstance(mechanism, (BLH, OLH)):
        own = np.where(np.eye(M) == 1, mechanism.truth, 1 / mechanism.buckets)
        return np.array([np.prod(np.where(sets, row, 1 - row), axis=1) for row in own])
    if isinstance(mechanism, (OUE, SUE, UnaryEncoding, SubsetSelection)):
        return np.exp(mechanism.log_likelihood(bits.pack(sets)[None], records))
    if isinstance(mechanism, Exponential):
        mechanism = mechanism.channel
    if isinstance(mechanism, Duchi):
        up = mechanism.up(mechanism.scaled(np.arange(float(M))))
        return np.stack([1 - up, up], axis=1)
    outputs = {Geometric: 4, DiscreteGaussian: 5, GRR: M}.get(type(mechanism)) or mechanism.count
    return np.exp(mechanism.log_likelihood(np.arange(outputs), records))


def product(*channels):
    """The channel of independent outputs seen together."""
    result = channels[0]
    for channel in channels[1:]:
        result = (result[:, :, None] * channel[:, None, :]).reshape(len(result), -1)
    return result


def best(instance, channel) -> tuple[float, float]:
    """RAD by the definition, all outputs at once; and the largest own risk."""
    pi, w = instance.pi, instance.targets
    apart = channel - pi @ channel
    rad = 0.0
    for x in set(instance.fiber.tolist()):
        inside = (instance.fiber == x)[:, None] & instance.success
        rad += np.maximum((inside * w[:, None]).T @ apart, 0.0).max(axis=0).sum()
    asked = (pi > 0) & (w > 0)
    return float(rad), float(np.maximum(apart, 0.0).sum(axis=1)[asked].max())


PAIRS = list(itertools.combinations_with_replacement(FAMILIES, 2))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_pair_of_families_is_the_product_of_their_channels(name):
    """91 pairs, over four times each: 340 instances and more, all threats, groups too."""
    rng = np.random.default_rng(list(FAMILIES).index(name))
    for one, two in (pair for pair in PAIRS if name == pair[0]):
        for _ in range(4):
            instance = random_instance(rng, M)
            if rng.random() < 0.2:
                instance = of_a_group(rng, instance)
            made = [FAMILIES[k](float(rng.uniform(0.1, 3)), rng) for k in (one, two)]
            exact, worst = best(instance, product(*map(enumerated, made)))
            risk = assess(Composed(made), prior=instance.prior, threat=instance.threat)
            assert risk.kind == "exact", (one, two)
            assert risk.rad == pytest.approx(exact, abs=1e-11), (one, two)
            assert risk.interval[0] - 1e-11 <= exact <= risk.interval[1] + 1e-11
            assert risk.worst == pytest.approx(worst, abs=1e-11), (one, two)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_repeated_mechanism_is_its_counts(name):
    rng = np.random.default_rng(7)
    times = 2 if name in ("oue", "sue", "unary", "blh", "olh") else 3
    instance = random_instance(rng, M)
    mechanism = FAMILIES[name](0.8, rng)
    exact, worst = best(instance, product(*[enumerated(mechanism)] * times))
    risk = assess(Repeated(mechanism, times), prior=instance.prior, threat=instance.threat)
    assert (risk.kind, risk.worst_kind) == ("exact", "exact")
    assert risk.rad == pytest.approx(exact, abs=1e-11)
    assert risk.worst == pytest.approx(worst, abs=1e-11)


def test_counts_have_the_probabilities_of_all_orders(rng):
    channel = random_channel(rng, 3, 4)
    assert counted(channel, 3).shape == (3, 20)  # 6 choose 3
    np.testing.assert_allclose(counted(channel, 3).sum(axis=1), 1.0, atol=1e-14)
    one = counted(np.array([[0.0, 1.0], [0.5, 0.5]]), 2)
    np.testing.assert_allclose(np.sort(one, axis=1), [[0, 0, 1], [0.25, 0.25, 0.5]], atol=1e-15)


# -- queries ---------------------------------------------------------------------------------------
TABLE = Prior.from_counts(
    {(a, b, c): 1 + (3 * a + 5 * b + 7 * c) % 6 for a in range(2) for b in range(3)
     for c in range(4)}, columns=["a", "b", "c"],
)  # fmt: skip
THREATS = (
    Threat(),
    Threat(knows="everything"),
    Threat(knows=["a"], target=["b"]),
    Threat(target=["c"], loss="absolute", eta=1),
)


def test_each_part_reads_its_own_column():
    """Also a comparison, a list and a function; against the channel of all records."""
    parts = [GRR(epsilon=1.0, size=2), OUE(epsilon=0.7, size=3), GRR(epsilon=2.0, size=2)]
    chain = Composed(parts, queries=["a", ["b"], "c >= 2"])
    a, b, c = (TABLE.column(name) for name in "abc")
    sets = np.array(list(itertools.product([0, 1], repeat=3))) == 1
    channel = product(
        np.exp(parts[0].log_likelihood(np.arange(2), a[:, None])),
        np.exp(parts[1].log_likelihood(bits.pack(sets)[None], b[:, None])),
        np.exp(parts[2].log_likelihood(np.arange(2), (c >= 2).astype(int)[:, None])),
    )
    for threat in THREATS:
        exact = assess(Channel(channel), prior=TABLE, threat=threat, query=["a", "b", "c"])
        risk = assess(chain, prior=TABLE, threat=threat)
        assert risk.kind == "exact" and risk.rad == pytest.approx(exact.rad, abs=1e-12)
        assert risk.worst == pytest.approx(exact.worst, abs=1e-12)
        assert risk.success_out == pytest.approx(exact.success_out, abs=1e-12)
    by_function = Composed(parts[:1], queries=[lambda support: [z[0] for z in support.tolist()]])
    alone = assess(parts[0], prior=TABLE, query="a")
    assert assess(by_function, prior=TABLE).rad == pytest.approx(alone.rad, abs=1e-12)


LINES = {
    "laplace": Laplace(epsilon=2.0, sensitivity=3.0),
    "clamped": Laplace(epsilon=2.0, sensitivity=3.0, clamp=(0.0, 3.0)),
    "interval": ExponentialInterval(epsilon=2.0, bounds=(0.0, 3.0)),
    "gaussian": Gaussian(sigma=1.5, sensitivity=3.0),
    "gaussian clamped": Gaussian(sigma=1.5, sensitivity=3.0, clamp=(0.0, 3.0)),
}


@pytest.mark.parametrize("name", LINES)
def test_two_finite_parts_and_one_line(name):
    """By the midpoint rule on 15,000 cells; atoms at the clamps are outputs of their own."""
    line = LINES[name]
    chain = Composed([GRR(epsilon=1.0, size=2), GRR(epsilon=1.5, size=3), line],
                     queries=["a", "b", "c"])  # fmt: skip
    a, b, c = (TABLE.column(name) for name in "abc")
    low, high = (0.0, 3.0) if "clamped" in name or name == "interval" else (-25.0, 28.0)
    edges = np.linspace(low, high, 15_001)
    t, values = (edges[1:] + edges[:-1]) / 2, np.arange(4.0)[:, None]
    density = np.exp(line.log_likelihood(t, values)) * (edges[1] - edges[0])
    if "clamped" in name:
        density = np.c_[density, np.exp(line.log_likelihood(np.array([low, high]), values))]
    one, two = chain.mechanisms[:2]
    grr = product(
        np.exp(one.log_likelihood(np.arange(2), a[:, None])),
        np.exp(two.log_likelihood(np.arange(3), b[:, None])),
    )
    pi = TABLE.probabilities
    for threat in (*THREATS, Threat(group="a = 1")):
        question = Question.of(TABLE, threat)
        risk = assess(chain, prior=TABLE, threat=threat)
        assert risk.kind == "exact" and "but one part" in risk.method
        game, total = question.game, 0.0
        for output in grr.T:
            joint = np.zeros((len(game.probabilities), len(density[0])))
            np.add.at(joint, game.class_of, (pi * output)[:, None] * density[c])
            gain = game.sets.sums(joint - game.probabilities[:, None] * joint.sum(axis=0))
            for x in np.unique(game.sets.fiber):
                total += np.maximum(gain[game.sets.fiber == x].max(axis=0), 0.0).sum()
        assert risk.rad == pytest.approx(total / game.share, abs=2e-5)


@pytest.mark.parametrize(
    "line",
    [Laplace(epsilon=3.0, sensitivity=39.0), Gaussian(sigma=9.0, sensitivity=39.0)],
    ids=["laplace", "gaussian"],
)
def test_records_that_read_alike_do_not_stand_together(line):
    """1,200 records, of which 40 numbers are read: whoever is likeliest depends on the others."""
    prior = Prior.from_counts(
        {(a, c): 1 + (7 * a + 11 * c) % 5 for a in range(30) for c in range(40)}, columns=["a", "c"]
    )
    chain = Composed([GRR(epsilon=4.0, size=30), line], queries=["a", "c"])
    for threat in (Threat(), Threat(knows=["c"])):
        risk, asked = assess(chain, prior=prior, threat=threat), posed(chain, prior, threat)
        found = drawn(
            [Factor(chain, asked.read)], asked, Sampling(trials=4000, confidence=1 - 1e-7)
        )
        assert risk.kind == "exact" and found.interval[0] <= risk.rad <= found.interval[1]


def test_gaussian_noise_on_one_value_is_one_release():
    """Precisions add, whatever stands between them; other columns are other releases."""
    two = [Gaussian(sigma=s, sensitivity=3.0) for s in (3.0, 4.0)]
    one = Gaussian(sigma=2.4, sensitivity=3.0)
    for threat in THREATS:
        asked = {"prior": TABLE, "threat": threat}
        exact = assess(one, query="c", **asked)
        risk = assess(Composed(two, queries=["c", "c"]), **asked)
        assert risk.rad == pytest.approx(exact.rad, abs=1e-9)
        assert risk.worst == pytest.approx(exact.worst, abs=1e-9)
        # between them something about another column
        mixed = [two[0], GRR(epsilon=1.0, size=3), two[1]]
        risk = assess(Composed(mixed, queries=["c", "b", "c"]), **asked)
        pair = assess(Composed([GRR(epsilon=1.0, size=3), one], queries=["b", "c"]), **asked)
        assert risk.kind == "exact" and risk.rad == pytest.approx(pair.rad, abs=1e-9)
    wide = [Gaussian(sigma=s, sensitivity=6.0) for s in (3.0, 4.0)]
    apart = Composed(wide, queries=["c", lambda s: [2 * z[2] for z in s.tolist()]])
    read = apart.read(Question.of(TABLE))
    assert len(factors(apart, read)) == 2  # the same order, but not the same numbers


# -- estimates -------------------------------------------------------------------------------------
def posed(mechanism, prior, threat=None):
    question = Question.of(prior, threat)
    return Posed(question.game, mechanism.read(question))


@pytest.mark.parametrize(
    "mechanism",
    [
        GRR(epsilon=0.8, size=3), OUE(epsilon=0.8, size=3), OLH(epsilon=0.8, size=3),
        SubsetSelection(epsilon=0.8, size=3, subset=2),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_counts_are_drawn_as_outputs_are(mechanism):
    """Intervals at 1 - 1e-7 of draws by counts hold the exact sum; 12 of them."""
    chain = Repeated(mechanism, 3)
    for k, threat in enumerate((Threat(), Threat(knows="everything"), Threat(group="value > 0"))):
        prior = Prior.from_counts({0: 5, 1: 3, 2: 2}, columns=["value"])
        exact = assess(chain, prior=prior, threat=threat)
        asked = posed(chain, prior, threat)
        parts = factors(chain, asked.read)
        sampling = Sampling(trials=20_000, confidence=1 - 1e-7, seed=k)
        found = drawn(parts, asked, sampling)
        share = asked.game.share
        assert found.interval[0] <= exact.rad * share <= found.interval[1]
        assert found.rad == pytest.approx(exact.rad * share, abs=0.02)
        assert found.success_out == pytest.approx(exact.success_out * share, abs=0.02)


def test_coverage_of_intervals_by_counts():
    """A 90% interval that is conservative: misses in 200 seeds stay below 10% (alarm 1e-6)."""
    chain, prior = Repeated(GRR(epsilon=0.6, size=3), 3), Prior.from_counts({0: 3, 1: 2, 2: 1})
    exact, asked = assess(chain, prior=prior).rad, posed(chain, prior)
    parts, misses = factors(chain, asked.read), 0
    for seed in range(200):
        found = drawn(parts, asked, Sampling(trials=200, confidence=0.9, seed=seed))
        misses += not found.interval[0] <= exact <= found.interval[1]
    assert misses <= 44  # binomial(200, 0.1) exceeds this with probability below 1e-6


def test_an_aim_is_reached_by_more_draws():
    chain, prior = Repeated(GRR(epsilon=1.0, size=20), 12), Prior.uniform(20)
    asked = posed(chain, prior)
    rough = solve(chain, asked, Sampling())
    fine = solve(chain, asked, Sampling(aim=0.001))
    assert rough.interval[1] - rough.interval[0] > 0.004
    assert fine.interval[1] - fine.interval[0] < 0.0021
    assert rough.interval[0] < fine.rad < rough.interval[1]


def test_codes_and_numbers_of_one_column():
    """A part that reads codes and one that reads the value itself."""
    prior = Prior.from_counts({0: 3, 10: 2})
    both = Composed([GRR(epsilon=1.0, size=2), Laplace(epsilon=1.0, sensitivity=10)])
    same = Composed(
        [GRR(epsilon=1.0, size=2), Laplace(epsilon=1.0, sensitivity=1)],
        queries=["value", lambda s: [int(z > 0) for z in s.tolist()]],
    )
    found, other = (assess(chain, prior=prior) for chain in (both, same))
    assert found.kind == "exact" and found.rad == pytest.approx(other.rad, abs=1e-12)
    attack = optimal_attack(both, prior=prior)
    played = simulate(both, attack, prior=prior, trials=20_000, confidence=1 - 1e-7)
    assert played.interval[0] <= found.rad <= played.interval[1]


@pytest.mark.parametrize("line", [Staircase, Piecewise], ids=["staircase", "piecewise"])
def test_pieces_are_columns(line):
    """A staircase or a piecewise density beside randomised response: 20,000 draws at 1 - 1e-7."""
    arguments = {"bounds": (0, 3)} if line is Piecewise else {"sensitivity": 3.0}
    chain = Composed([line(epsilon=1.0, **arguments), GRR(epsilon=0.5, size=M)])
    prior = Prior.from_counts({0: 4, 1: 1, 2: 2, 3: 3})
    risk = assess(chain, prior=prior)
    asked = posed(chain, prior)
    parts = [Factor(chain, asked.read)]
    found = drawn(parts, asked, Sampling(confidence=1 - 1e-7))
    assert risk.kind == "exact" and found.interval[0] <= risk.rad <= found.interval[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Composed([GRR(epsilon=1, size=2)], queries=["a", "b"]), "one query for each"),
        (lambda: Composed([GRR(epsilon=1, size=2)], queries="a"), "one query for each"),
        (
            lambda: assess(
                Composed([GRR(epsilon=1, size=2)], queries=["a"]), prior=TABLE, query="b"
            ),
            "leave out query",
        ),
        (
            lambda: assess(Composed([GRR(epsilon=1, size=2)], queries=["b"]), prior=TABLE),
            "distinct values",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


@pytest.mark.parametrize(("outputs", "times"), [(5, 2), (5, 4), (4, 3), (3, 5), (2, 7), (40, 2)])
def test_counts_and_lists_are_the_same_channel(outputs, times):
    """Against all sequences, summed by what occurred how often."""
    matrix = np.random.default_rng(times).dirichlet(np.ones(outputs), 3)
    chances = {}
    for sequence in itertools.product(range(outputs), repeat=times):
        key = tuple(sorted(sequence))
        chances[key] = chances.get(key, 0.0) + matrix[:, sequence].prod(axis=1)
    expected = np.array(sorted(map(tuple, np.array(list(chances.values())).tolist())))
    found = np.array(sorted(map(tuple, counted(matrix, times).T.tolist())))
    assert np.allclose(found, expected, atol=1e-14)


def test_many_outputs_run_twice_take_no_table():
    """A thousand outputs have half a million pairs; their counts would have 5e8 entries."""
    channel = counted(np.random.default_rng(0).dirichlet(np.ones(1000), 2), 2)
    assert channel.shape == (2, 500_500) and channel.sum(axis=1) == pytest.approx(1.0)
