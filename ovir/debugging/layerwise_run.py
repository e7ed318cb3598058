"""Run a model in ovir layer by layer: each next layer runs when the caller asks for it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from math import prod

from ovir.analysis.clipping import Clipping, add_clipping
from ovir.analysis.input_sizes import NarrowTensor, narrow_axes
from ovir.analysis.tensor_comparison import Depth
from ovir.core.arrays import Array
from ovir.core.blas import single_thread
from ovir.core.element_types import ElementType
from ovir.core.numpy_settings import kernel_settings
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import Code
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, Port, sources_of
from ovir.graph.order import walk
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import Executor, SeenStep
from ovir.runtime.executor_cache import ExecutorCache
from ovir.runtime.listeners import Reports
from ovir.runtime.state import Variables

ENDS = ("Parameter", "Result", "Const")
"""Layers that compute nothing."""


class WalkPlan:
    """The plan of a model in which layers are steps that other plans fold. One walk at a time may use it."""

    def __init__(
        self,
        model: Model,
        *,
        with_constants: bool,
        keeps_state: bool = False,
        wanted: Collection[Layer] = (),
        only_outputs: bool = False,
    ) -> None:
        """Plan a model: all layers that compute something are steps, but of the dead layers only those in ``wanted``.

        Without ``with_constants``, layers that depend on constants alone are folded. With ``keeps_state``, a walk
        begins with the state that the last walk has left. With ``only_outputs``, walks are plain runs, which show no
        steps.

        Compressed weights stay so, because a walk uses each of them once: a few tensors are in memory, not all.
        """
        folded = set() if with_constants else all_constant_layers(model)
        self.model = model
        self.keeps_state = keeps_state
        self.only_outputs = only_outputs
        self.layers = [
            layer for layer in model.layers if not layer.is_dead and layer.type not in ENDS and layer not in folded
        ]
        """The steps that are not dead, in order."""
        self.variables = Variables()
        self.clipped: dict[str, Clipping] = {}
        """What FakeQuantize layers have clipped in all walks, by their keys."""
        keep = frozenset(() if only_outputs else (layer.key for layer in (*self.layers, *wanted)))
        compiled = CompiledModel(model, keep_compressed=True)
        self.bindings = ExecutorCache(compiled, self.variables, keep, watched=not only_outputs)


class Walk(Iterator[SeenStep]):
    """One run of a model. Iterating runs the next layer and returns it with its arrays."""

    def __init__(self, plan: WalkPlan, inputs: Sequence[Array], *, share: bool = False) -> None:
        """Prepare a run; with ``share``, the arrays of a layer are valid only until the next layer runs."""
        if not plan.keeps_state:
            plan.variables.reset()
        self._clipped = plan.clipped
        self._executor = plan.bindings.executor_for(inputs)
        executor = self._executor
        self._steps = _plain_run(executor, inputs) if plan.only_outputs else executor.walk(inputs, share=share)
        self._reports = Reports(strict=False)
        self.results: list[Array] | None = None
        """The outputs, after the last layer has run."""

    def __next__(self) -> SeenStep:
        def report(code: Code, message: str, effect: str) -> None:
            self._reports.add(code, message, effect, self._executor.innermost)

        try:
            with kernel_settings(), single_thread, reporting_to(report):
                step = next(self._steps)
        except StopIteration as end:
            if self.results is None:
                self.results = end.value
            raise StopIteration from None
        if (clipping := Clipping.of(step)) is not None:
            add_clipping(self._clipped, step.layer.key, clipping)
        return step

    def finish(self) -> list[Array]:
        """Run the layers that remain, and return the outputs."""
        for _ in self:
            pass
        assert self.results is not None
        return self.results

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the warnings of kernels about values on which devices may differ."""
        return self._reports.found


def _plain_run(executor: Executor, inputs: Sequence[Array]) -> Generator[SeenStep, None, list[Array]]:
    """Yield nothing, and return the outputs."""
    yield from ()
    return executor.run(inputs)


def element_type_of(port: Port, array: Array) -> ElementType:
    """Return the element type of a tensor of a run; where inference does not know it, the type of its array."""
    return ElementType.from_dtype(array.dtype) if port.element_type.is_dynamic else port.element_type


def reduction_length(step: SeenStep) -> float:
    """Return the number of products or elements that are summed for each output element, estimated from sizes."""
    outputs = max((array.size for array in step.outputs), default=0)
    if not outputs:
        return 1.0
    shapes = step.input_shapes
    largest = max(map(prod, shapes), default=0)
    products = _products(step.layer, shapes, step.outputs)
    return max(products / outputs, largest / outputs, 1.0)


def _products(layer: Layer, inputs: Sequence[tuple[int, ...]], outputs: Sequence[Array]) -> float:
    """Return the multiply-accumulates of a layer for the sizes of a run; 0 where ovir does not count them."""
    op = layer.operator
    if op is None or len(inputs) != len(layer.inputs):
        return 0.0
    types = [
        TensorType(port.element_type, PartialShape(shape)) for port, shape in zip(layer.inputs, inputs, strict=True)
    ]
    count = op.multiply_accumulates(types, PartialShape(outputs[0].shape))
    return float(count.lower) if count is not None and count.is_static else 0.0


class Depths:
    """For each tensor: the longest path of layers to it, the longest sum of reduction lengths, and the types that it
    was rounded to."""

    def __init__(self, rounded_constants: Mapping[Layer, ElementType] | None = None) -> None:
        """Begin with the inputs; ``rounded_constants`` are the types of the constants that one side has rounded."""
        self._known: dict[Port, Depth] = {}
        self._rounded_constants = rounded_constants or {}
        self.narrow: list[NarrowTensor] = []
        """The tensors that were too small for the layers that read them."""
        self._constant: set[Port] = set()

    def of(self, step: SeenStep) -> Depth:
        """Return the depth of the outputs of a layer, and keep it for the layers after it."""
        layer, shapes = step.layer, step.input_shapes
        self.narrow.extend(narrow_axes(layer, shapes[0]) if shapes else ())
        ports = sources_of(layer)
        sources = [self.of_port(port) for port in ports]
        found = deepest(sources)
        if layer.operator is None or not layer.operator.views:
            found = found._replace(terms=found.terms + reduction_length(step), steps=found.steps + 1)
        if ports and all(port.layer.type == "Const" or port in self._constant for port in ports):
            self._constant.update(layer.outputs)  # weights, which both sides have alike
        else:
            found = found.through(_result_types(layer))
        if (kind := self._rounded_constants.get(layer)) is not None:
            found = found.with_weights(kind)
        self._known.update((port, found) for port in layer.outputs)
        return found

    @property
    def longest(self) -> Depth:
        """Return the depth of a tensor computed from all tensors so far."""
        return deepest(self._known.values())

    def of_port(self, port: Port | None) -> Depth:
        """Return the depth of a tensor, which is 0 for inputs and constants."""
        return Depth() if port is None else self._known.get(port, Depth())


def deepest(depths: Iterable[Depth]) -> Depth:
    """Return the depth of a tensor computed from tensors of these depths."""
    known = list(depths)
    worst = max(known, key=lambda x: x.weights, default=Depth())
    terms, steps = max((x.terms for x in known), default=0.0), max((x.steps for x in known), default=0.0)
    found = worst._replace(terms=terms, steps=steps, rounded_to=None)
    return found.through(x.rounded_to for x in known if x.rounded_to is not None)


def _result_types(layer: Layer) -> Iterator[ElementType]:
    """Return the element types of the results of a layer, and of those in its bodies."""
    return (port.element_type for inner in walk([layer]) if inner.type not in ENDS for port in inner.outputs)


def local(step: SeenStep) -> Depth:
    """Return the depth for a layer whose inputs have no error."""
    return Depth(reduction_length(step), 1.0).through(_result_types(step.layer))


def run_measured(model: Model, inputs: Sequence[Array]) -> tuple[list[Array], Depths]:
    """Return the outputs of a model, and the depths of its tensors."""
    walk, depths = Walk(WalkPlan(model, with_constants=False), inputs, share=True), Depths()
    for step in walk:
        depths.of(step)
    return walk.finish(), depths
