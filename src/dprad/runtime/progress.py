"""Time limits and progress.

Long work reports its progress to listeners: `listen` (the command line does). Without a listener
nothing is shown, unless requested.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dprad.errors import number

Listener = Callable[[str, int, int], None]
_listeners: list[Listener] = []


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Within, `listener(what, done, total)` is called with the progress of work."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def quietly() -> Iterator[None]:
    """Within, nobody is told."""
    heard = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners.extend(heard)


def tell(what: str, done: int, total: int) -> None:
    """Call all listeners."""
    for listener in _listeners:
        listener(what, done, total)


class Stop:
    """A time limit."""

    def __init__(self, begin: float, max_seconds: float | None) -> None:
        limit = None if max_seconds is None else number(max_seconds, "max_seconds", low=0)
        self.end = math.inf if limit is None else begin + limit

    def now(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.end


class Meter:
    """Progress of one task: to the listeners, or on standard error if `wanted`."""

    def __init__(self, wanted: bool, total: int, begin: float, what: str = "runs") -> None:
        self.wanted, self.total, self.begin, self.last = wanted, total, begin, 0.0
        self.what = what

    def show(self, done: int) -> None:
        """Report; on standard error at most twice per second."""
        tell(self.what, done, self.total)
        now = time.monotonic()
        if not self.wanted or _listeners or (now - self.last < 0.5 and done < self.total):
            return
        self.last = now
        rate = done / max(now - self.begin, 1e-9)
        left = (self.total - done) / max(rate, 1e-9)
        sys.stderr.write(
            f"\r{done:,} of {self.total:,} {self.what}, {rate:,.0f}/s, {left:,.0f} s left   "
        )
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.last:
            sys.stderr.write("\n")
