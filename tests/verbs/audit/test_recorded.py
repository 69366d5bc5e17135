"""Audits of runs that were made already: from a table, and of many secrets in one run."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import dprad
from dprad import ApproxDP, DpradError, GaussianDP, PureDP, accounting, audit_outputs
from dprad.verbs.audit.many import Many, project
from dprad.verbs.audit.one_run import Guesses, chance_of, split
from dprad.verbs.audit.recorded import drawn
from effort import some

REPLACE, IN_OUT = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}


def response(z, epsilon, rng, size=2):
    """Randomised response."""
    keep = rng.random(len(z)) < math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    return np.where(keep, z, (z + rng.integers(1, size, len(z))) % size)


# -- the closest allowed posterior -----------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5, 50.0])
def test_projection_at_all_extreme_points(epsilon, rng):
    """No allowed posterior is paid more than one on average, and the result is allowed."""
    pi = rng.dirichlet(np.full(6, 2.0))
    r = np.concatenate([rng.dirichlet(np.full(6, 0.4), 200), [pi], np.eye(6)])
    s = project(r, pi, epsilon)
    assert s.sum(axis=1) == pytest.approx(np.ones(len(s)), abs=1e-12)
    ratio = s / pi
    assert np.all(ratio.max(axis=1) <= math.exp(epsilon) * ratio.min(axis=1) * (1 + 1e-9))
    assert s[200] == pytest.approx(pi)
    for ends in itertools.product([1.0, math.exp(epsilon)], repeat=6):
        extreme = pi * ends / (pi @ ends)
        assert (r / s @ extreme).max() <= 1 + 1e-9


def test_projection_against_a_minimiser(rng):
    """Sequential quadratic programming over the same set finds nothing closer."""
    for _ in range(6):
        epsilon, pi = rng.uniform(0.1, 2.0), rng.dirichlet(np.full(4, 3.0))
        r = rng.dirichlet(np.full(4, 0.7)) * 0.99 + 0.0025
        s = project(r, pi, epsilon)
        pairs = [
            {"type": "ineq", "fun": lambda x, j=j, k=k, e=epsilon, pi=pi: math.exp(e) * x[k] / pi[k]
             - x[j] / pi[j]} for j, k in itertools.permutations(range(4), 2)
        ]  # fmt: skip
        best = minimize(
            lambda x, r=r: float(r @ np.log(r / x)), pi, method="SLSQP",
            bounds=[(1e-6, 1)] * 4, constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1},
                                                  *pairs], options={"maxiter": 500, "ftol": 1e-14},
        )  # fmt: skip
        assert float(r @ np.log(r / s)) == pytest.approx(best.fun, abs=1e-6)
        assert s == pytest.approx(best.x, abs=2e-3)


def test_bets_on_all_secrets_by_hand():
    book = Many(np.array([0.5, 0.25, 0.25]))
    book.take(["a", "a", "b"], np.array([0, 1, 1]))
    assert book.log_wealth(0.1) == 0.0  # nothing had been seen
    book.take(["a", "c", "a"], np.array([0, 2, 2]))
    wealth = []
    for weight in (2.0, 40.0, 800.0):
        r = (np.array([1, 1, 0]) + weight * book.prior) / (2 + weight)
        pay = r / project(r, book.prior, 0.1)
        for stake, share in ((1.0, 0.9), (0.4, 0.1)):
            wealth.append(share / 3 * np.prod([1 + stake * (pay[z] - 1) for z in (0, 2)]))
    assert book.log_wealth(0.1) == pytest.approx(math.log(sum(wealth)))
    # "a" spoke for secret 1, which came neither time
    assert book.tally.runs == 6 and book.tally.groups == {0.25: (2, 0)}


# -- rows in the order of coins --------------------------------------------------------------------
def test_rows_are_drawn_by_fair_coins(rng):
    """Whatever the table: each row at most once, its secret as drawn, and fair coins."""
    secret = np.repeat([0, 1], [30, 300])
    firsts, lengths = [], []
    for seed in range(400):
        order = drawn(secret, np.array([0.5, 0.5]), np.random.default_rng(seed))
        assert len(set(order.tolist())) == len(order)
        used = np.bincount(secret[order], minlength=2)
        # the first to run out ends it, with its last row
        assert used[0] == 30 and secret[order[-1]] == 0
        firsts.append(secret[order[:20]])
        lengths.append(len(order))
    table = np.array(firsts)
    assert abs(table.mean() - 0.5) < 4 * 0.5 / math.sqrt(table.size)
    # negative binomial: 30 of the one, and as many of the other
    assert np.mean(lengths) == pytest.approx(60, abs=4 * math.sqrt(60 / 400))


@pytest.mark.parametrize(
    "name", ["response", "balanced", "nine in ten", "gaussian", "three secrets"]
)
def test_false_alarms_from_a_table(name):
    """Tight mechanisms at 80%."""
    claim = GaussianDP(1.0, **REPLACE) if name == "gaussian" else PureDP(1.0, **REPLACE)
    alarms = 0
    for seed in range(tables := some(60, 6 if name == "gaussian" else 8)):
        rng = np.random.default_rng(seed)
        size = 3 if name == "three secrets" else 2
        z = rng.integers(size, size=300)
        if name == "balanced":
            z = np.repeat([0, 1], 150)
        elif name == "nine in ten":
            z = (rng.random(600) < 0.9).astype(int)
        y = z + rng.normal(size=300) if name == "gaussian" else response(z, 1.0, rng, size)
        frame = pd.DataFrame({"secret": z, "output": y})
        alarms += audit_outputs(frame, claim=claim, confidence=0.8, rng=seed).verdict == "violated"
    assert alarms <= binom.isf(1e-4, tables, 0.2)


# -- tables ----------------------------------------------------------------------------------------
def test_every_kind_of_table_says_the_same(tmp_path, rng):
    z = rng.integers(2, size=600)
    y = np.round(z + rng.laplace(0, 0.25, size=600), 6)
    frame = pd.DataFrame({"who": np.where(z, "in", "out"), "score": y})
    frame.to_csv(tmp_path / "runs.csv", index=False)
    frame.to_parquet(tmp_path / "runs.parquet")
    claim, name = PureDP(1.0, **IN_OUT), {"secret": "who"}
    results = [
        audit_outputs(frame, claim=claim, **name),
        audit_outputs(tmp_path / "runs.csv", claim=claim, **name),
        audit_outputs(str(tmp_path / "runs.parquet"), claim=claim, **name),
        audit_outputs(list(zip(frame["who"], frame["score"], strict=True)), claim=claim),
        audit_outputs(frame.assign(who=z), claim=claim, absent=0, **name),
    ]
    assert len({(r.verdict, r.epsilon_lower, r.trials) for r in results}) == 1
    one = results[0]
    assert one.verdict == "violated" and 1.0 < one.epsilon_lower < 4.0 and one.in_out
    assert one.epsilon_claimed == 1.0 and one.wealth[-1][0] == one.trials <= 600
    assert "added or removed" in str(one) and len(one.carried) >= 3
    # numbers: the table does not say which of them means "without"
    with pytest.raises(DpradError, match="as in absent=0"):
        audit_outputs(frame.assign(who=z), claim=claim, **name)
    numbers = audit_outputs(frame.assign(who=z), claim=PureDP(2.0, **REPLACE), **name)
    assert numbers.epsilon_claimed == 2.0 and not numbers.in_out
    assert audit_outputs(frame, claim=claim, rng=5, **name).epsilon_lower != one.epsilon_lower


def test_what_was_not_refuted_and_what_would_have_been(rng):
    z = rng.integers(2, size=3000)
    frame = pd.DataFrame({"secret": z, "output": z + rng.laplace(size=3000), "word": "x"})
    claim = PureDP(1.0, **REPLACE)
    result = audit_outputs(frame, claim=claim, confidence=0.999)
    assert result.verdict == "consistent" and 1.0 < result.would_find < 1.6
    assert "would have been found" in str(result) and 0.1 < result.rad < 0.4
    assert audit_outputs(frame, claim=claim, bits=True).verdict == "violated"  # low bits


def test_any_claim_and_more_than_two_secrets(rng):
    z = rng.integers(4, size=6000)
    y = response(z, 2.0, rng, 4)
    rows = list(zip(z.tolist(), y.tolist(), strict=True))
    every = audit_outputs(rows, claim=PureDP(1.0, **REPLACE))
    assert every.evidence == "bets on all secrets" and 1.5 < every.epsilon_lower < 2.0
    two = audit_outputs(rows, claim=ApproxDP(1.0, 1e-5, **REPLACE))
    assert two.verdict == "violated" and two.studied > 0 and two.epsilon_lower < 2.0
    assert any(note.startswith("compared record number") for note in two.notes)
    # numbers that never repeat: two of them are compared
    far = [(int(a), float(3 * a + rng.laplace())) for a in z]
    assert audit_outputs(far, claim=PureDP(2.0, **REPLACE)).verdict == "violated"


def test_copies_of_rows_in_one_run_are_noted(rng):
    claim = PureDP(1.0, **REPLACE)
    rows = [(z, float(rng.normal())) for z in [0, 1] * 10]
    copied = audit_outputs(rows * 20, claim=claim, one_run=True)
    assert any("come again and again" in note for note in copied.notes)
    coins = rng.integers(2, size=400)
    for score in (rng.normal(size=400), coins + 0.5, np.round(rng.normal(size=400), 1)):
        plain = list(zip(coins.tolist(), score.tolist(), strict=True))
        result = audit_outputs(plain, claim=claim, one_run=True)
        assert not any("come again" in note for note in result.notes)


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        ([(0, 1.0)] * 50, {}, "all the same"),
        ([(0, 1.0), (1, 2.0)] * 5, {}, "at least 20 rows"),
        ([(i, 1.0) for i in range(90)], {}, "at least 40 rows"),
        ([(None, 1.0), (1, 2.0)] * 30, {}, "no secret"),
        ([(0, 1, 2)], {}, "list of pairs"),
        ([([0], 1.0), ([1], 1.0)], {}, "number or a word"),
        (pd.DataFrame({"secret": [0, 1]}), {}, "no column of outputs"),
        (pd.DataFrame({"z": [0, 1], "y": [0, 1]}), {}, "secret names the column"),
        ([("in", 1.0), ("out", 2.0)] * 30, {}, "with and without a person"),
        ([(0, 1.0), (1, 2.0)] * 30, {"absent": 7}, "no row has it"),
        ([(0, 1.0), (1, 2.0)] * 30, {"claim": 1.0}, "claim must be a guarantee"),
        ([(0, 1.0), (1, 2.0)] * 30, {"confidence": 1.0}, "strictly between"),
        ([(0, 1.0), *[(1, 2.0)] * 30], {"one_run": True}, "its own fair coin"),
        ([(0, 1.0), (1, 2.0)] * 30,
         {"one_run": True, "claim": GaussianDP(1.0, **REPLACE)}, "PureDP or ApproxDP"),
        ([(0, 1), (1, 2), (2, 2)] * 30,
         {"one_run": True, "claim": ApproxDP(1.0, 1e-5, **REPLACE)}, "two values"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(table, more, words):
    with pytest.raises(DpradError, match=words):
        audit_outputs(table, **({"claim": PureDP(1.0, **REPLACE)} | more))


# -- one run ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("secrets", [100, 1000])
def test_perfect_guesses_in_one_run(secrets, rng):
    """Nearly ln(p/(1-p)) with p = alpha^(1/n), that of guesses fixed beforehand."""
    z = rng.integers(2, size=secrets)
    for sign in (1, -1):  # scores, or losses
        rows = [(int(a), sign * float(a + 0.3 * rng.random())) for a in z]
        result = audit_outputs(rows, claim=PureDP(1.0, **REPLACE), one_run=True)
        p = 0.05 ** (1 / secrets)
        ideal = math.log(p / (1 - p))
        assert result.verdict == "violated" and ideal - 0.6 < result.epsilon_lower < ideal
        assert any("one run" in note for note in result.notes)
        # a delta costs little, as long as it is small
        approx = audit_outputs(rows, claim=ApproxDP(1.0, 1e-7, **REPLACE), one_run=True)
        assert ideal - 0.6 < approx.epsilon_lower < ideal and "Steinke" in approx.evidence


@pytest.mark.parametrize("name", ["pure", "approximate", "many secrets"])
def test_false_alarms_in_one_run(name):
    """Independent randomised response of n bits is one tight run with n secrets."""
    alarms, size = 0, 5 if name == "many secrets" else 2
    delta = 0.002 if name == "approximate" else 0.0
    claim = ApproxDP(1.0, delta, **REPLACE) if delta else PureDP(1.0, **REPLACE)
    for seed in range(tables := some(60, 15)):
        rng = np.random.default_rng(seed)
        z = rng.integers(size, size=200)
        y = np.where(rng.random(200) < delta, z, response(z, 1.0, rng, size))
        rows = list(zip(z.tolist(), y.tolist(), strict=True))
        result = audit_outputs(rows, claim=claim, one_run=True, confidence=0.8, rng=seed)
        alarms += result.verdict == "violated"
    assert alarms <= binom.isf(1e-4, tables, 0.2)


def test_one_run_finds_what_is_there(rng):
    z = rng.integers(2, size=800)
    rows = list(zip(z.tolist(), response(z, 2.5, rng).tolist(), strict=True))
    for claim in (PureDP(1.0, **REPLACE), ApproxDP(1.0, 1e-5, **REPLACE)):
        result = audit_outputs(rows, claim=claim, one_run=True)
        assert result.verdict == "violated" and 1.8 < result.epsilon_lower < 2.5
        assert 1.0 < result.would_find < 1.6
    # two columns, one of them noise: the score is learned
    frame = pd.DataFrame(rows, columns=["secret", "a"]).assign(b=rng.normal(size=800))
    result = audit_outputs(frame, claim=ApproxDP(1.0, 1e-5, **REPLACE), one_run=True)
    assert result.verdict == "violated" and result.studied == 200
    # guesses among eight
    z = rng.integers(8, size=400)
    rows = list(zip(z.tolist(), response(z, 4.0, rng, 8).tolist(), strict=True))
    result = audit_outputs(rows, claim=PureDP(2.0, **REPLACE), one_run=True)
    assert 3.3 < result.epsilon_lower < 4.0 and "guesses" in result.evidence


def test_the_published_tail_bound():
    """Against the sums, written out, and a release that comes near it."""
    for made, right, n, epsilon, delta in ((30, 25, 40, 0.7, 1e-3), (50, 50, 50, 2.0, 1e-2)):
        mass = binom.pmf(np.arange(made + 1), made, 1 / (1 + math.exp(-epsilon)))
        near = max(mass[right - i : right].sum() / i for i in range(1, right + 1))
        expected = mass[right:].sum() + 2 * n * delta * near
        assert chance_of(right, made, n, epsilon, delta) == pytest.approx(min(1, expected))
    assert chance_of(0, 10, 10, 1.0, 0.0) == 1.0
    # a release of all coins with probability delta, and of nothing else, is (0, delta)-DP
    assert chance_of(20, 20, 20, 0.0, 1e-4) >= 1e-4 + (1 - 1e-4) * 0.5**20
    guesses = Guesses.of(np.arange(100.0), np.repeat([0, 1], 50))
    assert sum(share for _, _, share in guesses.ways) <= 1
    assert guesses.plainest == (100, 100) and guesses.ways[1][1] == 0
    assert split(np.r_[np.zeros(40), np.ones(60), np.inf]) == 40


# -- private training ------------------------------------------------------------------------------
def train(present, rng, people=80, batch=8, epochs=3):
    """DP-SGD in one direction, noise 1, batches by shuffling: the sums that are released. All
    gradients are clipped to -1, that of the canary to 1.
    """
    gradients = np.r_[np.full(people - 1, -1.0), [1.0] * present]
    seen = []
    for _ in range(epochs):
        order = rng.permutation(len(gradients))
        parts = np.split(gradients[order], range(batch, people, batch))
        seen.append([part.sum() + rng.normal() for part in parts])
    return np.array(seen) + batch


def test_shuffled_batches_do_not_keep_the_guarantee_of_poisson_sampling():
    """The score: how well the canary (2 more in some batch) explains it, against the gap that it
    leaves (1 more in the last).
    """
    rng = np.random.default_rng(3)
    promise = accounting.dpsgd(noise_multiplier=1.0, sample_rate=0.1, steps=30)
    rows = []
    for _ in range(400):
        present = bool(rng.integers(2))
        x = train(present, rng)
        score = np.log(np.exp(2 * x - 2).mean(axis=1)) - (x[:, -1] - 0.5)
        rows.append(("in" if present else "out", float(score.sum())))
    result = audit_outputs(rows, claim=promise, confidence=0.99)
    assert result.verdict == "violated" and result.in_out
    # the same scores with Poisson sampling: consistent
    rows = []
    for _ in range(400):
        present = bool(rng.integers(2))
        sampled = rng.random((3, 10, 79)) < 0.1
        x = (rng.random((3, 10)) < 0.1) * present - sampled.sum(axis=2) + rng.normal(size=(3, 10))
        rows.append(("in" if present else "out", float(np.log(np.exp(x + 7.9).mean(axis=1)).sum())))
    assert audit_outputs(rows, claim=promise, confidence=0.99).verdict == "consistent"


@pytest.mark.filterwarnings("ignore")  # Opacus warns of its hooks and its randomness
def test_canaries_of_one_opacus_training():
    """400 canaries, each with a weight of its own; the noise is as claimed, or a tenth of it."""
    opacus, torch = pytest.importorskip("opacus"), pytest.importorskip("torch")
    promise = accounting.dpsgd(noise_multiplier=2.0, sample_rate=0.25, steps=12)
    claim = ApproxDP(promise.epsilon_at(1e-5), 1e-5, **IN_OUT)
    verdicts = []
    for noise in (2.0, 0.2):
        torch.manual_seed(0)
        coins = torch.randint(2, (400,)).bool()
        data = torch.utils.data.TensorDataset(torch.eye(400)[coins])
        loader = torch.utils.data.DataLoader(data, batch_size=int(coins.sum()) // 4)
        model = torch.nn.Linear(400, 1, bias=False)
        before = model.weight.detach().clone()
        model, step, loader = opacus.PrivacyEngine(accountant="prv").make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=loader, noise_multiplier=noise, max_grad_norm=1.0,
        )  # fmt: skip
        for _ in range(3):
            for (x,) in loader:
                step.zero_grad()
                (-5 * model(x)).sum().backward()
                step.step()
        moved = (model._module.weight.detach() - before)[0].tolist()
        words = ["in" if c else "out" for c in coins.tolist()]
        verdicts.append(
            audit_outputs(list(zip(words, moved, strict=True)), claim=claim, one_run=True)
        )
    assert [v.verdict for v in verdicts] == ["consistent", "violated"]
    assert verdicts[1].epsilon_lower > claim.epsilon and dprad.audit_outputs is audit_outputs


def test_types_and_gaps_of_a_table_are_looked_at(tmp_path):
    """NaN or null, 1 or 1.0: in files and frames, as in lists of pairs."""
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=1200)
    gone, noise = rng.random(1200) < 0.3, rng.normal(size=1200)
    score = [(math.nan if z else None) if g else float(v)
             for z, g, v in zip(secret, gone, noise, strict=True)]  # fmt: skip
    who = ["in" if z else "out" for z in secret]
    arrow = pa.table({"z": who, "y": pa.array(score, pa.float64(), from_pandas=False)})
    parquet.write_table(arrow, tmp_path / "x.parquet")
    kinds = pd.Series([1 if z else 1.0 for z in secret], dtype=object)
    apart = pd.Series([pd.NA if z else pd.NaT for z in secret], dtype=object)
    claim = PureDP(1.0, neighbours="add-remove")
    for table in (
        arrow, str(tmp_path / "x.parquet"), pl.DataFrame({"z": who, "y": score}, strict=False),
        pd.DataFrame({"z": who, "y": kinds}), pd.DataFrame({"z": who, "y": apart, "x": noise}),
    ):  # fmt: skip
        found = audit_outputs(table, secret="z", claim=claim, rng=0)
        assert found.verdict == "violated" and found.epsilon_lower > 1
    same = pd.DataFrame({"z": who, "y": np.where(gone, np.nan, noise), "x": noise})
    for table in (same, same[["z", "y"]]):
        assert audit_outputs(table, secret="z", claim=claim, rng=0).verdict == "consistent"


@pytest.mark.parametrize("gaps", [[""], ["nan", "NaN"], ["NaN", '""'], [" ", "nan"]])
def test_rows_without_a_secret_are_refused_however_they_say_so(gaps, tmp_path):
    lines = [f"{z},{z}" for z in (0, 1) * 200] + [f"{gap},0" for gap in gaps * 50]
    (tmp_path / "x.csv").write_text("secret,y\n" + "\n".join(lines) + "\n")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"secret": [0, 1] * 200, "y": [0, 1] * 200}).convert_dtypes()
    frame.loc[::3, "secret"] = pd.NA
    claim = PureDP(1.0, neighbours="replace-one")
    for table in (str(tmp_path / "x.csv"), frame):
        with pytest.raises(DpradError, match="some rows have no secret"):
            audit_outputs(table, secret="secret", claim=claim)


def test_a_gap_is_no_word():
    pd = pytest.importorskip("pandas")
    z = np.random.default_rng(0).integers(2, size=900)
    hidden = pd.Series([pd.NA if q else "NAType" for q in z], dtype=object)
    table = pd.DataFrame({"secret": z, "y": hidden, "x": z * 0})
    found = audit_outputs(table, secret="secret", claim=PureDP(1.0, neighbours="replace-one"))
    assert found.verdict == "violated"


def test_many_secrets_of_which_nothing_was_bet_on_cannot_be_told():
    """Outputs that never come again carry no bet."""
    rng = np.random.default_rng(0)
    rows = [("abc"[z], 100 * z + rng.normal()) for z in rng.integers(0, 3, 3000)]
    claim = PureDP(1.0, neighbours="replace-one")
    result = audit_outputs(rows, claim=claim, one_run=True)
    assert result.verdict == "consistent" and not result.conclusive
    assert str(result).startswith("Cannot be told")
    again = audit_outputs([(z, round(y)) for z, y in rows], claim=claim, one_run=True)
    assert again.verdict == "violated"


@pytest.mark.parametrize(("size", "rows"), [(3, 400), (10, 2000)])
def test_what_many_secrets_would_have_shown_is_found(size, rows):
    """Randomised response with that epsilon."""
    claim = PureDP(1.0, neighbours="replace-one")

    def found(epsilon, seed):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, size, rows)
        right = 1 / (1 + (size - 1) * np.exp(-epsilon))
        other = (secret + rng.integers(1, size, rows)) % size
        outputs = np.where(rng.random(rows) < right, secret, other)
        return audit_outputs(list(zip(secret.tolist(), outputs.tolist(), strict=True)), claim=claim)

    fair = found(0.0, 0)
    assert fair.verdict == "consistent" and fair.conclusive
    told = [found(fair.would_find, seed).verdict for seed in range(1, 1 + some(20, 3))]
    assert told.count("violated") >= 0.6 * len(told)


def test_who_is_absent_is_asked_where_it_matters():
    """0 and 1 may be two people, or nobody and somebody: for an add-remove claim half as much."""
    rng = np.random.default_rng(5)
    rows = [(z, z + rng.laplace(0, 1 / 1.7)) for z in [0, 1] * 2000]
    claim = PureDP(1.0, **IN_OUT)
    for one_run in (False, True):
        with pytest.raises(DpradError, match="which does, as in absent=0"):
            audit_outputs(rows, claim=claim, one_run=one_run)
    told = audit_outputs(rows, claim=claim, absent=0)
    assert told.verdict == "violated" and told.in_out
    both = audit_outputs(rows, claim=claim.replace_one())
    assert both.verdict == "consistent" and not both.in_out
