"""The words that a watch list takes, each with the shape it must have and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, StrictStr

from jobs.dialect import image_recipe
from jobs.hub_names import checked_commit, checked_file, checked_repo
from jobs.model import RIG_NAME
from jobs.pip import PACKAGE_NAME

REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[\w.-]{1,100}", re.ASCII)
HUB_PART = r"[A-Za-z0-9_](?:[\w.-]{0,94}[\w-])?"
HUB_FILE = re.compile(r"[\w.-]+/[\w.-]+:[\w.-]+", re.ASCII)


class Misshapen(ValueError):
    """A text that is not what its key takes, and what to write instead."""

    def __init__(self, says: str, advice: str) -> None:
        self.advice = advice
        super().__init__(says)


def _shaped(pattern: str, says: str, write: str) -> Callable[[str], str]:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise Misshapen(f"{text[:80]!r} is not {says}", f"write {write}")
        return text

    return check


def _repository(text: str) -> str:
    """An owner/name; an address is refused with the owner/name that stands in it."""
    if not REPOSITORY.fullmatch(text):
        inside = re.match(
            r"(?:https?://|git@)[^/:]+[/:]([^/\s]+/[^/\s?#]+?)(?:\.git)?(?:[/?#]|$)", text
        )
        named = inside[1] if inside and REPOSITORY.fullmatch(inside[1]) else "ggml-org/llama.cpp"
        like = "" if inside else ", for example"
        raise Misshapen(f"{text[:80]!r} is not an owner/name", f"write{like} {named}")
    return text


def exact_version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise Misshapen(f"{text[:80]!r} is not one exact version", "write one as 1.2.3") from None
    return text


def branch_name(text: str) -> str:
    wrong = re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-/.]|[/.]$|\.lock(/|$)", text)
    if wrong or not text or len(text) > 200:
        raise Misshapen(
            f"{text[:80]!r} is not the name of a branch", "write it as git does, as master"
        )
    return text


def _one_line(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text) or len(text) > 4000:
        raise Misshapen(
            "holds control characters or is too long for one line", "write one line of plain text"
        )
    return text


budget_source = _shaped(
    rf"engine:[A-Za-z0-9][A-Za-z0-9._:+-]{{0,79}}|hub:{HUB_PART}",
    "engine:NAME or hub:AUTHOR",
    "one as engine:buun",
)

Name = Annotated[
    str,
    AfterValidator(
        _shaped(
            r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,79}",
            "a name of letters, digits and . _ : + - (80 at most)",
            "one as my-fork",
        )
    ),
]
RigName = Annotated[
    str,
    AfterValidator(
        _shaped(RIG_NAME.pattern, "a rig's name of letters, digits and _ -", "one as cpu")
    ),
]
Repository = Annotated[str, AfterValidator(_repository)]
Package = Annotated[
    str,
    AfterValidator(
        _shaped(PACKAGE_NAME.pattern, "a package name", "it as the package index spells it")
    ),
]
Sha256 = Annotated[
    str,
    AfterValidator(
        _shaped(r"[0-9a-f]{64}", "a sha256 of 64 lower-case hex digits", "what sha256sum prints")
    ),
]
FileName = Annotated[
    str,
    AfterValidator(
        _shaped(
            rf"{HUB_FILE.pattern}|[A-Za-z0-9][A-Za-z0-9._:+-]{{0,79}}",
            "a model's name, or an owner/repository:file of the hub",
            "the name of a [[model]] of this list",
        )
    ),
]
HubWatch = Annotated[
    str,
    AfterValidator(
        _shaped(
            rf"author:{HUB_PART}|(?:repo|base):{HUB_PART}/{HUB_PART}|search:\w[\w./ -]{{0,99}}",
            "author:NAME, repo:OWNER/NAME, base:OWNER/NAME or search:WORDS",
            "one as author:ggml-org",
        )
    ),
]
HubRepository = Annotated[str, AfterValidator(checked_repo)]
HubFileName = Annotated[str, AfterValidator(checked_file)]
HubRevision = Annotated[str, AfterValidator(checked_commit)]
CudaArch = Annotated[
    str,
    AfterValidator(
        _shaped(r"[0-9]{2,3}[af]?", "a CUDA architecture as 120", "its number without a dot")
    ),
]
EnvName = Annotated[
    str,
    AfterValidator(
        _shaped(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "a variable's name", "letters, digits and _")
    ),
]
IntentText = Annotated[
    StrictStr,
    AfterValidator(
        _shaped(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}", "a plain word", "one word as q8_0")
    ),
]
AssetName = Annotated[
    str,
    AfterValidator(
        _shaped(
            r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", "a file or tag of a release", "its name alone"
        )
    ),
]
Image = Annotated[
    str,
    AfterValidator(
        _shaped(image_recipe.BY_DIGEST.pattern, "an image by its digest", "NAME@sha256:DIGEST")
    ),
]
DockerfilePath = Annotated[
    str,
    AfterValidator(
        _shaped(image_recipe.DOCKERFILE_PATH, "a path inside the repository", "its path there")
    ),
]
Stage = Annotated[
    str,
    AfterValidator(_shaped(image_recipe.STAGE_NAME, "a stage of a Dockerfile", "its name alone")),
]
CudaVersion = Annotated[
    str,
    AfterValidator(_shaped(image_recipe.CUDA_VERSION, "a version of CUDA", "one as 12.8.1")),
]
Line = Annotated[str, AfterValidator(_one_line)]
Role = Literal["target", "drafter", "mmproj"]
