"""Outputs of a function, in the form of the supposed mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.attacks.counting import Play
from dprad.errors import DpradError, told
from dprad.mechanisms.base import Mechanism
from dprad.numerics.arrays import Column


def translated(play: Play, mechanism: Mechanism, support: Column | None) -> Play:
    """The attack on a model takes what the model returns: codes, or packed bits.

    `support` is None if outputs have this form, as those of another mechanism should.
    """

    def played(outputs: Any, records: Any, rng: np.random.Generator) -> Any:
        known = outputs if support is None else mechanism.understood(outputs, support)
        try:
            known = mechanism.checked(outputs) if support is None else known
            return play(known, records, rng)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            why = "" if isinstance(error, DpradError) else f" ({told(error)})"
            raise DpradError(
                f"run does not return what a {mechanism.describe()['kind']} does{why}. Give the "
                "right model, or none."
            ) from None

    return played
