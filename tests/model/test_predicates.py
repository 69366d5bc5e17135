"""Predicates against Python's own comparisons; what is wrong is said without naming values."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprad import DpradError, Prior, show_records
from dprad.model.predicates import LONGEST, comparisons, example, holds, is_predicate

PEOPLE = Prior.from_counts(
    {("yes", 30, None): 1, ("no", 40, "Zyxwvut"): 2, ("no", 50, "single"): 1},
    columns=["smoker", "age", "marital status"],
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('smoker = "yes"', [0, 0, 1]),
        ("smoker=='yes'", [0, 0, 1]),
        ('smoker != "yes"', [1, 1, 0]),
        ('smoker in ("yes", "no")', [1, 1, 1]),
        ("smoker not in ('yes')", [1, 1, 0]),
        ('smoker = "no" and age >= 50', [0, 1, 0]),
        ("age < 50 AND age > 30.5", [1, 0, 0]),
        ("age<=40", [1, 0, 1]),
        ("age in (30, 5e1)", [0, 1, 1]),
        ('"smoker" = "yes"', [0, 0, 1]),
        # a missing value equals nothing
        ("\"marital status\" = 'single'", [0, 1, 0]),
        ("\"marital status\" != 'single'", [1, 0, 1]),
    ],
)
def test_what_holds(text, wanted):
    assert holds(text, PEOPLE).tolist() == [bool(v) for v in wanted]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('smokr = "yes"', "Did you mean 'smoker'"),
        ('job = "yes"', "The columns are: smoker, age, marital status"),
        ("smoker = 1", "'smoker' with a number, but it holds text: write smoker = "),
        ('age = "30"', "'age' with text, but it holds numbers: write the value without quotes"),
        ("smoker = yes", 'Text needs quotes: smoker = "..."'),
        ("age = 5%", "not a number"),
        ("age = nan", "not a number"),
        ('age < "30"', "no order"),
        ('smoker = "Yes"', "no record has. Check its spelling"),
        ("age = 31", "'age' with a value that no record has."),
        ("age not in (30, 31)", "no record has"),
        ('smoker = "yes" or age = 30', "joined by 'and' only"),
        ('smoker = "yes" age = 30', "after comparison 1"),
        ('marital status = "single"', "a name with spaces needs quotes"),
        ('smoker = "yes', "not closed"),
        ("age =", "no value to compare 'age' with"),
        ("age in 30", "values in parentheses"),
        ("age in (30", "values in parentheses"),
        ("age not = 30", "does not say what is asked of 'age'"),
        ("age ! 30", "does not say what is asked of 'age'"),
        ("= 30", "no name of a column"),
        ("age = 30 and", "no name of a column"),
        ("__import__('os').system('true') = 1", "does not say what is asked"),
        ("age = 1" + " and age = 1" * LONGEST, "at most 2,000 characters"),
    ],
)
def test_what_is_wrong(text, words):
    with pytest.raises(DpradError) as raised:
        holds(text, PEOPLE)
    assert words in str(raised.value) and "Zyxwvut" not in str(raised.value)


def test_values_are_suggested_if_asked():
    with pytest.raises(DpradError, match="spelling"):
        holds('"marital status" = "Zyxwvu"', PEOPLE)
    with show_records(), pytest.raises(DpradError, match="Did you mean 'Zyxwvut'"):
        holds('"marital status" = "Zyxwvu"', PEOPLE)


def test_a_predicate_needs_records():
    with pytest.raises(DpradError, match="prior is unknown"):
        holds("value = 1", Prior.unknown())


def test_columns_of_every_kind():
    flags = Prior.from_counts({True: 1, False: 1}, columns="sick")
    assert holds("sick = 1", flags).tolist() == [False, True]
    prices = Prior.from_counts({Decimal("1.5"): 1, Decimal("2.5"): 1})
    assert holds("value = 1.5", prices).tolist() == [True, False]
    assert holds("value > 1.5", prices).tolist() == [False, True]
    huge = Prior.from_counts({10**30: 1, 10**30 + 1: 1})
    assert holds(f"value = {10**30 + 1}", huge).tolist() == [False, True]
    mixed = Prior.from_counts({1: 1, "1": 1, None: 1})
    assert sum(holds("value = 1", mixed)) == sum(holds("value = '1'", mixed)) == 1
    assert sum(holds("value >= 0", mixed)) == 1


def test_columns_come_first():
    names = ["age > 30", "age"]
    assert not is_predicate("age > 30", names) and is_predicate("age > 31", names)
    assert not is_predicate("born in 1990", names) and is_predicate("age in (3)", names)
    assert example("age") == 'age = "..."' and example("a b") == '"a b" = "..."'
    assert example("in") == '"in" = "..."' and comparisons(example("a b"))[0].name == "a b"


@pytest.mark.parametrize("piece", ['"', "(", "=", " ", "in ", "a", "a=1 and ", "'\"", "1", "-"])
def test_hostile_text_is_read_in_linear_time(piece):
    begin = time.perf_counter()
    is_predicate(piece * 500_000, PEOPLE.columns)
    with pytest.raises(DpradError):
        holds((piece * LONGEST)[:LONGEST], PEOPLE)
    assert time.perf_counter() - begin < 5


SIGNS = {"=": int.__eq__, "!=": int.__ne__, "<": int.__lt__, ">=": int.__ge__}


@given(st.lists(st.tuples(st.sampled_from(sorted(SIGNS)), st.integers(0, 8)), min_size=1))
def test_predicates_are_pythons_comparisons(parts):
    text = " and ".join(f"value {sign} {bound}" for sign, bound in parts)
    wanted = [all(SIGNS[s](v, bound) for s, bound in parts) for v in range(9)]
    if len(text) <= LONGEST:
        assert holds(text, Prior.uniform(9)).tolist() == wanted
