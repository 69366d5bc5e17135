"""The page in a real browser: every request that is not local is blocked, and none is attempted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from dprad import Prior, Threat, assess, calibrate, mechanisms, patients
from dprad.model import explain
from dprad.show.report.published import published
from dprad.show.scenario import answer
from dprad.show.scenario.file import parse
from dprad.verbs.attackers import standard
from effort import some
from show.web.conftest import BROWSER, free_port, served

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on this machine (Debian's package chromium)"
)


def risk(epsilon, threat=None):
    threat = threat or Threat(target=["diagnosis"])
    grr = mechanisms.GRR(epsilon=epsilon, size=5)
    return assess(grr, prior=patients.prior(), threat=threat, query="diagnosis")


def strongest(epsilon):
    """The standard attackers' largest risk, as the page shows it when it opens."""
    found = [risk(epsilon, threat) for _, threat in standard(patients.prior())]
    return max(found, key=lambda r: r.interval[1])


def own(page):
    """Ask about an attacker of one's own: first a stranger who guesses the last column."""
    page.check("input[name=who][value=own]")


def shows(page, expected):
    """The number on the page becomes what the library says."""
    sync_api.expect(page.locator("#rad")).to_have_text(explain.number(expected), timeout=30_000)
    sync_api.expect(page.locator("#sentence")).to_have_text(str(expected))


def test_load(page):
    shows(page, strongest(1.0))
    own(page)
    shows(page, risk(1.0))
    assert page.locator("circle.extra").count() == 10
    assert "mechanisms.GRR(epsilon=1.0, size=5)" in page.inner_text("#python")
    command = page.inner_text("#command")
    assert "dprad assess --mechanism grr --epsilon 1 --data patients.csv" in command
    assert "--knows nothing --target diagnosis --max-risk 0.1" in command
    page.wait_for_selector(".chart svg")


def test_epsilon_by_box_and_by_slider(page):
    own(page)
    page.fill("#value", "2.5")
    page.press("#value", "Enter")
    shows(page, risk(2.5))
    line = page.locator(".irs-line").first
    box = line.bounding_box()
    line.click(position={"x": box["width"] * 0.5, "y": box["height"] / 2})
    page.wait_for_function("document.querySelector('#value').value != '2.5'")
    value = float(page.input_value("#value"))
    assert 4 < value < 6
    shows(page, risk(value))
    # beyond the slider's end the box still counts
    page.fill("#value", "12")
    page.press("#value", "Enter")
    shows(page, risk(12.0))
    assert page.input_value("#value") == "12"


def test_attackers(page):
    own(page)
    page.check("input[name=kind][value=everything]")
    shows(page, risk(1.0, Threat(knows="everything")))
    page.check("input[name=kind][value=columns]")
    page.check("input[name=columns][value=age]")
    shows(page, risk(1.0, Threat(knows=["age"], target=["diagnosis"])))
    page.select_option("#target", "smoker")
    page.select_option("#reads", "smoker")
    grr = mechanisms.GRR(epsilon=1.0, size=2)
    smoker = Threat(knows=["age"], target=["smoker"])
    shows(page, assess(grr, prior=patients.prior(), threat=smoker, query="smoker"))


def test_calibrate(page):
    own(page)
    page.fill("#accepted", "0.05")
    page.press("#accepted", "Enter")
    plan = calibrate(
        mechanisms.GRR, max_risk=0.05, prior=patients.prior(), query="diagnosis",
        threat=Threat(target=["diagnosis"]), size=5,
    )  # fmt: skip
    sync_api.expect(page.locator("#needed")).to_have_text(
        explain.safely(plan.value, plan.rising), timeout=30_000
    )
    page.fill("#accepted", "7")
    page.press("#accepted", "Enter")
    page.wait_for_selector("#answer .alert")


def test_numbers_and_other_mechanisms(page):
    page.select_option("#population", "uniform")
    page.wait_for_selector("#mechanism option[value=laplace]", state="attached")
    page.select_option("#mechanism", "laplace")
    own(page)
    page.fill("#eta", "2")
    page.press("#eta", "Enter")
    page.fill("#size", "11")  # what was chosen before stays
    page.press("#size", "Enter")
    laplace = mechanisms.Laplace(epsilon=1.0, sensitivity=10.0)
    near = Threat(loss="absolute", eta=2)
    shows(page, assess(laplace, prior=Prior.uniform(11), threat=near))
    page.select_option("#mechanism", "gaussian")
    page.wait_for_function("document.querySelector('#value-label').innerText == 'sigma'")
    gaussian = mechanisms.Gaussian(sigma=1.0, sensitivity=10.0)
    shows(page, assess(gaussian, prior=Prior.uniform(11), threat=near))


def test_downloads(page, tmp_path):
    with page.expect_download() as found:
        page.click("#scenario")
    text = Path(found.value.path()).read_text()
    scenario = parse(text, name="downloaded", folder=tmp_path)
    answers = answer(scenario, plans=False, audits=False)
    _, again = answers.strongest
    assert str(again) == str(strongest(1.0)) and scenario.accepted == 0.1
    with page.expect_download(timeout=60_000) as found:
        page.click("#report")
    html = Path(found.value.path()).read_text()
    assert explain.number(published(again)) in html and "<script" not in html


def test_a_hostile_table(page, tmp_path):
    evil = '<img src=x onerror="window.hacked=1">'
    rows = [f'"{evil.replace(chr(34), chr(34) * 2)}","two\nlines \U0001f600"', "a'b,</select>"] * 20
    path = tmp_path / "evil<b>.csv"
    header = '"<script>window.hacked=1</script>","na""me"\n'
    path.write_text(header + "\n".join(rows) + "\n")
    page.select_option("#population", "file")
    page.set_input_files("#file", str(path))
    page.wait_for_selector("input[name=picked]")
    own(page)
    page.wait_for_selector("input[name=kind][value=columns]")
    page.check("input[name=kind][value=columns]")
    page.wait_for_selector("text=window.hacked=1", state="attached")
    sync_api.expect(page.locator("#rad")).to_be_visible(timeout=30_000)
    assert page.evaluate("window.hacked") is None
    page.set_input_files("#file", {"name": "no.csv", "mimeType": "text/csv", "buffer": b""})
    page.wait_for_selector(".alert")


OWN = """title = "Ours"
[population]
counts = { 10 = 3, 20 = 5, 30 = 2, 40 = 1 }
[[threats]]
knows = "everything"
[[releases]]
name = "the training"
mu = 0.8
neighbours = "add-remove"
[[releases]]
mechanism = "laplace"
epsilon = 2.0
sensitivity = 40
[accepted]
risk = 0.03
"""


def test_a_scenario_is_opened_as_it_is(browser, tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    scenario = parse(OWN, name="own.toml", folder=tmp_path)
    threat = scenario.threats[0][1]
    with served("own.toml", cwd=tmp_path) as address:
        tab = browser.new_page()
        tab.goto(address)
        tab.wait_for_selector("#rad", timeout=30_000)
        shows(tab, answer(scenario, plans=False, audits=False).joint[0])
        assert tab.input_value("#accepted") == "0.03"
        tab.click("#remove_more2")
        for k in (0, 1):
            release = scenario.releases[k]
            tab.select_option("#mechanism", f"release {k}")
            subject = release.subject(scenario.prior, threat)
            shows(tab, assess(subject, prior=scenario.prior, threat=threat, query=release.query))
        assert "Laplace(epsilon=2.0, sensitivity=40.0)" in tab.inner_text("#python")
        assert "scenario.load('own.toml')" in tab.inner_text("#python")
        assert "dprad assess scenario.toml" in tab.inner_text("#command")
        with tab.expect_download() as found:
            tab.click("#scenario")
        again = parse(Path(found.value.path()).read_text(), name="again", folder=tmp_path)
        assert again.prior.support.tolist() == scenario.prior.support.tolist()
        assert again.releases[0].numbers == {"epsilon": 2.0, "sensitivity": 40.0}
        tab.close()


def test_a_busy_port(server, capsys):
    port = str(urlsplit(server).port)
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from dprad.show.cli import main; main()",
            "explore",
            "--port",
            port,
        ],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 2 and f"port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr


# -- who may talk to it ----------------------------------------------------------------------------
def answered(address, **headers):
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as found:
            return found.status, dict(found.headers), found.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_only_who_has_the_address_gets_in(server):
    parts = urlsplit(server)
    token = parts.path.strip("/")
    assert len(token) >= 32
    status, headers, text = answered(server)
    assert status == 200 and b"What does epsilon mean?" in text
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    root = f"http://127.0.0.1:{parts.port}"
    other = "y" if token[-1] == "x" else "x"
    for address in (
        root + "/",
        f"{root}/{token[:-1]}{other}/",
        f"{root}/x/{token}/",
        f"{root}/{token}",
    ):
        status, _, text = answered(address)
        assert status == 403 and b"epsilon" not in text
    for strange in (
        {"Host": f"evil.example:{parts.port}"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Length": "999999999999"},
    ):
        assert answered(server, **strange)[0] == 403
    assert answered(server, Origin=root)[0] == 200


FOREIGN = """<!doctype html><title>elsewhere</title><script>
window.heard = [];
function attack(address) {
  const socket = new WebSocket(address.replace("http:", "ws:") + "websocket/");
  socket.onopen = () => window.heard.push("open");
  socket.onmessage = m => window.heard.push(m.data);
  socket.onclose = () => { window.ended = true; };
  fetch(address, {mode: "no-cors"}).then(r => r.text()).then(t => window.heard.push("text" + t))
    .catch(() => { window.refused = true; });
}
</script>"""


def test_another_origin_hears_nothing(browser, server, tmp_path):
    """A page elsewhere, even one that got hold of the address, in a real browser."""
    (tmp_path / "index.html").write_text(FOREIGN)
    port = free_port()
    other = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    root = f"http://127.0.0.1:{urlsplit(server).port}/"
    try:
        tab = browser.new_page()
        for _ in range(100):
            try:
                tab.goto(f"http://127.0.0.1:{port}/")
                break
            except sync_api.Error:
                time.sleep(0.1)
        for address in (root, server):
            tab.evaluate("window.heard = []; window.ended = false; window.refused = false")
            tab.evaluate(f"attack({address!r})")
            tab.wait_for_function("window.ended", timeout=30_000)
            tab.wait_for_timeout(500)
            heard = tab.evaluate("window.heard")
            assert [h for h in heard if h not in ("text",)] == [], heard
        frame = tab.evaluate(
            """address => new Promise(done => {
              const f = document.createElement("iframe"); f.src = address;
              f.onload = () => { try { done(f.contentDocument && f.contentDocument.title || "") }
                                 catch { done("") } };
              document.body.append(f); setTimeout(() => done(""), 3000); })""",
            server,
        )
        assert frame == ""
        tab.close()
    finally:
        other.terminate()
        other.wait()


def test_long_messages_end_their_connection(page, server):
    closed = page.evaluate(
        """address => new Promise(done => {
          const socket = new WebSocket(address.replace("http:", "ws:") + "websocket/");
          socket.onopen = () => socket.send("x".repeat(200000));
          socket.onclose = e => done(e.code); })""",
        server,
    )
    assert closed == 1009  # too big
    shows(page, strongest(1.0))


def test_a_forged_upload_reads_no_other_file(page, tmp_path):
    secret = tmp_path / "salaries.csv"
    secret.write_text("name,salary\n" + "Zyx,918273\nAbc,5\n" * 10)
    page.select_option("#population", "file")
    for path in (str(secret), f"file://{secret}", f"{tmp_path}/*.csv", "/etc/passwd"):
        page.evaluate(
            "path => Shiny.setInputValue('file', "
            "[{name: 'own.csv', size: 10, type: 'text/csv', datapath: path}], {priority: 'event'})",
            path,
        )
        page.wait_for_timeout(700)
        text = page.content()
        assert "salary" not in text and "918273" not in text and "Zyx" not in text
        sync_api.expect(page.locator("#rad")).to_have_count(0)
    # and an honest one is read all the same
    page.set_input_files("#file", str(secret))
    page.wait_for_selector("input[name=picked][value=salary]")
    sync_api.expect(page.locator("#rad")).to_be_visible(timeout=30_000)


def test_large_tables_are_refused_and_nobody_waits(page, browser, server, tmp_path):
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{i}" for i in range(5000)) + "\n" + ",".join("1" * 5000) + "\n")
    many = tmp_path / "many.csv"
    many.write_text("a\n" + "\n".join(map(str, range(60_000))) + "\n")
    page.select_option("#population", "file")
    for path, words in ((wide, "columns"), (many, "different records")):
        page.set_input_files("#file", str(path))
        sync_api.expect(page.locator("#answer .alert")).to_contain_text(words, timeout=60_000)


def test_a_dear_question_keeps_nobody_waiting(page, browser, server, tmp_path):
    path = tmp_path / "numbers.csv"
    values = np.random.default_rng(0).random(20_000) * 1e4
    path.write_text("a\n" + "\n".join(f"{v:.6f}" for v in values) + "\n")
    page.select_option("#population", "file")
    page.set_input_files("#file", str(path))
    page.wait_for_selector("input[name=picked]", timeout=60_000)
    own(page)
    page.wait_for_selector("#eta", state="visible", timeout=60_000)
    page.select_option("#mechanism", "oue")
    page.fill("#eta", "50")
    page.wait_for_timeout(500)
    other = browser.new_page()
    try:
        other.goto(server)
        other.wait_for_selector("#rad", timeout=60_000)
        shows(other, strongest(1.0))
    finally:
        other.close()


def test_an_emoji_column_gives_a_valid_scenario(page, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\U0001f600,b\n" + "1,x\n2,y\n" * 20)
    page.select_option("#population", "file")
    page.set_input_files("#file", str(path))
    page.wait_for_selector("input[name=picked]")
    own(page)
    page.wait_for_selector("#target option[value='\U0001f600']", state="attached")
    page.select_option("#target", "\U0001f600")
    page.wait_for_function("document.querySelector('#python')?.innerText.includes('\U0001f600')")
    with page.expect_download() as found:
        page.click("#scenario")
    text = Path(found.value.path()).read_text()
    assert tomllib.loads(text)["threats"][0]["target"] == ["\U0001f600"]


def test_two_starts_at_once():
    port = str(free_port())
    command = [sys.executable, "-c", "from dprad.show.cli import main; main()", "explore"]
    both = [
        subprocess.Popen(
            [*command, "--no-browser", "--port", port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and all(p.poll() is None for p in both):
            time.sleep(0.1)
        ended = [p for p in both if p.poll() is not None]
        assert len(ended) == 1 and "is in use on this machine" in ended[0].stderr.read()
    finally:
        for process in both:
            process.terminate()
            process.communicate(timeout=20)


def test_the_browser_gets_the_address_from_a_private_file(browser, server, tmp_path, monkeypatch):
    """Arguments of a program can be read by everybody; and the page opens from such a file."""
    import webbrowser

    from dprad.show.web import _open

    given = []
    monkeypatch.setattr(webbrowser, "open", given.append)
    _open(server, tmp_path)
    assert urlsplit(server).path.strip("/") not in given[0] and given[0].startswith("file://")
    tab = browser.new_page()
    tab.goto(given[0])
    tab.wait_for_selector("#rad", timeout=30_000)
    tab.close()


def test_the_chart_is_that_of_the_population(page):
    """Populations that are dropped leave their address to others; their lines must not be drawn."""
    page.select_option("#population", "uniform")
    drawn = {}
    for size in (2, 50, 3, 2, 50, 3)[: some(6, 5)]:
        page.fill("#size", str(size))
        page.wait_for_function(
            f"document.querySelector('#command')?.innerText.includes('--uniform {size} ')"
        )
        page.wait_for_function("!document.querySelector('#chart.recalculating')")
        page.wait_for_timeout(700)
        chart = page.inner_html("#chart")
        assert drawn.setdefault(size, chart) == chart
    assert len(set(drawn.values())) == len(drawn)


def test_closed_tabs_keep_nobody_waiting(browser, server):
    for _ in range(3):
        tab = browser.new_page()
        tab.goto(server)
        tab.wait_for_selector("#rad", timeout=60_000)
        tab.select_option("#population", "uniform")
        tab.fill("#size", "2000")
        tab.wait_for_timeout(300)
        tab.close()
    last = browser.new_page()
    try:
        last.goto(server)
        last.wait_for_selector("#rad", timeout=60_000)
        shows(last, strongest(1.0))
    finally:
        last.close()
