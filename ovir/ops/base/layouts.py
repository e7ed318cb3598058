"""What an operation declares of its inputs and outputs: names, element types and shapes, as texts that are solved.

    takes = "im_info T[N, 3|4]; anchors T[H, W, A, 4]; deltas T[N, 4*A, H, W]; scores T[N, A, H, W]; T real"
    gives = "boxes T[..N*post_nms_count, 4]; scores T[..N*post_nms_count]; counts roi_num_type[N]"

docs/operation-classes.md explains the grammar. A text is parsed when a layer first needs it, once for all layers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any, NamedTuple, NoReturn

from ovir.core.element_types import ELEMENT_TYPES, ElementType, dynamic, i32, i64, nf4
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, sized
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import ELEMENT_TYPE, INPUT_COUNT, RANK, TYPES_DIFFER, Code
from ovir.diagnostics.errors import OperatorError

# --------------------------------------------------------------------------- element types

_CLASSES: dict[str, tuple[str, Callable[[ElementType], bool]]] = {
    "any": ("of any type", lambda t: True),
    "real": ("of a floating-point type", lambda t: t.is_real and t != nf4),
    "integer": ("of an integer type", lambda t: t.is_integral),
    "numeric": ("of a numeric type", lambda t: (t.is_real and t != nf4) or t.is_integral),
    "index": ("i32 or i64", lambda t: t in (i32, i64)),
}
"""The classes of element types, each with its words in messages."""


class TypeClass(NamedTuple):
    words: str
    types: frozenset[ElementType]


@cache
def type_class(text: str) -> TypeClass:
    """Return the element types of a text such as ``real`` or ``u8|real``; raise ValueError if it names none."""
    words, allowed = [], {dynamic}
    for name in text.split("|"):
        if name in _CLASSES:
            phrase, contains = _CLASSES[name]
            allowed.update(filter(contains, ELEMENT_TYPES))
        else:
            phrase = name
            allowed.add(ElementType.parse(name))
        words.append(phrase)
    return TypeClass(" or ".join(filter(None, (", ".join(words[:-1]), words[-1]))), frozenset(allowed))


@cache
def _known_class(text: str) -> TypeClass | None:
    """Return what ``type_class`` returns, or None if the text is the name of an attribute."""
    try:
        return type_class(text)
    except ValueError:
        return None


# --------------------------------------------------------------------------- sizes


def word_value(op: Any, word: str) -> Any:
    """Return the size that a word stands for: the number in an attribute or property, or the length of a list; None if
    it is unknown, or below the minimum of the attribute, as the default of some is."""
    value = getattr(op, word)
    if isinstance(value, tuple):
        return len(value)
    declared = op.attributes.get(word)
    is_missing = declared is not None and declared.minimum is not None and value < declared.minimum
    return None if is_missing else value


class Product(NamedTuple):
    """A number times attributes times sizes."""

    number: int
    words: tuple[str, ...]
    sizes: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Product:
        factors = text.split("*")
        number = prod(int(factor) for factor in factors if factor.isdigit())
        words = tuple(factor for factor in factors if factor[0].islower())
        return cls(number, words, tuple(factor for factor in factors if factor[0].isupper()))

    def bounds(self, op: Any, sizes: dict[str, Dimension], without: str = "") -> tuple[int, int | None]:
        """Return the least and the greatest product, None if it has no bound; ``without`` is a size that counts as
        1."""
        low: int = self.number
        high: int | None = low
        for word in self.words:
            value = word_value(op, word)
            low, high = (0, None) if value is None else (low * value, high and high * value)
        for name in self.sizes:
            if name != without:
                size = sizes.get(name, UNKNOWN)
                low *= size.lower
                high = 0 if size.upper == 0 else high and size.upper and high * size.upper
        return low, high


class Size(NamedTuple):
    """A sum of products, such as ``4*A+1``; the sizes up to it, as ``..4*A``, or from it on, as ``4*A..``."""

    text: str
    terms: tuple[Product, ...]
    names: tuple[str, ...]
    """The names of the sizes in it."""
    is_range: bool
    is_name: bool
    """Whether it is only a name."""
    number: Dimension | None
    """The number, if it is only one."""

    @classmethod
    def parse(cls, text: str) -> Size:
        terms = tuple(map(Product.parse, text.strip(".").split("+")))
        names = tuple(name for term in terms for name in term.sizes)
        return cls(text, terms, names, ".." in text, names == (text,), sized(int(text)) if text.isdigit() else None)

    def value(self, op: Any, sizes: dict[str, Dimension], terms: Iterable[Product] | None = None) -> Dimension:
        """Return what is known of the size, or of the sum of some of its terms."""
        if self.is_name:
            return sizes.get(self.text, UNKNOWN)
        if self.number is not None:
            return self.number
        low = 0
        high: int | None = 0
        for term in self.terms if terms is None else terms:
            least, most = term.bounds(op, sizes)
            low, high = low + least, None if high is None or most is None else high + most
        symbol = sizes.get(self.text, UNKNOWN).symbol
        if self.is_range:
            return Dimension(0 if self.text.startswith("..") else low, None if self.text.endswith("..") else high)
        return sized(low) if low == high else Dimension(low, high, symbol)


@dataclass(frozen=True)
class Axis:
    """One dimension of a layout: its alternatives, none of which stands for any size."""

    text: str
    choices: tuple[Size, ...]
    name: str
    """The name of the size, if the axis is nothing else."""
    numbers: tuple[int, ...]
    """The alternatives that are numbers."""
    size: Size | None
    """The alternative that is none."""

    @classmethod
    def parse(cls, text: str) -> Axis:
        choices = () if text == "?" else tuple(map(Size.parse, text.split("|")))
        numbers = tuple(int(size.text) for size in choices if size.text.isdigit())
        size = next((size for size in choices if not size.text.isdigit()), None)
        return cls(text, choices, text if text.isidentifier() and text[0].isupper() else "", numbers, size)


@dataclass(frozen=True)
class Layout:
    """The dimensions of a tensor; those that ``rest`` names, if it is not empty, stand after the ``leading`` ones."""

    text: str
    texts: tuple[str, ...]
    leading: tuple[Axis, ...]
    rest: str
    trailing: tuple[Axis, ...]
    rank: int
    """The rank, the least one if there is a ``rest``."""

    @classmethod
    def parse(cls, text: str) -> Layout:
        parts = tuple(text[1:-1].split(", ")) if len(text) > 2 else ()
        place = next((i for i, part in enumerate(parts) if part.endswith("...")), None)
        axes = [() if i == place else (Axis.parse(part),) for i, part in enumerate(parts)]
        before = axes if place is None else axes[:place]
        after = [] if place is None else axes[place:]
        rest = "" if place is None else parts[place].removesuffix("...") or "..."
        return cls(text, parts, sum(before, ()), rest, sum(after, ()), len(parts) - bool(rest))

    def fits(self, rank: int) -> bool:
        return rank == self.rank or (bool(self.rest) and rank > self.rank)

    def shape(self, solved: Solved) -> PartialShape:
        """Return the shape of solved sizes."""
        op, sizes = solved.op, solved.sizes
        leading = PartialShape([axis.choices[0].value(op, sizes) for axis in self.leading])
        if not self.rest:
            return leading
        rest = solved.shape(self.rest) if self.rest[0].isupper() else PartialShape(getattr(op, self.rest))
        return leading + rest + PartialShape([axis.choices[0].value(op, sizes) for axis in self.trailing])


# --------------------------------------------------------------------------- declarations


class Tensor(NamedTuple):
    """An input or an output."""

    name: str
    element_type: str
    is_shared: bool
    """Whether the element type is a letter."""
    layouts: tuple[Layout, ...]
    is_optional: bool = False
    is_repeated: bool = False

    def layout_of(self, rank: int) -> Layout | None:
        """Return the layout that shapes of a rank have, None if there is none."""
        for layout in self.layouts:
            if layout.fits(rank):
                return layout
        return None

    @property
    def layout(self) -> str:
        return "|".join(layout.text for layout in self.layouts)

    @property
    def text(self) -> str:
        return self.element_type + self.layout


_TENSOR = re.compile(r"([?*]?)(\w+ )?([\w|]+?)(\[.*\])")


def _tensor(text: str) -> Tensor | None:
    match = _TENSOR.fullmatch(text)
    if match is None:
        return None
    mark, name, element_type, shapes = match.groups(default="")
    layouts = tuple(Layout.parse(f"[{shape}]") for shape in shapes[1:-1].split("]|["))
    return Tensor(name.strip(), element_type, element_type[0].isupper(), layouts, mark == "?", mark == "*")


@cache
def given(text: str) -> tuple[Tensor, ...]:
    """Parse what an operation gives."""
    return tuple(tensor for part in text.split("; ") if (tensor := _tensor(part)) is not None)


@dataclass(frozen=True)
class Declaration:
    """The inputs of an operation, the classes of their types, and sizes that attributes determine."""

    inputs: tuple[Tensor, ...]
    types: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, Size], ...]

    @cached_property
    def required(self) -> int:
        return sum(not tensor.is_optional for tensor in self.inputs)

    @cached_property
    def is_open(self) -> bool:
        """Return whether any number of inputs may come last."""
        return any(tensor.is_repeated for tensor in self.inputs)

    def allows(self, count: int) -> bool:
        return self.required <= count and (count <= len(self.inputs) or self.is_open)

    def named(self, inputs: Sequence[TensorType | None]) -> list[tuple[str, Tensor, TensorType]]:
        """Return the name of each input that is there, its declaration and its type."""
        declared = [(tensor.name, tensor) for tensor in self.inputs]
        if self.is_open:
            name, last = declared.pop()
            declared += [(f"{name}[{i}]", last) for i in range(len(inputs) - len(declared))]
        pairs = zip(declared, inputs, strict=False)
        return [(name, tensor, found) for (name, tensor), found in pairs if found is not None]


@cache
def declarations(takes: str | tuple[str, ...]) -> tuple[Declaration, ...]:
    """Parse what an operation takes: one declaration, or several, of which the number of inputs chooses one."""
    return tuple(map(_declaration, (takes,) if isinstance(takes, str) else takes))


def _declaration(text: str) -> Declaration:
    inputs, types, sizes = [], [], []
    for part in text.split("; "):
        tensor = _tensor(part)
        name, _, rest = part.partition(" ")
        if tensor is not None:
            inputs.append(tensor)
        elif rest.startswith("= "):
            sizes.append((name, Size.parse(rest[2:])))
        else:
            types.append((name, rest))
    return Declaration(tuple(inputs), tuple(types), tuple(sizes))


# --------------------------------------------------------------------------- solving


class _Source(NamedTuple):
    """An input that determines a size, with the layout that its rank chooses."""

    name: str
    layout: str
    shape: PartialShape


class Solved:
    """The sizes, shapes and element types that the inputs of an operation have in common, as far as they are known."""

    def __init__(self, op: Any, inputs: Sequence[TensorType | None]) -> None:
        """Solve what the operation takes; raise OperatorError if the inputs contradict it."""
        self.op = op
        self.sizes: dict[str, Dimension] = {}
        self.shapes: dict[str, PartialShape] = {}
        self.types: dict[str, ElementType] = {}
        self._origins: dict[str, _Source | str] = {}
        """The input or the text in terms of attributes that determines each size or shape."""
        self._open: list[tuple[_Source, Size, Dimension]] = []
        """The dimensions that stand for several unknown sizes."""
        declaration = self._declaration(inputs)
        named = declaration.named(inputs)
        self._take_types(declaration, named)
        for name, size in declaration.sizes:
            value = size.value(op, {})
            if value != UNKNOWN:
                self.sizes[name], self._origins[name] = value, size.text
        for name, declared, found in named:
            if found.shape.rank is not None:
                self._take_shape(name, declared, found.shape)
        if self._open:
            self._close()

    def __getitem__(self, name: str) -> Dimension:
        """Return what is known of a size."""
        return self.sizes.get(name, UNKNOWN)

    def shape(self, name: str) -> PartialShape:
        """Return what is known of the dimensions that ``B...`` names."""
        return self.shapes.get(name, PartialShape(None))

    def _declaration(self, inputs: Sequence[TensorType | None]) -> Declaration:
        known = declarations(self.op.takes)
        count = len(inputs)
        while count and inputs[count - 1] is None:
            count -= 1
        for declared in known:
            if declared.allows(count):
                return declared
        counts = " or ".join(str(declared.required) for declared in known)
        raise OperatorError(f"takes {counts} inputs, got {count}", INPUT_COUNT)

    # ----- element types

    def _take_types(self, declaration: Declaration, named: list[tuple[str, Tensor, TensorType]]) -> None:
        types, origins = self.types, dict[str, str]()
        for name, declared, found in named:
            key, element_type = declared.element_type, found.element_type
            if not declared.is_shared:
                self._require_type(name, element_type, key)
                continue
            before = types.get(key, dynamic)
            if before is dynamic:
                types[key], origins[key] = element_type, name
            elif element_type is not before and element_type is not dynamic:
                message = "{} is {} and {} is {}: their element types must be equal"
                self.op.fail(message, origins[key], before, name, element_type, code=TYPES_DIFFER)
        for key, text in declaration.types:
            if key in types:
                self._require_type(origins[key], types[key], text)
            elif key[0].islower():
                self._require_type(key, getattr(self.op, key), text, is_known=True)

    def _require_type(self, name: str, element_type: ElementType, text: str, *, is_known: bool = False) -> None:
        allowed = _known_class(text) or type_class(str(getattr(self.op, text)))
        if element_type not in allowed.types or (is_known and element_type.is_dynamic):
            self.op.fail("{} must be {}, got {}", name, allowed.words, element_type, code=ELEMENT_TYPE)

    # ----- sizes

    def _take_shape(self, name: str, declared: Tensor, shape: PartialShape) -> None:
        dims = shape.dims
        layout = declared.layout_of(len(dims))
        if layout is None:
            self._fail(_Source(name, declared.layout, shape), code=RANK)
        source = _Source(name, layout.text, shape)
        sizes, origins = self.sizes, self._origins
        for axis, dim in zip(layout.leading, dims, strict=False):
            if axis.name and axis.name not in sizes:
                sizes[axis.name], origins[axis.name] = dim, source
            elif dim.lower not in axis.numbers:
                self._take_axis(source, axis, dim)
        if layout.rest:
            stop = len(dims) - len(layout.trailing)
            for axis, dim in zip(layout.trailing, dims[stop:], strict=True):
                self._take_axis(source, axis, dim)
            if layout.rest != "...":
                self._merge(self.shapes, layout.rest, shape.slice(len(layout.leading), stop), source)

    def _take_axis(self, source: _Source, axis: Axis, dim: Dimension) -> None:
        if axis.name:
            self._merge(self.sizes, axis.name, dim, source)
        elif axis.choices and not any(map(dim.contains, axis.numbers)):
            if axis.size is None:
                self._fail(source)
            is_used = self._use(source, axis.size, dim)
            if not is_used:
                self._open.append((source, axis.size, dim))
            if dim.symbol or not is_used:  # what is written in the same way has the same size
                self._merge(self.sizes, axis.size.text, dim, source)

    def _merge(self, known: dict[str, Any], name: str, found: Any, source: _Source) -> None:
        """Intersect a size or shape with what is known of it."""
        before = known.setdefault(name, found)
        merged = before.merged_with(found)
        if merged is None:
            origin = self._origins[name]
            other = "" if isinstance(origin, str) else f", but {before} in {origin.name}"
            self._fail(source, f"{name} is {found} in {source.name}{other}", [name])
        known[name] = merged
        if name not in self._origins or (merged is not before and merged != before):
            self._origins[name] = source

    def _close(self) -> None:
        """Use the dimensions that stand for several sizes, as far as all of these but one are known."""
        count = 0
        while len(self._open) != count:
            count = len(self._open)
            self._open = [item for item in self._open if not self._use(*item)]
        for item in self._open:
            self._require(*item)

    def _use(self, source: _Source, size: Size, dim: Dimension) -> bool:
        """Check the size of a dimension, or solve for the one size in it that is not known; return whether there is
        no other."""
        sizes = self.sizes
        unknown = [name for name in size.names if not sizes.get(name, UNKNOWN).is_static]
        if not unknown:
            self._require(source, size, dim)
            return True
        if len(unknown) > 1 or size.is_range:
            return False
        (name,) = unknown
        term = next(term for term in size.terms if name in term.sizes)
        factor, most = term.bounds(self.op, sizes, without=name)
        others = size.value(self.op, sizes, (other for other in size.terms if other is not term))
        if factor != most or not factor or not others.is_static:
            return False
        offset = others.length
        quotient = None
        if dim.upper is None or dim.upper >= offset:
            quotient = (dim.map(lambda n: n - offset) if offset else dim).exact_div(factor)
        if quotient is None:
            known = [other for other in size.names if other != name]
            self._fail(source, f"{dim} is not {size.text} for any {name}", known)
        self._merge(sizes, name, quotient, source)
        return True

    def _require(self, source: _Source, size: Size, dim: Dimension) -> None:
        value = size.value(self.op, self.sizes)
        if not value.compatible(dim):
            self._fail(source, f"{size.text} is {value}, got {dim}", size.names)

    def _fail(self, source: _Source, detail: str = "", names: Iterable[str] = (), code: Code | None = None) -> NoReturn:
        """Raise for the shape of an input, and show those of the others that the sizes of these names come from."""
        origins = {name: self._origins[name] for name in names if name in self._origins}
        involved = list(dict.fromkeys((source, *(o for o in origins.values() if isinstance(o, _Source)))))
        layouts = " and ".join(f"{source.name} {source.layout}" for source in involved).replace(" ", " must be ", 1)
        equations = {name: origin for name, origin in origins.items() if isinstance(origin, str)}
        words = re.findall(r"\b[a-z]\w*", " ".join((*(source.layout for source in involved), *equations.values())))
        values = equations | {word: word_value(self.op, word) for word in words}
        where = ", where " + ", ".join(f"{name} is {value}" for name, value in values.items()) if values else ""
        got = f"got shape{'s' if len(involved) > 1 else ''} {' and '.join(str(source.shape) for source in involved)}"
        raise OperatorError(f"{layouts}{where}, {got}{': ' if detail else ''}{detail}", code)


def outputs(gives: str, solved: Solved) -> TensorType | tuple[TensorType, ...]:
    """Return the types of what an operation gives."""
    found = []
    for tensor in given(gives):
        key = tensor.element_type
        element_type = solved.types.get(key, dynamic) if tensor.is_shared else getattr(solved.op, key, key)
        found.append(TensorType(element_type, tensor.layouts[0].shape(solved)))
    return found[0] if len(found) == 1 else tuple(found)
