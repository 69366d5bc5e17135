"""The page in a browser: the answer first, once, and about the strongest attacker."""

from __future__ import annotations

import pytest

from dprad import Threat, patients
from dprad.model import explain
from dprad.show.scenario import answer
from dprad.show.scenario.file import parse
from dprad.show.web import population
from dprad.show.web.drawn import exposed
from dprad.show.web.field import HELP
from dprad.show.web.population import PROMISE, released
from dprad.show.web.question import Question
from dprad.verbs.attackers import standard
from show.web.conftest import BROWSER, served

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on this machine (Debian's package chromium)"
)
PLACE = population.patients()
GRR = released(PLACE, "grr", 1.0, reads="diagnosis")


def answered(*releases, accepted=0.1, worst=False, attackers=None):
    asked = Question(
        population=PLACE, attackers=attackers or tuple(standard(PLACE.prior)), releases=releases,
        accepted=accepted, worst=worst, standard=True,
    )  # fmt: skip
    return answer(asked.scenario(), plans=False, audits=False)


def shows(page, expected):
    """Verdict, strongest attacker and both numbers are those of a scenario's answers."""
    name, risk = expected.strongest
    see = sync_api.expect
    see(page.locator("#said")).to_have_text(str(expected.verdict), timeout=30_000)
    see(page.locator("#word")).to_have_text(expected.verdict.word)
    see(page.locator("#rad")).to_have_text(explain.number(risk))
    see(page.locator("#exposed")).to_have_text(exposed(risk))
    see(page.locator("#strongest")).to_have_text(f"Strongest attacker: {name}.")
    see(page.locator("#attackers .case").first).to_contain_text(name)
    assert page.locator("#attackers .case.strongest").count() == 1


def fill(page, where, text):
    page.fill(where, text)
    page.press(where, "Enter")


def test_it_opens_on_the_strongest_attacker(page):
    shows(page, answered(GRR))
    assert page.locator("#attackers .case").count() == len(standard(patients.prior()))


def test_the_accepted_risk(page):
    fill(page, "#accepted", "0.2")
    shows(page, answered(GRR, accepted=0.2))
    assert page.inner_text("#word") == "Accepted"
    page.check("input[name=worst][value=worst]")
    shows(page, answered(GRR, accepted=0.2, worst=True))
    assert page.inner_text("#word") == "Not accepted"
    fill(page, "#accepted", "")
    sync_api.expect(page.locator("#word")).to_have_text("Extra risk", timeout=30_000)
    assert page.locator("#said").count() == 0


def test_releases_together_and_both_neighbours(page):
    page.click("#more")
    page.wait_for_selector("#mechanism2")
    page.select_option("#mechanism2", PROMISE)
    page.check("input[name=neighbours2][value=add-remove]")
    fill(page, "#delta2", "0.00001")
    fill(page, "#value2", "0.5")
    added = released(PLACE, PROMISE, 0.5, delta=1e-5, neighbours="add-remove")
    shows(page, answered(GRR, added))
    sync_api.expect(page.locator("#verdict")).to_contain_text("All 2 releases together")
    page.wait_for_selector("ul#needed", timeout=60_000)
    page.check("input[name=neighbours2][value=replace-one]")
    shows(page, answered(GRR, released(PLACE, PROMISE, 0.5, delta=1e-5)))
    page.click("#remove_more2")
    shows(page, answered(GRR))
    page.check("input[name=who][value=own]")
    page.select_option("#mechanism", "promise-mu")
    stranger = ("a stranger who guesses diagnosis", Threat(target=["diagnosis"]))
    shows(page, answered(released(PLACE, "promise-mu", 1.0), attackers=(stranger,)))
    page.select_option("#mechanism", "promise-rho")
    sync_api.expect(page.locator("#value-label")).to_contain_text("rho", timeout=30_000)
    page.check("input[name=neighbours][value=unknown]")
    fill(page, "#value", "0.1")
    unstated = released(PLACE, "promise-rho", 0.1, neighbours="unknown")
    shows(page, answered(unstated, attackers=(stranger,)))


def wide(tmp_path, columns=15, rows=60):
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(columns)]
    cells = [[str(i % (k + 2)) for k in range(columns)] for i in range(rows)]
    path.write_text("\n".join(",".join(row) for row in [names, *cells]) + "\n")
    return path


def test_columns_are_picked_from_fifteen(page, tmp_path):
    page.select_option("#population", "file")
    page.set_input_files("#file", str(wide(tmp_path)))
    page.wait_for_selector("input[name=picked]", timeout=30_000)
    assert page.locator("input[name=picked]").count() == 15
    assert page.locator("input[name=picked]:checked").count() == population.PICKED
    assert "c3" in page.inner_text("#columns") and "whole number, 5" in page.inner_text("#columns")
    chosen = "c0,c1,c2,c3,c4,c5"
    sync_api.expect(page.locator("#command")).to_contain_text(
        f"--columns {chosen} ", timeout=30_000
    )
    page.check("input[name=picked][value=c14]")
    page.uncheck("input[name=picked][value=c0]")
    said = "--columns c1,c2,c3,c4,c5,c14 "
    sync_api.expect(page.locator("#command")).to_contain_text(said, timeout=30_000)
    page.wait_for_selector("#rad")
    for k in range(13):
        page.check(f"input[name=picked][value=c{k}]")
    sync_api.expect(page.locator(".alert")).to_contain_text("are picked", timeout=30_000)
    page.uncheck("input[name=picked][value=c14]")
    page.uncheck("input[name=picked][value=c0]")
    page.wait_for_selector("#rad", timeout=60_000)


def test_an_error_is_shown_once(page):
    page.select_option("#population", "file")
    sync_api.expect(page.locator(".alert")).to_have_text("Choose a file first.", timeout=30_000)
    page.wait_for_timeout(500)
    assert page.locator(".alert").count() == 1
    assert page.inner_text("body").count("hoose a file first") == 1
    page.select_option("#population", "uniform")
    fill(page, "#size", "0")
    sync_api.expect(page.locator(".alert")).to_contain_text("between 1 and", timeout=30_000)
    page.wait_for_timeout(500)
    assert page.locator(".alert").count() == 1
    assert page.inner_text("body").count("between 1 and 10,000 values") == 1
    assert page.locator("#rad").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_comes_first(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate("window.scrollTo(0, 0)")
    verdict, controls = (page.locator(at).bounding_box() for at in (".verdict", "#controls"))
    first = page.locator("#first").bounding_box()
    assert verdict["y"] + verdict["height"] < 400
    if width == 390:
        assert verdict["y"] < first["y"] < first["y"] + first["height"] <= controls["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # and it stays in sight while the inputs are changed
        page.locator("#accepted").scroll_into_view_if_needed()
        assert 0 <= page.locator(".verdict").bounding_box()["y"] < 100
    else:
        assert controls["x"] + controls["width"] <= verdict["x"]


UNHELPED = """() => [...document.querySelectorAll('main :is(input, select, button, a.btn)')]
  .filter(e => e.offsetParent && !e.closest('.field[data-help]') && !/^remove_/.test(e.id))
  .map(e => e.id || e.name || e.outerHTML)"""


def test_every_control_has_help(page, tmp_path):
    page.select_option("#mechanism", PROMISE)
    page.wait_for_selector("#delta")
    assert page.evaluate(UNHELPED) == []
    page.check("input[name=who][value=own]")
    page.wait_for_selector("#target")
    page.select_option("#population", "file")
    page.set_input_files("#file", str(wide(tmp_path)))
    page.wait_for_selector("input[name=picked]", timeout=30_000)
    assert page.evaluate(UNHELPED) == []
    help_ = page.locator(".field[data-help=accepted]")
    assert not help_.locator("p").is_visible()
    help_.locator("summary").click()
    assert help_.locator("p").inner_text() == HELP["accepted"]


WATCH = """window.seen = new Set(); new MutationObserver(() => {
  const at = document.querySelector('#progress'); if (at) window.seen.add(at.innerText.trim()); })
  .observe(document, {subtree: true, childList: true, characterData: true});"""


def test_progress_is_shown(page, tmp_path):
    page.evaluate(WATCH)
    page.select_option("#population", "file")
    page.set_input_files("#file", str(wide(tmp_path)))
    sync_api.expect(page.locator("#command")).to_contain_text("wide.csv", timeout=60_000)
    seen = " ".join(page.evaluate("[...window.seen]"))
    assert "Reading the file" in seen and "Computing" in seen
    sync_api.expect(page.locator("#progress")).to_be_empty(timeout=30_000)


UNKNOWN = """[population]
unknown = true
[[releases]]
name = "the training"
epsilon = 1.0
delta = 1e-5
neighbours = "add-remove"
[accepted]
risk = 0.3
worst = true
"""


def test_a_scenario_without_a_population(browser, tmp_path):
    (tmp_path / "own.toml").write_text(UNKNOWN)
    expected = answer(parse(UNKNOWN, name="own.toml", folder=tmp_path), plans=False, audits=False)
    with served("own.toml", cwd=tmp_path) as address:
        tab = browser.new_page()
        tab.goto(address)
        shows(tab, expected)
        tab.close()
