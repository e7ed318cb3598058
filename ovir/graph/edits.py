"""The edits of a model. Each one checks all first; where it raises, nothing has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from ovir.diagnostics.codes import CYCLE, USAGE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, ModelError
from ovir.graph.connections import LayerGraph
from ovir.graph.layers import Layer, Port, join, part, path_text
from ovir.graph.order import find_path, followers, state_followers

_WITH_STATE = ("ReadValue", "Assign")


class EditableGraph(LayerGraph):
    """A graph of layers with the edits that all others are made of."""

    @property
    def next_id(self) -> int:
        """An id above those of all layers."""
        return max(self._by_id, default=-1) + 1

    def connect(self, source: Port, target: Port) -> None:
        """Feed an input port from an output port, in place of its source so far.

        InputError for ports of other models, or of the wrong kind; ModelError for an edge that would close a cycle.
        """
        self._require_port(source, is_output=True)
        self._require_port(target, is_output=False)
        if target.source is source:
            return
        keeps_order = self._check_cycles(source, [target])
        had_source = target.source is not None
        part(target)
        join(source, target)
        self._reconnected(keeps_order, had_source)

    def disconnect(self, target: Port) -> None:
        """Take an input port's source away; until it has another one, the model cannot be inferred."""
        self._require_port(target, is_output=False)
        if target.source is None:
            return
        part(target)
        self._loosened()

    def add_layer(self, layer: Layer, sources: Sequence[Port] = ()) -> Layer:
        """Add a layer that is in no model, its inputs fed from ``sources``, and return it.

        It becomes the last in the order of the file. InputError where another layer has its id.
        """
        if layer.owner is not None:
            self._refuse(f"{layer.title} is in a model already", layer)
        if layer.id in self._by_id:
            self._refuse(f"id {layer.id} is that of {self._by_id[layer.id].title}", layer)
        if any(port.source is not None for port in layer.inputs) or any(port.readers for port in layer.outputs):
            self._refuse(f"the ports of {layer.title} are connected already", layer)
        if len(sources) > len(layer.inputs):
            self._refuse(f"{len(sources)} sources are given for the {len(layer.inputs)} inputs of {layer.title}", layer)
        for source in sources:
            self._require_port(source, is_output=True)
        for source, target in zip(sources, layer.inputs, strict=False):
            join(source, target)
        self._file_order.append(layer)
        self._by_id[layer.id] = layer
        layer.owner = self
        if self._position is not None:
            self._position[layer] = 1 + max(self._position.values(), default=-1)
        if layer.type in _WITH_STATE:
            self._position = None
        self._changed()
        return layer

    def move_readers(self, old: Port, new: Port, readers: Iterable[Port] | None = None) -> None:
        """Feed the readers of one output, or some of them, from another one.

        Readers in the layer of ``new`` itself stay, so that a layer can be put behind the output that feeds it.
        """
        chosen = [port for port in (old.readers if readers is None else readers) if port.layer is not new.layer]
        for port in chosen:
            self._require_port(port, is_output=False)
        self._require_port(old, is_output=True)
        self._require_port(new, is_output=True)
        if old is new:
            return
        keeps_order = self._check_cycles(new, chosen)
        for port in chosen:
            part(port)
            join(new, port)
        self._reconnected(keeps_order, bool(chosen))

    # ----- checks

    def _require_port(self, port: Port, *, is_output: bool) -> None:
        kind = "output" if is_output else "input"
        if port.is_output is not is_output:
            other = "input" if is_output else "output"
            self._refuse(f"an {kind} port is needed here, got {other} {port.index} of {port.layer.title}", port.layer)
        if port.layer.owner is not self:
            self._refuse(f"{kind} {port.index} of {port.layer.title} is not in this model", port.layer)

    def _check_cycles(self, source: Port, targets: Sequence[Port]) -> bool:
        """Raise ModelError if edges from ``source`` to these inputs would close a cycle.

        Return whether the present order of the layers is right with them, too.
        """
        position = self._positions
        start = position[source.layer]
        backward = [port for port in targets if position[port.layer] <= start]
        if not backward:
            return True
        by_state = state_followers(self._file_order)
        layers = [port.layer for port in backward]
        path = find_path(layers, source.layer, lambda layer: followers(layer, by_state))
        if path is None:
            return False
        target = path[0]
        shown = path_text([*path, target])
        message = f"an edge from {source.layer.title} to {target.title} would close a cycle: {shown}"
        raise ModelError(diagnose(CYCLE, message, target.place))

    def _reconnected(self, keeps_order: bool, lost_edges: bool) -> None:
        if not keeps_order:
            self._position = None
        if lost_edges:
            self._loosened()
        else:
            self._changed()

    def _refuse(self, message: str, layer: Layer) -> NoReturn:
        raise InputError(diagnose(USAGE, message, layer.place))
