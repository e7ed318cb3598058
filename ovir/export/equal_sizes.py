"""Unknown sizes that are equal in every run: those that layers need to be equal, and those of the inputs of texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from networkx.utils import UnionFind

from ovir.core.shapes import Dimension
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ops.base.layouts import declarations_of
from ovir.ops.movement import Concat
from ovir.ops.state import ReadValueBase

_OF_TEXTS = {"input_ids": "sequence", "token_type_ids": "sequence", "position_ids": "sequence", "attention_mask": "all"}
"""The inputs of texts, as exporters of transformers name them, with what their second dimensions count."""


def equal_sizes(model: LayerGraph) -> UnionFind:
    """Return the sets of symbols whose sizes are equal in every run, of a model and its bodies."""
    found = UnionFind()
    for dims in chain(*map(_needed, model.walk()), _of_texts(model)):
        found.union(*(dim.symbol for dim in dims if dim.symbol))
    return found


def _needed(layer: Layer) -> Iterator[list[Dimension]]:
    """Yield dimensions of the inputs that a layer refuses unless they are equal."""
    shapes = [port.shape for port in layer.inputs]
    op = layer.operator
    if isinstance(op, Concat):
        ranks = {shape.rank for shape in shapes}
        if len(ranks) == 1 and (rank := ranks.pop()) is not None:
            yield from ([shape[i] for shape in shapes] for i in range(rank) if i != op.axis % rank)
    elif op is not None and op.takes:
        declared = next((item for item in declarations_of(op) if item.allows(len(shapes))), None)
        sizes: dict[str, list[Dimension]] = defaultdict(list)
        for shape, (_, tensor) in zip(shapes, declared.named(len(shapes)) if declared else (), strict=False):
            if shape.rank is not None and (layout := tensor.layout_of(shape.rank)) is not None:
                for i, axis in enumerate(layout.axes):
                    place = i if i < layout.place else i - len(layout.axes)
                    sizes[axis.name].append(shape[place])
        sizes.pop("", None)
        yield from sizes.values()


def _of_texts(model: LayerGraph) -> Iterator[list[Dimension]]:
    """Yield the dimensions that the inputs of texts share.

    The mask also covers earlier tokens if the model has these, as states or as further inputs, and its length is
    another one then.
    """
    inputs = {port.any_name: port.shape for port in model.inputs}
    has_states = any(isinstance(layer.operator, ReadValueBase) for layer in model.walk())
    has_past = has_states or not inputs.keys() <= _OF_TEXTS.keys()
    sizes: dict[str, list[Dimension]] = defaultdict(list)
    for name, shape in inputs.items():
        if name in _OF_TEXTS and shape.rank == 2:
            sizes["batch"].append(shape[0])
            sizes[_OF_TEXTS[name] if has_past else "sequence"].append(shape[1])
    yield from sizes.values()
