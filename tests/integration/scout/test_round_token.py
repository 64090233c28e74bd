"""The token of the settings goes along with a round of watching, from the first list on."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from support.git_server import GitServer
from support.hub import Hub
from support.watching import engine

from jobs.config import Settings
from jobs.db import writing
from scout.rounds import look_and_plan

pytestmark = pytest.mark.needs("git")
PLAIN = 'x({"--mmap"});'
ABLE = 'x({"--mmap"}); x({"--tree"});'


def test_a_round_shows_githubs_token_to_github(
    github_over_tls: GitServer, sqlite: Engine, tmp_path: Path
) -> None:
    """Lists, fetches and sources carry it; events, rows and logs do not."""
    fork = Hub(tmp_path / "outside").add("a/fork")
    fork.commit({"common/arg.cpp": PLAIN})
    fork.push()
    listed = tmp_path / "list.toml"
    listed.write_text(engine("fork", "a/fork"))
    settings = Settings(
        home=tmp_path / "home", watchlist=listed, github_token=SecretStr("ghp_secret")
    )
    settings.prepare()
    assert look_and_plan(sqlite, settings)[0].troubles == ()
    fork.commit({"common/arg.cpp": ABLE})
    fork.push()
    summary, _ = look_and_plan(sqlite, settings)
    assert {news.kind for news in summary.new} == {"fork_pushed", "fork_capability_changed"}
    pair = base64.b64encode(b"x-access-token:ghp_secret").decode()
    assert len(github_over_tls.asked) >= 10
    assert {each.headers.get("Authorization") for each in github_over_tls.asked} == {
        f"Basic {pair}"
    }
    with writing(sqlite) as session:
        dump = "".join(session.connection().connection.dbapi_connection.iterdump())  # type: ignore[union-attr]
    files = [path for path in settings.root.rglob("*") if path.is_file()]
    kept = dump.encode() + b"".join(path.read_bytes() for path in files)
    assert b"ghp_secret" not in kept
    assert pair.encode() not in kept
