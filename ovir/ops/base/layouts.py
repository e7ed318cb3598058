"""What an operation declares of its inputs and outputs: names, element types and shapes, as texts that are solved.

    takes = "im_info T[N, 3|4]; anchors T[H, W, A, 4]; deltas T[N, 4*A, H, W]; scores T[N, A, H, W]; T real"
    gives = "boxes T[..N*post_nms_count, 4]; scores T[..N*post_nms_count]; counts roi_num_type[N]"

docs/operation-classes.md explains the grammar. Texts are parsed once for all layers with the same attributes, and what
element types and ranks determine is found once for all inputs that have these: a layer only solves sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import repeat
from math import prod
from operator import is_
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from ovir.core.element_types import ELEMENT_TYPES, ElementType, dynamic, i32, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, sized
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.codes import ELEMENT_TYPE, INPUT_COUNT, RANK, TYPES_DIFFER, Code
from ovir.diagnostics.errors import OperatorError

# --------------------------------------------------------------------------- element types

_CLASSES: dict[str, tuple[str, Callable[[ElementType], bool]]] = {
    "any": ("of any type", lambda t: True),
    "real": ("of a floating-point type", lambda t: t.holds_reals),
    "integer": ("of an integer type", lambda t: t.is_integral),
    "numeric": ("of a numeric type", lambda t: t.holds_reals or t.is_integral),
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


# --------------------------------------------------------------------------- words


_NO_WORDS: Mapping[str, str] = MappingProxyType({})
_WORD = re.compile(r"\b[a-z]\w*")
_TENSOR = re.compile(r"([?*]?)(\w+ )?([\w|]+?)(\[.*\])")


def _fields(text: str) -> tuple[str, ...]:
    """Return the mark, the name, the type and the shape of a tensor in a declaration."""
    if (match := _TENSOR.fullmatch(text)) is None:
        expected = "expected a name, a type and a shape, as in 'boxes T[N, 4]'"
        raise ValueError(f"'{text}' does not declare a tensor: {expected}")
    return match.groups(default="")


@lru_cache(1024)
def _words_of(cls: Any) -> tuple[str, ...]:
    """Return the words that stand for attributes or properties in what an operation takes and gives."""
    texts = (*((cls.takes,) if isinstance(cls.takes, str) else cls.takes), cls.gives)
    parts = [part for text in texts for part in text.split("; ")]
    bare = ["".join(_fields(part)[2:]) if "[" in part else part for part in parts]
    types = {*_CLASSES, *(element_type.name for element_type in ELEMENT_TYPES)}
    return tuple(dict.fromkeys(word for part in bare for word in _WORD.findall(part) if word not in types))


def known_words(cls: Any, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts for which words stand, from the values of attributes and properties, as far as these are known:
    the number, the number of items of a list, or the element type; with ``...``, the items. A number below the minimum
    of its attribute, as the default of some is, is missing."""
    known = {}
    for word, value in words.items():
        declared = cls.attributes.get(word)
        if isinstance(value, tuple):
            known[word], known[f"{word}..."] = str(len(value)), ", ".join(map(str, value))
        elif value is not None and not (declared and declared.minimum is not None and value < declared.minimum):
            known[word] = str(value)
    return known


def declarations_of(op: Any) -> tuple[Declaration, ...]:
    """Parse what an operation takes, with what the words stand for."""
    return declarations(op.takes, known_words(type(op), {word: getattr(op, word) for word in _words_of(op.__class__)}))


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\b[a-z]\w*(\.\.\.)?", lambda word: words.get(word[0], word[0]), text) if words else text


# --------------------------------------------------------------------------- sizes


class Product(NamedTuple):
    """A number times sizes."""

    number: int
    sizes: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Product:
        factors = text.split("*")
        if not all(factor.isdigit() or factor.isidentifier() for factor in factors):
            raise ValueError(f"'{text}' is not a size: expected a sum of products, such as 4*A+1")
        number = prod(int(factor) for factor in factors if factor.isdigit())
        return cls(number, tuple(factor for factor in factors if not factor.isdigit()))

    def bounds(self, sizes: Mapping[str, Dimension], without: str = "") -> tuple[int, int | None]:
        """Return the least and the greatest product, None if it has no bound; ``without`` is a size that counts as
        1."""
        low = self.number
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

    @classmethod
    @lru_cache(4096)
    def parse(cls, text: str) -> Size:
        terms = tuple(map(Product.parse, text.strip(".").split("+")))
        parts = {name: term for term in terms for name in term.sizes}
        is_range = ".." in text
        number = None if parts or is_range else sized(sum(term.number for term in terms))
        return cls(text, terms, parts, is_range, list(parts) == [text], number)

    def bounds(self, sizes: Mapping[str, Dimension], without: Product | None = None) -> tuple[int, int | None]:
        """Return the least and the greatest sum, None if it has no bound; ``without`` is a term that counts as 0."""
        low = 0
        high: int | None = 0
        for term in self.terms:
            if term is not without:
                least, most = term.bounds(sizes)
                low, high = low + least, None if high is None or most is None else high + most
        return low, high

    def value(self, sizes: Mapping[str, Dimension]) -> Dimension:
        """Return what is known of the size."""
        if self.is_name:
            return sizes.get(self.text, UNKNOWN)
        if self.number is not None:
            return self.number
        low, high = self.bounds(sizes)
        if self.is_range:
            return Dimension(0 if self.text.startswith(".") else low, None if self.text.endswith(".") else high)
        return sized(low) if low == high else Dimension(low, high, sizes.get(self.text, UNKNOWN).symbol)


class Axis(NamedTuple):
    """One dimension of a layout: its alternatives, none of which stands for any size."""

    choices: tuple[Size, ...]
    name: str
    """The name of the size, if the axis is nothing else."""
    numbers: tuple[int, ...]
    """The alternatives that are numbers."""
    size: Size | None
    """The alternative that is none."""

    @classmethod
    @lru_cache(4096)
    def parse(cls, text: str) -> Axis:
        choices = () if text == "?" else tuple(map(Size.parse, text.split("|")))
        numbers = tuple(size.number.lower for size in choices if size.number is not None)
        size = next((size for size in choices if size.number is None), None)
        return cls(choices, text if text.isidentifier() else "", numbers, size)


@dataclass(frozen=True)
class Layout:
    """The dimensions of a tensor; those that ``rest`` names, if it is not empty, stand before the axis ``place``."""

    text: str
    texts: tuple[str, ...]
    """The texts of the dimensions, in which known words are replaced by what they stand for."""
    axes: tuple[Axis, ...]
    rest: str
    place: int
    rank: int
    """The rank, the least one if there is a ``rest``."""
    sizes: tuple[Size, ...]
    """The first alternative of each axis, which is that of an output."""

    @classmethod
    def parse(cls, text: str, words: Mapping[str, str]) -> Layout:
        parts = tuple(_filled(text[1:-1], words).split(", ")) if len(text) > 2 else ()
        place = next((i for i, part in enumerate(parts) if part.endswith("...")), len(parts))
        axes = tuple(Axis.parse(part) for i, part in enumerate(parts) if i != place)
        rest = "".join(parts[place : place + 1]).removesuffix("...") or "..." * (place < len(parts))
        return cls(text, parts, axes, rest, place, len(axes), tuple(axis.choices[0] for axis in axes if axis.choices))

    def fits(self, rank: int) -> bool:
        return rank >= self.rank if self.rest else rank == self.rank

    def shape(self, solved: Solved) -> PartialShape:
        """Return the shape of solved sizes."""
        sizes = solved.sizes
        dims = [
            sizes.get(size.text, UNKNOWN) if size.is_name else size.number or size.value(sizes) for size in self.sizes
        ]
        if self.rest:
            rest = solved.shapes.get(self.rest)
            if rest is None:
                return PartialShape(None)
            dims[self.place : self.place] = rest
        return PartialShape(dims)


# --------------------------------------------------------------------------- declarations


class Tensor(NamedTuple):
    """An input or an output."""

    name: str
    element_type: str
    """A letter, a class of element types, or the text of one of them."""
    layouts: tuple[Layout, ...]
    is_optional: bool
    is_repeated: bool
    text: str
    """The element type and the layouts as they are declared."""

    @classmethod
    def parse(cls, text: str, words: Mapping[str, str]) -> Tensor:
        mark, name, element_type, shapes = _fields(text)
        layouts = tuple(Layout.parse(f"[{shape}]", words) for shape in shapes[1:-1].split("]|["))
        known = _filled(element_type, words)
        return cls(name.strip(), known, layouts, mark == "?", mark == "*", element_type + shapes)

    @property
    def is_shared(self) -> bool:
        """Return whether the element type is a letter."""
        return self.element_type[0].isupper()

    @property
    def layout(self) -> str:
        return "|".join(layout.text for layout in self.layouts)

    def layout_of(self, rank: int) -> Layout | None:
        """Return the layout that shapes of a rank have, None if there is none."""
        return next((layout for layout in self.layouts if layout.fits(rank)), None)


def given(gives: str, words: Mapping[str, str] = _NO_WORDS) -> tuple[Tensor, ...]:
    """Parse what an operation gives."""
    return tuple(Tensor.parse(part, words) for part in gives.split("; "))


@dataclass(frozen=True)
class Declaration:
    """The inputs of an operation, the classes of their types, and the sizes that attributes determine with what they
    equal."""

    inputs: tuple[Tensor, ...]
    types: dict[str, str]
    equations: dict[str, str]
    sizes: dict[str, Size]
    """The sizes in the equations, in which known words are replaced by what they stand for."""

    @classmethod
    def parse(cls, text: str, words: Mapping[str, str]) -> Declaration:
        inputs, types, equations = [], {}, {}
        for part in text.split("; "):
            name, _, rest = part.partition(" ")
            if "[" in part:
                inputs.append(Tensor.parse(part, words))
            elif rest.startswith("= "):
                equations[name] = rest[2:]
            else:
                types[name] = rest
        sizes = {name: Size.parse(_filled(text, words)) for name, text in equations.items()}
        return cls(tuple(inputs), types, equations, sizes)

    @cached_property
    def required(self) -> int:
        return sum(not tensor.is_optional for tensor in self.inputs)

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

    def type_class(self, tensor: Tensor) -> TypeClass:
        """Return the element types that an input may have."""
        return type_class(self.types.get(tensor.element_type, tensor.element_type))


def declarations(takes: str | tuple[str, ...], words: Mapping[str, str] = _NO_WORDS) -> tuple[Declaration, ...]:
    """Parse what an operation takes: one declaration, or several, of which the number of inputs chooses one."""
    return tuple(Declaration.parse(text, words) for text in ((takes,) if isinstance(takes, str) else takes))


# --------------------------------------------------------------------------- solving


class _Plan:
    """What the attributes of an operation, and the element types and ranks of its inputs, determine.

    Dimensions are listed with the positions of input and axis.
    """

    def __init__(self, cls: Any, values: tuple[Any, ...], *known: Any) -> None:
        """Plan for values of the words, and for the element type and rank of each input, which are None for an input
        that is left out; raise OperatorError for a number of inputs or for element types that do not fit."""
        words = dict(zip(_words_of(cls), values, strict=True))
        types, ranks = known[::2], known[1::2]
        self.words = known_words(cls, words)
        declaration = _declared_for(declarations(cls.takes, self.words), len(ranks))
        inputs = declaration.named(len(ranks))
        self.gives = cls.gives
        self.types = _solved_types(declaration, words, types)
        self.inputs: list[tuple[str, str]] = []
        """The names of the inputs, and the layouts that their ranks choose."""
        self.misfits: list[int] = []
        """The inputs whose ranks fit no layout."""
        self.sizes: dict[str, Dimension] = {}
        """The sizes that attributes determine."""
        self.origins: dict[str, int | str] = {}
        """The input or the text in terms of attributes that determines each size or shape first."""
        self.named: list[tuple[str, int, int]] = []
        """The first dimension of each further size."""
        self.repeated: list[tuple[str, int, int]] = []
        """The dimensions of sizes that are known by then."""
        self.others: list[tuple[Axis, int, int]] = []
        """The dimensions that are anything else."""
        self.rests: list[tuple[str, int, int, int]] = []
        """The names of the dimensions of rests, the inputs, and their start and stop."""
        self._choice: int | None = None
        """The alternative that input 0 has, None if its rank is unknown."""
        self._given: dict[str, list[tuple[ElementType, Layout | None]]] = {}
        for name, size in declaration.sizes.items():
            if size.number is not None:
                self.sizes[name], self.origins[name] = size.number, declaration.equations[name]
        for position, (name, tensor) in enumerate(inputs):
            rank = ranks[position]
            layout = None if rank is None else tensor.layout_of(rank)
            self.inputs.append((name, layout.text if layout else tensor.layout))
            if layout:
                if not position:
                    self._choice = tensor.layouts.index(layout)
                self._add(position, layout, rank - layout.rank)
            elif rank is not None:
                self.misfits.append(position)

    def _add(self, position: int, layout: Layout, more: int) -> None:
        """List the dimensions of an input, ``more`` of which are those of the rest."""
        if layout.rest not in ("", "..."):
            self.rests.append((layout.rest, position, layout.place, layout.place + more))
            self.origins.setdefault(layout.rest, position)
        for i, axis in enumerate(layout.axes):
            k = i if i < layout.place else i + more
            if axis.name:
                (self.repeated if axis.name in self.origins else self.named).append((axis.name, position, k))
                self.origins.setdefault(axis.name, position)
            elif axis.choices:
                self.others.append((axis, position, k))

    def given(self, gives: str) -> list[tuple[ElementType, Layout | None]]:
        """Return the element types of what an operation gives, and the layouts. Of several, it is the one at the place
        of that of input 0, None if the rank of input 0 is unknown."""
        found = self._given.get(gives)
        if found is None:
            tensors = given(gives or self.gives, self.words)
            found = self._given[gives] = [(self._element_type(x), self._layout(x.layouts)) for x in tensors]
        return found

    def _layout(self, layouts: Sequence[Layout]) -> Layout | None:
        return layouts[0] if len(layouts) == 1 else None if self._choice is None else layouts[self._choice]

    def _element_type(self, tensor: Tensor) -> ElementType:
        key = tensor.element_type
        return self.types.get(key, dynamic) if tensor.is_shared else ElementType.parse(key)


_plan = lru_cache(4096)(_Plan)


def _declared_for(known: tuple[Declaration, ...], count: int) -> Declaration:
    """Return the declaration for a number of inputs."""
    for declaration in known:
        if declaration.allows(count):
            return declaration
    counts = " or ".join(declaration.counts for declaration in known)
    raise OperatorError(f"takes {counts} input{'' if counts == '1' else 's'}, got {count}", INPUT_COUNT)


def _solved_types(
    declaration: Declaration, words: Mapping[str, Any], types: Sequence[ElementType | None]
) -> dict[str, ElementType]:
    """Return the element type of each letter."""
    for name, text in declaration.types.items():
        if name in words:
            _require_type(name, words[name], type_class(text).words, type_class(text).types - {dynamic})
    solved: dict[str, ElementType] = {}
    origins: dict[str, str] = {}
    for (name, tensor), element_type in zip(declaration.named(len(types)), types, strict=True):
        if element_type is None:
            continue
        key = tensor.element_type
        _require_type(name, element_type, *type_class(declaration.types.get(key, key)))
        before = solved.get(key, dynamic)
        if before is dynamic and tensor.is_shared:
            solved[key], origins[key] = element_type, name
        elif element_type not in (before, dynamic) and tensor.is_shared:
            message = f"{origins[key]} is {before} and {name} is {element_type}: their element types must be equal"
            raise OperatorError(message, TYPES_DIFFER)
    return solved


def _require_type(name: str, element_type: ElementType, words: str, allowed: frozenset[ElementType]) -> None:
    if element_type not in allowed:
        raise OperatorError(f"{name} must be {words}, got {element_type}", ELEMENT_TYPE)


class Solved:
    """The sizes, shapes and element types that the inputs of an operation have in common, as far as they are known."""

    __slots__ = ("_inputs", "_origins", "_plan", "shapes", "sizes")

    def __init__(self, op: Any, inputs: Sequence[TensorType | None]) -> None:
        """Solve what the operation takes; raise OperatorError if the inputs contradict it."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        key: list[Any] = []
        dims: list[tuple[Dimension, ...]] = []
        for tensor in inputs:
            shape = None if tensor is None else tensor.shape
            rank = None if shape is None else shape.rank
            key += (None if tensor is None else tensor.element_type, rank)
            dims.append(() if shape is None or rank is None else shape.dims)
        words = _words_of(op.__class__)
        plan = _plan(op.__class__, tuple(map(getattr, repeat(op), words)) if words else (), *key)
        self._inputs = inputs
        self._plan = plan
        self._origins: dict[str, int | str] = {}
        """The inputs that determine a size or shape more closely than those in the plan."""
        self.shapes: dict[str, tuple[Dimension, ...]] = {}
        shapes = self.shapes
        self.sizes = sizes = plan.sizes.copy()
        if plan.misfits:
            self._fail(plan.misfits[0], code=RANK)
        for name, i, k in plan.named:
            sizes[name] = dims[i][k]
        for name, i, start, stop in plan.rests:
            part = dims[i][start:stop]
            known = shapes.setdefault(name, part)
            if len(known) != len(part) or not all(map(is_, known, part)):
                shapes[name] = self._merged(name, PartialShape(known), PartialShape(part), i).dims
        for name, i, k in plan.repeated:
            dim = dims[i][k]
            if sizes.get(name) is not dim:
                self._merge(name, dim, i)
        later: list[tuple[Size, Dimension, int]] = []
        ranges: list[tuple[Size, Dimension, int]] = []
        for axis, i, k in plan.others:
            dim = dims[i][k]
            if not any(map(dim.contains, axis.numbers)):
                if axis.size is None:
                    self._fail(i)
                (ranges if axis.size.is_range else later).append((axis.size, dim, i))
        if later:
            self._close(later)
        for item in ranges:
            self._require(*item)

    @property
    def types(self) -> Mapping[str, ElementType]:
        """The element type of each letter."""
        return self._plan.types

    def outputs(self, gives: str = "") -> Outputs:
        """Return the types of what the operation gives, or of what another text in this form declares, whose words
        stand in the declarations of the operation, too."""
        types = [
            TensorType(element_type, layout.shape(self) if layout else PartialShape(None))
            for element_type, layout in self._plan.given(gives)
        ]
        return types[0] if len(types) == 1 else tuple(types)

    def __getitem__(self, name: str) -> Dimension:
        """Return what is known of a size."""
        return self.sizes.get(name, UNKNOWN)

    def shape(self, name: str) -> PartialShape:
        """Return what is known of the dimensions that ``B...`` names."""
        return PartialShape(self.shapes.get(name))

    def _merge(self, name: str, size: Dimension, position: int) -> None:
        """Intersect a size with what is known of it."""
        before = self.sizes.get(name)
        if before is None:
            self.sizes[name], self._origins[name] = size, position
        elif before is not size:
            self.sizes[name] = self._merged(name, before, size, position)

    def _merged(self, name: str, before: Any, size: Any, position: int) -> Any:
        """Return the intersection of what is known of a size or shape and what an input says of it."""
        merged = before.merged_with(size)
        if merged is None:
            origin = self._origin(name)
            other = f", but {before} in {self._plan.inputs[origin][0]}" if isinstance(origin, int) else ""
            self._fail(position, f"{name} is {size} in {self._plan.inputs[position][0]}{other}", [name])
        if merged != before:
            self._origins[name] = position
        return merged

    def _origin(self, name: str) -> int | str | None:
        return self._origins.get(name, self._plan.origins.get(name))

    def _close(self, later: list[tuple[Size, Dimension, int]]) -> None:
        """Use the dimensions that are more than a name or number, as far as all sizes in them but one are known."""
        for size, dim, position in later:
            if dim.symbol:  # what is written in the same way has the same size
                self._merge(size.text, dim, position)
        count = 0
        while len(later) != count:
            count = len(later)
            later = [item for item in later if not self._use(*item)]
        for size, dim, position in later:
            self._merge(size.text, dim, position)
            self._require(size, dim, position)

    def _use(self, size: Size, dim: Dimension, position: int) -> bool:
        """Check the size of a dimension, or solve for the one size in it that is not known; return whether there is
        no other."""
        sizes = self.sizes
        unknown = [name for name in size.parts if (known := sizes.get(name)) is None or known.lower != known.upper]
        if not unknown:
            self._require(size, dim, position)
            return True
        if len(unknown) > 1:
            return False
        (name,) = unknown
        factor, most = size.parts[name].bounds(sizes, without=name)
        offset, greatest = size.bounds(sizes, without=size.parts[name])
        if factor != most or not factor or offset != greatest:
            return False
        quotient = None
        if dim.upper is None or dim.upper >= offset:
            quotient = (dim.map(lambda n: n - offset) if offset else dim).exact_div(factor)
        if quotient is None:
            known_names = [other for other in size.parts if other != name]
            self._fail(position, f"{dim} is not {size.text} for any {name}", known_names)
        self._merge(name, quotient, position)
        return True

    def _require(self, size: Size, dim: Dimension, position: int) -> None:
        value = size.value(self.sizes)
        if value is not dim and not value.compatible(dim):
            self._fail(position, f"{size.text} is {value}, got {dim}", size.parts)

    def _fail(self, position: int, detail: str = "", names: Iterable[str] = (), code: Code | None = None) -> NoReturn:
        """Raise for the shape of an input, and show those of the others that the sizes of these names come from."""
        plan = self._plan
        origins = {name: origin for name in names if (origin := self._origin(name)) is not None}
        involved = dict.fromkeys((position, *(origin for origin in origins.values() if isinstance(origin, int))))
        layouts = " and ".join(" ".join(plan.inputs[i]) for i in involved).replace(" ", " must be ", 1)
        values = {name: origin for name, origin in origins.items() if isinstance(origin, str)}
        texts = " ".join((*(plan.inputs[i][1] for i in involved), *values.values()))
        values |= {word: plan.words.get(word, "unknown") for word in _WORD.findall(texts)}
        where = ", where " + ", ".join(f"{name} is {value}" for name, value in values.items()) if values else ""
        shapes = [tensor.shape for i in involved if (tensor := self._inputs[i]) is not None]
        got = f"got shape{'s' if len(involved) > 1 else ''} {' and '.join(map(str, shapes))}"
        raise OperatorError(f"{layouts}{where}, {got}{': ' if detail else ''}{detail}", code)
