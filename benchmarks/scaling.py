"""Time and memory against the size of the question, with the fitted exponent. `make scaling`.

    python benchmarks/scaling.py [--out docs] [--only laplace] [--limit 20]

Every point is a process of its own: it answers a small question first (imports, caches), then the
one that is timed; memory is what the peak grew by. Sizes grow to 10^5, and further until a point
takes longer than `--limit` seconds (5: about a quarter of an hour on one core). Times are of one
machine; the exponents are what carries over. They are fitted to the last three points, where fixed
costs no longer show.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import dprad
from dprad import GaussianDP, Prior, PureDP, Threat, assess, audit, calibrate, mechanisms, simulate
from dprad.game.question import Question
from dprad.verbs.together import jointly

NEAR = {"neighbours": "replace-one"}


def falling(m):
    """Values 0 .. m-1; probabilities fall, all different."""
    return Prior.from_counts(dict(enumerate((1.0 / np.arange(10, m + 10)).tolist())))


def uneven(m):
    """Values 0 .. m-1; probabilities at random."""
    return Prior.from_counts(dict(enumerate(np.random.default_rng(0).gamma(1.0, size=m).tolist())))


def positive(m):
    """The same on 1 .. m."""
    weight = np.random.default_rng(0).gamma(1.0, size=m).tolist()
    return Prior.from_counts(dict(enumerate(weight, start=1)))


def line(eta):
    return Threat(loss="absolute", eta=eta)


def places(m):
    """m places in a region where about 40 are within 200 m of each."""
    side = np.sqrt(m / 59_000)  # so many such places fill 0.1 by 0.2 degrees
    at = np.random.default_rng(0).uniform(0, side, (m, 2)) * [0.1, 0.2] + [41.1, -8.7]
    return Prior.from_counts({(float(a), float(b)): 1.0 for a, b in at})


def nearby(m):
    people, feared = places(m), Threat(loss="haversine", eta=200)
    return lambda: assess(mechanisms.GRR(epsilon=2.0, size=m), prior=people, threat=feared)


def channel(m):
    p = np.random.default_rng(0).random((m, m))
    p /= p.sum(axis=1, keepdims=True)
    return lambda: assess(mechanisms.Channel(p), prior=uneven(m))


def on_numbers(kind, threat=None, prior=uneven, **given):
    def prepare(m):
        people = prior(m)
        noise = {"sensitivity": m - 1.0, "epsilon": 2.0} | given
        noise = {k: v(m) if callable(v) else v for k, v in noise.items() if v is not None}
        feared = Threat() if threat is None else threat
        return lambda: assess(kind(**noise), prior=people, threat=feared)

    return prepare


def on_whole(threat=None, sigma=lambda m: min(m / 4, 1e5)):
    """Discrete Gaussian noise, of 100,000 at most."""
    return on_numbers(mechanisms.DiscreteGaussian, threat, sigma=sigma, epsilon=None)


def on_codes(kind, threat=None, **given):
    def prepare(m):
        people, feared = uneven(m), Threat() if threat is None else threat
        return lambda: assess(kind(epsilon=2.0, size=m, **given), prior=people, threat=feared)

    return prepare


def promised(promise, threat=None):
    def prepare(m):
        people, feared = falling(m), Threat() if threat is None else threat
        return lambda: assess(promise, prior=people, threat=feared)

    return prepare


def uniform(m):
    return lambda: assess(PureDP(1.0, **NEAR), prior=Prior.uniform(m))


def tenths(table):
    """About as many labels as there are tens of values."""
    last = max(table) // 10 + 1
    return [int(v) * 7919 % last for v in table]


def thirds(table):
    """What the attacker knows about numbers."""
    return [int(v) % 3 for v in table]


def people(m):
    """About m different records: an age, an area and hours per week, of which there are 94."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(17, 91, m), rng.integers(0, max(2, m // 500), m)]
    columns.append(np.clip(np.rint(rng.normal(40, 12, m)), 1, 94).astype(int))
    rows = np.unique(np.stack(columns, axis=1), axis=0)
    return Prior.from_counts({tuple(row): 1.0 for row in rows.tolist()},
                             columns=["age", "area", "hours"])  # fmt: skip


def of_people(knows, verb=assess):
    """Gaussian noise on hours per week."""

    def prepare(m):
        asked = {"prior": people(m), "threat": Threat(knows=knows), "query": "hours"}
        if verb is calibrate:
            return lambda: calibrate(mechanisms.Gaussian, max_risk=0.1, sensitivity=93, **asked)
        return lambda: assess(mechanisms.Gaussian(sigma=50.0, sensitivity=93), **asked)

    return prepare


def of_tables(by):
    """Tables of counts, seen by an attacker who knows age and area: 200 draws."""

    def prepare(m):
        noise = {"noise": "gaussian", "rho": 0.5, "neighbours": "replace-one"}
        asked = {"prior": people(m), "threat": Threat(knows=["age", "area"], target=["hours"])}
        return lambda: assess(mechanisms.Marginals(by, **noise), trials=200, **asked)

    return prepare


def memoised(kind, **given):
    """Ten reports with memoised noise: 2,000 draws."""

    def prepare(m):
        noise = kind(size=m, reports=10, **given)
        prior = uneven(m)
        return lambda: assess(noise, prior=prior, trials=2000)

    return prepare


def ledger(count):
    """So many releases about the same people, all together."""
    prior, noise = people(1000), mechanisms.Gaussian(sigma=93.0 * count**0.5, sensitivity=93)
    questions = [Question.of(prior, Threat(knows=k)) for k in ("everything", ["age"])]
    parts = [(noise, "hours")] * count
    return lambda: jointly(lambda _: parts, questions, worst=False)


def estimated(trials):
    noise = mechanisms.Composed(
        [
            mechanisms.Gaussian(sigma=5.0, sensitivity=19.0),
            mechanisms.Laplace(epsilon=4.0, sensitivity=19.0),
        ]
    )
    people = uneven(20)
    return lambda: assess(noise, prior=people, trials=trials)


def simulated(trials):
    noise, people = mechanisms.GRR(epsilon=1.0, size=20), uneven(20)
    attack = dprad.optimal_attack(noise, prior=people)
    return lambda: simulate(noise, attack, prior=people, trials=trials)


def audited(mechanism, m):
    def prepare(trials):
        noise, claim = mechanism(epsilon=1.0, size=m), PureDP(1.0, **NEAR)
        return lambda: audit(noise, claim=claim, prior=Prior.uniform(m), trials=trials)

    return prepare


def audited_values(m):
    return audited(mechanisms.OUE, m)(20_000)


def waiting(record, rng):
    """Something that is slow to call."""
    time.sleep(1e-3)
    return record if rng.random() < 0.7 else 1 - record


def workers(many):
    sys.path.insert(0, str(Path(__file__).parent))
    import scaling

    claim = {"claim": PureDP(1.0, **NEAR), "prior": Prior.uniform(2)}
    ready = {"model": mechanisms.GRR(epsilon=1.0, size=2), "trials": 3000, "workers": many}
    audit(scaling.waiting, **claim | ready | {"trials": 200})
    return lambda: audit(scaling.waiting, **claim | ready)


def counted(rows):
    """A Parquet file of two columns, written in parts by DuckDB; only the counting is timed."""
    import duckdb

    path = Path(tempfile.gettempdir()) / f"dprad-scaling-{rows}.parquet"
    if not path.exists():
        duckdb.sql(
            f"COPY (SELECT (hash(i) % 90)::INTEGER AS age, (hash(i + 7) % 50)::INTEGER AS area "
            f"FROM range({rows}) t(i)) TO '{path}' (FORMAT PARQUET)"
        )
    return lambda: Prior.from_data(str(path), columns=["age", "area"])


# Sizes that are always reached, if a point takes no more than a few minutes.
ENOUGH = 100_000
VALUES = [1000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
RUNS = [10_000, 100_000, 300_000, 1_000_000, 3_000_000]
FEW = [1000, 10_000, 100_000]
ALL = Threat(knows="everything")
PART = Threat(knows=thirds)
NEARLY = Threat(knows=thirds, loss="absolute", eta=20)
MANY = Threat(knows=tenths, loss="relative", eta=0.5)
SHARE = Threat(loss="relative", eta=0.1)
BOUNDED = {"sensitivity": None, "bounds": lambda m: (0.0, m - 1.0)}
# Name: what to prepare, what grows, sizes.
CASES = {
    "promise, uniform prior": (uniform, "values", [*VALUES, 10**7, 10**8]),
    "promise, epsilon": (promised(PureDP(1.0, **NEAR)), "values", VALUES),
    "promise, epsilon, tolerance": (promised(PureDP(1.0, **NEAR), line(5)), "values", VALUES),
    "promise, Gaussian": (promised(GaussianDP(1.0, **NEAR)), "values", VALUES),
    "channel, any": (channel, "values", [300, 1000, 3000, 6000]),
    "GRR": (on_codes(mechanisms.GRR), "values", VALUES),
    "GRR, tolerance": (on_codes(mechanisms.GRR, line(5)), "values", VALUES),
    "OUE": (on_codes(mechanisms.OUE), "values", VALUES),
    "subset selection": (on_codes(mechanisms.SubsetSelection), "values", VALUES),
    "Hadamard": (on_codes(mechanisms.HadamardResponse), "values", VALUES),
    "Hadamard, part known": (on_codes(mechanisms.HadamardResponse, PART), "values", VALUES),
    "Laplace": (on_numbers(mechanisms.Laplace), "values", VALUES),
    "Laplace, falling prior": (on_numbers(mechanisms.Laplace, prior=falling), "values", VALUES),
    "Laplace, tolerance": (on_numbers(mechanisms.Laplace, line(20)), "values", VALUES),
    "Laplace, part known": (on_numbers(mechanisms.Laplace, PART), "values", VALUES),
    "Laplace, all known": (on_numbers(mechanisms.Laplace, ALL), "values", VALUES),
    "Gaussian": (
        on_numbers(mechanisms.Gaussian, sigma=lambda m: m / 4, epsilon=None),
        "values", VALUES,
    ),
    "Gaussian, sigma 5":
        (on_numbers(mechanisms.Gaussian, sigma=5.0, epsilon=None), "values", VALUES),
    "Gaussian, sigma 5, part known":
        (on_numbers(mechanisms.Gaussian, PART, sigma=5.0, epsilon=None), "values", VALUES),
    "Gaussian, sigma 5, tolerance":
        (on_numbers(mechanisms.Gaussian, line(20), sigma=5.0, epsilon=None), "values", VALUES),
    "discrete Gaussian": (on_whole(), "values", VALUES),
    "discrete Gaussian, part known": (on_whole(PART), "values", VALUES),
    "discrete Gaussian, all known": (on_whole(ALL), "values", VALUES),
    "discrete Gaussian, sigma 20": (on_whole(sigma=20.0), "values", VALUES),
    "geometric": (on_numbers(mechanisms.Geometric), "values", VALUES),
    "geometric, tolerance": (on_numbers(mechanisms.Geometric, line(20)), "values", VALUES),
    "geometric, wide windows":
        (on_numbers(mechanisms.Geometric, SHARE, prior=positive, epsilon=lambda m: m / 5),
         "values", VALUES),
    "geometric, all known": (on_numbers(mechanisms.Geometric, ALL), "values", VALUES),
    "staircase": (on_numbers(mechanisms.Staircase), "values", VALUES),
    "staircase, all known": (on_numbers(mechanisms.Staircase, ALL), "values", VALUES),
    "staircase, part known": (on_numbers(mechanisms.Staircase, PART), "values", VALUES),
    "staircase, tolerance": (on_numbers(mechanisms.Staircase, line(20)), "values", VALUES),
    "staircase, relative tolerance":
        (on_numbers(mechanisms.Staircase, SHARE, prior=positive), "values", VALUES),
    "staircase, part known, tolerance":
        (on_numbers(mechanisms.Staircase, NEARLY), "values", VALUES),
    "staircase, many groups, tolerance":
        (on_numbers(mechanisms.Staircase, MANY, prior=positive), "values", VALUES),
    "staircase, clamp, tolerance":
        (on_numbers(mechanisms.Staircase, line(20), clamp=lambda m: (0.0, m - 1.0)),
         "values", VALUES),
    "piecewise, relative tolerance":
        (on_numbers(mechanisms.Piecewise, SHARE, prior=positive, sensitivity=None, epsilon=2.0,
                    bounds=lambda m: (1.0, float(m))),
         "values", VALUES),
    "hybrid, part known, tolerance":
        (on_numbers(mechanisms.Hybrid, NEARLY, **BOUNDED), "values", VALUES),
    "piecewise, part known":
        (on_numbers(mechanisms.Piecewise, PART, **BOUNDED), "values", VALUES),
    "piecewise, tolerance":
        (on_numbers(mechanisms.Piecewise, line(20), **BOUNDED), "values", VALUES),
    "piecewise": (on_numbers(mechanisms.Piecewise, **BOUNDED), "values", VALUES),
    "records, Gaussian, all known": (of_people("everything"), "values", VALUES),
    "records, Gaussian, part known": (of_people(["age", "area"]), "values", VALUES),
    "records, Gaussian, calibrate": (of_people("everything", calibrate), "values", VALUES),
    "table of counts, 200 draws": (of_tables([["hours"], ["area"]]), "values", VALUES),
    "L-GRR, 10 reports":
        (memoised(mechanisms.LGRR, epsilon_inf=2.0, epsilon_one=1.0), "values", FEW),
    "L-OSUE, 10 reports":
        (memoised(mechanisms.LOSUE, epsilon_inf=2.0, epsilon_one=1.0), "values", FEW),
    "ledger": (ledger, "releases", [1000, 10_000, 30_000, 100_000, 300_000]),
    "places within 200 m, 40 near each": (nearby, "values", VALUES),
    "estimate (composition)": (estimated, "draws", RUNS),
    "simulated attack": (simulated, "runs", RUNS),
    "audit, GRR": (audited(mechanisms.GRR, 50), "runs", RUNS),
    "audit, OUE, 20,000 runs": (audited_values, "values", VALUES),
    "audit of a slow function": (workers, "workers", [1, 2, 4, 8]),
    "counting a Parquet file": (counted, "rows", [1_000_000, 10_000_000, 100_000_000]),
}  # fmt: skip


# Of the picture: what is drawn, what grows.
PANELS = {
    "values": "values of a category, or of a promise's population",
    "numbers": "values of a number that noise is added to",
    "runs": "draws or runs",
    "workers": "workers of an audit",
}


def measure(name, size):
    """In this process: seconds (of the processor, since machines are shared; with several workers
    on the clock) and what the peak of memory grew by, in MB.
    """
    prepare, unit, sizes = CASES[name]
    now = time.perf_counter if unit == "workers" else time.process_time
    prepare(min(sizes[0], size))()
    task = prepare(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = now()
    task()
    seconds = now() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, (after - before) / 1024, after / 1024]))


def point(name, size, limit):
    """The same in a fresh process; None if it takes too long."""
    command = [sys.executable, "-W", "ignore", __file__, "--measure", name, "--size", str(size)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=4 * limit + 60)
    except subprocess.TimeoutExpired:
        return None
    if made.returncode:
        print(made.stderr[-2000:])
        raise SystemExit(f"{name} at {size} failed")
    return json.loads(made.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--measure")
    parser.add_argument("--size", type=int)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.size)
        return
    found = {}
    for name, (_, unit, sizes) in CASES.items():
        if given.only not in name:
            continue
        points = []
        for size in sizes:
            at = point(name, size, given.limit)
            if at is None:
                break
            points.append((size, *at))
            print(f"{name:28} {size:>11,} {unit:8} {at[0]:9.3f} s {at[1]:8.0f} MB", flush=True)
            if at[0] > given.limit and size >= ENOUGH:
                break
        found[name] = points
        print(f"{name:28} exponent {exponent(points):.2f}", flush=True)
    if given.out is not None:
        write(found, given.out)


def exponent(points):
    last = points[-3:]
    if len(last) < 2:
        return float("nan")
    x, y = np.log([p[0] for p in last]), np.log([p[1] for p in last])
    return float(np.polyfit(x, y, 1)[0])


def write(found, folder):
    """The page and the picture."""
    from matplotlib.figure import Figure

    rows = []
    for name, points in found.items():
        size, seconds, grown, _ = points[-1]
        unit = CASES[name][1]
        rows.append(
            f"| {name} | {size:,} {unit} | {seconds:.3g} s | {max(grown, 1):.0f} MB | "
            f"{exponent(points):.2f} |"
        )
        if unit == "workers":
            told = ", ".join(f"{p[0]}: {p[1]:.2g} s" for p in points)
            rows[-1] = rows[-1].replace(name, f"{name} ({told})")
    figure = Figure(figsize=(9.5, 8.5), layout="constrained")
    numbers = (
        "Laplace", "Gaussian", "discrete", "geometric", "staircase", "piecewise", "hybrid",
        "records",
    )  # fmt: skip
    for axes, title in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        ends = []
        for name, points in found.items():
            unit = CASES[name][1]
            panel = "numbers" if name.startswith(numbers) else unit
            if panel != title and not (unit in ("draws", "runs") and title == "runs"):
                continue
            drawn = axes.loglog([p[0] for p in points], [p[1] for p in points], ".-", lw=1)
            ends.append((points[-1][1], points[-1][0], name, drawn[0].get_color()))
        last = 0.0
        for seconds, size, name, colour in sorted(ends):
            last = max(seconds, 1.45 * last)  # names that would lie on each other move up
            axes.text(size * 1.15, last, name, fontsize=6.5, va="center", color=colour)
        if title == "workers":
            axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"], minor=False)
            axes.set_yticks([1, 2, 3], ["1", "2", "3"], minor=False)
            axes.minorticks_off()
        axes.set_xlabel(PANELS[title])
        axes.set_ylabel("seconds")
        axes.margins(x=0.22)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "pictures" / "scaling.svg", metadata={"Date": None})
    page = (folder / "scaling.md").read_text(encoding="utf-8")
    head, _, _ = page.partition("<!-- measured -->")
    when = datetime.now(UTC).date().isoformat()
    table = "| what | largest | time | memory | exponent |\n|---|---|---|---|---|\n"
    told = (
        f"Measured on {when} by `benchmarks/scaling.py`, on two shared cores; seconds of the "
        "processor, with workers on the clock.\n\n"
    )
    text = f"{head}<!-- measured -->\n{told}{table}" + "\n".join(rows) + "\n"
    (folder / "scaling.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
