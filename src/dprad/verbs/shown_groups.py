"""Groups as others may see them: of ten people or more, numbers in rounded bands, records by place.

`by_group` names what it was asked for, which in a file of people may be the value of one of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from dprad.data.tables import codes
from dprad.errors import column
from dprad.exact import Sampling
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.model.groups import Groups
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.verbs.by_group import BANDS, VALUES, asked_by, each_record

# Fewest people of a group that is named, and what the others are called.
PEOPLE, OTHERS = 10, "others"
FEW = "Groups of fewer than ten people are not named."
NOT_COUNTED = "Groups are not named: how many people are in them is not known."


def shown_groups(
    subject: Any, *, prior: Prior, threat: Threat, query: Query | None, by: str, people: float
) -> Groups:
    """`by_group` for a table counted from so many people (0: not known), without anybody's values.

    Groups of fewer than ten people are one, "others", which is left out if it is small itself.
    """
    question = Question.of(prior, threat, query)
    if by == "record" and "record" not in prior.columns:
        return each_record(subject, question, Sampling(), lambda place: f"number {place + 1:,}")
    values = prior.column(column(by, prior.columns, name="by"))
    names, label = rounded(values, prior.table, people)
    kept = large(label, prior.table, people)
    few = np.count_nonzero(np.bincount(label, weights=prior.table)) > len(kept)
    names, label = merged(names, label, kept)
    table = asked_by(subject, question, Sampling(), names, label)
    if not few:
        return table
    named = [group for group in table if group.name is not OTHERS]
    rest = 1.0 - math.fsum(group.share for group in named)
    groups = table.groups if rest * people >= PEOPLE - 1e-6 else tuple(named)
    return replace(table, groups=groups, note=FEW if people else NOT_COUNTED)


def large(label: IntArray, pi: FloatArray, people: float) -> IntArray:
    """The groups of ten people or more."""
    return np.flatnonzero(np.bincount(label, weights=pi) * people >= PEOPLE - 1e-6)


def merged(names: list[Any], label: IntArray, chosen: IntArray) -> tuple[list[Any], IntArray]:
    """The chosen groups, and all others as one more, the last."""
    place = np.full(len(names), len(chosen))
    place[chosen] = np.arange(len(chosen))
    return [*(names[k] for k in chosen), OTHERS], place[label]


def rounded(values: Column, pi: FloatArray, people: float) -> tuple[list[Any], IntArray]:
    """Values as groups; numbers with many values in bands, at most ten and of about twenty people
    or more, between rounded numbers. The first and the last have no outer end.
    """
    code, distinct = codes(values)
    if len(distinct) <= VALUES or distinct.dtype.kind not in "iuf":
        return distinct.tolist(), code
    upto = np.cumsum(np.bincount(code, weights=pi, minlength=len(distinct)))
    bands = max(1, int(min(BANDS, people // (2 * PEOPLE))))

    def quantile(share: Any) -> FloatArray:
        at = np.minimum(np.searchsorted(upto, share), len(distinct) - 1)
        return np.asarray(distinct[at], dtype=float)

    low, high = quantile([0.1, 0.9])
    if not 0 < high - low < math.inf:
        return [OTHERS], np.zeros_like(code)
    digits = -math.floor(math.log10((high - low) / bands))
    cuts = sorted({round(float(cut), digits) for cut in quantile(np.arange(1, bands) / bands)})
    texts = [f"{cut:.{max(digits, 0)}f}" if abs(cut) < 1e15 else f"{cut:g}" for cut in cuts]
    if not texts:
        return [OTHERS], np.zeros_like(code)
    inner = [f"{a} to below {b}" for a, b in itertools.pairwise(texts)]
    names = [f"below {texts[0]}", *inner, f"{texts[-1]} or more"]
    return names, np.searchsorted(cuts, distinct, side="right")[code]
