"""Types, storage, spacing and notation of an output count as its values do."""

from __future__ import annotations

import collections
import enum

import numpy as np
import pandas as pd
import pytest

from dprad import Prior, PureDP, audit
from dprad.verbs.audit.coordinates import FORM, Reader
from dprad.verbs.audit.trials import packed


class One(enum.Enum):
    x = 1


class Other(enum.Enum):
    x = 1


SHOWN = collections.namedtuple("Shown", ["a", "b"]), collections.namedtuple("Shown", ["a", "c"])
FORMS = {
    "categories of labels": lambda z: pd.Series(
        [1.0], index=pd.CategoricalIndex(["a"], categories=["a", f"b{z}"])
    ),
    "levels of labels": lambda z: pd.DataFrame(
        [[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", f"y{z}")])
    ).iloc[:, :1],
    "order of categories": lambda z: pd.DataFrame({"c": pd.Categorical(["a"], ordered=bool(z))}),
    "storage of a column": lambda z: pd.Series([1], dtype=["Int64", "Float64"][z]),
    "storage of an array": lambda z: np.zeros(3, dtype=["f4", "f8"][z]),
    "duplicates allowed": lambda z: pd.Series([1]).set_flags(allows_duplicate_labels=bool(z)),
    "blanks": lambda z: ["x ,y", "x, y"][z],
    "blanks in JSON": lambda z: ['{"a":1, "b":2}', '{"a": 1,"b":2}'][z],
    "notation": lambda z: ["[1.0]", "[1e0]"][z],
    "escapes": lambda z: [r'["A\u0041"]', r'["\u0041A"]'][z],
    "case of an escape": lambda z: [r'["\ufeff"]', r'["\uFEFF"]'][z],
    "case in a pair": lambda z: [r'["\ud83d\ude00"]', r'["\ud83D\ude00"]'][z],
    "order of escapes": lambda z: [r'["\n\u000a"]', r'["\u000a\n"]'][z],
    "plus": lambda z: ["a=+1", "a= 1"][z],
    "None": lambda z: [[None], ["None"]][z],
    "class": lambda z: [One.x, Other.x][z],
    "fields": lambda z: SHOWN[z](1, 2),
    "whole or not": lambda z: [1, 1.0][z],
    "truth": lambda z: [True, 1][z],
    "tuple": lambda z: [(1,), [1]][z],
    "one of many": lambda z: [1.0] * 70 + [[1, 1.0][z]] + [1.0] * 9,
    "where a type is": lambda z: [[1, True, 1], [1, 1, True]][z],
    "where a type ends": lambda z: [0, [0, 0.0][z], 0.0],
    "where one of many ends": lambda z: [1] * (40 + z) + [1.0] * (40 - z),
    "type of a key's value": lambda z: {"n": 3, "a": True, "b": [1, True][z], "c": 1},
    "type of a field": lambda z: SHOWN[0](True, [1, True][z]),
    "empty": lambda z: [[], [(), []][z], ()],
    "None beside its name": lambda z: [None, [None, "None"][z], "None"],
    "an array of objects": lambda z: np.array([1, [1, 1.0][z], 1.0], dtype=object),
    "a column of objects": lambda z: pd.Series([1, [1, 1.0][z], 1.0], dtype=object).to_frame(),
    "numbers of numpy": lambda z: [np.float64(1), [1.0, np.float64(1)][z], 1.0],
}


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_some_coordinate_tells(name, noisy, rng):
    """Whether or not something else in the output is new every time."""
    secret = rng.integers(2, size=32).tolist()
    outputs = [[FORMS[name](z), rng.normal()] if noisy else FORMS[name](z) for z in secret]
    table = np.nan_to_num(Reader().rows(packed(outputs)).numbers, nan=-1.0)
    zero, one = (table[np.array(secret) == z] for z in (0, 1))
    assert np.any((np.ptp(zero, axis=0) == 0) & (np.ptp(one, axis=0) == 0) & (zero[0] != one[0]))


@pytest.mark.parametrize("name", ["levels of labels", "blanks in JSON", "whole or not"])
def test_it_is_refuted(name):
    claim = PureDP(0.1, neighbours="replace-one")
    result = audit(
        lambda record, rng: FORMS[name](record), claim=claim, prior=Prior.uniform(2), trials=400,
        sequential=True,
    )  # fmt: skip
    assert result.verdict == "violated"


def test_outputs_of_one_form_cost_nothing(rng):
    reader = Reader()
    reader.rows(packed([{"a": list(rng.normal(size=n)), "b": f"{n} of 9, {n}.5"} for n in (1, 5)]))
    assert FORM not in reader.place
