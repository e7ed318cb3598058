"""The command ``ovir``, which is also ``python -m ovir``."""

# PYTHON_ARGCOMPLETE_OK: argcomplete looks for this word at the beginning of what a console script imports.

import atexit
import gc
import os
import sys

_status = 130


def command() -> None:
    """Run the command line of this process and exit."""
    global _status
    gc.disable()  # until the modules of the command are imported: all of them stay, and are many objects
    atexit.register(_leave)  # as the first one, which is called last
    try:
        from ovir.cli.signals import requests

        requests.handle_signals()
        if "_ARGCOMPLETE" in os.environ:
            from ovir.cli.completion import complete

            complete()
        from ovir.cli.main import main

        _status = main()
    except KeyboardInterrupt:  # before the signals are handled
        os.write(2, b"interrupted\n")
    sys.exit(_status)


def _leave() -> None:
    """Leave the process, which has printed everything.

    The interpreter would dispose of all objects one by one, without calling handlers of signals any more: Ctrl-C would
    end the process without a word.
    """
    os._exit(_status)


if __name__ == "__main__":
    command()
