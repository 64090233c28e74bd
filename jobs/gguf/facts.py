"""What a header tells about a model: values only, each None where the file does not say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobs.gguf.file_names import Shard


class Role(StrEnum):
    """What a weight file is loaded as."""

    TARGET = "target"
    DRAFTER = "drafter"
    MMPROJ = "mmproj"
    MTP_HEAD = "mtp_head"
    IMATRIX = "imatrix"
    OTHER = "other"


class Dialect(StrEnum):
    """Which loader a file was written for."""

    PLAIN = "plain"
    DFLASH_DRAFT = "dflash-draft"
    DFLASH = "dflash"
    DFLASH_STALE = "dflash-stale"
    DFLASH2 = "dflash2"
    DSPARK = "dspark"
    EAGLE3 = "eagle3"
    GEMMA4_ASSISTANT = "gemma4-assistant"
    GEMMA4_ASSISTANT_OLD = "gemma4_assistant"
    CLIP = "clip"


PerLayer = int | tuple[int, ...] | None
"""One value for all layers, one for each, or not said."""


@dataclass(frozen=True)
class BaseModel:
    """A model this one was made from, as the file names it."""

    name: str
    organization: str
    repo_url: str


@dataclass(frozen=True)
class Ssm:
    """The recurrent layers' sizes."""

    conv_kernel: int | None
    state_size: int | None
    group_count: int | None
    time_step_rank: int | None
    inner_size: int | None


@dataclass(frozen=True)
class DFlash:
    """What a block drafter expects of its target."""

    block_size: int | None
    mask_token_id: int | None
    target_layers: tuple[int, ...] | None
    target_layers_key: str
    n_target_features: int | None


@dataclass(frozen=True)
class Clip:
    """What a projector offers."""

    projector_types: tuple[str, ...]
    projection_dim: int | None
    has_vision_encoder: bool | None
    has_audio_encoder: bool | None


@dataclass(frozen=True)
class TypeShare:
    """How much of a file one tensor type has; bytes are None where the type is not known."""

    type_id: int
    type_name: str
    tensors: int
    size_bytes: int | None


@dataclass(frozen=True)
class Places:
    """Tensor bytes by where they belong; `unmeasured` tensors of unknown types are in none."""

    token_embd: int
    output: int
    blocks: int
    nextn: int
    other: int
    unmeasured: int

    @property
    def total(self) -> int:
        """All bytes of the tensors whose type is known."""
        return self.token_embd + self.output + self.blocks + self.nextn + self.other


@dataclass(frozen=True)
class Split:
    """What the file itself says about its set; `number` counts from 0."""

    number: int | None
    count: int | None
    tensors: int | None


@dataclass(frozen=True)
class ModelFacts:
    """One weight file as its header and its name describe it."""

    role: Role
    dialect: Dialect
    architecture: str
    general_type: str
    name: str
    basename: str
    size_label: str
    base_models: tuple[BaseModel, ...]
    file_type: int | None
    file_type_name: str
    name_label: str
    tensor_types: tuple[TypeShare, ...] | None
    block_count: int | None
    context_length: int | None
    embedding_length: int | None
    feed_forward_length: PerLayer
    head_count: PerLayer
    head_count_kv: PerLayer
    key_length: int | None
    value_length: int | None
    sliding_window: int | None
    sliding_window_pattern: PerLayer
    full_attention_interval: int | None
    nextn_predict_layers: int | None
    expert_count: int | None
    expert_used_count: int | None
    ssm: Ssm | None
    dflash: DFlash | None
    clip: Clip | None
    vocabulary_size: int | None
    tokenizer_model: str
    tokenizer_pre: str
    tensor_count: int
    places: Places | None
    data_bytes: int | None
    size_bytes: int | None
    shard: Shard | None
    split: Split | None
    notes: tuple[str, ...]

    @property
    def quantisation(self) -> str:
        """The finest word there is: of the name, of the file, or nothing."""
        return self.name_label or self.file_type_name
