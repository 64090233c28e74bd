"""A stand-in for the model hub on loopback, its files behind another origin; fails on request."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from support.gguf_files import File
from support.github_wire import Fault, write_reply

LARGE = (".gguf", ".safetensors", ".bin")
START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
PAGE_SIZE = 1000
NAME = r"[^/]+/[^/]+"


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


@dataclass(frozen=True)
class Asked:
    """One request and what became of it."""

    method: str
    path: str
    status: int
    authorization: str | None
    range: str | None
    is_cdn: bool


class _Server:
    """One origin, in a thread of its own."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://{host}:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


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
        self._hub = _Server(_handler(self, is_cdn=False), "127.0.0.1")
        self._cdn = _Server(_handler(self, is_cdn=True), "localhost")

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
            return _no("EntryNotFound", 404)
        name, what, revision, _ = found.groups()
        repo = self._repo(name)
        if isinstance(repo, str):
            return 307, {}, {"Location": path.replace(name, repo, 1) + _again(query)}
        if repo is None:
            return _no("RepoNotFound", 401)
        if repo.disabled:
            return _disabled()
        commit = repo.at(unquote(revision or "main"))
        if commit is None:
            return _no("RevisionNotFound", 404)
        if what == "tree":
            return self._tree(path, commit, query)
        if what == "commits":
            return 200, [_as_commit(each) for each in reversed(repo.commits)], {}
        shown = _as_model(repo, commit, query.get("expand", []))
        if "siblings" in shown:
            shown["siblings"] = [
                _as_sibling(name, stored, blobs="blobs" in query)
                for name, stored in commit.files.items()
            ]
        return 200, shown, {}

    def _repo(self, name: str) -> Repo | str | None:
        if name in self.repos:
            return self.repos[name]
        return self.moved.get(name)

    def _list(self, query: dict[str, list[str]]) -> Answered:
        """In one order, by pages, with no more than was asked for."""
        found = [each for each in self.repos.values() if not each.private and _fits(each, query)]
        order = query.get("sort", ["createdAt"])[0]
        found.sort(
            key=lambda each: each.head.at if order == "lastModified" else each.created_at,
            reverse=True,
        )
        cursor = query.get("cursor", [""])[0]
        start = int(base64.b64decode(cursor)) if cursor else 0
        end = start + int(query.get("limit", [str(PAGE_SIZE)])[0])
        items = [_as_model(each, each.head, query.get("expand", [])) for each in found[start:end]]
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
        return {"Link": f'<{self.url}{path}{_again({**query, "cursor": [cursor]})}>; rel="next"'}

    def _file(self, name: str, revision: str, path: str) -> Answered:
        repo = self._repo(name)
        if isinstance(repo, str):
            return 307, {}, {"Location": f"/{repo}/resolve/{revision}/{quote(path)}"}
        if repo is None:
            return _no("RepoNotFound", 401)
        if repo.gated:
            return _no("GatedRepo", 401)
        if repo.disabled:
            return _disabled()
        commit = repo.at(revision)
        if commit is None:
            return _no("RevisionNotFound", 404)
        stored = commit.files.get(path)
        if stored is None:
            return _no("EntryNotFound", 404)
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


Answered = tuple[int, Any, dict[str, str]]


def _no(code: str, status: int) -> Answered:
    """As the hub says no; a stranger hears 401 of what is not there."""
    said = "Invalid username or password." if status == 401 else "not found"
    return status, {"error": said}, {"X-Error-Code": code, "X-Error-Message": said}


def _disabled() -> Answered:
    said = "Access to this resource is disabled."
    return 403, {"error": said}, {"X-Error-Message": said}


def _fits(repo: Repo, query: dict[str, list[str]]) -> bool:
    author, search = query.get("author", [""])[0], query.get("search", [""])[0]
    tags = {*repo.tags, *(["gguf"] if any(n.endswith(".gguf") for n in repo.head.files) else [])}
    return (
        (not author or repo.full_name.split("/")[0] == author)
        and all(word.lower() in repo.full_name.lower() for word in search.split())
        and all(tag in tags for tag in query.get("filter", []))
    )


def _as_model(repo: Repo, commit: Commit, expand: list[str]) -> dict[str, Any]:
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


def _as_sibling(name: str, stored: Stored, *, blobs: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"rfilename": name}
    if blobs:
        shown |= {"size": stored.size_bytes, "blobId": stored.blob_id}
        if name.endswith(LARGE):
            size = stored.size_bytes
            shown["lfs"] = {"sha256": stored.sha256, "size": size, "pointerSize": 134}
    return shown


def _as_commit(commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.sha,
        "title": commit.title,
        "message": "",
        "authors": [{"user": "someone", "avatar": ""}],
        "date": f"{commit.at:%Y-%m-%dT%H:%M:%S}.000Z",
    }


def _again(query: dict[str, list[str]]) -> str:
    words = [f"{quote(key)}={quote(value)}" for key, values in query.items() for value in values]
    return f"?{'&'.join(words)}" if words else ""


def _handler(hub: HuggingFace, *, is_cdn: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path == "/api/settings/webhooks":
                hub.webhooks.append(json.loads(body))
                made = {"id": f"{len(hub.webhooks):024x}", "disabled": False, **hub.webhooks[-1]}
                self._write(200, json.dumps({"webhook": made}).encode(), {}, Fault(""))
            else:
                self._write(404, b"{}", {}, Fault(""))

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True)
            fault = hub.take(("cdn " if is_cdn else "hub ") + self.path)
            if is_cdn:
                stored = hub.stored(parts.path, query)
                status, body, more = self._ranged(stored) if stored else (403, b"expired", {})
            else:
                hub.remaining -= "/api/" in self.path
                status, shown, more = hub.answer(parts.path, query)
                if isinstance(shown, Stored):
                    status, body, found = self._ranged(shown)
                    more = {**more, **found}
                else:
                    shown = fault.change(shown) if fault.change else shown
                    body = json.dumps(shown).encode()
                    more = {"Content-Type": "application/json", **more}
                more = {**hub.headers(), **more}
            if fault.status != 200:
                status = fault.status
            body = fault.body if fault.body is not None else body
            self._write(status, body, {**more, **fault.headers}, fault)

        def _ranged(self, stored: Stored) -> tuple[int, bytes, dict[str, str]]:
            said = self.headers.get("Range")
            size, end_of_all = stored.size_bytes, stored.size_bytes - 1
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", said or "")
            tag = {"ETag": f'"{stored.blob_id}"', "Accept-Ranges": "bytes"}
            if not found or hub.ignores_ranges:
                return 200, stored.read(0, min(size, 2**22)), tag
            first, last = int(found[1]), min(int(found[2] or end_of_all), end_of_all)
            if first > end_of_all:
                return 416, b"", {**tag, "Content-Range": f"bytes */{size}"}
            body = stored.read(first, last - first + 1)
            return 206, body, {**tag, "Content-Range": f"bytes {first}-{last}/{size}"}

        def _write(self, status: int, body: bytes, more: dict[str, str], fault: Fault) -> None:
            hub.asked.append(
                Asked(
                    self.command,
                    unquote(self.path),
                    status,
                    self.headers.get("Authorization"),
                    self.headers.get("Range"),
                    is_cdn,
                )
            )
            with suppress(ConnectionError):
                if self.command == "HEAD":
                    self.send_response_only(status)
                    for name, value in more.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    return
                write_reply(self, status, body, more, fault)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    return Handler
