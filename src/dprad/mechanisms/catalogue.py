"""Mechanisms and promises by their short names, as the command line, files and the page use them.

A name and a few numbers make a mechanism; what it reads of the records (how many values, their
range) is filled in from the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dprad.errors import DpradError, one_of

if TYPE_CHECKING:
    from dprad.game.reading import Query
    from dprad.model.priors import Prior
    from dprad.model.threats import Threat


@dataclass(frozen=True, slots=True)
class Family:
    """A class of `dprad.mechanisms`, what it takes (first: how much noise), and plain words."""

    kind: str
    takes: tuple[str, ...]
    title: str
    reads: str  # "codes", "numbers" or "range"

    @property
    def noise(self) -> str:
        """The parameter that says how much noise."""
        return self.takes[0]


_NOISY = ("epsilon", "sensitivity", "clamp")
_SPREAD = ("sigma", "sensitivity", "clamp")
FAMILIES = {
    "grr": Family("GRR", ("epsilon", "delta"), "randomised response", "codes"),
    "oue": Family("OUE", ("epsilon",), "optimal unary encoding", "codes"),
    "sue": Family("SUE", ("epsilon", "delta"), "symmetric unary encoding", "codes"),
    "subset": Family("SubsetSelection", ("epsilon",), "subset selection", "codes"),
    "olh": Family("OLH", ("epsilon", "delta"), "optimal local hashing", "codes"),
    "blh": Family("BLH", ("epsilon", "delta"), "binary local hashing", "codes"),
    "hadamard": Family("HadamardResponse", ("epsilon",), "Hadamard response", "codes"),
    "the": Family("THE", ("epsilon",), "thresholded histogram encoding", "codes"),
    "she": Family("SHE", ("epsilon",), "summed histogram encoding", "codes"),
    "laplace": Family("Laplace", _NOISY, "Laplace noise", "numbers"),
    "geometric": Family("Geometric", _NOISY, "geometric noise", "numbers"),
    "staircase": Family("Staircase", _NOISY, "staircase noise", "numbers"),
    "gaussian": Family("Gaussian", _SPREAD, "Gaussian noise", "numbers"),
    "discrete-gaussian": Family("DiscreteGaussian", _SPREAD, "discrete Gaussian noise", "numbers"),
    "duchi": Family("Duchi", ("epsilon",), "Duchi's report", "range"),
    "piecewise": Family("Piecewise", ("epsilon",), "piecewise report", "range"),
    "hybrid": Family("Hybrid", ("epsilon",), "hybrid report", "range"),
    "exponential": Family("ExponentialInterval", ("epsilon",), "exponential mechanism", "range"),
}
# What a promise is made of, and the class.
PROMISES = {"epsilon": "PureDP", "mu": "GaussianDP", "tv": "TotalVariation"}


def parts(
    name: str, given: dict[str, Any], prior: Prior, threat: Threat, query: Query | None = None
) -> tuple[Any, dict[str, Any]]:
    """The class and its arguments: those given, and what the records tell."""
    from dprad import mechanisms
    from dprad.game.reading import columns_read
    from dprad.model.threats import target_values

    family = FAMILIES[one_of(name, "mechanism", FAMILIES)]
    chosen = {k: v for k, v in given.items() if v is not None}
    for key in chosen:
        one_of(key, f"a parameter of {name}", family.takes)
    if prior.kind != "finite":
        raise DpradError(f"{name} needs a population: a table, counts or equally likely values.")
    values = target_values(prior, columns_read(prior, threat, query))[1]
    numeric = values.dtype.kind in "if"
    if family.reads != "codes" and not numeric:
        raise DpradError(f"{name} adds noise to a number, but what it reads here is text.")
    if family.reads == "codes":
        chosen["size"] = len(values)
    elif family.reads == "range":
        if len(values) > 1:
            chosen["bounds"] = (float(values[0]), float(values[-1]))
    elif "sensitivity" not in chosen:
        chosen["sensitivity"] = float(values[-1] - values[0]) or 1.0
    return getattr(mechanisms, family.kind), chosen


def promise(given: dict[str, Any]) -> Any:
    """A guarantee from epsilon (and delta), mu or tv, and the neighbours."""
    import dprad

    chosen = {k: v for k, v in given.items() if v is not None}
    where = chosen.pop("neighbours", "")
    named = [k for k in PROMISES if k in chosen]
    if len(named) != 1:
        what = " and ".join(named) if named else "none"
        raise DpradError(f"a promise is one of epsilon, mu and tv, but got {what}.")
    if "delta" in chosen and named == ["epsilon"]:
        return dprad.ApproxDP(chosen["epsilon"], chosen["delta"], neighbours=where)
    if "delta" in chosen:
        raise DpradError(f"delta goes with epsilon, not with {named[0]}.")
    return getattr(dprad, PROMISES[named[0]])(chosen[named[0]], neighbours=where)
