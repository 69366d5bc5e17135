"""The state file of an audit: a journal that identifies the audit, then one line per chunk.

Outputs are stored exactly or not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.errors import kind as name_of
from dprad.runtime.journal import Journal

_KEYS = {"phase", "chunk", "result", "first"}
# Whole numbers with more bits are not written in decimal digits, of which Python reads 4,300.
BITS = 10_000


@dataclass(slots=True)
class State:
    """Results by phase and chunk, and (`firsts`) the digest of the first outputs of each; of one
    part of an audit.
    """

    journal: Journal | None
    lines: dict[str, dict[int, Any]] = field(default_factory=dict)
    firsts: dict[tuple[str, int], str] = field(default_factory=dict)
    part: str = ""

    @classmethod
    def open(cls, path: Any, key: dict[str, Any]) -> State:
        """Read what is there; a file of another audit is refused."""
        about = {"dprad": "audit", **key}
        state = cls(Journal.open(path, about, lambda first: _differs(first, about)))
        assert state.journal is not None
        for number, row in enumerate(state.journal.rows, start=2):
            if row.keys() != _KEYS or not _sound(row):
                raise DpradError(f"{path} is damaged: line {number} is not what was written.")
            phase, chunk = row["phase"], row["chunk"]
            state.lines.setdefault(phase, {})[chunk] = row["result"]
            state.firsts[phase, chunk] = row["first"]
        return state

    def done(self, phase: str) -> dict[int, Any]:
        """Stored results of a phase."""
        return self.lines.get(self.part + phase, {})

    def first(self, phase: str, chunk: int) -> str:
        """The digest of the first outputs of a chunk."""
        return self.firsts[self.part + phase, chunk]

    def put(self, phase: str, chunk: int, result: Any, first: str) -> None:
        """Store a result."""
        if self.journal is not None and chunk not in self.done(phase):
            row = {"phase": self.part + phase, "chunk": chunk, "result": result, "first": first}
            self.journal.append(row)


def _sound(line: dict[str, Any]) -> bool:
    chunk, phase, first = line["chunk"], line["phase"], line["first"]
    return type(chunk) is int and isinstance(phase, str) and isinstance(first, str)


def _differs(header: dict[str, Any], about: dict[str, Any]) -> str:
    """Why a file does not belong to this audit; None if it does."""
    if header.get("dprad") != "audit":
        return "this is not the state of an audit"
    for name, value in json.loads(json.dumps(about)).items():
        stored = header.get(name)
        if stored == value:
            continue
        if name == "format":
            what = "another version of dprad wrote it"
        elif name == "game":
            what = "the records, or what counts as success, differ"
        elif name == "seen" and isinstance(stored, dict):
            changed = [k for k in value if stored.get(k) != value[k]]
            what = (
                f"{' and '.join(changed) or 'what is run'}, or something that it "
                "uses, has changed (a helper, a global, a closure value, an attribute, a module)"
            )
        else:
            what = f"its {name} is {stored!r}, but here it is {value!r}"
        return f"it belongs to another audit: {what}"
    return ""


# -- outputs, to the bit ---------------------------------------------------------------------------
def encode(value: Any) -> Any:
    """An output as JSON that decodes to exactly the same; a `DpradError` if that is not
    possible.
    """
    if type(value) is int and value.bit_length() > BITS:
        return {"int": hex(value)}
    if value is None or type(value) in (bool, int, str, float):
        return value
    if type(value) is list:
        return [encode(v) for v in value]
    if type(value) in _NAMES:
        return {_NAMES[type(value)]: _ENCODE[type(value)](value)}
    known = isinstance(value, np.generic) or type(value) is np.ndarray
    if known and value.dtype.kind in "biufcSUmM":
        kind = "array" if isinstance(value, np.ndarray) else "number"
        raw = np.ascontiguousarray(value).tobytes().hex()
        return {kind: [value.dtype.str, list(np.shape(value)), raw]}
    raise DpradError(
        f"run returned a {name_of(type(value))}, which a state file cannot store exactly. Return "
        "numbers, text, bytes, arrays, or lists, tuples, sets and dicts of these; or leave out "
        "state."
    )


def decode(plain: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(plain, list):
        return [decode(v) for v in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, inside),) = plain.items()
    if kind in ("array", "number"):
        dtype, shape, raw = inside
        array = np.frombuffer(bytes.fromhex(raw), dtype=dtype).reshape(shape).copy()
        return array if kind == "array" else array[()]
    return _DECODE[kind](inside)


_NAMES = {
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    dict: "dict",
    complex: "complex",
    bytes: "bytes",
}
_ENCODE: dict[type, Any] = {
    tuple: lambda v: [encode(x) for x in v],
    set: lambda v: [encode(x) for x in v],
    frozenset: lambda v: [encode(x) for x in v],
    dict: lambda v: [[encode(k), encode(x)] for k, x in v.items()],
    complex: lambda v: [v.real, v.imag],
    bytes: bytes.hex,
}
_DECODE: dict[str, Any] = {
    "int": lambda v: int(v, 16),
    "tuple": lambda v: tuple(decode(x) for x in v),
    "set": lambda v: {decode(x) for x in v},
    "frozenset": lambda v: frozenset(decode(x) for x in v),
    "dict": lambda v: {decode(k): decode(x) for k, x in v},
    "complex": lambda v: complex(*v),
    "bytes": bytes.fromhex,
}
