"""Progress on standard error for work longer than two seconds, unless it is piped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0


@contextmanager
def shown(quiet: bool) -> Iterator[None]:
    """Show a progress bar within, or a clock if the end is not known."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from dprad.runtime.progress import listen

    state: dict[str, Any] = {"bar": None, "task": None, "last": ("working", 0, 0)}
    lock = threading.Lock()

    def start() -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Left

        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(), TextColumn("left"), Left(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        with lock:
            what, done, total = state["last"]
            bar.start()
            state["task"] = bar.add_task(what, completed=done, total=total or None, said="")
            state["bar"] = bar

    def update(what: str, done: int, total: int) -> None:
        with lock:
            state["last"] = (what, done, total)
            if state["bar"] is not None:
                state["bar"].update(
                    state["task"], description=what, completed=done, total=total or None,
                    said=f"{done:,} of {total:,}" if total else "",
                )  # fmt: skip

    timer = threading.Timer(PATIENCE, start)
    timer.daemon = True
    timer.start()
    try:
        with listen(update):
            yield
    finally:
        timer.cancel()
        with lock:
            if state["bar"] is not None:
                state["bar"].stop()
