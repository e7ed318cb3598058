"""The form of a rule: a function that looks at a model and yields the diagnostics of one code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import cleandoc
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ovir.checks.conditions import Ending, ending
from ovir.checks.options import CheckOptions
from ovir.checks.owners import OwningEngine, counted_sizes
from ovir.core.arrays import Array
from ovir.core.element_types import boolean, string, u3, u6
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import CODES, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer, Port
from ovir.inference.models import reshaped_parameters
from ovir.ir.reader import Document
from ovir.model import Model
from ovir.ops.base.domains import DomainRule
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_names, input_signature
from ovir.ops.infrastructure import Blob, Const, Parameter
from ovir.ops.state import ReadValueBase

if TYPE_CHECKING:
    from ovir.checks.fixes import Fixes, MakeFix


@dataclass(frozen=True)
class Context(Document[Model]):
    """All that rules can look at: the model, its file and its weights."""

    options: CheckOptions
    failing: frozenset[str]
    """The titles of the layers that cannot be used as they are."""

    @cached_property
    def fixes(self) -> Fixes:
        """Return the maker of fixes; untrusted files are not fixed."""
        from ovir.checks.fixes import Fixes  # few files need it

        return Fixes(self, are_wanted=not self.options.untrusted)

    def with_fix(self, fault: Diagnostic) -> Diagnostic:
        """Return a diagnostic with the fix that its rule has announced, if the text shows clearly what to change."""
        make = self.fixes.makers.get(fault) if CODES[fault.code].fixable else None
        return fault if make is None else replace(fault, fix=make())

    @cached_property
    def models(self) -> list[Model]:
        """Return the model and all bodies in it."""
        return list(self.model.graphs())

    @cached_property
    def layers(self) -> list[Layer]:
        """Return the layers of the model and of all bodies."""
        return [layer for model in self.models for layer in model.layers]

    @cached_property
    def usable(self) -> list[tuple[Layer, Operator]]:
        """Return the layers that can be used as they are, with their operations: they have all inputs, the attributes
        are valid, and inference accepts them."""
        return [
            (layer, op)
            for layer in self.layers
            if (op := layer.operator) is not None
            and len(layer.inputs) >= input_signature(type(op)).required
            and layer.title not in self.failing
        ]

    @cached_property
    def by_type(self) -> dict[str, list[Layer]]:
        found: dict[str, list[Layer]] = defaultdict(list)
        for layer in self.layers:
            found[layer.type].append(layer)
        return found

    @cached_property
    def large(self) -> list[tuple[Port, int]]:
        """Return the output ports of tensors of more than 2**30 elements, each with its smallest number of elements.

        Tensors that are no larger than an input of their layer are left out, as the cause lies in that input.
        """
        found = []
        bits: dict[Port | None, int] = {}
        for port in [port for layer in self.layers for port in layer.outputs]:
            if port.inferred is not None and (count := port.inferred.shape.least_size) > 1 << 30:
                given = max((bits.get(source.source, 0) for source in port.layer.inputs), default=0)
                bits[port] = count * port.element_type.bits
                if bits[port] > given:
                    found.append((port, count))
        return found

    @cached_property
    def shapes_before_choice(self) -> dict[Layer, list[PartialShape]]:
        """Return the shapes that the inputs of layers have by the file, for operations that restrict values."""
        return {
            layer: [port.type.shape for port in layer.inputs]
            for layer in self.layers
            if layer.operator is not None and layer.operator.domains
        }

    def choose_sizes(self) -> None:
        """Infer the model for the sizes that a caller may choose: of each size of an input or a variable that is not
        known, the upper bound, or where it is open, 1 or the lower bound. Large tensors are due to the file then."""
        self.shapes_before_choice  # noqa: B018  (reads them before the sizes change)
        shapes: dict[Any, PartialShape] = {
            index: counted_sizes(port.layer.operator.shape, is_declared=True)
            for index, port in enumerate(self.model.inputs)
            if isinstance(port.layer.operator, Parameter) and port.layer.operator.shape.is_dynamic
        }
        chosen: dict[Layer, Operator] = {**reshaped_parameters(self.model, shapes)}
        for layer in self.model.layers:
            if isinstance(op := layer.operator, ReadValueBase) and layer.outputs and layer.outputs[0].shape.rank:
                held = counted_sizes(layer.outputs[0].shape, is_declared=True).to_tuple()
                chosen[layer] = op.at_state(held, layer.outputs[0].type, has_initial=bool(layer.inputs))
        for layer, operator in chosen.items():
            layer.operator = operator
        self.model.revision += 1
        self.owners.infer(self.model)

    @cached_property
    def owners(self) -> OwningEngine:
        """Return the inference for chosen sizes, which knows who decides the others."""
        return OwningEngine()

    @cached_property
    def sizes(self) -> dict[Port, int]:
        """Return the bytes of each output; sizes that are not known count as their upper bounds."""
        return {port: self.owners.bytes_of(port) for layer in self.layers for port in layer.outputs}

    def values_of(self, port: Port) -> Array | None:
        """Return the values of an input that is a Const of the file, in an untrusted file also of one that is computed
        from such constants; None for others."""
        if port.source is None:
            return None
        if isinstance(op := port.source.layer.operator, Const):
            return StoredConstant(op).data
        return self.owners.computed(port.source) if self.options.untrusted else None

    @cached_property
    def endings(self) -> dict[Layer, Ending]:
        """Return the endings of the layers with bodies."""
        if self.options.untrusted:
            return self.owners.endings
        return {layer: ending(layer) for layer in self.layers if layer.bodies}

    @cached_property
    def times(self) -> dict[Model, int]:
        """Return the number of runs of the model, 1, and of each body, as far as it is known."""
        times = {self.model: 1}
        for model in self.models:  # from the outside in
            for layer in model.layers:
                for body in layer.bodies.values():
                    times[body] = times[model] * max(self.endings[layer].count if layer in self.endings else 1, 1)
        return times

    @cached_property
    def constants(self) -> list[StoredConstant]:
        """Return the constants with data in the weights; constants of the same place and type are one."""
        stored: dict[Blob | None, StoredConstant] = {}
        for layer in self.by_type.get("Const", ()):
            op, is_inline = layer.operator, "value" in layer.attributes
            if isinstance(op, Const) and op.constant_data is not None and not is_inline:
                stored.setdefault(op.constant_data, StoredConstant(op)).layers.append(layer)
        return list(stored.values())

    @cached_property
    def filled(self) -> list[StoredConstant]:
        """Return the constants of more than one number, without short lists of integers, such as axes, and strings."""
        return [constant for constant in self.constants if constant.is_filled]

    @cached_property
    def mostly_zero(self) -> bool:
        """Return whether there are several constants in ``filled``, and nine in ten of them hold zeros only."""
        most = len(self.filled) // 10  # biases are often zero, but at most as many constants as weights are biases
        others = (constant for constant in self.filled if not constant.is_zero)
        return len(self.filled) >= _SEVERAL and len(list(islice(others, most + 1))) <= most

    @cached_property
    def has_only_zeros(self) -> bool:
        """Return whether ``mostly_zero`` is true of all constants, whatever they are."""
        return self.mostly_zero and all(constant.is_zero for constant in self.constants)


_SEVERAL = 3
_LONGEST_LIST = 512  # bytes of a list of axes, sizes or indices

_BLOCK = 1 << 12  # numbers; nearly all constants have one other than zero in their first block

_WHOLE_BLOCKS = {u3: 8, u6: 4}
"""Types of which so many values are packed into 3 bytes."""


@dataclass(eq=False)
class StoredConstant:
    """A range of bytes in the weights, and the Const layers that use it."""

    op: Const
    """The operator of the first layer."""
    layers: list[Layer] = field(default_factory=list)

    @property
    def layer(self) -> Layer:
        return self.layers[0]

    @cached_property
    def needed(self) -> int:
        """Return the number of bytes that the shape and type need."""
        count = prod(self.op.shape)
        if self.op.element_type in _WHOLE_BLOCKS:
            return -(-count // _WHOLE_BLOCKS[self.op.element_type]) * 3
        return self.op.element_type.stored_bytes(count)

    @cached_property
    def is_filled(self) -> bool:
        """Return whether the constant is neither a single number, nor a short list of integers, nor of strings."""
        is_list = self.op.element_type.is_integral and self.op.size <= _LONGEST_LIST
        return prod(self.op.shape) > 1 and self.op.element_type not in (boolean, string) and not is_list

    @cached_property
    def is_zero(self) -> bool:
        """Return whether there are elements and all of them, or their bits, are zero."""
        count = prod(self.op.shape)
        if not count or not self.op.has_data or self.op.element_type == string:
            return False
        starts = range(0, count, _BLOCK)
        blocks = (self.op.elements(start, min(start + _BLOCK, count)) for start in starts)
        with np.errstate(invalid="ignore"):  # signaling NaN
            return not any(block.view(np.uint8).any() and block.any() for block in blocks)  # bytes are faster

    @cached_property
    def data(self) -> Array | None:
        """Return the array; None if the bytes are invalid or no weights are read."""
        try:
            return self.op.data
        except OperatorError:
            return None


class Found(NamedTuple):
    """A fault that a rule has found, and its place."""

    message: str
    at: Layer | Port | Place
    hint: str | None = None
    severity: Severity | None = None
    """The severity. None means that of the code, or a warning in place of an error if the layer is dead."""
    fix: MakeFix | None = None
    """Makes the exact change that removes the fault; the code must then be declared as ``fixable``."""

    def diagnostic(self, code: Code) -> Diagnostic:
        """Return the diagnostic of a code."""
        at, severity = self.at, self.severity
        place, layer = (at, None) if isinstance(at, Place) else (at.place, at if isinstance(at, Layer) else at.layer)
        if layer is not None and layer.is_dead and severity is None and code.severity is Severity.ERROR:
            severity = Severity.WARNING
        port = at.id if isinstance(at, Port) else None
        return diagnose(code, self.message, place, hint=self.hint, severity=severity, port=port)


@dataclass(frozen=True)
class Rule:
    """A function that yields the faults of a model, and the code of its diagnostics."""

    code: Code
    find: Callable[[Context], Iterator[Found]]
    needs_whole_graph: bool = False
    """Whether it reports something missing. It is skipped if layers could not be read, because then it may be missing
    for that reason."""
    for_untrusted: bool = False
    """Whether it is only applied to untrusted files."""
    of_runs: bool = False
    """Whether it looks at an untrusted model for chosen sizes, after all other rules."""

    @property
    def id(self) -> str:
        """Return the id of the code."""
        return self.code.id

    def diagnostics(self, context: Context) -> Iterator[Diagnostic]:
        """Yield the diagnostics of a model; their fixes are made at the end of the check."""
        for found in self.find(context):
            diagnostic = found.diagnostic(self.code)
            if found.fix is not None:
                context.fixes.makers[diagnostic] = found.fix
            yield diagnostic


RULES: dict[str, Rule] = {}
"""The rules by the code of their diagnostics."""


def rule(code: Code, **kind: bool) -> Callable[[Callable[[Context], Iterator[Found]]], Rule]:
    """Register a function as the rule for ``code``; ``kind`` are fields of ``Rule``.

    The docstring is the text of the code, unless ``ovir/diagnostics/codes.py`` has it.
    """

    def register(find: Callable[[Context], Iterator[Found]]) -> Rule:
        if code.id in RULES:
            raise ValueError(f"{code.id} has two rules")
        known = CODES.get(code.id) or code.says(cleandoc(find.__doc__ or ""))
        return RULES.setdefault(code.id, Rule(known, find, **kind))

    return register


def ids(*kinds: Code | Rule) -> frozenset[str]:
    """Return the ids of codes."""
    return frozenset(kind.id for kind in kinds)


def means_open_end(data: Array) -> Array:
    """Return the mask of the 64-bit integers that mean "to the end": those within 2**33 of 2**63 or of -(2**63).

    Exporters write a limit of i64 for an open end, or a number close to it.
    """
    return np.abs(np.abs(data.astype(np.float64)) - 2.0**63) <= 2.0**33


def layer_domains(layer: Layer) -> Iterator[tuple[Port, DomainRule]]:
    """Yield each input of a layer whose values its operation restricts, with the restriction."""
    op = layer.operator
    if op is not None and op.domains:
        for name, port in zip(input_names(type(op)), layer.inputs, strict=False):
            if name in op.domains:
                yield port, op.domains[name]
