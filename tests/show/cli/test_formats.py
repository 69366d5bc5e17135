"""What pipelines read: JUnit, SARIF and Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dprad.show.cli import main

ONE = ["assess", "--epsilon", "1", "--neighbours", "replace-one", "--uniform", "20"]
SCENARIO = """title = "Ours"
[population]
uniform = 4
[[threats]]
name = "Mallory & <co>"
[[threats]]
name = "Trudy"
knows = "everything"
[[releases]]
name = "first"
mechanism = "grr"
epsilon = {}
[[releases]]
name = "second"
epsilon = 0.1
neighbours = "replace-one"
[accepted]
risk = 0.2
"""


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in arguments])
    out = capsys.readouterr()
    return done.value.code, out.out, out.err


def scenario(tmp_path, epsilon):
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO.format(epsilon))
    return file


@pytest.fixture
def doubtful(tmp_path):
    """Every row is unique, so the table does not tell what the population is."""
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"x{i},y{i}\n" for i in range(30)))
    return [
        "assess",
        "--epsilon",
        "0.5",
        "--neighbours",
        "replace-one",
        "--data",
        tmp_path / "rows.csv",
    ]


def cases(text):
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    (suite,) = root
    found = suite.findall("testcase")
    counted = {name: len(suite.findall(f"testcase/{tag}")) for name, tag in
               (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))}  # fmt: skip
    assert {name: int(suite.get(name)) for name in counted} == counted
    assert int(suite.get("tests")) == len(found)
    return found


@pytest.mark.parametrize(("epsilon", "code"), [(0.1, 0), (3.0, 1)])
def test_junit_has_a_case_for_each_attacker_and_release(epsilon, code, tmp_path, capsys):
    done, out, err = run(capsys, "assess", scenario(tmp_path, epsilon), "--format", "junit")
    assert (done, err) == (code, "")
    found = cases(out)
    names = [(one.get("classname"), one.get("name")) for one in found]
    releases = ("all releases together", "first", "second")
    assert names == [(r, a) for r in releases for a in ("Mallory & <co>", "Trudy")]
    failed = [one.get("classname") for one in found if one.find("failure") is not None]
    assert ("second" not in failed) and (failed != []) == (code == 1)
    if failed:
        assert "accepted is 0.2 for the average" in found[0].find("failure").get("message")


def test_what_is_accepted_together_is_accepted_alone(tmp_path, capsys, monkeypatch):
    from dataclasses import replace

    from dprad.show import scenario as scenarios

    real = scenarios.answer

    def loose(*args, **kwargs):
        found = real(*args, **kwargs)
        worse = replace(found.risks[0][0], rad=0.9, interval=(0.0, 0.9))
        return replace(found, risks=((worse, found.risks[0][1]), found.risks[1]))

    monkeypatch.setattr(scenarios, "answer", loose)
    done, out, _ = run(capsys, "assess", scenario(tmp_path, 0.1), "--format", "junit")
    assert done == 0 and "<failure" not in out


def test_what_cannot_be_told_is_skipped_and_warned_of(doubtful, capsys):
    command = [*doubtful, "--max-risk", "0.05", "--target", "a"]
    assert run(capsys, *command)[0] == 3
    code, out, _ = run(capsys, *command, "--format", "junit")
    (case,) = cases(out)
    assert code == 3 and "cannot be told" in case.find("skipped").get("message")
    code, out, _ = run(capsys, *command, "--format", "sarif")
    assert code == 3 and [r["level"] for r in json.loads(out)["runs"][0]["results"]] == ["warning"]
    code, out, _ = run(capsys, *command, "--format", "markdown")
    assert code == 3 and "**Cannot be told.**" in out and "| cannot be told |" in out


def test_names_make_no_links_in_sarif(tmp_path, capsys):
    file = scenario(tmp_path, 0.1)
    file.write_text(file.read_text().replace("Mallory & <co>", "[Accepted](https://x.example)"))
    log = json.loads(run(capsys, "assess", file, "--format", "sarif")[1])
    said = [r["message"]["text"] for r in log["runs"][0]["results"]]
    named = [text for text in said if "x.example" in text]
    assert named and all(r"\[Accepted\](https" in text for text in named)


def test_sarif_has_what_its_schema_requires(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario(tmp_path, 3.0)
    code, out, _ = run(capsys, "assess", "own.toml", "--format", "sarif")
    log = json.loads(out)
    assert code == 1 and set(log) == {"$schema", "version", "runs"} and log["version"] == "2.1.0"
    (made,) = log["runs"]
    driver = made["tool"]["driver"]
    assert driver["name"] == "dprad" and [rule["id"] for rule in driver["rules"]] == ["extra-risk"]
    levels = set()
    for result in made["results"]:
        assert result["message"]["text"] and result["ruleId"] == driver["rules"][0]["id"]
        assert result["level"] in ("error", "warning", "note")
        levels.add(result["level"])
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "own.toml"
    assert levels == {"error", "note"} and len(made["results"]) == 6
    lines = [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in made["results"]]
    assert lines == [17, 17, 9, 9, 13, 13]
    code, out, _ = run(capsys, "assess", tmp_path / "own.toml", "--format", "sarif")
    place = json.loads(out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tmp_path / "own.toml").as_uri()
    code, out, _ = run(capsys, *ONE, "--max-risk", "0.5", "--format", "sarif")
    assert code == 0 and "locations" not in json.loads(out)["runs"][0]["results"][0]


def test_markdown_is_a_verdict_and_a_table(tmp_path, capsys):
    code, out, _ = run(capsys, "assess", scenario(tmp_path, 3.0), "--format", "markdown")
    assert code == 1 and "**Not accepted.**" in out
    rows = [line for line in out.split("\n") if line.startswith("|")]
    assert len(rows) == 8 and len({row.count(" | ") for row in (rows[0], *rows[2:])}) == 1
    assert "<co>" not in out.replace(r"\<co\>", "")
    code, out, _ = run(capsys, *ONE, "--format", "markdown")
    assert code == 0 and "ccepted.**" not in out and "a stranger who guesses" in out


def test_options_give_the_same_exit_codes(capsys):
    for limit in (0.1, 0.5):
        plain = run(capsys, *ONE, "--max-risk", limit)[0]
        for form in ("text", "junit", "sarif", "markdown"):
            code, out, _ = run(capsys, *ONE, "--max-risk", limit, "--format", form)
            assert code == plain == (limit < 0.3) and out
    assert run(capsys, *ONE)[1] == run(capsys, *ONE, "--format", "text")[1]
    _, out, _ = run(capsys, *ONE, "--max-risk", 0.1, "--target", "value", "--format", "junit")
    assert [one.get("name") for one in cases(out)] == [
        "an attacker who knows nothing about the person and guesses value"
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--format", "junit"], "needs an accepted risk"),
        (["--format", "sarif"], "needs an accepted risk"),
        (["--format", "xml"], "junit"),
        (["--format", "junit", "--max-risk", "1", "--json"], "--json does not apply"),
        (["--format", "junit", "--max-risk", "1", "--bounds"], "--bounds does not apply"),
        (["--format", "junit", "--max-risk", "1", "--by", "value"], "--by does not apply"),
    ],
)
def test_a_gate_needs_a_limit_and_one_format(more, words, capsys):
    code, out, err = run(capsys, *ONE, *more)
    assert (code, out) == (2, "") and words in err


def test_numbers_are_rounded(tmp_path, capsys):
    texts = set()
    for positives in (1, 2, 3):
        (tmp_path / "own.toml").write_text(
            f"[population]\ncounts = {{ no = {1000 - positives}, yes = {positives} }}\n"
            '[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n[accepted]\nrisk = 0.2\n'
        )
        for form in ("junit", "sarif", "markdown"):
            texts.add(run(capsys, "assess", tmp_path / "own.toml", "--format", form)[1])
    assert len(texts) == 3


def test_packs_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario(tmp_path, 1.0)
    code, out, _ = run(capsys, "report", "own.toml", "--evidence", "pack")
    assert (code, out) == (0, "Wrote 5 files to pack.\n")
    results = json.loads(Path("pack/results.json").read_text())
    assert results["command"] == "dprad report own.toml --evidence pack"
    code, _, err = run(capsys, "report", "own.toml", "--evidence", "other", "-o", "r.html")
    assert code == 2 and "not both" in err and not Path("other").exists()


def test_the_example_pipeline_is_what_the_page_says():
    yaml = pytest.importorskip("yaml")
    text = (Path(__file__).parents[3] / "examples/gate.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    said = " ".join(step.get("run", "") for step in steps)
    assert "dprad assess scenario.toml --format junit > dprad.xml" in said
    assert "dprad report scenario.toml --evidence evidence" in said
