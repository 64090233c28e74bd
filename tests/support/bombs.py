"""Commits that are small to send and endless to read."""

from __future__ import annotations

import subprocess

from support.hub import Repository


def _given(repository: Repository, *words: str, text: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=repository.work, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def bomb(repository: Repository, *, width: int, depth: int) -> str:
    """A commit of few objects that stands for `width * 10 ** depth` files."""
    blob = _given(repository, "hash-object", "-w", "--stdin", text="x")
    names = "".join(f"100644 blob {blob}\t{'f' * 40}{n}\n" for n in range(width))
    tree = _given(repository, "mktree", text=names)
    for _ in range(depth):
        tree = _given(
            repository, "mktree", text="".join(f"040000 tree {tree}\td{n}\n" for n in range(10))
        )
    words = ("commit-tree", "-p", "HEAD", "-m", "bomb", tree)
    return repository.git(*words).strip()
