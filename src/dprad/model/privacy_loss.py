"""A dominating pair on a grid of privacy losses: the common form of every guarantee.

The pair (P, Q) is stored as the masses of P at losses ``step * (first + i)`` and at infinity; the
mass of Q at loss x is ``exp(-x)`` times that of P, and what Q lacks to one sits at loss minus
infinity. Its privacy profile is ``delta(eps) = sum (p - e^eps q)_+``.

Everything here errs on the safe side. Moving mass from a loss to the two grid points around it,
such that P and Q keep their totals, replaces the profile by its chords. A profile is convex, so the
new pair dominates the old one. Dominating pairs compose under adaptive composition (Zhu, Dong and
Wang 2022), which adds losses and so stays on the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import need

# Grid points on either side of zero for a smooth profile: the error of a bound is about 1e-8.
GRID = 2**13
# Above this many points after composition the grid is coarsened by two.
MAX_POINTS = 2**16
# Convolutions of more products than this go through a Fourier transform.
MAX_PRODUCTS = 2**24
# Releases composed by one Fourier transform, and the probability that may wrap around.
MANY = 2
WRAPPED = 1e-16
COARSE = 1024
# Standard deviations beyond which a binomial number has a probability below WRAPPED (Bernstein).
TAIL = 10.0
MAX_TRANSFORM = 2**23
# e^x and its square stay finite below this; a larger loss counts as infinite, the safe side.
MAX_LOSS = 300.0
# A smaller epsilon would make a step too small to divide by.
TINY = 1e-290


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyLoss:
    """Masses of P at losses ``step * (first + i)``, and at infinity."""

    step: float
    first: int
    p: FloatArray
    p_infinity: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        mine, theirs = ((x.step, x.first, x.p_infinity) for x in (self, other))
        return mine == theirs and np.array_equal(self.p, other.p)

    def __hash__(self) -> int:
        return hash((self.step, self.first, self.p_infinity, len(self.p)))

    # -- reading -------------------------------------------------------------------------------
    @property
    def losses(self) -> FloatArray:
        """The finite losses, ascending."""
        return self.step * np.arange(self.first, self.first + len(self.p), dtype=float)

    @property
    def q(self) -> FloatArray:
        """The masses of Q at the finite losses."""
        return np.asarray(self.p * np.exp(-self.losses))

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """The profile, ``sum (p - e^eps q)_+``, by suffix sums: O(log K) per epsilon."""
        p_tail = np.r_[np.cumsum(self.p[::-1])[::-1], 0.0]
        q_tail = np.r_[np.cumsum(self.q[::-1])[::-1], 0.0]
        at = np.searchsorted(self.losses, epsilon, "right")
        # e^eps q is at most p there, so an overflow of e^eps meets a tail of zero
        with np.errstate(over="ignore", invalid="ignore"):
            below = np.where(q_tail[at] > 0, np.exp(epsilon) * q_tail[at], 0.0)
        # the running sums may each be off by one rounding error per term
        slack = np.finfo(float).eps * (len(self.p) - at) * p_tail[at]
        return np.asarray(np.clip(p_tail[at] - below + slack + self.p_infinity, 0.0, 1.0))

    def tradeoff(self, alpha: FloatArray) -> FloatArray:
        """The trade-off curve: a polygon whose vertices are the tails of Q and P."""
        q_tail = np.r_[0.0, np.cumsum(self.q[::-1])]
        p_tail = self.p_infinity + np.r_[0.0, np.cumsum(self.p[::-1])]
        power = np.interp(alpha, np.r_[q_tail, max(1.0, q_tail[-1])], np.r_[p_tail, 1.0])
        # the running sums may be off by one rounding error per term; the curve must not be too high
        slack = np.finfo(float).eps * len(self.p) * power
        return np.asarray(np.clip(1.0 - power - slack, 0.0, 1.0))

    def gap(self, alpha: FloatArray) -> FloatArray:
        """``1 - f(alpha) - alpha`` of the trade-off curve f, rounded up, without cancellation.

        At a vertex it is the sum of p - q = p (1 - e^-loss) over the largest losses.
        """
        q_tail = np.r_[0.0, np.cumsum(self.q[::-1])]
        rise = np.cumsum((self.p * -np.expm1(-self.losses))[::-1])
        # one rounding error per term, of terms that may be negative towards the end
        slack = np.finfo(float).eps * len(self.p) * np.cumsum(np.abs(np.diff(rise, prepend=0.0)))
        height = self.p_infinity + np.r_[0.0, rise + slack]
        end = max(1.0, float(q_tail[-1]))
        return np.asarray(np.interp(alpha, np.r_[q_tail, end], np.r_[height, 0.0]))

    # -- making --------------------------------------------------------------------------------
    @classmethod
    def of_point(cls, epsilon: float, delta: float) -> PrivacyLoss:
        """The dominating pair of (epsilon, delta)-DP: losses -epsilon, epsilon and infinity."""
        if epsilon > MAX_LOSS:
            return cls(1.0, 0, np.zeros(1), 1.0)
        if epsilon < TINY:
            # TV is at most epsilon/2 + delta
            delta = min(1.0, delta + epsilon)
            return cls(1.0, 0, np.array([1.0 - delta]), delta)
        up = (1.0 - delta) / (1.0 + np.exp(-epsilon))
        down = (1.0 - delta) * np.exp(-epsilon) / (1.0 + np.exp(-epsilon))
        return cls(epsilon, -1, np.array([down, 0.0, up]), delta)

    @classmethod
    def of_points(cls, epsilon: float, delta: float, times: int) -> PrivacyLoss:
        """`times` releases of (epsilon, delta)-DP: the number of losses +epsilon is binomial.

        Kairouz, Oh and Viswanath; to all digits unless the grid gets too long. O(sqrt(times)) if
        there are many.
        """
        infinite = -float(np.expm1(times * np.log1p(-delta))) if delta < 1 else 1.0
        if not TINY <= epsilon <= MAX_LOSS or infinite == 1.0:
            one = cls.of_point(min(1.0, epsilon), 1.0 if epsilon > MAX_LOSS else delta)
            return one.repeated(times)
        up = 1.0 / (1.0 + float(np.exp(-epsilon)))
        reach = TAIL * float(np.sqrt(times * up * (1.0 - up))) + TAIL**2
        low, high = 0, times
        if 2 * times >= MAX_POINTS:
            low = max(0, int(times * up - reach))
            high = min(times, int(np.ceil(times * up + reach)))
        need(48.0 * (high - low), f"{times:,} releases", "Ask about fewer.")
        j = np.arange(low, high)
        # ratios of neighbours, summed outwards from the likeliest
        log = np.r_[0.0, np.cumsum(np.log((times - j) / (j + 1.0)) + epsilon)]
        mass = np.exp(log - log.max())
        masses = np.zeros(2 * (high - low) + 1)
        # losses below the window are raised into it, losses above it count as infinite
        masses[::2] = (1.0 - infinite) * mass / mass.sum()
        beyond = WRAPPED if high < times else 0.0
        return cls.closed(epsilon, 2 * low - times, masses, infinite + beyond)._small()

    @classmethod
    def of_profile(cls, delta: Callable[[FloatArray], FloatArray], top: float) -> PrivacyLoss:
        """From any upper bound on a symmetric profile: the lower convex hull of its values.

        `delta` is read at ``GRID`` points of [0, top]. A true profile is convex in e^eps, lies
        below the values read, and satisfies ``delta(-eps) = 1 - e^-eps (1 - delta(eps))``, so it
        lies below the hull of these points and their mirror images.
        """
        step = top / GRID
        epsilon = step * np.arange(GRID + 1)
        value = np.minimum.accumulate(np.clip(delta(epsilon), 0.0, 1.0))
        e = np.r_[0.0, np.exp(-epsilon[:0:-1]), np.exp(epsilon)]
        mirrored = 1.0 - np.exp(-epsilon[:0:-1]) * (1.0 - value[:0:-1])
        u = np.r_[1.0, mirrored, value]
        hull = lower_hull(e, u)
        slope = np.diff(u[hull]) / np.diff(e[hull])
        # flat beyond the last point: the rest is the mass at infinity
        q = np.diff(np.r_[slope, 0.0])
        masses = np.zeros(2 * GRID + 1)
        masses[hull[1:] - 1] = np.maximum(q, 0.0) * e[hull[1:]]
        # the lower half is the mirror image; read off, since differences near one lose digits
        upper = masses[GRID + 1 :]
        masses[:GRID] = (upper * np.exp(-epsilon[1:]))[::-1]
        rest = float(masses[:GRID].sum() + upper.sum()) + float(value[-1])
        masses[GRID] = max(0.0, 1.0 - rest)
        return cls.closed(step, -GRID, masses, float(value[-1]))

    @classmethod
    def closed(cls, step: float, first: int, p: FloatArray, p_infinity: float) -> PrivacyLoss:
        """Trim zeros."""
        p = np.maximum(p, 0.0)
        used = np.flatnonzero(p)
        if len(used):
            first, p = first + int(used[0]), p[used[0] : used[-1] + 1]
        else:
            first, p = 0, np.zeros(1)
        return cls(step, first, p, min(1.0, max(0.0, p_infinity)))

    # -- changing ------------------------------------------------------------------------------
    def regrid(self, step: float) -> PrivacyLoss:
        """The same on another grid, each mass split between the two points around it."""
        position = self.losses / step
        low = np.floor(position + 1e-9)  # a loss on the grid stays there
        offset = np.maximum(position - low, 0.0) * step
        # shares (a, b) of mass at low and low + 1 with a + b = 1, a + b e^-step = e^-offset
        upper = np.expm1(-offset) / np.expm1(-step)
        index = low.astype(np.int64)
        first = int(index[0])
        masses = np.zeros(int(index[-1]) - first + 2)
        np.add.at(masses, index - first, self.p * (1.0 - upper))
        np.add.at(masses, index - first + 1, self.p * upper)
        return PrivacyLoss.closed(step, first, masses, self.p_infinity)

    def compose(self, other: PrivacyLoss) -> PrivacyLoss:
        """Both releases seen together: losses add, masses convolve."""
        a, b = _same_grid(self, other)
        masses, slack = _convolve(a.p, b.p)
        # 1 - (1 - a)(1 - b) without cancellation
        infinite = a.p_infinity + b.p_infinity - a.p_infinity * b.p_infinity + slack
        result = PrivacyLoss.closed(a.step, a.first + b.first, masses, infinite)
        return result._small()

    def repeated(self, times: int) -> PrivacyLoss:
        """`times` releases, by repeated squaring; many of a long one by a Fourier transform."""
        if times >= MANY and len(self.p) > 64:
            return self._trimmed(times)._power(times)
        result: PrivacyLoss | None = None
        power, left = self, times
        while left:
            if left & 1:
                result = power if result is None else result.compose(power)
            left >>= 1
            if left:
                power = power.compose(power)
        assert result is not None
        return result

    def _trimmed(self, times: int) -> PrivacyLoss:
        """Without losses so rare that together they are negligible: counted as infinite."""
        beyond = np.cumsum(self.p[::-1])[::-1]
        kept = int(np.count_nonzero(beyond > WRAPPED / times))
        if kept == len(self.p) or kept == 0:
            return self
        rest = float(beyond[kept])
        return PrivacyLoss(self.step, self.first, self.p[:kept], self.p_infinity + rest)

    def _power(self, times: int) -> PrivacyLoss:
        """`times` releases at once: the transform of the masses to that power. O(K log K).

        The window is chosen by Chernoff's bound: mass beyond it wraps around. What may
        have wrapped, and the rounding error of the transform, is counted at infinity.
        """
        from scipy.fft import irfft, next_fast_len, rfft

        index = np.arange(self.first, self.first + len(self.p), dtype=float)
        mean = float(self.p @ index) / float(self.p.sum())
        spread = float(np.sqrt(self.p @ (index - mean) ** 2 * times)) + 1.0
        # Pr[sum - times mean >= w] <= exp(times log E e^{s (X - mean)} - s w), and below likewise;
        # cells far from the mean taken together, at the end that makes the bound larger
        narrow = 8.0 * spread / np.sqrt(times)
        near = np.clip(np.linspace(-narrow, narrow, COARSE) + mean - self.first, 0, len(self.p) - 1)
        wide = np.linspace(0, len(self.p) - 1, COARSE)
        begin = np.unique(np.r_[0.0, np.floor(near), np.floor(wide)]).astype(np.int64)
        mass = np.add.reduceat(self.p, begin)
        edges = np.r_[begin[1:], len(self.p)] - 1 + self.first, begin + self.first
        slopes = np.geomspace(min(0.5 / len(self.p), 0.5 / spread), 40.0 / spread, 48)
        ends = []
        for sign, edge in zip((-1.0, 1.0), edges[::-1], strict=True):
            power = sign * slopes[:, None] * (edge - mean)
            top = power.max(axis=1, keepdims=True)
            moment = top[:, 0] + np.log(np.exp(power - top) @ mass)
            ends.append(float(np.min((times * moment - np.log(WRAPPED)) / slopes)))
        low, high = int(np.floor(times * mean - ends[0])), int(np.ceil(times * mean + ends[1]))
        low, high = (
            max(low, times * self.first),
            min(high, times * (self.first + len(self.p) - 1)),
        )
        infinite = -float(np.expm1(times * np.log1p(-self.p_infinity)))
        if high < low:
            # all finite losses together are negligible
            return PrivacyLoss(self.step, 0, np.zeros(1), 1.0)
        if high - low >= MAX_TRANSFORM:
            return self.regrid(2 * self.step)._power(times)
        size = next_fast_len(high - low + 1, real=True)
        folded = np.zeros(size)
        np.add.at(folded, np.arange(self.first, self.first + len(self.p)) % size, self.p)
        masses = irfft(rfft(folded) ** times, size)
        masses = np.roll(masses, -(low % size))
        rounding = np.finfo(float).eps * (4.0 * times + 64.0)
        slack = rounding * float(np.sqrt(size * np.sum(masses**2)))
        lost = infinite + 2 * WRAPPED + slack
        return PrivacyLoss.closed(self.step, low, masses, lost)._small()

    def _small(self) -> PrivacyLoss:
        """Within bounds: losses beyond the range of floats count as infinite; coarsen if long."""
        result = self
        limit = int(MAX_LOSS / result.step) - result.first + 1
        if limit < len(result.p):
            kept = result.p[: max(limit, 0)]
            rest = float(result.p[len(kept) :].sum())
            result = PrivacyLoss.closed(result.step, result.first, kept, result.p_infinity + rest)
        low = int(-MAX_LOSS / result.step) - result.first
        if low > 0 and len(result.p) > low:
            # the least likely losses, raised to the lowest one kept
            p = result.p[low:].copy()
            p[0] += float(result.p[:low].sum())
            result = PrivacyLoss.closed(result.step, result.first + low, p, result.p_infinity)
        while len(result.p) > MAX_POINTS:
            result = result.regrid(2 * result.step)
        return result

    def chain(self, before: PrivacyLoss | None = None) -> PrivacyLoss:
        """From add-remove to replace-one: the trade-off ``f2(a) = f(1 - f(a))``.

        Replacing is removing, then adding: `before` is the pair absent against present (the first
        step), `self` present against absent; the same if the promise is symmetric. In between
        stands the power u = 1 - f(a): the first step spends the losses of P over u, the second
        those of Q, both likeliest first. A stretch du with losses x (first) and y (second) has
        P-mass ``e^y du`` and Q-mass ``e^-x du``.
        """
        two, one = (self, self) if before is None else _same_grid(self, before)
        p_edge = one.p_infinity + np.r_[0.0, np.cumsum(one.p[::-1])]
        q_edge = np.r_[0.0, np.cumsum(two.q[::-1])]
        edges = np.unique(np.clip(np.r_[0.0, p_edge, q_edge, 1.0], 0.0, 1.0))
        width, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
        first = np.searchsorted(p_edge, middle) - 1  # -1: the infinite losses
        second = np.searchsorted(q_edge, middle) - 1
        # beyond the masses kept: no power left to gain in step two, no error to pay in step one
        kept = second < len(two.p)
        p = width[kept] * np.exp(two.losses[::-1][second[kept]])
        first, second = np.minimum(first[kept], len(one.p) - 1), second[kept]
        infinite = first < 0
        low = one.first + two.first
        masses = np.zeros(len(one.p) + len(two.p) - 1)
        np.add.at(masses, (len(masses) - 1 - first - second)[~infinite], p[~infinite])
        # nothing of Q is left where the second step reveals, nothing of a where the first does
        revealed = two.p_infinity + float(p[infinite].sum())
        return PrivacyLoss.closed(two.step, low, masses, revealed)._small()

    def chained(self, steps: int) -> PrivacyLoss:
        """The trade-off after `steps` steps between neighbours, by repeated doubling."""
        result: PrivacyLoss | None = None
        power, left = self, steps
        while left:
            if left & 1:
                result = power if result is None else power.chain(result)
            left >>= 1
            if left:
                power = power.chain(power)
        assert result is not None
        return result


def _convolve(a: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
    """The convolution, and what its rounding may have lost: nothing if computed directly."""
    if len(a) * len(b) <= MAX_PRODUCTS:
        return np.convolve(a, b), 0.0
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(len(a) + len(b) - 1, real=True)
    masses = irfft(rfft(a, size) * rfft(b, size), size)[: len(a) + len(b) - 1]
    rounding = 64.0 * np.finfo(float).eps
    slack = rounding * float(np.sqrt(size * np.sum(a**2) * np.sum(b**2)))
    return np.maximum(masses, 0.0), slack


def lower_hull(over: FloatArray, values: FloatArray) -> IntArray:
    """Indices of the lower convex hull of points sorted by the first coordinate."""
    x, y = over.tolist(), values.tolist()  # numbers of Python are several times as quick here
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            # b lies on or above the chord from a to i
            if (y[b] - y[a]) * (x[i] - x[a]) >= (y[i] - y[a]) * (x[b] - x[a]):
                kept.pop()
            else:
                break
        kept.append(i)
    return np.asarray(kept, dtype=np.intp)


def _same_grid(a: PrivacyLoss, b: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Both on one grid; exact where one step is a multiple of the other."""
    if len(a.p) == 1 and a.first == 0:
        return PrivacyLoss(b.step, 0, a.p, a.p_infinity), b
    if len(b.p) == 1 and b.first == 0:
        return a, PrivacyLoss(a.step, 0, b.p, b.p_infinity)
    fine, coarse = (a, b) if a.step <= b.step else (b, a)
    ratio = coarse.step / fine.step
    points = len(fine.p) + len(coarse.p) * ratio
    if abs(ratio - round(ratio)) <= 1e-9 * ratio and points <= MAX_POINTS:
        return (a.regrid(fine.step), b.regrid(fine.step)) if ratio > 1 else (a, b)
    spread = sum(g.step * (len(g.p) - 1) for g in (a, b))
    step = spread / (2 * GRID)
    return a.regrid(step), b.regrid(step)
