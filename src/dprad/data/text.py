"""How a text file is written: its encoding, and the sign before its decimals.

DuckDB reads UTF-8. A file in another encoding is copied to UTF-8 first, piece by piece, into a
private folder, of which it leaves a fifth free. Cost: one pass, and disk space for the copy.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, did_you_mean, one_of, told

LIKELY = ("latin-1", "cp1252", "utf-16")
# Encodings that take linear time and are used for tables, by the names that Python gives them.
_ENCODINGS = re.compile(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp\d+|mac-\w+|koi8-\w+"
    r"|shift_jis\w*|euc_\w+|gb\w+|big5\w*|tis-620"
)
COPY = "dprad-utf8-"  # how the names of copies begin
_PART = 2**20
# A copy may take so many times what it leaves free.
_FILL = 4
_SAVE = "Save it as UTF-8, or say what it is with encoding= (--encoding):"


@dataclass(frozen=True, slots=True)
class Written:
    """The encoding (None: UTF-8) and the decimal sign of a text file; whether all its values are
    left as they are written.
    """

    encoding: str | None = None
    decimal: str = "."
    literal: bool = False

    @classmethod
    def of(cls, encoding: Any, decimal: Any) -> Written:
        """Checked names."""
        one_of(decimal, "decimal", [".", ","])
        return cls(None if encoding is None else _encoding(encoding), decimal)

    def needs_text(self, what: str) -> None:
        """Refuse both options for what is not a text file."""
        if self != Written():
            name = "decimal" if self.encoding is None else "encoding"
            raise DpradError(f"{name} goes with a CSV file, but data is {what}.")


def _encoding(name: Any) -> str | None:
    """Python's name of an encoding; None for UTF-8, which needs nothing."""
    try:
        if not isinstance(name, str) or not re.fullmatch(r"[\w .:-]{1,40}", name):
            raise LookupError
        known = codecs.lookup(name).name
        if not _ENCODINGS.fullmatch(known):
            raise LookupError
    except LookupError:
        hint = did_you_mean(name, ("utf-8", *LIKELY))
        raise DpradError(
            f"encoding must be one such as {', '.join(map(repr, LIKELY))}, but is {name!r}. {hint}"
        ) from None
    return None if known in ("ascii", "utf-8", "utf-8-sig") else known


def in_utf8(files: list[Path], folder: str, encoding: str, most: float) -> list[Path]:
    """Private copies of the files, in UTF-8, of at most so many bytes each."""
    copies = []
    for i, file in enumerate(files):
        if not encoding.startswith(("utf-16", "utf-32")) and looks_like_utf16(file):
            raise DpradError(f"data: the file {str(file)!r} {why_not_utf8(file)}")
        copy = Path(folder) / f"{COPY}{i}{Path(file.name.removesuffix('.gz')).suffix}"
        _copied(file, copy, encoding, most)
        copies.append(copy)
    return copies


def _copied(file: Path, copy: Path, encoding: str, most: float) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    size = 0
    try:
        made = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "wb") as out, _unpacked(file) as stream:
            part = b"more"
            while part:
                part = stream.read(_PART)
                size += out.write(decoder.decode(part, final=not part).encode())
                if size > most:
                    raise DpradError(
                        f"data takes more than {most / 1e6:,.0f} MB in UTF-8. Load a smaller table."
                    )
                if size > _FILL * shutil.disk_usage(copy.parent).free:
                    raise DpradError(
                        f"data: the file {str(file)!r} takes more than {size / 1e6:,.0f} MB in "
                        "UTF-8, and there is no room for more in the folder for temporary files. "
                        "Save it as UTF-8, or set TMPDIR to a folder with more room."
                    )
    except UnicodeError:
        raise DpradError(
            f"data: the file {str(file)!r} is not in {encoding}. {_SAVE} {_listed()}."
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DpradError(f"data: the file {str(file)!r} cannot be read ({told(error)}).") from None


def why_not_utf8(file: Path) -> str:
    """What to do about a file that is not UTF-8, or nothing if it is. One pass."""
    if looks_like_utf16(file):
        return f"is in UTF-16. {_SAVE} 'utf-16'."
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _unpacked(file) as stream:
            while part := stream.read(_PART):
                decoder.decode(part)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return f"is not in UTF-8. {_SAVE} {_listed()}."
    except (OSError, EOFError, zlib.error):
        pass
    return ""


def looks_like_utf16(file: Path) -> bool:
    """Whether a file begins with its mark, or has a zero in every other byte."""
    try:
        with _unpacked(file) as stream:
            start = stream.read(4096)
    except (OSError, EOFError, zlib.error):
        return False
    marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return bool(marked or 3 * start.count(0) > len(start) > 0)


def _unpacked(file: Path) -> Any:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _listed() -> str:
    *most, last = map(repr, LIKELY)
    return f"{', '.join(most)} or {last}"


def quoted(name: str) -> str:
    """The name of a column, as DuckDB takes it for one."""
    return '"' + name.replace('"', '""') + '"'
