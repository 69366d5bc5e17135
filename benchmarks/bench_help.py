"""`dprad --help` against importing scipy.stats. Target: under half of the time."""

from __future__ import annotations

import subprocess
import sys
import time

TIMES = 5


def best(code):
    """The best of a few runs of a program of its own."""
    found = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False)
        found.append(time.perf_counter() - begin)
    return min(found)


def main():
    helped = best("from dprad.show.cli import main; main(['--help'])")
    ratio = helped / best("import scipy.stats")
    print(f"dprad --help takes {ratio:.2f} of the time of importing scipy.stats (target 0.5)")


if __name__ == "__main__":
    main()
