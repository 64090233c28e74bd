"""What a model file's header says about memory: layers, heads, widths, bytes; reads no file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayerKind(StrEnum):
    """What a layer keeps of the tokens before."""

    FULL = "full"
    WINDOW = "window"
    RECURRENT = "recurrent"
    BOTH = "both"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Layer:
    """One layer; `extra` for the MTP layers at the end of a file."""

    kind: LayerKind
    heads_kv: int
    key_length: int
    value_length: int
    extra: bool = False


@dataclass(frozen=True)
class Recurrent:
    """Sizes of a recurrent layer's state."""

    conv_kernel: int
    state_size: int
    group_count: int
    inner_size: int
    time_step_rank: int = 0

    @property
    def channels(self) -> int:
        """Width of its convolution."""
        return self.inner_size + 2 * self.group_count * self.state_size

    @property
    def state_bytes(self) -> int:
        """f32 state of one layer for one sequence (149.62 MiB over 48 layers, measured)."""
        return 4 * ((self.conv_kernel - 1) * self.channels + self.state_size * self.inner_size)


@dataclass(frozen=True)
class TensorBytes:
    """Bytes of a file's tensors; `whole` is False where only the file's size was known."""

    total: int
    token_embedding: int = 0
    has_output: bool = True
    whole: bool = True

    @property
    def on_host(self) -> int:
        """What stays off the card: the embedding, unless it serves as the output as well."""
        return self.token_embedding if self.has_output else 0


@dataclass(frozen=True)
class Shape:
    """All that memory and pairing need of a model file; None is "the header does not say".

    `unsaid` names keys without which memory is only known from below. Where `keys_read` is False
    reading stopped before the last key, and a fact that is not here may be behind it.
    """

    architecture: str
    tensors: TensorBytes
    layers: tuple[Layer, ...] = ()
    embedding: int = 0
    feed_forward: int = 0
    vocabulary: int = 0
    heads: int = 0
    key_length: int = 0
    context_length: int | None = None
    window: int | None = None
    window_pattern_known: bool = True
    recurrent: Recurrent | None = None
    latent_attention: bool = False
    nextn_layers: int = 0
    tensor_count: int | None = None
    tokenizer: str | None = None
    drafter: DrafterKeys | None = None
    projector: ProjectorKeys | None = None
    notes: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    keys_read: bool = True

    @property
    def nextn_known(self) -> bool:
        """Whether it is sure how many MTP layers are inside."""
        return self.keys_read or self.nextn_layers > 0

    @property
    def can_be_paired(self) -> bool:
        """Whether no key that was not read could change what it goes together with."""
        if self.drafter is not None:
            return self.keys_read or self.drafter.target_layers is not None
        return self.nextn_known or self.projector is not None

    @property
    def heads_kv(self) -> int:
        """Key heads of the widest layer."""
        return max((layer.heads_kv for layer in self.layers), default=0)


@dataclass(frozen=True)
class DrafterKeys:
    """What a DFlash drafter says of itself; `form` is its architecture string."""

    form: str
    block_size: int | None = None
    target_layers: tuple[int, ...] | None = None
    target_features: int | None = None
    stale: str = ""


@dataclass(frozen=True)
class ProjectorKeys:
    """What a projector says of itself."""

    projection: int | None = None
    embedding: int | None = None
    feed_forward: int | None = None
    kind: str = ""
