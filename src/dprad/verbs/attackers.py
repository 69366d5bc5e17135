"""The attackers that are asked about where none is named: from a stranger to an insider."""

from __future__ import annotations

from collections.abc import Sequence

from dprad.errors import DpradError, column
from dprad.model.priors import Prior
from dprad.model.threats import Threat

# Most columns for which attackers are made.
MOST = 40
STRANGER = "a stranger who guesses the whole record"
INSIDER = "someone who has the whole record and asks whether it was used"


def standard(prior: Prior, sensitive: Sequence[str] | None = None) -> list[tuple[str, Threat]]:
    """A stranger; for each sensitive column (default: all), who guesses it knowing nothing and
    knowing everything else; and somebody with the whole record.
    """
    ends = [(STRANGER, Threat()), (INSIDER, Threat(knows="everything"))]
    if prior.kind != "finite" or len(prior.columns) == 1:
        return ends
    columns = [column(c, prior.columns, name="sensitive") for c in sensitive or prior.columns]
    if len(columns) > MOST:
        raise DpradError(
            f"there are {len(columns)} columns: name those that are sensitive (at most {MOST}), "
            "or the attackers."
        )
    own: list[tuple[str, Threat]] = []
    for name in columns:
        others = [c for c in prior.columns if c != name]
        own.append((f"a stranger who guesses {name}", Threat(target=[name])))
        knows = Threat(knows=others, target=[name])
        own.append((f"someone who knows all but {name} and guesses it", knows))
    return [ends[0], *own, ends[1]]
