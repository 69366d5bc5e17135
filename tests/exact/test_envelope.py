"""Laplace and geometric noise: envelopes against quadrature, 50 digits, and published numbers."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from dprad import DpradError, Prior, Threat, assess
from dprad.exact import branching, envelope, laplace
from dprad.game.game import play
from dprad.mechanisms import Channel, ExponentialInterval, Gaussian, Geometric, Laplace
from effort import some
from oracles import brute_force, random_instance


@pytest.fixture(autouse=True)
def _branching_at_any_size(monkeypatch):
    monkeypatch.setattr(laplace, "SMALL", 0)


def density(t, v, rate):
    return rate / 2 * np.exp(-rate * np.abs(t - v))


def by_quadrature(instance, values, rate):
    """RAD and ReRo as integrals of maxima over fibers and guesses, panels split at the values."""
    pi, m = instance.pi, len(values)
    subsets = [
        ((instance.fiber == x) & instance.success[:, g], x)
        for x in np.unique(instance.fiber)
        for g in range(m)
    ]

    def at(t):
        p = density(t, values, rate)
        pbar = pi @ p
        gain, hit = {}, {}
        for inside, x in subsets:
            gain[x] = max(gain.get(x, 0.0), float((pi * (p - pbar))[inside].sum()))
            hit[x] = max(hit.get(x, 0.0), float((pi * p)[inside].sum()))
        return sum(gain.values()), sum(hit.values())

    ends = [values.min() - 40 / rate, *np.sort(values), values.max() + 40 / rate]
    totals = np.zeros(2)
    for a, b in itertools.pairwise(ends):
        for k in range(2):
            totals[k] += quad(lambda t, k=k: at(t)[k], a, b, limit=200, epsabs=1e-11)[0]
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_equals_quadrature(seed):
    """Random priors, partitions and relations; records in the order of their values."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    instance = random_instance(rng, m)
    values = np.sort(rng.choice(12, size=m, replace=False)).astype(float)
    rate = float(rng.choice([0.05, 0.4, 2.0]))
    mechanism = Laplace(epsilon=rate * 12, sensitivity=12)
    table = dict(enumerate(values))
    risk = assess(
        mechanism,
        prior=instance.prior,
        threat=instance.threat,
        query=lambda s: [table[int(i)] for i in s],
    )
    rad, rero = by_quadrature(instance, values, rate)
    assert risk.rad == pytest.approx(rad, abs=2e-8)
    assert risk.rero == pytest.approx(rero, abs=2e-8)
    assert 0 <= risk.success_out <= risk.success_in <= 1


def adult_like():
    """A bumpy prior on 0..100 with zeros and one heavy value."""
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 50, size=101).astype(float)
    weight[[0, 69, 71, 100]] = 0.0
    weight[40] = 2000.0
    return Prior.from_counts(dict(enumerate(weight.tolist())))


@pytest.mark.parametrize("eta", [0, 40])
def test_fifty_digits_at_101_values(eta):
    """A walk along every envelope with 50 digits, by sorting all crossings."""
    prior, epsilon = adult_like(), 4.6
    risk = assess(
        Laplace(epsilon=epsilon, sensitivity=100),
        prior=prior,
        threat=Threat(loss="absolute", eta=eta),
    )
    with mpmath.workdps(50):
        exact = _walk_exactly([mpmath.mpf(float(p)) for p in prior.probabilities], epsilon, eta)
    assert risk.rad == pytest.approx(float(exact), abs=1e-12)


def _walk_exactly(pi, epsilon, eta):
    """Each gap: the envelope of all windows by pairwise crossings from the left, in mpmath."""
    mp, m = mpmath.mp, len(pi)
    total_mass = sum(pi)
    pi = [p / total_mass for p in pi]
    rate = mp.mpf(epsilon) / 100
    windows = [(max(0, g - eta), min(m, g + eta + 1)) for g in range(m)]
    mass = [sum(pi[a:b]) for a, b in windows]
    total = mp.mpf(0)
    step = mp.exp(-rate)
    # left[j]: sum of pi e^-(distance) over records up to j, by prefix sums per window
    for j in range(m - 1):
        seen_left = [pi[z] * step ** (j - z) if z <= j else mp.mpf(0) for z in range(m)]
        seen_right = [pi[z] * step ** (z - j - 1) if z > j else mp.mpf(0) for z in range(m)]
        pre_l, pre_r = [mp.mpf(0)], [mp.mpf(0)]
        for x, y in zip(seen_left, seen_right, strict=True):
            pre_l.append(pre_l[-1] + x)
            pre_r.append(pre_r[-1] + y)
        lines = [(mp.mpf(0), mp.mpf(0))]
        for (a, b), w in zip(windows, mass, strict=True):
            lines.append((pre_r[b] - pre_r[a] - w * pre_r[-1], pre_l[b] - pre_l[a] - w * pre_l[-1]))
        h = mp.exp(-rate / 2)
        u, end = h * h, 1 / (h * h)
        current = max(lines, key=lambda s: (s[0] + s[1] * u, s[1]))
        while True:
            ahead = [
                ((current[0] - s[0]) / (s[1] - current[1]), s) for s in lines if s[1] > current[1]
            ]
            ahead = [(c, s) for c, s in ahead if c >= u]
            stop, following = min(ahead, key=lambda x: (x[0], -x[1][1]), default=(end, None))
            stop = min(stop, end)
            y1, y2 = mp.sqrt(u), mp.sqrt(stop)
            total += h * (current[0] * (1 / y1 - 1 / y2) + current[1] * (y2 - y1)) / 2
            if stop >= end or following is None:
                break
            u, current = stop, following
    for side in (range(m), range(m - 1, -1, -1)):
        seen = {z: pi[z] * step**k for k, z in enumerate(side)}
        every = sum(seen.values())
        best = max(
            sum(seen[z] for z in range(a, b)) - w * every
            for (a, b), w in zip(windows, mass, strict=True)
        )
        total += max(best, 0) / 2
    return total


REFERENCE = {
    0: [0.00494, 0.01376, 0.02251, 0.03118, 0.03977, 0.04829],
    40: [0.11028, 0.24920, 0.33774, 0.39523, 0.43382, 0.46071],
    100: [0.0] * 6,
}


@pytest.mark.parametrize("eta", [0, 40, 100])
def test_published_numbers_on_0_to_100(eta):
    for epsilon, expected in zip((1, 2.8, 4.6, 6.4, 8.2, 10), REFERENCE[eta], strict=True):
        mechanism = Laplace(epsilon=epsilon, sensitivity=100, clamp=(0, 100))
        risk = assess(mechanism, prior=Prior.uniform(101), threat=Threat(loss="absolute", eta=eta))
        assert round(risk.rad, 5) == expected


def test_formula_of_the_paper():
    for m, epsilon in ((2, 1.0), (11, 5.0), (100, 0.01), (11, 700.0), (3, 50.0)):
        risk = assess(Laplace(epsilon=epsilon, sensitivity=m - 1), prior=Prior.uniform(m)).rad
        expected = (m - 1) / m * -np.expm1(-epsilon / (2 * (m - 1)))
        assert risk == pytest.approx(expected, rel=1e-11)
    two = Prior.from_counts({0: 1, 100: 1}, domain=range(101))
    assert round(assess(Laplace(epsilon=1, sensitivity=100), prior=two).rad, 3) == 0.197


def test_blocks_do_not_change_the_result(monkeypatch):
    prior, threat = adult_like(), Threat(loss="absolute", eta=7)
    whole = assess(Laplace(epsilon=3, sensitivity=100), prior=prior, threat=threat)
    monkeypatch.setattr(laplace, "BLOCK_ENTRIES", 500)
    blocked = assess(Laplace(epsilon=3, sensitivity=100), prior=prior, threat=threat)
    for name in ("rad", "rero", "success_out"):
        assert getattr(blocked, name) == pytest.approx(getattr(whole, name), abs=1e-13)


def awkward(rng):
    """A prior on up to 60 numbers: even, falling, one heavy, one nearly impossible; and a loss."""
    m = int(rng.integers(2, 60))
    weights = rng.random(m) + 1e-3
    kind = rng.integers(5)
    if kind == 0:
        weights[:] = 1.0
    elif kind == 1:
        weights = np.sort(weights)[::-1]
    elif kind == 2:
        weights = 10.0 ** rng.uniform(-12, 0, m)
    else:
        weights[rng.integers(m)] = (1e3, 1e-300)[kind - 3]
    steps = rng.integers(1, 9, m) if rng.random() < 0.5 else rng.exponential(3, m) + 1e-3
    prior = Prior.from_counts(dict(zip(np.cumsum(steps).tolist(), weights.tolist(), strict=True)))
    eta = float(rng.choice([0, 1, 5, 50, 500]))
    return prior, {} if rng.random() < 0.4 else {"loss": "absolute", "eta": eta}


@pytest.mark.parametrize("knows", ["nothing", "everything"])
@pytest.mark.parametrize("seed", range(some(8, 4)))
def test_the_short_ways_equal_the_long_one(knows, seed, monkeypatch):
    """Sets that are left out, and intervals instead of envelopes, against all sets in all gaps."""
    rng = np.random.default_rng([seed, len(knows)])
    for _ in range(12):
        prior, loss = awkward(rng)
        span = float(np.ptp(prior.support.astype(float)))
        threat = Threat(knows=knows, **loss)
        noise = Laplace(epsilon=span * 10.0 ** rng.uniform(-4, 3), sensitivity=span)
        if rng.random() < 0.3:
            ends = float(min(prior.support)) - rng.random(), float(max(prior.support)) + 1
            noise = ExponentialInterval(epsilon=10.0 ** rng.uniform(-5, 2.5), bounds=ends)
        query = None
        if rng.random() < 0.4:
            # other numbers than the targets, in any order, some of them twice
            numbers = rng.choice(prior.support.astype(float), prior.size).tolist()
            query = lambda _, numbers=numbers: numbers  # noqa: E731
        short = assess(noise, prior=prior, threat=threat, query=query)
        with monkeypatch.context() as patch:
            patch.setattr(laplace.Line, "of", lambda *_: None)
            patch.setattr(laplace, "_apart", lambda *_: False)
            long = assess(noise, prior=prior, threat=threat, query=query)
        assert short.rad == pytest.approx(long.rad, abs=1e-14, rel=1e-9)
        assert short.rero == pytest.approx(long.rero, abs=1e-9)
        assert short.success_out == pytest.approx(long.success_out, abs=1e-7)


@pytest.mark.parametrize("apart", [True, False])
def test_who_knows_everything_is_always_right_about_members(apart, monkeypatch):
    """Before anything is clipped to one."""
    if not apart:
        monkeypatch.setattr(laplace, "_apart", lambda *_: False)
    prior, values = Prior.from_probabilities([0.2, 0.5, 0.3]), np.array([0.0, 1.5, 2.0])
    game = play(prior, Threat(knows="everything"))
    found = laplace.solve_laplace(game, values, prior.probabilities)
    assert found.rero == pytest.approx(1.0, rel=1e-12)


def test_a_record_with_nearly_all_the_mass():
    prior = Prior.from_counts({0: 1, 1: 1e11, 2: 1})
    risk = assess(
        Laplace(epsilon=9e5, sensitivity=2), prior=prior, threat=Threat(knows="everything")
    )
    assert risk.rad == pytest.approx(4e-11, rel=1e-6) and risk.success_out == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-15, 1e-17, 1e-100, 1e-308, 5e-324])
@pytest.mark.parametrize("kind", [Laplace, ExponentialInterval])
def test_less_than_floats_can_tell(epsilon, kind):
    """No gain, and the guesses are as good as blind ones, not worse."""
    given = {"bounds": (0, 200)} if kind is ExponentialInterval else {"sensitivity": 3}
    for knows, rero in (("nothing", 0.25), ("everything", 1.0)):
        noise = kind(epsilon=epsilon, **given)
        risk = assess(noise, prior=Prior.uniform(4), threat=Threat(knows=knows))
        assert risk.rad <= epsilon + 1e-15 and risk.rero == pytest.approx(rero, abs=1e-12)
    if kind is ExponentialInterval:
        prior = Prior.continuous(beta(2, 3), 0, 1)
        threat = Threat(loss="absolute", eta=0.1)
        risk = assess(ExponentialInterval(epsilon=epsilon), prior=prior, threat=threat)
        assert risk.rad < 1e-12 and risk.rero == pytest.approx(play(prior, threat).p_plus, abs=1e-4)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("knows", ["nothing", "everything"])
def test_next_to_nothing_is_told_to_its_digits(epsilon, knows):
    """Two values at the ends: both densities differ by a first-order term, epsilon/16."""
    noise = ExponentialInterval(epsilon=epsilon, bounds=(0, 1))
    risk = assess(noise, prior=Prior.uniform(2), threat=Threat(knows=knows))
    assert risk.rad == pytest.approx(epsilon / 16, rel=1e-3, abs=0.0)


@pytest.mark.parametrize("knows", ["nothing", "everything", lambda table: [0, 1, 0]])
@pytest.mark.parametrize("read", [[3, 3, 3], [3, 3, 5]])
def test_records_that_read_alike(knows, read):
    """One value, or fewer than records: no gap, or gaps with several records at their ends."""
    prior, threat = Prior.from_probabilities([0.5, 0.3, 0.2]), Threat(knows=knows)
    noise = Laplace(epsilon=2.0, sensitivity=2.0)
    risk = assess(noise, prior=prior, threat=threat, query=lambda table: read)
    assert risk.kind == "exact"
    fine = np.linspace(-60, 68, 40_001)
    p = density(fine[None, :], np.array(read)[:, None], 1.0) * (fine[1] - fine[0])
    channel = Channel(p / p.sum(axis=1, keepdims=True))
    same = assess(channel, prior=prior, threat=threat)
    assert risk.rad == pytest.approx(same.rad, abs=1e-5)
    assert risk.rero == pytest.approx(same.rero, abs=1e-5)
    assert risk.success_out == pytest.approx(same.success_out, abs=1e-3)


@pytest.mark.parametrize("knows", ["nothing", ["d"], ["e"]])
@pytest.mark.parametrize("seed", range(4))
def test_classes_at_several_values(knows, seed):
    """Targets that stand at two values each, or at one and at two: not on a line, not apart."""
    rng = np.random.default_rng(seed)
    counts = {(d, d % 2, x): 1.0 + rng.random() for d in range(4) for x in (3 * d, 14 - d)}
    if seed % 2:
        del counts[2, 0, 6], counts[0, 0, 0]
    prior = Prior.from_counts(counts, columns=["d", "e", "x"])
    threat = Threat(target=["d"], knows=knows)
    noise = Laplace(epsilon=6.0, sensitivity=14)
    risk = assess(noise, prior=prior, threat=threat, query="x")
    edges = np.linspace(-100, 114, 60_001)
    values = np.array([x for _, _, x in counts], dtype=float)
    centre = (edges[1:] + edges[:-1]) / 2
    p = density(centre[None, :], values[:, None], 6 / 14)
    channel = Channel(p / p.sum(axis=1, keepdims=True))
    same = assess(channel, prior=prior, threat=threat, query=lambda t: list(range(len(values))))
    assert risk.rad == pytest.approx(same.rad, abs=1e-5) and risk.rad > 0.01
    assert risk.rero == pytest.approx(same.rero, abs=1e-5)
    assert risk.success_out == pytest.approx(same.success_out, abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_sets_next_to_the_ends_of_blocks(seed, monkeypatch):
    """A little more than one block or two, and nearly all the weight in a few places."""
    rng = np.random.default_rng(seed)
    for m in (33, 34, 35, 36, 40, 65, 66, 67, 68):
        weights = rng.gamma(0.15, size=m) + 1e-9
        values = np.cumsum(rng.exponential(1.0, m) + 0.01)
        prior = Prior.from_counts(dict(zip(values.tolist(), weights.tolist(), strict=True)))
        threat = Threat(loss="absolute", eta=float(rng.choice([0.0, 1.0, 2.5, 8.0])))
        rate = float(rng.choice([0.02, 0.3, 2.0]))
        noise = Laplace(epsilon=rate * np.ptp(values), sensitivity=np.ptp(values))
        short = assess(noise, prior=prior, threat=threat)
        with monkeypatch.context() as patch:
            patch.setattr(laplace.Line, "of", lambda *_: None)
            long = assess(noise, prior=prior, threat=threat)
        assert short.rad == pytest.approx(long.rad, abs=1e-13)
        assert short.rero == pytest.approx(long.rero, abs=1e-12)
        assert short.success_out == pytest.approx(long.success_out, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 2123, 3296, 3562])
def test_a_cluster_left_of_a_block(seed, monkeypatch):
    """Lighter and lighter records before a block: further on in it, the lighter of them gain more.

    (With these seeds some would be lost if pbar were thought to be less than it is.)
    """
    rng = np.random.default_rng(seed)
    m = int(rng.choice([66, 70, 80]))
    weights = rng.gamma(1.0, size=m) * 1e-4
    few = int(rng.integers(4, 20))
    weights[33 - few : 33] = np.sort(rng.random(few) ** 3)[::-1]
    far = min(66, m - 1)
    weights[far:] = rng.random(m - far) * 10 ** rng.uniform(-1, 2)
    gap = np.full(m, 10 ** rng.uniform(-3, -1))
    gap[33 - few : 33] = 10 ** rng.uniform(-3, 0) * rng.random(few) + 1e-3
    values = np.cumsum(gap)
    prior = Prior.from_counts(dict(zip(values.tolist(), weights.tolist(), strict=True)))
    game = play(prior, Threat())
    short = laplace.solve_laplace(game, values, prior.probabilities)
    monkeypatch.setattr(laplace.Line, "of", lambda *_: None)
    long = laplace.solve_laplace(game, values, prior.probabilities)
    assert short.rad == pytest.approx(long.rad, rel=1e-12)
    assert short.rero == pytest.approx(long.rero, rel=1e-12)
    assert short.success_out == pytest.approx(long.success_out, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_classes_of_several_values_next_to_the_ends_of_blocks(seed, monkeypatch):
    """Targets one after the other along the values, some of which two of them share."""
    rng = np.random.default_rng(seed)
    lines, of = [], laplace.Line.of
    for m in (35, 40, 66, 100):
        places = np.sort(rng.integers(0, m, 2 * m))
        target = np.cumsum(rng.random(2 * m) < 0.3)
        counts = {}
        for t, x in zip(target.tolist(), places.tolist(), strict=True):
            counts[t, x] = counts.get((t, x), 0.0) + rng.gamma(0.2) + 1e-9
        prior = Prior.from_counts(counts, columns=["t", "x"])
        noise = Laplace(epsilon=float(rng.choice([2.0, 20.0])), sensitivity=m)
        question = {"prior": prior, "threat": Threat(target=["t"]), "query": "x"}
        with monkeypatch.context() as patch:
            patch.setattr(laplace.Line, "of", lambda *given: lines.append(of(*given)) or lines[-1])
            short = assess(noise, **question)
            patch.setattr(laplace.Line, "of", lambda *_: None)
            long = assess(noise, **question)
        assert short.rad == pytest.approx(long.rad, abs=1e-13)
        assert short.rero == pytest.approx(long.rero, abs=1e-12)
        assert short.success_out == pytest.approx(long.success_out, abs=1e-9)
    assert all(line is not None for line in lines)


@pytest.mark.parametrize("knows", ["nothing", "everything"])
@pytest.mark.parametrize("seed", range(5))
def test_an_envelope_by_hand(seed, knows):
    """Random lines in two fibers: the highest at 40,001 places of every gap, and what it names."""
    rng = np.random.default_rng(seed)
    a, b, mass = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.random(7)
    up, down, gap = rng.random(3), rng.random(3), np.array([0.1, 1.0, 4.0])
    begin = np.array([0, 3])
    passing = envelope.Passing(mass, knows == "everything")
    total, luck = envelope.envelope(a, b, gap, begin, passing, (up, down))
    alone, nothing = envelope.envelope(a, b, gap, begin, None)
    expected = np.zeros(3)
    for g in range(3):
        s = np.linspace(0.0, gap[g], 40_001)
        for part in (slice(0, 3), slice(3, 7)):
            # A e^(s - gap) + B e^-s, halved: s from the left end of the gap
            gain = a[part, g, None] * np.exp(s - gap[g]) + b[part, g, None] * np.exp(-s)
            best, top = gain.argmax(axis=0), gain.max(axis=0)
            pbar = up[g] * np.exp(s - gap[g]) + down[g] * np.exp(-s)
            terms = np.maximum(top, 0), np.where(top > 0, mass[part][best], 0) * pbar, top
            expected += [np.trapezoid(x, s) / 2 for x in terms]
    assert total == pytest.approx(expected[0], abs=1e-7)
    assert luck == pytest.approx(expected[1], abs=2e-3)
    assert alone == pytest.approx(expected[2], abs=1e-7) and nothing == 0.0


@pytest.mark.parametrize("membership", [False, True])
def test_a_guess_that_gains_nothing_is_made_unless_it_is_about_membership(membership):
    """Lines that are zero from end to end: a tie with passing."""
    flat, one = np.zeros((2, 1)), np.ones(1)
    begin, mass = np.array([0]), np.array([0.3, 0.7])
    given = envelope.Passing(mass, membership), (one, one)
    total, luck = envelope.envelope(flat, flat, one, begin, *given)
    whole = -np.expm1(-1.0)  # (1/2) int (e^(s - 1) + e^-s)
    assert total == 0.0
    assert luck == pytest.approx(0.0 if membership else 0.7 * whole)
    # falling from zero: a pass; rising from zero: a guess
    for slope, named in ((-1.0, 0.0), (1.0, 0.7)):
        lines = -slope * np.exp(-1.0) * np.ones((2, 1)), slope * np.ones((2, 1))
        found = envelope.envelope(*lines, one, begin, *given)
        assert found[1] == pytest.approx(named * whole, abs=1e-9)
        assert (found[0] > 0.01) == (slope > 0)


@pytest.mark.parametrize("knows", ["nothing", "everything"])
def test_the_short_ways_are_taken(knows, monkeypatch):
    """A hundred thousand values, of which few pairs are ever looked at."""
    seen, real = [], branching._narrowed

    def counted(line, work, **more):
        seen.append(len(work.sets))
        return real(line, work, **more)

    monkeypatch.setattr(branching, "_narrowed", counted)
    m = 100_000
    noise = Laplace(epsilon=2.0, sensitivity=m - 1)
    risk = assess(noise, prior=Prior.uniform(m), threat=Threat(knows=knows))
    assert sum(seen) < 100 * m
    if knows == "nothing":
        # (int max_z p - 1)/m; the maximum integrates to epsilon/2 between the ends, 1 beyond them
        assert risk.rad == pytest.approx(1 / m, rel=1e-4)
    else:
        grid = np.linspace(0, 1, 2001)
        p = np.exp(-2 * np.abs(np.subtract.outer(grid, np.linspace(-6, 7, 26001))))
        even = np.trapezoid(np.maximum(p - np.trapezoid(p, grid, axis=0), 0), dx=5e-4, axis=1)
        assert risk.rad == pytest.approx(float(np.trapezoid(even, grid)), abs=2e-4)


@pytest.mark.parametrize("eta", [0.0, 3.0, 1e4])
def test_the_short_way_is_taken_for_numbers_of_any_distance(eta, monkeypatch):
    """With a tolerance several values may be one class: values that the same guesses hit."""
    seen, real = [], branching._narrowed

    def counted(line, work, **more):
        seen.append(len(work.sets))
        return real(line, work, **more)

    monkeypatch.setattr(branching, "_narrowed", counted)
    rng, m = np.random.default_rng(1), 2000
    values = np.cumsum(rng.exponential(1.0, m) + 0.01)
    prior = Prior.from_counts(dict(zip(values.tolist(), rng.random(m).tolist(), strict=True)))
    noise = Laplace(epsilon=5.0, sensitivity=float(np.ptp(values)))
    risk = assess(noise, prior=prior, threat=Threat(loss="absolute", eta=eta))
    if eta == 1e4:
        assert (risk.rad, risk.success_out) == (0.0, pytest.approx(1.0))
    else:
        assert 0 < sum(seen) < 100 * m


def test_no_noise_and_all_noise():
    uniform = Prior.uniform(5)
    assert assess(Laplace(epsilon=0, sensitivity=4), prior=uniform).rad == 0.0
    assert assess(Geometric(epsilon=0, sensitivity=4), prior=uniform).rad == 0.0
    for mechanism in (Laplace, Geometric):
        risk = assess(mechanism(epsilon=4 * 700, sensitivity=4), prior=uniform)
        assert risk.rad == pytest.approx(0.8, abs=1e-12)
        assert risk.success_in == pytest.approx(1.0, abs=1e-12)
        member = assess(
            mechanism(epsilon=2, sensitivity=4), prior=uniform, threat=Threat(knows="everything")
        )
        assert member.rad > assess(mechanism(epsilon=2, sensitivity=4), prior=uniform).rad


@pytest.mark.parametrize("seed", range(5))
def test_geometric_equals_enumeration(seed):
    """Every whole output far into the tails, by plain loops."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    instance = random_instance(rng, m)
    values = np.sort(rng.choice(10, size=m, replace=False))
    mechanism = Geometric(epsilon=5.0, sensitivity=10)
    outputs = np.arange(-120, 130)
    channel = np.exp(mechanism.log_likelihood(outputs[None, :], values[:, None]))
    rad, rero = brute_force(instance, channel)
    risk = assess(
        mechanism,
        prior=instance.prior,
        threat=instance.threat,
        query=lambda s: values[np.asarray(s)].tolist(),
    )
    assert risk.rad == pytest.approx(rad, abs=1e-10)
    assert risk.rero == pytest.approx(rero, abs=1e-10)


def test_extreme_scales():
    """No overflow, no endless walk, no quadratic table."""
    for epsilon, sensitivity in ((1e300, 1.0), (1e300, 1e-10), (1e5, 1e-3)):
        prior = Prior.from_counts({0.0: 1, sensitivity: 1})
        risk = assess(Laplace(epsilon=epsilon, sensitivity=sensitivity), prior=prior)
        assert risk.rad == pytest.approx(0.5)
    far = Prior.from_counts({0: 1, 10**6: 1})
    wide = assess(Geometric(epsilon=1, sensitivity=10**6), prior=far)
    assert wide.rad == pytest.approx(0.5 * -np.expm1(-0.5), rel=1e-6)
    noise = Geometric(epsilon=1, sensitivity=10**9)
    wider = assess(noise, prior=Prior.from_counts({0: 1, 10**9: 1}))
    assert wider.rad == pytest.approx(0.5 * -np.expm1(-0.5), rel=1e-8)
    mixed = {("a", 0): 1, ("b", 10**8): 1, ("a", 10**9): 1}  # not in order along the line
    with pytest.raises(DpradError, match="too many outputs"):
        assess(
            noise, prior=Prior.from_counts(mixed, columns=["t", "x"]),
            threat=Threat(target=["t"]), query="x",
        )  # fmt: skip


@pytest.mark.parametrize("offset", [10**18, 2**60, -(10**17)])
def test_numbers_too_large_for_their_differences_are_refused(offset):
    prior = Prior.from_counts({offset + i: 1 for i in range(3)})
    for mechanism in (Laplace(epsilon=5, sensitivity=2), Geometric(epsilon=5, sensitivity=2)):
        with pytest.raises(DpradError, match="differences are too small"):
            assess(mechanism, prior=prior)
        moved = assess(mechanism, prior=prior, query=lambda s: (s - s.min()).tolist())
        assert moved.rad == assess(mechanism, prior=Prior.uniform(3)).rad


def test_laplace_stays_below_its_promise():
    for eta in (0, 1, 3):
        prior, threat = Prior.uniform(8), Threat(loss="absolute", eta=eta)
        mechanism = Laplace(epsilon=2.0, sensitivity=7)
        bound = assess(mechanism.guarantee, prior=prior, threat=threat).rad
        assert assess(mechanism, prior=prior, threat=threat).rad <= bound


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assess(Laplace(epsilon=1), prior=Prior.uniform(3)), "records differ by more"),
        (
            lambda: assess(Laplace(epsilon=1, sensitivity=5, clamp=(0, 1)), prior=Prior.uniform(3)),
            "clamped to .0, 1., but record number 3 lies outside",
        ),
        (
            lambda: assess(Laplace(epsilon=1), prior=Prior.from_counts({"a": 1, "b": 1})),
            "reads numbers, but the column 'value' holds text",
        ),
        (
            lambda: assess(Geometric(epsilon=1), prior=Prior.from_counts({0.5: 1, 1: 1})),
            "whole numbers",
        ),
        (
            lambda: assess(Laplace(epsilon=1), prior=Prior.from_counts({(0, 1): 1})),
            "reads one column",
        ),
        (
            lambda: assess(Laplace(epsilon=1), prior=Prior.from_counts({10**400: 1, 0: 1})),
            "reads numbers",
        ),
        (
            lambda: assess(Laplace(epsilon=1), prior=Prior.uniform(2), query=lambda s: 1),
            "one value per record",
        ),
        (lambda: Laplace(epsilon=-1), "epsilon must be"),
        (lambda: Laplace(epsilon=1, sensitivity=0), "sensitivity must be positive"),
        (lambda: Laplace(epsilon=1, clamp=(1, 0)), "low < high"),
        (lambda: Laplace(epsilon=1, clamp=5), "pair"),
        (lambda: Geometric(epsilon=1, clamp=(0.5, 2)), "whole numbers"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


# -- the sets that are left out -------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
def test_branching_equals_all_sets_in_all_gaps(seed, monkeypatch):
    """Any knowledge and tolerance; several classes of a fiber at one value; also whole noise."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        m, parts = int(rng.integers(2, 30)), int(rng.integers(1, 5))
        x = np.cumsum(rng.choice([1, 1, 2, 5, 40], size=m))
        weight = np.ones(m) if seed % 4 == 0 else rng.gamma(0.3, size=m) + 1e-6
        counts, knows = dict(zip(x.tolist(), weight.tolist(), strict=True)), "nothing"
        if seed % 3 == 1:
            knows = lambda table, k=parts: [int(v) % k for v in table]  # noqa: E731
        given = {}
        if seed % 3 == 2:
            counts = {(v, k): float(rng.gamma(0.3)) for v in x.tolist() for k in range(parts)}
            given = {"target": ["x"]}
        prior = Prior.from_counts(counts, columns=["x", "k"][: 1 + len(given)])
        eta = float(rng.choice([0, 1, 3, 20, 400]))
        threat = Threat(knows=knows, **given, **({"loss": "absolute", "eta": eta} if eta else {}))
        epsilon = float(rng.choice([0.1, 1.0, 3.0, 10.0, 50.0, 400.0]))
        noise = {"epsilon": epsilon, "sensitivity": float(np.ptp(x))}
        asked = {"prior": prior, "threat": threat, "query": "x"}
        short = [assess(kind(**noise), **asked) for kind in (Laplace, Geometric)]
        with monkeypatch.context() as patch:
            patch.setattr(laplace.Line, "of", lambda *_: None)
            long = [assess(kind(**noise), **asked) for kind in (Laplace, Geometric)]
        for one, other in zip(short, long, strict=True):
            assert one.rad == pytest.approx(other.rad, abs=1e-14, rel=1e-12)
            assert one.rero == pytest.approx(other.rero, abs=1e-14, rel=1e-12)
            assert one.success_out == pytest.approx(other.success_out, abs=1e-9)


@pytest.mark.parametrize("rate", [1e-3, 0.3, 2.0])
def test_whole_outputs_by_hand(rate):
    """Random lines on one gap: the highest at every whole number, and what it names."""
    rng, count = np.random.default_rng(7), 40
    a, b, mass = rng.normal(size=(6, 1)), rng.normal(size=(6, 1)), rng.random(6)
    steps, n = envelope.Steps(rate), np.arange(count)
    rising, falling = np.exp(-rate * (count - n)), np.exp(-rate * n)
    share = (1 - np.exp(-rate)) / (1 + np.exp(-rate))
    gain = a * rising + b * falling
    top, named = np.maximum(gain.max(axis=0), 0.0), mass[gain.argmax(axis=0)]
    passing, gap = envelope.Passing(mass, False), np.array([[rate * count]])
    found = envelope.envelope(
        a, b, gap, np.zeros(1, dtype=int), passing, (np.ones((1, 1)), np.ones((1, 1))), steps
    )
    assert found[0] == pytest.approx(share * top.sum(), rel=1e-12)
    luck = share * (np.where(top > 0, named, 0.0) @ (rising + falling))
    assert found[1] == pytest.approx(luck, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_many_blocks(seed, monkeypatch):
    """Four hundred values: a dozen blocks, most sets far from each."""
    rng = np.random.default_rng(seed)
    weights = [1.0 / np.arange(5, 405), rng.gamma(0.2, size=400) + 1e-9][seed % 2]
    values = np.cumsum(rng.exponential(1.0, 400))
    prior = Prior.from_counts(dict(zip(values.tolist(), weights.tolist(), strict=True)))
    threat = Threat(loss="absolute", eta=float(3 * (seed // 2)))
    noise = Laplace(epsilon=float(rng.choice([0.5, 20.0])), sensitivity=float(np.ptp(values)))
    short = assess(noise, prior=prior, threat=threat)
    monkeypatch.setattr(laplace.Line, "of", lambda *_: None)
    assert short.rad == pytest.approx(assess(noise, prior=prior, threat=threat).rad, rel=1e-12)


@pytest.mark.parametrize("far", [0.0, 1000.0, -77.0])
def test_where_the_values_begin_does_not_matter(far):
    counts = {far + 1.0: 2.0, far + 2.5: 1.0, far + 4.0: 3.0}
    prior, base = Prior.from_counts(counts), Prior.from_counts({1.0: 2.0, 2.5: 1.0, 4.0: 3.0})
    threat = Threat(loss="absolute", eta=1.5)
    for kind, given, moves in (
        (Laplace, {"epsilon": 2.0, "sensitivity": 4.0}, {}),
        (ExponentialInterval, {"epsilon": 3.0}, {"bounds": (0.0, 5.0)}),
        (Gaussian, {"sigma": 1.0, "sensitivity": 4.0}, {"clamp": (0.5, 4.5)}),
        (Gaussian, {"sigma": 1.0, "sensitivity": 4.0}, {}),
    ):
        there = {k: tuple(far + x for x in v) for k, v in moves.items()}
        one = assess(kind(**given, **there), prior=prior, threat=threat)
        two = assess(kind(**given, **moves), prior=base, threat=threat)
        assert one.rad == pytest.approx(two.rad, rel=1e-8) and one.rad > 0.01
