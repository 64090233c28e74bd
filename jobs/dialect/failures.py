"""What llama.cpp's error lines mean, whose fault each is and what to do; the order decides."""

from __future__ import annotations

import re

from jobs.model import Blame, FailureRule

ENGINE = Blame.ENGINE
CONFIGURATION = Blame.CONFIGURATION
INFRASTRUCTURE = Blame.INFRASTRUCTURE


def _rule(name: str, pattern: str, blame: Blame, advice: str) -> FailureRule:
    return FailureRule(name, re.compile(pattern), blame, advice)


ARGUMENTS = (
    _rule(
        "removed_flag",
        r"the argument has been removed\. ",
        CONFIGURATION,
        "Use the replacement that the line names.",
    ),
    _rule(
        "kv_type",
        r"Unsupported cache type: ",
        CONFIGURATION,
        "Choose a KV cache type that this build's --help lists.",
    ),
    _rule(
        "spec_type",
        r"unknown speculative (?:type: |decoding type without draft model)",
        CONFIGURATION,
        "Choose a speculation that this build's --help lists.",
    ),
    _rule(
        "bad_flag",
        r"error: invalid argument: ",
        CONFIGURATION,
        "Remove the flag or use the spelling of this build's --help.",
    ),
    _rule(
        "bad_value",
        r"error while handling argument ",
        CONFIGURATION,
        "Correct the value of the flag that the line names.",
    ),
    _rule(
        "port",
        r"couldn't bind HTTP server socket|exiting due to HTTP server error",
        INFRASTRUCTURE,
        "Free the address or the socket folder and retry the job.",
    ),
)
DEVICES = (
    _rule(
        "link_stub",
        r"libcuda\.so\.1, needed by .* not found \(try using -rpath",
        INFRASTRUCTURE,
        "Add the CUDA stubs folder to the linker's search path or build with GGML_CUDA_NO_VMM.",
    ),
    _rule(
        "link_vmm",
        r"undefined reference to [`'\"]cuMem\w+",
        ENGINE,
        "Build with GGML_CUDA_NO_VMM=ON or a revision that links the driver library.",
    ),
    _rule(
        "libcuda_rt",
        r"error while loading shared libraries: \S+: cannot open",
        INFRASTRUCTURE,
        "Install the library that the line names on the rig, or mount it into the cage.",
    ),
    _rule(
        "gpu_init",
        r"failed to initialize CUDA: ",
        INFRASTRUCTURE,
        "Check the driver and the GPU of the rig.",
    ),
    _rule(
        "no_sm",
        r"CUDA error: no kernel image is available for execution on the device",
        CONFIGURATION,
        "Build with the compute capability of the rig's GPU in cuda_arch.",
    ),
)
MODELS = (
    _rule(
        "arch_unknown",
        r"unknown model architecture: '",
        CONFIGURATION,
        "Use a revision that knows this architecture, or a file converted for this one.",
    ),
    _rule(
        "tensors",
        r"wrong number of tensors; expected \d+, got \d+",
        CONFIGURATION,
        "Use a model file made for this engine; the counts tell which tensors it ignores.",
    ),
    _rule(
        "tensor_missing",
        r"missing tensor '",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    _rule(
        "tensor_shape",
        r"tensor '[^']+' has wrong shape; expected ",
        CONFIGURATION,
        "Use a model file converted for this engine's format.",
    ),
    _rule(
        "ggml_type",
        r"tensor '[^']+' has invalid ggml type \d+",
        CONFIGURATION,
        "Use a quantisation that this engine knows.",
    ),
    _rule(
        "drafter_meta",
        r"DFlash model requires '[^']+' in GGUF metadata",
        CONFIGURATION,
        "Convert the drafter to the format of this engine.",
    ),
    _rule(
        "hparam",
        r"key not found in model: ",
        CONFIGURATION,
        "Use a model file that holds this key, or the revision it was made for.",
    ),
    _rule(
        "truncated",
        r"data is not within the file bounds|invalid magic characters",
        INFRASTRUCTURE,
        "Remove the weight file from the store and fetch it again.",
    ),
    _rule(
        "mmproj_mismatch",
        r"mismatch between text model \(n_embd = |unknown projector type",
        CONFIGURATION,
        "Pair the model with the projector made for it.",
    ),
    _rule(
        "mmproj_missing",
        r"image input is not supported - hint: .*mmproj",
        CONFIGURATION,
        "Give the stack a projector or ask for text only.",
    ),
)
MEMORY = (
    _rule(
        "ring_oom",
        r"dflash gpu ring: cudaMalloc failed for layer \d+",
        CONFIGURATION,
        "Lower the context, the cross context or the number of draft slots.",
    ),
    _rule(
        "oom_alloc",
        r"allocating [\d.]+ MiB on device \d+: cudaMalloc failed: out of memory",
        CONFIGURATION,
        "Lower the context, the micro-batch or the number of layers on the GPU.",
    ),
    _rule(
        "oom_kv",
        r"failed to allocate buffer for (?:kv|rs) cache",
        CONFIGURATION,
        "Lower the context or choose a smaller KV cache type.",
    ),
    _rule(
        "oom_compute",
        r"failed to allocate compute (?:pp |tg )?buffers",
        CONFIGURATION,
        "Lower the micro-batch or the context.",
    ),
    _rule(
        "oom_runtime",
        r"CUDA error: out of memory",
        CONFIGURATION,
        "Lower the context or the micro-batch; memory ran out after the start.",
    ),
    _rule(
        "oom_hidden",
        r"vector::_M_range_check",
        CONFIGURATION,
        "Free GPU memory or lower the context; drafters fail this way on a nearly full card.",
    ),
)
RUNNING = (
    _rule(
        "fattn",
        r"fattn\.cu:\d+: fatal error",
        ENGINE,
        "Choose a KV cache type and head size for which this build holds attention kernels.",
    ),
    _rule(
        "ubatch_img",
        r"non-causal attention requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch to the tokens of the largest image.",
    ),
    _rule(
        "ubatch_draft",
        r"encoder requires n_ubatch >= n_tokens",
        CONFIGURATION,
        "Raise the micro-batch or bound the drafter's context.",
    ),
    _rule(
        "logits",
        r"GGML_ASSERT\(logits != nullptr\) failed",
        ENGINE,
        "Report it to the fork; a second request finds no logits.",
    ),
    _rule(
        "pair_mismatch",
        r"GGML_ASSERT\(ggml_can_repeat\(b, a\)\) failed",
        CONFIGURATION,
        "Pair the target with the drafter made for it.",
    ),
    _rule(
        "assert",
        r"GGML_ASSERT\(.*\) failed",
        ENGINE,
        "Report the assertion to the fork with the command of this job.",
    ),
    _rule(
        "op_missing",
        r"op not implemented: \w+",
        ENGINE,
        "Choose a mode whose operations this backend has.",
    ),
    _rule(
        "illegal_mem",
        r"CUDA error: an illegal memory access was encountered",
        ENGINE,
        "Report it to the fork; one good repeat does not disprove it.",
    ),
    _rule(
        "cuda_other",
        r"CUDA error: ",
        ENGINE,
        "Read the lines after it for the function and report it to the fork.",
    ),
    _rule(
        "v_needs_fa",
        r"V cache quantization requires flash_attn",
        CONFIGURATION,
        "Switch flash attention on or keep the V cache in f16.",
    ),
    _rule(
        "template",
        r"chat template parsing error: ",
        CONFIGURATION,
        "Use the completion endpoint or another chat template.",
    ),
    _rule(
        "ctx",
        r"request \(\d+ tokens\) exceeds the available context size"
        r"|Context size has been exceeded\.",
        CONFIGURATION,
        "Ask for more context or a shorter prompt and answer.",
    ),
    _rule(
        "compute",
        r"(?:Invalid input batch|Compute error)\. +i = ",
        ENGINE,
        "Report it to the fork with the command of this job.",
    ),
)
BUILDING = (
    _rule(
        "ui_assets",
        r"missing required asset\(s\): ",
        CONFIGURATION,
        "Build with the web UI switched off.",
    ),
    _rule(
        "nvcc_arch",
        r"Unsupported gpu architecture 'compute_\w+'",
        INFRASTRUCTURE,
        "Build with a CUDA toolkit that knows this architecture.",
    ),
    _rule(
        "build_oom",
        r"Killed signal terminated program"
        r"|\bKilled\b.*(?:cc1plus|cicc|ptxas|nvcc)"
        r"|(?:cc1plus|cicc|ptxas|nvcc)\b.*\b[Kk]illed\b"
        r"|^Killed$",
        INFRASTRUCTURE,
        "Give the build more memory or fewer parallel jobs.",
    ),
)
LOADING = (
    _rule(
        "load_drafter",
        r"failed to load draft model, '",
        CONFIGURATION,
        "Read the lines above for what the drafter lacks.",
    ),
    _rule(
        "load_mmproj",
        r"failed to load multimodal model, '",
        CONFIGURATION,
        "Read the lines above for what the projector lacks.",
    ),
    _rule(
        "load_target",
        r"failed to load model, '",
        CONFIGURATION,
        "Read the lines above for what the model lacks.",
    ),
)
FAILURES = (*ARGUMENTS, *DEVICES, *MODELS, *MEMORY, *RUNNING, *BUILDING, *LOADING)
