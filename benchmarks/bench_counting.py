"""Counting a 50-million-row Parquet file with a 1,000-value column.

Peak memory of `Prior.from_data` on the path, against reading the column into Python; each in its
own process. Target: under 1 GB. Prints the ratio.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000_000

OURS = """
import dprad
prior = dprad.Prior.from_data({path!r}, columns=["value"])
assert prior.size == 1000
"""
PULLED = """
import numpy as np, pyarrow.parquet as pq
values = pq.read_table({path!r}, columns=["value"])["value"].to_numpy()
assert len(np.unique(values)) == 1000
"""
MEASURE = """
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak(script, path):
    begin = time.perf_counter()
    code = script.format(path=str(path)) + MEASURE
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout), time.perf_counter() - begin


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        duckdb.sql(
            f"COPY (SELECT (hash(range) % 1000)::INTEGER AS value, range AS id FROM range({ROWS})) "
            f"TO '{path}' (FORMAT parquet)"
        )
        ours, ours_s = peak(OURS, path)
        pulled, pulled_s = peak(PULLED, path)
    print(f"counting {ROWS:,} rows, 1,000 values")
    print(f"  peak memory: {ours:.0f} MB (target < 1000), pulled into Python {pulled:.0f} MB")
    print(f"  pulled / ours: memory {pulled / ours:.2f}, time {pulled_s / ours_s:.2f}")


if __name__ == "__main__":
    main()
