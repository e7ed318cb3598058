"""The executor, which runs the steps of a plan one by one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ovir.core.arrays import Array
from ovir.core.machine import physical_memory
from ovir.core.progress import counted
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import TOO_LARGE, Severity
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.text import exact_size_text, size_text
from ovir.graph.layers import Layer
from ovir.kernels.blocked import contiguous_copy
from ovir.runtime.failures import explain_failure, failed
from ovir.runtime.listeners import Listener, ListenerFailed
from ovir.runtime.memory import memory_use
from ovir.runtime.plan import Plan
from ovir.runtime.state import Variables
from ovir.runtime.step import Step


class SeenStep(NamedTuple):
    """A step that has run."""

    layer: Layer
    inputs: list[Array]
    outputs: list[Array]


class Executor:
    """Runs the steps of a plan one by one, for inputs of any shapes that the model takes."""

    def __init__(self, plan: Plan, variables: Variables, bodies: BodyMaker) -> None:
        """Prepare to run a plan; ``bodies(plan)`` returns what runs the plan of a body."""
        self.plan = plan
        self.variables = variables
        self.current: Layer | None = None
        self._template: list[Any] = [None] * len(plan.ports)
        for slot, array in plan.constants.items():
            self._template[slot] = array
        refuse_what_does_not_fit(plan)
        self._bodies = {
            index: {key: Body(bodies(body)) for key, body in of_step.items()} for index, of_step in plan.bodies.items()
        }
        self._sizes = {index: KnownSizes(step) for index, step in enumerate(plan.steps) if step.is_open}
        self._is_watched = False
        """Whether somebody sees all outputs of each step."""

    def run(self, inputs: Sequence[Array], listeners: Sequence[Listener] = (), *, share: bool = False) -> list[Array]:
        """Return the outputs, in order, for inputs that match the model; they always belong to the caller.

        A RunError names the layer that failed.
        """
        slots = self._begin(inputs, listeners, is_watched=bool(listeners))
        for index, step in enumerate(counted("running", self.plan.steps)):
            self._run_step(index, step, slots, listeners)
            for slot in step.release:
                slots[slot] = None
        return self._results(slots)

    def walk(self, inputs: Sequence[Array]) -> Generator[SeenStep, None, list[Array]]:
        """Yield each step when it has run, and return the outputs; the next step runs when the caller asks for it.

        The arrays of a step are valid to the end of the walk and must not be written to.
        """
        slots = self._begin(inputs, (), is_watched=True)
        for index, step in enumerate(self.plan.steps):
            self._run_step(index, step, slots, ())
            yield SeenStep(step.layer, [slots[i] for i in step.inputs], [slots[i] for i in step.outputs])
            for slot in step.release:
                slots[slot] = None
        return self._results(slots)

    def _begin(self, inputs: Sequence[Array], listeners: Sequence[Listener], *, is_watched: bool) -> list[Any]:
        """Return the slots at the beginning of a run."""
        slots = self._template.copy()
        for slot, array in zip(self.plan.parameters, inputs, strict=True):
            slots[slot] = array
        self._is_watched = is_watched
        for bodies in self._bodies.values():
            for body in bodies.values():
                body.listeners = listeners
        return slots

    def _results(self, slots: Sequence[Any]) -> list[Array]:
        """Return the outputs at the end of a run, in memory of their own."""
        plan = self.plan
        results: list[Array] = []
        seen: set[int] = set()
        for slot in plan.results:
            result = slots[slot]
            owner = id(result if result.base is None else result.base)
            is_free = slot not in plan.borrowed and owner not in seen
            seen.add(owner)
            results.append(result if is_free else contiguous_copy(result))
        return results

    def _run_step(self, index: int, step: Step, slots: list[Any], listeners: Sequence[Listener]) -> None:
        arguments = [slots[i] for i in step.inputs]
        self.current = step.layer
        if listeners:
            self._notify(listeners, "will_run", step.layer, arguments)
        try:
            if step.is_open:
                self._sizes[index].require(arguments)
            outputs = step.results(self.call(index, step, arguments))
        except Exception as error:
            raise failed(step.layer, error, arguments) from error
        for slot, array in zip(step.outputs, outputs, strict=False):  # outputs without a port are dropped
            slots[slot] = array
        if listeners:
            self._notify(listeners, "did_run", step.layer, arguments, outputs)

    @staticmethod
    def _notify(listeners: Sequence[Listener], event: str, *what: Any) -> None:
        for listener in listeners:
            try:
                getattr(listener, event)(*what)
            except Exception as error:
                raise ListenerFailed(error) from error

    def call(self, index: int, step: Step, arguments: Sequence[Array | None]) -> Any:
        """Call the kernel of a step and return what it returns."""
        if not step.takes:
            return step.kernel(*arguments)
        wanted = (True,) * len(step.outputs) if self._is_watched else step.wanted
        return step.kernel(*arguments, **keywords(step, self._bodies.get(index, {}), self.variables, wanted))

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        return innermost(self._bodies.values()) or self.current


def keywords(step: Step, bodies: Mapping[str, Body], variables: Variables, wanted: tuple[bool, ...]) -> dict[str, Any]:
    """Return the keywords that the kernel of a step asks for, ``out`` excepted."""
    found: dict[str, Any] = {}
    if "bodies" in step.takes:
        found["bodies"] = bodies
    if "variable" in step.takes:
        found["variable"] = variables.of(step.layer)
    if "wanted" in step.takes:
        found["wanted"] = wanted
    return found


def refuse_what_does_not_fit(plan: Plan) -> None:
    """Raise RunError for arrays that exceed the machine's memory, because the system may grant memory that it does not
    have."""
    needed, memory = memory_use(plan, certain=True).activations, physical_memory()
    if memory is not None and needed > memory:
        message = f"the model's tensors take {exact_size_text(needed)} at once; this machine has {size_text(memory)}"
        hint = "`ovir infer` shows the shapes; `--shape` gives an input another one"
        raise RunError(diagnose(TOO_LARGE, message, Place(plan.model.path), hint=hint, severity=Severity.ERROR))


class KnownSizes:
    """The shapes of inputs that fit together, for a step whose sizes inference has not seen."""

    def __init__(self, step: Step) -> None:
        self._layer = step.layer
        self._fitting: set[tuple[tuple[int, ...], ...]] = set()

    def require(self, arguments: Sequence[Array]) -> None:
        """Infer shapes that have not been seen before; raise OperatorError if they contradict each other."""
        shapes = tuple([array.shape for array in arguments])
        if shapes in self._fitting:
            return
        if (error := explain_failure(self._layer, arguments)) is not None:
            raise error
        if len(self._fitting) >= _MOST_SHAPES:
            self._fitting.clear()
        self._fitting.add(shapes)


class Runs(Protocol):
    """An object that runs a plan."""

    plan: Plan

    def run(self, inputs: Sequence[Array], listeners: Sequence[Listener] = (), *, share: bool = False) -> list[Array]:
        """Return the outputs, in order; they belong to the caller, but with ``share`` the next run may overwrite
        them."""

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now."""


BodyMaker = Callable[[Plan], Runs]


class Body:
    """A body as its operation runs it."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.listeners: Sequence[Listener] = ()
        self.is_running = False

    @property
    def parameters(self) -> list[TensorType]:
        return [port.type for port in self.runs.plan.model.inputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        self.is_running = True
        try:
            return self.runs.run(arrays, self.listeners, share=True)
        finally:
            self.is_running = False


def innermost(bodies: Iterable[Mapping[str, Body]]) -> Layer | None:
    """Return the layer that is running in one of these bodies, None if none is."""
    return next((body.runs.innermost for group in bodies for body in group.values() if body.is_running), None)


_MOST_SHAPES = 1000  # the largest number of cached shapes of a step
