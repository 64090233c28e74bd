"""The model hub's webhook: who is heard, what is kept, and that nothing is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from support.asgi import ask
from support.hub_scene import HubScene
from support.hugging_face import HuggingFace

from jobs.config import Settings
from jobs.db import reading
from jobs.store import hub
from web.app import create_app
from web.hooks import LARGEST_BODY_BYTES, PLACE

SECRET = "a long secret, with ünusual signs"
SHA = "5" * 40


def _delivery(**changes: object) -> dict[str, object]:
    repo = {"type": "model", "name": "spiritbuun/x-GGUF", "id": "ab12", "headSha": SHA}
    said = {
        "event": {"action": "update", "scope": "repo.content"},
        "repo": {**repo, "private": False, "url": {"web": "https://example.org"}},
        "updatedRefs": [{"ref": "refs/heads/main", "oldSha": "4" * 40, "newSha": SHA}],
        "webhook": {"id": "1", "version": 3},
    }
    return {**said, **changes}


@pytest.fixture
def app(database: Engine, tmp_path: Path):
    return create_app(
        database, Settings(home=tmp_path / "var", hf_webhook_secret=SecretStr(SECRET))
    )


def _send(app, body: object, secret: str = SECRET, **how: object):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"X-Webhook-Secret": secret.encode()}
    return ask(app, PLACE, method="POST", content=raw, headers=headers, **how)


def _hints(database: Engine) -> list[dict[str, object]]:
    with reading(database) as session:
        return [dict(row.cursor) for row in hub.open_hints(session, limit=10)]


def test_a_delivery_becomes_one_hint(app, database: Engine) -> None:
    """The same repository, scope and commit told twice is one; another commit is news."""
    assert _send(app, _delivery()).json() == {"status": "noted"}
    assert _send(app, _delivery()).json() == {"status": "known"}
    refs = [{"ref": "refs/heads/main", "oldSha": SHA, "newSha": "6" * 40}]
    assert _send(app, _delivery(updatedRefs=refs)).json() == {"status": "noted"}
    (hint,) = _hints(database)
    assert (hint["hub_id"], hint["name"]) == ("ab12", "spiritbuun/x-GGUF")


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], f"{SECRET}x"])
def test_without_the_secret_nobody_is_heard(app, database: Engine, secret: str) -> None:
    """A wrong secret is refused before the body is read, and leaves nothing."""
    answer = _send(app, b"x" * (LARGEST_BODY_BYTES * 2), secret)
    assert answer.status_code == 401
    assert SECRET not in answer.text
    assert _hints(database) == []


def test_without_a_secret_there_is_no_such_address(database: Engine, tmp_path: Path) -> None:
    """The endpoint is off by default, and an empty secret opens nothing."""
    app = create_app(database, Settings(home=tmp_path / "var"))
    assert _send(app, _delivery(), "").status_code == 405
    assert _hints(database) == []


def test_a_large_body_is_not_read_to_its_end(app) -> None:
    """More than 64 KiB are refused."""
    assert _send(app, b" " * (LARGEST_BODY_BYTES + 1)).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nope",
        b"[1]",
        b"[" * 60_000,
        b'{"event": {}, "repo": {}}',
        b"\xff\xfe",
        json.dumps(_delivery(repo={"type": "model", "name": "../../etc", "id": "1"})).encode(),
        json.dumps(_delivery(updatedRefs={"ref": "refs/heads/main"})).encode(),
    ],
)
def test_what_is_no_delivery_is_refused(app, database: Engine, body: bytes) -> None:
    """Broken and hostile bodies get one short answer and leave nothing."""
    answer = _send(app, body)
    assert (answer.status_code, answer.json()) == (400, {"status": "not understood"})
    assert _hints(database) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"event": {"action": "create", "scope": "discussion.comment"}},
        {"updatedRefs": [{"ref": "refs/pr/1", "oldSha": None, "newSha": SHA}]},
        {"repo": {"type": "dataset", "name": "a/b", "id": "1"}},
    ],
)
def test_what_is_no_news_of_a_model_is_ignored(app, database: Engine, changes) -> None:
    """Discussions, pull requests and data sets make nobody look."""
    assert _send(app, _delivery(**changes)).json() == {"status": "ignored"}
    assert _hints(database) == []


def test_a_hint_brings_the_next_look_forward_and_is_not_believed(
    app, database: Engine, tmp_path: Path
) -> None:
    """A hinted repository is looked at before it is due; the facts are the hub's own."""
    with HuggingFace() as server:
        scene = HubScene(server, database, tmp_path / "hub")
        repo = server.add("spiritbuun/x-GGUF", {"README.md": b"one"})
        scene.watch("author:spiritbuun")
        scene.look()
        real = server.push("spiritbuun/x-GGUF", {"README.md": b"two"})
        said = {"type": "model", "name": "spiritbuun/x-GGUF", "id": repo.hub_id, "headSha": SHA}
        assert _send(app, _delivery(repo=said)).json() == {"status": "noted"}
        stranger = {**said, "id": "cd34", "name": "nobody/else"}
        _send(app, _delivery(repo=stranger))
        calls = server.api_calls
        scene.look("hf_repositories")
        assert scene.row(repo.hub_id).sha == real
        assert scene.kinds() == ["hf_card_changed"]
        assert server.api_calls - calls == 2, "nobody asked about what is not watched"
        assert _hints(database) == []
        assert _send(app, _delivery(repo=said)).json() == {"status": "known"}
