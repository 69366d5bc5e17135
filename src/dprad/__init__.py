"""dprad: what does epsilon mean? Disclosure risk of differentially private releases.

Names load on first use, so that `import dprad` stays light.
"""

from __future__ import annotations

import sys

# `python -m dprad` puts the current folder first on the path, where any file could take the place
# of a module. Out with it before anything is imported; what is audited is looked for there later.
if sys.orig_argv[1:3] in (["-m", "dprad"], ["-m", "dprad.worker"]) and sys.argv[:1] == ["-m"]:
    del sys.path[0]

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad import accounting, attacks, datasets, mechanisms, memory, patients, plots, scenario
    from dprad.assessment import assess
    from dprad.attacks.optimal import optimal_attack
    from dprad.auditing import audit
    from dprad.calibration import calibrate
    from dprad.comparison import compare
    from dprad.errors import DpradError, show_records
    from dprad.guarantees import ApproxDP, GaussianDP, Guarantee, Profile, PureDP, TotalVariation
    from dprad.priors import Prior
    from dprad.reporting import report
    from dprad.results import Audit, Bound, Calibration, Comparison, Risk, WorstPrior
    from dprad.simulation import simulate
    from dprad.threats import Threat
    from dprad.training import TrainingRisk, training_risks
    from dprad.worst import worst_prior

__version__ = "0.1.0"

__all__ = [
    "ApproxDP",
    "Audit",
    "Bound",
    "Calibration",
    "Comparison",
    "DpradError",
    "GaussianDP",
    "Guarantee",
    "Prior",
    "Profile",
    "PureDP",
    "Risk",
    "Threat",
    "TotalVariation",
    "TrainingRisk",
    "WorstPrior",
    "accounting",
    "assess",
    "attacks",
    "audit",
    "calibrate",
    "compare",
    "datasets",
    "mechanisms",
    "memory",
    "optimal_attack",
    "patients",
    "plots",
    "report",
    "scenario",
    "show_records",
    "simulate",
    "training_risks",
    "worst_prior",
]

_HOME = {
    "assess": "assessment",
    "optimal_attack": "attacks.optimal",
    "report": "reporting",
    "simulate": "simulation",
    "audit": "auditing",
    "calibrate": "calibration",
    "compare": "comparison",
    "worst_prior": "worst",
    "training_risks": "training",
    "TrainingRisk": "training",
    "DpradError": "errors",
    "show_records": "errors",
    "Prior": "priors",
    "Threat": "threats",
    **dict.fromkeys(
        ["Audit", "Bound", "Calibration", "Comparison", "Risk", "WorstPrior"], "results"
    ),
    **dict.fromkeys(
        ["ApproxDP", "GaussianDP", "Guarantee", "Profile", "PureDP", "TotalVariation"],
        "guarantees",
    ),
}


_MODULES = (
    "accounting",
    "attacks",
    "datasets",
    "mechanisms",
    "memory",
    "patients",
    "plots",
    "scenario",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"dprad.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"dprad.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dprad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
