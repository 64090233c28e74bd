"""Watched repositories, found forks and linked issues as rows; some of them mean harm."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from support.rows import NOON, Rows, digest

from jobs.sightings import LinkedIssueRow, RepositoryRow, StandingRow
from jobs.tables import EngineRow

SCRIPT = "<script>alert(1)</script>"
HARM = f"{SCRIPT} \u202eoff the shelf\u202c \x1b[31mred \u05e9\u05dc\u05d5\u05dd {'long' * 40}"
CHAIN = ("upstream", "turboquant", "buun", "beellama")
KINDS = ("flags", "ggml_types", "cache_types", "spec_types", "archs")


def descent(engine: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """What `forkscout lineage --json` prints of one engine."""
    apart = {"ahead": 41, "behind": 14, "merge_base": digest("base")[:40]} if parent else None
    sync = {
        "commit": digest("base")[:40],
        "upstream_at": "2026-04-30 21:19:10+00:00",
        "brought_at": "2026-05-01 00:48:34+00:00",
        "brought_by": digest("merge")[:40],
        "method": "merge",
    }
    return {
        "engine": engine,
        "branch": "main",
        "head": digest(engine)[:40],
        "parent": parent,
        "from_upstream": apart,
        "from_parent": apart,
        "own_patches": 300 if parent else 0,
        "own_authors": 17 if parent else 0,
        "patches_beyond_parent": 38 if parent else 0,
        "backports": 26 if parent else 0,
        "last_sync": sync if parent else None,
        "stale_days": 187 if parent else None,
        "absorbed": [{"source": parent, "commits": 319, "patches": 262}] if parent else [],
    } | fields


def capability(**names: list[str]) -> dict[str, Any]:
    """What is understood: these names beyond both bases, nothing else; upstream says no archs."""
    beyond: dict[str, Any] = {
        kind: {"count": len(names.get(kind, ())), "names": names.get(kind, [])} for kind in KINDS
    }
    return {
        "understood": dict.fromkeys(KINDS, 39),
        "beyond_upstream": beyond | {"archs": None},
        "beyond_parent": beyond,
    }


def repository(rows: Rows, engine: EngineRow | None = None, **fields: Any) -> RepositoryRow:
    """A repository, of that engine or found beside the watched ones."""
    row = RepositoryRow(
        **{
            "full_name": engine.repo or engine.name if engine else "somebody/llama.cpp",
            "engine_id": engine.id if engine else None,
            "tier": 0 if engine else 3,
            "stars": 7,
            "pushed_at": NOON,
            "first_seen_at": NOON,
            "last_seen_at": NOON,
        }
        | fields
    )
    rows.session.add(row)
    rows.session.flush()
    return row


def standing(
    rows: Rows, place: RepositoryRow, engine: str, parent: str | None = None, **fields: Any
) -> StandingRow:
    """Where a repository stands, as it is kept after a look."""
    told = descent(engine, parent)
    row = StandingRow(
        **{
            "repository_id": place.id,
            "branch": told["branch"],
            "head": told["head"],
            "descent": told,
            "capability": capability(flags=["--tree-budget"], spec_types=["dflash"]),
            "chain": digest("chain"),
            "worked_out_at": NOON,
        }
        | fields
    )
    rows.session.add(row)
    rows.session.flush()
    return row


def watched(
    rows: Rows, name: str, parent: str | None = None, *, row: EngineRow | None = None, **fields: Any
) -> int:
    """An engine with its repository and standing; returns the repository's row id."""
    engine = row or rows.engine(name=name, parent=parent)
    place = repository(rows, engine, description=fields.pop("description", f"about {name}"))
    standing(rows, place, name, parent, **fields)
    return place.id or 0


def fill_forks(rows: Rows, beellama: EngineRow, evil: EngineRow) -> dict[str, int]:
    """The chain, a chain of forty, an unseen engine, harm, 230 other forks, linked issues."""
    ids = {"upstream": watched(rows, "upstream")}
    for above, name in pairwise(CHAIN):
        row = beellama if name == "beellama" else None
        ids[name] = watched(rows, name, above, row=row)
    ids["unseen"] = repository(rows, rows.engine(name="unseen", parent="nobody")).id or 0
    harm = capability(flags=[SCRIPT, *(f"--{'x' * 70}-{n}" for n in range(200))])
    ids["harm"] = watched(
        rows, evil.name, row=evil, description=HARM, branch=SCRIPT, capability=harm
    )
    long = "n" * 99 + "\u202e"
    ids["long"] = watched(rows, long, evil.name, branch=HARM)
    for number in range(40):
        parent = f"wide-{number // 2 if number > 12 else number - 1}" if number else None
        ids[f"wide-{number}"] = watched(rows, f"wide-{number}", parent)
    upstream = repository(rows, github_id=1, full_name="ggml-org/llama.cpp")
    for number in range(230):
        repository(
            rows,
            github_id=1000 + number,
            parent_github_id=upstream.github_id if number else 999,
            full_name=f"person-{number}/llama.cpp" if number else SCRIPT,
            description=HARM if number < 3 else "a fork",
            stars=230 - number,
            state="gone" if number == 1 else "known",
            archived=number == 2,
            pushed_at=NOON - timedelta(days=number) if number else None,
        )
    for number, kind in enumerate(("issue", "pull"), start=35):
        rows.session.add(
            LinkedIssueRow(
                full_name=beellama.repo,
                number=number,
                note=HARM,
                title=HARM,
                kind=kind,
                state="open",
                moved_at=NOON,
                created_at=NOON,
            )
        )
    rows.session.flush()
    return ids
