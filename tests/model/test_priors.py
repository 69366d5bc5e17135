from __future__ import annotations

import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats
from scipy import stats

from dprad import DpradError, Prior

FRAME = {
    "age": [30, 30, 40, 40, 40, 50],
    "job": ["clerk", "baker", "baker", "baker", None, "clerk"],
    "w": [1.0, 2.0, 0.5, 0.5, 4.0, 0.0],
}


def engines(tmp_path):
    pandas = pd.DataFrame(FRAME)
    pandas.to_csv(tmp_path / "t.csv", index=False)
    pandas.to_csv(tmp_path / "t.csv.gz", index=False)
    pandas.to_parquet(tmp_path / "t.parquet")
    yield "pandas", pandas
    yield "polars", pl.DataFrame(FRAME)
    yield "polars lazy", pl.LazyFrame(FRAME)
    yield "pyarrow", pa.table(FRAME)
    yield "duckdb", duckdb.connect().from_arrow(pa.table(FRAME))
    import dask.dataframe as dd

    yield "dask", dd.from_pandas(pandas, npartitions=2)
    yield "csv", str(tmp_path / "t.csv")
    yield "csv.gz", tmp_path / "t.csv.gz"
    yield "parquet", tmp_path / "t.parquet"


def as_dict(prior):
    rows = prior.support.tolist()
    return dict(zip(rows, prior.probabilities.tolist(), strict=True))


@pytest.mark.filterwarnings("default")  # engines warn about one another
def test_every_engine_counts_alike(tmp_path):
    for name, table in engines(tmp_path):
        one = Prior.from_data(table, columns=["age"])
        assert as_dict(one) == pytest.approx({30: 1 / 3, 40: 1 / 2, 50: 1 / 6}), name
        two = Prior.from_data(table, columns=["age", "job"])
        assert two.columns == ("age", "job") and two.size == 5, name
        assert as_dict(two)[(40, "baker")] == pytest.approx(1 / 3), name
        assert as_dict(two)[(40, None)] == pytest.approx(1 / 6), name
        assert two.support["age"].tolist() == [30, 30, 40, 40, 50], name
        assert two.support["job"].tolist() == ["baker", "clerk", "baker", None, "clerk"], name
        heavy = Prior.from_data(table, columns=["age"], weight="w")
        assert as_dict(heavy) == pytest.approx({30: 3 / 8, 40: 5 / 8, 50: 0.0}), name
        every = Prior.from_data(table)
        assert every.columns == ("age", "job", "w"), name
        with pytest.raises(DpradError, match="'job' has missing values"):
            Prior.from_data(table, columns=["job"], missing="refuse")


def test_missing_values_can_be_dropped():
    table = pl.DataFrame({"x": [1, 2, None, 2], "y": ["a", None, "b", "b"]})
    prior = Prior.from_data(table, missing="drop")
    assert as_dict(prior) == {(1, "a"): 0.5, (2, "b"): 0.5} and prior.rows == 2
    one = Prior.from_data(table, columns=["x"], missing="drop")
    assert (
        one.support.dtype.kind == "i"
        and one.rows == 3
        and one.missing.single == pytest.approx(1 / 3)
    )


def test_missing_numbers_are_one_category():
    prior = Prior.from_data(pl.DataFrame({"x": [1.5, float("nan"), None, 2.5]}))
    assert prior.support.tolist() == [1.5, 2.5, None]
    assert prior.probabilities.tolist() == [0.25, 0.25, 0.5]


def test_domain_keeps_unseen_values():
    prior = Prior.from_data(pl.DataFrame({"hours": [1, 1, 3]}), columns=["hours"], domain=range(5))
    assert prior.support.tolist() == [0, 1, 2, 3, 4]
    assert prior.probabilities.tolist() == pytest.approx([0, 2 / 3, 0, 1 / 3, 0])
    table = Prior.from_counts(
        {(0, "a"): 1, (2, "b"): 3}, columns=["x", "y"], domain={"x": range(3)}
    )
    assert table.size == 6 and as_dict(table)[(1, "a")] == 0.0
    assert as_dict(table)[(2, "b")] == 0.75


def test_domain_must_hold_what_was_seen():
    with pytest.raises(DpradError, match="lacks 1 of 1"):
        Prior.from_counts({7: 1}, domain=range(5))
    with pytest.raises(DpradError, match="mapping from column"):
        Prior.from_counts({(1, 2): 1}, domain=range(5))
    with pytest.raises(DpradError, match="Did you mean 'hours'"):
        Prior.from_counts({1: 1}, columns=["hours"], domain={"hour": range(5)})
    wide = {c: range(1000) for c in "xyz"}
    with pytest.raises(DpradError, match="at most"):
        Prior.from_counts({(1, 2, 3): 1}, columns=["x", "y", "z"], domain=wide)


def test_support_is_sorted_and_kappa_counts():
    prior = Prior.from_counts({"b": 1, "a": 2, "c": 1})
    assert prior.support.tolist() == ["a", "b", "c"]
    assert prior.probabilities.tolist() == [0.5, 0.25, 0.25]
    assert prior.kappa == 0.375
    assert Prior.uniform(101).support.tolist() == list(range(101))
    assert Prior.uniform(4).kappa == 0.25
    mixed = Prior.from_counts({1: 1, "a": 1, None: 2})
    assert mixed.support.tolist()[-1] is None and mixed.kappa == 0.375


def test_extreme_weights():
    assert Prior.from_counts({0: 1e308, 1: 1e308}).kappa == 0.5
    assert Prior.from_counts({0: 1e-308, 1: 1e-308}).kappa == 0.5
    assert Prior.uniform(1).kappa == 1.0
    assert Prior.from_counts({0: 1, 1: 0}).size == 2


def test_not_finite():
    unknown = Prior.unknown()
    assert (unknown.kind, unknown.size, unknown.kappa) == ("unknown", None, 0.0)
    line = Prior.continuous(scipy.stats.norm(), -1, 1)
    assert (line.kind, line.kappa, line.support) == ("continuous", 0.0, None)
    assert "continuous" in repr(line)
    with pytest.raises(DpradError, match="high must be greater"):
        Prior.continuous(scipy.stats.norm(), 1, 1)
    with pytest.raises(DpradError, match="frozen scipy"):
        Prior.continuous(3, 0, 1)
    with pytest.raises(DpradError, match="must have mass"):
        Prior.continuous(scipy.stats.uniform(), 5, 6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Prior.from_probabilities([0.5, 0.4]), "sum to 1"),
        (lambda: Prior.from_probabilities([1.5, -0.5]), "record 1 has -0.5"),
        (lambda: Prior.from_probabilities([math.nan, 1.0]), "sum to 1"),
        (lambda: Prior.from_probabilities([]), "sum to 1"),
        (lambda: Prior.from_probabilities([0.5, 0.5], support=[1]), "one record per probability"),
        (lambda: Prior.from_probabilities([0.5, 0.5], support=[1, 1]), "occurs twice"),
        (lambda: Prior.from_counts({}), "at least one record"),
        (lambda: Prior.from_counts({1: 0}), "positive sum"),
        (lambda: Prior.from_counts({1: math.nan}), "has nan"),
        (lambda: Prior.from_counts({1: -1, 2: 3}), "has -1.0"),
        (lambda: Prior.from_counts([1, 2]), "mapping"),
        (lambda: Prior.from_counts({(1, 2): 1, (1,): 1}), "same number"),
        (lambda: Prior.uniform(0), "size must be"),
        (lambda: Prior.uniform(2.5), "whole number"),
        (lambda: Prior.from_data(pl.DataFrame({"a": []})), "table is empty"),
        (lambda: Prior.from_data(pl.DataFrame({"age": [1]}), columns=["agee"]), "mean 'age'"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1]}), columns=[]), "at least one column"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1]}), columns=["a", "a"]), "once"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1]}), weight="b"), "weight names"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1], "w": [-1]}), weight="w"), "negative"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1, 1], "w": [3, -1]}), weight="w"), "negat"),
        (
            lambda: Prior.from_data(pl.DataFrame({"a": [1, 2], "w": [1, None]}), weight="w"),
            "missing",
        ),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1]}), missing="skip"), "missing must be"),
        (lambda: Prior.from_data({"a": [1]}), "data frame"),
        (lambda: Prior.from_data("pyproject.toml"), "ends in"),
        (lambda: Prior.from_data("nowhere.csv"), "does not exist"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(DpradError, match=words):
        make()


def test_a_broken_file_is_a_sentence(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"not parquet")
    with pytest.raises(DpradError, match="cannot be read"):
        Prior.from_data(tmp_path / "t.parquet")


def test_arrays_cannot_be_changed_behind_our_back():
    prior = Prior.uniform(3)
    with pytest.raises(ValueError, match="read-only"):
        prior.probabilities[0] = 1.0


def test_relation_of_sample_and_kappa(rng):
    """A prior counted from n rows overstates kappa by about (1 - kappa)/n."""
    truth = Prior.from_probabilities([0.5, 0.3, 0.2])
    n, seen = 50, []
    for _ in range(2000):
        counts = rng.multinomial(n, truth.probabilities)
        seen.append(Prior.from_counts(dict(enumerate(counts.tolist()))).kappa)
    # the mean of 2000 has a standard error of about 0.002 here; false alarm below 1e-6
    assert np.mean(seen) - truth.kappa == pytest.approx((1 - truth.kappa) / n, abs=0.01)


# -- what must not be merged or rounded -----------------------------------------------------------
def test_values_that_only_look_alike_stay_apart(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id\n" + "\n".join(str(12345678901234567890 + i) for i in range(5)) + "\n")
    assert Prior.from_data(path).size == 5
    assert Prior.from_counts({2**63: 1, 2**63 + 1: 1, -1: 1}).size == 3
    assert Prior.from_counts({2**53: 1, 2**53 + 1: 1, 0.5: 1}).size == 3
    assert Prior.from_counts({"a": 1, "a\0": 1}).size == 2


def test_machine_numbers_are_numbers():
    prior = Prior.from_counts({np.int32(i): 1 for i in range(3)} | {np.float32(3.5): 1})
    assert prior.support.tolist() == [0, 1, 2, 3.5] and prior.support.dtype == float


def test_weights_do_not_overflow_or_concatenate():
    big = pl.DataFrame({"a": ["x"] * 5 + ["y"], "w": [2**62] * 6})
    assert Prior.from_data(big, columns=["a"], weight="w").probabilities.tolist() == pytest.approx(
        [5 / 6, 1 / 6]
    )
    text = pd.DataFrame({"a": ["x", "x"], "w": ["1", "2"]})
    with pytest.raises(DpradError, match="column of numbers"):
        Prior.from_data(text, columns=["a"], weight="w")


def test_missing_values_are_merged_before_the_domain_widens():
    table = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": [None, math.nan, 1.0, 1.0]})
    prior = Prior.from_data(table, domain={"a": ["x", "y"]})
    assert as_dict(prior)[("x", None)] == 0.5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Prior.from_data(pl.DataFrame({"a": [[1], [2]]})), "lists or the like"),
        (lambda: Prior.from_data(pd.DataFrame({0: [1], 1: [2]})), "names must be text"),
        (lambda: Prior.from_data(pd.DataFrame([[1, 2]], columns=["a", "a"])), "cannot be counted"),
        (lambda: Prior.from_data(pl.DataFrame({"a": [1]}), columns=5), "list of column names"),
        (lambda: Prior.from_counts({1: "x"}), "list of numbers"),
        (lambda: Prior.from_counts({(1, 2): 1}, columns=["a", "a"]), "different, non-empty"),
        (lambda: Prior.from_counts({1: 1}, domain=5), "list of values"),
        (lambda: Prior.from_counts({1: 1}, domain=range(10**9)), "at most"),
        (lambda: Prior.from_probabilities([1.0], support=[[1, 2]]), "but are lists"),
        (lambda: Prior.continuous(scipy.stats.poisson(3), 0, 10), "Prior.from_counts"),
    ],
)
def test_more_bad_input(make, words):
    with pytest.raises(DpradError, match=words):
        make()


def test_any_column_name_will_do():
    names = ["__dprad_t", "with space", 'quo"te', "w"]
    table = pl.DataFrame({n: [1, 1, 2] for n in names})
    assert Prior.from_data(table, columns=names[:3], weight="w").columns == tuple(names[:3])


def test_nearly_certain_records_keep_their_digits():
    prior = Prior.from_counts({"a": 1e16, "b": 1.0})
    assert prior.kappa == 1.0 and prior.unlike == pytest.approx(2e-16, rel=1e-9)


def test_a_word_late_in_a_column_of_numbers(tmp_path):
    """Types are told by the whole file, not by its first rows."""
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "1,2\n" * 30_000 + "N,2\n")
    prior = Prior.from_data(path, columns=["a"])
    assert prior.support.tolist() == ["1", "N"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",diagnosis\n1,a\n2,b\n", "empty name"),
        ("age,age\n1,2\n", "one name for columns 1 and 2"),
        ("age,diagnosis\n" + "1,a\n" * 90 + "3,cold, bad\n", "cannot be|does not read"),
    ],
)
def test_untidy_headers_are_refused(tmp_path, text, words):
    path = tmp_path / "untidy.csv"
    path.write_text(text)
    with pytest.raises(DpradError, match=words):
        Prior.from_data(path)


def test_a_header_of_numbers_is_a_header(tmp_path):
    path = tmp_path / "years.csv"
    path.write_text("2019,2020\n1,2\n3,4\n")
    prior = Prior.from_data(path)
    assert prior.columns == ("2019", "2020") and prior.size == 2


def test_weights_without_digits_are_none():
    prior = Prior.from_counts({"a": 1e-320, "b": 1.0})
    assert prior.probabilities.tolist() == [0.0, 1.0]


class Mixed:
    """A density with a probability `share` of its own at one value."""

    def __init__(self, share, place, density):
        self.share, self.place, self.density = share, place, density

    def cdf(self, x):
        return self.share * (np.asarray(x) >= self.place) + (1 - self.share) * self.density.cdf(x)

    def pdf(self, x):
        return (1 - self.share) * self.density.pdf(x)


@pytest.mark.parametrize("share", [0.5, 0.01, 1e-4, 1e-6])
@pytest.mark.parametrize("place", [0.0, 0.3, 1 / 3, 0.9999, 1.0])
@pytest.mark.parametrize("density", [stats.uniform(), stats.norm(0.5, 0.1), stats.beta(2, 5)])
def test_atoms_of_continuous_priors_are_refused(share, place, density):
    with pytest.raises(DpradError, match="positive probability at"):
        Prior.continuous(Mixed(share, place, density), 0, 1)


@pytest.mark.parametrize(
    ("distribution", "low", "high"),
    [
        (stats.beta(0.1, 0.1), 0, 1),
        (stats.beta(0.01, 0.01), 0, 1),
        (stats.beta(0.1, 0.1), -1, 2),
        (stats.norm(0, 1e-6), -1, 1),
        (stats.norm(5e5, 1), 0, 1e6),
        (stats.gamma(0.05), 0, 10),
        (stats.lognorm(2), 0, 1e6),
        (stats.t(2), -100, 100),
    ],
)
def test_poles_and_spikes_are_no_atoms(distribution, low, high):
    assert Prior.continuous(distribution, low, high).kind == "continuous"


class Censored:
    """max(X, low): a positive probability at the lower end of the range."""

    def __init__(self, density, low):
        self.density, self.low = density, low

    def cdf(self, x):
        x = np.asarray(x, dtype=float)
        return np.where(x < self.low, 0.0, self.density.cdf(x))

    def sf(self, x):
        return 1.0 - self.cdf(x)

    def pdf(self, x):
        x = np.asarray(x, dtype=float)
        return np.where(x < self.low, 0.0, self.density.pdf(x))


def test_atoms_at_the_ends_of_any_range_are_refused():
    rng = np.random.default_rng(3)
    ranges = [(20.0, 90.0), (16.0, 100.0), (1.0, 11.0), (-5.0, 5.0), (1000.0, 9000.0)]
    ranges += [
        (a, a + b) for a, b in zip(rng.normal(0, 50, 60), rng.exponential(30, 60), strict=True)
    ]
    for low, high in ranges:
        middle = stats.norm((low + high) / 2, (high - low) / 4)
        with pytest.raises(DpradError, match="positive probability"):
            Prior.continuous(Censored(middle, low), low, high)
        with pytest.raises(DpradError, match="positive probability"):
            Prior.continuous(Mixed(0.05, high, middle), low, high)
        assert Prior.continuous(middle, low, high).kind == "continuous"
    wide = stats.cauchy()
    for place in (-1e6, 1e6):
        with pytest.raises(DpradError, match="positive probability"):
            Prior.continuous(Mixed(0.1, place, wide), -1e6, 1e6)


@pytest.mark.parametrize(
    ("distribution", "low", "high"),
    [
        (stats.gamma(0.05), -5, 10),
        (stats.gamma(0.01), -5, 10),
        (stats.lognorm(3), 0, 1e10),
        (stats.cauchy(), -1e12, 1e12),
    ],
)
def test_poles_inside_and_spikes_in_wide_ranges_are_no_atoms(distribution, low, high):
    assert Prior.continuous(distribution, low, high).kind == "continuous"
