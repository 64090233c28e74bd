"""`forkscout bench --url`: a bench of servers that run already, told as text or as JSON."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from jobs import own_scenarios
from jobs.compare import standing
from jobs.control import Control
from jobs.dialect import wire
from jobs.errors import Stopped, UsageError
from jobs.model import Boot, Validity
from jobs.scenarios import DEFAULT_SCENARIO, SHIPPED, Scenario, rungs, scenario_named
from jobs.summing import gravest, summary, usable_runs
from jobs.terminal import counted, json_text, printable
from workers.client import EngineClient
from workers.elsewhere import Kind, Served, address, key_in, look
from workers.pairs import compared_pairs
from workers.url_bench import Arm, Step, Turn, Wish, measure

FORMAT, VERSION = "forkscout-url-bench", 1
NAMES = ("A", "B")
ROUNDS_OF_PAIRS = 2
UNKNOWN_CONTEXT = 2**31
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """Every option of the command, with the words of its help."""
    words = argparse.ArgumentParser(
        prog="bench --url",
        description="Measure a llama-server, vLLM or OpenAI-compatible server that runs already.",
    )
    add = words.add_argument
    add("--url", required=True, help="its address, as http://127.0.0.1:9931")
    add("--against", default="", help="a second server: both are measured in turns, A B A B")
    add("--model", default="", help="the model's name, where the server has several")
    add("--scenario", action="append", help=f"repeatable; one of {', '.join(SHIPPED)}")
    add("--scenarios", type=Path, help="a TOML file of your own [[scenario]] tables")
    add("--depth", action="append", type=int, help="repeatable; a rung of the ladder, in tokens")
    add("--runs", type=int, default=0, help="measured requests of each; 0 is the scenario's own")
    add("--rounds", type=int, default=0, help="turns of each server; with --against 2, else 1")
    add("--key-file", type=Path, help="a file whose first line is the server's key")
    add("--wait", type=float, default=30.0, help="seconds to wait for a server that loads")
    add("--out", type=Path, help="also write the JSON to this file")
    add("--json", action="store_true", help="print JSON; progress goes to the error stream")
    return words


def main(arguments: Sequence[str], *, out: TextIO | None = None) -> int:
    """0 where every scenario of every server is `ok`, 1 where one is not, 2 for a wrong wish."""
    options = parser().parse_args(arguments)
    control = Control()
    before = [
        (number, signal.signal(number, lambda *_: control.ask("it was interrupted")))
        for number in (signal.SIGTERM, signal.SIGINT)
    ]
    try:
        return run(options, control=control, out=out or sys.stdout, progress=sys.stderr)
    except Stopped:
        return INTERRUPTED
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def run(options: argparse.Namespace, *, control: Control, out: TextIO, progress: TextIO) -> int:
    """Do what the options ask. Raises ScoutError."""
    urls = [address(each) for each in (options.url, options.against) if each]
    _check(options)
    key = key_in(options.key_file)
    own = own_scenarios.load(options.scenarios) if options.scenarios is not None else {}
    named = [scenario_named(name, own) for name in options.scenario or [*own] or [DEFAULT_SCENARIO]]
    with ExitStack() as stack:
        arms = []
        for name, url in zip(NAMES, urls, strict=False):
            client = EngineClient.at(url, key=key)
            stack.callback(client.close)
            served = look(
                client, url, model=options.model, control=control, wait_seconds=options.wait
            )
            arms.append(Arm(name, served, client))
        scenarios = _scenarios(named, options.depth or (), [arm.served for arm in arms])
        runs = options.runs or max(each.runs for each in scenarios)
        rounds = options.rounds or (ROUNDS_OF_PAIRS if len(arms) > 1 else 1)
        wish = Wish(scenarios, runs, rounds)
        line = _Line(progress, with_arm=len(arms) > 1)
        turns = []
        for turn in measure(arms, wish, control=control, tell=line.show):
            turns.append(turn)
            line.end(turn)
    document = _document(arms, wish, turns)
    if options.out is not None:
        options.out.write_text(json_text(document) + "\n")
    out.write(json_text(document) + "\n" if options.json else "\n".join(_told(document)) + "\n")
    return 0 if all(each["validity"] == Validity.OK for each in document["results"]) else 1


def _check(options: argparse.Namespace) -> None:
    for name, value, most in (("runs", options.runs, 1000), ("rounds", options.rounds, 100)):
        if not 0 <= value <= most:
            raise UsageError(f"--{name} {value}", advice=f"give a number from 1 to {most}")
    if not 0 <= options.wait <= 86_400:
        raise UsageError(f"--wait {options.wait:g}", advice="give seconds, at most a day")
    if options.out is not None and (
        not options.out.absolute().parent.is_dir() or options.out.is_dir()
    ):
        raise UsageError(
            f"{options.out} cannot be written", advice="name a file in a folder that exists"
        )


def _scenarios(
    named: Sequence[Scenario], depths: Sequence[int], served: Sequence[Served]
) -> tuple[Scenario, ...]:
    if depths and not any(each.depths for each in named):
        raise UsageError("--depth without a ladder", advice="add --scenario ladder")
    known = [each.effective.context_tokens for each in served]
    context = min((each for each in known if each), default=UNKNOWN_CONTEXT)
    steps = [
        rung
        for each in named
        for rung in rungs(each, context_tokens=context, depths=depths if each.depths else ())
    ]
    for step in steps:
        if step.filled_tokens and any(each.kind is Kind.OPENAI for each in served):
            raise UsageError(
                f"scenario {step.name} fills a context to a known depth",
                advice="measure it with a llama-server or vLLM, which tell how they tokenise",
            )
    return tuple({step.key: step for step in steps}.values())


class _Line:
    """Progress in one line on a terminal, in a line a request elsewhere."""

    def __init__(self, stream: TextIO, *, with_arm: bool) -> None:
        self._stream = stream
        self._with_arm = with_arm
        self._is_terminal = stream.isatty()
        self._said: tuple[Any, ...] = ()
        self._began = (0.0, 0)

    def show(self, step: Step) -> None:
        key = (step.arm, step.round, step.scenario, step.run)
        is_new = key != self._said
        self._said = key
        if is_new or not step.tokens:
            self._began = (time.monotonic(), step.tokens)
        if not self._is_terminal and not is_new:
            return
        arm = f"{step.arm} round {step.round}, " if self._with_arm else ""
        words = f"{arm}{step.scenario} {step.what}{self._speed(step)}{_left(step)}"
        if self._is_terminal:
            self._stream.write(f"\r\x1b[2K{printable(words)}")
        else:
            self._stream.write(printable(words) + "\n")
        self._stream.flush()

    def _speed(self, step: Step) -> str:
        began, tokens = self._began
        passed = time.monotonic() - began
        if step.tokens > tokens and passed > 0:
            return f", {(step.tokens - tokens) / passed:.1f} t/s now"
        return f", {step.last_tps:.1f} t/s before" if step.last_tps else ""

    def end(self, turn: Turn) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[2K")
        if turn.failure:
            words = f"{turn.arm}: {turn.failure.failure_class}: {turn.failure.detail}"
            self._stream.write(printable(words) + "\n")
        self._stream.flush()


def _left(step: Step) -> str:
    return f", about {step.left_seconds:.0f} s left" if step.left_seconds is not None else ""


def _document(arms: Sequence[Arm], wish: Wish, turns: Sequence[Turn]) -> dict[str, Any]:
    results = [_result(arm, scenario, wish, turns) for scenario in wish.scenarios for arm in arms]
    return {
        "format": FORMAT,
        "version": VERSION,
        "servers": {arm.name: arm.served.told for arm in arms},
        "runs": wish.runs,
        "rounds": wish.rounds,
        "order": [{"arm": turn.arm, "round": turn.round} for turn in turns],
        "scenarios": [
            {"key": each.key, "digest": each.digest, **asdict(each)} for each in wish.scenarios
        ],
        "results": results,
        "pairs": compared_pairs(results) if len(arms) > 1 else [],
        "failures": [
            {
                "arm": turn.arm,
                "round": turn.round,
                "class": turn.failure.failure_class,
                "blame": turn.failure.blame,
                "phase": turn.failure.phase,
                "detail": turn.failure.detail,
                "advice": turn.failure.advice,
            }
            for turn in turns
            if turn.failure
        ],
    }


def _result(arm: Arm, scenario: Scenario, wish: Wish, turns: Sequence[Turn]) -> dict[str, Any]:
    boots = [_of(turn.boot, scenario.key) for turn in turns if turn.arm == arm.name]
    usable = usable_runs(boots)
    stands = standing(usable, runs_asked=wish.runs, boots_asked=wish.rounds, **gravest(boots))
    samples = [m for boot in boots for m in boot.measurements]
    return {
        "arm": arm.name,
        "scenario": scenario.key,
        "validity": stands.validity,
        "reason": stands.reason,
        "source": next((m.source for m in samples), None),
        **summary(boots, usable),
        "rounds": {boot.number: boot.speed for boot in usable},
        "samples": [
            {"round": boot.number, **wire.storable(asdict(m))}
            for boot in boots
            for m in boot.measurements
        ],
    }


def _of(boot: Boot, key: str) -> Boot:
    return replace(boot, measurements=tuple(m for m in boot.measurements if m.scenario == key))


def _told(document: Mapping[str, Any]) -> Iterator[str]:
    for name, server in document["servers"].items():
        version = f" {server['version']}" if server["version"] else ""
        yield printable(f"{name}: {server['kind']}{version} at {server['url']}, {server['model']}")
    for each in document["results"]:
        speed = f"{each['decode_tps']:.2f} t/s" if each["decode_tps"] else "no speed"
        clock = "" if each["source"] == "timings" else " by our own clock"
        ttft = f", first token after {each['ttft_ms']:.0f} ms" if each["ttft_ms"] else ""
        reason = f": {each['reason']}" if each["reason"] else ""
        runs = counted(each["runs_used"], "run")
        yield printable(
            f"{each['arm']} {each['scenario']}: {speed}{clock}, {runs}{ttft}, "
            f"{each['validity']}{reason}"
        )
    for each in document["pairs"]:
        yield printable(f"{each['scenario']}: {each['sentence']}")
    for each in document["failures"]:
        yield printable(f"{each['arm']} failed, {each['class']}: {each['detail']}")
