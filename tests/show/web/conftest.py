"""A browser, and the page as it is served; requests that are not local are blocked."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def served(*arguments, cwd=None):
    """The page, and its address as it is printed."""
    command = [sys.executable, "-P", "-c", "from dprad.show.cli import main; main()", "explore"]
    process = subprocess.Popen(
        [*command, *arguments, "--no-browser", "--port", str(free_port())],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    )
    try:
        address = re.search(r"http://\S+/", process.stdout.readline().decode()).group()
        for _ in range(240):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def server():
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no Chromium on this machine (Debian's package chromium)")
    with sync_api.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server):
    """The page, loaded; at the end no request had gone elsewhere."""
    context = browser.new_context(accept_downloads=True)
    abroad = []

    def gate(route):
        if route.request.url.startswith((server, "data:", server.replace("http:", "ws:"))):
            route.continue_()
        else:
            abroad.append(route.request.url)
            route.abort()

    context.route("**/*", gate)
    tab = context.new_page()
    tab.set_default_timeout(30_000)
    tab.goto(server)
    tab.wait_for_selector("#rad")
    tab.wait_for_selector("#needed")
    yield tab
    assert abroad == []
    context.close()
