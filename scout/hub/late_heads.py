"""Whether MTP heads may be told of behind a tokenizer that nobody read past yet; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobs.gguf.facts import ModelFacts, Role
from jobs.gguf.header import Header


def may_hide_heads(header: Header, facts: ModelFacts) -> bool:
    """Whether keys that were not read could say so, whatever the file's name claims."""
    return facts.role is Role.TARGET and not facts.nextn_predict_layers and not header.has_all_keys


def is_built_like_one_without(facts: ModelFacts, beside: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a file of the same repository, as many layers and tensors, surely has no heads.

    So of all quantisations of a model one is read past its tokenizer, the others in 64 KiB.
    """
    mine = {
        "arch": facts.architecture,
        "block_count": facts.block_count,
        "tensor_count": facts.tensor_count,
        "keys_read": True,
        "nextn_predict_layers": None,
    }
    return any(mine == {name: known.get(name) for name in mine} for known in beside)
