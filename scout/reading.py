"""Reads a watch list whole or not at all: the first wrong word is named with file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from jobs.errors import UsageError, did_you_mean
from jobs.git_names import is_pull
from jobs.scenarios import SCENARIOS
from scout.model_reading import wrong_model
from scout.problem import Problem
from scout.toml_lines import line_of
from scout.watchlist import (
    HUB_FILE,
    INTENTS,
    LATER_SCENARIOS,
    BuildEntry,
    EngineEntry,
    GoldenEntry,
    HubWatchEntry,
    ModelEntry,
    StackEntry,
    WatchList,
)
from scout.wrong_golden import wrong_golden

SHIPPED = Path(__file__).parent / "watchlists"
SIZE_LIMIT_BYTES = 1024 * 1024
CONTEXT_TOKENS = range(256, 2_097_153)
MOST_TOLD = 20
SEE_GUIDE = "docs/watchlist.md says what each key takes"
NO_PARENT = "no other engine is watched: add that one first, or leave parent out"

_TABLES: dict[tuple[str, ...], type[BaseModel]] = {
    (): WatchList,
    ("engine",): EngineEntry,
    ("engine", "build"): BuildEntry,
    ("model",): ModelEntry,
    ("models",): HubWatchEntry,
    ("stack",): StackEntry,
    ("golden",): GoldenEntry,
}


def shipped(name: str) -> Path:
    """A watch list that comes with forkscout."""
    return SHIPPED / f"{name}.toml"


def load(path: Path) -> WatchList:
    """The watch list in a file; a bare word such as `demo` names a shipped one."""
    bare = path.name == str(path)
    if bare and (path.is_dir() or not path.exists()) and shipped(path.name).exists():
        path = shipped(path.name)
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
        if len(content) > SIZE_LIMIT_BYTES:
            raise UsageError(
                f"{path} is no watch list: it is larger than 1 MiB",
                advice="split it: several lists add up",
            )
        text = content.decode("utf-8")
    except OSError as error:
        names = [found.stem for found in SHIPPED.glob("*.toml")]
        raise UsageError(
            f"the watch list {path} cannot be read: {error.strerror}",
            advice=_nearest_list(path, names),
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is no watch list: not UTF-8 text", advice="save it as UTF-8"
        ) from error
    return parse(text, str(path))


def parse(text: str, name: str) -> WatchList:
    """The watch list in `text`; `name` stands in the message of what is wrong."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _syntax(text, name, error) from error
    try:
        watch_list = WatchList.model_validate(data)
        problems = list(_impossible(watch_list))
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors()]
    if not problems:
        return watch_list
    placed = sorted(((line_of(text, p.path), p) for p in problems), key=lambda pair: pair[0])
    line, first = placed[0]
    others = {number: problem for number, problem in reversed(placed) if number != line}
    more = f" (and {len(others)} more)" if others else ""
    told = [f"{name}, line {line}: {first.says}{more}"]
    shown = sorted(others.items())[: MOST_TOLD - 1]
    told += [f"  line {at}: {each.says}; {each.advice or SEE_GUIDE}" for at, each in shown]
    raise UsageError("\n".join(told), advice=first.advice or SEE_GUIDE)


def _nearest_list(path: Path, names: Sequence[str]) -> str:
    shipped_ones = f"shipped lists are {', '.join(sorted(names))}"
    if path.name != str(path):
        return f"check the path; {shipped_ones}"
    near = did_you_mean(path.name, names)
    return f"{near} {shipped_ones}" if near.startswith("did you") else shipped_ones


def _syntax(text: str, name: str, error: Exception) -> UsageError:
    says = "tables are nested too deep" if isinstance(error, RecursionError) else str(error)
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", says)
    line = (found and found[1]) or (text.count("\n") + 1 if found else 1)
    says = says[: found.start()] if found else says
    return UsageError(
        f"{name}, line {line}: not TOML: {says}", advice="quote texts, and close what is open"
    )


def _problem(detail: ErrorDetails) -> Problem:
    loc = detail["loc"]
    tables = tuple(step for step in loc[:-1] if isinstance(step, str))
    key = str(loc[-1]) if loc else "file"
    if detail["type"] == "extra_forbidden":
        fields = _TABLES[tables].model_fields
        words = [field.alias or name for name, field in fields.items()]
        return Problem(loc, f"unknown key {key[:80]!r}", did_you_mean(key, words))
    if detail["type"] == "missing":
        return Problem(loc, f"{key!r} is missing", f"add {key} = ...")
    if detail["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        given = str(detail["input"])[:80]
        return Problem(loc, f"{_where(loc)} cannot be {given!r}", did_you_mean(given, words))
    says = str(detail["ctx"]["error"]) if detail["type"] == "value_error" else detail["msg"]
    advice = getattr(detail.get("ctx", {}).get("error"), "advice", "")
    return Problem(loc, f"{_where(loc)}: {says[:1].lower()}{says[1:]}", advice)


def _where(loc: Sequence[str | int]) -> str:
    words = [str(step) for step in loc if isinstance(step, str) and step.isidentifier()]
    return ".".join(words) or "the file"


def _impossible(watch: WatchList) -> Iterator[Problem]:
    named: dict[str, list[str]] = {
        "engine": [entry.name for entry in watch.engines],
        "model": [entry.name for entry in watch.models],
        "stack": [entry.name for entry in watch.stacks],
    }
    places = [entry.watch for entry in watch.hub_watches]
    for at, place in enumerate(places):
        if place in places[:at]:
            yield Problem(
                ("models", at, "watch"), f"a second {place!r}", "name all roles in one entry"
            )
    for table, names in named.items():
        for at, name in enumerate(names):
            if name in names[:at]:
                yield Problem(
                    (table, at, "name"), f"a second {table} {name!r}", "choose another name"
                )
    for at, engine in enumerate(watch.engines):
        yield from _wrong_engine(watch, at, engine)
    for at, model in enumerate(watch.models):
        yield from wrong_model(("model", at), model)
    for at, stack in enumerate(watch.stacks):
        yield from _wrong_stack(watch, at, stack)
    for at, golden in enumerate(watch.goldens):
        yield from wrong_golden(watch, at, golden)


def _wrong_engine(watch: WatchList, at: int, engine: EngineEntry) -> Iterator[Problem]:
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
    if engine.package is not None and engine.branches:
        yield Problem((*here, "branches"), "a package has no branches", "leave branches out")
    if len({is_pull(branch) for branch in engine.branches}) > 1:
        yield Problem(
            (*here, "branches"),
            f"{engine.name!r} watches both branches and pull requests",
            "write two engines: pull/NUMBER means the head of a pull request",
        )
    if engine.parent is not None:
        yield from _wrong_parent(watch, at, engine)
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


def _wrong_parent(watch: WatchList, at: int, engine: EngineEntry) -> Iterator[Problem]:
    parents = {entry.name: entry.parent for entry in watch.engines}
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


def _wrong_stack(watch: WatchList, at: int, stack: StackEntry) -> Iterator[Problem]:
    here = ("stack", at)
    engines = [engine.name for engine in watch.engines]
    if stack.engine not in engines:
        yield Problem(
            (*here, "engine"),
            f"unknown engine {stack.engine!r}",
            did_you_mean(stack.engine, engines, none="add an [[engine]] of that name"),
        )
    models = {model.name: model for model in watch.models}
    for role in ("target", "drafter", "mmproj"):
        name = getattr(stack, role)
        if name is None:
            continue
        if name in models and models[name].role != role:
            yield Problem(
                (*here, role), f"{name!r} is a {models[name].role}, not a {role}", "swap the files"
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
    scenarios = [*SCENARIOS, *LATER_SCENARIOS]
    for number, scenario in enumerate(stack.scenarios):
        if scenario not in scenarios:
            yield Problem(
                (*here, "scenarios", number),
                f"unknown scenario {scenario[:80]!r}",
                did_you_mean(scenario, scenarios),
            )
