"""From a header that was read to the shape that memory and pairing need; one function, pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobs.errors import Permanent
from jobs.fit.shape import Shape, TensorBytes
from jobs.fit.shape_reading import shape_of
from jobs.gguf.doubts import doubts
from jobs.gguf.facts import ModelFacts
from jobs.gguf.header import ArrayValue, Header, Value
from jobs.gguf.limits import MOST_LAYERS


def refuse_part(facts: ModelFacts, files: int) -> None:
    """Raise Permanent where a file is one of a set of which not so many files are at hand."""
    if facts.shard is not None and not facts.shard.is_possible:
        raise Permanent(
            f"its name says part {facts.shard.number} of {facts.shard.count}, which cannot be",
            advice="Take the file from its author again; parts count from 00001.",
        )
    named = facts.shard.count if facts.shard else None
    count = facts.split.count if facts.split and facts.split.count else named
    if count is not None and count > 1 and count != files:
        raise Permanent(
            f"the file is one of a set of {count}, of which {files} {_are(files)} at hand",
            advice="Name the first file of the set, all under their own names "
            "(NAME-00001-of-00003.gguf).",
        )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def shape_from(header: Header, facts: ModelFacts, *, parts: Sequence[ModelFacts] = ()) -> Shape:
    """The shape of a model from its header; `parts` are the facts of the other files of a set.

    A list that the reader cut is filled up with its largest number: layers are then counted as the
    widest there is, and the shape's notes say so.
    """
    impossible = doubts(header, facts.architecture)
    if impossible:
        raise Permanent(
            f"its header cannot be right: {impossible[0]}",
            advice="Take the file from its author again; `forkscout gguf` shows every size.",
        )
    cut: list[str] = []
    keys = {name: _plain(name, value, cut) for name, value in header.keys.items()}
    shape = shape_of(
        keys,
        tensors=_tensor_bytes(facts, parts),
        vocabulary=facts.vocabulary_size,
        tensor_count=facts.split.tensors if facts.split else facts.tensor_count,
        keys_read=header.has_all_keys,
    )
    own = [name for name in cut if name.startswith(f"{shape.architecture}.")]
    notes = [f"the list {name[:60]!r} was cut: its largest number fills it up" for name in own]
    if parts:
        notes.append(f"a set of {len(parts) + 1} files")
    return replace(shape, notes=tuple(notes))


def _plain(name: str, value: Value, cut: list[str]) -> object:
    if not isinstance(value, ArrayValue):
        return value
    items = list(value.items)
    if not value.is_whole and all(isinstance(item, int) for item in items):
        cut.append(name)
        largest = max((int(item) for item in items), default=0)
        is_truth = bool(items) and isinstance(items[0], bool)
        rest = max(0, min(value.length, MOST_LAYERS) - len(items))
        items += [False if is_truth else largest] * rest
    return tuple(items)


def _tensor_bytes(facts: ModelFacts, parts: Sequence[ModelFacts]) -> TensorBytes:
    files = (facts, *parts)
    places = [each.places for each in files if each.places is not None]
    if len(places) == len(files) and not any(each.unmeasured for each in places):
        return TensorBytes(
            total=sum(each.total for each in places),
            token_embedding=sum(each.token_embd for each in places),
            has_output=any(each.output for each in places),
        )
    sizes = [each.data_bytes or each.size_bytes for each in files]
    known = [size for size in sizes if size]
    if len(known) != len(files):
        raise Permanent(
            "neither the sizes of the tensors nor the size of the file are known",
            advice="Name a file on this machine, or a server that says how large it is.",
        )
    return TensorBytes(total=sum(known), whole=False)
