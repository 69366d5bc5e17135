"""The command line: the same terms as the library.

Exit codes: 0 success; 1 the risk exceeds ``--max-risk`` or a claim is violated; 2 wrong usage or
bad input; 3 that cannot be told (a doubtful prior or promise, an audit that could find nothing);
130 interrupted, after what was known by then. Heavy modules load inside the commands, so that
``dprad --help`` is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import App, CycloptsError

import dprad
from dprad.errors import DpradError, show_records, told
from dprad.runtime.interrupts import interrupted
from dprad.show.cli.assess import assess
from dprad.show.cli.atlas import atlas
from dprad.show.cli.audit import audit
from dprad.show.cli.calibrate import calibrate
from dprad.show.cli.compare import compare
from dprad.show.cli.demo import demo
from dprad.show.cli.explore import explore
from dprad.show.cli.ledger import app as ledger
from dprad.show.cli.output import warn
from dprad.show.cli.progress import shown
from dprad.show.cli.reproduce import reproduce
from dprad.show.cli.scenario import init, report

app = App(
    name="dprad",
    help=(
        "What does epsilon mean? Disclosure risk of differentially private releases.\n\n"
        "Example: dprad assess --epsilon 1 --neighbours replace-one --uniform 20\n\n"
        "Every command takes --help; --quiet hides progress. Values of records are never shown or "
        "written unless you add --show-records."
    ),
    version=dprad.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # how far it was is said first
)
app.command(demo)
app.command(init)
app.command(assess)
app.command(calibrate)
app.command(compare)
app.command(audit)
app.command(report)
app.command(atlas)
app.command(ledger)
app.command(explore)
app.command(reproduce)
app.register_install_completion_command(help="Install completion for your shell.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit. Errors are one sentence and exit code 2, never a traceback."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    quiet, records = "--quiet" in tokens, "--show-records" in tokens
    tokens = [t for t in tokens if t not in ("--quiet", "--show-records")]
    try:
        _readable(tokens)
        with _warned(), shown(quiet or "explore" in tokens[:1]), show_records(records):
            code = app(tokens, print_error=False, exit_on_error=False, result_action="return_value")
    except KeyboardInterrupt:
        code = 130  # how far it was has been said
    except Exception as error:
        code = 130 if interrupted(error) else _complain(_said(error))
    warn("")  # what is left of standard error must not change the exit code
    sys.exit(code or 0)


def _readable(tokens: list[str]) -> None:
    """Refuse names of files that are not text: nothing could be written about them."""
    for token in tokens:
        if any("\ud800" <= letter <= "\udfff" for letter in token):
            named = os.fsencode(token).decode(errors="backslashreplace")
            raise DpradError(f"'{named}' is not text in UTF-8: rename the file.")


def _said(error: Exception) -> str:
    """An error in one sentence."""
    if isinstance(error, CycloptsError | DpradError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory for this question; ask a smaller one."
    if isinstance(error, OSError):
        return f"{error.filename or 'output'}: {error.strerror}."
    return f"internal error, please report it: {told(error)}"


@contextmanager
def _warned() -> Iterator[None]:
    """Warnings as sentences, without the line of code that gave them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda said, *_: warn(f"dprad: {said}\n")
        yield


def _complain(sentence: str) -> int:
    lines = [" ".join(line.split()) for line in sentence.splitlines() if line.strip()]
    warn("dprad: " + "\n  ".join(lines) + "\n")
    return 2
