"""Where the site may listen is said in words before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from jobs import demo, up
from jobs.config import Settings
from jobs.errors import UsageError


def settings(home: Path, **changes: object) -> Settings:
    return Settings(_env_file=None, home=home, **changes)  # type: ignore[call-arg, arg-type]


def _free(host: str, family: socket.AddressFamily) -> int:
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_a_free_port_of_either_family_is_fine(
    tmp_path: Path, host: str, family: socket.AddressFamily
) -> None:
    """IPv6 is an address like any other."""
    up.check_port(settings(tmp_path, host=host, port=_free(host, family)))


@pytest.mark.parametrize("host", ["256.1.1.1", "192.0.2.1", "no such host", "::ffff:1:2:3:4:5:6:7"])
def test_an_address_that_is_not_ours_is_named_as_such(tmp_path: Path, host: str) -> None:
    """Another port would not help, and the advice does not say so; the demo says the same."""
    wrong = settings(tmp_path, host=host, port=8450)
    for asks in (up.check_port, demo._with_free_port):
        with pytest.raises(UsageError, match="cannot listen on") as caught:
            asks(wrong)
        assert "FORKSCOUT_HOST" in caught.value.advice


def test_the_demo_takes_another_port_where_its_own_is_taken(tmp_path: Path) -> None:
    """A demo beside a running system needs no setting."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError) as caught:
            up.check_port(settings(tmp_path, port=port))
        assert "FORKSCOUT_PORT" in caught.value.advice
        assert demo._with_free_port(settings(tmp_path, port=port)).port != port
