"""The one error users see, and the checks on user input.

Each message names the argument, the rule, the value received and the next step.
"""

from __future__ import annotations

import difflib
import math
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

_IMPORTING = threading.RLock()


class DpradError(ValueError):
    """Invalid input. The message is one sentence that says what to do next.

    Examples
    --------
    >>> import dprad
    >>> dprad.PureDP(-1.0, neighbours="replace-one")
    Traceback (most recent call last):
        ...
    dprad.errors.DpradError: epsilon must be a finite number of at least 0, but is -1.0.

    """

    def __init__(self, *said: Any) -> None:
        super().__init__(*(_lines(one) if isinstance(one, str) else one for one in said))


class NothingToCalibrateError(DpradError):
    """Every value meets the accepted risk."""


class NoNoiseSufficesError(DpradError):
    """No value meets the accepted risk."""


class CannotBeToldError(DpradError):
    """Whether the accepted risk is kept cannot be told."""


def number(
    value: Any,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    hint: str = "",
) -> float:
    """A finite real number in [low, high], or a `DpradError`."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DpradError(_say(name, "a number", value, hint)) from None
    if math.isfinite(result) and low <= result <= high:
        return result
    if low > -math.inf and high < math.inf:
        rule = f"a number between {low:g} and {high:g}"
    elif low > -math.inf:
        rule = f"a finite number of at least {low:g}"
    else:
        rule = "a finite number"
    raise DpradError(_say(name, rule, value, hint))


def share(value: Any, name: str) -> float:
    """A number between 0 and 1, or a percentage as text (``"5%"``), or a `DpradError`."""
    hint = "A percentage is written with its sign, as in 5%."
    if isinstance(value, str) and value.strip().endswith("%"):
        return number(value.strip()[:-1], name, low=0, high=100) / 100
    return number(value, name, low=0, high=1, hint=hint)


def whole(value: Any, name: str, *, low: int, high: float = math.inf, hint: str = "") -> int:
    """A whole number in [low, high], or a `DpradError`."""
    result = number(value, name, low=low, high=high, hint=hint)
    if result != int(result):
        raise DpradError(_say(name, "a whole number", value, hint))
    return int(result)


def interval(value: Any, name: str) -> tuple[float, float]:
    """A pair low < high, or a `DpradError`."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise DpradError(_say(name, "a pair (low, high)", value, "")) from None
    low, high = number(low, f"{name} low"), number(high, f"{name} high")
    if not low < high:
        raise DpradError(f"{name} must be a pair low < high, but is ({low!r}, {high!r}).")
    return low, high


def one_of(value: Any, name: str, choices: Iterable[str], *, hint: str = "") -> str:
    """One of the given words, or a `DpradError` that suggests the nearest."""
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    listed = ", ".join(repr(n) for n in names)
    raise DpradError(_say(name, f"one of {listed}", value, did_you_mean(value, names) or hint))


def column(value: Any, columns: Iterable[str], *, name: str) -> str:
    """The name of an existing column, or a `DpradError` that suggests one."""
    names = list(columns)
    if value in names:
        return str(value)
    hint = did_you_mean(value, names) or f"The columns are: {', '.join(names)}."
    raise DpradError(f"{name} names the column {argument(value)}, which is not there. {hint}")


def part(module: str, what: str, extra: str) -> Any:
    """A module that not everybody installs; or a sentence that says how to."""
    try:
        with _unset(module):
            return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise DpradError(f"{what} need {name}: pip install 'dprad[{extra}]'.") from None


@contextmanager
def _unset(module: str) -> Iterator[None]:
    """Let what is imported see no settings of matplotlib in the current folder, which may be
    anybody's. Only this thread is told so, and no process is moved to another folder.
    """
    if module in sys.modules or "matplotlib" in sys.modules:
        yield
        return
    with _IMPORTING:
        there, mine = os.path.exists, threading.get_ident()

        def elsewhere(path: Any) -> bool:
            hidden = path == "matplotlibrc" and threading.get_ident() == mine
            return not hidden and there(path)

        os.path.exists = elsewhere
        try:
            yield
        finally:
            os.path.exists = there


def did_you_mean(value: Any, names: Iterable[str]) -> str:
    """A suggestion, or an empty string."""
    text = value if isinstance(value, str) else argument(value)
    if len(text) > LONGEST:  # comparing it takes its time
        return ""
    close = difflib.get_close_matches(text, [str(n) for n in names], n=1, cutoff=0.7)
    return f"Did you mean {close[0]!r}?" if close else ""


def _say(name: str, rule: str, value: Any, hint: str) -> str:
    return f"{name} must be {rule}, but is {argument(value)}.{' ' + hint if hint else ''}"


# -- records ---------------------------------------------------------------------------------------
_SHOWN: ContextVar[bool] = ContextVar("dprad_show_records", default=False)


@contextmanager
def show_records(show: bool = True) -> Iterator[None]:
    """Allow messages and notes to show the values of records, which helps to find a mistake.

    Outside this context, messages, notes and reports contain no record's value; records are named
    by their position instead. Only what is asked for by name in Python (the groups of `by_group`,
    the support of a prior) has its names.

    Parameters
    ----------
    show
        Whether values may be shown.

    Yields
    ------
    None
        Use it as ``with show_records(): ...``.

    Examples
    --------
    >>> with show_records():
    ...     record("HIV", 3)
    "'HIV'"
    >>> record("HIV", 3)
    'number 3'

    """
    token = _SHOWN.set(show)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def records_shown() -> bool:
    """Whether values of records may be shown."""
    return _SHOWN.get()


def record(value: Any, place: int) -> str:
    """A record as shown in a message: its position (from 1), or its value inside `show_records`."""
    return repr(value) if records_shown() else f"number {place:,}"


def shown(value: Any) -> str:
    """A value that may come from a record: its type, or its repr inside `show_records`."""
    return repr(value) if records_shown() else f"a {kind(type(value))}"


# The longest text that is shown within a sentence; and the longest gap between its words. Letters
# that look like blanks, though they count as printable.
LONGEST, GAP = 300, 3
# The longest line of a message.
LONG = 10 * LONGEST
# Bits of the largest whole number that is shown.
HUGE = 4000
BLANK = frozenset("\u2800\u3164\u115f\u1160\uffa0\u034f\u17b4\u17b5")


def is_line(text: str, longest: int = LONGEST) -> bool:
    """Whether what somebody else wrote can be shown within a sentence and not look like another
    one: printable, not too long, without wide gaps.
    """
    plain = text.isprintable() and not BLANK & set(text)
    return plain and len(text) <= longest and " " * (GAP + 1) not in text


def flat(text: str) -> str:
    """The same text as such a line (itself, if it is one)."""
    if is_line(text):
        return text
    words = "".join(c if c.isprintable() and c not in BLANK else " " for c in text).split()
    return _short(" ".join(words), LONGEST)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _lines(text: str) -> str:
    """A message none of whose lines fills a screen, whatever it repeats."""
    if len(text) <= LONG:
        return text
    return "\n".join(_short(line, LONG) for line in text.split("\n"))


def check_columns(names: Iterable[str]) -> None:
    """Raise a `DpradError` if the name of a column could not be shown within a sentence."""
    odd = [place for place, name in enumerate(names, 1) if not is_line(name)]
    if odd:
        raise DpradError(
            f"the name of column {odd[0]} must be one line of printable text, at most {LONGEST} "
            "characters long and without wide gaps. Rename it."
        )


def argument(value: Any) -> str:
    """An argument as shown in a message: numbers and text as they are, the type of all else."""
    if isinstance(value, int) and value.bit_length() > HUGE:
        return f"a whole number of {value.bit_length():,} bits"
    if isinstance(value, str) and len(value) > LONGEST:
        value = value[:LONGEST]  # and a repr of no more
        return _short(repr(value) + "...", LONGEST)
    plain = value is None or isinstance(value, str | int | float)
    return _short(repr(value), LONGEST) if plain else shown(value)


def written(value: Any) -> str:
    """A value of a scenario as shown in a message: in full if it is short, lists too."""
    try:
        return _short(repr(value), LONGEST)
    except (ValueError, RecursionError):  # a whole number that Python does not write
        return argument(value)


def kind(of: type) -> str:
    """The name of a class, if the class can be found under it; other names may contain values."""
    home: Any = sys.modules.get(of.__module__) if isinstance(of.__module__, str) else None
    for part in of.__qualname__.split("."):
        home = getattr(home, part, None)
    return of.__name__ if home is of else "class made while running"


def told(error: BaseException) -> str:
    """The type of an error: the text of a foreign error may contain values of records."""
    if not records_shown():
        return kind(type(error))
    name = type(error).__name__
    return f"{name}: {(str(error).strip() or name).splitlines()[0]}"
