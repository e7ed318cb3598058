"""The executor, which turns the steps of a plan into one list of calls on arrays; every way to run a model runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from ovir.core.arrays import Array, read_only
from ovir.core.blas import single_thread
from ovir.core.fast_calls import Call
from ovir.core.numpy_settings import kernel_settings
from ovir.core.parallel import contiguous_copy
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.fast.base.binder_protocol import run_calls
from ovir.graph.layers import Layer, Port
from ovir.inference.models import infer_for_call
from ovir.ops.base.operator import keeps_arrays
from ovir.runtime.arena import SlotMemory, Span
from ovir.runtime.failures import failed, memory_errors_named, out_of_memory
from ovir.runtime.listeners import Listener, ListenerFailed, sees_tensors
from ovir.runtime.plan import Plan, Step
from ovir.runtime.state import Variables
from ovir.runtime.step_binder import Prepared, StepBinder, bind_step, has_fixed_array
from ovir.runtime.unbound_calls import UnboundCall, UnboundContext
from ovir.system.progress import counted, is_shown
from ovir.system.python_runtime import without_garbage_collection

_LENT_BYTES: Final = 1 << 18
"""Bytes of an input above which steps read it where the caller has it."""
_BYTES_PER_STEP, _BYTES_PER_CALL = 1 << 19, 1 << 17
"""Bytes of an input that are copied in the time in which a step is bound again to another array, about 10 us, and each
of its calls is made again, about 3 us."""


class SeenStep(NamedTuple):
    """A step that has run."""

    layer: Layer
    inputs: list[Array | None]
    """The inputs of the layer; None for those that the step does not read, such as weights that it decompresses."""
    outputs: list[Array]

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs; () for one that the step does not read and whose shape is dynamic."""
        ports = [port for port in self.layer.inputs if port.source is not None]
        pairs = zip(ports, self.inputs, strict=False)
        return [_sizes(port) if array is None else array.shape for port, array in pairs]

    @property
    def size(self) -> int:
        """Return the bytes of the inputs and outputs; weights that the step decompresses count as f32."""
        given = sum(array.nbytes for array in (*self.inputs, *self.outputs) if array is not None)
        return given + sum(4 * prod(s) for s, a in zip(self.input_shapes, self.inputs, strict=True) if a is None)


def _sizes(port: Port) -> tuple[int, ...]:
    return port.shape.to_tuple() if port.shape.is_static else ()


class Executor:
    """Runs a plan. Tensors whose shapes the plan knows have permanent arrays.

    A step between such tensors is bound: it is a few calls of functions on these arrays. A step that reads a large
    input where the caller has it is bound again when the caller brings another array, to that or to a copy. Any other
    step, such as one with bodies, with variables or with tensors of unknown size, is one call that looks up its arrays
    in the slots (``UnboundCall``).
    """

    def __init__(
        self, plan: Plan, variables: Variables, prepared: Prepared | None = None, inputs: Sequence[Array] = ()
    ) -> None:
        """Bind the steps of a plan. Executors of plans of one model, for other shapes, share what ``prepared`` holds.
        Steps that read inputs where the caller has them are bound to those of the first run, if ``inputs`` has them.
        """
        self.plan = plan
        self._variables = variables
        self._prepared: Prepared = {} if prepared is None else prepared
        self._memory = SlotMemory()
        self._slots: list[Any] = [None] * len(plan.ports)
        self._fixed: set[int] = set(plan.constants)
        for slot, array in plan.constants.items():
            self._slots[slot] = array
        self._lent: dict[int, int] = {}
        """The slots of inputs that are read where the caller has them, each with the bytes that are copied in the time
        in which steps are bound to another array."""
        self._lent_sources: dict[int, set[int]] = {}
        """The slots in ``_lent`` in whose memory a slot lies."""
        self._new: dict[int, UnboundCall] = {}
        """The calls that make a result with a new array in each run, by slot, unless they have bound themselves."""
        self._rebinding: list[tuple[set[int], Step, StepBinder]] = []
        """The steps that are bound again when other arrays are lent, each with the slots of inputs that it reads."""
        self._unbound_context = UnboundContext(plan, self._slots, self._fixed, self._lent_sources, self._prepared)
        self._read_by_static = {slot for step in plan.steps if self._is_static(step) for slot in step.inputs}
        self._bodies: list[Body] = []
        self._calls: list[Call] = []
        self._counts: list[tuple[int, int]] = []
        """The number of calls of each step, and of those after it, which empty slots."""
        self._owners: list[Step] = []
        """The step of each call."""
        self._remaining: Any = iter(self._calls)
        # A thread of BLAS waits for more work for a while, and takes time from the first run.
        with single_thread, without_garbage_collection():
            self._bind(inputs)
        self._shared = self._shared_results()

    @property
    def memory(self) -> int:
        """Return the bytes that all tensors between the layers share."""
        return self._memory.arena.size

    # ----- binding

    def _bind(self, inputs: Sequence[Array]) -> None:
        plan = self.plan
        read = {slot for step in plan.steps for slot in step.inputs}.union(plan.results)
        for position, slot in enumerate(plan.parameters):
            if slot in read:  # a loop does not feed a parameter of its body that nothing reads
                with memory_errors_named(plan.ports[slot].layer):
                    self._add_input(slot, inputs[position] if inputs else None)
        for index, step in enumerate(counted("compiling", plan.steps)):
            with memory_errors_named(step.layer):
                self._add(index, step)

    def _add_input(self, slot: int, lent: Array | None) -> None:
        port = self.plan.ports[slot]
        if has_fixed_array(port):
            if lent is None or lent.nbytes <= _LENT_BYTES:
                lent = np.empty(port.shape.to_tuple(), port.element_type.to_dtype())
            array = self._slots[slot] = lent
            self._fixed.add(slot)
            if array.nbytes > _LENT_BYTES:
                self._lent[slot], self._lent_sources[slot] = 0, {slot}

    def _add(self, index: int, step: Step) -> None:
        bodies = {
            key: Body(plan, self._variables, self._prepared) for key, plan in self.plan.bodies.get(index, {}).items()
        }
        self._bodies.extend(bodies.values())
        is_static = self._is_static(step) and self._fixed.issuperset(step.inputs)
        needs_request = not {"bodies", "variable"}.isdisjoint(step.takes)
        if is_static and step.operator.pure and not needs_request:
            self._add_bound(step)
        else:
            self._add_unbound(step, bodies)
        for slot in step.release:
            self._memory.release(slot)

    def _is_static(self, step: Step) -> bool:
        return all(map(has_fixed_array, self.plan.ports_of(step)))

    def _add_calls(self, step: Step, calls: Sequence[Call], after: Sequence[Call] = ()) -> None:
        self._counts.append((len(calls), len(after)))
        self._calls += [*calls, *after]
        self._owners += [step] * (len(calls) + len(after))

    def _add_bound(self, step: Step) -> None:
        constants = frozenset(position for position, slot in enumerate(step.inputs) if slot in self.plan.constants)
        independent = all(step.inputs[position] in self.plan.independent for position in constants)
        inputs = tuple(self._slots[slot] for slot in step.inputs)
        prepared = self._prepared if independent else None
        types = [port.type for port in self.plan.ports_of(step)]
        keeps_inputs = self.plan.is_watched
        binder = StepBinder(step, inputs, constants, self._memory, prepared, types=types, keeps_inputs=keeps_inputs)
        try:
            with kernel_settings():
                bind_step(binder, step)
        except Exception as error:
            raise failed(step.layer, error, inputs) from error
        for slot, array in zip(step.outputs, binder.outputs, strict=True):
            assert array is not None, step.layer
            self._slots[slot] = array
        self._fixed.update(step.outputs)
        calls = binder.calls
        if lent := self._lent_to(step.inputs):
            calls = [(run_calls, (binder.calls,))]  # a list that is filled again
            self._rebinding.append((lent, step, binder))
            for slot in lent:
                self._lent[slot] += _BYTES_PER_STEP + len(binder.calls) * _BYTES_PER_CALL
            for slot in step.outputs:
                sources = [i for i in step.inputs if np.may_share_memory(self._slots[i], self._slots[slot])]
                self._lent_sources[slot] = self._lent_to(sources)
        self._add_calls(step, calls)

    def _lent_to(self, slots: Iterable[int]) -> set[int]:
        """Return the slots of inputs whose memory, which the caller lends, some slots lie in."""
        return {source for slot in slots for source in self._lent_sources.get(slot, ())}

    def _add_unbound(self, step: Step, bodies: Mapping[str, Body]) -> None:
        """Add a step that looks up its arrays; outputs that steps of static shapes read get permanent arrays."""
        targets = []
        for slot, port, is_wanted in zip(step.outputs, self.plan.ports_of(step), step.wanted, strict=True):
            fixed = None
            if has_fixed_array(port) and is_wanted and slot in self._read_by_static:
                fixed = self._slots[slot] = self._memory.allocate(
                    slot, port.shape.to_tuple(), port.element_type.to_dtype()
                )
                self._fixed.add(slot)
            elif step.operator.views or not step.operator.pure:
                self._memory.share(slot, step.inputs)
            targets.append((slot, fixed))
        kernel = step.kernel
        if keywords := _keywords(step, bodies, self._variables):
            kernel = partial(kernel, **keywords)
        release = tuple(slot for slot in step.release if slot not in self._fixed)
        emptying: list[Call] = [(self._slots.__setitem__, (slot, None)) for slot in release]
        call = UnboundCall(step, kernel, targets, self._unbound_context)
        self._add_calls(step, [(call, ())], emptying)
        may_be_new = not (keeps_arrays(step.operator) or step.operator.views or step.layer.bodies)
        if may_be_new and len(step.outputs) == 1:
            self._new.update((slot, call) for slot in step.outputs if self._is_read_once(slot))

    def _is_read_once(self, slot: int) -> bool:
        """Return whether a slot is one result, and no step that reads it may keep its array."""
        keepers = (step for step in self.plan.steps if keeps_arrays(step.operator))
        return self.plan.results.count(slot) == 1 and not any(slot in step.inputs for step in keepers)

    def _shared_results(self) -> list[Array | None]:
        """Return the arrays that hold the results for callers that share outputs, None for those not known yet.

        An array of the arena that no other result shares is the result itself; others are copied.
        """
        found: list[Array | None] = []
        claimed: set[Span] = set()
        for slot in self.plan.results:
            array: Array = self._slots[slot]
            spans = self._memory.spans(slot)
            is_own = bool(spans) and claimed.isdisjoint(spans) and slot in self._fixed and array.flags.c_contiguous
            claimed.update(spans)
            if slot not in self._fixed:
                found.append(None)
            else:
                with memory_errors_named(self.plan.ports[slot].layer):
                    found.append(array if is_own else np.empty(array.shape, array.dtype))
        return found

    # ----- running

    def run(self, inputs: Sequence[Array], listeners: Sequence[Listener] = (), *, share: bool = False) -> list[Array]:
        """Return the outputs for inputs of the shapes of the plan, in order.

        They belong to the caller, but with ``share`` the next run may overwrite them. Listeners see each step. A
        RunError names the layer that failed.
        """
        with single_thread:
            return self.run_within(inputs, listeners, share=share)

    def run_within(self, inputs: Sequence[Array], listeners: Sequence[Listener], *, share: bool) -> list[Array]:
        """Return the same as ``run`` within the run of another executor, as bodies run."""
        try:
            self._begin(inputs, listeners)
            if listeners or is_shown():
                for _ in self._steps(listeners):
                    pass
            else:
                self._remaining = calls = iter(self._calls)
                for function, arguments in calls:
                    function(*arguments)
            return [self._result(slot, own, share) for slot, own in zip(self.plan.results, self._shared, strict=True)]
        except OvirError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def walk(self, inputs: Sequence[Array], *, share: bool = False) -> Generator[SeenStep, None, list[Array]]:
        """Yield each step when it has run, and return the outputs; the next step runs when the caller asks for it.

        The arrays of a step belong to the caller, who must not write to them: several steps may show one of them. With
        ``share``, they are valid only until the next step runs.
        """
        own: dict[int, Any] = dict(zip(self.plan.parameters, inputs, strict=True))
        own.update(self.plan.constants)
        ports = self.plan.ports
        try:
            self._begin(inputs, ())
            for step in self._steps(()):
                arrays = {ports[slot]: own[slot] for slot in step.inputs}
                read = [arrays.get(port.source) for port in step.layer.inputs if port.source is not None]
                for slot in step.outputs:
                    array = self._slots[slot]
                    own[slot] = array if share or array is None else array.copy()
                yield SeenStep(step.shown, read, [own[slot] for slot in step.outputs])
                for slot in step.release:
                    del own[slot]
        except OvirError:
            raise
        except Exception as error:
            raise self._explained(error) from error
        return [self._result(slot, None, share=False) for slot in self.plan.results]

    def _begin(self, inputs: Sequence[Array], listeners: Sequence[Listener]) -> None:
        slots, lent = self._slots, {}
        for slot, array in zip(self.plan.parameters, inputs, strict=True):
            if array is slots[slot]:
                continue
            if slot in self._lent:
                lent[slot] = array
            elif slot in self._fixed:
                np.copyto(slots[slot], array)
            else:
                slots[slot] = self._own_copy(slot, array) if self._is_result(array) else array
        if lent:
            self._bind_again(lent)
        for body in self._bodies:
            body.listeners = listeners

    def _bind_again(self, lent: Mapping[int, Array]) -> None:
        """Bind the steps that read these inputs, by slot, to the arrays that the caller has lent.

        Where copying takes less time, or the caller has lent a result, which this run overwrites, they are bound to a
        copy, for good.
        """
        slots = self._slots
        copied = {slot for slot, array in lent.items() if array.nbytes < self._lent[slot] or self._is_result(array)}
        try:
            for slot, array in lent.items():
                slots[slot] = self._own_copy(slot, array) if slot in copied else array
            for sources, step, binder in self._rebinding:
                if not sources.isdisjoint(lent):
                    binder.bind_again(tuple([slots[slot] for slot in step.inputs]))
                    for slot, bound in zip(step.outputs, binder.outputs, strict=True):
                        slots[slot] = bound
        except Exception:  # of memory, for example; the next run binds them again, and after an interrupt all steps
            for slot in lent:
                slots[slot] = None
            raise
        for slot in copied:
            del self._lent[slot]
            for sources in self._lent_sources.values():
                sources.discard(slot)

    def _is_result(self, array: Array) -> bool:
        """Return whether an array lies in one that callers share, and this run overwrites."""
        if array.base is None:
            return any(array is own for own in self._shared)
        return any(own is not None and np.may_share_memory(array, own) for own in self._shared)

    def _steps(self, listeners: Sequence[Listener]) -> Iterator[Step]:
        """Run the steps, and yield each after its listeners have seen it."""
        slots = self._slots
        seen = read_only if any(map(sees_tensors, listeners)) else lambda array: array  # a view takes time
        self._remaining = calls = iter(self._calls)
        for step, (count, after) in zip(counted("running", self.plan.steps), self._counts, strict=True):
            before = [seen(slots[slot]) for slot in step.inputs]
            _notify(listeners, "will_run", step.shown, before)
            for function, arguments in islice(calls, count):
                function(*arguments)
            _notify(listeners, "did_run", step.shown, before, [seen(slots[slot]) for slot in step.outputs])
            yield step
            for function, arguments in islice(calls, after):
                function(*arguments)

    def _result(self, slot: int, shared: Array | None, share: bool) -> Array:
        array: Array = self._slots[slot]
        maker = self._new.get(slot)
        if maker is not None and not maker.is_bound and _is_free(array):
            return array
        if not share or shared is None:
            return self._own_copy(slot, array)
        if shared is not array:
            np.copyto(shared, array)
        return shared

    def _own_copy(self, slot: int, array: Array) -> Array:
        try:
            return contiguous_copy(array)
        except MemoryError as error:
            port = self.plan.ports[slot]
            tensor = TensorType(port.element_type, PartialShape(array.shape))
            raise out_of_memory(port.layer, error, [tensor]) from error

    @property
    def _current(self) -> Step:
        """Return the step whose call runs now, or ran last.

        Runs only iterate over the calls: to count them would take a tenth of the time of small ones. The iterator of a
        list knows how many elements are left.
        """
        left: int = self._remaining.__length_hint__()
        return self._owners[len(self._calls) - left - 1]

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        for body in self._bodies:
            if body.is_running:
                return body.innermost
        return self._current.shown if self._owners else None

    def _explained(self, error: Exception) -> OvirError:
        """Return the error with the layer for an exception of a call."""
        step = self._current
        return failed(step.layer, error, [self._slots[slot] for slot in step.inputs if self._slots[slot] is not None])


class Body:
    """A body as its operation runs it: with one executor for all shapes, which is made when the body first runs."""

    def __init__(self, plan: Plan, variables: Variables, prepared: Prepared) -> None:
        self._plan = plan
        self._make: Callable[[], Executor] = partial(Executor, plan, variables, prepared)
        self._executor: Executor | None = None
        self.listeners: Sequence[Listener] = ()
        self.is_running = False

    @property
    def parameters(self) -> list[TensorType]:
        return [port.type for port in self._plan.model.inputs]

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now."""
        return None if self._executor is None else self._executor.innermost

    def result_shapes(self, given: Sequence[PartialShape]) -> list[PartialShape]:
        model = self._plan.model.clone()
        try:
            infer_for_call(model, given, {})
        except ModelError:  # the body cannot run on such parameters, which matters only to a body that runs
            model = self._plan.model
        return [port.shape for port in model.outputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        try:
            self.is_running = True
            if self._executor is None:
                self._executor = self._make()
            return self._executor.run_within(arrays, self.listeners, share=True)
        finally:
            self.is_running = False


def _is_free(array: Array) -> bool:
    """Return whether what a kernel returned is an array of its own memory, in the form of a result."""
    return array.base is None and array.flags.c_contiguous and array.flags.writeable


def _notify(listeners: Sequence[Listener], event: str, *what: Any) -> None:
    for listener in listeners:
        try:
            getattr(listener, event)(*what)
        except MemoryError:  # for example of a tap, which copies the tensors of the layer
            raise
        except Exception as error:
            raise ListenerFailed(error) from error


def _keywords(step: Step, bodies: Mapping[str, Body], variables: Variables) -> dict[str, Any]:
    """Return the keywords that the kernel of a step asks for."""
    found: dict[str, Any] = {}
    if "bodies" in step.takes:
        found["bodies"] = bodies
    if "variable" in step.takes:
        found["variable"] = variables.named(str(getattr(step.operator, "variable_id", "")))
    return found
