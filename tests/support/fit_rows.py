"""Model files with shapes, and boots that said what they took, as rows."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from sqlmodel import select
from support.rows import Rows
from support.shapes import MIB, dflash_drafter, gemma3_270m, mmproj, qwen36

from jobs.fit.shape import Shape
from jobs.fit.stored import shape_stored
from jobs.model import BootMemory, Layout, MemoryLines, Validity
from jobs.tables import BootRow, EngineRow, ModelFileRow, ResultRow


def shaped_file(rows: Rows, name: str, shape: Shape, **fields: Any) -> ModelFileRow:
    """A model file whose header was read."""
    role = fields.get("role", "target")
    facts = {"role": role, "architecture": shape.architecture, "tokenizer_pre": shape.tokenizer}
    return rows.model_file(
        **{"name": name, "shape": shape_stored(shape), "facts": facts, "model_class": name} | fields
    )


def said(rows: Rows, result: ResultRow, layout: Layout, **lines: int | None) -> None:
    """Let every boot of a result have been asked for `layout` and have logged these sizes."""
    memory = BootMemory(MemoryLines(**lines))
    for boot in rows.session.exec(select(BootRow).where(BootRow.result_id == result.id)):
        boot.layout, boot.memory = asdict(layout), asdict(memory)
        rows.session.add(boot)
    rows.session.flush()


def fill_fit(rows: Rows, wheel: EngineRow, fork: EngineRow, hostile: str) -> None:
    """A wheel's boots on the host, a fork's on a card in two layouts, and files of every role."""
    small = shaped_file(rows, "gemma-3-270m:q4_k_m", gemma3_270m())
    large = shaped_file(rows, "Qwen3.6-27B:Q4_K_M", qwen36(), size_bytes=16_546_000_000)
    shaped_file(rows, "Qwen3.6-27B-DFlash:Q8_0", dflash_drafter(), role="drafter")
    shaped_file(rows, "Qwen3.6-27B-mmproj:F16", mmproj(), role="mmproj")
    long = replace(gemma3_270m(), architecture=f"{hostile}{'x' * 200}")
    evil = shaped_file(
        rows, f"evil{hostile}{'y' * 200}", long, quantisation=hostile, model_class="evil"
    )
    strange = rows.result(
        rows.revision(wheel, label="2025.11.3"), model_file=evil, validity=Validity.TAINTED
    )
    said(rows, strange, Layout(2048, 2048, 512, "f16", "f16"), cache=22 * MIB)
    rows.model_file(name="a-page", header_fault=f"an HTML page, no model {hostile}")
    wheels = rows.revision(wheel, label="2025.12.7")
    host = rows.result(wheels, model_file=small, validity=Validity.TAINTED)
    said(rows, host, Layout(2048, 2048, 512, "f16", "f16"), cache=21 * MIB, pinned=99 * MIB)
    for label, context, cache, compute in (
        ("v0.1.71", 32_768, 2048, 505),
        ("v0.1.83", 65_536, 4096, 530),
    ):
        layout = Layout(context, 2048, 512, "f16", "f16", gpu_layers=99)
        result = rows.result(
            rows.revision(fork, label=label), model_file=large, validity=Validity.TAINTED
        )
        said(
            rows,
            result,
            layout,
            weights=round(15_088.3 * MIB),
            cache=cache * MIB,
            recurrent=round(149.62 * MIB),
            compute=compute * MIB,
        )
