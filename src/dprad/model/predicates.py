"""Predicates: a yes-or-no question about each record, such as ``smoker = "yes" and age >= 40``.

A predicate is one comparison or several, joined by ``and``. A comparison is a column, one of
``= == != < <= > >=`` and a value; or a column, ``in`` or ``not in``, and values in parentheses.
Text needs quotes, numbers do not; a name with spaces needs double quotes. A missing value equals
nothing: it meets ``!=`` and ``not in``, and no other comparison. Nothing is evaluated as code.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from dprad.errors import DpradError, column, did_you_mean, records_shown
from dprad.model.priors import Prior
from dprad.numerics.arrays import BoolArray, Column

# Most characters of a predicate: its cost is one pass over the records per comparison.
LONGEST = 2_000
_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# One pass, without backtracking: each alternative begins with other characters, or is possessive.
_TOKEN = re.compile(
    r"""\s*+(?:(?P<sign>[=!<>]=?+)|(?P<mark>[(),])|(?P<quoted>"[^"]*+"|'[^']*+')"""
    r"""|(?P<word>[^\s=!<>(),"']++)|(?P<end>\Z))"""
)
_ASKS = re.compile(r"[=<>]|\bin\s*+\(")
_BARE = re.compile(r"""[^\s=!<>(),"'\d][^\s=!<>(),"']*+""")
_WHOLE = re.compile(r"[-+]?\d{1,300}+")
_WORDS = ("and", "or", "in", "not")
_HOW = "Write a comparison as in smoker = \"yes\", age >= 40 or region in ('north', 'south')."


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column, what is asked of it, and the values it is compared with."""

    name: str
    sign: str
    values: tuple[Any, ...]

    def holds(self, cells: Column) -> BoolArray:
        """One answer per record. O(m)."""
        if self.sign in _ORDERS:
            return self._ordered(cells)
        if cells.dtype.kind in "iufb":
            inside = np.isin(cells, [v for v in self.values if _exact(v)])
        else:
            wanted = {(isinstance(v, str), v) for v in self.values}
            inside = np.fromiter(
                ((isinstance(v, str), _plain(v)) in wanted for v in cells), bool, len(cells)
            )
        return inside if self.sign in ("=", "in") else ~inside

    def _ordered(self, cells: Column) -> BoolArray:
        compare, bound = _ORDERS[self.sign], self.values[0]
        if cells.dtype.kind in "iufb":
            return np.asarray(compare(cells, bound), dtype=bool)
        numbers = ((v, _numeric(v)) for v in cells)
        return np.fromiter((n and compare(v, bound) for v, n in numbers), bool, len(cells))


def holds(text: str, prior: Prior) -> BoolArray:
    """Whether the predicate holds, for each record of a finite prior.

    Parameters
    ----------
    text
        A predicate.
    prior
        A finite prior.

    Returns
    -------
    ndarray of bool
        One per record of the support. Cost: O(m) per comparison.

    Examples
    --------
    >>> holds("value >= 2 and value != 3", Prior.uniform(5)).tolist()
    [False, False, True, False, True]

    """
    prior.table  # noqa: B018 - refuses a prior that is not finite
    result = np.ones(prior.size or 0, dtype=bool)
    for part in comparisons(text):
        cells = prior.column(column(part.name, prior.columns, name="query"))
        _fits(part, cells)
        result &= part.holds(cells)
    return result


def is_predicate(text: str, columns: Iterable[str]) -> bool:
    """Whether a text asks something of a record, rather than naming a column.

    Parameters
    ----------
    text
        A query.
    columns
        The columns of a record; their names come first.

    Returns
    -------
    bool
        Whether it is a predicate, right or wrong.

    Examples
    --------
    >>> is_predicate("age > 30", ["age"]), is_predicate("age", ["age"])
    (True, False)

    """
    return text not in columns and _ASKS.search(text) is not None


def example(name: str) -> str:
    """How a predicate on this column begins; the value is left open."""
    bare = _BARE.fullmatch(name) and name.lower() not in _WORDS
    return f'{name if bare else f"{chr(34)}{name}{chr(34)}"} = "..."'


def comparisons(text: str) -> list[Comparison]:
    """The comparisons of a predicate. Linear in its length."""
    if len(text) > LONGEST:
        raise DpradError(f"query must have at most {LONGEST:,} characters, but has {len(text):,}.")
    tokens = _tokens(text)
    found = []
    while True:
        found.append(_comparison(tokens))
        kind, word = next(tokens)
        if kind == "end":
            return found
        if (kind, word.lower()) != ("word", "and"):
            hint = "Comparisons are joined by 'and' only." if word.lower() == "or" else _HOW
            raise DpradError(f"query has something after comparison {len(found)}. {hint}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while True:
        token = _TOKEN.match(text, place)
        if token is None or token.lastgroup is None:
            raise DpradError("query has a quotation mark that is not closed.")
        yield token.lastgroup, token[token.lastgroup]
        place = token.end()


def _comparison(tokens: Iterator[tuple[str, str]]) -> Comparison:
    name = _name(*next(tokens))
    kind, sign = next(tokens)
    negative = (kind, sign.lower()) == ("word", "not")
    if negative:
        kind, sign = next(tokens)
    if (kind, sign.lower()) == ("word", "in"):
        return Comparison(name, "not in" if negative else "in", _listed(name, tokens))
    if kind == "word" and not negative:
        raise DpradError(f"query has two words in a row: a name with spaces needs quotes. {_HOW}")
    if kind != "sign" or sign == "!" or negative:
        raise DpradError(f"query does not say what is asked of {name!r}. {_HOW}")
    sign = "=" if sign == "==" else sign
    value = _value(name, *next(tokens))
    if sign in _ORDERS and isinstance(value, str):
        raise DpradError(
            f"query compares {name!r} with text, which has no order here. Use =, != or in, or a "
            "number without quotes."
        )
    return Comparison(name, sign, (value,))


def _name(kind: str, text: str) -> str:
    if kind == "quoted" and text[0] == '"' and len(text) > 2:
        return text[1:-1]
    if kind == "word" and text.lower() not in _WORDS:
        return text
    raise DpradError(f"query has no name of a column where one is needed. {_HOW}")


def _listed(name: str, tokens: Iterator[tuple[str, str]]) -> tuple[Any, ...]:
    """Values in parentheses, separated by commas."""
    values = []
    if next(tokens) == ("mark", "("):
        while True:
            values.append(_value(name, *next(tokens)))
            kind, mark = next(tokens)
            if (kind, mark) == ("mark", ")"):
                return tuple(values)
            if (kind, mark) != ("mark", ","):
                break
    raise DpradError(f"query needs values in parentheses, separated by commas, after 'in'. {_HOW}")


def _value(name: str, kind: str, text: str) -> Any:
    if kind == "quoted":
        return text[1:-1]
    if kind == "word":
        if _WHOLE.fullmatch(text):
            return int(text)
        try:
            value = float(text)
            if math.isfinite(value) and "_" not in text:
                return value
        except ValueError:
            pass
        raise DpradError(
            f"query compares {name!r} with a word that is not a number. Text needs quotes: "
            f"{example(name)}."
        )
    raise DpradError(f"query has no value to compare {name!r} with. {_HOW}")


# -- does it fit the column? -----------------------------------------------------------------------
def _numeric(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _exact(value: Any) -> bool:
    """Whether a machine number can equal it."""
    return isinstance(value, float) or abs(value) < 2**63


def _fits(part: Comparison, cells: Column) -> None:
    """Refuse text compared with numbers, and values that no record has. O(m)."""
    numbers, words = _kinds(cells)
    present = set() if part.sign in _ORDERS else {_plain(v) for v in cells.tolist()}
    for value in part.values:
        is_text = isinstance(value, str)
        if is_text and not words:
            what = "numbers: write the value without quotes" if numbers else "no text"
            raise DpradError(f"query compares {part.name!r} with text, but it holds {what}.")
        if not is_text and not numbers:
            what = f"text: write {example(part.name)}" if words else "no numbers"
            raise DpradError(f"query compares {part.name!r} with a number, but it holds {what}.")
        if part.sign in _ORDERS or value in present:
            continue
        near = did_you_mean(value, [v for v in present if isinstance(v, str)]) if is_text else ""
        hint = " Check its spelling, and upper and lower case." if is_text else ""
        hint = f" {near}" if near and records_shown() else hint
        raise DpradError(f"query compares {part.name!r} with a value that no record has.{hint}")


def _kinds(cells: Column) -> tuple[bool, bool]:
    """Whether there are numbers, and text."""
    if cells.dtype.kind in "iufb":
        return True, False
    kinds = {type(v) for v in cells}
    return (
        any(issubclass(k, int | float | Decimal) for k in kinds),
        any(issubclass(k, str) for k in kinds),
    )
