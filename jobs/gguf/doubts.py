"""Says which sizes of a header cannot be meant; they are shown as they stand, never computed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.gguf.header import ArrayValue, Header
from jobs.gguf.limits import MOST_COUNT, MOST_LAYERS, MOST_PARTS

LONGEST_WORD = 40
MOST_NAMED = 12
"""Keys that are named one by one; what is more is counted."""

SIZES = {
    "block_count": MOST_LAYERS,
    "context_length": MOST_COUNT,
    "embedding_length": MOST_COUNT,
    "attention.key_length": MOST_COUNT,
    "attention.value_length": MOST_COUNT,
    "vocab_size": MOST_COUNT,
    "full_attention_interval": MOST_COUNT,
}
"""Keys whose number is at least one, and the most it can be."""

COUNTS = {
    "attention.sliding_window": MOST_COUNT,
    "nextn_predict_layers": MOST_LAYERS,
    "expert_count": MOST_COUNT,
    "expert_used_count": MOST_COUNT,
}
"""Keys that may be zero."""

HEADS = ("attention.head_count", "attention.head_count_kv")
PER_LAYER = (*HEADS, "feed_forward_length")
"""Keys with one number, or one for each layer, of which some may be zero; heads not all."""

STATEFUL = ("ssm.", "wkv.")
"""Keys of models without attention: their heads are written as zero."""


def doubts(header: Header, architecture: str) -> list[str]:
    """One sentence for each size that cannot be meant, the first few of them."""
    found = [*_sizes(header, architecture), *_split(header)]
    more = len(found) - MOST_NAMED
    rest = [f"sizes beyond these that cannot be: {more}"] if more > 0 else []
    return [*found[:MOST_NAMED], *rest]


def _sizes(header: Header, architecture: str) -> Iterator[str]:
    keys = header.keys
    least = {**dict.fromkeys(SIZES, 1), **dict.fromkeys(COUNTS, 0)}
    for name, most in (SIZES | COUNTS).items():
        value = keys.get(f"{architecture}.{name}")
        if value is not None and not _all_within(value, least[name], most):
            yield _cannot_be(architecture, name, value)
    stateful = any(key.startswith(f"{architecture}.{word}") for key in keys for word in STATEFUL)
    for name in PER_LAYER:
        value = keys.get(f"{architecture}.{name}")
        if value is None:
            continue
        nothing = name in HEADS and not stateful and not any(_numbers(value))
        if nothing or not _all_within(value, 0, MOST_COUNT):
            yield _cannot_be(architecture, name, value)
    wide, narrow = (keys.get(f"{architecture}.{name}") for name in HEADS)
    if isinstance(wide, int) and isinstance(narrow, int) and 0 < wide < narrow:
        yield f"{narrow:,} KV heads of {wide:,} heads cannot be"
    layers = keys.get(f"{architecture}.block_count")
    heads = keys.get(f"{architecture}.nextn_predict_layers")
    if isinstance(layers, int) and isinstance(heads, int) and 0 <= layers < heads:
        yield f"{heads:,} MTP heads among {layers:,} layers cannot be"


def _split(header: Header) -> Iterator[str]:
    number, count, tensors = (
        header.keys.get(f"split.{word}") for word in ("no", "count", "tensors.count")
    )
    if count is not None and not _all_within(count, 0, MOST_PARTS):
        yield f"split.count = {_shown(count)} cannot be"
    if tensors is not None and not _all_within(tensors, 0, MOST_COUNT):
        yield f"split.tensors.count = {_shown(tensors)} cannot be"
    if number is None:
        return
    if not _all_within(number, 0, MOST_PARTS):
        yield f"split.no = {_shown(number)} cannot be"
    elif isinstance(number, int) and isinstance(count, int) and number >= max(1, count):
        yield f"split.no = {number:,} contradicts split.count = {count:,}: parts count from 0"


def _all_within(value: object, least: int, most: int) -> bool:
    if isinstance(value, ArrayValue):
        whole = [item for item in value.items if not isinstance(item, bool)]
        return all(isinstance(item, int) and least <= item <= most for item in whole)
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _numbers(value: object) -> Sequence[object]:
    return value.items if isinstance(value, ArrayValue) else (value,)


def _cannot_be(architecture: str, name: str, value: object) -> str:
    return f"{architecture[:LONGEST_WORD]}.{name} = {_shown(value)} cannot be"


def _shown(value: object) -> str:
    if isinstance(value, ArrayValue):
        text = ", ".join(str(item) for item in value.items[:8])
        return f"[{text[:LONGEST_WORD]}{', ...' if value.length > 8 else ''}]"
    return f"{value:,}" if isinstance(value, int) else repr(value)[:LONGEST_WORD]
