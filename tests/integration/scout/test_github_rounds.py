"""Whole rounds against a GitHub on loopback, over both databases: events, doubt, and silence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from support import github_json as make
from support.github_scene import BEE, BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading, writing
from jobs.store import forks, source_states
from scout.github.answers import Answer
from scout.github.desk import Desk, Held, Page
from scout.github.governor import Tier


def test_the_first_look_is_a_baseline(chain: Scene) -> None:
    """What is there already makes rows and no event; the chain is found three deep."""
    chain.github.put(UPSTREAM, "releases", make.release(1, "b9100", "2026-05-17T00:00:00Z"))
    chain.github.put(UPSTREAM, "issues", make.issue(5, "ggml-org/llama.cpp", "2026-05-01T00:00:00Z",
                     state="closed", closed_at="2026-05-01T00:00:00Z"))  # fmt: skip
    assert chain.look().new == ()
    chain.later(days=1, minutes=1)
    assert chain.look().new == ()
    bee = chain.row(BEE)
    assert (bee.parent_github_id, bee.root_github_id, bee.depth) == (BUUN, UPSTREAM, 3)
    assert (bee.tier, chain.row(BUUN).tier) == (3, 0)
    assert chain.row(TURBO).parent_github_id == UPSTREAM


def test_a_quiet_network_costs_nothing(chain: Scene) -> None:
    """With a token, the second day of a network that stands still is free of charge."""
    chain.look()
    chain.later(days=1, minutes=1)
    chain.look()
    chain.later(days=1, minutes=1)
    chain.github.asked.clear()
    assert chain.look().new == ()
    assert len(chain.github.asked) > 10
    assert chain.github.charged == 0


def test_looks_wait_for_their_time(chain: Scene) -> None:
    """Once all of the chain is found, nothing is due a minute later; with `force` all is."""
    for _ in range(3):
        chain.look()
    chain.later(minutes=1)
    assert chain.look().requests == 0
    assert chain.look(force=True).requests > 5


def test_a_new_fork_is_told_once(chain: Scene) -> None:
    """By the newest page, within minutes, with its place in the network."""
    chain.look()
    chain.later(minutes=11)
    chain.github.add(77, "new/fork", parent=BUUN, created_at="2026-05-18T12:05:00Z", stars=3,
                     description="turbo \x1b[31mKV")  # fmt: skip
    assert [each.key for each in chain.look().new] == ["gh:fork:77"]
    event = chain.event("gh:fork:77")
    assert event.title == "new/fork was forked from spiritbuun/buun-llama-cpp"
    assert event.payload["parent_id"] == BUUN
    assert event.payload["root_id"] == UPSTREAM
    assert event.payload["depth"] == 3
    assert event.payload["description"] == "turbo [31mKV"
    assert event.happened_at == datetime(2026, 5, 18, 12, 5, tzinfo=UTC)
    chain.later(days=1)
    assert "gh:fork:77" not in [each.key for each in chain.look().new]


def test_a_fork_of_a_fork_is_told_though_its_parent_had_none(chain: Scene) -> None:
    """The first list of a fork that we watched already is no baseline for what came after."""
    chain.look()
    chain.later(days=1)
    chain.look()
    chain.github.add(88, "deep/fork", parent=BEE, created_at="2026-05-19T13:00:00Z")
    chain.later(days=1, hours=1)
    chain.look()
    assert "gh:fork:88" in chain.told()
    assert chain.row(88).depth == 4


def test_a_fork_made_while_the_first_census_broke_off_is_not_flooded(chain: Scene) -> None:
    """A baseline that needs two rounds is still one baseline."""
    for number in range(150):
        chain.github.add(2000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM,
                         created_at="2026-04-01T00:00:00Z")  # fmt: skip
    chain.github.fail(r"page=2", status=502, body=b"<html>")
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert 100 <= len(forks.forks_of(session, UPSTREAM)) < 151
    chain.later(minutes=2)
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 151


def test_a_page_size_that_always_fails_is_made_smaller(chain: Scene) -> None:
    """Some pages can never be had whole; quarters of it can."""
    for number in range(150):
        chain.github.add(2000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM)
    chain.github.fail(r"per_page=100&page=2", times=99, status=502, body=b"<html>")
    for _ in range(3):
        chain.look()
        chain.later(minutes=10)
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 151


def test_a_partial_list_removes_nothing(chain: Scene) -> None:
    """However often it breaks off: only a list read to its end can miss a fork."""
    chain.look()
    chain.github.fail("forks", times=500, status=502, body=b"<html>")
    for _ in range(6):
        chain.later(days=1, minutes=1)
        chain.look()
    assert chain.row(TURBO).state == "known"
    assert chain.row(TURBO).misses == 0


def test_duplicated_and_reordered_items_are_one_fork_each(chain: Scene) -> None:
    """Pages shift under the reader's feet."""
    chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.github.fail(f"{UPSTREAM}/forks", change=lambda page: [*reversed(page), *page])
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 2


def test_hostile_and_headless_items_are_left_out_or_harmless(chain: Scene) -> None:
    """A null owner survives; a name git could not be asked for does not become a row."""

    def spoil(page: list[Any]) -> list[Any]:
        odd = make.repository(13, "x/y")
        bad = {**make.repository(14, "x/y"), "full_name": "--upload-pack=touch/../x"}
        return [*page, {**odd, "owner": None, "pushed_at": None}, bad, {"id": 15}]

    chain.github.fail(f"{UPSTREAM}/forks", change=spoil)
    chain.look()
    assert chain.row(13).facts["owner"] == ""
    with reading(chain.database) as session:
        assert forks.repository(session, 14) is None


def gone_keys(scene: Scene, github_id: int) -> list[str]:
    return [key for key in scene.told() if key.startswith(f"gh:repo:{github_id}:gone")]


def test_missing_once_is_not_gone(chain: Scene) -> None:
    """A 404 that comes back leaves no trace; three over a day mean gone; return is told."""
    chain.look()
    chain.github.status_of[BUUN] = 404
    chain.later(minutes=16)
    chain.look()
    assert chain.row(BUUN).misses == 1
    del chain.github.status_of[BUUN]
    chain.later(minutes=16)
    chain.look()
    assert (chain.row(BUUN).misses, chain.row(BUUN).state) == (0, "known")
    chain.github.status_of[BUUN] = 404
    for _ in range(8):
        chain.later(minutes=16)
        chain.look()
    assert (chain.row(BUUN).misses, chain.row(BUUN).state) == (8, "known")
    assert gone_keys(chain, BUUN) == []
    chain.later(hours=24)
    chain.look()
    assert chain.row(BUUN).state == "gone"
    assert len(gone_keys(chain, BUUN)) == 1
    chain.later(hours=24)
    chain.look()
    assert len(gone_keys(chain, BUUN)) == 1
    del chain.github.status_of[BUUN]
    chain.later(hours=24)
    chain.look()
    assert chain.row(BUUN).state == "known"
    assert any(key.startswith(f"gh:repo:{BUUN}:returned") for key in chain.told())


def test_a_fork_that_left_the_list_needs_three_whole_censuses(chain: Scene) -> None:
    """And then a day; a tier-3 fork goes without an event."""
    chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.look()
    chain.github.remove(11)
    seen = []
    for _ in range(4):
        chain.later(days=1, minutes=1)
        chain.look()
        seen.append((chain.row(11).misses, chain.row(11).state))
    assert seen == [(1, "known"), (2, "known"), (3, "gone"), (3, "gone")]
    assert gone_keys(chain, 11) == []


def test_a_takedown_blocks_one_repository_and_stops_nobody(chain: Scene) -> None:
    """451 is an event of its own, once; the others are looked at."""
    chain.look()
    chain.github.status_of[BUUN] = 451
    chain.later(minutes=16)
    assert chain.look().troubles == ()
    assert chain.row(BUUN).state == "blocked"
    assert f"gh:repo:{BUUN}:blocked:2026-05-18" in chain.told()
    assert chain.row(UPSTREAM).last_seen_at == chain.now
    chain.later(minutes=16)
    assert chain.look().new == ()


def test_a_renamed_repository_stays_itself(chain: Scene) -> None:
    """The id is the identity; the new name is told once and asked by id ever after."""
    chain.look()
    chain.github.rename(BUUN, "spiritbuun/new-name")
    chain.later(minutes=16)
    chain.look()
    assert f"gh:repo:{BUUN}:renamed:spiritbuun/new-name" in chain.told()
    assert chain.row(BUUN).full_name == "spiritbuun/new-name"
    assert chain.event(f"gh:repo:{BUUN}:renamed:spiritbuun/new-name").payload["old_name"] == (
        "spiritbuun/buun-llama-cpp"
    )


def test_a_watch_list_with_an_old_name_finds_the_repository(scene: Scene) -> None:
    """301 at the first look: the event says so, the engine is tied to the id."""
    scene.github.add(BUUN, "spiritbuun/old")
    scene.github.rename(BUUN, "spiritbuun/new")
    scene.engine("buun", "spiritbuun/old")
    scene.look("github_repositories")
    assert scene.row(BUUN).engine_id is not None
    event = scene.event(f"gh:repo:{BUUN}:renamed:spiritbuun/new")
    assert event.payload["status"] == 301


def test_a_name_nobody_has_is_said_and_asked_again(scene: Scene) -> None:
    """A typing error in the watch list is no repository that is gone."""
    scene.engine("typo", "ggml-org/lama.cpp")
    look = scene.look()
    assert "check the name in the watch list" in look.troubles[0]
    assert scene.told() == []


def test_archived_and_default_branch_are_told(chain: Scene) -> None:
    """Each change is one event."""
    chain.look()
    chain.github.repos[BUUN].update(archived=True, default_branch="main")
    chain.later(minutes=16)
    kinds = {each.kind for each in chain.look().new}
    assert kinds == {"repo_archived", "repo_default_changed"}


def test_a_list_that_is_empty_for_an_empty_repository(chain: Scene) -> None:
    """409 is an answer: nothing there yet."""
    chain.github.fail("releases", times=9, status=409)
    assert chain.look("github_releases").new == ()
    assert not any(key.startswith("src:") for key in chain.told())


Change = Callable[[Scene], None]


def test_releases_and_their_files(chain: Scene) -> None:
    """A release, files that come a day later, one that is replaced; drafts are nothing."""
    old = make.release(1, "b9100", "2026-05-17T00:00:00Z", author=None,
                       assets=[make.asset(10, "linux.tar.gz")])  # fmt: skip
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    new = make.release(2, "b9200", "2026-05-18T12:03:00Z", author=None)
    draft = make.release(3, "v3", None)
    chain.github.put(UPSTREAM, "releases", draft, new, old)
    chain.later(minutes=6)
    assert [each.key for each in chain.look().new] == ["gh:rel:2"]
    event = chain.event("gh:rel:2")
    assert event.title == "ggml-org/llama.cpp released b9200 (no files yet)"
    assert event.payload["author"] is None
    chain.github.put(UPSTREAM, "releases", {**new, "assets": [make.asset(20, "cuda.zip")]}, old)
    chain.later(minutes=6)
    (added,) = chain.look().new
    assert added.kind == "release_assets_changed"
    assert added.payload["added"] == ["20"]
    assert str(added.payload["assets"][0]["digest"]).startswith("sha256:")
    swapped = make.asset(20, "cuda.zip", "other bytes")
    chain.github.put(UPSTREAM, "releases", {**new, "assets": [swapped]}, old)
    chain.later(minutes=6)
    (replaced,) = chain.look().new
    assert replaced.key.startswith("gh:relassets:2:")
    assert replaced.payload["replaced"] == ["20"]
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_an_old_release_that_surfaces_is_no_news(chain: Scene) -> None:
    """Deleting a newer one moves older ones into the page."""
    chain.look()
    chain.github.put(UPSTREAM, "releases", make.release(1, "b1", "2026-01-01T00:00:00Z"))
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_many_releases_at_once_are_read_to_the_first_known(chain: Scene) -> None:
    """Fifty in one night are two pages; one page that fails leaves it all for later."""
    old = make.release(1, "b1", "2026-05-17T00:00:00Z")
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    many = [make.release(100 - n, f"b{100 - n}", f"2026-05-18T12:{59 - n:02d}:00Z")
            for n in range(50)]  # fmt: skip
    chain.github.put(UPSTREAM, "releases", *many, old)
    chain.github.fail("releases.*page=2", status=502, body=b"<html>")
    chain.later(minutes=60)
    assert chain.look().new == ()
    chain.later(minutes=6)
    assert len([k for k in [each.key for each in chain.look().new] if "gh:rel:" in k]) == 50


def test_pull_requests_of_interest(chain: Scene) -> None:
    """Those whose head we watch, or that somebody linked; opened, pushed to, merged."""
    base, head = chain.github.repos[UPSTREAM], chain.github.repos[BUUN]
    other = chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.look()
    ours = make.pull(25110, head, base, "2026-05-18T12:01:00Z", title="dflash <b>")
    theirs = make.pull(25111, other, base, "2026-05-18T12:02:00Z")
    lost = {**make.pull(25112, other, base, "2026-05-18T12:03:00Z"), "user": None}
    lost["head"] = {**lost["head"], "repo": None}
    chain.github.put(UPSTREAM, "pulls", lost, theirs, ours)
    chain.later(minutes=6)
    (opened,) = chain.look().new
    assert opened.kind == "pr_opened"
    assert opened.key == f"gh:pr:{UPSTREAM}:25110:{ours['head']['sha']}:open"
    pushed = {**ours, "updated_at": "2026-05-18T12:07:00Z",
              "head": {**ours["head"], "sha": make.sha("push")}}  # fmt: skip
    chain.github.put(UPSTREAM, "pulls", pushed, lost, theirs)
    chain.later(minutes=6)
    assert [each.kind for each in chain.look().new] == ["pr_updated"]
    merged = {**pushed, "updated_at": "2026-05-18T12:13:00Z", "state": "closed",
              "merged_at": "2026-05-18T12:13:00Z", "closed_at": "2026-05-18T12:13:00Z"}  # fmt: skip
    chain.github.put(UPSTREAM, "pulls", merged, lost, theirs)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == f"gh:pr:{UPSTREAM}:25110:{make.sha('push')}:merged"


def test_issues_closed_and_opened_again(chain: Scene) -> None:
    """Each move is one event; a comment on an old closed issue is none; a pull is no issue."""
    name = "spiritbuun/buun-llama-cpp"
    chain.github.put(BUUN, "issues", make.issue(30, name, "2026-05-18T11:00:00Z"))
    chain.look()
    closed = make.issue(35, name, "2026-05-18T12:04:00Z", state="closed", user=None,
                        state_reason="completed", closed_at="2026-05-18T12:04:00Z")  # fmt: skip
    stale = make.issue(2, name, "2026-05-18T12:03:00Z", state="closed",
                       closed_at="2025-01-01T00:00:00Z")  # fmt: skip
    as_pull = make.issue(36, name, "2026-05-18T12:04:30Z", state="closed",
                         closed_at="2026-05-18T12:04:30Z",
                         pull_request={"url": None, "html_url": None, "diff_url": None,
                                       "patch_url": None})  # fmt: skip
    chain.github.put(BUUN, "issues", as_pull, closed, stale)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == f"gh:issue:{BUUN}:35:closed:2026-05-18T12:04:00+00:00"
    opened = {**closed, "state": "open", "state_reason": "reopened", "closed_at": None,
              "updated_at": "2026-05-18T12:08:00Z"}  # fmt: skip
    chain.github.put(BUUN, "issues", opened, as_pull, stale)
    chain.later(minutes=6)
    (again,) = chain.look().new
    assert again.kind == "issue_reopened"
    asked = [each.path for each in chain.github.asked if "since=" in each.path]
    assert asked
    assert all("%2B00" not in path and "Z" in path for path in asked)
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_a_linked_issue_tells_every_move(chain: Scene) -> None:
    """Also an answer; it needs no engine, and the first look is silent."""
    chain.github.add(99, "some/where")
    item = make.issue(35, "some/where", "2026-05-18T11:00:00Z", title="slow \x1b[2Jdrafts")
    chain.github.put(99, "issues", item)
    with writing(chain.database) as session:
        forks.link_issue(session, "some/where", 35, note="ours", now=chain.now)
    chain.look()
    chain.later(minutes=6)
    answered = {**item, "comments": 1, "updated_at": "2026-05-18T12:05:00Z"}
    chain.github.put(99, "issues", answered)
    (moved,) = chain.look().new
    assert moved.kind == "issue_moved"
    assert moved.title == "some/where#35 moved: slow [2Jdrafts"
    closed = {**answered, "state": "closed", "closed_at": "2026-05-18T12:10:00Z",
              "updated_at": "2026-05-18T12:10:00Z"}  # fmt: skip
    chain.github.put(99, "issues", closed)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert told.key == "gh:issue:99:35:closed:2026-05-18T12:10:00+00:00"
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_a_linked_pull_request_is_followed_by_its_head(chain: Scene) -> None:
    """Its own page tells the head commit and the merge."""
    base = chain.github.repos[UPSTREAM]
    pull = make.pull(22105, base, base, "2026-05-18T11:00:00Z")
    as_issue = make.issue(22105, "ggml-org/llama.cpp", "2026-05-18T11:00:00Z",
                          pull_request={"url": None, "html_url": None, "diff_url": None,
                                        "patch_url": None})  # fmt: skip
    chain.github.put(UPSTREAM, "issues", as_issue)
    chain.github.put(UPSTREAM, "pulls", pull)
    with writing(chain.database) as session:
        forks.link_issue(session, "ggml-org/llama.cpp", 22105, note="", now=chain.now)
    chain.look()
    chain.later(minutes=6)
    merged = {
        **pull,
        "state": "closed",
        "merged_at": "2026-05-18T12:05:00Z",
        "closed_at": "2026-05-18T12:05:00Z",
        "updated_at": "2026-05-18T12:05:00Z",
    }
    chain.github.put(UPSTREAM, "pulls", merged)
    (told,) = chain.look().new
    assert told.key == f"gh:pr:{UPSTREAM}:22105:{pull['head']['sha']}:merged"


def test_a_secondary_limit_stops_every_worker(chain: Scene) -> None:
    """Worker 2 does not call before a minute is over; the second hit means two."""
    other = chain.worker()
    chain.github.fail("", times=1, status=429)
    first = chain.look()
    assert len(chain.github.asked) == 1
    assert first.waiting
    chain.later(seconds=59)
    assert chain.look(client=other, force=True).requests == 0
    chain.later(seconds=2)
    chain.github.fail("", times=1, status=403, body=b"secondary rate limit")
    assert chain.look(client=other, force=True).requests == 1
    chain.later(seconds=119)
    assert chain.look(force=True).requests == 0
    chain.later(seconds=2)
    assert chain.look(force=True).requests > 1
    assert any(key.startswith("src:") and ":degraded:" in key for key in chain.told())
    assert any(key.startswith("src:") and ":recovered:" in key for key in chain.told())


def test_an_answer_that_was_on_its_way_does_not_end_a_cool_down(chain: Scene) -> None:
    """Worker 2's good answer comes in after worker 1 was told to stop."""
    other, page = chain.worker(), Page(f"repositories/{UPSTREAM}", many=False)

    def meanwhile(body: Any) -> Any:
        chain.github.fail("", status=429)
        Desk(chain.database, other, lambda: chain.now).ask(page, Tier.CHAIN)
        return body

    chain.github.fail("", change=meanwhile)
    desk = Desk(chain.database, chain.client, lambda: chain.now)
    first = desk.ask(page, Tier.CHAIN)
    assert isinstance(first, Answer)
    assert first.trusted
    held = desk.ask(page, Tier.CHAIN)
    assert isinstance(held, Held)
    assert held.until == chain.now + timedelta(seconds=60)


def test_a_crash_of_ours_stops_no_other_place(chain: Scene, capsys: Any) -> None:
    """It is logged and said, and the place is asked again later."""
    chain.look()
    chain.github.put(BUUN, "releases", make.release(1, "v1", "2026-05-18T12:03:00Z"))
    chain.later(minutes=16)
    with writing(chain.database) as session:
        key = f"github_releases:{BUUN}"
        source_states.lock_source_state(session, key, chain.now).cursor = {"files": 7}
    look = chain.look()
    assert look.troubles == (
        "spiritbuun/buun-llama-cpp: a fault of forkscout, TypeError; see the log",
    )
    assert look.looked > 3
    assert "look crashed" in capsys.readouterr().out


def test_an_empty_quota_is_waited_for_and_changes_nothing(chain: Scene) -> None:
    """403 with nothing left: nobody asks until GitHub's reset, and no fork is lost."""
    chain.look()
    chain.later(days=1, minutes=1)
    chain.github.fail("", times=99, status=403, headers={"X-RateLimit-Remaining": "0"})
    assert chain.look().requests == 1
    chain.later(minutes=20)
    assert chain.look().requests == 0
    chain.github.faults.clear()
    chain.later(minutes=11)
    assert chain.look().requests > 5
    assert {chain.row(each).state for each in (UPSTREAM, TURBO, BUUN, BEE)} == {"known"}


def test_the_rest_of_the_quota_is_for_the_chain(chain: Scene) -> None:
    """Below 40 % the census waits, releases of the chain are looked at."""
    chain.github.remaining = 1900
    look = chain.look()
    assert any("github_census" in each for each in look.waiting)
    assert any("/releases" in each.path for each in chain.github.asked)
    assert not any("sort=oldest" in each.path for each in chain.github.asked)


def test_a_dead_token_is_told_once_and_changes_nothing(chain: Scene) -> None:
    """401 is no news of any fork; one event says what to do."""
    chain.look()
    chain.github.fail("", times=999, status=401)
    for _ in range(5):
        chain.later(minutes=16)
        chain.look()
    degraded = [key for key in chain.told() if ":degraded:" in key]
    assert len(degraded) == len({key.split(":")[1] for key in degraded})
    assert "refused the token" in chain.event(degraded[0]).title
    assert chain.row(BUUN).misses == 0


def test_a_token_that_is_silently_ignored_is_said(chain: Scene) -> None:
    """The quota drops from thousands to sixty, and nothing else tells."""
    chain.github.limit = chain.github.remaining = 60
    assert "the token is not taken" in chain.look().troubles[-1]


def test_a_source_without_answers_is_told_after_three_rounds(chain: Scene) -> None:
    """A passing 502 is nobody's business; a lasting one is, and so is its end."""
    chain.look()
    chain.github.fail("releases", times=999, status=502, body=b"<html>")
    for _ in range(4):
        chain.later(hours=2)
        chain.look()
    keys = [key for key in chain.told() if key.startswith("src:github_releases")]
    assert len(keys) == 1
    chain.github.faults.clear()
    chain.later(hours=2)
    chain.look()
    assert len([k for k in chain.told() if k.startswith("src:github_releases:recovered")]) == 1


def test_without_a_token_it_works_slowly(scene: Scene) -> None:
    """No Authorization, an hour between looks, and the shares of a quota of sixty."""
    scene.token, scene.github.limit, scene.github.remaining = "", 60, 60
    scene.client = scene.worker()
    scene.engine("upstream", "ggml-org/llama.cpp")
    scene.look()
    assert all(each.authorization is None for each in scene.github.asked)
    scene.later(minutes=59)
    assert scene.look().requests == 0
    scene.later(minutes=2)
    assert scene.look().requests > 0


def test_another_token_has_its_own_etags(chain: Scene) -> None:
    """GitHub's ETags belong to a token; one that was replaced starts anew."""
    chain.look()
    chain.token = "another"
    chain.later(days=1)
    chain.github.asked.clear()
    chain.look(client=chain.worker())
    assert all(each.if_none_match is None for each in chain.github.asked)
