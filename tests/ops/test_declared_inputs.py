"""What operations declare of their inputs: each rank, size and type of every declaration is spoiled."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
import pytest

from ovir.core.element_types import ELEMENT_TYPES, boolean, dynamic, f16, f32, f64, i32, i64, nf4, u8
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.fuzzing.cases import draw, operation_of, type_of
from ovir.fuzzing.making import VERSIONS, Make
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.layouts import Declaration, declarations_of, given, type_class
from ovir.ops.base.operator import Operator

DECLARING = [version for version in VERSIONS if (cls := find(*version)) is not None and cls.takes]
TYPES = (f32, f16, f64, nf4, i32, i64, u8, boolean, dynamic)
Shapes = Sequence[tuple[int, ...]]


def legal(kind: str, opset: int, seed: int) -> tuple[Operator, list[TensorType]]:
    """Return a random operation, and types of inputs that it accepts."""
    cls = find(kind, opset)
    assert cls is not None
    for attempt in range(100):
        made = Make(kind, random.Random(f"{seed} {attempt}"), opset)
        if draw(made, cls, np.random.default_rng(seed)) and (op := operation_of(cls, made)) is not None:
            return op, [TensorType(t.element_type, t.shape) for t in map(type_of, made.inputs)]
    raise AssertionError("no random model is legal")


# ----- which shapes fit together, by trying all sizes


def fitting(op: Operator, inputs: Sequence[TensorType]) -> bool:
    """Return whether sizes exist for which the declaration gives these shapes."""
    return any(
        declared.allows(len(inputs)) and _fits(op, declared, [tensor.shape.to_tuple() for tensor in inputs])
        for declared in declarations_of(op)
    )


def _fits(op: Operator, declared: Declaration, shapes: Shapes) -> bool:
    tensors = [declared.inputs[min(i, len(declared.inputs) - 1)] for i in range(len(shapes))]
    layouts = [[x for x in t.layouts if x.fits(len(s))] for t, s in zip(tensors, shapes, strict=True)]
    if not all(layouts):
        return False
    axes, rests = [], {}
    for (layout, *_), shape in zip(layouts, shapes, strict=True):
        stop = len(shape) - layout.rank + layout.place
        axes += zip(layout.axes, shape[: layout.place] + shape[stop:], strict=True)
        rest = shape[layout.place : stop]
        if layout.rest not in ("", "...") and rests.setdefault(layout.rest, rest) != rest:
            return False
    names = sorted({name for axis, _ in axes for size in axis.choices for name in size.parts})
    sizes: dict[str, int] = {}
    for axis, number in axes:
        if axis.name and sizes.setdefault(axis.name, number) != number:
            return False
    equations = declared.sizes
    free = [name for name in names if name not in sizes]
    known = {name: Dimension(n) for name, n in sizes.items()}
    choices = [Dimension(n) for n in range(max((n for _, n in axes), default=0) + 1)]
    for chosen in itertools.product(choices, repeat=len(free)):
        trial = known | dict(zip(free, chosen, strict=True))
        if all(
            not axis.choices or any(size.value(trial).contains(number) for size in axis.choices)
            for axis, number in axes
        ) and all(size.value({}).contains(trial[name].length) for name, size in equations.items() if name in trial):
            return True
    return False


def spoiled(inputs: Sequence[TensorType]) -> Iterator[tuple[int, list[TensorType]]]:
    """Yield the inputs with another rank or size of one of them, and its position."""
    for position, tensor in enumerate(inputs):
        shape = tensor.shape.to_tuple()
        others = [(*shape, 1), (*shape, 4), shape[1:], shape[:-1]]
        others += [(*shape[:i], size, *shape[i + 1 :]) for i, n in enumerate(shape) for size in (n + 1, n + 12, 0)]
        for other in dict.fromkeys(others):
            if other != shape:
                changed = TensorType(tensor.element_type, PartialShape(other))
                yield position, [*inputs[:position], changed, *inputs[position + 1 :]]


def names_of(op: Operator, inputs: Sequence[TensorType]) -> list[str]:
    (declared, *_) = [one for one in declarations_of(op) if one.allows(len(inputs))]
    return [name for name, _ in declared.named(len(inputs))]


def message_for(op: Operator, inputs: Sequence[TensorType]) -> str | None:
    try:
        op.solved(*inputs)
    except OperatorError as error:
        return error.message
    return None


def assert_named(op: Operator, inputs: Sequence[TensorType], position: int, message: str, shown: list[str]) -> None:
    """Check that a message names the input at a position, and another one unless that input is refused whatever the
    others are; ``shown`` is what the message says of each input."""
    names = names_of(op, inputs)
    found = [f"{name} " in message and text in message for name, text in zip(names, shown, strict=True)]
    unknown = [TensorType(dynamic, PartialShape(None))] * len(inputs)
    alone = message_for(op, [*unknown[:position], inputs[position], *unknown[position + 1 :]])
    assert found[position], message
    assert sum(found) > 1 or alone is not None, message


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "opset"), DECLARING)
@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_rank_or_size(kind: str, opset: int, seed: int) -> None:
    op, inputs = legal(kind, opset, seed)
    assert fitting(op, inputs)
    for position, changed in spoiled(inputs):
        message = message_for(op, changed)
        assert (message is None) == fitting(op, changed), changed
        if message is not None:
            assert_named(op, changed, position, message, [str(tensor.shape) for tensor in changed])


@pytest.mark.parametrize(("kind", "opset"), DECLARING)
def test_a_wrong_type(kind: str, opset: int) -> None:
    op, inputs = legal(kind, opset, 0)
    (declared, *_) = [one for one in declarations_of(op) if one.allows(len(inputs))]
    keys, classes = [tensor.element_type for _, tensor in declared.named(len(inputs))], declared.types
    for position, tensor in enumerate(inputs):
        for other in TYPES:
            changed = [*inputs[:position], TensorType(other, tensor.shape), *inputs[position + 1 :]]
            key = keys[position]
            alike = {t.element_type for t, k in zip(changed, keys, strict=True) if k == key} - {dynamic}
            allowed = classes.get(key, key)
            is_legal = other in type_class(str(getattr(op, allowed, allowed))).types
            message = message_for(op, changed)
            assert (message is None) == (is_legal and (key[0].islower() or len(alike) <= 1)), changed
            if message is not None:
                assert_named(op, changed, position, message, [str(tensor.element_type) for tensor in changed])


@pytest.mark.parametrize(("kind", "opset"), DECLARING)
def test_a_wrong_type_of_an_attribute(kind: str, opset: int) -> None:
    op, inputs = legal(kind, opset, 0)
    (declared, *_) = [one for one in declarations_of(op) if one.allows(len(inputs))]
    for name in declared.types.keys() & op.attributes.keys():
        for other in TYPES:
            changed = copy(op)
            setattr(changed, name, other)
            message = message_for(changed, inputs) or ""
            is_legal = other in type_class(declared.types[name]).types - {dynamic}
            assert is_legal != (message.startswith(f"{name} must be ") and message.endswith(f", got {other}"))
            names = {t.name for t in ELEMENT_TYPES}.intersection(declared.types[name].split("|"))
            assert is_legal or names <= set(re.findall(r"\w+", message))


# ----- how many inputs there may be


@pytest.mark.parametrize(("kind", "opset"), DECLARING)
def test_a_wrong_number_of_inputs(kind: str, opset: int) -> None:
    op, _ = legal(kind, opset, 0)
    known = declarations_of(op)
    for count in range(12):
        message = message_for(op, [TensorType(dynamic, PartialShape(None))] * count) or ""
        found = re.fullmatch(rf"takes (.+) inputs?, got {count}", message)
        assert any(declared.allows(count) for declared in known) == (found is None), message
        if found is not None:
            named = {n for words in found[1].replace(" or more", " to 11").split(" or ") for n in numbers_in(words)}
            assert named == {n for n in range(12) if any(declared.allows(n) for declared in known)}
            assert ("inputs" in message) == (found[1] != "1")


def numbers_in(words: str) -> range:
    """Return the numbers below 12 that words such as ``2 to 4`` or ``3`` stand for."""
    first, _, last = words.partition(" to ")
    return range(int(first), int(last or first) + 1)


# ----- forms of sizes, with all small shapes

FORMS = {
    "a T[A+B]; b T[A]; c T[B]; T real": "T[A+B, A]",
    "a T[A*B]; b T[A]; c T[B]; T real": "T[A*B, B]",
    "a T[2*A]; b T[2*A]; c T[A]; T real": "T[2*A, A]",
    "a T[..2*A]; b T[..2*A]; c T[A]; T real": "T[..2*A, A]",
    "a T[2*A+1..]; b T[A]; T real": "T[2*A+1.., A]",
    "a T[3|2*A+1]; b T[A]; T real": "T[2*A+1, A]",
    "a T[A, 2*A+B]; b T[B]; T real": "T[A*B]",
    "a T[A, B..., A]; b T[B...]; T real": "T[B..., A]",
}
"""What operations take and give."""


def declared_as(takes: str) -> Operator:
    """Return an operation of one of the forms."""
    return type("Declared", (Operator,), {"type": "Declared", "opset": 1, "takes": takes, "gives": FORMS[takes]})()


@pytest.mark.slow
@pytest.mark.parametrize("takes", FORMS)
def test_all_small_shapes(takes: str) -> None:
    op = declared_as(takes)
    (declared,) = declarations_of(op)
    ranks = [tensor.layouts[0].rank + bool(tensor.layouts[0].rest) for tensor in declared.inputs]
    for sizes in itertools.product(range(5), repeat=sum(ranks)):
        left = iter(sizes)
        inputs = [TensorType(f32, PartialShape([next(left) for _ in range(rank)])) for rank in ranks]
        assert (message_for(op, inputs) is None) == fitting(op, inputs), sizes
        if fitting(op, inputs):
            assert_blurred(op, inputs, random.Random(str(sizes)))


@pytest.mark.parametrize("takes", FORMS)
def test_a_size_in_the_same_words_keeps_its_symbol(takes: str) -> None:
    op = declared_as(takes)
    (declared,) = declarations_of(op)
    texts = declared.inputs[0].layouts[0].texts
    inputs = [TensorType(f32, PartialShape(None)) for _ in declared.inputs]
    inputs[0] = TensorType(f32, PartialShape([Dimension(1, 9, 70 + i) for i in range(len(texts))]))
    (output,) = as_tuple(op.infer(*inputs))
    (layout,) = given(op.gives)[0].layouts
    for text, dim in zip(layout.texts, output.shape.dims if output.shape.rank else (), strict=False):
        if text in texts and ".." not in text:
            assert dim.symbol == 70 + texts.index(text), output


def assert_blurred(op: Operator, inputs: Sequence[TensorType], rng: random.Random) -> None:
    """Check that inputs of which less is known are not refused, and give all that the known ones give."""
    exact = op.infer(*inputs)
    for _ in range(3):
        less = [TensorType(tensor.element_type, blurred(tensor.shape, rng)) for tensor in inputs]
        outputs = op.infer(*less)
        for one, other in zip(as_tuple(outputs), as_tuple(exact), strict=True):
            assert one.shape.rank is None or contains(one.shape, other.shape), (less, outputs)


def blurred(shape: PartialShape, rng: random.Random) -> PartialShape:
    """Return a shape that allows a shape and others."""
    if rng.random() < 0.2:
        return PartialShape(None)
    choices = [(n, Dimension(max(n.lower - 1, 0), n.lower + 2), UNKNOWN) for n in shape]
    return PartialShape([rng.choice(choice) for choice in choices])


def contains(shape: PartialShape, other: PartialShape) -> bool:
    """Return whether a shape allows all that the other one allows."""
    return shape.rank == other.rank and all(
        one.merged_with(dim) == dim for one, dim in zip(shape.dims, other.dims, strict=True)
    )


# ----- which inputs a message names


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "opset"), DECLARING)
def test_a_message_names_the_inputs_that_contradict_each_other(kind: str, opset: int) -> None:
    op, inputs = legal(kind, opset, 0)
    names, rng = names_of(op, inputs), random.Random(0)
    for position, changed in spoiled(inputs):
        less = [
            t if i == position else TensorType(t.element_type, blurred(t.shape, rng)) for i, t in enumerate(changed)
        ]
        if message := message_for(op, less):
            shown = re.findall(r"(?:^| and )(\S+) (?:must be )?\[", message)
            assert set(shown) <= set(names), message
            alone = [
                tensor if name in shown else TensorType(dynamic, PartialShape(None))
                for name, tensor in zip(names, less, strict=True)
            ]
            assert message_for(op, alone) is not None, message


@pytest.mark.parametrize(
    ("takes", "says"),
    [
        ("x T[N-1]", "'N-1' is not a size: expected a sum of products"),
        ("x T[N M]", "'N M' is not a size"),
        ("x T[N, ]", "'' is not a size"),
        ("x T[N, 4", r"'x T\[N, 4' does not declare a tensor: expected a name, a type and a shape"),
        ("x [N]", r"'x \[N\]' does not declare a tensor"),
    ],
)
def test_texts_that_declare_nothing(takes: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Declaration.parse(takes, {})
