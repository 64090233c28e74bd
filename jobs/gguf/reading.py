"""Works out from a header what the model is; pure, and what a file does not say stays unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobs.gguf.doubts import doubts
from jobs.gguf.facts import (
    BaseModel,
    Clip,
    DFlash,
    Dialect,
    ModelFacts,
    Places,
    Role,
    Split,
    Ssm,
    TypeShare,
)
from jobs.gguf.file_names import quant_label, shard_of
from jobs.gguf.header import Header, Tensor
from jobs.gguf.keys import Keys
from jobs.gguf.layout import alignment_of
from jobs.gguf.limits import MOST_LAYERS, MOST_PARTS
from jobs.gguf.tensor_types import file_type_name, type_name

MOST_BASE_MODELS = 16

_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.*)", re.ASCII)


def facts_of(header: Header, *, file_name: str = "") -> ModelFacts:
    """Everything the header says, and what the file's name adds."""
    keys = Keys(header)
    own = keys.own
    shard, split = shard_of(file_name), _split(keys)
    file_type = keys.count("general.file_type")
    dialect = _dialect(keys, header.tensors)
    role = _role(keys, header, dialect)
    return ModelFacts(
        role=role,
        dialect=dialect,
        architecture=keys.architecture,
        general_type=keys.text("general.type"),
        name=keys.text("general.name"),
        basename=keys.text("general.basename"),
        size_label=keys.text("general.size_label"),
        base_models=_base_models(keys),
        file_type=file_type,
        file_type_name="" if file_type is None else file_type_name(file_type),
        name_label=quant_label(file_name),
        tensor_types=None if header.tensors is None else _shares(header.tensors),
        block_count=keys.count(own("block_count")),
        context_length=keys.count(own("context_length")),
        embedding_length=keys.count(own("embedding_length")),
        feed_forward_length=keys.per_layer(own("feed_forward_length")),
        head_count=keys.per_layer(own("attention.head_count")),
        head_count_kv=keys.per_layer(own("attention.head_count_kv")),
        key_length=keys.count(own("attention.key_length")),
        value_length=keys.count(own("attention.value_length")),
        sliding_window=keys.count(own("attention.sliding_window")),
        sliding_window_pattern=keys.per_layer(own("attention.sliding_window_pattern")),
        full_attention_interval=keys.count(own("full_attention_interval")),
        nextn_predict_layers=keys.count(own("nextn_predict_layers")),
        expert_count=keys.count(own("expert_count")),
        expert_used_count=keys.count(own("expert_used_count")),
        ssm=_ssm(keys),
        dflash=_dflash(keys),
        clip=_clip(keys) if dialect is Dialect.CLIP else None,
        vocabulary_size=_vocabulary(keys, header.tensors),
        tokenizer_model=keys.text("tokenizer.ggml.model"),
        tokenizer_pre=keys.text("tokenizer.ggml.pre"),
        tensor_count=header.tensor_count,
        places=None if header.tensors is None else _places(keys, header.tensors),
        data_bytes=header.data_bytes,
        size_bytes=header.size_bytes,
        shard=shard,
        split=split,
        notes=tuple(_notes(keys, header, file_name)),
    )


def _dialect(keys: Keys, tensors: Sequence[Tensor] | None) -> Dialect:
    match keys.architecture:
        case "clip":
            return Dialect.CLIP
        case "dflash-draft":
            return Dialect.DFLASH_DRAFT
        case "dspark":
            return Dialect.DSPARK
        case "eagle3":
            return Dialect.EAGLE3
        case "gemma4-assistant":
            return Dialect.GEMMA4_ASSISTANT
        case "gemma4_assistant":
            return Dialect.GEMMA4_ASSISTANT_OLD
        case "dflash":
            if keys.has_any("dflash.dflash.") or not keys.has("dflash.target_layers"):
                return Dialect.DFLASH_STALE
            if any("selector_" in each.name for each in tensors or ()):
                return Dialect.DFLASH2
            return Dialect.DFLASH
    return Dialect.PLAIN


def _role(keys: Keys, header: Header, dialect: Dialect) -> Role:
    if keys.text("general.type") == "imatrix" or keys.has_any("imatrix."):
        return Role.IMATRIX
    if not keys.architecture or keys.text("general.type") in ("adapter", "vocab"):
        return Role.OTHER
    if dialect is Dialect.CLIP:
        return Role.MMPROJ
    if dialect in (Dialect.GEMMA4_ASSISTANT, Dialect.GEMMA4_ASSISTANT_OLD):
        return Role.MTP_HEAD
    if dialect is not Dialect.PLAIN:
        return Role.DRAFTER
    if keys.architecture == "controlvector" or keys.count(keys.own("block_count")) is None:
        return Role.OTHER
    return Role.MTP_HEAD if _is_only_heads(keys, header) else Role.TARGET


def _is_only_heads(keys: Keys, header: Header) -> bool:
    if not keys.count(keys.own("nextn_predict_layers")) or (keys.count("split.count") or 1) > 1:
        return False
    if header.tensors is not None:
        return all(each.name != "blk.0.attn_norm.weight" for each in header.tensors)
    return header.tensor_count < (_layers(keys) or 0)


def _layers(keys: Keys) -> int | None:
    """How many layers there are, where the number can be meant."""
    said = keys.count(keys.own("block_count"))
    return said if said is not None and said <= MOST_LAYERS else None


def _base_models(keys: Keys) -> tuple[BaseModel, ...]:
    count = min(keys.count("general.base_model.count") or 0, MOST_BASE_MODELS)
    place = "general.base_model.{}.{}".format
    return tuple(
        BaseModel(*(keys.text(place(n, word)) for word in ("name", "organization", "repo_url")))
        for n in range(count)
    )


def _split(keys: Keys) -> Split | None:
    split = Split(*(keys.count(f"split.{word}") for word in ("no", "count", "tensors.count")))
    return None if split == Split(None, None, None) else split


def _ssm(keys: Keys) -> Ssm | None:
    if not keys.has_any(keys.own("ssm.")):
        return None
    words = ("conv_kernel", "state_size", "group_count", "time_step_rank", "inner_size")
    return Ssm(*(keys.count(keys.own(f"ssm.{word}")) for word in words))


def _dflash(keys: Keys) -> DFlash | None:
    if not keys.architecture.startswith(("dflash", "dspark")):
        return None
    places = (keys.own(""), keys.own("dflash."))
    names = [f"{place}{word}" for word in ("target_layers", "target_layer_ids") for place in places]
    layers = next((name for name in names if keys.has(name)), "")
    return DFlash(
        block_size=keys.count(*(f"{place}block_size" for place in places)),
        mask_token_id=keys.count(
            *(f"{place}mask_token_id" for place in places), "tokenizer.ggml.mask_token_id"
        ),
        target_layers=keys.counts(layers),
        target_layers_key=layers,
        n_target_features=keys.count(*(f"{place}n_target_features" for place in places)),
    )


def _clip(keys: Keys) -> Clip:
    kinds = ("clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type")
    dims = ("clip.vision.projection_dim", "clip.audio.projection_dim", "clip.projection_dim")
    return Clip(
        projector_types=tuple(dict.fromkeys(text for kind in kinds if (text := keys.text(kind)))),
        projection_dim=keys.count(*dims),
        has_vision_encoder=keys.truth("clip.has_vision_encoder"),
        has_audio_encoder=keys.truth("clip.has_audio_encoder"),
    )


def _vocabulary(keys: Keys, tensors: Sequence[Tensor] | None) -> int | None:
    said = keys.length("tokenizer.ggml.tokens")
    if said is None:
        said = keys.count(keys.own("vocab_size"))
    if said is not None:
        return said
    rows = [each.dims[-1] for each in tensors or () if each.name == "token_embd.weight"]
    return rows[0] if rows else None


def _shares(tensors: Sequence[Tensor]) -> tuple[TypeShare, ...]:
    counted: dict[int, list[int | None]] = {}
    for tensor in tensors:
        counted.setdefault(tensor.type_id, []).append(tensor.size_bytes)
    shares = []
    for type_id, sizes in counted.items():
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        shares.append(TypeShare(type_id, type_name(type_id), len(sizes), total))
    return tuple(sorted(shares, key=lambda share: (-(share.size_bytes or 0), share.type_id)))


def _places(keys: Keys, tensors: Sequence[Tensor]) -> Places:
    heads, layers = keys.count(keys.own("nextn_predict_layers")) or 0, _layers(keys)
    first_head = layers - heads if heads and layers and heads <= layers else None
    sums = dict.fromkeys(("token_embd", "output", "blocks", "nextn", "other"), 0)
    unmeasured = 0
    for tensor in tensors:
        if tensor.size_bytes is None:
            unmeasured += 1
        else:
            sums[_place(tensor.name, first_head)] += tensor.size_bytes
    return Places(**sums, unmeasured=unmeasured)


def _place(name: str, first_head: int | None) -> str:
    if found := _BLOCK.fullmatch(name):
        is_head = first_head is not None and int(found[1]) >= first_head
        return "nextn" if is_head or found[2].startswith("nextn.") else "blocks"
    word = name.partition(".")[0]
    return word if word in ("token_embd", "output") else "other"


def _notes(keys: Keys, header: Header, file_name: str) -> Sequence[str]:
    notes = []
    if not header.complete:
        notes.append(
            "read up to the tokenizer only: tensor types and sizes by place are not known, "
            "and the tensor count is a hint"
        )
        if not header.has_all_keys and not keys.has(keys.own("nextn_predict_layers")):
            notes.append("whether it has MTP heads inside was not read")
    if keys.architecture == "dflash" and _dialect(keys, None) is Dialect.DFLASH_STALE:
        notes.append(
            "written by a stale converter: loaders demand dflash.target_layers, convert it anew"
        )
    if keys.count(keys.own("nextn_predict_layers")):
        notes.append("holds MTP heads: an engine that creates no nextn tensors refuses it")
    shard = shard_of(file_name)
    if shard and not shard.is_possible:
        notes.append(f"its name says part {shard.number} of {shard.count}, which cannot be")
    inside = keys.count("split.no"), keys.count("split.count")
    if shard and None not in inside and inside != (shard.number - 1, shard.count):
        notes.append(
            f"its name says part {shard.number} of {shard.count}, the file itself says part "
            f"{(inside[0] or 0) + 1:,} of {inside[1]:,}"
        )
    parts = keys.count("split.count") or (shard.count if shard else 1)
    if 1 < parts <= MOST_PARTS:
        notes.append(f"one of {parts:,} parts: sizes and tensors are those of this file alone")
        if not keys.architecture:
            notes.append("the facts of the model are in the first part")
    trailing = header.trailing_bytes
    if trailing is not None and trailing >= alignment_of(header.keys):
        notes.append(f"{trailing:,} bytes follow the last tensor")
    if header.tensors and any(each.size_bytes is None for each in header.tensors):
        notes.append("some tensors have a type that upstream does not know: their size is unknown")
    return [*notes, *doubts(header, keys.architecture)]
