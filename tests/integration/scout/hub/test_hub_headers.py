"""Headers of new weights that cannot be read, or should not be believed: what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support import gguf_files as files
from support.gguf_files import dflash, small
from support.hub_scene import ONLY as NAME
from support.hub_scene import HubScene
from support.shapes import LLAMA_8B

from jobs.fit.stored import shape_in
from scout.hub.desk import Desk
from scout.hub.rounds import look_around


def test_the_quota_of_files_is_another(known: HubScene) -> None:
    """A spent window of resolvers stops headers and no list."""
    spent = {"RateLimit": '"resolvers";r=0;t=100'}
    known.hub.fail(r"hub /spiritbuun/.*/resolve/", times=9, status=429, headers=spent)
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    assert "quota" in known.look().waiting[0]
    assert known.state("cooldown:hf:anonymous:api") is None
    assert known.state("cooldown:hf:anonymous:resolvers").retry_at > known.now
    kept = known.files(known.only_id)["a-dflash-q8_0.gguf"]
    assert (kept.pending, kept.attempts) == (True, 0)
    assert known.kinds() == ["hf_files_changed"]
    known.hub.faults.clear()
    known.later(minutes=6)
    known.look()
    assert "drafter_published" in known.kinds()


def test_files_of_a_gated_repository_are_told_without_a_header(known: HubScene) -> None:
    """Its list is open, its files are not: the drafter is told with that reason."""
    known.hub.repos[NAME].gated = "auto"
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    known.look()
    told = known.event("drafter_published")
    assert told.payload["unread"] == "gated: no token is set"
    assert known.hub.file_reads == 0
    known.later(hours=1)
    known.hub.repos[NAME].gated = False
    known.look()
    kept = known.files(known.only_id)["a-dflash-q8_0.gguf"]
    assert (kept.unread, kept.facts["dialect"]) == ("", "dflash-draft")
    assert known.kinds().count("drafter_published") == 1


TRANSIENT = {
    "short": {"body": b"GGUF"},
    "other range": {"headers": {"Content-Range": "bytes 7-9/4711"}},
    "down": {"status": 502},
}
LASTING = {
    "expired": ({"status": 403, "body": b"expired"}, "403"),
    "no size": ({"headers": {"Content-Range": "bytes 0-65535/*"}}, "size"),
    "other size": ({"headers": {"Content-Range": "bytes 0-65535/99999999"}}, "promised"),
    "to no address": (
        {"status": 302, "headers": {"Location": "http:\\\\localhost:5\\x"}},
        "address that is none",
    ),
    "no model": ({"body": b"x" * 65536}, "GGUF"),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_a_header_that_fails_in_passing_is_read_later(
    known: HubScene, fault: dict[str, object]
) -> None:
    """The file waits, and three vain looks tell it with the reason."""
    known.hub.fail("^cdn ", times=99, **fault)
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    known.look()
    kept = known.files(known.only_id)["a-dflash-q8_0.gguf"]
    assert (kept.pending, kept.attempts) == (True, 1)
    assert kept.unread
    assert known.kinds() == ["hf_files_changed"]
    known.later(minutes=10)
    known.look()
    known.later(minutes=10)
    known.look()
    told = known.event("drafter_published")
    assert told.payload["unread"]
    assert told.payload["role"] == "drafter"
    assert not known.files(known.only_id)["a-dflash-q8_0.gguf"].pending


@pytest.mark.parametrize(("fault", "reason"), LASTING.values(), ids=LASTING.keys())
def test_a_header_that_cannot_be_read_is_told_with_the_reason(
    known: HubScene, fault: dict[str, object], reason: str
) -> None:
    """It is an event and not a lost one."""
    known.hub.fail("^cdn ", times=99, **fault)
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    known.look()
    told = known.event("drafter_published")
    assert reason in told.payload["unread"]
    assert told.payload["size"] == dflash().size_bytes


def test_a_server_that_ignores_ranges_is_left_after_the_first_bytes(known: HubScene) -> None:
    """The facts are in the first 64 KiB, so a whole file that is sent is not taken."""
    known.hub.ignores_ranges = True
    file = dflash()
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": file})
    known.look()
    assert known.event("drafter_published").payload["path"] == "a-dflash-q8_0.gguf"


HOSTILE = {
    "count": files.start(1, 2**40),
    "length": files.start(1, 1) + b"\xff" * 64,
    "empty": b"",
    "magic": b"PK\x03\x04" * 30,
    "array": files.start(0, 1) + files.pair("a", 9, files.array(4, 2**40)),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_headers_are_told_and_stop_nobody(known: HubScene, content: bytes) -> None:
    """A broken file beside a sound one: both are told, one with the reason."""
    known.hub.push(NAME, {"bad-Q4_K_M.gguf": content, "good-Q4_K_M.gguf": small()})
    known.look()
    told = {row.payload["path"]: row.payload["unread"] for row in known.events()[1:]}
    assert told["good-Q4_K_M.gguf"] == ""
    assert told["bad-Q4_K_M.gguf"]


def test_a_round_that_is_late_leaves_the_rest_for_the_next(known: HubScene) -> None:
    """Each header is written down before the next is asked for; a stop loses none."""
    names = [f"m{number}-Q4_K_M.gguf" for number in range(4)]
    known.hub.push(NAME, {name: small(f"arch{name[1]}") for name in names})
    known.look("hf_lists", force=True)
    start, late = known.now, known.now + timedelta(hours=2)

    def now() -> datetime:
        return late if known.hub.file_reads > 1 else start

    desk = Desk(known.database, known.client, now, start + timedelta(hours=1))
    look_around(desk, ("hf_repositories",))
    told = known.kinds().count("target_published")
    assert told == 2
    assert "hf_files_changed" in known.kinds()
    known.later(hours=3)
    known.look()
    assert known.kinds().count("target_published") == 4


def test_a_history_that_was_squashed_is_no_news(known: HubScene) -> None:
    """Another commit with the same files changes nothing but the commit."""
    repo = next(iter(known.hub.repos.values()))
    repo.commits = [replace(repo.head, sha="7" * 40)]
    known.look()
    assert known.kinds() == []
    assert known.row(repo.hub_id).sha == "7" * 40


def test_a_header_of_another_order_is_read_past_its_tokenizer(known: HubScene) -> None:
    """What memory depends on stands behind a vocabulary of more than 64 KiB."""
    first = {name: LLAMA_8B[name] for name in ("general.architecture", "llama.block_count")}
    rest = {**LLAMA_8B, "llama.attention.key_length": 128}
    keys = {**first, **files.tokenizer(30_000, 10), **{k: rest[k] for k in rest if k not in first}}
    known.hub.push(NAME, {"a-Q4_K_M.gguf": files.build(keys)})
    known.look()
    kept = known.files(known.only_id)["a-Q4_K_M.gguf"]
    shape = shape_in(kept.shape)
    assert (shape.heads_kv, shape.key_length, shape.unsaid) == (8, 128, ())


def late(**changes: Any) -> dict[str, Any]:
    """Keys of a model whose MTP heads stand behind a vocabulary of more than 64 KiB."""
    keys = {**LLAMA_8B, "llama.attention.key_length": 128, **files.tokenizer(30_000, 10)}
    return {**keys, "llama.nextn_predict_layers": 1, **changes}


def test_late_heads_are_told_for_what_they_are_whatever_the_name(known: HubScene) -> None:
    """A whole model with heads inside, and a file of heads alone; neither name claims any."""
    whole = [("blk.0.attn_norm.weight", (64,), files.F32)]
    alone = [("blk.32.nextn.eh_proj.weight", (64,), files.F32)]
    known.hub.push(
        NAME,
        {"a-Q4_K_M.gguf": files.build(late(), whole), "b-Q8_0.gguf": files.build(late(), alone)},
    )
    known.look()
    assert known.event("mtp_variant_published").payload["path"] == "a-Q4_K_M.gguf"
    assert known.event("drafter_published").payload["path"] == "b-Q8_0.gguf"
    assert "target_published" not in known.kinds()


def test_one_of_all_quantisations_is_read_past_its_tokenizer(known: HubScene) -> None:
    """The others are built alike; one with another count of tensors is looked into again."""
    plain = {key: value for key, value in late().items() if "nextn" not in key}
    one = [("blk.0.attn_norm.weight", (64,), files.F32)]
    two = [*one, ("blk.0.nextn.eh_proj.weight", (64,), files.F32)]
    names = [f"{letter}-Q4_K_M.gguf" for letter in "abcd"]
    quants = [files.build({**plain, "general.name": name}, one) for name in names]
    known.hub.push(NAME, dict(zip(names, quants, strict=True)))
    known.hub.push(NAME, {"z-Q4_K_M.gguf": files.build(late(), two)})
    known.look()
    read_on = {name: row.facts.get("keys_read") for name, row in known.files(known.only_id).items()}
    assert [read_on[name] for name in (*names, "z-Q4_K_M.gguf")] == [True, *[False] * 3, True]
    assert known.event("mtp_variant_published").payload["path"] == "z-Q4_K_M.gguf"
    assert known.kinds().count("target_published") == 4


def test_one_file_of_a_set_is_not_told_as_a_model(known: HubScene) -> None:
    """A renamed one is told with the reason; a place that no set has is never told."""
    part = files.build({**LLAMA_8B, "split.no": 0, "split.count": 3})
    odd = "z-00000-of-00003.gguf"
    known.hub.push(NAME, {"a-Q4_K_M.gguf": part, odd: files.build(LLAMA_8B)})
    known.look()
    told = {row.payload["path"]: row.payload["unread"] for row in known.events()[1:]}
    assert list(told) == ["a-Q4_K_M.gguf"]
    assert "one of a set of 3" in told["a-Q4_K_M.gguf"]
    kept = known.files(known.only_id)
    assert kept["a-Q4_K_M.gguf"].shape is None
    assert kept[odd].shape is None
