"""The watch list as typed values: what its words mean and which of them can be true together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from jobs.hub_names import MOST_SHARDS
from jobs.planning.rules import MOST_PRIORITY
from scout.known import NOTHING, Known
from scout.watch_words import (
    AssetName,
    CudaArch,
    CudaVersion,
    DockerfilePath,
    EnvName,
    FileName,
    HubFileName,
    HubRepository,
    HubRevision,
    HubWatch,
    Image,
    IntentText,
    Line,
    Name,
    Package,
    Repository,
    RigName,
    Role,
    Sha256,
    Stage,
    branch_name,
    budget_source,
    exact_version,
)

DRIVEN_FAMILIES = ("llama.cpp", "xllamacpp")
MADE_WAYS = ("cmake", "wheel", "asset", "docker")
WAYS_OF_PIN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("asset", "sha256"), ("asset",)),
    "tag": ("asset", "docker"),
    **dict.fromkeys(
        ("image", "dockerfile", "stage", "cuda_version", "dev_image", "run_image"), ("docker",)
    ),
}
"""Which way to a build takes which of its keys."""
INTENTS = ("speculation", "kv", "context", "batch", "ubatch", "vision")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class BuildEntry(_Table):
    """`[[engine.build]]`: one way to build the engine for one rig."""

    rig: RigName
    via: Literal["cmake", "wheel", "docker", "asset"]
    cuda_arch: CudaArch | None = None
    options: Annotated[tuple[Line, ...], Field(strict=False, max_length=100)] = ()
    asset: AssetName | None = None
    tag: AssetName | None = None
    sha256: Sha256 | None = None
    image: Image | None = None
    dockerfile: DockerfilePath | None = None
    stage: Stage | None = None
    cuda_version: CudaVersion | None = None
    dev_image: Image | None = None
    run_image: Image | None = None


class EngineEntry(_Table):
    """`[[engine]]`: a code base we watch."""

    name: Name
    family: Literal["llama.cpp", "xllamacpp", "vllm", "lucebox", "ik_llama.cpp"]
    repo: Repository | None = None
    package: Package | None = None
    parent: Name | None = None
    branches: Annotated[
        tuple[Annotated[str, AfterValidator(branch_name)], ...], Field(strict=False)
    ] = ()
    newest: Annotated[int, Field(ge=1, le=20)] = 3
    trust: Literal["auto", "approve", "package", "never"] = "approve"
    builds: Annotated[tuple[BuildEntry, ...], Field(strict=False, alias="build")] = ()


class ModelEntry(_Table):
    """`[[model]]`: one weight, known by its sha256, in a package or on the model hub.

    `shards` are the digests of its files where it comes in several; `sha256` is then theirs.
    """

    name: Name
    package: Package | None = None
    version: Annotated[str, AfterValidator(exact_version)] | None = None
    repo: HubRepository | None = None
    file: HubFileName | None = None
    revision: HubRevision | None = None
    sha256: Sha256
    shards: Annotated[tuple[Sha256, ...], Field(strict=False, max_length=MOST_SHARDS)] = ()
    size_bytes: Annotated[int, Field(ge=1, le=2**44)] | None = None
    role: Role = "target"
    model_class: Name
    quantisation: Name | None = None


class HubWatchEntry(_Table):
    """`[[models]]`: a place on the model hub to watch."""

    watch: HubWatch
    roles: Annotated[tuple[Role, ...], Field(strict=False)] = ("target",)


class StackEntry(_Table):
    """`[[stack]]`: what to bench."""

    name: Name
    engine: Name
    target: FileName
    drafter: FileName | None = None
    mmproj: FileName | None = None
    intent: dict[str, IntentText | StrictInt] = Field(default_factory=dict)
    flags: Annotated[tuple[Line, ...], Field(strict=False, max_length=200)] = ()
    env: dict[EnvName, Line] = Field(default_factory=dict)
    scenarios: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("decode-128",)


class GoldenEntry(_Table):
    """`[[golden]]`: the known build of a rig, with its known result where somebody knows it."""

    rig: RigName
    stack: Name
    revision: Annotated[str, AfterValidator(branch_name)]
    decode_tps: (
        Annotated[
            tuple[Annotated[float, Field(gt=0)], ...],
            Field(strict=False, min_length=2, max_length=2),
        ]
        | None
    ) = None
    text_sha256: Sha256 | None = None


class RigEntry(_Table):
    """`[[rig]]`: what a rig's card holds, where its worker does not say."""

    name: RigName
    memory_gib: Annotated[float, Field(ge=0.25, le=4096)]


class RuleEntry(_Table):
    """`[[rule]]`: what is done about a kind of event; filters that are left out fit everything."""

    name: Name | None = None
    on: StrictStr
    do: Literal["build", "bench", "rerun", "nothing"]
    engines: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    stacks: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    rigs: Annotated[tuple[RigName, ...], Field(strict=False)] = ()
    scenarios: Annotated[tuple[StrictStr, ...], Field(strict=False)] = ()
    roles: Annotated[tuple[Role, ...], Field(strict=False)] = ()
    model_classes: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    lane: Literal["fresh", "retest", "backfill"] | None = None
    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0

    @property
    def called(self) -> str:
        """Its name, or one made of what it says."""
        return self.name or f"{self.on}:{self.do}"


class BudgetEntry(_Table):
    """`[[budget]]`: hours a day that planning may use of a rig, or for a source."""

    rig: RigName | None = None
    source: Annotated[str, AfterValidator(budget_source)] | None = None
    hours_per_day: Annotated[float, Field(ge=0, le=24 * 64)]

    @property
    def called(self) -> str:
        """What it is about."""
        return f"rig:{self.rig}" if self.rig else str(self.source)


class WatchList(_Table):
    """A whole watch list; `scout.reading.parse` makes it from text."""

    engines: Annotated[tuple[EngineEntry, ...], Field(strict=False, alias="engine")] = ()
    models: Annotated[tuple[ModelEntry, ...], Field(strict=False, alias="model")] = ()
    hub_watches: Annotated[tuple[HubWatchEntry, ...], Field(strict=False, alias="models")] = ()
    stacks: Annotated[tuple[StackEntry, ...], Field(strict=False, alias="stack")] = ()
    goldens: Annotated[tuple[GoldenEntry, ...], Field(strict=False, alias="golden")] = ()
    rigs: Annotated[tuple[RigEntry, ...], Field(strict=False, alias="rig")] = ()
    rules: Annotated[tuple[RuleEntry, ...], Field(strict=False, alias="rule")] = ()
    budgets: Annotated[tuple[BudgetEntry, ...], Field(strict=False, alias="budget")] = ()
    scenarios: Annotated[tuple[dict[str, Any], ...], Field(strict=False, alias="scenario")] = ()

    @property
    def own_scenarios(self) -> dict[str, dict[str, Any]]:
        """The words of each `[[scenario]]` by its name; `scout.impossible` says what is wrong."""
        named = (each for each in self.scenarios if isinstance(each.get("name"), str))
        return {each["name"]: each for each in named}

    def engine_obstacle(self, engine: EngineEntry) -> str:
        """Why this release cannot build an engine, or nothing."""
        if engine.family not in DRIVEN_FAMILIES:
            return f"family {engine.family} is not driven yet"
        if not any(build.via in MADE_WAYS for build in engine.builds):
            ways = ", ".join(sorted({build.via for build in engine.builds}))
            if not ways:
                return "it names no [[engine.build]]"
            return f"{ways} not built yet"
        return ""

    def stack_obstacle(self, stack: StackEntry, known: Known = NOTHING) -> str:
        """Why this release cannot bench a stack, or nothing."""
        models = {*known.models, *(model.name for model in self.models)}
        files = [name for name in (stack.target, stack.drafter, stack.mmproj) if name]
        if missing := [name for name in files if name not in models]:
            return f"weights from the hub need a [[model]] of that name ({missing[0]})"
        engine = next((engine for engine in self.engines if engine.name == stack.engine), None)
        if engine is None:
            built = known.built.get(stack.engine)
            return "" if built else f"engine {stack.engine} is not built yet"
        return self.engine_obstacle(engine)

    def not_yet(self, known: Known = NOTHING) -> list[str]:
        """All that is well said here and cannot be done by this release, one line each."""
        notes = []
        for engine in self.engines:
            if obstacle := self.engine_obstacle(engine):
                notes.append(f"engine {engine.name} is watched, and not built yet: {obstacle}")
                continue
            notes += [
                f"engine {engine.name} is not built yet for rig {build.rig} via {build.via}"
                for build in engine.builds
                if build.via not in MADE_WAYS
            ]
        for stack in self.stacks:
            if obstacle := self.stack_obstacle(stack, known):
                notes.append(f"stack {stack.name} is not benchable yet: {obstacle}")
        return notes
