"""Record the result of every layer of a run, under one key for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain, count

from ovir.core.arrays import Array
from ovir.graph.layers import Layer, Port
from ovir.graph.names import distinct_names
from ovir.model import Model
from ovir.runtime.listeners import ResultListener


def record_keys(model: Model) -> dict[str, Port]:
    """Return the output ports whose tensors a record may hold, by their keys in the file.

    The key is a name of the tensor, in a body after the names of the layers around it. A tensor without a name, or
    whose name stands for another tensor already, has the key of its layer, followed by ``:1`` and so on if the layer
    has several outputs. Inputs come first, under the names by which they can be fed. Constants are left out: their
    values are in the weights.
    """
    keys: dict[str, Port] = {}
    for port, name in zip(model.inputs, distinct_names(model.inputs), strict=True):
        keys[name] = port.layer.outputs[0]
    layers = (layer for layer in model.walk() if layer.type not in ("Const", "Parameter", "Result"))
    for port in (port for layer in layers for port in layer.outputs):
        own = port.layer.key + (f":{port.index}" if len(port.layer.outputs) > 1 else "")
        scoped = [port.layer.scope + port.any_name] if port.names else []
        numbered = (f"{own}_{number}" for number in count(2))
        keys[next(key for key in chain(scoped, [own], numbered) if key not in keys)] = port
    return keys


class Recorder(ResultListener):
    """A listener that hands each tensor to ``write`` as soon as it is final, and keeps none.

    A layer in a body runs several times; its last result counts. It is kept until the layer around the body has run.
    """

    def __init__(self, model: Model, write: Callable[[str, Array], None], only: Collection[str] | None = None) -> None:
        """Prepare to record the layers whose keys are in ``only``, by default all that results and variables need."""
        self._write = write
        self._keys: dict[Layer, list[tuple[int, str]]] = {}
        self.wanted_steps: set[str] = set()
        """The keys of the recorded layers."""
        self.count = 0
        """The number of tensors written so far."""
        self._inside: dict[str, Array] = {}
        for key, port in record_keys(model).items():
            layer = port.layer
            if layer.type != "Parameter" and (layer.is_dead if only is None else layer.key not in only):
                continue
            self._keys.setdefault(layer, []).append((port.index, key))
            self.wanted_steps.add(layer.key)

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for index, key in self._keys.get(layer, ()):
            if index < len(outputs) and outputs[index] is not None:
                if layer.scope:
                    self._inside[key] = outputs[index].copy()
                else:
                    self._put(key, outputs[index])
        if not layer.scope and layer.bodies:
            for key, array in self._inside.items():
                self._put(key, array)
            self._inside.clear()

    def _put(self, key: str, array: Array) -> None:
        self._write(key, array)
        self.count += 1
