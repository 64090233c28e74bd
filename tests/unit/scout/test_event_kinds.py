"""The kinds of event that a person may ask for are those that the code can tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import scout
from scout.events_cli import KINDS
from scout.news import PACKAGE_CHANGED, RELEASE

SOURCES = sorted(Path(scout.__path__[0]).rglob("*.py"))
MAKERS = ("RefNews", "Happening")


def test_every_kind_that_is_told_may_be_asked_for() -> None:
    """A kind that has not happened yet is known, and none is known that nobody tells."""
    told = {kind for path in SOURCES for kind in kinds_in(ast.parse(path.read_text()))}
    assert told | {RELEASE, PACKAGE_CHANGED} == KINDS


def kinds_in(tree: ast.Module) -> Iterator[str]:
    """What the first argument of each call that makes an event can be."""
    for maker in MAKERS:
        for node, scope in given(maker, 0, tree):
            yield from texts(node, scope, tree)


def given(function: str, at: int, tree: ast.Module) -> Iterator[tuple[ast.expr, ast.FunctionDef]]:
    """One argument of every call of a function, and the function the call stands in."""
    for scope in ast.walk(tree):
        for node in ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function:
                yield node.args[at], scope


def texts(node: ast.expr, scope: ast.FunctionDef, tree: ast.Module) -> list[str]:
    """The texts an expression can be, as far as the module's own words say."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=one, orelse=other):
            return texts(one, scope, tree) + texts(other, scope, tree)
        case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), ast.FormattedValue(value=end)]):
            return [prefix + text for text in texts(end, scope, tree)]
        case ast.Name(id=name):
            names = [parameter.arg for parameter in scope.args.args]
            if name in names:
                values = list(given(scope.name, names.index(name), tree))
            else:
                values = [(value, scope) for value in assigned(name, scope)]
            assert values, f"nothing says what {name} can be"
            return [text for value, where in values for text in texts(value, where, tree)]
    raise AssertionError(f"a kind of event is made in a way this test does not read: {node}")


def assigned(name: str, scope: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                for at, target in enumerate(targets):
                    if isinstance(target, ast.Name) and target.id == name:
                        yield from parts(value, at)


def parts(value: ast.expr, at: int) -> Iterator[ast.expr]:
    match value:
        case ast.Tuple(elts=found):
            yield found[at]
        case ast.IfExp(body=one, orelse=other):
            yield from parts(one, at)
            yield from parts(other, at)
