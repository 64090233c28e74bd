"""The chain's spring of 2026 in small: four repositories, moved day by day as the real ones were.

Upstream merges numbered pull requests; turboquant rebases; buun stands on what turboquant was
before, and merges upstream; beellama stands on buun, picks from both, and squashes in the end.
Every commit carries the date of its day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time

from support.hub import Hub, Repository
from support.watching import engine

REPOS = {
    "upstream": ("ggml-org/llama.cpp", "master", ""),
    "turboquant": ("TheTom/llama-cpp-turboquant", "feature/turboquant-kv-cache", "upstream"),
    "buun": ("spiritbuun/buun-llama-cpp", "master", "turboquant"),
    "beellama": ("Anbeeld/beellama.cpp", "main", "buun"),
}
LIST = "".join(engine(name, *about) for name, about in REPOS.items())
FIRST_DAY = date(2026, 4, 28)


def noon(day: date) -> datetime:
    """The middle of a day; what is pushed that day is older by the evening."""
    return datetime.combine(day, time(12), tzinfo=UTC)


class Spring:
    """The repositories as they were on 28 April 2026, and what each day after that does."""

    def __init__(self, hub: Hub) -> None:
        self.at = 0
        self.upstream, self.turbo, self.buun, self.bee = (
            hub.add(repo) for repo, _, _ in REPOS.values()
        )
        self.pull: dict[int, str] = {}
        self.patch: dict[str, str] = {}
        self._before()

    @property
    def days(self) -> Mapping[date, Callable[[], None]]:
        """What happens on which day; the others are quiet."""
        april, may = (lambda day: date(2026, 4, day)), (lambda day: date(2026, 5, day))
        return {
            april(29): self._upstream_releases,
            april(30): self._buun_merges_upstream,
            may(1): self._nothing,
            may(2): self._turboquant_picks_a_pull_request,
            may(4): self._turboquant_works,
            may(5): self._beellama_begins,
            may(7): self._beellama_picks_from_turboquant,
            may(9): self._turboquant_rebases,
            may(12): self._turboquant_cleans_up,
            may(14): self._beellama_moves_a_tag,
            may(16): self._upstream_merges_mtp,
            may(18): self._buun_prepares_a_sync,
            may(19): self._buun_works_and_beellama_follows,
            may(21): self._beellama_squashes,
            may(22): self._upstream_goes_on,
        }

    def live(self, day: date) -> None:
        """Let a day happen."""
        self.at = int(noon(day).timestamp())
        self.days[day]()

    def _before(self) -> None:
        self._on(2026, 3, 10)
        self._merge_pull(22001)
        self.turbo.git("reset", "--quiet", "--hard", self.turbo.take(self.upstream, "master"))
        for number in (1, 2, 3):
            self._on(2026, 3, 20 + number)
            self._write(self.turbo, f"turbo {number}", "TheTom")
        self.turbo.push("HEAD:refs/heads/experiment/layer-adaptive")
        self.buun.git("reset", "--quiet", "--hard", self.turbo_branch("experiment/layer-adaptive"))
        for number in (1, 2, 3):
            self._on(2026, 4, 5 + number)
            self._write(self.buun, f"dflash {number}", "spiritbuun")
        self.buun.push("HEAD:refs/heads/master")
        self._on(2026, 4, 14)
        self._merge_pull(22002, 22003)
        self._on(2026, 4, 15)
        self._restart(self.turbo, "TheTom", "turbo 1", "turbo 2", "turbo 3")
        self._on(2026, 4, 16)
        self._write(self.turbo, "turbo 4", "TheTom")
        self._on(2026, 4, 21)
        self._merge_pull(22004, 22005)
        self.upstream.git("tag", "b8871")
        self.upstream.push("b8871")
        self._on(2026, 4, 22)
        self._merge(self.turbo, self.turbo.take(self.upstream, "master"), "Upstream sync to b8871")
        self._on(2026, 4, 23)
        self._write(self.turbo, "turbo 5", "TheTom")
        self.turbo.push(f"HEAD:refs/heads/{REPOS['turboquant'][1]}")
        self._on(2026, 4, 26)
        self._merge_pull(22006, 22007)
        self.bee.git("reset", "--quiet", "--hard", self.bee.take(self.buun, "master"))
        self.bee.push("HEAD:refs/heads/main")

    def _nothing(self) -> None:
        """A quiet day."""

    def _upstream_releases(self) -> None:
        self._merge_pull(22008, 22009)
        self.upstream.git("tag", "b8950")
        self.upstream.push("b8950")

    def _buun_merges_upstream(self) -> None:
        head = self.buun.take(self.upstream, "master")
        self._merge(self.buun, head, "Merge upstream master")
        self.buun.git("tag", "b9300")
        self.buun.push("HEAD:refs/heads/master", "b9300")

    def _turboquant_picks_a_pull_request(self) -> None:
        self._merge_pull(22010)
        self.turbo.take(self.upstream, "master")
        self._pick(self.turbo, self.pull[22010], "TheTom")
        self.turbo.push(f"HEAD:refs/heads/{REPOS['turboquant'][1]}")

    def _turboquant_works(self) -> None:
        path = "ggml/src/ggml-cuda/turbo.cu"
        self._write(self.turbo, "turbo 6 (#42)", "contributor", path)
        branch = f"HEAD:refs/heads/{REPOS['turboquant'][1]}"
        self.turbo.push(branch, "HEAD:refs/heads/try/fused")

    def _beellama_begins(self) -> None:
        self.bee.git("merge", "--quiet", "--ff-only", self.bee.take(self.buun, "master"))
        self._write(self.bee, "bee 1", "Anbeeld", "common/speculative.cpp")
        self._write(self.bee, "bee 2", "Anbeeld")
        self.bee.git("tag", "-a", "-m", "first", "v0.1.0", at=self.at)
        self.bee.push("HEAD:refs/heads/main", "v0.1.0")

    def _beellama_picks_from_turboquant(self) -> None:
        self.bee.take(self.turbo, REPOS["turboquant"][1])
        self._pick(self.bee, self.patch["turbo 6 (#42)"], "Anbeeld")
        self.bee.push("HEAD:refs/heads/main")

    def _turboquant_rebases(self) -> None:
        patches = [f"turbo {number}" for number in range(1, 6)]
        self._restart(self.turbo, "TheTom", *patches, "turbo 6 (#42)")
        self.turbo.push(f"HEAD:refs/heads/{REPOS['turboquant'][1]}")

    def _turboquant_cleans_up(self) -> None:
        self.turbo.push(":refs/heads/try/fused")

    def _beellama_moves_a_tag(self) -> None:
        self.bee.git("tag", "--force", "-a", "-m", "again", "v0.1.0", at=self.at)
        self.bee.push("v0.1.0")

    def _upstream_merges_mtp(self) -> None:
        self._merge_pull(22673)

    def _buun_prepares_a_sync(self) -> None:
        master = self.buun.head
        patches = [f"{what} {number}" for what in ("turbo", "dflash") for number in (1, 2, 3)]
        self._restart(self.buun, "spiritbuun", *patches)
        self.buun.push("HEAD:refs/heads/rebase/upstream-sync-20260518")
        self.buun.git("reset", "--quiet", "--hard", master)

    def _buun_works_and_beellama_follows(self) -> None:
        self._write(self.buun, "dflash 4", "spiritbuun")
        self.buun.push("HEAD:refs/heads/master")
        self._merge(self.bee, self.bee.take(self.buun, "master"), "Merge buun")
        self.bee.push("HEAD:refs/heads/main")

    def _beellama_squashes(self) -> None:
        self.bee.git("reset", "--quiet", "--soft", self.bee.take(self.buun, "master"))
        self.bee.commit(
            {}, message="Restore local changes on cleaned history", author="Anbeeld", at=self.at
        )
        self.bee.git("tag", "v0.1.2")
        self.bee.push("HEAD:refs/heads/main", "v0.1.2")

    def _upstream_goes_on(self) -> None:
        self._merge_pull(22801)

    def turbo_branch(self, name: str) -> str:
        """The head of a branch of turboquant, brought to buun."""
        return self.buun.take(self.turbo, name)

    def _on(self, year: int, month: int, day: int) -> None:
        self.at = int(noon(date(year, month, day)).timestamp())

    def _merge_pull(self, *numbers: int) -> None:
        for number in numbers:
            self.pull[number] = self.upstream.commit(
                {f"up/{number}": str(number)},
                message=f"change {number} (#{number})",
                author=f"Up {number % 3}",
                at=self.at,
            )
        self.upstream.push("HEAD:refs/heads/master")

    def _write(self, repository: Repository, subject: str, author: str, path: str = "") -> None:
        files = {path or f"own/{subject}": subject}
        sha = repository.commit(files, message=subject, author=author, at=self.at)
        self.patch.setdefault(subject, sha)

    def _merge(self, repository: Repository, head: str, message: str) -> None:
        repository.git("merge", "--quiet", "--no-ff", "-m", message, head, at=self.at)

    def _pick(self, repository: Repository, sha: str, committer: str) -> None:
        """A copy with author and author's time, committed today by somebody else."""
        moment = {"at": self.at, "committer": committer}
        repository.git("cherry-pick", sha, **moment)  # type: ignore[arg-type]

    def _restart(self, repository: Repository, committer: str, *subjects: str) -> None:
        """Put these patches on upstream as it is today."""
        head = repository.take(self.upstream, "master")
        repository.git("reset", "--quiet", "--hard", head)
        for subject in subjects:
            self._pick(repository, self.patch[subject], committer)
