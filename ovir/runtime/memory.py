"""The memory that the arrays of a run will take, from their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numpy.lib.array_utils import byte_bounds

from ovir.core.arrays import Array
from ovir.diagnostics.codes import TOO_LARGE, Severity
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import exact_size_text, size_text
from ovir.graph.layers import Port
from ovir.ops.compressed import Compressed
from ovir.runtime.plan import Plan, Step
from ovir.system.python_runtime import physical_memory, without_garbage_collection


@dataclass(frozen=True)
class MemoryUse:
    """Bytes. Memory that kernels allocate for themselves while they run is not counted."""

    weights: int
    """Constants as the run holds them: those that stay compressed as the file holds them, the others decompressed."""
    inputs: int
    activations: int
    """The most that lies between the layers at one time, outputs of the model included."""
    unknown: int = 0
    """The number of tensors that are left out, because their size is not known."""

    @property
    def total(self) -> int:
        return self.weights + self.inputs + self.activations

    def __str__(self) -> str:
        parts = {"weights": self.weights, "inputs": self.inputs, "between layers": self.activations}
        return ", ".join(f"{name} {size_text(amount)}" for name, amount in parts.items())


def memory_use(plan: Plan, *, certain: bool = False) -> MemoryUse:
    """Return the memory of a run. Sizes are known where shapes are static, or have an upper bound; with ``certain``
    only tensors of static shapes count."""
    walk = _Walk(plan, certain)
    with without_garbage_collection():
        for index, step in enumerate(plan.steps):
            walk.step(index, step)
    inputs = [_bytes(port) for port in plan.model.inputs]
    operators = [step.operator for step in plan.steps]
    compressed = [array for op in operators if isinstance(op, Compressed) for array in op.weights.stored()]
    return MemoryUse(
        _covered([*plan.constants.values(), *compressed]) + walk.body_weights,
        sum(size or 0 for size in inputs),
        walk.most,
        walk.unknown + inputs.count(None),
    )


def largest_tensor(plan: Plan) -> Port | None:
    """Return the largest output of static shape, in bytes, of all steps, bodies included."""
    ports = [port for step in plan.steps for port in step.layer.outputs if port.shape.is_static]
    ports += [port for bodies in plan.bodies.values() for body in bodies.values() if (port := largest_tensor(body))]
    return max(ports, key=lambda port: _bytes(port) or 0, default=None)


def refuse_what_does_not_fit(plan: Plan) -> None:
    """Raise RunError for arrays that exceed the machine's memory, because the system may grant memory that it does not
    have."""
    needed, memory = memory_use(plan, certain=True).activations, physical_memory()
    if memory is not None and needed > memory:
        largest = largest_tensor(plan)
        assert largest is not None
        message = (
            f"the model's tensors take {exact_size_text(needed)} at once; this machine has {size_text(memory)}; "
            f"the largest is the output {largest.type} of this layer"
        )
        hint = "`ovir infer` shows the shapes; `--shape` gives an input another one"
        raise RunError(diagnose(TOO_LARGE, message, largest.layer.place, hint=hint, severity=Severity.ERROR))


class _Walk:
    """Follows the arrays that the steps allocate and release."""

    def __init__(self, plan: Plan, certain: bool) -> None:
        self.plan = plan
        self.certain = certain
        self.most = self.now = self.unknown = self.body_weights = 0
        self._holders: list[set[int]] = []
        """The slots that lie in each allocation."""
        self._sizes: list[int] = []
        self._shown: dict[int, set[int]] = {}
        """The allocations that each slot lies in."""

    def step(self, index: int, step: Step) -> None:
        inside = self._bodies(index)
        for position, slot in enumerate(step.outputs):
            seen = {a for source in step.inputs for a in self._shown.get(source, ())} if step.operator.views else set()
            if seen or (step.operator.views and slot not in self.plan.results):
                self._show(slot, seen)
            else:  # a result that is a view of an input is copied
                port = step.layer.outputs[position]
                size = None if self.certain and not port.shape.is_static else _bytes(port)
                self.unknown += size is None
                self._sizes.append(size or 0)
                self._holders.append(set())
                self._show(slot, {len(self._sizes) - 1})
                self.now += size or 0
        self.most = max(self.most, self.now + inside)
        for slot in step.release:
            for allocation in self._shown.pop(slot, ()):
                self._holders[allocation].discard(slot)
                if not self._holders[allocation]:
                    self.now -= self._sizes[allocation]

    def _show(self, slot: int, allocations: set[int]) -> None:
        self._shown[slot] = allocations
        for allocation in allocations:
            self._holders[allocation].add(slot)

    def _bodies(self, index: int) -> int:
        """Return the bytes that the bodies of a step hold while it runs; one body runs at a time."""
        if index not in self.plan.bodies:
            return 0
        uses = [memory_use(body, certain=self.certain) for body in self.plan.bodies[index].values()]
        self.body_weights += sum(use.weights for use in uses)
        self.unknown += sum(use.unknown for use in uses)
        return max((use.activations for use in uses), default=0)


def _bytes(port: Port) -> int | None:
    """Return the most bytes that a tensor takes; None where that is not known, or Python manages its strings."""
    if port.element_type.is_dynamic or port.element_type.kind == "string":
        return None
    size = port.shape.size().upper
    return None if size is None else size * port.element_type.to_dtype().itemsize


def _covered(arrays: Iterable[Array]) -> int:
    """Return the bytes of memory that arrays lie in; shared bytes count once."""
    covered, end = 0, 0
    for start, stop in sorted(byte_bounds(array) for array in arrays if array.size):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered
