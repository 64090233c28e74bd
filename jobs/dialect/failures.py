"""What llama.cpp's error lines mean, whose fault each is and what to do; the order decides."""

from __future__ import annotations

from jobs.dialect import failure_rule as phases
from jobs.dialect.build_failures import BUILDING
from jobs.dialect.failure_rule import CONFIGURATION, ENGINE, INFRASTRUCTURE, rule
from jobs.dialect.model_failures import MODELS

ARGUMENTS = (
    rule(
        "removed_flag",
        r"the argument has been removed\. ",
        phases.ARGUMENTS,
        CONFIGURATION,
        "Use the replacement that the line names.",
    ),
    rule(
        "kv_type",
        r"Unsupported cache type: ",
        phases.ARGUMENTS,
        CONFIGURATION,
        "Choose a KV cache type that this build's --help lists.",
    ),
    rule(
        "spec_type",
        r"unknown speculative (?:type: |decoding type without draft model)",
        phases.ARGUMENTS,
        CONFIGURATION,
        "Choose a speculation that this build's --help lists.",
    ),
    rule(
        "bad_flag",
        r"error: invalid argument: ",
        phases.ARGUMENTS,
        CONFIGURATION,
        "Remove the flag or use the spelling of this build's --help.",
    ),
    rule(
        "bad_value",
        r"error while handling argument ",
        phases.ARGUMENTS,
        CONFIGURATION,
        "Correct the value of the flag that the line names.",
    ),
    rule(
        "port",
        r"couldn't bind HTTP server socket|exiting due to HTTP server error",
        phases.BIND,
        INFRASTRUCTURE,
        "Free the address or the socket folder and retry the job.",
    ),
)
DEVICES = (
    rule(
        "link_stub",
        r"libcuda\.so\.1, needed by .* not found \(try using -rpath",
        phases.BUILD,
        INFRASTRUCTURE,
        "Add the CUDA stubs folder to the linker's search path or build with GGML_CUDA_NO_VMM.",
    ),
    rule(
        "link_vmm",
        r"undefined reference to [`'\"]cuMem\w+",
        phases.BUILD,
        ENGINE,
        "Build with GGML_CUDA_NO_VMM=ON or a revision that links the driver library.",
    ),
    rule(
        "libcuda_rt",
        r"error while loading shared libraries: \S+: cannot open",
        phases.START,
        INFRASTRUCTURE,
        "Install the library that the line names on the rig, or mount it into the cage.",
    ),
    rule(
        "gpu_init",
        r"failed to initialize CUDA: ",
        phases.START,
        INFRASTRUCTURE,
        "Check the driver and the GPU of the rig.",
    ),
    rule(
        "no_sm",
        r"CUDA error: no kernel image is available for execution on the device",
        phases.LOAD,
        CONFIGURATION,
        "Build with the compute capability of the rig's GPU in cuda_arch.",
    ),
)
MEMORY = (
    rule(
        "ring_oom",
        r"dflash gpu ring: cudaMalloc failed for layer \d+",
        phases.LOAD_DRAFTER,
        CONFIGURATION,
        "Lower the context, the cross context or the number of draft slots.",
    ),
    rule(
        "oom_alloc",
        r"allocating [\d.]+ MiB on device \d+: cudaMalloc failed: out of memory",
        phases.LOAD,
        CONFIGURATION,
        "Lower the context, the micro-batch or the number of layers on the GPU.",
    ),
    rule(
        "oom_kv",
        r"failed to allocate buffer for (?:kv|rs) cache",
        phases.LOAD,
        CONFIGURATION,
        "Lower the context or choose a smaller KV cache type.",
    ),
    rule(
        "oom_compute",
        r"failed to allocate compute (?:pp |tg )?buffers",
        phases.LOAD,
        CONFIGURATION,
        "Lower the micro-batch or the context.",
    ),
    rule(
        "oom_runtime",
        r"CUDA error: out of memory",
        phases.REQUEST,
        CONFIGURATION,
        "Lower the context or the micro-batch; memory ran out after the start.",
    ),
    rule(
        "token_range",
        r"vector::_M_range_check: __n \(which is \d{7,}\)",
        phases.REQUEST,
        ENGINE,
        "The engine took a number that is no token for one; report the log to its maintainers.",
    ),
    rule(
        "oom_hidden",
        r"vector::_M_range_check",
        phases.LOAD_DRAFTER,
        CONFIGURATION,
        "Free GPU memory or lower the context; drafters fail this way on a nearly full card.",
    ),
)
RUNNING = (
    rule(
        "fattn",
        r"fattn\.cu:\d+: fatal error",
        phases.REQUEST,
        ENGINE,
        "Choose a KV cache type and head size for which this build holds attention kernels.",
    ),
    rule(
        "ubatch_img",
        r"non-causal attention requires n_ubatch >= n_tokens",
        phases.REQUEST,
        CONFIGURATION,
        "Raise the micro-batch to the tokens of the largest image.",
    ),
    rule(
        "ubatch_draft",
        r"encoder requires n_ubatch >= n_tokens",
        phases.REQUEST,
        CONFIGURATION,
        "Raise the micro-batch or bound the drafter's context.",
    ),
    rule(
        "logits",
        r"GGML_ASSERT\(logits != nullptr\) failed",
        phases.REQUEST,
        ENGINE,
        "Report it to the fork; a second request finds no logits.",
    ),
    rule(
        "pair_mismatch",
        r"GGML_ASSERT\(ggml_can_repeat\(b, a\)\) failed",
        phases.REQUEST,
        CONFIGURATION,
        "Pair the target with the drafter made for it.",
    ),
    rule(
        "assert",
        r"GGML_ASSERT\(.*\) failed",
        phases.REQUEST,
        ENGINE,
        "Report the assertion to the fork with the command of this job.",
    ),
    rule(
        "op_missing",
        r"op not implemented: \w+",
        phases.REQUEST,
        ENGINE,
        "Choose a mode whose operations this backend has.",
    ),
    rule(
        "illegal_mem",
        r"CUDA error: an illegal memory access was encountered",
        phases.REQUEST,
        ENGINE,
        "Report it to the fork; one good repeat does not disprove it.",
    ),
    rule(
        "cuda_other",
        r"CUDA error: ",
        phases.REQUEST,
        ENGINE,
        "Read the lines after it for the function and report it to the fork.",
    ),
    rule(
        "v_needs_fa",
        r"V cache quantization requires flash_attn",
        phases.LOAD,
        CONFIGURATION,
        "Switch flash attention on or keep the V cache in f16.",
    ),
    rule(
        "template",
        r"chat template parsing error: ",
        phases.LOAD,
        CONFIGURATION,
        "Use the completion endpoint or another chat template.",
    ),
    rule(
        "ctx",
        r"request \(\d+ tokens\) exceeds the available context size"
        r"|Context size has been exceeded\.",
        phases.REQUEST,
        CONFIGURATION,
        "Ask for more context or a shorter prompt and answer.",
    ),
    rule(
        "compute",
        r"(?:Invalid input batch|Compute error)\. +i = ",
        phases.REQUEST,
        ENGINE,
        "Report it to the fork with the command of this job.",
    ),
)
LOADING = (
    rule(
        "load_drafter",
        r"failed to load draft model, '",
        phases.LOAD_DRAFTER,
        CONFIGURATION,
        "Read the lines above for what the drafter lacks.",
    ),
    rule(
        "load_mmproj",
        r"failed to load multimodal model, '",
        phases.LOAD_PROJECTOR,
        CONFIGURATION,
        "Read the lines above for what the projector lacks.",
    ),
    rule(
        "load_target",
        r"failed to load model, '",
        phases.LOAD_TARGET,
        CONFIGURATION,
        "Read the lines above for what the model lacks.",
    ),
)
FAILURES = (*ARGUMENTS, *DEVICES, *MODELS, *MEMORY, *RUNNING, *BUILDING, *LOADING)
