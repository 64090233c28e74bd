"""Looks whether this machine can do its work: cage, tools, card, disk, database, broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.engine import make_url

from jobs import db
from jobs.config import Settings
from jobs.errors import ScoutError
from jobs.fit.amounts import in_words
from jobs.store import catalog
from workers.cages import Cage, cage_advice, candidates, find_cage
from workers.gpu import first_card
from workers.machine import clock_skew
from workers.sandbox import STEP_PATH

GOOD, NOTE, BAD = "good", "note", "bad"
ANSWER_SECONDS = 3.0
MOST_SKEW_SECONDS = 2.0
"""Heartbeats and due times stand it; log lines of two machines no longer match beyond it."""

COMPILERS = ("cmake", "c++")
HELPFUL = {
    "ninja": "`apt install ninja-build`: make works too, more slowly",
    "ccache": "`apt install ccache`: without it the next commit of a fork is compiled from nothing",
    "nvcc": "install the CUDA toolkit to compile for an NVIDIA card; nothing else needs it",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `state` is good, note (it works with less) or bad."""

    name: str
    state: str
    says: str
    advice: str = ""


def examine(
    settings: Settings, *, cage: Callable[[Settings], Cage] | None = None
) -> Iterator[Finding]:
    """All findings, one after the other: the cage takes seconds to prove."""
    yield _cage(settings, (cage or _proven)(settings))
    yield from _tools(STEP_PATH)
    yield _card()
    yield _disk(settings)
    yield _database(settings)
    yield _broker(settings)
    yield from _tokens(settings)


def _proven(settings: Settings) -> Cage:
    return find_cage(candidates(settings.sandbox, settings.docker_host))


def _cage(settings: Settings, cage: Cage) -> Finding:
    if settings.sandbox == "none":
        says = "FORKSCOUT_SANDBOX is none: packages alone run here, and no fork"
        return Finding("cage", NOTE, says, "Set FORKSCOUT_SANDBOX=auto to let forks in.")
    if cage.faults:
        says = f"no fork is built or run here: {'; '.join(cage.faults)}"
        return Finding("cage", BAD, says, cage_advice())
    limits = cage.sandbox.enforced()
    says = f"{cage.sandbox.name} holds; memory and processes are bounded by {limits.by}"
    return Finding("cage", NOTE if limits.notes else GOOD, says, "; ".join(limits.notes))


def _tools(path: str) -> Iterator[Finding]:
    """What steps find on their own path, which is not the caller's."""
    if shutil.which("git") is None:
        yield Finding("git", BAD, "git is not installed", "`apt install git`.")
    missing = [name for name in COMPILERS if shutil.which(name, path=path) is None]
    if missing:
        says = f"{' and '.join(missing)} missing in {path}: no fork can be compiled here"
        yield Finding("compiler", NOTE, says, "`apt install cmake g++`; packages need neither.")
    else:
        yield Finding("compiler", GOOD, "cmake and a C++ compiler are there")
    for name, advice in HELPFUL.items():
        if shutil.which(name, path=path) is None:
            yield Finding(name, NOTE, f"{name} is not installed", advice)


def _card() -> Finding:
    card = first_card()
    if card is None:
        return Finding("card", NOTE, "no NVIDIA card, or no driver: benches use the processors")
    try:
        facts = card.facts()
    finally:
        card.close()
    memory = facts["memory_bytes"]
    size = f", {in_words(memory)}" if memory else ""
    return Finding("card", GOOD, f"{facts['name']}{size}, driver {facts['driver']}")


def _disk(settings: Settings) -> Finding:
    place = next(each for each in (settings.root, *settings.root.parents) if each.exists())
    free = shutil.disk_usage(place).free
    says = f"{in_words(free)} free for {settings.root}"
    if free < settings.min_free_bytes:
        advice = "Make room: `forkscout weights prune`, or another FORKSCOUT_HOME."
        least = in_words(settings.min_free_bytes)
        return Finding("disk", BAD, f"{says}, {least} must stay free: no job starts", advice)
    return Finding("disk", GOOD, says)


def _database(settings: Settings) -> Finding:
    url = make_url(settings.resolved_database_url)
    if url.database and url.get_backend_name() == "sqlite" and not Path(url.database).exists():
        return Finding("database", NOTE, "none yet", "`forkscout up` or `demo` makes it.")
    try:
        database = db.open_database(settings)
        try:
            with db.reading(database) as session:
                engines = len(catalog.engines(session))
            skew = clock_skew(database) or 0.0
        finally:
            database.dispose()
    except ScoutError as fault:
        return Finding("database", BAD, fault.message, fault.advice)
    says = f"{url.get_backend_name()} answers; {engines} engines are watched"
    if abs(skew) > MOST_SKEW_SECONDS:
        advice = "Let both machines keep time by NTP."
        return Finding("database", NOTE, f"{says}; our clock is {skew:+.0f} s off its", advice)
    if not engines:
        return Finding("database", NOTE, says, "`forkscout watchlist import fork-chain`.")
    return Finding("database", GOOD, says)


def _broker(settings: Settings) -> Finding:
    try:
        with _bell(settings) as bell:
            bell.ping()
    except (RedisError, OSError, ValueError) as fault:
        if settings.embedded_broker:
            return Finding("broker", NOTE, "not running", "`forkscout up` starts it.")
        says = f"it does not answer: {' '.join(str(fault).split())[:200]}"
        return Finding("broker", BAD, says, "Start it, or look at FORKSCOUT_BROKER_URL.")
    return Finding("broker", GOOD, "answers")


def _bell(settings: Settings) -> Redis:
    if settings.embedded_broker:
        return Redis(unix_socket_path=str(settings.broker_socket), socket_timeout=ANSWER_SECONDS)
    url = settings.resolved_broker_url.replace("redis+socket://", "unix://", 1)
    return Redis.from_url(url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS)


def _tokens(settings: Settings) -> Sequence[Finding]:
    found = []
    if not settings.github_token:
        says = "no token: GitHub is asked for little, and forks of forks are found late"
        found.append(Finding("GitHub", NOTE, says, "Set FORKSCOUT_GITHUB_TOKEN, read-only."))
    if not settings.hf_token:
        says = "no token: public files of the model hub only"
        found.append(Finding("model hub", NOTE, says, "Set FORKSCOUT_HF_TOKEN, read-only."))
    return found
