"""The weakest noise that meets a target: a bracketed search that ends on the safe side.

A risk is a function of one positive number that is monotone, at least piecewise. In logarithms of
both it is close to a straight line, so the first steps follow one. Once the target lies between two
values, the gap is closed by the Illinois form of false position, with a bisection whenever that is
slow. The returned value was evaluated and meets the target; its neighbour within `tolerance` was
evaluated and does not. No value is evaluated twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# Pieces tried one after the other; if there are more, only those near the crossing.
ALL_PIECES = 256
NEARBY = 16


@dataclass(slots=True)
class UnattainableError(Exception):
    """No value, or every value, meets the target; `extreme` is the risk at `value`."""

    value: float
    extreme: float
    every: bool
    sampled: bool = False  # whether not all pieces were looked at


@dataclass(slots=True)
class Search:
    """The evaluations of one search. `rising` says whether risk grows with the value."""

    evaluate: Callable[[float], float]
    target: float
    low: float
    high: float
    rising: bool = True
    whole: bool = False
    tolerance: float = 1e-7
    seen: dict[float, float] = field(default_factory=dict)
    ended: bool = False  # whether the answer is the end of the range

    def risk(self, value: float) -> float:
        """The risk at a value, evaluated once."""
        if value not in self.seen:
            self.seen[value] = self.evaluate(value)
        return self.seen[value]

    def fits(self, value: float) -> bool:
        """Whether a value meets the target."""
        return self.risk(value) <= self.target

    def weakest(self, start: float, edges: Sequence[float] = ()) -> float:
        """The value of least noise that meets the target; risk is monotone between `edges`."""
        inner = sorted(e for e in edges if self.low < e < self.high)
        if not inner:
            return self._piece(start, self.low, self.high)
        bounds = [self.low, *inner, self.high]
        pieces = [
            (a * (1 + 1e-12) if a != self.low else a, b * (1 - 1e-12) if b != self.high else b)
            for a, b in itertools.pairwise(bounds)
        ]
        # least noise first; the strongest end of a piece decides whether it has an answer
        order = pieces[::-1] if self.rising else pieces
        if len(order) > ALL_PIECES:
            order = self._near(order)
        for a, b in order:
            strong = a if self.rising else b
            if self.fits(strong):
                return self._first(min(max(start, a), b), (a, b), pieces)
        strong = self.low if self.rising else self.high
        raise UnattainableError(strong, self.risk(strong), every=False)

    def _first(
        self, start: float, piece: tuple[float, float], pieces: list[tuple[float, float]]
    ) -> float:
        """The weakest value of a piece; if all of it fits, that is said of all only if it is so."""
        try:
            return self._piece(start, *piece)
        except UnattainableError as limit:
            if not limit.every:
                raise
            step = max(1, len(pieces) // ALL_PIECES)
            weak = [b if self.rising else a for a, b in pieces[::step]]
            worst = max(weak, key=self.risk)
            if self.fits(worst):
                extreme = self.risk(worst)
                raise UnattainableError(worst, extreme, every=True, sampled=step > 1) from None
            self.ended = True
            return limit.value

    def _near(self, order: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """The pieces around the first that has an answer, by bisection over pieces."""
        left, right = 0, len(order) - 1
        while left < right:
            middle = (left + right) // 2
            a, b = order[middle]
            if self.fits(a if self.rising else b):
                right = middle
            else:
                left = middle + 1
        return order[max(0, left - NEARBY) :]

    def _piece(self, start: float, low: float, high: float) -> float:
        """Within one piece: bracket from the start outwards, then close in."""
        weak_end, strong_end = (high, low) if self.rising else (low, high)
        value = self._round(min(max(start, low), high))
        good = bad = None
        step = 1.0
        while good is None or bad is None:
            if self.fits(value):
                good = value
                if value == weak_end:
                    if good == strong_end or weak_end in (self.low, self.high):
                        raise UnattainableError(value, self.risk(value), every=True)
                    return value
            else:
                bad = value
                if value == strong_end:
                    raise UnattainableError(value, self.risk(value), every=False)
            if good is not None and bad is not None:
                break
            following = self._outwards(value, step)
            step *= 3.0
            value = self._round(min(max(following, low), high))
            if value in (good, bad):
                value = weak_end if bad is None else strong_end
        return self._close(good, bad)

    def _outwards(self, value: float, step: float) -> float:
        """Along a line of slope one in logarithms, and a little (more and more) further."""
        ratio = self.target / max(self.risk(value), 1e-300)
        ratio = min(max(ratio, 1e-6), 1e6)
        towards_weak = 1.0 if self.risk(value) <= self.target else -1.0
        shift = math.log(ratio) + towards_weak * 0.02 * step
        exponent = shift if self.rising else -shift
        return value * math.exp(min(max(exponent, -30.0), 30.0))

    def _close(self, good: float, bad: float) -> float:
        side = stalled = 0
        while True:
            if self.whole:
                if abs(good - bad) <= 1:
                    return good
            elif abs(good - bad) <= self.tolerance * max(abs(good), abs(bad)):
                return good
            width = abs(math.log(good / bad))
            value = self._between(good, bad, side, bisect=stalled >= 2)
            if self.fits(value):
                side = side + 1 if side > 0 else 1
                good = value
            else:
                side = side - 1 if side < 0 else -1
                bad = value
            stalled = stalled + 1 if abs(math.log(good / bad)) > width / 2 else 0

    def _between(self, good: float, bad: float, side: int, *, bisect: bool) -> float:
        """False position in logarithms; the end that does not move counts less and less."""
        x, y = math.log(good), math.log(bad)
        goal = math.log(max(self.target, 1e-300))
        f = math.log(max(self.risk(good), 1e-300)) - goal
        g = math.log(max(self.risk(bad), 1e-300)) - goal
        if side > 1:
            g /= 2.0 ** (side - 1)
        elif side < -1:
            f /= 2.0 ** (-side - 1)
        gap = self.tolerance / 2 if not self.whole else 0.0
        width = abs(y - x)
        place = (x + y) / 2 if bisect or g <= f else x + (y - x) * (-f) / (g - f)
        # keep half the tolerance away from the ends, so that both close in
        inner = min(gap, width / 2)
        place = min(max(place, min(x, y) + inner), max(x, y) - inner)
        value = math.exp(place)
        if self.whole:
            low, high = sorted((good, bad))
            return float(min(max(round(value), low + 1), high - 1))
        return value

    def _round(self, value: float) -> float:
        return float(round(value)) if self.whole else value
