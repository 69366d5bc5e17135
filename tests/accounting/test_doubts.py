"""Doubts travel: from an accountant through every conversion into every result and verdict."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import norm

import dprad
from dprad import (
    ZCDP,
    DpradError,
    GaussianDP,
    Prior,
    Profile,
    PureDP,
    RenyiDP,
    Threat,
    TotalVariation,
    assess,
)
from dprad.accounting import from_opacus
from dprad.accounting.from_opacus import OTHER_RATE, SHUFFLED, UNKNOWN
from dprad.model.verdicts import judge
from dprad.show.cli import main

WHY = "The seed was published."


def trained(poisson, *, batch=8, epochs=4):
    """A toy training with Opacus: the engine, and the loader that was iterated over."""
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.1,
            max_grad_norm=1.0,
            poisson_sampling=poisson,
        )
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    return engine, loader


def test_a_loader_that_does_not_sample_by_poisson_is_doubted():
    engine, loader = trained(False)
    claimed = from_opacus(engine, loader=loader)
    assert claimed.doubts == (SHUFFLED,)
    risk = assess(claimed, prior=Prior.unknown(), threat=Threat(knows="everything"))
    # the order is fixed, so it is known in which step a record takes part: once in an epoch
    mu = np.sqrt(4) / 1.1
    canary = 2 * norm.cdf(mu / 2) - 1  # with a gradient of its own: what it adds in those steps
    assert claimed.tv < risk.rad < 0.33 and canary > 0.63
    assert risk.doubts == (SHUFFLED,) == risk.assumptions[:1]
    assert SHUFFLED in str(risk) and SHUFFLED in risk.details()
    assert risk.to_dict()["doubts"] == risk.to_dict()["subject"]["doubts"] == [SHUFFLED]
    verdict = judge([("a", risk)], 0.99)
    assert (verdict.outcome, verdict.code) == ("cannot be told", 3) and SHUFFLED in str(verdict)
    assert judge([("a", risk)], risk.rad / 2).outcome == "exceeded"


def test_a_loader_of_another_rate_is_doubted():
    from opacus.data_loader import DPDataLoader

    data = torch.utils.data.TensorDataset(torch.zeros(98, 1))
    half = DPDataLoader(data, sample_rate=0.5)
    assert from_opacus([(1.0, 0.5, 9)], loader=half).doubts == ()
    assert from_opacus([(1.0, 0.01, 9)], loader=half).doubts == (OTHER_RATE,)
    assert from_opacus([(1.0, 0.5, 9), (1.0, 0.01, 9)], loader=half).doubts == (OTHER_RATE,)
    # Opacus counts at one over the number of batches, rounded down
    odd = DPDataLoader(data, sample_rate=0.3)
    assert len(odd) == 3
    assert from_opacus([(1.0, 1 / 3, 9)], loader=odd).doubts == ()


def test_only_the_loader_of_opacus_removes_the_doubt():
    engine, loader = trained(True)
    assert from_opacus(engine, loader=loader).doubts == ()
    assert from_opacus(engine).doubts == from_opacus(engine.accountant.history).doubts == (UNKNOWN,)
    assert from_opacus(engine.accountant.history, loader="poisson").doubts == ()
    plain = torch.utils.data.DataLoader(loader.dataset, batch_size=8, shuffle=True)
    assert from_opacus(engine, loader=plain).doubts == (SHUFFLED,)
    from opacus.utils.batch_memory_manager import wrap_data_loader

    split = wrap_data_loader(data_loader=loader, max_batch_size=2, optimizer=None)
    assert from_opacus(engine, loader=split).doubts == ()
    assert from_opacus([(2.0, 1.0, 4)]).doubts == ()  # full batches need no sampling
    assert from_opacus([(2.0, 1.0, 4), (2.0, 0.5, 4)]).doubts == (UNKNOWN,)

    class UniformWithReplacementSampler:
        sample_rate = 1 / 8

    named = SimpleNamespace(batch_sampler=UniformWithReplacementSampler())
    assert from_opacus(engine, loader=named).doubts == (SHUFFLED,)
    for bad in ("shuffled", 3):
        with pytest.raises(DpradError, match="loader must be"):
            from_opacus([(1.0, 0.5, 2)], loader=bad)


@pytest.mark.parametrize(
    "promise",
    [
        PureDP(0.5, neighbours="add-remove"),
        GaussianDP(0.5, neighbours="add-remove"),
        TotalVariation(0.2, neighbours="add-remove"),
        Profile(lambda e: 0.2 * np.exp(-e), neighbours="add-remove"),
        ZCDP(0.1, neighbours="add-remove"),
        RenyiDP([2, 4], [0.1, 0.2], neighbours="add-remove"),
    ],
)
def test_doubts_survive_what_is_made_of_a_guarantee(promise):
    doubted = promise.doubted(WHY)
    assert promise.doubts == () and doubted != promise and doubted.doubted(WHY) is doubted
    other = PureDP(0.1, neighbours="replace-one").doubted("Second.")
    assert doubted.tv == promise.tv
    assert doubted.compose(other).doubts == (WHY, "Second.")
    assert other.compose(doubted).doubts == ("Second.", WHY)
    assert promise.compose(promise).doubts == ()
    assert doubted.compose(promise, promise).doubts == (WHY,)
    assert doubted.repeated(1).doubts == doubted.repeated(3).doubts == (WHY,)
    assert doubted.replace_one().doubts == doubted.repeated(2).replace_one().doubts == (WHY,)
    assert doubted.group(3).doubts == doubted.fit_gaussian(ignore=0.3).doubts == (WHY,)
    assert doubted.reading("unknown").doubts == (WHY,)
    assert doubted.describe()["doubts"] == [WHY] and "doubts" not in promise.describe()


def test_doubts_reach_tables_and_reports(tmp_path):
    promise = PureDP(0.5, neighbours="replace-one").doubted(WHY)
    prior = Prior.from_counts({"a": 3, "b": 1})
    assert WHY in str(dprad.compare([promise], prior=prior))
    assert WHY in str(dprad.by_group(promise, prior=prior, by="value"))
    page = dprad.report([assess(promise, prior=prior)], tmp_path / "r.html").read_text()
    assert f"Cannot be relied on: {WHY}" in page


SCENARIO = """
title = "A vendor's model"
[population]
unknown = true
[[releases]]
mu = 0.1
neighbours = "replace-one"
doubts = ["The batches were shuffled."]
[[releases]]
mu = 0.1
neighbours = "replace-one"
[accepted]
risk = 0.9
"""


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    return end.value.code, capsys.readouterr().out


def test_a_doubt_in_a_scenario_stops_the_gate(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    why = "The batches were shuffled."
    for form in ("text", "junit", "sarif", "markdown"):
        code, out = run(capsys, "assess", path, "--format", form)
        assert code == 3 and why in out
    code, out = run(capsys, "assess", path, "--json")
    said = json.loads(out)
    assert code == 3 and said["verdict"]["outcome"] == "cannot be told"
    assert why in out
    run(capsys, "report", path, "--evidence", tmp_path / "pack")
    page = (tmp_path / "pack" / "report.html").read_text()
    assert "Cannot be told" in page and why in page and "Remove the doubt" in page
    assert why in (tmp_path / "pack" / "evidence.md").read_text()
    path.write_text(SCENARIO.replace(f'doubts = ["{why}"]', ""))
    assert run(capsys, "assess", path)[0] == 0
    path.write_text(SCENARIO.replace(f'["{why}"]', '"x"'))
    with pytest.raises(DpradError, match="list of sentences"):
        dprad.scenario.load(path)
