"""Time limits, progress, and what is known if work is interrupted.

Long work reports its progress to listeners: `listen` (the command line does). Without a listener
nothing is shown, unless requested. A piece of work may consist of others: only the outermost is
told, since nobody can see from an inner one how much is left of the whole.
"""

from __future__ import annotations

import bisect
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from dprad.errors import number

T = TypeVar("T")
Listener = Callable[[str, int, int], None]
Point = tuple[float, int]
_listeners: list[Listener] = []
# A clock keeps about so many points of the time that has passed. The remaining time is told after
# this share of the work, while the pace of the last half of the time and of the quarter before
# differ by no more than this factor, and until a step takes so many times longer than the longest
# in that half.
POINTS, SHARE, STEADY, LONGER = 64, 0.02, 2.0, 3.0
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
        self.start = time.monotonic()
        # times and what was done by then: points, and the last
        self.seen: tuple[list[Point], Point] = ([(self.start, 0)], (self.start, 0))

    def told(self, what: str, done: int, total: int) -> None:
        """The latest progress. Another piece of work, or one that starts anew, is timed anew."""
        now = time.monotonic()
        if (what, total) != (self.what, self.total) or done < self.done:
            self.seen = [(now, done)], (now, done)
        elif done > self.done:
            points = self.seen[0]
            if now - points[-1][0] >= (now - points[0][0]) / POINTS:  # so they stay few
                points.append((now, done))
            self.seen = points, (now, done)  # another thread reads both
        self.what, self.done, self.total = what, done, total

    @property
    def seconds(self) -> float:
        """Since the start of everything."""
        return time.monotonic() - self.start

    @property
    def left(self) -> float | None:
        """Seconds for the rest of this piece at its pace of late; None if that cannot be told: the
        end is not known, it is done, little is done yet, the pace still changes, or a step takes
        longer than it should.
        """
        points, (end, done) = self.seen
        points = [*points, (end, done)] if points[-1][0] < end else points[:]
        begin, first = points[0]
        middle, early = (_last(points, begin + (end - begin) / part) for part in (2, 4))
        if done >= self.total or not early < middle < len(points) - 1:
            return None
        if done - first < SHARE * self.total:
            return None
        pace, before = _pace(points[middle], points[-1]), _pace(points[early], points[middle])
        if max(pace, before) > STEADY * min(pace, before):
            return None
        longest = max(b[0] - a[0] for a, b in itertools.pairwise(points[middle:]))
        running = time.monotonic() - end
        if running > LONGER * longest:
            return None
        left = pace * (self.total - done) - min(running, longest)
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


def _last(points: Sequence[Point], time_: float) -> int:
    """The place of the last point up to this time."""
    return bisect.bisect_right(points, time_, key=lambda point: point[0]) - 1


def _pace(one: Point, other: Point) -> float:
    """Seconds per unit of work between two points."""
    return (other[0] - one[0]) / (other[1] - one[1])


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
        self.what, self.clock = what, Clock()

    def show(self, done: int) -> None:
        """Report; on standard error at most twice per second."""
        tell(self.what, done, self.total)
        self.clock.told(self.what, done, self.total)
        now = time.monotonic()
        if not self.wanted or _listeners or (now - self.shown < 0.5 and done < self.total):
            return
        self.shown = now
        rate = done / max(now - self.begin, 1e-9)
        rest = self.clock.rest
        said = f"{done:,} of {self.total:,} {self.what}, {rate:,.0f}/s{rest and ', '}{rest}"
        sys.stderr.write(f"\r{said:<76}")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.shown:
            sys.stderr.write("\n")
