"""Finds the build that the same files made before, so that what would come out equal is not made.

It never looks beyond the engine: what another fork's compiler left behind is not trusted here.
"""

from __future__ import annotations

from pathlib import Path

from sqlmodel import Session

from jobs import clock, planner
from jobs.db import reading
from jobs.model import BuildTarget, Revision
from jobs.payloads import BuildPayload
from jobs.station import Record
from jobs.store import builds, results
from jobs.tables import BuildRow
from workers import artifacts
from workers.errands import Errand, Subject


def source_identity(subject: Subject, target: BuildTarget, source: Path) -> str:
    """Digest of every file that the build can read and of its steps, but for the commit's name."""
    return planner.source_identity(subject.revision, target, artifacts.tree_digest(source))


def made_before(errand: Errand, subject: Subject, identity: str) -> BuildRow | None:
    """A build of the same engine out of the same files, whose artifact is here."""
    with reading(errand.station.database) as session:
        found = results.build_of_source(
            session,
            subject.engine_row.id or 0,
            identity,
            proposed=subject.revision_row.proposed,
        )
    store = errand.station.settings.artifacts
    return found if found is not None and artifacts.find(store, found.artifact) else None


def taken_over(errand: Errand, wanted: BuildPayload, same: BuildRow, revision: Revision) -> Record:
    """Keeps a build that is `same` under its own identity; no step was run for it."""
    told = {
        **{k: v for k, v in same.provenance.items() if k not in ("phases", "cache")},
        "source": revision.source,
        "commit": revision.commit,
        "label": revision.label,
        "same_as": same.id,
        "phases": errand.control.phases(),
    }
    row = BuildRow(
        **same.model_dump(include={"target", "artifact", "recipe", "source_tree", "size_bytes"}),
        identity=wanted.build_identity,
        revision_id=wanted.revision_id,
        job_id=errand.held.job_id,
        duration_seconds=round(sum(each["seconds"] for each in told["phases"]), 3),
        sandbox=same.sandbox,
        provenance=told,
        created_at=clock.now(),
    )

    def record(session: Session) -> str:
        results.record_build(session, row, builds.options_of(session, same.id or 0))
        return (
            f"not built again: every file that it is built from is as in build {same.id} "
            f"({same.provenance.get('label')}), whose artifact {same.artifact[:12]} it has"
        )

    return record
