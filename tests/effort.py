"""How much is tried: a sample in every run, all of it with `make thorough`."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("THOROUGH"))


def some(all_of_them: int, few: int) -> int:
    """How many of them are tried in this run."""
    return all_of_them if THOROUGH else few
