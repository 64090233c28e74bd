"""What watching makes of a git server's faults: what is not known stays as it was, and is told."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import select
from support.git_server import Fault, GitServer
from support.hub import Hub, Repository
from support.watching import Scout, engine

from jobs import git_remote
from jobs.db import reading
from jobs.sightings import RefRow, RepositoryRow, SourceStateRow
from jobs.tables import EventRow
from scout import ref_watch

pytestmark = pytest.mark.needs("git")
NAME = "a/engine"
HTML = b"<html><h1>502 Bad Gateway</h1></html>"
BREAKS = {
    "401": Fault(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}),
    "403": Fault(403),
    "404": Fault(404),
    "429": Fault(429, {"Retry-After": "60"}),
    "451": Fault(451),
    "500": Fault(500),
    "502 as a page": Fault(502, {"Content-Type": "text/html"}, HTML),
    "200 as a page": Fault(200, cut_after=0, smooth=True, on="GET"),
    "503 to the list alone": Fault(503, on="POST"),
    "a greeting that breaks off": Fault(cut_after=40, on="GET"),
    "a list that breaks off": Fault(cut_after=120, on="POST"),
    "half a list that looks whole": Fault(cut_after=120, smooth=True, on="POST"),
    "a list of nothing": Fault(cut_after=0, smooth=True, on="POST"),
}


@pytest.fixture
def repository(hub: Hub) -> Repository:
    repository = hub.add(NAME)
    repository.commit({"a": "1"})
    repository.git("tag", "v1")
    repository.push("HEAD:refs/heads/main", "HEAD:refs/heads/old", "v1")
    return repository


@pytest.fixture
def scout(repository: Repository, sqlite: Engine, tmp_path: Path) -> Scout:
    """It has seen the repository once."""
    scout = Scout(sqlite, tmp_path)
    scout.load(engine("fork", NAME))
    assert scout.look().troubles == ()
    return scout


def standing(scout: Scout) -> dict[str, str | None]:
    """Ref to commit as recorded, None for those marked as gone."""
    with reading(scout.database) as session:
        assert [row.state for row in session.exec(select(RepositoryRow))] == ["known"]
        rows = session.exec(select(RefRow)).all()
        return {row.name: row.oid if row.gone_at is None else None for row in rows}


def failures(scout: Scout) -> list[int]:
    with reading(scout.database) as session:
        return [row.failures for row in session.exec(select(SourceStateRow))]


def kinds(events: Mapping[str, EventRow]) -> list[str]:
    return sorted(row.kind for row in events.values())


def recovered(scout: Scout) -> None:
    """The next look finds everything as it was, and says nothing."""
    scout.at += timedelta(days=1)
    summary = scout.look()
    assert (summary.troubles, summary.new) == ((), ())
    assert failures(scout) == [0]


def test_a_quiet_look_is_one_list(scout: Scout, git_server: GitServer) -> None:
    """One greeting and one list; nothing is fetched, and the default branch is not asked again."""
    git_server.methods()
    assert scout.look().new == ()
    assert git_server.methods() == ["GET", "POST"]


def test_a_quiet_look_at_a_fork_is_one_request(
    scout: Scout, hub: Hub, git_server: GitServer
) -> None:
    """Its list comes with the greeting; a push to it is seen there."""
    root = hub.add("up/engine")
    root.commit({"a": "0"})
    root.push()
    scout.load(engine("root", "up/engine") + engine("fork", NAME, parent="root"))
    assert scout.look().troubles == ()
    git_server.methods()
    assert (scout.look().new, scout.events()) == ((), {})
    asked = [(each.method, each.repository) for each in git_server.asked]
    assert sorted(asked) == [("GET", NAME), ("GET", "up/engine"), ("POST", "up/engine")]
    fork = hub.repositories[NAME]
    fork.commit({"a": "2"})
    fork.push()
    assert [news.kind for news in scout.look().new] == ["fork_pushed"]


def test_a_push_is_one_list_and_one_fetch(
    scout: Scout, repository: Repository, git_server: GitServer
) -> None:
    """The fetch greets, lists and takes a pack; contents of files are not read."""
    git_server.methods()
    repository.commit({"a": "2"})
    repository.push()
    assert [news.kind for news in scout.look().new] == ["fork_pushed"]
    assert git_server.methods() == ["GET", "POST", "GET", "POST", "POST"]


@pytest.mark.parametrize("name", BREAKS)
def test_an_answer_that_is_none_changes_nothing(
    scout: Scout, git_server: GitServer, name: str
) -> None:
    """The trouble is named, no ref is gone, and a day later all is well without an event."""
    before = standing(scout)
    git_server.faults[NAME] = BREAKS[name]
    (trouble,) = scout.look().troubles
    assert trouble.engine == "fork"
    assert NAME in trouble.message
    assert trouble.advice
    assert "<html" not in trouble.message
    assert (standing(scout), failures(scout), scout.events()) == (before, [1], {})
    git_server.methods()
    scout.at -= timedelta(minutes=59)
    (waiting,) = scout.look().troubles
    assert waiting.message.startswith("not asked until ")
    assert trouble.message in waiting.message
    assert "scout run --source git" in waiting.advice
    assert git_server.methods() == []
    git_server.faults.clear()
    recovered(scout)
    assert standing(scout) == before


def test_a_source_named_by_hand_is_asked_at_once(scout: Scout, git_server: GitServer) -> None:
    """What failed a moment ago waits in a round of the schedule, and not for a person."""
    git_server.faults[NAME] = Fault(status=500)
    scout.look()
    git_server.faults.clear()
    scout.at -= timedelta(minutes=59)
    assert scout.look(force=True).troubles == ()
    scout.at -= timedelta(minutes=59)
    assert scout.look().troubles == ()


def test_a_server_that_hangs_is_left(
    scout: Scout, git_server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has a deadline; the state stays."""
    before = standing(scout)
    monkeypatch.setattr(git_remote, "LIST_SECONDS", 1.0)
    git_server.faults[NAME] = Fault(hang=True)
    (trouble,) = scout.look().troubles
    assert "longer than" in trouble.message
    assert (standing(scout), scout.events()) == (before, {})
    git_server.released.set()
    git_server.faults.clear()
    recovered(scout)


def test_one_slow_server_does_not_keep_the_news_of_others(
    scout: Scout,
    hub: Hub,
    repository: Repository,
    git_server: GitServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the round's time for looking is over, those that answered are told, and one waits."""
    slow = hub.add("slow/engine")
    slow.commit({"s": "1"})
    slow.push()
    scout.load(engine("fork", NAME) + engine("slow", "slow/engine"))
    scout.look()
    repository.commit({"a": "2"})
    repository.push()
    git_server.faults["slow/engine"] = Fault(hang=True)
    start, arrived = scout.at + timedelta(hours=1), scout.network / "refs/remotes/1/heads/main"

    def now() -> datetime:
        """It stands until the good repository's push lay here for a second."""
        is_here = arrived.read_text().strip() == repository.head
        late = is_here and time.time() - arrived.stat().st_mtime > 1
        return start + timedelta(minutes=2 if late else 0)

    monkeypatch.setattr(ref_watch, "LOOKS_SECONDS", 60.0)
    found = ref_watch.watch_refs(
        scout.database, history=scout.history, network=scout.network, now=now
    )
    assert [news.kind for news in found.new] == ["fork_pushed"]
    (trouble,) = found.troubles
    assert (trouble.engine, "within the 60 s" in trouble.message) == ("slow", True)
    assert sorted(failures(scout)) == [0, 1]
    git_server.released.set()


def test_a_pack_that_breaks_off_is_told_later_once(
    scout: Scout, repository: Repository, git_server: GitServer
) -> None:
    """A push whose history did not arrive whole is no news yet, and one event in the end."""
    before = standing(scout)
    for number in range(20):
        repository.commit({"a": str(number)}, message="x" * 400)
    repository.push()
    git_server.faults[NAME] = Fault(cut_after=900, on="POST")
    assert scout.look().troubles != ()
    assert (standing(scout), scout.events()) == (before, {})
    git_server.faults.clear()
    scout.at += timedelta(days=1)
    (push,) = scout.look().new
    assert (push.kind, push.facts["new_patches"]) == ("fork_pushed", 20)
    recovered(scout)


def test_a_renamed_repository_is_followed(scout: Scout, hub: Hub, git_server: GitServer) -> None:
    """GitHub redirects the old name; nothing is new."""
    (hub.folder / "hub" / "b").mkdir()
    (hub.folder / "hub" / f"{NAME}.git").rename(hub.folder / "hub" / "b" / "renamed.git")
    git_server.moved[NAME] = f"{git_server.url}b/renamed"
    recovered(scout)


def test_a_rewritten_branch_a_deleted_one_and_a_moved_tag(
    scout: Scout, repository: Repository
) -> None:
    """Each is its own event; the deleted branch is gone in the rows, its commit is not."""
    repository.git("commit", "--quiet", "--amend", "--message", "rewritten")
    repository.git("tag", "--force", "v1")
    old = standing(scout)["refs/heads/old"] or ""
    repository.push("HEAD:refs/heads/main", ":refs/heads/old", "v1")
    assert scout.look().troubles == ()
    assert kinds(scout.events()) == ["branch_deleted", "fork_pushed", "tag_moved"]
    (push,) = (row for row in scout.events().values() if row.kind == "fork_pushed")
    assert push.payload["facts"]["forced"] is True
    head = repository.head
    assert standing(scout) == {
        "refs/heads/main": head,
        "refs/heads/old": None,
        "refs/tags/v1": head,
    }
    assert scout.history.graph([1]).knows(old)


def test_a_deleted_tag_is_gone_and_no_news(scout: Scout, repository: Repository) -> None:
    """Its row is marked; tags of builds are cleaned away every day."""
    repository.push(":refs/tags/v1")
    assert scout.look().new == ()
    assert standing(scout)["refs/tags/v1"] is None


def test_a_server_without_filters_is_read_whole(scout: Scout, repository: Repository) -> None:
    """An old server sends contents as well; the push is told all the same."""
    words = ["git", "config", "uploadpack.allowFilter", "false"]
    subprocess.run(words, cwd=repository.bare, check=True)
    repository.commit({"a": "2"})
    repository.push()
    summary = scout.look()
    assert (summary.troubles, [news.kind for news in summary.new]) == ((), ["fork_pushed"])


def test_ten_thousand_new_branches_are_one_flood(scout: Scout, repository: Repository) -> None:
    """All are recorded, few are told, and one event says how many were not."""
    head = repository.head
    names = sorted(
        ["refs/heads/main", "refs/heads/old", *(f"refs/heads/x{n}" for n in range(10_000))]
    )
    packed = "".join(f"{head} {name}\n" for name in [*names, "refs/tags/v1"])
    (repository.bare / "packed-refs").write_text(f"# pack-refs with: peeled sorted \n{packed}")
    assert scout.look().troubles == ()
    assert len(standing(scout)) == 10_003
    told = [row for row in scout.events().values() if row.kind == "refs_flood"]
    assert [row.payload["facts"]["not_told"] for row in told] == [9_800]
    assert kinds(scout.events()).count("branch_created") == 200
    recovered(scout)


def test_hostile_names_are_text_or_nothing(scout: Scout, repository: Repository) -> None:
    """What nobody can read is left out; shell words and options are told as they stand."""
    for name in ("$(reboot)", "--upload-pack=x", "evil\u202egpj", "a;b", "é"):
        repository.push(f"HEAD:refs/heads/x/{name}")
    assert scout.look().troubles == ()
    refs = {row.payload["facts"]["ref"] for row in scout.events().values()}
    assert refs == {f"refs/heads/x/{name}" for name in ("$(reboot)", "--upload-pack=x", "a;b", "é")}
