"""Reading the header of a file on disk and behind an address, as a person does it."""

from __future__ import annotations

import json
import os
import socket

import gguf
import numpy as np
import pytest
from support import gguf_files as files
from support.range_server import RangeServer
from typer.testing import CliRunner

from jobs.config import Settings
from jobs.errors import BadGguf, UsageError
from scout.cli import app
from scout.weight_places import read_model

NAME = "Qwen3.6-27B-MTP-UD-Q3_K_XL.gguf"
SECRET = "hf_secret"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Loopback is asked directly."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def model():
    return files.qwen36(heads=1)


def say(*words):
    result = CliRunner().invoke(app, ["gguf", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def stored(path, file):
    """The file as it would lie on disk: its data are holes."""
    path.write_bytes(file.header)
    os.truncate(path, file.size_bytes)
    return path


def test_a_remote_model_takes_one_request(model):
    """64 KiB tell role, shape, heads and vocabulary."""
    with RangeServer(model) as server:
        found = json.loads(say(f"{server.url}/o/r/resolve/main/{NAME}", "--json"))
    assert [headers["Range"] for _, headers in server.asked] == ["bytes=0-65535"]
    assert (found["requests"], found["bytes_read"]) == (1, 65_536)
    assert found["facts"]["role"] == "target"
    assert found["facts"]["nextn_predict_layers"] == 1
    assert found["facts"]["tensor_count"] == 866
    assert found["facts"]["vocabulary_size"] == 248_320
    assert found["facts"]["quantisation"] == "UD-Q3_K_XL"
    assert found["facts"]["size_bytes"] == model.size_bytes


def test_a_full_remote_reading_adds_the_sizes(model):
    """A few pieces of 2 MiB, never the data."""
    with RangeServer(model) as server:
        text = say(f"{server.url}/{NAME}", "--full")
    assert len(server.asked) == 7
    assert "682.03 MiB" in text
    assert "MTP heads" in text
    assert "Q4_K_M by general.file_type" in text


def test_a_local_file_is_read_in_place(model, tmp_path):
    """For people: a table with every fact; nothing of 15 GB is read but the header."""
    text = say(stored(tmp_path / NAME, model))
    for word in ("qwen35", "866", "248,320", "262,144", "UD-Q3_K_XL by its name", "inner size"):
        assert word in text


@pytest.mark.parametrize("file", [files.dflash(), files.dflash("dflash"), files.projector()])
def test_drafters_and_projectors(file, tmp_path):
    """Their own facts are in the table."""
    text = say(stored(tmp_path / "x.gguf", file))
    assert "drafter" in text or "projects to" in text


def test_text_of_strangers_stays_in_its_cell(tmp_path):
    """A name with colours, line ends and markup changes nothing but its own cell."""
    nasty = "a\x1b[31mb\n\n[bold]c[/bold]\u202e"
    text = say(stored(tmp_path / "x.gguf", files.build({"general.name": nasty})))
    assert "ab [bold]c[/bold]" in text
    assert "\x1b" not in text


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 16823\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html>\n<html lang=en><title>404</title></html>", "HTML page"),
        (POINTER, "git-lfs pointer"),
        (b"#!/bin/sh\necho hello, this is no model at all\n", "instead of b'GGUF'"),
        (files.small().header[:100], "ends at byte"),
    ],
)
def test_a_file_that_is_no_model(content, reason, tmp_path):
    """One sentence that names the file and what it is."""
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(BadGguf, match=reason) as caught:
        say(path, "--full")
    assert "model.gguf" in caught.value.message
    assert caught.value.advice


def test_what_is_no_file(tmp_path):
    """Folders, pipes, sockets, devices and nothing at all: refused, and nothing waits."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "closed").write_bytes(b"GGUF")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for place, reason in {
            tmp_path: "a folder",
            tmp_path / "pipe": "a pipe",
            tmp_path / "socket": "a socket",
            "/dev/zero": "a device",
            tmp_path / "nothing.gguf": "not there",
            tmp_path / "closed" / "x": "cannot be opened",
            tmp_path / "loop": "cannot be opened",
            "a\0b": "cannot be opened",
            "x" * 5000: "cannot be opened",
        }.items():
            with pytest.raises(UsageError, match=reason) as caught:
                read_model(str(place))
            assert caught.value.advice


@pytest.mark.parametrize(
    "place", ["hf:owner/repo/file.gguf", "owner/repo:Q4_K_M", "file:///etc/passwd", "ftp://h/x"]
)
def test_places_of_other_kinds(place):
    """They are refused with the address to name instead."""
    with pytest.raises(UsageError) as caught:
        read_model(place)
    assert "https://" in caught.value.advice


@pytest.mark.parametrize(
    "place",
    [
        "http://",
        "https://user:secret@127.0.0.1/x",
        "http://[::1/x",
        "http://a..b/x.gguf",
        "http://xn--a/x.gguf",
        f"http://{'a' * 300}/x.gguf",
    ],
)
def test_addresses_that_are_none(place):
    """No host, none that could be asked for, or a password in it."""
    with pytest.raises(UsageError):
        read_model(place)


def write_with_the_reference(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("reference")
    writer.add_block_count(3)
    writer.add_context_length(2048)
    writer.add_embedding_length(64)
    writer.add_head_count([4, 4, 8])
    writer.add_head_count_kv(2)
    writer.add_sliding_window_pattern([True, True, False])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_token_list([f"w{n}" for n in range(300)])
    writer.add_tokenizer_pre("llama-bpe")
    rows = np.arange(300 * 64, dtype=np.float32).reshape(300, 64)
    writer.add_tensor("token_embd.weight", rows)
    packed = gguf.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.attn_norm.weight", rows[0].astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("source", ["reference", "own", "drafter"])
def test_the_reference_reads_the_same(source, tmp_path):
    """Keys, tensors, types, sizes and offsets agree with upstream's own reader."""
    path = tmp_path / "x.gguf"
    match source:
        case "reference":
            write_with_the_reference(path)
        case "own":
            stored(path, files.small())
        case "drafter":
            stored(path, files.dflash())
    ours = read_model(str(path), full=True)
    theirs = gguf.GGUFReader(path)
    fields = {name: field for name, field in theirs.fields.items() if "GGUF." not in name}
    assert list(ours.header.keys) == list(fields)
    for name, field in fields.items():
        value = ours.header.keys[name]
        if hasattr(value, "items"):
            assert (value.length, list(value.items)) == (
                len(field.data),
                field.contents(slice(0, len(value.items))),
            )
        else:
            assert value == field.contents()
    assert ours.header.data_offset == theirs.data_offset
    assert [
        (each.name, each.dims, each.type_id, each.size_bytes, theirs.data_offset + each.offset)
        for each in ours.header.tensors
    ] == [
        (each.name, tuple(each.shape), int(each.tensor_type), each.n_bytes, each.data_offset)
        for each in theirs.tensors
    ]
    if source == "reference":
        assert ours.facts.head_count == (4, 4, 8)
        assert ours.facts.sliding_window_pattern == (1, 1, 0)
        assert ours.facts.vocabulary_size == 300


REAL = Settings(_env_file=None).weights / f"{GEMMA_SHA256}.gguf"


if REAL.exists():

    def test_a_real_model_is_read():
        """The weights of the demo, where it has run here: what its maker published."""
        facts = read_model(str(REAL)).facts
        assert (facts.role, facts.architecture, facts.dialect) == ("target", "gemma3", "plain")
        assert (facts.block_count, facts.embedding_length, facts.context_length) == (18, 640, 32768)
        assert (facts.head_count, facts.head_count_kv, facts.key_length) == (4, 1, 256)
        assert (facts.sliding_window, facts.vocabulary_size) == (512, 262_144)
        places = read_model(str(REAL), full=True).facts.places
        assert places.token_embd == 262_144 * 640 // 32 * 34
        assert (places.output, places.unmeasured) == (0, 0)
