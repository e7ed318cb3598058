"""Files that commands write, which must not be among those that they read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from ovir.cli.options.values import FileName, OutputFile, raise_usage_error
from ovir.system.files import is_special, unwritable


def refuse_overwriting(
    values: Mapping[str, object], *others: str, saved_beside: Iterable[str], replaceable: str | None
) -> None:
    """Raise a usage error if a file that a command writes cannot be written, is one of its inputs or of the other files
    that it reads, or if it writes the same file twice.

    ``values`` are those of its options by name, ``saved_beside`` the endings of what it writes beside the .xml of a
    model, and ``replaceable`` is the model that it can write in place of the older one. Links to a file are the file.
    """
    inputs = [*others, *(file for name, value in values.items() for file in _inputs(name, value))]
    written: dict[object, str] = {}
    for name, target in values.items():
        if not isinstance(target, OutputFile) or target == "-" or is_special(target):
            continue
        option = f"--{name.replace('_', '-')}"
        files = files_of(target)
        if target.lower().endswith(".xml"):
            files += [os.path.splitext(target)[0] + ending for ending in saved_beside]
        if replaceable is not None and _identity(target) == _identity(replaceable):
            own = set(map(_identity, files_of(replaceable)))
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


def check_target(option: str, text: str, ending: str = "") -> None:
    """Raise an error for an output file that cannot be written, before the work that produces it.

    If its name has an ending, it must be the given one, which tells what the file holds.
    """
    from pathlib import Path  # most commands write no file

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
