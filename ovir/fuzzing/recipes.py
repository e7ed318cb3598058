"""How to make legal layers: a recipe for each type of operation. This module has those of arithmetic.

A recipe for a base class holds for the operations derived from it, unless they have recipes of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from ovir.fuzzing.making import INTEGERS, NARROW, REALS, Make
from ovir.ops.base.operator import Operator

Recipe = Callable[[Make], None]
RECIPES: dict[str, Recipe] = {}


def recipe(*types: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe for these types of operations, or names of base classes."""

    def add(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(types, function))
        return function

    return add


def recipe_name(cls: type[Operator]) -> str:
    """Return the type or the base class whose recipe makes layers of an operation."""
    names = (cls.type, *(base.__name__ for base in cls.__mro__))
    found = next((name for name in names if name in RECIPES), None)
    assert found is not None, f"neither {cls.type} nor a base class of it has a recipe in ovir/fuzzing"
    return found


# --------------------------------------------------------------------------- element by element


@recipe("UnaryBase", "UnaryActivationBase", "IsFinite", "IsInf", "IsNaN")
def unary(m: Make) -> None:
    m.add("... A B" if m.chance(0.8) else (), m.real if m.chance(0.85) else m.number)


@recipe("Clamp")
def clamp(m: Make) -> None:
    m.add("... A", m.real if m.chance(0.8) else m.number)
    low = m.pick(-1, 0, -2.5, -1e9)
    m.has(min=low, max=low + m.pick(0, 1, 0.5, 1e12))


@recipe("Identity", "Result", "Parameter", "NonZero", "ShapeOf")
def any_data(m: Make) -> None:
    m.add("... A B" if m.chance(0.8) else (), m.anything)


@recipe("LogicalNot")
def logical_not(m: Make) -> None:
    m.add("... A", "boolean")


@recipe("BitwiseNot")
def bitwise_not(m: Make) -> None:
    m.add("... A", m.pick(*INTEGERS, "boolean"))


@recipe("Swish")
def swish(m: Make) -> None:
    m.add("... A", m.real)
    if m.flag():
        m.add((), m.real)


@recipe("HardSigmoid", "Selu")
def two_scalars(m: Make) -> None:
    m.add("... A", m.real)
    m.add((), m.real)
    m.add((), m.real)


@recipe("PReLU")
def prelu(m: Make) -> None:
    m.add("N C ...", m.real)
    m.add(m.pick("C", "1", "N C ..."), m.real)


def _pair(m: Make, first: str, second: str) -> None:
    shape = m.any_shape()
    other = m.broadcast(shape)
    mode = m.pick(None, "numpy", "none", "pdpd", "pdpd")
    if mode == "none":
        other = shape
    elif mode == "pdpd":
        axis = m.rng.randint(0, max(len(shape) - 2, 0))
        other = shape[axis : m.rng.randint(min(axis + 1, len(shape)), len(shape))]
        m.has(auto_broadcast__auto_broadcast_axis=axis)
    m.has(auto_broadcast=mode)
    shapes = [shape, other] if mode == "pdpd" or m.chance(0.7) else [other, shape]
    for sizes, element_type in zip(shapes, (first, second), strict=True):
        m.add(sizes, element_type)


@recipe("BinaryBase")
def arithmetic(m: Make) -> None:
    _pair(m, m.number, m.number)


@recipe("LogicalBase")
def logic(m: Make) -> None:
    _pair(m, "boolean", "boolean")


@recipe("BitwiseBase")
def bitwise(m: Make) -> None:
    kind = m.type("bits", *INTEGERS, "boolean", "boolean")
    _pair(m, kind, kind)


@recipe("ShiftBase")
def shift(m: Make) -> None:
    kind = m.type("bits", *INTEGERS)
    _pair(m, kind, kind)


@recipe("Select")
def select(m: Make) -> None:
    shape = m.any_shape()
    m.add(m.broadcast(shape), "boolean")
    m.add(shape, m.anything)
    m.add(m.broadcast(shape), m.anything)
    m.has(auto_broadcast=None)


@recipe("Convert")
def convert(m: Make) -> None:
    m.add("... A", m.pick(*REALS, *INTEGERS, *NARROW[:-1], "boolean"))
    m.has(destination_type=m.pick(*REALS, *INTEGERS, *NARROW[:-1], "boolean"))


@recipe("ConvertLike", "ConvertPromoteTypes")
def convert_two(m: Make) -> None:
    m.add("... A", m.pick(*REALS, *INTEGERS))
    m.add("B", m.pick(*REALS, *INTEGERS))


@recipe("FakeQuantize")
def fake_quantize(m: Make) -> None:
    shape = m.shape("N C ...")
    m.add(shape, m.real)
    limits = [m.broadcast(shape) for _ in range(2)]
    for sizes in (limits[0], limits[0], limits[1], limits[1]):
        m.add(sizes, m.real)
    m.has(levels=m.pick(2, 3, 16, 255, 256, 65536), auto_broadcast=None)


@recipe("FakeConvert")
def fake_convert(m: Make) -> None:
    shape = m.shape("N C ...")
    for sizes in (shape, *[m.broadcast(shape)] * m.pick(1, 2)):
        m.add(sizes, m.narrow_real)


# --------------------------------------------------------------------------- reductions, normalization


@recipe("ReductionBase", "LogicalReductionBase")
def reduce(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, "boolean" if m.kind.startswith("ReduceLogical") else m.number)
    m.given(m.axes(len(shape)))


@recipe("CumSum")
def cumsum(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.number)
    m.given(m.axis(len(shape)))


@recipe("SoftMax", "LogSoftmax")
def softmax(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.real)
    m.has(axis=m.axis(len(shape)) if m.opset > 1 else m.rng.randrange(len(shape)))


@recipe("MVN")
def mvn(m: Make) -> None:
    shape = m.any_shape(2)
    m.add(shape, m.narrow_real)
    m.has(eps=m.pick(1e-9, 1e-5, 1, 1e12))
    if m.opset == 6:
        m.given(m.axes(len(shape)))
    elif m.flag():
        m.has(reduction_axes=m.axes(len(shape)))


@recipe("NormalizeL2", "LRN")
def normalize(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.narrow_real)
    m.given(sorted({axis % len(shape) for axis in m.axes(len(shape))} or {0}))
    m.has(
        eps=m.pick(1e-9, 0.1),
        alpha=m.pick(1e-4, 1),
        beta=0.75,
        bias=m.pick(0, 1),
        size=m.pick(1, 3, 5),
    )


@recipe("GRN")
def grn(m: Make) -> None:
    m.add("N C ...", m.real)
    m.has(bias=m.pick(0.1, 1e-6, 1))


@recipe("GroupNormalization")
def group_normalization(m: Make) -> None:
    groups = m.pick(1, 2, 3)
    m.set(C=groups * m.pick(1, 2, 3))
    for shape in ("N C ...", "C", "C"):
        m.add(shape, m.real)
    m.has(num_groups=groups, epsilon=m.pick(1e-5, 0.1))


@recipe("BatchNormInference")
def batch_norm(m: Make) -> None:
    shapes = ["N C ...", "C", "C", "C", "C"]
    if m.opset == 1:
        shapes = ["C", "C", "N C ...", "C", "C"]
    for shape in shapes:
        m.add(shape, m.real)
    m.has(epsilon=m.pick(0, 1e-5, 0.1))
