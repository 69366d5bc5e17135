"""The channel solver against brute force, g-vulnerability, and what must always hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprad
from dprad import Prior, Threat, assess
from dprad.exact import channel as solver
from dprad.mechanisms import GRR, Channel
from oracles import Instance, brute_force, random_channel, random_instance


def solve(instance, channel):
    return assess(Channel(channel), prior=instance.prior, threat=instance.threat)


@pytest.mark.parametrize("seed", range(15))
def test_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        m = int(rng.integers(1, 9))
        instance = random_instance(rng, m)
        channel = random_channel(rng, m, int(rng.integers(1, 8)))
        risk = solve(instance, channel)
        rad, rero = brute_force(instance, channel)
        assert risk.rad == pytest.approx(rad, abs=1e-12)
        assert risk.rero == pytest.approx(rero, abs=1e-12)
        assert risk.success_in - risk.success_out == pytest.approx(rad, abs=1e-12)
        assert 0 <= risk.success_out <= risk.success_in <= risk.rero + 1e-12


def test_equals_g_vulnerability(rng):
    """Secrets (z, b); channel p(o|z) if b = 1 and pbar if b = 0; gain +-1 on success."""
    qif = pytest.importorskip("qif")
    for _ in range(60):
        m = int(rng.integers(2, 9))
        instance = random_instance(rng, m)
        channel = random_channel(rng, m, int(rng.integers(2, 8)))
        pi = instance.pi
        pbar = pi @ channel
        both = np.vstack([channel, np.tile(pbar, (m, 1))])
        total = 0.0
        for x in np.unique(instance.fiber):
            hit = (instance.success & (instance.fiber == x)[:, None]).T.astype(float)
            gain = np.vstack([np.hstack([hit, -hit]), np.zeros(2 * m)])  # the last guess: a pass
            total += 2 * qif.measure.g_vuln.posterior(gain, np.r_[pi, pi] / 2, both)
        assert solve(instance, channel).rad == pytest.approx(total, abs=1e-12)


def test_success_of_the_reported_attack_by_enumeration(rng):
    """success_out is the luck of an attack that attains RAD, ties to the likeliest."""
    prior = Prior.from_probabilities([0.5, 0.3, 0.2])
    useless = Channel(np.full((3, 4), 0.25))
    risk = assess(useless, prior=prior)
    assert risk.rad == 0.0 and risk.success_out == pytest.approx(0.5)
    member = assess(useless, prior=prior, threat=Threat(knows="everything"))
    assert member.success_out == 0.0 and member.success_in == 0.0
    perfect = assess(Channel(np.eye(3)), prior=prior)
    assert perfect.rad == pytest.approx(1 - prior.kappa)
    assert perfect.success_in == pytest.approx(1.0)
    assert perfect.success_out == pytest.approx(prior.kappa)


def test_passing_matters():
    """A 3 x 2 table read by GRR at epsilon 1: 0.186 with passing, 0.111 without."""
    prior = Prior.from_counts({(a, b): 1 for a in range(3) for b in range(2)}, columns=["a", "b"])
    risk = assess(
        GRR(epsilon=1.0, size=6), prior=prior, threat=Threat(knows=["a"]), query=["a", "b"]
    )
    channel = np.full((6, 6), 1.0) + (np.e - 1) * np.eye(6)
    channel /= channel.sum(axis=1, keepdims=True)
    forced = 0.0
    for output in channel.T:
        w = (output - output.mean()) / 6
        forced += sum(max(w[2 * a], w[2 * a + 1]) for a in range(3))
    assert risk.rad == pytest.approx(0.186, abs=5e-4)
    assert forced == pytest.approx(0.111, abs=1e-3)


def test_knowing_more_never_lowers_the_risk(rng):
    for _ in range(40):
        prior = Prior.from_counts(
            {
                (a, b, c): w
                for (a, b, c), w in zip(np.ndindex(2, 3, 2), rng.random(12), strict=True)
            },
            columns=["a", "b", "c"],
        )
        channel = Channel(random_channel(rng, 12, 6))
        chain = ["nothing", ["a"], ["a", "b"], ["a", "b", "c"]]
        for target in (None, ["c"], ["b", "c"]):
            risks = [
                assess(
                    channel,
                    prior=prior,
                    threat=Threat(knows=k, target=target),
                    query=["a", "b", "c"],
                ).rad
                for k in chain
            ]
            assert all(x <= y + 1e-12 for x, y in itertools.pairwise(risks))
        everything = assess(
            channel, prior=prior, threat=Threat(knows="everything"), query=["a", "b", "c"]
        )
        assert everything.rad == pytest.approx(risks[-1], abs=1e-12)


def test_relabelling_changes_nothing(rng):
    for _ in range(30):
        m = int(rng.integers(2, 8))
        instance = random_instance(rng, m)
        channel = random_channel(rng, m, 5)
        order = rng.permutation(m)
        labels = instance.fiber[order].tolist()
        moved = assess(
            Channel(channel[order][:, rng.permutation(5)]),
            prior=Prior.from_probabilities(instance.pi[order]),
            threat=Threat(
                knows=lambda _s, labels=labels: labels,
                loss=_matrix(instance.success[np.ix_(order, order)]),
            ),
        )
        assert moved.rad == pytest.approx(solve(instance, channel).rad, abs=1e-12)


def _matrix(success):
    """A success matrix whose diagonal is not empty (an unused guess would be refused)."""
    return success if success.diagonal().any() else lambda t, g: 1.0 - success[np.ix_(t, g)]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_range(m, outputs, seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, m)
    risk = solve(instance, random_channel(rng, m, outputs))
    assert 0.0 <= risk.rad <= 1.0 - dprad.game.game.play(instance.prior, instance.threat).kappa
    assert risk.interval == (risk.rad, risk.rad) and risk.kind == "exact"


@pytest.mark.parametrize("entries", [1, 2**20])
def test_of_guesses_that_gain_as_much_the_likeliest_is_made(entries, monkeypatch):
    """Outputs that say nothing: all gain nothing, in whatever block they stand."""
    monkeypatch.setattr(solver, "BLOCK_ENTRIES", entries)
    pi = np.random.default_rng(0).dirichlet(np.ones(3000))
    risk = assess(Channel(np.full((3000, 3), 1 / 3)), prior=Prior.from_probabilities(pi))
    assert risk.rad == pytest.approx(0.0, abs=1e-15)
    assert risk.success_out == pytest.approx(pi.max())


def test_a_rare_output_has_its_own_best_guess():
    """Ties are measured by the output's probability, however small."""
    channel = np.array([[1.0, 0.0], [1 - 1e-7, 1e-7]])
    risk = assess(Channel(channel), prior=Prior.from_probabilities([0.6, 0.4]))
    rare = 0.4e-7
    assert risk.success_out == pytest.approx(0.6 * (1 - rare) + 0.4 * rare, abs=1e-12)


def test_guesses_that_begin_with_the_second_class():
    """Likeliest first and in order, but the first class cannot be guessed."""
    pi, channel = np.array([0.2, 0.5, 0.3]), random_channel(np.random.default_rng(5), 3, 6)
    success = np.diag([False, True, True])
    prior, threat = Prior.from_probabilities(pi), Threat(loss=success)
    risk = assess(Channel(channel), prior=prior, threat=threat)
    instance = Instance(pi, np.zeros(3, dtype=int), success, prior, threat)
    rad, rero = brute_force(instance, channel)
    assert risk.rad == pytest.approx(rad, abs=1e-12) and risk.rero == pytest.approx(rero)


def test_blocks_do_not_change_the_result(rng, monkeypatch):
    instance = random_instance(rng, 7, knows="part", kind="absolute")
    channel = random_channel(rng, 7, 50)
    whole = solve(instance, channel).to_dict()
    monkeypatch.setattr(solver, "BLOCK_ENTRIES", 20)
    blocked = solve(instance, channel).to_dict()
    for name in ("rad", "success_out", "rero"):
        assert blocked[name] == pytest.approx(whole[name], abs=1e-13)


def test_several_records_with_one_code(rng):
    """The mechanism reads a column; the attacker wants another that depends on it."""
    weights = rng.random((3, 4))
    prior = Prior.from_counts(
        {(a, b): weights[a, b] for a in range(3) for b in range(4)}, columns=["a", "b"]
    )
    channel = random_channel(rng, 4, 6)
    risk = assess(Channel(channel), prior=prior, threat=Threat(target=["a"]), query="b")
    joint = weights / weights.sum()
    w = joint @ channel  # pi_a p(o|a)
    expected = np.maximum((w - np.outer(w.sum(1), w.sum(0))).max(0), 0).sum()
    assert risk.rad == pytest.approx(expected, abs=1e-13)


def test_a_channel_of_another_size_says_what_was_expected():
    with pytest.raises(dprad.DpradError, match="has size 3, but reads 4 distinct values"):
        assess(Channel(np.full((3, 2), 0.5)), prior=Prior.uniform(4))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], "row 0 sums to 0.9"),
        ([[0.5, 0.5], [1.5, -0.5]], "row 1 contains -0.5"),
        ([[0.5, 0.5], [float("nan"), 1.0]], "row 1"),
        ([0.5, 0.5], "shape"),
        ([["a"]], "table of numbers"),
    ],
)
def test_bad_channels(matrix, words):
    with pytest.raises(dprad.DpradError, match=words):
        Channel(matrix)
