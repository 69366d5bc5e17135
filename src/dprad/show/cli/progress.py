"""Progress on standard error for work longer than two seconds: a bar for people, and a line every
ten seconds in a log.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dprad.runtime.progress import Clock, duration, keep, listen
from dprad.show.cli.output import SCREEN, erased, warn

# Seconds until something is shown, and between two lines of a log.
PATIENCE, EVERY = 2.0, 10.0
# Most lines of what was known when work was interrupted.
LINES = 20


@contextmanager
def shown(quiet: bool) -> Iterator[None]:
    """Show progress within; if it is interrupted, how far it was and what was known."""
    clock, over = Clock(), threading.Event()
    draw = _bar if sys.stderr is not None and sys.stderr.isatty() else _log
    watcher = threading.Thread(target=draw, args=(clock, over), daemon=True)
    if not quiet:
        watcher.start()
    with keep() as lines, listen(clock.told):
        try:
            yield
        except KeyboardInterrupt:
            _end(watcher, over)
            warn(_interrupted(clock, lines))
            raise
        finally:
            _end(watcher, over)


def _end(watcher: threading.Thread, over: threading.Event) -> None:
    over.set()
    if watcher.is_alive():
        watcher.join(timeout=1.0)  # a terminal that takes nothing more holds nobody up


def _interrupted(clock: Clock, lines: list[str]) -> str:
    """How far it was, and what was known."""
    after = f"dprad: interrupted after {duration(clock.seconds)}"
    said = f"{after} ({clock})" if clock.what != "working" else after
    if not lines:
        return f"{said}.\n"
    told = [f"  {line}\n" for line in lines[-LINES:]]
    return f"{said}. Known by then:\n{''.join(told)}"


def _log(clock: Clock, over: threading.Event) -> None:
    """Lines, for a file."""
    wait = PATIENCE
    while not over.wait(wait):
        with SCREEN:
            warn(f"dprad: {'; '.join(_said(clock))}\n")
        wait = EVERY


def _said(clock: Clock) -> list[str]:
    spent = f"{duration(clock.seconds)} so far"
    return [str(clock), *filter(None, (spent, clock.rest))]


def _bar(clock: Clock, over: threading.Event) -> None:
    """A bar, which moves to and fro if the end is not known."""
    if over.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.fields[said]}", markup=False), BarColumn(),
        TextColumn("{task.fields[time]}", markup=False),
        console=Console(stderr=True), transient=True, auto_refresh=False,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
    task = bar.add_task("", total=None, said="", time="")

    def erase() -> None:
        if bar.live.is_started:
            bar.stop()

    erased.append(erase)
    try:
        while not over.wait(0.2):
            total = None if clock.done >= clock.total else clock.total
            said, *time = _said(clock)
            with SCREEN:
                if not over.is_set():
                    bar.start()
                    bar.update(
                        task, completed=clock.done, total=total, said=said, time="; ".join(time)
                    )
                    bar.refresh()
    finally:
        with SCREEN:
            erase()
            erased.remove(erase)
