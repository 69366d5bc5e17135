"""Places whose pairs do not fit the memory limit: one process against four workers of Dask.

The extra risk of randomised response, and of a promise, over m places with so many within 200 m of
each, uneven prior, in a process of its own. Usage: bench_places.py [m] [near] [memory].
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import dprad

WORKERS, OF_A_WORKER = 4, "500MB"


def peak():
    """MB at most until now, of this process: getrusage would count the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def asked(m, near):
    """The city of bench_sizes.py, at another density; 1,484 circles of 200 m fill it."""
    at = np.random.default_rng(0).uniform(0, np.sqrt(m / (1484 * near)), (m, 2))
    weight = np.random.default_rng(1).gamma(1.0, size=m).tolist()
    spots = map(tuple, (at * [0.1, 0.2] + [41.1, -8.7]).tolist())
    prior = dprad.Prior.from_counts(dict(zip(spots, weight, strict=True)), columns=["lat", "lon"])
    return {"prior": prior, "threat": dprad.Threat(loss="haversine", eta=200)}


def measure(where, what, m, near, memory):
    warnings.simplefilter("ignore")
    question = asked(m, near)
    subject = dprad.PureDP(8.0, neighbours="replace-one")
    if what == "GRR":
        subject = dprad.mechanisms.GRR(epsilon=8.0, size=m)
    largest, workers = lambda: None, 1 if where == "one" else WORKERS
    with ExitStack() as stack:
        if where == "Dask":
            import distributed
            import joblib

            cluster = distributed.LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, dashboard_address=None,
                memory_limit=OF_A_WORKER, host="127.0.0.1",
            )  # fmt: skip
            client = stack.enter_context(
                distributed.Client(stack.enter_context(cluster), set_as_default=False)
            )
            stack.enter_context(joblib.parallel_config(backend="dask", client=client))
            largest = lambda: max(client.run(peak).values())  # noqa: E731
        before, begin, busy = peak(), time.perf_counter(), time.process_time()
        risk = dprad.assess(subject, **question, workers=workers, memory=memory)
        seconds = time.perf_counter() - begin, time.process_time() - busy
        print(json.dumps([*seconds, before, peak(), largest(), risk.rad]))


def main():
    size, near = (int(n) for n in (sys.argv[1:3] + ["100000", "1000"][len(sys.argv[1:3]) :]))
    memory = sys.argv[3] if len(sys.argv) > 3 else "1 GB"
    print(f"{size:,} places, about {near:,} within 200 m of each, memory={memory!r}")
    for what in ("GRR", "promise"):
        risks = []
        for where in ("one", "Dask"):
            command = [sys.executable, __file__, "--measure", where, what, str(size), str(near)]
            out = subprocess.run([*command, memory], capture_output=True, text=True, check=True)
            *spent, risk = json.loads(out.stdout.splitlines()[-1])
            wall, busy, before, after, worker = spent
            said = f"{wall:.1f} s ({busy:.1f} s of its processor), {before:.0f} to {after:.0f} MB"
            said += f", a worker at most {worker:.0f} MB" if worker else ""
            print(f"  {what}, {where}: {said}")
            risks.append(risk)
        print(f"  {what}: extra risk {risks[0]!r}, the same: {risks[0] == risks[1]}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(*sys.argv[2:4], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
    else:
        main()
