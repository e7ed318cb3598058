"""Rules for models that a device's plugin refuses or computes differently, as documented: one table, ``LIMITS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ovir.checks.rule import Context, Found, rule
from ovir.core.element_types import f32, f64, i64, string, u1, u3, u6, u32, u64
from ovir.core.shapes import Dimension
from ovir.diagnostics.codes import DEVICE_DOUBT, DEVICE_REFUSAL, Code
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import and_others, size_text
from ovir.graph.layers import Layer, Port
from ovir.inference.layer_weights import quantized_source, weights_of
from ovir.inference.missing_data import undecided
from ovir.lowering.releases import Release, own_element_types
from ovir.model import Model
from ovir.ops.state import ReadValueBase

DEVICE_TYPE = Code.info(710, "the given device computes in another element type").says("""
Info. Reported with `--device` only: NPUs compute real numbers in f16, and CPU and GPU plugins compute integers of 64
bits in i32, where inference does not know the numbers. What CPU and GPU make of f64 is OVIR704. Processors without VNNI
add products of u8 and int8 in pairs of 16 bits, which saturate if weights use more than half of their range; NNCF's
`overflow_fix` avoids that.
    <layer id="2" name="sum" type="Add" version="opset1">   <!-- of i64, --device CPU -->
Fix: nothing, if values stay within the smaller type; `ovir run --emulate f16` shows what f16 does to a model.
""")


@dataclass(frozen=True)
class Limit:
    """One rule: a limit of a device, and its source."""

    device: str
    says: str
    """The rule in a few words, for the documentation."""
    source: str
    """A page, a source file or an issue of OpenVINO."""
    find: Callable[[Context], Iterator[Found]]
    code: Code = DEVICE_REFUSAL
    until: Release | None = None
    """The first release without the limit; None if all releases have it."""

    def applies(self, context: Context) -> bool:
        """Return whether the limit concerns the given device and release; without a release, the newest is meant."""
        is_old = self.until is None or (context.options.runtime is not None and context.options.runtime < self.until)
        return self.device == context.options.device and is_old


def live(context: Context) -> Iterator[Layer]:
    """Yield the layers of the model and its bodies that results depend on; a device drops the others."""
    return (layer for layer in context.layers if not layer.is_dead)


def origins(model: Model, has: Callable[[Port], bool]) -> Iterator[Port]:
    """Yield the output ports of a model, without its bodies, that have a property, and depend on none that has.

    The property is about unknown sizes; those that a constant without data may decide are left out.
    """
    open_sizes = undecided(model).sizes
    followers: set[Layer] = set()
    for layer in model.layers:  # in order
        if layer.is_dead:
            continue
        follows = any(port.source is not None and port.source.layer in followers for port in layer.inputs)
        opened = [port for port in layer.outputs if port not in open_sizes and has(port)]
        if follows or opened:
            followers.add(layer)
        if not follows:
            yield from opened


# --------------------------------------------------------------------------- shapes


def is_unbounded(port: Port) -> bool:
    """Return whether a dimension of known rank has no upper bound."""
    return any(dim.upper is None for dim in _dims(port))


def is_bounded(port: Port) -> bool:
    """Return whether there are unknown dimensions, and all have an upper bound."""
    return any(dim.is_dynamic for dim in _dims(port)) and not is_unbounded(port)


def _dims(port: Port) -> tuple[Dimension, ...]:
    shape = port.type.shape
    return shape.dims if port.inferred is not None and shape.rank is not None else ()


def is_beyond_batch(port: Port) -> bool:
    """Return whether there are unknown dimensions other than a batch with an upper bound."""
    return is_unbounded(port) or any(dim.is_dynamic for dim in _dims(port)[1:])


def dynamic(is_refused: Callable[[Port], bool], what: str, context: Context) -> Iterator[Found]:
    """Yield one case for all inputs with such shapes, and one for each operation and state that has them when the
    shapes of the inputs are known."""
    inputs = [port for port in context.model.inputs if is_refused(port)]
    fixed: Model | None = context.model
    command: str | None = None
    if any(dim.is_dynamic for port in context.model.inputs for dim in _dims(port)):
        fixed, command = fixing_shapes(context) or (None, None)
    if inputs:
        names = ", ".join(f"'{port.any_name}' [{','.join(map(str, _dims(port)))}]" for port in inputs[:_SHOWN])
        more = f" and {len(inputs) - _SHOWN} more" if len(inputs) > _SHOWN else ""
        hint = f"`{command}` fixes the sizes; others may be chosen" if command else _GENERAL
        yield Found(f"{'the inputs' if inputs[1:] else 'the input'} {names}{more}: {what}", inputs[0].layer, hint)
    for port in origins(fixed, is_refused) if fixed is not None else ():
        if isinstance(port.layer.operator, ReadValueBase):
            yield Found(f"states: {what}", port.layer, STATES_AS_INPUTS)
        elif port.layer.type != "Parameter":
            hint = "these sizes depend on values: --shape does not fix them"
            yield Found(f"outputs of {port.layer.type}: {what}", port.layer, hint)


unbounded = partial(dynamic, is_unbounded, "unknown sizes without an upper bound")
bounded = partial(dynamic, is_bounded, "unknown sizes, and only known ones are documented to work")
not_only_batch = partial(dynamic, is_beyond_batch, "unknown sizes other than a batch with an upper bound")
_SHOWN = 4
STATES_AS_INPUTS = "`ovir edit --states-to-inputs` makes states inputs and outputs; --shape then gives them sizes"
_GENERAL = "`ovir edit --shape NAME=1,3,224,224` gives an input known sizes"


def unknown_rank(context: Context) -> Iterator[Found]:
    for port in origins(context.model, lambda port: port.inferred is not None and port.type.shape.rank is None):
        hint = "`ovir edit --shape` gives an input a rank" if port.layer.type == "Parameter" else None
        yield Found(f"an output of {port.layer.type} has an unknown rank", port.layer, hint)


def rank_above(limit: int, context: Context) -> Iterator[Found]:
    for layer in live(context):
        rank = max((len(_dims(port)) for port in layer.outputs), default=0)
        if rank > limit:
            yield Found(f"a tensor has {rank} dimensions, the limit is {limit}", layer)


def interface_rank_above(limit: int, context: Context) -> Iterator[Found]:
    for port in (*context.model.inputs, *context.model.outputs):
        if (rank := len(_dims(port.source or port))) > limit:
            yield Found(f"an input or output of the model has {rank} dimensions, the limit is {limit}", port.layer)


def too_large(context: Context) -> Iterator[Found]:
    for layer in live(context):
        known = [port for port in layer.outputs if _dims(port)]
        size = max((port.type.shape.least_size * port.element_type.bits // 8 for port in known), default=0)
        if size > _LARGEST:
            most = size_text(_LARGEST)
            message = f"a tensor has {size_text(size)}; Intel's drivers allocate at most {most} at a time"
            yield Found(message, layer, "GPU_ENABLE_LARGE_ALLOCATIONS=YES lifts the limit of newer releases")


def fixing_shapes(context: Context) -> tuple[Model, str] | None:
    """Return the model with inputs of known sizes, and the command that makes it, if inference accepts some."""
    from shlex import quote  # hardly ever needed

    from ovir.analysis.input_sizes import fix_image_sizes, fix_shapes

    fixed = context.model.clone()
    try:
        if context.failing or not (fix_image_sizes(fixed) or fix_shapes(fixed).shapes):
            return None
    except OvirError:
        return None
    pairs = zip(context.model.inputs, fixed.inputs, strict=True)
    shapes = {old.any_name: ",".join(map(str, new.shape)) for old, new in pairs if not old.shape.is_static}
    options = " ".join(f"--shape {quote(f'{name}={shape}')}" for name, shape in shapes.items())
    return fixed, f"ovir edit {quote(context.file or 'model.xml')} {options} -o fixed.xml"


# --------------------------------------------------------------------------- element types, operations and states


def element_types(refused: tuple[object, ...], context: Context) -> Iterator[Found]:
    for layer in live(context):
        for element_type in own_element_types(layer):
            if element_type in refused:
                yield Found(f"the element type {element_type} is not supported", layer)


def input_types(refused: tuple[object, ...], context: Context) -> Iterator[Found]:
    for port in context.model.inputs:
        if port.element_type in refused:
            yield Found(f"inputs of the element type {port.element_type} are not supported", port.layer)


def integer_arithmetic(context: Context) -> Iterator[Found]:
    of_sizes = undecided(context.model).values
    for layer in live(context):
        if layer.type not in ARITHMETIC or not layer.outputs or layer.outputs[0] in of_sizes:
            continue
        result = layer.outputs[0].inferred
        if result is not None and result.element_type in (i64, u64, u32) and result.value is None:  # not sizes
            yield Found(f"{result.element_type} is computed in i32", layer)


def saturating_sums(context: Context) -> Iterator[Found]:
    """Yield products of quantized data and weights so large that two exceed 16 bits: 2 * 255 * 65 > 32767."""
    for weights in weights_of(context.model):
        others = [port for port in weights.layer.inputs if port is not weights.input]
        if any(map(quantized_source, others)) and (weights.largest_code or 0) > MOST_IN_16_BITS:
            message = "without VNNI, int8 products are added in 16 bits, so weights of the full range saturate sums"
            yield Found(message, weights.layer, "NNCF's overflow_fix uses half of the range of the weights")


MOST_IN_16_BITS = 64
"""The largest weight whose products with two numbers of u8 fit into 16 bits together."""

ARITHMETIC = frozenset(
    ("Add", "CumSum", "Divide", "FloorMod", "MatMul", "Mod", "Multiply", "Negative", "Power", "ReduceProd", "ReduceSum",
     "SquaredDifference", "Subtract")
)  # fmt: skip


def real_arithmetic(context: Context) -> Iterator[Found]:
    for layer in live(context):
        result = layer.outputs[0].inferred if layer.outputs else None
        if result is not None and result.element_type in (f32, f64) and layer.type not in ("Const", "Parameter"):
            yield Found(f"{result.element_type} is computed in f16", layer)


def refused(
    is_refused: Callable[[Layer], bool], message: str, context: Context, hint: str | None = None
) -> Iterator[Found]:
    """Yield the layers that are refused; ``{}`` in the message is their type."""
    return (Found(message.format(layer.type), layer, hint) for layer in live(context) if is_refused(layer))


NOT_IMPORTED = frozenset(
    ("BinaryConvolution", "CTCLoss", "Col2Im", "ExperimentalDetectronDetectionOutput",
     "ExperimentalDetectronGenerateProposalsSingleImage", "ExperimentalDetectronPriorGridGenerator",
     "ExperimentalDetectronTopKROIs", "GenerateProposals", "ISTFT", "IsFinite", "IsInf", "IsNaN", "MatrixNms",
     "MulticlassNms", "Multinomial", "NMSRotated", "ROIAlignRotated", "SearchSorted", "SegmentMax",
     "SparseFillEmptyRows", "StringTensorPack", "StringTensorUnpack", "Unique")
)  # fmt: skip
"""The operations, in any version, that the importer of the NPU compiler does not name and OpenVINO does not rewrite for
it."""


not_imported = partial(refused, lambda layer: layer.type in NOT_IMPORTED, "the compiler has no form of {}")
extensions = partial(
    refused,
    lambda layer: layer.version == "extension",
    "{} is an operation of an extension, which this device does not take",
)
states = partial(
    refused, lambda layer: layer.type == "ReadValue", "models with states are refused", hint=STATES_AS_INPUTS
)


def dynamic_states(context: Context) -> Iterator[Found]:
    open_sizes = undecided(context.model).sizes
    for layer in live(context):
        if layer.type != "ReadValue" or layer.outputs[0] in open_sizes:
            continue
        if any(dim.is_dynamic for dim in _dims(layer.outputs[0])):
            message = f"the state has the shape {layer.outputs[0].type.shape}: states must have known sizes"
            yield Found(message, layer, STATES_AS_INPUTS)


# --------------------------------------------------------------------------- the table

_SITE = "https://docs.openvino.ai/2025"
_PAGES = f"{_SITE}/openvino-workflow/running-inference/inference-devices-and-modes"
_NPU_PAGE, _GPU_PAGE, _CPU_PAGE = (f"{_PAGES}/{device}-device.html" for device in ("npu", "gpu", "cpu"))
_NPU_IMPORT = "npu_compiler, src/vpux_compiler/src/frontend/IE.cpp"
_GPU_TYPES = "src/plugins/intel_gpu/src/plugin/common_utils.cpp"
_GPU_2022 = "https://docs.openvino.ai/2022.3/openvino_docs_OV_UG_supported_plugins_GPU.html, Dynamic Shapes"
_GPU_ENGINE = "openvino #34856; src/plugins/intel_gpu/src/runtime/engine.cpp, check_allocatable"
_CPU_PLUGIN = "src/plugins/intel_cpu/src/plugin.cpp, compile_model"
_LEVEL_ZERO = "level-zero-npu-extensions, ZE_MAX_GRAPH_ARGUMENT_DIMENSIONS_SIZE"
_EXTENSIBILITY = f"{_SITE}/documentation/compatibility-and-support/supported-devices.html, Extensibility"
_NPU_TYPES = f"openvino #27626; {_NPU_IMPORT}, importPrecision"
_VNNI = "openvino #25342; nncf #1498, #1568"
_LARGEST = 4_294_959_104
"""The CL_DEVICE_MAX_MEM_ALLOC_SIZE that Intel's GPU drivers report."""

LIMITS = (
    Limit("NPU", "a dimension without upper bound", "openvino #24619, #26357, #32466, #34617", unbounded),
    Limit("NPU", "a dimension with bounds", f"{_NPU_PAGE}, Limitations", bounded, DEVICE_DOUBT),
    Limit("NPU", "an unknown rank", f"{_NPU_IMPORT}, importShape", unknown_rank),
    Limit("NPU", "more than 5 dimensions of an input or output", _LEVEL_ZERO, partial(interface_rank_above, 5)),
    Limit("NPU", "u1, u3, u6 or strings", _NPU_TYPES, partial(element_types, (u1, u3, u6, string))),
    Limit("NPU", "an operation of no known form", f"{_NPU_IMPORT}, getParser", not_imported, DEVICE_DOUBT),
    Limit("NPU", "an operation of an extension", _EXTENSIBILITY, extensions, DEVICE_DOUBT),
    Limit("NPU", "f32 and f64 are computed in f16", f"{_NPU_PAGE}, data types", real_arithmetic, DEVICE_TYPE),
    Limit("GPU", "an unknown rank", f"{_GPU_PAGE}, Dynamic Shapes", unknown_rank),
    Limit("GPU", "unknown dimensions other than a bounded batch", _GPU_2022, not_only_batch, until=(2023, 0)),
    Limit("GPU", "more than 8 dimensions", "openvino #16405, #16810", partial(rank_above, 8)),
    Limit("GPU", "more than 6 dimensions", "openvino #16405, #16810", partial(rank_above, 6), until=(2023, 0)),
    Limit("GPU", "strings", f"{_GPU_TYPES}, is_supported", partial(element_types, (string,))),
    Limit("GPU", "states", "openvino #14538", states, until=(2022, 3)),
    Limit("GPU", "states of unknown sizes", "openvino #21235", dynamic_states, until=(2023, 3)),
    Limit("GPU", "a tensor beyond the largest single allocation", _GPU_ENGINE, too_large, DEVICE_DOUBT),
    Limit("GPU", "64-bit integers are computed in i32", _GPU_TYPES, integer_arithmetic, DEVICE_TYPE),
    Limit("CPU", "an unknown rank", f"{_CPU_PAGE}, Dynamic Shapes; openvino #25051", unknown_rank),
    Limit("CPU", "inputs of u1, u3 or u6", _CPU_PLUGIN, partial(input_types, (u1, u3, u6))),
    Limit("CPU", "64-bit integers are computed in i32", "openvino #1312", integer_arithmetic, DEVICE_TYPE),
    Limit("CPU", "int8 weights of the full range saturate without VNNI", _VNNI, saturating_sums, DEVICE_TYPE),
)
"""The limits of devices. A limit is here only if OpenVINO documents it, or its source code or maintainers say it."""


def _reported(code: Code, context: Context) -> Iterator[Found]:
    """Yield the cases of a code; those of one message are one diagnostic, at the first layer."""
    for limit in LIMITS:
        if limit.code is not code or not limit.applies(context):
            continue
        groups: dict[str, list[Found]] = {}
        for case in limit.find(context):
            groups.setdefault(case.message, []).append(case)
        for message, cases in groups.items():
            more = and_others(len(cases) - 1, "more layer")
            hint = f"{cases[0].hint}; source: {limit.source}" if cases[0].hint else f"source: {limit.source}"
            yield Found(f"{limit.device}: {message}{more}", cases[0].at, hint=hint)


for _code in (DEVICE_REFUSAL, DEVICE_DOUBT, DEVICE_TYPE):
    rule(_code)(partial(_reported, _code))
