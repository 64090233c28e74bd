"""Each way the hub may fail: what is told, what is kept, and when it is asked again."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from support import gguf_files as files
from support.gguf_files import dflash, small
from support.hub_scene import HubScene

from jobs.db import reading
from jobs.store import source_states

NAME = "spiritbuun/x-GGUF"
LISTS, ONE = r"hub /api/models\?", r"hub /api/models/spiritbuun"
WATCH = "author:spiritbuun"


@pytest.fixture
def scene(scene: HubScene) -> HubScene:
    """One repository with one card, known since the first look."""
    scene.hub.add(NAME, {"README.md": b"one"})
    scene.watch(WATCH)
    scene.look()
    scene.later(minutes=10)
    return scene


def hub_id(scene: HubScene) -> str:
    return next(iter(scene.hub.repos.values())).hub_id


def state(scene: HubScene, key: str):
    with reading(scene.database) as session:
        return source_states.source_state(session, key)


def test_a_spent_window_stops_everybody_until_it_ends(scene: HubScene) -> None:
    """429 with `t=290` is slept by nobody: it is a time in a row, which every worker heeds."""
    spent = {"RateLimit": '"api";r=0;t=290', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
    scene.hub.fail(LISTS, status=429, headers=spent)
    found = scene.look()
    assert any("quota" in line for line in found.troubles)
    cooling = state(scene, "cooldown:hf:anonymous:api")
    assert cooling.retry_at == scene.now + timedelta(seconds=291)
    assert scene.kinds() == ["source_degraded"]
    assert scene.events()[0].payload["retry_at"] == cooling.retry_at.isoformat()
    calls = len(scene.hub.asked)
    scene.later(seconds=200)
    assert scene.look(force=True).waiting
    assert len(scene.hub.asked) == calls, "nobody asks before its time"
    scene.later(seconds=92)
    assert scene.look().waiting == ()
    assert scene.kinds() == ["source_degraded", "source_recovered"]
    assert scene.row(hub_id(scene)).state == "known"


def test_a_retry_after_goes_before_the_window(scene: HubScene) -> None:
    """What the hub asks for in words of its own is what it gets."""
    scene.hub.fail(LISTS, status=429, headers={"Retry-After": "77"})
    scene.look()
    assert state(scene, "cooldown:hf:anonymous:api").retry_at == scene.now + timedelta(seconds=77)


def test_the_quota_of_files_is_another(scene: HubScene) -> None:
    """A spent window of resolvers stops headers and no list."""
    spent = {"RateLimit": '"resolvers";r=0;t=100'}
    scene.hub.fail(r"hub /spiritbuun/.*/resolve/", times=9, status=429, headers=spent)
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    assert "quota" in scene.look().waiting[0]
    assert state(scene, "cooldown:hf:anonymous:api") is None
    assert state(scene, "cooldown:hf:anonymous:resolvers").retry_at > scene.now
    kept = scene.files(hub_id(scene))["a-dflash-q8_0.gguf"]
    assert (kept.pending, kept.attempts) == (True, 0)
    assert scene.kinds() == ["hf_files_changed"]
    scene.hub.faults.clear()
    scene.later(minutes=6)
    scene.look()
    assert "drafter_published" in scene.kinds()


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 503, "body": b"<html>down</html>"},
        {"status": 408},
        {"status": 403},
        {"body": b"<html>welcome</html>"},
        {"body": b"[" * 50_000},
        {"body": b'{"a": 1}'},
        {"cut_after": 20},
        {"header_seconds": 1.5},
        {"byte_seconds": 0.5},
        {"status": 302, "headers": {"Location": "http://localhost:9/elsewhere"}},
    ],
    ids=str,
)
def test_an_unreadable_list_changes_nothing(scene: HubScene, fault: dict[str, object]) -> None:
    """Faults of the hub and the wire keep all we know; the list is asked again, later each time."""
    before = scene.row(hub_id(scene)).model_dump()
    scene.hub.fail(LISTS, times=9, **fault)
    found = scene.look()
    assert len(found.troubles) == 1
    assert scene.row(hub_id(scene)).model_dump() == before
    kept = state(scene, f"hf_lists:{WATCH}")
    assert (kept.failures, kept.retry_at) == (1, scene.now + timedelta(minutes=1))
    assert kept.cursor["baseline_at"], "what was learned before stays"
    assert scene.kinds() == []


def test_a_list_without_commits_is_not_known(scene: HubScene) -> None:
    """A field that was asked for and is absent is no answer; one odd item is left out alone."""

    def bare(items):
        return [{"_id": each["_id"], "id": each["id"]} for each in items]

    scene.hub.push(NAME, {"README.md": b"two"})
    scene.hub.fail(LISTS, times=2, change=bare)
    assert "names no ids or no commits" in scene.look().troubles[0]
    assert scene.kinds() == []
    scene.hub.faults.clear()
    scene.later(minutes=10)
    odd = [None, 7, {"id": "a/b"}, {"_id": "x", "id": "../etc/passwd", "sha": "5" * 40}]
    scene.hub.fail(LISTS, times=2, change=lambda items: [*odd, *items])
    assert "4 of the listed" in scene.look().troubles[0]
    assert scene.kinds() == ["hf_card_changed"]


def test_a_next_page_on_another_host_is_not_followed(scene: HubScene) -> None:
    """The token would go there."""
    for number in range(101):
        scene.hub.add(f"new/M{number:03}", {"README.md": b"x"})
    scene.watch("author:new")
    link = {"Link": '<http://localhost:9/api/models?cursor=x>; rel="next"'}
    scene.hub.fail(r"author=new", times=9, headers=link)
    assert any("another host" in line for line in scene.look().troubles)
    assert state(scene, "hf_lists:author:new").cursor == {}


def test_pages_are_read_to_their_end(scene: HubScene) -> None:
    """A first look follows the hub's links, so that an old repository is no news later."""
    for number in range(130):
        scene.hub.add(f"many/M{number:03}", {"README.md": b"x"})
    scene.watch("author:many")
    scene.look()
    assert state(scene, "hf_lists:author:many").cursor["whole"] is True
    assert scene.row(scene.hub.repos["many/M129"].hub_id).sha


def test_missing_is_gone_after_three_misses_in_a_day(scene: HubScene) -> None:
    """401 for what is not there counts; one miss, or three in an hour, tell nobody."""
    repo = scene.hub.remove(NAME)
    row = scene.row(repo.hub_id)
    scene.now = row.look_at
    scene.look()
    scene.later(minutes=5)
    scene.look()
    assert (scene.row(repo.hub_id).misses, scene.kinds()) == (1, [])
    for _ in range(3):
        scene.later(hours=8)
        scene.look()
    gone = scene.event("hf_gone")
    assert gone.key == f"hf:state:{repo.hub_id}:state:gone:{repo.head.sha}"
    assert scene.row(repo.hub_id).state == "gone"
    scene.hub.repos[NAME] = repo
    scene.later(hours=8)
    scene.look()
    assert scene.kinds() == ["hf_gone", "hf_returned"]
    assert (scene.row(repo.hub_id).state, scene.row(repo.hub_id).misses) == ("known", 0)


def test_another_repository_under_the_name_is_a_miss(scene: HubScene) -> None:
    """The id decides: whoever takes a free name inherits nothing."""
    old = scene.hub.remove(NAME)
    new = scene.hub.add(NAME, {"y-Q4_K_M.gguf": small()})
    scene.now = scene.row(old.hub_id).look_at
    scene.look()
    assert scene.row(old.hub_id).misses == 1
    assert scene.row(new.hub_id).sha == new.head.sha
    assert "hf_repo_created" in scene.kinds()


def test_a_moved_repository_keeps_its_history(scene: HubScene) -> None:
    """The old name leads on; the row takes the new one, and it is told once."""
    repo = scene.hub.repos[NAME]
    scene.hub.move(NAME, "spiritbuun/y-GGUF")
    scene.hub.moved[NAME] = "spiritbuun/y-GGUF"
    scene.look()
    moved = scene.event("hf_moved")
    assert (moved.payload["old"], moved.payload["new"]) == (NAME, "spiritbuun/y-GGUF")
    assert scene.row(repo.hub_id).full_name == "spiritbuun/y-GGUF"
    scene.later(hours=24)
    scene.look()
    assert scene.kinds() == ["hf_moved"]


def test_gated_and_disabled_are_states(scene: HubScene) -> None:
    """Both are told with what was before; a disabled repository keeps all we know of it."""
    repo = scene.hub.repos[NAME]
    repo.gated = "manual"
    scene.look()
    gated = scene.event("hf_gated_changed")
    assert (gated.payload["field"], gated.payload["old"], gated.payload["new"]) == (
        "gated", "", "manual",
    )  # fmt: skip
    scene.later(minutes=10)
    repo.disabled = True
    scene.look()
    row = scene.row(repo.hub_id)
    assert (row.disabled, row.state, row.misses) == (True, "known", 0)
    assert set(scene.files(repo.hub_id)) == {"README.md", ".gitattributes"}
    assert scene.events()[-1].key == f"hf:state:{repo.hub_id}:disabled:True:{repo.head.sha}"


def test_files_of_a_gated_repository_are_told_without_a_header(scene: HubScene) -> None:
    """Its list is open, its files are not: the drafter is told with that reason."""
    scene.hub.repos[NAME].gated = "auto"
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    scene.look()
    told = scene.event("drafter_published")
    assert told.payload["unread"] == "gated: no token is set"
    assert scene.hub.file_reads == 0


def test_files_that_change_while_they_are_listed_wait(scene: HubScene) -> None:
    """Two lists of one commit that differ are believed neither."""
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})

    def other(items):
        return [{**each, "lfs": {**each["lfs"], "oid": "7" * 64}} if "lfs" in each else each
                for each in items]  # fmt: skip

    scene.hub.fail("/tree/", change=other)
    found = scene.look()
    assert any("changed while they were listed" in line for line in found.troubles)
    row = scene.row(hub_id(scene))
    assert row.sha != row.head_sha
    assert scene.kinds() == []
    scene.later(minutes=2)
    scene.look()
    assert scene.kinds() == ["hf_files_changed", "drafter_published"]


def test_a_repository_without_hashes_is_not_known(scene: HubScene) -> None:
    """Files without size and hash cannot be compared; the look is made again."""
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    bare = {"siblings": [{"rfilename": "a-dflash-q8_0.gguf"}]}
    scene.hub.fail(ONE, change=lambda body: {**body, **bare})
    assert any("without an id, commit or files" in line for line in scene.look().troubles)
    assert scene.row(hub_id(scene)).failures == 1
    assert scene.kinds() == []


TRANSIENT = {
    "short": {"body": b"GGUF"},
    "other range": {"headers": {"Content-Range": "bytes 7-9/4711"}},
    "down": {"status": 502},
}
LASTING = {
    "expired": ({"status": 403, "body": b"expired"}, "403"),
    "no size": ({"headers": {"Content-Range": "bytes 0-65535/*"}}, "size"),
    "other size": ({"headers": {"Content-Range": "bytes 0-65535/99999999"}}, "promised"),
    "no model": ({"body": b"x" * 65536}, "GGUF"),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_a_header_that_fails_in_passing_is_read_later(
    scene: HubScene, fault: dict[str, object]
) -> None:
    """The file waits, and three vain looks tell it with the reason."""
    scene.hub.fail("^cdn ", times=99, **fault)
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    scene.look()
    kept = scene.files(hub_id(scene))["a-dflash-q8_0.gguf"]
    assert (kept.pending, kept.attempts) == (True, 1)
    assert kept.unread
    assert scene.kinds() == ["hf_files_changed"]
    scene.later(minutes=10)
    scene.look()
    scene.later(minutes=10)
    scene.look()
    told = scene.event("drafter_published")
    assert told.payload["unread"]
    assert told.payload["role"] == "drafter"
    assert not scene.files(hub_id(scene))["a-dflash-q8_0.gguf"].pending


@pytest.mark.parametrize(("fault", "reason"), LASTING.values(), ids=LASTING.keys())
def test_a_header_that_cannot_be_read_is_told_with_the_reason(
    scene: HubScene, fault: dict[str, object], reason: str
) -> None:
    """It is an event and not a lost one."""
    scene.hub.fail("^cdn ", times=99, **fault)
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    scene.look()
    told = scene.event("drafter_published")
    assert reason in told.payload["unread"]
    assert told.payload["size"] == dflash().size_bytes


def test_a_server_that_ignores_ranges_is_left_after_the_first_bytes(scene: HubScene) -> None:
    """The facts are in the first 64 KiB, so a whole file that is sent is not taken."""
    scene.hub.ignores_ranges = True
    file = dflash()
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": file})
    scene.look()
    assert scene.event("drafter_published").payload["path"] == "a-dflash-q8_0.gguf"


HOSTILE = {
    "count": files.start(1, 2**40),
    "length": files.start(1, 1) + b"\xff" * 64,
    "empty": b"",
    "magic": b"PK\x03\x04" * 30,
    "array": files.start(0, 1) + files.pair("a", 9, files.array(4, 2**40)),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_headers_are_told_and_stop_nobody(scene: HubScene, content: bytes) -> None:
    """A broken file beside a sound one: both are told, one with the reason."""
    scene.hub.push(NAME, {"bad-Q4_K_M.gguf": content, "good-Q4_K_M.gguf": small()})
    scene.look()
    told = {row.payload["path"]: row.payload["unread"] for row in scene.events()[1:]}
    assert told["good-Q4_K_M.gguf"] == ""
    assert told["bad-Q4_K_M.gguf"]


def test_hostile_names_are_data(scene: HubScene) -> None:
    """Paths and tags of strangers reach no disk and no terminal as they are."""
    path = "../../\x1b[31m..%2f" + "x" * 80 + "-Q4_K_M.gguf"
    scene.hub.repos[NAME].tags = ["base_model:../../etc", "x\x00\u202ey", "a" * 5000]
    scene.hub.push(NAME, {path: small()})
    scene.look()
    told = scene.event("target_published")
    assert told.payload["path"] == path
    assert "\x1b" not in told.title
    row = scene.row(hub_id(scene))
    assert row.base_models == []
    assert all(len(tag) <= 120 and "\x00" not in tag for tag in row.tags)
    json.dumps(told.payload)


def test_no_token_leaves_the_hub(scene: HubScene) -> None:
    """The origin behind a redirect gets none, the hub gets ours, nobody gets another's."""
    scene.token = "hf_ours"
    scene.__post_init__()
    scene.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    asked = len(scene.hub.asked)
    scene.look()
    sent = {(each.is_cdn, each.authorization) for each in scene.hub.asked[asked:]}
    assert sent == {(False, "Bearer hf_ours"), (True, None)}


def test_a_refused_token_stops_all_and_is_said(scene: HubScene) -> None:
    """401 to a token is no missing repository."""
    scene.token = "hf_old"
    scene.__post_init__()
    scene.hub.fail("^hub ", times=99, status=401)
    found = scene.look()
    assert any("refused the token" in line for line in found.troubles)
    assert state(scene, f"cooldown:hf:{scene.client.identity}").retry_at > scene.now
    assert scene.row(hub_id(scene)).misses == 0


def test_the_last_of_the_quota_is_kept(scene: HubScene) -> None:
    """Lists leave a tenth of the window to looks that have a cause."""
    scene.hub.remaining = 30
    scene.look()
    scene.later(minutes=10)
    scene.hub.reset_seconds = 120
    with reading(scene.database) as session:
        kept = source_states.source_state(session, "quota:hf:anonymous:api")
    assert kept.cursor["limit"] == 500
    assert kept.cursor["remaining"] < 30
    scene.now = kept.retry_at - timedelta(seconds=1)
    found = scene.look("hf_lists", force=True)
    assert "kept for tiers before" in found.waiting[0]


def test_a_place_without_an_answer_stops_no_other(scene: HubScene) -> None:
    """The next place is looked at all the same."""
    scene.watch("author:other")
    scene.hub.fail("author=other", times=9, status=500)
    scene.hub.push(NAME, {"README.md": b"two"})
    found = scene.look()
    assert len(found.troubles) == 1
    assert scene.kinds() == ["hf_card_changed"]
