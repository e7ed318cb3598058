"""Arguments for several sets of inputs, which ``compare``, ``bisect`` and ``precision`` share."""

from __future__ import annotations

import argparse
import os

from ovir.analysis.feeds import random_inputs
from ovir.cli.arguments import natural, positive, raise_usage_error
from ovir.cli.run_inputs import add_inputs, collect, save_inputs
from ovir.debugging.input_sets import Inputs
from ovir.diagnostics.text import plural
from ovir.graph.model import Model


def add_input_sets(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    parser.add_argument("--samples", type=positive, metavar="N", help="use N sets of random inputs (default: 1)")
    parser.add_argument("--seed", type=natural, metavar="N", help="seed of the first random inputs (default: 0)")


def inputs_of(model: Model, arguments: argparse.Namespace, *, is_recorded: bool = False) -> Inputs:
    """Return the inputs as ``ovir.compare`` takes them: None for random ones, and for those that a recording has.

    With a seed, the inputs for a recording are the random ones of ``ovir run --seed N``, which may have made it.
    """
    samples = arguments.samples
    if arguments.input and samples is not None:
        raise_usage_error("--samples draws random inputs: give either it or --input")
    if len(arguments.input) == 1 and os.path.isdir(arguments.input[0]):
        if arguments.save_inputs is not None:
            raise_usage_error("--save-inputs saves one set of inputs, a folder has several")
        return str(arguments.input[0])
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
    if arguments.input or (is_recorded and arguments.seed is None):
        return None
    return f"random inputs: {plural(arguments.samples or 1, 'set')}, seed {arguments.seed or 0}"


def _saved(model: Model, arguments: argparse.Namespace) -> Inputs:
    from ovir.io.tensor_files import save_npz

    arrays = random_inputs(model, arguments.seed or 0)
    save_npz(arguments.save_inputs, arrays)
    return arrays
