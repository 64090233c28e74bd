"""A stand-in for the model hub on loopback, its files behind another origin; fails on request."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

from support.gguf_files import File
from support.github_wire import Fault
from support.hugging_face_json import (
    LARGE,
    Answered,
    Commit,
    Repo,
    Stored,
    again,
    as_commit,
    as_model,
    as_sibling,
    disabled,
    fits,
    refusal,
)
from support.hugging_face_wire import Asked, Origin, handler

START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
PAGE_SIZE = 1000
NAME = r"[^/]+/[^/]+"


class HuggingFace:
    """Repositories by name; `moved` leads old names on; a fault changes one answer."""

    def __init__(self, *, limit: int = 500) -> None:
        self.now = START - timedelta(days=30)
        self.limit = self.remaining = limit
        self.reset_seconds = 120
        self.repos: dict[str, Repo] = {}
        self.moved: dict[str, str] = {}
        self.webhooks: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.ignores_ranges = False
        self._count = 0
        self._hub = Origin(handler(self, is_cdn=False), "127.0.0.1")
        self._cdn = Origin(handler(self, is_cdn=True), "localhost")

    def __enter__(self) -> Self:
        self._hub.start()
        self._cdn.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hub.stop()
        self._cdn.stop()

    @property
    def url(self) -> str:
        return self._hub.url

    @property
    def api_calls(self) -> int:
        """Requests to the hub itself that are no file."""
        return sum("/api/" in each.path for each in self.asked)

    @property
    def file_reads(self) -> int:
        """Requests that reached the origin of the files."""
        return sum(each.is_cdn for each in self.asked)

    def add(self, full_name: str, files: dict[str, bytes | File], **facts: Any) -> Repo:
        """A repository with one commit."""
        self._count += 1
        digest = hashlib.sha256(f"{full_name}{self._count}".encode()).hexdigest()
        repo = Repo(digest[:24], full_name, self.now, **facts)
        self.repos[full_name] = repo
        self.push(full_name, files)
        return repo

    def push(
        self, full_name: str, files: dict[str, bytes | File], *, remove: tuple[str, ...] = ()
    ) -> str:
        """Another commit: these files are new or different, those are gone."""
        repo = self.repos[full_name]
        before = dict(repo.head.files) if repo.commits else {".gitattributes": Stored(b"x")}
        kept = {path: stored for path, stored in before.items() if path not in remove}
        kept |= {path: Stored(content) for path, content in files.items()}
        said = [f"{path}{each.sha256}" for path, each in sorted(kept.items())]
        text = f"{repo.hub_id}{len(repo.commits)}{said}"
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        repo.commits.append(Commit(sha, self.now, f"change {len(repo.commits)}", kept))
        return sha

    def move(self, old: str, new: str) -> None:
        """Rename a repository; the old name leads on."""
        repo = self.repos.pop(old)
        repo.full_name, self.repos[new], self.moved[old] = new, repo, new

    def remove(self, full_name: str) -> Repo:
        """A repository is deleted or made private."""
        return self.repos.pop(full_name)

    def fail(self, where: str, **what: Any) -> Fault:
        """Script a fault."""
        fault = Fault(where, **what)
        self.faults.append(fault)
        return fault

    def headers(self) -> dict[str, str]:
        """What every answer of the hub says of quotas."""
        return {
            "RateLimit": f'"api";r={self.remaining};t={self.reset_seconds}',
            "RateLimit-Policy": f'"fixed window";"api";q={self.limit};w=300',
        }

    def answer(self, path: str, query: dict[str, list[str]]) -> Answered:
        """What the hub says to a GET."""
        if path == "/api/models":
            return self._list(query)
        if path == "/api/agent-harnesses":
            return 200, [], {}
        if found := re.fullmatch(rf"/({NAME})/(?:resolve|raw)/([^/]+)/(.+)", path):
            return self._file(found[1], unquote(found[2]), unquote(found[3]))
        found = re.fullmatch(
            rf"/api/models/({NAME})(?:/(revision|tree|commits)/([^/]+)(?:/(.+))?)?", path
        )
        if not found:
            return refusal("EntryNotFound", 404)
        name, what, revision, _ = found.groups()
        repo = self._repo(name)
        if isinstance(repo, str):
            return 307, {}, {"Location": path.replace(name, repo, 1) + again(query)}
        if repo is None:
            return refusal("RepoNotFound", 401)
        if repo.disabled:
            return disabled()
        commit = repo.at(unquote(revision or "main"))
        if commit is None:
            return refusal("RevisionNotFound", 404)
        if what == "tree":
            return self._tree(path, commit, query)
        if what == "commits":
            return 200, [as_commit(each) for each in reversed(repo.commits)], {}
        shown = as_model(repo, commit, query.get("expand", []))
        if "siblings" in shown:
            shown["siblings"] = [
                as_sibling(name, stored, blobs="blobs" in query)
                for name, stored in commit.files.items()
            ]
        return 200, shown, {}

    def _repo(self, name: str) -> Repo | str | None:
        if name in self.repos:
            return self.repos[name]
        return self.moved.get(name)

    def _list(self, query: dict[str, list[str]]) -> Answered:
        """In one order, by pages, with no more than was asked for."""
        found = [each for each in self.repos.values() if not each.private and fits(each, query)]
        order = query.get("sort", ["createdAt"])[0]
        found.sort(
            key=lambda each: each.head.at if order == "lastModified" else each.created_at,
            reverse=True,
        )
        cursor = query.get("cursor", [""])[0]
        start = int(base64.b64decode(cursor)) if cursor else 0
        end = start + int(query.get("limit", [str(PAGE_SIZE)])[0])
        items = [as_model(each, each.head, query.get("expand", [])) for each in found[start:end]]
        for item in items:
            item.pop("siblings", None)
        return 200, items, self._next("/api/models", query, end if end < len(found) else None)

    def _tree(self, path: str, commit: Commit, query: dict[str, list[str]]) -> Answered:
        items = []
        for name, stored in sorted(commit.files.items()):
            item = {
                "type": "file",
                "oid": stored.blob_id,
                "size": stored.size_bytes,
                "path": name,
            }
            if name.endswith(LARGE):
                item["lfs"] = {"oid": stored.sha256, "size": stored.size_bytes, "pointerSize": 134}
                item["xetHash"] = stored.xet_hash
            items.append(item)
        start = int(base64.b64decode(query["cursor"][0])) if "cursor" in query else 0
        end = start + PAGE_SIZE
        return 200, items[start:end], self._next(path, query, end if end < len(items) else None)

    def _next(self, path: str, query: dict[str, list[str]], end: int | None) -> dict[str, str]:
        if end is None:
            return {}
        cursor = base64.b64encode(str(end).encode()).decode()
        return {"Link": f'<{self.url}{path}{again({**query, "cursor": [cursor]})}>; rel="next"'}

    def _file(self, name: str, revision: str, path: str) -> Answered:
        repo = self._repo(name)
        if isinstance(repo, str):
            return 307, {}, {"Location": f"/{repo}/resolve/{revision}/{quote(path)}"}
        if repo is None:
            return refusal("RepoNotFound", 401)
        if repo.gated:
            return refusal("GatedRepo", 401)
        if repo.disabled:
            return disabled()
        commit = repo.at(revision)
        if commit is None:
            return refusal("RevisionNotFound", 404)
        stored = commit.files.get(path)
        if stored is None:
            return refusal("EntryNotFound", 404)
        said = {"X-Repo-Commit": commit.sha, "ETag": f'"{stored.blob_id}"'}
        if not path.endswith(LARGE):
            return 200, stored, said
        place = f"{self._cdn.url}/{commit.sha}/{quote(path)}?name={quote(name)}&sig=ok"
        return (
            302,
            {},
            {
                **said,
                "Location": place,
                "X-Linked-Etag": f'"{stored.sha256}"',
                "X-Linked-Size": str(stored.size_bytes),
            },
        )

    def stored(self, path: str, query: dict[str, list[str]]) -> Stored | None:
        """What lies behind a signed address of the other origin."""
        _, sha, name = path.split("/", 2)
        repo = self.repos.get(unquote(query.get("name", [""])[0]))
        commit = repo.at(sha) if repo else None
        return commit.files.get(unquote(name)) if commit else None

    def take(self, url: str) -> Fault:
        """What happens to this request."""
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.where, url):
                fault.times -= 1
                return fault
        return Fault("")
