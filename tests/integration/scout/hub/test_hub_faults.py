"""Each way the hub may fail: what is told, what is kept, and when it is asked again."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from support.gguf_files import dflash, small
from support.hub_scene import ONLY as NAME
from support.hub_scene import HubScene

from jobs.db import reading
from jobs.store import source_states
from scout.hub.repositories import MOST_TREE_PAGES

LISTS, ONE = r"hub /api/models\?", r"hub /api/models/spiritbuun"
WATCH = "author:spiritbuun"


def test_a_spent_window_stops_everybody_until_it_ends(known: HubScene) -> None:
    """429 with `t=290` is slept by nobody: it is a time in a row, which every worker heeds."""
    spent = {"RateLimit": '"api";r=0;t=290', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
    known.hub.fail(LISTS, status=429, headers=spent)
    found = known.look()
    assert any("quota" in line for line in found.troubles)
    cooling = known.state("cooldown:hf:anonymous:api")
    assert cooling.retry_at == known.now + timedelta(seconds=291)
    assert known.kinds() == ["source_degraded"]
    assert known.events()[0].payload["retry_at"] == cooling.retry_at.isoformat()
    calls = len(known.hub.asked)
    known.later(seconds=200)
    assert known.look(force=True).waiting
    assert len(known.hub.asked) == calls, "nobody asks before its time"
    known.later(seconds=92)
    assert known.look().waiting == ()
    assert known.kinds() == ["source_degraded", "source_recovered"]
    assert known.row(known.only_id).state == "known"


def test_a_retry_after_goes_before_the_window(known: HubScene) -> None:
    """What the hub asks for in words of its own is what it gets."""
    known.hub.fail(LISTS, status=429, headers={"Retry-After": "77"})
    known.look()
    assert known.state("cooldown:hf:anonymous:api").retry_at == known.now + timedelta(seconds=77)


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
def test_an_unreadable_list_changes_nothing(known: HubScene, fault: dict[str, object]) -> None:
    """Faults of the hub and the wire keep all we know; the list is asked again, later each time."""
    before = known.row(known.only_id).model_dump()
    known.hub.fail(LISTS, times=9, **fault)
    found = known.look()
    assert len(found.troubles) == 1
    assert known.row(known.only_id).model_dump() == before
    kept = known.state(f"hf_lists:{WATCH}")
    assert (kept.failures, kept.retry_at) == (1, known.now + timedelta(minutes=1))
    assert kept.cursor["baseline_at"], "what was learned before stays"
    assert known.kinds() == []


def test_a_list_without_commits_is_not_known(known: HubScene) -> None:
    """A field that was asked for and is absent is no answer; one odd item is left out alone."""

    def bare(items):
        return [{"_id": each["_id"], "id": each["id"]} for each in items]

    known.hub.push(NAME, {"README.md": b"two"})
    known.hub.fail(LISTS, times=2, change=bare)
    assert "names no ids or no commits" in known.look().troubles[0]
    assert known.kinds() == []
    known.hub.faults.clear()
    known.later(minutes=10)
    odd = [None, 7, {"id": "a/b"}, {"_id": "x", "id": "../etc/passwd", "sha": "5" * 40}]
    known.hub.fail(LISTS, times=2, change=lambda items: [*odd, *items])
    assert "4 of the listed" in known.look().troubles[0]
    assert known.kinds() == ["hf_card_changed"]


def test_a_next_page_on_another_host_is_not_followed(known: HubScene) -> None:
    """The token would go there."""
    for number in range(101):
        known.hub.add(f"new/M{number:03}", {"README.md": b"x"})
    known.watch("author:new")
    link = {"Link": '<http://localhost:9/api/models?cursor=x>; rel="next"'}
    known.hub.fail(r"author=new", times=9, headers=link)
    assert any("another host" in line for line in known.look().troubles)
    assert known.state("hf_lists:author:new").cursor == {}


def test_pages_are_read_to_their_end(known: HubScene) -> None:
    """A first look follows the hub's links, so that an old repository is no news later."""
    for number in range(130):
        known.hub.add(f"many/M{number:03}", {"README.md": b"x"})
    known.watch("author:many")
    known.look()
    assert known.state("hf_lists:author:many").cursor["whole"] is True
    assert known.row(known.hub.repos["many/M129"].hub_id).sha


def test_missing_is_gone_after_three_misses_in_a_day(known: HubScene) -> None:
    """401 for what is not there counts; one miss, or three in an hour, tell nobody."""
    repo = known.hub.remove(NAME)
    row = known.row(repo.hub_id)
    known.now = row.look_at
    known.look()
    known.later(minutes=5)
    known.look()
    assert (known.row(repo.hub_id).misses, known.kinds()) == (1, [])
    for _ in range(3):
        known.later(hours=8)
        known.look()
    gone = known.event("hf_gone")
    assert gone.key == f"hf:state:{repo.hub_id}:state:gone:{repo.head.sha}"
    assert known.row(repo.hub_id).state == "gone"
    known.hub.repos[NAME] = repo
    known.later(hours=8)
    known.look()
    assert known.kinds() == ["hf_gone", "hf_returned"]
    assert (known.row(repo.hub_id).state, known.row(repo.hub_id).misses) == ("known", 0)


def test_another_repository_under_the_name_is_a_miss(known: HubScene) -> None:
    """The id decides: whoever takes a free name inherits nothing."""
    old = known.hub.remove(NAME)
    new = known.hub.add(NAME, {"y-Q4_K_M.gguf": small()})
    known.now = known.row(old.hub_id).look_at
    known.look()
    assert known.row(old.hub_id).misses == 1
    assert known.row(new.hub_id).sha == new.head.sha
    assert "hf_repo_created" in known.kinds()


def test_a_moved_repository_keeps_its_history(known: HubScene) -> None:
    """The old name leads on; the row takes the new one, and it is told once."""
    repo = known.hub.repos[NAME]
    known.hub.move(NAME, "spiritbuun/y-GGUF")
    known.hub.moved[NAME] = "spiritbuun/y-GGUF"
    known.look()
    moved = known.event("hf_moved")
    assert (moved.payload["old"], moved.payload["new"]) == (NAME, "spiritbuun/y-GGUF")
    assert known.row(repo.hub_id).full_name == "spiritbuun/y-GGUF"
    known.later(hours=24)
    known.look()
    assert known.kinds() == ["hf_moved"]


def test_gated_and_disabled_are_states(known: HubScene) -> None:
    """Both are told with what was before; a disabled repository keeps all we know of it."""
    repo = known.hub.repos[NAME]
    repo.gated = "manual"
    known.look()
    gated = known.event("hf_gated_changed")
    assert (gated.payload["field"], gated.payload["old"], gated.payload["new"]) == (
        "gated", "", "manual",
    )  # fmt: skip
    known.later(minutes=10)
    repo.disabled = True
    known.look()
    row = known.row(repo.hub_id)
    assert (row.disabled, row.state, row.misses) == (True, "known", 0)
    assert set(known.files(repo.hub_id)) == {"README.md", ".gitattributes"}
    assert known.events()[-1].key == f"hf:state:{repo.hub_id}:disabled:True:{repo.head.sha}"


def test_files_that_change_while_they_are_listed_wait(known: HubScene) -> None:
    """Two lists of one commit that differ are believed neither."""
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})

    def other(items):
        return [{**each, "lfs": {**each["lfs"], "oid": "7" * 64}} if "lfs" in each else each
                for each in items]  # fmt: skip

    known.hub.fail("/tree/", change=other)
    found = known.look()
    assert any("changed while they were listed" in line for line in found.troubles)
    row = known.row(known.only_id)
    assert row.sha != row.head_sha
    assert known.kinds() == []
    known.later(minutes=2)
    known.look()
    assert known.kinds() == ["hf_files_changed", "drafter_published"]


def test_a_repository_without_hashes_is_not_known(known: HubScene) -> None:
    """Files without size and hash cannot be compared; the look is made again."""
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    bare = {"siblings": [{"rfilename": "a-dflash-q8_0.gguf"}]}
    known.hub.fail(ONE, change=lambda body: {**body, **bare})
    assert any("without an id, commit or files" in line for line in known.look().troubles)
    assert known.row(known.only_id).failures == 1
    assert known.kinds() == []


def test_hostile_names_are_data(known: HubScene) -> None:
    """Paths and tags of strangers reach no disk and no terminal as they are."""
    path = "..%2f/\x1b[31m..%2f" + "x" * 80 + "-Q4_K_M.gguf"
    known.hub.repos[NAME].tags = ["base_model:../../etc", "x\x00\u202ey", "a" * 5000]
    known.hub.push(NAME, {path: small()})
    known.look()
    told = known.event("target_published")
    assert told.payload["path"] == path
    assert "\x1b" not in told.title
    row = known.row(known.only_id)
    assert row.base_models == []
    assert all(len(tag) <= 120 and "\x00" not in tag for tag in row.tags)
    json.dumps(told.payload)


@pytest.mark.parametrize(
    "path", ["x" * 600 + ".gguf", "../../../etc/x-Q8_0.gguf", "/etc/x-Q8_0.gguf", "a/./x.gguf"]
)
def test_a_path_of_no_use_hides_itself_alone(known: HubScene, path: str) -> None:
    """Too long, or out of its repository: its neighbours are told, and nobody asks for it."""
    known.hub.push(NAME, {path: small(), "good-Q4_K_M.gguf": small()})
    asked = len(known.hub.asked)
    assert known.look().troubles == ()
    assert known.event("target_published").payload["path"] == "good-Q4_K_M.gguf"
    assert all("etc" not in each.path and "xxx" not in each.path
               for each in known.hub.asked[asked:])  # fmt: skip
    assert path not in known.files(known.only_id)


def test_a_tree_of_more_pages_than_we_read_is_believed(
    known: HubScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of it agrees, so the files are news, the unread ones without a xet hash."""
    monkeypatch.setattr("support.hugging_face.PAGE_SIZE", 1)
    names = [f"a{number:02}.gguf" for number in range(MOST_TREE_PAGES + 2)]
    known.hub.push(NAME, {name: small() for name in names})
    assert known.look().troubles == ()
    files = known.files(known.only_id)
    assert files[names[0]].xet_hash
    assert not files[names[-1]].xet_hash


def test_no_token_leaves_the_hub(known: HubScene) -> None:
    """The origin behind a redirect gets none, the hub gets ours, nobody gets another's."""
    known.token = "hf_ours"
    known.__post_init__()
    known.hub.push(NAME, {"a-dflash-q8_0.gguf": dflash()})
    asked = len(known.hub.asked)
    known.look()
    sent = {(each.is_cdn, each.authorization) for each in known.hub.asked[asked:]}
    assert sent == {(False, "Bearer hf_ours"), (True, None)}


def test_a_refused_token_stops_all_and_is_said(known: HubScene) -> None:
    """401 to a token is no missing repository."""
    known.token = "hf_old"
    known.__post_init__()
    known.hub.fail("^hub ", times=99, status=401)
    found = known.look()
    assert any("refused the token" in line for line in found.troubles)
    assert known.state(f"cooldown:hf:{known.client.identity}").retry_at > known.now
    assert known.row(known.only_id).misses == 0


def test_the_last_of_the_quota_is_kept(known: HubScene) -> None:
    """Lists leave a tenth of the window to looks that have a cause."""
    known.hub.remaining = 30
    known.look()
    known.later(minutes=10)
    known.hub.reset_seconds = 120
    with reading(known.database) as session:
        kept = source_states.source_state(session, "quota:hf:anonymous:api")
    assert kept.cursor["limit"] == 500
    assert kept.cursor["remaining"] < 30
    known.now = kept.retry_at - timedelta(seconds=1)
    found = known.look("hf_lists", force=True)
    assert "kept for tiers before" in found.waiting[0]


def test_a_place_without_an_answer_stops_no_other(known: HubScene) -> None:
    """The next place is looked at all the same."""
    known.watch("author:other")
    known.hub.fail("author=other", times=9, status=500)
    known.hub.push(NAME, {"README.md": b"two"})
    found = known.look()
    assert len(found.troubles) == 1
    assert known.kinds() == ["hf_card_changed"]
