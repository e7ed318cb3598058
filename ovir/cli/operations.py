"""Descriptions of operation versions for people who look them up, from the declarations of their classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovir.core.element_types import ELEMENT_TYPES, ElementType, dynamic, f8e4m3, f8e5m2, f16, f32, i32, i64, nf4
from ovir.core.json_fields import json_fields
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import ELEMENT_TYPE
from ovir.diagnostics.errors import OperatorError
from ovir.export.exporters import NOT_EXPORTED, exported_as
from ovir.lowering.registry import decomposition_of, why_without
from ovir.lowering.releases import IR_VERSION_11, OPERATIONS_SINCE, Release, release_of_opset, release_text
from ovir.ops import find, resolve
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.layouts import Declaration, declarations, given, type_class
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS, TOKENIZERS, canonical_type
from ovir.ops.base.specifications import SOURCE, specification, specification_page
from ovir.ops.base.traits import input_signature
from ovir.ops.infrastructure import Parameter

if TYPE_CHECKING:
    from ovir.lowering.constructs import Construct

_KEYWORDS = ("bodies", "variable")
"""Parameters of ``infer`` that are not inputs."""


# --------------------------------------------------------------------------- all operations


@dataclass(frozen=True)
class OperationEntry:
    """One operation version."""

    name: str
    opset: int
    """The opset that introduced the version; 0 for an operation that is in none."""
    opsets: str
    """The opsets that contain this version, as ``8-16``; ``extension`` for an operation that is in none."""
    cls: type[Operator] | None

    @property
    def version(self) -> str:
        """Return the version as files spell it."""
        return f"opset{self.opset}" if self.opset else self.opsets

    @property
    def number(self) -> str:
        """Return the suffix of the name, as in ``Gather-8``; ``extension`` for an operation that is in no opset."""
        return str(self.opset or self.opsets)

    @property
    def infers(self) -> bool:
        return self.cls is not None

    @property
    def runs(self) -> bool:
        """Return whether ovir runs the operation; a Parameter counts, because the caller feeds it."""
        return hasattr(self.cls, "run") or self.cls is Parameter

    @property
    def doc(self) -> str:
        """Return the first sentence of its documentation."""
        text = " ".join((self.cls.__doc__ or "").split("\n\n")[0].split()) if self.cls else ""
        return re.split(r"(?<!\.)\. ", text)[0].rstrip(".:")

    @property
    def title(self) -> str:
        """Return the name with the version, such as ``Gather-8``."""
        return f"{self.name}-{self.opset}" if self.opset else f"{self.name} of openvino_tokenizers"


def entries() -> list[OperationEntry]:
    """Return all operation versions, sorted by name."""
    return [
        OperationEntry(version.type, version.opset, version.opsets, find(version.type, version.opset))
        for versions in OPERATIONS.values()
        for version in versions.values()
    ]


def tokenizer_entries() -> list[OperationEntry]:
    """Return the operations of openvino_tokenizers, sorted by name."""
    return [OperationEntry(name, 0, "extension", resolve(name, "extension")) for name in TOKENIZERS]


def totals(listed: list[OperationEntry]) -> str:
    """Return the numbers of operation versions that exist, are inferred and are run, in words."""
    infers, runs = sum(e.infers for e in listed), sum(e.runs for e in listed)
    return f"{len(listed)} operation versions: {infers} inferred, {runs} run"


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


# --------------------------------------------------------------------------- one operation version


@dataclass(frozen=True)
class OperationInput:
    """An input of an operation."""

    name: str
    optional: bool = False
    repeated: bool = False
    """Whether it represents any number of inputs."""
    types: tuple[ElementType, ...] | None = None
    """The element types that inference accepts; None if they could not be determined."""
    declared: str = ""
    """The element type and the layout that the operation declares, such as ``T[N, 3|4]``."""

    @property
    def shown_types(self) -> str:
        """Return the element types in words if a word exists."""
        if self.types is None:
            return ""
        return next((word for word, group in _GROUPS.items() if self.types == group), ", ".join(map(str, self.types)))


_EVERY = tuple(t for t in ELEMENT_TYPES if t != dynamic)
_GROUPS = {
    "any type": _EVERY,
    "floating-point": tuple(t for t in _EVERY if t.is_real and t != nf4),
    "integer": tuple(t for t in _EVERY if t.is_integral),
    "numeric": tuple(t for t in _EVERY if (t.is_real and t != nf4) or t.is_integral),
}


def described(entry: OperationEntry) -> dict[str, Any]:
    """Return the description of an operation version as plain data."""
    cls = entry.cls
    if cls is None:
        raise ValueError(f"ovir has no class for {entry.title}")
    from ovir.lowering.constructs import CONSTRUCTS  # imports many operations, which the list does not need

    return {
        "documentation": documentation(cls),
        "source": specification(cls),
        "page": specification_page(cls),
        "function": _function(entry),
        "inputs": [
            json_fields(item, "name", "type=shown_types", "optional", "repeated", "declared") for item in inputs_of(cls)
        ],
        "where": conditions_of(cls),
        "attributes": [
            {
                "name": a.name,
                "type": "string" if a.choices else _TYPES[a.type],
                "choices": list(a.choices),
                "minimum": a.minimum,
                "required": a.required or a.specified,
                "default": default_of(a),
            }
            for a in cls.attributes.values()
        ],
        "outputs": outputs_of(cls),
        "onnx": _export(cls),
        "releases": f"OpenVINO {release_text(_first_release(entry))} or later" if entry.opset else "",
        "lowering": _lowering(entry, cls),
        "constructs": [
            f"OpenVINO {' to '.join(dict.fromkeys(map(release_text, (c.first, c.last))))}: {c.reason}. {_done(c)}"
            for c in CONSTRUCTS
            if entry.name in c.types and entry.opset
        ],
    }


def _function(entry: OperationEntry) -> str:
    """Return the function that creates layers of a version, in the newest opset that has it."""
    if not entry.opset:
        return ""
    version = OPERATIONS[entry.name][entry.opset]
    return f"ovir.opset{version.ranges[-1][1]}.{version.functions[0]}"


def _export(cls: type[Operator]) -> str:
    """Return the ONNX operators that an operation is exported to; nothing for operations that no opset has."""
    if not cls.opset:
        return ""
    try:
        target, limits = exported_as(cls)
    except ImportError:
        return 'shown where onnx is installed: `pip install "ovir[onnx]"`'
    if target == NOT_EXPORTED:
        return f"not exported: {limits}."
    return f"exported as {target}{f'; {limits}' if limits else ''}."


def _first_release(entry: OperationEntry) -> Release:
    return OPERATIONS_SINCE.get((entry.name, entry.opset)) or release_of_opset(entry.opset)


def _lowering(entry: OperationEntry, cls: type[Operator]) -> str:
    """Describe how a version is rewritten for releases that do not know it; empty if all releases know it."""
    if not entry.opset or _first_release(entry) < IR_VERSION_11:
        return ""
    decomposition = decomposition_of(cls)
    if decomposition is None:
        return f"not rewritten for releases before {release_text(_first_release(entry))}: {why_without(cls)}."
    how = " ".join((decomposition.__doc__ or "").split("\n\n")[0].split())
    rewritten = f"`ovir edit --runtime` rewrites it for releases before {release_text(_first_release(entry))}"
    return f"{rewritten}: {_lower(how)}" if how else f"{rewritten}."


def _done(construct: Construct) -> str:
    how = _lower(" ".join((construct.rewrite.__doc__ or "").split()))
    return "`ovir edit --runtime` refuses it." if how == "refuse it." else f"`ovir edit --runtime` changes it: {how}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def versions_of(name: str) -> list[OperationEntry]:
    """Return the versions of an operation by its name in any case; none if no opset and no extension has it."""
    found = [entry for entry in (*entries(), *tokenizer_entries()) if entry.name.lower() == name.lower()]
    canonical = canonical_type(name)
    return found or [entry for entry in entries() if entry.name == canonical]


def documentation(cls: type[Operator]) -> str:
    """Return the formula of an operation and the text that explains it, without the line of its source."""
    inherited = (_of_base(base) for base in cls.__mro__[1:] if base.__name__.endswith("Base"))
    parts = [_explanation(cls), *inherited]
    return "\n\n".join(part for part in parts if part)


def _of_base(base: type) -> str:
    """Return the part of a base class's documentation that is about its operations, not about itself."""
    first, _, rest = _explanation(base).partition("\n\n")
    if first.startswith("Base of "):
        first = first.partition(": ")[2]
    return "\n\n".join(part for part in (first, rest) if part)


def _explanation(cls: type) -> str:
    """Return the docstring of a class without the example and the source, with which it ends."""
    text, _, _ = inspect.cleandoc(cls.__doc__ or "").partition("\n\n>>> ")
    return SOURCE.sub("", text).rstrip()


@dataclass(frozen=True)
class Example:
    code: str
    """A program that runs as it is."""
    printed: str
    """Its output."""


def example_of(name: str) -> Example | None:
    """Return the example in the docstring of the newest version of an operation; None for those of extensions.

    Its last line is a call that creates a layer, whose values the example shows, or another expression.
    """
    if name not in OPERATIONS:
        return None
    from doctest import DocTestParser  # imports debuggers, which the list of operations does not need

    newest = max(OPERATIONS[name].values(), key=lambda version: version.opset)
    parts = DocTestParser().get_examples(inspect.getdoc(find(name, newest.opset)) or "")
    *before, last = (part.source.rstrip() for part in parts)
    lines = ["import ovir", f"from ovir import opset{newest.ranges[-1][1]} as ops", "", *before]
    if any("np." in part.source for part in parts):
        lines.insert(0, "import numpy as np")
    if last != "layer" and not (last.startswith("ops.") and last.endswith(")")):
        lines.append(f"print({last})")
    else:
        lines += [f"layer = {last}"] if last != "layer" else []
        lines.append("for value in ovir.compile_model(ovir.Model(layer.outputs, []))({}).values():")
        lines.append("    print(*str(value).split())")
    return Example("\n".join(lines), parts[-1].want.rstrip())


# --------------------------------------------------------------------------- attributes


_TYPES = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    ElementType: "element type",
    PartialShape: "shape",
    Dimension: "dimension",
    tuple[int, ...]: "integers",
    tuple[float, ...]: "numbers",
    tuple[str, ...]: "strings",
}


def default_of(attribute: Attribute) -> str | None:
    """Return the default of an attribute as a file would give it; None if the file must give a value."""
    if attribute.required:
        return None
    if attribute.assumed:
        return attribute.assumed
    value = attribute.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "empty"
    return "none" if value is None else str(value) or "empty"


# --------------------------------------------------------------------------- inputs


def inputs_of(cls: type[Operator]) -> list[OperationInput]:
    """Return the inputs of an operation and the types that it accepts, from ``takes`` or else from ``infer``."""
    if cls.takes:
        known = declarations(cls.takes)
        longest_first = sorted(known, key=lambda declared: -len(declared.inputs))
        every = dict.fromkeys(tensor.name for declared in longest_first for tensor in declared.inputs)
        return [_declared_input(name, known) for name in every]
    names, _, variadic, _ = input_signature(cls)
    accepted = _accepted_types(cls, len(names), variadic)
    parameters = list(inspect.signature(cls.infer).parameters.values())[1:]
    taken = [p for p in parameters if p.name not in _KEYWORDS and p.kind is not p.KEYWORD_ONLY]
    return [
        OperationInput(p.name, p.default is not p.empty, p.kind is p.VAR_POSITIONAL, types)
        for p, types in zip(taken, accepted, strict=False)
    ]


def _declared_input(name: str, known: Sequence[Declaration]) -> OperationInput:
    """Return the input of this name, which some or all declarations of an operation have."""
    found = [(declared, tensor) for declared in known for tensor in declared.inputs if tensor.name == name]
    accepted = frozenset[ElementType]().union(*(declared.type_class(tensor).types for declared, tensor in found))
    first = found[0][1]
    text = " or ".join(dict.fromkeys(tensor.text for _, tensor in found))
    is_optional = first.is_optional or len(found) < len(known)
    return OperationInput(name, is_optional, first.is_repeated, tuple(t for t in _EVERY if t in accepted), text)


def conditions_of(cls: type[Operator]) -> dict[str, str]:
    """Return what an operation says of the types and sizes in the declarations of its inputs."""
    declared = declarations(cls.takes) if cls.takes else ()
    types = {name: type_class(text).words for one in declared for name, text in one.types.items()}
    return types | {name: text for one in declared for name, text in one.equations.items()}


def outputs_of(cls: type[Operator]) -> list[str]:
    """Return in words the element type of each output; nothing if the attributes or bodies decide how many there are.

    If they are not declared, inference is asked with unknown types, then with one type for each input and each
    attribute that holds a type.
    """
    if cls.gives:
        return [f"{tensor.name} {tensor.text}".strip() for tensor in given(cls.gives)]
    inputs = inputs_of(cls)
    unknown = [TensorType(dynamic, PartialShape(None))] * len(inputs)
    if not _is_inferred(cls, unknown) or cls.type in _ANY_NUMBER_OF_OUTPUTS:
        return []
    first = _output_types(_infer(cls, unknown))
    followed: list[list[str]] = [[] for _ in first]
    for attribute in cls.attributes.values():
        if attribute.type is ElementType:
            follow = _follow(cls, [(t, unknown, {attribute.field: t}) for t in _FEW])
            for sources, follows in zip(followed, follow, strict=True):
                sources += [f"`{attribute.name}`"] if follows else []
    for position, item in enumerate(inputs):
        follow = _follow(cls, [(t, _with_type(unknown, position, t), {}) for t in item.types or ()])
        for index, follows in enumerate(follow):
            if follows and first[index].is_dynamic:
                followed[index].append(f"`{item.name}`")
    return [
        f"the type of {_listed(sources)}" if sources else "types depend on the inputs" if t.is_dynamic else str(t)
        for sources, t in zip(followed, first, strict=True)
    ]


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_ANY_NUMBER_OF_OUTPUTS = ("Split", "VariadicSplit", "BGRtoNV12", "RGBtoNV12")
_FEW = (i32, i64, f16, f32, f8e4m3, f8e5m2)
"""Types of which every attribute that holds a type allows two or more."""


def _output_types(outputs: object) -> list[ElementType]:
    return [tensor.element_type for tensor in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _follow(
    cls: type[Operator], cases: Iterable[tuple[ElementType, list[TensorType], dict[str, object]]]
) -> list[bool]:
    """Return for each output whether its type is the one that each case has in its inputs or its attributes."""
    found = []
    for element_type, inputs, attributes in cases:
        with suppress(OperatorError, ValueError):
            found.append([output == element_type for output in _output_types(_infer(cls, inputs, **attributes))])
    return [all(column) for column in zip(*found, strict=True)]


def _with_type(types: list[TensorType], position: int, element_type: ElementType) -> list[TensorType]:
    return [*types[:position], TensorType(element_type, PartialShape(None)), *types[position + 1 :]]


def _accepted_types(cls: type[Operator], count: int, more: bool) -> Iterator[tuple[ElementType, ...] | None]:
    """Yield for each input the element types that inference accepts if nothing else is known."""
    total = count + more
    unknown = [TensorType(dynamic, PartialShape(None))] * total
    known = _is_inferred(cls, unknown)
    for position in range(total):
        if not known:
            yield None
            continue
        yield tuple(t for t in _EVERY if not _refuses_type(cls, _with_type(unknown, position, t)))


def _is_inferred(cls: type[Operator], inputs: Sequence[TensorType]) -> bool:
    if any(name in inspect.signature(cls.infer).parameters for name in _KEYWORDS):
        return False
    try:
        _infer(cls, inputs)
    except OperatorError:
        return False  # the examples of its required attributes contradict each other
    return True


def _refuses_type(cls: type[Operator], inputs: Sequence[TensorType]) -> bool:
    """Return whether inference refuses a type, whichever of its choices an attribute has."""
    choices: Iterator[dict[str, object]] = ({a.field: choice} for a in cls.attributes.values() for choice in a.choices)
    for attributes in ({}, *choices):
        try:
            _infer(cls, inputs, **attributes)
        except OperatorError as error:
            if error.code is ELEMENT_TYPE:
                continue
        return False
    return True


def _infer(cls: type[Operator], inputs: Sequence[TensorType], **attributes: object) -> object:
    """Infer with some attributes, and example values of the other required ones."""
    examples = {a.field: _example(a) for a in cls.required_attributes}
    return cls(**{**examples, **attributes}).infer(*inputs)


def _example(attribute: Attribute) -> object:
    if attribute.choices:
        return attribute.choices[0]
    if attribute.type in (int, float) and attribute.minimum is not None:
        return max(attribute.minimum, 1)
    return _EXAMPLES[attribute.type]


_EXAMPLES: dict[Any, Any] = {
    int: 1,
    float: 1.0,
    bool: False,
    str: "",
    tuple[int, ...]: (1, 1),
    tuple[float, ...]: (1.0,),
    tuple[str, ...]: (),
    ElementType: f32,
    Dimension: Dimension(1),
    PartialShape: PartialShape(None),
}
