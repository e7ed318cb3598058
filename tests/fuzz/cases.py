"""Models of one operation each, made of a seed: most of them legal, the others nearly so."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import ovir
from ovir.core.element_types import ElementType, value_range
from ovir.fuzzing import cases
from ovir.fuzzing.cases import Case as Case
from ovir.fuzzing.making import INTEGERS, NARROW, REALS, Input, Make, random_array
from ovir.fuzzing.making import VERSIONS as VERSIONS
from ovir.ops import find
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator

_ODD_INTEGERS = (-1, 0, 1, 2, 3, 7, 64, 1 << 20, 10**9, 2**31, 2**62, -(2**63))
_ODD_FLOATS = (0.0, -1.0, 1e-30, 1e12, 3.4e38, "nan", "inf", "-inf")


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


make_case = partial(cases.make_case, spoil=_spoil)


class _Limits(Make):
    """Draws integers for half of the real inputs, and numbers at the limits of their types for all integers."""

    def type(self, name: str, *choices: str) -> str:
        return super().type(name, *(INTEGERS if "f32" in choices and self.flag() else choices))

    def fill(self, position: int, given: Input, values: np.random.Generator) -> None:
        super().fill(position, given, values)
        element_type = ElementType.parse(given.element_type)
        if element_type.is_integral:
            least, greatest = value_range(element_type)
            limits = np.array([least, greatest, max(least, -1), 0, 1], object).astype(element_type.to_dtype())
            given.values = values.choice(limits, given.shape)


make_limits_case = partial(cases.make_case, make=_Limits)

Choice = tuple[str, str]
"""An attribute and one of the values that it declares."""
_CASES = 2
"""The models with each choice, as one alone may give the same results with other choices."""
_MOST_CASES = 400


def choices_of(kind: str, opset: int) -> set[Choice]:
    """Return the choices of an operation version."""
    cls = find(kind, opset)
    assert cls is not None
    return {(a.name, value) for a in cls.attributes.values() for value in _values_of(a)}


def _values_of(declared: Attribute) -> tuple[str, ...]:
    return ("true", "false") if declared.type is bool else declared.choices


def readable_cases(index: int, count: int) -> Iterator[tuple[Case, ovir.Model]]:
    """Yield the first models of an operation version, each with its case; leave out models that cannot be read."""
    for attempt in range(count):
        case = cases.make_case(index + attempt * len(VERSIONS))
        try:
            model = ovir.read_model(case.text, case.weights)
        except ovir.OvirError:
            continue
        yield case, model


def covering_cases(index: int, least: int, ran: Counter[Choice]) -> Iterator[tuple[Case, set[Choice]]]:
    """Yield the first models of an operation version, then legal ones with a choice of which fewer than two ``ran``.

    With each model come its choices, which whoever runs it adds to ``ran``.
    """
    version = VERSIONS[index]
    cls, wanted = find(*version), choices_of(*version)
    assert cls is not None
    defaults = {a.name: a.format(a.default) for a in cls.attributes.values() if _values_of(a) and not a.required}
    for attempt in range(_MOST_CASES):
        spoil = _spoil if attempt < least else None
        case = cases.make_case(index + attempt * len(VERSIONS), spoil=spoil)
        taken = wanted & {**defaults, **case.attributes}.items()
        missing = {choice for choice in wanted if ran[choice] < _CASES}
        if attempt >= least and not missing:
            return
        if attempt < least or taken & missing:
            yield case, taken
