"""What edits change: the layers of a model, and its constants with their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ovir.editing.transaction import editing
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ops.infrastructure import Const


@dataclass
class Effect:
    """How many layers edits have added, removed and changed, bodies included, and the constants before and after.

    A layer is changed if it has another name, attribute, number, runtime information or source. The numbers are set at
    the end of a block of ``Model.editing``; ``str`` gives them as a line of text.
    """

    added: int = 0
    removed: int = 0
    changed: int = 0
    constants_before: int = 0
    constants_after: int = 0
    bytes_before: int = 0
    """The bytes of the constants before the edits, as a file would hold them."""
    bytes_after: int = 0

    def __str__(self) -> str:
        counts = {"added": self.added, "removed": self.removed, "changed": self.changed}
        layers = [f"{count:,} {what}" for what, count in counts.items() if count]
        constants = _arrow(f"{self.constants_before:,}", f"{self.constants_after:,}")
        sizes = _arrow(f"{self.bytes_before:,}", f"{self.bytes_after:,}")
        return f"layers: {', '.join(layers) or 'none changed'}; constants: {constants}, {sizes} bytes"

    def to_dict(self) -> dict[str, int]:
        """Return the numbers for JSON."""
        return asdict(self)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


Contents = Mapping[Layer, tuple[Any, ...]]
"""The layers of a model and its bodies, each with what edits may change of it."""


def contents_of(model: LayerGraph) -> Contents:
    """Return what an edit may change, for ``effect_of``."""
    return {layer: (_state(layer), bytes_of(layer)) for layer in model.walk()}


def effect_of(before: Contents, after: Contents, written: LayerGraph | None = None) -> Effect:
    """Return what has changed. If ``written`` is given, its layers were made of those of ``after`` for a file."""
    common = before.keys() & after.keys()
    changed = sum(before[layer][0] != after[layer][0] for layer in common)
    final = after if written is None else contents_of(written)
    return Effect(
        len(final) - len(common),
        len(before) - len(common),
        changed,
        *(sum(layer.type == "Const" for layer in contents) for contents in (before, final)),
        *(sum(size for _, size in contents.values()) for contents in (before, final)),
    )


@contextmanager
def measured(model: LayerGraph) -> Iterator[Effect]:
    """Carry out the edits of a block as ``editing`` does, and give the effect its numbers at the end."""
    before, effect = contents_of(model), Effect()
    with editing(model):
        yield effect
    vars(effect).update(vars(effect_of(before, contents_of(model))))


def bytes_of(layer: Layer) -> int:
    """Return the bytes of the numbers of a Const; 0 for another layer."""
    if not isinstance(layer.operator, Const):
        return 0
    return layer.operator.element_type.stored_bytes(layer.outputs[0].shape.size().lower)


def _state(layer: Layer) -> tuple[Any, ...]:
    info = layer.rt_info_source
    names = [port.own_names for port in layer.outputs]
    return layer.name, layer.operator, [port.source for port in layer.inputs], names, info
