"""by_group: who is exposed most? The average over everybody hides it.

The risk of a group is that of a target drawn from it, while who takes the place of one who is
absent is drawn from everybody (Proposition I). A prior of the group alone would be another
question: with one value left there is nothing to guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dprad.data.tables import array, codes, joint_codes
from dprad.errors import DpradError, column, flat, told
from dprad.exact import Sampling
from dprad.exact.likelihood import remembered
from dprad.game.game import Classes
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.foreign import as_mechanism
from dprad.model.groups import Group, Groups
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Risk
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray, complements
from dprad.numerics.random import Seed
from dprad.runtime.memory import limit
from dprad.runtime.progress import steps
from dprad.verbs.assess import answer, own_of, sampled

By = str | Sequence[str] | Callable[[Column], Sequence[Any]]
# A numeric column with more values than this is cut into bands of about equal shares.
VALUES, BANDS = 25, 10
# Most groups: each is a question of its own. Most records that are listed.
MOST = 1_000


@remembered()
def by_group(
    subject: Any,
    *,
    prior: Prior,
    threat: Threat | None = None,
    by: By,
    query: Query | None = None,
    trials: int = 20_000,
    confidence: float = 0.95,
    rng: Seed = 0,
    memory: float | str | None = None,
) -> Groups:
    """The extra risk of each group of people, most exposed first.

    Parameters
    ----------
    subject
        A guarantee (bounds) or a mechanism (exact risks), as for `assess`.
    prior
        The population: a table of records.
    threat
        The attacker, as for `assess`.
    by
        A column (numbers in bands if they take many values), several columns, a callable that takes
        the support of the prior and returns one label per record, or ``"record"``: every record by
        itself, which does not depend on the attacker.
    query
        What the mechanism reads from a record, as for `assess`.
    trials, confidence, rng, memory
        As for `assess`.

    Returns
    -------
    Groups
        One `Group` for each, with its share of the population and its risk.

    Examples
    --------
    Randomised response reveals more about who is rare:

    >>> import dprad
    >>> prior = dprad.Prior.from_counts({"healthy": 90, "ill": 10})
    >>> table = dprad.by_group(dprad.mechanisms.GRR(epsilon=1.0, size=2), prior=prior, by="record")
    >>> [(group.name, round(group.rad, 3)) for group in table]
    [('ill', 0.416), ('healthy', 0.046)]

    """
    sampling = sampled(trials, confidence, rng)
    asked = Threat() if threat is None else threat
    if asked.group is not None:
        raise DpradError("by_group asks about every group: leave out the group of the threat.")
    with limit(memory):
        question = Question.of(prior, asked, query).listed
        if not isinstance(question.game, Classes):
            raise DpradError(
                f"by_group needs a prior that is a table of records, but it is {prior.kind}."
            )
        if isinstance(by, str) and by == "record" and "record" not in prior.columns:
            assert prior.support is not None
            return each_record(subject, question, sampling, prior.support.tolist().__getitem__)
        names, label = _labels(prior, by)
        return asked_by(subject, question, sampling, names, label)


def asked_by(
    subject: Any, question: Question, sampling: Sampling, names: list[Any], label: IntArray
) -> Groups:
    """Groups by a label per record."""
    pi = question.prior.table
    share = np.bincount(label, weights=pi, minlength=len(names))
    if np.count_nonzero(share) > MOST:
        raise DpradError(
            f"by_group takes at most {MOST:,} groups, but there are {np.count_nonzero(share):,}. "
            "Name another column, or by='record'."
        )
    overall = answer(subject, question, sampling)
    groups = []
    present = np.flatnonzero(share > 0)
    for g in steps("groups", present.tolist()):
        threat = replace(question.threat, group=_member(label == g))
        posed = Question.of(question.prior, threat, question.query)
        risk = answer(subject, posed, sampling)
        name = flat(names[g]) if isinstance(names[g], str) else names[g]
        groups.append(_group(name, float(share[g]), risk))
    groups.sort(key=lambda group: -group.interval[1])
    return Groups(groups=tuple(groups), overall=overall, method=overall.method)


def _member(inside: BoolArray) -> Callable[[Column], Any]:
    return lambda _: inside


def _group(name: Any, share: float, risk: Risk) -> Group:
    assert risk.worst is not None
    return Group(
        name=name, share=share, rad=risk.rad, interval=risk.interval, kind=risk.kind,
        success_in=risk.success_in, success_out=risk.success_out, worst=risk.worst,
    )  # fmt: skip


def each_record(
    subject: Any, question: Question, sampling: Sampling, named: Callable[[int], Any]
) -> Groups:
    """Every record by itself, named by its place (from 0): O(m), but for what is computed once for
    each value that is read.
    """
    overall = answer(subject, question, sampling)
    pi = question.prior.table
    kept = np.flatnonzero(pi > 0)
    low: FloatArray
    if isinstance(subject, Guarantee):
        high: FloatArray = subject.replace_one().tv * complements(pi)[kept]
        rad, low, kind = high, np.zeros(len(kept)), "upper-bound"
    else:
        run = as_mechanism(subject, "by_group").prepared(question)
        own = own_of(run, question, sampling)
        place = own.place[kept]
        rad, high, kind = own.rad[place], own.high[place], own.kind
        low = own.low[place] * (kind != "upper-bound")
    order = np.argsort(-high, kind="stable")[:MOST]
    names = [named(int(place)) for place in kept[order]]
    groups = tuple(
        Group(
            name=name, share=float(pi[kept[i]]), rad=float(rad[i]),
            interval=(float(low[i]), float(high[i])), kind=kind, success_in=None, success_out=None,
            worst=float(rad[i]),
        )
        for i, name in zip(order, names, strict=True)
    )  # fmt: skip
    return Groups(groups=groups, overall=overall, method="Proposition I")


def _labels(prior: Prior, by: By) -> tuple[list[Any], IntArray]:
    """Names of the groups, and the group of each record."""
    if callable(by):
        try:
            given = array(list(by(prior.support)))  # type: ignore[arg-type]
        except Exception as error:
            raise DpradError(
                f"by must return one label per record, but raised {told(error)}."
            ) from None
        if given.shape[:1] != (prior.size,):
            raise DpradError(
                f"by must return one label per record, but returned {len(given)} for {prior.size}."
            )
        code, values = codes(given)
        return values.tolist(), code
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise DpradError("by must name at least one column, but is empty.")
    chosen = [column(c, prior.columns, name="by") for c in columns]
    parts = [banded(prior.column(c), prior.table) for c in chosen]
    if len(parts) == 1:
        return parts[0]
    code, count = joint_codes([code for _, code in parts])
    first = np.full(count, -1, dtype=np.intp)
    first[code[::-1]] = np.arange(len(code))[::-1]
    names = [tuple(values[own[i]] for values, own in parts) for i in first.tolist()]
    return names, code


def banded(values: Column, pi: Any) -> tuple[list[Any], IntArray]:
    """Values as groups; numbers with many values in bands of about equal shares."""
    code, distinct = codes(values)
    if len(distinct) <= VALUES or distinct.dtype.kind not in "iuf":
        return distinct.tolist(), code
    upto = np.cumsum(np.bincount(code, weights=pi, minlength=len(distinct)))
    band = np.minimum((upto - 1e-12) * BANDS, BANDS - 1).astype(np.intp)
    used, band = np.unique(band, return_inverse=True)
    names = []
    for k in range(len(used)):
        inside = distinct[band == k]
        ends = f"{inside[0]:g}", f"{inside[-1]:g}"
        names.append(ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}")
    return names, band[code]
