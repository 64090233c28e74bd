"""Headers of the model files of this machine, as their rows keep them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support import gguf_files as files
from support.rows import Rows
from support.work import request

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.control import Control
from jobs.errors import Stopped, Transient
from jobs.fit.stored import shape_in
from jobs.model import Kind
from jobs.payloads import FetchPayload
from jobs.station import Station
from jobs.store import known_models, leases, weights, work
from jobs.tables import ModelFileRow
from workers.fetching import fetch_model
from workers.headers import HeaderRead, is_unread, read_local


def never() -> None:
    """Nobody asks the reading to stop."""


def written(path: Path, file: files.File) -> Path:
    path.write_bytes(file.header)
    os.truncate(path, file.size_bytes)
    return path


def test_facts_and_shape_of_a_model_come_from_its_header_alone(tmp_path: Path) -> None:
    """A file of holes will do; what is stored gives the same shape again."""
    found = read_local([written(tmp_path / "m.gguf", files.qwen36())], check=never)
    assert found.fault == ""
    assert found.facts is not None
    assert found.facts["architecture"] == "qwen35"
    assert found.facts["role"] == "target"
    shape = shape_in(found.shape or {})
    assert shape.vocabulary == 248_320
    assert len(shape.layers) == 64
    assert shape.tensors.whole


def test_a_file_that_is_no_model_says_why_and_raises_nothing(tmp_path: Path) -> None:
    """The bench or fetch goes on; the row has the reason."""
    page = tmp_path / "page.gguf"
    page.write_bytes(b"<!doctype html><title>not found</title>" * 9)
    found = read_local([page], check=never)
    assert found.shape is None
    assert "HTML" in found.fault
    row = ModelFileRow(name="m", model_class="m", sha256="0" * 64)
    assert is_unread(row)
    found.put_in(row)
    assert not is_unread(row)
    assert row.header_fault == found.fault


def test_one_file_of_a_set_has_facts_and_no_shape(tmp_path: Path) -> None:
    """Its weights are not all of the model's."""
    file = files.build({"general.architecture": "llama", "split.count": 3, "split.no": 0})
    found = read_local([written(tmp_path / "part.gguf", file)], check=never)
    assert found.facts is not None
    assert found.shape is None
    assert "one of a set of 3" in found.fault


def test_a_whole_set_is_one_model(tmp_path: Path) -> None:
    """Its weights are those of all its files."""
    keys = {"general.architecture": "llama", "llama.block_count": 2, "split.count": 2}
    lines = [("blk.0.attn_q.weight", (64, 32), 0)]
    first = files.build({**keys, "split.no": 0}, lines)
    second = files.build({"general.architecture": "llama", "split.no": 1, "split.count": 2}, lines)
    paths = [
        written(tmp_path / f"m-0000{number}-of-00002.gguf", file)
        for number, file in ((1, first), (2, second))
    ]
    shape = shape_in(read_local(paths, check=never).shape or {})
    assert shape.tensors.total == 2 * 4 * 64 * 32


def test_a_missing_file_is_a_passing_fault_and_a_stop_passes_through(tmp_path: Path) -> None:
    """Neither becomes a fact of the model."""
    with pytest.raises(Transient, match="cannot be read"):
        read_local([tmp_path / "gone.gguf"], check=never)

    def stop() -> None:
        raise Stopped("cancelled")

    with pytest.raises(Stopped):
        read_local([written(tmp_path / "m.gguf", files.small())], check=stop)


def test_nothing_read_is_nothing_stored() -> None:
    """An empty reading leaves the row as unread."""
    row = ModelFileRow(name="m", model_class="m", sha256="0" * 64)
    HeaderRead().put_in(row)
    assert is_unread(row)


@pytest.mark.parametrize("sound", [True, False])
def test_a_fetched_file_has_its_header_in_its_row(
    database: Engine, tmp_path: Path, sound: bool
) -> None:
    """Or the reason why it has none; either way the fetch succeeds and pages read no file."""
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    settings.prepare()
    settings.weights.mkdir(parents=True, exist_ok=True)
    small = files.small()
    model = small.header.ljust(small.size_bytes, b"\0")
    content = model if sound else b"<html>not a model</html>" * 4
    digest = hashlib.sha256(content).hexdigest()
    (settings.weights / f"{digest}.gguf").write_bytes(content)
    station = Station(settings, database, queue.make_app(settings), "build@here")
    with db.writing(database) as session:
        row = Rows(session).model_file(sha256=digest, size_bytes=None, stored_in=None)
        payload = FetchPayload(model_file_id=row.id or 0).model_dump(mode="json")
        wish = request("fetch", kind=Kind.FETCH_MODEL, payload=payload)
        work.enqueue(session, [wish], clock.now())
        held = leases.lease(session, "build", "me", clock.now())
    assert held is not None
    record = fetch_model(station, held, Control())
    with db.writing(database) as session:
        assert "verified" in record(session)
    with db.reading(database) as session:
        [found] = known_models.known_models(session)
        assert digest in weights.held_anywhere(session)
    if sound:
        assert found.shape is not None
        assert found.shape.architecture == "llama"
        assert found.fault == ""
    else:
        assert found.shape is None
        assert "HTML" in found.fault
