"""What a rig measured, as its page tells it."""

from __future__ import annotations

from dataclasses import replace

from jobs.model import BootMemory, Layout, MemoryLines
from jobs.store.rig_boots import RigBoot, RigMeasured
from web.rig_pages import depth_figure, memory_rows, rig

MIB = 2**20
BOOT = RigBoot(
    result_id=7,
    engine="beellama",
    revision="v0.1.2",
    model="Qwen3.6-27B (twin)",
    drafter="",
    is_twin=True,
    validity="twin",
    scenario="ladder.v1@4096",
    allocated=262_144,
    filled=4096,
    layout=Layout(262_144, 2048, 2048, "turbo3", "turbo3"),
    memory=BootMemory(
        MemoryLines(weights=15_088 * MIB, cache=3200 * MIB, compute=3296 * MIB),
        process=23_358 * MIB,
    ),
    decode_tps=61.2,
    prefill_tps=2855.0,
)


def deeper(*steps: tuple[int, float]) -> list[RigBoot]:
    return [replace(BOOT, filled=filled, decode_tps=rate) for filled, rate in steps]


def test_a_line_needs_three_depths_of_one_layout() -> None:
    """Two depths, or another allocation, are no line."""
    two = deeper((4096, 61.0), (32_768, 40.9))
    assert depth_figure(two) is None
    other = replace(BOOT, filled=260_000, decode_tps=11.8, allocated=131_072)
    assert depth_figure([*two, other]) is None
    figure = depth_figure([*two, *deeper((260_000, 11.8))])
    assert figure is not None
    [line] = figure.lines
    assert [spot.filled for spot in line.spots] == [4096, 32_768, 260_000]
    assert [spot.x for spot in line.spots] == sorted(spot.x for spot in line.spots)
    assert [spot.y for spot in line.spots] == sorted(spot.y for spot in line.spots)
    assert "11.8 at 260,000" in figure.words


def test_a_speed_that_is_none_is_not_drawn() -> None:
    """Neither nothing, nor nought, nor what is no number."""
    odd = [
        replace(BOOT, filled=n, decode_tps=rate) for n, rate in enumerate((None, 0.0, float("nan")))
    ]
    assert depth_figure(odd) is None


def test_memory_is_told_once_for_each_layout() -> None:
    """Of the newest boot; a drafter's part is added; without the driver's word there is no row."""
    newer = replace(BOOT, result_id=8)
    pair = replace(
        BOOT,
        drafter="dflash",
        memory=replace(BOOT.memory, drafter=MemoryLines(weights=1620 * MIB)),  # type: ignore[type-var]
    )
    silent = replace(BOOT, model="silent", memory=BootMemory(MemoryLines()))
    alone, both = memory_rows([BOOT, newer, pair, silent])
    assert (alone.result_id, alone.weights, alone.recurrent) == (8, "15,088", "")
    assert (both.model, both.weights) == ("Qwen3.6-27B (twin) with dflash", "16,708")


def test_a_page_counts_what_is_of_random_weights() -> None:
    """One result with two boots is one."""
    found = RigMeasured(
        3, "h200", "gpu", ("NVIDIA H200",), 2, (BOOT, BOOT, replace(BOOT, is_twin=False))
    )
    page = rig(found)
    assert page.path == "rigs/3.html"
    assert page.values["twins"] == 1
