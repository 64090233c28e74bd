"""Four repositories of the shape of the real chain, small: upstream, a fork, its fork, and theirs.

The first fork rebased after the second had taken its work; the second merged upstream; the third
stands on the second and has one patch of the first picked over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from support.hub import Hub, Repository

DAY = 86_400
START = 1_770_000_000


@dataclass
class Chain:
    """The repositories, and the commits that tests name."""

    upstream: Repository
    turbo: Repository
    buun: Repository
    bee: Repository
    synced: str
    merge: str


def upstream_commit(repository: Repository, number: int) -> str:
    """One squash merge of upstream, as its subject tells."""
    return repository.commit(
        {f"up/{number}": str(number)},
        message=f"change {number} (#{10_000 + number})",
        author=f"Up {number % 3}",
        at=START + number * DAY,
    )


def patch(repository: Repository, name: str, author: str, day: int, path: str = "") -> str:
    """One patch of a fork's own."""
    return repository.commit(
        {path or f"{author}/{name}": name}, message=name, author=author, at=START + day * DAY
    )


def build_chain(hub: Hub) -> Chain:
    """Make the four repositories and push their branches."""
    upstream = hub.add("up/llama.cpp")
    for number in range(4):
        upstream_commit(upstream, number)
    upstream.push("HEAD:refs/heads/master")

    turbo = hub.add("tom/turbo")
    turbo.git("reset", "--quiet", "--hard", turbo.take(upstream, "master"))
    early = [patch(turbo, f"turbo {n}", "tom", 4 + n) for n in range(3)]
    turbo.push("HEAD:refs/heads/experiment")

    buun = hub.add("buun/engine")
    buun.git("reset", "--quiet", "--hard", buun.take(turbo, "experiment"))
    for n in range(2):
        patch(buun, f"dflash {n}", "buun", 10 + n, "common/speculative.cpp" if n else "")
    for number in range(12, 15):
        upstream_commit(upstream, number)
    upstream.push("HEAD:refs/heads/master")

    turbo.git("reset", "--quiet", "--hard", turbo.take(upstream, "master") + "~1")
    turbo.git("cherry-pick", *early)
    picked = patch(turbo, "turbo late", "tom", 16)
    turbo.push("HEAD:refs/heads/feature/turbo")

    synced = buun.take(upstream, "master")
    buun.git("merge", "--quiet", "--no-ff", "-m", "Merge upstream", synced, at=START + 17 * DAY)
    merge = buun.head
    patch(buun, "dflash 2", "buun", 18)
    buun.push("HEAD:refs/heads/master")

    bee = hub.add("bee/engine")
    bee.git("reset", "--quiet", "--hard", bee.take(buun, "master"))
    for n in range(2):
        patch(bee, f"bee {n}", "bee", 19 + n)
    bee.take(turbo, "feature/turbo")
    bee.git("cherry-pick", picked)
    bee.push("HEAD:refs/heads/main")

    patch(buun, "dflash 3", "buun", 22)
    buun.push("HEAD:refs/heads/master")
    for number in range(23, 25):
        upstream_commit(upstream, number)
    upstream.push("HEAD:refs/heads/master")
    return Chain(upstream, turbo, buun, bee, synced, merge)


def copy_chain(first: Chain, hub: Hub) -> Chain:
    """The same four repositories in another hub; much quicker than to build them."""
    return replace(
        first,
        upstream=hub.add("up/llama.cpp", like=first.upstream),
        turbo=hub.add("tom/turbo", like=first.turbo),
        buun=hub.add("buun/engine", like=first.buun),
        bee=hub.add("bee/engine", like=first.bee),
    )
