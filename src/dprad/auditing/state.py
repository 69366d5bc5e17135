"""The state file of an audit: a line that says which audit it is, then a line a chunk.

Each line carries a checksum over itself and the line before, so what was damaged or edited by hand
is refused; whoever can compute the checksum can forge a file, so it is readable and writable by its
owner alone. Only a last line without an end, which a kill leaves behind, is dropped. Plain JSON,
nothing executable. Outputs are kept to the bit or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dprad.errors import DpradError

_KEYS = {"phase", "chunk", "result", "first", "check"}


@dataclass(slots=True)
class State:
    """Results by phase and chunk, and (`firsts`) the digest of the first outputs of each."""

    path: Path | None
    lines: dict[str, dict[int, Any]] = field(default_factory=dict)
    firsts: dict[tuple[str, int], str] = field(default_factory=dict)
    check: str = ""

    @classmethod
    def open(cls, path: Any, key: dict[str, Any]) -> State:
        """Read what is there; a file of another audit is refused, a torn last line dropped."""
        if path is None:
            return cls(None)
        state = cls(Path(path))
        try:
            if state.path is not None and _nothing(state.path):
                state._begin(key)
            else:
                state._read(key)
        except OSError as error:
            raise DpradError(f"{path} cannot be used: {error.strerror or error}.") from None
        return state

    def _begin(self, key: dict[str, Any]) -> None:
        """The first line, whole or not at all, and never over a file with something in it."""
        assert self.path is not None
        text, self.check = _line({"dprad": "audit", **key}, "")
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".dprad-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self.path.exists():
                self.path.unlink()
            os.link(name, self.path)
        finally:
            Path(name).unlink()

    def _read(self, key: dict[str, Any]) -> None:
        assert self.path is not None
        if not self.path.is_file():
            raise DpradError(f"{self.path} is not a file.")
        text = self.path.read_bytes()
        whole, _, torn = text.rpartition(b"\n")
        rows = whole.split(b"\n")
        header = _parsed(rows[0])
        if header is None or header.get("dprad") != "audit":
            raise DpradError(f"{self.path} is not the state of an audit. Choose another file.")
        _same(self.path, header, key)
        self.check = self._checked(header, 1)
        for number, row in enumerate(rows[1:], start=2):
            line = _parsed(row)
            if line is None or line.keys() != _KEYS or not _sound(line):
                raise DpradError(f"{self.path} is damaged: line {number} is not what was written.")
            self.check = self._checked(line, number)
            phase, chunk = line["phase"], line["chunk"]
            self.lines.setdefault(phase, {})[chunk] = line["result"]
            self.firsts[phase, chunk] = line["first"]
        if torn:
            with self.path.open("r+b") as file:
                file.truncate(len(whole) + 1)

    def _checked(self, line: dict[str, Any], number: int) -> str:
        """The checksum of a line, if it is the one that stands there."""
        bare = {k: v for k, v in line.items() if k != "check"}
        check = _line(bare, self.check)[1]
        if line.get("check") != check:
            raise DpradError(
                f"{self.path} is damaged: line {number} is not what was written. An audit cannot "
                "go on from a file that was changed; choose another file."
            )
        return check

    def done(self, phase: str) -> dict[int, Any]:
        """Results of a phase that are already there."""
        return self.lines.get(phase, {})

    def put(self, phase: str, chunk: int, result: Any, first: str) -> None:
        """Keep a result, on disk before anything else happens."""
        if self.path is None or chunk in self.done(phase):
            return
        line = {"phase": phase, "chunk": chunk, "result": result, "first": first}
        text, self.check = _line(line, self.check)
        with self.path.open("ab") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _nothing(path: Path) -> bool:
    """Whether there is no such file, or an empty one."""
    return not path.exists() or (path.is_file() and path.stat().st_size == 0)


def _line(plain: dict[str, Any], before: str) -> tuple[bytes, str]:
    """A line of the file with its checksum, which continues that of the line before."""
    body = json.dumps(plain, sort_keys=True)
    check = hashlib.sha256((before + body).encode()).hexdigest()
    return json.dumps({**plain, "check": check}).encode() + b"\n", check


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _sound(line: dict[str, Any]) -> bool:
    chunk, phase, first = line["chunk"], line["phase"], line["first"]
    return type(chunk) is int and isinstance(phase, str) and isinstance(first, str)


def _same(path: Path, header: dict[str, Any], key: dict[str, Any]) -> None:
    """Refuse the file of another audit, and say what differs."""
    plain = json.loads(json.dumps(key))
    for name, value in plain.items():
        found = header.get(name)
        if found == value:
            continue
        if name == "game":
            what = "the records, or what counts as success, are others"
        elif name == "seen" and isinstance(found, dict):
            changed = [k for k in value if found.get(k) != value[k]]
            what = (
                f"{' and '.join(changed) or 'what is run'} is another one, or something that it "
                "uses has changed (a helper, a global, a closure value, an attribute, a module)"
            )
        else:
            what = f"its {name} is {found!r}, here it is {value!r}"
        raise DpradError(f"{path} belongs to another audit: {what}. Choose another file.")


# -- outputs, to the bit ---------------------------------------------------------------------------
def encode(value: Any) -> Any:
    """An output as JSON that gives back the very same one; a `DpradError` if that is not known."""
    if value is None or type(value) in (bool, int, str, float):
        return value
    if type(value) is list:
        return [encode(v) for v in value]
    if type(value) in _NAMES:
        return {_NAMES[type(value)]: _ENCODE[type(value)](value)}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSUmM":
        kind = "array" if isinstance(value, np.ndarray) else "number"
        raw = np.ascontiguousarray(value).tobytes().hex()
        return {kind: [value.dtype.str, list(np.shape(value)), raw]}
    raise DpradError(
        f"run returned a {type(value).__name__}, which a state file cannot keep as it is. Return "
        "numbers, text, bytes, arrays, or lists, tuples, sets and dicts of these; or leave out "
        "state."
    )


def decode(plain: Any) -> Any:
    """What was encoded."""
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
    "tuple": lambda v: tuple(decode(x) for x in v),
    "set": lambda v: {decode(x) for x in v},
    "frozenset": lambda v: frozenset(decode(x) for x in v),
    "dict": lambda v: {decode(k): decode(x) for k, x in v},
    "complex": lambda v: complex(*v),
    "bytes": bytes.fromhex,
}
