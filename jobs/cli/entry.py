"""Where the command begins: it loads everything else, and leaves quietly when told to stop."""

import os
import signal

STOPPED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it without a word.

    Who started it may have had it ignore Ctrl-C: that stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))
    from jobs.cli import root

    signal.signal(signal.SIGINT, before)
    root.main()
