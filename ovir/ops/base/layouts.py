"""What an operation declares of its inputs and outputs: names, element types and shapes, as texts that are solved.

    takes = "im_info T[N, 3|4]; anchors T[H, W, A, 4]; deltas T[N, 4*A, H, W]; scores T[N, A, H, W]; T real"
    gives = "boxes T[..N*post_nms_count, 4]; scores T[..N*post_nms_count]; counts roi_num_type[N]"

docs/operation-classes.md explains the grammar. A text is parsed when a layer first needs it, once for all layers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
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
        low = self.number
        for word in self.words:
            value = word_value(op, word)
            if value is None:
                return 0, None
            low *= value
        high: int | None = low
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
    parts: dict[str, Product]
    """The terms by the names of the sizes in them."""
    is_range: bool
    is_name: bool
    """Whether it is only a name."""
    number: Dimension | None
    """The number, if it is only one."""
    word: str
    """The word, if it is only one."""
    product: Product | None
    """The term, if there is only one."""

    @classmethod
    def parse(cls, text: str) -> Size:
        terms = tuple(map(Product.parse, text.strip(".").split("+")))
        parts = {name: term for term in terms for name in term.sizes}
        number = sized(int(text)) if text.isdigit() else None
        is_name, product = list(parts) == [text], terms[0] if len(terms) == 1 else None
        word = text if text.isidentifier() and text[0].islower() else ""
        return cls(text, terms, parts, ".." in text, is_name, number, word, product)

    def bounds(self, op: Any, sizes: dict[str, Dimension], without: Product | None = None) -> tuple[int, int | None]:
        """Return the least and the greatest sum, None if it has no bound; ``without`` is a term that counts as 0."""
        low = 0
        high: int | None = 0
        for term in self.terms:
            if term is not without:
                least, most = term.bounds(op, sizes)
                low, high = low + least, None if high is None or most is None else high + most
        return low, high

    def value(self, op: Any, sizes: dict[str, Dimension]) -> Dimension:
        """Return what is known of the size."""
        if self.is_name:
            return sizes.get(self.text, UNKNOWN)
        if self.number is not None:
            return self.number
        if self.word:
            length = word_value(op, self.word)
            return UNKNOWN if length is None else sized(length)
        low, high = self.product.bounds(op, sizes) if self.product else self.bounds(op, sizes)
        if self.is_range:
            return Dimension(0 if self.text[0] == "." else low, None if self.text[-1] == "." else high)
        return sized(low) if low == high else Dimension(low, high, sizes.get(self.text, UNKNOWN).symbol)


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
    """The dimensions of a tensor; those that ``rest`` names, if it is not empty, stand before the axis ``place``."""

    text: str
    texts: tuple[str, ...]
    axes: tuple[Axis, ...]
    rest: str
    place: int
    rank: int
    """The rank, the least one if there is a ``rest``."""
    sizes: tuple[Size, ...]
    """The first alternative of each axis, which is that of an output."""

    @classmethod
    def parse(cls, text: str) -> Layout:
        parts = tuple(text[1:-1].split(", ")) if len(text) > 2 else ()
        place = next((i for i, part in enumerate(parts) if part.endswith("...")), len(parts))
        axes = tuple(Axis.parse(part) for i, part in enumerate(parts) if i != place)
        rest = "".join(parts[place : place + 1]).removesuffix("...") or "..." * (place < len(parts))
        return cls(text, parts, axes, rest, place, len(axes), tuple(axis.choices[0] for axis in axes if axis.choices))

    def fits(self, rank: int) -> bool:
        return rank == self.rank or (bool(self.rest) and rank > self.rank)

    def shape(self, solved: Solved) -> PartialShape:
        """Return the shape of solved sizes."""
        op, sizes = solved.op, solved.sizes
        dims = [sizes.get(size.text, UNKNOWN) if size.is_name else size.value(op, sizes) for size in self.sizes]
        if self.rest:
            rest = solved.shapes.get(self.rest) if self.rest[0].isupper() else getattr(op, self.rest)
            if rest is None:
                return PartialShape(None)
            dims[self.place : self.place] = rest
        return PartialShape(dims)


# --------------------------------------------------------------------------- declarations


class Tensor(NamedTuple):
    """An input or an output."""

    name: str
    element_type: str
    is_shared: bool
    """Whether the element type is a letter."""
    layouts: tuple[Layout, ...]
    is_optional: bool
    is_repeated: bool
    class_text: str
    """The text of the class of the element type."""
    allowed: frozenset[ElementType]
    """The element types of this class; none if an attribute has the type."""

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


def _tensor(match: re.Match[str], classes: dict[str, str]) -> Tensor:
    mark, name, element_type, shapes = match.groups(default="")
    layouts = tuple(Layout.parse(f"[{shape}]") for shape in shapes[1:-1].split("]|["))
    text = classes.get(element_type, element_type)
    known = _known_class(text)
    allowed = frozenset[ElementType]() if known is None else known.types
    is_shared = element_type[0].isupper()
    return Tensor(name.strip(), element_type, is_shared, layouts, mark == "?", mark == "*", text, allowed)


@cache
def given(text: str) -> tuple[Tensor, ...]:
    """Parse what an operation gives."""
    return tuple(_tensor(_parsed(part), {}) for part in text.split("; "))


def _parsed(text: str) -> re.Match[str]:
    """Match the text of a tensor; raise ValueError for another one."""
    if (match := _TENSOR.fullmatch(text)) is None:
        raise ValueError(
            f"'{text}' does not declare a tensor: expected a name, a type and a shape, as in 'boxes T[N, 4]'"
        )
    return match


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
    def of_attributes(self) -> tuple[tuple[str, str], ...]:
        """Return the classes of the types in attributes."""
        return tuple((name, text) for name, text in self.types if name[0].islower())

    @property
    def counts(self) -> str:
        """Return how many inputs there may be."""
        least, most = self.required, len(self.inputs)
        return (
            f"{least} or more" if self.inputs[-1].is_repeated else str(least) if least == most else f"{least} to {most}"
        )

    def allows(self, count: int) -> bool:
        return self.required <= count and (count <= len(self.inputs) or self.inputs[-1].is_repeated)

    def named(self, count: int) -> tuple[tuple[str, Tensor], ...]:
        """Return the names of so many inputs, and what is declared of each."""
        *_, last = self.inputs
        first = self.inputs[:-1] if last.is_repeated else self.inputs[:count]
        repeated = tuple((f"{last.name}[{i}]", last) for i in range(count - len(first)))
        return tuple((tensor.name, tensor) for tensor in first) + repeated


@cache
def declarations(takes: str | tuple[str, ...]) -> tuple[Declaration, ...]:
    """Parse what an operation takes: one declaration, or several, of which the number of inputs chooses one."""
    return tuple(map(_declaration, (takes,) if isinstance(takes, str) else takes))


@lru_cache(1024)
def declared_for(takes: str | tuple[str, ...], count: int) -> tuple[Declaration, tuple[tuple[str, Tensor], ...]]:
    """Return the declaration for a number of inputs, and what it says of each; raise OperatorError if there is none."""
    known = declarations(takes)
    for declaration in known:
        if declaration.allows(count):
            return declaration, declaration.named(count)
    counts = " or ".join(declaration.counts for declaration in known)
    raise OperatorError(f"takes {counts} input{'' if counts == '1' else 's'}, got {count}", INPUT_COUNT)


def _declaration(text: str) -> Declaration:
    inputs, types, sizes = [], [], []
    for part in text.split("; "):
        name, _, rest = part.partition(" ")
        if "[" in part:
            inputs.append(_parsed(part))
        elif rest.startswith("= "):
            sizes.append((name, Size.parse(rest[2:])))
        else:
            types.append((name, rest))
    classes = dict(types)
    return Declaration(tuple(_tensor(match, classes) for match in inputs), tuple(types), tuple(sizes))


# --------------------------------------------------------------------------- solving


_Source = tuple[str, str, PartialShape]
"""An input that determines a size: its name, the layout that its rank chooses, and its shape."""


class Solved:
    """The sizes, shapes and element types that the inputs of an operation have in common, as far as they are known."""

    __slots__ = ("_later", "_origins", "_typed", "op", "shapes", "sizes", "types")

    def __init__(self, op: Any, inputs: Sequence[TensorType | None]) -> None:
        """Solve what the operation takes; raise OperatorError if the inputs contradict it."""
        self.op = op
        self.sizes: dict[str, Dimension] = {}
        self.shapes: dict[str, tuple[Dimension, ...]] = {}
        self.types: dict[str, ElementType] = {}
        self._typed: dict[str, str] = {}
        """The input that determines each element type."""
        self._origins: dict[str, _Source | str] = {}
        """The input or the text in terms of attributes that determines each size or shape."""
        self._later: list[tuple[_Source, Size, Dimension]] = []
        """The dimensions that are more than a name or a number."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        declaration, named = declared_for(op.takes, len(inputs))
        for name, text in declaration.of_attributes:
            self._require_type(name, getattr(op, name), text, is_known=True)
        for name, size in declaration.sizes:
            value = size.value(op, {})
            if value != UNKNOWN:
                self.sizes[name], self._origins[name] = value, size.text
        types = self.types
        for (name, declared), found in zip(named, inputs, strict=True):
            if found is not None:
                if types.get(declared.element_type) is not found.element_type:
                    self._take_type(name, declared, found.element_type)
                if found.shape.rank is not None:
                    self._take_shape(name, declared, found.shape)
        if self._later:
            self._close()

    def __getitem__(self, name: str) -> Dimension:
        """Return what is known of a size."""
        return self.sizes.get(name, UNKNOWN)

    def shape(self, name: str) -> PartialShape:
        """Return what is known of the dimensions that ``B...`` names."""
        return PartialShape(self.shapes.get(name))

    # ----- element types

    def _take_type(self, name: str, declared: Tensor, element_type: ElementType) -> None:
        if element_type not in declared.allowed:
            self._require_type(name, element_type, declared.class_text)
        key = declared.element_type
        if declared.is_shared:
            before = self.types.get(key, dynamic)
            if before is dynamic:
                self.types[key], self._typed[key] = element_type, name
            elif element_type is not dynamic:
                message = "{} is {} and {} is {}: their element types must be equal"
                self.op.fail(message, self._typed[key], before, name, element_type, code=TYPES_DIFFER)

    def _require_type(self, name: str, element_type: ElementType, text: str, *, is_known: bool = False) -> None:
        allowed = _known_class(text) or type_class(str(getattr(self.op, text)))
        if element_type not in allowed.types or (is_known and element_type is dynamic):
            self.op.fail("{} must be {}, got {}", name, allowed.words, element_type, code=ELEMENT_TYPE)

    # ----- sizes

    def _take_shape(self, name: str, declared: Tensor, shape: PartialShape) -> None:
        dims = shape.dims
        layout = declared.layouts[0]
        if layout.rank != len(dims):
            fitting = declared.layout_of(len(dims))
            if fitting is None:
                self._fail((name, declared.layout, shape), code=RANK)
            layout = fitting
        source = name, layout.text, shape
        if layout.rest:
            start, stop = layout.place, len(dims) - layout.rank + layout.place
            self._take_rest(source, layout.rest, dims[start:stop])
            dims = dims[:start] + dims[stop:]
        sizes = self.sizes
        for axis, dim in zip(layout.axes, dims, strict=True):
            name = axis.name
            if name:
                if sizes.get(name) is not dim:
                    self._merge(name, dim, source)
            elif dim.lower not in axis.numbers:
                self._take_axis(source, axis, dim)

    def _take_axis(self, source: _Source, axis: Axis, dim: Dimension) -> None:
        if axis.choices and not (axis.numbers and any(map(dim.contains, axis.numbers))):
            if axis.size is None:
                self._fail(source)
            if axis.size.parts:
                self._later.append((source, axis.size, dim))
            else:
                self._require(source, axis.size, dim)
            if dim.symbol:  # what is written in the same way has the same size
                self._merge(axis.size.text, dim, source)

    def _take_rest(self, source: _Source, name: str, dims: tuple[Dimension, ...]) -> None:
        if name not in self.shapes:
            self.shapes[name], self._origins[name] = dims, source
        elif name != "...":
            before, found = self.shape(name), PartialShape(dims)
            self.shapes[name] = self._merged(name, before, found, source).dims

    def _merge(self, name: str, found: Dimension, source: _Source) -> None:
        """Intersect a size with what is known of it."""
        before = self.sizes.get(name)
        if before is None:
            self.sizes[name], self._origins[name] = found, source
        elif before is not found:
            self.sizes[name] = self._merged(name, before, found, source)

    def _merged(self, name: str, before: Any, found: Any, source: _Source) -> Any:
        """Return the intersection of what is known of a size or shape and what an input says of it."""
        merged = before.merged_with(found)
        if merged is None:
            origin = self._origins[name]
            other = "" if isinstance(origin, str) else f", but {before} in {origin[0]}"
            self._fail(source, f"{name} is {found} in {source[0]}{other}", [name])
        if merged is not before and merged != before:
            self._origins[name] = source
        return merged

    def _close(self) -> None:
        """Use the dimensions that are sums or products, as far as all sizes in them but one are known."""
        later, count = self._later, 0
        while later and len(later) != count:
            count = len(later)
            later = [item for item in later if not self._use(*item)]
        for source, size, dim in later:
            self._merge(size.text, dim, source)
            self._require(source, size, dim)

    def _use(self, source: _Source, size: Size, dim: Dimension) -> bool:
        """Check the size of a dimension, or solve for the one size in it that is not known; return whether there is
        no other."""
        sizes = self.sizes
        unknown = [name for name in size.parts if (known := sizes.get(name)) is None or known.lower != known.upper]
        if not unknown:
            self._require(source, size, dim)
            return True
        if len(unknown) > 1 or size.is_range:
            return False
        (name,) = unknown
        factor, most = size.parts[name].bounds(self.op, sizes, without=name)
        offset, greatest = (0, 0) if size.product else size.bounds(self.op, sizes, without=size.parts[name])
        if factor != most or not factor or offset != greatest:
            return False
        quotient = None
        if dim.upper is None or dim.upper >= offset:
            quotient = (dim.map(lambda n: n - offset) if offset else dim).exact_div(factor)
        if quotient is None:
            known_names = [other for other in size.parts if other != name]
            self._fail(source, f"{dim} is not {size.text} for any {name}", known_names)
        self._merge(name, quotient, source)
        return True

    def _require(self, source: _Source, size: Size, dim: Dimension) -> None:
        value = size.value(self.op, self.sizes)
        if value is not dim and not value.compatible(dim):
            self._fail(source, f"{size.text} is {value}, got {dim}", size.parts)

    def _fail(self, source: _Source, detail: str = "", names: Iterable[str] = (), code: Code | None = None) -> NoReturn:
        """Raise for the shape of an input, and show those of the others that the sizes of these names come from."""
        origins = {name: self._origins[name] for name in names if name in self._origins}
        involved = list(dict.fromkeys((source, *(o for o in origins.values() if not isinstance(o, str)))))
        layouts = " and ".join(f"{name} {layout}" for name, layout, _ in involved).replace(" ", " must be ", 1)
        equations = {name: origin for name, origin in origins.items() if isinstance(origin, str)}
        words = re.findall(r"\b[a-z]\w*", " ".join((*(layout for _, layout, _ in involved), *equations.values())))
        values = equations | {word: word_value(self.op, word) for word in words}
        where = ", where " + ", ".join(f"{name} is {value}" for name, value in values.items()) if values else ""
        got = f"got shape{'s' if len(involved) > 1 else ''} {' and '.join(str(shape) for _, _, shape in involved)}"
        raise OperatorError(f"{layouts}{where}, {got}{': ' if detail else ''}{detail}", code)


def outputs(gives: str, solved: Solved) -> TensorType | tuple[TensorType, ...]:
    """Return the types of what an operation gives."""
    op, types = solved.op, solved.types
    found = []
    for tensor in given(gives):
        key = tensor.element_type
        element_type = types.get(key, dynamic) if tensor.is_shared else getattr(op, key, key)
        found.append(TensorType(element_type, tensor.layouts[0].shape(solved)))
    return found[0] if len(found) == 1 else tuple(found)
