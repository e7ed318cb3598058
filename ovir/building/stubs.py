"""The stubs ``opset1.pyi`` to ``opset17.pyi``, which editors and type checkers read.

The stub of an opset defines the functions that are new or changed in it, and imports the others from the stub of the
opset that has them first.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator

from ovir import ops
from ovir.building.arguments import REQUIRED, Argument, Kind, arguments_of, has_bodies
from ovir.building.functions import LAYER_CLASSES, documentation, handwritten
from ovir.building.opset import functions
from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape
from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import Version

_WIDTH = 120
_TYPES = {
    ElementType: "Type",
    PartialShape: "Shape",
    Dimension: "DimensionLike",
    tuple[int, ...]: "Sequence[int]",
    tuple[float, ...]: "Sequence[float]",
    tuple[str, ...]: "Sequence[str]",
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
}


def stub(opset: int) -> str:
    """Return the stub of an opset."""
    before = functions(opset - 1)
    own = functions(opset)
    new = {name: version for name, version in own.items() if before.get(name) != version}
    imports: defaultdict[int, list[str]] = defaultdict(list)
    for name in own.keys() - new.keys():
        imports[_first_with(name, opset)].append(name)
    parts = [
        f'"""The functions of opset{opset}. Written by ``python -m ovir.generated_files``."""',
        "",
        "from collections.abc import Sequence",
        "from typing import Any",
        "",
        "from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer",
        "from ovir.building.values import Info, Shape, Tensor, TensorNames, Type",
        "from ovir.graph.layers import Layer",
        *(line for first in sorted(imports) for line in _import_lines(first, sorted(imports[first]))),
        "",
        *(line for name, version in new.items() for line in _definition(name, version)),
    ]
    return "\n".join(parts)


def _first_with(name: str, opset: int) -> int:
    """Return the first of the opsets that have the function as this one has it, without gaps."""
    version = functions(opset)[name]
    while functions(opset - 1).get(name) == version:
        opset -= 1
    return opset


def _import_lines(opset: int, names: list[str]) -> Iterator[str]:
    yield f"from ovir.opset{opset} import ("
    listed = " ".join(f"{name}~as~{name}," for name in names)
    wrapped = textwrap.wrap(listed, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    yield from (f"    {line.replace('~', ' ')}" for line in wrapped)
    yield ")"


def _definition(name: str, version: Version) -> Iterator[str]:
    cls = ops.find(version.type, version.opset)
    assert cls is not None
    arguments, result = _arguments(cls)
    yield f"def {name}("
    yield from (f"    {argument}," for argument in arguments)
    yield f") -> {result}:"
    first, *rest = documentation(cls).replace("\\", "\\\\").splitlines()
    yield f'    """{first}'
    yield from (f"    {line}".rstrip() for line in rest)
    yield '    """'
    yield ""


def _arguments(cls: type[Operator]) -> tuple[list[str], str]:
    function = handwritten(cls, "")
    if function is not None:
        signature = inspect.signature(function)
        listed: list[str] = []
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in listed:
                listed.append("*")
            default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
            listed.append(f"{parameter.name}: {parameter.annotation}{default}")
        return listed, signature.return_annotation
    arguments = arguments_of(cls)
    listed = [_argument(a) for a in arguments if not a.is_keyword]
    keywords = [_argument(a) for a in arguments if a.is_keyword]
    others = _OTHERS[1:] if has_bodies(cls) else _OTHERS
    return [*listed, *_NAME, *keywords, *others], LAYER_CLASSES.get(cls.type, Layer).__name__


_NAME = ("name: str | None = None", "*")
_OTHERS = ("tensor_names: TensorNames | None = None", "rt_info: Info | None = None")


def _argument(argument: Argument) -> str:
    kind = {Kind.INPUT: "Tensor", Kind.INPUTS: "Sequence[Tensor]", Kind.ATTRIBUTES: "dict[str, Any]"}.get(argument.kind)
    if kind is None:
        assert argument.attribute is not None
        kind = _TYPES[argument.attribute.type]
    if argument.default is REQUIRED:
        return f"{argument.name}: {kind}"
    return f"{argument.name}: {kind} | None = {argument.shown_default!r}"
