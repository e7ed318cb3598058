"""The command ``ovir``: chooses the subcommand, turns every failure into one message and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TextIO

import ovir
from ovir.cli import check, infer, ops, run, show
from ovir.cli.output import complain
from ovir.cli.status import BROKEN_PIPE, INTERRUPTED, UNUSABLE, WRONG, status_of
from ovir.diagnostics.errors import OWN_FAULT, OvirError

_EXAMPLES = """\
examples:
  ovir run model.xml                                  random inputs, indices kept in range
  ovir run model.xml --input photo=photo.npy --output out.npz
  ovir infer model.xml --shape data=1,?,224           every layer's shape, and why it is dynamic
  ovir check model.xml --sarif diagnostics.sarif         all that is wrong with the file
  ovir show model.xml                                 operations, parameters, multiply-accumulates

exit status: 0 nothing wrong, 1 the model or its data is at fault, 2 wrong usage or a file that cannot be read at all
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
    _open_closed_streams()
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has closed it (`ovir infer model.xml | head`). Python flushes once more at its end.
        _silence(sys.stdout)
        _silence(sys.stderr)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except OSError as error:  # of no file with a name: of stdout, or a full disk
        _silence(sys.stdout)
        with contextlib.suppress(OSError):
            complain(f"ovir: error: cannot write the output: {error.strerror or error}")
        return UNUSABLE
    return status


def _open_closed_streams() -> None:
    """Python has None for what the shell has closed (``>&-``), and the next file opened would take its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # stays open to the end


def _silence(stream: TextIO) -> None:
    """Let what is still to be written go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
        return status_of(error.diagnostics)
    except OSError as error:
        if debug:
            traceback.print_exc()
        if error.filename is None:
            raise
        complain(f"{error.filename}: error: {error.strerror or error}")
        return UNUSABLE
    except MemoryError as error:
        if debug:
            traceback.print_exc()
        complain(f"ovir {arguments.command}: error: out of memory{f': {error}' if str(error) else ''}")
        return WRONG
    except Exception as error:
        if debug:
            traceback.print_exc()
        complain(
            f"ovir {arguments.command}: error: {type(error).__name__}: {error}\n"
            f"  hint: {OWN_FAULT}, with what OVIR_DEBUG=1 shows"
        )
        return WRONG
    return status
