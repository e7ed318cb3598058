"""Compares a model with the ONNX model that it was converted from, in onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.batches import BatchedBase
from ovir.debugging.others import Answer
from ovir.diagnostics.codes import NO_ENGINE, UNREADABLE, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural
from ovir.engines.process import Engine, Loaded
from ovir.graph.layers import Port
from ovir.model import Model
from ovir.runtime.executor import SeenStep


class OnnxModel(BatchedBase[tuple[SeenStep, Sequence[str | None]]]):
    """The tensors of an ONNX model, matched by name with the tensors of the first model."""

    with_constants = False
    sides = ("in onnxruntime", "in ovir")

    def __init__(self, engine: Engine, path: str, model: Model) -> None:
        super().__init__()
        self._engine = engine
        self._path = path
        self._model = model
        self._inputs: list[Array] = []
        self._diagnostics: list[Diagnostic] = []
        if not os.path.isfile(path):
            raise ReadError(diagnose(UNREADABLE, "there is no such file", Place(path)))
        engine.open()
        self._loaded: Loaded = engine.load(path, sorted(_names(model)))
        facts = self._loaded.facts
        self._outputs: list[str] = facts["outputs"]
        self._known = {*self._outputs, *(facts["tensors"] or ())}
        self._places, self._kinds = self._match_inputs(facts["inputs"])
        if facts["tensors"] is None:
            message = "only outputs are compared: tensors between layers need the package onnx, which is missing"
            hint = "install it with `pip install ovir[onnxruntime]`"
            self._diagnostics.append(diagnose(NO_ENGINE, message, severity=Severity.WARNING, hint=hint))

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"{self._path} in {self._engine.description}"

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self._diagnostics

    def _match_inputs(self, inputs: Sequence[tuple[str, str | None]]) -> tuple[list[int], list[ElementType]]:
        """Return for each input of the ONNX model the position of the first model's input, and its element type."""
        own = self._model.inputs
        places, kinds = [], []
        for place, (name, kind) in enumerate(inputs):
            index = next((i for i, port in enumerate(own) if name in port.names or name == port.layer.name), None)
            if index is None and len(own) == len(inputs) == 1:
                index = place
            if index is None:
                known = ", ".join(f"'{port.any_name}'" for port in own) or "none"
                self._refuse(f"its input '{name}' is no input of the IR, whose inputs are {known}")
            if kind is None:
                self._refuse(f"its input '{name}' has a type that onnxruntime takes no arrays for")
            places.append(index)
            kinds.append(ElementType.parse(kind))
        return places, kinds

    def _refuse(self, message: str) -> NoReturn:
        hint = "`ovir edit --rename` gives inputs of the IR other names"
        raise InputError.usage(message, Place(self._path), hint=hint)

    def begin(self, inputs: Sequence[Array]) -> None:
        pairs = zip(self._places, self._kinds, strict=True)
        self._inputs = [inputs[place].astype(kind.to_dtype(), copy=False) for place, kind in pairs]

    def see(self, step: SeenStep) -> Iterator[Answer]:
        names = [self._name(port) for port in step.layer.outputs]
        if not any(names):
            yield Answer(step, skipped="the ONNX model has no tensor of its name")
            return
        size = sum(array.nbytes for array, name in zip(step.outputs, names, strict=True) if name)
        yield from self.wait((step, names), size)

    def _name(self, port: Port) -> str | None:
        return next((name for name in sorted(port.names) if name in self._known), None)

    def run(self, items: Sequence[tuple[SeenStep, Sequence[str | None]]]) -> Iterator[Answer]:
        results = self._computed(name for _, names in items for name in names)
        for step, names in items:
            yield Answer(step, [results.get(name) if name else None for name in names])

    def _computed(self, names: Iterable[str | None]) -> dict[str, Array]:
        """Return tensors of the ONNX model by name."""
        wanted = list(dict.fromkeys(name for name in names if name))
        return dict(zip(wanted, self._engine.infer(self._loaded, self._inputs, outputs=wanted), strict=True))

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        self.begin(inputs)
        names = self._output_names()
        results = self._computed(names)
        return [None if name is None else results[name] for name in names]

    def _output_names(self) -> list[str | None]:
        """Return for each output of the model the name in the ONNX model; names that do not match go by position."""
        own = self._model.outputs
        names = [self._name(port) for port in own]
        if not any(names) and len(own) == len(self._outputs):
            return list(self._outputs)
        missing = [port.any_name for port, name in zip(own, names, strict=True) if name is None]
        if missing and not self._diagnostics:
            listed = ", ".join(f"'{name}'" for name in missing[:5])
            count = plural(len(missing), "output")
            message = f"{count} not compared, because the ONNX model has no tensor of this name: {listed}"
            self._diagnostics.append(diagnose(USAGE, message, Place(self._path), severity=Severity.WARNING))
        return names


def _names(model: Model) -> set[str]:
    """Return the names of all tensors that layers of a model compute."""
    return {
        name for layer in model.layers if layer.type != "Parameter" for port in layer.outputs for name in port.names
    }
