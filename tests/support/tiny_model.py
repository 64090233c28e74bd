"""Writes a llama model small enough for a test: random weights, one token per character."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 2, 128, 4096
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{value:02X}>" for value in range(256)]
CHARACTERS = ["\u2581", *(chr(code) for code in range(33, 127))]
LOUDNESS = 0.4  # of characters in the output layer; bytes and specials are silent


def write(path: Path) -> Path:
    """The same file every time; it speaks endless, varied, meaningless ASCII."""
    tokens = [*SPECIAL, *BYTES, *CHARACTERS]
    kinds = [
        gguf.TokenType.UNKNOWN,
        *[gguf.TokenType.CONTROL] * 2,
        *[gguf.TokenType.BYTE] * len(BYTES),
        *[gguf.TokenType.NORMAL] * len(CHARACTERS),
    ]
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(0, columns**-0.5, (rows, columns)).astype(np.float32)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", matrix(len(tokens), WIDTH))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(WIDTH, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", matrix(HIDDEN, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", matrix(HIDDEN, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", matrix(WIDTH, HIDDEN))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    output = random.normal(0, LOUDNESS, (len(tokens), WIDTH)).astype(np.float32)
    output[: len(SPECIAL) + len(BYTES)] = 0
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
