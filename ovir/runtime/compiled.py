"""The public interface of running: compile a model, create infer requests."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, SupportsIndex
from weakref import WeakSet, WeakValueDictionary

from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.core.numpy_settings import kernel_settings
from ovir.core.public_names import PublicNames
from ovir.core.shapes import Dimension, PartialShape, new_symbol
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import InputError, require_counts, require_flags
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Port
from ovir.inference.models import infer_for_call
from ovir.ir.weights import FileVersion
from ovir.runtime.decompression import types_kept_compressed
from ovir.runtime.emulation import Emulation, emulation_of
from ovir.runtime.executor import Executor
from ovir.runtime.executor_cache import MOST_BINDINGS, ExecutorCache, InputShapes, States, keep_latest
from ovir.runtime.inputs import Feeds, InputCollector
from ovir.runtime.listeners import (
    Listener,
    ListenerFailed,
    Reports,
    Tap,
    require_listeners,
    sees_tensors,
    show_inputs,
    steps_wanted_by,
)
from ovir.runtime.plan import Plan
from ovir.runtime.planning import Folded, make_plan
from ovir.runtime.results import Results, listed, output_keys
from ovir.runtime.state import Variable, Variables
from ovir.runtime.step_binder import Prepared
from ovir.runtime.weight_files import weight_files
from ovir.system.progress import stage
from ovir.system.python_runtime import without_garbage_collection

if TYPE_CHECKING:
    from ovir.model import Model
    from ovir.runtime.pickling import PickledModel


class CompiledModel(PublicNames):
    """A model ready to run.

    A call runs the model's own infer request; ``create_infer_request`` creates others, which share nothing but
    constants. A compiled model does not change when its model is reshaped or edited: ``model`` is then a copy of the
    model before the change.
    """

    _internal = frozenset(
        [
            "before_change",
            "emulation",
            "input_index",
            "options",
            "plan",
            "plan_for",
            "prepared",
            "recipe",
            "weight_files",
            "with_own_state",
        ]
    )
    _elsewhere: ClassVar = {
        "get_property": "the attributes and options of compile_model: compiled.threads, compiled.strict",
        "set_property": "the options of compile_model: threads=, strict=, engine=",
        "get_runtime_model": "compiled.model, or listeners and taps for what a run computes",
        "export_model": "ovir.save_model(model, path), or pickle",
        "infer_new_request": "compiled.create_infer_request().infer(inputs)",
        "query_state": "compiled.create_infer_request().query_state()",
        "reset_state": "request.reset_state() of a request that compiled.create_infer_request() has made",
    }

    def __init__(
        self,
        model: Model,
        *,
        threads: int | None = None,
        strict: bool = False,
        keep_compressed: bool | None = None,
        emulate: str | Emulation | None = None,
    ) -> None:
        """Plan the model.

        Args:
            model: The model.
            threads: The most threads that kernels use; by default one for each core.
            strict: Whether a value that the specification excludes is an error; otherwise OpenVINO's reference is
                followed with a warning.
            keep_compressed: The weights that stay as the file holds them, and are decompressed at each use: tables of
                gathers, matrices of more than 2^20 codes of 4 or 8 bits, smaller ones if all codes would take more
                than 128 MiB in f32, and weights of 16 bits if f32 would take more than half of the free memory
                (None); all that have more than 65,536 elements, which makes runs slower (True); or none (False).
            emulate: ``"f16"`` or ``"bf16"``: weights and the results of layers are rounded to this type, as on a
                device that computes in it; see docs/precision.md.

        Raises InputError for arguments that exclude each other, and ModelError for a model that cannot be run.
        """
        require_counts(threads=threads)
        require_flags(strict=strict, keep_compressed=keep_compressed)
        self.model: Model = model
        """The model, as it was when it was compiled."""
        self.threads: int | None = threads
        """The most threads that kernels use; None for all cores."""
        self.strict: bool = strict
        """Whether a value that the specification excludes is an error."""
        self.keep_compressed: bool | None = keep_compressed
        """Whether weights stay compressed: all that take less memory so, none, or (None) some by their size."""
        self.emulation = emulation_of(emulate)
        if keep_compressed and self.emulation is not None:
            reason = "keeps rounded weights as f32, so that none stay compressed"
            raise InputError.usage(reason, option="emulate")
        self.diagnostics: list[Diagnostic] = []
        """The notes and warnings of compiling."""
        self._lock = threading.RLock()
        self._changing = threading.Lock()
        """Held while the model is replaced by its copy, which waits for the runs of all requests."""
        self._requests: WeakSet[InferRequest] = WeakSet()
        self._kept_types = types_kept_compressed(model)  # one answer for all plans, which themselves take memory
        self._folded: Folded = WeakValueDictionary()
        self._plan: Plan | None = self._make_plan(model)  # raises what cannot run
        self._last_tapped: tuple[frozenset[str], Plan] = frozenset(), self._plan
        self._plans: dict[object, Plan | None] = {}
        self.prepared: Prepared = {}
        """The results of operations that prepare constants, for the executors of all requests."""
        self._input_positions = {port: index for index, port in enumerate(model.inputs)}
        self._keys = output_keys(model.outputs)
        self._request: InferRequest | None = None
        self._recipe: PickledModel | None = None
        model.add_dependent(self)

    def plan(self, keep: Collection[str] = ()) -> Plan:
        """Return the plan in which the layers with the keys in ``keep`` are run as steps."""
        if not keep and (plan := self._plan) is not None:
            return plan
        with self._lock:
            if self._plan is None:  # the model has changed since, and this is the plan of its copy
                plan = self._make_plan(self.model)
                self._last_tapped = frozenset(), plan
                self._plan = plan
            missing = frozenset(keep) - self._plan.step_names
            if not missing:
                return self._plan
            if self._last_tapped[0] != missing:
                self._last_tapped = missing, self._make_plan(self.model, missing)
            return self._last_tapped[1]

    def _make_plan(
        self, model: Model, keep: Collection[str] = (), original: Model | None = None, running: Collection[str] = ()
    ) -> Plan:
        model.require_depth()
        with without_garbage_collection(), stage("compiling"), parallel.limit(self.threads):
            return make_plan(
                model,
                keep,
                keep_compressed=self.keep_compressed if self.emulation is None else False,
                kept_types=self._kept_types,
                folded=self._folded,
                emulation=self.emulation,
                original=original,
                running=running,
            )

    def plan_for(self, shapes: InputShapes, states: States, keep: Collection[str], *, watched: bool) -> Plan | None:
        """Return the plan for one set of shapes of the inputs and the variables; the plans of the latest sets are
        cached.

        It is None if some sizes are unknown and no layer has a static output that has none for all shapes, or if
        inference contradicts for these shapes what it has promised for all shapes, so that the run with the plan for
        all shapes says which layer is at fault. If listeners have ``watched`` it, or if it is emulated, real numbers
        that follow from sizes are computed in the run, as in the plan for all shapes. Raises ModelError if inference
        refuses the shapes.
        """
        with self._lock:
            key = shapes, tuple(states.items()), frozenset(keep), watched
            if key not in self._plans:
                self._plans[key] = self._make_plan_for(shapes, states, keep, watched)
            plan = self._plans[key] = self._plans.pop(key)
            keep_latest(self._plans, MOST_BINDINGS)
            return plan

    def _make_plan_for(self, shapes: InputShapes, states: States, keep: Collection[str], watched: bool) -> Plan | None:
        if not states and all(port.shape.is_static for port in self.model.inputs):
            return self.plan(keep)
        with without_garbage_collection():
            model = self.model.clone()
            unknown: dict[int, Dimension] = {}
            values = {name: None if shape is None else _opened(shape, unknown) for name, shape in states.items()}
            infer_for_call(model, [_opened(shape, unknown) for shape in shapes], values)
            if not _keeps_promises(self.model, model) or (unknown and not _knows_more(model, self.model)):
                return None
            if self.emulation is not None:  # which rounds them, but folds in f32
                return self._make_plan(model, keep, self.model, self.plan(keep).real_steps)
            return self._make_plan(model, {*keep, *self.plan(keep).real_steps} if watched else keep, self.model)

    @cached_property
    def weight_files(self) -> frozenset[FileVersion]:
        """Return the files of the weights, as they were when they were mapped."""
        return weight_files(self.model)

    def before_change(self) -> None:
        """Replace the model by a copy of it, because it is about to be reshaped or edited, once no run is going on in
        another thread."""
        with self._changing, ExitStack() as stack:
            with self._lock:  # not held while waiting, because runs need it
                requests = list(self._requests)
            for request in requests:
                stack.enter_context(request.at_rest())
            stack.enter_context(self._lock)
            self.model = self.model.clone()
            self._plan = None
            self._plans.clear()
            self._input_positions |= {port: index for index, port in enumerate(self.model.inputs)}
            self._keys |= {port: index for index, port in enumerate(self.model.outputs)}

    def input_index(self, key: Any) -> int:
        """Return the position of an input, which may be a Port of the model before it changed."""
        return self._input_positions[key] if key in self._input_positions else self.model.input_index(key)

    def recipe(self) -> PickledModel:
        """Return the model and the options as another process needs them to compile it again."""
        from ovir.runtime.pickling import PickledModel, remember  # which few runs need

        with self._lock:
            if self._recipe is None:
                self._recipe = PickledModel.of(type(self), self.model, self.options)
                remember(self._recipe.token, self)
            return self._recipe

    @property
    def options(self) -> dict[str, Any]:
        """Return the keyword arguments with which the model was compiled."""
        return {
            "threads": self.threads,
            "strict": self.strict,
            "keep_compressed": self.keep_compressed,
            "emulate": self.emulation,
        }

    def with_own_state(self, threads: int | None = None) -> Self:
        """Return a compiled model that shares the model and its plans with this one, but no state; its kernels use
        another number of ``threads`` if that is given."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._request = None
        if threads is not None:
            other.threads, other._recipe = threads, None
        self.model.add_dependent(other)
        return other

    def __copy__(self) -> Self:
        return self.with_own_state()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.with_own_state()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, tuple[PickledModel]]:
        from ovir.runtime.pickling import restore

        return restore, (self.recipe(),)

    def __repr__(self) -> str:
        ports = [listed(port.any_name + f" {port.type}" for port in ports) for ports in (self.inputs, self.outputs)]
        return f"<CompiledModel {self.model.name!r}: {' -> '.join(ports)}>"

    def _repr_html_(self) -> str:
        from ovir.graph.drawing import html_of_ports

        return html_of_ports(f"CompiledModel {self.model.name!r}", self.model)

    @property
    def inputs(self) -> list[Port]:
        """Return the ports of the inputs, with their names, types and shapes."""
        return self.model.inputs

    @property
    def outputs(self) -> list[Port]:
        """Return the ports of the outputs, with their names, types and shapes."""
        return self.model.outputs

    def input(self, key: str | int | Port = 0) -> Port:
        """Return the input with this position or name. Raises InputError if there is none."""
        return self.model.input(key)

    def output(self, key: str | int | Port = 0) -> Port:
        """Return the output with this position or name. Raises InputError if there is none."""
        return self.model.output(key)

    def create_infer_request(self) -> InferRequest:
        """Return a new request with its own buffers and variables."""
        request = InferRequest(self)
        with self._lock:
            self._requests.add(request)
        return request

    def __call__(
        self,
        inputs: Feeds = None,
        *,
        taps: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        share_outputs: bool = False,
    ) -> Results:
        """Run the model once. See ``InferRequest.infer``."""
        with self._lock:
            if self._request is None:
                self._request = self.create_infer_request()
        return self._request.infer(inputs, taps=taps, listeners=listeners, share_outputs=share_outputs)


def _keeps_promises(model: LayerGraph, inferred: LayerGraph) -> bool:
    """Return whether the types of a model's copy, which was inferred for some shapes, agree with those of the model."""
    ports = (
        (a, b)
        for of, to in zip(model.layers, inferred.layers, strict=True)
        for a, b in zip(of.outputs, to.outputs, strict=True)
    )
    return all(a.shape.compatible(b.shape) for a, b in ports)


def _opened(shape: tuple[int, ...], unknown: dict[int, Dimension]) -> PartialShape:
    """Return a shape in which each negative number is an unknown size, the same wherever the number stands."""
    return PartialShape(
        size if size >= 0 else unknown.setdefault(size, Dimension(0, None, new_symbol())) for size in shape
    )


def _knows_more(inferred: LayerGraph, model: LayerGraph) -> bool:
    """Return whether the copy of a model that was inferred for some sizes has more static outputs of layers that read
    some."""
    before, after = (
        sum(port.shape.is_static for layer in graph.layers if layer.inputs for port in layer.outputs)
        for graph in (model, inferred)
    )
    return after > before


Run = list[int]
"""The thread that runs a request, or that changes its model; each run is another list."""
_PATIENCE = 0.001
"""Seconds between two looks at whether a run has ended."""


class InferRequest(PublicNames):
    """An object that runs a compiled model and owns the buffers and the variables of ReadValue and Assign.

    It runs one call at a time: each thread needs its own request.
    """

    _elsewhere: ClassVar = {
        "start_async": "ovir.map(compiled, inputs), or a request for each thread",
        "wait": "ovir.map(compiled, inputs), or a request for each thread",
        "set_callback": "ovir.map(compiled, inputs)",
        "set_tensor": "request.infer({name: array})",
        "set_tensors": "request.infer({name: array})",
        "set_input_tensor": "request.infer([array])",
        "set_input_tensors": "request.infer([array])",
        "get_tensor": "the results of request.infer: results[name]",
        "get_input_tensor": "request.infer([array])",
        "get_output_tensor": "the results of request.infer: results[0]",
        "set_output_tensor": "request.infer(inputs, share_outputs=True)",
        "results": "the value of request.infer(inputs)",
        "output_tensors": "the value of request.infer(inputs)",
        "get_profiling_info": "`ovir run --profile`",
        "profiling_info": "`ovir run --profile`",
        "get_compiled_model": "request.compiled",
        "model_inputs": "request.compiled.inputs",
        "model_outputs": "request.compiled.outputs",
    }

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled: CompiledModel = compiled
        """The compiled model that it runs."""
        self._variables = Variables()
        self._running: dict[str, Run] = {}
        """The run that is going on, or the rest in which the model is changed, if there is one."""
        self._prepare()

    def _prepare(self) -> None:
        """Make the caches of executors for the model as it is now."""
        compiled = self.compiled
        self._collect = InputCollector(compiled.model, compiled.input_index)
        self._watched: ExecutorCache | None = None
        """The executable plan with the listeners of the last run that had some."""
        self._bindings = ExecutorCache(compiled, self._variables)
        self._is_torn = False
        """Whether an interrupt may have left the executors half made."""

    def infer(
        self,
        inputs: Feeds = None,
        *,
        taps: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        share_outputs: bool = False,
    ) -> Results:
        """Run the model on ``inputs``: a mapping from name, position or Port, a list, or one array.

        An array has the shape of its input, in which dynamic dimensions may have any size that the input allows.
        Arrays are converted to the element type of the input if no value is lost but digits of real numbers. ``taps``
        are the names or keys (``Layer.key``) of layers whose outputs ``results.taps`` will hold. With ``share_outputs``
        the arrays belong to the request, which overwrites them in its next call.

        Raises InputError if an input does not match the model, and RunError if a layer fails.
        """
        # An interrupt may occur anywhere. A lock, or a flag after it, might then stay set; that the dictionary has this
        # very run says whether it has begun. If the inner block is interrupted where it ends, the outer one ends it.
        run: Run = [threading.get_ident()]
        try:
            try:
                if not self._begin(run):
                    message = "this request is running; create_infer_request() makes another for another thread"
                    raise InputError.usage(message, Place(self.compiled.model.path))
                return self._infer(inputs, taps, listeners, share_outputs)
            except ListenerFailed as failed:
                raise failed.error from None
            except Exception:
                raise
            except BaseException:
                self._is_torn = True
                raise
            finally:
                self._end(run)
        finally:
            self._end(run)

    def _begin(self, run: Run) -> bool:
        """Begin a run; return whether no other is going on."""
        running = self._running.setdefault("", run)
        if running[0] != run[0]:
            with self.compiled._changing:  # which may be what keeps the request from running
                running = self._running.setdefault("", run)
        return running is run

    def _end(self, run: Run) -> None:
        """End a run, unless it has ended or never begun."""
        if self._running.get("") is run:
            self._variables.settle()
            self._running.pop("", None)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Keep other threads from running the request, once their run has ended."""
        rest: Run = [threading.get_ident()]
        try:
            while self._running.setdefault("", rest)[0] != rest[0]:
                sleep(_PATIENCE)
            yield  # if the run is one of this thread, a listener changes the model
        finally:
            if self._running.get("") is rest:
                self._running.pop("", None)

    def _infer(self, inputs: Feeds, taps: Sequence[str], listeners: Sequence[Listener], share_outputs: bool) -> Results:
        compiled = self.compiled
        if share_outputs is not True and share_outputs is not False:
            require_flags(share_outputs=share_outputs)
        if listeners:
            require_listeners(listeners)
        if self._is_torn or self._bindings.plan is not compiled.plan():
            self._prepare()
        arrays = self._collect(inputs)
        bindings = self._bindings
        arrays_by_tap: dict[str, list[Array]] = {}
        if taps:
            tap = Tap([taps] if isinstance(taps, str) else taps, compiled.model)
            arrays_by_tap = tap.arrays
            listeners = [*listeners, tap]
        if listeners:
            show_inputs(listeners, compiled.model, arrays)
            bindings = self._bindings_for(listeners)
        reports = Reports(compiled.strict)
        executor: Executor | None = None
        with (
            parallel.limit(compiled.threads),
            reporting_to(
                lambda code, message, effect: reports.add(
                    code, message, effect, executor.innermost if executor else None
                )
            ),
            kernel_settings(),
        ):
            executor = bindings.executor_for(arrays)
            outputs = executor.run(arrays, listeners, share=share_outputs)
        results = Results(compiled.outputs, compiled._keys, outputs, arrays_by_tap, reports.found)
        self._variables.has_succeeded = True
        return results

    def _bindings_for(self, listeners: Sequence[Listener]) -> ExecutorCache:
        """Return the bindings for these listeners: those of other runs if they want no more steps and tensors."""
        keep, watched = steps_wanted_by(listeners), any(map(sees_tensors, listeners))
        if not watched and keep <= self._bindings.plan.step_names:
            return self._bindings
        found = self._watched
        if found is None or (found.keep, found.watched) != (keep, watched):
            found = self._watched = ExecutorCache(self.compiled, self._variables, keep, watched=watched)
        return found

    def reset_state(self) -> None:
        """Reset the variables; ReadValue starts from its initial value again."""
        self._variables.reset()

    def query_state(self) -> list[Variable]:
        """Return the variables of the model, in its order, also before the first run.

        Each has ``name``, ``element_type``, ``shape``, ``value`` and ``reset()``. A value that is read or set is a
        copy; what is set stays, also if the next run fails.
        """
        readers = self.compiled.plan().readers
        return [Variable(name, reader, self._variables.named(name)) for name, reader in readers.items()]

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        hint = "pickle the compiled model, and create a request where it is restored"
        raise InputError.usage("InferRequest objects cannot be pickled or copied", hint=hint)

    def __repr__(self) -> str:
        state = "running" if self._running else "idle"
        variables = listed(self.compiled.plan().readers)
        return f"<InferRequest of {self.compiled.model.name!r}: {state}, variables: {variables}>"
