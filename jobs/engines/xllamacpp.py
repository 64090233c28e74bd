"""The xllamacpp wheels, llama.cpp's server in a Python package; it describes and runs nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from jobs.dialect import (
    asking,
    build_failures,
    failures,
    logs,
    measuring,
    memory_log,
    settings,
)
from jobs.dialect import failure_rule as at
from jobs.dialect.failure_rule import rule
from jobs.dialect.options import Option, flags_of
from jobs.engines.base import SPECULATIONS, BuildPlaces, Launch, intents, unsupported
from jobs.model import Blame, BuildTarget, FailureRule, Flags, Revision, Step

request = asking.request
measure = measuring.measure
read_log = logs.read_log
read_memory = memory_log.read_memory
read_settings = settings.read_settings

FAMILY = "xllamacpp"
VIA = "wheel"
RECIPE = 1
FOREIGN_SOURCE = False
LAUNCHER: str | None = "xllamacpp_server.py"
SPARSE_PATTERNS: Sequence[str] = ()
OPTION_SOURCES: Sequence[str] = ()
ENVIRONMENT, INSTALL, TIDYING = STEPS = ("environment", "install", "tidy")
NO_SETTING = rule(
    "no_setting",
    r"error: this release of xllamacpp has no ",
    Blame.CONFIGURATION,
    "Ask for what this release has, or bench another release.",
    phases=(at.ARGUMENTS,),
)
WHEEL_IMPORT = rule(
    "wheel_import",
    r"^(?:ImportError|ModuleNotFoundError): ",
    Blame.INFRASTRUCTURE,
    "Build the release again; its wheel may not fit this interpreter or machine.",
    phases=(at.START, *STEPS),
)
WHEEL_MISSING = rule(
    "wheel_missing",
    r"No matching distribution found for |not a supported wheel on this platform",
    Blame.INFRASTRUCTURE,
    "Use a Python version for which this release has a wheel.",
    phases=(INSTALL,),
)
FAILURES: Sequence[FailureRule] = (NO_SETTING, WHEEL_IMPORT, *failures.FAILURES)
BUILD_FAILURES: Sequence[FailureRule] = (WHEEL_IMPORT, WHEEL_MISSING, *build_failures.BUILDING)
VERSION = re.compile(r"[0-9][A-Za-z0-9.+!_-]*")
SETTING = re.compile(r"setting ([A-Za-z]\w*) (\w+)((?: \w+)*)")
LONGEST_HELP = 1_000_000
KV_TYPE_PREFIX = "GGML_TYPE_"

TIDY = """
import pathlib, shutil, sys
tree = pathlib.Path(sys.argv[1])
kept = ("home", "include-system-site-packages", "version")
lines = (tree / "pyvenv.cfg").read_text().splitlines()
lines = [line for line in lines if line.split("=")[0].strip() in kept]
(tree / "pyvenv.cfg").write_text("\\n".join(lines) + "\\n")
for entry in (tree / "bin").iterdir():
    if not entry.name.startswith("python"):
        entry.unlink()
if (tree / "lib64").is_symlink():
    (tree / "lib64").unlink()
shutil.rmtree(tree / "include", ignore_errors=True)
for cache in list(tree.rglob("__pycache__")):
    shutil.rmtree(cache)
"""
"""Leaves nothing in the tree that depends on where or when it was made."""


def build(revision: Revision, target: BuildTarget, places: BuildPlaces) -> Sequence[Step]:
    """An environment that holds the wheel found in `places.source` and nothing else."""
    if not VERSION.fullmatch(revision.label):
        raise unsupported(f"version {revision.label!r}", advice="Name a released version.")
    if target.cuda_arch or target.options:
        raise unsupported(
            "a wheel with build options", advice="Wheels come as they are; remove the options."
        )
    install = (
        *(places.python, "-I", "-m", "pip", "--isolated"),
        *("--python", f"{places.output}/bin/python", "install"),
        *("--no-index", "--find-links", places.source),
        *("--no-deps", "--no-compile", "--no-cache-dir", "--only-binary=:all:"),
        *("--disable-pip-version-check", "--no-input"),
        f"xllamacpp=={revision.label}",
    )
    return (
        Step(
            ENVIRONMENT,
            (
                *(places.python, "-I", "-B", "-m", "venv"),
                *("--copies", "--without-pip", places.output),
            ),
            timeout_seconds=120,
        ),
        Step(INSTALL, install, env={"PIP_CONFIG_FILE": "/dev/null"}, timeout_seconds=600),
        Step(TIDYING, (places.python, "-I", "-B", "-c", TIDY, places.output), timeout_seconds=60),
    )


def describe(*, artifact: str, launcher: str = "") -> Step:
    """The step that prints the settings this release has."""
    return Step("describe", _command(artifact, launcher, {"describe": True}), timeout_seconds=60)


def read_options(text: str) -> tuple[Option, ...]:
    """Settings with their type; words of an enumeration as values, cache types in lower case."""
    found: list[Option] = []
    for line in text[:LONGEST_HELP].splitlines():
        match = SETTING.fullmatch(line.strip())
        if match:
            words = tuple(word.removeprefix(KV_TYPE_PREFIX).lower() for word in match[3].split())
            found.append(Option((match[1],), hint=match[2], values=words, section="settings"))
    return tuple(found)


def read_source(texts: Mapping[str, str]) -> tuple[Option, ...]:  # noqa: ARG001
    """Nothing: a wheel has no source that is looked at."""
    return ()


def read_help(text: str) -> Flags:
    """Settings as names; the words of an enumeration as choices."""
    return flags_of(read_options(text))


def launch(launch: Launch, flags: Flags) -> Step:
    """The environment's own interpreter, our launcher and one JSON argument."""
    asked = intents(launch)
    if launch.flags:
        raise unsupported(
            f"flag {launch.flags[0]!r}: xllamacpp has no command line",
            advice="Ask for intents only.",
        )
    for variable in launch.env:
        if variable.startswith(("LLAMA_", "PYTHON")):
            raise unsupported(f"variable {variable}", advice="Ask for intents only.")
    if not flags.names & {"hostname", "hostnames"}:
        raise unsupported(
            "this release of xllamacpp cannot be told where to listen",
            advice="Bench a newer release.",
        )
    for name in ("cache_type_k", "cache_type_v"):
        if asked.kv != "f16" and asked.kv not in flags.choices.get(name, ()):
            raise unsupported(
                f"intent kv = {asked.kv} on this build",
                advice=f"Choose one of: {', '.join(flags.choices.get(name, ('f16',)))}.",
            )
    wanted: dict[str, str | int] = {
        "host": launch.host,
        "model": launch.model_path,
        "alias": launch.alias,
        "context": launch.context_tokens,
        "threads": launch.threads,
        "batch": asked.batch,
        "ubatch": asked.ubatch,
        "gpu_layers": launch.gpu_layers,
        "kv": asked.kv,
        "flash_attention": asked.flash_attention,
    }
    if asked.speculation:
        wanted["speculation"] = " ".join(SPECULATIONS[asked.speculation])
        wanted["drafter"] = launch.drafter_path
    if launch.thinking:
        wanted["thinking"] = True
    if launch.projector_path:
        wanted["projector"] = launch.projector_path
    return Step(
        "serve",
        _command(launch.artifact, launch.launcher, wanted),
        env={**launch.env, "GGML_NO_BACKTRACE": "1"},
    )


def _command(artifact: str, launcher: str, wanted: dict[str, str | int]) -> tuple[str, ...]:
    return (
        *(f"{artifact}/bin/python", "-I", "-B", launcher),
        json.dumps(wanted, sort_keys=True),
    )
