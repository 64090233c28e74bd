"""Whether files of the hub fit and go together, and how the hub itself fares, as it is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import Result
from sqlmodel import select
from support import gguf_files as files
from support.asgi import ask
from support.hub_scene import ONLY, HubScene
from support.hugging_face import HuggingFace
from support.rows import Rows
from typer.testing import CliRunner

from jobs.config import Settings
from jobs.db import reading, writing
from jobs.errors import UsageError
from jobs.sightings import HubFileRow
from jobs.store import known_models
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
        offered = {each.name: each for each in known_models.known_models(session)}
        shape = known_models.shape_named(session, name, what="target")
        assert known_models.shape_named(session, f"hf:{ONLY}/{hostile}", what="target")
        with pytest.raises(UsageError, match=r"a part of a set: Q/big-Q4_K_M-00001-of-00002"):
            known_models.shape_named(session, f"hf:{ONLY}/{PART.format(2)}", what="target")
    assert {each for each, model in offered.items() if model.shape} == {
        name,
        f"hf:{ONLY}/{drafter}",
    }
    assert "signs that nobody sees" in offered[f"hf:{ONLY}/{hostile}"].fault
    assert shape.tensors.total == files.qwen36().size_bytes + rest.size_bytes
    app = create_app(known.database, Settings(home=tmp_path / "var"))
    asked = {"target": name, "drafter": f"hf:{ONLY}/{drafter}", "gpu": "80GiB"}
    page = ask(app, f"/fit.html?{urlencode(asked)}").text
    assert "Fits: " in page
    assert "the file&#39;s size was read: the most" in page
    tight = ask(app, f"/api/v1/fit?{urlencode({**asked, 'gpu': '8GiB'})}").json()
    assert tight["verdict"] == "does not fit"
    listed = ask(app, "/api/v1/models").json()["models"]
    assert [(each["present"], each["header"]) for each in listed] == [(False, None)] * 3
    assert "qwen35" in {each["facts"]["architecture"] for each in listed}
    known.later(minutes=10)
    known.hub.push(ONLY, {drafter: b"no model"})
    known.look()
    with reading(known.database) as session:
        found = {each.name: each for each in known_models.known_models(session)}
    assert found[name].shape is not None
    assert "instead of b'GGUF'" in found[f"hf:{ONLY}/{drafter}"].fault


def test_a_file_of_the_hub_has_the_names_that_people_give_it(known: HubScene) -> None:
    """With and without its prefix, after a colon, by its quantisation, in any case of the owner."""
    known.hub.push(ONLY, {"a b%20c#?-Q4_K_M.gguf": files.small(), "x-Q8_0.gguf": files.qwen36()})
    known.look()
    with reading(known.database) as session:
        for name in (
            f"hf:{ONLY}/x-Q8_0.gguf",
            f"{ONLY}/x-Q8_0.gguf",
            f"{ONLY}:x-Q8_0.gguf",
            f"{ONLY}:q8_0",
            f"hf:{ONLY.upper()}/x-Q8_0.gguf",
        ):
            assert known_models.shape_named(session, name, what="target").architecture == "qwen35"
        odd = known_models.model_named(session, f"hf:{ONLY}/a b%20c#?-Q4_K_M.gguf")
        assert odd is not None
        assert odd.shape is not None
    same = {"x-Q8_0.gguf": files.qwen36(), "copy-Q8_0.gguf": files.qwen36()}
    known.later(minutes=10)
    known.hub.push(ONLY, same)
    known.look()
    with reading(known.database) as session:
        assert known_models.model_named(session, f"{ONLY}:Q8_0") is not None
    known.later(minutes=10)
    known.hub.push(ONLY, same | {"y-Q8_0.gguf": files.small()})
    known.look()
    with reading(known.database) as session, pytest.raises(UsageError, match="means 2 files"):
        known_models.shape_named(session, f"{ONLY}:Q8_0", what="target")


def test_a_file_that_gives_no_shape_says_why(known: HubScene, tmp_path: Path) -> None:
    """In the API by `fault`, where it is asked for by name in the sentence."""
    bad = {"general.architecture": "llama", "llama.block_count": 2**40}
    half = "h-Q4_K_M-00001-of-00002.gguf"
    many = "m-Q4_K_M-00001-of-99999.gguf"
    known.hub.push(
        ONLY,
        {"page-Q4_K_M.gguf": b"<!doctype html>", "deep-Q4_K_M.gguf": files.build(bad),
         half: files.small(), many: files.small("qwen2")},
    )  # fmt: skip
    known.look()
    app = create_app(known.database, Settings(home=tmp_path / "var"))
    found = {each["name"]: each for each in ask(app, "/api/v1/models").json()["models"]}
    said = {
        "page-Q4_K_M.gguf": "an HTML page",
        "deep-Q4_K_M.gguf": "llama.block_count",
        half: "of its set of 2 files 1 lie there",
        many: "a set of more than 512 files",
    }
    for path, words in said.items():
        model = found[f"hf:{ONLY}/{path}"]
        assert not model["can_be_judged"]
        assert words in model["fault"]
        asked = urlencode({"target": f"hf:{ONLY}/{path}", "gpu": "24GiB"})
        answer = ask(app, f"/api/v1/fit?{asked}")
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def test_the_same_bytes_are_one_file_with_all_its_names(known: HubScene, tmp_path: Path) -> None:
    """Ours and the hub's, in two repositories; a header read there serves the name of ours."""
    file = files.qwen36()
    known.hub.push(ONLY, {"x-Q8_0.gguf": file})
    known.hub.add("spiritbuun/y-GGUF", {"other-Q8_0.gguf": file})
    known.later(minutes=10)
    known.look()
    with writing(known.database) as session:
        found = session.exec(select(HubFileRow.sha256).where(HubFileRow.role == "target"))
        [sha256] = set(found)
        Rows(session).model_file(name="mine", sha256=sha256, stored_in=None)
    app = create_app(known.database, Settings(home=tmp_path / "var"))
    [model] = ask(app, "/api/v1/models").json()["models"]
    assert model["name"] == "mine"
    assert model["also"] == [f"hf:{ONLY}/x-Q8_0.gguf", "hf:spiritbuun/y-GGUF/other-Q8_0.gguf"]
    assert (model["can_be_judged"], model["fault"]) == (True, "")
    asked = urlencode({"target": "mine", "gpu": "80GiB"})
    assert ask(app, f"/api/v1/fit?{asked}").json()["verdict"] == "fits"


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
        found = {each.name: each for each in known_models.known_models(session)}
        assert [name for name, each in found.items() if each.shape] == [
            f"hf:{ONLY}/small-Q4_K_M.gguf"
        ]
        assert "judged where it is named" in found[f"hf:{ONLY}/deep-Q4_K_M.gguf"].fault
        with pytest.raises(UsageError) as caught:
            known_models.shape_named(session, f"hf:{ONLY}/deep-Q4_K_S.gguf", what="target")
        assert "deep-Q4_K_M.gguf" in caught.value.advice
        assert len(
            known_models.shape_named(session, f"hf:{ONLY}/deep-Q4_K_M.gguf", what="t").layers
        )


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
