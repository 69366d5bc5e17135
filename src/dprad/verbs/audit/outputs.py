"""Outputs of a function, in the form of the supposed mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.attacks.counting import Play
from dprad.errors import DpradError, told
from dprad.mechanisms.base import Mechanism
from dprad.numerics.arrays import Column


def translated(play: Play, mechanism: Mechanism, support: Column) -> Play:
    """The attack on a model takes what the model returns: codes, or packed bits."""

    def played(outputs: Any, records: Any, rng: np.random.Generator) -> Any:
        known = mechanism.understood(outputs, support)
        try:
            return play(known, records, rng)
        except (IndexError, TypeError, ValueError) as error:
            raise DpradError(
                f"run does not return what a {type(mechanism).__name__} does ({told(error)}). Give "
                "the right model, or none."
            ) from None

    return played
