"""Audits on a Dask cluster: the single-core result, also if a worker is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

from dprad import Prior, PureDP, Threat, assess, audit, mechanisms, optimal_attack, simulate
from dprad.game.game import _prepared
from dprad.game.question import Question
from dprad.paper import experiments
from dprad.show.cli import main

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def slow(record, rng):
    """Randomised response that takes its time."""
    time.sleep(2e-4)
    return record if rng.random() < 0.7 else 1 - record


QUESTION = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2), "rng": 7}


def same(one, two):
    a, b = (r.to_dict() | {"seconds": 0} for r in (one, two))
    assert a == b


def test_a_cluster_gives_the_same(cluster):
    grr = mechanisms.GRR(epsilon=1.0, size=2)
    alone = audit(grr, trials=20_000, **QUESTION)
    with joblib.parallel_config(backend="dask", client=cluster):
        same(alone, audit(grr, trials=20_000, workers=3, **QUESTION))
        early = audit(slow, trials=3000, sequential=True, workers=3, model=grr, **QUESTION)
    same(early, audit(slow, trials=3000, sequential=True, model=grr, **QUESTION))


def test_a_killed_worker_costs_its_chunk_and_nothing_else(cluster):
    model = mechanisms.GRR(epsilon=1.0, size=2)
    alone = audit(slow, trials=12_000, model=model, **QUESTION)
    victims = [w["pid"] for w in _workers(cluster)]
    timer = threading.Timer(0.5, lambda: os.kill(victims[0], signal.SIGKILL))
    timer.start()
    with joblib.parallel_config(backend="dask", client=cluster):
        together = audit(slow, trials=12_000, model=model, workers=3, **QUESTION)
    timer.join()
    same(alone, together)
    assert victims[0] not in [w["pid"] for w in _workers(cluster)]


def _workers(cluster):
    found = cluster.run(os.getpid)
    return [{"pid": pid} for pid in found.values()]


def test_estimates_simulations_and_experiments_too(cluster, tmp_path):
    both = mechanisms.Composed([mechanisms.GRR(epsilon=1.0, size=5)] * 2)
    attack = optimal_attack(both, prior=Prior.uniform(5))
    question = {"prior": Prior.uniform(5), "trials": 30_000}
    quick = {"name": "laplace-adult", "quick": True, "runs": 200}
    estimate, tried = assess(both, **question), simulate(both, attack, **question)
    made = experiments.run(experiments.Options(**quick))
    for backend in ({"backend": "dask", "client": cluster}, {"backend": "loky"}):
        with joblib.parallel_config(**backend):
            assert assess(both, workers=3, **question) == estimate
            assert simulate(both, attack, workers=3, **question) == tried
            again = experiments.run(experiments.Options(**quick, workers=3, out=tmp_path))
        assert again.rows == made.rows
        (tmp_path / "laplace-adult.cells.jsonl").unlink()


def test_places_whose_pairs_fit_nowhere(cluster):
    """20,000 places, 4 million pairs: parts of the tree go to the workers, with what is around."""
    at = np.random.default_rng(0).uniform(41.1, 41.2, (20_000, 2)).tolist()
    prior = Prior.from_counts({(a, b): a * b for a, b in at}, columns=["lat", "lon"])
    question = {"prior": prior, "threat": Threat(loss="haversine", eta=600.0)}
    subjects = mechanisms.GRR(epsilon=8.0, size=20_000), QUESTION["claim"]
    found = []
    for more in ({"backend": "threading"}, {"backend": "dask", "client": cluster}):
        _prepared.cache_clear()
        with joblib.parallel_config(**more):
            found.append([assess(s, **question, workers=3, memory="100 MB") for s in subjects])
        assert Question.of(**question).passed
    assert found[0] == found[1]


def test_the_command_line(cluster, capsys):
    question = ["audit", "dprad.examples:coin", "--claim", "1", "--neighbours", "replace-one"]
    question += ["--records", "0,1", "--trials", "3000", "--json"]
    found = []
    for more in ([], ["--cluster", cluster.scheduler.address]):
        with pytest.raises(SystemExit) as stop:
            main([*question, *more])
        assert stop.value.code == 1
        found.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert found[0] == found[1]
    with pytest.raises(SystemExit) as stop:
        main([*question, "--cluster", "nonsense://x"])
    assert stop.value.code == 2 and "tcp://host:8786" in capsys.readouterr().err
