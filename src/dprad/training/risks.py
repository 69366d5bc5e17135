"""What attackers gain from a private training, in every form, from one set of runs.

The posterior form (`exact.posterior`) and counted successes estimate the same RAD of the same
optimal attack; the first has a standard error several times smaller. Also reported: the paper's
rule, every bound of the table, and the paper's curve, which is not a bound (a replaced gradient
moves by twice the clipping norm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad import bounds
from dprad.attacks.counting import counted, interval_of, player
from dprad.attacks.optimal import best_attack
from dprad.errors import DpradError, argument, number, whole
from dprad.exact.posterior import brackets, expanded
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.model.priors import Prior
from dprad.model.results import Bound
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, FloatArray
from dprad.numerics.intervals import betting, clopper_pearson
from dprad.numerics.random import Seed, seed
from dprad.paper.attack import paper_attack
from dprad.training.mechanism import DPSGD

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRisk:
    """What one attacker gains.

    Attributes
    ----------
    knows
        What the attacker knows about the person.
    rad, error, interval
        Extra risk of the optimal attack, posterior form: estimate, standard error, interval.
    counted, counted_error, counted_interval
        The same attack, successes counted.
    success, success_interval
        How often it is right with the person in the data.
    rero, rero_interval
        How often the attack that maximises the success rate is right.
    paper_rule, paper_rule_interval
        Extra risk of the paper's rule, counted.
    paper_rule_success
        How often the paper's rule is right with the person in the data. It guesses more often than
        the attack with the largest extra risk, so it can be right more often.
    bound, bound_title
        The smallest valid bound; all of them are in `bounds`.
    paper_bound
        The paper's curve. Not a bound; None with sampling.
    trainings
        Number of runs behind these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> training = DPSGD(model=nn.Linear(4, 2), known=(x[:2], y[:2]), candidates=(x[2:], y[2:]),
    ...                  clip=1.0, sigma=2.0, steps=3, learning_rate=0.1)
    >>> risk = training_risks(training, trials=20)[0]
    >>> risk.knows, risk.trainings
    ('nothing', 20)

    """

    knows: Any
    rad: float
    error: float
    interval: Pair
    counted: float
    counted_error: float
    counted_interval: Pair
    success: float
    success_interval: Pair
    rero: float
    rero_interval: Pair
    paper_rule: float
    paper_rule_interval: Pair
    paper_rule_success: float
    bound: float
    bound_title: str
    bounds: tuple[Bound, ...]
    paper_bound: float | None
    trainings: int

    def to_dict(self) -> dict[str, Any]:
        """The risk as plain data.

        Returns
        -------
        dict
            Only numbers, strings, lists and dicts.

        """
        plain = {f: getattr(self, f) for f in self.__slots__ if f != "bounds"}
        return plain | {"bounds": [b.to_dict() for b in self.bounds]}

    def __str__(self) -> str:
        low, high = self.interval
        knows = self.knows if isinstance(self.knows, str) else ", ".join(self.knows)
        return (
            f"Knowing {knows}: extra risk {self.rad:.3f} ({low:.3f} to {high:.3f}), never above "
            f"{self.bound:.3f} ({self.bound_title})."
        )


def training_risks(
    mechanism: DPSGD,
    *,
    trials: int = 1000,
    prior: Prior | None = None,
    threats: Sequence[Threat] | Threat | None = None,
    query: Query | None = None,
    confidence: float = 0.95,
    rng: Seed = 0,
) -> list[TrainingRisk]:
    """Risks of several attackers on `DPSGD`, from the same trainings.

    Parameters
    ----------
    mechanism
        The training.
    trials
        Number of trainings to run; each draws its record from the prior.
    prior
        The candidates, numbered 0, 1, ... in a column `candidate` or in the only column. Default:
        all equally likely.
    threats
        One or more attackers. Default: they know nothing, the label, or everything.
    query
        What the mechanism reads from a record, as for `assess`.
    confidence
        Confidence level of the intervals, between 0 and 1.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.

    Returns
    -------
    list of TrainingRisk
        One per threat.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> training = DPSGD(model=nn.Linear(4, 2), known=(x[:2], y[:2]), candidates=(x[2:], y[2:]),
    ...                  clip=1.0, sigma=2.0, steps=3, learning_rate=0.1)
    >>> [risk.knows for risk in training_risks(training, trials=20)]
    ['nothing', ['label'], 'everything']

    """
    if not isinstance(mechanism, DPSGD):
        raise DpradError(f"training_risks is for DPSGD, but got a {type(mechanism).__name__}.")
    prior = mechanism.prior() if prior is None else prior
    if not isinstance(prior, Prior):
        raise DpradError(f"prior must be a dprad.Prior, but is {argument(prior)}.")
    if threats is None:
        label = [Threat(knows=["label"])] if "label" in prior.columns else []
        threats = (Threat(), *label, Threat(knows="everything"))
    several = (threats,) if isinstance(threats, Threat) else tuple(threats)
    if not several or not all(isinstance(t, Threat) for t in several):
        raise DpradError(
            "threats must be a list of dprad.Threat, with at least one, but is "
            f"{argument(threats)}."
        )
    n = whole(trials, "trials", low=2)
    level = number(confidence, "confidence", low=0, high=1)
    if prior.probabilities is None:
        raise DpradError(f"training_risks needs a table of records, but the prior is {prior.kind}.")
    read = mechanism.read(Question.of(prior, several[0], query))
    random = np.random.default_rng(seed(rng))
    records = random.choice(len(read), size=n, p=prior.probabilities)
    others = random.choice(len(read), size=n, p=prior.probabilities)
    outputs = mechanism.sample(read[records], random)
    return [
        _risk(mechanism, prior, threat, query, outputs, records, others, level, random)
        for threat in several
    ]


def _risk(
    mechanism: DPSGD,
    prior: Prior,
    threat: Threat,
    query: Query | None,
    outputs: FloatArray,
    records: Any,
    others: Any,
    level: float,
    random: np.random.Generator,
) -> TrainingRisk:
    question = Question.of(prior, threat, query)
    game, n = question.table("training_risks"), len(outputs)
    weight, points = game.at_values(mechanism.read(question), game.pi)
    log = mechanism.log_likelihood(expanded(outputs), points)
    gain, _, rero = brackets(game, weight, log)

    def count(attack: Any) -> tuple[BoolArray, FloatArray]:
        play = player(attack, question)
        return counted(play, game, outputs, records, random, lambda: others)[1:]

    right, luck = count(best_attack(mechanism, question))
    ruled = count(paper_attack(mechanism, prior=prior, threat=threat, query=query))
    table = bounds.evaluate(mechanism.guarantee, game)
    best, bound = bounds.least(table, "rad")
    paper = None
    if mechanism.sample_rate == 1:
        curve = bounds.evaluate(mechanism.paper_guarantee, game)
        forms = ("theorem-3", "theorem-3-finite") if game.nothing_known else ()
        theirs = ("theorem-1", *forms)
        paper = min(b.value for b in curve if b.name in theirs and b.value is not None)
    return TrainingRisk(
        knows=threat.describe()["knows"],
        rad=float(gain.mean()),
        error=float(gain.std(ddof=1) / np.sqrt(n)),
        interval=betting(gain, level),
        counted=float((right - luck).mean()),
        counted_error=float((right - luck).std(ddof=1) / np.sqrt(n)),
        counted_interval=interval_of(right, luck, game, level),
        success=float(right.mean()),
        success_interval=clopper_pearson(int(right.sum()), n, level),
        rero=float(rero.mean()),
        rero_interval=betting(rero, level),
        paper_rule=float((ruled[0] - ruled[1]).mean()),
        paper_rule_interval=interval_of(*ruled, game, level),
        paper_rule_success=float(ruled[0].mean()),
        bound=bound,
        bound_title=best.title,
        bounds=table,
        paper_bound=paper,
        trainings=n,
    )
