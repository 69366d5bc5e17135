"""Opacus: the history of a PrivacyEngine (or its accountant) as a guarantee.

Opacus counts steps with Poisson sampling and add-remove neighbours; its own epsilon, by RDP or PRV,
is one point of the curve read here.
"""

from __future__ import annotations

from typing import Any

from dprad.errors import DpradError, whole
from dprad.model.guarantees import Guarantee
from dprad.training.guarantee import dpsgd


def from_opacus(engine: Any) -> Guarantee:
    """The guarantee of a training with Opacus.

    Parameters
    ----------
    engine
        A PrivacyEngine, an accountant, or a history ``[(noise_multiplier, rate, steps)]``.

    Returns
    -------
    Guarantee
        Add-remove.

    Examples
    --------
    >>> promise = from_opacus([(1.0, 0.01, 500), (1.5, 0.01, 500)])
    >>> promise.neighbours
    'add-remove'

    """
    accountant = getattr(engine, "accountant", engine)
    history = getattr(accountant, "history", accountant)
    try:
        parts = [(float(sigma), float(rate), steps) for sigma, rate, steps in history]
    except (TypeError, ValueError):
        raise DpradError(
            "from_opacus takes a PrivacyEngine, an accountant or its history, but got a "
            f"{type(engine).__name__}."
        ) from None
    if not parts:
        raise DpradError("the history is empty: no step was taken yet.")
    # equal steps are grouped, whatever their order
    total: dict[tuple[float, float], int] = {}
    for sigma, rate, steps in parts:
        total[sigma, rate] = total.get((sigma, rate), 0) + whole(steps, "steps", low=1)
    promises = [dpsgd(noise_multiplier=s, sample_rate=r, steps=n) for (s, r), n in total.items()]
    return promises[0].compose(*promises[1:]) if len(promises) > 1 else promises[0]
