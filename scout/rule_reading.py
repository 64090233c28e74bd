"""Which words of a `[[rule]]`, a `[[rig]]` and a `[[budget]]` can be true together; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jobs.errors import did_you_mean
from jobs.scenarios import SHIPPED as SCENARIOS
from scout.event_kinds import KINDS
from scout.known import Known
from scout.problem import Problem
from scout.watchlist import BudgetEntry, RuleEntry, WatchList

SHIPPED = "default:"
HOURS_OF_A_DAY = 24


@dataclass(frozen=True)
class _Names:
    """All that rules and budgets may be about, those of the list and those known before."""

    engines: Collection[str]
    stacks: Collection[str]
    rigs: Collection[str]
    model_classes: Collection[str]
    scenarios: Collection[str]


def wrong_rules(
    watch: WatchList, known: Known, *, engines: Collection[str], stacks: Collection[str]
) -> Iterator[Problem]:
    """What is wrong with the rules, rigs and budgets of a list.

    `engines` are all that are known, `stacks` those of the list that are wrong in another way. A
    rule may be about what another list has brought, and about nothing that nobody knows.
    """
    names = _Names(
        engines=engines,
        stacks={*stacks, *known.stacks, *(stack.name for stack in watch.stacks)},
        rigs={*known.rigs, *_rigs(watch)},
        model_classes={*known.model_classes, *(each.model_class for each in watch.models)},
        scenarios=(*SCENARIOS, *watch.own_scenarios),
    )
    called = [rule.called for rule in watch.rules]
    for at, rule in enumerate(watch.rules):
        if rule.called in called[:at]:
            key = "name" if rule.name else "on"
            says = f"a second rule {rule.called!r}"
            yield Problem(("rule", at, key), says, "give each a name of its own")
        yield from _wrong_rule(names, at, rule)
    rigs = [rig.name for rig in watch.rigs]
    for at, name in enumerate(rigs):
        if name in rigs[:at]:
            yield Problem(("rig", at, "name"), f"a second rig {name!r}", "keep one of them")
    about = [budget.called for budget in watch.budgets]
    for at, budget in enumerate(watch.budgets):
        if budget.called in about[:at]:
            key = "rig" if budget.rig else "source"
            says = f"a second budget of {budget.called!r}"
            yield Problem(("budget", at, key), says, "keep one of them")
        yield from _wrong_budget(names, at, budget)


def _wrong_rule(names: _Names, at: int, rule: RuleEntry) -> Iterator[Problem]:
    here = ("rule", at)
    if (rule.name or "").startswith(SHIPPED):
        says = f"{rule.name!r} is a name of the shipped rules"
        yield Problem((*here, "name"), says, f"choose one that does not begin with {SHIPPED}")
    if rule.on not in KINDS:
        says = f"unknown kind of event {rule.on[:80]!r}"
        yield Problem((*here, "on"), says, did_you_mean(rule.on, KINDS))
    for number, scenario in enumerate(rule.scenarios):
        if scenario not in names.scenarios:
            says = f"unknown scenario {scenario[:80]!r}"
            yield Problem(
                (*here, "scenarios", number), says, did_you_mean(scenario, names.scenarios)
            )
    for key, what in (
        ("engines", "engine"),
        ("stacks", "stack"),
        ("model_classes", "model class"),
        ("rigs", "rig"),
    ):
        for number, name in enumerate(getattr(rule, key)):
            yield from _unknown((*here, key, number), what, name, getattr(names, key))


def _wrong_budget(names: _Names, at: int, budget: BudgetEntry) -> Iterator[Problem]:
    here = ("budget", at)
    if (budget.rig is None) == (budget.source is None):
        yield Problem(
            (*here, "source" if budget.rig else "hours_per_day"),
            "a budget is for a rig or for a source",
            'write rig = "cpu" or source = "engine:buun"',
        )
    if budget.rig is not None:
        yield from _unknown((*here, "rig"), "rig", budget.rig, names.rigs)
    word, _, name = (budget.source or "").partition(":")
    if word == "engine":
        yield from _unknown((*here, "source"), "engine", name, names.engines)
    most = HOURS_OF_A_DAY * (1 if budget.rig else max(1, len(names.rigs)))
    if budget.hours_per_day > most:
        where = "one rig" if most == HOURS_OF_A_DAY else f"{len(names.rigs)} rigs"
        says = f"{budget.hours_per_day:g} hours a day are more than {where} can have"
        yield Problem((*here, "hours_per_day"), says, f"write {most} at most")


def _rigs(watch: WatchList) -> list[str]:
    built = [build.rig for engine in watch.engines for build in engine.builds]
    return [*built, *(rig.name for rig in watch.rigs)]


def _unknown(
    path: tuple[str | int, ...], what: str, name: str, known: Collection[str]
) -> Iterator[Problem]:
    if name not in known:
        none = f"no {what} is known: a list that brings it comes first, or is this one"
        yield Problem(path, f"unknown {what} {name[:80]!r}", did_you_mean(name, known, none=none))
