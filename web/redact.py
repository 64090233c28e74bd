"""Takes machine paths, names and secrets out of text that goes public; pure, one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

# Names that say nothing about a person and are ordinary words in logs.
ORDINARY_NAMES = frozenset(
    {"admin", "build", "builder", "debian", "host", "localhost", "nobody", "root", "runner"}
    | {"server", "ubuntu", "user", "vagrant"}
)
SHORTEST_NAME = 3
WEIGHT_FILES = (".gguf", ".safetensors")
"""A name that ends so is a file of a model hub, whatever it looks like: nobody's mail ends so."""

_IN_PATH = r"[^\s'\"`<>|:;,()\[\]{}=*?]"
_PATTERN = re.compile(
    rf"""
    (?P<kept><[a-z]+>(?:/{_IN_PATH}*)?)
  | (?P<private>-----BEGIN\ [A-Z ]{{0,30}}PRIVATE\ KEY-----[\s\S]{{0,8000}}?(?:-----END[^\n]*|\Z))
  | (?P<secret>
        \b(?:gh[pousr]_|github_pat_|hf_|glpat-|xox[abprs]-|sk-|npm_|pypi-)[A-Za-z0-9_-]{{16,}}
      | \bAKIA[0-9A-Z]{{16}}\b
      | \beyJ[\w-]{{10,}}\.[\w-]{{10,}}\.[\w-]*
    )
  | (?P<bearer>(?i:\b(?:bearer|basic)\s+))[A-Za-z0-9._~+/=-]{{8,}}
  | (?P<named>(?i:\b[\w-]{{0,40}}(?:password|passwd|secret|api[_-]?key|token)
        ["']?\s{{0,8}}[=:]\s{{0,8}}["']?))
    (?=[A-Za-z0-9._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{{12,}}
  | (?P<scheme>(?i:(?<![a-z0-9])[a-z][a-z0-9+.-]{{1,20}}://))(?P<rest>[^\s'"<>`]+)
  | (?P<mail>(?<![\w.+-])[\w.+-]{{1,64}}@[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+)
  | (?P<home>/(?:home|Users)/{_IN_PATH}+)
  | (?P<windows>(?<![A-Za-z])[A-Za-z]:\\[^\s'"<>|:;,()]+)
  | (?P<path>(?:(?<![\w.~/])|(?<=-[ILBF]))/[\w.@+-]{_IN_PATH}*)
  | (?P<tilde>(?<![\w/])~\w*/{_IN_PATH}+)
    """,
    re.VERBOSE,
)
# The system's own folders, and the addresses of llama-server's HTTP.
_PUBLIC = re.compile(r"/(?:usr|lib|lib32|lib64|bin|sbin|dev|proc|sys|etc|v1|api)(?:/|$)")
_WEB = frozenset({"http", "https", "git", "ssh"})
_INVISIBLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """The text without colour codes, control characters and marks that reorder what is read."""
    return _INVISIBLE.sub("", text)


def redact(text: str, *, roots: Mapping[str, str] | None = None, names: Iterable[str] = ()) -> str:
    """The text as anybody may read it.

    Paths below one of `roots` begin with its placeholder and keep their tail; any other absolute
    path keeps only its last part, as `<build>/x.cu`. `names` (users, hosts) become `<name>`.
    """
    text = visible(text)
    for folder in sorted(roots or {}, key=len, reverse=True):
        if len(folder) > 1 and folder in text:
            text = _root(folder).sub((roots or {})[folder], text)
    text = _PATTERN.sub(_replace, text)
    known = _names(frozenset(names))
    return known.sub("<name>", text) if known else text


@lru_cache(maxsize=64)
def _root(folder: str) -> re.Pattern[str]:
    return re.compile(re.escape(folder) + r"(?=$|[/\s'\"`:;,)\]}>])")


@lru_cache(maxsize=8)
def _names(names: frozenset[str]) -> re.Pattern[str] | None:
    telling = sorted(
        name for name in names if len(name) >= SHORTEST_NAME and name not in ORDINARY_NAMES
    )
    if not telling:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, telling))})(?!\w)")


def _replace(found: re.Match[str]) -> str:
    kind = found.lastgroup
    whole = found.group()
    if kind == "kept":
        return whole
    if kind in ("private", "secret"):
        return "<secret>"
    if kind in ("bearer", "named"):
        return f"{found.group(kind)}<secret>"
    if kind == "rest":
        return _address(found["scheme"], found["rest"])
    if kind == "mail":
        return whole if whole.endswith(WEIGHT_FILES) else "<address>"
    if kind == "windows":
        return _last(whole.replace("\\", "/"))
    if kind == "path" and (whole.rstrip("/").count("/") < 2 or _PUBLIC.match(whole)):
        return whole
    return _last(whole)


def _last(path: str) -> str:
    return f"<build>/{path.rstrip('/').rpartition('/')[2]}"


def _address(scheme: str, rest: str) -> str:
    if scheme.lower().removesuffix("://") not in _WEB:
        return f"{scheme}{_last(rest)}"
    host, slash, path = rest.partition("/")
    path, asks, _ = path.partition("?")
    return f"{scheme}{host.rpartition('@')[2]}{slash}{path}{'?<query>' if asks else ''}"
