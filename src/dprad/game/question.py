"""Question: a prior, a threat and a query, prepared once and used for many subjects.

Every verb makes one and passes it on; no other code prepares a game.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dprad.errors import DpradError
from dprad.game.around import Around
from dprad.game.game import Classes, Even, Game, Table, listed, play
from dprad.game.query import (
    Query,
    codes_read,
    numbers_as_they_are,
    numbers_needed,
    numbers_of,
    records_read,
    values_read,
)
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.arrays import Column, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The question to a mechanism or a guarantee. Build it with `Question.of`."""

    prior: Prior
    threat: Threat
    query: Query | None
    game: Game

    @classmethod
    def of(cls, prior: Prior, threat: Threat | None = None, query: Query | None = None) -> Question:
        """Prepare the game. O(m log m), plus the size of the success relation."""
        threat = Threat() if threat is None else threat
        return cls(prior, threat, query, play(prior, threat))

    @property
    def listed(self) -> Question:
        """The same with all classes and sets of a finite game; itself unless something was only
        counted.
        """
        if not isinstance(self.game, Even) and not self.passed:
            return self
        return replace(self, game=listed(self.prior, self.threat))

    @property
    def passed(self) -> bool:
        """Whether pairs of near places are too many to be listed: they are only passed by."""
        return isinstance(self.game, Classes) and isinstance(self.game.sets, Around)

    def table(self, who: str) -> Table:
        """The finite game; a `DpradError` that names `who` if there is none."""
        game = self.listed.game
        if not isinstance(game, Table):
            raise DpradError(
                f"{who} needs a prior that is a table of records, but the prior is "
                f"{self.prior.kind}."
            )
        if self.threat.group is not None:
            raise DpradError(f"{who} asks about everybody: leave out the group of the threat.")
        return game

    @property
    def labels(self) -> Column | None:
        """What the attacker knows about each record, as values; None if nothing."""
        return self.threat.known(self.prior)

    def codes(self, size: int, name: str) -> IntArray:
        """The category code, 0 .. size-1, that a mechanism called `name` reads from each record."""
        return codes_read(self.prior, self.threat, self.query, size, name)

    def values(self) -> list[Any]:
        """The value that a mechanism reads from each record."""
        return values_read(self.prior, self.threat, self.query)

    def records(self) -> Column:
        """What a function is called with for each record: a value, or a tuple of columns."""
        return records_read(self.prior, self.threat, self.query)

    def numerical(self, name: str) -> Sequence[Any] | Column:
        """The same for a mechanism called `name` that reads numbers; refused if they are text."""
        plain = numbers_as_they_are(self.prior, self.threat, self.query)
        if plain is not None:
            return plain
        values = self.values()
        numbers_needed(values, self.prior, self.threat, self.query, name)
        return values

    def numbers(self, column: str, size: int, name: str) -> IntArray:
        """The numbers 0 .. size-1 that a column holds, unchanged."""
        return numbers_of(column, size, name, self.prior, self.query)

    def describe(self) -> dict[str, Any]:
        """The threat as plain data, for output."""
        return self.threat.describe(self.prior.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A question as a solver needs it: classes of records, and what is read from each record."""

    game: Classes
    read: Column

    @property
    def pi(self) -> FloatArray:
        """The probability of each record."""
        return self.game.pi
