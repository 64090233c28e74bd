"""What to type to get the same result elsewhere; paths are placeholders, digests name the files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from jobs import git
from jobs.model import Boot
from workers.preparing import Bench


def command_of(bench: Bench, boots: Sequence[Boot]) -> dict[str, Any]:
    """What to type to get the same; paths are placeholders, digests say what stands there."""
    sandbox, plan, revision = bench.sandbox, bench.plan, bench.subject.revision
    places = {
        sandbox.path(plan.artifact): "<artifact>",
        sandbox.path(plan.model): "<weights>",
    }
    for role, mount in (("drafter", plan.drafter), ("projector", plan.projector)):
        if mount is not None:
            places[sandbox.path(mount)] = f"<{role}>"
    if plan.launcher:
        places[sandbox.path(plan.launcher)] = f"<forkscout>/jobs/engines/{plan.engine.LAUNCHER}"
    if boots:
        places[boots[0].effective.alias or "<alias>"] = "<alias>"
    request = plan.engine.request(plan.scenario, run=1, alias="<alias>")
    wanted = bench.wanted
    return {
        "server": [_placed(word, places) for word in boots[0].command] if boots else [],
        "env": dict(plan.env),
        "request": {"path": request.path, "body": dict(request.body)},
        "build": bench.build.provenance.get("steps", []),
        "source": _source_command(bench),
        "artifact_sha256": bench.build.artifact,
        "weights_sha256": bench.model.sha256,
        **{f"{role}_sha256": sha256 for role, sha256 in wanted.beside.items()},
        "forkscout": (
            f"forkscout submit bench --engine {revision.engine} --ref {revision.commit} "
            f"--target {shlex.quote(bench.model.name)} --scenario {bench.scenario.word} "
            f"--rig {wanted.rig} --context {wanted.context_tokens} "
            f"--runs {wanted.runs} --boots {wanted.boots}"
            + "".join(f" --{role} {shlex.quote(row.name)}" for role, row in bench.others.items())
        ),
    }


def _source_command(bench: Bench) -> str:
    """How to get exactly this source without us."""
    revision, engine = bench.subject.revision, bench.subject.engine_row
    if engine.repo:
        url = git.repo_url(revision.source)
        return (
            f"git clone --filter=blob:none {url} source && "
            f"git -C source checkout --detach {revision.commit}"
        )
    return (
        f"python -m pip download --no-deps --only-binary=:all: "
        f"{engine.package}=={revision.label}  # wheel sha256 {revision.commit}"
    )


def _placed(word: str, places: dict[str, str]) -> str:
    for path, name in places.items():
        word = word.replace(path, name)
    return word
