"""Issues, of watched repositories and linked ones, read in rounds."""

from __future__ import annotations

from support import github_json as make
from support.scene import BUUN, Scene

from jobs.db import writing
from jobs.store import forks


def test_issues_closed_and_opened_again(chain: Scene) -> None:
    """Each move is one event; a comment on an old closed issue is none; a pull is no issue."""
    name = "spiritbuun/buun-llama-cpp"
    chain.github.put(BUUN, "issues", make.issue(30, name, "2026-05-18T11:00:00Z"))
    chain.look()
    closed = make.issue(35, name, "2026-05-18T12:04:00Z", state="closed", user=None,
                        state_reason="completed", closed_at="2026-05-18T12:04:00Z")  # fmt: skip
    stale = make.issue(2, name, "2026-05-18T12:03:00Z", state="closed",
                       closed_at="2025-01-01T00:00:00Z")  # fmt: skip
    as_pull = make.issue(36, name, "2026-05-18T12:04:30Z", state="closed",
                         closed_at="2026-05-18T12:04:30Z",
                         pull_request={"url": None, "html_url": None, "diff_url": None,
                                       "patch_url": None})  # fmt: skip
    chain.github.put(BUUN, "issues", as_pull, closed, stale)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == f"gh:issue:{BUUN}:35:closed:2026-05-18T12:04:00+00:00"
    opened = {**closed, "state": "open", "state_reason": "reopened", "closed_at": None,
              "updated_at": "2026-05-18T12:08:00Z"}  # fmt: skip
    chain.github.put(BUUN, "issues", opened, as_pull, stale)
    chain.later(minutes=6)
    (again,) = chain.look().new
    assert again.kind == "issue_reopened"
    asked = [each.path for each in chain.github.asked if "since=" in each.path]
    assert asked
    assert all("%2B00" not in path and "Z" in path for path in asked)
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_a_linked_issue_tells_every_move(chain: Scene) -> None:
    """Also an answer; it needs no engine, and the first look is silent."""
    chain.github.add(99, "some/where")
    item = make.issue(35, "some/where", "2026-05-18T11:00:00Z", title="slow \x1b[2Jdrafts")
    chain.github.put(99, "issues", item)
    with writing(chain.database) as session:
        forks.link_issue(session, "some/where", 35, note="ours", now=chain.now)
    chain.look()
    chain.later(minutes=6)
    answered = {**item, "comments": 1, "updated_at": "2026-05-18T12:05:00Z"}
    chain.github.put(99, "issues", answered)
    (moved,) = chain.look().new
    assert moved.kind == "issue_moved"
    assert moved.title == "some/where#35 moved: slow [2Jdrafts"
    closed = {**answered, "state": "closed", "closed_at": "2026-05-18T12:10:00Z",
              "updated_at": "2026-05-18T12:10:00Z"}  # fmt: skip
    chain.github.put(99, "issues", closed)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == "gh:issue:99:35:closed:2026-05-18T12:10:00+00:00"
    chain.later(minutes=6)
    assert chain.look().new == ()
