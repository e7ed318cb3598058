"""The protocol of the other side of a comparison, and the base of its implementations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeVar

from ovir.analysis.clipping import Clipping
from ovir.analysis.matching import GraphSignatures, Interner, Matching
from ovir.analysis.tensor_comparison import SIDES
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.device_properties import DeviceSetting
from ovir.debugging.layerwise_run import ENDS
from ovir.debugging.repeats import ONCE, Repeats
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, ModelError, OvirError, RunError
from ovir.diagnostics.wording import quoted
from ovir.editing.extraction import runnable_part
from ovir.graph.layers import Layer, Port, layers_before
from ovir.ir.executed import ExecutedGraph, Execution
from ovir.model import Model
from ovir.runtime.executor import SeenStep
from ovir.runtime.inputs import collect_inputs

LayerMode = Literal["isolated", "cumulative"]
"""The mode of comparing layers: each alone with the inputs that it has in ovir, or as errors add up."""


@dataclass(frozen=True)
class ResultLayer:
    """A layer of the first model in a result."""

    id: int
    """The id of the layer."""
    name: str
    """The key of the layer, which is its name unless the model has several layers of this name."""
    type: str
    """The operation, such as ``Convolution``."""
    version: str
    """The opset that the file names, such as ``opset1``."""

    @classmethod
    def of(cls, layer: Layer, *others: Any) -> Self:
        """Return an entry for a layer; ``others`` are the values of the other fields."""
        return cls(layer.id, layer.key, layer.type, layer.version, *others)


@dataclass(frozen=True)
class NotCompared:
    """A layer that was not compared, or for which there is nothing to compare with."""

    id: int
    """The id of the layer."""
    name: str
    """The key of the layer."""
    type: str
    """The operation, such as ``Convolution``."""
    reason: str
    """The reason why it was left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return the layer for JSON."""
        return vars(self).copy()


@dataclass(frozen=True)
class LayerAnswer:
    """The tensors of the other side for the outputs of a layer, or why there are none."""

    step: SeenStep
    """The layer as ovir has run it."""
    arrays: Sequence[Array | None] = ()
    """The tensors to compare its outputs with, by position; None for those that are not compared."""
    problem: str | None = None
    """The failure of the other side, which counts as a difference."""
    skipped: str | None = None
    """The reason why the layer is not compared."""
    other: Layer | None = None
    """The layer of the other model."""


class Device(Protocol):
    """A device that runs models, or a substitute."""

    precision: str | None = None
    """The element type in which the device computes, once it has compiled a model and if it says so."""
    labels: tuple[str, str] = SIDES
    """The sources of compared values: those of the device, and those of the first model."""
    executed: ExecutedGraph | None = None
    """The graph that the device executed for the model, once it has run it and if it says so."""
    repeats: Repeats = ONCE
    """Repeats all runs, if that is wanted."""
    settings: Sequence[DeviceSetting] | None = None
    """The properties by which the device changes numbers of the model, once it has compiled one."""

    @property
    def description(self) -> str:
        """Return the name of the device with its version."""

    @property
    def openvino_device(self) -> str:
        """Return the description of a device of OpenVINO, such as ``OpenVINO 2026.4.1 on CPU``; empty for others."""
        return ""

    def open(self) -> None:
        """Make sure that the device is there; raise EngineMissingError if it is not."""
        return

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of a model for inputs by position; the model is compiled for this run alone.

        Raises EngineError or EngineDiedError.
        """

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of the model that the device was made for; it stays compiled."""

    def release(self) -> None:
        """Release the compiled model."""

    def close(self) -> None:
        """Release the resources of the device."""
        self.release()


class Side(Protocol):
    """The other side of a comparison: a device, a second model, an ONNX model or a recording.

    It returns the outputs of the model and of its layers; each kind of side overrides what differs from the defaults.
    """

    description: str
    """The name of the side, once it is open."""
    labels: tuple[str, str] = SIDES
    """The sources of compared values: those of this side, and those of the first model."""
    partners: Partners | None = None
    """The layers of a second model that correspond to layers of the first one, if there is a second one."""
    accumulates: bool = True
    """Whether compared values include errors of earlier layers."""
    with_constants: bool = True
    """Whether layers that depend on constants alone are compared."""
    outputs_first: bool = False
    """Whether layers are compared only after the outputs of all sets of inputs, and if there is a reason."""
    shares_steps: bool = False
    """Whether it looks at the arrays of a layer only before the next layer runs."""
    is_recorded: bool = False
    """Whether its tensors were computed earlier, from inputs that may be among them."""
    repeats: Repeats = ONCE
    """Has the further results of runs, if they are repeated."""

    clipped: Mapping[str, Clipping] = {}
    """What FakeQuantize layers of a second model have clipped in its runs, by their keys."""
    device: Device | None = None
    """The device that computes its tensors, if there is one."""
    runs_parts: bool = False
    """Whether this device can run parts of the first model; if not, only tensors of whole runs are there."""
    not_compared: Sequence[NotCompared] = ()
    """The layers with tensors on this side that are never compared."""
    diagnostics: Sequence[Diagnostic] = ()
    """Warnings and notes about this side."""

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the outputs to compare with, for each output of the first model; None for those that are missing."""

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        """Yield an answer for each layer that ovir has run, once it is known; the answers may lag behind the steps."""

    def compare_layers(self, mode: LayerMode, *, runs_whole: bool) -> None:
        """Choose how layers are compared from now on; ``runs_whole`` says whether the side has run the whole model.

        Sides that can compare them in one way only do nothing.
        """
        return

    def recorded_inputs(self) -> dict[int, Array]:
        """Return the inputs of a recording, by position; raise InputError if one is missing."""
        return {}

    def mismatch(self, element_type: ElementType, array: Array) -> str | None:
        """Return the reason why a tensor of an element type cannot be compared with an array; None if it can.

        ``element_type`` is the type in the first model.
        """
        return None

    def rounded_constants(self) -> Mapping[Layer, ElementType]:
        """Return the layers of the first model that read constants of f16 or bf16 on one side, rounded from f32."""
        return {}

    @property
    def precision(self) -> str | None:
        """Return the element type in which the other side computes; None if it is not known."""
        return None if self.device is None else self.device.precision

    @property
    def settings(self) -> Sequence[DeviceSetting]:
        """Return the properties by which a device changes numbers of the model it runs."""
        return () if self.device is None else self.device.settings or ()

    @property
    def executions(self) -> Mapping[str, Execution]:
        """Return the executions of the first model's layers on the other side, by key, as far as they are known."""
        return {}

    def open(self) -> None:
        """Make sure that the side is there; raise EngineMissingError if it is not."""
        return

    def close(self) -> None:
        """Release the resources of the side."""
        return


# --------------------------------------------------------------------------- the layers of a second model


class Partners:
    """The layers of a second model that correspond to layers of a first one, which may be the same model."""

    def __init__(self, a: Model, b: Model) -> None:
        """Match the layers of two models as ``ovir.diff`` does."""
        self.a, self.b = a, b
        self._to_b = {layer: layer for layer in a.walk()}
        if a is not b:
            interner = Interner()
            matching = Matching(GraphSignatures(a, interner), GraphSignatures(b, interner))
            self._to_b = {matching.a.layers[i]: matching.b.layers[j] for i, j in matching.pairs()}
        self._inputs = [self._input_of(port) for port in b.inputs]
        self.outputs = self._matched_outputs()
        """For each output of the first model the position of the same output of the second, None for none."""

    def of(self, layer: Layer) -> Layer | None:
        """Return the layer of the second model; None if it has no such layer."""
        return self._to_b.get(layer)

    def lone_before(self, layer: Layer) -> list[str]:
        """Return descriptions of the layers before a layer or its partner that only one model has."""
        other = self.of(layer)
        if self.a is self.b or other is None:
            return []
        matched = self._to_b.keys(), set(self._to_b.values())
        found = []
        for one, known, where in zip((layer, other), matched, ("the first", "the other"), strict=True):
            sources = dict.fromkeys(layers_before(one))
            alone = (source for source in sources if source not in known and source.type not in ("Const", *ENDS))
            found += [f"{source.type} '{source.name}', which only {where} model has" for source in alone]
        return found

    def missing(self, step: SeenStep) -> str | None:
        """Return the reason why a layer cannot be compared with its partner; None if it can."""
        other = self.of(step.layer)
        if other is None:
            return "the other model has no such layer"
        if other.type in ENDS:
            return f"it is a {other.type} in the other model"
        if len(other.outputs) != len(step.layer.outputs):
            return "the layer of the other model has another number of outputs"
        return None

    def inputs(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the inputs of the second model for inputs of the first, in its element types."""
        return collect_inputs(self.b, [arrays[index] for index in self._inputs], self.b.input_index)

    def part(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> Model | None:
        """Return the part of the second model between the tensors that correspond to tensors of the first one.

        None if there is no such part, as where its outputs depend on other tensors, too.
        """
        cut = [other for port in inputs if (other := self._tensor(port)) is not None]
        wanted = [other for port in outputs if (other := self._tensor(port)) is not None]
        if len(cut) < len(inputs) or len(wanted) < len(outputs):
            return None
        try:
            return runnable_part(self.b, cut, wanted)
        except OvirError:
            return None

    def _tensor(self, port: Port) -> Port | None:
        """Return the tensor of the second model that corresponds to a tensor of the first one."""
        if port.layer.type == "Parameter":
            place = self.a.inputs.index(port)
            return next((other for other, i in zip(self.b.inputs, self._inputs, strict=True) if i == place), None)
        if (partner := self._partner(port)) is not None:
            return partner
        pairs = zip(self.a.outputs, self.outputs, strict=True)
        matched = next((i for output, i in pairs if output.source is port), None)
        return None if matched is None else self.b.outputs[matched].source

    def _partner(self, port: Port | None) -> Port | None:
        """Return the output of a corresponding layer of the second model."""
        other = None if port is None else self.of(port.layer)
        if port is None or other is None or len(other.outputs) != len(port.layer.outputs):
            return None
        return other.outputs[port.index]

    def _input_of(self, port: Port) -> int:
        """Return the position of the first model's input that also feeds this one."""
        names, inputs = {port.layer.name, *port.names}, list(enumerate(self.a.inputs))
        alike = [index for index, first in inputs if self._to_b.get(first.layer) is port.layer]
        alike += [index for index, first in inputs if names & {first.layer.name, *first.names}]
        if alike:
            return alike[0]
        names_of = [quoted(port.any_name for port in model.inputs) or "none" for model in (self.a, self.b)]
        message = f"the models have different inputs: {names_of[0]} / {names_of[1]}"
        is_related = any(layer.type not in ENDS for layer in self._to_b)
        hint = "`ovir edit --rename` gives an input another name" if is_related else None
        raise InputError.usage(message, port.layer.place, hint=hint)

    def _matched_outputs(self) -> list[int | None]:
        sources = {port.source: index for index, port in enumerate(self.b.outputs)}
        found = [sources.get(self._partner(port.source)) for port in self.a.outputs]
        free = [index for index in range(len(self.b.outputs)) if index not in found]
        for place, port in enumerate(self.a.outputs):
            if found[place] is None:  # the layers before it have been replaced
                alike = [i for i in free if self.b.outputs[i].names & port.names]
                alike += [i for i in free if self.b.outputs[i].layer is self._to_b.get(port.layer)]
                alike += [i for i in free if len(self.a.outputs) == len(self.b.outputs) and i == place]
                if alike:
                    found[place] = alike[0]
                    free.remove(alike[0])
        return found


# --------------------------------------------------------------------------- many layers in one run

MOST_BYTES = 32 << 20
"""The most bytes of tensors that one run takes and returns, unless a single layer has more."""

Item = TypeVar("Item")


def in_batches(
    items: Iterable[LayerAnswer | tuple[Item, int]],
    run: Callable[[Sequence[Item]], Iterable[LayerAnswer]],
    most: int | None = None,
) -> Iterator[LayerAnswer]:
    """Yield the answers for layers, of which ``run`` computes several at once.

    An item that is an answer is passed on. Any other has the number of bytes of its tensors; ``most`` is the most items
    of a batch.
    """
    waiting: list[Item] = []
    size = 0
    for item in items:
        if isinstance(item, LayerAnswer):
            yield item
            continue
        if waiting and (size + item[1] > MOST_BYTES or len(waiting) == most):
            yield from run(waiting)
            waiting, size = [], 0
        waiting.append(item[0])
        size += item[1]
    if waiting:
        yield from run(waiting)


def in_halves(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Sequence[LayerAnswer]],
    failed: Callable[[Item, RunError | ModelError], LayerAnswer],
) -> Iterator[LayerAnswer]:
    """Yield the answers for layers; where all together fail, run them in halves, until the layer at fault is found."""
    try:
        yield from run(items)
    except (RunError, ModelError) as error:
        if len(items) == 1:
            yield failed(items[0], error)
            return
        half = len(items) // 2
        yield from in_halves(items[:half], run, failed)
        yield from in_halves(items[half:], run, failed)
