"""Repositories of the stand-in hub as values, and as the JSON and refusals of the real one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from support.gguf_files import File

LARGE = (".gguf", ".safetensors", ".bin")


@dataclass(frozen=True)
class Stored:
    """A file's bytes, or a large file of which only the header has any."""

    content: bytes | File

    @property
    def size_bytes(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.size_bytes

    @property
    def sha256(self) -> str:
        """Of the bytes; of a large file's header and size, which is as good for a stand-in."""
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        said = self.content.header + str(self.content.size_bytes).encode()
        return hashlib.sha256(said).hexdigest()

    @property
    def blob_id(self) -> str:
        return hashlib.sha1(self.sha256.encode(), usedforsecurity=False).hexdigest()

    @property
    def xet_hash(self) -> str:
        return hashlib.sha256(b"xet" + self.sha256.encode()).hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        if isinstance(self.content, bytes):
            return self.content[offset : offset + length]
        return self.content.fetch(offset, length)


@dataclass(frozen=True)
class Commit:
    """All files of a repository at one moment."""

    sha: str
    at: datetime
    title: str
    files: dict[str, Stored]


@dataclass
class Repo:
    """A model repository; its id stays when its name does not."""

    hub_id: str
    full_name: str
    created_at: datetime
    tags: list[str] = field(default_factory=list)
    gated: str | bool = False
    private: bool = False
    disabled: bool = False
    commits: list[Commit] = field(default_factory=list)

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    def at(self, revision: str) -> Commit | None:
        if revision in ("main", "HEAD", "refs/heads/main"):
            return self.head
        return next((each for each in self.commits if each.sha == revision), None)


Answered = tuple[int, Any, dict[str, str]]


def refusal(code: str, status: int) -> Answered:
    """As the hub says no; a stranger hears 401 of what is not there."""
    said = "Invalid username or password." if status == 401 else "not found"
    return status, {"error": said}, {"X-Error-Code": code, "X-Error-Message": said}


def disabled() -> Answered:
    said = "Access to this resource is disabled."
    return 403, {"error": said}, {"X-Error-Message": said}


def fits(repo: Repo, query: dict[str, list[str]]) -> bool:
    author, search = query.get("author", [""])[0], query.get("search", [""])[0]
    tags = {*repo.tags, *(["gguf"] if any(n.endswith(".gguf") for n in repo.head.files) else [])}
    return (
        (not author or repo.full_name.split("/")[0] == author)
        and all(word.lower() in repo.full_name.lower() for word in search.split())
        and all(tag in tags for tag in query.get("filter", []))
    )


def as_model(repo: Repo, commit: Commit, expand: list[str]) -> dict[str, Any]:
    """All fields, or only the named ones; the id is always there."""
    shown = {
        "_id": repo.hub_id,
        "id": repo.full_name,
        "modelId": repo.full_name,
        "author": repo.full_name.split("/")[0],
        "sha": commit.sha,
        "lastModified": f"{commit.at:%Y-%m-%dT%H:%M:%S}.000Z",
        "createdAt": f"{repo.created_at:%Y-%m-%dT%H:%M:%S}.000Z",
        "private": repo.private,
        "gated": repo.gated,
        "disabled": repo.disabled,
        "tags": repo.tags,
        "downloads": 0,
        "likes": 0,
        "siblings": [],
    }
    if not expand:
        return shown
    return {k: v for k, v in shown.items() if k in ("_id", "id", *expand)}


def as_sibling(name: str, stored: Stored, *, blobs: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"rfilename": name}
    if blobs:
        shown |= {"size": stored.size_bytes, "blobId": stored.blob_id}
        if name.endswith(LARGE):
            size = stored.size_bytes
            shown["lfs"] = {"sha256": stored.sha256, "size": size, "pointerSize": 134}
    return shown


def as_commit(commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.sha,
        "title": commit.title,
        "message": "",
        "authors": [{"user": "someone", "avatar": ""}],
        "date": f"{commit.at:%Y-%m-%dT%H:%M:%S}.000Z",
    }


def again(query: dict[str, list[str]]) -> str:
    words = [f"{quote(key)}={quote(value)}" for key, values in query.items() for value in values]
    return f"?{'&'.join(words)}" if words else ""
