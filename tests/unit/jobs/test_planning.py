"""What an event leads to, what it costs, and what is left out and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.worlds import drafter, engine, file, pushed, revision, stack, told_of, world

from jobs.estimates import Past
from jobs.fit.setup import Card
from jobs.model import BuildTarget, Kind, Lane, Trust
from jobs.planning.drafts import Why
from jobs.planning.plan import Plan, asked, plan
from jobs.planning.rules import Do, Rule
from jobs.planning.world import Budget, SeriesPast


def kinds(found: Plan) -> list[Kind]:
    return [each.kind for each in found.requests]


def whys(found: Plan) -> list[Why]:
    return [each.why for each in found.left_out]


def bench_of(found: Plan):
    return next(each for each in found.requests if each.kind is Kind.BENCH)


def test_a_push_is_fetched_built_and_benched():
    """In that order; the bench names what it needs, who asks and why."""
    found = plan(pushed(), world())
    assert kinds(found) == [Kind.FETCH_MODEL, Kind.BUILD, Kind.BENCH]
    fetch, build, bench = found.requests
    assert bench.needs == (fetch.identity, build.identity)
    assert (bench.source, bench.lane) == ("engine:buun", Lane.FRESH)
    assert bench.cause == {"event_id": 1, "rule": "default:fork_pushed"}
    assert found.left_out == ()


def test_a_rule_of_the_list_goes_before_the_default():
    """The first that fits decides: this stack is left alone, the others are benched."""
    quiet = Rule("quiet", "fork_pushed", Do.NOTHING, stacks=("qwen-buun",))
    found = plan(pushed(), world(stack(), stack("b", context_tokens=4096), rules=(quiet,)))
    assert [each.payload["stack"] for each in found.requests if each.kind is Kind.BENCH] == ["b"]
    [left] = found.left_out
    assert (left.why, left.detail) == (Why.RULE, "quiet says nothing is done")


def test_a_rule_moves_to_another_lane():
    """Priority is worth half an hour a step."""
    rule = Rule("later", "fork_pushed", Do.BENCH, lane=Lane.BACKFILL, priority=3)
    bench = bench_of(plan(pushed(), world(rules=(rule,))))
    assert (bench.lane, bench.priority) == (Lane.BACKFILL, 3)


def test_a_rule_may_ask_for_the_build_alone():
    """Nothing is fetched for it."""
    rule = Rule("compile", "fork_pushed", Do.BUILD)
    assert kinds(plan(pushed(), world(rules=(rule,)))) == [Kind.BUILD]


def test_a_kind_without_a_default_asks_for_nothing_until_a_rule_does():
    """Then it is about the engine's newest revision."""
    event = pushed(kind="tag_created", revision=None)
    assert plan(event, world()) == Plan()
    rule = Rule("tags", "tag_created", Do.BENCH)
    assert bench_of(plan(event, world(rules=(rule,)))).payload["revision_id"] == 9


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"trust": Trust.NEVER}, Why.TRUST),
        ({"retired": True}, Why.RETIRED),
        ({"drivable": False}, Why.FAMILY),
        ({"targets": ()}, Why.NO_RIG),
    ],
)
def test_an_engine_that_may_not_run_is_left_out(changes, why):
    """With the reason, once for all its stacks."""
    found = plan(pushed(), world(engines=(engine(**changes),)))
    assert (found.requests, whys(found)) == ((), [why])


def test_a_file_that_is_not_known_is_left_out():
    """A stack names a drafter of a list that was never imported."""
    found = plan(pushed(), world(stack(wants_drafter=True)))
    assert whys(found) == [Why.MODEL]
    assert "drafter" in found.left_out[0].detail


def test_a_question_is_asked_once():
    """What was tried, what stands as a negative, and what a failed build holds up."""
    event, known = pushed(), world()
    fetch, build, bench = plan(event, known).requests
    for changes, why in (
        ({"tried": frozenset({bench.identity})}, Why.TRIED),
        ({"negatives": frozenset({bench.identity})}, Why.NEGATIVE),
        ({"failed": {build.identity: "job 3 failed (compile)"}}, Why.BUILD_FAILED),
    ):
        found = plan(event, replace(known, **changes))
        assert (found.requests, whys(found)) == ((), [why])
    assert plan(event, replace(known, tried=frozenset({fetch.identity}))).requests


def test_a_closed_issue_asks_again_where_somebody_linked_it():
    """What was tried before may work now; an issue that nobody linked asks for nothing."""
    event = pushed(kind="issue_closed", revision=None, linked="our crash")
    bench = bench_of(plan(event, world()))
    again = world(tried=frozenset({bench.identity}))
    assert bench_of(plan(event, again)).identity == bench.identity
    assert plan(replace(event, linked=None), world()) == Plan()


def test_the_note_of_a_link_names_the_stack():
    """Only that one is run again."""
    stacks = (stack(), stack("other", context_tokens=4096))
    event = pushed(kind="issue_closed", revision=None, linked="crash of other, 4096 tokens")
    found = plan(event, world(*stacks))
    assert bench_of(found).payload["stack"] == "other"
    assert kinds(found).count(Kind.BENCH) == 1


def test_a_new_capability_benches_the_recipes_that_name_it():
    """Where no stack does, the build alone is wanted: it tells whether the capability compiles."""
    event = pushed(kind="fork_capability_changed", facts={"new": ["cache_types:turbo3"]})
    stacks = (stack(), stack("tq", intent={"kv": "turbo3"}))
    found = plan(event, world(*stacks))
    assert [each.payload["stack"] for each in found.requests if each.kind is Kind.BENCH] == ["tq"]
    assert kinds(plan(event, world())) == [Kind.BUILD]


def test_a_rebase_that_brought_nothing_waits():
    """Its lane is that of retests."""
    assert bench_of(plan(pushed(low_priority=True), world())).lane is Lane.RETEST


def test_a_first_measurement_brings_its_baseline():
    """The parent's bench of the same series, as backfill, unless another revision is measured."""
    event = pushed(parent=revision(5))
    found = plan(event, world())
    [baseline] = found.baselines
    assert baseline.bench == bench_of(found).identity
    assert {each.lane for each in baseline.requests} == {Lane.BACKFILL}
    assert baseline.requests[-1].payload["revision_id"] == 5
    series = next(iter(asked(event, world()).series))
    past = {series: SeriesPast(revisions=frozenset({4}))}
    assert plan(event, world(series=past)).baselines == ()
    tried = frozenset({baseline.requests[-1].identity})
    assert plan(event, world(tried=tried)).baselines == ()


def test_a_replaced_head_is_no_baseline():
    """It was superseded before anybody measured it; one of its benches that runs still serves."""
    event = pushed(parent=revision(5))
    [baseline] = plan(event, world()).baselines
    replaced = replace(event, parent=replace(event.parent, replaced=True))
    assert plan(replaced, world()).baselines == ()
    bench = baseline.requests[-1].identity
    found = plan(replaced, world(waiting=frozenset({bench})))
    assert found.served == {bench: baseline.bench}


def test_what_takes_the_place_of_a_waiting_bench_has_its_hours():
    """A budget without an hour left cuts the other scenario alone."""
    spent = Budget(seconds=60, spent=600, rig="big")
    known = world(stack(scenarios=("decode-128", "decode-800")), budgets=(spent,))
    found = plan(pushed(), replace(known, given_up=frozenset({("big", "qwen-buun", "decode-128")})))
    assert bench_of(found).payload["scenario"] == "decode-128"
    [left] = found.left_out
    assert (left.why, "decode-800" in left.what) == (Why.BUDGET, True)
    assert (left.value is not None, "worth" in left.detail) == (True, False)


def test_what_several_benches_need_is_as_urgent_as_the_most_urgent():
    """Lane and priority of the build are those of the bench that goes first."""
    soon = Rule("soon", "fork_pushed", Do.BENCH, stacks=("b",), priority=2)
    late = Rule("late", "fork_pushed", Do.BENCH, lane=Lane.BACKFILL, priority=9)
    known = world(stack(), stack("b", context_tokens=4096), rules=(soon, late))
    [build] = [each for each in plan(pushed(), known).requests if each.kind is Kind.BUILD]
    assert (build.lane, build.priority) == (Lane.FRESH, 2)


IDLE = ["README.md", "docs/build.md", "tests/test-arg.cpp", ".github/workflows/build.yml"]


def idle_push(paths=None, **fields):
    """A push after the revision 5."""
    facts = {"paths": IDLE if paths is None else paths, "before": revision(5).value.commit}
    return pushed(**({"parent": revision(5), "facts": facts} | fields))


def asked_before(event) -> frozenset[str]:
    """The bench of the parent that such a push would be compared with."""
    [baseline] = plan(replace(event, facts={}), world()).baselines
    return frozenset({baseline.requests[-1].identity})


@pytest.mark.parametrize("how", ["tried", "waiting"])
def test_a_push_that_changes_nothing_that_is_built_is_left_out(how):
    """Where the commit before was asked the same question; it says which files changed."""
    event = idle_push()
    found = plan(event, world(**{how: asked_before(event)}))
    assert (found.requests, found.baselines, whys(found)) == ((), (), [Why.NOT_NEEDED])
    assert "README.md, docs/build.md, tests/test-arg.cpp and 1 more" in found.left_out[0].detail


@pytest.mark.parametrize(
    "event",
    [
        idle_push([*IDLE, "src/llama.cpp"]),
        idle_push([*IDLE, "CMakeLists.txt"]),
        idle_push(["tools/server/server.cpp"]),
        idle_push(facts={"paths": None, "before": revision(5).value.commit}),
        idle_push(facts={"paths": IDLE, "before": revision(4).value.commit}),
        idle_push(facts={}),
        idle_push(kind="release"),
    ],
    ids=["source", "recipe", "server", "too many", "another head", "unknown", "release"],
)
def test_a_push_that_may_change_what_is_built_is_built(event):
    """One file of the source is enough, and so is doubt."""
    tried = asked_before(replace(event, kind="fork_pushed"))
    assert Kind.BENCH in kinds(plan(event, world(tried=tried)))


def test_no_push_is_idle_where_a_dockerfile_is_built():
    """It may copy any file of the repository."""
    digest = f"base@sha256:{'a' * 64}"
    targets = (BuildTarget("big", "docker", "120", pins=(("dev_image", digest),)),)
    known = world(engines=(engine(targets=targets),))
    [baseline] = plan(replace(idle_push(), facts={}), known).baselines
    tried = replace(known, tried=frozenset({baseline.requests[-1].identity}))
    assert Kind.BENCH in kinds(plan(idle_push(), tried))


def test_an_idle_push_whose_parent_nobody_asked_about_is_measured():
    """Else nobody would ever measure that code."""
    assert Kind.BENCH in kinds(plan(idle_push(), world()))


def test_minutes_come_from_earlier_benches():
    """Of the same stack, else of the scenario on that rig; what nobody knows is said."""
    twice = world(stack(), stack("b", context_tokens=4096))
    assert (plan(pushed(), twice).gpu_minutes, plan(pushed(), twice).unknown) == (0.0, 2)
    assert plan(pushed(), twice).counted_minutes == 20.0
    first, second = (
        each.payload for each in plan(pushed(), twice).requests if each.kind is Kind.BENCH
    )
    took = {"bench.big": [Past("bench", second, 300.0)]}
    found = plan(pushed(), replace(twice, past=took))
    assert (found.gpu_minutes, found.unknown) == (10.0, 0)
    took["bench.big"].append(Past("bench", first, 60.0))
    found = plan(pushed(), replace(twice, past=took))
    assert (found.gpu_minutes, found.unknown) == (6.0, 0)


def test_a_drafter_is_tried_with_every_setup_that_loads_it():
    """buun of April loads the old form; it comes with the word of intents that it drafts by."""
    found = plan(told_of(drafter()), world())
    assert kinds(found) == [Kind.FETCH_MODEL, Kind.FETCH_MODEL, Kind.BUILD, Kind.BENCH]
    bench = bench_of(found)
    assert bench.payload["intent"] == {"speculation": "dflash"}
    assert bench.payload["drafter_sha256"] == drafter().weights.sha256
    assert (bench.source, bench.lane) == ("hub:spiritbuun", Lane.FRESH)


def test_an_engine_that_cannot_load_a_drafter_is_left_out():
    """With the sentence of the pairing that speaks against it."""
    known = world(engines=(engine(state="beellama@0.4"),))
    found = plan(told_of(drafter()), known)
    assert (found.requests, whys(found)) == ((), [Why.PAIRING])
    assert "form" in found.left_out[0].detail


def test_a_drafter_that_does_not_fit_is_left_out():
    """Card and component are named."""
    found = plan(told_of(drafter()), world(cards={"big": Card(12 * 2**30, reserve_bytes=0)}))
    assert (found.requests, whys(found)) == ((), [Why.DOES_NOT_FIT])
    assert "usable" in found.left_out[0].detail


def test_what_cannot_be_told_is_a_trial_behind_the_others():
    """A card of unknown size."""
    bench = bench_of(plan(told_of(drafter()), world(cards={})))
    assert bench.lane is Lane.RETEST
    assert bench.priority < 0
    assert "the memory of big is not known" in bench.reason


def test_stacks_that_differ_in_their_drafter_are_one_try():
    """The new one takes the place of each."""
    with_old = stack("old", drafter=drafter("a:old"), intent={"speculation": "dflash"})
    found = plan(told_of(drafter()), world(stack(), with_old))
    assert kinds(found).count(Kind.BENCH) == 1


def test_a_target_is_tried_alone_and_with_known_drafters():
    """As the engine's first stack is."""
    published = file("new:q4")
    found = plan(told_of(published, "target_published"), world(files=(published, drafter())))
    benches = [each for each in found.requests if each.kind is Kind.BENCH]
    assert [bool(each.payload["drafter_sha256"]) for each in benches] == [False, True]
    assert {each.payload["model_file_id"] for each in benches} == {published.weights.id}


def test_a_file_whose_header_was_not_read_is_left_out():
    """Nobody fetches 16 GB on a guess."""
    found = plan(told_of(drafter(shape=None, fault="no GGUF")), world())
    assert [(each.why, each.detail) for each in found.left_out] == [(Why.MODEL, "no GGUF")]


def test_a_new_projector_is_tried_where_the_old_one_was():
    """By the repository it comes from."""
    old = file("old", role="mmproj", shape=None)
    seeing = stack("seeing", projector=old, intent={"vision": "on"})
    new = file("new", role="mmproj", shape=None)
    found = plan(told_of(new, "hf_files_changed"), world(stack(), seeing))
    bench = bench_of(found)
    assert bench.payload["projector_sha256"] == new.weights.sha256
    assert kinds(found).count(Kind.BENCH) == 1


def test_a_sweep_over_its_budget_is_cut_by_value():
    """The least likely to bring a record goes, and what is left of the budget is said."""
    twice = world(stack(scenarios=("decode-128", "decode-800")))
    tight = replace(twice, budgets=(Budget(3600, spent=2700, rig="big"),))
    found = plan(pushed(), tight)
    assert bench_of(found).payload["scenario"] == "decode-128"
    [left] = found.left_out
    assert left.why is Why.BUDGET
    assert "rig big has 0.2 of 1.0 h left today" in left.detail
    assert left.value is not None
    assert left.value < 1


def test_a_budget_of_a_source_holds_on_every_rig():
    """And that of another source does not."""
    mine, other = Budget(0, source="engine:buun"), Budget(0, source="hub:somebody")
    assert whys(plan(pushed(), world(budgets=(mine,)))) == [Why.BUDGET]
    assert plan(pushed(), world(budgets=(other,))).requests


def test_only_what_was_held_back_comes_back():
    """As backfill; the rest of the event is not looked at again."""
    twice = world(stack(scenarios=("decode-128", "decode-800")))
    first, second = (each for each in plan(pushed(), twice).requests if each.kind is Kind.BENCH)
    found = plan(pushed(), twice, only={second.identity}, lane=Lane.BACKFILL)
    assert [each.identity for each in found.requests if each.kind is Kind.BENCH] == [
        second.identity
    ]
    assert {each.lane for each in found.requests} == {Lane.BACKFILL}
    assert first.identity not in {each.identity for each in found.left_out}


def test_a_ladder_is_a_bench_for_each_depth_that_has_room():
    """Each rung is a series of its own; those beyond the context are said and left out."""
    found = plan(pushed(), world(stack(scenarios=("ladder",), context_tokens=40_000)))
    benches = [each for each in found.requests if each.kind is Kind.BENCH]
    assert [each.payload["scenario"] for each in benches] == ["ladder@4096", "ladder@32768"]
    assert len({each.identity for each in benches}) == 2
    assert {each.payload["context_tokens"] for each in benches} == {40_000}
    assert "(ladder@32768, 40000 tokens)" in benches[1].title
    assert whys(found) == [Why.BEYOND] * 3
    assert "fills 65536 tokens and predicts 128, the context has 40000" in found.left_out[0].detail


def test_a_rule_means_all_rungs_of_a_ladder():
    """It names the scenario as the stack does."""
    rule = Rule("later", "fork_pushed", Do.BENCH, scenarios=("ladder",), lane=Lane.BACKFILL)
    found = plan(
        pushed(),
        world(stack(scenarios=("decode-128", "ladder"), context_tokens=40_000), rules=(rule,)),
    )
    lanes = {r.payload["scenario"]: r.lane for r in found.requests if r.kind is Kind.BENCH}
    assert lanes == {
        "decode-128": Lane.FRESH,
        "ladder@4096": Lane.BACKFILL,
        "ladder@32768": Lane.BACKFILL,
    }


def test_the_time_of_a_rung_is_that_of_its_depth():
    """A deep one takes far longer than a shallow one."""
    words = {"context_tokens": 40_000, "runs": 2, "boots": 2}
    past = [
        Past(Kind.BENCH, words | {"scenario": f"ladder@{depth}"}, seconds)
        for depth, seconds in ((4096, 60.0), (32_768, 600.0))
    ]
    asked_for = world(stack(scenarios=("ladder",), context_tokens=40_000), past={"bench.big": past})
    assert plan(pushed(), asked_for).gpu_minutes == 11.0
