"""What a reader needs to measure the same again: commands, settings and facts as text; pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.store.shown import ResultDetail

LONGEST_FACT = 20_000  # characters; a server may send a chat template of any length
_BARE = re.compile(r"(?:<[a-z_-]+>)?[\w@%+=:,./-]*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Block:
    """A piece of text to copy."""

    title: str
    text: str


@dataclass(frozen=True)
class Setting:
    """A setting as asked, and the different values the boots' servers admitted to."""

    name: str
    asked: str
    ran: tuple[str, ...]
    differs: bool


def command_line(argv: Sequence[Any]) -> str:
    """The words as one shell line; placeholders such as `<model>/x` stay as they are."""
    return " ".join(_quoted(str(word)) for word in argv)


def blocks(detail: ResultDetail) -> tuple[Block, ...]:
    """Everything the stored command says, in the order in which it is done."""
    command = detail.command
    found = []
    if command.get("forkscout"):
        found.append(Block("With forkscout", _line(command["forkscout"])))
    digests = [
        f"{name.removesuffix('_sha256')}: sha256 {command[name]}"
        for name in ("artifact_sha256", "weights_sha256")
        if command.get(name)
    ]
    if digests:
        found.append(Block("Digests", "\n".join(digests)))
    if command.get("source"):
        found.append(Block("Source", _line(command["source"])))
    steps = command.get("build")
    if isinstance(steps, Sequence) and not isinstance(steps, str) and steps:
        found.append(Block("Build", "\n".join(_line(step) for step in steps)))
    if command.get("server"):
        environment = command.get("env")
        prefix = _environment(environment) if isinstance(environment, Mapping) else ""
        found.append(Block("Server", prefix + _line(command["server"])))
    if command.get("request"):
        found.append(Block("Request of each run", _json(command["request"])))
    return tuple(found)


def settings(detail: ResultDetail) -> tuple[Setting, ...]:
    """What was asked beside what ran; a setting the server does not name is "not said"."""
    intent = detail.asked.get("intent")
    asked = {
        "context_tokens": detail.entry.group.context_tokens,
        "slots": 1,
        **(intent if isinstance(intent, Mapping) else {}),
    }
    ran = [name for boot in detail.boots for name in boot.effective]
    return tuple(
        _setting(name, asked.get(name), [boot.effective.get(name) for boot in detail.boots])
        for name in dict.fromkeys([*asked, *ran])
        if name != "context"
    )


def facts(detail: ResultDetail) -> tuple[Block, ...]:
    """The stored facts of machine, build and model as text."""
    named = (
        ("Rig", detail.rig_facts),
        ("Environment of the result", detail.environment),
        ("Provenance of the build", detail.build.provenance),
        ("Source of the model file", detail.model_source),
        ("The job as it was asked for", detail.asked),
        *(
            (
                f"Boot {boot.number}: log, environment, /props and /slots",
                {
                    "log": boot.facts,
                    "environment": boot.environment,
                    "props": boot.props,
                    "slots": boot.slots,
                },
            )
            for boot in detail.boots
        ),
    )
    return tuple(Block(title, _json(value)) for title, value in named if value)


def _setting(name: str, wanted: Any, ran: Sequence[Any]) -> Setting:
    said = tuple("not said" if value is None else _word(value) for value in ran)
    known = [value for value in ran if value is not None]
    return Setting(
        name=name.replace("_", " "),
        asked="not asked" if wanted is None else _word(wanted),
        ran=tuple(dict.fromkeys(said)),
        differs=wanted is not None and any(_word(value) != _word(wanted) for value in known),
    )


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _line(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return command_line(value)
    return str(value)


def _environment(values: Mapping[str, Any]) -> str:
    return "".join(
        f"{name}={_quoted(str(value))} "
        for name, value in values.items()
        if _VARIABLE.fullmatch(str(name))
    )


def _quoted(word: str) -> str:
    return word if word and _BARE.fullmatch(word) else shlex.quote(word)


def _json(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    if len(text) <= LONGEST_FACT:
        return text
    return f"{text[:LONGEST_FACT]}\n… {len(text) - LONGEST_FACT} characters more are stored"
