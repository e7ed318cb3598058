"""The checks of edits: what an edit would do wrong is an error before it changes anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from ovir.diagnostics.codes import CYCLE, USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, NotFoundError
from ovir.diagnostics.spelling import did_you_mean
from ovir.diagnostics.text import plural
from ovir.graph.connections import LayerGraph, require_own_bodies
from ovir.graph.layers import Layer, Port, path_text
from ovir.graph.order import find_path, followers, state_followers
from ovir.graph.ranks import WIDE, Ranks

_WITH_STATE, _ENDS = ("ReadValue", "Assign"), ("Parameter", "Result")


class EditChecks(LayerGraph):
    """A graph of layers that can tell whether an edit is possible. Nothing here changes it."""

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
        raise InputError(diagnose(USAGE, message, Place(self.path) if layer is None else layer.place))

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
                raise NotFoundError(diagnose(USAGE, f"no {kind} is named {old!r}", Place(self.path), hint=hint))
            if not new:
                self._refuse(f"the new name of {kind} {old!r} is empty")
            if new in taken:
                self._refuse(f"{kind} {old!r} cannot be renamed to {new!r}: another {kind} has this name")
            taken.add(new)
