"""Lets `python -m jobs.cli` be the command line."""

from jobs.cli.entry import main

if __name__ == "__main__":
    main()
