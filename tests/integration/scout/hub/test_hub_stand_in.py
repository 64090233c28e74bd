"""The stand-in hub satisfies both official clients; otherwise our tests would prove little."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, hf_hub_download, set_client_factory
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils._http import default_client_factory
from support.gguf_files import dflash, small
from support.hub_judge import NodeJudge
from support.hugging_face import HuggingFace

from scout.hub.client import Client, Refused

NAME = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"
DRAFTER = "Qwen3.6-27B-DFlash-q8_0.gguf"


@pytest.fixture
def hub() -> Iterator[HuggingFace]:
    """A hub with one repository of two commits."""
    with HuggingFace() as server:
        server.add(NAME, {DRAFTER: dflash(), "README.md": b"a card"}, tags=["gguf"])
        server.push(NAME, {"small-Q4_K_M.gguf": small()})
        yield server


@pytest.fixture
def official(hub: HuggingFace) -> Iterator[HfApi]:
    """huggingface_hub as anybody uses it."""
    set_client_factory(default_client_factory)
    yield HfApi(endpoint=hub.url, token=False)
    set_client_factory(default_client_factory)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> NodeJudge:
    """The JavaScript clients, once per session."""
    try:
        return NodeJudge(tmp_path_factory.mktemp("hubjs"))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot reach its registry; nothing to install helps")


def test_huggingface_hub_takes_the_stand_in_for_the_hub(
    hub: HuggingFace, official: HfApi, tmp_path: Path
) -> None:
    """Lists, pages, files, commits and a download through the other origin."""
    for number in range(4):
        hub.add(f"spiritbuun/M{number}", {"README.md": b"x"})
    found = list(official.list_models(author="spiritbuun", sort="created_at", limit=2))
    assert len(found) == 2
    found = list(official.list_models(author="spiritbuun", expand=["sha", "gated"]))
    assert len(found) == 5
    assert all(each.sha and each.downloads is None for each in found)
    repo = hub.repos[NAME]
    info = official.model_info(NAME, files_metadata=True)
    sizes = {each.rfilename: each.size for each in info.siblings or []}
    assert (info.sha, sizes[DRAFTER]) == (repo.head.sha, dflash().size_bytes)
    assert official.model_info(NAME, revision=repo.commits[0].sha).sha == repo.commits[0].sha
    tree = {each.path: each for each in official.list_repo_tree(NAME, recursive=True)}
    assert tree[DRAFTER].lfs.sha256 == repo.head.files[DRAFTER].sha256
    assert tree[DRAFTER].xet_hash == repo.head.files[DRAFTER].xet_hash
    assert [each.commit_id for each in official.list_repo_commits(NAME)] == [
        each.sha for each in reversed(repo.commits)
    ]
    path = hf_hub_download(NAME, "README.md", endpoint=hub.url, cache_dir=tmp_path, token=False)
    assert Path(path).read_bytes() == b"a card"
    hub.move(NAME, "spiritbuun/New-GGUF")
    assert official.model_info(NAME).id == "spiritbuun/New-GGUF"


def test_huggingface_hub_names_what_the_stand_in_refuses(hub: HuggingFace, official: HfApi) -> None:
    """Missing, gated, disabled, and a commit that is not there have their own errors."""
    with pytest.raises(RepositoryNotFoundError):
        official.model_info("spiritbuun/none")
    with pytest.raises(RevisionNotFoundError):
        official.model_info(NAME, revision="5" * 40)
    hub.repos[NAME].gated = "manual"
    with pytest.raises(GatedRepoError):
        official.get_hf_file_metadata(url=f"{hub.url}/{NAME}/resolve/main/{DRAFTER}")
    hub.repos[NAME].disabled = True
    with pytest.raises(DisabledRepoError):
        official.model_info(NAME)


def test_the_library_never_waits_in_a_worker(hub: HuggingFace, tmp_path: Path) -> None:
    """Through our session even its own lists ask once and raise: 429, 5xx, time-outs, resets."""
    Client(home=tmp_path, base=hub.url, read_seconds=0.5)
    api = HfApi(endpoint=hub.url, token=False)
    faults = (
        {"status": 429, "headers": {"RateLimit": '"api";r=0;t=290'}},
        {"status": 503},
        {"header_seconds": 1.0},
        {"cut_after": 5},
    )
    for fault in faults:
        asked = len(hub.asked)
        hub.faults.clear()
        hub.fail("/api/models", times=9, **fault)
        with pytest.raises(Refused) as caught:
            list(api.list_models(author="spiritbuun"))
        assert len(hub.asked) - asked <= 1
        if fault.get("status") == 429:
            assert caught.value.answer.wait_seconds == 291


@pytest.mark.needs("npm")
@pytest.mark.needs("node")
def test_the_javascript_clients_take_the_stand_in_for_the_hub(
    hub: HuggingFace, judge: NodeJudge
) -> None:
    """`@huggingface/hub` and `@huggingface/gguf` read the same as we do."""
    said = judge.said(hub.url, NAME, DRAFTER, "README.md")
    repo = hub.repos[NAME]
    assert [each["name"] for each in said["models"]] == [NAME]
    assert (said["model"]["sha"], said["model"]["id"]) == (repo.head.sha, repo.hub_id)
    sizes = {each["path"]: each["size"] for each in said["files"]}
    assert sizes == {path: each.size_bytes for path, each in repo.head.files.items()}
    assert [each["oid"] for each in said["commits"]] == [c.sha for c in reversed(repo.commits)]
    assert said["info"]["size"] == dflash().size_bytes
    assert said["text"] == "a card"
    assert said["metadata"]["general.architecture"] == "dflash-draft"
    assert said["tensors"] == said["metadata"]["tensor_count"]
