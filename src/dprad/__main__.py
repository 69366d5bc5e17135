"""``python -m dprad``, and the command ``dprad``."""

import os
import sys

from dprad.runtime.interrupts import interruptible


def main() -> None:
    """Run a command and exit; with code 130 if Ctrl-C comes before that can say how far it was."""
    try:
        _open()
        with interruptible() as look:
            from dprad.show.cli import main as command

            look()
        command()
    except KeyboardInterrupt:
        sys.exit(130)


def _open() -> None:
    """Open what is closed of standard input, output and error, so that no other file becomes it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the least number that is free is taken
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


if __name__ == "__main__":
    main()
