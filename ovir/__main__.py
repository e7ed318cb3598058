"""The command ``ovir``, which is also ``python -m ovir``."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130


def command() -> None:
    """Run the command line of this process and exit.

    While modules are imported, and after the command has ended, there is nothing to clean up: Ctrl-C ends the process
    at once. Between the two ``main`` handles it, and SIGTERM and SIGHUP, too.
    """
    if has_default := signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as under nohup
        signal.signal(signal.SIGINT, _end)
    import gc

    from ovir.cli.main import main
    from ovir.cli.signals import raising_terminated

    if has_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with raising_terminated():
            status = main()
    finally:
        if has_default:
            signal.signal(signal.SIGINT, _end)
    gc.freeze()  # the interpreter's last collections need not walk objects that end with the process
    sys.exit(status)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    command()
