"""A stand-in for GitHub's API on loopback: it keeps state, counts quota, fails on request."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from support import github_buckets as buckets
from support import github_json as make
from support.github_wire import Asked, Fault, Reply, ToLoopback, write_reply

API = make.API
__all__ = ["API", "Asked", "Fault", "GitHub", "Reply", "ToLoopback"]


class GitHub:
    """Repositories by id; `names` leads old names on; everything else hangs on a repository."""

    def __init__(self, *, limit: int = 5000, public: str = API) -> None:
        self.public = public
        self.limit = self.remaining = limit
        self.others = {"graphql": [limit, limit], "search": [30, 30]}
        self.clock_skew_seconds = 0
        self.repos: dict[int, dict[str, Any]] = {}
        self.names: dict[str, int] = {}
        self.parents: dict[int, int] = {}
        self.lists: dict[tuple[int, str], list[dict[str, Any]]] = {}
        self.status_of: dict[int, int] = {}
        self.faults: list[Fault] = []
        self.headers: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def adapter(self) -> ToLoopback:
        return ToLoopback(self.url)

    @property
    def charged(self) -> int:
        """Requests that cost quota of the REST API."""
        return sum(each.charged for each in self.asked if each.bucket == "core")

    def add(
        self, github_id: int, full_name: str, *, parent: int | None = None, **facts: Any
    ) -> dict[str, Any]:
        """A repository, a fork where it has a parent."""
        repo = make.repository(github_id, full_name, **facts)
        if parent is not None:
            repo["fork"] = True
            self.parents[github_id] = parent
            above = self.repos[parent]
            count = above["forks_count"] + 1
            above.update(forks=count, forks_count=count, network_count=count)
        self.repos[github_id], self.names[full_name] = repo, github_id
        return repo

    def rename(self, github_id: int, full_name: str) -> None:
        """The old name leads to the new one for as long as nobody else takes it."""
        repo = self.repos[github_id]
        fresh = make.repository(github_id, full_name)
        changed = {k: fresh[k] for k in fresh if k == "full_name" or k == "name" or "url" in k}
        repo.update(changed)
        self.names[full_name] = github_id

    def remove(self, github_id: int) -> None:
        """A repository is deleted."""
        repo = self.repos.pop(github_id)
        self.names = {name: each for name, each in self.names.items() if each != github_id}
        self.parents.pop(github_id, None)
        assert repo

    def put(self, github_id: int, kind: str, *items: dict[str, Any]) -> None:
        """Items of a list (`releases`, `pulls`, `issues`), newest first, in place of the old."""
        self.lists[github_id, kind] = list(items)

    def fail(self, where: str, **what: Any) -> Fault:
        """Script a fault."""
        fault = Fault(where, **what)
        self.faults.append(fault)
        return fault

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any, str, dict[str, str]]:
        """Status, body, the path's name in GitHub's description, and further headers."""
        if path == "/rate_limit":
            return 200, self._rate_limit(), "/rate_limit", {}
        if path == buckets.SEARCH:
            shown = {k: v for k, v in self.repos.items() if k not in self.status_of}
            body, more = buckets.search(shown, query, self.public)
            return 200, body, buckets.SEARCH, more
        found = re.fullmatch(r"/repositories/(\d+)(/.*)?", path)
        by_name = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", path)
        if found:
            github_id, rest = int(found[1]), found[2] or ""
        elif by_name and by_name[1] in self.names:
            github_id, rest = self.names[by_name[1]], by_name[2] or ""
            if self.repos[github_id]["full_name"] != by_name[1]:
                target = f"{self.public}/repositories/{github_id}{rest}"
                target += f"?{urlencode(query)}" if query else ""
                body = {"message": "Moved Permanently", "url": target}
                return 301, body, "/repos/{owner}/{repo}", {"Location": target}
        else:
            return 404, {"message": "Not Found", "status": "404"}, "/repos/{owner}/{repo}", {}
        template = "/repos/{owner}/{repo}" + re.sub(
            r"/(pulls|issues)/\d+",
            lambda m: f"/{m[1]}/{{{'pull' if m[1] == 'pulls' else 'issue'}_number}}",
            rest,
        )
        if github_id in self.status_of or github_id not in self.repos:
            status = self.status_of.get(github_id, 404)
            return status, {"message": "no", "status": str(status)}, template, {}
        return self._of_repo(github_id, rest, query, template)

    def _of_repo(
        self, github_id: int, rest: str, query: dict[str, str], template: str
    ) -> tuple[int, Any, str, dict[str, str]]:
        missing = (404, {"message": "Not Found", "status": "404"}, template, {})
        if not rest:
            return 200, self._whole(github_id), template, {}
        if one := re.fullmatch(r"/(pulls|issues)/(\d+)", rest):
            items = self.lists.get((github_id, one[1]), [])
            item = next((each for each in items if each["number"] == int(one[2])), None)
            if item is None:
                return missing
            return 200, make.pull_alone(item) if one[1] == "pulls" else item, template, {}
        if rest == "/forks":
            items = self._forks(github_id, query)
        elif rest in ("/releases", "/pulls", "/issues"):
            items = list(self.lists.get((github_id, rest[1:]), []))
            if since := query.get("since"):
                items = [each for each in items if each["updated_at"] >= since]
        else:
            return missing
        size, number = int(query.get("per_page", 30)), int(query.get("page", 1))
        page = items[(number - 1) * size : number * size]
        headers = {}
        if len(items) > number * size:
            following = urlencode({**query, "page": number + 1})
            link = f"{self.public}/repositories/{github_id}{rest}?{following}"
            headers["Link"] = f'<{link}>; rel="next", <{link}>; rel="last"'
        return 200, page, template, headers

    def _forks(self, github_id: int, query: dict[str, str]) -> list[dict[str, Any]]:
        shown = [each for each in self.parents if each not in self.status_of]
        ids = [each for each in shown if self.parents[each] == github_id]
        ids.sort(key=lambda each: (self.repos[each]["created_at"], each))
        if query.get("sort", "newest") == "newest":
            ids.reverse()
        return [self.repos[each] for each in ids]

    def _whole(self, github_id: int) -> dict[str, Any]:
        repo, parent = dict(self.repos[github_id]), self.parents.get(github_id)
        if parent is not None:
            root = parent
            while root in self.parents:
                root = self.parents[root]
            repo |= {"parent": self.repos[parent], "source": self.repos[root]}
        return repo

    def _rate_limit(self) -> dict[str, Any]:
        core = {
            "limit": self.limit,
            "remaining": self.remaining,
            "reset": int(time.time()) + 1800,
            "used": self.limit - self.remaining,
        }
        return {"resources": {"core": core, "search": core}, "rate": core}

    def _fault(self, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.where, path):
                fault.times -= 1
                return fault
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # one packet for head and body, or the other side's delayed ACK counts

            def log_message(self, *_: object) -> None:
                """Silent."""

            def do_GET(self) -> None:
                with suppress(BrokenPipeError, ConnectionResetError):
                    hub._serve(self)

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with suppress(BrokenPipeError, ConnectionResetError):
                    hub._serve(self, question)

        return Handler

    def _question(
        self, question: dict[str, Any], signed: bool
    ) -> tuple[int, Any, str, dict[str, str]]:
        if not signed:
            return 401, {"message": "This endpoint requires you to be authenticated."}, "", {}
        left = self.others["graphql"][1]
        shown = {k: v for k, v in self.parents.items() if k not in self.status_of}
        body = buckets.forks_by_push(self.repos, shown, question, left)
        return 200, body, buckets.GRAPHQL, {}

    def _charge(self, bucket: str, cost: bool) -> tuple[int, int]:
        if bucket == "core":
            self.remaining -= cost
            return self.limit, self.remaining
        self.others[bucket][1] -= cost
        limit, remaining = self.others[bucket]
        return limit, remaining

    def _serve(
        self, handler: BaseHTTPRequestHandler, question: dict[str, Any] | None = None
    ) -> None:
        parts = urlsplit(handler.path)
        query = dict(parse_qsl(parts.query))
        fault = self._fault(handler.path) or Fault("")
        token = handler.headers.get("Authorization")
        if question is None:
            status, body, template, headers = self.answer(parts.path, query)
        else:
            status, body, template, headers = self._question(question, token is not None)
        if fault.status != 200:
            status, body = fault.status, {"message": "scripted", "status": str(fault.status)}
            headers = {}
        elif status == 200 and fault.change is None and fault.body is None:
            self.replies.append(Reply(template, status, body))
        if fault.change is not None:
            body = fault.change(body)
        raw = fault.body if fault.body is not None else json.dumps(body).encode()
        etag = f'W/"{hashlib.sha256(raw + (token or "").encode()).hexdigest()[:32]}"'
        given = handler.headers.get("If-None-Match")
        if status == 200 and question is None:
            headers["ETag"] = etag
            if given == etag:
                status, raw = 304, b""
        charged = status != 304 or token is None
        bucket = buckets.bucket_of(parts.path)
        limit, remaining = self._charge(bucket, charged)
        version = handler.headers.get("X-GitHub-Api-Version")
        self.asked.append(Asked(handler.path, status, charged, token, given, bucket, version))
        now = int(time.time()) + self.clock_skew_seconds
        rates = {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(remaining, 0)),
            "X-RateLimit-Reset": str(now + 1800),
            "X-RateLimit-Resource": bucket,
            "Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now)),
        }
        everything = {"Content-Type": "application/json; charset=utf-8", **rates, **headers}
        everything |= self.headers | fault.headers
        write_reply(handler, status, raw, everything, fault)
