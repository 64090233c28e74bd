"""Reads a shape out of the keys of a header; a value that cannot be meant is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.errors import Permanent
from jobs.fit.shape import (
    DrafterKeys,
    Layer,
    LayerKind,
    ProjectorKeys,
    Recurrent,
    Shape,
    TensorBytes,
)
from jobs.gguf.limits import MOST_COUNT, MOST_LAYERS

SLIDING_PERIODS: Mapping[str, int] = {
    "cohere2": 4,
    "exaone-moe": 4,
    "exaone4": 4,
    "gemma-embedding": 6,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "olmo2": 4,
    "plamo3": 8,
}
"""Every how many layers one sees all tokens, where the file has no pattern: the loader's defaults
(`set_swa_pattern` in src/llama-model.cpp of beellama ba1fdce59)."""

ONLY_RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv7"})


def shape_of(
    keys: Mapping[str, object],
    *,
    tensors: TensorBytes,
    vocabulary: int | None = None,
    tensor_count: int | None = None,
    keys_read: bool = True,
) -> Shape:
    """The shape that a header's keys describe; raises Permanent where they cannot be meant.

    `keys_read` is False where there may be more keys than these.
    """
    architecture = keys.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise Permanent(
            "the header names no architecture", advice="Check that the file is a model in GGUF."
        )
    read = _Keys(keys, architecture)
    blocks = read.count("block_count", most=MOST_LAYERS) or 0
    nextn = read.count("nextn_predict_layers", most=MOST_LAYERS) or 0
    embedding = read.count("embedding_length") or 0
    heads = read.each("attention.head_count", blocks)
    widest = max(heads, default=0)
    usual = embedding // widest if widest else 0
    key_length = read.count("attention.key_length") or usual
    recurrent = _recurrent(read)
    window = read.count("attention.sliding_window")
    kinds, pattern_known = _kinds(read, blocks=blocks, nextn=nextn, recurrent=recurrent is not None)
    heads_kv = read.each("attention.head_count_kv", blocks) or heads
    layers = tuple(
        Layer(
            kind=kind,
            heads_kv=heads_kv[i] if i < len(heads_kv) else 0,
            key_length=_length(read, "key", kind) or key_length,
            value_length=_length(read, "value", kind) or usual,
            extra=i >= blocks - nextn,
        )
        for i, kind in enumerate(kinds)
    )
    tokenizer = keys.get("tokenizer.ggml.pre")
    return Shape(
        architecture=architecture,
        tensors=tensors,
        layers=layers,
        embedding=embedding,
        feed_forward=max(read.each("feed_forward_length", blocks), default=0),
        vocabulary=vocabulary or read.count("vocab_size") or 0,
        heads=widest,
        key_length=key_length,
        context_length=read.count("context_length"),
        window=window,
        window_pattern_known=pattern_known,
        recurrent=recurrent,
        latent_attention=bool(read.count("attention.kv_lora_rank")),
        nextn_layers=nextn,
        tensor_count=tensor_count,
        tokenizer=tokenizer if isinstance(tokenizer, str) else None,
        drafter=_drafter(read, keys_read=keys_read),
        projector=_projector(read),
        unsaid=tuple(_unsaid(read, blocks, layers, stateful=recurrent is not None)),
        keys_read=keys_read,
    )


def _unsaid(read: _Keys, blocks: int, layers: Sequence[Layer], *, stateful: bool) -> Iterator[str]:
    """Keys that memory depends on and that are missing, zero or too short."""
    if not blocks:
        return
    heads, kv = "attention.head_count", "attention.head_count_kv"
    if not read.count("embedding_length"):
        yield "embedding_length"
    known = {name: read.each(name, blocks) for name in (heads, kv)}
    attends = any(layer.kind not in (LayerKind.RECURRENT, LayerKind.NOTHING) for layer in layers)
    short = [name for name, values in known.items() if 0 < len(values) < blocks]
    if short:
        yield from (f"{name} of every layer" for name in short)
    elif not stateful and not any(known[kv] or known[heads]):
        yield heads if not any(known[heads]) else kv
    elif attends and not (known[kv] or known[heads]):
        yield heads
    else:
        needs = [each for each in layers if each.heads_kv]
        for part in ("key", "value"):
            if any(not getattr(each, f"{part}_length") for each in needs):
                yield f"attention.{part}_length"


class _Keys:
    """Typed looks at the keys of one architecture; a strange value is refused by name."""

    def __init__(self, keys: Mapping[str, object], architecture: str) -> None:
        self.keys = keys
        self.architecture = architecture

    def raw(self, name: str) -> object:
        return self.keys.get(f"{self.architecture}.{name}")

    def count(self, name: str, *, most: int = MOST_COUNT) -> int | None:
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return max((self._checked(name, each, most) for each in value), default=None)
        return self._checked(name, value, most)

    def each(self, name: str, blocks: int) -> tuple[int, ...]:
        """One value a layer, whether the file has a list or one value for all."""
        value = self.raw(name)
        if value is None:
            return ()
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return tuple(self._checked(name, each, MOST_COUNT) for each in value[:blocks])
        return (self._checked(name, value, MOST_COUNT),) * blocks

    def _checked(self, name: str, value: object, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise Permanent(
                f"{self.architecture[:40]}.{name} = {str(value)[:40]!r} is no possible count",
                advice="Take the file from its author again, or report it to them.",
            )
        return value


def _length(read: _Keys, part: str, kind: LayerKind) -> int | None:
    if kind is LayerKind.WINDOW and read.count(f"attention.{part}_length_swa"):
        return read.count(f"attention.{part}_length_swa")
    return read.count(f"attention.{part}_length")


def _recurrent(read: _Keys) -> Recurrent | None:
    inner, state = read.count("ssm.inner_size"), read.count("ssm.state_size")
    if not inner or not state:
        return None
    return Recurrent(
        conv_kernel=max(1, read.count("ssm.conv_kernel") or 1),
        state_size=state,
        group_count=read.count("ssm.group_count") or 0,
        inner_size=inner,
        time_step_rank=read.count("ssm.time_step_rank") or 0,
    )


def _kinds(
    read: _Keys, *, blocks: int, nextn: int, recurrent: bool
) -> tuple[list[LayerKind], bool]:
    """What each layer keeps, and whether the file or the loader's defaults say which do."""
    interval = read.count("full_attention_interval")
    heads_kv = read.each("attention.head_count_kv", blocks)
    slides, known = _sliding(read, blocks)
    kinds = []
    for i in range(blocks):
        keys_kept = heads_kv[i] if i < len(heads_kv) else None
        if i >= blocks - nextn:
            kind = LayerKind.FULL
        elif recurrent and interval:
            kind = LayerKind.FULL if (i + 1) % interval == 0 else LayerKind.RECURRENT
        elif recurrent and read.architecture in ONLY_RECURRENT:
            kind = LayerKind.RECURRENT
        elif recurrent and len(set(heads_kv)) > 1:
            kind = LayerKind.FULL if keys_kept else LayerKind.RECURRENT
        elif recurrent:
            kind = LayerKind.BOTH
        elif heads_kv and not keys_kept:
            kind = LayerKind.NOTHING
        else:
            kind = LayerKind.WINDOW if slides[i] else LayerKind.FULL
        kinds.append(kind)
    return kinds, known


def _sliding(read: _Keys, blocks: int) -> tuple[list[bool], bool]:
    window = read.count("attention.sliding_window")
    if not window:
        return [False] * blocks, True
    pattern = read.raw("attention.sliding_window_pattern")
    if isinstance(pattern, Sequence) and not isinstance(pattern, str | bytes):
        flags = [bool(each) for each in pattern[:blocks]]
        return flags + [False] * (blocks - len(flags)), len(flags) == blocks
    period = read.count("attention.sliding_window_pattern") or SLIDING_PERIODS.get(
        read.architecture
    )
    if not period:
        return [False] * blocks, False
    return [i % period < period - 1 for i in range(blocks)], True


def _drafter(read: _Keys, *, keys_read: bool) -> DrafterKeys | None:
    form = read.architecture
    if form == "dspark":
        return DrafterKeys(form, stale="the dspark form loads in its own fork only")
    if form not in ("dflash", "dflash-draft"):
        return None
    stale = ""
    if form == "dflash" and (read.raw("dflash.block_size") or read.raw("dflash.target_layer_ids")):
        stale = "keys with a double prefix (dflash.dflash.*) of an early converter"
    elif form == "dflash" and keys_read and read.raw("target_layers") is None:
        stale = "it has no dflash.target_layers; an early converter wrote target_layer_ids"
    prefix = "dflash." if form == "dflash-draft" else ""
    names = ("target_layer_ids",) if prefix else ("target_layers", "target_layer_ids")
    raw = next((r for name in names if (r := read.raw(prefix + name)) is not None), None)
    layers = None
    if isinstance(raw, Sequence) and not isinstance(raw, str | bytes):
        layers = tuple(each for each in raw if isinstance(each, int))
    return DrafterKeys(
        form=form,
        block_size=read.count(prefix + "block_size"),
        target_layers=layers,
        target_features=read.count(prefix + "n_target_features"),
        stale=stale,
    )


def _projector(read: _Keys) -> ProjectorKeys | None:
    if read.architecture != "clip":
        return None
    kinds = ("vision.projector_type", "audio.projector_type", "projector_type")
    kind = next((k for name in kinds if isinstance(k := read.raw(name), str)), "")
    return ProjectorKeys(
        projection=read.count("vision.projection_dim") or read.count("projection_dim"),
        embedding=read.count("vision.embedding_length"),
        feed_forward=read.count("vision.feed_forward_length"),
        kind=kind,
    )
