"""What a twin's file consists of: the model's own header, tagged, and how long each tensor is."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jobs.errors import BadGguf, Permanent, UsageError
from jobs.exchange import TWIN_KEY
from jobs.gguf.header import Header, Tensor, ValueType
from jobs.gguf.layout import alignment_of
from jobs.gguf.reader import MAGIC
from jobs.gguf.tensor_types import TENSOR_TYPES, type_name
from jobs.terminal import printable
from jobs.twin.blocks import RandomBytes, kind_of, pattern

START_BYTES = 24
PIECE_BYTES = 2 * 2**20
LONGEST_NAME = 200

Fetch = Callable[[int, int], bytes]


@dataclass(frozen=True)
class Twin:
    """A file to write: `head`, then every tensor at its offset behind it."""

    head: bytes
    tensors: tuple[Tensor, ...]
    size_bytes: int


def plan(header: Header, fetch: Fetch, *, of: str) -> Twin:
    """The twin of the model behind `fetch`; `of` is the model's name and stands in the tag.

    Raises UsageError for a twin or a part of a set, Permanent for tensors of unknown types.
    """
    if header.tensors is None or header.keys_end is None or header.table_end is None:
        raise BadGguf("its header was not read to the end")
    if TWIN_KEY in header.keys:
        raise UsageError("it is a twin already", advice="Name the model it was made from.")
    parts = header.keys.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        raise UsageError(
            f"it is one of {parts} parts", advice="Join the parts first, or name a single file."
        )
    for tensor in header.tensors:
        if tensor.type_id not in TENSOR_TYPES:
            raise Permanent(
                f"tensor {printable(tensor.name)[:80]!r} has the {type_name(tensor.type_id)}",
                advice="A fork's own tensor types are not known well enough for a twin.",
            )
    tags = _text_pair(TWIN_KEY, of[:LONGEST_NAME] or "unnamed")
    head = b"".join(
        (
            struct.pack("<4sIQQ", MAGIC, header.version, header.tensor_count, header.kv_count + 1),
            *_copied(fetch, START_BYTES, header.keys_end),
            tags,
            *_copied(fetch, header.keys_end, header.table_end),
        )
    )
    head += bytes(-len(head) % alignment_of(header.keys))
    tensors = tuple(sorted(header.tensors, key=lambda each: each.offset))
    end = max((each.offset + (each.size_bytes or 0) for each in tensors), default=0)
    return Twin(head, tensors, len(head) + end)


def weights(
    twin: Twin, random_bytes: RandomBytes, *, first: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Every piece of every tensor from the `first` on, with its place in the file."""
    made: dict[tuple[int, str], bytes] = {}
    for tensor in twin.tensors[first:]:
        kind = kind_of(tensor.name)
        key = (
            tensor.type_id,
            kind.name if TENSOR_TYPES[tensor.type_id].block_elements == 1 else "",
        )
        if key not in made:
            made[key] = pattern(tensor.type_id, kind, random_bytes)
        source, at = memoryview(made[key]), len(twin.head) + tensor.offset
        left = tensor.size_bytes or 0
        while left:
            piece = source[: min(left, len(source))]
            yield at, bytes(piece) if len(piece) < len(source) else made[key]
            at, left = at + len(piece), left - len(piece)


def _copied(fetch: Fetch, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = fetch(start, min(PIECE_BYTES, end - start))
        if not piece:
            raise BadGguf(f"the file is cut short at byte {start}")
        yield piece
        start += len(piece)


def _text_pair(key: str, value: str) -> bytes:
    name, words = key.encode(), value.encode("utf-8", "replace")
    return (
        struct.pack("<Q", len(name))
        + name
        + struct.pack("<IQ", ValueType.STRING, len(words))
        + words
    )
