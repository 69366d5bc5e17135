"""A scenario of ordinary size on the command line: this code against an older commit, in one run.

    python benchmarks/bench_report.py [TABLE.csv] [--old COMMIT] [--commands assess,report]

Five columns with 18,205 different records (of Adult: age, education, occupation, hours-per-week and
income; without a table, made up), Gaussian noise on the hours per week, an attacker who knows
everything. Seconds of the processor, and the ratio.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_sizes import ROOT, people

BEFORE = "bf40756"  # before records that read alike were solved together
COMMANDS = {
    "assess": ["assess", "scenario.toml"],
    "calibrate": ["calibrate", "scenario.toml"],
    "report": ["report", "scenario.toml", "-o", "report.html"],
}
SCENARIO = """
title = "Hours per week"
[population]
data = "people.csv"
columns = [{columns}]
[[threats]]
name = "somebody who knows everything"
knows = "everything"
[[releases]]
name = "hours with Gaussian noise"
mechanism = "gaussian"
sigma = 50.0
sensitivity = 98
query = "{hours}"
[accepted]
risk = 0.1
"""


def spent(source, folder, command):
    """Seconds of the processor of one command, in a process of its own."""
    here = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "dprad", *COMMANDS[command]], cwd=folder, env=here,
        capture_output=True, text=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def prepare(table, folder):
    """The table and the scenario."""
    if table is None:
        prior = people(18_205)
        names, hours = list(prior.columns), "hours"
        with (folder / "people.csv").open("w", newline="") as file:
            csv.writer(file).writerows([names, *prior.support.tolist()])
    else:
        names = ["age", "education", "occupation", "hours-per-week", "income"]
        hours = names[3]
        (folder / "people.csv").symlink_to(table.resolve())
    columns = ", ".join(f'"{name}"' for name in names)
    (folder / "scenario.toml").write_text(SCENARIO.format(columns=columns, hours=hours))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--old", default=BEFORE)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder, tree = Path(home), Path(home) / "old"
        prepare(given.table, folder)
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), given.old], check=True)
        try:
            for command in given.commands.split(","):
                new, old = (spent(s / "src", folder, command) for s in (ROOT, tree))
                line = f"| {command} | {old:.3g} s | {new:.3g} s | {old / new:.3g} |"
                print(line, flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    main()
