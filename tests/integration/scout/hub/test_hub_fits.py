"""Whether files of the hub fit and go together, and how the hub itself fares, as it is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import Result
from support import gguf_files as files
from support.asgi import ask
from support.hub_scene import ONLY, HubScene
from support.hugging_face import HuggingFace
from typer.testing import CliRunner

from jobs.config import Settings
from jobs.db import reading
from jobs.errors import UsageError
from jobs.store import memories
from jobs.store.source_health import HUB, outlook
from scout.cli import app
from scout.status_cli import lines
from web.app import create_app

NAME = "unsloth/Qwen3.6-27B-GGUF"
DRAFTER = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"
CARD = ("--gpu", "24GiB", "--context", "4096", "--json")
PART = "Q/big-Q4_K_M-{:05d}-of-00002.gguf"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HuggingFace]:
    """A hub with a set of two files and a drafter, and settings that lead to it."""
    with HuggingFace() as found:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
        monkeypatch.setenv("FORKSCOUT_HF_ENDPOINT", found.url)
        monkeypatch.setenv("FORKSCOUT_HF_TOKEN", "hf_ours")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        rest = files.build({"split.no": 1}, [("blk.0.more.weight", (1024, 1024), files.F32)])
        found.add(NAME, {PART.format(1): files.qwen36(), PART.format(2): rest})
        found.add(DRAFTER, {"x-DFlash-q8_0.gguf": files.dflash()})
        yield found


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("place", [f"{NAME}:Q4_K_M", f"hf:{NAME}/{PART.format(2)}"])
def test_a_set_of_the_hub_is_weighed_whole_at_one_commit(server: HuggingFace, place: str) -> None:
    """Any name of it will do; the repository is asked once, and each part shown the token."""
    found = json.loads(run("fit", "--target", place, *CARD).stdout)
    assert "a set of 2 files" in found["notes"]
    assert sum("/api/" in each.path for each in server.asked) == 1
    asked = [each for each in server.asked if "/resolve/" in each.path]
    sha = server.repos[NAME].head.sha
    assert {each.path.partition("/resolve/")[2].partition("/")[0] for each in asked} == {sha}
    assert {each.path.rpartition("big-")[2][:11] for each in asked} == {"Q4_K_M-0000"}
    assert {each.authorization for each in asked} == {"Bearer hf_ours"}
    assert {each.authorization for each in server.asked if each.is_cdn} == {None}


def test_files_of_the_hub_are_paired(server: HuggingFace) -> None:
    """By name, from 64 KiB of a drafter; a target is read on until it surely has no MTP heads."""
    places = ("--target", f"{NAME}:Q4_K_M", "--drafter", f"hf:{DRAFTER}/x-DFlash-q8_0.gguf")
    result = run("pair", *places, "--engine", "beellama@v0.1.2")
    assert result.exit_code == 0
    ranges = [(each.path, each.range) for each in server.asked if each.is_cdn]
    assert [span for path, span in ranges if "DFlash" in path] == ["bytes=0-65535"]
    assert "the target has no MTP heads inside" in " ".join(result.stdout.split())


def test_files_of_the_hub_can_be_chosen_on_the_page(known: HubScene, tmp_path: Path) -> None:
    """By the name that commands take; a set counts whole, another content has no shape yet."""
    hostile = "a\x1b[31m<b>-Q4_K_M.gguf"
    rest = files.build({"split.no": 1}, [("blk.0.more.weight", (1024, 1024), files.F32)])
    drafter = "x-DFlash-q8_0.gguf"
    known.hub.push(ONLY, {PART.format(1): files.qwen36(), PART.format(2): rest})
    known.hub.push(ONLY, {drafter: files.dflash(), hostile: files.small()})
    known.look()
    name = f"hf:{ONLY}/{PART.format(1)}"
    with reading(known.database) as session:
        offered = {each.name: each for each in memories.known_models(session)}
        shape = memories.shape_named(session, name, what="target")
        assert memories.shape_named(session, f"hf:{ONLY}/{hostile}", what="target")
        with pytest.raises(UsageError, match="no known model file"):
            memories.shape_named(session, f"hf:{ONLY}/{PART.format(2)}", what="target")
    assert set(offered) == {name, f"hf:{ONLY}/{drafter}"}
    assert shape.tensors.total == files.qwen36().size_bytes + rest.size_bytes
    app = create_app(known.database, Settings(home=tmp_path / "var"))
    asked = {"target": name, "drafter": f"hf:{ONLY}/{drafter}", "gpu": "80GiB"}
    page = ask(app, f"/fit.html?{urlencode(asked)}").text
    assert "Fits: " in page
    assert "the file&#39;s size was read: the most" in page
    tight = ask(app, f"/api/v1/fit?{urlencode({**asked, 'gpu': '8GiB'})}").json()
    assert tight["verdict"] == "does not fit"
    assert [each["present"] for each in ask(app, "/api/v1/models").json()["models"]] == [False] * 2
    known.later(minutes=10)
    known.hub.push(ONLY, {drafter: b"no model"})
    known.look()
    with reading(known.database) as session:
        assert [each.name for each in memories.known_models(session)] == [name]


def test_shapes_of_no_real_model_hold_nobody_up(known: HubScene) -> None:
    """A header of thousands of layers is judged where it is named, and read for nobody else."""
    deep = {"general.architecture": "llama", "llama.block_count": 4096,
            "llama.attention.head_count": 32, "llama.embedding_length": 4096}  # fmt: skip
    tensors = [("token_embd.weight", (4096, 8), files.F32)]
    known.hub.push(
        ONLY, {"deep-Q4_K_M.gguf": files.build(deep, tensors), "small-Q4_K_M.gguf": files.qwen36()}
    )
    known.look()
    with reading(known.database) as session:
        assert [each.name for each in memories.known_models(session)] == [
            f"hf:{ONLY}/small-Q4_K_M.gguf"
        ]
        with pytest.raises(UsageError) as caught:
            memories.shape_named(session, f"hf:{ONLY}/deep-Q4_K_S.gguf", what="target")
        assert "deep-Q4_K_M.gguf" in caught.value.advice
        assert len(memories.shape_named(session, f"hf:{ONLY}/deep-Q4_K_M.gguf", what="t").layers)


def test_how_the_hub_fares_is_told_beside_the_other_sources(known: HubScene) -> None:
    """Its sources since when, why and what to do; its quota and its wait by its name."""
    spent = {"RateLimit": '"api";r=0;t=290', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
    known.hub.fail(r"hub /api/models\?", status=429, headers=spent)
    known.look()
    with reading(known.database) as session:
        found = outlook(session)
    (unwell,) = found.unwell
    assert (unwell.source, unwell.state, unwell.since) == ("hf_lists", "degraded", known.now)
    assert unwell.why == f"author:{ONLY.partition('/')[0]}: the hub's quota is used up"
    assert "FORKSCOUT_HF_TOKEN" in unwell.advice
    assert [wait.service for wait in found.waits] == [HUB]
    quota = next(each for each in found.quotas if each.bucket == "api")
    assert (quota.service, quota.limit, quota.remaining) == (HUB, 500, 0)
    text = "\n".join(lines(found, now=known.now))
    assert "the model hub is left alone until" in text
    assert "the model hub's quota api: 0 of 500 left" in text
    assert "hf_repositories" in text
    assert "GitHub" not in text
