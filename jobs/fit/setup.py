"""One wish to be judged: files, cache types, context, engine state and card; holds values only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jobs.errors import UsageError
from jobs.fit.amounts import MIB, Band, exactly
from jobs.fit.formats import CacheTypes, cache_types, padded_context
from jobs.fit.shape import Shape
from jobs.known_engines import ANY_ENGINE, EngineState

MOST_TOKENS = 2**24
MOST_BATCH = 65536
MOST_SEQUENCES = 256

MEASURED_CONTEXT_BYTES = 518 * MIB
"""A bare CUDA context on one NVIDIA H200, driver 580.159.04 (docs/models.md)."""

MEASURED_RESERVE_BYTES = 615 * MIB
"""What the driver of that card keeps of NVML's total (docs/models.md)."""


@dataclass(frozen=True)
class Card:
    """A card's memory. `context_bytes` and `reserve_bytes` are None until measured on it."""

    total_bytes: int
    reserve_bytes: int | None = None
    foreign_bytes: int = 0
    context_bytes: int | None = None

    @property
    def usable(self) -> Band:
        """What one process can have; the most is without any driver reserve."""
        left = max(0, self.total_bytes - self.foreign_bytes)
        if self.reserve_bytes is not None:
            return exactly(max(0, left - self.reserve_bytes))
        worst = max(0, left - MEASURED_RESERVE_BYTES)
        return Band(worst, (worst + left) // 2, left)


def unsaid_of(shape: Shape) -> tuple[str, ...]:
    """Keys a shape lacks, also one that was stored before shapes said so."""
    lost = shape.recurrent is None and shape.layers and not shape.heads_kv
    return shape.unsaid or (("attention.head_count",) if lost else ())


@dataclass(frozen=True)
class Setup:
    """A wish. `filled_tokens` is how much of the context is in use in the second figure.

    `drafter_context` and `cross_context` are None where the engine's own rule is meant.
    """

    target: Shape
    card: Card
    context: int
    state: EngineState = ANY_ENGINE
    key: str = "f16"
    value: str = "f16"
    batch: int = 2048
    ubatch: int = 512
    sequences: int = 1
    unified: bool = True
    filled_tokens: int | None = None
    drafter: Shape | None = None
    drafter_context: int | None = None
    cross_context: int | None = None
    projector: Shape | None = None
    types: CacheTypes = field(init=False)

    def __post_init__(self) -> None:
        for name, value, most in (
            ("context", self.context, MOST_TOKENS),
            ("batch", self.batch, MOST_BATCH),
            ("ubatch", self.ubatch, MOST_BATCH),
            ("parallel", self.sequences, MOST_SEQUENCES),
            ("drafter context", self.drafter_context, MOST_TOKENS),
            ("cross context", self.cross_context, MOST_TOKENS),
        ):
            if value is not None and not 1 <= value <= most:
                unit = "slots" if name == "parallel" else "tokens"
                raise UsageError(
                    f"{name} {value} is out of range", advice=f"Give 1 to {most} {unit}."
                )
        if not self.target.layers:
            raise UsageError(
                f"the target ({self.target.architecture[:40]}) has no layers in its header",
                advice="Give the model itself as the target, not a projector or an imatrix.",
            )
        types = cache_types(
            self.state,
            key=self.key,
            value=self.value,
            heads=self.target.heads,
            heads_kv=self.target.layers[0].heads_kv,
        )
        object.__setattr__(self, "types", types)

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Keys that the headers lack and without which no figure is the most it can be."""
        files = (self.target,) if self.drafter is None else (self.target, self.drafter)
        return tuple(
            f"{each.architecture[:40]}.{name}" for each in files for name in unsaid_of(each)
        )

    @property
    def cells(self) -> int:
        """Tokens that are laid out."""
        return padded_context(self.context)

    @property
    def cells_per_sequence(self) -> int:
        """Tokens one sequence can reach."""
        if self.unified or self.sequences == 1:
            return self.cells
        return padded_context(-(-self.context // self.sequences))

    @property
    def step_tokens(self) -> int:
        """Tokens of one micro-batch as it really runs."""
        return min(self.ubatch, self.batch, self.cells)

    @property
    def filled(self) -> int:
        """Tokens in use in the second figure."""
        return self.cells if self.filled_tokens is None else min(self.filled_tokens, self.cells)

    @property
    def speculating(self) -> bool:
        """Whether a drafter runs beside the target."""
        return self.drafter is not None

    def at(self, context: int) -> Setup:
        """The same wish with another context, all of it filled."""
        return replace(self, context=context, filled_tokens=None)
