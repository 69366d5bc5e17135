"""The paper's rule against DP-SGD (its Algorithm 2), as published: for comparison.

It guesses the candidate whose gradients correlate best with what was seen, if that beats the mean
over all candidates. It drops the norms of the gradients and uses a mean of logarithms instead of
the logarithm of a mean, so it is not the optimal attack; `dprad.optimal_attack` is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.training.mechanism import DPSGD


def paper_attack(
    mechanism: DPSGD, *, prior: Prior, threat: Threat | None = None, query: Query | None = None
) -> Callable[..., Any]:
    """The attack of the paper on outputs of `DPSGD`.

    Parameters
    ----------
    mechanism
        A `DPSGD` mechanism.
    prior
        The population, as for `assess`.
    threat
        The attacker, as for `assess`.
    query
        What the mechanism reads from a record, as for `assess`.

    Returns
    -------
    callable
        ``guesses = attack(outputs, known)``; None is a pass.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> training = DPSGD(model=nn.Linear(4, 2), known=(x[:2], y[:2]), candidates=(x[2:], y[2:]),
    ...                  clip=1.0, sigma=2.0, steps=3, learning_rate=0.1)
    >>> attack = paper_attack(training, prior=Prior.uniform(2))
    >>> len(attack(training.sample([0, 1], np.random.default_rng(0))))
    2

    """
    if not isinstance(mechanism, DPSGD):
        raise DpradError(f"paper_attack is for DPSGD, but got a {type(mechanism).__name__}.")
    question = Question.of(prior, threat, query)
    game = question.table("paper_attack")
    read = mechanism.read(question)
    pi, values = game.pi, game.guesses.tolist()
    guess_of = [values[g] for g in game.target_of]
    labels = question.labels
    alike: dict[Any, list[int]] = {}
    for z, label in enumerate([None] * len(read) if labels is None else labels.tolist()):
        alike.setdefault(label, []).append(z)

    def attack(outputs: Any, known: Any = None) -> list[Any]:
        correlation = np.asarray(outputs)[:, 1, :]
        score = (correlation - correlation.mean(axis=1, keepdims=True))[:, read]
        if (known is None) != (labels is None):
            what = "left out: this attacker knows nothing" if labels is None else "given"
            raise DpradError(f"known must be {what}.")
        given = [None] * len(score) if known is None else np.asarray(known).tolist()
        guesses: list[Any] = []
        for row, label in zip(score, given, strict=True):
            records = alike[label]
            best = max(records, key=lambda z: row[z] * pi[z])
            guesses.append(guess_of[best] if row[best] > 0 else None)
        return guesses

    return attack
