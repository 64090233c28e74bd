"""What is new between two looks at a repository of the hub, as events; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from jobs.gguf.facts import ModelFacts, Role
from scout.event_kinds import EventKind
from scout.github.base import Happening
from scout.hub.cards import DrafterConfig
from scout.hub.sets import (
    DRAFTER_NAME,
    Weights,
    is_card,
    is_projector,
    is_safetensors,
    is_weight,
)
from scout.hub.values import HubFile, Listed, Snapshot

GONE_AFTER_MISSES = 3
GONE_AFTER = timedelta(hours=24)
MOST_TOLD = 200
"""Files that one event names; what is more is counted."""
TARGET, DRAFTER, MMPROJ = "target", "drafter", "mmproj"
DRAFTING = (DRAFTER, Role.MTP_HEAD.value)


@dataclass(frozen=True)
class Changed:
    """How one file set differs from another."""

    added: tuple[HubFile, ...] = ()
    removed: tuple[HubFile, ...] = ()
    changed: tuple[HubFile, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Every path that is different now."""
        return frozenset(f.path for f in (*self.added, *self.removed, *self.changed))

    @property
    def is_card_only(self) -> bool:
        """Whether no file is different that a model is made of."""
        return all(is_card(path) for path in self.paths)


def difference(before: Mapping[str, str], files: Iterable[HubFile]) -> Changed:
    """What is different, given the content that each path had."""
    now = {file.path: file for file in files}
    return Changed(
        added=tuple(file for path, file in now.items() if path not in before),
        removed=tuple(
            HubFile(path, None, content if len(content) == 64 else "", content)
            for path, content in before.items()
            if path not in now
        ),
        changed=tuple(
            file for path, file in now.items() if before.get(path, file.content) != file.content
        ),
    )


def created(snapshot: Snapshot) -> Happening:
    """A repository that was not there when its place was first looked at."""
    listed = snapshot.listed
    return Happening(
        "hf_repo_created",
        f"hf:repo:{listed.hub_id}",
        f"{listed.full_name} was created",
        {
            **_about(listed),
            "author": listed.full_name.partition("/")[0],
            "created_at": _iso(listed.created_at),
            "tags": list(listed.tags[:50]),
            "base_models": list(listed.base_models),
            "gated": listed.gated or False,
        },
        listed.created_at,
    )


def files_changed(listed: Listed, old_sha: str, change: Changed) -> Happening:
    """Another commit; where only the card is different it is told as that, and asks for nothing."""
    key = f"hf:rev:{listed.hub_id}:{listed.sha}"
    if change.is_card_only:
        title = f"{listed.full_name} has a new model card"
        facts = {**_about(listed), "old_sha": old_sha, "paths": sorted(change.paths)[:MOST_TOLD]}
        return Happening("hf_card_changed", key, title, facts, listed.last_modified)
    lists = {"added": change.added, "removed": change.removed, "changed": change.changed}
    counts = ", ".join(f"{len(files)} {word}" for word, files in lists.items() if files)
    return Happening(
        "hf_files_changed",
        key,
        f"{listed.full_name}: files {counts}",
        {
            **_about(listed),
            "old_sha": old_sha,
            **{word: [_told(file) for file in files[:MOST_TOLD]] for word, files in lists.items()},
            "counts": {word: len(files) for word, files in lists.items()},
            "successors": successors(change)[:MOST_TOLD],
        },
        listed.last_modified,
    )


def successors(change: Changed) -> list[dict[str, Any]]:
    """For each weight that left its path: where its bytes are now, else what has its name now.

    A person decides; results of one are never joined to the other's.
    """
    told = []
    for gone in change.removed:
        if not is_weight(gone.path):
            continue
        same = sorted(file.path for file in change.added if file.content == gone.content)
        name = PurePosixPath(gone.path).name
        alike = sorted(f.path for f in change.added if PurePosixPath(f.path).name == name)
        if found := same or alike:
            told.append({"path": gone.path, "now": found[0], "same_bytes": bool(same)})
    return told


def state_changed(
    kind: EventKind, listed: Listed, field: str, *, old: object, new: object
) -> Happening:
    """Gated, moved, disabled or gone, or back from it."""
    said = {"hf_moved": f"{old} is called {new} now", "hf_gone": f"{listed.full_name} is gone"}
    title = said.get(kind, f"{listed.full_name}: {field} was {old or 'no'}, is {new or 'no'}")
    value = new if new not in ("", False, None) else "no"
    return Happening(
        kind,
        f"hf:state:{listed.hub_id}:{field}:{value}:{listed.sha}",
        title,
        {**_about(listed), "field": field, "old": old, "new": new},
    )


def is_gone(misses: int, since: datetime, now: datetime) -> bool:
    """Whether so many misses over that time mean gone; one never does."""
    return misses >= GONE_AFTER_MISSES and now - since >= GONE_AFTER


def model_facts(facts: ModelFacts, *, keys_read: bool) -> dict[str, Any]:
    """What a header says, as it is kept and told; all of it where every key was read."""
    return {
        "role": _role(facts),
        "arch": facts.architecture,
        "dialect": facts.dialect.value,
        "quant": facts.quantisation,
        "block_size": facts.dflash.block_size if facts.dflash else None,
        "target_layers": list(facts.dflash.target_layers or ()) if facts.dflash else None,
        "hidden": facts.embedding_length,
        "vocab_present": bool(facts.vocabulary_size or facts.tokenizer_model),
        "tensor_count": facts.tensor_count,
        "context_length": facts.context_length,
        "block_count": facts.block_count,
        "nextn_predict_layers": facts.nextn_predict_layers,
        "keys_read": keys_read,
        "notes": [note[:200] for note in facts.notes[:8]],
    }


def config_facts(config: DrafterConfig) -> dict[str, Any]:
    """What a config says of a drafter, in the same words."""
    said = asdict(config)
    return {
        "role": DRAFTER,
        "arch": said.pop("architecture"),
        **said,
        "target_layers": list(config.target_layers or ()),
        "quant": "",
        "vocab_present": None,
        "tensor_count": None,
    }


def guessed_role(path: str) -> str:
    """What a name alone claims; for files whose header could not be read."""
    if is_projector(path):
        return MMPROJ
    return DRAFTER if DRAFTER_NAME.search(path) or is_safetensors(path) else TARGET


def published(
    listed: Listed,
    weights: Weights,
    facts: Mapping[str, Any],
    *,
    roles: Collection[str],
    refs: Iterable[str],
    unread: str = "",
) -> Happening | None:
    """The event of a model that is there now; None for one of a role that nobody asked for."""
    role = facts["role"]
    has_heads = bool(facts.get("nextn_predict_layers"))
    kind: EventKind
    if role in DRAFTING and DRAFTER in roles:
        kind, word, key = "drafter_published", "drafter", f"hf:drafter:{weights.identity}"
    elif role == TARGET and has_heads and {TARGET, DRAFTER} & set(roles):
        kind, word = "mtp_variant_published", "target with MTP heads"
        key = f"hf:target:{weights.identity}"
    elif role == TARGET and TARGET in roles:
        kind, word, key = "target_published", "target", f"hf:target:{weights.identity}"
    else:
        return None
    words = [facts.get("arch"), facts.get("dialect"), facts.get("quant")]
    what = ", ".join(dict.fromkeys(str(word) for word in words if word and word != "plain"))
    tail = f" ({what})" if what else f" (header not read: {unread})" if unread else ""
    return Happening(
        kind,
        key,
        f"{listed.full_name} published the {word} {weights.first.path}{tail}",
        {
            **_about(listed),
            **facts,
            "path": weights.first.path,
            "lfs_sha256": weights.first.sha256,
            "size": weights.size_bytes,
            "shards": [_told(file) for file in weights.files[:MOST_TOLD]]
            if len(weights.files) > 1
            else [],
            "base_models": list(listed.base_models),
            "min_engine_refs": list(refs),
            "unread": unread,
        },
        listed.last_modified,
    )


def _role(facts: ModelFacts) -> str:
    return facts.role.value


def _about(listed: Listed) -> dict[str, Any]:
    return {"hf_id": listed.hub_id, "repo_id": listed.full_name, "sha": listed.sha}


def _told(file: HubFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "size": file.size_bytes,
        "lfs_sha256": file.sha256,
        "xet_hash": file.xet_hash,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
