"""What soundness and fuzzing share: many random instances of each check, and a page about them."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path


def run(about, checks, try_one, judge=lambda seen, n: []):
    """Try every check (title: what, instances) and write the page; exit 1 if anything is wrong.

    ``try_one(what, title, seed, i, seen)`` returns what is wrong with instance i, or nothing; it
    may raise. ``judge(seen, n)`` says what is wrong with all of them together.
    """
    title, command = about
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    broken, rows, total = [], [], 0
    for name, (what, count) in checks.items():
        seen, wrong, begin = Counter(), [], time.monotonic()
        n = max(1, round(count * given.scale))
        for i in range(n):
            try:
                found = try_one(what, name, given.seed, i, seen)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                found = f"{type(error).__name__}: {str(error)[:600]}"
            if found:
                wrong.append(f"{name}, {i}: {found}")
        wrong += judge(seen, n)
        told = ", ".join(
            f"{k} {v:,}" for k, v in seen.most_common() if not k.startswith("refused:")
        )
        refused = sum(v for k, v in seen.items() if k.startswith("refused:"))
        told += f"; refused with a sentence {refused:,}" if refused else ""
        rows.append(f"| {name} | {n:,} | {len(wrong)} | {told} |")
        print(rows[-1], f"({time.monotonic() - begin:.0f} s)", flush=True)
        broken += wrong
        total += n
    page = [
        f"# {title}",
        "",
        f"Last run: `{command}`, scale {given.scale:g}, seed {given.seed}, on "
        f"{datetime.now(UTC).date().isoformat()}. **{total:,} tried, {len(broken)} wrong.**",
        "",
        "| what | tried | wrong | what was seen |",
        "|---|---|---|---|",
        *rows,
        *["", *(f"- {w}" for w in broken)][: 101 if broken else 0],
    ]
    if given.out is not None:
        given.out.write_text("\n".join(page) + "\n", encoding="utf-8")
    for each in broken[:12]:
        print(each)
    sys.exit(bool(broken))
