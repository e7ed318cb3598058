"""Labels of inputs: a table of names and values, or arrays in an .npz or in a folder of files."""

from __future__ import annotations

import csv
import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT, UNREADABLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural
from ovir.io.input_files import ENDINGS, find_inputs
from ovir.io.tensor_files import load_npz, load_tensor

_VALUES = ("label", "class", "target", "category")
"""Names of a column that holds the labels, if a table has others, too."""

Loader = Callable[[], Array]


def read_labels(path: str, names: Sequence[str], output: str) -> dict[str, Loader]:
    """Return a function for each input that returns its label.

    ``path`` is a table (.csv or .tsv) with a row for each input: its name and a number, or several; with or without a
    row of headings. Or it is an .npz with an array for each input, or a folder with a file for each, such as the
    results of another run, of which ``output`` is the array that counts.

    Names are compared with their folders and endings. If that does not match all inputs, they are compared without
    endings, then without folders, then without both. Raise InputError for inputs without a label, ReadError for files.
    """
    loaders: Mapping[str, Loader]
    if os.path.isdir(path):
        loaders = {file.name: _file_loader(file.path, output) for file in find_inputs(path)}
    elif path.lower().endswith(".npz"):
        loaders = {name: _constant(array) for name, array in load_npz(path).items()}
    else:
        loaders = {name: _constant(array) for name, array in read_table(path).items()}
    keys = match_names(names, list(loaders), path)
    return {name: loaders[key] for name, key in keys.items()}


def _constant(array: Array) -> Loader:
    return lambda: array


def _file_loader(path: str, output: str) -> Loader:
    return lambda: load_tensor(path, wanted=output)


# --------------------------------------------------------------------------- names


def match_names(names: Sequence[str], labels: Sequence[str], path: str) -> dict[str, str]:
    """Return the name in the labels of each input. Raise InputError if inputs have none, or share one."""
    missing, fewest = list(names), list(names)
    for form in (_normal, _without_ending, _without_folder, _without_both):
        known = _unique(labels, form)
        missing = [name for name in names if known.get(form(name)) is None]
        if not missing and len({form(name) for name in names}) == len(names):
            return {name: str(known[form(name)]) for name in names}
        fewest = min(missing, fewest, key=len)
    listed = ", ".join(f"'{name}'" for name in fewest[:3]) + (", ..." if len(fewest) > 3 else "")
    message = f"{plural(len(fewest), 'input')} without a label of their own: {listed}"
    hint = f"the labels are of inputs such as '{labels[0]}'" if labels else "there are no labels at all"
    raise InputError(diagnose(BAD_INPUT, message, Place(path), hint=hint))


def _unique(labels: Iterable[str], form: Callable[[str], str]) -> dict[str, str | None]:
    """Return each label by its form; None for a form that several labels have."""
    found: dict[str, str | None] = {}
    for label in labels:
        key = form(label)
        found[key] = None if key in found else label
    return found


def _normal(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/"))


def _without_ending(name: str) -> str:
    name = _normal(name)
    while name.lower().endswith(ENDINGS):  # a result of x.jpg is x.jpg.npz
        name = posixpath.splitext(name)[0]
    return name


def _without_folder(name: str) -> str:
    return posixpath.basename(_normal(name))


def _without_both(name: str) -> str:
    return posixpath.basename(_without_ending(name))


# --------------------------------------------------------------------------- tables


def read_table(path: str) -> dict[str, Array]:
    """Return the values of each name of a table: i64 if all of a row are integers, otherwise f64.

    Cells are separated by commas, semicolons or tabs. A first row without numbers holds headings; if one of them is
    ``label`` or the like, only this column counts. Raise ReadError.
    """
    rows = _rows(path)
    if not rows:
        _refuse(path, "the table is empty")
    columns: Sequence[int] | None = None
    if _values(rows[0][1][1:]) is None:
        headings = [cell.lower() for cell in rows[0][1]]
        columns = [headings.index(name) for name in _VALUES if name in headings[1:]][:1] or None
        rows = rows[1:]
    found: dict[str, Array] = {}
    for line, cells in rows:
        chosen = cells[1:] if columns is None else [cells[column] for column in columns if column < len(cells)]
        values = _values(chosen)
        if values is None:
            hint = "classes are numbered from 0, in the order of the output"
            _refuse(path, f"no number follows the name '{cells[0]}'", hint, line)
        if cells[0] in found:
            _refuse(path, f"'{cells[0]}' has a second label", None, line)
        found[cells[0]] = values
    return found


def _rows(path: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each row that is not empty, with its line."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=first.count)
            reader = csv.reader(file, delimiter=delimiter)
            return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(cells)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReadError(diagnose(UNREADABLE, f"cannot read the labels: {reason}", Place(path))) from None


def _values(cells: Sequence[str]) -> Array | None:
    """Return numbers, None if a cell is none, or if there are none."""
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


def _refuse(path: str, message: str, hint: str | None = None, line: int | None = None) -> NoReturn:
    raise InputError(diagnose(BAD_INPUT, message, Place(path, line), hint=hint))
