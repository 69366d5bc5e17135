"""The paper as published, for comparison: its experiments, attack, audit and Monte Carlo.

Public here: `nested_monte_carlo`. The attack is `dprad.attacks.paper_attack`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad.paper.nested import nested_monte_carlo

__all__ = ["nested_monte_carlo"]


def __getattr__(name: str) -> Any:
    if name == "nested_monte_carlo":
        return importlib.import_module("dprad.paper.nested").nested_monte_carlo
    raise AttributeError(f"module 'dprad.paper' has no attribute {name!r}")
