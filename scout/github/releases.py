"""What is new among a repository's releases and their files; drafts are no releases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from jobs.terminal import counted
from scout.fork_facts import is_bot
from scout.github.base import Happening, Repo
from scout.github.desk import Page
from scout.github.governor import Pace, Tier
from scout.github.latest import MOVING, is_finished, latest
from scout.github.lists import Item, Judged, Seen
from scout.github.texts import NAME_LENGTH, moment, number, part, plain
from scout.ref_news import AUTO_BUILD

NAME = "github_releases"
PACE = Pace({Tier.CHAIN: 5, Tier.WATCHED: 60})
REMEMBERED = 300
ASSETS_WATCHED = 40
"""Files of the newest so many releases are compared; older ones hardly ever change."""
MOST_ASSETS = 200
ASSETS_AWAITED = timedelta(hours=6)
"""CI that builds for many systems takes some hours; a release that has nothing then is left so."""
AUTHOR = ("author", "login")


def first_page(repo: Repo, _cursor: Mapping[str, Any]) -> Page:
    """The newest releases."""
    return Page(f"repositories/{repo.github_id}/releases", {"per_page": "30"})


def reached(cursor: Mapping[str, Any], items: Sequence[Item]) -> bool:
    """At the first look one page is enough; later one known release is."""
    known = set(cursor.get("ids", []))
    return not cursor or any(number(item.get("id")) in known for item in items)


def judge(seen: Seen) -> Judged:
    """Releases published since the first look, and files that were added, removed or replaced."""
    repo, cursor, now = seen.repo, seen.cursor, seen.now
    since = moment(cursor.get("since")) or now
    known = set(cursor.get("ids", []))
    files: dict[str, dict[str, str]] = dict(cursor.get("files", {}))
    news: list[Happening] = []
    read: dict[int, datetime] = {}
    for item in seen.items:
        release_id, published = number(item.get("id")), moment(item.get("published_at"))
        if release_id is None or published is None or item.get("draft") is True:
            continue
        if release_id in read:
            continue
        read[release_id] = published
        assets = _assets(item)
        now_files = {str(each["id"]): str(each["digest"]) for each in assets}
        before = files.get(str(release_id))
        files[str(release_id)] = now_files
        if not cursor:
            continue
        if release_id not in known and published > since:
            ships = any(files.values())
            found = _published(repo, item, release_id, published, assets, ships_files=ships)
            news.append(found)
        elif before is not None and before != now_files:
            news.append(_changed(repo, item, release_id, assets, before, now_files))
    newest = latest(seen.items) or cursor.get("latest", "")
    people = _of_a_person(seen.items) or cursor.get("human", "")
    ids = sorted({*known, *read}, reverse=True)[:REMEMBERED]
    kept = {key: files[key] for key in sorted(files, key=int, reverse=True)[:ASSETS_WATCHED]}
    news.sort(key=lambda each: each.happened_at or now)
    remembered = {"since": since.isoformat(), "ids": ids, "files": kept}
    remembered |= {"human": people, "latest": newest}
    return Judged(remembered, tuple(news))


def _of_a_person(items: Sequence[Item]) -> str:
    """The tag of the newest release that a person made, or that brings files; "" for none."""
    for item in items:
        tag, author = (plain(part(item, *path), NAME_LENGTH) for path in (("tag_name",), AUTHOR))
        automatic = AUTO_BUILD.fullmatch(tag) or is_bot(author)
        if tag and item.get("draft") is not True and (not automatic or _assets(item)):
            return tag
    return ""


def _assets(item: Item) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    listed = item.get("assets")
    for asset in listed if isinstance(listed, list) else []:
        asset_id = number(part(asset, "id"))
        if asset_id is not None and len(found) < MOST_ASSETS:
            found[asset_id] = {
                "id": asset_id,
                "name": plain(asset.get("name"), NAME_LENGTH),
                "size": number(asset.get("size")),
                "digest": plain(asset.get("digest"), NAME_LENGTH) or None,
            }
    return [found[key] for key in sorted(found)]


def _facts(item: Item, release_id: int, assets: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "release_id": release_id,
        "tag_name": plain(item.get("tag_name"), NAME_LENGTH),
        "target": plain(item.get("target_commitish"), NAME_LENGTH),
        "name": plain(item.get("name"), NAME_LENGTH),
        "author": plain(part(item, *AUTHOR), NAME_LENGTH) or None,
        "prerelease": item.get("prerelease") is True,
        "finished": is_finished(item),
        "assets": assets,
    }


def assets_awaited_until(published: datetime, *, count: int, ships_files: bool) -> datetime | None:
    """Until when a release without files is waited for before it is built from its source.

    None where there is nothing to wait for: it has files, or none of the others had any.
    """
    return None if count or not ships_files else published + ASSETS_AWAITED


def _published(
    repo: Repo,
    item: Item,
    release_id: int,
    published: datetime,
    assets: list[dict[str, Any]],
    *,
    ships_files: bool,
) -> Happening:
    facts = _facts(item, release_id, assets)
    count = counted(len(assets), "file") if assets else "no files yet"
    facts["published_at"] = published.isoformat()
    key, tag = f"gh:rel:{release_id}", facts["tag_name"]
    if MOVING.fullmatch(tag):
        title = f"{repo.full_name}: {tag}, a tag that moves, has a new release ({count})"
        return Happening("tag_moved", key, title, facts, published)
    until = assets_awaited_until(published, count=len(assets), ships_files=ships_files)
    facts["assets_awaited_until"] = until.isoformat() if until else None
    word = "pre-released" if facts["prerelease"] else "released"
    title = f"{repo.full_name} {word} {tag} ({count})"
    return Happening("release_published", key, title, facts, published)


def _changed(
    repo: Repo,
    item: Item,
    release_id: int,
    assets: list[dict[str, Any]],
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> Happening:
    added, removed = sorted(set(after) - set(before)), sorted(set(before) - set(after))
    changed = sorted(key for key in set(before) & set(after) if before[key] != after[key])
    text = "\n".join(f"{key} {after[key]}" for key in sorted(after))
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    facts = _facts(item, release_id, assets)
    facts |= {"added": added, "removed": removed, "replaced": changed}
    title = (
        f"files of {repo.full_name} {facts['tag_name']} changed: "
        f"{len(added)} added, {len(removed)} removed, {len(changed)} replaced"
    )
    return Happening("release_assets_changed", f"gh:relassets:{release_id}:{digest}", title, facts)
