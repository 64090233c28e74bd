"""Who loads with whom, and why not: from headers and from what was read of engines; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from jobs.fit.shape import DrafterKeys, Shape
from jobs.known_engines import EngineState

VOCABULARY_SLACK = 128
"""Tokens by which a plain drafter's vocabulary may differ (llama.cpp's own check)."""

SHARED_ARCHITECTURES = frozenset(
    {
        "deepseek2",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma4",
        "glm4",
        "glm4moe",
        "gpt-oss",
        "granite",
        "granitehybrid",
        "llama",
        "llama4",
        "mamba",
        "mamba2",
        "nemotron_h",
        "phi3",
        "qwen2",
        "qwen2moe",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
    }
)
"""Architectures in src/llama-arch.cpp of upstream 7fc1c4ef7 (21 April 2026), which is in every
engine of the chain, and in those of turboquant 69d8e4be4, buun 16ebdc5c4 and beellama 633cd34fb."""

DRAFTERS_ONLY = frozenset({"dflash", "dflash-draft", "dspark", "eagle3"})
HEADS_ONLY = frozenset({"gemma4-assistant", "gemma4_assistant"})


class Answer(StrEnum):
    """Whether files and an engine go together."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Finding:
    """One named reason; `would_tell` says how to find out what is not known."""

    name: str
    answer: Answer
    sentence: str
    would_tell: str = ""


@dataclass(frozen=True)
class Pairing:
    """The answer with every reason looked at, the ones against it first."""

    answer: Answer
    findings: tuple[Finding, ...]


def pair(
    target: Shape,
    *,
    state: EngineState,
    drafter: Shape | None = None,
    projector: Shape | None = None,
    archs: frozenset[str] | None = None,
) -> Pairing:
    """Whether an engine loads these files together.

    `archs` are the architectures its sources name, where they were read. One reason against is
    enough; without one, whatever is not known makes the answer `cannot tell`.
    """
    findings = [*_target(target, state, archs)]
    if drafter is not None:
        findings += _drafter(target, drafter, state)
    if projector is not None:
        findings += _projector(target, projector)
    if drafter is not None and projector is not None:
        findings += _together(drafter, state)
    order = (Answer.INCOMPATIBLE, Answer.CANNOT_TELL, Answer.COMPATIBLE)
    findings.sort(key=lambda each: order.index(each.answer))
    return Pairing(findings[0].answer, tuple(findings))


def _target(target: Shape, state: EngineState, archs: frozenset[str] | None) -> Iterator[Finding]:
    name = _short(target.architecture)
    if target.projector is not None or target.architecture in DRAFTERS_ONLY | HEADS_ONLY:
        yield _no("target_role", f"the target is no model that runs alone: {name}")
        return
    yield _architecture(target.architecture, state, archs)
    if not target.nextn_known:
        yield _unknown(
            "mtp_heads",
            "whether the target has MTP heads inside was not read",
            "the whole header of the target",
        )
        return
    if not target.nextn_layers:
        yield _yes("mtp_heads", "the target has no MTP heads inside")
        return
    what = f"the target has {target.nextn_layers} MTP layer inside"
    if target.tensor_count:
        what += f" ({target.tensor_count} tensors; the count alone is only a hint)"
    if state.loads_nextn is None:
        tells = "the loader of this revision: does it create nextn tensors?"
        yield _unknown("mtp_heads", f"{what}; whether {state.title} creates them is unread", tells)
    elif state.loads_nextn:
        yield _yes("mtp_heads", f"{what}, and {state.title} loads them")
    else:
        yield _no(
            "mtp_heads",
            f"{what}, and the loader of {state.title} creates no nextn tensors: it stops with "
            "'wrong number of tensors'; take a file without MTP",
        )


def _architecture(architecture: str, state: EngineState, archs: frozenset[str] | None) -> Finding:
    name = _short(architecture)
    if archs:
        if architecture in archs:
            return _yes("architecture", f"{state.title} names {name} in its sources")
        return _no("architecture", f"{state.title} names no architecture {name} in its sources")
    if state.name and architecture in SHARED_ARCHITECTURES:
        return _yes("architecture", f"{name} is in every engine of the chain since April 2026")
    return _unknown(
        "architecture",
        f"whether {state.title} knows the architecture {name} was not read",
        "src/llama-arch.cpp of this revision, or one boot",
    )


def _drafter(target: Shape, drafter: Shape, state: EngineState) -> Iterator[Finding]:
    keys = drafter.drafter
    name = _short(drafter.architecture)
    if drafter.projector is not None:
        yield _no("drafter_role", "the drafter is a projector (architecture clip)")
    elif keys is not None:
        yield _form(keys, state)
        yield _width(target, drafter)
        yield from _taps(target, keys)
    elif drafter.architecture in DRAFTERS_ONLY | HEADS_ONLY:
        yield _unknown(
            "drafter_form",
            f"which engines load drafters of the architecture {name} was not read",
            "the speculation types in the --help of this build, and one boot",
        )
        yield _width(target, drafter)
    else:
        yield from _vocabulary(target, drafter)


def _form(keys: DrafterKeys, state: EngineState) -> Finding:
    if keys.stale:
        return _no("stale_converter", f"no loader takes this drafter: {keys.stale}; convert anew")
    if state.drafter_forms is None:
        return _unknown(
            "drafter_form",
            f"which drafter forms {state.title} loads was not read",
            "src/llama-arch.cpp of this revision: dflash, dflash-draft or both",
        )
    if keys.form in state.drafter_forms:
        return _yes("drafter_form", f"{state.title} loads drafters of the form {keys.form}")
    takes = " and ".join(sorted(state.drafter_forms)) or "no DFlash drafter at all"
    return _no(
        "drafter_form", f"the drafter has the form {keys.form}, and {state.title} loads {takes}"
    )


def _width(target: Shape, drafter: Shape) -> Finding:
    if not target.embedding or not drafter.embedding:
        return _unknown(
            "embedding_width", "a header does not say how wide the model is", "one boot"
        )
    what = f"the drafter is {drafter.embedding} wide, the target {target.embedding}"
    return (_yes if drafter.embedding == target.embedding else _no)("embedding_width", what)


def _taps(target: Shape, keys: DrafterKeys) -> Iterator[Finding]:
    layers = sum(not layer.extra for layer in target.layers)
    taps = keys.target_layers
    if not taps:
        yield _unknown(
            "target_layers",
            "the drafter does not say which layers of the target it reads",
            "the model card, or one boot",
        )
        return
    what = f"the drafter reads layers {min(taps)} to {max(taps)} of a target with {layers}"
    yield (_yes if min(taps) >= 0 and max(taps) < layers else _no)("target_layers", what)
    if keys.target_features is not None and target.embedding:
        wanted = len(taps) * target.embedding
        what = (
            f"the drafter takes {keys.target_features} features, {len(taps)} layers of the target "
            f"give {wanted}"
        )
        same = keys.target_features == wanted
        yield (_yes if same else _no)("target_features", what)


def _vocabulary(target: Shape, drafter: Shape) -> Iterator[Finding]:
    tells = "the whole header of both files"
    if not target.vocabulary or not drafter.vocabulary:
        yield _unknown("vocabulary", "a header does not say how many tokens it knows", tells)
    else:
        apart = abs(target.vocabulary - drafter.vocabulary)
        what = f"the drafter knows {drafter.vocabulary} tokens, the target {target.vocabulary}"
        near = apart <= VOCABULARY_SLACK
        allowed = f"{what}; up to {VOCABULARY_SLACK} apart are allowed"
        yield (_yes if near else _no)("vocabulary", allowed)
    if target.tokenizer is None or drafter.tokenizer is None:
        yield _unknown("tokenizer", "a header does not name its tokenizer", tells)
    else:
        what = f"tokenizer {_short(drafter.tokenizer)} beside {_short(target.tokenizer)}"
        yield (_yes if target.tokenizer == drafter.tokenizer else _no)("tokenizer", what)


def _projector(target: Shape, projector: Shape) -> Iterator[Finding]:
    keys = projector.projector
    if keys is None:
        name = _short(projector.architecture)
        yield _no("projector_role", f"the mmproj file is no projector: architecture {name}")
    elif keys.projection is None or not target.embedding:
        yield _unknown(
            "projection_width", "a header does not say how wide the projection is", "one boot"
        )
    else:
        what = f"the projector gives {keys.projection} values, the target takes {target.embedding}"
        same = keys.projection == target.embedding
        yield (_yes if same else _no)("projection_width", what)


def _together(drafter: Shape, state: EngineState) -> Iterator[Finding]:
    name = "vision_with_drafter"
    if state.drafts_with_vision is None:
        yield _unknown(
            name,
            f"whether {state.title} drafts while a projector is loaded was not read",
            "the log line 'speculative decoding is not supported by multimodal', or /slots",
        )
    elif "dflash" in state.drafts_with_vision and drafter.drafter is not None:
        yield _yes(name, f"{state.title} drafts with DFlash while a projector is loaded")
    else:
        yield _no(
            name, f"{state.title} silently drafts nothing with this drafter beside a projector"
        )


def _yes(name: str, sentence: str) -> Finding:
    return Finding(name, Answer.COMPATIBLE, sentence)


def _no(name: str, sentence: str) -> Finding:
    return Finding(name, Answer.INCOMPATIBLE, sentence)


def _unknown(name: str, sentence: str, would_tell: str) -> Finding:
    return Finding(name, Answer.CANNOT_TELL, sentence, would_tell)


def _short(text: str) -> str:
    return repr(text[:60])
