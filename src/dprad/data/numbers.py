"""What keeps a column from being numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

# Text that is a number to people: with a decimal comma, as a percentage, or as it stands.
_COMMA = re.compile(r"\s*+[-+]?\d*+(,\d++)?\s*+")
_PERCENT = re.compile(r"\s*+[-+]?\d++([.,]\d++)?\s*+%\s*+")
_NUMBER = re.compile(r"\s*+[-+]?(\d++\.?\d*+|\.\d++)([eE][-+]?\d++)?\s*+")


def not_numbers(values: Iterable[Any], name: str) -> str:
    """Why a column is not numbers, and what to do; empty if it is. No value is named. O(m)."""
    items = list(values)
    if set(map(type, items)) <= {int, float}:
        return ""
    others = [v for v in items if isinstance(v, bool) or not isinstance(v, int | float | Decimal)]
    texts = [v for v in others if isinstance(v, str)]
    if not others:
        return ""
    if all(v is None for v in others):
        return f"{name!r} has missing values. Leave those rows out with missing='drop'."
    if not texts:
        return f"{name!r} holds values that are not numbers."
    if all(map(_COMMA.fullmatch, texts)) and any("," in v for v in texts):
        return f"{name!r} has decimal commas. Read the file with decimal=',' (--decimal ,)."
    if all(map(_PERCENT.fullmatch, texts)):
        return f"{name!r} has percent signs. Write its numbers without them."
    if len(others) < len(items) or any(map(_NUMBER.fullmatch, texts)):
        return (
            f"{name!r} holds text beside its numbers. If a word such as NA means that a value is "
            "missing, leave it empty in the file."
        )
    return f"{name!r} holds text."
