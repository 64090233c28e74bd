"""`python -m workers.offline_command`: the offline bench as a command of few imports.

It needs httpx, psutil, nvidia-ml-py where there is a card, and these folders; no database.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs import own_scenarios
from jobs.control import Control
from jobs.engines.base import DEFAULT_BATCH, DEFAULT_UBATCH, SPECULATIONS
from jobs.engines.registry import family
from jobs.errors import ScoutError, UsageError
from jobs.scenarios import DEFAULT_SCENARIO, SHIPPED, Scenario, rungs, scenario_named
from jobs.terminal import printable
from workers.bubblewrap import Bubblewrap
from workers.card_code import archs_of, check_card
from workers.gpu import ALL_LAYERS, first_card
from workers.host import machine_facts
from workers.offline import Bench, Say, run_in_turns
from workers.offline_files import ModelFile, look_at_build, look_at_model
from workers.offline_record import Wish
from workers.sandbox import Sandbox
from workers.uncaged import Uncaged

ROLES = ("target", "drafter", "mmproj")


def parser() -> argparse.ArgumentParser:
    """Every option of the command, with the words of its help."""
    shipped = ", ".join(SHIPPED)
    words = argparse.ArgumentParser(
        prog="bench --offline",
        description="Measure a build on this machine alone and write one result file.",
    )
    add = words.add_argument
    add("--build", required=True, type=Path, help="the folder that holds the built server")
    add("--model", required=True, type=Path, help="the weights, a GGUF file")
    add("--drafter", type=Path, help="a drafter beside the weights")
    add("--mmproj", type=Path, help="a projector beside the weights")
    add("--speculation", default="", help=f"how tokens are drafted: {', '.join(SPECULATIONS)}")
    add("--scenario", action="append", help=f"repeatable; one of {shipped}")
    add("--scenarios", type=Path, help="a TOML file of your own [[scenario]] tables")
    add("--depth", action="append", type=int, help="repeatable; a rung of the ladder, in tokens")
    add("--context", action="append", type=int, help="repeatable; tokens to allocate")
    add("--kv", action="append", help="repeatable; a cache type such as q8_0")
    add("--ubatch", action="append", type=int, help="repeatable; tokens per step of a prompt")
    add("--batch", type=int, default=DEFAULT_BATCH, help="tokens per batch")
    add("--flag", action="append", help="repeatable; a word of the engine's own, as --flag=WORD")
    add("--env", action="append", help="repeatable; NAME=VALUE for the server")
    add("--boots", type=int, default=1, help="starts of the server for each combination")
    add("--runs", type=int, default=3, help="measured requests of each boot and scenario")
    add("--threads", type=int, default=0, help="of the server; 0 is one per core")
    add("--gpu-layers", type=int, help="layers on the card; all where there is a card")
    add("--card", type=int, default=0, help="the number of the card")
    add("--engine", default="", help="the engine's name, where the build does not say it")
    add("--commit", default="", help="the source's full commit, where the build does not say it")
    add("--digests", type=Path, help="a file that remembers digests of weights between benches")
    add("--against", type=Path, help="a second build: both are booted in turns, A B A B")
    add("--against-out", type=Path, help="its result file; needed with --against")
    add("--against-engine", default="", help="its engine's name; without it that of --engine")
    add("--against-commit", default="", help="its source's commit, where it does not say it")
    add("--out", required=True, type=Path, help="the result file to write")
    add("--uncaged", action="store_true", help="no sandbox: on a throw-away machine only")
    return words


def main(arguments: Sequence[str]) -> int:
    """0 where at least one boot was measured, 1 where none was, 2 for a wrong wish."""
    options = parser().parse_args(arguments)
    control = Control()
    signal.signal(signal.SIGTERM, lambda *_: control.ask("it was asked to end"))
    signal.signal(signal.SIGINT, lambda *_: control.ask("it was interrupted"))
    try:
        return measure(options, control=control, say=_say)
    except ScoutError as fault:
        advice = f"; {fault.advice}" if fault.advice else ""
        sys.stderr.write(f"{printable(fault.message)}{printable(advice)}\n")
        return fault.exit_code


def measure(options: argparse.Namespace, *, control: Control, say: Say) -> int:
    """Do what the options ask; raises ScoutError."""
    card = first_card(options.card)
    try:
        builds = [look_at_build(options.build, engine=options.engine, commit=options.commit)]
        if options.against is not None:
            engine, commit = options.against_engine or options.engine, options.against_commit
            builds.append(look_at_build(options.against, engine=engine, commit=commit))
        archs = [archs_of(build.folder) for build in builds]
        wish = _wish(options, for_card=bool(all(archs) and card))
        _check(options, wish, has_card=card is not None)
        models = {
            role: _model(path, say, options.digests)
            for role, option in zip(ROLES, ("model", "drafter", "mmproj"), strict=True)
            if (path := getattr(options, option)) is not None
        }
        used = card if wish.gpu_layers else None
        if used:
            for each in archs:
                check_card(each, used.facts())
        devices = used.devices() if used else ()
        sandbox: Sandbox = Uncaged() if options.uncaged else Bubblewrap(devices)
        arms = [
            Bench(
                wish=wish,
                engine=family(build.family),
                build=build,
                models=models,
                sandbox=sandbox,
                card=used,
                machine=machine_facts(),
                out=out,
            )
            for build, out in zip(builds, (options.out, options.against_out), strict=False)
        ]
        documents = run_in_turns(arms, control=control, say=say)
    finally:
        if card:
            card.close()
    measured = [
        sum(len(combination["boots"]) for combination in document["combinations"])
        for document in documents
    ]
    for count, arm in zip(measured, arms, strict=True):
        say(f"{count} boots in {arm.out}; bring it home with: forkscout import FILE")
    return 0 if all(measured) else 1


def _model(path: Path, say: Say, digests: Path | None) -> ModelFile:
    say(f"read {path.name}")

    def tell(done: int, total: int) -> None:
        say(f"  {done / total:.0%} of {total:,} B")

    return look_at_model(path, tell=tell, digests=digests)


def _wish(options: argparse.Namespace, *, for_card: bool) -> Wish:
    contexts = tuple(options.context or (4096,))
    env = {}
    for word in options.env or ():
        name, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"--env {word!r}", advice="Write it as NAME=VALUE.")
        env[name] = value
    layers = options.gpu_layers
    if layers is None:
        layers = ALL_LAYERS if for_card else 0
    further = {"speculation": options.speculation} if options.speculation else {}
    if options.mmproj is not None:
        further["vision"] = "on"
    return Wish(
        further=further,
        scenarios=_scenarios(options, min(contexts)),
        contexts=contexts,
        kvs=tuple(options.kv or ("f16",)),
        ubatches=tuple(options.ubatch or (DEFAULT_UBATCH,)),
        batch=options.batch,
        flags=tuple(options.flag or ()),
        env=env,
        boots=options.boots,
        runs=options.runs,
        threads=options.threads or len(os.sched_getaffinity(0)),
        gpu_layers=layers,
    )


def _scenarios(options: argparse.Namespace, context_tokens: int) -> tuple[Scenario, ...]:
    own = own_scenarios.load(options.scenarios) if options.scenarios is not None else {}
    named = [scenario_named(name, own) for name in options.scenario or [*own] or [DEFAULT_SCENARIO]]
    depths = tuple(options.depth or ())
    if depths and not any(each.depths for each in named):
        raise UsageError("--depth without a ladder", advice="Add --scenario ladder.")
    found = [
        rung for each in named for rung in rungs(each, context_tokens=context_tokens, depths=depths)
    ]
    return tuple({scenario.key: scenario for scenario in found}.values())


def _check(options: argparse.Namespace, wish: Wish, *, has_card: bool) -> None:
    for name, value, most in (
        ("boots", wish.boots, 100),
        ("runs", wish.runs, 1000),
        ("threads", wish.threads, 1024),
    ):
        if not 1 <= value <= most:
            raise UsageError(f"--{name} {value}", advice=f"Give a number from 1 to {most}.")
    for context in wish.contexts:
        if not 256 <= context <= 2_097_152:
            raise UsageError(f"--context {context}", advice="Give a number from 256 to 2097152.")
    if wish.gpu_layers and not has_card:
        raise UsageError(
            "--gpu-layers on a machine without an NVIDIA card, or without its driver",
            advice="Leave it out, or look at the driver and at nvidia-ml-py.",
        )
    if (options.against is None) != (options.against_out is None):
        raise UsageError(
            "--against and --against-out go together", advice="Name a file for each build."
        )
    for out in (options.out, options.against_out):
        if out is not None and (not out.absolute().parent.is_dir() or out.is_dir()):
            raise UsageError(f"{out} cannot be written", advice="Name a file in a folder.")
    if options.against_out is not None and options.out.resolve() == options.against_out.resolve():
        raise UsageError("--out and --against-out are one file", advice="Name two.")


def _say(line: str) -> None:
    sys.stdout.write(printable(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
