"""Rows of what sources saw of the outside world; storage only, like `jobs.tables`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from jobs.columns import json_or_nothing, json_value, large, moment


class RepositoryRow(SQLModel, table=True):
    """A repository of the fork network; its numeric id is its identity, its name a label."""

    __tablename__ = "repository"
    id: int | None = Field(default=None, primary_key=True)
    github_id: int | None = large(default=None, unique=True)
    full_name: str = Field(index=True)
    engine_id: int | None = Field(default=None, foreign_key="engine.id")
    parent_github_id: int | None = large(default=None, index=True)
    root_github_id: int | None = large(default=None)
    depth: int | None = None
    tier: int = 3
    default_branch: str | None = None
    description: str = ""
    stars: int = 0
    forks_count: int = 0
    archived: bool = False
    disabled: bool = False
    created_at: datetime | None = moment(default=None)
    pushed_at: datetime | None = moment(default=None)
    state: str = "known"
    misses: int = 0
    facts: dict[str, Any] = json_value()
    first_seen_at: datetime = moment()
    last_seen_at: datetime = moment()


class RefRow(SQLModel, table=True):
    """A branch or tag of a repository as git last showed it; `gone_at` once it was deleted."""

    __tablename__ = "ref"
    __table_args__ = (UniqueConstraint("repository_id", "name"),)
    id: int | None = Field(default=None, primary_key=True)
    repository_id: int = Field(foreign_key="repository.id", index=True)
    name: str
    oid: str
    first_seen_at: datetime = moment()
    changed_at: datetime = moment()
    gone_at: datetime | None = moment(default=None)


class StandingRow(SQLModel, table=True):
    """Where a repository's head stands in its network; worked out from git when it moved.

    `descent` is what `forkscout lineage --json` shows of it, `capability` the names it understands
    beyond its base, `git` what the ranking of forks knows of its patches. `chain` is a digest of
    the heads that `descent` and `capability` were worked out from; empty asks for them anew.
    """

    __tablename__ = "standing"
    repository_id: int = Field(primary_key=True, foreign_key="repository.id")
    branch: str
    head: str
    descent: dict[str, Any] = json_value()
    capability: dict[str, Any] = json_value()
    git: dict[str, Any] = json_value()
    chain: str = ""
    worked_out_at: datetime = moment()


class SourceStateRow(SQLModel, table=True):
    """What a source must remember between looks: ETags, cursors, quota, cool-downs."""

    __tablename__ = "source_state"
    key: str = Field(primary_key=True)
    etag: str | None = None
    cursor: dict[str, Any] = json_value()
    status: int | None = None
    failures: int = 0
    retry_at: datetime | None = moment(default=None)
    updated_at: datetime = moment()


class LinkedIssueRow(SQLModel, table=True):
    """An issue or pull request that a person wants to hear about."""

    __tablename__ = "linked_issue"
    __table_args__ = (UniqueConstraint("full_name", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    full_name: str
    number: int
    note: str = ""
    title: str = ""
    kind: str = "issue"
    state: str = "unknown"
    facts: dict[str, Any] = json_value()
    moved_at: datetime | None = moment(default=None)
    created_at: datetime = moment()


class HubWatchRow(SQLModel, table=True):
    """A place on the model hub that the watch list names, as `author:spiritbuun`."""

    __tablename__ = "hub_watch"
    watch: str = Field(primary_key=True)
    roles: list[str] = json_value(list)
    retired: bool = False
    created_at: datetime = moment()


class HubRepositoryRow(SQLModel, table=True):
    """A model repository; the hub's own id is its identity, its name a label.

    `sha` is the commit whose files are kept, `head_sha` the one a list named last. A first look at
    `baseline_sha` tells nobody anything, but for drafters in a repository that was `found_late`: it
    is older than our watch, and changed since. `look_at` is when it is looked at next. Files whose
    names cannot be used are `refused`: the path, cut, and why.
    """

    __tablename__ = "hub_repository"
    id: int | None = Field(default=None, primary_key=True)
    hub_id: str = Field(unique=True)
    full_name: str = Field(index=True)
    sha: str = ""
    head_sha: str = ""
    baseline_sha: str = ""
    found_late: bool = False
    state: str = "known"
    gated: str = ""
    private: bool = False
    disabled: bool = False
    tags: list[str] = json_value(list)
    base_models: list[str] = json_value(list)
    watches: list[str] = json_value(list)
    engine_refs: list[str] = json_value(list)
    refused: list[dict[str, str]] = json_value(list)
    created_at: datetime | None = moment(default=None)
    last_modified: datetime | None = moment(default=None)
    misses: int = 0
    missed_since: datetime | None = moment(default=None)
    failures: int = 0
    look_at: datetime = moment(index=True)
    first_seen_at: datetime = moment()
    last_seen_at: datetime = moment()


class HubFileRow(SQLModel, table=True):
    """A file of a model repository; the same `sha256` in two of them is one file.

    `facts` is what its header says, `shape` what of it counts for memory; of a set of files only
    the first has a shape, which is that of the whole set. While it is `pending` the header is still
    to be read, `unread` is why it could not be; what is `quiet` was there before anybody watched
    and is no news.
    """

    __tablename__ = "hub_file"
    __table_args__ = (UniqueConstraint("repository_id", "path"),)
    id: int | None = Field(default=None, primary_key=True)
    repository_id: int = Field(foreign_key="hub_repository.id", index=True)
    path: str
    size_bytes: int | None = large(default=None)
    sha256: str = Field(default="", index=True)
    xet_hash: str = ""
    blob_id: str = ""
    role: str = ""
    quantisation: str = ""
    facts: dict[str, Any] = json_value()
    shape: dict[str, Any] | None = json_or_nothing()
    pending: bool = False
    quiet: bool = False
    attempts: int = 0
    unread: str = ""
    first_seen_at: datetime = moment()
    changed_at: datetime = moment()
    gone_at: datetime | None = moment(default=None)
