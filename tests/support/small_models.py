"""Headers of little models of three architectures that a real server loads; no weights."""

from __future__ import annotations

from support.gguf_files import F32, Q8_0, Line, build
from support.tiny_model import BYTES, CHARACTERS, SPECIAL

WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, HEAD = 128, 2, 4, 2, 256, 32


def small_headers() -> dict[str, bytes]:
    """By architecture."""
    return {name: _header(name) for name in ("llama", "qwen2", "qwen3")}


def _header(architecture: str) -> bytes:
    own = f"{architecture}."
    words = [*SPECIAL, *BYTES, *CHARACTERS]
    keys: dict[str, object] = {
        "general.architecture": architecture,
        "general.name": f"small {architecture}",
        own + "block_count": LAYERS,
        own + "context_length": 4096,
        own + "embedding_length": WIDTH,
        own + "feed_forward_length": HIDDEN,
        own + "attention.head_count": HEADS,
        own + "attention.head_count_kv": KV_HEADS,
        own + "attention.layer_norm_rms_epsilon": 1e-5,
        own + "attention.key_length": HEAD,
        own + "attention.value_length": HEAD,
        own + "rope.dimension_count": HEAD,
        own + "vocab_size": len(words),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": [0.0] * len(words),
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * len(BYTES), *[1] * len(CHARACTERS)],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    return build(keys, _tensors(architecture, len(words))).header


def _tensors(architecture: str, vocabulary: int) -> list[Line]:
    lines: list[Line] = [
        ("token_embd.weight", (WIDTH, vocabulary), Q8_0),
        ("output_norm.weight", (WIDTH,), F32),
        ("output.weight", (WIDTH, vocabulary), Q8_0),
    ]
    wide, narrow = HEADS * HEAD, KV_HEADS * HEAD
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        lines += [
            (at + "attn_norm.weight", (WIDTH,), F32),
            (at + "attn_q.weight", (WIDTH, wide), Q8_0),
            (at + "attn_k.weight", (WIDTH, narrow), Q8_0),
            (at + "attn_v.weight", (WIDTH, narrow), Q8_0),
            (at + "attn_output.weight", (wide, WIDTH), Q8_0),
            (at + "ffn_norm.weight", (WIDTH,), F32),
            (at + "ffn_gate.weight", (WIDTH, HIDDEN), Q8_0),
            (at + "ffn_up.weight", (WIDTH, HIDDEN), Q8_0),
            (at + "ffn_down.weight", (HIDDEN, WIDTH), Q8_0),
        ]
        if architecture == "qwen2":
            for name, rows in (("q", wide), ("k", narrow), ("v", narrow)):
                lines.append((f"{at}attn_{name}.bias", (rows,), F32))
        if architecture == "qwen3":
            for name in ("q", "k"):
                lines.append((f"{at}attn_{name}_norm.weight", (HEAD,), F32))
    return lines
