"""What the stand-in counts in buckets of their own: questions in GraphQL, and searches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from support import github_json as make

GRAPHQL, SEARCH = "/graphql", "/search/repositories"
RESET_AT = "2026-05-18T13:00:00Z"
Repos = Mapping[int, dict[str, Any]]


def bucket_of(path: str) -> str:
    """The quota a request is charged to."""
    return {GRAPHQL: "graphql", SEARCH: "search"}.get(path, "core")


def forks_by_push(
    repos: Repos, parents: Mapping[int, int], asked: Mapping[str, Any], remaining: int
) -> dict[str, Any]:
    """The reply to our question for the forks that were pushed to last."""
    words = asked["variables"]
    name = f"{words['owner']}/{words['name']}"
    rate = {"cost": 1, "limit": 5000, "remaining": remaining, "resetAt": RESET_AT}
    found = next((each for each in repos.values() if each["full_name"] == name), None)
    if found is None:
        error = {"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve"}
        return {"data": {"rateLimit": rate, "repository": None}, "errors": [error]}
    ids = [each for each, parent in parents.items() if parent == found["id"]]
    ids.sort(key=lambda each: (repos[each]["pushed_at"], each), reverse=True)
    start = int((words["after"] or "c0")[1:])
    end = start + words["first"]
    page = [_node(repos[each]) for each in ids[start:end]]
    more = {"hasNextPage": len(ids) > end, "endCursor": f"c{end}" if page else None}
    forks = {"nodes": page, "pageInfo": more}
    return {"data": {"rateLimit": rate, "repository": {"databaseId": found["id"], "forks": forks}}}


def _node(repo: dict[str, Any]) -> dict[str, Any]:
    branch = repo["default_branch"]
    return {
        "databaseId": repo["id"],
        "nameWithOwner": repo["full_name"],
        "pushedAt": repo["pushed_at"],
        "createdAt": repo["created_at"],
        "stargazerCount": repo["stargazers_count"],
        "forkCount": repo["forks_count"],
        "isArchived": repo["archived"],
        "isDisabled": repo["disabled"],
        "description": repo["description"],
        "defaultBranchRef": {"name": branch, "target": {"oid": make.sha(branch)}},
    }


def search(
    repos: Repos, query: Mapping[str, str], public: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Repositories whose name holds the word, and the link to the next page."""
    words = dict(re.findall(r"(in|fork|pushed):(\S+)", query["q"]))
    name = query["q"].split()[0].lower()
    found = [
        {**each, "score": 1.0}
        for each in repos.values()
        if name in each["name"].lower()
        and each["pushed_at"][:10] > words["pushed"].removeprefix(">")
        and not (words["fork"] == "false" and each["fork"])
    ]
    found.sort(key=lambda each: (each["updated_at"], each["id"]), reverse=True)
    size, number = int(query.get("per_page", 30)), int(query.get("page", 1))
    headers = {}
    if len(found) > number * size:
        link = f"{public}{SEARCH}?{urlencode({**query, 'page': number + 1})}"
        headers["Link"] = f'<{link}>; rel="next"'
    page = found[(number - 1) * size : number * size]
    body = {"total_count": len(found), "incomplete_results": False, "items": page}
    return body, headers
