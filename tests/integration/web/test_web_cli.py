"""The commands of the web room."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from jobs.errors import UsageError
from web.cli import app, listen


def test_the_leaderboard_is_the_same_on_paper_and_in_json(example) -> None:
    """Both name the same engines in the same order."""
    printed = CliRunner().invoke(app, ["leaderboard"], catch_exceptions=False)
    assert printed.exit_code == 0
    asked = CliRunner().invoke(app, ["leaderboard", "--json"], catch_exceptions=False)
    lines = [line for group in json.loads(asked.stdout)["groups"] for line in group["entries"]]
    places = [printed.stdout.index(line["label"].split()[0][:8]) for line in lines]
    assert places == sorted(places)
    assert "uncaged" in printed.stdout


def test_publish_prints_the_path_of_the_page(example) -> None:
    """The path that is printed is a file."""
    done = CliRunner().invoke(app, ["publish"], catch_exceptions=False)
    assert Path(done.stdout.strip().replace("\n", "")).is_file()


def test_a_taken_port_is_one_clear_message() -> None:
    """Nothing is started where somebody else listens, and the advice names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 is taken") as caught:
            listen("127.0.0.1", port)
    assert "FORKSCOUT_PORT" in caught.value.advice


def test_an_address_that_is_not_ours_is_one_clear_message() -> None:
    """An address of no interface is a usage error."""
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1"):
        listen("192.0.2.1", 8450)


def test_web_serves_until_it_is_interrupted(example, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server answers on its port and ends at once on Ctrl-C."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("FORKSCOUT_PORT", str(port))
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", "from web.cli import app; app()", "web"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, PYTHONPATH=str(root)),
    ) as server:
        try:
            answer = _answer(f"http://127.0.0.1:{port}/leaderboard.html")
            server.send_signal(signal.SIGINT)
            server.wait(10)
        finally:
            server.kill()
    assert answer.status_code == 200
    assert "beellama" in answer.text


def _answer(url: str) -> httpx.Response:
    until = time.monotonic() + 30
    while True:
        try:
            return httpx.get(url, trust_env=False)
        except httpx.TransportError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
