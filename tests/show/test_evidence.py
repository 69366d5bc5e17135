"""Evidence packs: what is in them, what each number means, and where they are written."""

from __future__ import annotations

import hashlib
import html
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest

import dprad
from dprad import DpradError, Prior, Threat, assess, mechanisms, scenario
from dprad.show.report import evidence as packs
from dprad.show.report.evidence import evidence, folder
from dprad.show.report.evidence.facts import EXCLUSIONS, FORMAT, PAGES
from dprad.show.report.published import published
from strangers import theirs

DAY = date(2026, 5, 4)
NAMES = ["SHA256SUMS", "evidence.md", "report.html", "results.json", "scenario.toml"]
PLAIN = """[population]
builtin = "patients"
columns = ["smoker", "diagnosis"]
[[threats]]
name = "Mallory"
knows = ["smoker"]
target = ["diagnosis"]
[[releases]]
name = "reports"
mechanism = "grr"
epsilon = 1.0
query = "diagnosis"
[accepted]
risk = 0.2
by = "A. Turing"
on = "2026-01-02"
"""


def pack(text, tmp_path, name="pack", **options):
    file = tmp_path / "own.toml"
    file.write_text(text)
    target = evidence(scenario.load(file), tmp_path / name, today=DAY, **options)
    return target, json.loads((target / "results.json").read_text())


def questions(results):
    return {one["name"]: one for one in results["opinion"]["questions"]}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    target = tmp_path_factory.mktemp("packs") / "pack"
    evidence(scenario.builtin(), target, command="dprad report --evidence pack", today=DAY)
    return target


def test_everything_is_there_private_and_hashed(example):
    assert sorted(path.name for path in example.iterdir()) == NAMES
    assert stat.S_IMODE(example.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in example.iterdir()} == {0o600}
    listed = dict(
        line.split("  ")[::-1] for line in (example / "SHA256SUMS").read_text().split("\n")[:-1]
    )
    assert sorted(listed) == NAMES[1:]
    for name, digest in listed.items():
        assert hashlib.sha256((example / name).read_bytes()).hexdigest() == digest
    assert (example / "scenario.toml").read_text() == scenario.EXAMPLE
    results = json.loads((example / "results.json").read_text())
    assert results["format"] == "dprad evidence 1" and results["made"] == "2026-05-04"
    assert results["verdict"]["outcome"] == "exceeded" and len(results["risks"]) == 6
    assert results["audits"][0]["verdict"] == "consistent"
    assert {"Invariants", "Tuning on raw data", "Side channels"} <= set(results["exclusions"])
    assert list(questions(results)) == ["Singling out", "Linkability", "Inference"]
    said = (example / "evidence.md").read_text()
    assert all(f"**{name}.**" in said for name in EXCLUSIONS)
    assert "**Not accepted.**" in said and "Consistent with the claim" in said
    assert "sha256sum -c SHA256SUMS" in said and "Opinion 05/2014" in said
    assert not [path for path in example.parent.iterdir() if path.name.startswith(".dprad-")]


def test_proofs_exist(example):
    root = Path(__file__).parents[2]
    results = json.loads((example / "results.json").read_text())
    assert len(results["methods"]) > 4
    for row in results["methods"]:
        assert (root / row["proof"]).exists()
    named = {row.name for row in dprad.bounds.TABLE if row.measure == "rad"}
    assert set(PAGES) == named
    assert all((root / f"docs/theory/{page}.md").exists() for page in PAGES.values())


def test_the_three_questions_are_those_of_assess(tmp_path):
    target, results = pack(PLAIN, tmp_path)
    prior = dprad.patients.prior(["smoker", "diagnosis"])
    subject = mechanisms.GRR(epsilon=1.0, size=5)
    wanted = {
        "Singling out": [("a stranger who guesses the whole record", Threat())],
        "Linkability": [
            (
                "someone who has the whole record and asks whether it was used",
                Threat(knows="everything"),
            )
        ],
        "Inference": [
            ("Mallory", Threat(knows=["smoker"], target=["diagnosis"])),
            ("a stranger who guesses diagnosis", Threat(target=["diagnosis"])),
        ],
    }
    for name, cases in wanted.items():
        rows = questions(results)[name]["rows"]
        assert [row["attacker"] for row in rows] == [attacker for attacker, _ in cases]
        for row, (_, threat) in zip(rows, cases, strict=True):
            risk = published(assess(subject, prior=prior, threat=threat, query="diagnosis"))
            assert (row["rad"], row["success_in"], row["success_out"], row["worst"]) == (
                risk.rad, risk.success_in, risk.success_out, risk.worst,
            )  # fmt: skip
            known = None if name == "Linkability" else risk.baseline
            assert row["baseline"] == known and row["worst"] >= row["rad"] > 0
    assert "only one" in questions(results)["Linkability"]["not_assessed"][0]
    assert results["accepted"] == {
        "risk": 0.2, "of": "average", "by": "A. Turing", "on": "2026-01-02",
    }  # fmt: skip
    assert "Limit set by: A. Turing; on: 2026-01-02." in (target / "evidence.md").read_text()


def test_two_releases_are_linked_by_all_together(example):
    link = questions(json.loads((example / "results.json").read_text()))["Linkability"]
    assert any("all releases together" in text for text in link["means"])
    assert any("other data sets" in text for text in link["not_assessed"])


def test_what_cannot_be_asked_is_not_assessed(tmp_path):
    promise = '[[releases]]\nepsilon = 1.0\nneighbours = "replace-one"\n'
    target, results = pack(f"[population]\nunknown = true\n{promise}", tmp_path, "unknown")
    asked = questions(results)
    assert asked["Singling out"]["rows"][0]["baseline"] is None
    assert asked["Inference"]["rows"] == []
    assert asked["Inference"]["not_assessed"][0] == "This question: no columns are known."
    said = (target / "evidence.md").read_text()
    assert "**Not assessed.**" in said and "nothing is decided" in said
    # what a mechanism reads depends on the attacker
    text = PLAIN.replace('query = "diagnosis"\n', "") + (
        '[[threats]]\nname = "Trudy"\ntarget = ["smoker"]\n'
    )
    _, results = pack(text, tmp_path, "reads")
    assert questions(results)["Singling out"]["rows"] == []
    assert "does not say what" in questions(results)["Singling out"]["not_assessed"][0]
    assert len(questions(results)["Inference"]["rows"]) == 2


def test_many_columns_are_not_guessed_one_by_one(tmp_path):
    names = [f"c{i}" for i in range(41)]
    lines = [",".join(names), *(",".join([str(i % 2)] * 41) for i in range(20))]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    text = '[population]\ndata = "wide.csv"\n[[threats]]\nknows = "everything"\n'
    _, results = pack(text + '[[releases]]\nepsilon = 1.0\nneighbours = "replace-one"\n', tmp_path)
    asked = questions(results)
    assert len(asked["Singling out"]["rows"]) == len(asked["Linkability"]["rows"]) == 1
    assert "too many columns" in asked["Inference"]["not_assessed"][0]
    digest = hashlib.sha256((tmp_path / "wide.csv").read_bytes()).hexdigest()
    assert results["inputs"][1] == {"what": "data", "name": "wide.csv", "sha256": digest}


def test_one_column_is_record_and_attribute(tmp_path):
    _, results = pack(
        '[population]\nuniform = 4\n[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n', tmp_path
    )
    asked = questions(results)
    assert asked["Singling out"]["rows"] == asked["Inference"]["rows"] != []


@pytest.mark.parametrize(
    ("written", "day", "expected"),
    [
        ("", DAY, "2027-05-04"),
        ("", date(2028, 2, 29), "2029-03-01"),
        ('review = "2026-12-31"\n', DAY, "2026-12-31"),
        ("review = 2026-12-31\n", DAY, "2026-12-31"),
        ('review = "2026-01-01"\n', DAY, "2026-01-01"),
    ],
)
def test_the_date_of_review(written, day, expected, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(PLAIN + written)
    target = evidence(scenario.load(file), tmp_path / "pack", today=day)
    said = (target / "evidence.md").read_text()
    assert f"To be reviewed by {expected}." in said
    assert ("This date has passed" in said) == (expected < day.isoformat())


@pytest.mark.parametrize(
    "value", ['"soon"', '"2026-02-30"', '"20260101"', "5", "2026-01-01T10:00:00"]
)
def test_dates_are_checked(value, tmp_path):
    (tmp_path / "own.toml").write_text(f"{PLAIN}review = {value}\n")
    with pytest.raises(DpradError, match=r"line 17, \[accepted\]: review must be a date"):
        scenario.load(tmp_path / "own.toml")


# -- the folder ------------------------------------------------------------------------------------
def test_never_over_what_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(packs, "answer", lambda *_, **__: pytest.fail("too late"))
    full, file = tmp_path / "full", tmp_path / "file"
    full.mkdir()
    (full / "results.json").write_text('{"format": "another"}')
    (full / "SHA256SUMS").write_text("")
    file.write_text("mine")
    for target in (full, file):
        with pytest.raises(DpradError, match="not an evidence pack"):
            pack(PLAIN, tmp_path, target.name)
    (full / "results.json").write_text('{"format": "dprad evidence 1"}')
    (full / "notes.txt").write_text("mine")
    with pytest.raises(DpradError, match="not an evidence pack"):
        pack(PLAIN, tmp_path, "full")
    (full / "notes.txt").unlink()
    (full / "report.html").mkdir()
    (full / "report.html" / "notes.txt").write_text("mine")
    with pytest.raises(DpradError, match="not an evidence pack"):
        pack(PLAIN, tmp_path, "full")
    (full / "results.json").write_text("[" * 100_000)
    with pytest.raises(DpradError, match="not an evidence pack"):
        pack(PLAIN, tmp_path, "full")
    with pytest.raises(DpradError, match="make it first"):
        pack(PLAIN, tmp_path, "no/such")
    assert (full / "report.html" / "notes.txt").read_text() == file.read_text() == "mine"


def test_an_earlier_pack_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "pack").mkdir()
    target, _ = pack(PLAIN, tmp_path)  # into an empty folder
    _, results = pack(PLAIN.replace("0.2", "0.01"), tmp_path)
    assert results["verdict"]["outcome"] == "exceeded"
    assert sorted(path.name for path in target.iterdir()) == NAMES
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    real = os.open

    def full(path, how, *rest, **more):
        if os.fspath(path).endswith("results.json") and how & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return real(path, how, *rest, **more)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(DpradError, match="No space left"):
        pack(PLAIN, tmp_path)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".dprad-")]


OLD, NEW = ({"results.json": json.dumps({"format": FORMAT, "k": k}).encode()} for k in (1, 2))


def test_ctrl_c_between_two_renames_keeps_the_earlier_pack(tmp_path, monkeypatch):
    target = folder.seal(tmp_path / "pack", OLD)
    real = os.rename

    def stopped(path, to, **where):
        if to == target.name and not target.exists():
            monkeypatch.undo()
            raise KeyboardInterrupt
        return real(path, to, **where)

    monkeypatch.setattr(os, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        folder.seal(target, NEW)
    assert (target / "results.json").read_bytes() == OLD["results.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]


KILLED = """
import os, sys
from pathlib import Path
from dprad.show.report.evidence import folder
target, real = Path(sys.argv[1]), os.rename
os.rename = lambda *to, **on: real(*to, **on) if target.exists() else os._exit(9)
folder.seal(target, {"results.json": sys.argv[2].encode()})
"""


def test_a_kill_between_two_renames_leaves_both_packs(tmp_path):
    target = folder.seal(tmp_path / "pack", OLD)
    command = [sys.executable, "-c", KILLED, str(target), NEW["results.json"].decode()]
    assert subprocess.run(command, timeout=120).returncode == 9
    left = {(path / "results.json").read_bytes() for path in tmp_path.glob(".dprad-*")}
    assert left == {*OLD.values(), *NEW.values()} and not target.exists()


def test_a_scenario_that_changed_is_refused(tmp_path):
    file = tmp_path / "own.toml"
    file.write_bytes(PLAIN.replace("\n", "\r\n").encode())
    loaded = scenario.load(file)
    target = evidence(loaded, tmp_path / "pack", today=DAY)
    assert (target / "scenario.toml").read_bytes() == file.read_bytes()
    file.write_text(PLAIN + "# later\n")
    with pytest.raises(DpradError, match="was changed"):
        evidence(loaded, tmp_path / "other", today=DAY)
    assert not (tmp_path / "other").exists()


def test_a_name_is_not_markup(tmp_path):
    text = PLAIN.replace('name = "Mallory"', 'name = "<b>|x| # *y*"')
    target, results = pack(text, tmp_path)
    said = (target / "evidence.md").read_text()
    assert "<b>" not in said.replace(r"\<b\>", "") and r"\<b\>\|x\| \# \*y\*" in said
    assert results["risks"][0]["attacker"] == "<b>|x| # *y*"


def test_a_file_that_is_the_whole_population_of_counts(tmp_path):
    release = '[[releases]]\nmechanism = "grr"\nepsilon = 1.0\n'
    text = f"[population]\ncounts = {{ no = 70, yes = 30 }}\n{release}"
    target, results = pack(text, tmp_path)
    assert not (target / "scenario.toml").exists()
    assert results["inputs"][0]["sha256"] is None and "counts" in results["inputs"][0]["note"]
    prior = Prior.from_counts({"no": 70, "yes": 30})
    risk = assess(mechanisms.GRR(epsilon=1.0, size=2), prior=prior)
    assert results["risks"][0]["rad"] == published(risk).rad


def test_the_report_of_a_pack_says_what_the_pack_says(tmp_path):
    """Others than the scenario's attackers are above the limit, or cannot be assessed."""
    text = PLAIN.replace('target = ["diagnosis"]', 'target = ["smoker"]')
    text = text.replace('knows = ["smoker"]', 'knows = "nothing"').replace(
        "risk = 0.2", "risk = 0.1"
    )
    open_ended = text.replace('query = "diagnosis"\n', "").replace(
        '[[releases]]', '[[threats]]\nname = "Eve"\ntarget = ["diagnosis"]\n[[releases]]'
    ).replace("epsilon = 1.0", "epsilon = 0.3")  # fmt: skip
    for name, asked, why in (("a", text, "not within the limit"), ("b", open_ended, "be assessed")):
        target, results = pack(asked, tmp_path, name)
        assert results["verdict"]["word"] == "Accepted for the attackers of the scenario only"
        assert why in results["verdict"]["sentence"]
        for file in ("evidence.md", "report.html"):
            said = html.unescape((target / file).read_text())
            assert results["verdict"]["word"] in said and why in said
        assert "may be published" not in said


def test_a_pack_does_not_replace_its_own_scenario(tmp_path):
    target, _ = pack(PLAIN, tmp_path)
    inside = target / "scenario.toml"
    with pytest.raises(DpradError, match=r"holds an input \(scenario.toml\)"):
        evidence(scenario.load(inside), target, today=DAY)
    assert inside.read_text() == PLAIN
    assert evidence(scenario.load(inside), tmp_path / "other", today=DAY).is_dir()


@pytest.mark.parametrize("swap", ["link", "full", "empty"])
def test_nothing_is_written_into_what_takes_the_place_of_a_pack(tmp_path, monkeypatch, swap):
    """Somebody who may write in the folder swaps what is written, before it is held."""
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "place"
    elsewhere.mkdir()
    place.mkdir()
    if swap == "full":
        (elsewhere / "results.json").write_text("mine")
    real = os.mkdir

    def swapped(name, *asked, **where):
        real(name, *asked, **where)
        (place / name).rename(tmp_path / "away")
        (place / name).symlink_to(elsewhere) if swap == "link" else elsewhere.rename(place / name)

    monkeypatch.setattr(os, "mkdir", swapped)
    if swap == "empty":  # as good as the one that was made
        folder.seal(place / "pack", OLD)
        return
    with pytest.raises(DpradError):
        folder.seal(place / "pack", OLD)
    left = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert [p.read_text() for p in left] == (["mine"] if swap == "full" else [])


def precious(tmp_path):
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    for name in ("deep/diary", *NAMES):
        (tmp_path / "mine" / name).write_text("mine")
    return tmp_path / "mine"


def exchanged(one, two):
    """The two names, the other way round."""
    one.rename(one.with_name("between"))
    two.rename(one)
    one.with_name("between").rename(two)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("when", range(1, 6))
def test_what_is_put_in_the_place_of_a_folder_is_not_deleted(tmp_path, monkeypatch, when, which):
    """At any step somebody exchanges one of the two packs with another folder."""
    mine = precious(tmp_path)
    target, steps = folder.seal(tmp_path / "pack", OLD), []

    def then(real):
        def does(*given, **where):
            steps.append(real)
            if len(steps) == when:
                packs = [*sorted(tmp_path.glob(".dprad-*")), *filter(Path.exists, [target])]
                exchanged(packs[which], mine)
            return real(*given, **where)

        return does

    for name in ("rename", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, then(getattr(os, name)))
    with suppress(DpradError):
        folder.seal(target, NEW)
    monkeypatch.undo()
    kept = next(tmp_path.rglob("diary")).parents[1]
    assert len(steps) > when
    assert all((kept / name).read_text() == "mine" for name in ("deep/diary", *NAMES))
    left = {path.read_bytes() for path in tmp_path.rglob("results.json")}
    assert left & {*OLD.values(), *NEW.values()}  # one of the two, whole


def test_a_pack_that_others_may_write_in_is_not_deleted(tmp_path, monkeypatch):
    target = folder.seal(tmp_path / "pack", OLD)
    target.chmod(0o770)
    with pytest.raises(DpradError, match="others may write in it"):
        folder.seal(target, NEW)
    target.chmod(0o500)
    folder.seal(target, NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]
    theirs(monkeypatch, target)
    with pytest.raises(DpradError, match="somebody else's"):
        folder.usable(target)
    assert (target / "results.json").read_bytes() == NEW["results.json"]


def test_a_place_that_was_filled_meanwhile_keeps_both_packs(tmp_path, monkeypatch):
    target, mine = folder.seal(tmp_path / "pack", OLD), precious(tmp_path)
    real = os.rename

    def filled(path, to, **where):
        if to == target.name and mine.exists():
            real(mine, target)
        return real(path, to, **where)

    monkeypatch.setattr(os, "rename", filled)
    with pytest.raises(DpradError, match=r"the earlier pack is now called \.dprad-"):
        folder.seal(target, NEW)
    assert (target / "deep" / "diary").read_text() == "mine"
    (aside,) = tmp_path.glob(".dprad-*")
    assert (aside / "results.json").read_bytes() == OLD["results.json"]
