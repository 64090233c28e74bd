"""Brings a revision's source into a folder: a wheel of the index, or one commit's tree.

It asks nobody under a name that may be a stranger's by now.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobs import git, git_single, pip
from jobs.control import Control
from jobs.dialect import image_recipe
from jobs.errors import JobFailure
from jobs.model import Blame, BuildTarget
from workers.errands import Errand, Subject
from workers.release_file import bring_release_file, check_tag


def bring_source(errand: Errand, subject: Subject, target: BuildTarget, into: Path) -> None:
    """Fill the folder with what the build starts from.

    Raises `JobFailure` where the name of the repository is in doubt; the rest is of pip and git.
    """
    settings, control = errand.station.settings, errand.control
    token = settings.github_token
    if subject.engine_row.package:
        control.report("download", note=f"{subject.engine_row.package} {subject.revision.label}")
        pip.download(
            subject.engine_row.package,
            subject.revision.label,
            into,
            sha256=subject.revision.commit,
            check=control.check,
            on_progress=lambda done, total: control.report(
                "download", done=done, total=total, unit="B"
            ),
            log=errand.log,
        )
        return
    repo = trusted_name(subject)
    mirror = settings.mirror_of(repo)
    control.report("fetch", note=repo)
    errand.say(f"fetch {repo} at {subject.revision.commit}")
    if not git.holds(mirror, subject.revision.commit):
        git.update_mirror(
            mirror,
            git.repo_url(repo),
            _note(control, "fetch"),
            tick=control.check,
            token=token,
        )
    if not git.holds(mirror, subject.revision.commit):
        git_single.fetch_commit(
            mirror,
            git.repo_url(repo),
            subject.revision.commit,
            tick=control.check,
            token=token,
        )
    if target.via == "asset":
        control.report("download", note=target.pin("asset")[:80])
        bring_release_file(
            repo,
            target,
            into,
            mirror=mirror,
            commit=subject.revision.commit,
            check=control.check,
            on_progress=lambda done, total: control.report(
                "download", done=done, total=total, unit="B"
            ),
        )
        return
    if target.pin("image"):
        check_tag(mirror, target.pin("tag"), subject.revision.commit)
        into.mkdir()
        return
    git.check_out(
        mirror,
        subject.revision.commit,
        into,
        () if target.via == image_recipe.VIA else subject.family.SPARSE_PATTERNS,
        tick=control.check,
        token=token,
    )


def trusted_name(subject: Subject) -> str:
    """The repository's name now; a name that may be a stranger's by now is not asked."""
    origin = subject.origin
    if origin is None:
        return subject.revision.source
    if origin.doubt:
        raise JobFailure(
            origin.doubt,
            failure_class="name_in_doubt",
            blame=Blame.INFRASTRUCTURE,
            phase="fetch",
            advice=origin.advice,
        )
    return origin.repo


def _note(control: Control, phase: str) -> Callable[[str], None]:
    return lambda line: control.report(phase, note=line[:80])
