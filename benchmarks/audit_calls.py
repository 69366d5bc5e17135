"""How many calls does it take to refute the broken mechanisms of the gallery? (`bench_audit.py`)

For each: the floor, ln(1/alpha) over the relative entropy between the truth and what the claim
allows (docs/theory/audit.md), from the true likelihoods; the calls that `audit` needs,
sequentially; and those of three peers, for which calls are added until an audit of that size
refutes the claim (an advantage: they are not charged for looking).
"""

from __future__ import annotations

import itertools
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from dprad import GaussianDP, Prior, PureDP, audit
from dprad.numerics.intervals import clopper_pearson
from dprad.paper.auditor import lower_bound
from dprad.verbs.audit.allowed import cell_bets, growth, posterior_bets
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.learners import together
from dprad.verbs.audit.portfolio import portfolio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from gallery import CASES

MARK = "<!-- measured -->\n"
ALPHA, MOST, DRAWS, CELLS = 0.05, 20_000, 30_000, 20
SIZES = np.unique(np.geomspace(32, MOST, 28).astype(int) // 4 * 4).tolist()


# -- the floor -------------------------------------------------------------------------------------
def floor(case):
    """Calls; for other than pure claims those of bets on cells, chosen with the truth."""
    rng = np.random.default_rng(0)
    odds = np.array([case.odds(case.run(z, rng)) for z in case.pair for _ in range(DRAWS)])
    odds = np.clip(odds, -700, 700)
    if isinstance(case.claim, PureDP):
        pay = posterior_bets(odds, np.array([case.claim.epsilon]))[:, 0]
        speed = (weights(odds) * pay.T).sum(axis=0).mean()
    else:
        cuts = np.unique(np.quantile(odds, np.linspace(0, 1, 400), method="lower"))
        a, b = (np.array([2 * w[odds >= t].sum() for t in cuts]) / len(odds) for w in weights(odds))
        pay = cell_bets(a, b, case.claim)
        each = growth(np.clip(a, 1e-12, 1 - 1e-12), np.clip(b, 1e-12, 1 - 1e-12), pay)
        speed = max(each.max(), cells_growth(odds, cuts[np.argmax(each)], case.claim))
    return math.log(1 / ALPHA) / speed


def weights(odds):
    """The chances of the two records given each output: the secrets drawn are averaged out."""
    return np.stack([expit(-odds), expit(odds)])


def cells_growth(odds, best, claim):
    """Growth of bets on cells of equal size, and with a cut where one set is best."""
    inner = np.quantile(odds, np.linspace(0, 1, CELLS + 1)[1:-1], method="lower")
    edges = np.unique(np.r_[inner, best])
    cell, size = np.searchsorted(edges, odds, "right"), len(edges) + 1
    law = np.stack([2 * np.bincount(cell, w, size) for w in weights(odds)]) / len(odds)
    law = law[:, law.any(axis=0)] + 1e-12
    return float((law * np.log(portfolio(law[None], claim, steps=3000)[0])).sum() / 2)


# -- ours ------------------------------------------------------------------------------------------
def ours(case, seed):
    absent = {"absent": None} if case.absent else {}
    result = audit(
        case.run, claim=case.claim, prior=Prior.from_counts(dict.fromkeys(case.records, 1)),
        trials=MOST, confidence=1 - ALPHA, sequential=True, bits=case.bits, rng=seed, **absent,
    )  # fmt: skip
    return result.trials + result.studied if result.verdict == "violated" else math.inf


# -- peers -----------------------------------------------------------------------------------------
def event(case, seed):
    """A set of outputs chosen from half of the calls, Clopper and Pearson on the other half: the
    idea of DP-Sniper (Bichsel et al. 2021), with the learners of dprad.
    """
    rng = np.random.default_rng(seed)
    secret = rng.permutation(np.arange(MOST) % 2)
    outputs, reader = [], Reader(case.bits)
    for n in SIZES:
        outputs += [case.run(case.pair[z], rng) for z in secret[len(outputs) : n]]
        rows, half = reader.rows(outputs), n // 2
        try:
            learned = together(rows.take(slice(half)), secret[:half], seed)
        except ValueError:  # too few of one kind
            continue
        odds = learned(rows.take(slice(half, n)))
        if _refutes(learned.tried, secret[:half], odds, secret[half:n], case.claim):
            return n
    return math.inf


def _refutes(tried, known, odds, secret, claim):
    """The set that looks best in the first half refutes the claim in the second."""
    best, chosen = 0.0, None
    for side in (1, -1):
        for cut in np.unique(np.quantile(side * tried, np.linspace(0, 1, 60), method="lower")):
            found = _bounded(side * tried >= cut, known, side, claim)
            if found > best:
                best, chosen = found, (side, cut)
    if chosen is None:
        return False
    side, cut = chosen
    return _bounded(side * odds >= cut, secret, side, claim) > 1.0


def _bounded(inside, secret, side, claim):
    """The lower bound from a set, over the claim."""
    own = int(side > 0)
    hits = [(int(inside[secret == z].sum()), int((secret == z).sum())) for z in (own, 1 - own)]
    if min(n for _, n in hits) == 0:
        return 0.0
    p, q = clopper_pearson(*hits[0], 1 - ALPHA)[0], clopper_pearson(*hits[1], 1 - ALPHA)[1]
    if isinstance(claim, GaussianDP):
        return float(norm.ppf(p) - norm.ppf(q)) / claim.mu
    epsilon, delta = claim.point
    return math.log((p - delta) / q) / epsilon if p > delta else 0.0


def two_values(case, seed):
    """LDP Auditor: two values, a guess that is the output or a member of it."""
    if not case.local:
        return None
    rng, m = np.random.default_rng(seed), len(case.records)
    named = [[], []]
    for n in SIZES:
        for z, record in enumerate((0, m - 1)):
            while len(named[z]) < n // 2:
                named[z].append(_guess(case.run(record, rng), m, rng) == 0)
        # each end of LDP Auditor fails with alpha/4
        found = lower_bound(sum(named[0]), sum(named[1]), n // 2, alpha=2 * ALPHA)
        if found is not None and found > case.claim.epsilon:
            return n
    return math.inf


def _guess(output, m, rng):
    if isinstance(output, list):
        members = np.flatnonzero(output) if len(output) == m else output
        return int(rng.choice(members)) if len(members) else int(rng.integers(m))
    return output if output >= 0 else int(rng.integers(m))


def best_scores(case, seed):
    """jax-privacy: lower bounds from scores, the best that there are (the true odds); the better of
    its two ways to choose a threshold.
    """
    try:
        from jax_privacy import auditing
    except ImportError:
        return None
    rng = np.random.default_rng(seed)
    seen = [[], []]
    points = [(d, case.claim.epsilon_at(d)) for d in (0.1, 0.01, 1e-5)]
    if not isinstance(case.claim, GaussianDP):
        points = [case.claim.point[::-1]]
    ways = auditing.Bonferroni(), auditing.Split(seed=seed)
    for n in SIZES:
        for z, record in enumerate(case.pair):
            while len(seen[z]) < n // 2:
                seen[z].append(float(np.clip(case.odds(case.run(record, rng)), -50, 50)))
        auditor = auditing.CanaryScoreAuditor(seen[1], seen[0])
        for (delta, epsilon), way in itertools.product(points, ways):
            found = auditor.epsilon_clopper_pearson(
                ALPHA, delta, one_sided=False, threshold_strategy=way
            )
            if found > epsilon:
                return n
    return math.inf


# -- the table -------------------------------------------------------------------------------------
PEERS = {"event": event, "two": two_values, "scores": best_scores}


def job(task):
    kind, name, seed = task
    case = next(c for c in CASES if c.name == name)
    return (floor(case),) if kind == "floor" else {"ours": ours, **PEERS}[kind](case, seed)


def measured(seeds, peers, only, old):
    """Name -> row: floor, calls of ours, and of the peers (as before if none is measured)."""
    chosen = [c for c in CASES if only in c.name]
    found = {}
    with ProcessPoolExecutor(2, initializer=threadpool_limits, initargs=(1,)) as pool:
        for case in chosen:
            tasks = [("floor", case.name, 0), *(("ours", case.name, s) for s in range(seeds))]
            tasks += [(k, case.name, s) for k in PEERS for s in range(peers)]
            results = list(pool.map(job, tasks))
            mine, others = results[1 : 1 + seeds], results[1 + seeds :]
            told = [calls(others[k * peers : (k + 1) * peers]) for k in range(len(PEERS))]
            if not peers:
                told = [c.strip() for c in old[case.name].split("|")[5:8]]
            found[case.name] = row(case.name, results[0][0], mine, *told)
            print(found[case.name], flush=True)
    return found


def calls(values):
    if not values or values[0] is None:
        return "-"
    middle = float(np.median(values))
    return f"{middle:,.0f}" if middle < math.inf else f"over {MOST:,}"


def row(name, least, mine, *told):
    ratio = float(np.median(mine)) / least
    return (
        f"| {name} | {least:,.0f} | {calls(mine)} | {ratio:.1f} | {' | '.join(told)} | "
        f"{sum(v == math.inf for v in mine)} |"
    )


def summary(rows):
    """Sentences about the targets, from the rows of the table."""
    cells = {name: [c.strip() for c in row.split("|")[2:5]] for name, row in rows.items()}
    middle = {n: math.inf if "over" in c[1] else _number(c[1]) for n, c in cells.items()}
    large = {n: middle[n] / _number(c[0]) for n, c in cells.items() if _number(c[0]) >= 200}
    far = {n: r for n, r in large.items() if r > 4}
    lines = []
    if large:
        lines.append(
            f"Of {len(large)} mechanisms with a floor of 200 calls or more the ratio is "
            f"{np.median(list(large.values())):.2f} in the median (target 2.5) and at most "
            f"{max(large.values()):.2f} (target 4)."
        )
    if far:
        lines.append("Above 4: " + ", ".join(f"{n} ({r:.1f})" for n, r in far.items()) + ".")
    for name, most in (("gaussian, mu 1.5 for 1", 600), ("svt 4", 5000)):
        if name in middle:
            lines.append(f"{name}: {middle[name]:,.0f} calls in the median (target {most:,}).")
    missed = sum(int(row.split("|")[8]) for row in rows.values())
    lines.append(f"Audits that did not refute the claim within {MOST:,} calls: {missed}.")
    return lines


def _number(text):
    return float(text.replace(",", ""))


def page(rows, seeds, peers):
    """The measured part of the page."""
    day = datetime.now(UTC).date().isoformat()
    head = (
        f"Measured on {day} by `benchmarks/bench_audit.py --calls --out docs`: medians over "
        f"{seeds} seeds (peers: {peers or 3}) at {1 - ALPHA:.0%}.\n\n"
        "| mechanism | floor | dprad | ratio | fixed event | LDP Auditor | jax-privacy | missed |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows.values(), "", "\n".join(summary(rows))]) + "\n"


def main(out, seeds, peers, only=""):
    """Rows of mechanisms that are not measured now stay: a run may be cut in pieces."""
    path = Path(out or ".") / "audit-benchmark.md"
    text, _, before = (path.read_text() if out else "").partition(MARK)
    old = {line.split("|")[1].strip(): line for line in before.splitlines() if line[:2] == "| "}
    fresh = measured(seeds, peers, only, old)
    rows = {c.name: r for c in CASES if (r := fresh.get(c.name, old.get(c.name))) is not None}
    print("\n".join(summary(rows)))
    if out:
        path.write_text(text + MARK + page(rows, seeds, peers))
