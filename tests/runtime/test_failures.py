"""Errors of layers that fail: what explains them."""

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.diagnostics.codes import RUN
from ovir.diagnostics.diagnostic import diagnose
from ovir.runtime.failures import explain_failure, failed


def test_an_output_of_too_many_dimensions_cannot_be_an_array() -> None:
    x, shape = ops.parameter([1], "f32", name="x"), ops.parameter([-1], "i64", name="shape")
    compiled = ovir.compile_model(ovir.Model([ops.reshape(x, shape, False)], [x, shape]))
    assert compiled([np.ones(1, np.float32), np.ones(64, np.int64)])[0].ndim == 64
    with pytest.raises(ovir.RunError, match="an output cannot be an array"):
        compiled([np.ones(1, np.float32), np.ones(65, np.int64)])


def test_errors_with_a_place_keep_it() -> None:
    layer = ops.relu(ops.parameter([2], "f32"))
    error = ovir.RunError(diagnose(RUN, "in a body"))
    assert failed(layer, error, ()) is error


def test_inference_explains_only_what_it_refuses() -> None:
    both = ops.add(ops.parameter([-1], "f32"), ops.parameter([-1], "f32"))
    arrays = [np.ones(size, np.float32) for size in (2, 3)]
    assert explain_failure(both, arrays[:1]) is None
    assert explain_failure(both, [arrays[0], arrays[0]]) is None
    assert "2" in str(explain_failure(both, arrays))


def test_a_constant_that_cannot_be_converted_is_refused_in_the_run() -> None:
    x, texts = ops.parameter([2], "i32", name="x"), ops.constant(np.array(["1", "2"]))
    compiled = ovir.compile_model(ovir.Model([ops.add(x, ops.convert(texts, "i32"))], [x]))
    with pytest.raises(ovir.RunError, match="conversion of string to i32 is not supported"):
        compiled([np.zeros(2, np.int32)])
