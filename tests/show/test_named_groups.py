"""What a report names, and what its hashes are of."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from dprad import DpradError
from dprad.data.source import Source
from dprad.show import scenario
from dprad.show.report.front import _column, front
from dprad.show.scenario.file import load, parse
from dprad.show.web.population import from_file
from dprad.show.web.question import Question

RELEASE = '\n[[releases]]\nmechanism = "grr"\nepsilon = 1\n[accepted]\nrisk = 0.3\n'


def groups(text, folder=Path()):
    answers = scenario.answer(parse(text + RELEASE, name="s", folder=folder), audits=False)
    return dict(front(answers, answers).groups)


def test_groups_of_few_people_are_not_named(tmp_path):
    """A weight is not a number of people, and counts are."""
    rows = [*[("big", 1)] * 300, *[("large", 1)] * 200, ("Secretville", 100)]
    text = "town,weight\n" + "".join(f"{town},{weight}\n" for town, weight in rows)
    (tmp_path / "w.csv").write_text(text)
    table = '[population]\ndata = "w.csv"\ncolumns = ["town"]\n'
    assert set(groups(table, tmp_path)) == {"big", "large"}
    assert groups(f'{table}weight = "weight"', tmp_path) == {}
    counts = "[population]\ncounts = {healthy = 17, flu = 12, rare = 1}"
    assert set(groups(counts)) == {"healthy", "flu"}
    assert groups("[population]\ncounts = {healthy = 0.7, flu = 0.2, rare = 0.1}") == {}
    assert groups('[population]\nbuiltin = "patients"\ncolumns = ["diagnosis"]')


def test_numbers_with_gaps_are_no_words(tmp_path):
    (tmp_path / "pay.csv").write_text("pay\n" + "51234\n61234\n\n" * 20)
    text = f'[population]\ndata = "{tmp_path}/pay.csv"\n{RELEASE}'
    assert _column(parse(text, name="s", folder=tmp_path)) is None


def test_the_hash_is_of_the_file_that_was_read(tmp_path, monkeypatch):
    """Not of another file of that name, and not of what the file became."""
    for folder in ("here", "upload"):
        (tmp_path / folder).mkdir()
    (tmp_path / "here" / "people.csv").write_text("town\nother\nothers\n")
    uploaded = tmp_path / "upload" / "0.csv"
    uploaded.write_text("town\n" + "a\nb\n" * 20)
    digest = hashlib.sha256(uploaded.read_bytes()).hexdigest()
    monkeypatch.chdir(tmp_path / "here")
    population = from_file(str(uploaded), "people.csv")
    uploaded.unlink()
    assert population.source is not None and population.source.sha256() == digest
    asked = Question(population=population, attackers=(), releases=())
    assert asked.scenario().source.sha256() == digest

    (tmp_path / "s.toml").write_text(f'[population]\ndata = "here/people.csv"\n{RELEASE}')
    read = load(tmp_path / "s.toml")
    file = tmp_path / "here" / "people.csv"
    assert read.source.sha256() == hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text("town\nanother\nothers\n")
    with pytest.raises(DpradError, match="was changed"):
        read.source.sha256()
    file.unlink()
    with pytest.raises(DpradError, match="cannot be read"):
        read.source.sha256()
    assert Source.of(os.fspath(file)).stamp is None
