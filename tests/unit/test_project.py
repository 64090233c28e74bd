"""The project's own files stay in step: docs, compose, settings, tasks."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
import typer
import yaml

from jobs import compare, stats, up
from jobs.cli.root import build_app
from jobs.config import Settings, env_example
from jobs.scenarios import SCENARIOS
from scout.events_cli import KINDS
from scout.github.visits import SOURCES
from scout.hub.rounds import SOURCES as HUB_SOURCES
from scout.rounds import PARTS
from scout.run_cli import SOURCE_HELP
from web.api import v1

ROOT = Path(__file__).parents[2]
DOCS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
}


def commands(group: click.Group, prefix: str = "") -> list[str]:
    found = []
    for name, command in group.commands.items():
        path = f"{prefix} {name}".strip()
        found += commands(command, path) if hasattr(command, "commands") else [path]
    return found


COMMANDS = commands(typer.main.get_command(build_app()))  # type: ignore[arg-type]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    """A command that no page names might as well not exist."""
    text = "\n".join(DOCS.values())
    assert re.search(rf"(forkscout|`){re.escape(command)}\b|forkscout {re.escape(command)}", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    """The help text shows how to type it."""
    found: click.Command = typer.main.get_command(build_app())
    for word in command.split():
        found = found.commands[word]  # type: ignore[attr-defined]
    assert "xample" in (found.help or ""), command


def test_env_example_lists_every_setting() -> None:
    """`make env` writes it anew."""
    assert (ROOT / ".env.example").read_text() == env_example()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_in_the_deployment_guide(name: str) -> None:
    """With its default."""
    assert f"`FORKSCOUT_{name.upper()}`" in DOCS["docs/deployment.md"]


@pytest.mark.parametrize("path", [route.path for route in v1.router(None, None).routes])
def test_every_route_of_the_api_is_documented(path: str) -> None:
    """With the names its parts have in the code."""
    assert path in DOCS["docs/api.md"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_documented(name: str) -> None:
    """A scenario is a word of the board."""
    assert f"`{name}`" in DOCS["docs/watchlist.md"]


@pytest.mark.parametrize(("page", "least"), [("github-traps", 40), ("models", 30), ("bench", 20)])
def test_tests_that_the_evidence_names_exist(page: str, least: int) -> None:
    """A trap is held by a test only as long as there is one of that name."""
    written = "\n".join(path.read_text() for path in ROOT.glob("tests/**/test_*.py"))
    named = re.findall(r"`(test_\w+)`", DOCS[f"docs/evidence/{page}.md"])
    assert len(named) > least
    assert [name for name in named if f"def {name}(" not in written] == []


@pytest.mark.parametrize("name", [*PARTS, "github", *SOURCES, "hf", *HUB_SOURCES])
def test_every_source_is_documented_and_offered(name: str) -> None:
    """In the guide to scouting, and in the help of the command that takes it."""
    assert f"`{name}`" in DOCS["docs/scouting.md"]
    assert re.search(rf"\b{name}\b", SOURCE_HELP)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_event_is_documented(kind: str) -> None:
    """A word that `events --kind` takes stands in the guide to scouting."""
    assert f"`{kind}`" in DOCS["docs/scouting.md"]


@pytest.mark.parametrize(
    "name",
    re.findall(r"`([A-Z][A-Z_]{6,})`", DOCS["docs/verdicts.md"]),
)
def test_named_constants_of_the_docs_exist(name: str) -> None:
    """Docs quote a threshold's name, not its number, so the name must be right."""
    assert hasattr(compare, name) or hasattr(stats, name)


def test_compose_starts_what_up_starts() -> None:
    """The same processes with the same arguments, beside broker and database."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ours = {
        name: tuple(service["command"])
        for name, service in services.items()
        if service.get("image", "").startswith("${FORKSCOUT_IMAGE")
    }
    assert ours == {program.name: program.argv for program in up.programs(Settings())}
    assert set(services) - set(ours) == {"redis", "postgres"}


def test_links_between_pages_lead_somewhere() -> None:
    """No dead link from one page of the docs to another file."""
    dead = []
    for page, text in DOCS.items():
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            if not ((ROOT / page).parent / target).exists():
                dead.append(f"{page}: {target}")
    assert not dead


def test_every_room_offers_its_commands_and_tasks() -> None:
    """Rooms are found by entry points, which load."""
    for group in ("forkscout.commands", "forkscout.tasks"):
        assert {entry.name for entry in entry_points(group=group)} == {"scout", "web", "workers"}


def test_lock_files_name_no_index() -> None:
    """A mirror must work: the lock holds hashes, never an address."""
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") >= text.count("==")
