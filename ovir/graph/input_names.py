"""Names that stand for one input of a model each."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.graph.layers import Port
from ovir.graph.model import Model


def distinct_names(inputs: Sequence[Port]) -> list[str]:
    """Return a name for each input that stands for no other: a tensor name, or else the number of its position."""
    names: list[str] = []
    for i, port in enumerate(inputs):
        others = {name for k, other in enumerate(inputs) if k != i for name in (*other.names, other.layer.name)}
        own = [name for name in (port.any_name, *sorted(port.names), port.layer.name) if name and name not in others]
        names.append(own[0] if own else str(i))
    return names


def find_input(model: Model, name: str) -> int:
    """Return the position of an input, given by name or by the number of its position; raise NotFoundError."""
    known = any(name in port.names or name == port.layer.name for port in model.inputs)
    return model.input_index(int(name) if name.isdecimal() and not known else name)
