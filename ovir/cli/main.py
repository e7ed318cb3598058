"""The command ``ovir``: chooses the subcommand, turns every failure into one message and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import ovir
from ovir.cli import check, infer, ops, run, show
from ovir.cli.output import complain
from ovir.diagnostics import USAGE, InputError, OvirError, ReadError

DONE, WRONG, UNUSABLE = 0, 1, 2
"""Exit statuses: nothing wrong; the model or data is at fault; wrong usage or an unreadable file."""
INTERRUPTED, BROKEN_PIPE = 130, 141

_EXAMPLES = """\
examples:
  ovir run model.xml                                  random inputs, indices kept in range
  ovir run model.xml --input photo=photo.npy --output out.npz
  ovir infer model.xml --shape data=1,?,224           every layer's shape, and why it is dynamic
  ovir check model.xml --sarif findings.sarif         all that is wrong with the file
  ovir show model.xml                                 operations, parameters, multiply-accumulates

exit status: 0 nothing wrong, 1 the model or data is at fault, 2 wrong usage or an unreadable file
"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="ovir",
        description="Read, check, understand and run OpenVINO IR (.xml + .bin), with nothing but NumPy.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    result.add_argument("--version", action="version", version=f"ovir {ovir.__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (run, infer, show, check, ops):
        command.add_to(commands)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has closed it (`ovir infer model.xml | head`). Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    return status


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said what it had to say
        return stop.code if isinstance(stop.code, int) else UNUSABLE
    debug = os.environ.get("OVIR_DEBUG") == "1"
    try:
        status: int = arguments.run(arguments)
    except BrokenPipeError:
        raise
    except OvirError as error:
        if debug:
            traceback.print_exc()
        complain("\n".join([str(error), *getattr(error, "__notes__", ())]))
        return _status_of(error)
    except OSError as error:
        if debug:
            traceback.print_exc()
        place = f"{error.filename}: " if error.filename else ""
        complain(f"{place}error: {error.strerror or error}")
        return UNUSABLE
    except MemoryError as error:
        if debug:
            traceback.print_exc()
        complain(f"{arguments.command}: error: out of memory{f': {error}' if str(error) else ''}")
        return WRONG
    except Exception as error:
        if debug:
            traceback.print_exc()
        complain(
            f"ovir {arguments.command}: error: {type(error).__name__}: {error}\n"
            "  hint: this is a fault of ovir; please report it, with what OVIR_DEBUG=1 shows"
        )
        return WRONG
    return status


def _status_of(error: OvirError) -> int:
    misused = isinstance(error, InputError) and error.diagnostic.code == USAGE.id
    return UNUSABLE if misused or isinstance(error, ReadError) else WRONG
