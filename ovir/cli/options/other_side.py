"""Arguments that name the other side of a comparison, and the sides that they open."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovir.cli.options.arguments import (
    FileName,
    add_shared,
    open_model,
    options_of,
    parse_shapes,
    raise_usage_error,
)
from ovir.cli.options.inputs import inputs_of, random_note
from ovir.cli.terminal.output import print_diagnostics
from ovir.model import Model, read_model

if TYPE_CHECKING:
    from ovir.core.shapes import PartialShape
    from ovir.debugging.comparison_setup import Against, ComparisonOptions
    from ovir.debugging.sides import LayerMode


def add_other_side(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("other", type=FileName, nargs="?", metavar="OTHER.xml", help="a second model to compare with")
    options_of(parser, "comparison")(
        "--against SIDE",
        "openvino:DEVICE (with OTHER.xml: where that runs), onnx:FILE, or an .npz with tensors by name",
        FileName,
    )
    add_shared(parser, "config", "timeout")


def config_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the properties of the device."""
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise_usage_error(f"--config {text}: expected KEY=VALUE, as in INFERENCE_PRECISION_HINT=bf16")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


@dataclass(frozen=True)
class ComparedSides:
    """A model and how it is compared, from the options of a command."""

    model: Model
    options: ComparisonOptions
    note: str | None
    """A line about the inputs that are drawn, if any are."""


def open_sides(arguments: argparse.Namespace, mode: LayerMode | None = None) -> ComparedSides:
    """Return both sides of a comparison, with its inputs and options."""
    from ovir.analysis.tensor_comparison import Criterion
    from ovir.debugging.comparison_setup import ComparisonOptions  # commands with one side do not need it

    criterion = Criterion.of(arguments.rtol, arguments.atol, arguments.metric)
    config = config_of(arguments.config)
    against, device = _sides(arguments)
    model = open_model(arguments)
    print_diagnostics(model.diagnostics)
    if arguments.other is not None:
        against = open_other(arguments.other, model, arguments)
    recorded = is_recorded(against)
    inputs, samples, seed = inputs_of(model, arguments, is_recorded=recorded), arguments.samples, arguments.seed or 0
    options = ComparisonOptions(against, criterion, inputs, samples, seed, device, config, arguments.timeout, mode)
    return ComparedSides(model, options, random_note(arguments, is_recorded=recorded))


def _sides(arguments: argparse.Namespace) -> tuple[Against, str | None]:
    """Return the other side of the comparison, and the device for a second model."""
    other, against = arguments.other, arguments.against
    if other is None and against is None:
        raise_usage_error("there is nothing to compare with: give a second model, or --against", _WAYS)
    if other is None:
        return str(against), None
    if against is not None and not against.startswith("openvino"):
        raise_usage_error(f"--against {against}: a second model runs in ovir, or on openvino:DEVICE")
    return str(other), against


_WAYS = "as in --against openvino:CPU, --against onnx:model.onnx or --against recorded.npz"


def open_other(name: str, model: Model, arguments: argparse.Namespace) -> Against:
    """Return the other side that an argument names; a second model gets the shapes that are given for the first one."""
    if not name.lower().endswith(".xml"):
        return str(name)

    def wanted(other: Model) -> dict[int, PartialShape]:
        found = {}
        for index, shape in parse_shapes(model, arguments.shape).items():
            names = {model.inputs[index].layer.name, *model.inputs[index].names}
            own = (i for i, port in enumerate(other.inputs) if names & {port.layer.name, *port.names})
            found[next(own, index)] = shape
        return found

    other = read_model(name, shapes=wanted if arguments.shape else None, legacy_io=arguments.legacy_io)
    print_diagnostics(other.diagnostics)
    return other


def is_recorded(against: Against) -> bool:
    """Return whether the other side is a recording."""
    return (
        isinstance(against, str) and against.lower().endswith(".npz") and not against.startswith(("onnx:", "openvino"))
    )
