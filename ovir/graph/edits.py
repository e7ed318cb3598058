"""The edits of a model. Each one checks everything first: where it raises, nothing has changed.

Edits change layers, connections and names. They infer nothing: call ``Model.infer_shapes`` when the last one is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NoReturn

from ovir.diagnostics.codes import CYCLE, USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, NotFoundError
from ovir.diagnostics.spelling import did_you_mean
from ovir.graph.connections import LayerGraph
from ovir.graph.layers import Layer, Port, join, part, path_text
from ovir.graph.order import find_path, followers, state_followers

_WITH_STATE = ("ReadValue", "Assign")
_ENDS = ("Parameter", "Result")


class EditableGraph(LayerGraph):
    """A graph of layers with the edits that all others are made of.

    They raise InputError for arguments that do not fit the model, and ModelError for an edge that would close a cycle.
    """

    @property
    def next_id(self) -> int:
        """An id above those of all layers, and of all that there were since it was asked for first."""
        if self._next_id is None:
            self._next_id = max(self._by_id, default=-1) + 1
        return self._next_id

    # ----- connections

    def connect(self, source: Port, target: Port) -> None:
        """Feed an input port from an output port, in place of its source so far."""
        self._require_port(source, is_output=True)
        self._require_port(target, is_output=False)
        if target.source is not source:
            self._feed(source, [target])

    def disconnect(self, target: Port) -> None:
        """Take an input port's source away; until it has another one, the model cannot be inferred."""
        self._require_port(target, is_output=False)
        if target.source is not None:
            part(target)
            self._loosened()

    def move_readers(self, old: Port, new: Port, readers: Iterable[Port] | None = None) -> None:
        """Feed the readers of one output, or those of them that are given, from another output.

        A reader in the layer of ``new`` itself stays, so that a layer can be put behind the output that feeds it.
        """
        self._require_port(old, is_output=True)
        self._require_port(new, is_output=True)
        chosen = self._readers_of(old, readers)
        if new is not old:
            self._feed(new, [port for port in chosen if port.layer is not new.layer])

    # ----- layers

    def add_layer(self, layer: Layer, sources: Sequence[Port] = ()) -> Layer:
        """Add a layer that is in no model, its first inputs fed from ``sources``, and return it.

        It becomes the last in the order of the file.
        """
        self._require_new(layer)
        self._require_free_end(layer)
        self._require_sources(layer, sources)
        self._check_state(layer, sources, ())
        for source, target in zip(sources, layer.inputs, strict=False):
            join(source, target)
        self._enter(layer, len(self._file_order))
        return layer

    def insert_after(
        self, port: Port, layer: Layer, others: Sequence[Port] = (), *, readers: Iterable[Port] | None = None
    ) -> Layer:
        """Put a layer that is in no model between an output and its readers, or those of them that are given.

        The output feeds the layer's first input, ``others`` feed those behind it, and the readers read its first
        output. The tensor keeps its names.
        """
        self._require_port(port, is_output=True)
        self._require_new(layer)
        chosen = self._readers_of(port, readers)
        if not (layer.inputs and layer.outputs):
            self._refuse(f"{layer.title} needs an input and an output to be inserted", layer)
        self._require_sources(layer, [port, *others])
        for other in others:
            self._check_cycles(other, chosen)
        self._check_state(layer, [port, *others], chosen)
        for source, target in zip([port, *others], layer.inputs, strict=False):
            join(source, target)
        for reader in chosen:
            part(reader)
            join(layer.outputs[0], reader)
        self._enter(layer, self._file_order.index(port.layer) + 1)
        self._position = None
        return layer

    def insert_before(self, target: Port, layer: Layer, others: Sequence[Port] = ()) -> Layer:
        """Put a layer that is in no model on the connection that leads to an input port; see ``insert_after``."""
        self._require_port(target, is_output=False)
        if target.source is None:
            self._refuse(f"nothing feeds input {target.index} of {target.layer.title}", target.layer)
        return self.insert_after(target.source, layer, others, readers=[target])

    def remove_layer(self, layer: Layer, *, bypass: bool = False) -> None:
        """Remove a layer whose outputs nobody reads.

        With ``bypass`` one of them may be read: its readers then read what feeds the layer's first input.
        """
        self._require_layer(layer)
        self._require_free_end(layer)
        read = [port for port in layer.outputs if port.readers]
        if read and not bypass:
            reader = read[0].readers[0].layer
            self._refuse(f"{layer.title} cannot be removed: {reader.title} reads it", layer)
        if read:
            source = layer.inputs[0].source if layer.inputs else None
            if len(read) > 1 or source is None:
                why = f"{len(read)} of its outputs are read" if len(read) > 1 else "nothing feeds its first input"
                self._refuse(f"{layer.title} cannot be bypassed: {why}", layer)
            for port in read[0].readers:
                part(port)
                join(source, port)
        self._leave(layer)
        self._loosened()

    def replace_layer(self, old: Layer, new: Layer, sources: Sequence[Port] | None = None) -> Layer:
        """Put a layer that is in no model in the place of another, which is removed; return the new one.

        Its inputs are fed from ``sources``, or else from what feeds those of the old layer. The readers of each output
        of the old layer read the output of the new one at the same position. Both may have the same id.
        """
        self._require_layer(old)
        self._require_new(new, in_place_of=old)
        if new.type != old.type:
            self._require_free_end(old)
            self._require_free_end(new)
        fed = [port.source for port in old.inputs] if sources is None else list(sources)
        if len(fed) > len(new.inputs):
            self._refuse(f"{new.title} has {len(new.inputs)} inputs for {len(fed)} sources", new)
        for port in old.outputs[len(new.outputs) :]:
            if port.readers:
                message = f"{new.title} has no output {port.index}, which {port.readers[0].layer.title} reads"
                self._refuse(message, new)
        readers = [port for output in old.outputs for port in output.readers]
        for source in fed if sources is not None else ():
            assert source is not None
            self._require_port(source, is_output=True)
            if source.layer is old:
                self._refuse(f"{new.title} cannot be fed from the layer whose place it takes", new)
            self._check_cycles(source, readers)
        self._check_state(new, [source for source in fed if source is not None], readers)
        lines = [port.edge_line for port in old.inputs] if sources is None else []
        for source, target, line in zip_longest(fed, new.inputs[: len(fed)], lines):
            if source is not None:
                join(source, target, line)
        for port in readers:
            assert port.source is not None
            output, line = new.outputs[port.source.index], port.edge_line
            part(port)
            join(output, port, line)
        place = self._file_order.index(old)
        self._leave(old)
        self._enter(new, place)
        self._position = None
        return new

    # ----- names

    def rename_layers(self, names: Mapping[str, str]) -> None:
        """Give layers other names, by their present names. Names may be exchanged; no two layers get the same."""
        by_name: dict[str, Layer] = {}
        for layer in self._file_order:
            by_name.setdefault(layer.name, layer)
        self._check_names(names, Counter(layer.name for layer in self._file_order), "layer")
        renamed = [(by_name[old], new) for old, new in names.items()]
        for layer, new in renamed:
            layer.name = new
            _set_scopes(layer)

    def rename_tensors(self, names: Mapping[str, str]) -> None:
        """Give tensors other names, by one of their present names. Names may be exchanged; no two become the same."""
        ports = [port for layer in self._file_order for port in (*layer.inputs, *layer.outputs) if port.own_names]
        self._check_names(names, dict.fromkeys((name for port in ports for name in port.own_names), 1), "tensor")
        for port in ports:
            if not port.own_names.isdisjoint(names):
                port.own_names = frozenset(names.get(name, name) for name in port.own_names)

    def _check_names(self, names: Mapping[str, str], present: Mapping[str, int], kind: str) -> None:
        """Raise InputError unless names that are there become others; ``present`` counts what has each name."""
        taken = {name for name, count in present.items() if name not in names or count > 1}
        for old, new in names.items():
            if old not in present:
                hint = did_you_mean(old, present)
                raise NotFoundError(diagnose(USAGE, f"no {kind} is named {old!r}", Place(self.path), hint=hint))
            if not new:
                self._refuse(f"the new name of {kind} {old!r} is empty")
            if new in taken:
                self._refuse(f"{kind} {old!r} cannot be named {new!r}: another {kind} has that name")
            taken.add(new)

    # ----- checks

    def _require_layer(self, layer: Layer) -> None:
        if layer.owner is not self:
            self._refuse(f"{layer.title} is not in this model", layer)

    def _require_new(self, layer: Layer, in_place_of: Layer | None = None) -> None:
        if layer.owner is not None:
            self._refuse(f"{layer.title} is in a model already", layer)
        other = self._by_id.get(layer.id)
        if other is not None and other is not in_place_of:
            self._refuse(f"id {layer.id} is that of {other.title}", layer)
        if any(port.source is not None for port in layer.inputs) or any(port.readers for port in layer.outputs):
            self._refuse(f"the ports of {layer.title} are connected already", layer)

    def _require_free_end(self, layer: Layer) -> None:
        """The port map of a body counts its Parameters and Results, so that none may come or go."""
        if self.scope and layer.type in _ENDS:
            message = f"{layer.title} cannot be added to a body or removed from it: the port map would not fit"
            self._refuse(message, layer)

    def _require_port(self, port: Port, *, is_output: bool) -> None:
        kind, other = ("output", "input") if is_output else ("input", "output")
        if port.is_output is not is_output:
            self._refuse(f"an {kind} port is needed here, got {other} {port.index} of {port.layer.title}", port.layer)
        if port.layer.owner is not self:
            self._refuse(f"{kind} {port.index} of {port.layer.title} is not in this model", port.layer)

    def _require_sources(self, layer: Layer, sources: Sequence[Port]) -> None:
        if len(sources) > len(layer.inputs):
            self._refuse(f"{layer.title} has {len(layer.inputs)} inputs for {len(sources)} sources", layer)
        for source in sources:
            self._require_port(source, is_output=True)

    def _readers_of(self, port: Port, readers: Iterable[Port] | None) -> Sequence[Port]:
        if readers is None:
            return port.readers
        chosen = list(dict.fromkeys(readers))
        for reader in chosen:
            self._require_port(reader, is_output=False)
            if reader.source is not port:
                message = f"input {reader.index} of {reader.layer.title} does not read {port.layer.title}"
                self._refuse(message, reader.layer)
        return chosen

    def _check_cycles(self, source: Port, targets: Sequence[Port]) -> bool:
        """Raise ModelError if edges from ``source`` to these inputs would close a cycle.

        Return whether the present order of the layers is right with them, too.
        """
        position = self._positions
        start = position[source.layer]
        backward = [port.layer for port in targets if position[port.layer] <= start]
        if not backward:
            return True
        self._refuse_path(backward, source.layer, source.layer)
        return False

    def _check_state(self, layer: Layer, sources: Sequence[Port], readers: Sequence[Port]) -> None:
        """Raise ModelError if the order of a new ReadValue or Assign and its counterparts would close a cycle."""
        if layer.type not in _WITH_STATE:
            return
        variable = layer.attributes.get("variable_id")
        others = [
            other
            for other in self._file_order
            if other.type in _WITH_STATE
            and other.type != layer.type
            and other.attributes.get("variable_id") == variable
        ]
        if layer.type == "ReadValue":
            for source in sources:
                self._refuse_path(others, source.layer, layer)
        else:
            for other in others:
                self._refuse_path([port.layer for port in readers], other, layer)

    def _refuse_path(self, starts: Sequence[Layer], end: Layer, through: Layer) -> None:
        """Raise ModelError if a way leads from one of some layers to ``end``, which an edit would close to a cycle."""
        by_state = state_followers(self._file_order)
        path = find_path(starts, end, lambda layer: followers(layer, by_state))
        if path is None:
            return
        closed = path_text([*path, *([through] if through is not end else []), path[0]])
        message = f"the edit would close a cycle: {closed}"
        raise ModelError(diagnose(CYCLE, message, path[0].place))

    def _refuse(self, message: str, layer: Layer | None = None) -> NoReturn:
        raise InputError(diagnose(USAGE, message, Place(self.path) if layer is None else layer.place))

    # ----- changes, after all checks

    def _feed(self, source: Port, targets: Sequence[Port]) -> None:
        keeps_order = self._check_cycles(source, targets)
        loses_edges = any(port.source is not None for port in targets)
        for port in targets:
            part(port)
            join(source, port)
        if not keeps_order:
            self._position = None
        if loses_edges:
            self._loosened()
        else:
            self._changed()

    def _enter(self, layer: Layer, place: int) -> None:
        """Take in a layer whose ports are joined; a place other than the last needs another order."""
        layer.scope = self.scope
        _set_scopes(layer)
        self._file_order.insert(place, layer)
        self._by_id[layer.id] = layer
        layer.owner = self
        if self._next_id is not None:
            self._next_id = max(self._next_id, layer.id + 1)
        if self._position is not None:
            self._position[layer] = 1 + next(reversed(self._position.values()), -1)
        if layer.type in _WITH_STATE:
            self._position = None
        self._changed()

    def _leave(self, layer: Layer) -> None:
        """Let go of a layer that nobody reads."""
        for port in layer.inputs:
            part(port)
        self._file_order.remove(layer)
        del self._by_id[layer.id]
        layer.owner = None
        if self._position is not None:
            del self._position[layer]
        self._changed()


def _set_scopes(layer: Layer) -> None:
    """Let the layers in the bodies of a layer know its name."""
    pending = [layer]
    while pending:
        outer = pending.pop()
        for key, body in outer.bodies.items():
            for inner in body.layers:
                inner.scope = f"{outer.scope}{outer.name}/{key}/"
                pending.append(inner)
