"""A stand-in for GitHub: bare repositories in a folder, reached through git's own `insteadOf`.

Git reads them from a real server, or from the folder itself where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from support.git_server import GitServer

QUIET = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsync",
    "GIT_CONFIG_VALUE_0": "none",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
}


class Repository:
    """One bare repository and a work tree to fill it from."""

    def __init__(self, bare: Path, work: Path) -> None:
        self.bare = bare
        self.work = work

    def begin(self) -> None:
        """Make both, empty."""
        words = ("init", "--quiet", "--template=", "--initial-branch=main")
        self._run(*words, "--bare", str(self.bare), cwd=self.bare.parent)
        self._run("config", "uploadpack.allowFilter", "true", cwd=self.bare)
        self._run("config", "uploadpack.allowAnySHA1InWant", "true", cwd=self.bare)
        self._run(*words, str(self.work), cwd=self.work.parent)
        self.git("remote", "add", "origin", os.path.relpath(self.bare, self.work))

    def begin_as(self, other: Repository) -> None:
        """Make both, with all that another has."""
        shutil.copytree(other.bare, self.bare, symlinks=True)
        shutil.copytree(other.work, self.work, symlinks=True)

    def commit(
        self,
        files: dict[str, str],
        *,
        links: dict[str, str] | None = None,
        message: str = "change",
        author: str = "A",
        at: int | None = None,
    ) -> str:
        """Write the files and links, commit them, and return the sha; `at` is in Unix seconds."""
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, target in (links or {}).items():
            (self.work / name).symlink_to(target)
        self.git("add", "--all", "--force")
        self.git(
            *("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message),
            at=at,
            author=author,
        )
        return self.git("rev-parse", "HEAD").strip()

    def push(self, *refs: str) -> None:
        """Push, by force, `refs` or the branch main."""
        self.git("push", "--quiet", "--force", "origin", *(refs or ("HEAD:refs/heads/main",)))

    def git(
        self, *words: str, at: int | None = None, author: str = "A", committer: str = "A"
    ) -> str:
        """Run git in the work tree; new commits are by these people, at that time."""
        then = {} if at is None else {"GIT_AUTHOR_DATE": f"@{at} +0000"}
        then |= {} if at is None else {"GIT_COMMITTER_DATE": f"@{at} +0000"}
        people = {"GIT_AUTHOR_NAME": author, "GIT_COMMITTER_NAME": committer}
        return self._run(*words, cwd=self.work, **people, **then)

    def take(self, other: Repository, ref: str) -> str:
        """Bring a ref of another repository here, and return its sha."""
        self.git("fetch", "--quiet", "--no-tags", str(other.bare), ref)
        return self.git("rev-parse", "FETCH_HEAD").strip()

    @property
    def head(self) -> str:
        """The commit that is checked out."""
        return self.git("rev-parse", "HEAD").strip()

    @staticmethod
    def _run(*words: str, cwd: Path, **env: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=cwd,
            env={**QUIET, **env},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


class Hub:
    """Repositories by `owner/name`, and the git configuration that leads to them."""

    def __init__(self, folder: Path, *, server: GitServer | None = None) -> None:
        self.folder = folder
        self.config = folder / "gitconfig"
        self.server = server
        self.repositories: dict[str, Repository] = {}
        (folder / "hub").mkdir(parents=True, exist_ok=True)
        base = server.url if server is not None else f"{folder}/hub/"
        instead = f'[url "{base}"]\n\tinsteadOf = https://github.com/\n'
        self.config.write_text(f"{instead}[core]\n\tfsync = none\n")

    def add(self, name: str, *, like: Repository | None = None) -> Repository:
        """A new repository, empty or with all that another has."""
        bare = self.folder / "hub" / f"{name}.git"
        work = self.folder / "work" / name
        bare.parent.mkdir(parents=True, exist_ok=True)
        work.parent.mkdir(parents=True, exist_ok=True)
        made = self.repositories[name] = Repository(bare, work)
        if like is None:
            made.begin()
        else:
            made.begin_as(like)
        return made
