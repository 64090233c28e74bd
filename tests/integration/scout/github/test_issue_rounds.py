"""Issues, of watched repositories and linked ones, read in rounds."""

from __future__ import annotations

from support import github_json as make
from support.scene import BUUN, Scene

from jobs.db import reading, writing
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


def test_a_strangers_issue_is_never_told_as_ours(chain: Scene) -> None:
    """A link is bound to the repository's number: who takes the name later is somebody else."""
    chain.github.add(99, "some/where")
    chain.github.put(99, "issues", make.issue(35, "some/where", "2026-05-18T11:00:00Z"))
    with writing(chain.database) as session:
        forks.link_issue(session, "some/where", 35, note="", now=chain.now)
    chain.look()
    chain.github.rename(99, "some/else")
    chain.github.add(666, "some/where")
    theirs = make.issue(35, "some/where", "2026-05-18T12:03:00Z", state="closed",
                        closed_at="2026-05-18T12:03:00Z")  # fmt: skip
    chain.github.put(666, "issues", theirs)
    for _ in range(2):
        chain.later(minutes=20)
        assert chain.look().new == ()
    ours = make.issue(35, "some/else", "2026-05-18T12:50:00Z", comments=1)
    chain.github.put(99, "issues", ours)
    chain.later(minutes=20)
    (moved,) = chain.look().new
    assert moved.key.startswith("gh:issue:99:35:")


def test_one_odd_reply_makes_no_pull_request_of_an_issue(chain: Scene) -> None:
    """It stays an issue where there is no pull request of that number, and goes on being told."""
    chain.github.add(99, "some/where")
    item = make.issue(35, "some/where", "2026-05-18T11:00:00Z")
    chain.github.put(99, "issues", item)
    with writing(chain.database) as session:
        forks.link_issue(session, "some/where", 35, note="", now=chain.now)
    chain.look()
    odd = {**item, "pull_request": {"url": "x"}, "updated_at": "2026-05-18T11:30:00Z"}
    chain.github.fail("/issues/35", change=lambda _body: odd)
    chain.later(minutes=6)
    chain.look()
    chain.github.put(99, "issues", {**item, "comments": 1, "updated_at": "2026-05-18T12:09:00Z"})
    chain.later(minutes=6)
    (moved,) = chain.look().new
    assert moved.kind == "issue_moved"
    with reading(chain.database) as session:
        assert [row.kind for row in forks.linked_issues(session)] == ["issue"]


def test_what_was_taken_for_a_pull_request_becomes_an_issue_again(chain: Scene) -> None:
    """Where there is no such pull request and there is such an issue."""
    chain.github.add(99, "some/where")
    chain.github.put(99, "issues", make.issue(35, "some/where", "2026-05-18T11:00:00Z"))
    with writing(chain.database) as session:
        row, _ = forks.link_issue(session, "some/where", 35, note="", now=chain.now)
        row.kind = "pull"
    assert chain.look().troubles == ()
    with reading(chain.database) as session:
        assert [row.kind for row in forks.linked_issues(session)] == ["issue"]


def test_another_number_is_another_issue(chain: Scene) -> None:
    """An issue that was moved elsewhere has another number there: nothing of it is told."""
    chain.github.add(99, "some/where")
    chain.github.put(99, "issues", make.issue(35, "some/where", "2026-05-18T11:00:00Z"))
    with writing(chain.database) as session:
        forks.link_issue(session, "some/where", 35, note="", now=chain.now)
    other = make.issue(7, "some/other", "2026-05-18T11:00:00Z")
    chain.github.fail("/issues/35", change=lambda _body: other)
    assert chain.look().troubles == ("some/where#35: another issue answered",)
