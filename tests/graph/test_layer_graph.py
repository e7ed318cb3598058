"""What is made of a graph has its class: bodies, copies and parts. The packages below ``ovir.model`` work without it."""

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import html
from support.bodies import conditional
from support.edited import sample, with_body

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ElementType
from ovir.core.shapes import as_shape
from ovir.diagnostics.errors import OWN_FAULT
from ovir.editing.extraction import extract
from ovir.graph.given_arrays import require_shape
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import agrees, declared_type, has_declared
from ovir.graph.names import free_name
from ovir.ir.legacy import upgraded
from ovir.ir.read_and_infer import read_and_infer

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "xml" / "digits.xml"


@pytest.mark.parametrize("kind", [LayerGraph, ovir.Model])
def test_what_is_made_of_a_graph_has_its_class(kind: type[LayerGraph], tmp_path: Path) -> None:
    path = tmp_path / "conditional.xml"
    ovir.save_model(conditional(), path)
    graph = read_and_infer(path, None, kind)
    old = graph.clone()
    old.version = 10
    made = [
        graph,
        graph.clone(),
        pickle.loads(pickle.dumps(graph)),
        extract(graph, None, None),
        extract(graph, None, ["if/then/inner"]),
        upgraded(old),
    ]
    for found in made:
        assert [type(part) for part in found.graphs()] == [kind] * len(list(found.graphs()))
    assert [len(list(found.graphs())) for found in made] == [3, 3, 3, 3, 1, 3]


def test_a_graph_has_no_methods_that_infer() -> None:
    own = {name for name in vars(ovir.Model) if not name.startswith("_")}
    assert own >= {"infer_shapes", "reshape", "editing", "set_constant", "insert_after", "simplify"}
    assert not own & set(dir(LayerGraph))


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_lower_packages_read_edit_save_and_run_a_graph_without_the_model(tmp_path: Path) -> None:
    code = f"""
import sys
import numpy as np
from ovir.editing.constant_edits import fold_constants
from ovir.graph.layer_graph import LayerGraph
from ovir.inference.models import reshape
from ovir.ir.read_and_infer import read_and_infer
from ovir.ir.writing.save import write_model
from ovir.runtime.compiled import CompiledModel

graph = read_and_infer({str(EXAMPLE)!r}, None, LayerGraph)
reshape(graph, [2, 1, 8, 8])
fold_constants(graph, False)
write_model(graph, {str(tmp_path / "saved.xml")!r}, None, LayerGraph)
print(CompiledModel(graph)([np.zeros((2, 1, 8, 8), np.float32)])[0].shape)
print("ovir.model" in sys.modules)
"""
    assert run(code) == ["(2, 10)", "False"]
    assert str(ovir.read_model(tmp_path / "saved.xml").outputs[0].shape) == "[2,10]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import ovir; x = ovir.read_model({path!r}).inputs[0]",
        "from ovir.building.creation import create_layer; x = create_layer('X', outputs=[('f32', [1, 2])])",
        "from ovir import opset13; x = opset13.parameter([1, 2])",
    ],
)
def test_layers_have_their_arithmetic_wherever_they_come_from(code: str) -> None:
    assert run(
        f"{code.format(path=str(EXAMPLE))}; print((1 - x).type, (-x.layer if hasattr(x, 'layer') else -x).type)"
    ) == ["Subtract Negative"]


def test_a_free_name_has_the_first_number_that_is_free() -> None:
    assert [free_name("a", taken) for taken in ([], ["a"], ["a", "a_2", "a_4"])] == ["a", "a_2", "a_3"]
    assert free_name("a", ["a", "a_0"], 0) == "a_1"


def test_objects_say_what_they_are() -> None:
    model = sample()
    split, out = model.layer("split"), model.layer("out")
    assert repr(model) == "<Model 'test': 14 layers, 2 inputs, 2 outputs>"
    assert repr(split) == "<layer 11 'split' (Split, opset1): f32[1,3], f32[1,3]>"
    assert repr(out) == "<layer 12 'out' (Result, opset1): f32[2,3]>"
    assert repr(ovir.Layer(7, "odd", "Odd", "mine")) == "<layer 7 'odd' (Odd, mine)>"
    assert repr(split.inputs[1]) == "<input 1 of 'split': i64[]>"
    assert repr(split.outputs[1]) == "<output 1 of 'split': f32[1,3]>"
    assert with_body().layer("n1/body/n1").title == "layer 1 'n1' (ReLU, opset1) in n1/body"


def test_objects_show_themselves_in_notebooks() -> None:
    model = sample()
    model.inputs[0].names = {"a", "c", "b"}
    assert _cells(model.inputs) == ["2 ports", "name", "type", "other names", "a", "f32[2,3]", "b, c", "y", "f32[2,3]"]
    assert _cells(model.layers)[:9] == [
        "14 layers",
        "id",
        "layer",
        "operation",
        "outputs",
        "0",
        "x",
        "Parameter",
        "f32[2,3]",
    ]
    assert _cells(model.layer("split")) == [
        *("layer 11 'split' (Split, opset1)", "attribute num_splits", "2", "input 0", "f32[1,6] from flat"),
        *("input 1", "i64[] from axis", "output 0", "f32[1,3]", "output 1", "f32[1,3]"),
    ]


def _cells(shown: Any) -> list[str]:
    """Return the texts of a table that notebooks show."""
    return [text for text in html.fromstring(shown._repr_html_()).itertext() if text]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *((key, "product") for key in (0, np.int64(0), "product", "out")),
        *((key, "half") for key in (1, "half", "split")),
        *((key, None) for key in (-1, 2, True, "flat", "")),
    ],
)
def test_outputs_are_found_by_position_and_by_names(key: Any, expected: str | None) -> None:
    model = sample()
    if expected is None:
        with pytest.raises(KeyError, match=r"the model has no output .*; its outputs are 0: 'product', 1: 'half'"):
            model.output(key)
    else:
        assert model.output(key).any_name == expected
        assert model.output(model.output(key)) is model.output(key)


def test_a_port_of_another_model_is_no_input() -> None:
    model, other = sample(), sample()
    assert [model.input_index(key) for key in ("x", "y", 1, model.inputs[1])] == [0, 1, 1, 1]
    for port in (other.inputs[0], model.outputs[0], model.layer("add").outputs[0]):
        with pytest.raises(KeyError, match="the model has no input <"):
            model.input(port)
    with pytest.raises(KeyError, match=r"its inputs are none"):
        ovir.Model([ops.constant(1.0)], []).input()


def test_ports_of_a_layer_are_found_by_position() -> None:
    split = sample().layer("split")
    assert [split.input(1), split.output(1), split[1], split.input(), split.output()] == [
        *(split.inputs[1], split.outputs[1], split.outputs[1], split.inputs[0], split.outputs[0])
    ]
    for ports, name in ((split.input, "input"), (split.output, "output")):
        for index in (-1, 2):
            with pytest.raises(IndexError, match=f"there is no {name} {index}: the layer has 2 {name}s"):
                ports(index)


@ovir.register("Swirl", version="mine")
class Broken(ovir.Operator):
    """Divides by zero."""

    def infer(self, data: ovir.TensorType) -> ovir.TensorType:
        return data

    def divide(self) -> None:
        raise ZeroDivisionError


def test_a_fault_of_a_class_of_a_user_is_placed_there() -> None:
    model = sample()
    known, unknown = model.layer("add"), ovir.Layer(0, "n", "Swirl", "mine")
    operator = Broken()
    own = ovir.Layer(0, "n", "Swirl", "mine", operator=operator)
    with pytest.raises(ZeroDivisionError) as caught:
        operator.divide()
    hint = "this is a fault of the class Broken, which was registered for Swirl"
    place = f"; it fails in {__file__}, line {Broken.divide.__code__.co_firstlineno + 1}"
    assert own.fault_hint(caught.value) == hint + place
    assert own.fault_hint(ZeroDivisionError()) == hint
    for layer in (known, unknown):
        assert layer.fault_hint(caught.value) == OWN_FAULT


@pytest.mark.parametrize(
    ("shape", "given", "hint"),
    [
        ([2, -1], (2, 7), None),
        ("...", (1,), None),
        ([2, -1], (3, 7), ""),
        ([2, -1], (2,), "the input has 2 dimensions, the array 1"),
        ([2], (), "the input has 1 dimension, the array 0"),
    ],
)
def test_arrays_that_a_tensor_cannot_have(shape: Any, given: tuple[int, ...], hint: str | None) -> None:
    x = ops.parameter(shape, "f32", name="x")
    if hint is None:
        require_shape("input 'x'", given, x.outputs[0].type, x)
        return
    with pytest.raises(ovir.InputError, match=rf"input 'x' takes shape {re.escape(str(x.shape))}, got \[") as caught:
        require_shape("input 'x'", given, x.outputs[0].type, x)
    assert (caught.value.diagnostic.hint or "") == hint


@pytest.mark.parametrize(
    ("shape", "kind", "tensor", "expected"),
    [
        (None, None, ("f32", [2]), True),
        ([2, -1], "f32", ("f32", [2, 3]), True),
        ([2, -1], None, ("f32", [3, 3]), False),
        ([2], None, ("f32", [2, 3]), False),
        ([], None, ("f32", [2, 3]), True),  # without dimensions, the rank is unknown
        ([2], "f32", ("f32", "..."), True),
        ([2], "f32", ("f16", [2]), False),
        (None, "f32", ("f16", [2]), False),
        (None, "f32", ("dynamic", [2]), True),
    ],
)
def test_what_a_port_declares(shape: Any, kind: str | None, tensor: tuple[str, Any], expected: bool) -> None:
    port = ops.relu(ops.parameter([1], "f32")).outputs[0]
    port.declared_shape = None if shape is None else as_shape(shape)
    port.declared_element_type = None if kind is None else ElementType.parse(kind)
    assert agrees(port, ovir.TensorType(ElementType.parse(tensor[0]), as_shape(tensor[1]))) == expected
    assert has_declared(port) == bool(shape)
    declared = declared_type(port)
    assert str(declared) == f"{kind or 'dynamic'}{as_shape(shape) if shape else '[...]'}"
