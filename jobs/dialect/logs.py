"""Facts and silent degradations that llama.cpp's own log lines admit; absent means not said."""

from __future__ import annotations

import re

from jobs.model import BootFacts

OFFLOAD = re.compile(r"offloaded (\d{1,6})/(\d{1,6}) layers to GPU")
KV_SIZE = re.compile(r"llama_kv_cache[\w ]*: +size = +(\d{1,9}(?:\.\d{1,4})?) MiB")
GRAPH_SPLITS = re.compile(r"graph splits = (\d{1,9})")
WARNINGS = (
    (
        "spec_off_multimodal",
        re.compile(r"speculative decoding is not supported by multimodal, it will be disabled"),
    ),
    ("spec_off_context", re.compile(r"speculative decoding not supported by this context")),
    ("kv_upgraded", re.compile(r"auto-asymmetric: GQA ratio .* upgrading K from ")),
    ("kv_cpu_fallback", re.compile(r"turbo KV cache falling back to q8_0 for CPU-bound layers")),
    ("batch_capped", re.compile(r"dflash: capped -b/-ub to ")),
    ("draft_context_capped", re.compile(r"dflash: setting -cd to ")),
    (
        "spec_auto_enabled",
        re.compile(r"draft model is specified but .* not explicitly enabled - enabling it"),
    ),
    (
        "dflash_slow_path",
        re.compile(r"dflash: GPU cross ring unavailable|drafter K/V projection cache unavailable"),
    ),
    ("fit_failed", re.compile(r"failed to fit params to free device memory")),
    ("broken_logits", re.compile(r"invalid reduced-logits token")),
    ("no_usable_gpu", re.compile(r"warning: no usable GPU found")),
)


def read_log(text: str) -> BootFacts:
    """Facts of one boot; the caches of a model with several are summed."""
    offload = OFFLOAD.search(text)
    sizes = [float(size) for size in KV_SIZE.findall(text)]
    splits = GRAPH_SPLITS.search(text)
    return BootFacts(
        offloaded_layers=int(offload[1]) if offload else None,
        total_layers=int(offload[2]) if offload else None,
        kv_mib=sum(sizes) if sizes else None,
        graph_splits=int(splits[1]) if splits else None,
        warnings=tuple(name for name, pattern in WARNINGS if pattern.search(text)),
    )
