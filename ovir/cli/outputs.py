"""The files that commands write: they must not replace what a command reads, nor each other."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator

from ovir.cli.arguments import FileName, file_name, raise_usage_error
from ovir.core.files import is_special


class OutputFile(FileName):
    """The path of a file that a command writes."""


def output_file(text: str) -> OutputFile:
    """Convert the text of an argument that names a file to write."""
    return OutputFile(file_name(text))


def refuse_overwriting(arguments: argparse.Namespace, *others: str) -> None:
    """Raise a usage error if an output of a command is one of its inputs or of the other files that it reads, or if two
    outputs are the same file.

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
