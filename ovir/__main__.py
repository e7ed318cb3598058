"""The command ``ovir``, which is also ``python -m ovir``."""

# PYTHON_ARGCOMPLETE_OK: argcomplete looks for this word at the beginning of what a console script imports.

import _signal  # type: ignore[import-not-found]  # `signal` imports it, too, but first enum, which takes time
import atexit
import os
import sys

_status = 0


def command() -> None:
    """Run the command line of this process and exit.

    While modules are imported there is nothing to clean up: Ctrl-C ends the process at once. From then on,
    ``ovir.cli.signals`` handles it.
    """
    global _status
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # not ignored, as under nohup
        _signal.signal(_signal.SIGINT, _interrupt)
    atexit.register(_exit)  # as the first one, which is called last
    if "_ARGCOMPLETE" in os.environ:
        from ovir.cli.completion import complete

        complete()
    from ovir.cli.main import main
    from ovir.cli.signals import requests

    requests.handle_signals()
    _status = main()
    sys.exit(_status)


def _interrupt(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def _exit() -> None:
    """Leave the process, which has printed everything.

    The interpreter would dispose of all objects one by one, without calling handlers of signals any more: Ctrl-C would
    end the process without a word.
    """
    os._exit(_status)


if __name__ == "__main__":
    command()
