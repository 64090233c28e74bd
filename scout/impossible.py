"""What a watch list says well and cannot mean: duplicates, unknown parents, files that do not fit.

Pure; it knows no line of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.errors import did_you_mean
from jobs.git_names import is_pull
from scout.known import NOTHING, Known
from scout.model_reading import wrong_model
from scout.problem import Problem
from scout.rule_reading import wrong_rules
from scout.watch_words import HUB_FILE
from scout.watchlist import (
    INTENTS,
    EngineEntry,
    StackEntry,
    WatchList,
)
from scout.wrong_build import wrong_build
from scout.wrong_golden import wrong_golden
from scout.wrong_scenario import wrong_asking, wrong_scenarios

CONTEXT_TOKENS = range(256, 2_097_153)
NO_PARENT = "no other engine is watched: add that one first, or leave parent out"


@dataclass(frozen=True)
class Beside:
    """What is there beside the sound entries of a file: what is known here already, and the names
    of entries that are wrong in another way."""

    known: Known = NOTHING
    engines: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    stacks: frozenset[str] = frozenset()


def impossible(watch: WatchList, beside: Beside) -> Iterator[Problem]:
    """Everything in these entries that cannot be meant, each with what would be right."""
    named: dict[str, list[str]] = {
        "engine": [entry.name for entry in watch.engines],
        "model": [entry.name for entry in watch.models],
        "stack": [entry.name for entry in watch.stacks],
    }
    for at, place in _seconds([entry.watch for entry in watch.hub_watches]):
        yield Problem(("models", at, "watch"), f"a second {place!r}", "name all roles in one entry")
    for table, names in named.items():
        for at, name in _seconds(names):
            yield Problem((table, at, "name"), f"a second {table} {name!r}", "choose another name")
    known = beside.known
    parents = {**dict.fromkeys(beside.engines), **known.parents}
    parents |= {entry.name: entry.parent for entry in watch.engines}
    for at, engine in enumerate(watch.engines):
        yield from _wrong_engine(parents, at, engine)
    for at, model in enumerate(watch.models):
        yield from wrong_model(("model", at), model)
    engines = {engine.name for engine in watch.engines} | beside.engines | known.parents.keys()
    models = {**known.models, **dict.fromkeys(beside.models, "")}
    models |= {each.name: each.role for each in watch.models}
    for at, stack in enumerate(watch.stacks):
        yield from _wrong_stack(engines, models, at, stack)
        yield from wrong_asking(watch, at, stack)
    for at, golden in enumerate(watch.goldens):
        yield from wrong_golden(watch, at, golden, beside.stacks, known)
    yield from wrong_scenarios(watch)
    yield from wrong_rules(watch, known, engines=engines, stacks=beside.stacks)


def _seconds(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Every name that stands before it too, with its place."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            yield at, name
        seen.add(name)


def _wrong_engine(
    parents: Mapping[str, str | None], at: int, engine: EngineEntry
) -> Iterator[Problem]:
    here = ("engine", at)
    if (engine.repo is None) == (engine.package is None):
        yield Problem(
            (*here, "package" if engine.package else "name"),
            f"engine {engine.name!r} needs either a repo or a package",
            'write repo = "owner/name" or package = "name"',
        )
        return
    if engine.package is None and (engine.family == "xllamacpp" or engine.trust == "package"):
        word = "family" if engine.family == "xllamacpp" else "trust"
        yield Problem(
            (*here, word),
            f"{word} {getattr(engine, word)!r} is for packages, {engine.name!r} has a repo",
            'write package = "name" instead of repo',
        )
    if engine.package is not None and engine.family != "xllamacpp":
        yield Problem(
            (*here, "family"),
            f"family {engine.family!r} is built from a repo, {engine.name!r} has a package",
            'write repo = "owner/name" instead of package',
        )
    for number, build in enumerate(engine.builds):
        yield from wrong_build((*here, "build", number), engine.name, build)
    if engine.package is not None and engine.branches:
        yield Problem((*here, "branches"), "a package has no branches", "leave branches out")
    if len({is_pull(branch) for branch in engine.branches}) > 1:
        yield Problem(
            (*here, "branches"),
            f"{engine.name!r} watches both branches and pull requests",
            "write two engines: pull/NUMBER means the head of a pull request",
        )
    if engine.parent is not None:
        yield from _wrong_parent(parents, at, engine)
    rigs: set[str] = set()
    for number, build in enumerate(engine.builds):
        place = (*here, "build", number)
        if build.rig in rigs:
            yield Problem(
                (*place, "rig"),
                f"a second build of {engine.name!r} for rig {build.rig!r}",
                "keep one of them",
            )
        rigs.add(build.rig)
        if (build.via == "wheel") != (engine.package is not None):
            source = "package" if engine.package else "repo"
            ways = "wheel" if engine.package else "cmake, docker or asset"
            yield Problem(
                (*place, "via"), f"a {source} cannot be built via {build.via!r}", f"use {ways}"
            )


def _wrong_parent(
    parents: Mapping[str, str | None], at: int, engine: EngineEntry
) -> Iterator[Problem]:
    place = ("engine", at, "parent")
    if engine.parent not in parents:
        yield Problem(
            place,
            f"unknown engine {engine.parent!r}",
            did_you_mean(str(engine.parent), parents.keys() - {engine.name}, none=NO_PARENT),
        )
        return
    seen, above = {engine.name}, parents[engine.name]
    while above is not None and above not in seen:
        seen.add(above)
        above = parents.get(above)
    if above == engine.name:
        yield Problem(
            place, f"engine {engine.name!r} is its own ancestor", "leave out one of the parents"
        )


def _wrong_stack(
    engines: Collection[str], models: Mapping[str, str], at: int, stack: StackEntry
) -> Iterator[Problem]:
    """`models` are names with their roles; an empty role is not known."""
    here = ("stack", at)
    if stack.engine not in engines:
        yield Problem(
            (*here, "engine"),
            f"unknown engine {stack.engine!r}",
            did_you_mean(stack.engine, engines, none="add an [[engine]] of that name"),
        )
    for role in ("target", "drafter", "mmproj"):
        name = getattr(stack, role)
        if name is None:
            continue
        if name in models and models[name] not in ("", role):
            yield Problem(
                (*here, role), f"{name!r} is a {models[name]}, not a {role}", "swap the files"
            )
        elif name not in models and not HUB_FILE.fullmatch(name):
            advice = did_you_mean(name, models, none="add a [[model]] of that name")
            yield Problem((*here, role), f"unknown model {name!r}", advice)
    for key, value in stack.intent.items():
        place = (*here, "intent", key)
        if key not in INTENTS:
            yield Problem(place, f"unknown intent {key[:80]!r}", did_you_mean(key, INTENTS))
        elif key in ("context", "batch", "ubatch") and not isinstance(value, int):
            says = f"{key} is a number of tokens, not {value!r}"
            yield Problem(place, says, f"write {key} = 4096, without quotes")
        elif key == "context" and value not in CONTEXT_TOKENS:
            says = f"context {value} is not between 256 and 2097152 tokens"
            yield Problem(place, says, "choose a number in between")
        elif key in ("batch", "ubatch") and isinstance(value, int) and not 1 <= value <= 65536:
            says = f"{key} {value} is not between 1 and 65536 tokens"
            yield Problem(place, says, "choose a number in between")
