"""Arguments that several commands share, and their meaning."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Self

import ovir
from ovir.cli.terminal.display import terminal_width
from ovir.cli.terminal.output import print_diagnostics, print_message
from ovir.diagnostics.errors import InputError, ModelError
from ovir.diagnostics.wording import escaped, readable
from ovir.system.files import is_special, unwritable
from ovir.system.progress import stage

if TYPE_CHECKING:  # not every command has a model, and importing what models need takes longer than the rest
    from ovir.core.shapes import PartialShape
    from ovir.core.tensor_types import TensorType
    from ovir.graph.layers import Port
    from ovir.model import Model
    from ovir.reports.page import Page

Commands = Any  # argparse has no public name for the type that add_subparsers returns


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse creates a formatter for each argument and would import shutil for it.

    Examples that are too long continue in a second line, as a shell takes it.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(line for part in _blocks(text) for line in _fitting(part, width)).rstrip()


def _blocks(text: str) -> Iterator[str]:
    """Yield each example, which begins with spaces, and each paragraph as one line."""
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if any(line.startswith(" ") for line in lines):
            yield from lines
        else:
            yield " ".join(lines)
        yield ""


def _fitting(text: str, width: int) -> list[str]:
    """Return an example or a paragraph in lines of a width; the comment of a long example stands before it."""
    if len(text) <= width:
        return [text]
    from textwrap import wrap  # only help needs it

    if not text.startswith(" "):
        return wrap(text, width, break_on_hyphens=False, break_long_words=False)
    example, _, comment = text.strip().partition("  ")
    words = re.split(r" (?=-)", example)  # an option keeps its value
    lines = [f"  {words[0]}"]
    for word in words[1:]:
        if len(f"{lines[-1]} {word} \\") <= width:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {word}")
    return [*([f"  # {comment.strip()}"] if comment else []), *lines]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one message with a code, as all other errors are."""

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` lists what it takes"
        given = message.removeprefix("argument ").partition(": expected ")[0].split("/")[0]
        action = self._option_string_actions.get(given)
        if action is not None and isinstance(action.metavar, str) and action.help:
            hint = f"{given} {action.metavar}: {action.help}"
        raise InputError.usage(message, hint=hint)


def add_command(commands: Commands, name: str, module: ModuleType) -> None:
    """Add a subcommand with its options; the docstring of its module is its help: what it does, and then examples."""
    summary, _, examples = (module.__doc__ or "").partition("\n\n")
    summary = " ".join(summary.split()).removeprefix(f"``ovir {name}``: ").removesuffix(".")
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog=examples.replace("Examples:", "examples:", 1),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=module.run, parser=parser)
    for title in GROUPS:
        parser.add_argument_group(title)  # help shows those that get arguments
    module.add_to(parser)


GROUPS = ("model", "inputs", "many inputs", "comparison", "engine", "checks", "outputs")
"""The titles under which help lists the options that many commands have, in this order."""


def options_of(parser: argparse.ArgumentParser, title: str | None = None, *, exclusive: bool = False) -> AddOption:
    """Return the function that adds options to a command, or to its group with one of the titles of ``GROUPS``;
    ``exclusive`` options exclude each other."""
    group: Any = parser if title is None else next(item for item in parser._action_groups if item.title == title)
    return partial(add_option, group.add_mutually_exclusive_group() if exclusive else group)


AddOption = Callable[..., None]
"""``add_option`` without its first argument."""


def add_option(
    group: Any, option: str, help: str, type: Callable[[str], Any] | None = None, *, repeated: bool = False, **more: Any
) -> None:
    """Add an option as its user writes it, such as ``-o, --output FILE``; without a value, or choices, it is a switch.

    ``type`` converts its text, and with ``repeated`` its value is a list. The other arguments are those of argparse.
    """
    spelled = re.fullmatch(r"(-[^ ,]+(?:, -[^ ,]+)*)(?: (.+))?", option)
    assert spelled is not None, option
    if repeated:
        more |= {"action": "append", "default": []}
    if spelled[2] is not None:
        more["metavar"] = spelled[2]
    elif "choices" not in more:
        more.setdefault("action", "store_true")
    if type is not None:
        more["type"] = type
    group.add_argument(*spelled[1].split(", "), help=help, **more)


class Shared(NamedTuple):
    """An option that many commands have, in one group and with one meaning; see ``add_option``."""

    group: str
    option: str
    help: str
    type: Callable[[str], Any] | None = None
    repeated: bool = False


def add_model(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the model of a command, with its weights and extensions, and other options of ``SHARED``."""
    text = "the .xml of the model; its weights are read from the .bin next to it"
    parser.add_argument("model", type=FileName, metavar="MODEL.xml", help=text)
    add_shared(parser, "weights", "extension", *names)


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options of ``SHARED``, in the order that they have there."""
    for name in sorted(names, key=list(SHARED).index):
        group, *option, repeated = SHARED[name]
        options_of(parser, group)(*option, repeated=repeated)


def open_model(arguments: argparse.Namespace) -> Model:
    """Return the model that the arguments name, in the shapes that they give; print the sizes that constants pin."""
    from ovir.inference.pinned_sizes import pinned_sizes
    from ovir.model import read_model

    if not arguments.shape:
        return read_model(arguments.model, arguments.weights, legacy_io=arguments.legacy_io)
    hints: list[str] = []

    def shapes(model: Model) -> dict[int, PartialShape]:
        found = parse_shapes(model, arguments.shape)
        hints.extend(shape_hints(model, found))
        return found

    try:
        model = read_model(arguments.model, arguments.weights, shapes=shapes, legacy_io=arguments.legacy_io)
    except ModelError as error:
        for hint in hints:
            error.add_note(hint)
        if len(error.diagnostics) > 1:
            error.add_note("  hint: `ovir check` with the same --shape lists all errors")
        raise
    print_diagnostics(pinned_sizes(model))
    return model


def shape_hints(model: Model, shapes: Mapping[int, PartialShape]) -> list[str]:
    """Return hints for a model that fails in the shapes of ``--shape``: the types that its inputs have without it."""
    ports = {model.inputs[index]: str(shape)[1:-1] for index, shape in shapes.items()}
    return [
        readable(f"  hint: without --shape {port.any_name}={text} this input is {type_in_file(port)}")
        for port, text in ports.items()
    ]


def type_in_file(port: Port) -> TensorType:
    """Return the type of an input as its Parameter has it, which need not be inferred yet."""
    from ovir.core.tensor_types import TensorType
    from ovir.ops.infrastructure import Parameter

    op = port.layer.operator
    return TensorType(op.element_type, op.shape) if isinstance(op, Parameter) else port.type


class FileName(str):
    """The path of a file to read on the command line, or a device."""

    def __new__(cls, text: str) -> Self:
        if not text:
            raise argparse.ArgumentTypeError("the name of the file is empty")
        return super().__new__(cls, text)


class OutputFile(FileName):
    """The path of a file that a command writes."""

    ending: ClassVar[str | None] = None
    """The ending that its name must have; None if only the writer of the file knows it."""


def output_with(ending: str = "") -> type[OutputFile]:
    """Return the class of files other than models, whose names have such an ending, or none."""
    return type("OutputFile", (OutputFile,), {"ending": ending})


def _integer(least: int) -> Callable[[str], int]:
    """Return the function that converts the text of an argument that is an integer of at least ``least``."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(readable(f"'{text}' is not an integer")) from None
        if value < least:
            raise argparse.ArgumentTypeError(readable(f"must be at least {least}, got {value}"))
        if value > sys.maxsize:
            raise argparse.ArgumentTypeError(readable(f"must be at most {sys.maxsize}, got {value}"))
        return value

    return convert


def _number(what: str, is_valid: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the function that converts the text of an argument that is such a number."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not is_valid(value):
            raise argparse.ArgumentTypeError(readable(f"'{text}' is not {what}"))
        return value

    return convert


natural, positive = _integer(0), _integer(1)
amount = _number("a number of 0 or more", lambda value: 0 <= value < math.inf)
share = _number("a number above 0 and at most 1", lambda value: 0 < value <= 1)
seconds = _number("a number of seconds above 0", lambda value: 0 < value < math.inf)


def pattern(text: str) -> str:
    """Convert the text of an argument that is a regular expression."""
    import warnings

    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about syntax that a later Python may change
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a regular expression: {error}")) from None
    return text


def check_target(option: str, text: str, ending: str = "") -> None:
    """Raise an error for an output file that cannot be written, before the work that produces it.

    If its name has an ending, it must be the given one, which tells what the file holds.
    """
    from pathlib import Path

    path = Path(text)
    if path.suffix.lower() in (".xml", ".bin"):
        raise_usage_error(
            f"{option} {path}: a model would be overwritten; give a name that ends in neither .xml nor .bin"
        )
    if path.is_dir():
        raise_usage_error(f"{option} {path}: this is a directory; give the name of a file in it")
    if ending and path.suffix.lower() not in ("", ending):
        what = "arrays are" if ending == ".npz" else "file is"
        raise_usage_error(f"{option} {path}: the {what} written as {ending}; give a name that ends in {ending}")
    if not path.parent.is_dir():
        raise_usage_error(f"{option} {path}: there is no directory {path.parent}")
    if (reason := unwritable(path)) is not None:
        raise_usage_error(f"{option} {path}: {reason} is not writable")


def parse_shapes(model: Model, texts: Sequence[str]) -> dict[int, PartialShape]:
    """Return the shape of each input that ``--shape`` texts give, by position."""
    shapes: dict[int, PartialShape] = {}
    for text in texts:
        index, shape = split_input(model, "--shape", text)
        port = model.inputs[index]
        if index in shapes:
            raise_usage_error(f"--shape {text}: input '{port.any_name}' has two shapes")
        shapes[index] = parse_shape(text, shape, f"input '{port.any_name}' is {type_in_file(port)} in the file")
    return shapes


def parse_shape(option: str, text: str, hint: str | None = None) -> PartialShape:
    """Return the shape in the text of an option ``--shape``."""
    from ovir.core.shapes import PartialShape

    if not text.strip():
        raise_usage_error(f"--shape {option}: there is no shape; that of a scalar is []", hint)
    try:
        return PartialShape.parse(text)
    except ValueError as error:
        raise_usage_error(f"--shape {option}: {error}", hint)


def split_known(
    option: str, text: str, is_known: Callable[[str], bool], sides: str = "the name and what it gets"
) -> tuple[str, str]:
    """Split ``NAME=rest``; names may contain ``=``, so the first split that gives a known name counts."""
    splits = [(text[:i], text[i + 1 :]) for i, character in enumerate(text) if character == "="]
    if not splits:
        raise_usage_error(f"{option} {text}: there is no '=' between {sides}")
    return next((split for split in splits if is_known(split[0])), splits[0])


def split_name(model: Model, text: str) -> tuple[str | None, str]:
    """Split ``NAME=rest`` at the name of an input; a text without a name, or that is a file, is the rest."""
    known = {name for port in model.inputs for name in (*port.names, port.layer.name)}
    if "=" not in text:
        return None, text
    name, rest = split_known("--input", text, known.__contains__)
    return (None, text) if name not in known and os.path.isfile(text) else (name, rest)


def split_input(model: Model, option: str, text: str) -> tuple[int, str]:
    """Split ``NAME=rest`` into the position of an input and the rest; the only input needs no name."""
    from ovir.graph.names import input_named

    name, rest = split_name(model, text)
    if name is None and len(model.inputs) != 1:
        names = ", ".join(f"'{port.any_name}'" for port in model.inputs) or "none"
        raise_usage_error(f"{option} {text}: say for which input, as NAME={text}; the model's inputs are {names}")
    return 0 if name is None else input_named(model, name), rest


def raise_usage_error(message: str, hint: str | None = None) -> NoReturn:
    """Raise InputError for a command line that makes no sense."""
    raise InputError.usage(message, hint=hint)


def add_workers(parser: argparse.ArgumentParser, default: str = "one for each core") -> None:
    option = options_of(parser, "many inputs")
    option("--workers N", f"use N processes of this machine (default: {default})", positive)
    option(
        "--dask ADDRESS", "use the workers of a dask cluster, as in tcp://host:8786; local starts one on this machine"
    )


@contextmanager
def opened_workers(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments ``executor`` and ``workers`` for ``ovir.map`` and ``Tasks``."""
    from ovir.workers.executors import open_executor  # importing it takes longer than most commands run

    if arguments.dask is None:
        yield {"executor": None, "workers": arguments.workers}
        return
    if arguments.dask != "local" and arguments.workers is not None:
        raise_usage_error("--workers is for processes of this machine: give either it or the address of a cluster")
    with open_executor(dask=arguments.dask, workers=arguments.workers) as executor:
        yield {"executor": executor, "workers": None}


def check_html(arguments: argparse.Namespace) -> None:
    """Raise an error if reports cannot be written, before the work that produces one."""
    if getattr(arguments, "html", None) is not None:
        from ovir.reports.writing import require_report

        require_report(arguments.html)


def write_html(arguments: argparse.Namespace, make: Callable[[], Page]) -> None:
    """Write the report that ``make`` returns to the file of the option."""
    from ovir.reports.writing import write_report

    with stage("writing the report"):
        page = make()
        page.origin = _origin(arguments)
        write_report(page, arguments.html, ovir.__version__)
    print_message(f"{escaped(arguments.html)}: report written")


def _origin(arguments: argparse.Namespace) -> str:
    """Return the time, versions and command line of a report, which suffice to make it again."""
    import platform
    import shlex
    from datetime import UTC, datetime

    import numpy as np

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = f"with Python {platform.python_version()} and NumPy {np.__version__}"
    draws = {"seed", "input"} <= vars(arguments).keys()
    has_seed = draws and not (arguments.input or getattr(arguments, "inputs", None))
    seed = f"; the seed of random inputs is {arguments.seed or 0}" if has_seed else ""
    return f"{versions} on {now} by: {shlex.join(arguments.command_line)}{seed}"


# --------------------------------------------------------------------------- files that commands write


def refuse_overwriting(arguments: argparse.Namespace, *others: str) -> None:
    """Raise a usage error if an output of a command cannot be written, is one of its inputs or of the other files that
    it reads, or if two outputs are the same file.

    Links to a file are the file. The parser of a command sets ``may_replace_model`` if it can write its model in place
    of the older one, and ``saved_beside`` to the endings of what it writes beside the .xml of a model.
    """
    values = vars(arguments)
    inputs = [*others, *(file for name, value in values.items() for file in _inputs(name, value))]
    written: dict[object, str] = {}
    for name, target in values.items():
        if not isinstance(target, OutputFile) or target == "-" or is_special(target):
            continue
        option = f"--{name.replace('_', '-')}"
        files = files_of(target)
        if target.lower().endswith(".xml"):
            files += [os.path.splitext(target)[0] + ending for ending in getattr(arguments, "saved_beside", ())]
        if getattr(arguments, "may_replace_model", False) and _identity(target) == _identity(arguments.model):
            own = set(map(_identity, files_of(arguments.model)))
            _refuse(option, files, [file for file in inputs if _identity(file) not in own])
        else:
            _refuse(option, files, inputs)
        for file in files:
            other = written.setdefault(_identity(file), option)
            if other != option:
                raise_usage_error(f"{option} {target}: {other} writes the same file")
        if target.ending is not None:
            check_target(option, target, target.ending)


def _refuse(option: str, outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Raise a usage error if a file that an option writes is one of the inputs."""
    known = {_identity(file): file for file in inputs}
    for output in outputs:
        if os.path.exists(output) and (file := known.get(_identity(output))) is not None:
            what = "a model" if file.lower().endswith((".xml", ".bin")) else f"the input {file}"
            raise_usage_error(f"{option} {output}: {what} would be overwritten; give another name")


def files_of(path: str) -> list[str]:
    """Return a path with the file of data that belongs to it."""
    stem, ending = os.path.splitext(path)
    data = {".xml": f"{stem}.bin", ".py": f"{stem}.npz", ".onnx": f"{path}.data"}.get(ending.lower())
    return [path] if data is None else [path, data]


def _inputs(name: str, value: object) -> Iterator[str]:
    """Yield the files that an argument may name, with the weights of models."""
    if isinstance(value, list):
        for item in value:
            yield from _inputs(name, item)
    elif isinstance(value, str) and name == "input":
        for start in (0, *(i + 1 for i, character in enumerate(value) if character == "=")):  # names may contain "="
            head, key, _ = value[start:].partition(".npz:")
            yield f"{head}.npz" if key else head
    elif isinstance(value, FileName) and not isinstance(value, OutputFile):
        path = value.removeprefix("onnx:")
        yield from files_of(path) if path.lower().endswith(".xml") else [path]


def _identity(path: str) -> object:
    """Return the same object for all links to a file."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # there is no such file
        return os.path.realpath(path) if "\0" not in path else path
    return state.st_dev, state.st_ino


# --------------------------------------------------------------------------- shared options

_SHARED = (
    Shared("model", "--weights FILE", "the weights, if they are not the .bin next to the model", FileName),
    Shared("model", "--no-weights", "read only the topology; no .bin is needed"),
    Shared(
        "model",
        "--extension MODULE.py",
        "run this Python file first: it registers operations with `ovir.register`; may be repeated",
        FileName,
        repeated=True,
    ),
    Shared(
        "model",
        "--shape NAME=1,3,?,2..5",
        "give an input another shape (NAME= may be omitted if the model has one input), or in infer and show a "
        "state; may be repeated",
        repeated=True,
    ),
    Shared("model", "--legacy-io", "read an IR of version 10 as OpenVINO does: inputs and outputs become f32 or i32"),
    Shared(
        "many inputs",
        "--inputs FOLDER",
        "many inputs: a folder of .npz, .npy or image files, a pattern in quotes ('data/**/*.jpg'), or a list.txt "
        "with a file in each line, or with a text if the model takes strings",
        FileName,
    ),
    Shared("comparison", "--config KEY=VALUE", "a property of the device; may be repeated", repeated=True),
    Shared("comparison", "--timeout S", "the most seconds that a run of the device takes", seconds),
    Shared("comparison", "--rtol X", "the relative tolerance (default: by element type)", amount),
    Shared("comparison", "--atol X", "the absolute tolerance, also of integers", amount),
    Shared("comparison", "--metric NAME=LIMIT", "a limit in place of tolerances, such as cosine=0.999 or sqnr_db=40"),
    Shared("outputs", "--json", "print JSON instead of a table"),
    Shared("outputs", "--html FILE.html", "also write a report for a browser, in one file", output_with(".html")),
)
SHARED = {shared.option.split()[0].removeprefix("--"): shared for shared in _SHARED}
"""By name, in the order of help."""
