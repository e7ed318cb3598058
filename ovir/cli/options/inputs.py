"""Inputs of a run: files, values that are written out, images, and random numbers for the rest."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovir.cli.options.arguments import (
    add_shared,
    natural,
    options_of,
    output_with,
    positive,
    raise_usage_error,
    split_name,
)
from ovir.cli.options.opening import constants_at_fault
from ovir.cli.terminal.output import print_diagnostics, print_note
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import BAD_INPUT, ENGINE, INTERNAL, NO_ENGINE, NOT_SUPPORTED, OUT_OF_MEMORY, TOO_LARGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, RunError
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.graph.names import input_named
from ovir.io.images import ENDINGS, LAYOUTS, RESIZES, Preparation, load_image
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.analysis.input_sizes import NarrowTensor
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
    narrow: list[NarrowTensor] = field(default_factory=list)
    """Tensors that are too small for their readers, with the chosen sizes."""
    chosen: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Shapes that were chosen for inputs of dynamic shape."""

    def hint_at_choices(self, model: Model, error: RunError) -> None:
        """Add a hint to the error of a run: the constants at fault, or the chosen sizes or random inputs."""
        if error.diagnostic.code in _NEVER_OF_INPUTS or not self.made:
            return
        is_of_values = error.diagnostic.code not in _OF_SIZES
        constants = constants_at_fault(model, error.diagnostic) if is_of_values else None
        if constants is not None:
            error.add_note(readable(f"  hint: the values are not from the random inputs, but from {constants}"))
        if self.chosen:
            shapes = " ".join(
                f"--shape {item.port.any_name}={','.join(map(str, item.array.shape))}" for item in self.made
            )
            error.add_note(f"  hint: sizes were chosen for this run; give others as in: {escaped(shapes)}")
        elif constants is None and is_of_values:
            error.add_note(
                "  hint: the inputs were random, which may be the cause: give real ones with --input NAME=file.npy"
            )


_OF_SIZES = {code.id for code in (OUT_OF_MEMORY, TOO_LARGE)}
_NEVER_OF_INPUTS = {code.id for code in (ENGINE, INTERNAL, NO_ENGINE, NOT_SUPPORTED)}


def add_inputs(parser: argparse.ArgumentParser) -> None:
    option = options_of(parser, "inputs")
    option(
        "--input NAME=VALUE",
        "the value of one input: NAME=file.npy, NAME=file.npz:key, NAME=photo.jpg, NAME=1,2,3, "
        'NAME=[[1,2],[3,4]]; of strings: NAME=text, NAME=["text, text",text], NAME=file.txt with one in each line; '
        "or inputs.npz, which holds an array for each input; may be repeated",
        repeated=True,
    )
    add_images(parser)
    option(
        "--save-inputs FILE.npz",
        "save all inputs, given and random; --input FILE.npz reads them again",
        output_with(".npz"),
    )


def add_images(parser: argparse.ArgumentParser) -> None:
    option = options_of(parser, "inputs")
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


def collect(model: Model, arguments: argparse.Namespace) -> RunInputs:
    """Return the inputs that are given, and random ones for the others, in the shapes that the model then has.

    They are saved if the options ask for it.
    """
    inputs = _collected(model, arguments)
    if inputs.narrow:
        from ovir.analysis.input_sizes import about_narrow

        print_diagnostics(about_narrow(inputs.narrow))
    if arguments.save_inputs is not None:
        from ovir.graph.names import distinct_names
        from ovir.io.tensor_files import save_npz

        arrays = {name: inputs.feeds[index] for index, name in enumerate(distinct_names(model.inputs))}
        save_npz(arguments.save_inputs, arrays, "write the inputs")
    return inputs


def _collected(model: Model, arguments: argparse.Namespace) -> RunInputs:
    feeds = _given(model, arguments)
    missing = [i for i in range(len(model.inputs)) if i not in feeds]
    if not missing:
        return RunInputs(feeds)
    if feeds and arguments.seed is None:
        # Mixing given and random inputs is rarely intended, so it must be requested.
        listed = ", ".join(f"'{model.inputs[i].any_name}' {model.inputs[i].type}" for i in missing)
        hint = "--seed N fills the inputs that are not given with random values"
        raise InputError(diagnose(BAD_INPUT, f"no value is given for {listed}", Place(model.path), hint=hint))
    return _with_random(model, feeds, missing, arguments.seed or 0)


def preparation(arguments: argparse.Namespace) -> Preparation:
    """Return the conversion of images to values that the arguments describe."""
    mean, scale = arguments.mean or (), arguments.scale or ()
    return Preparation(mean, scale, arguments.layout, arguments.resize, arguments.bgr)


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
    return RunInputs(feeds, made, chosen.narrow, chosen.shapes)


# --------------------------------------------------------------------------- what is given


def _given(model: Model, arguments: argparse.Namespace) -> dict[int, Array]:
    feeds: dict[int, Array] = {}
    images = 0
    for text in arguments.input:
        from ovir.io.input_files import takes_text  # without --input, no module for files is needed

        name, source = split_name(model, text)
        if name is not None and takes_text(model) and not _NAME.fullmatch(name):
            name, source = None, text  # what stands before "=" is not a name but part of a text
        if (name is None and len(model.inputs) != 1) or (name is None and source.endswith(".npz")):
            _refuse_key_without_name(model, source)
            found = _archive(model, source)
        else:
            index = _named(model, name)
            is_image = source.lower().endswith(ENDINGS)
            images += is_image
            found = {index: _image(model, index, source, arguments) if is_image else _one(model, index, source, text)}
        for index, array in found.items():
            if index in feeds:
                raise_usage_error(f"--input {text}: input '{model.inputs[index].any_name}' is given twice")
            feeds[index] = array
    require_images(arguments, images, "--input is an image")
    return feeds


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


def require_images(arguments: argparse.Namespace, images: int, what: str) -> None:
    """Raise a usage error for options for images if there are none."""
    if not images and (option := _image_option(arguments)):
        raise_usage_error(f"{option} applies to images, but no {what}")


def _refuse_key_without_name(model: Model, source: str) -> None:
    """Raise for ``file.npz:key`` without the name of the input that gets the array."""
    path, key = _split_key(source)
    if key is not None:
        names = [port.any_name for port in model.inputs]
        name = key if key in names or not names else names[0]
        message = f"--input {source}: this is one array, but the model has {plural(len(names), 'input')}"
        raise_usage_error(message, f"name the input that gets it, as in --input {name}={path}:{key}")


def _image_option(arguments: argparse.Namespace) -> str | None:
    given = {
        "--mean": arguments.mean,
        "--scale": arguments.scale,
        "--layout": arguments.layout,
        "--resize": arguments.resize != RESIZES[0],
        "--bgr": arguments.bgr,
    }
    return next((option for option, value in given.items() if value), None)


def _archive(model: Model, source: str) -> dict[int, Array]:
    from ovir.io.input_files import read_archive

    found, others = read_archive(model, source)
    if others:
        print_note(f"{plural(len(others), 'array')} that belong to no input are not read")
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
            else "a file is an .npy, an .npz or an image; values are written as 1,2,3 or [[1,2],[3,4]]"
        )
        message = f"--input {text}: there is no file of this name, and it is not a value for {port.type}: {error}"
        raise_usage_error(message, hint)


_TEXTS = (
    """texts in brackets are separated by commas; one that begins with a bracket is put in quotes, as in ["[A] b"]"""
)


def _image(model: Model, index: int, source: str, arguments: argparse.Namespace) -> Array:
    port = model.inputs[index]
    array, done = load_image(source, port.element_type, port.shape, preparation(arguments))
    print_note(f"image input: {escaped(port.any_name)} is {escaped(source)}, {done}")
    return array


def _split_key(source: str) -> tuple[str, str | None]:
    """Split ``file.npz:key``, unless a file has that very name or the colon belongs to a drive."""
    if os.path.exists(source):
        return source, None
    head, colon, key = source.partition(".npz:")
    return (f"{head}.npz", key) if colon else (source, None)


def _numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of ``--mean`` or ``--scale``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        message = f"'{text}' is not a list of numbers such as 123.7,116.3,103.5"
        raise argparse.ArgumentTypeError(readable(message)) from None


def input_files(model: Model, arguments: argparse.Namespace, *, without: str | None = None) -> list[InputFile]:
    """Return the files that ``--inputs`` names, apart from those in ``without``; print the number of others."""
    from ovir.io.images import ENDINGS
    from ovir.io.input_files import find_inputs, takes_text

    files, others = find_inputs(arguments.inputs, preparation(arguments), without=without, are_texts=takes_text(model))
    if others:
        ignored = "1 other file is ignored" if len(others) == 1 else f"{len(others):,} other files are ignored"
        print_note(f"{escaped(arguments.inputs)}: {ignored}, such as {escaped(os.path.basename(others[0]))}")
    require_images(arguments, sum(file.path.lower().endswith(ENDINGS) for file in files), "file of --inputs is one")
    return files


def refuse_single_inputs(arguments: argparse.Namespace, *others: str) -> None:
    """Raise a usage error for options about one set of inputs, which make no sense with ``--inputs``."""
    for option in ("--input", "--save-inputs", "--seed", *others):
        value = getattr(arguments, option[2:].replace("-", "_"))
        if value is not None and value is not False and value != []:
            raise_usage_error(f"{option} is for one set of inputs: give either it or --inputs")


def refuse_folders(arguments: argparse.Namespace) -> None:
    """Raise a usage error for a folder as ``--input``."""
    for text in arguments.input:
        if os.path.isdir(text):
            raise_usage_error(f"--input {text}: this is a folder", f"many inputs are given with --inputs {text}")


def add_input_sets(parser: argparse.ArgumentParser) -> None:
    option = options_of(parser, "inputs")
    add_inputs(parser)
    add_shared(parser, "inputs")
    option("--samples N", "use N sets of random inputs (default: 1)", positive)
    option("--seed N", "seed of the first random inputs (default: 0)", natural)


def inputs_of(model: Model, arguments: argparse.Namespace, *, is_recorded: bool = False) -> GivenInputs:
    """Return the inputs as ``ovir.compare`` takes them: None for random ones, and for those that a recording has.

    With a seed, the inputs for a recording are the random ones of ``ovir run --seed N``, which may have made it.
    """
    from ovir.analysis.random_inputs import random_inputs

    samples = arguments.samples
    if arguments.inputs is not None:
        refuse_single_inputs(arguments, "--samples")
        return input_files(model, arguments)
    if arguments.input and samples is not None:
        raise_usage_error("--samples draws random inputs: give either it or --input")
    refuse_folders(arguments)
    if arguments.input:
        return collect(model.clone(), arguments).feeds
    if is_recorded and arguments.seed is None:
        if arguments.save_inputs is not None:
            raise_usage_error("--save-inputs saves inputs that are given or random; the recording has its own")
        return None
    if arguments.save_inputs is not None:
        if samples is not None:
            raise_usage_error("--save-inputs saves one set of inputs, --samples draws several")
        return _saved(model, arguments)
    return random_inputs(model, arguments.seed) if is_recorded and samples is None else None


def random_note(arguments: argparse.Namespace, *, is_recorded: bool = False) -> str | None:
    """Return a line about the inputs that are drawn; None if none are, or ``collect`` prints them one by one."""
    if arguments.input or arguments.inputs is not None or (is_recorded and arguments.seed is None):
        return None
    return f"random inputs: {plural(arguments.samples or 1, 'set')}, seed {arguments.seed or 0}"


def _saved(model: Model, arguments: argparse.Namespace) -> GivenInputs:
    from ovir.analysis.random_inputs import random_inputs
    from ovir.io.tensor_files import save_npz

    arrays = random_inputs(model, arguments.seed or 0)
    save_npz(arguments.save_inputs, arrays, "write the inputs")
    return arrays
