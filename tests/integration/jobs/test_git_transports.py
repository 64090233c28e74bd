"""Which transports git may use: https, and by the operator's word what leads to this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.git_server import GitServer
from support.hub import Hub

from jobs import git, git_network
from jobs.errors import Transient, UsageError
from jobs.git_hardening import environment, protocols_for

pytestmark = pytest.mark.needs("git")
URL = git.repo_url("a/engine")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's own configuration of git, empty."""
    config = tmp_path / "gitconfig"
    config.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return config


def lead(config: Path, base: str, address: str = "https://github.com/") -> None:
    config.write_text(f'[url "{base}"]\n\tinsteadOf = {address}\n')


def test_without_a_word_of_the_operator_it_is_https(config: Path) -> None:
    """Nothing else is ever allowed, and without an address nothing at all."""
    assert protocols_for(URL) == "https"
    assert environment("")["GIT_ALLOW_PROTOCOL"] == "none"


@pytest.mark.parametrize(
    ("base", "allowed"),
    [
        ("/srv/mirrors/", "https:file"),
        ("file:///srv/mirrors/", "https:file"),
        ("http://127.0.0.1:8080/", "http"),
        ("http://[::1]:8080/", "http"),
        ("http://localhost/", "http"),
        ("https://mirror.example/", "https"),
        ("http://mirror.example/", "https"),
        ("http://127.0.0.1.mirror.example/", "https"),
        ("http://127.0.0.1@mirror.example/", "https"),
        ("http://mirror.example/127.0.0.1/", "https"),
        ("http://[::1/", "https"),
        ("ssh://127.0.0.1/", "https"),
        ("git://127.0.0.1/", "https"),
        ("ext::sh -c touch% /", "https"),
    ],
)
def test_plain_http_is_for_this_machine_alone(config: Path, base: str, allowed: str) -> None:
    """What only looks like it is refused, and so is every transport that runs or logs in."""
    lead(config, base)
    assert protocols_for(URL) == allowed


def test_the_longest_rewrite_counts_and_others_do_not(config: Path) -> None:
    """As git itself chooses; a rewrite of other addresses opens nothing for ours."""
    lead(config, "http://127.0.0.1/", "https://gitlab.example/")
    assert protocols_for(URL) == "https"


@pytest.mark.parametrize("base", ["http://127.0.0.2:1/", "ssh://127.0.0.1/", "ext::true "])
def test_git_itself_refuses_the_rest(config: Path, base: str) -> None:
    """The operator may mean it, and is told why not."""
    lead(config, base)
    with pytest.raises(UsageError, match="not allowed"):
        git_network.remote_refs(URL)


def test_a_mirror_on_this_machine_is_not_left_for_another(
    config: Path, git_server: GitServer
) -> None:
    """A redirect from plain http leads nowhere but to plain http; https is not opened beside it."""
    lead(config, git_server.url)
    git_server.moved["a/engine"] = "https://127.0.0.1:1/a/engine"
    with pytest.raises((UsageError, Transient)):
        git_network.remote_refs(URL)
    assert {each.repository for each in git_server.asked} == {"a/engine"}


def test_a_mirror_in_a_folder_is_read(config: Path, tmp_path: Path) -> None:
    """The operator's path stands for GitHub."""
    hub = Hub(tmp_path / "outside")
    repository = hub.add("a/engine")
    repository.commit({"a": "1"})
    repository.push()
    lead(config, f"{hub.folder}/hub/")
    assert git.ls_remote(URL)["HEAD"] == repository.head
