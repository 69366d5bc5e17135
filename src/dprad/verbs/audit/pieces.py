"""What text, bytes and numbers of an output are made of, as named coordinates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray
from dprad.verbs.audit import notation
from dprad.verbs.audit.named import Into, put

# Numbers from which an array is kept together, and pieces counted from the end.
TOGETHER, ENDS = 65, 8
# Digits from which a whole number in a text is also read digit by digit, and up to which a large
# one is.
LONG, WIDE = 10, 100

# Signs from which a word with digits, or bytes, may be a cipher.
SEALED = 8
# Numbers, words, names with digits in them, white space (one blank is left out), other signs.
_PIECES = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![^\W_])"
    r"|[^\W0-9_]+(?![0-9_])|\w+| (?=\S)|\s+|."
)


def text_of(text: str, name: str, into: Into) -> Any:
    """A single word as it is, else numbers and words by their place. What JSON holds is returned,
    to be looked into.
    """
    here, whole = name or "output", name or "the output"
    if text.isalpha():
        put(into, here, text)
        return None
    into.note("".join(map(_sort, _PIECES.findall(text))))
    if text.lstrip()[:1] in ("{", "["):
        try:
            inside = notation.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            put(into, f"length of {whole}", float(len(text)))
            into.note(notation.escapes(text))
            return inside
    pieces = [p for p in _PIECES.findall(text) if p != " "]
    if len(pieces) != 1:
        put(into, f"length of {whole}", float(len(text)))
        put(into, f"pieces of {whole}", float(len(pieces)))
    for i, piece in enumerate(pieces):
        _piece(piece, here if len(pieces) == 1 else f"{here}~{i}", into)
    for i, piece in enumerate(pieces[:-1][: -ENDS - 1 : -1] if len(pieces) > 2 else (), start=2):
        _piece(piece, f"{here}~-{i}", into)
    if len(pieces) > 2:
        _piece(pieces[-1], f"{here}~-1", into)
    if text:
        put(into, f"end of {whole}", text[-1])
    return None


def _sort(piece: str) -> str:
    """What a piece of a text is: a number (by its notation), a word, or the sign that it is."""
    if piece[-1] in "0123456789." and piece.strip(".+-"):
        return "0" + re.sub(r"^-|[0-9]", "", piece[:1]) + re.sub(r"[-+0-9]", "", piece[1:])
    return "w" if piece[0].isalnum() or piece[0] == "_" else piece


def _piece(piece: str, here: str, into: Into) -> None:
    try:
        number = int(piece) if piece.lstrip("+-").isdecimal() else float(piece)
        if piece[-1] in "0123456789.":
            number_of(number, here, into)
            if len(piece) >= LONG and piece.isdecimal() and abs(number) < 2**53:
                _signs(piece, f"digits of {here}", into)
            if notation.unusual(piece, number):
                _notation(piece, here, into)
            return
    except ValueError:
        pass
    if len(piece) == 1 or not any(c.isdigit() or c == "_" for c in piece):
        put(into, here, piece)
        return
    _signs(piece, here, into)


def _signs(piece: str, here: str, into: Into) -> None:
    """Letters and digits, each by its place."""
    if len(piece) >= SEALED:
        into.sealed.append((here, piece))
    put(into, f"length of {here}", float(len(piece)))
    for i, sign in enumerate(piece):
        put(into, f"{here}/{i}", sign)
    for i, sign in enumerate(piece[: -ENDS - 1 : -1], start=1):
        put(into, f"{here}/-{i}", sign)


def _notation(piece: str, here: str, into: Into) -> None:
    """How a number is written, unless as usual; and its digits, if a float would lose some."""
    put(into, f"notation of {here}", notation.pattern(piece))
    if sum(sign.isdigit() for sign in piece) > notation.KEPT:
        _signs(piece, f"digits of {here}", into)


def bytes_of(raw: bytes, name: str, into: Into) -> Any:
    """Text if it is text, else each byte by its place, from the front and from the end. What JSON
    holds is returned.
    """
    here, whole = name or "output", name or "the output"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        inside = text_of(text, f"{here} as text", into)
        if len(raw) > len(text) or text.lstrip()[:1] in ("{", "["):
            return inside
    put(into, f"bytes of {whole}", float(len(raw)))
    if len(raw) >= SEALED:
        into.sealed.append((here, raw))
    block_of(np.frombuffer(raw, dtype=np.uint8).astype(float), f"{here} as bytes", into)
    for i, byte in enumerate(raw[: -ENDS - 1 : -1], start=1):
        put(into, f"{here} as bytes[-{i}]", float(byte))
    return None


# -- numbers ---------------------------------------------------------------------------------------
def number_of(thing: Any, here: str, into: Into) -> None:
    """A number of any kind; NaN is a word, and so is what a float would round."""
    if isinstance(thing, np.datetime64 | np.timedelta64):
        put(into, f"unit of {here}", str(thing.dtype))
        thing = int(thing.astype(np.int64))
    if isinstance(thing, int | np.integer) and abs(int(thing)) >= 2**53:
        _large(int(thing), here, into)
        return
    try:
        value = float(thing)
    except (TypeError, ValueError, OverflowError):
        put(into, here, str(thing))
        return
    put(into, here, value if value == value else "NaN")
    if isinstance(thing, notation.Written):
        _notation(thing.text, here, into)


def _large(whole: int, here: str, into: Into) -> None:
    """A whole number that a float would round: as a word, about, and what is missing then."""
    put(into, here, hex(whole))
    if abs(whole) < 10**WIDE:
        _signs(hex(whole), f"bits of {here}", into)
        _signs(str(whole), f"digits of {here}", into)
    try:
        about = float(whole)
    except OverflowError:
        about = float("inf") if whole > 0 else float("-inf")
        put(into, f"{here} about", about)
        put(into, f"{here} rest", float(abs(whole) % 2**53))
        return
    put(into, f"{here} about", about)
    put(into, f"{here} rest", float(whole - int(about)))


def block_of(numbers: FloatArray, name: str, into: Into) -> None:
    """Numbers one by one, or together if there are many."""
    if numbers.size >= TOGETHER:
        put(into, f"{name}[]", numbers)
        return
    for i, v in enumerate(numbers.tolist()):
        put(into, f"{name}[{i}]", v if v == v else "NaN")
