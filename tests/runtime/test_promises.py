"""What inference has promised of a tensor holds in every run, however often its shapes have been seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ELEMENT_TYPES, ElementType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.sorting import NonZero
from ovir.runtime import failures
from ovir.runtime.plan import require_promised
from ovir.runtime.step_binder import copy_result


def squeezed(x: Any) -> Any:
    return ops.squeeze(x, ops.constant(np.array([0])))


KINDS: dict[str, Callable[[Any], list[Any]]] = {
    "result": lambda x: [squeezed(x)],
    "sizes": lambda x: [ops.shape_of(squeezed(x))],
    "both": lambda x: [(y := squeezed(x)), ops.shape_of(y)],
    "chain": lambda x: [ops.relu(ops.add(squeezed(x), ops.constant(np.float32([1, 2, 3, 4]))))],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [[3, 3, 3, 3], [1, 3, 1, 3], [2, 3, 2, 3, 2, 3], [1, 1, 3]])
def test_one_answer_in_every_call(kind: str, rows: list[int]) -> None:
    x = ops.parameter([-1, 4], "f32", name="x")
    model = ovir.Model(KINDS[kind](x), [x], kind)
    expected = [array.tolist() for array in ovir.compile_model(model)([np.ones((1, 4), np.float32)]).values()]
    request = ovir.compile_model(model).create_infer_request()
    for count in rows:
        inputs = [np.ones((count, 4), np.float32)]
        if count == 1:
            assert [array.tolist() for array in request.infer(inputs).values()] == expected
        else:
            with pytest.raises(ovir.RunError, match=rf"Squeeze.*dimension 0 of data \[{count},4\] is {count}.*\[4\]"):
                request.infer(inputs)


@ovir.register("Liar", version="promises")
class Liar(ovir.Operator):
    """An operation whose kernel does not keep what its inference promises."""

    def infer(self, x: Any) -> Any:
        return ovir.TensorType(x.element_type, ovir.PartialShape([4]))

    def run(self, x: Any) -> Any:
        return x.copy()


@ovir.register("Backwards", version="promises")
class Backwards(ovir.Operator):
    """An operation whose output is a view of its input, which may not be empty."""

    views = True

    def infer(self, x: Any) -> Any:
        return x

    def run(self, x: Any) -> Any:
        if not x.size:
            raise ValueError("nothing")
        return x[::-1]


def test_kernels_of_users_may_return_views() -> None:
    x = ops.parameter([-1], "f32", name="x")
    model = ovir.Model([ovir.create_layer("Backwards", [x], version="promises")], [x], "backwards")
    request = ovir.compile_model(model).create_infer_request()
    for _ in range(4):
        assert request.infer([np.float32([1, 2, 3])])[0].tolist() == [3, 2, 1]


def test_a_constant_that_cannot_be_folded_fails_in_the_run() -> None:
    x, nothing = ops.parameter([1], "f32", name="x"), ops.constant(np.zeros(0, np.float32))
    back = ovir.create_layer("Backwards", [nothing], version="promises", name="back")
    compiled = ovir.compile_model(ovir.Model([ops.concat([x, back], 0)], [x], "backwards"))
    with pytest.raises(ovir.RunError, match="ValueError: nothing"):
        compiled([np.zeros(1, np.float32)])


def test_kernels_of_users_are_held_against_their_inference() -> None:
    x = ops.parameter([-1], "f32", name="x")
    model = ovir.Model([ovir.create_layer("Liar", [x], version="promises")], [x], "lie")
    request = ovir.compile_model(model).create_infer_request()
    for count in (3, 4, 3, 3, 4):
        inputs = [np.ones(count, np.float32)]
        if count == 4:
            assert request.infer(inputs)[0].shape == (4,)
        else:
            with pytest.raises(ovir.RunError, match=r"f32\[3\].*f32\[4\]"):
                request.infer(inputs)


@pytest.mark.parametrize(
    "outside", [np.zeros((1, 6), int), np.zeros((2, 3), int), np.zeros(3, int), np.zeros((1, 3), np.float32)]
)
def test_outputs_whose_sizes_only_a_run_shows_are_held_against_their_bounds(
    outside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Any] = [*(np.zeros((1, count), int) for count in (3, 5)), outside]
    monkeypatch.setattr(NonZero, "run", lambda self, x: results.pop(0))
    x = ops.parameter([5], "f32", name="x")
    request = ovir.compile_model(ovir.Model([ops.non_zero(x)], [x])).create_infer_request()
    for count in (3, 5):
        assert request.infer([np.ones(5, np.float32)])[0].shape == (1, count)
    with pytest.raises(ovir.RunError, match=r"infer\(\) declared i64\[1,\.\.5\]"):
        request.infer([np.ones(5, np.float32)])


def test_an_operation_without_a_kernel_is_named() -> None:
    @ovir.register("Silent", version="promises")
    class Silent(ovir.Operator):
        def infer(self, x: Any) -> Any:
            return x

    x, net = ops.parameter([2], "f32", name="x"), Net()
    net.result(net.op("Unknown", net.parameter("x", "2")))
    silent = ovir.Model([ovir.create_layer("Silent", [x], version="promises")], [x], "silent")
    for emulate in (None, "f16"):
        with pytest.raises(ovir.RunError, match=r"does not execute Silent of promises\n.*class Silent defines no run"):
            ovir.compile_model(silent, emulate=emulate)
        with pytest.raises(ovir.RunError, match=r"does not execute Unknown of opset1\n.*register a class for it"):
            net.compiled(emulate=emulate)


@pytest.mark.parametrize(("element_type", "dtype", "known"), [("dynamic", "f4", "f32"), ("u4", "u1", "u4")])
def test_failures_are_explained_with_the_types_of_the_inputs(element_type: str, dtype: str, known: str) -> None:
    layer = ops.topk(ops.parameter([-1], element_type), ops.parameter([], element_type), 0, "max", "value")
    infer = failures.inference_for(layer, [np.ones(2, dtype), np.ones((), dtype)])
    assert infer is not None
    assert [str(argument) for argument in infer.args] == [f"{known}[2]", f"{known}[]"]


@pytest.mark.parametrize("outside", [np.float32([1, 2, 3]), np.zeros((4, 1), np.float32)])
def test_copies_of_results_name_the_same_promise(outside: Any) -> None:
    parameter = ops.parameter([4], "f32")
    messages = []
    for check in (lambda: require_promised(parameter[0], outside), lambda: copy_result(0, np.empty(4, "f4"), outside)):
        with pytest.raises(OperatorError, match=r"output 0 as f32.*; infer\(\) declared f32\[4\]") as raised:
            check()
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("element_type", [kind for kind in ELEMENT_TYPES if not kind.is_dynamic], ids=str)
def test_an_array_that_stands_for_a_type_keeps_its_promise(element_type: ElementType) -> None:
    require_promised(ops.parameter([2], element_type)[0], np.zeros(2, element_type.to_dtype()))


def rotary(length: Any) -> Any:
    """Return sines that follow from a size alone, as the positions of a decoder do."""
    steps = ops.range(ops.constant(np.int64(0)), length, ops.constant(np.int64(1)), "f32")
    return ops.sin(ops.multiply(steps, ops.constant(np.float32(0.37))))


def positioned(function: Callable[[Any], Any]) -> ovir.Model:
    x = ops.parameter([-1], "f32", name="x")
    length = ops.gather(ops.shape_of(x), ops.constant(np.int64(0)), ops.constant(np.int64(0)))
    return ovir.Model([ops.add(x, function(length))], [x], "positioned")


@pytest.mark.parametrize("emulate", ["f16", "bf16"])
def test_emulation_does_not_depend_on_the_order_of_sizes(emulate: str) -> None:
    sizes = (900, 31, 5)
    model = positioned(rotary)
    found: dict[int, set[bytes]] = {size: set() for size in sizes}
    for order in (sizes, sizes[::-1], (31, 31, 900, 900, 5, 5)):
        request = ovir.compile_model(model, emulate=emulate).create_infer_request()
        for size in order:
            found[size].add(request.infer([np.zeros(size, np.float32)])[0].tobytes())
    assert {size: len(results) for size, results in found.items()} == dict.fromkeys(sizes, 1)


@pytest.mark.parametrize("sizes", [(3,), (3, 3), (3, 4, 4)])
def test_watches_see_what_follows_from_sizes(sizes: tuple[int, ...]) -> None:
    model = positioned(lambda length: ops.log(ops.subtract(ops.convert(length, "f32"), ops.constant(np.float32(9)))))
    request = ovir.compile_model(model).create_infer_request()
    for size in sizes:
        watch = ovir.Watch("nan")
        request.infer([np.zeros(size, np.float32)], listeners=[watch])
        assert [event.type for event in watch.events][:1] == ["Log"]
