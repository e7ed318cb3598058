"""Recipes for legal layers, one for each type of operation. This module has those of arithmetic.

A recipe for a base class holds for the operations derived from it, unless they have recipes of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from ovir.fuzzing.making import INTEGERS, NARROW, REALS, Make
from ovir.ops import find
from ovir.ops.base.operator import Operator

Recipe = Callable[[Make], None]
RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe for types of operations, operation versions such as ``MVN-6``, or names of base classes."""

    def add(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, function))
        return function

    return add


def declare(names: str, inputs: str, settings: str = "") -> None:
    """Register a recipe in words: ``Make.take`` explains the inputs, and ``Make.settle`` sizes and attributes.

    `` / `` separates inputs to choose from. An operation that declares what it takes has types and values in place of
    inputs, which ``Make.take_declared`` explains; its attributes come first, because layouts may depend on them.
    """
    sizes = " ".join(setting for setting in settings.split() if setting[0].isupper())
    attributes = " ".join(setting for setting in settings.split() if not setting[0].isupper())

    def make(m: Make) -> None:
        cls = find(m.kind, m.opset)
        assert cls is not None
        m.settle(sizes)
        if cls.takes:
            m.settle(attributes)
            m.take_declared(inputs)
        else:
            m.take(m.pick(*inputs.split(" / ")))
            m.settle(attributes)

    recipe(*names.split())(make)


def recipe_name(cls: type[Operator]) -> str:
    """Return the operation version, type or base class whose recipe makes layers of an operation."""
    names = (f"{cls.type}-{cls.opset}", cls.type, *(base.__name__ for base in cls.__mro__))
    found = next((name for name in names if name in RECIPES), None)
    assert found is not None, f"neither {cls.type} nor a base class of it has a recipe in ovir/fuzzing"
    return found


# --------------------------------------------------------------------------- element by element


@recipe("UnaryBase", "UnaryActivationBase", "IsFinite", "IsInf", "IsNaN")
def unary(m: Make) -> None:
    m.add("... A B" if m.chance(0.8) else (), m.mostly_real)


_NUMBERS = "|".join((*REALS, *INTEGERS))
_ALL = "|".join((_NUMBERS, *NARROW[:-1], "boolean"))
declare("Clamp", "mostly_real ... A", "min=-1|0|-2.5|-1e9 max=0|1|0.5|1e12")
declare("Elu", "mostly_real ... A", "alpha=0.1|1|2.5")
declare("Identity Result Parameter NonZero ShapeOf", "anything any")
declare("LogicalNot", "boolean ... A")
declare("BitwiseNot", f"{'|'.join(INTEGERS)}|boolean ... A")
declare("Swish", "real ... A, ?real")
declare("HardSigmoid Selu", "real ... A, real, real")
declare("PReLU", "real N C ..., real C | 1 | N C ...")
declare("Convert", f"{_ALL} ... A", f"destination_type={_ALL}")
declare("ConvertLike ConvertPromoteTypes", f"{_NUMBERS} ... A, {_NUMBERS} B")


def _pair(m: Make, *types: str) -> None:
    mode = m.pick(None, None, "numpy", "none", "explicit", "pdpd", "pdpd")
    shape = m.any_shape(2 * (mode == "pdpd"))
    other = m.broadcast(shape)
    if mode in ("none", "explicit"):
        other = shape
    elif mode == "pdpd":
        axis = m.rng.randrange(len(shape) - 1)
        other = shape[axis : m.rng.randint(axis + 1, len(shape) - m.chance(0.8))]
        m.has(auto_broadcast__auto_broadcast_axis=axis)
    m.has(auto_broadcast=mode)
    shapes = [shape, other] if mode == "pdpd" or m.chance(0.7) else [other, shape]
    for sizes, element_type in zip(shapes, types, strict=True):
        m.add(sizes, element_type)


recipe("BinaryBase")(lambda m: _pair(m, m.number, m.number))
recipe("LogicalBase")(lambda m: _pair(m, "boolean", "boolean"))
recipe("BitwiseBase")(lambda m: _pair(m, *[m.bits] * 2))


@recipe("Select")
def select(m: Make) -> None:
    mode, shape = m.pick(None, "numpy", "none", "explicit", "pdpd"), m.any_shape()
    shapes = [m.broadcast(shape) if mode in (None, "numpy") else shape for _ in "ab"]
    m.add(shapes[0], "boolean")
    m.add(shape, m.anything)
    m.add(shapes[1], m.anything)
    m.has(auto_broadcast=mode)


@recipe("FakeQuantize")
def fake_quantize(m: Make) -> None:
    mode, shape = m.pick(None, "numpy", "none", "explicit", "pdpd"), m.shape("N C ...")
    m.add(shape, m.real)
    limits = [shape if mode in ("none", "explicit") else m.broadcast(shape) for _ in range(2)]
    for sizes in (limits[0], limits[0], limits[1], limits[1]):
        m.add(sizes, m.real)
    m.has(levels=m.pick(2, 3, 16, 255, 256, 65536), auto_broadcast=mode)


@recipe("FakeConvert")
def fake_convert(m: Make) -> None:
    shape = m.shape("N C ...")
    for sizes in (shape, *[m.broadcast(shape)] * m.pick(1, 2)):
        m.add(sizes, m.narrow)


# --------------------------------------------------------------------------- reductions, normalization

declare("ReductionBase", "number any1, index = axes")
declare("LogicalReductionBase", "boolean any1, index = axes")
declare("CumSum", "number any1, index = axis")
declare("SoftMax LogSoftmax", "real any1", "axis=axis")
declare("SoftMax-1", "real A ... | A B ...", "axis=0|1")
declare("MVN-6", "narrow any2, index = axes", "eps=1e-9|1e-5|1|1e12")
declare("MVN", "narrow any2", "eps=1e-9|1e-5|1|1e12 reduction_axes=|axes")
declare("GRN", "real N C ...", "bias=0.1|1e-6|1")
declare("BatchNormInference", "T real", "epsilon=0|1e-5|0.1")
declare("GroupNormalization", "T real", "C=1|2|3 num_groups=1|2|3 epsilon=1e-5|0.1")


@recipe("NormalizeL2", "LRN")
def normalize(m: Make) -> None:
    shape = m.data("narrow", 1)
    m.given(sorted({axis % len(shape) for axis in m.axes(len(shape))} or {0}))
    m.has(eps=m.pick(1e-9, 0.1), alpha=m.pick(1e-4, 1), beta=0.75, bias=m.pick(0, 1), size=m.pick(1, 3, 5))
