"""Observation of a run: the protocol of listeners, the tap that copies outputs, the collector of kernel reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from ovir.core.arrays import Array, read_only
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.diagnostics.errors import InputError, OperatorError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port

MAX_REPORTS = 1000
"""The largest number of reports of one run; a loop can meet more excluded values than anybody reads."""


class Listener(Protocol):
    """An object that is called at each step of a run, given as ``compiled(inputs, listeners=[...])``.

    Both methods are called with the layer and its arrays, in the order of the run; for layers in bodies, once per
    iteration. Layers that were computed when the model was compiled, such as constants, are not steps. The arrays are
    valid only during the call and cannot be written to: copy what is to be kept. An exception of a listener ends the
    run and reaches the caller unchanged. A subclass needs to define only the methods that it uses.

    Three more members are optional. ``wanted_steps``, a collection of keys of layers, makes these layers steps even if
    they could be computed when the model is compiled, or if nothing needs them. ``see_inputs(model, arrays)`` is called
    with the arrays of the model's inputs before each run, as Parameters are not steps. A listener that does not look at
    arrays, as one that measures time, sets ``sees_tensors = False``: the run is then the one that other callers get.
    Otherwise no step overwrites its inputs, and outputs that nothing reads are computed, too.
    """

    def __init__(self) -> None:
        """Take no arguments; the constructor of protocols would show some."""
        return

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        """Handle a layer that is about to run, with the arrays of its inputs."""
        return  # without a statement, type checkers consider the method abstract, and refuse subclasses without it

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Handle a layer that has run, with the arrays of its inputs and outputs."""
        return


class ResultListener(Listener):
    """Base of listeners that look at the results of layers; the inputs of the model count as results of Parameters."""

    def see_inputs(self, model: LayerGraph, arrays: Sequence[Array]) -> None:
        """Handle the inputs of the model, as Parameters are not steps."""
        for port, array in zip(model.inputs, arrays, strict=True):
            self.did_run(port.layer, (), (array,))


def require_listeners(listeners: Sequence[object]) -> None:
    """Raise InputError unless ``listeners`` is a list of objects with the methods of Listener."""
    if not isinstance(listeners, Sequence):
        raise InputError.usage(f"listeners must be a list, got {listeners!r}")
    for listener in listeners:
        if isinstance(listener, type):
            hint = f"create one: {listener.__name__}(...)"
            raise InputError.usage(f"expected a listener, got the class {listener.__name__}", hint=hint)
        if not (hasattr(listener, "will_run") and hasattr(listener, "did_run")):
            hint = "derive its class from ovir.Listener"
            raise InputError.usage(f"{listener!r} is not a listener: will_run or did_run is missing", hint=hint)


def steps_wanted_by(listeners: Sequence[Listener]) -> frozenset[str]:
    """Return the keys of the layers that listeners need as steps."""
    return frozenset(key for listener in listeners for key in getattr(listener, "wanted_steps", ()))


def sees_tensors(listener: Listener) -> bool:
    """Return whether a listener looks at the arrays of the steps."""
    return bool(getattr(listener, "sees_tensors", True))


def show_inputs(listeners: Sequence[Listener], model: LayerGraph, arrays: Sequence[Array]) -> None:
    """Call ``see_inputs`` of the listeners that have it."""
    for listener in listeners:
        if (see := getattr(listener, "see_inputs", None)) is not None:
            see(model, [read_only(array) for array in arrays])


class ListenerFailed(BaseException):
    """Carries an exception of a listener past the kernels of the enclosing layers."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Tap(ResultListener):
    """A listener that keeps copies of tensors, given by the name of a layer, which stands for all its outputs, of a
    Result, or of a tensor; in bodies as ``outer/body/name``.

    If a layer runs several times, for example in a Loop, its last outputs are kept.
    """

    def __init__(self, names: Sequence[str], model: LayerGraph) -> None:
        self.arrays: dict[str, list[Array]] = {}
        self._targets: dict[str, list[tuple[str, int | None]]] = {}
        """For each layer, by its full name, the names that were asked for and the output that each stands for."""
        known = _tappable(model)
        for name in names:
            if name not in known:
                message = f"no layer and no tensor is named {name!r}, which was to be tapped"
                raise InputError.usage(message)
            layer, index = known[name]
            self._targets.setdefault(layer.key, []).append((name, index))
        self.wanted_steps = frozenset(self._targets)
        """The full names of the layers to run as steps."""

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for name, index in self._targets.get(layer.key, ()):
            wanted = outputs if index is None else outputs[index : index + 1]
            self.arrays[name] = [np.array(array) for array in wanted]


def _tappable(model: LayerGraph) -> dict[str, tuple[Layer, int | None]]:
    """Return the layers that can be tapped, by name, each with the output that the name means, or None for all outputs.

    A Result is not a step of a run: it stands for the tensor that it reads. Names of layers go before names of tensors.
    """
    layers: dict[str, tuple[Layer, int | None]] = {}
    tensors: dict[str, tuple[Layer, int | None]] = {}
    for layer in model.walk():
        if layer.type != "Result":
            layers.setdefault(layer.key, (layer, None))
        elif (source := layer.inputs[0].source) is not None:
            layers.setdefault(layer.key, (source.layer, source.index))
        for port in layer.outputs:
            tensors.update((layer.scope + name, (layer, port.index)) for name in port.names)
    return {**tensors, **layers}


def tapped_ports(model: LayerGraph, name: str) -> list[Port]:
    """Return the output ports whose tensors a tap of this name keeps."""
    layer, index = _tappable(model)[name]
    return list(layer.outputs) if index is None else [layer.outputs[index]]


class Reports:
    """Collects the reports of kernels, each once, with the layer."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self._found: dict[Diagnostic, None] = {}

    def add(self, code: Code, message: str, effect: str, layer: Layer | None) -> None:
        if self.strict:
            raise OperatorError(message, code)
        if len(self._found) < MAX_REPORTS:
            place = layer.place if layer else None
            full = f"{message}; {effect}" if effect else message
            self._found.setdefault(diagnose(code, full, place, severity=Severity.WARNING))

    @property
    def found(self) -> list[Diagnostic]:
        return list(self._found)


def matching_taps(model: LayerGraph, pattern: str) -> list[str]:
    """Return the names to tap that a regular expression finds: full names of layers, and of tensors whose layer has
    another name. A Result is left out where the tensor that it reads is found, too."""
    layers: dict[str, Layer] = {}
    for layer in model.walk():
        is_hidden = layer.type == "Parameter" and layer.scope  # what a body is fed is not seen by listeners
        if not is_hidden and re.search(pattern, layer.key):
            layers.setdefault(layer.key, layer)
    by_name = set(layers.values())
    for name, (layer, _) in _tappable(model).items():
        if name not in layers and layer not in by_name and layer.type != "Parameter" and re.search(pattern, name):
            layers[name] = layer
    return [name for name, layer in layers.items() if not _is_repeated(layer, by_name)]


def _is_repeated(layer: Layer, found: Collection[Layer]) -> bool:
    source = layer.inputs[0].source if layer.type == "Result" else None
    return source is not None and source.layer in found
