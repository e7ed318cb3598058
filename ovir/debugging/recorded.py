"""Tensors that were recorded elsewhere, by the names of tensors or layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ovir.analysis.record import record_keys
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.comparison import NotCompared
from ovir.debugging.others import Answer, OtherBase
from ovir.diagnostics.codes import BAD_INPUT, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean, plural
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.runtime.executor import SeenStep

_SHOWN = 5  # keys in a message


class Recorded(OtherBase):
    """Recorded tensors.

    A key is the name of a tensor, of a layer (for its first output), of a Result, or a layer's name with the position
    of the output, as in ``split:1``; the prefix ``tap:``, which ``ovir run --output`` writes, may be before it.
    """

    sides = ("recorded", "in the model")

    def __init__(
        self, model: Model, tensors: Mapping[str, Array], description: str, precision: str | None = None
    ) -> None:
        """Find the tensors of a model; ``precision`` is the element type in which they were computed, if it is known.

        Raises InputError if no key names one.
        """
        self.description = description
        self._precision = precision
        self._model = model
        self._tensors = tensors
        names = _names(model)
        self._keys: dict[Port, str] = {}
        for key in tensors:
            if key in names:
                self._keys.setdefault(names[key], key)
        unknown = [key for key in tensors if key not in names]
        self._in_bodies = _layers_in_bodies(model, unknown) if unknown else {}
        unknown = [key for key in unknown if key not in self._in_bodies]
        listed = ", ".join(f"'{key}'" for key in unknown[:_SHOWN])
        listed += f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        meant = did_you_mean(unknown[0], list(names), "'{}'") if unknown else ""
        hint = meant or "`ovir infer` lists the layers"
        place = Place(description)
        if not tensors:
            raise InputError.usage("nothing was compared: the recording is empty", place)
        if not self._keys:
            message = f"nothing was compared: no key names a tensor or layer of the model; the keys are {listed}"
            raise InputError.usage(message, place, hint=hint)
        self._warnings: list[Diagnostic] = []
        if unknown:
            message = f"{plural(len(unknown), 'key')} of {len(tensors)} name no tensor and no layer: {listed}"
            self._warnings.append(diagnose(USAGE, message, place, severity=Severity.WARNING, hint=hint))

    def feeds(self) -> dict[int, Array]:
        """Return the recorded inputs by position; raise InputError unless all inputs of the model were recorded."""
        missing = [f"'{port.any_name}'" for port in self._model.inputs if port not in self._keys]
        if missing:
            message = f"the recording has no input {', '.join(missing)}"
            hint = "give the inputs that it was made with: --input, or inputs= in Python"
            raise InputError.usage(message, Place(self.description), hint=hint)
        return {i: self._tensors[self._keys[port]] for i, port in enumerate(self._model.inputs)}

    @property
    def precision(self) -> str | None:
        return self._precision

    @property
    def not_compared(self) -> list[NotCompared]:
        layers = dict.fromkeys(self._in_bodies.values())
        return [NotCompared(layer.id, layer.key, layer.type, "it is in a body") for layer in layers]

    def mismatch(self, element_type: ElementType, array: Array) -> str | None:
        recorded = ElementType.from_dtype(array.dtype)
        kinds = [(kind.is_real, kind.kind == "string") for kind in (recorded, element_type)]
        return None if kinds[0] == kinds[1] else f"was recorded as {recorded}, but {element_type} was expected"

    @property
    def has_only_inputs(self) -> bool:
        """Return whether the recording has inputs of the model and no other tensor of it."""
        return all(port.layer.type == "Parameter" for port in self._keys)

    def begin(self, inputs: Sequence[Array]) -> None:
        """Raise InputError if an input was recorded with other values than it has."""
        for port, array in zip(self._model.inputs, inputs, strict=True):
            key = self._keys.get(port)
            if key is None:
                continue
            recorded = self._tensors[key]
            if recorded.shape != array.shape or not _equal(recorded, array):
                message = f"input '{port.any_name}' was recorded with other values than it is given"
                hint = "leave out --input and --seed: recorded inputs are used if the recording has all of them"
                raise InputError(diagnose(BAD_INPUT, message, Place(self.description), hint=hint))

    def see(self, step: SeenStep) -> Iterator[Answer]:
        keys = [self._keys.get(port) for port in step.layer.outputs]
        if any(key is not None for key in keys):
            yield Answer(step, [None if key is None else self._tensors[key] for key in keys])
        else:
            yield Answer(step, skipped="it was not recorded")

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        sources = [port.source for port in self._model.outputs]
        keys = [None if port is None else self._keys.get(port) for port in sources]
        return [None if key is None else self._tensors[key] for key in keys]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self._warnings


def _names(model: Model) -> dict[str, Port]:
    """Return the tensors by all their names; tensor names come before names of layers."""
    names: dict[str, Port] = {}
    for layer in model.layers:
        for port in layer.outputs:
            names.update((name, port) for name in sorted(port.names))
    for layer in model.layers:
        for port in layer.outputs:
            for name in (layer.key, layer.name) if not port.index else ():
                names.setdefault(name, port)
            names.setdefault(f"{layer.key}:{port.index}", port)
    for port in model.outputs:
        if port.source is not None:
            for name in (port.layer.key, port.layer.name, *sorted(port.names)):
                names.setdefault(name, port.source)
    for name, port in list(names.items()):
        names.setdefault(f"tap:{name}", port)
    return names


def _layers_in_bodies(model: Model, keys: Sequence[str]) -> dict[str, Layer]:
    """Return which keys name layers in bodies, which run many times or not at all.

    The keys are what ``record_keys`` gives to the tensors of bodies.
    """
    found = {key: port.layer for key, port in record_keys(model).items() if port.layer.scope}
    return {key: found[key] for key in keys if key in found}


def _equal(a: Array, b: Array) -> bool:
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool((a == b).all())
