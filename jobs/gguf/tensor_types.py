"""What ggml's numbers for tensor and file types mean upstream; a fork's numbers stay numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorType:
    """How one type stores its values: whole blocks of so many elements in so many bytes."""

    name: str
    block_elements: int
    block_bytes: int


TENSOR_TYPES: Mapping[int, TensorType] = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    9: TensorType("Q8_1", 32, 40),
    10: TensorType("Q2_K", 256, 84),
    11: TensorType("Q3_K", 256, 110),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    15: TensorType("Q8_K", 256, 292),
    16: TensorType("IQ2_XXS", 256, 66),
    17: TensorType("IQ2_XS", 256, 74),
    18: TensorType("IQ3_XXS", 256, 98),
    19: TensorType("IQ1_S", 256, 50),
    20: TensorType("IQ4_NL", 32, 18),
    21: TensorType("IQ3_S", 256, 110),
    22: TensorType("IQ2_S", 256, 82),
    23: TensorType("IQ4_XS", 256, 136),
    24: TensorType("I8", 1, 1),
    25: TensorType("I16", 1, 2),
    26: TensorType("I32", 1, 4),
    27: TensorType("I64", 1, 8),
    28: TensorType("F64", 1, 8),
    29: TensorType("IQ1_M", 256, 56),
    30: TensorType("BF16", 1, 2),
    34: TensorType("TQ1_0", 256, 54),
    35: TensorType("TQ2_0", 256, 66),
    39: TensorType("MXFP4", 32, 17),
    40: TensorType("NVFP4", 64, 36),
    41: TensorType("Q1_0", 128, 18),
}
"""Numbers: `enum ggml_type` of upstream's ggml.h; sizes: the block structs of its ggml-common.h,
as the `gguf` package 0.19 repeats them in GGML_QUANT_SIZES (a test compares all of them)."""

FORK_TYPES: Mapping[int, str] = {
    42: "turbo2 or turbo3",
    43: "turbo3 or turbo4",
    44: "turbo4 or turbo2",
    45: "TQ3_1S or a TCQ type",
    46: "TQ4_1S or a TCQ type",
}
"""Numbers that forks gave to different formats: the first word as in TheTom's turboquant, the
second as in buun and beellama (their ggml.h of May 2026). Which one it is, no file says."""

FILE_TYPES: Mapping[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
}
"""`enum llama_ftype` of upstream's llama.h: what `general.file_type` means."""

GUESSED_FILE_TYPE = 1024
"""A flag upstream adds where the type was counted from the tensors, not written by the maker."""


def type_name(type_id: int) -> str:
    """The type's name, or its number with what is known of it; a fork's type is never guessed."""
    if known := TENSOR_TYPES.get(type_id):
        return known.name
    if claimed := FORK_TYPES.get(type_id):
        return f"unknown type {type_id} ({claimed}, depends on the fork)"
    return f"unknown type {type_id}"


def file_type_name(file_type: int) -> str:
    """What `general.file_type` says, or its number."""
    plain = file_type & ~GUESSED_FILE_TYPE
    return FILE_TYPES.get(plain, f"unknown file type {file_type}")


def stored_bytes(type_id: int, elements: int) -> int | None:
    """The bytes so many elements take; None where the type is not known."""
    if (known := TENSOR_TYPES.get(type_id)) is None:
        return None
    return -(-elements // known.block_elements) * known.block_bytes
