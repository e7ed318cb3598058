"""Opening a model for commands that describe it: faults and missing weights do not end them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovir.checks.recovering import Recovered, read_recovering
from ovir.cli.arguments import misused, parse_shapes
from ovir.cli.output import complain_of
from ovir.core.shapes import PartialShape


def add_no_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-weights", action="store_true", help="look at the topology only; no .bin is needed")


def open_recovering(arguments: argparse.Namespace, *, legacy_io: bool = False) -> Recovered:
    """Return the model that the arguments name, in the shapes that they give, and say what is wrong with it."""
    if arguments.weights is not None and arguments.no_weights:
        misused("--weights gives weights, and --no-weights says that none are to be looked at: give one of them")
    recovered = read_recovering(
        arguments.model, arguments.weights, need_weights=not arguments.no_weights, legacy_io=legacy_io
    )
    states, texts = _state_shapes(recovered, arguments.shape)
    shapes = parse_shapes(recovered.model, texts)
    if shapes or states:
        recovered.reshape(shapes, states)
    complain_of((*recovered.errors, *recovered.model.diagnostics))
    return recovered


def _state_shapes(recovered: Recovered, texts: Sequence[str]) -> tuple[dict[str, PartialShape], list[str]]:
    """Return the shapes that are given for states by name, and the texts that are for inputs."""
    inputs = {name for port in recovered.model.inputs for name in (*port.names, port.layer.name)}
    states = recovered.states.keys() - inputs
    shapes: dict[str, PartialShape] = {}
    others = []
    for text in texts:
        splits = ((text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "=")
        name, shape = next((split for split in splits if split[0] in states), (None, ""))
        if name is None:
            others.append(text)
            continue
        if name in shapes:
            misused(f"--shape {text}: state '{name}' has two shapes")
        try:
            shapes[name] = PartialShape.parse(shape)
        except ValueError as error:
            misused(f"--shape {text}: {error}")
    return shapes, others
