"""Records that are all alike in what is guessed, or in what a release reads; and guesses that are
always right.

Nobody gains anything there, however little noise there is. The first rests on the sample: the next
person may differ. The second is no attack at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.mechanisms.tables.published import Published
from dprad.model.guarantees import Guarantee
from dprad.model.listing import Listed
from dprad.model.results import Risk
from dprad.numerics.arrays import Column, distinct

# A risk that counts as none.
NONE = 1e-12
NEVER_WRONG = (
    "This attacker is always right, without any release: the tolerance is as wide as the values. "
    "So the attacker gains nothing, whatever is published. Ask about a smaller tolerance."
)


def never_wrong(question: Question, risk: Risk) -> bool:
    """Whether the tolerance makes a blind guess right for everybody."""
    loss: Any = question.threat.loss
    exact = isinstance(loss, str) and loss == "exact"  # a matrix does not compare
    tolerant = not exact and not question.describe()["membership"]
    return tolerant and risk.baseline is not None and risk.baseline > 1.0 - NONE


def alike(subject: Any, question: Question, risk: Risk) -> str:
    """In what all records are alike, if that is why there is no risk; else empty. One reading."""
    prior = question.prior
    if risk.interval[1] > NONE or prior.whole or prior.doubt:
        return ""
    if not isinstance(prior.records, Listed):  # equally likely values differ
        return ""
    present, support = prior.table > 0, prior.records.support
    columns = question.threat.target_columns(prior)
    if all(_same(support[c] if len(prior.columns) > 1 else support, present) for c in columns):
        return "all records are alike in what is guessed"
    if isinstance(subject, Guarantee):
        return ""
    mechanism = as_mechanism(subject, "assess").prepared(question)
    if _reads(mechanism) and _same(np.asarray(mechanism.read(question)), present):
        return "all records are alike in what is read"
    return ""


def _same(values: Column, present: Any) -> bool:
    return len(distinct(values[present])[0]) == 1


def _reads(mechanism: Mechanism) -> bool:
    """Whether it reads anything: a table that counts everybody does not."""
    if not isinstance(mechanism, Published):
        return True
    source: Any = mechanism.source
    return any(t.by or t.of or t.where is not None for t in getattr(source, "tables", ()))
