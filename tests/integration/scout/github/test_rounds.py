"""Whole rounds against a GitHub on loopback: baselines, quotas, doubt, and silence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support import github_json as make
from support.scene import BEE, BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading, writing
from jobs.store import source_states
from jobs.store.source_health import outlook
from scout.github.answers import Answer
from scout.github.desk import Desk, Held, Page
from scout.github.governor import Tier
from scout.status_cli import lines


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


def test_one_look_tells_since_when_a_source_is_not_well(chain: Scene) -> None:
    """Why, what to do and the quota left; it stays until an answer comes, then it is gone."""
    chain.look()
    with reading(chain.database) as session:
        before = outlook(session)
    assert before.unwell == ()
    assert before.quotas[0].bucket == "core"
    chain.github.fail("", times=999, status=401)
    chain.later(minutes=16)
    since = chain.now
    chain.look()
    chain.later(minutes=16)
    chain.look()
    with reading(chain.database) as session:
        found = outlook(session)
    assert found.unwell
    for each in found.unwell:
        assert each.state == "degraded"
        assert each.since is not None
        assert each.since - since < timedelta(minutes=20)
        assert "GitHub refused the token" in each.why
        assert "FORKSCOUT_GITHUB_TOKEN" in each.advice
    said = "\n".join(lines(found, now=chain.now))
    assert f"degraded since {found.unwell[0].since:%Y-%m-%d %H:%M} UTC" in said
    assert "GitHub is left alone until" in said
    chain.github.faults.clear()
    for _ in range(2):
        chain.later(minutes=70)
        chain.look()
    with reading(chain.database) as session:
        assert outlook(session).unwell == ()


def test_a_token_that_is_ignored_stays_in_sight(chain: Scene) -> None:
    """One event when it starts, degraded with its date until GitHub counts it again."""
    chain.look()
    chain.github.limit = chain.github.remaining = 60
    for _ in range(3):
        chain.later(minutes=70)
        chain.look()
    assert len([key for key in chain.told() if "src:github_token:degraded" in key]) == 1
    with reading(chain.database) as session:
        (token,) = (each for each in outlook(session).sources if each.source == "github_token")
    assert (token.state, token.failing) == ("degraded", 1)


def test_the_end_of_a_token_is_shown_before_it_comes(chain: Scene) -> None:
    """GitHub names the day with each answer to a token that ends."""
    ends = chain.now + timedelta(days=5, hours=1)
    chain.github.headers["GitHub-Authentication-Token-Expiration"] = f"{ends:%Y-%m-%d %H:%M:%S} UTC"
    chain.look()
    with reading(chain.database) as session:
        said = list(lines(outlook(session), now=chain.now))
    assert f"the token ends {ends:%Y-%m-%d}, in 5 days" in said
    assert "  next: make a new one and set FORKSCOUT_GITHUB_TOKEN" in said


def test_every_failure_is_told_however_soon_it_follows(chain: Scene) -> None:
    """Each is keyed by the moment since when the source is unwell: two in an hour are two."""
    chain.look()
    for _ in range(2):
        chain.later(minutes=6)
        chain.github.fail("/releases", status=401)
        degraded = chain.look("github_releases", force=True)
        assert "source_degraded" in [each.kind for each in degraded.new]
        chain.later(minutes=16)
        recovered = chain.look("github_releases", force=True)
        assert "source_recovered" in [each.kind for each in recovered.new]
    keys = [key for key in chain.told() if key.startswith("src:github_releases:")]
    assert len(keys) == 4


def test_places_without_an_answer_were_not_looked_at(chain: Scene) -> None:
    """They are counted apart."""
    chain.github.fail("", times=99, status=502)
    found = chain.look()
    assert (found.looked, found.unanswered) == (0, 4)


def test_two_commits_are_never_compared_by_github(chain: Scene) -> None:
    """Its page stops at 300 files and 250 commits; git counts without a limit (C57)."""
    for _ in range(3):
        chain.look(force=True)
        chain.later(hours=25)
    assert chain.github.asked
    assert not any("/compare" in each.path for each in chain.github.asked)
