"""What the base class gives to all operations: messages, checks of types, and kernels' ``out``."""

import numpy as np
import pytest

from ovir.core.element_types import dynamic, f32, i8, i32, i64
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.operator import Operator
from ovir.ops.convert import Convert, ConvertLike
from ovir.ops.convolution import BinaryConvolution, Convolution
from ovir.ops.normalization import MVN2, SoftMax8
from ovir.ops.pooling import AvgPool16
from ovir.ops.slicing import StridedSlice
from ovir.ops.sorting import TopK11


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((2, 3), "[2,3]"),
        ([np.int64(2), -1], "[2,-1]"),
        ((), "[]"),
        ((0.5, 2), "(0.5, 2)"),
        (["a"], "['a']"),
        ("text", "text"),
    ],
)
def test_shapes_in_messages(value: object, shown: str) -> None:
    with pytest.raises(OperatorError) as caught:
        Operator().require(False, "got {}", value)
    assert caught.value.message == f"got {shown}"


def test_index_types() -> None:
    op = Operator()
    for element_type in (i32, i64, dynamic):
        op.require_index_type("axis", element_type)
    for element_type, known in ((i8, False), (f32, True), (dynamic, True)):
        with pytest.raises(OperatorError, match=f"axis must be i32 or i64, got {element_type}"):
            op.require_index_type("axis", element_type, known=known)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Convert, "destination_type"),
        (ConvertLike, ""),
        (Convolution, "dilations pads_begin pads_end strides"),
        (BinaryConvolution, "dilations mode pad_value pads_begin pads_end strides"),
        (AvgPool16, "exclude-pad pads_begin pads_end"),
        (MVN2, "eps normalize_variance"),
        (StridedSlice, "end_mask"),
        (TopK11, "axis mode sort"),
        (SoftMax8, ""),
    ],
)
def test_attributes_that_the_specification_requires_and_readers_do_not(cls: type[Operator], names: str) -> None:
    specified = [a for a in cls.attributes.values() if a.specified]
    assert sorted(a.name for a in specified) == names.split()
    assert not any(a.required for a in specified)
