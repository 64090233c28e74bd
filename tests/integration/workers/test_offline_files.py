"""What an offline bench says of the files it is given."""

from __future__ import annotations

import hashlib

import pytest
from support import gguf_files

from jobs.errors import BadGguf, UsageError
from workers.offline_files import look_at_build, look_at_model


@pytest.fixture
def model(tmp_path):
    """A little model whose weights are zeros."""
    path = tmp_path / "small.gguf"
    file = gguf_files.small()
    path.write_bytes(file.fetch(0, file.size_bytes))
    return path


def test_a_digest_is_remembered_as_long_as_nobody_touches_the_file(tmp_path, model):
    """A changed file is read again, whatever the memory says."""
    digests = tmp_path / "digests.json"
    read = []
    for _ in range(2):
        found = look_at_model(model, tell=lambda done, _all: read.append(done), digests=digests)
    assert found.told["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    once = len(read)
    with model.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    again = look_at_model(model, tell=lambda done, _all: read.append(done), digests=digests)
    assert again.told["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert len(read) > once > 0


@pytest.mark.parametrize("content", [b"", b"not json", b"[1]", b'{"a": 3}'])
def test_a_damaged_memory_of_digests_is_no_digest(tmp_path, model, content):
    """It is written anew."""
    digests = tmp_path / "digests.json"
    digests.write_bytes(content)
    found = look_at_model(model, digests=digests)
    assert found.told["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()


def test_a_file_that_is_no_model_is_refused(tmp_path):
    """Before anything is started."""
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(BadGguf):
        look_at_model(tmp_path / "x.gguf")
    with pytest.raises(UsageError):
        look_at_model(tmp_path / "none.gguf")


@pytest.mark.parametrize("facts", ["", "{", "[]", '{"commit": "main"}', '{"commit": 5}'])
def test_a_build_that_does_not_say_its_source_is_refused(tmp_path, facts):
    """A result without a revision belongs to nothing; the option says what the build does not."""
    (tmp_path / "llama-server").write_bytes(b"")
    (tmp_path / "facts.json").write_text(facts)
    with pytest.raises(UsageError, match="which source"):
        look_at_build(tmp_path)
    assert look_at_build(tmp_path, commit="a" * 40).told["commit"] == "a" * 40


def test_a_folder_without_a_server_is_no_build(tmp_path):
    """Whatever else lies in it."""
    with pytest.raises(UsageError, match="holds no build"):
        look_at_build(tmp_path, commit="a" * 40)
