"""The opsets, kernels and element types that ONNX and the installed onnxruntime support."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import onnx
import onnx_ir as ir

from ovir.core import element_types as t
from ovir.diagnostics.errors import InputError

# --------------------------------------------------------------------------- opsets

OLDEST_OPSET = 17
"""The lowest opset of ONNX that models are exported to."""
TESTED_OPSET = 26
"""The newest opset that this release was tested with. docs/adding-an-export.md says how to raise it."""
OPENED = {(1, 17): 20, (1, 18): 21, (1, 21): 22, (1, 23): 23, (1, 24): 25, (1, 25): 26, (1, 32): 28}
"""The newest opset whose models releases of onnxruntime open, from the first release with it on. Measured."""
USUAL = (1, 24)
"""The oldest release of onnxruntime of the last year, which opens what is exported by default."""


def opset_for(target: str | None) -> int:
    """Return the newest opset for a release such as ``onnxruntime:1.20``, by default for those of the last year.

    Raise InputError for a target that is not known.
    """
    release = USUAL
    if target is not None:
        match = re.fullmatch(r"onnxruntime:(\d+)\.(\d+)(?:\.\d+)?", target)
        release = (int(match[1]), int(match[2])) if match else (0, 0)
        if release < min(OPENED):
            oldest = "{}.{}".format(*min(OPENED))
            form = f"has to name a release of onnxruntime from {oldest} on, as in onnxruntime:1.20"
            raise InputError.usage(f"{form}, not {target!r}", option="target")
    return min(max(opset for first, opset in OPENED.items() if first <= release), default_opset())


@cache
def default_opset() -> int:
    """Return ``TESTED_OPSET``, or the newest opset that the installed packages run if they are older."""
    newest = min(TESTED_OPSET, onnx.defs.onnx_opset_version())
    return next((opset for opset in range(newest, OLDEST_OPSET, -1) if _is_run(opset)), OLDEST_OPSET)


_ENGINE_OPSET = 21
"""The newest opset for all of whose operators onnxruntime has kernels. For newer versions of some, such as Attention
and RoiAlign, it has none, and computes them in many small steps."""


def engine_opset(element_types: Iterable[t.ElementType]) -> int:
    """Return the opset in which onnxruntime runs a model with tensors of these types."""
    needed = [SINCE[kind] for kind in element_types if kind in SINCE and held_as(kind, _ENGINE_OPSET) is None]
    return min(default_opset(), max([_ENGINE_OPSET, *needed]))


def _is_run(opset: int) -> bool:
    """Return whether the installed onnxruntime opens models of an opset; True if none is installed."""
    try:
        import onnxruntime
    except ImportError:
        return True
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "probe", [info], [result])
    probe = onnx.helper.make_model_gen_version(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    try:
        onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime raises classes of its own, which share no public base
        return False
    return True


# --------------------------------------------------------------------------- kernels of onnxruntime


def kernel_types(op_type: str, version: int, variable: str) -> frozenset[str] | None:
    """Return the types, as schemas write them, for which onnxruntime computes a type variable of an operator.

    ``version`` is the opset in which this version of the operator begins. None means that nothing is known: onnxruntime
    is not installed, it has no kernel of the version (the operator may be a function of others, or newer than this
    onnxruntime), or its kernels do not restrict the variable.
    """
    found: set[str] = set()
    for first, last, types in _kernels().get(op_type, ()):
        # A kernel without an end computes only the version that it begins with.
        if first == version or (last != _OPEN and first <= version <= last):
            found.update(types.get(variable, ()))
    return frozenset(found) or None


_OPEN = 2**31 - 1
"""The last version that onnxruntime states for a kernel without an end."""


@cache
def _kernels() -> dict[str, list[tuple[int, int, dict[str, list[str]]]]]:
    """Return the first and last version and the types of all kernels for each operator."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
    except ImportError:  # it is not installed, or built without this function
        return {}
    kernels: dict[str, list[tuple[int, int, dict[str, list[str]]]]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            kernels.setdefault(kernel.op_name, []).append((*kernel.version_range, kernel.type_constraints))
    return kernels


# ----- element types, and the types that an operator computes in

SINCE = {t.bf16: 13, t.f8e4m3: 19, t.f8e5m2: 19, t.i4: 21, t.u4: 21, t.f4e2m1: 23, t.f8e8m0: 24, t.u2: 25}
SINCE |= dict.fromkeys(
    (t.boolean, t.f16, t.f32, t.f64, t.i8, t.i16, t.i32, t.i64, t.u8, t.u16, t.u32, t.u64, t.string), 1
)
"""The first opset of ONNX that has each element type."""

_HELD_AS = {
    t.u1: (t.u8,),
    t.u2: (t.u4, t.u8),
    t.u3: (t.u4, t.u8),
    t.u6: (t.u8,),
    t.nf4: (t.u4, t.u8),
    t.u4: (t.u8,),
    t.i4: (t.i8,),
}
"""The types that hold the values of a type that ONNX or the opset lacks; for nf4, they hold its codes."""

_WIDER: dict[t.ElementType, tuple[t.ElementType, ...]] = {
    t.boolean: (t.u8, t.i32, t.i64),
    t.u2: (t.u4, t.u8, t.i32, t.i64),
    t.u4: (t.u8, t.i32, t.i64),
    t.i4: (t.i8, t.i32, t.i64),
    t.u8: (t.i32, t.i64),
    t.i8: (t.i32, t.i64),
    t.i16: (t.i32, t.i64),
    t.u16: (t.i32, t.i64),
    t.i32: (t.i64,),
    t.u32: (t.i64,),
    t.u64: (t.i64,),
    t.f4e2m1: (t.f32,),
    t.f8e4m3: (t.f32,),
    t.f8e5m2: (t.f32,),
    t.f8e8m0: (t.f32, t.f64),
    t.bf16: (t.f32, t.f64),
    t.f16: (t.f32, t.f64),
    t.f32: (t.f64,),
}
"""The types that hold every value of a type, in the order in which they are preferred, with one exception: i64 does not
hold the largest values of u64, but has the same bits, so that sums and products are right after they are cast back."""


def held_as(element_type: t.ElementType, opset: int) -> t.ElementType | None:
    """Return the type in which tensors of an element type are held: itself where the opset has it, else a wider one;
    None if there is none."""
    kinds = (element_type, *_HELD_AS.get(element_type, ()))
    return next((kind for kind in kinds if SINCE.get(kind, opset + 1) <= opset), None)


@cache
def data_type(element_type: t.ElementType) -> ir.DataType:
    """Return the type of ONNX for an element type that ONNX has."""
    return ir.DataType.STRING if element_type == t.string else ir.DataType.from_numpy(element_type.to_dtype())


@cache
def spelling(element_type: t.ElementType) -> str:
    """Return an element type as the schemas of ONNX write it, such as ``tensor(float)``."""
    return f"tensor({data_type(element_type).name.lower()})"


spelled = {spelling(element_type): element_type for element_type in SINCE}.get
"""Returns the element type that a schema calls ``tensor(float)`` or the like; None for other strings."""


def computed_as(
    element_type: t.ElementType, allowed: frozenset[str], kernels: frozenset[str] | None
) -> t.ElementType | None:
    """Return the type in which an operator computes a tensor, or None if it takes neither the type nor a wider one.

    ``allowed`` are the types of the operator's schema, ``kernels`` those that onnxruntime has kernels for (None: it is
    not known).
    """
    candidates = [kind for kind in (element_type, *_WIDER.get(element_type, ())) if spelling(kind) in allowed]
    runnable = [kind for kind in candidates if kernels is None or has_kernel(kind, kernels)]
    return next(iter((*runnable, *candidates)), None)


def has_kernel(element_type: t.ElementType, kernels: frozenset[str]) -> bool:
    """Return whether onnxruntime computes a type, given the types of its kernels; it computes f16 in f32."""
    return spelling(element_type) in kernels or (element_type == t.f16 and spelling(t.f32) in kernels)
