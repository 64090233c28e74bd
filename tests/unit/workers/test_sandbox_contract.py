"""Mounts, environments and the choice of a sandbox, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, Step, Trust
from workers.bubblewrap import Bubblewrap
from workers.cages import Cage, cage_advice, candidates, choose, find_cage
from workers.docker import Docker
from workers.sandbox import Mount, step_environment
from workers.uncaged import Uncaged


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
@pytest.mark.parametrize("setting", ["auto", "bubblewrap", "docker", "none"])
def test_foreign_source_needs_a_proven_cage(setting: str, trust: Trust) -> None:
    """Without a cage that holds there is no fall-back, and the advice names the package."""
    with pytest.raises(JobFailure) as caught:
        choose(setting, trust, cage=Cage(Uncaged(), ("a secret file can be read",)))
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
        ("docker", [], "bubblewrap"),
    ],
)
def test_a_pinned_package_may_run_without_a_cage(
    setting: str, faults: list[str], name: str
) -> None:
    """A package takes the cage where it holds and limits alone where it does not."""
    assert choose(setting, Trust.PACKAGE, cage=Cage(Bubblewrap(), tuple(faults))).name == name


@pytest.mark.parametrize("setting", ["bubblewrap", "docker"])
def test_a_cage_that_was_asked_for_is_not_replaced(setting: str) -> None:
    """With FORKSCOUT_SANDBOX naming a cage even a package needs that cage."""
    with pytest.raises(JobFailure, match="x"):
        choose(setting, Trust.PACKAGE, cage=Cage(Uncaged(), ("x",)))


def test_none_never_allows_foreign_code_even_with_a_cage() -> None:
    """FORKSCOUT_SANDBOX=none is for packages only."""
    with pytest.raises(JobFailure, match="FORKSCOUT_SANDBOX is none"):
        choose("none", Trust.AUTO, cage=Cage(Bubblewrap()))


def test_never_means_never() -> None:
    """An engine of trust never is not started anywhere."""
    with pytest.raises(JobFailure) as caught:
        choose("auto", Trust.NEVER, cage=Cage(Bubblewrap()))
    assert caught.value.failure_class == "not_trusted"


def test_an_unknown_setting_is_a_usage_error() -> None:
    """The message names the values there are."""
    with pytest.raises(UsageError) as caught:
        candidates("podman", "")
    assert "bubblewrap" in caught.value.advice


def test_the_first_cage_that_holds_is_taken() -> None:
    """A container engine serves where bubblewrap does not, and only then."""
    tried = [Bubblewrap(), Docker()]
    assert find_cage(tried, proof=lambda _: []).sandbox.name == "bubblewrap"
    leaky = find_cage(tried, proof=lambda s: ["leaks"] if s.name == "bubblewrap" else [])
    assert (leaky.sandbox.name, leaky.faults) == ("docker", ())


def test_without_any_cage_every_fault_is_said_once() -> None:
    """What each cage lacks stands beside its name, and nothing is chosen."""
    cage = find_cage([Bubblewrap(), Docker()], proof=lambda _: ["leaks"])
    assert cage.faults == ("bubblewrap: leaks", "docker: leaks")
    assert not cage.sandbox.caged
    assert find_cage([]).faults == ("FORKSCOUT_SANDBOX is none",)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ],
)
def test_the_advice_names_the_setting_in_the_way(
    tmp_path: Path, path: str, value: str, named: str
) -> None:
    """Ubuntu's, Debian's and the kernel's own switch of user namespaces, where they are off."""
    assert named not in cage_advice(settings=tmp_path)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(f"{value}\n")
    assert named in cage_advice(settings=tmp_path)


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2375", "ssh://x", "unix://relative", "/x"])
def test_a_container_engine_elsewhere_is_refused(host: str) -> None:
    """Code and weights never go to an engine of another machine."""
    with pytest.raises(UsageError, match="not on this machine"):
        Docker(host)
