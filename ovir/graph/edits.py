"""The primitive edits of a model. Each edit checks everything first; if it raises, nothing has changed.

They do not infer: call ``Model.infer_shapes`` after the last one, or put them into a block of ``Model.editing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from ovir.graph.connections import set_scopes
from ovir.graph.edit_checks import EditChecks
from ovir.graph.layers import Layer, Port, join, separate


class EditableGraph(EditChecks):
    """A graph of layers with the primitive edits from which all others can be composed.

    Edits raise InputError for arguments that do not match the model, and ModelError for an edge that would close a
    cycle.
    """

    @property
    def next_id(self) -> int:
        """Return an id that no layer has, and that none has had since this property was first read."""
        if self._next_id is None:
            self._next_id = max(self._by_id, default=-1) + 1
        return self._next_id

    def has_id(self, number: int) -> bool:
        """Return whether a layer of this model, bodies excluded, has this id."""
        return number in self._by_id

    # ----- connections

    def connect(self, source: Port, target: Port) -> None:
        """Connect an input port with an output port; this replaces the source that the input had."""
        self.prepare_change()
        self._require_port(source, is_output=True)
        self._require_port(target, is_output=False)
        if target.source is not source:
            self._feed(source, [target])

    def disconnect(self, target: Port) -> None:
        """Remove the source of an input port; the model cannot be inferred until the port has a source again."""
        self.prepare_change()
        self._require_port(target, is_output=False)
        if target.source is not None:
            separate(target)
            self._clear_derived()

    def move_readers(self, old: Port, new: Port, readers: Iterable[Port] | None = None) -> None:
        """Make all readers of output ``old``, or only ``readers``, read output ``new`` instead.

        A reader that belongs to the layer of ``new`` keeps reading ``old``.
        """
        self.prepare_change()
        self._require_port(old, is_output=True)
        self._require_port(new, is_output=True)
        chosen = self._readers_of(old, readers)
        if new is not old:
            self._feed(new, [port for port in chosen if port.layer is not new.layer])

    # ----- layers

    def add_layer(self, layer: Layer, sources: Sequence[Port] = ()) -> Layer:
        """Add a layer that belongs to no model, connect its first inputs with ``sources``, and return it.

        The layer becomes the last one in the order of the file.
        """
        self.prepare_change()
        self._require_new(layer)
        self._require_free_end(layer)
        self._require_sources(layer, sources)
        self._check_state(layer, sources, ())
        for source, target in zip(sources, layer.inputs, strict=False):
            join(source, target)
        self._include(layer)
        return layer

    def insert_layer_after(
        self, port: Port, layer: Layer, others: Sequence[Port] = (), *, readers: Iterable[Port] | None = None
    ) -> Layer:
        """Insert a layer between an output and its readers, or only ``readers``, and return the layer.

        The layer must belong to no model. ``port`` feeds its first input, ``others`` feed the inputs after it. The
        readers then read its first output. The tensor names stay with ``port``. ``insert_after`` also takes names and
        new layers that are connected, and infers.
        """
        self.prepare_change()
        self._require_port(port, is_output=True)
        self._require_new(layer)
        chosen = self._readers_of(port, readers)
        if not (layer.inputs and layer.outputs):
            self._refuse("the layer needs an input and an output to be inserted", layer)
        self._require_sources(layer, [port, *others])
        for other in others:
            self._check_cycles(other, chosen)
        self._check_state(layer, [port, *others], chosen)
        for source, target in zip([port, *others], layer.inputs, strict=False):
            join(source, target)
        for reader in chosen:
            separate(reader)
            join(layer.outputs[0], reader)
        self._include(layer, behind=port.layer)
        return layer

    def remove_layer(self, layer: Layer, *, bypass: bool = False) -> None:
        """Remove a layer whose outputs have no readers.

        With ``bypass``, one output may have readers; they then read the source of the layer's first input. ``remove``
        does this, keeps the names of outputs, and infers.
        """
        self.prepare_change()
        self._require_layer(layer)
        self._require_free_end(layer)
        read = [port for port in layer.outputs if port.readers]
        if read and not bypass:
            self._refuse(f"the layer cannot be removed: {read[0].readers[0].layer.title} reads it", layer)
        if read and not layer.inputs:
            reader = read[0].readers[0].layer.title
            self._refuse(f"the layer cannot be removed: {reader} reads it, and it has no input to read instead", layer)
        if read:
            source = layer.inputs[0].source
            if len(read) > 1 or source is None:
                why = f"{len(read)} of its outputs have readers" if len(read) > 1 else "its first input has no source"
                self._refuse(f"the layer cannot be bypassed: {why}", layer)
            for port in read[0].readers:
                separate(port)
                join(source, port)
        self._exclude(layer)

    def replace_layer(self, old: Layer, new: Layer, sources: Sequence[Port] | None = None) -> Layer:
        """Replace layer ``old`` of this model by ``new``, which belongs to no model; return ``new``.

        ``sources`` feed the inputs of ``new``; by default the sources of ``old`` do. Readers of an output of ``old``
        then read the output of ``new`` at the same position. Both layers may have the same id. ``replace`` also takes
        new layers that are connected, keeps tensor names, and infers.
        """
        self.prepare_change()
        self._require_layer(old)
        self._require_new(new, in_place_of=old)
        if new.type != old.type:
            self._require_free_end(old)
            self._require_free_end(new)
        fed = [port.source for port in old.inputs] if sources is None else list(sources)
        if len(fed) > len(new.inputs):
            self._refuse_sources(new, len(fed))
        for port in old.outputs[len(new.outputs) :]:
            if port.readers:
                message = f"the layer has no output {port.index}, which {port.readers[0].layer.title} reads"
                self._refuse(message, new)
        readers = [port for output in old.outputs for port in output.readers]
        for source in fed if sources is not None else ():
            assert source is not None
            self._require_port(source, is_output=True)
            if source.layer is old:
                self._refuse("the layer cannot read the one that it replaces", new)
            self._check_cycles(source, readers)
        self._check_state(new, [source for source in fed if source is not None], readers)
        lines = [port.edge_line for port in old.inputs] if sources is None else []
        for source, target, line in zip_longest(fed, new.inputs[: len(fed)], lines):
            if source is not None:
                join(source, target, line)
        for port in readers:
            assert port.source is not None
            output, line = new.outputs[port.source.index], port.edge_line
            separate(port)
            join(output, port, line)
        self._exclude(old)
        self._include(new, behind=old)
        return new

    # ----- names

    def rename_layers(self, names: Mapping[str, str]) -> None:
        """Rename layers; ``names`` maps present to new names.

        Layers may exchange names, but two layers cannot get the same name. ``rename`` renames the tensors as well, and
        in bodies too.
        """
        self.prepare_change()
        by_name: dict[str, Layer] = {}
        shared: set[str] = set()
        holders: list[Layer] = []
        for layer in self._file_order:  # one pass: in a large model, reading a layer takes longer than all else
            if by_name.setdefault(layer.name, layer) is not layer:
                shared.add(layer.name)
            if layer.bodies:
                holders.append(layer)
        self._check_names(names, by_name, shared, "layer")
        self.set_layer_names({by_name[old]: new for old, new in names.items()}, holders)

    def rename_tensors(self, names: Mapping[str, str]) -> None:
        """Rename tensors; ``names`` maps one of a tensor's present names to its new name.

        Tensors may exchange names, but two tensors cannot get the same name. ``rename`` renames the layers as well, and
        in bodies too.
        """
        self.prepare_change()
        ports = [port for layer in self._file_order for port in (*layer.inputs, *layer.outputs) if port.own_names]
        self._check_names(names, dict.fromkeys(name for port in ports for name in port.own_names), (), "tensor")
        for port in ports:
            if not port.own_names.isdisjoint(names):
                port.own_names = frozenset(names.get(name, name) for name in port.own_names)

    def set_layer_names(self, names: Mapping[Layer, str], holders: Iterable[Layer]) -> None:
        """Rename layers of this model without any check; ``holders`` are its layers with bodies.

        An edit that has checked the names itself uses this.
        """
        for layer, new in names.items():
            layer.name = new
        self._forget_names()
        for layer in holders:
            set_scopes(layer)

    # ----- changes, after all checks

    def _feed(self, source: Port, targets: Sequence[Port]) -> None:
        keeps_ranks = self._check_cycles(source, targets)
        for port in targets:
            separate(port)
            join(source, port)
        if not keeps_ranks:
            self._rank_again(source.layer, targets)
        self._clear_derived()

    def _rank_again(self, source: Layer, targets: Sequence[Port]) -> None:
        """Give the layers at one end of new edges other ranks, so that ranks increase along these edges."""
        ranks = self._ranked()
        is_placed = ranks.place(source) or all(ranks.place(port.layer) for port in targets)
        if not is_placed or not ranks.only_edges or source.type == "Assign":
            self._ranks = None

    def _include(self, layer: Layer, behind: Layer | None = None) -> None:
        """Add a layer whose ports are joined, in the order of the file behind another layer or at the end."""
        layer.scope = self.scope
        set_scopes(layer)
        if behind is None:
            self._order.append(layer)
        else:
            self._order.insert(layer, behind)
        self._by_id[layer.id] = layer
        self._adopt(layer)
        if self._next_id is not None:
            self._next_id = max(self._next_id, layer.id + 1)
        if self._first_named is not None and self._first_named.setdefault(layer.name, layer) is not layer:
            self._first_named = None
        around = layer, *(port.source.layer for port in layer.inputs if port.source is not None)
        has_assign = any(other.type == "Assign" for other in around)  # a path may lead through the state from now on
        if self._ranks is not None and (has_assign or not self._ranks.place(layer)):
            self._ranks = None
        self._clear_derived()

    def _exclude(self, layer: Layer) -> None:
        """Remove a layer whose outputs have no readers."""
        for port in layer.inputs:
            separate(port)
        self._order.remove(layer)
        if self._first_named is not None:
            is_only = len(self._first_named) == len(self._by_id)
            self._first_named.pop(layer.name, None)
            if not is_only:  # another layer may have this name
                self._first_named = None
        del self._by_id[layer.id]
        layer.owner = None
        if self._ranks is not None:
            self._ranks.remove(layer)
        self._clear_derived()
