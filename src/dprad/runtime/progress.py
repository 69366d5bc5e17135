"""Time limits, progress, and what is known if work is interrupted.

Long work reports its progress to listeners: `listen` (the command line does). Without a listener
nothing is shown, unless requested. A piece of work may consist of others: only the outermost is
told, since nobody can see from an inner one how much is left of the whole.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from dprad.errors import number

T = TypeVar("T")
Listener = Callable[[str, int, int], None]
_listeners: list[Listener] = []
# The outermost piece of work, if there is one, and the lines that are kept.
_outer: list[tuple[str, int, int]] = []
_kept: list[list[str]] = []


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
    """Call all listeners. A total of 0 means that the end is not known."""
    for listener in _listeners:
        listener(*(_outer[0] if _outer else (what, done, total)))


@contextmanager
def part(what: str, done: int = 0, total: int = 0) -> Iterator[None]:
    """Within, whatever is told is told as this."""
    _outer.append((what, done, total))
    tell(what, done, total)
    try:
        yield
    finally:
        _outer.pop()


def steps(what: str, items: Sequence[T]) -> Iterator[T]:
    """The items, each a step of one piece of work; a single one is no piece."""
    if len(items) < 2:
        yield from items
        return
    for k, item in enumerate(items):
        with part(what, k, len(items)):
            yield item
    tell(what, len(items), len(items))


@contextmanager
def keep() -> Iterator[list[str]]:
    """Within, what becomes known is kept in this list, in case the work is interrupted."""
    lines: list[str] = []
    _kept.append(lines)
    try:
        yield lines
    finally:
        _kept.remove(lines)


def known(line: str) -> None:
    """Something is known, in words."""
    for lines in _kept:
        lines.append(line)


class Stop:
    """A time limit."""

    def __init__(self, begin: float, max_seconds: float | None) -> None:
        limit = None if max_seconds is None else number(max_seconds, "max_seconds", low=0)
        self.end = math.inf if limit is None else begin + limit

    def now(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.end


class Clock:
    """How long one piece of work will still take. `told` is a listener."""

    def __init__(self) -> None:
        self.what, self.done, self.total = "working", 0, 0
        self.start = self.begin = self.last = time.monotonic()
        self.first = 0

    def told(self, what: str, done: int, total: int) -> None:
        """The latest progress. Another piece of work, or one that starts anew, is timed anew."""
        now = time.monotonic()
        if (what, total) != (self.what, self.total) or done < self.done:
            self.begin, self.first = now, done
        self.what, self.done, self.total, self.last = what, done, total, now

    @property
    def seconds(self) -> float:
        """Since the start of everything."""
        return time.monotonic() - self.start

    @property
    def left(self) -> float | None:
        """Seconds for the rest of this piece at its pace so far; None if that cannot be told:
        the end is not known, nothing is done yet, it is done, or it takes longer than it should.
        """
        gone = self.done - self.first
        if gone <= 0 or self.done >= self.total:
            return None
        rest = (self.last - self.begin) / gone * (self.total - self.done)
        left = rest - (time.monotonic() - self.last)
        return left if left > 0 else None

    def __str__(self) -> str:
        if not self.total:
            return self.what
        if self.done >= self.total:
            return f"{self.what}: all {self.total:,} done, finishing"
        return f"{self.what}: {self.done:,} of {self.total:,}"

    @property
    def rest(self) -> str:
        """What is said about the time that is left."""
        left = self.left
        return "" if left is None else f"about {duration(left)} more for this"


def duration(seconds: float) -> str:
    """In words."""
    whole = math.ceil(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = math.ceil(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{math.ceil(minutes / 60)} h"


class Meter:
    """Progress of one task: to the listeners, or on standard error if `wanted`."""

    def __init__(self, wanted: bool, total: int, begin: float, what: str = "runs") -> None:
        self.wanted, self.total, self.begin, self.shown = wanted, total, begin, 0.0
        self.what = what

    def show(self, done: int) -> None:
        """Report; on standard error at most twice per second."""
        tell(self.what, done, self.total)
        now = time.monotonic()
        if not self.wanted or _listeners or (now - self.shown < 0.5 and done < self.total):
            return
        self.shown = now
        rate = done / max(now - self.begin, 1e-9)
        left = (self.total - done) / max(rate, 1e-9)
        sys.stderr.write(
            f"\r{done:,} of {self.total:,} {self.what}, {rate:,.0f}/s, {left:,.0f} s left   "
        )
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.shown:
            sys.stderr.write("\n")
