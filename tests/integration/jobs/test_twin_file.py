"""A twin on disk: whole or not there, continued where it was interrupted, refused without room."""

from __future__ import annotations

import os

import pytest
from support import gguf_files

from jobs import twin_file
from jobs.errors import BadGguf, UsageError
from jobs.exchange import TWIN_KEY
from jobs.twin.plan import plan

TENSORS = [("a.weight", (256, 400), 12), ("b_norm.weight", (256,), 0), ("c.weight", (64, 999), 8)]


@pytest.fixture
def source(tmp_path):
    """A header without any weights behind it."""
    path = tmp_path / "model.gguf"
    keys = {"general.architecture": "llama", **gguf_files.tokenizer(80, 70)}
    path.write_bytes(gguf_files.build(keys, TENSORS).header)
    return path


def planned(path):
    header, fetch = twin_file.read_local(path)
    return plan(header, fetch, of=path.name)


def test_a_header_alone_is_enough(tmp_path, source):
    """The file has the size of the real one and reads as a model with a tag."""
    twin = planned(source)
    out = tmp_path / "twin.gguf"
    assert twin_file.write(twin, out) == 0
    assert out.stat().st_size == twin.size_bytes
    header, _ = twin_file.read_local(out)
    assert header.keys[TWIN_KEY] == "model.gguf"
    assert [each.name for each in header.tensors or ()] == [name for name, _, _ in TENSORS]
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.parametrize("kept", ["nothing", "part of the head", "head", "half", "all but a byte"])
def test_an_interrupted_file_is_continued_to_the_same_bytes(tmp_path, source, kept):
    """Whole tensors stay, the torn one is written again."""
    twin = planned(source)
    whole = tmp_path / "whole.gguf"
    twin_file.write(twin, whole)
    content = whole.read_bytes()
    half = len(twin.head) + 58_000
    cut = {"nothing": 0, "part of the head": 300, "head": len(twin.head), "half": half}
    held = content[: cut.get(kept, len(content) - 1)]
    out = tmp_path / "again.gguf"
    (tmp_path / "again.gguf.part").write_bytes(held)
    already = twin_file.write(twin, out)
    assert out.read_bytes() == content
    assert (already > 0) == (kept in ("half", "all but a byte"))


def test_what_is_no_part_of_this_twin_stays_as_it_is(tmp_path, source):
    """Somebody's half download under that name is refused and not touched."""
    part = tmp_path / "twin.gguf.part"
    part.write_bytes(b"GGUF" + bytes(5000))
    with pytest.raises(UsageError, match="no part of this twin"):
        twin_file.write(planned(source), tmp_path / "twin.gguf")
    assert part.read_bytes() == b"GGUF" + bytes(5000)


@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a folder", "a pipe"])
def test_only_a_file_of_that_very_name_is_written(tmp_path, source, kind):
    """What a link leads to is never written; a pipe is not waited for."""
    victim, part = tmp_path / "victim", tmp_path / "twin.gguf.part"
    victim.write_text("other")
    make = {
        "a link": lambda: part.symlink_to(victim),
        "a link to nothing": lambda: part.symlink_to(tmp_path / "nothing"),
        "a folder": part.mkdir,
        "a pipe": lambda: os.mkfifo(part),
    }
    make[kind]()
    with pytest.raises(UsageError):
        twin_file.write(planned(source), tmp_path / "twin.gguf")
    assert victim.read_text() == "other"
    assert not (tmp_path / "nothing").exists()
    assert not (tmp_path / "twin.gguf").exists()


def test_two_who_write_the_same_twin_do_not_mix(tmp_path, source):
    """The second is refused while the first writes, and after it has ended in between."""
    twin, out, refused = planned(source), tmp_path / "twin.gguf", []

    def second(_done: int, _total: int) -> None:
        with pytest.raises(UsageError, match="another process writes"):
            twin_file.write(planned(source), out)
        refused.append(True)

    twin_file.write(twin, out, tell=second)
    assert refused
    assert out.stat().st_size == twin.size_bytes
    with pytest.raises(UsageError, match="is there already"):
        twin_file.write(twin, out)


def test_a_file_that_is_there_is_never_overwritten(tmp_path, source):
    """Somebody's weights may be in it."""
    out = tmp_path / "mine.gguf"
    out.write_bytes(b"precious")
    with pytest.raises(UsageError, match="there already"):
        twin_file.write(planned(source), out)
    assert out.read_bytes() == b"precious"


def test_a_disk_without_room_is_refused_before_a_byte_is_written(tmp_path):
    """The size is known from the header."""
    source = tmp_path / "huge.gguf"
    tensors = [("a.weight", (2**30, 2**20), 0)]
    source.write_bytes(gguf_files.build({"general.architecture": "llama"}, tensors).header)
    with pytest.raises(UsageError, match="free"):
        twin_file.write(planned(source), tmp_path / "twin.gguf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["huge.gguf"]


@pytest.mark.parametrize("keep", [3, 30, 200, -40])
def test_a_cut_header_is_no_header(tmp_path, source, keep):
    """Zeros behind its end are not taken for keys or tensors."""
    short = tmp_path / "short.gguf"
    short.write_bytes(source.read_bytes()[:keep])
    with pytest.raises(BadGguf):
        planned(short)


def test_what_is_not_there_is_the_caller_s_mistake(tmp_path):
    """Files and folders both."""
    with pytest.raises(UsageError):
        twin_file.read_local(tmp_path / "none.gguf")
    with pytest.raises(UsageError):
        twin_file.read_local(tmp_path)
