"""Questions of the sizes people have: this code against an older commit, in one run.

    python benchmarks/bench_sizes.py [--old COMMIT] [--only laplace] [--limit 60] [--full]

Every question is asked in a process of its own, which answers a tiny one first (imports, caches),
by the old code and by this one: processor seconds, their ratio, and how far the two answers
differ. Sizes are such that the old code can finish; --full asks this code at the size of the
complaint instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dprad import (
    GaussianDP,
    Prior,
    PureDP,
    Threat,
    assess,
    calibrate,
    mechanisms,
    worst_prior,
)
from dprad.game.game import play

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "58e3da8"  # before solvers collapsed, scanned and branched


def line(eta):
    return Threat(loss="absolute", eta=eta)


def uneven(m):
    weight = np.random.default_rng(0).gamma(1.0, size=m)
    return Prior.from_counts(dict(enumerate(weight.tolist())))


def people(m):
    """Five columns as in a census: about m different records, 94 different hours."""
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(17, 91, 2 * m),
        "education": np.minimum(rng.geometric(0.15, 2 * m), 16),
        "sex": rng.integers(0, 2, 2 * m),
        "race": np.minimum(rng.geometric(0.6, 2 * m), 5),
        "hours": np.clip(np.rint(rng.normal(40, 12, 2 * m)), 1, 94).astype(int),
    }
    rows = np.unique(np.stack(list(columns.values()), axis=1), axis=0)
    rows = rng.permutation(rows)[:m]
    weight = rng.geometric(0.5, len(rows)).tolist()
    return Prior.from_counts(
        {tuple(row): w for row, w in zip(rows.tolist(), weight, strict=True)},
        columns=list(columns),
    )


def census(knows, verb=assess, kind=mechanisms.Gaussian, max_risk=0.1, **threat):
    def prepare(m):
        asked = {"prior": people(m), "threat": Threat(knows=knows, **threat), "query": "hours"}
        if verb is calibrate:
            return lambda: calibrate(kind, max_risk=max_risk, sensitivity=93, **asked).value
        noise = {"sigma": 50.0} if kind is mechanisms.Gaussian else {"epsilon": 2.0}
        return lambda: assess(kind(sensitivity=93, **noise), **asked).rad

    return prepare


def numbers(kind, threat=None, verb=assess, **given):
    """Noise on 0 .. m-1; what is callable depends on m."""

    def prepare(m):
        noise = {"epsilon": 2.0, "sensitivity": m - 1.0} | given
        noise = {k: v(m) if callable(v) else v for k, v in noise.items() if v is not None}
        feared = Threat() if threat is None else threat(m) if callable(threat) else threat
        asked = {"prior": uneven(m), "threat": feared}
        if verb is calibrate:
            del noise["epsilon"]
            return lambda: calibrate(kind, max_risk=0.1, **asked, **noise).value
        return lambda: assess(kind(**noise), **asked).rad

    return prepare


def codes(kind, threat=None):
    def prepare(m):
        asked = {"prior": uneven(m), "threat": Threat() if threat is None else threat}
        return lambda: assess(kind(epsilon=2.0, size=m), **asked).rad

    return prepare


def places(near=None):
    """m places to within 200 m, in one city or in a region where so many are near each."""

    def prepare(m):
        share = 1.0 if near is None else np.sqrt(m / (1484 * near))  # 1,484 circles fill the city
        at = np.random.default_rng(0).uniform(0, share, (m, 2)) * [0.1, 0.2] + [41.1, -8.7]
        prior = Prior.from_counts({(float(a), float(b)): 1.0 for a, b in at})
        threat = Threat(loss="haversine", eta=200)
        return lambda: assess(mechanisms.GRR(epsilon=2.0, size=m), prior=prior, threat=threat).rad

    return prepare


def uniform(m):
    return lambda: assess(PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(m)).rad


def zeros(m):
    rng = np.random.default_rng(0)
    matrix = rng.random((m, m)) * (rng.random((m, m)) < 0.9)
    matrix /= matrix.sum(axis=1, keepdims=True)
    noise = mechanisms.Channel(matrix)
    return lambda: float(noise.guarantee.tv + noise.guarantee.delta(1.0))


def riskiest(kind, **given):
    def prepare(m):
        noise = kind(**{k: v(m) if callable(v) else v for k, v in given.items()})
        return lambda: worst_prior(noise, size=m, progress=False).risk.rad

    return prepare


def masses(m):
    from dprad.bounds.absent_prior import proposition_f

    game, promise = play(uneven(m), Threat()), GaussianDP(1.0, neighbours="add-remove")
    return lambda: proposition_f(promise, game)


def repeated(times):
    noise = mechanisms.Repeated(mechanisms.Laplace(epsilon=0.02, sensitivity=19.0), times)
    return lambda: assess(noise, prior=uneven(20), trials=2000).rad


def thirds(table):
    return [int(v) % 3 for v in table]


# What: how it is prepared, and three sizes: first, compared, and that of the complaint.
CASES = {
    "five columns, Gaussian, all known": (census("everything"), 300, 18_205, 18_205),
    "five columns, Gaussian, all known, calibrate":
        (census("everything", calibrate), 300, 18_205, 18_205),
    "five columns, Gaussian, part known": (census(["age", "sex"]), 300, 18_205, 18_205),
    "five columns, Gaussian, all but hours known, calibrate":
        (census(["age", "education", "sex", "race"], calibrate), 300, 18_205, 18_205),
    "five columns, Gaussian, hours asked":
        (census(["age", "sex"], target=["hours"], loss="absolute", eta=2), 300, 18_205, 18_205),
    "five columns, Gaussian, nothing known": (census("nothing"), 300, 18_205, 18_205),
    "five columns, Gaussian, nothing known, calibrate":
        (census("nothing", calibrate, max_risk=1e-3), 300, 6_000, 18_205),
    "five columns, Laplace, part known":
        (census(["age", "sex"], kind=mechanisms.Laplace), 300, 18_205, 18_205),
    "uniform prior": (uniform, 1000, 10**7, 10**9),
    "Hadamard response": (codes(mechanisms.HadamardResponse), 100, 10_000, 100_000),
    "geometric": (numbers(mechanisms.Geometric), 100, 10_000, 100_000),
    "geometric, tolerance": (numbers(mechanisms.Geometric, line(20)), 100, 5_000, 100_000),
    "geometric, all known":
        (numbers(mechanisms.Geometric, Threat(knows="everything")), 100, 5_000, 100_000),
    "staircase": (numbers(mechanisms.Staircase), 100, 4_000, 100_000),
    "staircase, all known":
        (numbers(mechanisms.Staircase, Threat(knows="everything")), 100, 2_000, 100_000),
    "staircase, clamp of 10,000 steps":
        (numbers(mechanisms.Staircase, epsilon=0.05, clamp=lambda m: (0.0, 50.0 * m * (m - 1))),
         10, 40, 200),
    "piecewise": (numbers(mechanisms.Piecewise, sensitivity=None, bounds=lambda m: (0.0, m - 1.0)),
                  100, 10_000, 100_000),
    "places within 200 m, one city": (places(), 100, 30_000, 300_000),
    "places within 200 m, 40 near each": (places(40), 100, 100_000, 300_000),
    "Laplace, part known": (numbers(mechanisms.Laplace, Threat(knows=thirds)), 100, 2_000, 15_000),
    "Laplace, wide windows":
        (numbers(mechanisms.Laplace, lambda m: line(m // 10)), 100, 5_000, 50_000),
    "Laplace, many values": (numbers(mechanisms.Laplace), 100, 100_000, 1_000_000),
    "Laplace, eta 500, calibrate":
        (numbers(mechanisms.Laplace, lambda m: line(m // 40), calibrate), 100, 10_000, 20_000),
    "guarantee of a channel with zeros": (zeros, 10, 60, 200),
    "worst prior, Laplace": (riskiest(mechanisms.Laplace, epsilon=1.0, sensitivity=9.0), 3, 10, 10),
    "worst prior, GRR": (riskiest(mechanisms.GRR, epsilon=1.0, size=lambda m: m), 3, 30, 30),
    "Proposition F": (masses, 100, 100_000, 1_000_000),
    "Laplace, repeated": (repeated, 2, 60, 1000),
}  # fmt: skip


def measure(name, full):
    """In this process: processor seconds and the answer."""
    prepare, first, compared, complaint = CASES[name]
    prepare(first)()
    task = prepare(complaint if full else compared)
    begin = time.process_time()
    answer = task()
    print(json.dumps([time.process_time() - begin, answer]))


def asked(name, source, limit, full):
    """The same in a fresh process; None if it takes too long."""
    command = [sys.executable, "-W", "ignore", __file__, "--measure", name]
    here = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    try:
        made = subprocess.run(
            command + ["--full"] * full, env=here, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    if made.returncode:
        print(made.stderr[-500:])
        return None
    return json.loads(made.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", default=BEFORE)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--measure")
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.full)
        return
    names = [name for name in CASES if given.only in name]
    if given.full:
        for name in names:
            new = asked(name, ROOT / "src", given.limit, True)
            told = f"over {given.limit:g} s" if new is None else f"{new[0]:.3g} s"
            print(f"| {name} | {CASES[name][3]:,} | {told} |", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), given.old], check=True)
        try:
            for name in names:
                compare(name, tree / "src", given.limit)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(name, old_source, limit):
    """One line: size, seconds before and after, ratio, difference of the answers."""
    old, new = (asked(name, source, limit, False) for source in (old_source, ROOT / "src"))
    before, after = (f"over {limit:g} s" if x is None else f"{x[0]:.3g} s" for x in (old, new))
    ratio = "" if new is None else f"{(limit if old is None else old[0]) / new[0]:.3g}"
    apart = "" if old is None or new is None else f"{abs(old[1] - new[1]):.1e}"
    over = ">" if old is None and new is not None else ""
    size = CASES[name][2]
    print(f"| {name} | {size:,} | {before} | {after} | {over}{ratio} | {apart} |", flush=True)


if __name__ == "__main__":
    main()
