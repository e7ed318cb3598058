"""Simpler models that compute the same: known tensors are computed, and layers that do nothing are left out.

A rewrite is a function in a table. It gets a layer and returns the tensors that take the place of its outputs, by their
positions; no tensors if it has changed an input of the layer; or None if it does not apply.
It only uses what holds in every run: inferred types, symbols of unknown sizes, and known values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from ovir.building.creation import create_layer
from ovir.diagnostics.diagnostic import in_place_of
from ovir.editing.constant_edits import fold_constants, remove_unread
from ovir.editing.inlining import Tensors, initial_state, known_branch, known_iteration
from ovir.editing.layer_edits import NewLayers, feeds_result
from ovir.editing.model_edits import prune
from ovir.editing.proof import ProvenEdit, proven
from ovir.editing.transaction import owner_of, with_types
from ovir.graph.constant_layers import is_function
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, name_order, sources_of
from ovir.ops.infrastructure import Const

MOST_COMPARED = 1024
"""The most elements of constants whose values are compared, to find equal layers."""

Rewrite = Callable[[Layer], Tensors | None]


def fold(model: LayerGraph, decompress: bool, verify: bool) -> ProvenEdit:
    """Compute values that are known before any run; see ``Model.fold_constants``."""
    return _rewrite_all(model, FOLDING, decompress, verify)


def simplify(model: LayerGraph, verify: bool) -> ProvenEdit:
    """Leave out layers without effect; see ``Model.simplify``."""
    return _rewrite_all(model, FOLDING | SIMPLIFYING | {"layer that equals another": equal_layers()}, False, verify)


def _rewrite_all(model: LayerGraph, rewrites: Mapping[str, Rewrite], decompress: bool, verify: bool) -> ProvenEdit:
    with proven(model, verify) as edit:
        constants: list[Layer] = []
        changes: defaultdict[str, list[str]] = defaultdict(list)
        while True:
            with_types(model)
            changes["layer that no result needs"] += _removed(model, lambda: prune(model))
            rewritten = [item for graph in model.graphs() for item in _rewrite(graph, rewrites)]
            for what, key in rewritten:
                changes[what].append(key)
            edit.folded += _removed(model, lambda: constants.extend(fold_constants(model, decompress)))
            if not rewritten:
                break
        edit.layers = [layer for layer in constants if layer.owner is not None]
        edit.changes = {what: keys for what, keys in changes.items() if keys}
    return edit


def _removed(model: LayerGraph, change: Callable[[], object]) -> list[str]:
    """Carry out a change; return the keys of the layers that it has removed."""
    keys = {layer: layer.key for layer in model.walk()}
    change()
    return [key for layer, key in keys.items() if layer.owner is None]


def _rewrite(graph: LayerGraph, rewrites: Mapping[str, Rewrite]) -> Iterator[tuple[str, str]]:
    """Rewrite the layers of a model without its bodies; yield the kinds of rewriting, with the keys of the layers."""
    for layer, key in {layer: layer.key for layer in graph.layers}.items():
        for what, rewrite in rewrites.items():
            if layer.owner is not graph:
                break
            sources = sources_of(layer)
            tensors = rewrite(layer)
            if tensors is not None and _replace(layer, tensors):
                remove_unread(graph, sources)
                yield what, key


def _replace(layer: Layer, tensors: Tensors) -> bool:
    """Let the readers of a layer read other tensors, and remove it; return False if it must stay.

    Outputs of a model remain tensors of their own: no other output, and no input.
    """
    graph = owner_of(layer)
    for index, new in tensors.items():
        old = layer.outputs[index]
        if new is not None and would_merge_ends(old, new):
            if layer.operator is not None and layer.operator.pure and not layer.bodies:
                return False
            new = _copied(new)
        if new is not None:
            new.own_names, old.own_names = joined_names(old, new), frozenset()
            graph.move_readers(old, new)
    if tensors:
        graph.remove_layer(layer)
    return True


def would_merge_ends(old: Port, new: Port) -> bool:
    """Return whether an output of the model would become the same tensor as another output or an input."""
    return owner_of(old.layer).holder is None and feeds_result(old) and (feeds_result(new) or _is_input(new))


def _is_input(port: Port) -> bool:
    return port.layer.type == "Parameter"


def _copied(port: Port) -> Port:
    """Return a tensor that equals another one, of a new layer after it."""
    graph = owner_of(port.layer)
    with in_place_of(port.layer.place):
        new = create_layer("Convert", [port], {"destination_type": port.element_type}, version="opset1")
    return graph.add_layer(new, NewLayers(graph, new).include([])).outputs[0]


def joined_names(old: Port, new: Port) -> frozenset[str]:
    """Return the names of a tensor that takes the place of another one: those of both, but inputs and outputs still
    show the name that they have shown."""
    graph = owner_of(new.layer)
    seen = [reader for reader in (*old.readers, *new.readers) if reader.layer.type == "Result" and graph.holder is None]
    seen += [new] if _is_input(new) else []
    names = old.own_names | new.own_names
    for name in [port.any_name if port.names else None for port in seen]:
        names = frozenset(() if name is None else (n for n in names if name_order(n) >= name_order(name)))
    return names


# --------------------------------------------------------------------------- rewrites


def unchanged(layer: Layer) -> Tensors | None:
    """Return the input of a layer whose output certainly equals it."""
    op = layer.operator
    if op is None or not layer.inputs or len(layer.outputs) != 1:
        return None
    why = op.why_unchanged([port.type for port in layer.inputs], layer.outputs[0].type)
    return None if why is None else {0: layer.inputs[0].source}


def transposed_back(layer: Layer) -> Tensors | None:
    """Return the tensor before permutations of axes that together change nothing."""
    axes: list[int] = []
    for step, before in _chain(layer, lambda other: _permutation(other) is not None):
        own = _permutation(step) or []
        axes = [own[axis] for axis in axes] if axes else own
        if axes == sorted(axes):
            return {0: before}
    return None


def reshaped_back(layer: Layer) -> Tensors | None:
    """Return the tensor before reshapes that lead back to its shape."""
    chain = _chain(layer, _rearranges)
    return next(({0: t} for _, t in chain if t.shape.is_sure_to_equal(layer.outputs[0].shape)), None)


def at_once(layer: Layer) -> Tensors | None:
    """Let a layer that only converts or arranges elements read the tensor before another such layer, where the result
    stays the same."""
    kind = _converts if _converts(layer) else _rearranges
    tensors = [tensor for _, tensor in islice(_chain(layer, kind), 2)]
    if len(tensors) < 2 or layer.operator is None:
        return None
    types = [port.type for port in layer.inputs]
    if not layer.operator.is_same_for(tensors[1].type, types, layer.outputs[0].type):
        return None
    owner_of(layer).connect(tensors[1], layer.inputs[0])
    return {}


def _chain(layer: Layer, passes: Callable[[Layer], bool]) -> Iterator[tuple[Layer, Port]]:
    """Yield a layer and those before it along their first inputs, while they pass a test; each with its input."""
    while passes(layer) and (source := layer.inputs[0].source) is not None:
        yield layer, source
        layer = source.layer


def _permutation(layer: Layer) -> list[int] | None:
    return None if layer.operator is None else layer.operator.permutation([port.type for port in layer.inputs])


def equal_layers() -> Rewrite:
    """Return the rewrite that replaces a layer by an earlier one of the same operation with the same attributes and
    inputs, if both are functions."""
    first: dict[object, Layer] = {}

    def rewrite(layer: Layer) -> Tensors | None:
        sources = [port.source.layer.type for port in layer.inputs if port.source is not None]
        if not set(sources) - {"Const"} or not layer.outputs or not is_function(layer):
            return None
        key = _identity(layer)
        other = first.setdefault(key, layer)
        if other is not layer and (other.owner is None or _identity(other) != key):
            first[key] = other = layer  # the other one was replaced, or reads something else now
        return None if other is layer else dict(enumerate(other.outputs))

    return rewrite


def _identity(layer: Layer) -> object:
    """Return a key; layers with equal keys compute the same."""
    op = layer.operator
    assert op is not None
    types = (item for port in layer.outputs for item in (port.element_type, port.shape))
    return (type(op), *(getattr(op, field) for field in op.fields), *map(_tensor, layer.inputs), *types)


def _tensor(port: Port) -> object:
    """Return the tensor that an input reads, or the value of a small constant."""
    source = port.source
    if source is None or not isinstance(source.layer.operator, Const) or source.shape.size().lower > MOST_COMPARED:
        return source
    value = source.type.value
    return source if value is None else (source.element_type, source.shape, value.identity)


def _rearranges(layer: Layer) -> bool:
    return layer.operator is not None and layer.operator.rearranges


def _converts(layer: Layer) -> bool:
    return layer.operator is not None and layer.operator.converts and len(layer.inputs) == 1


FOLDING: dict[str, Rewrite] = {
    "If whose condition is known": known_branch,
    "loop that runs once or never": known_iteration,
    "ReadValue that nothing assigns": initial_state,
}
SIMPLIFYING: dict[str, Rewrite] = {
    "layer that does nothing": unchanged,
    "Transpose back": transposed_back,
    "reshape back": reshaped_back,
    "Convert or reshape of another": at_once,
}
