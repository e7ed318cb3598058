"""Compiled models, requests and results: what they own, keep and share, and how they are shown."""

import ast
import copy
import gc
import inspect
import pickle
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.builder import Net, output

import ovir
from ovir.graph.layers import Layer
from ovir.runtime.executor import Executor
from ovir.runtime.state import Variables, VariableValue

ONES = np.ones((2, 3), np.float32)


def plus_one(shape: str = "2,3") -> Net:
    net = Net()
    net.result(net.op("Add", net.parameter("x", shape), net.const(np.float32(1)), name="sum"))
    return net


def test_a_compiled_model_stays_valid_when_the_model_is_reshaped() -> None:
    model = plus_one("?,3").model()
    port, result = model.inputs[0], model.outputs[0]
    compiled = ovir.compile_model(model)
    request = compiled.create_infer_request()
    request.infer([ONES])
    model.reshape([5, 3])
    assert (str(compiled.inputs[0].shape), str(model.inputs[0].shape)) == ("[?,3]", "[5,3]")
    for run in (compiled, request.infer, compiled.create_infer_request().infer):
        results = run({port: ONES}, taps=["sum"])
        np.testing.assert_array_equal(results[result], 2 * ONES)
        np.testing.assert_array_equal(results[compiled.outputs[0]], 2 * ONES)
        np.testing.assert_array_equal(results.taps["sum"][0], 2 * ONES)
    with pytest.raises(ovir.InputError, match=re.escape("takes shape [5,3]")):
        ovir.compile_model(model)([ONES])
    assert ovir.compile_model(model)([np.ones((5, 3), np.float32)])[0].shape == (5, 3)


def test_a_compiled_model_stays_valid_when_the_model_is_edited() -> None:
    model = plus_one("?,3").model()
    compiled = ovir.compile_model(model)
    model.connect(model.inputs[0], model.outputs[0])
    model.infer_shapes()
    np.testing.assert_array_equal(compiled([ONES])[0], 2 * ONES)
    np.testing.assert_array_equal(ovir.compile_model(model)([ONES])[0], ONES)


def test_the_state_of_a_request_outlives_a_reshape_of_the_model() -> None:
    compiled = running_total()
    request = compiled.create_infer_request()
    request.infer([ONES])
    compiled.model.reshape([2, 3])
    np.testing.assert_array_equal(request.infer([ONES])[0], 2 * ONES)


@pytest.mark.slow
def test_a_model_does_not_keep_its_compiled_models() -> None:
    model = plus_one("?,3").model()
    reference = weakref.ref(ovir.compile_model(model))
    gc.collect()
    assert reference() is None


def test_a_request_runs_once_at_a_time() -> None:
    request = plus_one().compiled().create_infer_request()
    inside, go_on = threading.Event(), threading.Event()

    class Waiting:
        def will_run(self, layer: Layer, inputs: Sequence[Any]) -> None:
            inside.set()
            go_on.wait(10)

        def did_run(self, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            pass

    thread = threading.Thread(target=request.infer, args=([ONES],), kwargs={"listeners": [Waiting()]})
    thread.start()
    assert inside.wait(10)
    with pytest.raises(ovir.InputError, match="this request is running"):
        request.infer([ONES])
    go_on.set()
    thread.join()
    np.testing.assert_array_equal(request.infer([ONES])[0], 2 * ONES)


def test_what_a_listener_raises_comes_through() -> None:
    class StopError(Exception):
        pass

    class Stopping:
        def will_run(self, layer: Layer, inputs: Sequence[Any]) -> None:
            raise StopError(layer.name)

        def did_run(self, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            pass

    compiled = plus_one().compiled()
    with pytest.raises(StopError, match="sum"):
        compiled([ONES], listeners=[Stopping()])
    np.testing.assert_array_equal(compiled([ONES])[0], 2 * ONES)


def test_taps_of_usual_steps_need_no_other_plan() -> None:
    compiled = plus_one().compiled()
    assert compiled.plan(["sum"]) is compiled.plan()
    np.testing.assert_array_equal(compiled([ONES], taps=["x"]).taps["x"][0], ONES)


def test_listeners_that_want_no_more_get_the_run_of_others() -> None:
    net = plus_one()
    net.op("Abs", net.const(np.float32(-1)), name="folded")

    class Clock(ovir.Listener):
        sees_tensors = False

    request, clock = net.compiled().create_infer_request(), Clock()
    kept = []
    for wanted in ([], ["sum"], ["x", "sum"], ["folded"], ["folded"], ["folded", "sum"]):
        clock.wanted_steps = wanted
        request.infer([ONES], listeners=[clock])
        kept.append(request._watched)
    assert kept[:3] == [None] * 3
    assert kept[3] is kept[4] is not kept[5]


def test_sizes_that_cannot_be_allocated() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "1073741824,1073741824")))
    with pytest.raises(ovir.RunError, match=r"take 4.6 EB \(4,611,686,018,427,387,904 bytes\) at once"):
        net.compiled().create_infer_request()


def test_sizes_that_do_not_fit_at_run_time_are_the_datas_fault() -> None:
    net = Net()
    net.result(net.op("Concat", net.parameter("a", "?,?"), net.parameter("b", "?,?"), axis=0, name="joined"))
    with pytest.raises(ovir.RunError, match=r"OVIR801\] layer 2 'joined'.*") as caught:
        net.compiled()([ONES, np.ones((2, 4), np.float32)])
    assert "fault of ovir" not in str(caught.value)


def drawn_graph(rng: np.random.Generator, rows: int = 4, columns: int = 6) -> Net:
    """A model of many views and of steps that may overwrite their inputs; it may have one result several times."""
    net = Net()
    values = [net.parameter(name, f"{rows},{columns}") for name in "xy"]
    for _ in range(rng.integers(4, 25)):
        a, b = (values[i] for i in rng.integers(max(len(values) - 6, 0), len(values), 2))
        kind = rng.integers(6)
        if kind == 0:
            values.append(net.op(str(rng.choice(["Add", "Multiply", "Subtract", "Maximum"])), a, b))
        elif kind == 1:
            values.append(net.op(str(rng.choice(["ReLU", "Negative", "Abs", "Sigmoid", "Floor"])), a))
        elif kind == 2:
            flat = net.op("Reshape", a, net.const(np.int64([columns, -1])), special_zero="false")
            values.append(net.op("Transpose", flat, net.const(np.int64([1, 0]))))
        elif kind == 3:
            parts = net.op("Split", a, net.const(np.int64(1)), num_splits=2, outputs=2)
            values.append(net.op("Concat", output(parts, 1), net.op("ReLU", parts), axis=1))
        elif kind == 4:
            order = net.const(np.arange(rows)[::-1])
            values.append(net.op("Gather", a, order, net.const(np.int64(0)), opset=8))
        else:
            ones = net.const(np.ones((1, columns), np.float32))
            values.append(net.op("ScatterUpdate", a, net.const(np.int64([1])), ones, net.const(np.int64(0)), opset=3))
    for i in rng.integers(0, len(values), 3):
        net.result(values[i])
    net.result(values[-1])
    return net


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_memory_plan_of_random_graphs(seed: int) -> None:
    """Buffers, views and in-place steps against each step computed on copies."""
    rng = np.random.default_rng(seed)
    net = drawn_graph(rng)
    compiled = net.compiled()
    request = compiled.create_infer_request()
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for share in rng.random(4) < 0.5:
        inputs = [rng.standard_normal((4, 6)).astype(np.float32) for _ in range(2)]
        untouched = [array.copy() for array in inputs]
        results = list(request.infer(inputs, share_outputs=bool(share)).values())
        for result, expected in zip(results, _on_copies(compiled, inputs), strict=True):
            np.testing.assert_array_equal(result, expected)
        for array, before in zip(inputs, untouched, strict=True):
            np.testing.assert_array_equal(array, before)
        for array, before in held:
            np.testing.assert_array_equal(array, before)
        if not share:
            held += [(array, array.copy()) for array in results]


def _on_copies(compiled: ovir.CompiledModel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    plan = compiled.plan()
    slots = {**plan.constants, **dict(zip(plan.parameters, inputs, strict=True))}
    with np.errstate(all="ignore"):
        for step in plan.steps:
            result = step.operator.run(*(np.array(slots[i]) for i in step.inputs))
            outputs = result if isinstance(result, tuple) else (result,)
            slots.update((slot, np.array(array)) for slot, array in zip(step.outputs, outputs, strict=True))
    return [slots[slot] for slot in plan.results]


def test_type_checkers_let_a_listener_define_one_method() -> None:
    # Of a protocol, they count methods as abstract whose body is only a docstring.
    tree = ast.parse(inspect.getsource(ovir.Listener))
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [method.name for method in methods] == ["__init__", "will_run", "did_run"]
    assert all(len(method.body) > 1 for method in methods)


@pytest.mark.parametrize("listeners", [[print], print, [ovir.Watch]])
def test_listeners_of_other_types(listeners: Any) -> None:
    compiled = ovir.compile_model("examples/xml/digits.xml")
    with pytest.raises(ovir.InputError, match=r"not a listener|must be a list|got the class Watch"):
        compiled(np.zeros((1, 1, 8, 8), np.float32), listeners=listeners)


def test_values_of_variables_are_taken_as_inputs_are() -> None:
    request = running_total().create_infer_request()
    (variable,) = request.query_state()
    for given in np.full((2, 3), 2.0), [[2, 2, 2]] * 2:
        variable.value = given
        assert variable.value is not None
        assert variable.value.dtype == np.float32
        assert request.infer([ONES])[0].tolist() == (ONES + 2).tolist()


@pytest.mark.parametrize(
    "value", [np.ones(3, np.float32), np.ones((2, 2)), np.full((2, 3), 1e300), np.array(["a"]), "abc"]
)
def test_variables_and_inputs_refuse_the_same_values_in_the_same_words(value: Any) -> None:
    request = running_total().create_infer_request()
    (variable,) = request.query_state()
    variable.value = ONES
    with pytest.raises(ovir.InputError) as of_input:
        request.infer([value])
    expected = of_input.value.diagnostic.message.replace("input 'x'", "variable 'v'")
    with pytest.raises(ovir.InputError) as of_variable:
        variable.value = value
    assert of_variable.value.diagnostic.message == expected
    assert "'readvalue" in str(of_variable.value)
    np.testing.assert_array_equal(variable.value, ONES)  # the refused value changes nothing


# --------------------------------------------------------------------------- representations and copies


def running_total() -> ovir.CompiledModel:
    """A model that adds its input to a state."""
    net = Net()
    x = net.parameter("x", "2,3")
    zero = net.const(np.zeros((2, 3), np.float32))
    state = net.op("ReadValue", zero, opset=6, variable_id="v", variable_type="f32", variable_shape="2,3")
    total = net.op("Add", state, x, name="total")
    net.op("Assign", total, opset=6, variable_id="v")
    net.result(total)
    return net.compiled()


def test_a_compiled_model_shows_its_inputs_and_outputs() -> None:
    compiled = running_total()
    assert repr(compiled) == "<CompiledModel 'test': x f32[2,3] -> total f32[2,3]>"
    assert (compiled.input(), compiled.output()) == (compiled.inputs[0], compiled.outputs[0])


def test_a_request_shows_its_variables() -> None:
    request = running_total().create_infer_request()
    assert repr(request.query_state()) == "[<Variable 'v': not assigned>]"
    request.infer([ONES])
    assert repr(request) == "<InferRequest of 'test': idle, variables: v>"
    assert repr(request.query_state()) == "[<Variable 'v': f32[2,3]>]"
    request.reset_state()
    assert repr(request.query_state()) == "[<Variable 'v': not assigned>]"


def test_results_show_a_number_or_the_range_of_numbers() -> None:
    net = Net()
    for name, shape in (("x", "1"), ("y", "3"), ("z", "0")):
        net.result(net.parameter(name, shape))
    shown = net.compiled()([np.float32(values) for values in ([1.5], [1, 2, 3], [])])._repr_html_()
    assert re.findall(">([^<>]*)</td></tr>", shown) == ["1.5", "1 to 3", ""]


def test_a_long_list_of_outputs_is_shortened() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(8):
        net.result(net.op("Abs", x, name=f"abs{i}"))
    shown = repr(net.compiled()([ONES]))
    assert shown.startswith("<Results: abs0 f32[2,3], abs1 ")
    assert shown.endswith("abs5 f32[2,3], and 2 more>")


DUPLICATES = pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])


@DUPLICATES
def test_a_copy_of_a_compiled_model_has_a_state_of_its_own(duplicate: Callable[[Any], Any]) -> None:
    compiled = running_total()
    compiled([ONES])
    other = duplicate(compiled)
    np.testing.assert_array_equal(other([ONES])["total"], ONES)
    np.testing.assert_array_equal(compiled([ONES])["total"], 2 * ONES)


@DUPLICATES
def test_requests_are_not_copied(duplicate: Callable[[Any], Any]) -> None:
    with pytest.raises(ovir.InputError, match="InferRequest objects cannot be pickled") as caught:
        duplicate(running_total().create_infer_request())
    assert "pickle the compiled model, and create a request where it is restored" in str(caught.value)


def test_results_can_be_pickled() -> None:
    restored = pickle.loads(pickle.dumps(running_total()([ONES])))
    np.testing.assert_array_equal(restored["total"], ONES)


def test_results_by_every_key() -> None:
    net = Net()
    y = net.op("Relu", net.parameter("x", "2"), name="y")
    for end in (y, y, y, net.op("Abs", y, name="z")):
        net.result(end)
    results = net.compiled()(np.float32([1, -2]))
    assert list(results.to_dict()) == ["y", "y_2", "y_3", "z"]
    for index, port in enumerate(results):
        for key in (index, index - 4, np.int64(index), port, port.layer.name, port.layer.key):
            assert results[key] is results[index]
    assert results["y"] is results[0]
    assert results["z"] is results[3]
    assert [key in results for key in (4, -5, "w", ("y",), [])] == [False] * 5


def test_the_size_of_a_step_counts_weights_that_it_decompresses() -> None:
    net = Net()
    codes = net.op("Convert", net.const(np.ones((512, 256), np.int8)), destination_type="f16")
    weights = net.op("Convert", net.op("Multiply", codes, net.const(np.float16(0.5))), destination_type="f32")
    product = net.op("MatMul", net.op("Relu", net.parameter("x", "2,256")), weights, transpose_b="true")
    net.result(net.op("Reshape", product, net.const(np.int64([1024]))))
    plan = net.compiled(keep_compressed=True).plan()
    walk = Executor(plan, Variables()).walk([np.ones((2, 256), np.float32)])
    found = {seen.layer.type: (seen.size, seen.input_shapes) for seen in walk}
    assert found["MatMul"] == (8 * 256 + 8 * 512 + 4 * 512 * 256, [(2, 256), (512, 256)])
    assert found["Reshape"] == (2 * 8 * 512 + 8, [(2, 512), (1,)])


def test_variables_of_one_shape_use_two_arrays_in_turn() -> None:
    content, used = VariableValue(), []
    for number in range(6):
        content.value = np.full(3, number)
        used.append(content.value)
        content.commit()
        assert content.value.tolist() == [number] * 3
    assert len({id(array) for array in used}) == 2
    content.value = np.zeros(3)
    assert content.value.dtype == np.float64
    content.value = first = content.value
    content.value = np.ones(3)
    assert first.tolist() == [0, 0, 0]
    content.roll_back()
    assert content.value.tolist() == [5, 5, 5]
