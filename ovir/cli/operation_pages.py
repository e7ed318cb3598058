"""Descriptions of operation versions for people who look them up, from what their classes declare."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ovir.core.element_types import ELEMENT_TYPES, ElementType, dynamic, f32, nf4
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import ELEMENT_TYPE
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find, resolve
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS, TOKENIZERS
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Parameter

_KEYWORDS = ("bodies", "variable")
"""Parameters of ``infer`` that are no inputs."""


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
    def infers(self) -> bool:
        return hasattr(self.cls, "infer")

    @property
    def runs(self) -> bool:
        """Return whether ovir runs the operation; a Parameter counts, because the caller feeds it."""
        return hasattr(self.cls, "run") or self.cls is Parameter

    @property
    def doc(self) -> str:
        """Return the first sentence of its documentation."""
        text = " ".join((self.cls.__doc__ or "").split("\n\n")[0].split()) if self.cls else ""
        return text.split(". ")[0].rstrip(".:")


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


def operations_page() -> str:
    """Return the page docs/operations.md, a table of all operation versions."""
    listed = entries()
    lines = [
        "# Operations",
        "",
        "Written by `python -m ovir.generated_files`. A row is one version of an operation: *version* is the opset "
        "that introduced it, and *opsets* are all opsets that hold it.",
        "",
        f"{totals(listed)}.",
        "",
        "| Operation | Version | Opsets | Inference | Kernel | What it is |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(e.name, e.version, e.opsets, yes_or_no(e.infers), yes_or_no(e.runs), e.doc) for e in listed]
    lines += [
        "",
        "## Operations of openvino_tokenizers",
        "",
        "Their version is `extension`. All are inferred and run; [Tokenizers](tokenizers.md) says what they need.",
        "",
        "| Operation | What it is |",
        "|---|---|",
        *(_row(e.name, e.doc) for e in tokenizer_entries()),
    ]
    return "\n".join([*lines, ""])


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


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


def described(cls: type[Operator] | None) -> dict[str, Any]:
    """Return the description of an operation version as plain data; entries are empty if ovir does not have it."""
    if cls is None:
        return {"documentation": "", "source": "", "inputs": [], "attributes": []}
    return {
        "documentation": documentation(cls),
        "source": source(cls),
        "inputs": [
            {"name": i.name, "type": i.shown_types, "optional": i.optional, "repeated": i.repeated}
            for i in inputs_of(cls)
        ],
        "attributes": [
            {
                "name": a.name,
                "type": type_of(a),
                "choices": list(a.choices),
                "minimum": a.minimum,
                "required": a.required or a.specified,
                "default": default_of(a),
            }
            for a in cls.attributes.values()
        ],
    }


def documentation(cls: type[Operator]) -> str:
    """Return the formula of an operation and the text that explains it, without the line of its source."""
    inherited = (_of_base(base) for base in cls.__mro__[1:] if base.__name__.endswith("Base"))
    parts = [_without_source(inspect.cleandoc(cls.__doc__ or "")), *inherited]
    return "\n\n".join(part for part in parts if part)


def _of_base(base: type) -> str:
    """Return the part of a base class's documentation that is about its operations, not about itself."""
    first, _, rest = _without_source(inspect.cleandoc(base.__doc__ or "")).partition("\n\n")
    if first.startswith("Base of "):
        first = first.partition(": ")[2]
    return "\n\n".join(part for part in (first, rest) if part)


def source(cls: type[Operator]) -> str:
    """Return the specification that the operation follows, such as ``Gather-8``."""
    found = re.search(r"^Source: (\S+)\s*\Z", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE)
    return found[1] if found else ""


def _without_source(text: str) -> str:
    return re.sub(r"^Source: \S+\s*\Z", "", text, flags=re.MULTILINE).strip()


# --------------------------------------------------------------------------- attributes


def type_of(attribute: Attribute) -> str:
    """Return the type of an attribute in words."""
    if attribute.choices:
        return "string"
    return _TYPES[attribute.type]


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
    """Return the inputs of an operation, from the signature of ``infer``, with the element types that it accepts."""
    if not hasattr(cls, "infer"):
        return []
    parameters = list(inspect.signature(cls.infer).parameters.values())[1:]
    taken = [p for p in parameters if p.name not in _KEYWORDS and p.kind is not p.KEYWORD_ONLY]
    accepted = _accepted_types(cls, len(input_names(cls)), any(p.kind is p.VAR_POSITIONAL for p in taken))
    return [
        OperationInput(p.name, p.default is not p.empty, p.kind is p.VAR_POSITIONAL, types)
        for p, types in zip(taken, accepted, strict=False)
    ]


def _accepted_types(cls: type[Operator], count: int, more: bool) -> Iterator[tuple[ElementType, ...] | None]:
    """Yield for each input the element types that inference accepts if nothing else is known."""
    total = count + more
    unknown = [TensorType(dynamic, PartialShape(None))] * total
    known = _is_inferred(cls, unknown)
    for position in range(total):
        if not known:
            yield None
            continue
        with_types = (
            (t, [*unknown[:position], TensorType(t, PartialShape(None)), *unknown[position + 1 :]]) for t in _EVERY
        )
        yield tuple(t for t, types in with_types if not _refuses_type(cls, types))


def _is_inferred(cls: type[Operator], inputs: Sequence[TensorType]) -> bool:
    if any(name in inspect.signature(cls.infer).parameters for name in _KEYWORDS):
        return False
    try:
        _infer(cls, inputs)
    except OperatorError:
        return False  # the examples of its required attributes contradict each other
    return True


def _refuses_type(cls: type[Operator], inputs: Sequence[TensorType]) -> bool:
    try:
        _infer(cls, inputs)
    except OperatorError as error:
        return error.code is ELEMENT_TYPE
    return False


def _infer(cls: type[Operator], inputs: Sequence[TensorType]) -> object:
    """Infer with example values of the required attributes."""
    return cls(**{a.field: _example(a) for a in cls.required_attributes}).infer(*inputs)


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
