"""Attacks: from an output and what is known to a guess. Loaded when needed: some need PyTorch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad.attacks.imputation import Imputation, impute
    from dprad.attacks.optimal import optimal_attack
    from dprad.paper.attack import paper_attack
    from dprad.training.opacus import Recording, record

__all__ = [
    "Imputation",
    "Recording",
    "impute",
    "optimal_attack",
    "paper_attack",
    "record",
]

_HOME = {
    "Imputation": "attacks.imputation",
    "impute": "attacks.imputation",
    "optimal_attack": "attacks.optimal",
    "paper_attack": "paper.attack",
    "Recording": "training.opacus",
    "record": "training.opacus",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"dprad.{_HOME[name]}"), name)
    raise AttributeError(f"module 'dprad.attacks' has no attribute {name!r}")
