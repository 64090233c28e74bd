"""The real chain of May 2026 out of mirrors, as repositories that show any moment of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.watching import engine

UPSTREAM = "9a532ae4bab1b164052ce60a738f78538b421c66"
START = "2026-04-28T00:00:00Z"
FORKS = {
    "turboquant": ("TheTom/llama-cpp-turboquant", "feature/turboquant-kv-cache"),
    "buun": ("spiritbuun/buun-llama-cpp", "master"),
    "beellama": ("Anbeeld/beellama.cpp", "main"),
}
LIST = (
    engine("upstream", "ggml-org/llama.cpp", "master")
    + engine("turboquant", *FORKS["turboquant"], parent="upstream")
    + engine("buun", *FORKS["buun"], parent="turboquant")
    + engine("beellama", *FORKS["beellama"], parent="buun")
)


def git(place: Path, *words: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", "-C", str(place), *words], input=text, check=True, capture_output=True, text=True
    )
    return done.stdout


class Past:
    """A repository that borrows a mirror's objects and shows its refs as of a moment."""

    def __init__(self, place: Path, mirror: Path, final: dict[str, str]) -> None:
        self.place = place
        self.final = final
        place.mkdir(parents=True)
        git(place, "init", "--quiet", "--bare")
        git(place, "config", "uploadpack.allowFilter", "true")
        git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
        (place / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n")

    def show(self, until: str | None = None) -> dict[str, str]:
        """Put every branch where it stood by committer date, and tags that were there."""
        refs = dict(self.final)
        if until is not None:
            for ref, sha in self.final.items():
                line = ["rev-list", "-1", f"--until={until}", "--first-parent", sha]
                then = git(self.place, *line).strip()
                if not then or (ref.startswith("refs/tags/") and then != sha):
                    del refs[ref]
                else:
                    refs[ref] = then
        update = "".join(f"update {ref} {sha}\n" for ref, sha in refs.items())
        git(self.place, "update-ref", "--stdin", text=update)
        return refs


def refs_of(mirror: Path) -> dict[str, str]:
    form = "--format=%(objectname) %(refname)"
    rows = git(mirror, "for-each-ref", form, "refs/heads", "refs/tags").splitlines()
    return {
        ref: git(mirror, "rev-parse", f"{sha}^{{commit}}").strip()
        for sha, _, ref in (row.partition(" ") for row in rows)
    }


def chain_of(mirrors: Path, hub: Path) -> dict[str, Past]:
    """Upstream of 18 May and the three forks, as `hub/OWNER/NAME.git`."""
    buun = mirrors / f"{FORKS['buun'][0]}.git"
    found = {
        "upstream": Past(hub / "ggml-org/llama.cpp.git", buun, {"refs/heads/master": UPSTREAM})
    }
    for name, (repo, _) in FORKS.items():
        mirror = mirrors / f"{repo}.git"
        found[name] = Past(hub / f"{repo}.git", mirror, refs_of(mirror))
    return found
