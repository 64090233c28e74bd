"""GitHub's JSON as its own description wants it, filled with facts a test names."""

from __future__ import annotations

import hashlib
from typing import Any

API = "https://api.github.com"
WEB = "https://github.com"

_USER_URLS = (
    "events followers following gists organizations received_events repos starred subscriptions"
)
_PULL_URLS = "comments commits diff html issue patch review_comment statuses"
_REPO_URLS = (
    "archive assignees blobs branches collaborators comments commits compare contents contributors "
    "deployments downloads events forks git_commits git_refs git_tags hooks issue_comment "
    "issue_events issues keys labels languages merges milestones notifications pulls releases "
    "stargazers statuses subscribers subscription tags teams trees"
)


def sha(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def user(login: str) -> dict[str, Any]:
    url = f"{API}/users/{login}"
    return {
        "login": login,
        "id": int(sha(login)[:6], 16),
        "node_id": f"U_{login}",
        "avatar_url": f"https://avatars.githubusercontent.com/{login}",
        "gravatar_id": "",
        "html_url": f"{WEB}/{login}",
        "type": "User",
        "site_admin": False,
        "url": url,
        **{f"{name}_url": f"{url}/{name}" for name in _USER_URLS.split()},
    }


def repository(github_id: int, full_name: str, **facts: Any) -> dict[str, Any]:
    """A repository; what a list shows of it is a subset that the description also allows."""
    owner, name = full_name.split("/")
    url = f"{API}/repos/{full_name}"
    stars, forks_count = facts.pop("stars", 0), facts.pop("forks_count", 0)
    return {
        "id": github_id,
        "node_id": f"R_{github_id}",
        "name": name,
        "full_name": full_name,
        "owner": user(owner),
        "private": False,
        "fork": "parent_id" in facts,
        "html_url": f"{WEB}/{full_name}",
        "description": "LLM inference in C/C++",
        "url": url,
        **{f"{each}_url": f"{url}/{each}" for each in _REPO_URLS.split()},
        "clone_url": f"{WEB}/{full_name}.git",
        "git_url": f"git://github.com/{full_name}.git",
        "ssh_url": f"git@github.com:{full_name}.git",
        "svn_url": f"{WEB}/{full_name}",
        "mirror_url": None,
        "homepage": None,
        "language": "C++",
        "license": None,
        "default_branch": "master",
        "forks": forks_count,
        "forks_count": forks_count,
        "open_issues": 0,
        "open_issues_count": 0,
        "stargazers_count": stars,
        "watchers": stars,
        "watchers_count": stars,
        "network_count": forks_count,
        "subscribers_count": 1,
        "size": 30_000,
        "archived": False,
        "disabled": False,
        **dict.fromkeys(
            ("has_issues", "has_projects", "has_wiki", "has_pages", "has_downloads"), True
        ),
        "has_discussions": False,
        "created_at": "2026-03-01T00:00:00Z",
        "updated_at": "2026-03-02T00:00:00Z",
        "pushed_at": "2026-03-01T00:00:00Z",
        **facts,
    }


def asset(asset_id: int, name: str, content: str = "", **facts: Any) -> dict[str, Any]:
    return {
        "id": asset_id,
        "node_id": f"RA_{asset_id}",
        "name": name,
        "label": None,
        "content_type": "application/gzip",
        "state": "uploaded",
        "size": 1000,
        "digest": f"sha256:{hashlib.sha256((content or name).encode()).hexdigest()}",
        "download_count": 0,
        "uploader": user("uploader"),
        "url": f"{API}/repos/o/n/releases/assets/{asset_id}",
        "browser_download_url": f"{WEB}/o/n/releases/download/v1/{asset_id}",
        "created_at": "2026-05-01T00:00:00Z",
        "updated_at": "2026-05-01T00:00:00Z",
        **facts,
    }


def release(release_id: int, tag: str, published_at: str | None, **facts: Any) -> dict[str, Any]:
    url = f"{API}/repos/o/n/releases/{release_id}"
    return {
        "id": release_id,
        "node_id": f"RE_{release_id}",
        "tag_name": tag,
        "target_commitish": "master",
        "name": tag,
        "body": "",
        "draft": published_at is None,
        "prerelease": False,
        "author": user("releaser"),
        "assets": [],
        "url": url,
        "assets_url": f"{url}/assets",
        "upload_url": f"{url}/assets{{?name,label}}",
        "tarball_url": None,
        "zipball_url": None,
        "html_url": f"{WEB}/o/n/releases/tag/{tag}",
        "created_at": published_at or "2026-05-01T00:00:00Z",
        "published_at": published_at,
        **facts,
    }


def pull(
    number: int, head: dict[str, Any], base: dict[str, Any], updated_at: str, **facts: Any
) -> dict[str, Any]:
    url = f"{base['url']}/pulls/{number}"
    links = [
        *("comments", "commits", "statuses", "html", "issue"),
        *("review_comments", "review_comment", "self"),
    ]
    side = {"label": "o:b", "ref": "master", "sha": sha(f"{number}"), "user": user("dev")}
    return {
        "id": 7000 + number,
        "node_id": f"PR_{number}",
        "number": number,
        "state": "open",
        "locked": False,
        "title": f"change {number}",
        "user": user("dev"),
        "body": None,
        "labels": [],
        "milestone": None,
        "assignee": None,
        "auto_merge": None,
        "author_association": "NONE",
        "merge_commit_sha": None,
        "created_at": "2026-05-01T00:00:00Z",
        "updated_at": updated_at,
        "closed_at": None,
        "merged_at": None,
        "url": url,
        **{f"{each}_url": f"{url}/{each}" for each in _PULL_URLS.split()},
        "review_comments_url": f"{url}/comments",
        "_links": {each: {"href": f"{url}/{each}"} for each in links},
        "head": {**side, "ref": "feature", "repo": head},
        "base": {**side, "repo": base},
        **facts,
    }


_PULL_ALONE = {
    **dict.fromkeys(
        ("additions", "changed_files", "comments", "commits", "deletions", "review_comments"), 1
    ),
    "mergeable": None,
    "mergeable_state": "unknown",
    "maintainer_can_modify": False,
    "merged_by": None,
}


def pull_alone(listed: dict[str, Any]) -> dict[str, Any]:
    """A pull request as its own page shows it: more than a list does."""
    return {**listed, **_PULL_ALONE, "merged": listed["merged_at"] is not None}


def issue(number: int, full_name: str, updated_at: str, **facts: Any) -> dict[str, Any]:
    url = f"{API}/repos/{full_name}/issues/{number}"
    return {
        "id": 9000 + number,
        "node_id": f"I_{number}",
        "number": number,
        "state": "open",
        "locked": False,
        "title": f"issue {number}",
        "user": user("reporter"),
        "body": "",
        "labels": [],
        "assignee": None,
        "milestone": None,
        "comments": 0,
        "author_association": "NONE",
        "created_at": "2026-04-01T00:00:00Z",
        "updated_at": updated_at,
        "closed_at": None,
        "url": url,
        "repository_url": f"{API}/repos/{full_name}",
        **{f"{each}_url": f"{url}/{each}" for each in ("comments", "events", "labels", "html")},
        **facts,
    }
