"""What the runs of an audit say: counted bets on the question as asked, or a session.

Both add up chunk by chunk, can be written to a state file and read back, and give the wealth
against the claim, which refutes it above 1/alpha.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dprad.errors import DpradError
from dprad.verbs.audit import certificates
from dprad.verbs.audit.fingerprint import digest_of_outputs
from dprad.verbs.audit.session import Booked, Session
from dprad.verbs.audit.state import decode, encode
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.trials import Calls, Chunks, Job, packed


class Evidence(Protocol):
    """Chunks of runs, in order."""

    name: str

    @property
    def tally(self) -> Tally:
        """Runs, guesses and successes."""

    def add(self, part: Any) -> Any:
        """Add a chunk; what the state file keeps of it."""

    def stored(self, plain: Any, job: Job, chunks: Chunks, index: int) -> Any:
        """A chunk from a state file that may have been edited."""

    def log_wealth(self) -> float:
        """Log of the wealth against the claim."""

    def refuted(self, alpha: float, sequential: bool) -> float:
        """The epsilon below which the mechanism is refuted (with the delta of the claim)."""


@dataclass(slots=True)
class Counted:
    """A pure claim: bets with chances known beforehand."""

    epsilon: float
    tally: Tally = field(default_factory=Tally)
    name: str = "bets on guesses"

    def add(self, part: Any) -> Any:
        """Counts."""
        self.tally = self.tally + part
        if self.tally.bets is not None:
            self.name = "bets on sets of records"
        return part.to_plain()

    def stored(self, plain: Any, job: Job, chunks: Chunks, index: int) -> Any:  # noqa: ARG002
        """Counts that add up."""
        return Tally.checked(plain, chunks, index)

    def log_wealth(self) -> float:
        """Against the claimed epsilon."""
        return certificates.log_wealth(self.tally.staked, self.epsilon)

    def refuted(self, alpha: float, sequential: bool) -> float:
        """By counts."""
        return certificates.refuted(self.tally.staked, alpha, sequential)


@dataclass(slots=True)
class Learned:
    """Any claim: bets on two data sets, learned on the way."""

    session: Session
    delta: float
    name: str = "learned bets on two data sets"

    @property
    def tally(self) -> Tally:
        """Guesses of the second data set."""
        session = self.session
        groups = {0.5: (session.guesses, session.hits)} if session.guesses else {}
        return Tally(session.calls, session.calls - session.guesses, groups)

    def add(self, part: Calls) -> Any:
        """Outputs while there is something to learn, then counts only."""
        session = self.session
        if part.booked is not None and not session.learning:
            session.put(part.booked)
            plain: Any = {"booked": _plain(part.booked)}
        elif part.outputs is None:
            raise DpradError("the state file is damaged: outputs used for learning are missing.")
        elif session.learning:
            outputs = part.outputs
            session.take(outputs, part.records)
            plain = {"outputs": outputs} if part.booked is None else {"outputs": None}
        else:
            plain = {"booked": _plain(session.take(part.outputs, part.records))}
        return {**plain, "digest": part.digest}

    def stored(self, plain: Any, job: Job, chunks: Chunks, index: int) -> Any:
        """A chunk as it was written: outputs, or counts that add up."""
        try:
            size = chunks[index]
            records = job.secrets(index, size)
            if "outputs" in plain:
                outputs = packed(decode(plain["outputs"]))
                if len(outputs) != size or digest_of_outputs(outputs) != plain["digest"]:
                    raise ValueError
                return Calls(records, outputs, plain["digest"])
            calls, guesses, hits, added = plain["booked"]
            booked = Booked(int(calls), int(guesses), int(hits), [list(map(int, r)) for r in added])
            times = sum(sum(r[-2:]) for r in booked.added)
            sound = booked.calls == size and 0 <= booked.hits <= booked.guesses <= size
            if not sound or times not in (0, size) or any(x < 0 for r in added for x in r[-2:]):
                raise ValueError
            return Calls(records, None, str(plain["digest"]), booked)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
            message = f"the state file is damaged: chunk {index} does not add up."
            raise DpradError(message) from None

    def log_wealth(self) -> float:
        """The most there ever was: a claim once refuted stays refuted."""
        return self.session.best

    def refuted(self, alpha: float, sequential: bool) -> float:  # noqa: ARG002
        """By wealth."""
        return self.session.refuted(self.delta, alpha)


def _plain(booked: Booked) -> list[Any]:
    return [booked.calls, booked.guesses, booked.hits, booked.added]


def to_plain(kept: Any) -> Any:
    """What is written to the state file."""
    if isinstance(kept, dict) and "outputs" in kept:
        outputs = kept["outputs"]
        plain = isinstance(outputs, np.ndarray) and outputs.dtype.kind != "O"
        return {**kept, "outputs": encode(outputs if plain else list(outputs))}
    return kept
