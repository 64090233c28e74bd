"""What is told of a fork that nobody builds: its work, its tags, its syncs; never a revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobs.git_network import BRANCH
from scout.candidate_values import Candidate
from scout.capability_news import capability_news
from scout.history import History
from scout.ref_news import ref_news
from scout.ref_values import Place, RefNews, View
from scout.yardsticks import Yardstick

PUSHED, SYNCED = "fork_pushed", "upstream_synced"
TOLD = (PUSHED, SYNCED, "tag_created", "tag_moved")
MOST_TOLD = 20
"""Events of one candidate at one look: there are thousands of candidates."""


def candidate_news(
    one: Candidate, seen: Mapping[str, str], yard: Yardstick, history: History, *, url: str
) -> list[RefNews]:
    """News since the refs that were known, the default branch first."""
    main = f"{BRANCH}{one.default_branch}"
    place = Place(
        one.full_name, one.repository, one.github_id, one.default_branch, frozenset({main})
    )
    view = View(yard.graph, history.changed_paths, yard.upstream)
    found = [each for each in ref_news(place, one.refs, seen, view) if each.kind in TOLD]
    synced = {each.facts["ref"] for each in found if each.kind == SYNCED}
    told: list[RefNews] = []
    for each in found[:MOST_TOLD]:
        if each.kind == PUSHED and not each.facts["new_patches"] and each.facts["ref"] in synced:
            continue  # the sync says it all
        told.append(each)
    changed = next((each for each in found if each.revision is not None), None)
    ability = capability_news(place, changed, history, url=url) if changed else None
    told += [ability] if ability else []
    return [replace(each, revision=None, replaces=None) for each in told]
