"""Opacus: the history of a PrivacyEngine (or its accountant) as a guarantee.

Opacus counts steps as if batches were drawn by Poisson sampling, with add-remove neighbours; its
own epsilon, by RDP or PRV, is one point of the curve read here. The history does not say how
batches were drawn: a loader that shuffles (``poisson_sampling=False``, or the loader from before
`make_private`) promises less. The guarantee then has a doubt, and no gate accepts it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from dprad.errors import DpradError, whole
from dprad.model.guarantees import Guarantee
from dprad.training.guarantee import dpsgd

POISSON = "poisson"
ROUNDING = 1e-9
UNKNOWN = (
    "The accountant assumes Poisson sampling, but how the batches were drawn is not known; with "
    "other batches the risk can be higher than this bound. Pass the loader of the training: "
    "from_opacus(engine, loader=loader)."
)
SHUFFLED = (
    "The accountant assumes Poisson sampling, but the loader does not draw batches that way, so "
    "the risk can be higher than this bound. Train with the loader that make_private returns, "
    "with poisson_sampling=True."
)
OTHER_RATE = (
    "The loader does not draw records at the rate that the accountant counted, so the risk can be "
    "higher than this bound. Pass the loader that the training iterated over."
)
SAMPLERS = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")


def from_opacus(engine: Any, *, loader: Any = None) -> Guarantee:
    """The guarantee of a training with Opacus.

    Parameters
    ----------
    engine
        A PrivacyEngine, an accountant, or a history ``[(noise_multiplier, rate, steps)]``.
    loader
        The loader that the training iterated over, or ``"poisson"`` if you know that it sampled so.
        Without it, or with one that shuffles or has another rate, the guarantee is doubtful:
        results say so, and no limit counts as kept. Not needed for full batches.

    Returns
    -------
    Guarantee
        Add-remove.

    Examples
    --------
    >>> history = [(1.0, 0.01, 500), (1.5, 0.01, 500)]
    >>> promise = from_opacus(history, loader="poisson")
    >>> promise.neighbours, promise.doubts
    ('add-remove', ())
    >>> len(from_opacus(history).doubts)         # how the batches were drawn is not known
    1

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
    promise = promises[0].compose(*promises[1:]) if len(promises) > 1 else promises[0]
    doubts = _doubts(loader, {rate for _, rate in total})
    return promise if all(rate == 1 for _, rate in total) else promise.doubted(*doubts)


def _doubts(loader: Any, rates: set[float]) -> tuple[str, ...]:
    """Why Poisson sampling at the counted rates is not certain."""
    if loader is None:
        return (UNKNOWN,)
    if isinstance(loader, str):
        if loader != POISSON:
            raise DpradError(f"loader must be a data loader or 'poisson', but is {loader!r}.")
        return ()
    if not hasattr(loader, "batch_sampler"):
        raise DpradError(
            f"loader must be a data loader or 'poisson', but is a {type(loader).__name__}."
        )
    drawn = loader.batch_sampler
    # BatchMemoryManager splits the batches of another sampler
    while type(drawn).__name__ == "BatchSplittingSampler":
        drawn = drawn.sampler
    theirs = sys.modules.get("opacus.utils.uniform_sampler")
    if type(drawn) not in [getattr(theirs, name, None) for name in SAMPLERS]:
        return (SHUFFLED,)
    # Opacus counts at one over the batches of an epoch, a number rounded down
    counted = {float(drawn.sample_rate), 1 / max(1, len(drawn))}
    least = drawn.sample_rate * (1 - ROUNDING)
    same = all(
        rate >= least and any(math.isclose(rate, own, rel_tol=ROUNDING) for own in counted)
        for rate in rates - {1.0}
    )
    return () if same else (OTHER_RATE,)
