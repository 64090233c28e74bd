"""What llama.cpp's error lines mean, whose fault each is and what to do; the order decides."""

from __future__ import annotations

from jobs.dialect import failure_rule as at
from jobs.dialect.failure_rule import CONFIGURATION, ENGINE, INFRASTRUCTURE, rule
from jobs.dialect.model_failures import MODELS

ARGUMENTS = (
    rule(
        "removed_flag",
        r"the argument has been removed\. ",
        CONFIGURATION,
        "Use the replacement that the line names.",
        phases=(at.ARGUMENTS,),
    ),
    rule(
        "kv_type",
        r"Unsupported cache type: ",
        CONFIGURATION,
        "Choose a KV cache type that this build's --help lists.",
        phases=(at.ARGUMENTS,),
    ),
    rule(
        "spec_type",
        r"unknown speculative (?:type: |decoding type without draft model)",
        CONFIGURATION,
        "Choose a speculation that this build's --help lists.",
        phases=(at.ARGUMENTS,),
    ),
    rule(
        "bad_flag",
        r"error: invalid argument: ",
        CONFIGURATION,
        "Remove the flag or use the spelling of this build's --help.",
        phases=(at.ARGUMENTS,),
    ),
    rule(
        "bad_value",
        r"error while handling argument ",
        CONFIGURATION,
        "Correct the value of the flag that the line names.",
        phases=(at.ARGUMENTS,),
    ),
    rule(
        "port",
        r"couldn't bind HTTP server socket|exiting due to HTTP server error",
        INFRASTRUCTURE,
        "Free the address or the socket folder and retry the job.",
        phases=(at.BIND,),
    ),
)
DEVICES = (
    rule(
        "libcuda_rt",
        r"error while loading shared libraries: \S+: cannot open",
        INFRASTRUCTURE,
        "Install the library that the line names on the rig, or mount it into the cage.",
        phases=(at.START,),
    ),
    rule(
        "gpu_init",
        r"failed to initialize CUDA: ",
        INFRASTRUCTURE,
        "Check the driver and the GPU of the rig.",
        phases=(at.START,),
    ),
    rule(
        "no_sm",
        r"CUDA error: no kernel image is available for execution on the device",
        CONFIGURATION,
        "Build with the compute capability of the rig's GPU in cuda_arch.",
        phases=(at.LOAD,),
    ),
)
MEMORY = (
    rule(
        "ring_oom",
        r"dflash gpu ring: cudaMalloc failed for layer \d+",
        CONFIGURATION,
        "Lower the context, the cross context or the number of draft slots.",
        phases=(at.LOAD_DRAFTER,),
    ),
    rule(
        "oom_alloc",
        r"allocating [\d.]+ MiB on device \d+: cudaMalloc failed: out of memory",
        CONFIGURATION,
        "Lower the context, the micro-batch or the number of layers on the GPU.",
        phases=(at.LOAD,),
    ),
    rule(
        "oom_kv",
        r"failed to allocate buffer for (?:kv|rs) cache",
        CONFIGURATION,
        "Lower the context or choose a smaller KV cache type.",
        phases=(at.LOAD,),
    ),
    rule(
        "oom_compute",
        r"failed to allocate compute (?:pp |tg )?buffers",
        CONFIGURATION,
        "Lower the micro-batch or the context.",
        phases=(at.LOAD,),
    ),
    rule(
        "oom_runtime",
        r"CUDA error: out of memory",
        CONFIGURATION,
        "Lower the context or the micro-batch; memory ran out after the start.",
        phases=(at.REQUEST,),
    ),
    rule(
        "token_range",
        r"vector::_M_range_check: __n \(which is \d{7,}\)",
        ENGINE,
        "The engine took a number that is no token for one; report the log to its maintainers.",
        phases=(at.REQUEST,),
    ),
    rule(
        "oom_hidden",
        r"vector::_M_range_check",
        CONFIGURATION,
        "Free GPU memory or lower the context; drafters fail this way on a nearly full card.",
        phases=(at.LOAD_DRAFTER,),
    ),
)
RUNNING = (
    rule(
        "fattn",
        r"fattn\.cu:\d+: fatal error",
        ENGINE,
        "Choose a KV cache type and head size for which this build holds attention kernels.",
        phases=(at.REQUEST,),
    ),
    rule(
        "ubatch_img",
        r"non-causal attention requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch to the tokens of the largest image.",
        phases=(at.REQUEST,),
    ),
    rule(
        "ubatch_draft",
        r"encoder requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch or bound the drafter's context.",
        phases=(at.REQUEST,),
    ),
    rule(
        "logits",
        r"GGML_ASSERT\(logits != nullptr\) failed",
        ENGINE,
        "Report it to the fork; a second request finds no logits.",
        phases=(at.REQUEST,),
    ),
    rule(
        "pair_mismatch",
        r"GGML_ASSERT\(ggml_can_repeat\(b, a\)\) failed",
        CONFIGURATION,
        "Pair the target with the drafter made for it.",
        phases=(at.REQUEST,),
    ),
    rule(
        "assert",
        r"GGML_ASSERT\(.*\) failed",
        ENGINE,
        "Report the assertion to the fork with the command of this job.",
        phases=(at.REQUEST,),
    ),
    rule(
        "op_missing",
        r"op not implemented: \w+",
        ENGINE,
        "Choose a mode whose operations this backend has.",
        phases=(at.REQUEST,),
    ),
    rule(
        "illegal_mem",
        r"CUDA error: an illegal memory access was encountered",
        ENGINE,
        "Report it to the fork; one good repeat does not disprove it.",
        phases=(at.REQUEST,),
    ),
    rule(
        "cuda_other",
        r"CUDA error: ",
        ENGINE,
        "Read the lines after it for the function and report it to the fork.",
        phases=(at.REQUEST,),
    ),
    rule(
        "v_needs_fa",
        r"V cache quantization requires flash_attn",
        CONFIGURATION,
        "Switch flash attention on or keep the V cache in f16.",
        phases=(at.LOAD,),
    ),
    rule(
        "template",
        r"chat template parsing error: ",
        CONFIGURATION,
        "Use the completion endpoint or another chat template.",
        phases=(at.LOAD,),
    ),
    rule(
        "ctx",
        r"request \(\d+ tokens\) exceeds the available context size"
        r"|Context size has been exceeded\.",
        CONFIGURATION,
        "Ask for more context or a shorter prompt and answer.",
        phases=(at.REQUEST,),
    ),
    rule(
        "compute",
        r"(?:Invalid input batch|Compute error)\. +i = ",
        ENGINE,
        "Report it to the fork with the command of this job.",
        phases=(at.REQUEST,),
    ),
)
LOADING = (
    rule(
        "load_drafter",
        r"failed to load draft model, '",
        CONFIGURATION,
        "Read the lines above for what the drafter lacks.",
        phases=(at.LOAD_DRAFTER,),
    ),
    rule(
        "load_mmproj",
        r"failed to load multimodal model, '",
        CONFIGURATION,
        "Read the lines above for what the projector lacks.",
        phases=(at.LOAD_PROJECTOR,),
    ),
    rule(
        "load_target",
        r"failed to load model, '",
        CONFIGURATION,
        "Read the lines above for what the model lacks.",
        phases=(at.LOAD_TARGET,),
    ),
)
FAILURES = (*ARGUMENTS, *DEVICES, *MODELS, *MEMORY, *RUNNING, *LOADING)
