"""Mounts, environments and the choice of a sandbox, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, Step, Trust
from workers.proof import choose
from workers.sandbox import Mount, step_environment


@pytest.mark.parametrize("inside", ["/", "relative", "/a/../etc", "/a/", "/a//b", "/a\0b", ""])
def test_a_mount_goes_to_a_plain_absolute_path(inside: str) -> None:
    """A path that could mean another one is refused."""
    with pytest.raises(ValueError, match="mount"):
        Mount(Path("/srv/x"), inside)


@pytest.mark.parametrize("inside", ["/usr", "/etc/x", "/proc/1", "/dev", "/lib/x"])
def test_the_system_of_a_cage_is_never_writable(inside: str) -> None:
    """A writable mount over the cage's own folders is refused."""
    with pytest.raises(ValueError, match="read-only"):
        Mount(Path("/srv/x"), inside, writable=True)


def test_a_step_gets_four_names_and_its_own() -> None:
    """Nothing of our own environment is passed on (case C115)."""
    environment = step_environment(Step(name="s", argv=("x",), env={"CC": "gcc"}), "j/1", home="/h")
    assert set(environment) == {"PATH", "HOME", "LANG", "CC", "FORKSCOUT_JOB"}


@pytest.mark.parametrize(
    "env", [{"A=B": "x"}, {"": "x"}, {"A": "x\0--bind"}, {"A\0": "x"}, {"FORKSCOUT_JOB": "x"}]
)
def test_an_environment_cannot_hold_options_of_the_cage(env: dict[str, str]) -> None:
    """A NUL character or an odd name never reaches the sandbox's own arguments."""
    with pytest.raises(UsageError, match="environment variable"):
        step_environment(Step(name="s", argv=("x",), env=env), "j/1", home="/h")


@pytest.mark.parametrize("argv", [(), ("x", "a\0b")])
def test_a_command_without_words_or_with_a_nul_is_refused(argv: tuple[str, ...]) -> None:
    """Such a command is a usage error, not a crash."""
    with pytest.raises(UsageError):
        step_environment(Step(name="s", argv=argv), "j/1", home="/h")


@pytest.mark.parametrize("trust", [Trust.AUTO, Trust.APPROVE])
@pytest.mark.parametrize("setting", ["auto", "bubblewrap", "none"])
def test_foreign_source_needs_a_proven_cage(setting: str, trust: Trust) -> None:
    """Without a cage that holds there is no fall-back, and the advice names the package."""
    with pytest.raises(JobFailure) as caught:
        choose(setting, trust, cage_faults=["a secret file can be read"])
    assert caught.value.failure_class == "no_sandbox"
    assert caught.value.blame is Blame.ENVIRONMENT
    assert "apt install bubblewrap" in caught.value.advice


@pytest.mark.parametrize(
    ("setting", "faults", "name"),
    [
        ("auto", [], "bubblewrap"),
        ("auto", ["x"], "uncaged"),
        ("none", [], "uncaged"),
        ("bubblewrap", [], "bubblewrap"),
    ],
)
def test_a_pinned_package_may_run_without_a_cage(
    setting: str, faults: list[str], name: str
) -> None:
    """A package takes the cage where it holds and limits alone where it does not."""
    assert choose(setting, Trust.PACKAGE, cage_faults=faults).name == name


def test_a_cage_that_was_asked_for_is_not_replaced() -> None:
    """With FORKSCOUT_SANDBOX=bubblewrap even a package needs the cage."""
    with pytest.raises(JobFailure, match="x"):
        choose("bubblewrap", Trust.PACKAGE, cage_faults=["x"])


def test_none_never_allows_foreign_code_even_with_a_cage() -> None:
    """FORKSCOUT_SANDBOX=none is for packages only."""
    with pytest.raises(JobFailure, match="FORKSCOUT_SANDBOX is none"):
        choose("none", Trust.AUTO, cage_faults=[])


def test_never_means_never() -> None:
    """An engine of trust never is not started anywhere."""
    with pytest.raises(JobFailure) as caught:
        choose("auto", Trust.NEVER, cage_faults=[])
    assert caught.value.failure_class == "not_trusted"


def test_an_unknown_setting_is_a_usage_error() -> None:
    """The message names the values there are."""
    with pytest.raises(UsageError) as caught:
        choose("docker", Trust.PACKAGE, cage_faults=[])
    assert "bubblewrap" in caught.value.advice
