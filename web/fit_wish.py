"""The wish that an address or a form names, checked word by word; what is odd gets one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial

from sqlmodel import Session

from jobs.errors import UsageError, did_you_mean
from jobs.fit.amounts import parse_amount
from jobs.fit.formats import asked_types
from jobs.fit.setup import Card, Setup
from jobs.known_engines import ANY_ENGINE, EngineState, state_named
from jobs.store import known_models, memories
from jobs.terminal import printable

Asked = Sequence[tuple[str, str]]

LONGEST_VALUE = 200
MOST_WORDS = 40
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True)
class Wish:
    """The words as they were given, empty where they were not; `raw` is empty or `1`."""

    target: str = ""
    drafter: str = ""
    mmproj: str = ""
    engine: str = ""
    gpu: str = "24GiB"
    kv: str = "f16"
    context: str = "32768"
    batch: str = "2048"
    ubatch: str = "512"
    parallel: str = "1"
    draft_context: str = ""
    cross_context: str = ""
    reserve: str = ""
    held: str = ""
    cuda_context: str = ""
    raw: str = ""


NAMES = tuple(each.name for each in fields(Wish))


def wish_in(asked: Asked) -> Wish:
    """The wish of a query; raises UsageError for a word that is unknown, double or too long."""
    if len(asked) > MOST_WORDS:
        raise UsageError("more is asked than there are questions", advice="Use the form.")
    given: dict[str, str] = {}
    for name, value in asked:
        if name not in NAMES:
            raise UsageError(
                f"there is no parameter {_shown(name)}", advice=did_you_mean(name[:80], NAMES)
            )
        if name in given:
            raise UsageError(f"the parameter {name} is there twice", advice="Give it once.")
        if len(value) > LONGEST_VALUE:
            raise UsageError(
                f"the parameter {name} is {len(value)} characters long",
                advice=f"Up to {LONGEST_VALUE} are read.",
            )
        if value != printable(value):
            raise UsageError(
                f"the parameter {name} holds signs that nobody sees", advice="Type it again."
            )
        given[name] = value.strip()
    if given.get("raw", "") not in ("", "1"):
        raise UsageError(
            "raw is either 1 or not there", advice="Leave it out for what boots taught."
        )
    return Wish(**{name: value for name, value in given.items() if value})


def setup_of(wish: Wish, session: Session) -> Setup:
    """The wish with its files looked up; raises UsageError for anything that cannot be meant."""
    if not wish.target:
        raise UsageError("no target is named", advice="Choose one of the known models.")
    types = asked_types(wish.kv)
    shape = partial(known_models.shape_named, session)
    drafter = shape(wish.drafter, what="drafter") if wish.drafter else None
    mmproj = shape(wish.mmproj, what="projector") if wish.mmproj else None
    return Setup(
        target=shape(wish.target, what="target"),
        card=_card(wish),
        context=_number(wish.context, "context"),
        state=_state(wish.engine, types, session),
        key=types[0],
        value=types[1],
        batch=_number(wish.batch, "batch"),
        ubatch=_number(wish.ubatch, "ubatch"),
        sequences=_number(wish.parallel, "parallel"),
        drafter=drafter,
        drafter_context=_number_or_none(wish.draft_context, "draft_context"),
        cross_context=_number_or_none(wish.cross_context, "cross_context"),
        projector=mmproj,
    )


def _card(wish: Wish) -> Card:
    return Card(
        total_bytes=parse_amount(wish.gpu, what="gpu"),
        reserve_bytes=parse_amount(wish.reserve, what="reserve") if wish.reserve else None,
        foreign_bytes=parse_amount(wish.held, what="held") if wish.held else 0,
        context_bytes=(
            parse_amount(wish.cuda_context, what="cuda_context") if wish.cuda_context else None
        ),
    )


def _state(engine: str, types: tuple[str, str], session: Session) -> EngineState:
    if not engine:
        return ANY_ENGINE
    try:
        return state_named(engine, cache_types=types)
    except UsageError:
        watched = memories.watched_state(session, engine)
        if watched is None:
            raise
        return watched.state


def _number(text: str, name: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise UsageError(
            f"{name} {_shown(text)} is no whole number of tokens",
            advice="Write it in plain digits, as 32768.",
        )
    return int(text)


def _number_or_none(text: str, name: str) -> int | None:
    return _number(text, name) if text else None


def _shown(text: str) -> str:
    return repr(printable(text)[:40])
