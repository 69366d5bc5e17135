"""Upper envelopes of lines: what the best guess gains between two neighbouring values.

Between two neighbouring values v < w every record's density under Laplace noise is a multiple of
e^{t/b} or e^{-t/b}, so the gain of a success set is ``h (A/y + B y)`` with
``y = e^{-(t-v)/b} / h`` and ``h = e^{-(w-v)/(2b)}``: after a common factor a line A + B u in
u = y^2. The best guess is the upper envelope of these lines and of the zero line of passing, and
each piece integrates in closed form to ``h (A (1/y1 - 1/y2) + B (y2 - y1)) / 2``. Geometric noise
has outputs at whole numbers only: there each piece is the sum of a geometric series.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dprad.exact.runs import Runs, steepest
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray

# e^-x counts as zero beyond; keeps 1/h^2 finite.
MAX_EXPONENT = 600.0
# Lines that meet within this share of u meet in one point.
SAME = 1e-13
# Places this close (in units of the noise) to an output are on it.
WHOLE = 1e-12


@dataclass(frozen=True, slots=True)
class Steps:
    """Outputs everywhere (`rate` 0), or at whole multiples of `rate`, in units of the noise.

    `falling` and `rising` are what noise that falls from a value, itself included, or rises to it
    has in total.
    """

    rate: float = 0.0

    @property
    def falling(self) -> float:
        """1/2, or 1/(1 + r)."""
        return 1.0 / (1.0 + float(np.exp(-self.rate)))

    @property
    def rising(self) -> float:
        """1/2, or r/(1 + r)."""
        return float(np.exp(-self.rate)) * self.falling

    def shorter(self, gap: FloatArray) -> FloatArray:
        """Gaps without what is too far from both ends to matter."""
        if not self.rate:
            return np.minimum(gap, MAX_EXPONENT)
        count = np.rint(gap / self.rate)
        return np.asarray(self.rate * np.minimum(count, max(1.0, MAX_EXPONENT // self.rate)))


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """Masses of the sets, whether a tie is a pass, and the fibers (rows) without one."""

    mass: FloatArray
    tie: bool
    must: BoolArray = field(default_factory=lambda: np.zeros((1, 1), dtype=bool))


@dataclass(slots=True, eq=False)
class _Spans:
    """Integrals, or sums, of noise that rises and falls along pieces of gaps."""

    steps: Steps
    gap: FloatArray
    upper: FloatArray  # outputs before the end of the next piece
    tied: BoolArray | None = None  # where the first output of the last piece lies on its end

    @classmethod
    def of(cls, steps: Steps, gap: FloatArray) -> _Spans:
        """Before the first piece, which ends with the gap."""
        gap = steps.shorter(gap)
        return cls(steps, gap, np.rint(gap / (steps.rate or 1.0)))

    def between(
        self, at: FloatArray, stop: FloatArray, last: BoolArray, zero: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Of the noise that rises, and that falls, from u = zero + at to u = zero + stop."""
        gap, rate = self.gap, self.steps.rate
        if not rate:
            y1, y2 = np.sqrt(zero + at), np.sqrt(zero + stop)
            # 1/y1 - 1/y2 and y2 - y1 without cancellation
            step = np.exp(-gap / 2) * (stop - at) / (y1 + y2) / 2
            return step / (y1 * y2), step
        log = np.where(zero > 0, np.log1p(stop), np.log(np.where(zero > 0, 1.0, stop)))
        here = (gap - log) / (2 * rate)
        lower = np.clip(np.ceil(here - WHOLE / rate), 0.0, self.upper)
        lower = np.where(last, 0.0, lower)
        self.tied = ~last & (np.abs(here - lower) <= WHOLE / rate) & (lower < self.upper)
        gone = -np.expm1(-rate * (self.upper - lower))
        up = np.exp(rate * self.upper - gap) * gone * self.steps.rising
        self.upper = lower
        return up, np.exp(-rate * lower) * gone * self.steps.falling

    def on_ends(self) -> tuple[FloatArray, FloatArray]:
        """The noise at outputs that lie exactly on the end of a piece; zero where none does."""
        if self.tied is None:
            return np.zeros(1), np.zeros(1)
        share = np.where(self.tied, self.steps.falling - self.steps.rising, 0.0)
        rate = self.steps.rate
        return share * np.exp(rate * self.upper - self.gap), share * np.exp(-rate * self.upper)


def envelope(
    a: FloatArray,
    b: FloatArray,
    gap: FloatArray,
    begin: IntArray,
    passing: Passing | None,
    pbar: tuple[FloatArray, FloatArray] | None = None,
    steps: Steps | None = None,
) -> tuple[float, float]:
    """The integral under the envelope of the lines a + b u, summed over fibers and gaps.

    Gaps are columns, with runs of rows for the fibers; or a column, one for each run.
    Small gaps, on which u is close to one, are processed in u - 1, so that no digits are lost.
    With `passing` the zero line is one of them where it is allowed, and the prior mass of what is
    named, integrated against pbar (its two coefficients), comes second.
    """
    runs = Runs.of(begin, len(a))
    mass = np.zeros((len(a), 1)) if passing is None else passing.mass[:, None]
    spans = _Spans.of(steps or Steps(), gap)
    gap = spans.gap
    wide = gap if gap.ndim == 1 else runs.spread(gap)
    zero = np.where(gap < 1.0, 1.0, 0.0)  # the origin of u
    end = np.where(gap < 1.0, np.expm1(gap), np.exp(gap))
    at = np.where(gap < 1.0, np.expm1(-gap), np.exp(-gap))
    near = SAME * runs.top(np.abs(a) + np.abs(b) * np.exp(-wide))
    a = a + b * np.where(wide < 1.0, 1.0, 0.0)
    start = a + b * np.where(wide < 1.0, np.expm1(-wide), np.exp(-wide))
    best = runs.top(start)
    slope, line, named = steepest(a, b, mass, start >= runs.spread(best - near), runs)
    if passing is not None:
        # the zero line: if it is higher, or as high and rising above, or (by rule) not beaten
        idle = (best < -near) | ((best <= near) & ((slope < 0) | (passing.tie & (slope == 0))))
        idle &= ~passing.must
        slope, line, named = (np.where(idle, 0.0, x) for x in (slope, line, named))
    at = np.broadcast_to(at, slope.shape)
    total = luck = 0.0
    while True:
        rise = b - runs.spread(slope)
        cross = np.full(rise.shape, np.inf)
        with np.errstate(over="ignore"):
            np.divide(runs.spread(line) - a, rise, out=cross, where=rise > 0)
        following = -runs.top(-cross)
        if passing is not None:
            sinks = np.full(slope.shape, np.inf)
            np.divide(-line, slope, out=sinks, where=(slope < 0) & ~passing.must)
            following = np.minimum(following, sinks)
        following = np.maximum(following, at)
        stop = np.minimum(following, end)
        done = following >= end
        up, down = spans.between(at, stop, done, zero)
        total += float(np.sum(line * up + slope * (down - zero * up)))
        if pbar is not None:
            luck += float(np.sum(named * (pbar[0] * up + pbar[1] * down)))
        if done.all():
            return total, luck
        close = following + SAME * np.abs(following)
        here = cross <= runs.spread(close)
        steep, new_line, new_named = steepest(a, b, mass, here, runs)
        if passing is not None:
            rest = (sinks <= close) & (steep < 0)
            steep, new_line, new_named = (
                np.where(rest, 0.0, x) for x in (steep, new_line, new_named)
            )
        if pbar is not None and passing is not None:
            # the likelier of two guesses that tie; by rule, or the pass
            chosen = np.minimum(named, new_named) if passing.tie else np.maximum(named, new_named)
            up, down = spans.on_ends()
            luck += float(np.sum((chosen - named) * (pbar[0] * up + pbar[1] * down)))
        slope, line, named = (
            np.where(done, old, new)
            for old, new in ((slope, steep), (line, new_line), (named, new_named))
        )
        at = np.where(done, end, following)
