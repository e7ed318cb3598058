"""Files with inputs: which there are in a folder, a pattern or a list, and the arrays that each holds for a model."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT, UNREADABLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError
from ovir.graph.names import distinct_names, input_named
from ovir.io.images import ENDINGS as IMAGES
from ovir.io.images import Preparation, load_image
from ovir.io.tensor_files import load_npz, load_tensor, with_element_type
from ovir.model import Model

ENDINGS = (".npz", ".npy", *IMAGES)
"""The endings of files that hold inputs."""


@dataclass(frozen=True)
class InputFile:
    """A file that holds one set of inputs: an .npz, or an .npy or an image for a model with one input."""

    path: str
    """Of files that ``find_inputs`` returns, absolute, so that other processes find them."""
    name: str
    """The path relative to the folder of the set, with ``/`` on every system; other files of the set have others."""
    how: Preparation | None = None
    """For images: how pixels become values."""

    def load(self, model: Model) -> dict[int, Array]:
        """Return the arrays by position of the input; raise InputError or ReadError."""
        if self.path.lower().endswith(".npz"):
            return read_archive(model, self.path)[0]
        if len(model.inputs) != 1:
            what = "an image" if self.path.lower().endswith(IMAGES) else "an .npy"
            message = f"{what} is the value of one input, but the model has {len(model.inputs)}"
            hint = "write the inputs of each run into one .npz, under their names"
            raise InputError(diagnose(BAD_INPUT, message, Place(self.path), hint=hint))
        port = model.inputs[0]
        if self.path.lower().endswith(IMAGES):
            return {0: load_image(self.path, port.element_type, port.shape, self.how)[0]}
        return {0: with_element_type(load_tensor(self.path), port.element_type)}

    def __str__(self) -> str:
        return self.name


def read_archive(model: Model, path: str) -> tuple[dict[int, Array], list[str]]:
    """Return the arrays of an .npz by position of their inputs, and the keys of others, which are not read.

    A file that holds an array for each input may hold others, too, as a record of a run does. Otherwise, a key that is
    no input is an error. Raise InputError or ReadError.
    """
    arrays: Mapping[str, Array] = load_npz(path)
    names = set(distinct_names(model.inputs))
    known = {name for port in model.inputs for name in (*port.names, port.layer.name, *names)}
    others = sorted(arrays.keys() - known) if names <= arrays.keys() else []
    found: dict[int, Array] = {}
    for key, array in arrays.items():
        if key in others:
            continue
        try:
            index = input_named(model, key)
        except InputError as error:
            raise InputError(*(replace(wrong, file=path, line=None) for wrong in error.diagnostics)) from None
        if index in found:
            message = f"input '{model.inputs[index].any_name}' is given twice"
            raise InputError(diagnose(BAD_INPUT, message, Place(path)))
        found[index] = with_element_type(array, model.inputs[index].element_type)
    return found, others


# --------------------------------------------------------------------------- sets of files


def find_inputs(
    given: str | os.PathLike[str], how: Preparation | None = None, *, without: str | None = None
) -> list[InputFile]:
    """Return the files of a set of inputs, each once; see ``find_inputs_and_others``."""
    return find_inputs_and_others(given, how, without=without)[0]


def find_inputs_and_others(
    given: str | os.PathLike[str], how: Preparation | None = None, *, without: str | None = None
) -> tuple[list[InputFile], list[str]]:
    """Return the files of a set of inputs, each once, and the other files that a search has met.

    ``given`` is a folder, which is searched with its subfolders; a pattern such as ``data/**/*.npz``; a .txt that lists
    a file in each line, relative to its own folder; or one file. Files of folders and patterns are sorted by name.
    Hidden files are no inputs of a folder, and its hidden folders are not searched. ``without`` is a folder whose files
    are neither inputs nor others. Raise ReadError if there are none, InputError for a list with others.
    """
    text = os.fspath(given)
    if os.path.isdir(text):
        root, met = text, sorted(_inside(text))
        paths = [path for path in met if _is_input(path) and not os.path.basename(path).startswith(".")]
    elif text.lower().endswith(".txt"):
        root, paths = os.path.dirname(text), list(_listed(text))
        met = paths
    elif os.path.isfile(text):
        return [InputFile(os.path.abspath(text), os.path.basename(text), how)], []
    elif glob.has_magic(text):
        root = _fixed_part(text)
        met = sorted(path for path in glob.glob(text, recursive=True) if os.path.isfile(path))
        paths = [path for path in met if _is_input(path)]
    else:
        _refuse(text, "there is no such file or folder", "give a folder, a pattern in quotes, or a list (.txt)")
    if without is not None:
        hidden = os.path.join(os.path.realpath(without), "")
        met = [path for path in met if not os.path.realpath(path).startswith(hidden)]
        kept = set(met)
        paths = [path for path in paths if path in kept]
    found: dict[str, InputFile] = {}
    for path in paths:
        found.setdefault(os.path.abspath(path), InputFile(os.path.abspath(path), _name(path, root), how))
    if not found:
        _refuse(text, "no inputs were found", f"inputs are files that end in {', '.join(ENDINGS)}")
    return list(found.values()), sorted(set(met).difference(paths))


def _is_input(path: str) -> bool:
    return path.lower().endswith(ENDINGS)


def _inside(folder: str) -> Iterator[str]:
    """Yield the files in a folder and its subfolders, except in hidden ones."""

    def refuse(error: OSError) -> NoReturn:
        place = Place(str(error.filename))
        raise ReadError(diagnose(UNREADABLE, f"cannot read the folder: {error.strerror}", place)) from None

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(root, name) for name in files)


def _listed(path: str) -> Iterator[str]:
    """Yield the paths that a list has; empty lines are skipped."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReadError(diagnose(UNREADABLE, f"cannot read the list: {reason}", Place(path))) from None
    for number, line in enumerate(lines, 1):
        if not (text := line.strip()):
            continue
        found = os.path.join(os.path.dirname(path), text)
        if not _is_input(found):
            message = f"'{text}' is no input: its name ends in none of {', '.join(ENDINGS)}"
            raise InputError(diagnose(BAD_INPUT, message, Place(path, number)))
        if not os.path.isfile(found):
            hint = "paths are relative to the folder of the list"
            raise InputError(diagnose(BAD_INPUT, f"there is no file '{found}'", Place(path, number), hint=hint))
        yield found


def _fixed_part(pattern: str) -> str:
    """Return the folder that all files of a pattern are in."""
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    return root


def _name(path: str, root: str) -> str:
    """Return the path relative to the root, or in full if it is outside."""
    relative = os.path.relpath(path, root or os.curdir)
    inside = relative.split(os.sep)[0] != os.pardir
    return Path(relative if inside else os.path.abspath(path)).as_posix()


def _refuse(text: str, message: str, hint: str) -> NoReturn:
    raise ReadError(diagnose(UNREADABLE, message, Place(text), hint=hint))
