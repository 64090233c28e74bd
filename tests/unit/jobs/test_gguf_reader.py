"""The header reader: what sound files give, and that no file can hurt it."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import gguf_files as files
from support.gguf_files import array, encoded, line, pair, start, text
from support.gguf_mutants import Tally, mutants

from jobs.errors import BadGguf, Permanent, Transient
from jobs.gguf import limits
from jobs.gguf.header import ArrayValue, Tensor, ValueType
from jobs.gguf.reader import Depth, read_header
from jobs.terminal import printable

ARCHITECTURE = encoded("general.architecture", "llama")
HUGE = 2**63


def read(raw: bytes, *, depth=Depth.FULL, size_bytes=None, **how):
    size_bytes = len(raw) if size_bytes is None else size_bytes
    return read_header(
        lambda offset, length: raw[offset : offset + length],
        size_bytes=size_bytes,
        depth=depth,
        **how,
    )


def with_value(value_type: int, payload: bytes = b"") -> bytes:
    return start(0, 1) + pair("k", value_type, payload)


def with_lines(*lines: bytes, data_bytes: int = 4096) -> bytes:
    header = start(len(lines), 1) + ARCHITECTURE + b"".join(lines)
    return header + bytes(-len(header) % 32 + data_bytes)


def test_facts_take_one_small_request():
    """A vocabulary of 248,320 words costs nothing: its length is known, its words are not read."""
    file = files.qwen36()
    header = read_header(file.fetch, size_bytes=file.size_bytes)
    assert (header.requests, header.bytes_read) == (1, 65_536)
    assert header.keys["qwen35.block_count"] == 64
    assert header.keys["tokenizer.ggml.pre"] == "qwen35"
    assert header.keys["tokenizer.ggml.tokens"].length == 248_320
    assert header.tensors is None
    assert not header.complete


def test_a_full_reading_fetches_few_large_pieces():
    """All keys and all tensors, in the order of the file, with their true lengths."""
    file = files.qwen36()
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    assert header.complete
    assert header.requests == 7
    assert header.keys["general.file_type"] == 15
    assert header.keys["tokenizer.ggml.merges"].length == files.MERGES
    assert len(header.keys["tokenizer.ggml.tokens"].items) == limits.KEPT_ITEMS
    assert [tensor.name for tensor in header.tensors] == [
        name for name, _, _ in files.qwen36_tensors(0, files.VOCABULARY)
    ]
    assert header.data_offset == len(file.header)
    assert header.trailing_bytes == 0


def test_keys_behind_the_tokenizer_are_looked_for_where_facts_are_missing():
    """The order is a custom, no law: without a fact of the architecture reading goes on."""
    keys = files.tokenizer(30_000, 10) | {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.context_length": 9,
    }
    file = files.build(keys)
    assert len(file.header) > limits.FIRST_FETCH_BYTES
    header = read_header(file.fetch, size_bytes=file.size_bytes)
    assert header.keys["llama.context_length"] == 9
    assert header.requests == 2


@pytest.mark.parametrize(
    "file", [files.qwen36(vocabulary=20_000, merges=9), files.small(), files.dflash()]
)
def test_both_depths_agree_on_what_they_read(file):
    """Reading less never reads something else; only a list may keep fewer of its items."""
    short = read_header(file.fetch, size_bytes=file.size_bytes)
    long = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    assert list(short.keys) == list(long.keys)[: len(short.keys)]
    for key, value in short.keys.items():
        other = long.keys[key]
        if isinstance(value, ArrayValue):
            assert (value.element, value.length) == (other.element, other.length)
            assert value.items == other.items[: len(value.items)]
        else:
            assert value == other
    assert short.tensors in (None, long.tensors)


def test_every_kind_of_value_comes_back():
    """Numbers of every width, text of any script, arrays with their element type."""
    values = {
        ValueType.UINT8: ("<B", 255),
        ValueType.INT8: ("<b", -128),
        ValueType.UINT16: ("<H", 65_535),
        ValueType.INT16: ("<h", -32_768),
        ValueType.UINT32: ("<I", 2**32 - 1),
        ValueType.INT32: ("<i", -(2**31)),
        ValueType.FLOAT32: ("<f", 0.5),
        ValueType.BOOL: ("<?", True),
        ValueType.UINT64: ("<Q", 2**64 - 1),
        ValueType.INT64: ("<q", -(2**63)),
        ValueType.FLOAT64: ("<d", 1e300),
    }
    raw = start(0, len(values) * 2 + 1)
    for kind, (form, value) in values.items():
        raw += pair(f"one.{kind}", kind, struct.pack(form, value))
        raw += pair(f"many.{kind}", ValueType.ARRAY, array(kind, 2, struct.pack(form, value) * 2))
    raw += encoded("text", "Grüße, 世界")
    keys = read(raw).keys
    for kind, (_, value) in values.items():
        assert keys[f"one.{kind}"] == value
        assert keys[f"many.{kind}"] == ArrayValue(kind, 2, (value, value))
    assert keys["text"] == "Grüße, 世界"


def test_arrays_of_numbers_stay_whole_up_to_a_value_for_each_layer():
    """Per-layer values are facts; long arrays are cut and keep their true length."""
    keys = read(files.build({"layers": list(range(1024)), "long": list(range(1025))}).header).keys
    assert keys["layers"].is_whole
    assert keys["layers"].items[-1] == 1023
    assert not keys["long"].is_whole
    assert (len(keys["long"].items), keys["long"].length) == (64, 1025)


def test_text_is_kept_as_data_and_shown_harmless():
    """NUL, colours and marks that reorder stay in the value and never reach a terminal."""
    nasty = "a\0b\x1b[31m\u202egnp"
    header = read(start(0, 2) + encoded("n", nasty) + pair("bytes", 8, text(b"\xff\xfe")))
    assert header.keys["n"] == nasty
    assert printable(header.keys["n"]) == "abgnp"
    assert header.keys["bytes"] == "\ufffd\ufffd"


def test_types_of_forks_do_not_stop_the_reading():
    """Types 0, 8, 153, 36: four tensors, two of an unknown size; the data's size is known."""
    raw = with_lines(
        line("a", (32,), 0, 0),
        line("b", (32,), 8, 128),
        line("c", (32,), 153, 192),
        line("d", (32,), 36, 224),
        data_bytes=256,
    )
    header = read(raw)
    assert [tensor.size_bytes for tensor in header.tensors] == [128, 34, None, None]
    assert header.data_bytes == 256
    assert header.trailing_bytes is None
    assert header.tensors[2] == Tensor("c", (32,), 153, 192)


@pytest.mark.parametrize(("spare", "trailing"), [(0, 0), (31, 31), (5000, 5000)])
def test_bytes_behind_the_last_tensor_are_counted(spare, trailing):
    """Padding is usual and more is strange; neither is a fault."""
    raw = with_lines(line("a", (32,), 0, 0), data_bytes=128 + spare)
    assert read(raw).trailing_bytes == trailing


def test_version_2_is_read():
    """Its little-endian 2 is no big-endian sign."""
    raw = start(0, 1, version=2) + ARCHITECTURE
    assert read(raw).version == 2


BROKEN = {
    "empty": (b"", "is empty"),
    "three bytes": (b"GGU", "starts with"),
    "only magic": (b"GGUF", "only 4 bytes"),
    "no counts": (b"GGUF\3\0\0\0", "only 8 bytes"),
    "html": (b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML page"),
    "html with a mark": (b"\xef\xbb\xbf  <HTML>" + b" " * 40, "HTML page"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git-lfs"),
    "zip": (b"PK\3\4" + bytes(60), "ZIP"),
    "safetensors": (struct.pack("<Q", 40) + b'{"__metadata__":{}}' + b" " * 40, "safetensors"),
    "json": (b'{"error":"Repository not found"}', "JSON"),
    "zeros": (bytes(4096), "zeros"),
    "other words": (b"\x1b[31m" + bytes(40), "instead of b'GGUF'"),
    "version 1": (start(0, 0, version=1), "version 1"),
    "version 4": (start(0, 0, version=4), "version 4"),
    "version 0": (start(0, 0, version=0), "version 0"),
    "big-endian": (b"GGUF\0\0\0\3" + bytes(16), "big-endian"),
    "keys without end": (start(0, HUGE), "keys"),
    "one key too many": (start(0, limits.KEYS + 1), "keys"),
    "tensors without end": (start(HUGE, 0), "tensors"),
    "key longer than file": (start(0, 1) + struct.pack("<Q", 60_000), "ends at byte"),
    "key without end": (start(0, 1) + struct.pack("<Q", HUGE) + b"x" * 20, "a key has"),
    "no value": (start(0, 1) + text("k"), "ends at byte"),
    "unknown value type": (with_value(13), "unknown type 13"),
    "text without end": (with_value(8, struct.pack("<Q", HUGE)), "has"),
    "text over the limit": (with_value(8, text(b"x" * (limits.STRING_BYTES + 1))), "limit"),
    "array without end": (with_value(9, array(4, HUGE)), "items"),
    "array of 2^40": (with_value(9, array(8, 2**40)), "items"),
    "array past the file": (with_value(9, array(8, 1_000_000)), "ends at byte"),
    "array of arrays": (with_value(9, array(9, 1, array(9, 1, array(4, 1)))), "array of arrays"),
    "array of nothing known": (with_value(9, array(77, 1)), "unknown type 77"),
    "endless word in an array": (
        with_value(9, array(8, 70, text("a") * 65 + struct.pack("<Q", HUGE) + bytes(99))),
        "holds a text",
    ),
    "word past the file": (
        with_value(9, array(8, 66, text("a") * 65 + struct.pack("<Q", 999_999))),
        "ends at byte",
    ),
    "key twice": (start(0, 2) + ARCHITECTURE * 2, "twice"),
    "tensor twice": (
        with_lines(line("a", (32,), 0, 0), line("a", (32,), 0, 128)),
        "tensor 'a' is there twice",
    ),
    "nine dimensions": (with_lines(line("a", (1,) * 9, 0, 0)), "9 dimensions"),
    "dimensions overflow": (with_lines(line("a", (2**40, 2**40), 0, 0)), "impossible"),
    "dimensions hide in zero": (with_lines(line("a", (HUGE, 0), 0, 0)), "impossible"),
    "torn block": (with_lines(line("a", (33,), 8, 0)), "whole number of Q8_0"),
    "overlap": (with_lines(line("a", (32,), 0, 0), line("b", (32,), 0, 64)), "overlap"),
    "behind the file": (with_lines(line("a", (32,), 0, 0), data_bytes=127), "cut short"),
    "unknown type behind the file": (
        with_lines(line("a", (32,), 153, 2**63), data_bytes=64),
        "cut short",
    ),
    "alignment 0": (start(0, 1) + encoded("general.alignment", 0), "alignment 0"),
    "alignment 24": (start(0, 1) + encoded("general.alignment", 24), "alignment 24"),
    "alignment 2^31": (start(0, 1) + encoded("general.alignment", 2**31), "alignment"),
    "alignment as text": (start(0, 1) + encoded("general.alignment", "32"), "no number"),
    "table cut": (start(1, 1) + ARCHITECTURE + text("a"), "tensor table"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_its_reason(name):
    """One class of error, and a sentence that says what is wrong."""
    raw, reason = BROKEN[name]
    with pytest.raises(BadGguf, match=reason) as caught:
        read(raw)
    assert isinstance(caught.value, Permanent)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_of_unknown_size_is_refused_too(name):
    """Where no size is told, the end of the file is found by reaching it."""
    raw, _ = BROKEN[name]
    with pytest.raises(BadGguf):
        read_header(lambda offset, length: raw[offset : offset + length], depth=Depth.FULL)


def test_lengths_are_held_against_the_file_before_anything_is_fetched():
    """43 bytes with a giant length: one request, hardly any memory."""
    raw = with_value(9, array(8, 2**61))
    asked = []

    def fetch(offset, length):
        asked.append(length)
        return raw[offset : offset + length]

    tracemalloc.start()
    with pytest.raises(BadGguf):
        read_header(fetch, size_bytes=len(raw))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert asked == [len(raw)]


def test_a_header_without_end_stops_at_the_limit():
    """A file in which arrays go on and on: 64 MiB are gone past, hardly anything is kept."""
    items = limits.ARRAY_ITEMS
    beginning = start(0, 4000)
    each = len(pair("0000", 9, array(0, items))) + items

    def fetch(offset, length):
        first = max(offset - len(beginning), 0) // each
        records = range(first, first + length // each + 2)
        made = b"".join(pair(f"{n:04}", 9, array(0, items, bytes(items))) for n in records)
        whole = made if first else beginning + made
        skipped = offset - (first * each + len(beginning) if first else 0)
        return whole[skipped : skipped + length]

    with pytest.raises(BadGguf, match="takes the header past"):
        read_header(fetch, size_bytes=2**40, depth=Depth.FULL)


def test_kept_text_has_a_budget():
    """Texts that pass one by one are refused when together they are too much."""
    one = limits.KEPT_TEXT_BYTES // 10
    raw = start(0, 11) + b"".join(pair(f"{n}", 8, text(b"x" * one)) for n in range(11))
    with pytest.raises(BadGguf, match="together"):
        read(raw)


@pytest.mark.parametrize("given_bytes", [0, 100, 65_535])
def test_a_file_that_ends_early_is_cut_short(given_bytes):
    """The size is told, the bytes do not come."""
    file = files.qwen36(vocabulary=9000, merges=9)
    with pytest.raises(BadGguf, match="cut short"):
        read_header(lambda o, n: file.header[o : min(o + n, given_bytes)], size_bytes=2**34)


def test_more_bytes_than_asked_for_are_refused():
    """A server that ignores ranges cannot fill our memory."""
    with pytest.raises(BadGguf, match="were asked for"):
        read_header(lambda _, length: bytes(length + 1), size_bytes=2**34)


def test_the_check_may_end_the_reading():
    """Its own error passes through: a slow network says nothing about the file."""
    file = files.qwen36(vocabulary=9000, merges=9)
    calls = iter(range(10))

    def check():
        if next(calls) == 5:
            raise Transient("too slow")

    with pytest.raises(Transient, match="too slow"):
        read_header(file.fetch, size_bytes=file.size_bytes, check=check)


@given(st.binary(max_size=400), st.sampled_from(Depth))
def test_noise_is_refused_or_read(noise, depth):
    """Random bytes behind a sound start never raise anything but our error."""
    for raw in (noise, start(1, 2) + noise, start(0, 3) + ARCHITECTURE + noise):
        with contextlib.suppress(BadGguf):
            assert read(raw, depth=depth).version in (2, 3)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=20),
        st.one_of(
            st.booleans(),
            st.integers(0, 2**32 - 1),
            st.text(max_size=30),
            st.lists(st.text(max_size=5), max_size=70),
            st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=70),
        ),
        max_size=8,
    )
)
def test_what_is_written_is_read(keys):
    """Any sound keys come back with value and order."""
    keys.pop("general.alignment", None)
    found = read(files.build(keys).header).keys
    assert list(found) == list(keys)
    for key, value in keys.items():
        if isinstance(value, list):
            assert found[key].length == len(value)
            assert list(found[key].items) == value[: len(found[key].items)]
        else:
            assert found[key] == value


def test_ten_thousand_mutants_are_refused_or_read():
    """Flipped, cut, swollen and shuffled headers: our error or a header, nothing else."""
    tally = Tally()
    for mutant in mutants(10_000, random.Random(4)):
        tally.judge(mutant)
    assert tally.read + tally.refused == 10_000
    assert tally.refused > 3_000
    assert tally.read > 1_000
    assert tally.slowest_seconds < 1.0


def test_facts_behind_a_tokenizer_are_read_as_well():
    """A converter of another order costs more bytes; no fact that memory needs is left out."""
    first = {"general.architecture": "llama", "llama.block_count": 32}
    last = {"llama.attention.head_count": 32, "llama.attention.key_length": 128}
    file = files.build(first | files.tokenizer(30_000, 10) | last | {"llama.z": 1})
    header = read_header(file.fetch, size_bytes=file.size_bytes)
    assert header.keys["llama.attention.key_length"] == 128
    ordinary = files.qwen36()
    assert not read_header(ordinary.fetch, size_bytes=ordinary.size_bytes).has_all_keys
