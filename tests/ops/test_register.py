"""Operations that users add."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
import ovir.tokenizers
from ovir.core.arrays import Array
from ovir.ops import import_all
from ovir.ops.base import opsets, registry
from ovir.ops.base.index import VERSIONS
from ovir.ops.base.traits import ALL


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_users", {})


def model_text(**attributes: object) -> bytes:
    net = Net()
    net.result(net.op("Swirl", net.parameter("x", "2,3"), name="swirl", **attributes))
    text = net.xml().replace('type="Swirl" version="opset1"', 'type="Swirl" version="extension"')
    declared = '<port id="1" precision="FP32" names="swirl"><dim>2</dim><dim>3</dim></port>'
    return text.replace('<port id="1" precision="UNSPECIFIED" names="swirl"/>', declared).encode()


def register_swirl() -> None:
    @ovir.register("Swirl", version="extension")
    class Swirl(ovir.Operator):
        """Each row rolled by ``turns`` times its number."""

        turns: int = ovir.attribute(default=1, minimum=0)

        def infer(self, data: ovir.TensorType) -> ovir.TensorType:
            self.require_rank("data", data.shape, 2)
            return data

        def run(self, data: Array) -> Array:
            columns = np.arange(data.shape[1]) - self.turns * np.arange(data.shape[0])[:, None]
            return np.take_along_axis(data, columns % data.shape[1], axis=1)


def test_a_registered_operation_is_read_inferred_and_run() -> None:
    register_swirl()
    model = ovir.read_model(model_text(turns=2))
    assert str(model.outputs[0].shape) == "[2,3]"
    assert ovir.check(model_text(turns=2)) == []
    result = ovir.compile_model(model)([np.arange(6, dtype=np.float32).reshape(2, 3)])[0]
    np.testing.assert_array_equal(result, [[0, 1, 2], [4, 5, 3]])


def test_its_attributes_are_checked() -> None:
    register_swirl()
    with pytest.raises(ovir.ModelError, match="attribute 'turns': -1 is below 0"):
        ovir.read_model(model_text(turns=-1))
    assert [d.message for d in ovir.check(model_text(twists=1))] == [
        "Swirl of extension has no attribute 'twists'; it is ignored"
    ]


def test_without_it_the_model_is_read_and_not_run() -> None:
    model = ovir.read_model(model_text())
    assert str(model.outputs[0].type) == "f32[2,3]"
    (found,) = ovir.check(model_text())
    assert (found.code, found.severity) == ("OVIR221", ovir.Severity.INFO)
    assert found.message == (
        "1 layer needs a user's extension (Swirl), but no such operation is registered; "
        "inference continues with the declared types"
    )
    with pytest.raises(ovir.RunError, match=r"Swirl.*\n?.*ovir\.register"):
        ovir.compile_model(model)


def test_what_an_opset_has_is_not_registered() -> None:
    with pytest.raises(ovir.InputError, match="opset1 already has an operation Relu"):
        ovir.register("Relu", version="opset1")
    with pytest.raises(ovir.InputError, match="Half has no method 'infer'"):
        ovir.register("Swirl", version="extension")(type("Half", (ovir.Operator,), {}))
    with pytest.raises(ovir.InputError, match=r"derived from ovir\.Operator, got <class 'int'>"):
        ovir.register("Swirl", version="extension")(int)  # type: ignore[type-var]


@pytest.mark.parametrize("annotations", [{}, {"turns": dict}], ids=["none", "of another type"])
def test_attributes_need_a_type(annotations: dict[str, Any]) -> None:
    body = {"turns": ovir.attribute(), "infer": lambda self, data: data, "__annotations__": annotations}
    with pytest.raises(ovir.InputError, match="attribute 'turns' of Swirl is annotated with no type"):
        ovir.register("Swirl", version="extension")(type("Swirl", (ovir.Operator,), body))


def test_its_faults_are_its_own() -> None:
    @ovir.register("Swirl", version="extension")
    class Broken(ovir.Operator):
        """Divides by zero, where it is inferred."""

        def infer(self, data: ovir.TensorType) -> ovir.TensorType:
            raise ZeroDivisionError("oh")

    (found,) = (d for d in ovir.check(model_text()) if d.code == "OVIR999")
    assert found.hint is not None
    line = Broken.infer.__code__.co_firstlineno + 1
    assert found.hint.startswith("this is a fault of the class Broken, which was registered for Swirl; it fails in ")
    assert found.hint.endswith(f"test_register.py, line {line}")


def extended(kind: str, version: str, precision: str = "FP32") -> str:
    text = model_text().decode().replace('type="Swirl" version="extension"', f'type="{kind}" version="{version}"')
    return text.replace('precision="FP32"', f'precision="{precision}"')


@pytest.mark.parametrize(
    ("kind", "version", "code", "message"),
    [
        ("RaggedToSparse", "extension", "OVIR221", "1 layer needs openvino_tokenizers (RaggedToSparse), but"),
        ("NumericToString", "Extension", "OVIR221", "1 layer needs openvino_tokenizers (NumericToString), but"),
        ("Swirl", "Extension", "OVIR221", "1 layer needs a user's extension (Swirl), but"),
        ("NumericToString", "openvino_tokenizers", "OVIR202", "'openvino_tokenizers' is not an opset"),
        ("Swirl", "my_library", "OVIR202", "'my_library' is not an opset"),
        ("Swirl", "experimental", "OVIR202", "'experimental' is not an opset"),
        ("ReLU", "1", "OVIR202", "'1' is not an opset"),
        ("Swirl", "1", "OVIR202", "'1' is not an opset"),
        ("Swirl", "opset99", "OVIR202", "'opset99' is not an opset"),
        ("Swirl", "opset1", "OVIR201", "no opset has an operation 'Swirl'"),
    ],
)
def test_one_code_for_one_cause(kind: str, version: str, code: str, message: str) -> None:
    (found,) = ovir.check(extended(kind, version))
    assert found.code == code
    assert found.message.startswith(message)
    assert "did you mean" not in (found.hint or "")


def test_an_extension_is_reported_once() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(3):
        x = net.op("RaggedToRagged", net.op("Swirl", x))
    net.result(x)
    text = net.xml()
    for kind in ("RaggedToRagged", "Swirl"):
        text = text.replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="extension"')
    (found,) = ovir.check(text)
    assert (found.code, found.severity, found.layer_id) == ("OVIR221", ovir.Severity.ERROR, 1)
    assert "6 layers need openvino_tokenizers (RaggedToRagged) and a user's extension (Swirl)" in found.message
    assert [d.code for d in ovir.read_model(text).diagnostics] == ["OVIR221"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda data: data.astype(np.int64), r"Broken\.run gave output 0 as i64\[2,3\]; infer\(\) declared f32"),
        (lambda data: data.tolist(), r"Broken\.run gave output 0 as list, which is not an array"),
        (lambda data: None, r"Broken\.run gave output 0 as NoneType"),
        (lambda data: (), r"Broken\.run gave 0 outputs; the layer has 1"),
    ],
)
def test_a_run_that_breaks_the_promise_of_infer(returned: Callable[[Array], Any], message: str) -> None:
    @ovir.register("Swirl", version="extension")
    class Broken(ovir.Operator):
        """Returns something else than it infers."""

        def infer(self, data: ovir.TensorType) -> ovir.TensorType:
            return data

        def run(self, data: Array) -> Any:
            return returned(data)

    compiled = ovir.compile_model(ovir.read_model(model_text()))
    with pytest.raises(ovir.RunError, match=message) as raised:
        compiled([np.zeros((2, 3), np.float32)])
    found = raised.value.diagnostic
    assert found.code == "OVIR999"
    assert found.hint == "this is a fault of the class Broken, which was registered for Swirl"


def test_kernels_of_users_cannot_change_their_inputs() -> None:
    @ovir.register("Swirl", version="extension")
    class Writer(ovir.Operator):
        turns: int = ovir.attribute(default=1)

        def infer(self, data: ovir.TensorType) -> ovir.TensorType:
            return data

        def run(self, data: Any) -> Any:
            data[:] = 5
            return data

    data = np.ones((2, 3), np.float32)
    with pytest.raises(ovir.RunError, match="read-only"):
        ovir.compile_model("examples/xml/swirl.xml")([data])
    assert (data == 1).all()

    @ovir.register("Swirl", version="extension")
    class Same(Writer):
        def run(self, data: Any) -> Any:
            return data

    result = ovir.compile_model("examples/xml/swirl.xml")([data])[0]
    assert not np.shares_memory(result, data)
    result[:] = 0
    assert (data == 1).all()


@pytest.mark.parametrize(("result", "shown"), [(None, "None"), ([], "a list"), (("f32", 3), "a str")])
def test_infer_must_return_types(result: Any, shown: str) -> None:
    @ovir.register("Untyped", version="untyped")
    class Untyped(ovir.Operator):
        """The input."""

        def infer(self, data: Any) -> Any:
            return result

        def run(self, data: Any) -> Any:
            return data

    with pytest.raises(ovir.OvirError, match=f"infer returned {shown} instead of a TensorType") as caught:
        ovir.create_layer("Untyped", [np.float32([1])], version="untyped")
    assert "AttributeError" not in str(caught.value)


def test_the_index_holds_what_is_declared() -> None:
    import_all()
    assert registry.declared_versions() == [opsets.Version(*row) for row in VERSIONS]


def test_an_operation_version_is_declared_once() -> None:
    with pytest.raises(ValueError, match="Abs of opset1 is registered twice"):
        registry.operator("Abs", opset=1)(type("Again", (ovir.Operator,), {}))


def test_what_is_registered_before_stays() -> None:
    register_swirl()
    first = registry.registered_by_user("Swirl", "extension")
    with registry.keeping_registered():
        register_swirl()
        ovir.register("Whirl", version="extension")(type("Whirl", (first,), {}))  # type: ignore[type-var]
    assert registry.registered_by_user("swirl", "Extension") is first
    assert registry.registered_by_user("Whirl", "extension") is not None


def test_a_class_that_names_no_inputs_may_read_all_values() -> None:
    infer = {"infer": lambda self, data: data}
    for body, values in (({}, ALL), ({"value_inputs": (1,)}, (1,))):
        cls = ovir.register("Swirl", version="extension")(type("Swirl", (ovir.Operator,), {**infer, **body}))
        derived = ovir.register("Whirl", version="extension")(type("Whirl", (cls,), {}))
        assert cls.value_inputs == derived.value_inputs == values
        assert (cls.opset, cls.type, derived.type) == (0, "Swirl", "Whirl")


@pytest.mark.parametrize(
    ("name", "snake_case"),
    [
        ("ReduceL1", "reduce_l1"),
        ("BGRtoNV12", "bgr_to_nv12"),
        ("NV12toBGR", "nv12_to_bgr"),
        ("MVN", "mvn"),
        ("ROIAlign", "roi_align"),
        ("Add", "add"),
        ("GatherND", "gather_nd"),
        ("PriorBox", "prior_box"),
        ("GridSample", "grid_sample"),
    ],
)
def test_names_of_functions(name: str, snake_case: str) -> None:
    assert registry._snake_case(name) == snake_case


def test_why_an_operation_is_in_no_opset() -> None:
    assert opsets.why_unresolved("Gather", "opset99") == (
        "'opset99' is not an opset: known are opset1 to opset17",
        None,
    )
    assert "did you mean opset8?" in str(opsets.why_unresolved("Gather", " OPSET8")[1])
    assert opsets.why_unresolved("Gahter", "opset8") == ("no opset has an operation 'Gahter'", "did you mean Gather?")
    sentence = "opset1 does not contain GridSample; it is in opset9 to opset16"
    assert opsets.why_unresolved("GridSample", "opset1") == (sentence, None)
    assert opsets.opset_range(3, 3) == "opset3"
    assert [opsets.is_opset(f"opset{n}") for n in (0, 1, 17, 18)] == [False, True, True, False]
    found = opsets.resolve("GridSample", "opset16")
    assert found is not None
    assert (found.opset, opsets.resolve("GridSample", "opset8")) == (9, None)
