"""Doubts about a guarantee: sentences that say why it may not hold as stated.

They travel: what is composed, repeated or converted from a doubtful guarantee is doubtful, every
result says why, and no gate accepts it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Self

from dprad.errors import DpradError, is_line

# The longest doubt.
LONGEST = 2000


@dataclass(frozen=True)
class Doubtful:
    """What may be doubted."""

    doubts: tuple[str, ...] = field(default=(), init=False)

    def doubted(self, *sentences: str) -> Self:
        """The same guarantee with further doubts, each of them once.

        Parameters
        ----------
        *sentences
            Why the guarantee may not hold as stated.

        Returns
        -------
        Guarantee
            Itself, if nothing is new.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one").doubted("The seed was published.")
        >>> promise.repeated(2).doubts
        ('The seed was published.',)

        """
        for sentence in sentences:
            if not is_line(sentence, LONGEST):
                raise DpradError("a doubt must be one line of printable text, without wide gaps.")
        doubts = tuple(dict.fromkeys([*self.doubts, *sentences]))
        if doubts == self.doubts:
            return self
        made = copy.copy(self)
        object.__setattr__(made, "doubts", doubts)
        return made
