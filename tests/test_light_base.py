"""What the base installation does without the extras, and what it says of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXTRAS = [
    "duckdb",
    "narwhals",
    "matplotlib",
    "jinja2",
    "shiny",
    "distributed",
    "torch",
    "sklearn",
    "opendp",
    "dp_accounting",
    "yaml",
    "pandas",
    "polars",
    "pyarrow",
]


def without_extras(*arguments, folder):
    """A command in a process that has none of them."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        "from dprad.show.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=folder,
        timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("assess --epsilon 1 --neighbours replace-one --uniform 10", None),
        ("calibrate --max-risk 0.1 --mechanism laplace --uniform 20", None),
        ("demo", None),
        ("assess --epsilon 1 --neighbours replace-one --data people.csv", "tables"),
        ("report", "report"),
        ("explore", "web"),
    ],
)
def test_commands_without_extras(command, extra, tmp_path):
    (tmp_path / "people.csv").write_text("town\na\nb\n")
    done = without_extras(*command.split(), folder=tmp_path)
    if extra is None:
        assert done.returncode == 0, done.stderr
        return
    said = done.stdout + done.stderr
    assert done.returncode == 2 and f"pip install 'dprad[{extra}]'" in said
    assert "Traceback" not in said
