"""The root command; other rooms' commands join by the entry points `forkscout.commands`."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
