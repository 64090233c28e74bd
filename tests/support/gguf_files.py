"""Writes GGUF headers byte by byte, sound ones of real shapes and any kind of broken one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.gguf.header import ValueType
from jobs.gguf.tensor_types import TENSOR_TYPES, stored_bytes

ALIGNMENT = 32
VOCABULARY = 248_320
MERGES = 247_587
F32, F16, Q8_0, Q4_K, Q6_K = 0, 1, 8, 12, 14
WIDTH, HIDDEN, LAYERS, INTERVAL, HEADS, KV_HEADS, HEAD = 5120, 17408, 64, 4, 24, 4, 256
SSM = {"conv_kernel": 4, "state_size": 128, "group_count": 16, "time_step_rank": 48}
INNER = 6144

Line = tuple[str, tuple[int, ...], int]


def text(value: str | bytes) -> bytes:
    """A string with its length."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, value_type: int, payload: bytes) -> bytes:
    """One key with its value."""
    return text(key) + struct.pack("<I", value_type) + payload


def array(element: int, length: int, payload: bytes = b"") -> bytes:
    """The inside of an array; nothing holds its length against the payload."""
    return struct.pack("<IQ", element, length) + payload


def encoded(key: str, value: object) -> bytes:
    """A key with a value of Python as converters would write it."""
    match value:
        case bool():
            return pair(key, ValueType.BOOL, struct.pack("<?", value))
        case int():
            wide = ValueType.UINT32 if 0 <= value < 2**32 else ValueType.INT64
            return pair(key, wide, struct.pack("<I" if wide is ValueType.UINT32 else "<q", value))
        case float():
            return pair(key, ValueType.FLOAT32, struct.pack("<f", value))
        case str() | bytes():
            return pair(key, ValueType.STRING, text(value))
    items = list(value)  # type: ignore[call-overload]
    if items and isinstance(items[0], str | bytes):
        inside = array(ValueType.STRING, len(items), b"".join(map(text, items)))
    elif items and isinstance(items[0], bool):
        inside = array(ValueType.BOOL, len(items), bytes(items))
    elif items and isinstance(items[0], float):
        inside = array(ValueType.FLOAT32, len(items), struct.pack(f"<{len(items)}f", *items))
    else:
        inside = array(ValueType.INT32, len(items), struct.pack(f"<{len(items)}i", *items))
    return pair(key, ValueType.ARRAY, inside)


def line(name: str | bytes, dims: Sequence[int], type_id: int, offset: int) -> bytes:
    """One entry of the tensor table."""
    return (
        text(name)
        + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        + struct.pack("<IQ", type_id, offset)
    )


def start(tensors: int, keys: int, *, magic: bytes = b"GGUF", version: int = 3) -> bytes:
    """The first 24 bytes."""
    return magic + struct.pack("<IQQ", version, tensors, keys)


@dataclass(frozen=True)
class File:
    """A header and the size the whole file would have."""

    header: bytes
    size_bytes: int

    def fetch(self, offset: int, length: int) -> bytes:
        """What a read of the file gives; behind the header there are zeros."""
        piece = self.header[offset : offset + length]
        return piece + bytes(max(min(length, self.size_bytes - offset) - len(piece), 0))


def build(
    keys: Mapping[str, object], tensors: Iterable[Line] = (), *, alignment: int = ALIGNMENT
) -> File:
    """A sound file: tensors follow each other, padded."""
    lines, offset = [], 0
    for name, dims, type_id in tensors:
        lines.append(line(name, dims, type_id, offset))
        count = 1
        for size in dims:
            count *= size
        size_bytes = stored_bytes(type_id, count) if type_id in TENSOR_TYPES else count
        offset += -(-(size_bytes or 0) // alignment) * alignment
    pairs = [encoded(key, value) for key, value in keys.items()]
    header = start(len(lines), len(pairs)) + b"".join(pairs) + b"".join(lines)
    header += bytes(-len(header) % alignment)
    return File(header, len(header) + offset)


def tokens(count: int) -> list[str]:
    """Made-up words whose lengths are like those of a real vocabulary."""
    return [f"\u0120{number:05x}"[: 3 + number % 5] + f"{number:x}" for number in range(count)]


def tokenizer(count: int = VOCABULARY, merges: int = MERGES) -> dict[str, object]:
    """A vocabulary as the converter writes it."""
    words = tokens(count)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [1] * count,
        "tokenizer.ggml.merges": [f"{words[n % count]} {n % 4096:x}" for n in range(merges)],
        "tokenizer.ggml.eos_token_id": 248_046 % max(count, 1),
        "tokenizer.chat_template": "{{ messages }}" * 600,
    }


def qwen36(
    *,
    heads: int = 0,
    vocabulary: int = VOCABULARY,
    merges: int = MERGES,
    late: bool = True,
    lines: Callable[[Iterable[Line]], Iterable[Line]] = iter,
) -> File:
    """The shape of Qwen3.6-27B: 851 tensors, with MTP `heads` inside 15 more each.

    `lines` may give them other types.
    """
    own = "qwen35."
    keys: dict[str, object] = {
        "general.architecture": "qwen35",
        "general.type": "model",
        "general.name": "Qwen3.6 27B",
        "general.basename": "Qwen3.6",
        "general.size_label": "27B",
        "general.base_model.count": 1,
        "general.base_model.0.name": "Qwen3.6 27B",
        "general.base_model.0.organization": "Qwen",
        "general.base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen3.6-27B",
        own + "block_count": LAYERS + heads,
        own + "context_length": 262_144,
        own + "embedding_length": WIDTH,
        own + "feed_forward_length": HIDDEN,
        own + "attention.head_count": HEADS,
        own + "attention.head_count_kv": KV_HEADS,
        own + "attention.key_length": HEAD,
        own + "attention.value_length": HEAD,
        own + "rope.freq_base": 1e7,
        own + "full_attention_interval": INTERVAL,
        **{f"{own}ssm.{word}": number for word, number in SSM.items()},
        own + "ssm.inner_size": INNER,
    }
    if heads:
        keys[own + "nextn_predict_layers"] = heads
    last: dict[str, object] = {"general.quantization_version": 2, "general.file_type": 15}
    if not late:
        keys |= last
    keys |= tokenizer(vocabulary, merges)
    return build(keys | last, lines(qwen36_tensors(heads, vocabulary)))


def qwen36_tensors(heads: int, vocabulary: int) -> Iterable[Line]:
    """Three tensors outside, 14 in a recurrent layer, 11 in a full one, four more in a head."""
    yield "token_embd.weight", (WIDTH, vocabulary), Q4_K
    yield "output_norm.weight", (WIDTH,), F32
    yield "output.weight", (WIDTH, vocabulary), Q6_K
    mixed = 2 * SSM["group_count"] * SSM["state_size"] + INNER
    rank = SSM["time_step_rank"]
    recurrent = {
        "attn_qkv.weight": (WIDTH, mixed),
        "attn_gate.weight": (WIDTH, INNER),
        "ssm_beta.weight": (WIDTH, rank),
        "ssm_alpha.weight": (WIDTH, rank),
        "ssm_out.weight": (INNER, WIDTH),
        "ssm_conv1d.weight": (SSM["conv_kernel"], mixed),
        "ssm_dt.bias": (rank,),
        "ssm_a": (rank,),
        "ssm_norm.weight": (SSM["state_size"],),
    }
    full = {
        "attn_q.weight": (WIDTH, 2 * HEADS * HEAD),
        "attn_k.weight": (WIDTH, KV_HEADS * HEAD),
        "attn_v.weight": (WIDTH, KV_HEADS * HEAD),
        "attn_output.weight": (HEADS * HEAD, WIDTH),
        "attn_q_norm.weight": (HEAD,),
        "attn_k_norm.weight": (HEAD,),
    }
    always = {
        "attn_norm.weight": (WIDTH,),
        "post_attention_norm.weight": (WIDTH,),
        "ffn_gate.weight": (WIDTH, HIDDEN),
        "ffn_up.weight": (WIDTH, HIDDEN),
        "ffn_down.weight": (HIDDEN, WIDTH),
    }
    head = {
        "nextn.eh_proj.weight": (2 * WIDTH, WIDTH),
        "nextn.enorm.weight": (WIDTH,),
        "nextn.hnorm.weight": (WIDTH,),
        "nextn.shared_head_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS + heads):
        is_head = layer >= LAYERS
        is_full = is_head or (layer + 1) % INTERVAL == 0
        for name, dims in {**always, **(full if is_full else recurrent)}.items():
            small = len(dims) == 1 or "conv1d" in name
            yield f"blk.{layer}.{name}", dims, F32 if small else Q4_K
        for name, dims in head.items() if is_head else ():
            yield f"blk.{layer}.{name}", dims, F32 if len(dims) == 1 else Q8_0


def dflash(
    architecture: str = "dflash-draft", *, stale: bool = False, lines: Iterable[Line] = ()
) -> File:
    """A block drafter of five layers without a vocabulary, in one of its dialects."""
    early = architecture == "dflash-draft"
    own = f"{architecture}."
    inner = f"{own}dflash." if early else own
    layers = "target_layer_ids" if early or stale else "target_layers"
    keys: dict[str, object] = {
        "general.architecture": architecture,
        "general.name": "Qwen3.6 27B DFlash",
        "general.file_type": 7,
        own + "block_count": 5,
        own + "context_length": 262_144,
        own + "embedding_length": WIDTH,
        own + "feed_forward_length": HIDDEN,
        own + "attention.head_count": 32,
        own + "attention.head_count_kv": 8,
        own + "attention.key_length": 128,
        own + "attention.value_length": 128,
        own + "vocab_size": VOCABULARY,
        inner + "block_size": 16,
        inner + "mask_token_id": 248_070,
        inner + layers: [1, 16, 31, 46, 61],
    }
    if early:
        keys[inner + "n_target_features"] = 5 * WIDTH
    mix, norm = ("dflash_fc", "dflash_hidden_norm") if early else ("fc", "hidden_norm")
    tensors: list[Line] = [
        (f"{mix}.weight", (5 * WIDTH, WIDTH), Q8_0),
        (f"{norm}.weight", (WIDTH,), F32),
        ("output_norm.weight", (WIDTH,), F32),
    ]
    for layer in range(5):
        shapes = {"attn_q": 4096, "attn_k": 1024, "attn_v": 1024, "ffn_gate": HIDDEN}
        tensors += [
            (f"blk.{layer}.{name}.weight", (WIDTH, rows), Q8_0) for name, rows in shapes.items()
        ]
        tensors += [
            (f"blk.{layer}.{name}.weight", (WIDTH,), F32) for name in ("attn_norm", "ffn_norm")
        ]
    return build(keys, list(lines) or tensors)


def projector(width: int = WIDTH, *, lines: Iterable[Line] = (), **vision: int) -> File:
    """An image projector."""
    keys = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.file_type": 1,
        "clip.has_vision_encoder": True,
        "clip.projector_type": "qwen3vl_merger",
        "clip.vision.projection_dim": width,
        "clip.vision.embedding_length": 1152,
        "clip.vision.block_count": 27,
        **{f"clip.vision.{name}": number for name, number in vision.items()},
    }
    few: list[Line] = [("v.patch_embd.weight", (16, 16, 3, 1152), F16), ("mm.0.bias", (9,), F32)]
    return build(keys, list(lines) or few)


def small(architecture: str = "llama") -> File:
    """A little model with a little vocabulary."""
    own = f"{architecture}."
    keys: dict[str, object] = {
        "general.architecture": architecture,
        "general.name": "small",
        own + "block_count": 1,
        own + "context_length": 512,
        own + "embedding_length": 64,
        own + "attention.head_count": [4],
        own + "attention.head_count_kv": 2,
        **tokenizer(80, 70),
        "general.file_type": 7,
    }
    return build(
        keys, [("token_embd.weight", (64, 80), Q8_0), ("blk.0.attn_norm.weight", (64,), F32)]
    )
