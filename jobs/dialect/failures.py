"""What llama.cpp's error lines mean, whose fault each is and what to do; the order decides."""

from __future__ import annotations

from jobs.dialect.failure_rule import CONFIGURATION, ENGINE, INFRASTRUCTURE, rule

ARGUMENTS = (
    rule(
        "removed_flag",
        r"the argument has been removed\. ",
        CONFIGURATION,
        "Use the replacement that the line names.",
    ),
    rule(
        "kv_type",
        r"Unsupported cache type: ",
        CONFIGURATION,
        "Choose a KV cache type that this build's --help lists.",
    ),
    rule(
        "spec_type",
        r"unknown speculative (?:type: |decoding type without draft model)",
        CONFIGURATION,
        "Choose a speculation that this build's --help lists.",
    ),
    rule(
        "bad_flag",
        r"error: invalid argument: ",
        CONFIGURATION,
        "Remove the flag or use the spelling of this build's --help.",
    ),
    rule(
        "bad_value",
        r"error while handling argument ",
        CONFIGURATION,
        "Correct the value of the flag that the line names.",
    ),
    rule(
        "port",
        r"couldn't bind HTTP server socket|exiting due to HTTP server error",
        INFRASTRUCTURE,
        "Free the address or the socket folder and retry the job.",
    ),
)
DEVICES = (
    rule(
        "libcuda_rt",
        r"error while loading shared libraries: \S+: cannot open",
        INFRASTRUCTURE,
        "Install the library that the line names on the rig, or mount it into the cage.",
    ),
    rule(
        "gpu_init",
        r"failed to initialize CUDA: ",
        INFRASTRUCTURE,
        "Check the driver and the GPU of the rig.",
    ),
    rule(
        "no_sm",
        r"CUDA error: no kernel image is available for execution on the device",
        CONFIGURATION,
        "Build with the compute capability of the rig's GPU in cuda_arch.",
    ),
)
MODELS = (
    rule(
        "arch_unknown",
        r"unknown model architecture: '",
        CONFIGURATION,
        "Use a revision that knows this architecture, or a file converted for this one.",
    ),
    rule(
        "tensors",
        r"wrong number of tensors; expected \d+, got \d+",
        CONFIGURATION,
        "Use a model file made for this engine; the counts tell which tensors it ignores.",
    ),
    rule(
        "tensor_missing",
        r"missing tensor '",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    rule(
        "tensor_shape",
        r"tensor '[^']+' has wrong shape; expected ",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    rule(
        "ggml_type",
        r"tensor '[^']+' has invalid ggml type \d+",
        CONFIGURATION,
        "Use a quantisation that this engine knows.",
    ),
    rule(
        "drafter_meta",
        r"DFlash model requires '[^']+' in GGUF metadata",
        CONFIGURATION,
        "Convert the drafter to the format of this engine.",
    ),
    rule(
        "hparam",
        r"key not found in model: ",
        CONFIGURATION,
        "Use a model file that holds this key, or the revision it was made for.",
    ),
    rule(
        "truncated",
        r"data is not within the file bounds|invalid magic characters",
        INFRASTRUCTURE,
        "Remove the weight file from the store and fetch it again.",
    ),
    rule(
        "mmproj_mismatch",
        r"mismatch between text model \(n_embd = |unknown projector type",
        CONFIGURATION,
        "Pair the model with the projector made for it.",
    ),
    rule(
        "mmproj_missing",
        r"image input is not supported - hint: .*mmproj",
        CONFIGURATION,
        "Give the stack a projector or ask for text only.",
    ),
)
MEMORY = (
    rule(
        "ring_oom",
        r"dflash gpu ring: cudaMalloc failed for layer \d+",
        CONFIGURATION,
        "Lower the context, the cross context or the number of draft slots.",
    ),
    rule(
        "oom_alloc",
        r"allocating [\d.]+ MiB on device \d+: cudaMalloc failed: out of memory",
        CONFIGURATION,
        "Lower the context, the micro-batch or the number of layers on the GPU.",
    ),
    rule(
        "oom_kv",
        r"failed to allocate buffer for (?:kv|rs) cache",
        CONFIGURATION,
        "Lower the context or choose a smaller KV cache type.",
    ),
    rule(
        "oom_compute",
        r"failed to allocate compute (?:pp |tg )?buffers",
        CONFIGURATION,
        "Lower the micro-batch or the context.",
    ),
    rule(
        "oom_runtime",
        r"CUDA error: out of memory",
        CONFIGURATION,
        "Lower the context or the micro-batch; memory ran out after the start.",
    ),
    rule(
        "token_range",
        r"vector::_M_range_check: __n \(which is \d{7,}\)",
        ENGINE,
        "The engine took a number that is no token for one; report the log to its maintainers.",
    ),
    rule(
        "oom_hidden",
        r"vector::_M_range_check",
        CONFIGURATION,
        "Free GPU memory or lower the context; drafters fail this way on a nearly full card.",
    ),
)
RUNNING = (
    rule(
        "fattn",
        r"fattn\.cu:\d+: fatal error",
        ENGINE,
        "Choose a KV cache type and head size for which this build holds attention kernels.",
    ),
    rule(
        "ubatch_img",
        r"non-causal attention requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch to the tokens of the largest image.",
    ),
    rule(
        "ubatch_draft",
        r"encoder requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch or bound the drafter's context.",
    ),
    rule(
        "logits",
        r"GGML_ASSERT\(logits != nullptr\) failed",
        ENGINE,
        "Report it to the fork; a second request finds no logits.",
    ),
    rule(
        "pair_mismatch",
        r"GGML_ASSERT\(ggml_can_repeat\(b, a\)\) failed",
        CONFIGURATION,
        "Pair the target with the drafter made for it.",
    ),
    rule(
        "assert",
        r"GGML_ASSERT\(.*\) failed",
        ENGINE,
        "Report the assertion to the fork with the command of this job.",
    ),
    rule(
        "op_missing",
        r"op not implemented: \w+",
        ENGINE,
        "Choose a mode whose operations this backend has.",
    ),
    rule(
        "illegal_mem",
        r"CUDA error: an illegal memory access was encountered",
        ENGINE,
        "Report it to the fork; one good repeat does not disprove it.",
    ),
    rule(
        "cuda_other",
        r"CUDA error: ",
        ENGINE,
        "Read the lines after it for the function and report it to the fork.",
    ),
    rule(
        "v_needs_fa",
        r"V cache quantization requires flash_attn",
        CONFIGURATION,
        "Switch flash attention on or keep the V cache in f16.",
    ),
    rule(
        "template",
        r"chat template parsing error: ",
        CONFIGURATION,
        "Use the completion endpoint or another chat template.",
    ),
    rule(
        "ctx",
        r"request \(\d+ tokens\) exceeds the available context size"
        r"|Context size has been exceeded\.",
        CONFIGURATION,
        "Ask for more context or a shorter prompt and answer.",
    ),
    rule(
        "compute",
        r"(?:Invalid input batch|Compute error)\. +i = ",
        ENGINE,
        "Report it to the fork with the command of this job.",
    ),
)
LOADING = (
    rule(
        "load_drafter",
        r"failed to load draft model, '",
        CONFIGURATION,
        "Read the lines above for what the drafter lacks.",
    ),
    rule(
        "load_mmproj",
        r"failed to load multimodal model, '",
        CONFIGURATION,
        "Read the lines above for what the projector lacks.",
    ),
    rule(
        "load_target",
        r"failed to load model, '",
        CONFIGURATION,
        "Read the lines above for what the model lacks.",
    ),
)
FAILURES = (*ARGUMENTS, *DEVICES, *MODELS, *MEMORY, *RUNNING, *LOADING)
