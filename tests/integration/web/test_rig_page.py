"""The page of a rig whose raw files were imported: one H200, as anybody can bring it home."""

from __future__ import annotations

import lzma
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import select
from support.asgi import ask

from jobs import db, importing
from jobs.config import Settings
from jobs.imported import read
from jobs.tables import RigRow
from web.app import create_app

FOLDER = Path(__file__).parents[2] / "data" / "h200"
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def test_a_newcomer_finds_memory_depth_and_what_is_not_said(database, tmp_path) -> None:
    """Both tables, the curve in words, and a sentence on random weights and one card."""
    for path in sorted(FOLDER.glob("*.json.xz")):
        with db.writing(database) as session:
            document = read(lzma.decompress(path.read_bytes()))
            importing.store(session, document, file_sha256="f" * 64, rig="h200", now=NOW)
    with db.reading(database) as session:
        rig = session.exec(select(RigRow).where(RigRow.name == "h200")).one()
    app = create_app(database, Settings(home=tmp_path / "var"))
    page = ask(app, f"/rigs/{rig.id}.html")
    assert page.status_code == 200
    assert "of random weights in a real model" in page.text
    assert "on the cards named above and on no other" in page.text
    assert "71.1 at 114, 68.4 at 4,096, 67.6 at 32,768, 59.2 at 131,072" in page.text
    assert "11.8 at 260,000" in page.text
    for figure in ("23,358", "3,296"):
        assert f">{figure}<" in page.text
    assert f"rigs/{rig.id}.html" in ask(app, "/workers.html").text
    assert ask(app, "/rigs/999999.html").status_code == 404
