"""Models of one operation each, made of a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ovir.analysis.random_inputs import arranged
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, nf4
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.fuzzing import recipes_bodies, recipes_indexing, recipes_movement, recipes_windows  # noqa: F401
from ovir.fuzzing.making import INDICES, VERSIONS, Input, Make
from ovir.fuzzing.net import End, Net, output
from ovir.fuzzing.recipes import recipe_of
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.domains import Domain
from ovir.ops.base.operator import Operator

_LEGAL = 0.75
"""The share of models that are not spoiled."""
_ATTEMPTS = 4
_EXTREMES = [
    np.nan, np.inf, -np.inf, 3e38, -3e38, 1e12, 2.0**31, -(2.0**31) - 300, 2.0**32 + 512, 2.0**63, -(2.0**63), 2.0**64,
    70000, 300.7, -300.7, 255.5, -1.5, -0.5, 0, 0.5, 1, 2,
]  # fmt: skip


@dataclass
class Case:
    """One model with the arrays to be fed."""

    name: str
    text: bytes
    weights: bytes
    feeds: list[Array]
    constants: list[Array]
    attributes: dict[str, str]


Spoil = Callable[[Make, type[Operator], np.random.Generator], None]
"""Makes a model illegal, or nearly so."""


def make_case(
    seed: int, *, reals: str = "", small: bool = False, spoil: Spoil | None = None, make: Callable[..., Make] = Make
) -> Case:
    """Return the model of a seed; if ``reals`` is ``extreme``, with real numbers that integers do not hold among its
    inputs; if it is ``ties``, with real numbers that are multiples of a half, of which many are equal; if ``small``,
    with sizes of 0 and 1 among those that are drawn.

    ``make`` draws inputs and attributes. ``spoil`` changes a share of the models, all others are legal.
    """
    round_, index = divmod(seed, len(VERSIONS))
    kind, opset = VERSIONS[index]
    rng = random.Random(f"{kind}-{opset}, {round_}")
    values = np.random.default_rng(rng.getrandbits(64))
    cls = find(kind, opset)
    assert cls is not None
    legal = rng.random() < _LEGAL or spoil is None
    for _ in range(_ATTEMPTS):
        made = make(kind, rng, opset, is_small=small)
        if draw(made, cls, values) or not legal:
            break
    if reals == "extreme":
        _change_reals(made, partial(_with_extremes, rng=values))
    if reals == "ties":
        _change_reals(made, _with_ties)
    if not legal and spoil is not None:
        for _ in range(rng.choice((1, 1, 2))):
            spoil(made, cls, values)
    return written(made)


def draw(made: Make, cls: type[Operator], values: np.random.Generator) -> bool:
    """Draw the inputs and attributes of an operation with its recipe, and attributes that the recipe leaves open from
    their declared values, with all that the specification requires; return whether inference accepts them, as far as it
    can tell without a model."""
    recipe_of(cls)(made)
    named = {name for name, text in made.attributes.items() if text is not None}
    for name, declared in cls.attributes.items():
        choices = declared.choices or _VALUES.get(declared.type, ())
        if not choices or name in made.attributes or declared.instead in named:
            continue
        if declared.required or made.flag() or declared.is_lacking(named):
            made.attributes[name] = made.rng.choice(choices)
    made.attributes = {
        name: text for name, text in made.attributes.items() if name in cls.attributes and text is not None
    }
    op = operation_of(cls, made)
    _fill(made, op, values)
    if op is None or made.bodies or op.type in ("Const", "Parameter", "Assign", "ReadValue"):
        return True
    try:
        made.results = as_tuple(op.infer(*map(type_of, made.inputs)))
        made.outputs = len(made.results)
    except OperatorError as error:
        made.refusal = error
        return False
    except Exception:  # the model shows it
        return True
    return True


_VALUES = {bool: ("true", "false"), ElementType: INDICES}
"""The possible values of attributes of a type, where their operation lists no choices."""


def operation_of(cls: type[Operator], made: Make) -> Operator | None:
    try:
        parsed = {
            cls.attributes[name].field: cls.attributes[name].parse(text) for name, text in made.attributes.items()
        }
        return cls(**parsed)
    except ValueError:
        return None


def type_of(given: Input) -> TensorType:
    element_type = ElementType.parse(given.element_type)
    if given.values is None:
        return TensorType(element_type, PartialShape(given.shape))
    return constant_type(given.values, element_type)


# --------------------------------------------------------------------------- values


def _fill(made: Make, op: Operator | None, rng: np.random.Generator) -> None:
    """Give the inputs values of their types; those that the operation restricts keep to their domain."""
    types = [type_of(given) for given in made.inputs]
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
            made.fill(position, given, rng)
        else:
            given.values = _within(rng, domain, given.shape).astype(element_type.to_dtype())


def _within(rng: np.random.Generator, domain: Domain, shape: tuple[int, ...]) -> Array:
    low = int(domain.low or 0)
    high = max(low, int(domain.high if domain.high is not None else low + 9))
    return arranged(np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True)), domain)


def _change_reals(made: Make, change: Callable[[Array], Array]) -> None:
    """Change the real numbers in the inputs."""
    for given in made.inputs:
        assert given.values is not None
        element_type = ElementType.parse(given.element_type)
        if element_type.is_real and element_type != nf4:
            with np.errstate(all="ignore"):
                given.values = np.asarray(change(given.values)).astype(given.values.dtype)


def _with_extremes(values: Array, rng: np.random.Generator) -> Array:
    """Return numbers of which some, or most, are replaced."""
    numbers = rng.choice(_EXTREMES, values.shape).astype(values.dtype)
    return np.where(rng.random(numbers.shape) < rng.random(), numbers, values)


def _with_ties(values: Array) -> Array:
    return np.rint(values.astype(np.float64) * 2) / 2


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


def written(made: Make) -> Case:
    """Return the model of an operation whose inputs and attributes are drawn."""
    kind, rng, net = made.kind, made.rng, Net()
    feeds: list[Array] = []
    constants: list[Array] = []
    handles: list[End] = []
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
    elif kind in ("Assign", "ReadValue") and handles:  # a spoiled one may have no input
        _write_state(net, made, handles)
    else:
        for end in write(net, made, handles):
            net.result(end)
    return Case(f"{kind}-{made.opset}", net.xml().encode(), bytes(net.blob), feeds, constants, made.attributes)


def write(net: Net, made: Make, ends: Sequence[End]) -> list[End]:
    """Write an operation that reads some ends; return its outputs."""
    first = net.op(made.kind, *ends, opset=made.opset, outputs=made.outputs, inner=made.bodies, **made.attributes)
    return [output(first, index) for index in range(made.outputs)]


def _write_state(net: Net, made: Make, handles: list[End]) -> None:
    """Write a variable, of which the operation reads or assigns the value."""
    kind, opset, variable = made.kind, made.opset, {"variable_id": "v"}
    attributes = made.attributes if kind == "ReadValue" else variable
    if opset == 6 and kind == "Assign":
        shape = ",".join(map(str, made.inputs[0].shape))
        attributes = {**variable, "variable_type": made.inputs[0].element_type, "variable_shape": shape}
    read = net.op("ReadValue", handles[0], opset=opset, **attributes)
    net.result(read)
    assigned = made.attributes if kind == "Assign" else variable
    net.op("Assign", net.op("ReLU", read), opset=opset, outputs=0 if opset == 6 else 1, **assigned)
