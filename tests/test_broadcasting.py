"""Whatever computes an elementwise operation keeps to the mode pdpd: compiled, lowered and exported models."""

from collections.abc import Iterator

import numpy as np
import pytest

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.lowering.registry import decomposition_of
from ovir.ops import find
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.base.opsets import OPERATIONS
from ovir.ops.base.traits import input_names

CLASSES = [
    cls
    for name, births in OPERATIONS.items()
    for birth in births
    if (cls := find(name, birth)) is not None and issubclass(cls, ElementwiseBase)
]
SHAPES = [((2, 3, 3), (3,), 1), ((2, 3, 4), (3,), 1), ((2, 3, 4), (2, 1), 0), ((2, 3), (3, 1), 1), ((3, 3), (3,), -1)]
"""Shapes of the input that others are broadcast to, of the others, and the axis at which these begin."""


def models(cls: type[ElementwiseBase]) -> Iterator[tuple[ovir.Model, list[Array], Array]]:
    """Yield models of an operation for element types that it takes, with inputs and what ``run`` gives."""
    rng, names = np.random.default_rng(0), input_names(cls)
    for element_type in ("f32", "i32", "boolean"):
        for whole, part, axis in SHAPES:
            shapes = [whole if name in ("a", "x", "then") else part for name in names]
            types = ["boolean" if name == "cond" else element_type for name in names]
            inputs = [ovir.opset13.parameter(shape, kind) for shape, kind in zip(shapes, types, strict=True)]
            attributes = {spec.name: 9 for spec in cls.required_attributes}
            attributes |= {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": axis}
            try:
                layer = ovir.create_layer(cls.type, inputs, attributes, version=f"opset{cls.opset}")
            except ovir.ModelError:
                break  # the operation does not take the type
            numbers = [rng.integers(1, 4, shape) + 2 * index for index, shape in enumerate(shapes)]
            arrays = [
                (array % 2 == 0 if kind == "boolean" else array).astype(ElementType.parse(kind).to_dtype())
                for array, kind in zip(numbers, types, strict=True)
            ]
            assert layer.operator is not None
            op = layer.operator.applied([port.type for port in layer.inputs], [layer.outputs[0].type])
            yield ovir.Model([layer], inputs), arrays, np.asarray(op.run(*arrays))


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.type}-{cls.opset}")
def test_compiled_and_lowered_models(cls: type[ElementwiseBase]) -> None:
    found = list(models(cls))
    assert found
    for model, arrays, wanted in found:
        np.testing.assert_array_equal(ovir.compile_model(model)(arrays)[0], wanted)
        if decomposition_of(cls) is not None:
            model.lower("2021.4")
            np.testing.assert_array_equal(ovir.compile_model(model)(arrays)[0], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.type}-{cls.opset}")
def test_exported_models(cls: type[ElementwiseBase]) -> None:
    for package in ("onnx", "onnx_ir", "onnxruntime"):
        pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")
    from support.export_comparison import check_exported

    if cls.unmatched:
        pytest.skip("ONNX does not have the operation")
    for model, arrays, _ in models(cls):
        assert check_exported(model, arrays, 21) is None
