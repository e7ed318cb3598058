"""Files with inputs for a model, and the labels that belong to them."""

from __future__ import annotations

import glob
import io
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import PurePath
from typing import NoReturn

import numpy as np

from ovir.core.arrays import Array
from ovir.core.reading import Path, read_text, why_not_regular
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural, quoted, reason_of, shortened
from ovir.graph.given_arrays import require_shape
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.names import distinct_names, input_named, names_of_inputs
from ovir.io.images import ENDINGS as IMAGES
from ovir.io.images import Preparation, load_classes, load_image
from ovir.io.tensor_files import array_of_texts, load_npz, load_tensor, open_npz, read_texts, with_element_type

ENDINGS = (".npz", ".npy", *IMAGES)
"""The endings of files that hold inputs."""


@dataclass(frozen=True)
class InputFile:
    """A file that holds one set of inputs: an .npz, or an .npy or an image for a model with one input."""

    path: str
    """The path; absolute for files that ``find_inputs`` returns, so that other processes find them."""
    name: str
    """The path relative to the folder of the set, with ``/`` on every system; other files of the set have others."""
    how: Preparation | None = None
    """For images: how pixels become values."""

    def load(self, model: LayerGraph) -> dict[int, Array]:
        """Return the arrays by position of the input; raise InputError or ReadError."""
        if self.path.lower().endswith(".npz"):
            return read_archive(model, self.path)[0]
        if len(model.inputs) != 1:
            what = "an image" if self.path.lower().endswith(IMAGES) else "an .npy"
            message = f"{what} is the value of one input, but the model has {len(model.inputs)}"
            hint = "write the inputs of each run into one .npz, under their names"
            raise InputError.of_file(self.path, message, hint=hint)
        port = model.inputs[0]
        if self.path.lower().endswith(IMAGES):
            return {0: load_image(self.path, port.element_type, port.shape, self.how)[0]}
        return {0: with_element_type(load_tensor(self.path), port.element_type)}

    @property
    def title(self) -> str:
        """Return the name as results of comparisons show it."""
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TextLine(InputFile):
    """A line of a text file: the value of the only input of a model, which takes strings."""

    text: str = ""

    def load(self, model: LayerGraph) -> dict[int, Array]:
        """Return the array of the input, which holds this text alone."""
        return {0: array_of_texts([self.text], model.inputs[0].shape)}

    @property
    def title(self) -> str:
        """Return the name with the text, cut off if it is long."""
        return f"{self.name} {shortened(self.text)!r}"


def takes_text(model: LayerGraph) -> bool:
    """Return whether a model has one input, which takes strings: the lines of a .txt are then sets of inputs."""
    return len(model.inputs) == 1 and model.inputs[0].element_type.kind == "string"


def read_archive(model: LayerGraph, path: str) -> tuple[dict[int, Array], list[str]]:
    """Return the arrays of an .npz by position of their inputs, and the keys of others, which are not read.

    A file that holds an array for each input may hold others, too, as a record of a run does. Otherwise, a key that is
    no input is an error. Raise InputError or ReadError.
    """
    names = set(distinct_names(model.inputs))
    known = names_of_inputs(model) | names
    keys: dict[int, str] = {}
    with open_npz(path) as arrays:
        others = sorted(arrays.keys() - known) if names <= arrays.keys() else []
        for key in (key for key in arrays if key not in others):  # none is unpacked before all are known to fit
            try:
                index = input_named(model, key)
            except InputError as error:
                hint = (
                    f"an array gets another name so: {model.inputs[0].any_name}={path}:{key}" if model.inputs else None
                )
                where = (replace(wrong, file=path, line=None, hint=wrong.hint or hint) for wrong in error.diagnostics)
                raise InputError(*where) from None
            port = model.inputs[index]
            if index in keys:
                raise InputError.of_file(path, f"input '{port.any_name}' is given twice")
            require_shape(f"input '{port.any_name}'", arrays.shape_of(key), port.type, port.layer)
            keys[index] = key
        return {i: with_element_type(arrays[key], model.inputs[i].element_type) for i, key in keys.items()}, others


# --------------------------------------------------------------------------- sets of files


def find_inputs(
    given: Path, how: Preparation | None = None, *, without: str | None = None, are_texts: bool = False
) -> tuple[list[InputFile], list[str]]:
    """Return the files of a set of inputs, each once, and the other files that a search has met.

    ``given`` is a folder, which is searched with its subfolders; a pattern such as ``data/**/*.npz``; a .txt that lists
    a file in each line, relative to its own folder; or one file. If ``are_texts``, each line of a .txt is a text
    instead, the value of an input of strings. Files of folders and patterns are sorted by name.
    Hidden files are not inputs of a folder, and its hidden folders are not searched. ``without`` is a folder whose
    files are neither inputs nor others. Raise ReadError if there are none, InputError for a list with others.
    """
    text = os.fspath(given)
    if are_texts and text.lower().endswith(".txt"):
        path, name = os.path.abspath(text), os.path.basename(text)
        lines = enumerate(read_texts(text), 1)
        return [TextLine(path, f"{name}/{number}", how, line) for number, line in lines], []
    if os.path.isdir(text):
        root, met = text, sorted(_inside(text))
        paths = [path for path in met if _is_input(path) and not os.path.basename(path).startswith(".")]
    elif text.lower().endswith(".txt"):
        root, paths = os.path.dirname(text), list(_listed(text))
        met = paths
    elif os.path.exists(text):
        if (fault := why_not_regular(text)) is not None:
            raise ReadError.of_file(text, fault)
        return [InputFile(os.path.abspath(text), os.path.basename(text), how)], []
    elif glob.has_magic(text):
        root = _fixed_part(text)
        met = sorted(path for path in glob.glob(text, recursive=True) if os.path.isfile(path))
        paths = [path for path in met if _is_input(path)]
    else:
        hint = "give a folder, a pattern in quotes, or a list (.txt)"
        raise ReadError.of_file(text, "there is no such file or folder", hint=hint)
    if without is not None:
        hidden = os.path.join(os.path.realpath(without), "")
        met = [path for path in met if not os.path.realpath(path).startswith(hidden)]
        among = set(met)
        paths = [path for path in paths if path in among]
    files: dict[str, InputFile] = {}
    for path in paths:
        files.setdefault(os.path.abspath(path), InputFile(os.path.abspath(path), _name(path, root), how))
    if not files:
        raise ReadError.of_file(text, "no inputs were found", hint=f"inputs are files that end in {', '.join(ENDINGS)}")
    return list(files.values()), sorted(set(met).difference(paths))


def _is_input(path: str) -> bool:
    return path.lower().endswith(ENDINGS)


def _inside(folder: str) -> Iterator[str]:
    """Yield the files in a folder and its subfolders, except in hidden ones."""

    def refuse(error: OSError) -> NoReturn:
        raise ReadError.of_file(error.filename, f"cannot read the folder: {reason_of(error)}") from None

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(root, name) for name in files)


def _listed(path: str) -> Iterator[str]:
    """Yield the paths that a list has; empty lines are skipped."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError.of_file(path, f"cannot read the list: {reason_of(error)}") from None
    for number, line in enumerate(lines, 1):
        if not (text := line.strip()):
            continue
        file_path = os.path.join(os.path.dirname(path), text)
        if not _is_input(file_path):
            message = f"'{text}' is not an input: its name ends in none of {', '.join(ENDINGS)}"
            raise InputError.of_file(path, message, number)
        if (fault := why_not_regular(file_path)) is not None:
            hint = "paths are relative to the folder of the list"
            raise InputError.of_file(path, f"'{file_path}': {fault}", number, hint=hint)
        yield file_path


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
    return PurePath(relative if inside else os.path.abspath(path)).as_posix()


_TEXT = "text"
_VALUES = ("label", "class", "target", "category")
"""Names of a column that holds the labels, if a table has others, too."""

Loader = Callable[[], Array]


def read_labels(
    path: str, names: Sequence[str], output: str, *, texts: bool = False, boxes: bool = False
) -> dict[str, Loader]:
    """Return a function for each input that returns its label.

    ``path`` is a table (.csv or .tsv) with a row for each input: its name and a number, or several; with or without a
    row of headings. Or it is an .npz with an array for each input, or a folder with a file for each, such as the
    results of another run, of which ``output`` is the array that counts; images hold a class for each pixel. With
    ``texts``, a table may hold texts. With ``boxes``, it has a row for each box, and a .json of COCO is read, too.

    Names are compared with their folders and endings. If that does not match all inputs, they are compared without
    endings, then without folders, then without both. Raise InputError for inputs without a label, ReadError for files.
    """
    if os.path.isdir(path):
        files = {file.name: file.path for file in find_inputs(path)[0]}
        keys = match_names(names, list(files), path)
        return {name: partial(_label_in, files[key], output) for name, key in keys.items()}
    if boxes and path.lower().endswith(".json"):
        from ovir.io.coco import read_boxes  # hardly ever needed

        arrays = read_boxes(path)
    elif path.lower().endswith(".npz"):
        arrays = load_npz(path)
    else:
        arrays = read_table(path, texts=texts, boxes=boxes)
    keys = match_names(names, list(arrays), path)
    return {name: partial(arrays.__getitem__, key) for name, key in keys.items()}


def _label_in(path: str, output: str) -> Array:
    return load_classes(path) if path.lower().endswith(IMAGES) else load_tensor(path, wanted=output)


# --------------------------------------------------------------------------- names


def match_names(names: Sequence[str], labels: Sequence[str], path: str) -> dict[str, str]:
    """Return the name in the labels of each input. Raise InputError if inputs have none, or share one."""
    missing, fewest = list(names), list(names)
    for has_folder, has_ending in product((True, False), repeat=2):
        form = partial(_form, has_folder=has_folder, has_ending=has_ending)
        known: dict[str, str | None] = {}  # None for a form that several labels have
        for label in labels:
            key = form(label)
            known[key] = None if key in known else label
        missing = [name for name in names if known.get(form(name)) is None]
        if not missing and len({form(name) for name in names}) == len(names):
            return {name: str(known[form(name)]) for name in names}
        fewest = min(missing, fewest, key=len)
    listed = quoted(fewest[:3]) + (", ..." if len(fewest) > 3 else "")
    message = f"{plural(len(fewest), 'input')} without a label of their own: {listed}"
    hint = f"the labels are of inputs such as '{labels[0]}'" if labels else "there are no labels at all"
    raise InputError.of_file(path, message, hint=hint)


def _form(name: str, *, has_folder: bool, has_ending: bool) -> str:
    """Return a name as it is compared, with its folder and its ending or without them."""
    name = posixpath.normpath(name.replace("\\", "/"))
    while not has_ending and name.lower().endswith(ENDINGS):  # a result of x.jpg is x.jpg.npz
        name = posixpath.splitext(name)[0]
    return name if has_folder else posixpath.basename(name)


# --------------------------------------------------------------------------- tables


def read_table(path: str, *, texts: bool = False, boxes: bool = False) -> dict[str, Array]:
    """Return the values of each name of a table: i64 if all of a row are integers, otherwise f64.

    Cells are separated by commas, semicolons or tabs. A first row without numbers holds headings; if one of them is
    ``label`` or the like, only this column counts. With ``texts``, all cells are texts if one of them is not a number,
    or if the heading of the column is ``text``; the first row then holds headings only if one is known, or if all
    others are numbers. With ``boxes``, all columns count, a name may have several rows or none but its own, and the
    numbers of all its rows are its values. Raise ReadError.
    """
    rows = _rows(path)
    if not rows:
        raise InputError.of_file(path, "the table is empty")
    headings = [cell.lower() for cell in rows[0][1]]
    known = [name for name in (*_VALUES, *([_TEXT] if texts else ())) if name in headings[1:] and not boxes]
    column = headings.index(known[0]) if known else None
    others_are_numbers = all(_values(cells[1:]) is not None for _, cells in rows[1:])
    if known or (_values(rows[0][1][1:]) is None and any(rows[0][1][1:]) and (others_are_numbers or not texts)):
        rows = rows[1:]
    chosen = [cells[1:] if column is None else cells[column : column + 1] for _, cells in rows]
    are_texts = texts and (known == [_TEXT] or any(cells and _values(cells) is None for cells in chosen))
    rows_by_name: dict[str, Array] = {}
    for (line, cells), label in zip(rows, chosen, strict=True):
        values = np.array(label, object) if are_texts and label else _values(label)
        if boxes and not any(label):
            values = np.zeros(0)
        if values is None:
            hint = "classes are numbered from 0, in the order of the output"
            if boxes:
                hint = "a row is the name of an input with x1, y1, x2, y2 and the class of a box"
            raise InputError.of_file(path, f"no number follows the name '{cells[0]}'", line, hint=hint)
        if boxes and cells[0] in rows_by_name:
            values = np.concatenate([rows_by_name[cells[0]], values])
        elif cells[0] in rows_by_name:
            raise InputError.of_file(path, f"'{cells[0]}' has a second label", line)
        rows_by_name[cells[0]] = values
    return rows_by_name


def _rows(path: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each row that is not empty, with its line."""
    import csv  # not needed for inputs

    try:
        text = read_text(path, "utf-8-sig", newline="")
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(cells)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReadError.of_file(path, f"cannot read the labels: {reason_of(error)}") from None


def _values(cells: Sequence[str]) -> Array | None:
    """Return numbers, None if a cell is not a number, or if there are none."""
    if not cells:
        return None
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None
