"""How numbers are written in a text, and JSON that forgets nothing of it.

1, 1.0 and 1.00 are one number, and so are 0.1 and 0.1000000000000000000001 as floats; but which of
them is written may depend on the record.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Digits that a float keeps.
KEPT = 15


class Written(float):
    """A number of JSON that is written in an unusual way."""

    text = ""


def unusual(text: str, number: float) -> bool:
    """Whether Python would write this number in another way; -0.0 equals 0.0."""
    return text != repr(number) or text == "-0.0"


def pattern(text: str) -> str:
    """A number without its digits, but with how many there are, and leading zeros."""
    return re.sub("[0-9]+", lambda m: f"{'0' if m[0][0] == '0' else ''}<{len(m[0])}>", text)


def escapes(text: str) -> list[str]:
    """The escapes of a JSON text, in order, if one is not as Python would write it: those as they
    stand.
    """
    found = re.findall(r"\\(?:u[0-9a-fA-F]{4}|.)", text, re.DOTALL)
    odd = [e if _odd(e) else "" for e in found]
    return odd if any(odd) else []


def _odd(escape: str) -> bool:
    try:
        return json.dumps(json.loads(f'"{escape}"')) != f'"{escape}"'
    except ValueError:
        return True


def loads(text: str) -> Any:
    """What JSON holds: objects as they stand if a key comes twice, and `Written` numbers."""
    return json.loads(
        text,
        object_pairs_hook=_pairs,
        parse_float=_read,
        parse_int=lambda digits: _read(digits) if digits == "-0" else int(digits),
    )


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else [list(p) for p in pairs]


def _read(text: str) -> float:
    if not unusual(text, float(text)):
        return float(text)
    number = Written(text)
    number.text = text
    return number
