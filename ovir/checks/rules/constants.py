"""Rules about the values of constants: as shapes, as indices, and as operands."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from ovir.checks.rule import Context, Found, StoredConstant, layer_domains, means_open_end, rule
from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, f64, i64, string, u64
from ovir.core.shapes import MAX_SIZE, PartialShape
from ovir.diagnostics.codes import F16_OVERFLOW, STRING_DATA, TOO_LARGE, Code, Severity
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.wording import exact_size_text, plural
from ovir.graph.constant_layers import converted_codes
from ovir.graph.layers import Layer, agrees
from ovir.ir.weights import WeightBytes, release_pages
from ovir.ops.base.domains import Coordinates, Divisor, Index, IndexRule
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.infrastructure import Parameter
from ovir.system.progress import counted
from ovir.system.python_runtime import physical_memory

_SCANNED = {f16, bf16, f32, f64}
_BLOCK = 1 << 16  # numbers per block
_LEAST_INFINITE = {f16.to_dtype(): 0x7C00, bf16.to_dtype(): 0x7F80}
"""The smallest bit pattern (without the sign) of an infinity or NaN."""


@rule(STRING_DATA)
def string_data(context: Context) -> Iterator[Found]:
    """Report string constants with invalid bytes; the reader does not decode them."""
    for constant in context.constants:
        if constant.op.element_type == string:
            try:
                constant.op.data  # noqa: B018  (decodes)
            except OperatorError as error:
                for layer in constant.layers:
                    yield Found(error.message, layer)


@rule(Code.warning(510, "a constant holds NaN or infinity"))
def non_finite(context: Context) -> Iterator[Found]:
    """Warning. NaN in weights makes everything that depends on it NaN; it comes from a training that diverged, or from
    bytes that are read as the wrong type. Infinity alone is reported as info, because masks contain it.
        <layer id="1" name="bias" type="Const" version="opset1">   <!-- 1, nan, 3 -->
    Fix: check offset and element type first, then the original model.
    """
    neighbors = counted("looking for NaN", list(_neighbors(context)))
    runs = (run for run in neighbors if not _are_finite(run, context.weights))
    for constant in (constant for run in runs for constant in run):
        if (data := constant.data) is not None and data.size:
            nans, infinities = _count_non_finite(data)
            what, severity = (f"NaN in {nans}", None) if nans else (f"infinity in {infinities}", Severity.INFO)
            for layer in constant.layers if nans or infinities else ():
                yield Found(f"{what} of {plural(data.size, 'value')}", layer, severity=severity)


def _neighbors(context: Context) -> Iterator[list[StoredConstant]]:
    """Yield runs of real constants of one type that are adjacent in the weights."""
    run: list[StoredConstant] = []
    for constant in sorted(context.constants, key=lambda c: c.op.offset):
        op = constant.op
        if op.element_type not in _SCANNED:
            continue
        if run:
            first, last = run[0].op, run[-1].op
            is_next = op.element_type == last.element_type and op.offset == last.offset + last.size
            if not is_next or op.offset - first.offset > _BLOCK:
                yield run
                run = []
        run.append(constant)
    if run:
        yield run


def _are_finite(run: list[StoredConstant], weights: WeightBytes) -> bool:
    """Return whether a run of adjacent constants is finite, in one pass."""
    first, last = run[0].op, run[-1].op
    dtype = first.element_type.to_dtype()
    count = (last.offset + last.size - first.offset) // dtype.itemsize
    if not count or not weights.data.size:
        return True
    numbers = np.frombuffer(weights.data, dtype, count, first.offset)
    if count <= _BLOCK and _surely_finite(numbers):
        return True
    is_finite = not any(_count_non_finite(numbers))
    release_pages(numbers)
    return is_finite


def _count_non_finite(data: Array) -> tuple[int, int]:
    """Return the numbers of NaN and of infinite values."""
    flat = data.reshape(-1)
    nans = infinities = 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        if _surely_finite(block):
            continue
        finite = np.isfinite(block)
        if not finite.all():
            nans += (block_nans := int(np.isnan(block).sum()))
            infinities += int((~finite).sum()) - block_nans
    return nans, infinities


def _surely_finite(block: Array) -> bool:
    """Return whether a quick test proves that all values are finite."""
    if block.dtype.itemsize > 2:
        return isfinite(np.vdot(block, block))  # the product is finite only if every number is
    least = _LEAST_INFINITE[block.dtype]
    # As int16, the maximum is among the positive numbers; as uint16, among the negative ones if there are any.
    most_positive = np.maximum.reduce(block.view(np.int16))
    most_negative = np.maximum.reduce(block.view(np.uint16))
    return bool(most_positive < least and most_negative < 0x8000 | least)


@rule(F16_OVERFLOW)
def f16_overflow(context: Context) -> Iterator[Found]:
    """Report a Convert to f16 of a constant beyond the range of f16, which becomes infinite."""
    largest = float(np.finfo(np.float16).max)
    for layer, op in context.usable:
        if not op.converts or not layer.outputs or layer.outputs[0].element_type != f16:
            continue
        data = context.values_of(layer.inputs[0])
        if data is None or data.dtype not in (np.float32, np.float64) or not data.size:
            continue
        most = float(np.nanmax(np.where(np.isfinite(data), np.abs(data), 0)))
        if most > largest:
            yield Found(f"the constant holds {most:g}; the largest of f16 is {largest:g}", layer)


_INT32 = np.iinfo(np.int32)


@rule(Code.info(515, "a 64-bit constant holds values that devices clip to 32 bits", summed=True))
def narrowed(context: Context) -> Iterator[Found]:
    """Info. GPUs, and the CPU plugin in most operations, compute i64 in i32 and clip larger numbers. Integers within
    2^33 of the limits of i64 are not reported, because they mean an open end.
        <data element_type="i64" shape="2" offset="0" size="16" />   <!-- 1, 5000000000 -->
    Fix: use numbers within 32 bits, or f32 where exactness is not needed.
    """
    for constant in context.constants:
        if constant.op.element_type in (i64, u64) and (data := constant.data) is not None and data.size:
            if data.max() <= _INT32.max and data.min() >= _INT32.min:
                continue
            beyond = data[(data > _INT32.max) | (data < _INT32.min)]
            beyond = beyond[~means_open_end(beyond)]
            if beyond.size:
                message = f"the constant holds {beyond[0]}, which devices that compute in i32 clip"
                for layer in constant.layers:
                    yield Found(message, layer)


@rule(Code.warning(514, "a constant divides integers by zero, or the least integer by -1", danger=5.0))
def zero_divisor(context: Context) -> Iterator[Found]:
    """Warning. Division, Mod or FloorMod of integers by zero, or of the least integer by -1, is undefined: some devices
    give 0, others end the process.
        <layer id="2" name="ratio" type="Divide" version="opset1">   <!-- i32, divisor 3, 0 -->
    Fix: correct the constant, or compute in f32.
    """
    for layer in context.layers:
        for port, rule_ in layer_domains(layer):
            data = context.values_of(port) if isinstance(rule_, Divisor) else None
            if data is None or data.dtype.kind not in "iu" or not data.size or layer.title in context.failing:
                continue
            if not data.all():
                yield Found(f"the divisor holds {plural(int((data == 0).sum()), 'zero')}", layer)
            elif data.dtype.kind == "i" and data.min() <= -1 <= data.max() and (data == -1).any():
                least, dividend = np.iinfo(data.dtype).min, context.values_of(layer.inputs[0])
                if dividend is not None and isinstance(layer.operator, ElementwiseBase):
                    data = layer.operator.aligned(dividend, data)
                if dividend is not None and ((dividend == least) & (data == -1)).any():
                    yield Found(f"{least} is divided by -1, which {layer.outputs[0].element_type} cannot hold", layer)


@rule(Code.warning(516, "a compressed weight's scale is zero, or not finite"))
def zero_scale(context: Context) -> Iterator[Found]:
    """Warning. Weights of few bits are multiplied by a scale. A scale of zero makes the whole group zero, and NaN or
    infinity destroys it; the quantizer has divided by zero.
        <layer id="4" name="scaled" type="Multiply" version="opset1">   <!-- scale 0.5, 0 -->
    Fix: compress the model again from weights without empty groups, or write the scale 1.
    """
    for layer, op in context.usable:
        codes = converted_codes(layer.inputs[0]) if op.scales and len(layer.inputs) == 2 else None
        if codes is None or not codes.outputs[0].element_type.is_integral:
            continue
        scale = context.values_of(layer.inputs[1])
        if scale is not None and scale.size and scale.dtype.kind == "f":
            bad = int((~np.isfinite(scale) | (scale == 0)).sum())
            if bad:
                message = f"zero, NaN or infinity in {bad} of {plural(scale.size, 'scale')} of compressed weights"
                yield Found(message, layer)


@rule(Code.warning(511, "a constant index is outside the axis that it indexes", danger=7.5))
def index_range(context: Context) -> Iterator[Found]:
    """Warning. Gather gives 0 for such an index; other operations fail or read beyond the data, depending on the
    device.
        <layer id="3" name="gather" type="Gather" version="opset8">   <!-- indices 0, 4 of [4,3] along 0 -->
    Fix: correct the index; indices count from 0.
    """
    for layer, index, values, size in _indexed(context):
        low = 0 if index.negative == "forbidden" else -size
        if values.min() < low or values.max() >= size:
            outside = values[(values < low) | (values >= size)]
            message = f"index {outside.flat[0]} is outside [{low}, {size - 1}], the range of the indexed axis"
            yield Found(message, layer)


@rule(Code.info(703, "devices treat a negative index differently", summed=True))
def negative_index(context: Context) -> Iterator[Found]:
    """Info. The specifications of Gather-1, Gather-7, GatherND-5 and ScatterElementsUpdate-3 exclude negative indices.
    OpenVINO's reference counts them from the end; its CPU plugin gives 0 for Gather.
        <layer id="3" name="gather" type="Gather" version="opset7">   <!-- index -1 -->
    Fix: write the index from the front, or use a later version (here `version="opset8"`), which counts from the end.
    """
    for layer, index, values, size in _indexed(context):
        if index.negative != "unspecified" or layer.operator is None:
            continue
        negative = values[(values < 0) & (values >= -size)]
        if negative.size:
            version = f"{layer.type}-{layer.operator.opset}"
            message = f"index {negative.flat[0]} is negative, which {version} leaves open"
            hint = "count from the front, or use a later version of the operation"
            yield Found(message, layer, hint=hint)


def _indexed(context: Context) -> Iterator[tuple[Layer, IndexRule, Array, int]]:
    """Yield (layer, how it indexes, constant indices, static size of the indexed axis)."""
    for layer in context.layers:
        for port, index in layer_domains(layer):
            if not isinstance(index, Index | Coordinates) or (values := context.values_of(port)) is None:
                continue
            assert layer.operator is not None
            inputs = layer.operator.named([port.type for port in layer.inputs])
            for part, size in index.parts(layer.operator, inputs, values):
                if part.size:
                    yield layer, index, part, size


@rule(TOO_LARGE)
def too_large(context: Context) -> Iterator[Found]:
    memory = physical_memory()
    for port, count in context.large:
        needed = count * port.element_type.bits // 8
        if memory is not None and memory < needed and count <= MAX_SIZE:
            shown = f"{port.element_type}{port.shape}"
            sizes = f"needs {exact_size_text(needed)}; this machine has {exact_size_text(memory)}"
            message = f"output port {port.id}, {shown}, {sizes}"
            yield Found(message, port)


@rule(Code.warning(413, "a dimension is declared twice: once as unknown, once as a number", fixable="--fix"))
def written_twice(context: Context) -> Iterator[Found]:
    """Warning. A Parameter's `shape` and its port, or an output port and an input port that it feeds, declare different
    things for one tensor: one a number, the other an unknown size. Inference accepts both, because the number is a
    possible value of the unknown size. But somebody changed only one of the two. OpenVINO ignores what ports declare.
        <data shape="?,3" element_type="f32" />   <!-- of a Parameter whose port says 7 and 3 -->
    Fix: declare the same size in both places; -1 in a port corresponds to `?` in the attribute.
    """
    for layer in context.by_type.get("Parameter", ()):
        if isinstance(op := layer.operator, Parameter) and layer.outputs:
            port = layer.outputs[0]
            if not _is_same(port.declared_shape, op.shape) and agrees(port, port.type):
                declared = f"output port {port.id} declares shape {port.declared_shape}"
                message = f"{declared}, but the attribute 'shape' is {op.shape}"
                yield Found(message, port, fix=context.fixes.declarations([port]))
    for layer in context.layers:
        for port in layer.inputs:
            source = port.source
            if source is None or source.declared_shape is port.declared_shape:  # mostly one object if equal
                continue
            is_same = _is_same(port.declared_shape, source.declared_shape)
            if not is_same and agrees(port, port.type) and agrees(source, source.type):
                message = f"input port {port.id} declares shape {port.declared_shape}, but its source declares "
                message += f"{source.declared_shape} ({source.layer.title})"
                yield Found(message, port, fix=context.fixes.declarations([port, source]))


def _is_same(one: PartialShape | None, other: PartialShape | None) -> bool:
    """Return whether two declarations of a shape are static on the same axes; a port without dims declares nothing."""
    if one is None or other is None or not one.rank or one.rank != other.rank:
        return True
    return all(a.is_static == b.is_static for a, b in zip(one, other, strict=True))
