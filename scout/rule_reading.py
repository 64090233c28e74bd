"""Which words of a `[[rule]]`, a `[[rig]]` and a `[[budget]]` can be true together; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jobs.errors import did_you_mean
from jobs.scenarios import SCENARIOS
from scout.event_kinds import KINDS
from scout.problem import Problem
from scout.watchlist import BudgetEntry, RuleEntry, WatchList


def wrong_rules(watch: WatchList, *, engines: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the rules, rigs and budgets of a list; `engines` are all that are known.

    A rule may be about engines, stacks and rigs of another list; a name of which this one has none
    alike is taken as such, one that is nearly right is not.
    """
    called = [rule.called for rule in watch.rules]
    for at, rule in enumerate(watch.rules):
        if rule.called in called[:at]:
            key = "name" if rule.name else "on"
            says = f"a second rule {rule.called!r}"
            yield Problem(("rule", at, key), says, "give each a name of its own")
        yield from _wrong_rule(watch, engines, at, rule)
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
        yield from _wrong_budget(watch, engines, at, budget)


def _wrong_rule(
    watch: WatchList, engines: Collection[str], at: int, rule: RuleEntry
) -> Iterator[Problem]:
    here = ("rule", at)
    if rule.on not in KINDS:
        says = f"unknown kind of event {rule.on[:80]!r}"
        yield Problem((*here, "on"), says, did_you_mean(rule.on, KINDS))
    for number, scenario in enumerate(rule.scenarios):
        asked = [*SCENARIOS, *watch.own_scenarios]
        if scenario not in asked:
            says = f"unknown scenario {scenario[:80]!r}"
            yield Problem((*here, "scenarios", number), says, did_you_mean(scenario, asked))
    for key, known in (
        ("engines", engines),
        ("stacks", [stack.name for stack in watch.stacks]),
        ("model_classes", [model.model_class for model in watch.models]),
        ("rigs", _rigs(watch)),
    ):
        for number, name in enumerate(getattr(rule, key)):
            yield from _nearly((*here, key, number), key.removesuffix("s"), name, known)


def _wrong_budget(
    watch: WatchList, engines: Collection[str], at: int, budget: BudgetEntry
) -> Iterator[Problem]:
    here = ("budget", at)
    if (budget.rig is None) == (budget.source is None):
        yield Problem(
            (*here, "source" if budget.rig else "hours_per_day"),
            "a budget is for a rig or for a source",
            'write rig = "cpu" or source = "engine:buun"',
        )
    if budget.rig is not None:
        yield from _nearly((*here, "rig"), "rig", budget.rig, _rigs(watch))
    word, _, name = (budget.source or "").partition(":")
    if word == "engine":
        yield from _nearly((*here, "source"), "engine", name, engines)


def _rigs(watch: WatchList) -> list[str]:
    built = [build.rig for engine in watch.engines for build in engine.builds]
    return [*built, *(rig.name for rig in watch.rigs)]


def _nearly(
    path: tuple[str | int, ...], what: str, name: str, known: Collection[str]
) -> Iterator[Problem]:
    near = did_you_mean(name, known) if known and name not in known else ""
    if near.startswith("did you"):
        yield Problem(path, f"unknown {what.replace('_classe', ' class')} {name[:80]!r}", near)
