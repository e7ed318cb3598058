"""How to make legal layers: a recipe for each type of operation. This module has those of arithmetic and movement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.making import INTEGERS, NARROW, REALS, Make

Recipe = Callable[[Make], None]
RECIPES: dict[str, Recipe] = {}


def recipe(*types: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe for these types of operations."""

    def add(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(types, function))
        return function

    return add


# --------------------------------------------------------------------------- element by element


@recipe(
    *[
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceiling",
        "Cos",
        "Cosh",
        "Erf",
        "ErfInv",
        "Exp",
        "Floor",
        "Gelu",
        "HSigmoid",
        "HSwish",
        "Log",
        "Mish",
        "Negative",
        "ReLU",
        "Round",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "SoftPlus",
        "SoftSign",
        "Sqrt",
        "Tan",
        "Tanh",
        "Elu",
        "IsFinite",
        "IsInf",
        "IsNaN",
    ]
)
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
    mode = m.pick(None, None, "numpy", "none", "pdpd")
    if mode == "none":
        other = shape
    elif mode == "pdpd":
        axis = m.rng.randint(0, len(shape))
        other = shape[axis : m.rng.randint(axis, len(shape))]
        m.has(auto_broadcast__auto_broadcast_axis=axis)
    m.has(auto_broadcast=mode)
    shapes = [shape, other] if mode == "pdpd" or m.chance(0.7) else [other, shape]
    for sizes, element_type in zip(shapes, (first, second), strict=True):
        m.add(sizes, element_type)


@recipe(
    *["Add", "Divide", "FloorMod", "Maximum", "Minimum", "Mod", "Multiply", "Power", "SquaredDifference", "Subtract"]
)
@recipe(*["Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"])
def arithmetic(m: Make) -> None:
    _pair(m, m.number, m.number)


@recipe("LogicalAnd", "LogicalOr", "LogicalXor", "Xor")
def logic(m: Make) -> None:
    _pair(m, "boolean", "boolean")


@recipe("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseLeftShift", "BitwiseRightShift")
def bitwise(m: Make) -> None:
    kind = m.type("bits", *INTEGERS)
    _pair(m, kind, kind)


@recipe("Select")
def select(m: Make) -> None:
    shape = m.any_shape()
    m.add(m.broadcast(shape), "boolean")
    m.add(shape, m.anything)
    m.add(m.broadcast(shape), m.anything)


@recipe("Convert")
def convert(m: Make) -> None:
    m.add("... A", m.pick(*REALS, *INTEGERS, *NARROW[:-1], "boolean"))
    m.has(destination_type=m.pick(*REALS, *INTEGERS, *NARROW[:-1], "boolean"))


@recipe("ConvertLike", "ConvertPromoteTypes")
def convert_two(m: Make) -> None:
    m.add("... A", m.pick(*REALS, *INTEGERS))
    m.add("B", m.pick(*REALS, *INTEGERS))
    m.has(promote_unsafe=m.flag())
    m.maybe(pytorch_scalar_promotion=m.flag(), u64_integer_promotion_target=m.pick("f32", "i64"))


@recipe("FakeQuantize")
def fake_quantize(m: Make) -> None:
    shape = m.shape("N C ...")
    m.add(shape, m.real)
    limits = [m.broadcast(shape) for _ in range(2)]
    for sizes in (limits[0], limits[0], limits[1], limits[1]):
        m.add(sizes, m.real)
    m.has(levels=m.pick(2, 3, 16, 255, 256, 65536))


@recipe("FakeConvert")
def fake_convert(m: Make) -> None:
    shape = m.shape("N C ...")
    for sizes in (shape, *[m.broadcast(shape)] * m.pick(1, 2)):
        m.add(sizes, m.narrow_real)
    m.has(destination_type=m.pick("f8e4m3", "f8e5m2"))


# --------------------------------------------------------------------------- reductions, normalization


@recipe(*["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"])
@recipe("ReduceLogicalAnd", "ReduceLogicalOr")
def reduce(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, "boolean" if m.sizes.get("logical") else m.number)
    m.given(m.axes(len(shape)))
    m.maybe(keep_dims=m.flag())


@recipe("CumSum")
def cumsum(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.number)
    m.given(m.axis(len(shape)))
    m.maybe(exclusive=m.flag(), reverse=m.flag())


@recipe("SoftMax", "LogSoftmax")
def softmax(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.real)
    m.has(axis=m.axis(len(shape)) if m.opset > 1 else m.rng.randrange(len(shape)))


@recipe("MVN")
def mvn(m: Make) -> None:
    shape = m.any_shape(2)
    m.add(shape, m.narrow_real)
    m.maybe(eps=m.pick(1e-9, 1e-5, 1, 1e12), normalize_variance=m.flag())
    if m.opset == 6:
        m.given(m.axes(len(shape)))
        m.has(
            eps=m.pick(1e-9, 1e-5, 1, 1e12), normalize_variance=m.flag(), eps_mode=m.pick("inside_sqrt", "outside_sqrt")
        )
    elif m.flag():
        m.has(reduction_axes=m.axes(len(shape)))
    else:
        m.has(across_channels=m.flag())


@recipe("NormalizeL2", "LRN")
def normalize(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.narrow_real)
    m.given(sorted({axis % len(shape) for axis in m.axes(len(shape))} or {0}))
    m.has(
        eps=m.pick(1e-9, 0.1),
        eps_mode=m.pick("add", "max"),
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


# --------------------------------------------------------------------------- shapes


@recipe("Reshape")
def reshape(m: Make) -> None:
    shape = m.any_shape()
    m.add(shape, m.anything)
    target = list(shape)
    m.rng.shuffle(target)
    if len(target) > 1 and m.flag():
        target = [target[0] * target[1], *target[2:]]
    if target and m.chance(0.4) and 0 not in target:
        target[m.rng.randrange(len(target))] = -1
    m.given(np.int64(target))
    m.has(special_zero=m.flag() and 0 not in shape)


@recipe("Squeeze")
def squeeze(m: Make) -> None:
    shape = [m.pick(1, 1, 2, 0, 5) for _ in range(m.rng.randint(0, 4))]
    m.add(shape, m.anything)
    if m.flag():
        m.given([i - len(shape) if m.flag() else i for i, size in enumerate(shape) if size == 1 and m.flag()])
    m.maybe(allow_axis_skip=m.flag())


@recipe("Unsqueeze")
def unsqueeze(m: Make) -> None:
    shape = m.any_shape(0, 3)
    m.add(shape, m.anything)
    count = m.rng.randint(1, 2)
    m.given(m.rng.sample(range(-len(shape) - count, len(shape) + count), 1) if count == 1 else [0, len(shape) + 1])


@recipe("Transpose")
def transpose(m: Make) -> None:
    shape = m.any_shape()
    m.add(shape, m.anything)
    m.given(m.rng.sample(range(len(shape)), len(shape)) if m.chance(0.8) else [])


@recipe("Broadcast")
def broadcast(m: Make) -> None:
    target = m.any_shape(0, 4)
    mode = m.pick("numpy", "explicit", *(["bidirectional"] if m.opset == 3 else []))
    axes = sorted(m.rng.sample(range(len(target)), m.rng.randint(0, len(target))))
    shape = [target[axis] for axis in axes] if mode == "explicit" else m.broadcast(target)
    m.add(shape, m.anything)
    m.given(np.int64(target))
    if mode == "explicit":
        m.given(np.int64(axes))
    m.has(mode=mode)


@recipe("Tile")
def tile(m: Make) -> None:
    shape = m.any_shape(0, 3)
    m.add(shape, m.anything)
    m.given(np.int64(m.ints(m.rng.randint(0, 4), 0, 3)))


@recipe("Concat")
def concat(m: Make) -> None:
    shape = m.any_shape(1)
    axis = m.axis(len(shape))
    for _ in range(m.pick(1, 2, 3)):
        sizes = list(shape)
        sizes[axis] = m.size()
        m.add(sizes, m.anything)
    m.has(axis=axis)


@recipe("Split", "VariadicSplit")
def split(m: Make) -> None:
    shape, parts = list(m.any_shape(1)), m.pick(1, 2, 3)
    axis = m.axis(len(shape))
    lengths = m.ints(parts, 0, 4)
    variadic = m.sizes.get("variadic")
    shape[axis] = sum(lengths) if variadic else parts * m.size()
    m.add(shape, m.anything)
    m.given(axis)
    if variadic:
        if m.chance(0.3):
            lengths[m.rng.randrange(parts)] = -1
        m.given(np.int64(lengths))
    else:
        m.has(num_splits=parts)
    m.outputs = parts


@recipe("StridedSlice")
def strided_slice(m: Make) -> None:
    shape = m.any_shape(1)
    count = m.rng.randint(0, len(shape))
    m.add(shape, m.anything)
    for low, high in ((-5, 5), (-5, 9)):
        m.given(np.int64(m.ints(count, low, high)))
    if m.chance(0.7):
        m.given(np.int64([m.pick(1, 1, 2, -1, -3) for _ in range(count)]))
    for name, share in (("begin", 0.3), ("end", 0.3), ("new_axis", 0.1), ("shrink_axis", 0.1), ("ellipsis", 0.0)):
        m.has(**{f"{name}_mask": [int(m.chance(share)) for _ in range(count)]})


@recipe("Slice", "SliceScatter")
def slicing(m: Make) -> None:
    shape = m.any_shape(1)
    axes = m.rng.sample(range(len(shape)), m.rng.randint(0, len(shape)))
    if not m.sizes.get("all"):
        axes = axes if m.flag() else list(range(len(axes)))
    starts, stops = m.ints(len(axes), -6, 6), m.ints(len(axes), -6, 20)
    steps = [m.pick(1, 1, 2, -1, -2) for _ in axes]
    m.add(shape, m.anything)
    if m.sizes.get("scatter"):
        taken = np.empty(shape, np.int8)[_index(len(shape), axes, starts, stops, steps)]
        m.add(taken.shape, m.anything)
    for values in (starts, stops, steps, axes):
        m.given(np.int64(values))


def _index(rank: int, axes: list[int], starts: list[int], stops: list[int], steps: list[int]) -> tuple[slice, ...]:
    index = [slice(None)] * rank
    for axis, *bounds in zip(axes, starts, stops, steps, strict=True):
        index[axis] = slice(*bounds)
    return tuple(index)


@recipe("Pad")
def pad(m: Make) -> None:
    shape = m.any_shape(0, 4)
    mode = m.pick("constant", "constant", "edge", "reflect", "symmetric")
    low = -1 if m.opset == 12 and m.chance(0.3) else 0
    m.add(shape, m.anything)
    for _ in range(2):
        m.given(
            np.int64(
                [m.rng.randint(low, 3 if mode in ("constant", "edge") else max(min(3, size - 1), 0)) for size in shape]
            )
        )
    if mode == "constant" and m.flag():
        m.add((), m.anything)
    m.has(pad_mode=mode)


@recipe("Reverse")
def reverse(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.anything)
    if m.flag():
        m.given(m.axes(len(shape)))
        m.has(mode="index")
    else:
        m.given([m.flag() for _ in shape], "boolean")
        m.has(mode="mask")


@recipe("ReverseSequence")
def reverse_sequence(m: Make) -> None:
    m.add("B S ...", m.anything)
    m.add("B", m.index)
    m.has(batch_axis=0, seq_axis=1)


@recipe("Roll")
def roll(m: Make) -> None:
    shape = m.any_shape(1)
    axes = m.axes(len(shape))
    m.add(shape, m.anything)
    m.given(np.int64(m.ints(len(axes), -20, 20)))
    m.given(np.int64(axes))


@recipe("ShuffleChannels")
def shuffle(m: Make) -> None:
    group, shape = m.pick(1, 2, 3), list(m.any_shape(1))
    axis = m.axis(len(shape))
    shape[axis] *= group
    m.add(shape, m.anything)
    m.has(axis=axis, group=group)


@recipe("DepthToSpace", "SpaceToDepth")
def depth(m: Make) -> None:
    block = m.pick(1, 2, 3)
    axes = m.pick(1, 2, 3)
    grown = (m.size() * block**axes, *(m.size() for _ in range(axes)))
    shrunk = (m.size(), *(m.size() * block for _ in range(axes)))
    m.add((m.size(), *(shrunk if m.sizes.get("space") else grown)), m.anything)
    m.has(block_size=block, mode=m.pick("blocks_first", "depth_first"))


@recipe("SpaceToBatch", "BatchToSpace")
def blocks(m: Make) -> None:
    count = m.rng.randint(1, 3)
    block = [1, *m.ints(count, 1, 3)]
    begin, end = [0, *m.ints(count, 0, 2)], [0] * (count + 1)
    shape = [m.size() for _ in block]
    if m.sizes.get("batch"):
        shape[0] *= int(np.prod(block))
        begin = [min(b, size * k) for b, size, k in zip(begin, shape, block, strict=True)]
    else:
        end = [-(size + b) % k for size, b, k in zip(shape, begin, block, strict=True)]
    m.add(shape, m.anything)
    for values in (block, begin, end):
        m.given(np.int64(values))


@recipe("ReorgYolo")
def reorg(m: Make) -> None:
    stride = m.pick(1, 2, 3)
    m.add(f"N C*{stride * stride} H*{stride} W*{stride}", m.anything)
    m.has(stride=stride)


def with_size(function: Recipe, **sizes: int) -> Recipe:
    """Return the recipe with marks that it reads."""

    def make(m: Make) -> None:
        m.set(**sizes)
        function(m)

    return make


RECIPES.update(
    ReduceLogicalAnd=with_size(reduce, logical=1),
    ReduceLogicalOr=with_size(reduce, logical=1),
    VariadicSplit=with_size(split, variadic=1),
    SliceScatter=with_size(slicing, scatter=1),
    SpaceToDepth=with_size(depth, space=1),
    BatchToSpace=with_size(blocks, batch=1),
)
