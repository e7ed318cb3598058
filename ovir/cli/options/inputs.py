"""Inputs of a run: files, values that are written out, images, and random numbers for the rest."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Group
from ovir.cli.options.faulty_constants import constants_at_fault
from ovir.cli.options.model import split_name
from ovir.cli.options.values import FileName, OutputFile, natural, output_with, positive, raise_usage_error
from ovir.cli.terminal.output import print_diagnostics, print_note
from ovir.core.arrays import Array
from ovir.core.reading import similar_file
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import BAD_INPUT, ENGINE, INTERNAL, NO_ENGINE, NOT_SUPPORTED, OUT_OF_MEMORY, TOO_LARGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, RunError
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.graph.names import distinct_names, input_named
from ovir.io.images import ENDINGS, LAYOUTS, RESIZES, Preparation, load_image
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.analysis.input_sizes import ChosenSizes
    from ovir.analysis.random_inputs import RandomInput
    from ovir.debugging.comparison_setup import GivenInputs
    from ovir.io.input_files import InputFile

_ARRAYS = (".npy", ".npz")


@dataclass
class RunInputs:
    """The arrays of a run by position of the input."""

    feeds: dict[int, Array]
    made: list[RandomInput] = field(default_factory=list)
    """The random inputs."""
    chosen: ChosenSizes | None = None
    """The shapes that were chosen for inputs of dynamic shape."""

    def hint_at_choices(self, model: Model, error: RunError) -> None:
        """Add a hint to the error of a run: the constants at fault, or the chosen sizes or random inputs."""
        if error.diagnostic.code in _NEVER_OF_INPUTS or not self.made:
            return
        is_of_values = error.diagnostic.code not in _OF_SIZES
        constants = constants_at_fault(model, error.diagnostic) if is_of_values else None
        if constants is not None:
            error.add_note(readable(f"  hint: the values are not from the random inputs, but from {constants}"))
        if self.chosen is not None and self.chosen.shapes:
            shapes = " ".join(f"--shape {x.port.any_name}={','.join(map(str, x.array.shape))}" for x in self.made)
            error.add_note(f"  hint: sizes were chosen for this run; give others as in: {escaped(shapes)}")
        elif constants is None and is_of_values:
            error.add_note(
                "  hint: the inputs were random, which may be the cause: give real ones with --input NAME=file.npy"
            )


_OF_SIZES = {code.id for code in (OUT_OF_MEMORY, TOO_LARGE)}
_NEVER_OF_INPUTS = {code.id for code in (ENGINE, INTERNAL, NO_ENGINE, NOT_SUPPORTED)}


class FileOptions(Group):
    """The conversion of images to inputs and, with ``folder``, many inputs."""

    inputs: FileName | None = None
    mean: tuple[float, ...] | None
    scale: tuple[float, ...] | None
    layout: str | None
    resize: str
    bgr: bool

    def __init__(self, *, folder: bool = True) -> None:
        self.folder = folder

    def add_to(self, command: Command) -> None:
        if self.folder:
            command.shared("inputs")
        option = command.under("inputs")
        option("--mean M[,M,M]", "for images: subtract M from the pixels", _numbers)
        option("--scale S[,S,S]", "for images: divide by S, after --mean", _numbers)
        option(
            "--layout",
            "for images: the order of the axes of the input (default: derived from its shape)",
            str.upper,
            choices=LAYOUTS,
        )
        option(
            "--resize",
            "for images: how to bring them to the size of the input (default: stretch)",
            choices=RESIZES,
            default=RESIZES[0],
        )
        option("--bgr", "for images: the first channel is blue instead of red")

    @property
    def preparation(self) -> Preparation:
        """Return the conversion of images to values."""
        return Preparation(self.mean or (), self.scale or (), self.layout, self.resize, self.bgr)

    def require_images(self, images: int, what: str) -> None:
        """Raise a usage error for options for images if there are none."""
        if not images:
            self.refuse(f"applies to images, but no {what}", "--mean", "--scale", "--layout", "--resize", "--bgr")

    def find(self, model: Model, *, without: str | None = None) -> list[InputFile]:
        """Return the files of many inputs, apart from those in ``without``; print the number of others."""
        from ovir.io.input_files import find_inputs, takes_text

        folder = str(self.inputs)
        files, others = find_inputs(folder, self.preparation, without=without, are_texts=takes_text(model))
        if others:
            ignored = "1 other file is ignored" if len(others) == 1 else f"{len(others):,} other files are ignored"
            print_note(f"{escaped(folder)}: {ignored}, such as {escaped(os.path.basename(others[0]))}")
        self.require_images(sum(file.path.lower().endswith(ENDINGS) for file in files), "file of --inputs is one")
        return files


class InputOptions(FileOptions):
    """The inputs of a run, which are given or random."""

    input: Sequence[str]
    save_inputs: OutputFile | None
    seed: int | None

    def add_to(self, command: Command) -> None:
        option = command.under("inputs")
        option(
            "--input NAME=VALUE",
            "the value of one input: NAME=file.npy, NAME=file.npz:key, NAME=photo.jpg, NAME=1,2,3, "
            'NAME=[[1,2],[3,4]]; of strings: NAME=text, NAME=["text, text",text], NAME=file.txt with one in each line; '
            "or inputs.npz, which holds an array for each input; may be repeated",
            repeated=True,
        )
        super().add_to(command)
        option(
            "--save-inputs FILE.npz",
            "save all inputs, given and random; --input FILE.npz reads them again",
            output_with(".npz"),
        )
        option("--seed N", "seed of the random inputs (default: 0)", natural)

    def collect(self, model: Model) -> RunInputs:
        """Return the inputs that are given, and random ones for the others, in the shapes that the model then has.

        They are saved if the options ask for it.
        """
        inputs = self._collected(model)
        if inputs.chosen is not None:
            from ovir.analysis.input_sizes import about_narrow

            print_diagnostics(about_narrow(inputs.chosen.narrow))
        if self.save_inputs is not None:
            from ovir.io.tensor_files import save_npz

            arrays = {name: inputs.feeds[index] for index, name in enumerate(distinct_names(model.inputs))}
            save_npz(self.save_inputs, arrays, "write the inputs")
        return inputs

    def _collected(self, model: Model) -> RunInputs:
        feeds = self._given(model)
        missing = [i for i in range(len(model.inputs)) if i not in feeds]
        if not missing:
            return RunInputs(feeds)
        if feeds and self.seed is None:
            # Mixing given and random inputs is rarely intended, so it must be requested.
            listed = ", ".join(f"'{model.inputs[i].any_name}' {model.inputs[i].type}" for i in missing)
            hint = "--seed N fills the inputs that are not given with random values"
            raise InputError(diagnose(BAD_INPUT, f"no value is given for {listed}", Place(model.path), hint=hint))
        return _with_random(model, feeds, missing, self.seed or 0)

    def _given(self, model: Model) -> dict[int, Array]:
        feeds: dict[int, Array] = {}
        images = 0
        for text in self.input:
            from ovir.io.input_files import takes_text  # without --input, no module for files is needed

            name, source = split_name(model, text)
            if name is not None and takes_text(model) and not _NAME.fullmatch(name):
                name, source = None, text  # what stands before "=" is not a name but part of a text
            if name is None and (len(model.inputs) != 1 or source.lower().endswith(".npz")):
                _refuse_without_name(model, source)
                found = _archive(model, source)
            else:
                index = _named(model, name)
                is_image = source.lower().endswith(ENDINGS)
                images += is_image
                found = {index: self._image(model, index, source) if is_image else _one(model, index, source, text)}
            for index, array in found.items():
                if index in feeds:
                    raise_usage_error(f"--input {text}: input '{model.inputs[index].any_name}' is given twice")
                feeds[index] = array
        self.require_images(images, "--input is an image")
        return feeds

    def _image(self, model: Model, index: int, source: str) -> Array:
        port = model.inputs[index]
        array, done = load_image(source, port.element_type, port.shape, self.preparation)
        print_note(f"image input: {escaped(port.any_name)} is {escaped(source)}, {done}")
        return array

    @property
    def drawn_seed(self) -> int | None:
        """Return the seed of random inputs; None if all inputs are given."""
        return None if self.input or self.inputs is not None else self.seed or 0

    def refuse_single(self, *others: str) -> None:
        """Raise a usage error for options about one set of inputs, which make no sense with ``--inputs``."""
        reason = "is for one set of inputs: give either it or --inputs"
        self.refuse(reason, "--input", "--save-inputs", "--seed", *others)

    def refuse_folders(self) -> None:
        """Raise a usage error for a folder as ``--input``."""
        for text in self.input:
            if os.path.isdir(text):
                raise_usage_error(f"--input {text}: this is a folder", f"many inputs are given with --inputs {text}")


class InputSetOptions(InputOptions):
    """One or several sets of inputs."""

    samples: int | None

    def add_to(self, command: Command) -> None:
        super().add_to(command)
        text = "use N sets of random inputs, with the seeds from --seed on (default: 1)"
        command.under("inputs")("--samples N", text, positive)

    def inputs_of(self, model: Model, *, is_recorded: bool = False) -> GivenInputs:
        """Return the inputs as ``ovir.compare`` takes them: None for random ones, and for those that a recording has.

        With a seed, the inputs for a recording are the random ones of ``ovir run --seed N``, which may have made it.
        """
        from ovir.analysis.random_inputs import random_inputs
        from ovir.io.tensor_files import save_npz

        if self.inputs is not None:
            self.refuse_single("--samples")
            return self.find(model)
        self.refuse_folders()
        if self.input:
            self.refuse("draws random inputs: give either it or --input", "--samples")
            return self.collect(model.clone()).feeds
        if is_recorded and self.seed is None:
            self.refuse("saves inputs that are given or random; the recording has its own", "--save-inputs")
            return None
        if self.save_inputs is not None:
            self.refuse("draws several sets of inputs, --save-inputs saves one", "--samples")
            arrays = random_inputs(model, self.seed or 0)
            save_npz(self.save_inputs, arrays, "write the inputs")
            return arrays
        return random_inputs(model, self.seed or 0) if is_recorded and self.samples is None else None

    def note(self, *, is_recorded: bool = False) -> str | None:
        """Return a line about the inputs that are drawn; None if none are, or ``collect`` prints them one by one."""
        if self.input or self.inputs is not None or (is_recorded and self.seed is None):
            return None
        return f"random inputs: {plural(self.samples or 1, 'set')}, seed {self.seed or 0}"


def _with_random(model: Model, feeds: dict[int, Array], missing: Sequence[int], seed: int) -> RunInputs:
    from ovir.analysis.input_sizes import fix_shapes
    from ovir.analysis.random_inputs import generate_inputs  # given inputs do not need it

    # A given array of a wrong shape is rejected later, as without random inputs.
    shapes = {i: (model.inputs[i].shape, PartialShape(array.shape)) for i, array in feeds.items()}
    chosen = fix_shapes(model, {i: given if given.compatible(own) else own for i, (own, given) in shapes.items()})
    made = generate_inputs(model, seed, missing)
    for item in made:
        index = model.inputs.index(item.port)
        was_chosen = " (size chosen)" if index in chosen.shapes else ""
        print_note(f"random input: {readable(str(item))}{was_chosen}")
        feeds[index] = item.array
    return RunInputs(feeds, made, chosen)


# --------------------------------------------------------------------------- what is given


_NAME = re.compile(r"[\w.:/-]*[A-Za-z_][\w.:/-]*")
"""A possible name of an input, unlike the beginning of a text such as ``1 + 1 = 2``."""


def _named(model: Model, name: str | None) -> int:
    """Return the position of an input; without a name, of the only one."""
    try:
        return input_named(model, name) if name is not None else 0
    except InputError as error:
        if len(model.inputs) == 1:
            from ovir.io.input_files import takes_text

            hint = """; a text with = is put in quotes and brackets: ["a = b"]""" if takes_text(model) else ""
            error.add_note(f"  hint: the name of the only input may be left out{hint}")
        raise


def _refuse_without_name(model: Model, source: str) -> None:
    """Raise for anything but an .npz, whose arrays have names, if there is no name of the input that gets it."""
    _, key = _split_key(source)
    if key is not None or not source.lower().endswith(".npz"):
        names = [port.any_name for port in model.inputs]
        likely = key if key in names else next(iter(names), None)
        message = f"--input {source}: this is one array, but the model has {plural(len(names), 'input')}"
        raise_usage_error(message, likely and f"name the input that gets it, as in --input {likely}={source}")


def _archive(model: Model, source: str) -> dict[int, Array]:
    from ovir.io.input_files import read_archive

    found, others = read_archive(model, source)
    if others:
        print_note(f"not read: {plural(len(others), 'array')} for no input")
    return found


def _one(model: Model, index: int, source: str, text: str) -> Array:
    """Return the array of a file, or of literal values. A text is a file if that exists, or if the ending is known."""
    path, key = _split_key(source)
    if not path.lower().endswith(_ARRAYS) and not os.path.exists(path):
        return _literal(model, index, source, text)
    from ovir.io.tensor_files import array_of_texts, load_tensor, read_texts, with_element_type

    if not path.lower().endswith((*_ARRAYS, ".txt")):
        print_note(
            f"--input {escaped(text)}: read from the file of this name; to give the text as a value, put it in brackets"
        )
    port = model.inputs[index]
    if port.element_type.kind == "string" and not path.lower().endswith(_ARRAYS):
        return array_of_texts(read_texts(path), port.shape)
    return with_element_type(load_tensor(path, key, wanted=port.any_name), port.element_type)


def _literal(model: Model, index: int, source: str, text: str) -> Array:
    from ovir.io.tensor_files import parse_literal

    port = model.inputs[index]
    try:
        return parse_literal(source, port.element_type, port.shape)
    except ValueError as error:
        is_text = port.element_type.kind == "string"
        hint = (
            _TEXTS
            if is_text
            else similar_file(source)
            or "a file is an .npy, an .npz or an image; values are written as 1,2,3 or [[1,2],[3,4]]"
        )
        message = f"--input {text}: there is no file of this name, and it is not a value for {port.type}: {error}"
        raise_usage_error(message, hint)


_TEXTS = 'texts in brackets are separated by commas; one that begins with a bracket is put in quotes, as in ["[A] b"]'


def _split_key(source: str) -> tuple[str, str | None]:
    """Split ``file.npz:key``, unless a file has that very name or the colon belongs to a drive."""
    if os.path.exists(source):
        return source, None
    head, colon, key = source.partition(".npz:")
    return (f"{head}.npz", key) if colon else (source, None)


def _numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of ``--mean`` or ``--scale``."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        message = f"'{text}' is not a list of finite numbers such as 123.7,116.3,103.5"
        raise argparse.ArgumentTypeError(readable(message))
    return numbers
