"""Settings of this installation; the only reader of environment variables."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from jobs.addresses import fits_a_header
from jobs.lifecycle import SOURCE_SHARE
from jobs.model import RIG_NAME
from jobs.negatives import DEFAULT_DAYS, LEAST_DAYS, MOST_DAYS

SOCKET_PATH_LIMIT = 100  # sun_path holds 108 bytes; the rest is room for a file name
ENV_PREFIX = "FORKSCOUT_"
LEAST_TOKEN, MOST_TOKEN = 20, 200  # signs of a token that nobody guesses

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+", re.ASCII)


class Settings(BaseSettings):
    """Every setting, read from `FORKSCOUT_*` variables or an `.env` file."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # some of them are secrets
    )

    home: Path = Field(Path("var"), description="folder of everything this installation keeps")
    database_url: str = Field("", description="database; empty means SQLite in the home folder")
    broker_url: str = Field("", description="Redis or Valkey; empty means the embedded one")
    watchlist: Path | None = Field(None, description="watch list; empty means the shipped demo")
    host: str = Field("127.0.0.1", description="address the site listens on")
    port: int = Field(8450, ge=1, le=65535, description="port the site listens on")
    hosts: str = Field(
        "", description="further host names the site answers to, separated by commas"
    )
    site: Path | None = Field(
        None, description="static export; empty means site/ in the home folder"
    )
    rig: str = Field(
        "cpu", pattern=rf"^{RIG_NAME.pattern}$", description="name of this machine's rig"
    )
    sandbox: Literal["auto", "bubblewrap", "docker", "none"] = Field(
        "auto", description="auto, bubblewrap, docker, or none (packages only)"
    )
    docker_host: str = Field(
        "",
        pattern=r"^(unix:///[A-Za-z0-9/._-]+)?$",
        description="unix socket of the container engine; empty means the usual one",
    )
    heartbeat_seconds: float = Field(
        15.0, gt=0, description="how often a running job says it lives"
    )
    lease_seconds: float = Field(45.0, gt=0, description="silence after which a job is taken back")
    control_seconds: float = Field(
        1.0, gt=0, description="how often a running job looks for a cancel"
    )
    sweep_seconds: float = Field(5.0, gt=0, description="how often forgotten doorbells ring again")
    scout_minutes: float = Field(30.0, gt=0, description="how often sources are watched")
    github_token: SecretStr = Field(
        SecretStr(""),
        description="read-only GitHub token; empty: GitHub is asked for little",
    )
    github_api: str = Field("https://api.github.com", description="address of GitHub's REST API")
    github_minutes: float = Field(
        5.0, ge=0, description="how often GitHub is looked at; 0 means only by hand"
    )
    hf_token: SecretStr = Field(
        SecretStr(""), description="read-only Hugging Face token; empty means public files only"
    )
    hf_endpoint: str = Field("https://huggingface.co", description="address of the model hub")
    hf_minutes: float = Field(
        5.0, ge=0, description="how often the model hub is looked at; 0 means only by hand"
    )
    hf_webhook_secret: SecretStr = Field(
        SecretStr(""), description="secret of the model hub's webhook; empty means none is taken"
    )
    admin_token: SecretStr = Field(
        SecretStr(""),
        description="token that lets commits in on the pages of this machine; empty: no page does",
    )
    weights_budget_bytes: int = Field(
        0, ge=0, description="disk the weights may take; 0 means all but what must stay free"
    )
    compiler_cache_bytes: int = Field(
        10_000_000_000, ge=0, description="disk the compiler's cache may take; 0 means no cache"
    )
    compiler_cache_base: str = Field(
        "", description="engine whose builds all others may reuse; empty: none is trusted so far"
    )
    drain_seconds: float = Field(20.0, gt=0, description="how long a stop waits before it kills")
    min_free_bytes: int = Field(2_000_000_000, ge=0, description="disk that must stay free")
    quiet_seconds: float = Field(
        60.0, ge=0, description="how long a bench waits for a quiet machine before each start"
    )
    budget_hours_per_day: float = Field(
        0.0, ge=0, le=24, description="hours a day that planning may use of a rig; 0 means all"
    )
    deaf_seconds: float = Field(
        600.0, gt=0, description="how long due work waits unheard before its worker starts again"
    )
    source_share: float = Field(
        SOURCE_SHARE,
        gt=0,
        le=1,
        description="share of a queue's day after which a source lets others go first; 1: never",
    )
    negative_days: float = Field(
        DEFAULT_DAYS,
        ge=LEAST_DAYS,
        le=MOST_DAYS,
        description="days after which what did not work is tried again by itself",
    )
    max_attempts: int = Field(3, ge=1, description="losses after which a job is a dead letter")

    @field_validator("admin_token", mode="after")
    @classmethod
    def _admin_token_is_long(cls, token: SecretStr) -> SecretStr:
        text = token.get_secret_value().strip()
        if text and not (LEAST_TOKEN <= len(text) <= MOST_TOKEN and text.isascii()):
            raise ValueError(f"must have {LEAST_TOKEN} to {MOST_TOKEN} plain signs")
        return SecretStr(text)

    @field_validator("github_token", "hf_token", mode="after")
    @classmethod
    def _token_fits_a_header(cls, token: SecretStr) -> SecretStr:
        text = token.get_secret_value().strip()
        if not fits_a_header(text):
            raise ValueError("must be one line of printable ASCII without blanks; it is not shown")
        return SecretStr(text)

    @field_validator("home", mode="after")
    @classmethod
    def _home_is_text(cls, home: Path) -> Path:
        if not str(home.absolute()).isprintable():
            raise ValueError("must be a path of printable UTF-8 text")
        return home

    @model_validator(mode="after")
    def _a_lease_outlives_its_beats(self) -> Self:
        if self.lease_seconds <= self.heartbeat_seconds:
            raise ValueError(
                f"{ENV_PREFIX}LEASE_SECONDS ({self.lease_seconds:g}) must be longer than "
                f"{ENV_PREFIX}HEARTBEAT_SECONDS ({self.heartbeat_seconds:g}), "
                "or every running job is taken back"
            )
        return self

    @cached_property
    def root(self) -> Path:
        """The home folder as an absolute path."""
        return self.home.absolute()

    @property
    def resolved_database_url(self) -> str:
        """The database's address, the default filled in."""
        return self.database_url or f"sqlite:///{quote(str(self.root / 'forkscout.sqlite'))}"

    @property
    def broker_socket(self) -> Path:
        """Where the embedded broker listens."""
        return self.runtime / "broker.sock"

    @property
    def resolved_broker_url(self) -> str:
        """The broker's address, the default filled in."""
        return self.broker_url or f"redis+socket://{self.broker_socket}"

    @property
    def embedded_broker(self) -> bool:
        """Whether `up` starts the broker itself."""
        return not self.broker_url

    @property
    def runtime(self) -> Path:
        """Folder for sockets; in the temporary folder where the home's path does not suit one.

        A socket's path is short, and stands in addresses where only plain signs mean themselves.
        """
        inside = self.root / "run"
        if len(os.fsencode(inside)) < SOCKET_PATH_LIMIT - 40 and _PLAIN_PATH.fullmatch(str(inside)):
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"forkscout-{os.getuid()}-{digest}"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def weights(self) -> Path:
        return self.root / "weights"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def mirrors(self) -> Path:
        return self.root / "git"

    @property
    def network(self) -> Path:
        """The one bare repository that holds the history of every watched fork."""
        return self.mirrors / "network.git"

    def mirror_of(self, repo: str) -> Path:
        """The bare mirror of `owner/name`."""
        return self.mirrors / f"{repo.replace('/', '--')}.git"

    def attempt_log(self, job_id: int, fence: int) -> Path:
        """The log of one attempt at a job."""
        return self.logs / "jobs" / str(job_id) / f"{fence}.log"

    def job_log(self, job_id: int) -> Path:
        """The log of a job's newest attempt; there may be none yet."""
        attempts = (self.logs / "jobs" / str(job_id)).glob("[0-9]*.log")
        newest = max((int(path.stem) for path in attempts), default=1)
        return self.attempt_log(job_id, newest)

    @property
    def hub_home(self) -> Path:
        """What huggingface_hub may write to."""
        return self.root / "hub"

    @property
    def compiler_cache(self) -> Path:
        return self.root / "compiler-cache"

    @property
    def scratch(self) -> Path:
        return self.root / "tmp"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def resolved_site(self) -> Path:
        """Where the static export is written."""
        return (self.site or self.root / "site").absolute()

    def prepare(self) -> None:
        """Make the folders; the home is private to its owner."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.runtime.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise PermissionError(f"{self.runtime} is not a folder that only we can write to")
        for folder in (
            self.artifacts,
            self.weights,
            self.logs,
            self.mirrors,
            self.hub_home,
            self.compiler_cache,
            self.scratch,
            self.locks,
        ):
            folder.mkdir(mode=0o700, exist_ok=True)


def inherited_environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, for a program whose user sets it up there (pip).

    Our own settings stay here: one of them is a secret.
    """
    others = {key: value for key, value in os.environ.items() if not key.startswith(ENV_PREFIX)}
    return {**others, **changes}


def env_example() -> str:
    """The text of `.env.example`: every setting with its default, commented out."""
    lines = ["# Every setting of forkscout; copy to .env and uncomment what you change."]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else field.default
        lines += ["", f"# {field.description}", f"# {ENV_PREFIX}{name.upper()}={default}"]
    return "\n".join(lines) + "\n"
