"""The functions of the opsets: what there is, how it is loaded, and what a call creates."""

import ast
import importlib
import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.building.functions import documentation
from ovir.building.opset import functions
from ovir.building.stubs import stub
from ovir.building.values import as_type
from ovir.core.element_types import ELEMENT_TYPES, ElementType, boolean, nf4, value_range
from ovir.ops import find
from ovir.ops.base.opsets import NEWEST_OPSET, OPERATIONS
from ovir.ops.base.registry import declared_versions

OPSETS = range(1, NEWEST_OPSET + 1)


def module_of(opset: int) -> ModuleType:
    return importlib.import_module(f"ovir.opset{opset}")


def x(*shape: int, dtype: str = "f32") -> ovir.Layer:
    return ops.parameter(list(shape), dtype, name="x")


# --------------------------------------------------------------------------- what there is


@pytest.mark.parametrize("opset", OPSETS)
def test_every_operation_of_an_opset_has_a_function(opset: int) -> None:
    module = module_of(opset)
    for name, version in functions(opset).items():
        function = getattr(module, name)
        assert callable(function)
        assert (function.__name__, function.__module__) == (name, module.__name__)
        assert f"Create {version.type} of opset{version.opset}." in function.__doc__
        assert "name" in inspect.signature(function).parameters


def test_every_operation_version_has_a_function() -> None:
    found = {version for opset in OPSETS for version in functions(opset).values()}
    assert found == {version for versions in OPERATIONS.values() for version in versions.values()}
    for version in found:
        cls = find(version.type, version.opset)
        assert cls is not None
        assert ("The example shows its values." in documentation(cls)) == (">>> " in (cls.__doc__ or ""))


def test_an_opset_loads_no_operation_before_it_is_used() -> None:
    code = "import sys; from ovir import opset13 as ops; ops.relu; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "ovir.ops.activation" in modules or "ovir.ops.unary" in modules
    assert not modules & {f"ovir.ops.{name}" for name in ("recurrent", "reduction", "interpolate", "random")}


@pytest.mark.parametrize(
    "name", ["f16", "f32", "f64", "i4", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean"]
)
def test_types_and_dtypes_of_numpy_name_the_same_element_type(name: str) -> None:
    dtype = np.dtype(ovir.ElementType.parse(name).to_dtype())
    for given in (name, dtype, dtype.type):
        assert str(ops.parameter([1], given).outputs[0].element_type) == name


def test_dir_and_star_import_give_all_functions() -> None:
    names: dict[str, object] = {}
    exec("from ovir.opset17 import *", names)
    assert set(dir(module_of(17))) == set(functions(17)) == names.keys() - {"__builtins__"}


def test_an_unknown_function_is_an_attribute_error_that_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="opset13 has no operation 'rellu'; did you mean relu"):
        ops.rellu  # noqa: B018
    with pytest.raises(AttributeError, match="opset2 has no operation 'xor'"):
        module_of(2).xor  # noqa: B018


# --------------------------------------------------------------------------- what a call creates


def test_a_layer_is_inferred_when_it_is_created() -> None:
    y = ops.convolution(x(1, 3, -1, 8), np.ones((4, 3, 3, 3), np.float32), [1, 1], [1, 1], [1, 1], [1, 1], name="y")
    assert (y.name, y.type, y.version) == ("y", "Convolution", "opset1")
    assert str(y.shape) == "[1,4,1..,8]"
    assert str(y.element_type) == "f32"
    assert y.attributes["strides"] == (1, 1)
    assert y.operator is not None
    assert y.operator.strides == (1, 1)  # type: ignore[attr-defined]


def test_the_version_is_the_one_that_the_opset_has() -> None:
    indices = np.int64([0])
    versions = [module_of(opset).gather(x(4), indices, 0).version for opset in (1, 6, 7, 8, 16)]
    assert versions == ["opset1", "opset1", "opset7", "opset8", "opset8"]


def test_known_values_reach_the_next_layer() -> None:
    data = x(2, 3, 4)
    y = ops.reshape(data, ops.concat([ops.gather(ops.shape_of(data), [0], 0), np.int64([-1])], 0), False)
    assert str(y.shape) == "[2,12]"


def test_outputs_are_unpacked_and_indexed() -> None:
    values, indices = ops.topk(x(2, 5), 3, 1, "max", "value")
    assert [str(port.type) for port in (values, indices)] == ["f32[2,3]", "i32[2,3]"]
    split = ops.split(x(2, 6), 1, 3)
    assert [str(port.shape) for port in split] == ["[2,2]"] * 3
    assert split[2] is split.output(2) is split.outputs[2]
    assert str(ops.relu(split).shape) == "[2,2]"  # the first output
    assert str(ops.concat(split, 0).shape) == "[6,2]"  # all outputs
    with pytest.raises(IndexError, match="no output 3: the layer has 3 outputs"):
        split[3]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64([1, 2]), "f64[2]"),
        (np.int8(3), "i8[]"),
        (2, "i64[]"),
        (0.5, "f32[]"),
        ([1, 2], "i64[2]"),
        ([[1.0, 2.0]], "f32[1,2]"),
        (True, "boolean[]"),
        ("text", "string[]"),
        (["a", "b"], "string[2]"),
        (np.array([1, 2], ml_dtypes.int4), "i4[2]"),
        ([2**64 - 1, 0], "u64[2]"),
    ],
)
def test_constants_have_the_type_of_their_value(value: Any, expected: str) -> None:
    assert str(ops.constant(value).output().type) == expected


@pytest.mark.parametrize("dtype", ["f16", "bf16", "u8", "i4", "u4", "u1", "u2", "u3", "u6", "nf4", "f8e4m3", "boolean"])
def test_constants_are_converted(dtype: str) -> None:
    layer = ops.constant([0, 1, 1], dtype)
    assert str(layer.element_type) == dtype
    model = ovir.Model([layer], [], "m")
    assert np.asarray(ovir.compile_model(model)({})[0]).astype(int).tolist() == [0, 1, 1]


def test_constants_hold_a_copy_unless_memory_is_shared() -> None:
    array = np.zeros(3, np.float32)
    copied, shared = ops.constant(array), ops.constant(array, shared_memory=True)
    array[0] = 1
    assert copied.operator.data.tolist() == [0, 0, 0]  # type: ignore[union-attr]
    assert shared.operator.data.tolist() == [1, 0, 0]  # type: ignore[union-attr]
    assert array.flags.writeable


def test_an_input_that_is_left_out_is_filled_if_a_later_one_is_given() -> None:
    q = x(1, 2, 3, 4)
    layer = ops.scaled_dot_product_attention(q, q, q, scale=0.5)
    assert [str(port.type) for port in layer.inputs[3:]] == ["f32[]", "f32[]"]
    ids, weights = np.int32([0, 1]), np.float32([1, 2])
    for count, missing in ((None, "num_segments"), (2, "default_index")):  # -1 stands for no index in bags only
        with pytest.raises(ovir.InputError, match=f"argument '{missing}' is missing, which comes before 'per_sample_w"):
            ops.embedding_segments_sum(x(4, 2), ids, ids, count, per_sample_weights=weights)


def test_read_value_takes_the_forms_of_openvino() -> None:
    with_value = ops.read_value(x(2), "v", "f32", [2])
    without = ops.read_value("v", "f32", [2])
    named = ops.read_value(variable_id="v", variable_type="f32", variable_shape=[2])
    assert [len(layer.inputs) for layer in (with_value, without, named)] == [1, 0, 0]
    assert {str(layer.output().type) for layer in (with_value, without, named)} == {"f32[2]"}
    with pytest.raises(ovir.InputError, match="argument 'variable_id' is missing"):
        ops.read_value(x(2))


@pytest.mark.parametrize("given", [0, 1, False, True, np.False_, np.True_])
def test_truth_values(given: Any) -> None:
    assert ops.reduce_sum(x(2, 3), 0, given).attributes["keep_dims"] is bool(given)


def test_attributes_can_be_given_as_a_dictionary() -> None:
    layer = ops.grid_sample(x(1, 1, 4, 4), np.zeros((1, 2, 2, 2), np.float32), {"mode": "NEAREST"})
    assert layer.operator.mode == "nearest"  # type: ignore[union-attr]
    assert ops.is_inf(x(2)).operator.detect_negative is True  # type: ignore[union-attr]


def test_what_openvino_lacks_is_a_keyword() -> None:
    layer = ops.divide(x(2, dtype="i32"), 3, m_pythondiv=False)
    assert layer.operator.m_pythondiv is False  # type: ignore[union-attr]


def test_tensor_names_and_rt_info_are_set() -> None:
    y = ops.split(
        x(4), 0, 2, tensor_names=["a", {"b", "c"}], rt_info={"decompression": "", "layout": {"layout": "[N]"}}
    )
    assert [port.names for port in y] == [{"a"}, {"b", "c"}]
    assert y.rt_info.to_dict() == {"decompression": "", "layout": {"layout": "[N]"}} or "decompression" in y.rt_info
    assert ops.result(y[0], tensor_names="out").inputs[0].names == {"a", "out"}


def test_parameters_have_layouts() -> None:
    for layout in ("NCHW", "[N,C,H,W]"):
        port = ops.parameter([1, 3, 4, 4], layout=layout).output()
        assert port.rt_info["layout", "layout"] == "[N,C,H,W]"
    assert ops.parameter([1, 3], layout="N...C").output().rt_info["layout", "layout"] == "[N,...,C]"


# --------------------------------------------------------------------------- arithmetic


def run(layer: ovir.Layer, data: Any) -> Any:
    (parameter,) = [port.source.layer for port in layer.inputs if port.source and port.source.layer.type == "Parameter"]
    return ovir.compile_model(ovir.Model([layer], [parameter], "m"))([data])[0]


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
}


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("other", [3, 1.5, np.float32([2, 3]), [2, 3]], ids=str)
def test_operators_create_layers(symbol: str, other: Any) -> None:
    data = np.float32([5, 7])
    for operands in ((x(2), other), (other, x(2))):
        expected = [data if isinstance(operand, ovir.Layer) else np.float32(operand) for operand in operands]
        np.testing.assert_allclose(run(OPERATORS[symbol](*operands), data), OPERATORS[symbol](*expected), rtol=1e-6)


def test_products_negation_and_absolute_values() -> None:
    data, matrix = np.float32([[1, -2]]), np.float32([[1, 2], [3, 4]])
    assert run(x(1, 2) @ matrix, data).tolist() == (data @ matrix).tolist()
    assert run(matrix @ x(2, 1), data.T).tolist() == (matrix @ data.T).tolist()
    assert run(-x(1, 2), data).tolist() == [[-1, 2]]
    assert run(abs(x(1, 2)), data).tolist() == [[1, 2]]


def test_output_ports_have_operators_too() -> None:
    first, second = ops.split(x(4), 0, 2)
    assert str((first + second * 2).shape) == "[2]"


@pytest.mark.parametrize(
    ("create", "element_type"),
    [
        (lambda: ops.add(x(2, dtype="f16"), 1), "f16"),
        (lambda: ops.add(1, x(2, dtype="i8")), "i8"),
        (lambda: ops.select(np.bool_([1, 0]), x(2, dtype="f16"), 0), "f16"),
        (lambda: ops.select(np.bool_([1, 0]), 1.0, 0.0), "f32"),
        (lambda: ops.prelu(x(2, dtype="f64"), 0.5), "f64"),
        (lambda: x(2, dtype="bf16") * 2.5, "bf16"),
        (lambda: ops.concat([[1, 2], x(2, dtype="u8")], 0), "u8"),
        (lambda: ops.pad(x(2), [1], [1], "constant", 0), "f32"),
        (lambda: ops.one_hot(x(2, dtype="i32"), 3, np.float16(1), 0, -1), "f16"),
        (lambda: ops.scatter_update(x(2, dtype="f64"), [0], [1], 0), "f64"),
        (lambda: ops.fake_quantize(x(2, dtype="f16"), 0, 1, 0, 1, 256), "f16"),
        (lambda: x(2, 2, dtype="i32") @ [[1, 2], [3, 4]], "i32"),
        (lambda: x(2, dtype="f16") * np.sqrt(3), "f16"),
        (lambda: np.sqrt(3) * x(2, dtype="f16"), "f16"),
        (lambda: ops.select(np.bool_([1, 0]), np.float64(1), np.float64(0)), "f32"),
        (lambda: ops.add(x(2, dtype="i64"), np.int64(3)), "i64"),
    ],
)
def test_numbers_take_the_type_of_the_other_operand(create: Any, element_type: str) -> None:
    assert str(create().element_type) == element_type


@pytest.mark.parametrize(
    ("given", "expected"), [(int, "i32"), (float, "f32"), (bool, "boolean"), (np.int64, "i64"), (np.float64, "f64")]
)
def test_types_of_python_and_numpy(given: Any, expected: str) -> None:
    assert str(ops.parameter([1], given).element_type) == expected


@pytest.mark.parametrize("opset", [1, 6, 13])
def test_stubs_have_the_arguments_of_the_functions(opset: int) -> None:
    module = importlib.import_module(f"ovir.opset{opset}")
    text = stub(opset)
    assert max(map(len, text.splitlines())) <= 120
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    own = {version.type.lower() for version in declared_versions() if version.opset == opset}
    assert opset == 1 or {node.name.replace("_", "") for node in found} == own
    for node in found:
        arguments = [*node.args.args, *node.args.kwonlyargs]
        defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + [
            *node.args.defaults,
            *node.args.kw_defaults,
        ]
        parameters = inspect.signature(getattr(module, node.name)).parameters.values()
        assert [argument.arg for argument in arguments] == [parameter.name for parameter in parameters]
        assert [default is None for default in defaults] == [p.default is p.empty for p in parameters], node.name
        assert len(node.args.kwonlyargs) == sum(p.kind is p.KEYWORD_ONLY for p in parameters)
        assert ast.get_docstring(node) == inspect.cleandoc(getattr(module, node.name).__doc__)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ovir.opset"):
            number = int(node.module.removeprefix("ovir.opset"))
            for alias in node.names:
                version = functions(opset)[alias.name]
                assert functions(number)[alias.name] == version != functions(number - 1).get(alias.name)


_INTEGERS, _NUMBERS, _TEXTS = tuple[int, ...], tuple[float, ...], tuple[str, ...]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        *((int, value, 3) for value in (3, np.uint8(3), np.array(3), np.array(3, np.uint16))),
        *((int, value, "an integer") for value in (3.0, np.array(3.0), np.array([3]), "3", None)),
        *(
            (float, value, 1.0)
            for value in (1, True, np.float16(1), np.array(1), np.bool_(True), ml_dtypes.bfloat16(1))
        ),
        *((float, value, "a number") for value in (1j, np.array([1.0]), np.str_("1"), "1")),
        (float, 10**400, "an integer is beyond the numbers of f64"),
        *((bool, value, True) for value in (True, 1, np.bool_(True), np.int64(1))),
        *((bool, value, "True or False") for value in (2, -1, 1.0, "True")),
        (str, "a", "a"),
        (str, 1, "a text"),
        *((_INTEGERS, value, (1, 2)) for value in ([1, 2], np.array([1, 2]), iter((1, np.int8(2))))),
        *((_INTEGERS, value, "a list of integers") for value in ([1, 2.0], "12", 1)),
        *((_NUMBERS, value, (1.0, 2.5)) for value in ([1, 2.5], np.float32([1, 2.5]))),
        *((_NUMBERS, value, "a list of numbers") for value in ([1, "2"], 1.0)),
        (_TEXTS, ["a", "b"], ("a", "b")),
        *((_TEXTS, value, "a list of texts") for value in (["a", 1], "ab")),
    ],
)
def test_attributes_take_what_python_and_numpy_have_for_their_type(kind: Any, value: Any, expected: Any) -> None:
    if isinstance(expected, str) and expected != value:
        with pytest.raises(ValueError, match=expected):
            as_type(kind, value)
    else:
        found = as_type(kind, value)
        assert (found, type(found)) == (expected, type(expected))


# --------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: ops.matmul(x(2, 3), np.ones((4, 5), np.float32), False, False),
         r"opset13.matmul\(data_a=f32\[2,3\], data_b=f32\[4,5\], transpose_a=False, transpose_b=False\): a of shape"),
        (lambda: ops.softmax(x(2), 5), r"opset13.softmax\(data=f32\[2\], axis=5\): axis 5 is outside \[-1, 0\]"),
        (lambda: ops.softmax(x(2), "a"), "argument 'axis': expected an integer, got 'a'"),
        (lambda: ops.reduce_sum(x(2), 0, 2), "argument 'keep_dims': expected True or False, got 2"),
        (lambda: ops.transpose(x(2), object()), "argument 'input_order': .* is neither numbers nor strings"),
        (lambda: ops.parameter([1, "a"]), "opset13.parameter.*'a' is not a dimension"),
        (lambda: ops.parameter([1], "f31"), "'f31' is not an element type"),
        (lambda: ops.constant([-1, 2**63]), "no integer type has both -1 and 9223372036854775808"),
        (lambda: ops.constant(2**64), "18446744073709551616 exceeds the 64 bits of integers"),
        (lambda: ops.constant(-(2**63) - 1), "-9223372036854775809 exceeds the 64 bits of integers"),
        (lambda: ops.constant(2**256 - 1), f"{2**256 - 1} exceeds"),
        (lambda: ops.constant(2**256), r"2\^256 or more exceeds"),
        (lambda: ops.constant(10**9999), r"2\^33215 or more exceeds the 64 bits of integers"),
        (lambda: ops.constant(1, "dynamic"), "a constant must have an element type, not dynamic"),
        (lambda: x(2, dtype="i32") + 0.5, r"Add\(a=i32\[2\], b=0.5\): argument 'b': 0.5 is not a value of i32"),
        (lambda: ops.relu(ops.result(x(2))), "argument 'node': Result has no output that can be read"),
        (lambda: ops.relu(x(2), name=3), "argument 'name': expected a text, got 3"),
        (lambda: ops.relu(x(2), tensor_names=[""]), r"argument 'tensor_names': expected texts, got ''"),
        (lambda: ops.relu(x(2), tensor_names=[{"a", 1}]), "argument 'tensor_names': expected texts, got {"),
        (lambda: ops.relu(x(2), rt_info={"a": 1}), "argument 'rt_info': expected texts for 'a', got 1"),
        (lambda: ops.relu(x(2), rt_info={"a": {"b": 1}}), "argument 'rt_info': expected texts for 'a', got {'b': 1}"),
        (lambda: ops.tensor_iterator().set_body(x(2)), "expected a Model, got <layer"),
        (lambda: ops.concat(3, 0), "argument 'nodes': expected a list of layers, got 3"),
        (lambda: ops.gelu(x(2), "tan"), "'tan' is not one of"),
        (lambda: ops.grid_sample(x(1, 1, 2, 2), x(1, 1, 1, 2), {"mod": 1}), "GridSample has no attribute 'mod'"),
        (lambda: ops.roi_pooling(x(1, 1, 4, 4), x(1, 5), [2, 2]), "argument 'spatial_scale' is missing"),
    ],
)  # fmt: skip
def test_errors_name_the_call_and_its_line(create: Any, message: str) -> None:
    with pytest.raises(ovir.OvirError, match=message) as caught:
        create()
    assert caught.value.diagnostic.file == __file__
    assert caught.value.diagnostic.line is not None


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: x(2, dtype="f16") * 1e6, "1000000.0 is not a value of f16"),
        (lambda: ops.constant(1e39), r"1e\+39 is not a value of f32"),
        (lambda: ops.constant([0, -1e39], "f32"), r"-1e\+39 is not a value of f32"),
        (lambda: ops.constant(np.float64([[1e39]]), "bf16"), r"1e\+39 is not a value of bf16"),
        (lambda: ops.constant(1e9, "f8e4m3"), "1000000000.0 is not a value of f8e4m3"),
        (lambda: ops.constant(np.inf, "f8e4m3"), "inf is not a value of f8e4m3"),
        (lambda: ops.constant(-1.0, "f8e8m0"), "-1.0 is not a value of f8e8m0"),
        (lambda: ops.constant(7.5, "f4e2m1"), "7.5 is not a value of f4e2m1"),
        (lambda: ops.constant(2**70, "f16"), r"1.18\d*e\+21 is not a value of f16"),
        (lambda: ops.constant([0.5, 2**1000], "f32"), r"1.07\d*e\+301 is not a value of f32"),
        (lambda: x(2) + 1j, "1j is not a value of f32"),
        (lambda: ops.constant(1 + 2j, "f32"), r"\(1\+2j\) is not a value of f32"),
        (lambda: ops.constant(np.complex64([2, 3]), "f64"), r"\(2\+0j\) is not a value of f64"),
        (lambda: ops.constant(1j), "no element type for NumPy's complex128"),
        (lambda: ops.constant("a", "i32"), "'a' is not a value of i32"),
        (lambda: ops.constant(np.array(["2020-01-01"], "M8[D]"), "i64"), "datetime64.* are not real numbers"),
        (lambda: ops.constant(10**400, "f32"), "an integer is beyond the numbers of f64"),
        (lambda: ops.constant(np.longdouble("1e4000"), "f64"), "is not a value of f64"),
        (lambda: ops.elu(x(2), 10**9999), "argument 'alpha': an integer is beyond the numbers of f64"),
        (lambda: ops.elu(x(2), 1j), "argument 'alpha': expected a number, got 1j"),
        (lambda: ops.elu(x(2), np.complex64(1)), "argument 'alpha': expected a number, got "),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_that_an_element_type_lacks_are_refused(create: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        create()


@pytest.mark.filterwarnings("error")
def test_infinity_and_nan_are_values_where_the_type_has_them() -> None:
    found = ops.constant([np.inf, -np.inf, np.nan, 65504.0, 1e-9], "f16").operator.data
    np.testing.assert_array_equal(found, np.float16([np.inf, -np.inf, np.nan, 65504, 0]))
    assert np.isnan(ops.constant(np.nan, "f8e4m3").operator.data.astype(np.float32))
    assert ops.constant([2**70, 1.0], "f32").operator.data.tolist() == [2.0**70, 1.0]


def test_wrong_arguments_are_a_type_error_that_shows_the_signature() -> None:
    with pytest.raises(TypeError, match=r"opset13.softmax\(data, axis, name=None.*missing a required argument: 'axis'"):
        ops.softmax(x(2))
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'; did you mean 'axis'"):
        ops.softmax(x(2), axes=1)


def test_a_later_error_names_the_line_that_created_the_layer() -> None:
    parameter = ops.parameter([2, 3], name="x")
    y = ops.reshape(parameter, [3, 2], False, name="y")
    model = ovir.Model([y], [parameter], "m")
    with pytest.raises(ovir.ModelError) as caught:
        model.reshape([2, 4])
    assert (caught.value.diagnostic.file, caught.value.diagnostic.line) == (__file__, y.line)


def test_a_missing_output_is_reported_where_it_is_asked_for() -> None:
    y = ops.relu(x(2), name="y")
    message = r"'y' \(ReLU, opset1\): there is no output 1: the layer has 1 output"
    with pytest.raises(ovir.InputError, match=message) as caught:
        y[1]
    assert (caught.value.diagnostic.file, caught.value.diagnostic.line) == (__file__, y.line + 3)


def test_names_of_too_many_tensors_are_explained() -> None:
    with pytest.raises(ovir.InputError, match=r"names for 2 tensors, but the layer has 1\n  hint: .*\[\{'a', 'b'\}\]"):
        ops.parameter([1], tensor_names=["a", "b"])
    assert ops.parameter([1], tensor_names=[{"a", "b"}]).outputs[0].names == {"a", "b"}


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x + None, "b"),
        (lambda x: None - x, "a"),
        (lambda x: x @ None, "b"),
        (lambda x: ops.add(x, None), "right_node"),
        (lambda x: ops.matmul(None, x, False, False), "data_a"),
        (lambda x: ops.concat([x, None], 0), r"nodes\[1\]"),
        (lambda x: ops.select(x, None, x), "then_node"),
        (lambda x: ops.loop(None, np.array(True)), "trip_count"),
    ],
)
def test_none_is_no_input(make: Any, name: str) -> None:
    message = f"argument '{name}': expected a layer, a port, an array or a number, got None"
    with pytest.raises(ovir.InputError, match=message):
        make(ops.parameter([2], "f32", name="x"))


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "i64", "u8", "boolean", "string", "i4", "nf4", "f8e4m3"])
def test_types_of_openvino_are_element_types(name: str) -> None:
    openvino = pytest.importorskip("openvino")
    given = getattr(openvino.Type, name)
    assert str(ops.parameter([1], given).outputs[0].element_type) == name
    assert str(ops.convert(x(1), given).outputs[0].element_type) == name


@pytest.mark.parametrize("text", ["[]", "[1,?]", "[2..5,..7,3..]", "[...]"])
def test_shapes_of_openvino_are_shapes(text: str) -> None:
    openvino = pytest.importorskip("openvino")
    shape = openvino.PartialShape(text)
    assert str(ops.parameter(shape, "f32").outputs[0].shape) == text
    if shape.rank.is_static:
        assert str(ops.parameter(list(shape), "f32").outputs[0].shape) == text


# --------------------------------------------------------------------------- every value of every type

_NUMBERS = [0, 1, -1, 0.5, -0.5, 2, 3, 4, 7, 8, -8, -9, 15, 16, 63, 64, 127, 128, -128, -129, 255, 256, 65504, 65536]
_NUMBERS += [sign * 2**bits + more for bits in (15, 16, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)]
_NUMBERS += [2.0**63, 2.0**64, 1e39, 1e300, np.nan, np.inf, -np.inf]
_SOURCES = [np.dtype(kind) for kind in "?bBhHiIqQefdg"] + [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int2", "uint2", "int4", "uint4")
]
_INTEGRAL = [kind for kind in ELEMENT_TYPES if kind.is_integral or kind in (boolean, nf4)]


_HELD = {
    **{str(t): "integers from {} to {}".format(*value_range(t)) for t in _INTEGRAL if t not in (boolean, nf4)},
    "boolean": "False and True",
    "nf4": "codes from 0 to 15",
}


def _exact(value: Any) -> Any:
    """Return a number as an integer of Python where it is one, otherwise as a float."""
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    number = value if isinstance(value, np.longdouble) else float(value)
    return int(number) if np.isfinite(number) and number == np.trunc(number) else float(number)


def _held_exactly(number: Any, element_type: ElementType) -> bool:
    low, high = (0, 1) if element_type == boolean else value_range(element_type)
    return isinstance(number, int) and low <= number <= high


@pytest.mark.slow
@pytest.mark.parametrize("source", _SOURCES, ids=str)
@pytest.mark.parametrize("target", _INTEGRAL, ids=str)
@pytest.mark.filterwarnings("ignore:.*(overflow|invalid value) encountered in cast:RuntimeWarning")
def test_integers_of_arrays_are_exact_or_refused(source: np.dtype[Any], target: ElementType) -> None:
    for number in _NUMBERS:
        wide = np.array(number)
        array = (wide if wide.dtype != object else np.array(float(number))).astype(source).reshape(1)
        value = _exact(array[0])
        if _held_exactly(value, target):
            assert _exact(ops.constant(array, target).operator.data[0]) == value
        else:
            with pytest.raises(ovir.InputError, match=f"is not a value of {target}, which holds {_HELD[str(target)]}"):
                ops.constant(array, target)


@pytest.mark.parametrize("target", _INTEGRAL, ids=str)
@pytest.mark.parametrize("form", [lambda x: x, lambda x: [x], lambda x: [[x, 1]]])
def test_integers_of_python_are_exact_or_refused(target: ElementType, form: Any) -> None:
    for number in _NUMBERS:
        if _held_exactly(_exact(number), target):
            assert _exact(ops.constant(form(number), target).operator.data.flat[0]) == number
        else:
            with pytest.raises(ovir.InputError, match=f"is not a value of {target}|exceeds the 64 bits of integers"):
                ops.constant(form(number), target)
