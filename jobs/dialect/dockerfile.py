"""What a Dockerfile starts from and would fetch, read before an engine sees it; it runs nothing.

Read as the builder inside the engine reads it, and refused where the two might differ.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

MOST_BYTES = 1 << 20
MOST_NAME = 120
TAKEN = frozenset(
    [
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "HEALTHCHECK",
        "LABEL",
        "MAINTAINER",
        "RUN",
        "SHELL",
        "STOPSIGNAL",
        "USER",
        "VOLUME",
        "WORKDIR",
    ]
)
"""`ADD` fetches addresses, `ONBUILD` hides a line until later; no other instruction is known."""

NOTHING = "scratch"
_BLANK = re.compile(r"[\t\v\f\r ]+")
_CONTINUED = re.compile(r"\\[ \t]*$")
_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^${}]*))?\}|(\w+))", re.ASCII)
_ASSIGNED = re.compile(r"(\w+)(?:=(\"[^\"$\\]*\"|'[^'\\]*'|[^\s\"'\\]*))?", re.ASCII)


def refusal(text: str, *, arguments: Mapping[str, str], images: Collection[str]) -> str:
    """Why this file is not built; empty where it fetches nothing and starts from `images` alone."""
    known = dict(arguments)
    stages: list[str | None] = []
    if any(_ESCAPE.match(line.strip()) for line in text.split("\n")):
        return "it changes the sign that continues a line"
    for word, rest in _instructions(text):
        if word not in TAKEN:
            return f"{word[:20]!r} is no instruction that a build without network may have"
        if word == "ARG" and not stages:
            known |= {key: value for key, value in _defaults(rest).items() if key not in arguments}
        if word == "FROM":
            image, name = _from(rest)
            wanted = _expanded(image, known)
            if not (wanted in images or wanted == NOTHING or wanted.lower() in stages):
                return f"it starts from {wanted[:MOST_NAME]!r}, which no pin names by its digest"
            stages.append(name.lower() or None)
        if word == "COPY":
            for source in _copied_from(rest):
                number = source.isdecimal() and int(source) < len(stages)
                if not (number or source.lower() in stages or source in images):
                    return f"it copies from {source[:MOST_NAME]!r}, which is no stage of its own"
    return "" if stages else "it starts from nothing"


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction in upper case with the rest of its line, continued lines joined."""
    held = ""
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.rstrip("\r")
        if not line.strip() or line.strip().startswith("#"):
            continue
        joined = _CONTINUED.sub("", line)
        held += joined
        if joined == line:
            yield _split(held)
            held = ""
    if held.strip():
        yield _split(held)


def _split(line: str) -> tuple[str, str]:
    word, *rest = _BLANK.split(line.strip(), maxsplit=1)
    return word.upper(), rest[0] if rest else ""


def _defaults(rest: str) -> dict[str, str]:
    found = (_ASSIGNED.fullmatch(each) for each in _BLANK.split(rest.strip()))
    return {each[1]: (each[2] or "").strip("\"'") for each in found if each}


def _from(rest: str) -> tuple[str, str]:
    """The image and the name of the stage."""
    words = [word for word in _BLANK.split(rest.strip()) if not word.startswith("--")]
    named = len(words) == 3 and words[1].upper() == "AS"
    return (words[0] if words else ""), (words[2] if named else "")


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with its variables; what is not understood stays, and is no image then."""
    return _VARIABLE.sub(lambda m: known.get(m[1] or m[3]) or m[2] or "", text)


def _copied_from(rest: str) -> Iterator[str]:
    for word in _BLANK.split(rest.strip()):
        if not word.startswith("--"):
            return
        name, _, value = word.partition("=")
        if name.lower() == "--from":
            yield value
