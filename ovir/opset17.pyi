"""The functions of opset17. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer
from ovir.opset1 import (
    convert as convert, parameter as parameter,
)
from ovir.opset3 import (
    shape_of as shape_of,
)

def bgr_to_nv12(
    data: Tensor,
    single_plane: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A BGR image as NV12, in one tensor or two. See RgbToNv12Base.

    Create BGRtoNV12 of opset17.
    """

def erfinv(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse of the Gauss error function: infinite at -1 and 1, NaN outside.

    Create ErfInv of opset17.
    """

def grouped_matmul(
    mat_a: Tensor,
    mat_b: Tensor,
    offsets: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The rows of ``a`` times the transposed matrix of their group; ``b`` is [groups, columns, length].

    If ``a`` is [rows, length], group i consists of the rows from ``offsets[i - 1]`` (0 for the first) to
    ``offsets[i]``, and the result is [rows, columns]. The last offset should equal the number of rows; rows behind it
    give 0 and are reported. If ``a`` is [groups, rows, length], there are no ``offsets`` (or they are empty), and the
    result is [groups, rows, columns].

    f16 and bf16 are summed in f32. The order of b's dimensions and the refusal of a 2-D ``b`` follow OpenVINO.

    Create GroupedMatMul of opset17.
    """

def rgb_to_nv12(
    data: Tensor,
    single_plane: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An RGB image as NV12, in one tensor or two. See RgbToNv12Base.

    Create RGBtoNV12 of opset17.
    """
