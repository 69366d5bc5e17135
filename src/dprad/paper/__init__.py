"""The paper as published, for comparison: its experiments, attack, audits and Monte Carlo.

Public here: `nested_monte_carlo`, `black_box_audit`, `black_box_epsilon` and `ldp_auditor`. The
attack is `dprad.attacks.paper_attack`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad.paper.auditor import ldp_auditor
    from dprad.paper.black_box import black_box_audit, black_box_epsilon
    from dprad.paper.nested import nested_monte_carlo

__all__ = ["black_box_audit", "black_box_epsilon", "ldp_auditor", "nested_monte_carlo"]

# Loaded when first asked for, each from its module.
_PLACES = {
    "black_box_audit": "black_box",
    "black_box_epsilon": "black_box",
    "ldp_auditor": "auditor",
    "nested_monte_carlo": "nested",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"dprad.paper.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'dprad.paper' has no attribute {name!r}")
