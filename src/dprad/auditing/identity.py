"""Which audit a state file belongs to: everything that makes two audits the same, as plain data."""

from __future__ import annotations

import hashlib
from typing import Any

from dprad.arrays import Column
from dprad.games import Game
from dprad.guarantees import Guarantee
from dprad.mechanisms.black_box import BlackBox
from dprad.priors import Prior
from dprad.threats import Threat


def key(
    subject: Any,
    claim: Guarantee,
    prior: Prior,
    threat: Threat,
    game: Game,
    read: Column,
    trials: int,
    confidence: float,
    sequential: bool,
    seed: int,
    told: dict[str, Any],
) -> dict[str, Any]:
    """What makes two audits the same, as plain data."""
    assert prior.probabilities is not None and prior.support is not None
    assert game.fiber_of is not None and game.luck is not None and game.target_of is not None
    tables = [prior.support, prior.probabilities, read, game.fiber_of, game.target_of, game.luck]
    plain = repr([t.tolist() for t in tables]).encode()
    return {
        "format": 1,
        "subject": _identity(subject),
        "claim": claim.describe(),
        "game": hashlib.sha256(plain).hexdigest()[:16],
        "threat": threat.describe(),
        "trials": trials,
        "confidence": confidence,
        "sequential": sequential,
        "rng": seed,
        **{name: _identity(value) for name, value in told.items()},
    }


def _identity(thing: Any) -> str:
    """A name and a digest: of the parameters of a mechanism, of the code of a function."""
    if thing is None or isinstance(thing, str | bool | int | float | list | tuple):
        return repr(thing)
    if isinstance(thing, BlackBox):
        return _identity(thing.run)
    if hasattr(thing, "describe"):
        return repr(thing.describe())
    code = getattr(thing, "__code__", None)
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    if code is None:
        return str(name)
    inside = [code.co_code, repr(code.co_consts), repr(code.co_names)]
    digest = hashlib.sha256(repr(inside).encode()).hexdigest()[:16]
    return f"{name} {digest}"
