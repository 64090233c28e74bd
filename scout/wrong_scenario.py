"""Which `[[scenario]]` of a list cannot be meant, and which stack cannot be asked one; pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.errors import did_you_mean
from jobs.own_scenarios import MOST_SCENARIOS, faults
from jobs.scenarios import SHIPPED
from scout.problem import Problem
from scout.watchlist import StackEntry, WatchList


def wrong_scenarios(watch: WatchList) -> Iterator[Problem]:
    """Every wrong word of each, a name that comes twice."""
    seen: set[str] = set()
    for at, table in enumerate(watch.scenarios[:MOST_SCENARIOS]):
        here = ("scenario", at)
        for fault in faults(table):
            yield Problem((*here, fault.key), fault.says, fault.advice)
        name = str(table.get("name"))
        if name in seen:
            yield Problem((*here, "name"), f"a second scenario {name[:80]!r}", "keep one of them")
        seen.add(name)
    if len(watch.scenarios) > MOST_SCENARIOS:
        says = f"more than {MOST_SCENARIOS} scenarios"
        yield Problem(("scenario", MOST_SCENARIOS), says, "split the list: several add up")


def wrong_asking(watch: WatchList, at: int, stack: StackEntry) -> Iterator[Problem]:
    """Names nobody knows, and pictures for a stack that sees none."""
    own = watch.own_scenarios
    known = [*SHIPPED, *own]
    for number, name in enumerate(stack.scenarios):
        place = ("stack", at, "scenarios", number)
        if name not in known:
            says = f"unknown scenario {name[:80]!r}"
            yield Problem(place, says, did_you_mean(name, known, listed_by="forkscout scenarios"))
            continue
        shipped = SHIPPED.get(name)
        shows = shipped.picture if shipped else own.get(name, {}).get("picture")
        if shows and stack.mmproj is None:
            says = f"scenario {name} shows a picture and the stack has no mmproj"
            yield Problem(place, says, "add mmproj = ..., with intent vision = 'on'")
