"""What a file that does not load is called, whose fault that is and what to do; order decides."""

from __future__ import annotations

from jobs.dialect import failure_rule as at
from jobs.dialect.failure_rule import CONFIGURATION, INFRASTRUCTURE, rule

MODELS = (
    rule(
        "arch_unknown",
        r"unknown model architecture: '",
        CONFIGURATION,
        "Use a revision that knows this architecture, or a file converted for this one.",
        phases=(at.LOAD,),
    ),
    rule(
        "tensors",
        r"wrong number of tensors; expected \d+, got \d+",
        CONFIGURATION,
        "Use a model file made for this engine; the counts tell which tensors it ignores.",
        phases=(at.LOAD,),
    ),
    rule(
        "tensor_missing",
        r"missing tensor '",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
        phases=(at.LOAD,),
    ),
    rule(
        "tensor_shape",
        r"tensor '[^']+' has wrong shape; expected ",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
        phases=(at.LOAD,),
    ),
    rule(
        "ggml_type",
        r"tensor '[^']+' has invalid ggml type \d+",
        CONFIGURATION,
        "Use a quantisation that this engine knows.",
        phases=(at.LOAD,),
    ),
    rule(
        "drafter_meta",
        r"DFlash model requires '[^']+' in GGUF metadata",
        CONFIGURATION,
        "Convert the drafter to the format of this engine.",
        phases=(at.LOAD_DRAFTER,),
    ),
    rule(
        "hparam",
        r"key not found in model: ",
        CONFIGURATION,
        "Use a model file that holds this key, or the revision it was made for.",
        phases=(at.LOAD,),
    ),
    rule(
        "truncated",
        r"data is not within the file bounds|invalid magic characters",
        INFRASTRUCTURE,
        "Remove the weight file from the store and fetch it again.",
        phases=(at.LOAD,),
    ),
    rule(
        "mmproj_mismatch",
        r"mismatch between text model \(n_embd = |unknown projector type",
        CONFIGURATION,
        "Pair the model with the projector made for it.",
        phases=(at.LOAD_PROJECTOR,),
    ),
    rule(
        "mmproj_missing",
        r"image input is not supported - hint: .*mmproj",
        CONFIGURATION,
        "Give the stack a projector or ask for text only.",
        phases=(at.REQUEST,),
    ),
)
