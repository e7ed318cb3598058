"""The command ``ovir``, which is also ``python -m ovir``."""

# PYTHON_ARGCOMPLETE_OK: argcomplete looks for this word at the beginning of what a console script imports.

import _signal  # type: ignore[import-not-found]  # importing signal takes time, in which Ctrl-C prints a traceback
import atexit
import gc
import os
import sys

_status = 130


def command() -> None:
    """Run the command line of this process and exit."""
    global _status
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _interrupt)
    gc.disable()  # until the modules of the command are imported: all of them stay, and are many objects
    atexit.register(_leave)  # as the first one, which is called last
    from ovir.cli.terminal.signals import requests

    requests.handle_signals()
    if "_ARGCOMPLETE" in os.environ:
        from ovir.cli.completion import complete

        complete()
    from ovir.cli.main import main

    _status = main()
    if _status > 128:  # a thread may wait for a lock that an interrupted one holds, and sys.exit for the thread
        atexit._run_exitfuncs()
    sys.exit(_status)


def _interrupt(*_: object) -> None:
    """Leave the process at Ctrl-C, until the module that handles signals is imported.

    An exception would be wrapped in another one where Python calls ``__set_name__``.
    """
    os.write(2, b"interrupted\n")
    os._exit(_status)


def _leave() -> None:
    """Leave the process, which has printed everything.

    The interpreter would dispose of all objects one by one, without calling handlers of signals any more: Ctrl-C would
    end the process without a word.
    """
    os._exit(_status)


if __name__ == "__main__":
    command()
