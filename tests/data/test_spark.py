"""Data frames that live elsewhere, in Spark and in Dask, give the prior that pandas gives."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

from dprad import Prior

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    jobs = rng.choice(np.array(["baker", "clerk", "none", "pilot"], dtype=object), 5000)
    jobs[rng.random(5000) < 0.05] = None
    columns = {"age": rng.integers(20, 70, 5000), "job": jobs, "w": rng.gamma(2.0, size=5000)}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here and could not be installed.")
    sql = pytest.importorskip("pyspark.sql")
    build = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    build = build.config("spark.driver.host", "127.0.0.1")
    build = build.config("spark.driver.bindAddress", "127.0.0.1")
    # so short a session does not earn back what it costs to compile its code a second time
    build = build.config(
        "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    )
    session = build.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    yield session
    session.stop()


def same(one, two):
    assert one.columns == two.columns
    assert one.support.tolist() == two.support.tolist()
    assert one.probabilities == pytest.approx(two.probabilities, rel=1e-12)


@pytest.mark.parametrize(
    "question",
    [{"columns": ["age"]}, {"columns": ["age", "job"]}, {"columns": ["job"], "weight": "w"}],
)
def test_the_same_prior(people, spark, question):
    import dask.dataframe as dd

    here = Prior.from_data(people, **question)
    frame = spark.createDataFrame(people.astype({"age": int}))
    same(Prior.from_data(frame, **question), here)
    same(Prior.from_data(dd.from_pandas(people, npartitions=4), **question), here)
    dotted = Prior.from_data(frame.toDF("a.b", "*", "w`"), columns=["a.b", "*"], weight="w`")
    asked = {"columns": ["age", "job"], "weight": "w"}
    assert dotted.support.tolist() == Prior.from_data(people, **asked).support.tolist()
    again = Prior.from_data(frame.filter(frame.age > 30), **question)
    same(again, Prior.from_data(people[people.age > 30], **question))
