"""Shapes of models whose sizes are public, as keys a header would hold."""

from __future__ import annotations

from jobs.fit.shape import Shape, TensorBytes
from jobs.fit.shape_reading import shape_of

MIB = 2**20

QWEN36 = {
    "general.architecture": "qwen35",
    "qwen35.block_count": 64,
    "qwen35.context_length": 262_144,
    "qwen35.embedding_length": 5120,
    "qwen35.feed_forward_length": 17_408,
    "qwen35.attention.head_count": 24,
    "qwen35.attention.head_count_kv": 4,
    "qwen35.attention.key_length": 256,
    "qwen35.attention.value_length": 256,
    "qwen35.full_attention_interval": 4,
    "qwen35.ssm.conv_kernel": 4,
    "qwen35.ssm.state_size": 128,
    "qwen35.ssm.group_count": 16,
    "qwen35.ssm.time_step_rank": 48,
    "qwen35.ssm.inner_size": 6144,
    "tokenizer.ggml.pre": "qwen35",
}
QWEN36_VOCABULARY = 248_320
EMBEDDING_BYTES = QWEN36_VOCABULARY * 5120 * 144 // 256
"""token_embd in Q4_K: 682 MiB."""

Q4_K_M_BYTES = 16_536_406_016
UD_Q3_K_XL_BYTES = 14_500_000_000
DRAFTER_Q8_0_BYTES = 1_750_000_000
MMPROJ_BYTES = 930_000_000

GEMMA3_270M = {
    "general.architecture": "gemma3",
    "gemma3.block_count": 18,
    "gemma3.context_length": 32_768,
    "gemma3.embedding_length": 640,
    "gemma3.feed_forward_length": 2048,
    "gemma3.attention.head_count": 4,
    "gemma3.attention.head_count_kv": 1,
    "gemma3.attention.key_length": 256,
    "gemma3.attention.value_length": 256,
    "gemma3.attention.sliding_window": 512,
}

LLAMA_8B = {
    "general.architecture": "llama",
    "llama.block_count": 32,
    "llama.context_length": 131_072,
    "llama.embedding_length": 4096,
    "llama.feed_forward_length": 14_336,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "llama.vocab_size": 128_256,
}


def qwen36(total: int = Q4_K_M_BYTES, **more: object) -> Shape:
    """Qwen3.6-27B with so many bytes of tensors; `more` are further keys of its architecture."""
    keys = {**QWEN36, **{f"qwen35.{name}": value for name, value in more.items()}}
    return shape_of(
        keys,
        tensors=TensorBytes(total, token_embedding=EMBEDDING_BYTES),
        vocabulary=QWEN36_VOCABULARY,
        tensor_count=866 if more.get("nextn_predict_layers") else 851,
    )


def dflash_drafter(form: str = "dflash-draft", **changes: object) -> Shape:
    """Its public DFlash drafter in Q8_0, in one of the two forms."""
    inner = "dflash." if form == "dflash-draft" else ""
    layers = "target_layer_ids" if form == "dflash-draft" else "target_layers"
    keys: dict[str, object] = {
        "block_count": 5,
        "embedding_length": 5120,
        "feed_forward_length": 17_408,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "attention.key_length": 128,
        "attention.value_length": 128,
        f"{inner}block_size": 16,
        f"{inner}{layers}": [1, 16, 31, 46, 61],
        f"{inner}n_target_features": 25_600,
        **changes,
    }
    return shape_of(
        {
            "general.architecture": form,
            **{f"{form}.{name}": value for name, value in keys.items() if value is not None},
        },
        tensors=TensorBytes(DRAFTER_Q8_0_BYTES),
        tensor_count=58,
    )


def mmproj(projection: int = 5120, **changes: object) -> Shape:
    """A projector of a vision tower 1152 wide."""
    keys = {
        "general.architecture": "clip",
        "clip.has_vision_encoder": True,
        "clip.projector_type": "qwen3vl_merger",
        "clip.vision.projection_dim": projection,
        "clip.vision.embedding_length": 1152,
        "clip.vision.feed_forward_length": 4304,
        **changes,
    }
    return shape_of(keys, tensors=TensorBytes(MMPROJ_BYTES))


def gemma3_270m() -> Shape:
    """A model with sliding layers and one embedding for both ends."""
    tensors = TensorBytes(246_587_904, token_embedding=178_257_920, has_output=False)
    return shape_of(GEMMA3_270M, tensors=tensors, vocabulary=262_144)


def llama_8b() -> Shape:
    """A plain dense model."""
    return shape_of(LLAMA_8B, tensors=TensorBytes(4_900_000_000, token_embedding=295_501_824))
