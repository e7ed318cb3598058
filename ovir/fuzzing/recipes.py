"""Recipes for legal layers: those that the classes of operations declare in words, and functions for the others.

A recipe of a base class holds for the operations derived from it, unless they have recipes of their own. This module
has the functions of arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from ovir.fuzzing.making import INTEGERS, NARROW, REALS, Make
from ovir.ops import find
from ovir.ops.base.operator import Operator

Recipe = Callable[[Make], None]
RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe for types of operations or names of base classes."""

    def add(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, function))
        return function

    return add


def recipe_of(cls: type[Operator]) -> Recipe:
    """Return the recipe that makes layers of an operation."""
    if cls.type in RECIPES:
        return RECIPES[cls.type]
    for base in cls.__mro__:
        if base.__name__ in RECIPES:
            return RECIPES[base.__name__]
        if "recipe" in vars(base) and (cls.recipe or cls.takes):
            return _in_words
    raise AssertionError(f"neither {cls.type} nor a base class of it has a recipe")


def _in_words(m: Make) -> None:
    """Draw what the class of an operation declares: sizes, attributes and inputs. If it declares what it takes, its
    attributes come before its inputs, because layouts may depend on them."""
    cls = find(m.kind, m.opset)
    assert cls is not None
    words = cls.recipe.split()
    settings = [word for word in words if "=" in word[1:]]
    inputs = " ".join(word for word in words if word not in settings).removesuffix(";")
    sizes = " ".join(setting for setting in settings if setting[0].isupper())
    attributes = " ".join(setting for setting in settings if not setting[0].isupper())
    m.settle(sizes)
    if cls.takes:
        m.settle(attributes)
        m.take_declared(inputs)
    else:
        m.take(m.pick(*inputs.split(" / ")))
        m.settle(attributes)


# --------------------------------------------------------------------------- element by element


@recipe("UnaryBase", "ActivationBase")
def unary(m: Make) -> None:
    m.add("... A B" if m.chance(0.8) else (), m.mostly_real)


@recipe("ConversionBase")
def conversion(m: Make) -> None:
    kinds = (*REALS, *INTEGERS, *((*NARROW[:-1], "boolean") if m.kind == "Convert" else ()))
    m.add("... A", m.pick(*kinds))
    if m.kind != "Convert":
        m.add("B", m.pick(*kinds))
    m.has(destination_type=m.pick(*kinds))


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


@recipe("NormalizeL2", "LRN")
def normalize(m: Make) -> None:
    shape = m.data("narrow", 1)
    m.given(sorted({axis % len(shape) for axis in m.axes(len(shape))} or {0}))
    m.has(eps=m.pick(1e-9, 0.1), alpha=m.pick(1e-4, 1), beta=0.75, bias=m.pick(0, 1), size=m.pick(1, 3, 5))
