"""What one option of a server is, and how two sets of them differ; it reads no text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.model import Flags


@dataclass(frozen=True)
class Option:
    """One option: its spellings, what it takes, what may stand in its place.

    `values` is empty where the text restricts nothing; a `removed` one is only named to say so.
    """

    spellings: tuple[str, ...]
    hint: str = ""
    values: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    section: str = ""
    default: str = ""
    removed: bool = False

    @property
    def name(self) -> str:
        """The longest spelling, by which people know it."""
        return max(self.spellings, key=len, default="")


@dataclass(frozen=True)
class Change:
    """One spelling that two builds both know and of which they say something else."""

    name: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """What the second set has and the first lacks, the other way round, and what changed."""

    added: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[Change, ...]

    @property
    def is_none(self) -> bool:
        """Whether both understand the same."""
        return not (self.added or self.gone or self.changed)


def flags_of(options: Iterable[Option], *, log_levels: Mapping[str, str] | None = None) -> Flags:
    """The options as launching needs them; a spelling that lives on elsewhere is not removed."""
    names: set[str] = set()
    removed: set[str] = set()
    choices: dict[str, tuple[str, ...]] = {}
    for option in options:
        if option.removed:
            removed.update(option.spellings)
            continue
        names.update(option.spellings)
        if option.values:
            choices.update(dict.fromkeys(option.spellings, option.values))
    return Flags(frozenset(names), choices, frozenset(removed - names), dict(log_levels or {}))


def difference(before: Sequence[Option], after: Sequence[Option]) -> Difference:
    """From one set to another, spelling by spelling."""
    old, new = _by_spelling(before), _by_spelling(after)
    changed = [
        change for name in sorted(old.keys() & new.keys()) for change in _changes(name, old, new)
    ]
    return Difference(
        added=tuple(sorted(new.keys() - old.keys())),
        gone=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(changed),
    )


def stored(options: Iterable[Option]) -> list[dict[str, Any]]:
    """As plain JSON."""
    return [asdict(option) for option in options]


def from_stored(rows: Iterable[Mapping[str, Any]]) -> tuple[Option, ...]:
    """What `stored` wrote."""
    lists = ("spellings", "values", "env")
    return tuple(Option(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows)


def _by_spelling(options: Sequence[Option]) -> dict[str, Option]:
    return {name: each for each in options if not each.removed for name in each.spellings}


def _changes(name: str, old: Mapping[str, Option], new: Mapping[str, Option]) -> list[Change]:
    """Defaults are left out: they tell of the machine, such as its number of threads."""
    found = []
    for what in ("values", "env"):
        before, after = (getattr(each[name], what) for each in (old, new))
        # One side may not say it: a source cannot tell what is put together when it runs.
        if before and after and set(before) != set(after):
            found.append(Change(name, what, ", ".join(before), ", ".join(after)))
    return found
