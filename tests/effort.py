"""How much is tried: a sample in every run, all of it with `make thorough`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

THOROUGH = bool(os.environ.get("THOROUGH"))


def some(all_of_them: int, few: int) -> int:
    """How many of them are tried in this run."""
    return all_of_them if THOROUGH else few


def part_of(cases: Iterable[Any], few: int) -> list[Any]:
    """The cases that are tried in this run, spread over all of them."""
    every = list(cases)
    return (
        every
        if THOROUGH or len(every) <= few
        else [every[k * len(every) // few] for k in range(few)]
    )
