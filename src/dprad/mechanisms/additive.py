"""Common to additive noise mechanisms: the numbers they read, and their clamp."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, interval, number, record
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.numerics.arrays import Column, FloatArray
from dprad.runtime.memory import need

# Differences must exceed this share of the numbers, to stand out from rounding.
PRECISION = 1e-7
# Bytes that reading takes for each number, about.
EACH = 90


class Additive(Mechanism):
    """Noise on a number that changes by at most `sensitivity`, optionally clamped to an
    interval.
    """

    __slots__ = ()
    sensitivity: float
    clamp: tuple[float, float] | None
    whole: ClassVar[bool] = False  # whether it adds whole numbers to whole numbers

    def _check(self) -> None:
        object.__setattr__(self, "sensitivity", number(self.sensitivity, "sensitivity", low=0))
        if self.sensitivity == 0:
            raise DpradError("sensitivity must be positive, but is 0.")
        if self.clamp is None:
            return
        low, high = interval(self.clamp, "clamp")
        if self.whole and not (low == int(low) and high == int(high)):
            raise DpradError(f"clamp must be whole numbers here, but is {self.clamp!r}.")
        object.__setattr__(self, "clamp", (low, high))

    def reads(self, values: Any) -> FloatArray:
        """The numbers it is run on, or a `DpradError` that names a record."""
        name = type(self).__name__
        numbers = numbers_read(values, name)
        broken = np.flatnonzero(numbers != np.rint(numbers))
        if self.whole and len(broken):
            which = record(_plain(values[broken[0]]), broken[0] + 1)
            raise DpradError(f"{name} reads whole numbers, but record {which} is not one.")
        if self.clamp is not None:
            outside = np.flatnonzero((numbers < self.clamp[0]) | (numbers > self.clamp[1]))
            if len(outside):
                which = record(_plain(values[outside[0]]), outside[0] + 1)
                raise DpradError(
                    f"{name} is clamped to [{self.clamp[0]:g}, {self.clamp[1]:g}], but record "
                    f"{which} lies outside."
                )
        spread = float(numbers.max() - numbers.min())
        if spread > self.sensitivity * (1 + 1e-12):
            raise DpradError(
                f"{name} has sensitivity {self.sensitivity:g}, but records differ by more. "
                "The sensitivity must cover the whole range of values."
            )
        return numbers

    def read(self, question: Question) -> Column:
        """The numbers of the column that is read."""
        return self.reads(question.numerical(type(self).__name__))

    @property
    def assumes(self) -> str:
        """That nobody else's number is further away."""
        return (
            "Everybody's numbers differ by at most the sensitivity (where none is given: the range "
            "of the values of this question)."
        )

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:
        """The sensitivity, if not given: the range of the values."""
        if "sensitivity" in given:
            return given
        return {**given, "sensitivity": float(values[-1] - values[0]) or 1.0}

    def spread(self, count: int) -> list[Any]:
        """Numbers within the clamp that differ by at most the sensitivity."""
        low, high = self.clamp or (0.0, self.sensitivity)
        points = np.linspace(low, min(high, low + self.sensitivity), count)
        return [float(v) for v in (np.unique(np.rint(points)) if self.whole else points)]

    def _within(self, reach: float) -> float:
        """An error cannot exceed the clamp, since records lie within it."""
        return reach if self.clamp is None else min(reach, self.clamp[1] - self.clamp[0])

    def _clip(self, outputs: Any) -> FloatArray:
        return np.asarray(outputs if self.clamp is None else np.clip(outputs, *self.clamp))


class WholeNoise(Additive):
    """Whole noise on whole numbers: its risk is an exact sum over the outputs."""

    __slots__ = ()
    whole: ClassVar[bool] = True

    @property
    def reach(self) -> float:
        """How far beyond the outermost records outputs still carry different information."""
        return 0.0

    @property
    def silent(self) -> bool:
        """Whether the noise is infinite."""
        return False


class Ranged(Mechanism):
    """Reads numbers within `bounds`."""

    __slots__ = ()
    bounds: tuple[float, float]

    def reads(self, values: Any) -> FloatArray:
        """The numbers it is run on, or a `DpradError` that names a record."""
        return numbers_within(values, self.bounds, type(self).__name__)

    def read(self, question: Question) -> Column:
        """The numbers of the column that is read."""
        return self.reads(question.numerical(type(self).__name__))

    @property
    def assumes(self) -> str:
        """That nobody else's number lies outside."""
        return (
            "Everybody's numbers lie within the bounds (where none are given: the range of the "
            "values of this question)."
        )

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:
        """The bounds: the range of the values."""
        if len(values) < 2:
            return given
        return {**given, "bounds": (float(values[0]), float(values[-1]))}

    def spread(self, count: int) -> list[Any]:
        """Numbers within the bounds."""
        return [float(v) for v in np.linspace(*self.bounds, count)]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def numbers_read(values: Any, name: str) -> FloatArray:
    """The values as numbers that are far enough apart, or a `DpradError` that names a record."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind in "iuf"
    need(EACH * len(values), f"Reading {len(values):,} numbers", "Use fewer or coarser values.")
    others = set() if plain else set(map(type, values)) - {int, float}
    bad = others and [i for i, v in enumerate(values) if isinstance(v, str | bool) or v is None]
    if bad:
        which = record(values[bad[0]], bad[0] + 1)
        raise DpradError(f"{name} reads numbers, but record {which} is not a number.")
    try:
        each = values if plain else map(float, values)
        numbers = np.fromiter(each, dtype=float, count=len(values))
    except (TypeError, ValueError, OverflowError):
        raise DpradError(f"{name} reads numbers, but some record is not a number.") from None
    if not np.all(np.isfinite(numbers)):
        raise DpradError(f"{name} reads finite numbers, but a record is infinite or NaN.")
    gaps = np.diff(np.sort(numbers))
    gaps = gaps[gaps > 0]
    several = 1 + np.count_nonzero(np.diff(np.sort(values))) if plain else len(set(values))
    gap = float(gaps.min(initial=np.inf))
    if 1 + len(gaps) < several or np.abs(numbers).max() * PRECISION > gap:
        raise DpradError(
            f"{name} reads numbers whose differences are too small for their size. Subtract the "
            "smallest one, with query=."
        )
    return numbers


def numbers_within(values: Any, bounds: tuple[float, float], name: str) -> FloatArray:
    """The same, all within bounds."""
    numbers, (low, high) = numbers_read(values, name), bounds
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        which = record(_plain(values[outside[0]]), outside[0] + 1)
        raise DpradError(
            f"{name} reads numbers in [{low:g}, {high:g}], but record {which} lies outside. Set "
            "bounds=(low, high)."
        )
    return numbers
