"""Rules about the weights: where constants lie in them, and whether their bytes ever arrived."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path

import numpy as np

from ovir.checks.dependence import needed_layers
from ovir.checks.rule import Context, Found, StoredConstant, rule
from ovir.core.element_types import boolean, nf4, string
from ovir.core.encoding import Bytes
from ovir.core.shapes import UINT64, parse_integer
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.wording import and_others, plural, size_text
from ovir.graph.layers import Layer, Port
from ovir.ir.weights import release_pages
from ovir.ir.writing.blobs import RawSource, are_equal
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const


@rule(
    Code.warning(
        504, "a constant has more bytes than its shape and element type need", danger=5.0, honest=True, fixable="--fix"
    )
)
def too_many_bytes(context: Context) -> Iterator[Found]:
    """Warning. OpenVINO uses the first bytes. The shape, the element type or the size is wrong; unless it is the size,
    all values are wrong too. One byte for a constant without elements, which OpenVINO itself writes, is not reported.
        <data element_type="f32" shape="3" offset="0" size="16" />
    Fix: `size="12"`, or `shape="4"`.
    """
    for constant in context.constants:
        op = constant.op
        if op.element_type == string:
            needed = _string_bytes(constant) if context.options.untrusted else op.size
        else:
            needed = constant.needed
        rest = (op.offset + needed, op.offset + op.size)
        is_hidden = context.options.untrusted and hidden_severity(context.weights.data, [rest]) is Severity.ERROR
        if op.size > max(needed, 1) or is_hidden:
            shown = f"{op.element_type}[{','.join(map(str, op.shape))}]"
            message = f"attribute 'size' is {op.size}, but {shown} needs {needed} bytes; the rest is ignored"
            fix = context.fixes.attributes(constant.layers, "size", str(max(needed, 1)))
            for layer in constant.layers:
                yield Found(message, layer.data_place, severity=Severity.ERROR if is_hidden else None, fix=fix)


def _string_bytes(constant: StoredConstant) -> int:
    """Return the bytes that the strings of a constant take, which its header says; its size if the data is invalid."""
    count, blob = prod(constant.op.shape), constant.op.constant_data
    if constant.data is None:
        return constant.op.size
    assert blob is not None
    ends = blob.stored()[4 : 4 * (count + 2)].view("<i4")
    return 4 * (count + 2) + int(ends[-1]) - int(ends[0])


@rule(Code.info(509, "a constant is not aligned to its element size"))
def misaligned(context: Context) -> Iterator[Found]:
    """Info. ovir cannot use the constant in place in the mapped file, so it copies it to memory, which makes loading
    slower. OpenVINO's CPU plugin takes the same time and memory for both. One diagnostic covers all such constants.
    There is none if they have less than 16 MiB together, because copying so little makes no difference that can be
    measured.
        <data element_type="f32" shape="4096,4096" offset="2" size="67108864" />
    Fix: save the model again with a writer that aligns its constants.
    """
    shifted = []
    for constant in context.constants:
        step = constant.op.element_type.bits // 8
        if step > 1 and constant.op.size and constant.op.offset % step:
            shifted.append((constant, step))
    copied = sum(constant.op.size for constant, _ in shifted)
    if copied >= _COPIED:
        constant, step = shifted[0]
        message = f"offset {constant.op.offset} is not a multiple of {step}, the size of {constant.op.element_type}"
        message += f"; ovir copies {size_text(copied)} that it would map otherwise"
        others = sum(len(constant.layers) for constant, _ in shifted) - 1
        more = and_others(others, "more constant")
        yield Found(message + more, constant.layer.data_place)


_COPIED = 1 << 24
"""The bytes from which on copies are reported: 64 MB took 60 ms longer to load, and twice the memory; 1 MB made no
difference. OpenVINO's CPU plugin needs the same time and memory for both."""


@rule(Code.warning(507, "constants overlap in the weights without being equal", danger=5.0, fixable="--unsafe-fixes"))
def overlap(context: Context) -> Iterator[Found]:
    """Warning. Constants may share bytes if they are equal, or if one is the beginning of the other. These begin at
    different positions, so at least one of them contains numbers of the other. OpenVINO reads them without a message.
        <data element_type="f32" shape="4" offset="0" size="16" />
        <data element_type="f32" shape="4" offset="8" size="16" />
    Fix: correct the offset: `offset="16"`.
    """
    used = ((c, min(c.op.size, c.needed) if c.op.element_type != string else c.op.size) for c in context.constants)
    spans = [(c.op.offset, c.op.offset + size, c) for c, size in used if size]
    spans.sort(key=lambda span: (span[0], -span[1]))
    unread = list(_between(map(_span, context.constants), context.weights.data.size))
    reach, owner = 0, None
    for begin, end, constant in spans:
        if owner is not None and begin < reach and begin != owner.op.offset:
            others = f"bytes [{owner.op.offset}, {reach}) of {owner.layer.title}"
            message = f"bytes [{begin}, {end}) overlap {others}, but begin elsewhere"
            would_fill_gap = (end, end + reach - begin) in unread
            fix = context.fixes.attributes(constant.layers, "offset", str(reach), is_safe=False)
            for layer in constant.layers:
                yield Found(message, layer.data_place, fix=fix if would_fill_gap else None)
        if end > reach:
            reach, owner = end, constant


@rule(Code.info(508, "no constant uses some bytes of the weights", danger=5.0, honest=True), needs_whole_graph=True)
def unused_bytes(context: Context) -> Iterator[Found]:
    """Info; a warning if more than a quarter of the file is unused. No constant, and no image in `<pre-process>`, reads
    64 or more adjacent bytes. The .bin may belong to another model, or constants were removed and their bytes left.
        <net name="model" version="11">   <!-- the .bin has 112 bytes, its constants take 12 -->
    Fix: check whether the pair belongs together; saving the model with OpenVINO writes a .bin without gaps.
    """
    if any(layer.operator is None for layer in context.by_type.get("Const", ())):
        return  # the bytes of a constant that cannot be read are not unused
    if context.weights.missing:
        return
    data = context.weights.data
    images = list(_mean_images(context))
    gaps = [
        (begin, end)
        for begin, end in _between([*map(_span, context.constants), *images], data.size)
        if end - begin >= _PADDING or (context.options.untrusted and data[begin:end].any())
    ]
    if gaps:
        unused = sum(end - begin for begin, end in gaps)
        message = f"no constant uses {unused:,} of the {data.size:,} bytes of {context.weights.name}"
        severity = Severity.WARNING if unused > _UNUSED_SHARE * data.size else None
        if context.options.untrusted:
            message += f", from byte {gaps[0][0]:,} on; their entropy is {_entropy(data, gaps):.1f} bits per byte"
            severity = hidden_severity(data, gaps)
        yield Found(message, context.place, severity=severity)
    if context.options.untrusted:
        yield from _idle_constants(context, images)


def _span(constant: StoredConstant) -> tuple[int, int]:
    return constant.op.offset, constant.op.offset + constant.op.size


def _between(spans: Iterable[tuple[int, int]], total: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes before, between and after spans, up to ``total``."""
    reach = 0
    for begin, end in [*sorted(spans), (total, total)]:
        if begin > reach:
            yield reach, begin
        reach = max(reach, end)


def hidden_severity(data: Bytes, ranges: Iterable[tuple[int, int]]) -> Severity:
    """Return the severity of ranges of bytes that nothing reads: an error, unless all of them are zero."""
    return Severity.ERROR if any(data[begin:end].any() for begin, end in ranges) else Severity.WARNING


def _idle_constants(context: Context, images: list[tuple[int, int]]) -> Iterator[Found]:
    """Report the constants of whose bytes some matter to no result, in one diagnostic at the largest of them."""
    needed = needed_layers(context.model)
    used = [constant for constant in context.constants if not needed.isdisjoint(constant.layers)]
    unread = list(_between([*map(_span, used), *images], context.weights.data.size))
    starts, ends = [start for start, _ in unread], [end for _, end in unread]
    idle: list[tuple[StoredConstant, list[tuple[int, int]]]] = []
    for constant in context.constants:
        if needed.isdisjoint(constant.layers):
            begin, end = _span(constant)
            near = unread[bisect_right(ends, begin) : bisect_left(starts, end)]
            inside = [(max(first, begin), min(last, end)) for first, last in near]
            if inside:
                idle.append((constant, inside))
    if idle:
        data = context.weights.data
        ranges = [pair for _, inside in idle for pair in inside]
        constant = max(idle, key=lambda pair: pair[0].op.size)[0]
        size = sum(last - first for _, inside in idle for first, last in inside)
        more = and_others(len(idle) - 1, "more constant")
        message = f"no result depends on the {size:,} bytes of this constant{more}"
        message += f"; their entropy is {_entropy(data, ranges):.1f} bits per byte"
        # Exporters leave branches that never run, with small constants in bodies.
        are_small = size <= _MOST_LEFT_OVER and all(c.op.size <= _LEFT_OVER for c, _ in idle)
        is_left_over = are_small and all(layer.scope for c, _ in idle for layer in c.layers)
        severity = Severity.WARNING if is_left_over else hidden_severity(data, ranges)
        yield Found(message, constant.layer, severity=severity)


def _entropy(data: Bytes, gaps: list[tuple[int, int]]) -> float:
    """Return the entropy of ranges of bytes, from 0 to 8 bits per byte: 0 for one value, 8 for encrypted data.

    If the ranges are long, only a part of them counts.
    """
    counts, left = np.zeros(256, np.int64), _SAMPLE
    for begin, end in gaps:
        counts += np.bincount(data[begin : min(end, begin + left)], minlength=256)
        left -= min(end - begin, left)
    shares = counts[counts > 0] / counts.sum()
    return float(abs((shares * np.log2(shares)).sum()))


def _mean_images(context: Context) -> Iterator[tuple[int, int]]:
    """Yield the bytes of the images that the ``<pre-process>`` subtracts, which has been read without an error."""
    for mean in context.root.iterfind("pre-process[1]/channel/mean[1]"):  # others are ignored
        if mean.get("value") is None:
            offset, size = (parse_integer(mean.get(key, ""), UINT64) for key in ("offset", "size"))
            yield offset, offset + size


_UNUSED_SHARE = 0.25  # beyond this share the weights probably belong to another model
_PADDING = 64  # bytes; no writer aligns to more
_LEFT_OVER = 64
"""Bytes of a constant, such as axes or a shape, that a branch which never runs may hold."""
_MOST_LEFT_OVER = 1024
"""Bytes of all such constants together: too few to hide a program."""
_SAMPLE = 1 << 26  # bytes of which the entropy is computed


@rule(Code.warning(513, "a boolean constant holds bytes other than 0 and 1", danger=5.0))
def boolean_bytes(context: Context) -> Iterator[Found]:
    """Warning. OpenVINO does not check the bytes, and devices differ in how they treat bytes other than 0 and 1: as
    true, or as a number.
        <data element_type="boolean" shape="2" offset="0" size="2" />   <!-- 1, 255 -->
    Fix: write 1 for true.
    """
    for constant in context.constants:
        op = constant.op
        if op.element_type == boolean and constant.data is not None:
            raw = context.weights.data[op.offset : op.offset + prod(op.shape)]
            if raw.size and (most := int(raw.max())) > 1:
                message = f"a boolean constant holds the byte {most}, which devices interpret differently"
                for layer in constant.layers:
                    yield Found(message, layer, hint="write 1 for true and 0 for false")


@rule(Code.info(705, "the weights contain equal constants more than once", summed=True, fixable="--fix"))
def duplicate_constant(context: Context) -> Iterator[Found]:
    """Info. Only constants of 64 KiB and more are reported. Each copy takes space in the file and in memory.
        <data element_type="f32" shape="16384" offset="0" size="65536" />
        <data element_type="f32" shape="16384" offset="65536" size="65536" />
    Fix: let both use one offset; saving the model with OpenVINO does so.
    """
    by_size: dict[int, dict[int, StoredConstant]] = defaultdict(dict)
    for constant in context.constants:
        if constant.op.size >= _LARGE:
            by_size[constant.op.size].setdefault(constant.op.offset, constant)
    for size, at_offset in by_size.items():
        first: dict[bytes, StoredConstant] = {}
        for offset, constant in at_offset.items() if len(at_offset) > 1 else ():
            raw = context.weights.data[offset : offset + size]
            key = raw[: size // 8 * 8].reshape(8, -1)[:, :64].tobytes()  # most constants differ in this sample
            release_pages(raw)
            other = first.setdefault(key, constant)
            before = context.weights.data[other.op.offset :][:size]
            if other is not constant and are_equal(RawSource(raw), RawSource(before)):
                message = f"the {size} bytes at offset {offset} equal those at {other.op.offset} of {other.layer.title}"
                fix = context.fixes.attributes(constant.layers, "offset", str(other.op.offset))
                yield Found(message, constant.layer.data_place, hint="declare the same offset for both", fix=fix)


_LARGE = 1 << 16


_MOST_LAYERS = 10
"""Layers between a constant and the layer that multiplies with it; exporters write fewer."""


@rule(Code.warning(518, "weights are all zero", summed=True))
def zero_weights(context: Context) -> Iterator[Found]:
    """Warning. A product, a convolution or a recurrent layer multiplies with weights that are all zero, also where they
    are converted, reshaped or scaled on the way, so that its result does not depend on its input. Zeros in biases,
    initial states and other constants are not reported.

    If nearly all constants of a file are zero, one diagnostic at the `<net>` says so: the .bin has its size but not its
    contents, as after a copy or a download that was interrupted. Where all of them are zero, sizes and axes are zero as
    well; the diagnostics that may follow from this are left out, and it is an error if one of these is.
        <layer id="3" name="product" type="MatMul" version="opset1">   <!-- the weights hold 0, 0, 0, 0 -->
    Fix: copy or convert the .bin again; check the offset of the constant, and that the model was trained before it was
    converted.
    """
    if context.mostly_zero:
        zeros = sum(constant.is_zero for constant in context.filled)
        message = (
            f"{Path(context.weights.name).name} holds hardly anything but zeros: {zeros} of its "
            f"{plural(len(context.filled), 'constant')} of more than one number are all zero"
        )
        hint = "the file may have been made without its contents, such as by a copy that was interrupted"
        yield Found(message, context.place, hint=hint)
        return
    for layer, op in context.usable:
        for name, port in zip(input_names(type(op)), layer.inputs, strict=False) if op.multiplied else ():
            if name in op.multiplied and (source := _zeros(port)) is not None:
                yield Found(f"the weights '{name}' are all zero: they are {source.title}", layer)


def _zeros(port: Port) -> Layer | None:
    """Return the constant of zeros that an input is, in another form or type; None for any other input."""
    for _ in range(_MOST_LAYERS):
        if port.source is None or (op := port.source.layer.operator) is None:
            return None
        layer = port.source.layer
        if isinstance(op, Const):
            is_zero = op.element_type is not nf4 and StoredConstant(op).is_zero  # code 0 of nf4 means -1
            return layer if is_zero else None
        keeps_zeros = op.converts or op.scales or op.quantizes or op.moves_elements == (0,)
        if op.offsets and len(layer.inputs) == 2:
            codes, point = (_converted_constant(port) for port in layer.inputs)
            if codes is not None and point is not None and _are_equal_numbers(codes.operator, point.operator):
                return codes
            keeps_zeros = _zeros(layer.inputs[1]) is not None
        if not keeps_zeros or not layer.inputs:
            return None
        port = layer.inputs[0]
    return None


def _converted_constant(port: Port) -> Layer | None:
    """Return the constant that an input is, perhaps in another type; None for any other input."""
    for _ in range(_MOST_LAYERS):
        if port.source is None or (op := port.source.layer.operator) is None:
            return None
        if isinstance(op, Const):
            return port.source.layer
        if not op.converts:
            return None
        port = port.source.layer.inputs[0]
    return None


def _are_equal_numbers(codes: Operator | None, points: Operator | None) -> bool:
    """Return whether all codes of weights are equal to their zero points, which are broadcast to them."""
    assert isinstance(codes, Const)
    assert isinstance(points, Const)
    if not all(op.has_data for op in (codes, points)):
        return False
    count = prod(codes.shape)
    try:
        expected = np.broadcast_to(points.data.astype(np.float32), codes.shape).flat
    except ValueError:  # the zero points have a larger shape than the codes
        return False
    ranges = ((start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK))
    pairs = ((codes.elements(start, stop), expected[start:stop]) for start, stop in ranges)
    return count > 0 and all(np.array_equal(block.astype(np.float32), points) for block, points in pairs)


_BLOCK = 1 << 12
"""Numbers that are compared at a time; nearly all weights differ in their first block."""
