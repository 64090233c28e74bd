"""Every kind of event; whoever makes one names it by this type, so that none is left out."""

from __future__ import annotations

from typing import Literal, get_args

EventKind = Literal[
    "release",
    "package_changed",
    "fork_pushed",
    "upstream_synced",
    "feature_absorbed",
    "fork_capability_changed",
    "branch_created",
    "branch_deleted",
    "branch_stale",
    "tag_created",
    "tag_moved",
    "refs_flood",
    "new_fork",
    "copy_found",
    "release_published",
    "release_assets_changed",
    "pr_opened",
    "pr_updated",
    "pr_merged",
    "issue_closed",
    "issue_reopened",
    "issue_moved",
    "repo_renamed",
    "repo_name_taken",
    "repo_archived",
    "repo_unarchived",
    "repo_returned",
    "repo_default_changed",
    "repo_gone",
    "repo_blocked",
    "source_degraded",
    "source_recovered",
]
KINDS: frozenset[str] = frozenset(get_args(EventKind))
