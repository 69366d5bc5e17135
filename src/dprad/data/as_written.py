"""Columns of a text file as numbers or words, without losing how they were written.

A reader that takes "01" for 1, or the 20th digit away, drops what an audit looks for. So a column
becomes numbers only; or, if its texts do not follow from the numbers, numbers and the texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

# Most digits of a whole number; Python refuses to read more.
LARGEST = 4_000


def read(texts: list[str | None]) -> Iterator[list[Any]]:
    """One column as one or two: its values, and its bytes if the values do not tell them.

    None is an empty field, "" a quoted one. Where only one of these and NaN occurs, it is None. The
    sign of a zero is told by no value.
    O(n).
    """
    marks = {text for text in texts if text is None or text == "" or _nan(text)}
    filled = dict.fromkeys(text for text in texts if text is not None and text not in marks)
    values, forms = _numbers(list(filled))
    gaps: dict[str | None, Any] = {mark: mark if len(marks) > 1 else None for mark in marks}
    known = gaps | values
    yield [known[text] for text in texts]
    written = any(all(form(v) == t for t, v in values.items()) for form in forms)
    if not written or any(v == 0 and str(v)[0] == "-" for v in values.values()):
        yield [None if text is None else text.encode() for text in texts]


def _numbers(texts: list[str]) -> tuple[dict[str | None, Any], list[Callable[[Any], str]]]:
    """What each text means, and ways in which all may be written."""
    try:
        if max(map(len, texts), default=0) <= LARGEST:
            width = len(texts[0]) if texts else 0
            return {text: int(text) for text in texts}, [str, _format(f"0{width}d")]
    except ValueError:
        pass
    try:
        return {text: float(text) for text in texts}, _ways(texts[0])
    except ValueError:
        return {text: text for text in texts}, [str]


def _ways(first: str) -> list[Callable[[Any], str]]:
    """Ways to write a float that a whole column may follow, by its first text."""
    decimals = len(re.split("[eE]", first)[0].partition(".")[2])
    fixed = f".{min(decimals, 60)}{'e' if 'e' in first else 'E' if 'E' in first else 'f'}"
    ways: list[Callable[[Any], str]] = [repr, lambda value: repr(value).removesuffix(".0")]
    return [*ways, *(_format(way) for way in (fixed, ".15g", ".17g", ".6g"))]


def _format(way: str) -> Callable[[Any], str]:
    return lambda value: format(value, way)


def _nan(text: str) -> bool:
    try:
        return math.isnan(float(text))
    except ValueError:
        return False
