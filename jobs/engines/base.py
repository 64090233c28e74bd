"""The protocol every engine family fits: it describes steps and reads text; it never runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobs.dialect.options import Option
from jobs.errors import JobFailure, did_you_mean
from jobs.model import (
    Arrival,
    Blame,
    BootFacts,
    BootMemory,
    BuildTarget,
    Effective,
    FailureRule,
    Flags,
    Layout,
    Measurement,
    Request,
    Revision,
    Step,
)
from jobs.scenarios import Scenario


@dataclass(frozen=True)
class BuildPlaces:
    """Paths as the build's steps see them: `source` is read-only, the others are writable.

    `image` is what a container engine calls what it makes.
    """

    source: str
    work: str
    output: str
    python: str = "python3"
    jobs: int = 1
    generator: str = "Ninja"
    image: str = "forkscout-build"


@dataclass(frozen=True)
class Launch:
    """All that one start of a server depends on; paths as the caged process sees them."""

    artifact: str
    model_path: str
    host: str
    alias: str
    context_tokens: int
    threads: int
    launcher: str = ""
    gpu_layers: int = 0
    intent: Mapping[str, str | int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    drafter_path: str = ""
    projector_path: str = ""
    thinking: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """The rule that names a failure and the line of the log that said so."""

    rule: FailureRule
    line: str


LONGEST_LINE = 2000  # characters of one log line that are looked at
QUOTED = re.compile(r" *[0-9]{1,7} \| ")


def classify(text: str, rules: Sequence[FailureRule], *, phase: str = "") -> Diagnosis | None:
    """The first line that any rule of this phase knows, by the first rule that knows it.

    A line that repeats is looked at once: a log may be one line a million times. Source that a
    compiler quotes is no message. General rules are asked where no other knows a line.
    """
    counting = [rule for rule in rules if rule.counts_in(phase)]
    general: Diagnosis | None = None
    for line in dict.fromkeys(text.splitlines()):
        head = line[:LONGEST_LINE]
        if QUOTED.match(head):
            continue
        rule = next((rule for rule in counting if rule.pattern.search(head)), None)
        if rule is not None and not rule.general:
            return Diagnosis(rule, head.strip())
        if rule is not None and general is None:
            general = Diagnosis(rule, head.strip())
    return general


def unsupported(what: str, *, advice: str) -> JobFailure:
    """This build cannot do what was asked: nobody's fault, and never a guess."""
    return JobFailure(what, failure_class="unsupported", blame=Blame.CONFIGURATION, advice=advice)


@dataclass(frozen=True)
class Intents:
    """A launch's intents in checked form; what is not asked is explicit all the same.

    `speculation` is empty where nothing drafts, else a word of SPECULATIONS.
    """

    batch: int
    ubatch: int
    kv: str
    flash_attention: str
    speculation: str = ""


DEFAULT_BATCH = 2048
DEFAULT_UBATCH = 512
NOTHING = frozenset({"none", "off", "no", "0", ""})
DRAFT = "draft"
SPECULATIONS: Mapping[str, tuple[str, ...]] = {
    DRAFT: ("draft-simple", "draft"),
    "dflash": ("draft-dflash", "dflash"),
    "dspark": ("draft-dspark", "dspark"),
    "eagle3": ("draft-eagle3", "eagle3"),
    "mtp": ("draft-mtp", "mtp", "nextn"),
    "ngram": ("ngram-simple", "ngram-cache"),
    "copy": ("copyspec",),
    "suffix": ("suffix",),
}
"""Our word for each kind of speculation, and what builds of different age call it."""

NEEDS_DRAFTER = frozenset({DRAFT, "dflash", "dspark", "eagle3"})
"""The others draft from heads inside the target, or from the text itself."""


def intents(launch: Launch) -> Intents:
    """The intents every family serves; raises `unsupported` for one that no family can yet."""
    intent = dict(launch.intent)
    context = intent.pop("context", launch.context_tokens)
    batch = intent.pop("batch", DEFAULT_BATCH)
    ubatch = intent.pop("ubatch", DEFAULT_UBATCH)
    kv = intent.pop("kv", "f16")
    flash_attention = intent.pop("flash_attention", "on")
    if context != launch.context_tokens:
        raise unsupported(
            f"intent context = {context!r} beside a context of {launch.context_tokens} tokens",
            advice="Ask for one context only.",
        )
    for name, value in (("batch", batch), ("ubatch", ubatch)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65536:
            raise unsupported(
                f"intent {name} = {value!r}", advice="Give a whole number from 1 to 65536."
            )
    if flash_attention not in ("on", "off", "auto"):
        raise unsupported(
            f"intent flash_attention = {flash_attention!r}", advice="Use on, off or auto."
        )
    if not isinstance(kv, str) or not re.fullmatch(r"[a-z0-9_]{1,32}", kv):
        raise unsupported(f"intent kv = {kv!r}", advice="Name a cache type such as q8_0.")
    speculation = _speculation(intent.pop("speculation", None), launch)
    vision = str(intent.pop("vision", "none"))
    if (vision not in NOTHING) != bool(launch.projector_path):
        raise unsupported(
            f"intent vision = {vision!r} "
            + ("beside" if launch.projector_path else "without")
            + " a projector",
            advice="Name the mmproj file and ask for vision, or neither.",
        )
    if intent:
        raise unsupported(
            f"intent {min(intent)!r}",
            advice="Known: batch, context, flash_attention, kv, speculation, ubatch, vision.",
        )
    return Intents(int(batch), int(ubatch), kv, str(flash_attention), speculation)


def _speculation(asked: str | int | None, launch: Launch) -> str:
    """What drafts; a drafter that nobody says more of drafts plainly."""
    word = str(asked) if asked is not None else DRAFT if launch.drafter_path else ""
    if word in NOTHING:
        if launch.drafter_path:
            raise unsupported(
                "a drafter beside intent speculation = 'none'",
                advice="Leave the drafter out, or say how it drafts.",
            )
        return ""
    if word not in SPECULATIONS:
        raise unsupported(
            f"intent speculation = {word[:80]!r}", advice=did_you_mean(word, SPECULATIONS)
        )
    if word in NEEDS_DRAFTER and not launch.drafter_path:
        raise unsupported(
            f"intent speculation = {word} without a drafter", advice="Name a drafter in the stack."
        )
    return word


def layout(launch: Launch) -> Layout:
    """What decides the memory of this start; raises as `intents`."""
    asked = intents(launch)
    return Layout(
        context_tokens=launch.context_tokens,
        batch=asked.batch,
        ubatch=asked.ubatch,
        cache_key=asked.kv,
        cache_value=asked.kv,
        gpu_layers=launch.gpu_layers,
    )


class Engine(Protocol):
    """One module per family. `RECIPE` grows with each change to the build.

    `LAUNCHER` names the file beside the family's module that `Launch.launcher` must point at.
    `FAILURES` read what a built binary says, `BUILD_FAILURES` what its making says.
    """

    FAMILY: str
    VIA: str
    RECIPE: int
    FOREIGN_SOURCE: bool
    LAUNCHER: str | None
    FAILURES: Sequence[FailureRule]
    BUILD_FAILURES: Sequence[FailureRule]
    SPARSE_PATTERNS: Sequence[str]
    OPTION_SOURCES: Sequence[str]

    def build(self, revision: Revision, target: BuildTarget, places: BuildPlaces) -> Sequence[Step]:
        """Steps that leave the finished tree in `places.output`."""

    def describe(self, *, artifact: str, launcher: str = "") -> Step:
        """The step whose standard output `read_help` understands."""

    def launch(self, launch: Launch, flags: Flags) -> Step:
        """The step that starts the server. Raises `unsupported` where no flag can serve."""

    def read_help(self, text: str) -> Flags:
        """Flags of the built binary."""

    def read_options(self, text: str) -> Sequence[Option]:
        """All that the same text says of each of them."""

    def read_source(self, texts: Mapping[str, str]) -> Sequence[Option]:
        """The same out of OPTION_SOURCES, by path, before anything is built; perhaps nothing."""

    def read_log(self, text: str) -> BootFacts:
        """Facts of one boot from its log."""

    def read_memory(self, text: str) -> BootMemory:
        """What one boot's log says of its memory."""

    def read_settings(
        self, props: Mapping[str, Any], slots: Sequence[Mapping[str, Any]]
    ) -> Effective:
        """Settings the running server admits to."""

    def request(
        self, scenario: Scenario, *, run: int, alias: str, filling: Sequence[int] = ()
    ) -> Request:
        """The body of one run with every sampling field explicit."""

    def measure(
        self,
        arrivals: Sequence[Arrival],
        *,
        scenario: Scenario,
        run: int,
        warmup: bool,
        wall_seconds: float,
        alias: str,
    ) -> Measurement:
        """The numbers of one run with their validity."""
