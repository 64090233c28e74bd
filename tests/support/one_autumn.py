"""Headers of the models of one autumn, in their public sizes, and what was asked of one card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from support import gguf_files as files
from support.shapes import DRAFTER_Q8_0_BYTES, MMPROJ_BYTES, Q4_K_M_BYTES, UD_Q3_K_XL_BYTES

from jobs.gguf.tensor_types import TENSOR_TYPES, stored_bytes

NUMBERS = {each.name: number for number, each in TENSOR_TYPES.items()}
Q4_K, Q3_K, Q8_0, Q6_K = (NUMBERS[name] for name in ("Q4_K", "Q3_K", "Q8_0", "Q6_K"))
COARSER, FINER = {Q4_K: Q3_K, Q8_0: Q6_K}, {Q4_K: Q6_K}

TARGET, DRAFTER = "Qwen3.6-27B-UD-Q3_K_XL.gguf", "dflash-draft-3.6-q8_0.gguf"
PROJECTOR, PLAIN = "mmproj-F16.gguf", "Qwen3.6-27B-Q4_K_M.gguf"
BAKED = "Qwen3.6-27B-MTP-UD-Q3_K_XL.gguf"
BEELLAMA = ("--kv", "turbo3", "--engine", "beellama@v0.1.2", "--cross-context", "1024")
PAIRED = ("--target", TARGET, "--drafter", DRAFTER, "--gpu", "24GiB")
OUTCOMES = {
    "ran: buun, Q4_K_M, 32K": (
        *("--target", PLAIN, "--drafter", DRAFTER, "--gpu", "24GiB"),
        *("--context", "32768", "--ubatch", "256", "--engine", "buun@2026-05-01"),
    ),
    "ran: beellama, 200K with vision": (
        *PAIRED, "--mmproj", PROJECTOR, "--context", "200000", "--ubatch", "2048", *BEELLAMA
    ),
    "ran: beellama, 262K of text": (*PAIRED, "--context", "262144", "--ubatch", "256", *BEELLAMA),
    "ran out of memory: beellama, 262K with vision": (
        *PAIRED, "--mmproj", PROJECTOR, "--context", "262144", "--ubatch", "2048", *BEELLAMA
    ),
}  # fmt: skip


def sized(lines: Iterable[files.Line], total: int) -> list[files.Line]:
    """The same tensors, some in a neighbouring type, so that together they have so many bytes."""
    found = list(lines)
    lacking = total - sum(_bytes(dims, kind) for _, dims, kind in found)
    others = COARSER if lacking < 0 else FINER
    for at, (name, dims, kind) in enumerate(found):
        change = _bytes(dims, others.get(kind, kind)) - _bytes(dims, kind)
        if "ffn" in name and abs(lacking - change) < abs(lacking):
            lacking -= change
            found[at] = (name, dims, others[kind])
    return found


def _bytes(dims: tuple[int, ...], kind: int) -> int:
    count = 1
    for size in dims:
        count *= size
    return stored_bytes(kind, count) or 0


def drafter_lines() -> Iterable[files.Line]:
    """58 tensors: five layers of a dense model and what joins the target's layers."""
    width, hidden = 5120, 17_408
    yield "dflash_fc.weight", (5 * width, width), Q8_0
    yield "dflash_hidden_norm.weight", (width,), files.F32
    yield "output_norm.weight", (width,), files.F32
    large = {
        "attn_q": (width, 4096), "attn_k": (width, 1024), "attn_v": (width, 1024),
        "attn_output": (4096, width), "ffn_gate": (width, hidden), "ffn_up": (width, hidden),
        "ffn_down": (hidden, width),
    }  # fmt: skip
    for layer in range(5):
        for name, dims in large.items():
            yield f"blk.{layer}.{name}.weight", dims, Q8_0
        for name in ("attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm"):
            yield f"blk.{layer}.{name}.weight", (width if "k_n" not in name else 128,), files.F32


def models() -> Mapping[str, files.File]:
    """Target, drafter and projector by file name; their data are holes."""
    vision = [("v.patch_embd.weight", (16, 16, 3, 1152), files.F16)]
    rest = (MMPROJ_BYTES - _bytes(vision[0][1], files.F16)) // 2
    return {
        PLAIN: files.qwen36(lines=lambda own: sized(own, Q4_K_M_BYTES)),
        TARGET: files.qwen36(lines=lambda own: sized(own, UD_Q3_K_XL_BYTES)),
        DRAFTER: files.dflash(lines=sized(drafter_lines(), DRAFTER_Q8_0_BYTES)),
        PROJECTOR: files.projector(
            lines=[*vision, ("v.rest.weight", (rest,), files.F16)], feed_forward_length=4304
        ),
    }
