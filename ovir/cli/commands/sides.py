"""The sides of a comparison, which several commands open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovir.cli.options.comparison import OtherSideOptions
from ovir.cli.options.inputs import InputSetOptions
from ovir.cli.options.model import ModelOptions, parse_shapes
from ovir.cli.terminal.output import print_diagnostics
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.core.shapes import PartialShape
    from ovir.debugging.comparison_setup import Against, ComparisonOptions
    from ovir.debugging.sides import LayerMode


@dataclass(frozen=True)
class ComparedSides:
    """A model and how it is compared, from the options of a command."""

    model: Model
    options: ComparisonOptions
    note: str | None
    """A line about the inputs that are drawn, if any are."""


def open_sides(
    first: ModelOptions,
    other: OtherSideOptions,
    sets: InputSetOptions,
    mode: LayerMode | None = None,
    repeat: int | None = None,
) -> ComparedSides:
    """Return both sides of a comparison, with its inputs and options."""
    from ovir.debugging.comparison_setup import ComparisonOptions  # `ovir --help` does not need it

    criterion, config = other.criterion, other.properties
    name, device = other.sides()
    model = first.open()
    against = name if other.other is None else open_other(name, model, first)
    recorded = is_recorded(against)
    inputs = sets.inputs_of(model, is_recorded=recorded)
    options = ComparisonOptions(
        *(against, criterion, inputs, sets.samples, sets.seed or 0, device, config, other.timeout, mode),
        explain=other.explain,
        repeat=repeat,
    )
    return ComparedSides(model, options, sets.note(is_recorded=recorded))


def open_other(name: str, model: Model, first: ModelOptions) -> Against:
    """Return the other side of a name; a second model gets the shapes that are given for the first one."""
    if not name.lower().endswith(".xml"):
        return str(name)

    def wanted(other: Model) -> dict[int, PartialShape]:
        found = {}
        for index, shape in parse_shapes(model, first.shape).items():
            names = {model.inputs[index].layer.name, *model.inputs[index].names}
            own = (i for i, port in enumerate(other.inputs) if names & {port.layer.name, *port.names})
            found[next(own, index)] = shape
        return found

    other = first.read_file(name, None, wanted if first.shape else None)
    print_diagnostics(other.diagnostics)
    return other


def is_recorded(against: Against) -> bool:
    """Return whether the other side is a recording."""
    return (
        isinstance(against, str) and against.lower().endswith(".npz") and not against.startswith(("onnx:", "openvino"))
    )
