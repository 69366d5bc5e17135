"""A registry entry from a scenario: what the scenario knows, and what is left to fill in."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from dprad.errors import DpradError
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.catalogue import FAMILIES
from dprad.model.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from dprad.show.atlas.schema import Entry, check
from dprad.show.ranges import PUBLIC
from dprad.show.scenario import Scenario
from dprad.show.scenario.release import Release

OPEN = "To be filled in"
# Where a mixed promise is stated.
DELTA = 1e-6
UNITS = {
    "replace-one": "Adjacent data sets differ by one replaced record (change-one distance 1).",
    "add-remove": "Adjacent data sets differ by the addition or removal of one record (symmetric "
    "distance 1).",
    "unknown": "It is not stated which data sets are adjacent.",
}


def exported(scenario: Scenario, day: date) -> Entry:
    """The entry, with the promise of all releases together; what a scenario does not tell is
    marked as to be filled in.
    """
    promises = _promises(scenario)
    variant, numbers, said = _stated(promises)
    together = promises[0].compose(*promises[1:])
    kinds = [r.mechanism or "promise" for r in scenario.releases]
    records = max(int(r.units.get("people", 1)) for r in scenario.releases)
    many = f"{len(kinds)} releases, composed" if len(kinds) > 1 else "One release"
    entry: Entry = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", scenario.title.lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": scenario.title,
                "data_curators": [OPEN],
                "intended_use": OPEN,
                "data_product_type": "Summary statistics",
                "data_product_region": OPEN,
                "description": OPEN,
                "publication_date": day.isoformat(),
            },
            "dp_variant": {"variant_name": variant},
            "privacy_loss": {
                "privacy_unit": "Record-level" if records == 1 else f"{records} records",
                "privacy_unit_details": UNITS[together.neighbours] if records == 1 else OPEN,
                "privacy_parameters": numbers,
                "privacy_parameters_details": said,
            },
            "deployment_model": {"release_type": "One release", "access_type": "Non-interactive"},
            "accounting": {"composition": f"{many}."},
            "implementation": {"mechanisms": ", ".join(kinds)},
            "administrative": {
                "registry_authors": [OPEN],
                "notes": "Written by dprad from a scenario; check every field.",
            },
        },
    }
    doubts = [d for p in promises for d in p.doubts]
    if doubts:
        entry["deployment"]["administrative"]["notes"] += f" Doubtful: {' '.join(doubts)}"
    assert not check(entry)
    return entry


def _promises(scenario: Scenario) -> list[Guarantee]:
    (_, threat), prior = scenario.threats[0], scenario.prior
    found = []
    for release in scenario.releases:
        _check_range(release, scenario)
        subject = release.subject(prior, threat)
        promise = subject.guarantee if isinstance(subject, Mechanism) else subject
        if promise is None:
            raise DpradError(f"{release.name} promises nothing, so there is nothing to register.")
        found.append(promise)
    alike = len({p.neighbours for p in found}) == 1
    return found if alike else [p.replace_one() for p in found]


def _check_range(release: Release, scenario: Scenario) -> None:
    """Refuse noise that is set by the range of the data: the entry would tell it, and the next data
    set may exceed it.
    """
    if release.mechanism not in FAMILIES or PUBLIC & scenario.population.keys():
        return
    ranged = {"sensitivity", "bounds"} & set(FAMILIES[release.mechanism].__annotations__)
    if ranged and not ranged & release.numbers.keys():
        raise DpradError(
            f"{release.name} has no {ranged.pop()}, so the range of the data sets its noise: an "
            "entry would publish it. Give one that holds whatever the data, and clamp to it."
        )


def _rho(promise: ZCDP | GaussianDP) -> float:
    return promise.rho if isinstance(promise, ZCDP) else promise.mu**2 / 2


def _stated(promises: Sequence[Guarantee]) -> tuple[str, dict[str, Any], str]:
    """Variant, parameters and how they were found: sums where there are, else at one delta."""
    neighbours = promises[0].neighbours
    if all(isinstance(p, PureDP) for p in promises):
        total = sum(p.point[0] for p in promises if p.point is not None)
        return "Pure DP", {"epsilon": float(total)}, f"Sum of epsilons; {neighbours}."
    if all(isinstance(p, ZCDP | GaussianDP) for p in promises):
        spent = [_rho(p) for p in promises if isinstance(p, ZCDP | GaussianDP)]
        rho = math.fsum(spent)
        gaussian = all(isinstance(p, GaussianDP) for p in promises)
        also = f" Gaussian DP with mu = {(2 * rho) ** 0.5:.6g}." if gaussian else ""
        return "Zero-concentrated DP", {"rho": float(rho)}, f"Sum of rhos; {neighbours}.{also}"
    if len(promises) == 1 and isinstance(promises[0], ApproxDP):
        epsilon, delta = promises[0].point
        return "Approximate DP", {"epsilon": epsilon, "delta": delta}, f"{neighbours}."
    composed = promises[0].compose(*promises[1:])
    epsilon = composed.epsilon_at(DELTA)
    if epsilon == float("inf"):
        raise DpradError(f"the releases together promise no epsilon at delta {DELTA:g}.")
    said = f"One point of a curve, rounded up; {neighbours}."
    return "Approximate DP", {"epsilon": epsilon, "delta": DELTA}, said
