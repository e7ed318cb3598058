"""The primitive edits of a graph of layers, as a model has them and every package below ``ovir.model`` uses them.

Each edit checks everything first; if it raises, nothing has changed. Edits do not infer: see ``Model``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NoReturn, Self

from ovir.diagnostics.codes import CYCLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, NotFoundError
from ovir.diagnostics.wording import did_you_mean, plural
from ovir.graph.connections import ConnectedLayers, require_own_bodies, set_scopes
from ovir.graph.copies import independent, picklable
from ovir.graph.layers import Layer, Port, join, layers_before, path_text, separate
from ovir.graph.order import WIDE, Ranks, find_path, followers, state_followers
from ovir.system.python_runtime import without_garbage_collection

_WITH_STATE, _ENDS = ("ReadValue", "Assign"), ("Parameter", "Result")


class LayerGraph(ConnectedLayers):
    """The data of a model or a body, with the primitive edits from which all others can be composed.

    Edits raise InputError for arguments that do not match the graph, and ModelError for an edge that would close a
    cycle. ``Model`` adds what needs inference; functions that make a graph of another give it the class of that one.
    """

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
        self._include(layer, after=port.layer)
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
        self._include(new, after=old)
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

    # ----- checks, before any change

    def _require_layer(self, layer: Layer) -> None:
        if not isinstance(layer, Layer):
            self._refuse(f"expected a layer, got {layer!r}; model.layer(name) returns one")
        if layer.owner is not self:
            self._refuse("the layer is not in this model", layer)

    def _require_new(self, layer: Layer, in_place_of: Layer | None = None) -> None:
        if not isinstance(layer, Layer):
            self._refuse(f"expected a layer, got {layer!r}")
        if not all(isinstance(text, str) for text in (layer.name, layer.type, layer.version)):
            self._refuse("name, type and version must be texts", layer)
        if layer.owner is not None:
            self._refuse("the layer already belongs to a model", layer)
        other = self._by_id.get(layer.id)
        if other is not None and other is not in_place_of:
            self._refuse(f"id {layer.id} is already used by {other.title}", layer)
        if any(port.source is not None for port in layer.inputs) or any(port.readers for port in layer.outputs):
            self._refuse("the ports of the layer are already connected", layer)
        require_own_bodies([layer])

    def _require_free_end(self, layer: Layer) -> None:
        """Raise InputError for a Parameter or Result of a body, because the port map refers to them by number."""
        if self.holder is not None and layer.type in _ENDS:
            message = f"a {layer.type} cannot be added to a body or removed from it: the port map would no longer match"
            self._refuse(message, layer)

    def _require_port(self, port: Port, *, is_output: bool) -> None:
        kind, other = ("output", "input") if is_output else ("input", "output")
        if not isinstance(port, Port):
            self._refuse(f"expected an {kind} port, got {port!r}; layer.inputs and layer.outputs hold ports")
        if port.is_output is not is_output:
            self._refuse(f"expected an {kind} port, got {other} {port.index} of this layer", port.layer)
        if port.layer.owner is not self:
            self._refuse(f"{kind} {port.index} of this layer is not in the model", port.layer)

    def _require_sources(self, layer: Layer, sources: Sequence[Port]) -> None:
        if len(sources) > len(layer.inputs):
            self._refuse_sources(layer, len(sources))
        for source in sources:
            self._require_port(source, is_output=True)

    def _readers_of(self, port: Port, readers: Iterable[Port] | None) -> Sequence[Port]:
        if readers is None:
            return port.readers
        chosen = list(dict.fromkeys(readers))
        for reader in chosen:
            self._require_port(reader, is_output=False)
            if reader.source is not port:
                message = f"input {reader.index} of this layer does not read {port.layer.title}"
                self._refuse(message, reader.layer)
        return chosen

    def _check_cycles(self, source: Port, targets: Sequence[Port]) -> bool:
        """Raise ModelError if edges from ``source`` to these inputs would close a cycle.

        Return whether the ranks of the layers remain valid with these edges.
        """
        ranks = self._ranked()
        layers = [port.layer for port in targets]
        through_state = not ranks.only_edges or source.layer.type == "Assign"
        backward = layers if through_state else ranks.backward(source.layer, layers)
        if backward and (through_state or ranks.may_reach(backward, source.layer)):
            self._refuse_path(backward, source.layer, source.layer)
        return not backward

    def _ranked(self) -> Ranks:
        if self._ranks is None:
            self._ranks = Ranks(self.layers, self._rank_gap)
            self._rank_gap = WIDE
        return self._ranks

    def _check_state(self, layer: Layer, sources: Sequence[Port], readers: Sequence[Port]) -> None:
        """Raise ModelError if a new ReadValue or Assign would close a cycle with the layers of the same variable."""
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
        """Raise ModelError if a path leads from any of ``starts`` to ``end``, because the edit would close it to a
        cycle."""
        by_state = state_followers(self._file_order)
        path = find_path(starts, end, lambda layer: followers(layer, by_state))
        if path is None:
            return
        closed = path_text([*path, *([through] if through is not end else []), path[0]])
        message = f"the edit would close a cycle: {closed}"
        raise ModelError(diagnose(CYCLE, message, path[0].place))

    def _refuse_sources(self, layer: Layer, given: int) -> NoReturn:
        self._refuse(f"the layer has {plural(len(layer.inputs), 'input')}, got {plural(given, 'source')}", layer)

    def _refuse(self, message: str, layer: Layer | None = None) -> NoReturn:
        raise InputError.usage(message, Place(self.path) if layer is None else layer.place)

    def _check_names(
        self, names: Mapping[str, str], present: Mapping[str, object], shared: Collection[str], kind: str
    ) -> None:
        """Raise InputError unless these names can be changed.

        The keys of ``present`` are all names that exist; ``shared`` contains those with several owners, of which only
        the first one is renamed.
        """
        if not isinstance(names, Mapping) or not all(isinstance(new, str) for new in names.values()):
            self._refuse(f"expected a mapping of old to new {kind} names, got {names!r}")
        taken = set(present).difference(names).union(shared)
        for old, new in names.items():
            if old not in present:
                hint = did_you_mean(old, present)
                raise NotFoundError.usage(f"no {kind} is named {old!r}", Place(self.path), hint=hint)
            if not new:
                self._refuse(f"the new name of {kind} {old!r} is empty")
            if new in taken:
                self._refuse(f"{kind} {old!r} cannot be renamed to {new!r}: another {kind} has this name")
            taken.add(new)

    # ----- changes, after all checks

    def _feed(self, source: Port, targets: Sequence[Port]) -> None:
        keeps_ranks = self._check_cycles(source, targets)
        for port in targets:
            separate(port)
            join(source, port)
        if not keeps_ranks:  # the layers at one end get others, so that ranks increase along the edges
            ranks = self._ranked()
            is_placed = ranks.place(source.layer) or all(ranks.place(port.layer) for port in targets)
            if not is_placed or not ranks.only_edges or source.layer.type == "Assign":
                self._ranks = None
        self._clear_derived()

    def _include(self, layer: Layer, after: Layer | None = None) -> None:
        """Add a layer whose ports are joined, in the order of the file after another layer or at the end."""
        layer.scope = self.scope
        set_scopes(layer)
        if after is None:
            self._order.append(layer)
        else:
            self._order.insert(layer, after)
        self._by_id[layer.id] = layer
        self._adopt(layer)
        if self._next_id is not None:
            self._next_id = max(self._next_id, layer.id + 1)
        if self._first_named is not None and self._first_named.setdefault(layer.name, layer) is not layer:
            self._first_named = None
        around = layer, *layers_before(layer)
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

    # ----- copies

    def clone(self) -> Self:
        """Return an independent copy of this model; only the data of weights is shared."""
        with without_garbage_collection():
            return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = memo[id(self)] = type(self).__new__(type(self))
        LayerGraph.__setstate__(clone, {**self._own_state(), "layers": independent(self._file_order, memo)})
        return clone

    def __getstate__(self) -> dict[str, Any]:
        self.require_depth()
        with without_garbage_collection():
            return {**self._own_state(), "layers": picklable(self._file_order)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with without_garbage_collection():
            ConnectedLayers.__init__(self, state.pop("layers").joined(), **state.pop("settings"))
        vars(self).update(state)

    def _own_state(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("name", "version", "path", "has_gaps")}
        return {
            "settings": {**settings, "rt_info": self.rt_info_data},
            "read_diagnostics": list(self.read_diagnostics),
            "inference_diagnostics": list(self.inference_diagnostics),
            "revision": self.revision,
            "needs_inference": self.needs_inference,
        }

    def __repr__(self) -> str:
        counts = {"layer": len(self._file_order), "input": len(self.inputs), "output": len(self.outputs)}
        return f"<Model {self.name!r}: {', '.join(plural(count, noun) for noun, count in counts.items())}>"


def state_ports(layers: Iterable[Layer]) -> dict[str, Port]:
    """Return for each variable an output of its ReadValue, or an input of its Assign, which has its type."""
    found: dict[str, Port] = {}
    for layer in layers:
        if layer.type in _WITH_STATE:
            found.setdefault(str(layer.attributes.get("variable_id", "")), (*layer.outputs, *layer.inputs)[0])
    return found
