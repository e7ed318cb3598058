"""Arguments for many inputs, which several commands share."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ovir.cli.arguments import file_name, natural, positive, raise_usage_error
from ovir.cli.output import print_message
from ovir.cli.run_inputs import add_inputs, collect, preparation, require_images, save_inputs
from ovir.diagnostics.wording import escaped, plural
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.debugging.sides import Inputs
    from ovir.io.input_files import InputFile


def add_input_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inputs",
        type=file_name,
        metavar="FOLDER",
        help="many inputs: a folder of .npz, .npy or image files, a pattern in quotes ('data/**/*.jpg'), or a list.txt "
        "with a file in each line",
    )


def input_files(arguments: argparse.Namespace, *, without: str | None = None) -> list[InputFile]:
    """Return the files that ``--inputs`` names, apart from what is in ``without``; print how many others there are."""
    from ovir.io.images import ENDINGS
    from ovir.io.input_files import find_inputs_and_others

    files, others = find_inputs_and_others(arguments.inputs, preparation(arguments), without=without)
    if others:
        ignored = "1 other file is ignored" if len(others) == 1 else f"{len(others):,} other files are ignored"
        print_message(f"{escaped(arguments.inputs)}: {ignored}, such as {escaped(os.path.basename(others[0]))}")
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
    add_inputs(parser)
    add_input_files(parser)
    parser.add_argument("--samples", type=positive, metavar="N", help="use N sets of random inputs (default: 1)")
    parser.add_argument("--seed", type=natural, metavar="N", help="seed of the first random inputs (default: 0)")


def inputs_of(model: Model, arguments: argparse.Namespace, *, is_recorded: bool = False) -> Inputs:
    """Return the inputs as ``ovir.compare`` takes them: None for random ones, and for those that a recording has.

    With a seed, the inputs for a recording are the random ones of ``ovir run --seed N``, which may have made it.
    """
    from ovir.analysis.random_inputs import random_inputs

    samples = arguments.samples
    if arguments.inputs is not None:
        refuse_single_inputs(arguments, "--samples")
        return input_files(arguments)
    if arguments.input and samples is not None:
        raise_usage_error("--samples draws random inputs: give either it or --input")
    refuse_folders(arguments)
    if arguments.input:
        given = collect(model.clone(), arguments)
        if arguments.save_inputs is not None:
            save_inputs(arguments.save_inputs, model, given)
        return given.feeds
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


def _saved(model: Model, arguments: argparse.Namespace) -> Inputs:
    from ovir.analysis.random_inputs import random_inputs
    from ovir.io.tensor_files import save_npz

    arrays = random_inputs(model, arguments.seed or 0)
    save_npz(arguments.save_inputs, arrays, "write the inputs")
    return arrays
