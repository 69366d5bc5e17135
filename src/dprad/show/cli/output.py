"""Printing: a closed pipe (head, less) is not an error and does not change the exit code."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad.model.results import Risk


def clean(text: str) -> str:
    """Without terminal control sequences: names may come from anywhere."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


# What else is on the screen: erased before something is printed, by whoever draws it.
SCREEN = threading.RLock()
erased: list[Callable[[], None]] = []


def show(text: str) -> None:
    """Print text."""
    try:
        with SCREEN:
            for erase in erased:
                erase()
            sys.stdout.write(clean(text) + "\n")
            sys.stdout.flush()
    except AttributeError:  # closed before this began
        return
    except BrokenPipeError:
        # buffered output has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def ranked(cases: Sequence[tuple[str, Risk]]) -> list[str]:
    """Attackers with their extra risk and that of the most exposed person, largest first."""
    from dprad.model import explain

    rows = [("attacker", "average", "most exposed person")]
    for name, risk in sorted(cases, key=lambda case: -case[1].interval[1]):
        own = ""
        if risk.worst is not None and risk.worst_interval is not None:
            own = explain.bounded(risk.worst, risk.worst_interval, risk.worst_kind or "exact")
        rows.append((name, explain.number(risk), own))
    wide = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)) for row in rows)
    return [f"  {line.rstrip()}" for line in lines]


def show_json(plain: Any) -> None:
    """Print plain data as JSON; infinite numbers are null."""
    show(json.dumps(_finite(plain), indent=2, allow_nan=False))


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {k: _finite(v) for k, v in plain.items()}
    if isinstance(plain, list | tuple):
        return [_finite(v) for v in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
