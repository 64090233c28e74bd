"""A fork's list in one request: the same as in two, whole or none, and within its memory."""

from __future__ import annotations

import httpx
import pytest
from support.git_server import Fault, GitServer
from support.hub import Hub, Repository

from jobs import git_network, git_process, git_remote
from jobs.errors import ScoutError
from jobs.git import repo_url
from jobs.git_memory import TooMuch
from jobs.git_remote import remote_refs

pytestmark = pytest.mark.needs("git")
NAME = "a/engine"
URL = repo_url(NAME)


@pytest.fixture
def repository(hub: Hub) -> Repository:
    """A branch, a plain tag, an annotated one, a name nobody reads, and a pull request."""
    repository = hub.add(NAME)
    repository.commit({"a": "1"})
    repository.git("tag", "v1")
    repository.git("tag", "-a", "-m", "two", "v2")
    heads = ("HEAD:refs/heads/main", "HEAD:refs/heads/\u202eniam", "HEAD:refs/pull/7/head")
    repository.push(*heads, "v1", "v2")
    return repository


def test_one_request_says_what_two_say(repository: Repository, git_server: GitServer) -> None:
    """Tags are peeled, odd names counted, pull requests left out."""
    two = remote_refs(URL)
    assert git_server.methods() == ["GET", "POST"]
    assert remote_refs(URL, in_one=True) == two
    assert git_server.methods() == ["GET"]
    assert set(two.refs) == {"refs/heads/main", "refs/tags/v1", "refs/tags/v2"}
    assert two.commits["refs/tags/v2"] == repository.head != two.refs["refs/tags/v2"]
    assert two.refused == 1


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.usefixtures("repository")
def test_a_list_that_ends_too_early_is_none(git_server: GitServer, *, smooth: bool) -> None:
    """Wherever it breaks off, also behind a whole line: a shorter list would be deletions."""
    whole = remote_refs(URL, in_one=True)
    answer = httpx.get(
        f"{git_server.url}{NAME}/info/refs?service=git-upload-pack", trust_env=False
    ).content
    ends = line_ends(answer)
    assert (len(ends), ends[-1]) == (10, len(answer))
    for cut in sorted({0, *ends[:-1], *(end - 9 for end in ends), len(answer) - 1}):
        git_server.faults[NAME] = Fault(cut_after=cut, smooth=smooth, on="GET")
        with pytest.raises(ScoutError):
            remote_refs(URL, in_one=True)
    git_server.faults[NAME] = Fault(cut_after=len(answer), smooth=True, on="GET")
    assert remote_refs(URL, in_one=True) == whole


def line_ends(answer: bytes) -> list[int]:
    """Where each of git's lines is over; each begins with its length, or with a 0 that ends all."""
    ends = [0]
    while ends[-1] < len(answer):
        ends.append(ends[-1] + max(int(answer[ends[-1] :][:4], 16), 4))
    return ends[1:]


def test_a_list_may_hold_less_memory_than_a_fetch(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many are asked for at once, and what one of them may hold counts for all."""
    monkeypatch.setattr(git_process, "TICK_SECONDS", 0.0)
    assert remote_refs(URL, in_one=True).refs["refs/heads/main"] == repository.head
    monkeypatch.setattr(git_remote, "LIST_MEMORY_BYTES", 1)
    with pytest.raises(TooMuch, match="memory"):
        remote_refs(URL, in_one=True)


def test_only_forks_are_asked_in_one_request(
    repository: Repository, git_server: GitServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Upstream has pull requests by the ten thousand; a candidate is a fork."""
    network = tmp_path_factory.mktemp("network") / "network.git"
    git_network.update(network, URL, 1)
    held = git_network.held_by(network)[1]
    for how, methods in (
        ({"held": held}, ["GET", "POST"]),
        ({"held": held, "is_fork": True}, ["GET"]),
        ({"known": {repository.head}, "candidate": True}, ["GET"]),
    ):
        git_server.methods()
        assert not git_network.update(network, URL, 1, **how).fetched
        assert git_server.methods() == methods
