"""What an output is flattened into: coordinates by name, and its form."""

from __future__ import annotations

import hashlib

from dprad.numerics.arrays import FloatArray

# What the form of an output is called, where it is not that of the first.
FORM = "form of the output"
# How many of the zeros of an output are negative; not there without any.
ZEROS = "negative zeros"
# A number, a word, or many numbers.
Value = float | str | FloatArray


class Into(dict[str, Value]):
    """Coordinates by name, the form of the output that they are read from, and the keys of each of
    its mappings; whether these are named by place. While things are `alike` (those of a list of one
    type), what each of them is counts once.
    """

    def __init__(self, by_place: bool = False) -> None:
        super().__init__()
        self.by_place, self.alike = by_place, False
        self.keyed: set[str] = set()
        self.foreign: set[str] = set()  # kinds of other libraries' objects
        self.sealed: list[tuple[str, str | bytes]] = []  # what is read sign by sign, and is long
        self._seen: list[str] = []

    def note(self, trait: object) -> None:
        """A trait of what is read now."""
        if not self.alike or not self._seen or self._seen[-1] != str(trait):
            self._seen.append(str(trait))

    @property
    def form(self) -> str:
        """Equal for outputs of one form, however long lists of one type are."""
        return hashlib.blake2b(
            "\0".join(self._seen).encode(errors="backslashreplace"), digest_size=8
        ).hexdigest()


def put(into: Into, name: str, value: Value) -> None:
    """A coordinate; of two things that are called the same, both."""
    while name in into:
        name += "'"
    into[name] = value
