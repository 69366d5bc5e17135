"""Time: when to stop, and how far it is."""

from __future__ import annotations

import math
import sys
import time

from dprad.errors import number


class Stop:
    """A clock."""

    def __init__(self, begin: float, max_seconds: float | None) -> None:
        limit = None if max_seconds is None else number(max_seconds, "max_seconds", low=0)
        self.end = math.inf if limit is None else begin + limit

    def now(self) -> bool:
        """Whether it is over."""
        return time.monotonic() >= self.end


class Meter:
    """Progress on standard error: runs, rate, time left."""

    def __init__(self, wanted: bool, total: int, begin: float, what: str = "runs") -> None:
        self.wanted, self.total, self.begin, self.last = wanted, total, begin, 0.0
        self.what = what

    def show(self, runs: int) -> None:
        """Tell, at most twice a second."""
        now = time.monotonic()
        if not self.wanted or (now - self.last < 0.5 and runs < self.total):
            return
        self.last = now
        rate = runs / max(now - self.begin, 1e-9)
        left = (self.total - runs) / max(rate, 1e-9)
        sys.stderr.write(
            f"\r{runs:,} of {self.total:,} {self.what}, {rate:,.0f} a second, {left:,.0f} s left   "
        )
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.wanted and self.last:
            sys.stderr.write("\n")
