"""What a `[[golden]]` says that cannot be true; it may name a stack that is known here already."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jobs.errors import did_you_mean
from scout.known import Known
from scout.problem import Problem
from scout.watchlist import GoldenEntry, WatchList


def wrong_golden(
    watch: WatchList, at: int, golden: GoldenEntry, beside: Collection[str], known: Known
) -> Iterator[Problem]:
    """An unknown stack, a second golden, a rig that it is not built for, a band upside down.

    `beside` are names of stacks that are wrong in another way.
    """
    here = ("golden", at)
    stacks = {**known.stacks, **{stack.name: stack.engine for stack in watch.stacks}}
    if golden.rig in [each.rig for each in watch.goldens[:at]]:
        yield Problem((*here, "rig"), f"a second golden of rig {golden.rig!r}", "keep one of them")
    if golden.stack in beside and golden.stack not in stacks:
        return
    if golden.stack not in stacks:
        advice = did_you_mean(golden.stack, stacks, none="add a [[stack]] of that name")
        yield Problem((*here, "stack"), f"unknown stack {golden.stack!r}", advice)
        return
    name = stacks[golden.stack]
    listed = {each.name: {build.rig for build in each.builds} for each in watch.engines}
    built = listed.get(name, known.built.get(name, frozenset()))
    if golden.rig not in built and (name in listed or name in known.built):
        advice = did_you_mean(golden.rig, built, none=f"give {name} an [[engine.build]] for it")
        yield Problem((*here, "rig"), f"{name} is not built for rig {golden.rig!r}", advice)
    if golden.decode_tps and golden.decode_tps[0] > golden.decode_tps[1]:
        low, high = golden.decode_tps
        yield Problem(
            (*here, "decode_tps"),
            f"the band ends below its start ({low:g}, {high:g})",
            "write decode_tps = [LOW, HIGH]",
        )
