"""Which layer of one model is which layer of the other, and which inputs feed which."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.analysis.matching import Interner, Side, matching_of
from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError, OvirError
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.runtime.inputs import collect_inputs


class Partners:
    """The layers of a second model that correspond to layers of a first one, which may be the same model."""

    def __init__(self, a: Model, b: Model) -> None:
        """Match the layers of two models as ``ovir.diff`` does."""
        self.a, self.b = a, b
        self._to_b: dict[Layer, Layer] | None = None
        if a is not b:
            interner = Interner()
            matching = matching_of(Side(a, interner), Side(b, interner))
            self._to_b = {matching.a.layers[i]: matching.b.layers[j] for i, j in matching.pairs()}
        self._inputs = [self._input_of(port) for port in b.inputs]
        self.outputs = self._matched_outputs()
        """For each output of the first model the position of the same output of the second, None for none."""

    def of(self, layer: Layer) -> Layer | None:
        """Return the layer of the second model; None if it has no such layer."""
        return layer if self._to_b is None else self._to_b.get(layer)

    def inputs(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the inputs of the second model for inputs of the first, in its element types."""
        if self._to_b is None:
            return list(arrays)
        return collect_inputs(self.b, [arrays[index] for index in self._inputs], self.b.input_index)

    def part(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> Model | None:
        """Return the part of the second model between the tensors that correspond to tensors of the first one.

        None if there is no such part, as where its outputs depend on other tensors, too.
        """
        cut = [own for port in inputs if (own := self._tensor(port)) is not None]
        wanted = [own for port in outputs if (own := self._tensor(port)) is not None]
        if len(cut) < len(inputs) or len(wanted) < len(outputs):
            return None
        try:
            return self.b.extract(inputs=cut, outputs=wanted)
        except OvirError:
            return None

    def _tensor(self, port: Port) -> Port | None:
        """Return the tensor of the second model that corresponds to a tensor of the first one."""
        if port.layer.type == "Parameter":
            place = self.a.inputs.index(port)
            return next((own for own, i in zip(self.b.inputs, self._inputs, strict=True) if i == place), None)
        other = self.of(port.layer)
        if other is not None and len(other.outputs) == len(port.layer.outputs):
            return other.outputs[port.index]
        pairs = zip(self.a.outputs, self.outputs, strict=True)
        matched = next((i for own, i in pairs if own.source is port), None)
        return None if matched is None else self.b.outputs[matched].source

    def _input_of(self, port: Port) -> int:
        """Return the position of the first model's input that also feeds this one."""
        if self._to_b is None:
            return self.b.inputs.index(port)
        for index, own in enumerate(self.a.inputs):
            if self._to_b.get(own.layer) is port.layer:
                return index
        names = {port.layer.name, *port.names}
        for index, own in enumerate(self.a.inputs):
            if names & {own.layer.name, *own.names}:
                return index
        names_of = [", ".join(f"'{one.any_name}'" for one in model.inputs) or "none" for model in (self.a, self.b)]
        message = f"the models have different inputs: {names_of[0]} / {names_of[1]}"
        is_related = any(layer.type not in ("Parameter", "Result", "Const") for layer in self._to_b)
        hint = "`ovir edit --rename` gives an input another name" if is_related else None
        raise InputError.usage(message, port.layer.place, hint=hint)

    def _matched_outputs(self) -> list[int | None]:
        if self._to_b is None:
            return list(range(len(self.a.outputs)))
        positions = {port.layer: index for index, port in enumerate(self.b.outputs)}
        found = [positions.get(self._to_b.get(port.layer, port.layer)) for port in self.a.outputs]
        free = [index for index in range(len(self.b.outputs)) if index not in found]
        for place, port in enumerate(self.a.outputs):  # the layers before them may have been replaced
            if found[place] is None:
                index = next((i for i in free if self.b.outputs[i].names & port.names), None)
                if index is None and len(self.a.outputs) == len(self.b.outputs) and place in free:
                    index = place
                if index is not None:
                    free.remove(index)
                    found[place] = index
        return found
