"""What to queue for an event, at what cost, and what was left out and why; pure, queues nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobs.estimates import likely_seconds
from jobs.model import Lane
from jobs.negatives import bench_question
from jobs.planner import JobRequest
from jobs.planning import idle, worth
from jobs.planning.chains import Chain
from jobs.planning.drafts import Draft, LeftOut, Why, of_engine
from jobs.planning.pairs import of_file
from jobs.planning.rules import Do, Rule, deciding, is_about
from jobs.planning.world import Event, SeriesPast, World
from jobs.planning.worth import Wanted

OF_FILES = frozenset(
    {"drafter_published", "target_published", "mtp_variant_published", "hf_files_changed"}
)
OF_ISSUES = frozenset({"issue_closed", "issue_reopened", "issue_moved"})

TRIAL_PRIORITY = -4
"""A trial stands behind what was asked for in the two hours after it."""


@dataclass(frozen=True)
class Baseline:
    """What a first measurement will be compared with; `bench` is the identity that needs it."""

    bench: str
    requests: tuple[JobRequest, ...]


@dataclass(frozen=True)
class Plan:
    """Requests in the order they are queued, and what was left out.

    `gpu_minutes` are those of benches whose length is known, `unknown` counts the others.
    `served` are benches under way, each with the one that is compared with it.
    """

    requests: tuple[JobRequest, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    gpu_minutes: float = 0.0
    unknown: int = 0
    served: Mapping[str, str] = field(default_factory=dict)

    @property
    def counted_minutes(self) -> float:
        """What all of it draws on budgets, those of unknown length among them."""
        return self.gpu_minutes + self.unknown * worth.UNKNOWN_SECONDS / 60

    @property
    def everything(self) -> tuple[JobRequest, ...]:
        """All that would be queued, each once."""
        baselines = (each for baseline in self.baselines for each in baseline.requests)
        return tuple(_once((*self.requests, *baselines)))


@dataclass(frozen=True)
class Asked:
    """What history has to be looked up for before an event can be planned."""

    identities: frozenset[str]
    series: frozenset[str]


@dataclass(frozen=True)
class _Chosen:
    draft: Draft
    chain: Chain
    wanted: Wanted


def asked(event: Event, world: World) -> Asked:
    """Identities and series of everything that could be queued."""
    chains = [
        found
        for draft in _drafts(event, world)
        if isinstance(draft, Draft)
        for found in (draft.chain, draft.baseline)
        if found is not None
    ]
    return Asked(
        frozenset(each.identity for found in chains for each in found.requests),
        frozenset(found.series for found in chains),
    )


def plan(
    event: Event, world: World, *, only: Collection[str] | None = None, lane: Lane | None = None
) -> Plan:
    """Decide; with `only`, of these benches alone, and with `lane` in that one."""
    left: dict[str, LeftOut] = {}
    chosen: dict[str, _Chosen] = {}
    builds: list[JobRequest] = []
    for draft in _drafts(event, world):
        if isinstance(draft, LeftOut):
            left[draft.identity] = draft
            continue
        identity = draft.chain.bench.identity
        if identity in chosen or (only is not None and identity not in only):
            continue
        rule = deciding(world.rules, event.kind, draft.question)
        refusal = _refused(draft, rule, event, world)
        if refusal is not None:
            left[identity] = refusal
        elif draft.build_only or (rule is not None and rule.do is Do.BUILD):
            builds += [_signed(each, event, draft, rule, world) for each in (draft.chain.build,)]
        elif rule is not None:
            chosen[identity] = _chosen(draft, rule, event, world, lane)
    cut = worth.within_budget([each.wanted for each in chosen.values()], world.budgets)
    for identity, (wanted, budget) in cut.items():
        left[identity] = LeftOut(
            identity,
            chosen[identity].draft.what,
            Why.BUDGET,
            f"{budget.name} has {budget.left / 3600:.1f} of {budget.seconds / 3600:.1f} h left "
            f"today; it takes {_minutes(wanted)}",
            wanted.value,
        )
    kept = [each for identity, each in chosen.items() if identity not in cut]
    if only is not None:
        left = {identity: each for identity, each in left.items() if identity in only}
        builds = []
    baselines = tuple(_baselines(kept, event, world))
    benches = [*(each.chain.bench for each in kept), *(each.requests[-1] for each in baselines)]
    known = [each.estimate_seconds for each in benches if each.estimate_seconds is not None]
    return Plan(
        requests=tuple(_once([*(r for each in kept for r in each.chain.requests), *builds])),
        baselines=baselines,
        left_out=tuple(left.values()),
        gpu_minutes=sum(known) / 60,
        unknown=len(benches) - len(known),
        served=dict(_served(kept, world)),
    )


def _drafts(event: Event, world: World) -> Iterator[Draft | LeftOut]:
    if not is_about(world.rules, event.kind):
        return iter(())
    if event.kind in OF_ISSUES and event.linked is None:
        return iter(())
    return of_file(event, world) if event.kind in OF_FILES else of_engine(event, world)


def _refused(draft: Draft, rule: Rule | None, event: Event, world: World) -> LeftOut | None:
    """Why a bench is not queued, before money is counted."""
    identity, build = draft.chain.bench.identity, draft.chain.build.identity
    if rule is None or rule.do is Do.NOTHING:
        says = f"{rule.name} says nothing is done" if rule else "no rule asks for it"
        return LeftOut(identity, draft.what, Why.RULE, says)
    if identity in world.retests:
        detail = "it stands as a negative, and is tried again in the lane of retests"
        return LeftOut(identity, draft.what, Why.NEGATIVE, detail)
    if event.kind not in OF_FILES and world.questions and _stands(draft, world):
        detail = "it stands as a negative: it is tried again when what it depended on moves"
        return LeftOut(identity, draft.what, Why.NEGATIVE, detail)
    if rule.do is Do.RERUN or (draft.build_only and build not in world.failed):
        return None
    if _is_needless(draft, event, world):
        return LeftOut(identity, draft.what, Why.NOT_NEEDED, idle.told(event))
    if build in world.failed:
        return LeftOut(identity, draft.what, Why.BUILD_FAILED, world.failed[build])
    if rule.do is Do.BUILD:
        return None
    if identity in world.negatives:
        detail = "it stands as a negative, and nothing that it depended on has moved"
        return LeftOut(identity, draft.what, Why.NEGATIVE, detail)
    if identity in world.tried:
        detail = world.failed.get(identity) or "this very question was queued before"
        return LeftOut(identity, draft.what, Why.TRIED, detail)
    return None


def _is_needless(draft: Draft, event: Event, world: World) -> bool:
    """Whether the same question of the commit before has the same answer, and was asked."""
    engine = world.engines.get(event.engine)
    if engine is None or draft.baseline is None or not idle.is_idle(event, engine):
        return False
    return draft.baseline.bench.identity in world.tried | world.waiting


def _stands(draft: Draft, world: World) -> bool:
    """Whether the question is that of a negative, whatever it is asked with."""
    payload = draft.chain.bench.payload
    digests = {file.weights.id: file.weights.sha256 for file in world.files}
    target = digests.get(payload["model_file_id"], "")
    asked_of = bench_question(payload, engine=draft.question.engine, target_sha256=target)
    return not draft.build_only and not world.questions.isdisjoint(asked_of.keys)


def _chosen(draft: Draft, rule: Rule, event: Event, world: World, lane: Lane | None) -> _Chosen:
    question = draft.question
    rig, stack = question.rig, question.stack
    requests = tuple(_signed(r, event, draft, rule, world, lane) for r in draft.chain.requests)
    value = worth.value_of(
        event,
        world.series.get(draft.chain.series, SeriesPast()),
        now=world.now,
        place=draft.place,
        failures=world.failures.get((rig, stack), 0),
    )
    bench = requests[-1]
    # What is under way is spoken for already: asking again joins it, or takes its place.
    spoken_for = (
        bench.identity in world.waiting or (rig, stack, bench.payload["scenario"]) in world.given_up
    )
    seconds = 0.0 if spoken_for else bench.estimate_seconds
    wanted = Wanted(bench.identity, rig, draft.source, value, seconds)
    return _Chosen(draft, replace(draft.chain, requests=requests), wanted)


def _signed(
    request: JobRequest,
    event: Event,
    draft: Draft,
    rule: Rule | None,
    world: World,
    lane: Lane | None = None,
) -> JobRequest:
    """The request with who asks, why, where it stands and how long it should take."""
    wish = rule.lane if rule and rule.lane is not None else request.lane
    return replace(
        request,
        lane=lane or wish,
        priority=(rule.priority if rule else 0) + (TRIAL_PRIORITY if draft.trial else 0),
        reason=f"{request.reason} (a trial: {draft.trial})" if draft.trial else request.reason,
        source=draft.source,
        cause={"event_id": event.id, **({"rule": rule.name} if rule else {})},
        estimate_seconds=likely_seconds(
            request.kind, request.payload, world.past.get(request.queue, ())
        ),
    )


def _baselines(kept: Iterable[_Chosen], event: Event, world: World) -> Iterator[Baseline]:
    """The parent's bench for each kept one whose series holds no other revision."""
    told: set[str] = set()
    for each in kept:
        found = each.draft.baseline
        if found is None or _is_measured(each.chain, world):
            continue
        bench = found.bench.identity
        known = bench in world.tried | world.waiting | world.negatives or bench in told
        replaced = event.parent is not None and event.parent.replaced
        if known or replaced or found.build.identity in world.failed or _over(each, world):
            continue
        told.add(bench)
        requests = tuple(_signed(r, event, each.draft, None, world) for r in found.requests)
        yield Baseline(each.chain.bench.identity, requests)


def _served(kept: Iterable[_Chosen], world: World) -> Iterator[tuple[str, str]]:
    """Baselines that wait already, each with the bench that is compared with it."""
    for each in kept:
        found = each.draft.baseline
        if found is not None and found.bench.identity in world.waiting:
            yield found.bench.identity, each.chain.bench.identity


def _is_measured(chain: Chain, world: World) -> bool:
    past = world.series.get(chain.series, SeriesPast())
    return bool(past.revisions - {chain.bench.payload["revision_id"]})


def _over(each: _Chosen, world: World) -> bool:
    """Whether a budget has no room for the same once more."""
    return any(
        budget.left < 2 * each.wanted.cost
        for budget in world.budgets
        if budget.covers(rig=each.wanted.rig, source=each.wanted.source)
    )


def _once(requests: Iterable[JobRequest]) -> Iterable[JobRequest]:
    """Each question once; what several need is as urgent as the most urgent of them."""
    found: dict[str, JobRequest] = {}
    for request in requests:
        before = found.get(request.identity, request)
        lane = min(before.lane, request.lane)
        priority = max(each.priority for each in (before, request) if each.lane == lane)
        found[request.identity] = replace(before, lane=lane, priority=priority)
    return found.values()


def _minutes(wanted: Wanted) -> str:
    if wanted.seconds is None:
        return f"an unknown time, counted as {wanted.cost / 60:.0f} min"
    return f"{wanted.seconds / 60:.0f} min"
