"""Queries on what one rig measured: its boots with their memory, depth and speed; reads only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from sqlmodel import Session, col, select

from jobs.errors import Permanent
from jobs.fit.stored import layout_in, memory_in
from jobs.model import BootMemory, Layout, Validity
from jobs.tables import (
    BootRow,
    EngineRow,
    ModelFileRow,
    ResultRow,
    RevisionRow,
    RigRow,
    SampleRow,
)

MOST_BOOTS = 400
"""So many of a rig's newest boots are on its page."""

_DEPTH = re.compile(r"@([1-9][0-9]{0,8})", re.ASCII)


@dataclass(frozen=True)
class RigBoot:
    """One boot: what ran, what was asked of memory, what it took, and how fast it decoded.

    `filled` are tokens in the context before the first is predicted, `allocated` what the context
    could hold; rates are medians of its measured runs, tokens per second.
    """

    result_id: int
    engine: str
    revision: str
    model: str
    drafter: str
    is_twin: bool
    validity: str
    scenario: str
    allocated: int
    filled: int | None
    layout: Layout | None
    memory: BootMemory | None
    decode_tps: float | None
    prefill_tps: float | None


@dataclass(frozen=True)
class RigMeasured:
    """A rig and its newest boots, the oldest first."""

    id: int
    name: str
    device: str
    cards: tuple[str, ...]
    results: int
    boots: tuple[RigBoot, ...]


def rig_ids(session: Session) -> Sequence[int]:
    """Every rig."""
    return [each for each in session.exec(select(RigRow.id).order_by(col(RigRow.id))) if each]


def measured(session: Session, rig_id: int) -> RigMeasured | None:
    """What a rig measured; None where there is no such rig."""
    rig = session.get(RigRow, rig_id)
    if rig is None:
        return None
    query = (
        select(BootRow, ResultRow, RevisionRow, EngineRow)
        .join(ResultRow, col(BootRow.result_id) == col(ResultRow.id))
        .join(RevisionRow, col(ResultRow.revision_id) == col(RevisionRow.id))
        .join(EngineRow, col(ResultRow.engine_id) == col(EngineRow.id))
        .where(ResultRow.rig_id == rig_id)
        .order_by(col(BootRow.id).desc())
        .limit(MOST_BOOTS)
    )
    rows = list(session.exec(query))
    runs = _runs(session, [boot.id or 0 for boot, *_ in rows])
    wanted = {result.model_file_id for _, result, _, _ in rows}
    wanted |= {result.drafter_file_id or 0 for _, result, _, _ in rows}
    files = session.exec(select(ModelFileRow).where(col(ModelFileRow.id).in_(wanted)))
    models = {row.id or 0: row for row in files}
    boots = tuple(
        _boot(*row, runs=runs.get(row[0].id or 0, []), models=models) for row in reversed(rows)
    )
    return RigMeasured(
        id=rig_id,
        name=rig.name,
        device=rig.device,
        cards=tuple(dict.fromkeys(_cards([result for _, result, _, _ in rows]))),
        results=len({each.result_id for each in boots}),
        boots=boots,
    )


def _boot(
    boot: BootRow,
    result: ResultRow,
    revision: RevisionRow,
    engine: EngineRow,
    *,
    runs: Sequence[SampleRow],
    models: dict[int, ModelFileRow],
) -> RigBoot:
    prompts = [run.prompt_n for run in runs if run.prompt_n]
    depth = _DEPTH.search(result.scenario)
    model, drafter = models[result.model_file_id], models.get(result.drafter_file_id or 0)
    return RigBoot(
        result_id=result.id or 0,
        engine=engine.name,
        revision=revision.label,
        model=model.name,
        drafter=drafter.name if drafter else "",
        is_twin=bool(model.source.get("twin_of")),
        validity=result.validity,
        scenario=result.scenario,
        allocated=result.context_tokens,
        filled=int(depth[1]) if depth else round(median(prompts)) if prompts else None,
        layout=_layout(boot),
        memory=_memory(boot),
        decode_tps=_middle(run.decode_tps for run in runs),
        prefill_tps=_middle(run.prefill_tps for run in runs),
    )


def _runs(session: Session, boots: Sequence[int]) -> dict[int, list[SampleRow]]:
    """The runs of each boot that say how fast it was: sound ones, of real or of random weights."""
    found: dict[int, list[SampleRow]] = {}
    query = select(SampleRow).where(
        col(SampleRow.boot_id).in_(boots),
        col(SampleRow.warmup).is_(False),
        col(SampleRow.validity).in_([Validity.OK.value, Validity.TWIN.value]),
    )
    for run in session.exec(query):
        found.setdefault(run.boot_id, []).append(run)
    return found


def _cards(results: Sequence[ResultRow]) -> Iterator[str]:
    for result in results:
        for card in result.environment.get("cards") or ():
            yield str(card)


def _middle(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _layout(boot: BootRow) -> Layout | None:
    try:
        return layout_in(boot.layout) if boot.layout else None
    except Permanent:
        return None


def _memory(boot: BootRow) -> BootMemory | None:
    try:
        return memory_in(boot.memory) if boot.memory else None
    except Permanent:
        return None
