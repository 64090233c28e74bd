"""The token is a secret: it is shown nowhere and handed to nobody."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from jobs.cli.root import wrong_setting
from jobs.config import Settings, env_example, inherited_environment


def test_the_token_shows_in_no_text_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither printed, nor dumped, nor in the example file."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    settings = Settings()
    assert settings.github_token.get_secret_value() == "s3cret"
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert "s3cret" not in shown + env_example()


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "HF_TOKEN"])
@pytest.mark.parametrize(
    "token", ["s3cret\ns3cret", "s3cret\r\nX-Evil: y", "s3cretÄ€", "s3cret s3cret", "s3cret\x7f"]
)
def test_a_token_that_fits_no_header_is_refused_unseen(
    name: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the variable; neither it nor its traceback holds the value."""
    monkeypatch.setenv(f"FORKSCOUT_{name}", token)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert f"FORKSCOUT_{name}: must be one line" in wrong_setting(caught.value)
    assert "s3cret" not in f"{caught.value} {caught.value!r}"


def test_an_error_of_another_setting_shows_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that do not fit together are told of without their values."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    monkeypatch.setenv("FORKSCOUT_LEASE_SECONDS", "1")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert "s3cret" not in str(caught.value)


def test_the_end_of_a_line_is_no_part_of_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's content is a token too."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", " s3cret\n")
    assert Settings().github_token.get_secret_value() == "s3cret"


def test_programs_do_not_inherit_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user set up for pip passes, the token does not."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    monkeypatch.setenv("PIP_RETRIES", "0")
    environment = inherited_environment(EXTRA="1")
    assert environment["PIP_RETRIES"] == "0"
    assert environment["EXTRA"] == "1"
    assert "s3cret" not in environment.values()
