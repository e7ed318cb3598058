"""Other sides that have the tensors of whole runs: a second model, an ONNX model, and a recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from ovir.analysis.record import record_keys
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32
from ovir.core.reading import why_not_regular
from ovir.debugging.engines.process import EngineProcess, LoadedModel
from ovir.debugging.layerwise_run import Walk, WalkPlan
from ovir.debugging.repeats import ONCE, Repeats
from ovir.debugging.sides import LayerAnswer, NotCompared, Partners, Side, in_batches
from ovir.diagnostics.codes import BAD_INPUT, NO_ENGINE, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError, RunError
from ovir.diagnostics.wording import did_you_mean, first_quoted, plural, quoted
from ovir.graph.constant_layers import all_constant_layers, converted_codes
from ovir.graph.layers import Layer, Port
from ovir.inference.engines import state_readers
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.runtime.executor import SeenStep


class SecondModel(Side):
    """A second model, which ovir runs in step with the first one.

    Outputs of the second model that the first one reaches later are kept until then; models with the same layers in the
    same order keep nothing.
    """

    def __init__(
        self, partners: Partners, description: str, *, keeps_state: bool = False, only_outputs: bool = False
    ) -> None:
        """Prepare for a comparison of layers and outputs, or with ``only_outputs`` of these alone, which takes less
        time."""
        self.description = description
        self.partners: Partners = partners
        self.outputs_first, self.with_constants = only_outputs, not only_outputs
        self._plan = WalkPlan(
            partners.b, with_constants=self.with_constants, keeps_state=keeps_state, only_outputs=only_outputs
        )
        self.clipped = self._plan.clipped
        self._wanted: set[Layer] = set()
        self._walk: Walk | None = None
        self._kept: dict[Layer, list[Array]] = {}
        self._failure: RunError | None = None
        self.diagnostics: list[Diagnostic] = []

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._walk = Walk(self._plan, self.partners.inputs(inputs))
        self._kept, self._failure = {}, None
        self._wanted = {other for layer in self.partners.a.layers if (other := self.partners.of(layer)) is not None}
        for step in steps:
            yield self._answer(step)

    def rounded_constants(self) -> dict[Layer, ElementType]:
        return rounded_by_one(self.partners)

    def _answer(self, step: SeenStep) -> LayerAnswer:
        reason = self.partners.missing(step)
        other = self.partners.of(step.layer)
        if reason is not None or other is None:
            return LayerAnswer(step, skipped=reason)
        try:
            self._advance_to(other)
        except RunError as error:
            self._failure = error
            if error.diagnostic.layer_id == other.id:
                return LayerAnswer(step, problem=error.diagnostic.message, other=other)
            return LayerAnswer(step, skipped="the run of the other model has failed before", other=other)
        if other in self._kept:
            return LayerAnswer(step, self._kept.pop(other), other=other)
        return LayerAnswer(step, skipped="the layer of the other model does not run")

    def _advance_to(self, layer: Layer) -> None:
        """Run the second model up to a layer."""
        assert self._walk is not None
        if self._failure is not None:
            raise self._failure
        self._wanted.discard(layer)
        while layer not in self._kept:
            step = next(self._walk, None)
            if step is None:
                return
            if step.layer is layer or step.layer in self._wanted:
                self._kept[step.layer] = step.outputs

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        if self._failure is not None:
            raise self._failure
        self._wanted.clear()
        walk = self._walk or Walk(self._plan, self.partners.inputs(inputs))
        self._walk = None
        results = walk.finish()
        self.diagnostics += walk.diagnostics
        return [None if index is None else results[index] for index in self.partners.outputs]


def _rounded(port: Port) -> Const | None:
    """Return the constant of f16 or bf16 that an input reads converted to f32; None for other inputs."""
    codes = converted_codes(port)
    op = None if codes is None or port.element_type != f32 else codes.operator
    return op if isinstance(op, Const) and op.element_type in (f16, bf16) else None


def _inputs(layer: Layer) -> Iterator[Port]:
    """Yield the inputs of a layer, and those in its bodies of layers that are not computed from constants alone."""
    yield from layer.inputs
    for body in layer.bodies.values():
        constant = all_constant_layers(body)
        for inner in body.layers:
            if inner not in constant:
                yield from _inputs(inner)


def _rounded_by_one(own: Port, other: Port) -> ElementType | None:
    """Return the type in which one of two inputs has a constant that is equal but for rounding to it."""
    for narrow, wide in ((own, other), (other, own)):
        source = None if wide.source is None else wide.source.layer.operator
        if isinstance(source, Const) and source.element_type == f32 and (const := _rounded(narrow)) is not None:
            is_equal = source.shape == const.shape and np.array_equal(source.data.astype(const.data.dtype), const.data)
            return const.element_type if is_equal else None
    return None


def rounded_by_one(partners: Partners) -> dict[Layer, ElementType]:
    """Return the layers of the first model that read constants which one of two models has rounded, with their type."""
    types = {}
    for layer in partners.a.layers:
        other = partners.of(layer)
        pairs = [] if other is None else zip(_inputs(layer), _inputs(other), strict=False)
        if kinds := [kind for pair in pairs if (kind := _rounded_by_one(*pair)) is not None]:
            types[layer] = kinds[0]
    return types


_Named = tuple[SeenStep, Sequence[str | None]]
"""A layer, and the names that its outputs have in the ONNX model."""


class OnnxModel(Side):
    """The tensors of an ONNX model, matched by name with the tensors of the first model; it closes the engine."""

    with_constants = False
    labels = ("in onnxruntime", "in ovir")

    def __init__(self, engine: EngineProcess, path: str, model: Model, repeats: Repeats = ONCE) -> None:
        self._engine = engine
        self.repeats = repeats
        self._path = path
        self._model = model
        self._inputs: list[Array] = []
        self.diagnostics: list[Diagnostic] = []
        if (fault := why_not_regular(path)) is not None:
            raise ReadError.of_file(path, fault)

    def open(self) -> None:
        self._engine.open()
        self.description = self._engine.description = f"{self._path} in {self._engine.description}"  # of its errors
        ports = [port for layer in self._model.layers if layer.type != "Parameter" for port in layer.outputs]
        names = sorted({name for port in ports for name in port.names})
        self._loaded: LoadedModel = self._engine.load(self._path, names)
        facts = self._loaded.facts
        self._outputs: list[str] = facts["outputs"]
        self._known = {*self._outputs, *(facts["tensors"] or ())}
        self._places, self._kinds = self._match_inputs(facts["inputs"])
        if facts["tensors"] is None:
            message = "only outputs are compared: tensors between layers need the package onnx, which is missing"
            hint = 'install it with `pip install "ovir[onnxruntime]"`'
            self.diagnostics.append(diagnose(NO_ENGINE, message, severity=Severity.WARNING, hint=hint))

    def rounded_constants(self) -> dict[Layer, ElementType]:
        """Return the layers with constants that a converter from ONNX has compressed, as most do."""
        pairs = ((layer, _rounded(port)) for layer in self._model.layers for port in _inputs(layer))
        return {layer: const.element_type for layer, const in pairs if const is not None}

    def _match_inputs(self, inputs: Sequence[tuple[str, str | None]]) -> tuple[list[int], list[ElementType]]:
        """Return for each input of the ONNX model the position of the first model's input, and its element type."""
        own = self._model.inputs
        places, kinds = [], []
        for place, (name, kind) in enumerate(inputs):
            index = next((i for i, port in enumerate(own) if name in port.names or name == port.layer.name), None)
            if index is None and len(own) == len(inputs) == 1:
                index = place
            if index is None:
                known = quoted(port.any_name for port in own) or "none"
                hint = "`ovir edit --rename` gives inputs of the IR other names"
                if state_readers(self._model.layers):
                    hint = "`ovir edit --states-to-inputs` makes inputs of the variables of the IR"
                self._refuse(f"its input '{name}' is not an input of the IR, whose inputs are {known}", hint)
            if kind is None:
                self._refuse(f"its input '{name}' has a type for which onnxruntime accepts no arrays")
            places.append(index)
            kinds.append(ElementType.parse(kind))
        return places, kinds

    def _refuse(self, message: str, hint: str | None = None) -> NoReturn:
        raise InputError.usage(message, Place(self._path), hint=hint)

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._feed(inputs)
        return in_batches(map(self._item, steps), self._run)

    def _feed(self, inputs: Sequence[Array]) -> None:
        pairs = zip(self._places, self._kinds, strict=True)
        self._inputs = [inputs[place].astype(kind.to_dtype(), copy=False) for place, kind in pairs]

    def _item(self, step: SeenStep) -> LayerAnswer | tuple[_Named, int]:
        names = [self._name(port) for port in step.layer.outputs]
        if not any(names):
            return LayerAnswer(step, skipped="the ONNX model has no tensor of its name")
        return (step, names), sum(array.nbytes for array, name in zip(step.outputs, names, strict=True) if name)

    def _name(self, port: Port) -> str | None:
        return next((name for name in sorted(port.names) if name in self._known), None)

    def _run(self, items: Sequence[_Named]) -> Iterator[LayerAnswer]:
        results = self._computed(name for _, names in items for name in names)
        for step, names in items:
            yield LayerAnswer(step, [results.get(name) if name else None for name in names])

    def _computed(self, names: Iterable[str | None]) -> dict[str, Array]:
        """Return tensors of the ONNX model by name."""
        wanted = list(dict.fromkeys(name for name in names if name))
        return dict(zip(wanted, self.repeats.infer(self._loaded, self._inputs, outputs=wanted), strict=True))

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        self._feed(inputs)
        names = self._output_names()
        results = self._computed(names)
        return [None if name is None else results[name] for name in names]

    def close(self) -> None:
        self._engine.close()

    def _output_names(self) -> list[str | None]:
        """Return for each output of the model the name in the ONNX model; names that do not match go by position."""
        own = self._model.outputs
        names = [self._name(port) for port in own]
        if not any(names) and len(own) == len(self._outputs):
            return list(self._outputs)
        missing = [port.any_name for port, name in zip(own, names, strict=True) if name is None]
        if missing and not self.diagnostics:
            listed = quoted(missing[:5])
            count = plural(len(missing), "output")
            message = f"{count} not compared, because the ONNX model has no tensor of this name: {listed}"
            self.diagnostics.append(diagnose(USAGE, message, Place(self._path), severity=Severity.WARNING))
        return names


_SHOWN = 5  # keys in a message


class Recorded(Side):
    """Recorded tensors.

    A key is the name of a tensor, of a layer (for its first output), of a Result, or a layer's name with the position
    of the output, as in ``split:1``; the prefix ``tap:``, which ``ovir run --output`` writes, may be before it.
    """

    labels = ("recorded", "in the model")
    is_recorded = True

    def __init__(
        self, model: Model, tensors: Mapping[str, Array], description: str, precision: str | None = None
    ) -> None:
        """Find the tensors of a model; ``precision`` is the element type in which they were computed, if it is known.

        Tensors are looked up when they are compared. Raises InputError if no key names one.
        """
        self.description = description
        self._precision = precision
        self._model = model
        self._tensors = tensors
        names = _ports_by_name(model)
        self._keys: dict[Port, str] = {}
        for key in tensors:
            if key in names:
                self._keys.setdefault(names[key], key)
        unknown = [key for key in tensors if key not in names]
        # Layers in bodies run many times or not at all.
        recorded = record_keys(model) if unknown else {}
        in_bodies = {key: recorded[key].layer for key in unknown if key in recorded and recorded[key].layer.scope}
        layers = dict.fromkeys(in_bodies.values())
        self.not_compared = [NotCompared(layer.id, layer.key, layer.type, "it is in a body") for layer in layers]
        unknown = [key for key in unknown if key not in in_bodies]
        listed = first_quoted(unknown, _SHOWN)
        meant = did_you_mean(unknown[0], list(names), "'{}'") if unknown else ""
        hint = meant or "`ovir infer` lists the layers"
        place = Place(description)
        if not tensors:
            raise InputError.usage("nothing was compared: the recording is empty", place)
        if all(port.layer.type == "Parameter" for port in self._keys) and not any(
            port.source in self._keys for port in model.outputs
        ):
            if not unknown:
                raise InputError.usage("nothing was compared: the recording has only inputs", place)
            which, of = ("no key", "the keys are") if not self._keys else ("no key but inputs", "the others are")
            message = f"nothing was compared: {which} names a tensor or layer of the model; {of} {listed}"
            raise InputError.usage(message, place, hint=hint)
        if unknown:
            message = f"{plural(len(unknown), 'key')} of {len(tensors)} name no tensor and no layer: {listed}"
            self.diagnostics = [diagnose(USAGE, message, place, severity=Severity.WARNING, hint=hint)]

    @property
    def precision(self) -> str | None:
        return self._precision

    def recorded_inputs(self) -> dict[int, Array]:
        missing = [f"'{port.any_name}'" for port in self._model.inputs if port not in self._keys]
        if missing:
            message = f"the recording has no input {', '.join(missing)}"
            hint = "give the inputs that it was made with: --input, or inputs= in Python"
            raise InputError.usage(message, Place(self.description), hint=hint)
        return {i: self._tensors[self._keys[port]] for i, port in enumerate(self._model.inputs)}

    def mismatch(self, element_type: ElementType, array: Array) -> str | None:
        if not element_type.is_dynamic and array.dtype == element_type.to_dtype():
            return None  # nf4 is recorded as codes of u8
        recorded = ElementType.from_dtype(array.dtype)
        kinds = [(kind.is_real, kind.kind == "string") for kind in (recorded, element_type)]
        return None if kinds[0] == kinds[1] else f"was recorded as {recorded}, but {element_type} was expected"

    def _require_same(self, inputs: Sequence[Array]) -> None:
        """Raise InputError if an input was recorded with other values than it has."""
        for port, array in zip(self._model.inputs, inputs, strict=True):
            key = self._keys.get(port)
            if key is None:
                continue
            recorded = self._tensors[key]
            if not _equal(recorded, array):
                message = f"input '{port.any_name}' has other values than in the recording"
                hint = "leave out --input and --seed: recorded inputs are used if the recording has all of them"
                raise InputError(diagnose(BAD_INPUT, message, Place(self.description), hint=hint))

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._require_same(inputs)
        for step in steps:
            keys = [self._keys.get(port) for port in step.layer.outputs]
            if any(key is not None for key in keys):
                yield LayerAnswer(step, [None if key is None else self._tensors[key] for key in keys])
            else:
                yield LayerAnswer(step, skipped="it was not recorded")

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        sources = [port.source for port in self._model.outputs]
        keys = [None if port is None else self._keys.get(port) for port in sources]
        return [None if key is None else self._tensors[key] for key in keys]


def _ports_by_name(model: Model) -> dict[str, Port]:
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


def _equal(a: Array, b: Array) -> bool:
    """Return whether two arrays have one shape and equal elements; NaN is equal to NaN."""
    if a.dtype.kind in "TUSO" or b.dtype.kind in "TUSO":
        return np.array_equal(a, b)
    return np.array_equal(as_numbers(a), as_numbers(b), equal_nan=True)
