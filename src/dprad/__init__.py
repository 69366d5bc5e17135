"""dprad: what does epsilon mean? Disclosure risk of differentially private releases.

Names load on first use, so that `import dprad` stays light.
"""

import sys

# `python -m dprad` puts the current folder first on the path, where any file could shadow a module.
# Remove it before anything is imported; audited functions are searched there later. (While Python
# locates the module named by -m, sys.argv contains only "-m".)
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    del sys.path[0]

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprad import accounting, attacks, mechanisms
    from dprad.attacks.optimal import optimal_attack
    from dprad.data import datasets, patients
    from dprad.errors import DpradError, show_records
    from dprad.model.audits import Audit, AuditInterrupt
    from dprad.model.comparisons import Comparison
    from dprad.model.groups import Group, Groups
    from dprad.model.guarantees import (
        ZCDP,
        ApproxDP,
        GaussianDP,
        Guarantee,
        Profile,
        PureDP,
        RenyiDP,
        TotalVariation,
    )
    from dprad.model.priors import Prior
    from dprad.model.results import Bound, Calibration, Risk, WorstPrior
    from dprad.model.threats import Threat
    from dprad.runtime import memory
    from dprad.show import plots, scenario
    from dprad.show.ledger import Ledger
    from dprad.show.report import report
    from dprad.training.risks import TrainingRisk, training_risks
    from dprad.verbs.assess import assess
    from dprad.verbs.audit import audit
    from dprad.verbs.audit.recorded import audit_outputs
    from dprad.verbs.by_group import by_group
    from dprad.verbs.calibrate import calibrate
    from dprad.verbs.compare import compare
    from dprad.verbs.least_error import least_error
    from dprad.verbs.outsider import simulate_outsider
    from dprad.verbs.simulate import simulate
    from dprad.verbs.worst_prior import worst_prior

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Audit",
    "AuditInterrupt",
    "Bound",
    "Calibration",
    "Comparison",
    "DpradError",
    "GaussianDP",
    "Group",
    "Groups",
    "Guarantee",
    "Ledger",
    "Prior",
    "Profile",
    "PureDP",
    "RenyiDP",
    "Risk",
    "Threat",
    "TotalVariation",
    "TrainingRisk",
    "WorstPrior",
    "accounting",
    "assess",
    "attacks",
    "audit",
    "audit_outputs",
    "by_group",
    "calibrate",
    "compare",
    "datasets",
    "least_error",
    "mechanisms",
    "memory",
    "optimal_attack",
    "patients",
    "plots",
    "report",
    "scenario",
    "show_records",
    "simulate",
    "simulate_outsider",
    "training_risks",
    "worst_prior",
]

_HOME = {
    "optimal_attack": "attacks.optimal",
    "report": "show.report",
    "Ledger": "show.ledger",
    **{verb: f"verbs.{verb}" for verb in ("assess", "audit", "by_group", "calibrate", "compare")},
    **{verb: f"verbs.{verb}" for verb in ("least_error", "simulate", "worst_prior")},
    "simulate_outsider": "verbs.outsider",
    "audit_outputs": "verbs.audit.recorded",
    **dict.fromkeys(["training_risks", "TrainingRisk"], "training.risks"),
    **dict.fromkeys(["DpradError", "show_records"], "errors"),
    **dict.fromkeys(["Audit", "AuditInterrupt"], "model.audits"),
    **dict.fromkeys(["Group", "Groups"], "model.groups"),
    "Prior": "model.priors",
    "Threat": "model.threats",
    **dict.fromkeys(["Bound", "Calibration", "Risk", "WorstPrior"], "model.results"),
    "Comparison": "model.comparisons",
    **dict.fromkeys(
        ["ApproxDP", "GaussianDP", "Guarantee", "Profile", "PureDP", "RenyiDP"],
        "model.guarantees",
    ),
    **dict.fromkeys(["TotalVariation", "ZCDP"], "model.guarantees"),
}
_MODULES = {
    **{name: name for name in ("accounting", "attacks", "mechanisms")},
    **{name: f"data.{name}" for name in ("datasets", "patients")},
    "memory": "runtime.memory",
    **{name: f"show.{name}" for name in ("plots", "scenario")},
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"dprad.{_MODULES[name]}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"dprad.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dprad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
