"""The command ``ovir``: it selects the subcommand and turns every failure into one message and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from typing import NoReturn

from ovir.cli.options.command import Command, HelpFormatter, Parser, add_command
from ovir.cli.options.values import OutputFile
from ovir.cli.terminal import output
from ovir.cli.terminal.progress import showing_progress
from ovir.cli.terminal.signals import Terminated, requests
from ovir.cli.versions import VersionAction
from ovir.diagnostics.codes import INTERNAL, OUT_OF_MEMORY, UNWRITABLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import OWN_FAULT, InputError, OvirError
from ovir.diagnostics.wording import did_you_mean, reason_of

JOBS = {
    "run a model": ("run", "generate", "eval"),
    "look at a model": ("show", "infer", "view"),
    "check files": ("check", "explain"),
    "find what differs": ("diff", "compare", "bisect", "reduce", "precision", "fuzz"),
    "change a model": ("edit", "extract", "join", "export"),
    "operations and code": ("ops", "python"),
}
"""The commands, grouped by purpose. Each is a module of ``ovir.cli.commands``."""
COMMANDS = tuple(name for names in JOBS.values() for name in names)

_EXAMPLES = """\
examples:
  ovir check model.xml                           what is wrong with a file
  ovir show model.xml                            inputs, outputs, operations
  ovir infer model.xml                           why shapes are dynamic
  ovir run model.xml --input photo=photo.npy     what the model computes
  ovir compare model.xml --against openvino:CPU  where a device differs

`ovir COMMAND --help` or `ovir help COMMAND` lists the options of a command.

exit status: 0 nothing wrong, 1 the model or its data is at fault, 2 wrong usage or a file that cannot be read at all
"""


class _JobsFormatter(HelpFormatter):
    """Help that lists commands by purpose."""

    def _format_action(self, action: argparse.Action) -> str:
        if action.nargs != argparse.PARSER:
            return super()._format_action(action)
        return "".join(map(self._format_action, self._iter_indented_subactions(action)))

    def _iter_indented_subactions(self, action: argparse.Action) -> Generator[argparse.Action, None, None]:
        actions = {item.dest: item for item in super()._iter_indented_subactions(action)}
        for job, names in JOBS.items() if actions else ():
            yield argparse.Action([], dest=job, metavar=f"{job}:", help="")
            self._indent()
            yield from (actions[name] for name in names if name in actions)
            self._dedent()


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser for the given commands; the modules of the others are not imported."""
    result = Parser(
        prog="ovir",
        description="Read, check, understand and run OpenVINO IR (.xml + .bin), without OpenVINO.",
        epilog=_EXAMPLES,
        formatter_class=_JobsFormatter,
        allow_abbrev=False,
    )
    result.add_argument("-V", "--version", action=VersionAction)
    commands = result.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True, prog="ovir")
    for name in names:
        add_command(commands, name, importlib.import_module(f"ovir.cli.commands.{name}"))
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _open_closed_streams()
    try:
        status = _status(argv)
        requests.are_raised = False
    except KeyboardInterrupt as request:
        requests.are_raised = False
        return _ended(request)
    except Exception:
        requests.are_raised = False
        if requests.received is None:
            raise
        return _ended(requests.received)  # the exception follows from it
    return status


def _ended(request: KeyboardInterrupt) -> int:
    """Print a line about the request that ended the command, and return the exit status."""
    try:
        sys.stdout.flush()
    except OSError:  # the reader of the output, or the terminal, has ended before
        output.silence(sys.stdout)
    with contextlib.suppress(OSError):
        output.print_message("terminated" if isinstance(request, Terminated) else "interrupted")
    return request.status if isinstance(request, Terminated) else output.INTERRUPTED


def _status(argv: Sequence[str] | None) -> int:
    try:
        status = _run(argv)
        with output.pipe.may_close(sys.stdout):
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the output (`ovir infer model.xml | head`). Python flushes once more on exit.
        output.silence(sys.stdout)
        output.silence(sys.stderr)
        return output.BROKEN_PIPE
    except OSError as error:  # an error of stdout, or of a full disk
        output.silence(sys.stdout)
        with contextlib.suppress(OSError):
            output.print_message(str(diagnose(UNWRITABLE, f"cannot write the output: {reason_of(error)}")))
        return output.UNUSABLE
    return output.BROKEN_PIPE if output.pipe.is_closed else status


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. Only help and errors about the command itself need all commands."""
    if sys.flags.optimize > 1 and {"explain", "help", "-h", "--help"} & {*argv[:1], *argv[-1:]}:
        output.print_message("note: this Python runs with -OO, which removes the texts of commands and rules")
    if argv[:1] == ["version"]:
        argv = ["--version", *argv[1:]]
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    command = argv[0] if argv else ""
    if not argv:
        parser(COMMANDS).print_help(sys.stderr)
        raise SystemExit(output.UNUSABLE)
    if not command.startswith("-") and command not in COMMANDS:
        _refuse_command(command)
    arguments, unknown = parser([command] if command in COMMANDS else COMMANDS).parse_known_args(argv)
    if unknown:  # argparse would name ovir, which has none of the command's options
        _refuse(arguments.declared.parser, unknown)
    return arguments


def _refuse_command(name: str) -> NoReturn:
    """Raise InputError for a command that does not exist; the message names the one that may be meant."""
    hint = _ELSEWHERE.get(("ovir", name)) or did_you_mean(name, COMMANDS, "`ovir {}`")
    hint = hint or f"`ovir --help` lists the commands: {', '.join(COMMANDS)}"
    raise InputError.usage(f"there is no command '{name}'", hint=hint)


def _refuse(command: argparse.ArgumentParser, unknown: Sequence[str]) -> NoReturn:
    """Raise InputError for options that a command does not have; the message names those that may be meant."""
    options = [text for text in command._option_string_actions if text.startswith("--")]
    given = [text.split("=")[0] for text in unknown if text.startswith("--")]
    meant = [text for text in map(_SYNONYMS.get, given) if text in options]
    hints = [_ELSEWHERE.get((command.prog, text)) for text in given] + [f"did you mean {text}?" for text in meant]
    hints += [did_you_mean(text[2:], [option[2:] for option in options], "--{}", 0.7) for text in given]
    if not given:
        files = command._get_positional_actions()
        names = " and ".join(str(file.metavar) for file in files)
        only = f"`{command.prog}` takes {names} only; quote a pattern of files"
        together = "files stand together: give options before the first or behind the last"
        hints.append(only if all(file.nargs is None for file in files) else together)
    message = f"unrecognized arguments: {' '.join(unknown)}"
    if hint := next(filter(None, hints), None):
        raise InputError.usage(message, hint=hint)
    command.error(message)


_ELSEWHERE = {
    ("ovir run", "--device"): "`ovir compare MODEL.xml --against openvino:CPU` runs the model on a device",
    ("ovir", "trace"): "`ovir run` shows tensors of layers with --tap, --record and --watch, and times with --profile",
    ("ovir", "map"): "`ovir run MODEL.xml --inputs FOLDER` runs many inputs",
    ("ovir", "convert"): "`ovir export` writes ONNX; `ovc`, which openvino has, converts models of other frameworks",
    ("ovir", "benchmark"): "`ovir run --repeat N` shows how long runs take",
    ("ovir", "simplify"): "`ovir edit --simplify -o OUT.xml`",
    ("ovir", "reshape"): "`ovir edit --shape NAME=1,3,?,? -o OUT.xml`",
}
"""Replacements of options and commands that are often looked for, by command and option."""
_SYNONYMS = {
    **dict.fromkeys(("--minutes", "--seconds", "--duration"), "--time"),
    **dict.fromkeys(("--iterations", "--runs", "--count"), "--repeat"),
    "--device": "--against",
    "--tolerance": "--rtol",
    "--out": "--output",
    "--threads": "--workers",
}
"""The options of ovir for what other tools call so; a command may have them or not."""


def _open_closed_streams() -> None:
    """Open a null device for each standard stream that the shell has closed (``>&-``).

    Python sets such streams to None, and the next opened file would take their place.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # stays open to the end


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parse(sys.argv[1:] if argv is None else argv)
    except SystemExit as stop:  # argparse has printed its help
        return stop.code if isinstance(stop.code, int) else output.UNUSABLE
    except InputError as error:
        return _failed(error)
    if arguments.command not in _WITHOUT_MODEL:
        import ovir.model  # noqa: F401  # an exception while NumPy is imported would print a traceback
    requests.are_raised = True
    if not gc.isenabled():  # as ovir.__main__ leaves it
        gc.freeze()
        gc.enable()
    command: Command = arguments.declared
    output.pipe.is_needed = not any(isinstance(value, OutputFile) for value in vars(arguments).values())
    output.pipe.is_closed = False
    try:
        options = command.options(arguments, ["ovir", *(sys.argv[1:] if argv is None else map(str, argv))])
        options.refuse_overwriting()
        if getattr(arguments, "html", None) is not None:
            from ovir.reports.writing import require_report  # most calls write no report

            require_report(arguments.html)
        with showing_progress():
            if getattr(arguments, "extension", None):
                from ovir.cli.options.opening import load_extensions  # most calls need none

                load_extensions(arguments.extension)
            status: int = arguments.run(options)
    except BrokenPipeError:
        raise
    except Exception as error:
        if requests.received is not None:
            raise requests.received from None  # the exception follows from it
        return _failed(error, command)
    return status


_WITHOUT_MODEL = ("explain",)
"""Commands that need no module of models."""


def _failed(error: Exception, command: Command | None = None) -> int:
    """Print the error, and return the exit status."""
    if os.environ.get("OVIR_DEBUG") == "1":
        import traceback  # only needed here

        traceback.print_exception(error)
    status = None if command is None else command.error_status
    if isinstance(error, OvirError):
        if command is not None and isinstance(error, InputError) and error.option is not None:
            error = error.spelled(command.spelled(error.option))
        output.print_message("\n".join([str(error), *getattr(error, "__notes__", ())]))
        return status or output.status_of(error.diagnostics)
    if isinstance(error, OSError):
        if error.filename is None:
            raise error
        place = Place(os.fsdecode(error.filename))
        output.print_message(str(diagnose(UNWRITABLE, f"cannot write or read the file: {reason_of(error)}", place)))
        return output.UNUSABLE
    if isinstance(error, MemoryError):
        reason = f": {error}" if str(error) else ""
        output.print_message(str(diagnose(OUT_OF_MEMORY, f"there is not enough memory{reason}", hint=_MEMORY_HINT)))
        return status or output.WRONG
    hint = f"{OWN_FAULT}, with what OVIR_DEBUG=1 shows"
    output.print_message(str(diagnose(INTERNAL, f"{type(error).__name__}: {error}", hint=hint)))
    return status or output.WRONG


_MEMORY_HINT = "`ovir show --memory` shows what a run takes; smaller inputs (--shape) or --keep-compressed take less"
