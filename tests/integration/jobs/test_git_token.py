"""Our token goes to GitHub with git's first request, and to nobody else.

The server stands behind a proxy and speaks TLS in GitHub's name, so that no address is rewritten.
"""

from __future__ import annotations

import base64
import subprocess
import threading
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.git_server import Fault, GitServer
from support.hub import Hub, Repository
from support.waiting import wait_for

from jobs import git, git_contents, git_network
from jobs.errors import Permanent, Transient

pytestmark = pytest.mark.needs("git")
URL = git.repo_url("a/engine")
SECRET = "ghp_verysecret"
TOKEN = SecretStr(SECRET)
SHOWN = "Basic " + base64.b64encode(f"x-access-token:{SECRET}".encode()).decode()


@pytest.fixture
def repository(tmp_path: Path, github_over_tls: GitServer) -> Repository:
    repository = Hub(tmp_path / "outside").add("a/engine")
    repository.commit({"a": "1"})
    repository.push()
    return repository


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return tmp_path / "git" / "network.git"


def shown(server: GitServer) -> list[tuple[str, str | None]]:
    return [(each.host, each.headers.get("Authorization")) for each in server.asked]


def test_every_request_to_github_carries_it(
    github_over_tls: GitServer, repository: Repository, network: Path, tmp_path: Path
) -> None:
    """Listing, fetching and reading contents; nobody had to ask, and the agent names us."""
    git_network.update(network, URL, 1, token=TOKEN)
    git_contents.read_files(network, URL, [(repository.head, "a")], token=TOKEN)
    git.update_mirror(tmp_path / "m.git", URL, token=TOKEN)
    git.check_out(tmp_path / "m.git", repository.head, tmp_path / "tree", [], token=TOKEN)
    assert git.ls_remote(URL, token=TOKEN)["HEAD"] == repository.head
    assert git_network.default_branch(URL, token=TOKEN) == "main"
    assert len(github_over_tls.asked) >= 12
    assert set(shown(github_over_tls)) == {("github.com", SHOWN)}
    assert all("forkscout" in each.headers["User-Agent"] for each in github_over_tls.asked)


def test_a_server_that_asks_is_answered(
    github_over_tls: GitServer, repository: Repository, network: Path
) -> None:
    """A repository behind Basic authentication is read with the token, and not without."""
    github_over_tls.password = SECRET
    assert git_network.update(network, URL, 1, token=TOKEN).fetched
    with pytest.raises(Permanent, match="a/engine"):
        git_network.remote_refs(URL)


@pytest.mark.parametrize("token", [None, SecretStr(""), SecretStr("  ")])
def test_without_a_token_nothing_is_shown(
    github_over_tls: GitServer, repository: Repository, token: SecretStr | None
) -> None:
    """An empty setting is no token."""
    git_network.remote_refs(URL, token=token)
    assert set(shown(github_over_tls)) == {("github.com", None)}


def test_a_refused_token_is_named(github_over_tls: GitServer, repository: Repository) -> None:
    """The advice says which setting is wrong; the token itself is not said."""
    github_over_tls.password = "another"
    with pytest.raises(Permanent, match="does not take the token") as fault:
        git_network.remote_refs(URL, token=TOKEN)
    assert "FORKSCOUT_GITHUB_TOKEN" in fault.value.advice
    assert SECRET not in f"{fault.value!r}{fault.value.advice}"


@pytest.mark.parametrize("host", ["github.com", "evil.example"])
def test_a_redirect_is_followed_without_it(
    github_over_tls: GitServer, repository: Repository, network: Path, host: str
) -> None:
    """A renamed repository is read; where the redirect leads, the token is not shown."""
    github_over_tls.moved["old/name"] = f"https://{host}/a/engine"
    found = git_network.update(network, git.repo_url("old/name"), 1, token=TOKEN)
    assert list(found.commits.values()) == [repository.head]
    assert {each.host for each in github_over_tls.asked if each.repository == "a/engine"} == {host}
    assert all(
        "Authorization" not in each.headers
        for each in github_over_tls.asked
        if each.repository == "a/engine"
    )


def test_a_mirror_of_the_operator_is_not_shown_it(
    github_over_tls: GitServer,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The token belongs to GitHub's address, not to what the operator put in its place."""
    config = tmp_path / "gitconfig"
    config.write_text('[url "https://evil.example/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    git_network.remote_refs(URL, token=TOKEN)
    assert set(shown(github_over_tls)) == {("evil.example", None)}


def test_no_argument_variable_or_file_holds_it(
    github_over_tls: GitServer, repository: Repository, network: Path
) -> None:
    """While git hangs, its processes are looked at; the file system has nothing either."""
    github_over_tls.faults["a/engine"] = Fault(hang=True)

    def look() -> None:
        with pytest.raises(Transient):
            git_network.update(network, URL, 1, token=TOKEN)

    asking = threading.Thread(target=look)
    asking.start()
    wait_for(lambda: github_over_tls.asked, seconds=20, what="git to ask")
    assert github_over_tls.asked[0].headers["Authorization"] == SHOWN
    pair = SHOWN.removeprefix("Basic ").encode()
    seen = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        except OSError:
            continue
        if b"git-remote-https" in words or b"ls-remote" in words:
            seen += 1
            assert SECRET.encode() not in words
            assert pair not in words
    assert seen >= 2
    github_over_tls.released.set()
    asking.join(30)
    github_over_tls.faults.clear()
    git_network.update(network, URL, 1, token=TOKEN)
    for word in (SECRET, pair.decode()):
        found = subprocess.run(["grep", "-rl", word, str(network)], capture_output=True, text=True)
        assert found.stdout == ""
