"""Models of one operation each, made of a seed: most of them legal, the others nearly so."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from builder import Net, output

from fuzz import (  # noqa: F401  (they register recipes)
    recipes_bodies,
    recipes_indexing,
    recipes_movement,
    recipes_regions,
    recipes_windows,
)
from fuzz.making import INTEGERS, NARROW, REALS, Input, Make, random_array
from fuzz.recipes import RECIPES, recipe_name
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, nf4
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find
from ovir.ops.base.domains import Domain
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS

VERSIONS: list[tuple[str, int]] = sorted((kind, opset) for kind, versions in OPERATIONS.items() for opset in versions)
"""Type and opset of each operation version.

The remainder of a seed chooses one of them, and the quotient its model, which is the same whatever other versions there
are.
"""

_LEGAL = 0.75
"""The share of models that are not made illegal on purpose."""
_ATTEMPTS = 4
_ODD_INTEGERS = (-1, 0, 1, 2, 3, 7, 64, 1 << 20, 10**9, 2**31, 2**62, -(2**63))
_EXTREMES = [
    np.nan, np.inf, -np.inf, 3e38, -3e38, 1e12, 2.0**31, -(2.0**31) - 300, 2.0**32 + 512, 2.0**63, -(2.0**63), 2.0**64,
    70000, 300.7, -300.7, 255.5, -1.5, -0.5, 0, 0.5, 1, 2,
]  # fmt: skip
_ODD_FLOATS = (0.0, -1.0, 1e-30, 1e12, 3.4e38, "nan", "inf", "-inf")


@dataclass
class Case:
    """One model with the arrays to be fed."""

    name: str
    text: bytes
    weights: bytes
    feeds: list[Array]
    constants: list[Array]


def make_case(seed: int, *, extreme: bool = False) -> Case:
    """Return the model of a seed; if ``extreme``, with real numbers that integers do not hold among its inputs."""
    round_, index = divmod(seed, len(VERSIONS))
    kind, opset = VERSIONS[index]
    rng = random.Random(f"{kind}-{opset}, {round_}")
    values = np.random.default_rng(rng.getrandbits(64))
    cls = find(kind, opset)
    assert cls is not None
    legal = rng.random() < _LEGAL
    for _ in range(_ATTEMPTS):
        made = Make(rng, opset)
        RECIPES[recipe_name(cls)](made)
        made.attributes = {name: text for name, text in made.attributes.items() if name in cls.attributes}
        op = _operation(cls, made)
        _fill(made, op, values)
        if not legal or _accepts(op, made):
            break
    if extreme:
        _put_extremes(made, values)
    if not legal:
        for _ in range(rng.choice((1, 1, 2))):
            _spoil(made, cls, values)
    return _written(f"{kind}-{opset}", made, kind, values)


def _operation(cls: type[Operator], made: Make) -> Operator | None:
    try:
        parsed = {
            cls.attributes[name].field: cls.attributes[name].parse(text) for name, text in made.attributes.items()
        }
        return cls(**parsed)
    except ValueError:
        return None


def _accepts(op: Operator | None, made: Make) -> bool:
    if op is None or made.bodies or op.type in ("Const", "Parameter", "Assign", "ReadValue"):
        return True
    try:
        op.infer(*map(_type_of, made.inputs))
    except OperatorError:
        return False
    except Exception:  # the model shows it
        return True
    return True


def _type_of(given: Input) -> TensorType:
    element_type = ElementType.parse(given.element_type)
    if given.values is None:
        return TensorType(element_type, PartialShape(given.shape))
    return constant_type(given.values, element_type)


# --------------------------------------------------------------------------- values


def _fill(made: Make, op: Operator | None, rng: np.random.Generator) -> None:
    """Give the inputs values of their types; those that the operation restricts keep to their domain."""
    types = [_type_of(given) for given in made.inputs]
    for position, given in enumerate(made.inputs):
        element_type = ElementType.parse(given.element_type)
        if given.values is not None:
            with np.errstate(all="ignore"):
                given.values = given.values.astype(element_type.to_dtype())
            continue
        try:
            domain = None if op is None else op.domain_of(position, types)
        except Exception:  # domains rely on what inference has checked
            domain = None
        if domain is None or element_type.kind in ("string", "boolean"):
            given.values = random_array(rng, element_type, given.shape)
        else:
            given.values = _within(rng, domain, given.shape).astype(element_type.to_dtype())


def _put_extremes(made: Make, rng: np.random.Generator) -> None:
    """Replace some of the real numbers in the inputs, or most of them."""
    for given in made.inputs:
        assert given.values is not None
        element_type = ElementType.parse(given.element_type)
        if element_type.is_real and element_type != nf4:
            with np.errstate(all="ignore"):
                numbers = rng.choice(_EXTREMES, given.values.shape).astype(given.values.dtype)
            given.values = np.where(rng.random(numbers.shape) < rng.random(), numbers, given.values)


def _within(rng: np.random.Generator, domain: Domain, shape: tuple[int, ...]) -> Array:
    low = int(domain.low or 0)
    high = max(low, int(domain.high if domain.high is not None else low + 9))
    array = rng.integers(low, high, shape, np.int64, endpoint=True)
    if not shape:
        return np.asarray(array)
    if domain.order in ("sorted", "offsets"):
        array = np.sort(array, axis=-1)
        if domain.order == "offsets":
            array[..., :1] = 0
    elif domain.order == "counting":
        array = np.arange(array.size).reshape(shape) + low
    elif domain.order == "whole":
        array = np.ones(shape, np.int64)
        array[..., :1] = -1
    return array


# --------------------------------------------------------------------------- faults of the model


def _spoil(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    """Change one thing of the model: an input's shape, type or values, or an attribute."""
    rng = made.rng
    changes = [_change_shape, _change_type, _change_values, _drop_input] if made.inputs else []
    if cls.attributes:
        rng.choice([*changes, _change_attribute, _change_attribute])(made, cls, values)
    elif changes:
        rng.choice(changes)(made, cls, values)


def _change_shape(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    given, rng = made.rng.choice(made.inputs), made.rng
    shape = list(given.shape)
    change = rng.choice(("grow", "rank", "axis", "empty"))
    if change == "rank" or not shape:
        shape.insert(rng.randint(0, len(shape)), rng.choice((1, 2, 13)))
    elif change == "axis":
        shape.pop(rng.randrange(len(shape)))
    else:
        shape[rng.randrange(len(shape))] = 0 if change == "empty" else rng.choice((1, 2, 13))
    given.shape = tuple(shape)
    given.values = random_array(values, ElementType.parse(given.element_type), given.shape)


def _change_type(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    given = made.rng.choice(made.inputs)
    given.element_type = made.rng.choice((*REALS, *INTEGERS, *NARROW, "boolean"))
    given.values = random_array(values, ElementType.parse(given.element_type), given.shape)


def _change_values(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    given, rng = made.rng.choice(made.inputs), made.rng
    element_type = ElementType.parse(given.element_type)
    if not given.values.size or element_type.kind == "string":  # type: ignore[union-attr]
        return
    changed = given.values.copy()  # type: ignore[union-attr]
    odd = rng.choice(_ODD_INTEGERS if element_type.is_integral else _ODD_FLOATS)
    if element_type.is_integral:
        lowest = 0 if element_type.kind == "unsigned" else -(1 << (element_type.bits - 1))
        odd = min(max(int(odd), lowest), (1 << (element_type.bits - (element_type.kind == "signed"))) - 1)
    with np.errstate(all="ignore"):
        changed.reshape(-1)[rng.randrange(changed.size)] = np.array(
            odd, np.float64 if element_type.is_real else None
        ).astype(element_type.to_dtype())
    given.values = changed


def _drop_input(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    if made.rng.random() < 0.7:
        made.inputs.pop()
    else:
        made.inputs.append(made.rng.choice(made.inputs))


def _change_attribute(made: Make, cls: type[Operator], values: np.random.Generator) -> None:
    rng = made.rng
    attribute = rng.choice(list(cls.attributes.values()))
    present = made.attributes.get(attribute.name)
    if attribute.choices:
        text: Any = rng.choice(attribute.choices)
    elif attribute.type is bool:
        text = rng.choice(("true", "false"))
    elif attribute.type is float:
        text = rng.choice(_ODD_FLOATS)
    elif attribute.type is int:
        text = rng.choice(_ODD_INTEGERS)
    elif attribute.type is ElementType:
        text = rng.choice((*REALS, *INTEGERS, *NARROW, "boolean", "dynamic"))
    else:
        items = (present or "").split(",") if present else []
        odd = str(rng.choice(_ODD_FLOATS if "float" in str(attribute.type) else _ODD_INTEGERS))
        if items and rng.random() < 0.6:
            items[rng.randrange(len(items))] = odd
        else:
            items = items[:-1] if items and rng.random() < 0.5 else [*items, odd]
        text = ",".join(items)
    if rng.random() < 0.15:
        made.attributes.pop(attribute.name, None)
    else:
        made.attributes[attribute.name] = str(text)


# --------------------------------------------------------------------------- the file


def _declared(rng: random.Random, shape: tuple[int, ...]) -> str:
    """Return a shape that a file may declare for an input of this shape."""
    style = rng.choice(("static", "static", "static", "static", "some", "some", "bounds", "none", "rank"))
    if style == "none":
        return "..."
    if style == "static":
        return ",".join(map(str, shape))
    share = 1.0 if style == "rank" else 0.5
    unknown = ("?", "{}..{}")[style == "bounds"]
    dims = [
        str(size)
        if rng.random() >= share
        else unknown.format(max(size - rng.randint(0, 2), 0), size + rng.randint(0, 5))
        for size in shape
    ]
    return ",".join(dims)


def _written(name: str, made: Make, kind: str, values: np.random.Generator) -> Case:
    rng, net = made.rng, Net()
    feeds: list[Array] = []
    constants: list[Array] = []
    handles: list[tuple[int, int]] = []
    if "boolean" in made.bodies:  # the condition of a loop lies at the start of the weights
        net.blob += b"\1"
    for index, given in enumerate(made.inputs):
        element_type = ElementType.parse(given.element_type)
        whole = element_type.bits % 8 == 0 and element_type.kind != "string"
        constant = rng.random() < 0.35 if given.is_constant is None else given.is_constant
        assert given.values is not None
        if (constant or kind == "Const") and whole and kind != "Parameter":
            handles.append(net.const(given.values, given.element_type))
            constants.append(given.values)
        else:
            declared = _declared(rng, given.shape) if rng.random() < 0.95 else _declared(rng, (*given.shape, 1))
            handles.append(net.parameter(f"x{index}", declared, given.element_type))
            feeds.append(given.values)
    if kind in ("Const", "Parameter", "Result"):
        for handle in handles:
            net.result(handle)
    elif kind in ("Assign", "ReadValue"):
        _write_state(net, made, kind, handles)
    else:
        handle = net.op(kind, *handles, opset=made.opset, outputs=made.outputs, **made.attributes)
        net.layers[-1] = net.layers[-1].replace("</layer>", f"{made.bodies}</layer>")
        for index in range(made.outputs):
            net.result(output(handle, index))
    return Case(name, net.xml().encode(), bytes(net.blob), feeds, constants)


def _write_state(net: Net, made: Make, kind: str, handles: list[tuple[int, int]]) -> None:
    if not handles:
        return
    variable = {"variable_id": "v"}
    opset = made.opset
    attributes = made.attributes if kind == "ReadValue" else variable
    if opset == 6 and kind == "Assign":
        shape = ",".join(map(str, made.inputs[0].shape))
        attributes = {**variable, "variable_type": made.inputs[0].element_type, "variable_shape": shape}
    read = net.op("ReadValue", handles[0], opset=opset, **attributes)
    net.result(read)
    written = made.attributes if kind == "Assign" else variable
    net.op("Assign", net.op("ReLU", read), opset=opset, outputs=0 if made.opset == 6 else 1, **written)
