"""Answers wishes from the database, for the page and the API; keeps nothing and reads no file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlmodel import Session

from jobs.fit.lessons import Lesson, lessons
from jobs.fit_answers import FitAnswer, answer, as_json
from jobs.store import catalog, known_models, memories, weight_standings, weights
from jobs.store.weight_standings import ABSENT
from web import fit_pages, plain
from web.fit_wish import Asked, Wish, setup_of, wish_in
from web.pages import Page


def page(session: Session, asked: Asked | None) -> Page:
    """The page; a form and its answer only where a live request asks."""
    wish = wish_in(asked) if asked is not None else None
    heard = memories.heard(session)
    known = lessons(heard.boots)
    given = _answer(wish, session, known) if wish and asked else None
    return fit_pages.fit(
        known_models.known_models(session),
        [row.name for row in catalog.engines(session)],
        heard,
        known=known,
        wish=wish,
        given=given,
        stands=weight_standings.standings(session),
    )


def fit_json(session: Session, asked: Asked, clean: Callable[[str], str]) -> Any:
    """The answer of a wish for programs; raises UsageError for one that cannot be meant."""
    given = _answer(wish_in(asked), session, lessons(memories.heard(session).boots))
    return plain.plain(as_json(given), clean)


def models_json(session: Session, clean: Callable[[str], str]) -> Any:
    """Known model files; the shape stays with us, its facts go out."""
    held = weights.held_anywhere(session)
    stands = weight_standings.standings(session)
    return [
        {
            "name": clean(model.name),
            "also": [clean(name) for name in model.also],
            "role": clean(model.role),
            "model_class": clean(model.model_class),
            "quantisation": clean(model.quantisation),
            "sha256": model.sha256,
            "size_bytes": model.size_bytes,
            "present": model.sha256 in held,
            "weights": plain.plain(stands.get(model.id or 0, ABSENT), clean),
            "can_be_judged": model.shape is not None,
            "fault": clean(model.fault),
            "facts": plain.plain(_core(model.facts or {}), clean),
            "header": plain.plain(
                model.facts if "architecture" in (model.facts or {}) else None, clean
            ),
        }
        for model in known_models.known_models(session)
    ]


def _core(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of every model in the same words, wherever its header was read.

    Of a place of the hub the first 64 KiB are read, and kept in the words of its events.
    """
    block = facts.get("dflash") or facts
    return {
        "architecture": facts.get("architecture", facts.get("arch")),
        "dialect": facts.get("dialect"),
        "context_length": facts.get("context_length"),
        "block_count": facts.get("block_count"),
        "embedding_length": facts.get("embedding_length", facts.get("hidden")),
        "tensor_count": facts.get("tensor_count"),
        "nextn_predict_layers": facts.get("nextn_predict_layers"),
        "block_size": block.get("block_size"),
        "target_layers": list(block.get("target_layers") or ()),
        "notes": list(facts.get("notes") or ()),
    }


def _answer(wish: Wish, session: Session, known: tuple[Lesson, ...]) -> FitAnswer:
    return answer(setup_of(wish, session), None if wish.raw else known)
