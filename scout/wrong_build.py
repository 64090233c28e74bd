"""Which keys of a `[[engine.build]]` go together; pure."""

from __future__ import annotations

from collections.abc import Iterator

from scout.problem import Problem
from scout.watchlist import WAYS_OF_PIN, BuildEntry

FROM_SOURCE = ("dockerfile", "stage", "cuda_version", "dev_image", "run_image")


def wrong_build(here: tuple[str | int, ...], engine: str, build: BuildEntry) -> Iterator[Problem]:
    """Keys of another way, and keys that a way misses."""
    given = [name for name in WAYS_OF_PIN if getattr(build, name)]
    foreign = next((name for name in given if build.via not in WAYS_OF_PIN[name]), None)
    what = f"a build of {engine!r} via {build.via!r}"
    if foreign:
        ways = " or ".join(f'via = "{way}"' for way in WAYS_OF_PIN[foreign])
        yield Problem(
            (*here, foreign), f"{what} takes no {foreign}", f"write {ways}, or leave {foreign} out"
        )
    elif build.via == "asset" and not (build.asset and build.tag and build.sha256):
        yield Problem(
            (*here, "via"),
            f"{what} does not name its file",
            "write asset, tag and sha256 of the release file",
        )
    elif build.via == "docker" and build.options:
        yield Problem(
            (*here, "options"),
            f"{what} takes no options",
            'leave options out, or use via = "cmake"',
        )
    elif build.via == "docker" and build.image:
        yield from _wrong_image(here, what, build, given)
    elif build.via == "docker" and build.tag:
        yield Problem(
            (*here, "tag"), f"{what} takes a tag only with an image", "leave tag out, or add image"
        )
    elif build.via == "docker" and not (build.dev_image or build.run_image):
        yield Problem(
            (*here, "via"),
            f"{what} does not name what it starts from",
            "write dev_image and run_image, each as NAME@sha256:DIGEST, or an image",
        )


def _wrong_image(
    here: tuple[str | int, ...], what: str, build: BuildEntry, given: list[str]
) -> Iterator[Problem]:
    """An image is finished: nothing is said of how it would be made."""
    if extra := next((name for name in FROM_SOURCE if name in given), None):
        yield Problem(
            (*here, extra),
            f"{what} names an image and {extra}",
            f"leave {extra} out: an image is not built",
        )
    if not build.tag:
        yield Problem(
            (*here, "image"),
            f"{what} names an image of no release",
            "write tag: the tag of the commit that it was made of",
        )
