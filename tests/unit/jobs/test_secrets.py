"""The token is a secret: it is shown nowhere and handed to nobody."""

from __future__ import annotations

import pytest

from jobs.config import Settings, env_example, inherited_environment


def test_the_token_shows_in_no_text_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither printed, nor dumped, nor in the example file."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    settings = Settings()
    assert settings.github_token.get_secret_value() == "s3cret"
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert "s3cret" not in shown + env_example()


def test_programs_do_not_inherit_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user set up for pip passes, the token does not."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    monkeypatch.setenv("PIP_RETRIES", "0")
    environment = inherited_environment(EXTRA="1")
    assert environment["PIP_RETRIES"] == "0"
    assert environment["EXTRA"] == "1"
    assert "s3cret" not in environment.values()
