"""Arguments that several commands share, and their meaning."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

from ovir.core.files import unwritable
from ovir.core.shapes import PartialShape
from ovir.diagnostics.errors import InputError, ModelError
from ovir.diagnostics.wording import readable
from ovir.graph.names import input_named
from ovir.inference.models import reshape_undeclared
from ovir.model import Model, read_model

Commands = Any  # argparse has no public name for the type that add_subparsers returns


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse creates a formatter for each argument and would import shutil for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)


@cache
def terminal_width() -> int:
    """Return the number of columns of the terminal, 80 if there is none."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:  # stdout is not a terminal
        return 80


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], summary: str, examples: str
) -> argparse.ArgumentParser:
    """Add a subcommand with its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        type=file_name,
        metavar="MODEL.xml",
        help="the .xml of the model; its weights are read from the .bin next to it",
    )
    parser.add_argument(
        "--weights", type=file_name, metavar="FILE", help="the weights, if they are not the .bin next to the model"
    )


def add_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,?,2..5",
        help="give an input another shape (NAME= may be omitted if the model has one input), or in infer and show a "
        "state; may be repeated",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_legacy_io(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--legacy-io",
        action="store_true",
        help="read an IR of version 10 as OpenVINO does: inputs and outputs become f32 or i32",
    )


def open_model(arguments: argparse.Namespace, **options: Any) -> Model:
    """Return the model that the arguments name, in the shapes that they give."""
    model = read_model(arguments.model, arguments.weights, **options)
    shapes = parse_shapes(model, arguments.shape)
    if shapes:
        hints = shape_hints(model, shapes)
        try:
            reshape_undeclared(model, shapes)
        except ModelError as error:
            for hint in hints:
                error.add_note(hint)
            raise
    return model


def shape_hints(model: Model, shapes: Mapping[int, PartialShape]) -> list[str]:
    """Return what to say where a model does not work in the shapes that ``--shape`` gives, and worked in its own."""
    ports = {model.inputs[index]: str(shape)[1:-1] for index, shape in shapes.items()}
    return [
        readable(f"  hint: without --shape {port.any_name}={text} this input is {port.type}")
        for port, text in ports.items()
    ]


class FileName(str):
    """The path of a file on the command line, or a device."""


def file_name(text: str) -> FileName:
    """Convert the text of an argument that names a file to read."""
    if not text:
        raise argparse.ArgumentTypeError("the name of the file is empty")
    return FileName(text)


def natural(text: str) -> int:
    """Convert the text of an argument that is an integer of at least 0."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """Convert the text of an argument that is an integer of at least 1."""
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not an integer")) from None
    if value < least:
        raise argparse.ArgumentTypeError(readable(f"must be at least {least}, got {value}"))
    return value


def amount(text: str) -> float:
    """Convert the text of an argument that is a number of at least 0."""
    value = _number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a number of 0 or more"))
    return value


def seconds(text: str) -> float:
    """Convert the text of an argument that is a time limit."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a number of seconds above 0"))
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


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
        name, shape_text = split_name(model, text)
        if name is None and len(model.inputs) != 1:
            names = ", ".join(f"'{port.any_name}'" for port in model.inputs) or "none"
            raise_usage_error(f"--shape {text}: say for which input, as NAME={text}; the model's inputs are {names}")
        try:
            shape = PartialShape.parse(shape_text)
        except ValueError as error:
            port = model.inputs[input_named(model, name) if name is not None else 0]
            raise_usage_error(f"--shape {text}: {error}", f"input '{port.any_name}' is {port.type} in the file")
        index = input_named(model, name) if name is not None else 0
        if index in shapes:
            raise_usage_error(f"--shape {text}: input '{model.inputs[index].any_name}' has two shapes")
        shapes[index] = shape
    return shapes


def split_name(model: Model, text: str) -> tuple[str | None, str]:
    """Split ``NAME=rest``; names may contain ``=``, so the first split that gives an input's name counts."""
    splits = [(text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "="]
    if not splits:
        return None, text
    known = {name for port in model.inputs for name in (*port.names, port.layer.name)}
    for name, rest in splits:
        if name in known:
            return name, rest
    return (None, text) if os.path.isfile(text) else splits[0]


def raise_usage_error(message: str, hint: str | None = None) -> NoReturn:
    """Raise InputError for a command line that makes no sense."""
    raise InputError.usage(message, hint=hint)
