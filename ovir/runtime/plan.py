"""Plans: a model as a flat list of steps over numbered slots, each with the kernel that runs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ovir.core.arrays import Array, read_only
from ovir.core.tensor_types import array_text, type_name
from ovir.diagnostics.codes import INTERNAL, Code
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.wording import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import method_signature, signature
from ovir.ops.state import ReadValueBase
from ovir.runtime.state import InitialValue


@dataclass
class Step:
    """One operation of a plan, with its kernel and the slots that the kernel reads and writes."""

    layer: Layer
    """The layer that has the outputs, or the first of several. The operation may stand for others before it as well,
    such as those that decompress its weights."""
    shown: Layer
    """The layer that listeners see: the caller's, if ``layer`` is of a copy that was inferred for shapes."""
    operator: Operator
    kernel: Callable[..., Any]
    """The function that computes the operation on arrays: ``run``, unless the plan has rewritten the step."""
    inputs: tuple[int, ...]
    """The slots that the kernel reads."""
    outputs: tuple[int, ...]
    """The slots that the kernel writes."""
    release: tuple[int, ...] = ()
    """The slots that no later step uses."""
    wanted: tuple[bool, ...] = ()
    """Whether anything reads each output."""
    checks_sizes: bool = False
    """Whether a run on new sizes infers the layer before its kernel, because inference did not know the sizes and they
    may contradict each other."""
    may_use_fast_form: bool = False
    """Whether the fast form of the operation may take the place of the kernel. It may not where the kernel does more
    than the operation, such as to round for an emulation, nor where a user has registered the operation."""
    is_shown: bool = False
    """Whether the step only shows listeners a layer that is folded: its outputs are constants of the plan as well, and
    only such steps read them."""

    @cached_property
    def takes(self) -> frozenset[str]:
        """Return the optional keywords that the kernel accepts."""
        return keywords_of(self.kernel)


@dataclass
class Plan:
    """A model as steps over numbered slots, which an executor runs."""

    model: LayerGraph
    ports: list[Port]
    """The port of each slot."""
    parameters: list[int]
    """The slot of each input of the model."""
    constants: dict[int, Array]
    steps: list[Step]
    results: list[int]
    """The slot of each output of the model."""
    bodies: dict[int, dict[str, Plan]] = field(default_factory=dict)
    """The plans of the bodies of each step."""
    independent: frozenset[int] = frozenset()
    """The slots of constants that follow from the file alone, whatever the shapes of the inputs are."""
    open_variables: tuple[str, ...] = ()
    """The variables whose shapes inference does not know."""
    is_watched: bool = False
    """Whether listeners see the tensors of each step, so that all outputs are wanted and no input is overwritten."""

    unwatched: Plan | None = field(default=None, init=False)
    """The plan that ``for_unwatched_runs`` has made of this one."""

    def ports_of(self, step: Step) -> list[Port]:
        """Return the ports of the outputs of a step."""
        return [self.ports[slot] for slot in step.outputs]

    def watched(self) -> Plan:
        """Return the same plan for runs in which listeners see the tensors of each step."""
        steps = [replace(step, wanted=(True,) * len(step.outputs)) for step in self.steps]
        bodies = {
            index: {key: body.watched() for key, body in of_step.items()} for index, of_step in self.bodies.items()
        }
        return replace(self, steps=steps, bodies=bodies, is_watched=True)

    def part(self, index: int) -> Plan:
        """Return the plan of one step alone: it reads the inputs that are not constants, and returns all outputs."""
        step = self.steps[index]
        return replace(
            self,
            steps=[replace(step, wanted=(True,) * len(step.outputs), release=())],
            parameters=[slot for slot in dict.fromkeys(step.inputs) if slot not in self.constants],
            constants={slot: self.constants[slot] for slot in step.inputs if slot in self.constants},
            bodies={0: self.bodies[index]} if index in self.bodies else {},
            results=list(step.outputs),
            open_variables=(),
        )

    @cached_property
    def readers(self) -> dict[str, InitialValue]:
        """Return the first ReadValue of each variable, by ``variable_id``, bodies included."""
        found: dict[str, InitialValue] = {}
        for index, step in enumerate(self.steps):
            op = step.operator
            if isinstance(op, ReadValueBase) and op.variable_id not in found:
                constant = self.constants.get(step.inputs[0]) if step.inputs else None
                found[op.variable_id] = InitialValue(step.layer, op, constant, bool(step.inputs) and constant is None)
            for body in self.bodies.get(index, {}).values():
                for name, reader in body.readers.items():
                    found.setdefault(name, reader)
        return found

    @cached_property
    def real_steps(self) -> frozenset[str]:
        """Return the full names of the layers with real outputs that are not folded, including the layers of bodies."""
        steps = [step for step in self.steps if not step.is_shown]
        names = {s.layer.key for s in steps if any(port.element_type.is_real for port in s.layer.outputs)}
        return frozenset(names).union(*(body.real_steps for bodies in self.bodies.values() for body in bodies.values()))

    @cached_property
    def step_names(self) -> frozenset[str]:
        """Return the full names of the parameters and of the layers that run as steps, also in bodies."""
        names = {step.layer.key for step in self.steps} | {p.layer.key for p in self.model.inputs}
        for bodies in self.bodies.values():
            for body in bodies.values():
                names |= body.step_names
        return frozenset(names)


def set_releases(steps: Sequence[Step], kept: Collection[int]) -> None:
    """Let each step release the slots that it uses and that nothing uses after it, unless they are ``kept``."""
    in_use = set(kept)
    for step in reversed(steps):
        unused_after = {slot for slot in (*step.inputs, *step.outputs) if slot not in in_use}
        step.release = tuple(unused_after)
        in_use |= unused_after


# --------------------------------------------------------------------------- kernels


def applied_operator(layer: Layer, operator: Operator) -> Operator:
    """Return the operation of a layer with the inferred types of its inputs and outputs."""
    outputs = [port.inferred for port in layer.outputs if port.inferred is not None]
    return operator.applied([port.type for port in layer.inputs], outputs)


def keywords_of(kernel: Callable[..., Any]) -> frozenset[str]:
    """Return the optional keywords that a kernel accepts."""
    method = getattr(kernel, "__func__", None)
    return (signature(kernel) if method is None else method_signature(method)).keywords


def results_of(returned: Any, count: int) -> tuple[Any, ...]:
    """Return the results of a kernel as a tuple; raise OperatorError for fewer results than ``count``."""
    results = returned if type(returned) is tuple else (returned,)
    if len(results) < count:
        raise OperatorError(f"the kernel gave {len(results)} outputs of {count}")
    return results


def with_checked_outputs(layer: Layer, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel with a check of its outputs, as later layers rely on the inferred types and shapes.

    The kernel raises OperatorError, which names the class and is about its fault, for an output of another type or
    shape. It receives read-only inputs, and an output that shares memory with an input is copied, unless the class
    declares ``views``.
    """
    may_view = layer.operator is not None and layer.operator.views
    kernel_name = f"{type(layer.operator).__name__}.run"

    def run(*arguments: Any, **keywords: Any) -> Any:
        if may_view:
            result = kernel(*arguments, **keywords)
        else:
            result = _unshared(kernel(*map(read_only, arguments), **keywords), arguments)
        outputs = result if type(result) is tuple else (result,)
        if len(outputs) != len(layer.outputs):
            given = f"{kernel_name} gave {plural(len(outputs), 'output')}"
            raise OperatorError(f"{given}; the layer has {len(layer.outputs)}", INTERNAL)
        for port, output in zip(layer.outputs, outputs, strict=True):
            require_promised(port, output, f"{kernel_name} gave", INTERNAL)
        return result

    return run


def _unshared(result: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the outputs, with those that share memory with an input copied."""
    if type(result) is tuple:
        return tuple(_unshared(output, inputs) for output in result)
    arrays = (array for array in inputs if isinstance(array, np.ndarray))
    shares = isinstance(result, np.ndarray) and any(np.may_share_memory(result, array) for array in arrays)
    return result.copy() if shares else result


def require_promised(port: Port, output: Any, found: str = "the kernel returned", code: Code | None = None) -> None:
    """Raise OperatorError if an output is not of the type and shape that inference has promised for its port.

    ``found`` begins the message, and names what gave the output. ``code`` is the one of the error.
    """
    expected = port.element_type
    is_array = isinstance(output, (np.ndarray, np.generic))
    is_right_type = is_array and (
        expected.is_dynamic or output.dtype == expected.to_dtype() or type_name(output.dtype) == str(expected)
    )
    if not (is_right_type and port.shape.contains(output.shape)):
        raise broken_promise(port.index, f"{expected}{port.shape}", output, found, code)


def broken_promise(
    index: int, promised: str, output: Any, found: str = "the kernel returned", code: Code | None = None
) -> OperatorError:
    """Return the error for an output whose type or shape differs from the inferred one."""
    if isinstance(output, (np.ndarray, np.generic)):
        returned = array_text(output)
    else:
        returned = f"{type(output).__name__}, which is not an array"
    return OperatorError(f"{found} output {index} as {returned}; infer() declared {promised}", code)
