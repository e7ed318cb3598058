"""A device as the other side of a comparison: the whole model, its layers alone, or beginnings of it.

The device belongs to another engine, or is ovir itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass

from ovir.building.creation import new_constant, new_parameter, new_result
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.debugging.device_properties import PROPERTIES, settings_that_round
from ovir.debugging.engines.process import EngineDiedError, EngineError, EngineProcess, LoadedModel
from ovir.debugging.layerwise_run import element_type_of
from ovir.debugging.repeats import ONCE, Loaded, Repeats
from ovir.debugging.sides import Device, LayerAnswer, LayerMode, Partners, Side, in_batches, in_halves
from ovir.debugging.tensor_sides import rounded_by_one
from ovir.diagnostics.errors import ModelError, ReadError, RunError
from ovir.editing.extraction import assign_unassigned
from ovir.editing.transaction import infer_edited
from ovir.graph.connections import set_scopes
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.copies import independent
from ovir.graph.layers import Layer, Port, join
from ovir.graph.order import trace_back
from ovir.ir.executed import ExecutedGraph, Execution
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.ops.state import AssignBase
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import SeenStep


@dataclass(frozen=True)
class LonePart:
    """A layer that is to run alone."""

    step: SeenStep
    """The layer as ovir has run it. It has no array for weights, which are copied with the layer instead."""
    layer: Layer
    """The layer of the other model."""
    outputs: Sequence[int]
    """The positions of the outputs to return."""


class LoneParts:
    """A model of layers, each between Parameters and Results of its own.

    The constants that a layer reads, and the layers that compute them, are copied with it, so that a device compiles
    the same kernel for it as in the whole model. Sizes and axes, which inference reads, become constants with the
    values of the run, too. Nothing is shared between two layers, because devices compute layers that read one tensor
    together.
    """

    def __init__(self, parts: Sequence[LonePart], constants: Mapping[Layer, int], *, with_sizes: bool = True) -> None:
        """Make the model; ``constants`` are the layers that depend on constants alone, with their places in order.

        Without ``with_sizes``, the Parameters have the ranks of the arrays only.

        Raises ModelError if inference refuses it.
        """
        self._constants = constants
        self._with_sizes = with_sizes
        self._layers: list[Layer] = []
        self._parameters: list[Layer] = []
        self.inputs: list[Array] = []
        """The arrays of the model's inputs."""
        results: list[Layer] = []
        for part in parts:
            layer = self._add(part)
            for position in part.outputs:
                results.append(new_result(0, f"{len(results)}/result"))
                join(layer.outputs[position], results[-1].inputs[0])
        layers = [*self._parameters, *self._layers, *results]
        for number, layer in enumerate(layers):
            layer.id = number
        self.model = Model.of_layers(layers, name="layers")
        assign_unassigned(self.model)
        infer_edited(self.model)

    def _add(self, part: LonePart) -> Layer:
        """Copy a layer and the constants before it, and connect it."""
        found, _ = trace_back([part.layer], lambda port: port.layer in self._constants)
        before = sorted((layer for layer in found if layer is not part.layer), key=self._constants.__getitem__)
        copies = independent([*before, part.layer], {}).joined()
        prefix = len(self._layers)
        for copied in copies:
            copied.name = f"{prefix}/{copied.name}"
            copied.scope = ""
            set_scopes(copied)
            for port in copied.outputs:
                port.own_names = frozenset()
        self._layers += copies[:-1]
        fed = [position for position, port in enumerate(copies[-1].inputs) if port.source is None]
        fixed = [position for position in fed if _is_size(part, position)]
        for position in fed:
            # A layer without any Parameter would be folded, not run.
            self._feed(part, position, copies[-1].inputs[position], is_constant=position in fixed and fixed != fed)
        self._layers.append(copies[-1])
        return copies[-1]

    def _feed(self, part: LonePart, position: int, port: Port, *, is_constant: bool) -> None:
        """Connect an input with a constant or with a Parameter."""
        array = part.step.inputs[position]
        assert array is not None  # constants are not fed
        element_type = element_type_of(part.layer.inputs[position], array)
        array = array.astype(element_type.to_dtype(), copy=False)
        name = f"{len(self._layers)}/input{position}"
        if is_constant:
            source = new_constant(0, name, Const.of(array, element_type))
            self._layers.append(source)
        else:
            shape = PartialShape(array.shape if self._with_sizes else [-1] * array.ndim)
            source = new_parameter(0, name, TensorType(element_type, shape))
            self._parameters.append(source)
            self.inputs.append(array)
        join(source.outputs[0], port)


def _is_size(part: LonePart, position: int) -> bool:
    """Return whether an input holds sizes, axes or the like, which inference reads."""
    op, array = part.layer.operator, part.step.inputs[position]
    return op is not None and op.reads_value(position) and array is not None and array.size <= _MOST_SIZES


_MOST_SIZES = 64  # numbers


class EngineDevice(Device):
    """A device of another engine, which reads models from files."""

    def __init__(self, engine: EngineProcess, model: Model) -> None:
        self.engine = engine
        self.labels = (f"on {engine.device}", "in ovir")
        self._model = model
        self._loaded: LoadedModel | None = None
        self._whole = ExitStack()

    @property
    def description(self) -> str:
        return self.engine.description

    @property
    def openvino_device(self) -> str:
        return self.engine.description if self.engine.kind == "openvino" else ""

    def open(self) -> None:
        self.engine.open()

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        with self.engine.compiled(model) as loaded:
            self._ask(loaded)
            return self.repeats.infer(loaded, inputs)

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        if self._loaded is None or self._loaded.is_lost:
            self.release()
            self._loaded = self._whole.enter_context(self.engine.compiled(self._model))
            self._ask(self._loaded)
        outputs = self.repeats.infer(self._loaded, inputs)
        if self.executed is None and self.engine.kind == "openvino":
            try:
                self.executed = self._loaded.executed()
            except (EngineError, ReadError):  # not all devices say it
                self.executed = ExecutedGraph(())
        return outputs

    def _ask(self, loaded: LoadedModel) -> None:
        """Ask for the type in which the device computes a model, and for the properties that matter for the whole."""
        self.precision = loaded.precision
        if self.settings is None and self.engine.kind == "openvino":
            told = loaded.properties([row.name for row in PROPERTIES])
            device = ",".join(loaded.facts.get("devices") or [self.engine.device])
            self.settings = settings_that_round(self._model, device, {**self.engine.config, **told})

    def release(self) -> None:
        self._loaded = None
        self._whole.close()

    def close(self) -> None:
        self.engine.close()
        self.release()


class _Request(Loaded):
    """A request of a model that ovir has compiled."""

    def __init__(self, model: Model, emulate: str | None = None) -> None:
        self._compiled = CompiledModel(model, emulate=emulate, keep_compressed=emulate is None)
        self._emulate = emulate
        self.renew()

    def renew(self) -> None:
        self._request = self._compiled.create_infer_request()

    def again(self) -> AbstractContextManager[_Request]:
        return nullcontext(_Request(self._compiled.model, self._emulate))

    def infer(self, inputs: Sequence[Array], *, outputs: Sequence[str] | None = None) -> list[Array]:
        self._request.reset_state()
        return list(self._request.infer(list(inputs)).values())


class OvirDevice(Device):
    """ovir itself, in place of a device; it may emulate one that computes in ``emulate``, f16 or bf16."""

    description = "ovir"

    def __init__(self, model: Model, emulate: str | None = None) -> None:
        self._model, self._emulate = model, emulate
        self.precision = emulate or self.precision
        self._whole: _Request | None = None

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        return self.repeats.infer(_Request(model, self._emulate), inputs)

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        if self._whole is None:
            self._whole = _Request(self._model, self._emulate)
        return self.repeats.infer(self._whole, inputs)

    def release(self) -> None:
        self._whole = None


# --------------------------------------------------------------------------- layers on a device


class Isolated:
    """Layers alone on a device, which show how its kernels differ, whatever the layers before them do.

    Layers are collected and run together, as a model of layers that have nothing to do with each other. If the device
    fails on one, the model is halved until the layer is found.
    """

    accumulates = False

    def __init__(self, device: Device, partners: Partners, *, runs_whole: bool) -> None:
        """Prepare for a model. A device that ``runs_whole``, the whole model, is not at fault if it refuses a layer
        alone."""
        self._device = device
        self._partners = partners
        self._runs_whole = runs_whole
        folded = all_constant_layers(partners.b)
        self._constants = {layer: place for place, layer in enumerate(partners.b.layers) if layer in folded}

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        items = map(self._item, steps)
        return in_batches(items, lambda some: in_halves(some, self._run, self._failed), _MOST_LAYERS)

    def _item(self, step: SeenStep) -> LayerAnswer | tuple[LonePart, int]:
        other = self._partners.of(step.layer)
        reason = self._partners.missing(step) or _not_alone(step.layer)
        if reason is None and other is not None and len(other.inputs) != len(step.inputs):
            reason = "the layer of the other model has another number of inputs"
        elif reason is None and other is not None and self._lacks_inputs(step, other):
            reason = "ovir leaves out an input that the layer needs when it runs alone"
        read = [port.index for port in step.layer.outputs if port.readers]
        if reason is None and not read:
            reason = "nothing reads its outputs"
        if reason is None and not any(step.outputs[index].size for index in read):
            reason = "its outputs have no elements"
        if reason is not None or other is None:
            return LayerAnswer(step, skipped=reason)
        return LonePart(step, other, read), step.size

    def _lacks_inputs(self, step: SeenStep, other: Layer) -> bool:
        """Return whether an input that the layer of the other model must be fed with is not known from the run."""
        pairs = zip(other.inputs, step.inputs, strict=True)
        return any(
            array is None and port.source is not None and port.source.layer not in self._constants
            for port, array in pairs
        )

    def _run(self, items: Sequence[LonePart]) -> list[LayerAnswer]:
        results = iter(self._results(items))
        answers = []
        for item in items:
            arrays: list[Array | None] = [None] * len(item.step.outputs)
            for position in item.outputs:
                arrays[position] = next(results)
            answers.append(LayerAnswer(item.step, arrays, other=item.layer))
        return answers

    def _results(self, chosen: Sequence[LonePart]) -> list[Array]:
        """Return the outputs that layers have together on the device.

        A device that refuses a single layer for the sizes of its inputs may accept it for unknown sizes: OpenVINO's CPU
        plugin does not run NonMaxSuppression alone otherwise.
        """
        try:
            parts = LoneParts(chosen, self._constants)
            return self._device.run(parts.model, parts.inputs)
        except EngineDiedError:
            raise
        except RunError as error:
            if len(chosen) > 1:
                raise
            try:
                parts = LoneParts(chosen, self._constants, with_sizes=False)
                return self._device.run(parts.model, parts.inputs)
            except (RunError, ModelError):
                raise error from None

    def _failed(self, item: LonePart, error: RunError | ModelError) -> LayerAnswer:
        text = error.diagnostic.message
        is_fault = isinstance(error, EngineDiedError) or (isinstance(error, RunError) and not self._runs_whole)
        if is_fault:
            return LayerAnswer(item.step, problem=text, other=item.layer)
        return LayerAnswer(item.step, skipped=f"it cannot run alone: {text}", other=item.layer)


def _not_alone(layer: Layer) -> str | None:
    """Return the reason why a layer has no result of its own; None if it has one."""
    op = layer.operator
    if isinstance(op, AssignBase):
        return "it only sets a state"
    seeds = [getattr(op, name) for name in ("global_seed", "op_seed") if hasattr(op, name)]
    if seeds and not any(seeds):
        return "it draws other numbers in each run"
    return None


_MOST_LAYERS = 200  # in one run


class Cumulative:
    """Layers compared cumulatively: the model on a device, with tensors between its layers as further outputs.

    Many layers are compared in one run. The further outputs keep the device from computing several layers as one, so
    its results may differ from what the model gives as it is. After a layer that the device fails at, nothing is
    compared any more.
    """

    accumulates = True

    def __init__(self, device: Device, partners: Partners) -> None:
        self._device = device
        self._partners = partners
        self._folded = all_constant_layers(partners.b)
        self._inputs: list[Array] = []
        self._stopped: str | None = None

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._inputs = self._partners.inputs(inputs)
        self._stopped = None
        return in_batches(map(self._item, steps), lambda items: in_halves(items, self._run, self._failed))

    def _item(self, step: SeenStep) -> LayerAnswer | tuple[SeenStep, int]:
        reason = self._partners.missing(step)
        if reason is None and not self._ports(step):
            reason = "nothing reads its outputs"
        if reason is not None:
            return LayerAnswer(step, skipped=reason)
        return step, sum(array.nbytes for array in step.outputs)

    def _ports(self, step: SeenStep) -> list[Port]:
        """Return the outputs of the other model's layer that something reads; none of a layer that is folded."""
        other = self._partners.of(step.layer)
        if other is None or other in self._folded:
            return []
        return [port for port in other.outputs if port.readers]

    def _run(self, items: Sequence[SeenStep]) -> list[LayerAnswer]:
        if self._stopped is not None:
            return [LayerAnswer(step, skipped=self._stopped) for step in items]
        ports = [port for step in items for port in self._ports(step)]
        part = self._partners.b.extract(outputs=ports)
        places = {port.layer.id: place for place, port in enumerate(self._partners.b.inputs)}
        results = self._device.run(part, [self._inputs[places[port.layer.id]] for port in part.inputs])
        given = dict(zip(ports, results, strict=True))
        answers = []
        for step in items:
            other = self._partners.of(step.layer)
            assert other is not None
            answers.append(LayerAnswer(step, [given.get(port) for port in other.outputs], other=other))
        return answers

    def _failed(self, item: SeenStep, error: RunError | ModelError) -> LayerAnswer:
        self._stopped = f"the device fails before, at '{item.layer.key}'"
        return LayerAnswer(item, problem=error.diagnostic.message, other=self._partners.of(item.layer))


class DeviceSide(Side):
    """A device that runs the whole model, and its layers once these are asked for."""

    with_constants = False
    outputs_first = True

    def __init__(self, device: Device, partners: Partners, repeats: Repeats = ONCE) -> None:
        self.partners: Partners = partners
        self.labels = device.labels
        self.repeats = device.repeats = repeats
        self.device: Device = device
        self.runs_parts = partners.a is partners.b
        self._layers: Isolated | Cumulative | None = None

    @property
    def executions(self) -> Mapping[str, Execution]:
        if self.device.executed is None:
            return {}
        found = self.device.executed.of(self.partners.b)
        pairs = ((layer.key, self.partners.of(layer)) for layer in self.partners.a.walk())
        return {key: found[other] for key, other in pairs if other in found}

    def rounded_constants(self) -> dict[Layer, ElementType]:
        return {} if self.runs_parts else rounded_by_one(self.partners)

    def compare_layers(self, mode: LayerMode, *, runs_whole: bool) -> None:
        self.device.release()
        if mode == "isolated":
            self._layers = Isolated(self.device, self.partners, runs_whole=runs_whole)
        else:
            self._layers = Cumulative(self.device, self.partners)
        self.accumulates = self._layers.accumulates

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        assert self._layers is not None
        return self._layers.layer_outputs(inputs, steps)

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        results = self.device.run_whole(self.partners.inputs(inputs))
        return [None if index is None else results[index] for index in self.partners.outputs]

    def open(self) -> None:
        self.device.open()
        name = self.device.description
        self.description = name if self.runs_parts else f"{self.partners.b.path} on {name}"

    def close(self) -> None:
        self.device.close()
