"""The channel solver at m = K = 5000 against the plain numpy one-liner and against qif.

One run, best of several, ratios only. Target: at least as fast as the one-liner, twice as fast as
qif, and at most 64 MB of extra memory at the peak. Prints the bytes it reads against the least it
must (the matrix, once).
"""

from __future__ import annotations

import resource
import threading
import time
from pathlib import Path

import numpy as np

import dprad
from dprad.exact import Sampling, solve
from dprad.game.game import play
from dprad.game.question import Posed
from dprad.mechanisms import Channel

M = 5000


def one_liner(pi, p):
    return np.maximum((pi[:, None] * (p - pi @ p)).max(axis=0), 0).sum()


def by_qif(pi, p):
    """RAD for a uniform prior through Bayes vulnerability: the posterior one less the prior one."""
    import qif

    return qif.measure.bayes_vuln.posterior(pi, p) - pi.max()


def best(function, *arguments, repeats=5):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        value = function(*arguments)
        times.append(time.perf_counter() - begin)
    return min(times), value


def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_extra(function):
    """Largest growth of the resident set while `function` runs, sampled every half millisecond."""
    start, peak, done = resident(), [0.0], threading.Event()

    def watch():
        while not done.is_set():
            peak[0] = max(peak[0], resident() - start)
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return peak[0]


def main():
    rng = np.random.default_rng(0)
    p = rng.random((M, M))
    p /= p.sum(axis=1, keepdims=True)
    prior, threat = dprad.Prior.uniform(M), dprad.Threat()
    pi, channel, game = prior.probabilities, Channel(p), play(prior, threat)
    codes = np.arange(M)

    def ours():
        return solve(channel, Posed(game, codes), Sampling()).rad

    memory = peak_extra(ours)
    ours_s, value = best(ours)
    plain_s, plain = best(one_liner, pi, p)
    assert abs(value - plain) < 1e-12
    print(f"channel solver, m = K = {M}")
    print(f"  one-liner / ours: {plain_s / ours_s:.2f}  (target >= 1)")
    try:
        qif_s, other = best(by_qif, pi, p)
    except ImportError:
        print("  qif is not installed")
    else:
        assert abs(value - other) < 1e-12
        print(f"  qif / ours:       {qif_s / ours_s:.2f}  (target >= 2)")
    print(f"  peak extra memory: {memory:.1f} MB (target < 64)")
    print(
        f"  matrix: {p.nbytes / 1e6:.0f} MB, read twice (marginal, then maxima); the least is once"
    )


if __name__ == "__main__":
    main()
