"""A quiet day of 1,000 forks: what it costs us and nvchecker on the same stand-ins, side by side.

Run from the top folder: `.venv/bin/python tests/benchmarks/bench_scouting.py`. The package index
must offer nvchecker; it goes into a virtual environment of its own that is removed at the end.
Over the API both speak TLS to one stand-in of GitHub; over git both list every fork from one
`git http-backend`, in turns, and the median counts. Wall and CPU time are those of the process with
all it started; ours over the API that of the look alone.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import typer  # noqa: E402  the two folders above are not installed
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from support.certificates import tls_for  # noqa: E402
from support.contenders import Measured, Nvchecker, measured  # noqa: E402
from support.git_server import GitServer  # noqa: E402
from support.github import Asked, GitHub  # noqa: E402
from support.github_json import sha, user  # noqa: E402
from support.hub import Hub  # noqa: E402

from jobs import db, git_network  # noqa: E402
from jobs.db import writing  # noqa: E402
from jobs.git import repo_url  # noqa: E402
from jobs.store import catalog, refs  # noqa: E402
from scout.github import pushes, search  # noqa: E402
from scout.github.client import Client  # noqa: E402
from scout.github.desk import Desk  # noqa: E402
from scout.github.rounds import look_around  # noqa: E402
from scout.github.visits import SOURCES  # noqa: E402

UPSTREAM = 612354784
START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
QUIET_DAYS = 3
MEMORY_GOAL_MIB = 200
API_HOST = "bench.localhost"
LISTED_COMMITS = 30
GIT_ROUNDS = 3
UNCONDITIONAL = (pushes.NAME, search.NAME)
"""What cannot be asked on condition: who was pushed to within minutes, and copies nobody knows."""
ON_CONDITION = tuple(name for name in SOURCES if name not in UNCONDITIONAL)
QUOTAS = ("core", "graphql", "search")
QUIET_LOOK = ROOT / "tests" / "support" / "quiet_git_look.py"


@dataclass(frozen=True)
class Run:
    """One contender's quiet look; CPU time where the look is a process of its own."""

    name: str
    seconds: float
    asked: int
    charged: str
    memory_mib: float
    sees: str
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Look:
    """One of our looks over the API, as it told of itself, with what was asked meanwhile."""

    seconds: float
    events: int
    asked: tuple[Asked, ...]


class Api(GitHub):
    """The stand-in behind TLS, with the list of commits that nvchecker reads."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(limit=1_000_000)
        self._server.socket.listen(128)
        self._server.socket = tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.public = self.url

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_port}"

    @property
    def host(self) -> str:
        """What nvchecker puts behind `https://api.`."""
        return f"{API_HOST}:{self._server.server_port}"

    def _of_repo(
        self, github_id: int, rest: str, query: dict[str, str], template: str
    ) -> tuple[int, Any, str, dict[str, str]]:
        if rest != "/commits":
            return super()._of_repo(github_id, rest, query, template)
        person = {"name": "dev", "email": "dev@example.org", "date": "2026-05-18T10:00:00Z"}
        url = f"{self.public}/repositories/{github_id}/commits"
        commits = [
            {
                "sha": sha(f"{github_id} {number}"),
                "commit": {"author": person, "committer": person, "message": f"change {number}"},
                "url": url,
                "html_url": url,
                "author": user("dev"),
                "committer": user("dev"),
                "parents": [],
            }
            for number in range(LISTED_COMMITS)
        ]
        return 200, commits, template, {}


def fork(number: int) -> str:
    """The name of one of the forks."""
    return f"dev{number}/llama.cpp"


def scout_api(url: str, folder: str) -> None:
    """Our side over the API, in a process of its own: a first look, and then quiet days."""
    address = f"sqlite:///{Path(folder) / 'scout.sqlite'}"
    db.migrate(address)
    database, clock = db.connect(address), [START]
    with writing(database) as session:
        values = {"family": "llama.cpp", "repo": "ggml-org/llama.cpp", "trust": "approve"}
        catalog.upsert_engine(session, "upstream", now=START, values=values)
    client = Client(token="bench", base=url)  # noqa: S106  an invented token for the stand-in
    for _ in range(QUIET_DAYS + 2):
        for sources in (ON_CONDITION, UNCONDITIONAL):
            begun = time.perf_counter()
            found = look_around(Desk(database, client, lambda: clock[0]), sources)
            report = {"seconds": time.perf_counter() - begun, "requests": found.requests}
            typer.echo(json.dumps({**report, "events": len(found.new)}))
        clock[0] += timedelta(days=1, minutes=1)


def remember_forks(forks: int, folder: Path) -> None:
    """What a scout holds that has seen every fork before: rows, and commits in one network."""
    address, network = f"sqlite:///{folder / 'refs.sqlite'}", folder / "network.git"
    db.migrate(address)
    database = db.connect(address)
    tips = git_network.update(network, repo_url(fork(0)), 1).commits
    with writing(database) as session:
        for number in range(forks):
            values = {"family": "llama.cpp", "repo": fork(number), "trust": "approve"}
            values |= {"parent": "f0"} if number else {}
            row, _ = catalog.upsert_engine(session, f"f{number}", now=START, values=values)
            place = refs.repository_of(session, row, START)
            refs.name_default_branch(session, place.id or 0, "master")
            refs.record_refs(session, place.id or 0, tips, START)
    lines = [
        f"update refs/remotes/{number}/{ref.removeprefix('refs/')} {commit}\n"
        for number in range(2, forks + 1)
        for ref, commit in tips.items()
    ]
    words = ["git", "--git-dir", str(network), "update-ref", "--stdin"]
    subprocess.run(words, input="".join(lines), text=True, check=True)
    subprocess.run(["git", "--git-dir", str(network), "pack-refs", "--all"], check=True)


def charged_of(asked: list[Asked]) -> str:
    """Charged requests by the quota they count against, each of which is always named."""
    counts = Counter(dict.fromkeys(QUOTAS, 0))
    counts.update(each.bucket for each in asked if each.charged)
    return ", ".join(f"{count} {bucket}" for bucket, count in counts.items())


def over_the_api(forks: int, folder: Path, nvchecker: Nvchecker) -> list[Run]:
    """First looks, quiet days, and nvchecker's `github` source with the same token."""
    tls, trusted = tls_for([f"api.{API_HOST}", "127.0.0.1"], folder / "tls")
    with Api(tls) as github:
        github.add(UPSTREAM, "ggml-org/llama.cpp")
        for number in range(forks):
            github.add(10_000 + number, fork(number), parent=UPSTREAM)
        words = [sys.executable, __file__, "scout-api", github.url, str(folder)]
        environment = {"NO_PROXY": "127.0.0.1", "REQUESTS_CA_BUNDLE": str(trusted)}
        ours = measured(words, folder, env={**os.environ, **environment})
        first, second, *quiet = by_day(looks_told(ours.said, github.asked))
        if any(look.events for day in quiet for look in day):
            raise SystemExit("a quiet day had events")
        entry = f'source = "github"\nhost = "{github.host}"\ntoken = "bench"\ngithub = '
        entries = [f'{entry}"{fork(number)}"\n' for number in range(forks)]
        nvchecker.look(entries, SSL_CERT_FILE=str(trusted))
        github.asked.clear()
        theirs = nvchecker.look(entries, SSL_CERT_FILE=str(trusted))
        their_asked = list(github.asked)
    known, fresh = zip(*quiet, strict=True)
    found = "new, renamed, archived, vanished forks; the day of a push"
    hints = "pushes within minutes; copies that are no forks"
    return [
        *(
            of_api(name, [day], ours, f"{found}; {hints}")
            for name, day in (("first look", first), ("second day", second))
        ),
        of_api("a quiet day, what is known", [[each] for each in known], ours, found),
        of_api("a quiet day, what is not", [[each] for each in fresh], ours, hints),
        Run(
            *("nvchecker github, second look", theirs.seconds, len(their_asked)),
            *(charged_of(their_asked), theirs.memory_mib, "newest commit of one branch"),
            theirs.cpu_seconds,
        ),
    ]


def looks_told(said: str, asked: Sequence[Asked]) -> Iterator[Look]:
    """Every look of our process in its order, with its share of all that was asked."""
    start = 0
    for line in said.splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            end = start + told["requests"]
            yield Look(told["seconds"], told["events"], tuple(asked[start:end]))
            start = end


def by_day(looks: Iterator[Look]) -> list[tuple[Look, Look]]:
    """The two looks of each day."""
    return list(zip(looks, looks, strict=True))


def of_api(name: str, days: Sequence[Sequence[Look]], run: Measured, sees: str) -> Run:
    """These looks as one line: the quickest day, and what all days were charged together."""
    charged = charged_of([each for day in days for look in day for each in look.asked])
    return Run(
        f"forkscout API, {name}",
        min(sum(look.seconds for look in day) for day in days),
        max(sum(len(look.asked) for look in day) for day in days),
        f"{charged} in {len(days)} days" if len(days) > 1 else charged,
        run.memory_mib,
        sees,
    )


def over_git(forks: int, folder: Path, nvchecker: Nvchecker) -> list[Run]:
    """Every fork listed from the same server, by us and by nvchecker's `git` source."""
    outside = folder / "outside"
    with GitServer(outside / "hub") as server:
        hub = Hub(outside, server=server)
        one = hub.add(fork(0))
        one.commit({"README.md": "a fork"})
        one.git("tag", "b9100")
        one.push("HEAD:refs/heads/master", "b9100")
        for number in range(1, forks):
            place = outside / "hub" / f"{fork(number)}.git"
            place.parent.mkdir()
            place.symlink_to(one.bare)
        os.environ |= {"GIT_CONFIG_GLOBAL": str(hub.config), "GIT_CONFIG_NOSYSTEM": "1"}
        os.environ["NO_PROXY"] = "127.0.0.1"
        remember_forks(forks, folder)
        entries = [
            f'source = "git"\ngit = "{server.url}{fork(number)}"\nuse_commit = true\n'
            'branch = "master"\n'
            for number in range(forks)
        ]
        nvchecker.look(entries)
        ours, theirs = [], []
        for _ in range(GIT_ROUNDS):
            for runs, look in (
                (ours, lambda: quiet_git_look(forks, folder)),
                (theirs, lambda: nvchecker.look(entries)),
            ):
                server.asked.clear()
                run = look()
                runs.append(
                    Run(
                        *("", run.seconds, len(server.asked), f"{charged_of([])} (no API)"),
                        *(run.memory_mib, "", run.cpu_seconds),
                    )
                )
    return [
        middle("forkscout git, a quiet look", ours, "every branch and tag"),
        middle("nvchecker git, second look", theirs, "one branch"),
    ]


def quiet_git_look(forks: int, folder: Path) -> Measured:
    """Our look over git; one that missed a fork, or saw news, ends the benchmark."""
    words = [sys.executable, str(QUIET_LOOK), str(folder)]
    run = measured(words, folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    found = json.loads(run.said.splitlines()[-1])
    if found != {"looked": forks, "new": 0}:
        raise SystemExit(f"our quiet look was none: {found}")
    return run


def middle(name: str, runs: Sequence[Run], sees: str) -> Run:
    """The run in the middle by wall time."""
    chosen = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    return replace(chosen, name=name, sees=sees)


def main(forks: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nvchecker = Nvchecker(folder)
        runs = [*over_the_api(forks, folder, nvchecker), *over_git(forks, folder, nvchecker)]
    memory = f"peak memory (goal {MEMORY_GOAL_MIB} MiB)"
    names = ("contender", "wall", "cpu", "requests", "charged", memory, "sees")
    table = Table(*names, title=f"{forks} quiet forks on one stand-in, one run", box=None)
    for run in runs:
        table.add_row(
            run.name,
            f"{run.seconds:.2f} s",
            "" if run.cpu_seconds is None else f"{run.cpu_seconds:.2f} s",
            str(run.asked),
            run.charged,
            f"{run.memory_mib:.0f} MiB",
            run.sees,
        )
    Console(width=220).print(table)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["scout-api", url, folder]:
            scout_api(url, folder)
        case arguments:
            main(int(arguments[0]) if arguments else 1000)
