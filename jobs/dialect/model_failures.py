"""What a file that does not load is called, whose fault that is and what to do; order decides."""

from __future__ import annotations

from jobs.dialect import failure_rule as phases
from jobs.dialect.failure_rule import CONFIGURATION, INFRASTRUCTURE, rule

MODELS = (
    rule(
        "arch_unknown",
        r"unknown model architecture: '",
        phases.LOAD,
        CONFIGURATION,
        "Use a revision that knows this architecture, or a file converted for this one.",
    ),
    rule(
        "tensors",
        r"wrong number of tensors; expected \d+, got \d+",
        phases.LOAD,
        CONFIGURATION,
        "Use a model file made for this engine; the counts tell which tensors it ignores.",
    ),
    rule(
        "tensor_missing",
        r"missing tensor '",
        phases.LOAD,
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    rule(
        "tensor_shape",
        r"tensor '[^']+' has wrong shape; expected ",
        phases.LOAD,
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    rule(
        "ggml_type",
        r"tensor '[^']+' has invalid ggml type \d+",
        phases.LOAD,
        CONFIGURATION,
        "Use a quantisation that this engine knows.",
    ),
    rule(
        "drafter_meta",
        r"DFlash model requires '[^']+' in GGUF metadata",
        phases.LOAD_DRAFTER,
        CONFIGURATION,
        "Convert the drafter to the format of this engine.",
    ),
    rule(
        "hparam",
        r"key not found in model: ",
        phases.LOAD,
        CONFIGURATION,
        "Use a model file that holds this key, or the revision it was made for.",
    ),
    rule(
        "truncated",
        r"data is not within the file bounds|invalid magic characters",
        phases.LOAD,
        INFRASTRUCTURE,
        "Remove the weight file from the store and fetch it again.",
    ),
    rule(
        "mmproj_mismatch",
        r"mismatch between text model \(n_embd = |unknown projector type",
        phases.LOAD_PROJECTOR,
        CONFIGURATION,
        "Pair the model with the projector made for it.",
    ),
    rule(
        "mmproj_missing",
        r"image input is not supported - hint: .*mmproj",
        phases.REQUEST,
        CONFIGURATION,
        "Give the stack a projector or ask for text only.",
    ),
)
