"""Opening a model for commands that describe it: faults and missing weights do not end them."""

from __future__ import annotations

import argparse

from ovir.checks.recovering import Recovered, read_recovering
from ovir.cli.arguments import misused, parse_shapes
from ovir.cli.output import complain_of


def add_no_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-weights", action="store_true", help="look at the topology only; no .bin is needed")


def open_recovering(arguments: argparse.Namespace, *, legacy_io: bool = False) -> Recovered:
    """Return the model that the arguments name, in the shapes that they give, and say what is wrong with it."""
    if arguments.weights is not None and arguments.no_weights:
        misused("--weights gives weights, and --no-weights says that none are to be looked at: give one of them")
    recovered = read_recovering(
        arguments.model, arguments.weights, need_weights=not arguments.no_weights, legacy_io=legacy_io
    )
    if shapes := parse_shapes(recovered.model, arguments.shape):
        recovered.reshape(shapes)
    complain_of((*recovered.errors, *recovered.model.diagnostics))
    return recovered
