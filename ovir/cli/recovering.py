"""Opening a model for commands that describe it: faults and missing weights do not end them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovir.checks.recovering import Recovered, read_recovering
from ovir.cli.arguments import parse_shapes, raise_usage_error, shape_hints
from ovir.cli.output import print_diagnostics, print_message
from ovir.core.shapes import PartialShape


def add_no_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-weights", action="store_true", help="read only the topology; no .bin is needed")


def open_recovering(arguments: argparse.Namespace, *, legacy_io: bool = False) -> Recovered:
    """Return the model that the arguments name, in the shapes that they give, and say what is wrong with it."""
    if arguments.weights is not None and arguments.no_weights:
        raise_usage_error("--weights and --no-weights exclude each other")
    recovered = read_recovering(
        arguments.model, arguments.weights, need_weights=not arguments.no_weights, legacy_io=legacy_io
    )
    states, texts = _state_shapes(recovered, arguments.shape)
    shapes = parse_shapes(recovered.model, texts)
    hints = []
    if shapes or states:
        hints = shape_hints(recovered.model, shapes)
        worked = not recovered.errors
        recovered.reshape(shapes, states)
        hints = hints if worked and recovered.errors else []
    print_diagnostics((*recovered.errors, *recovered.model.diagnostics))
    for hint in hints:
        print_message(hint)
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
            raise_usage_error(f"--shape {text}: state '{name}' has two shapes")
        try:
            shapes[name] = PartialShape.parse(shape)
        except ValueError as error:
            raise_usage_error(f"--shape {text}: {error}")
    return shapes, others
