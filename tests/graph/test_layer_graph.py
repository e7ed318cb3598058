"""What is made of a graph has its class: bodies, copies and parts. The packages below ``ovir.model`` work without it."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support.bodies import conditional

import ovir
from ovir import opset13 as ops
from ovir.editing.extraction import extract
from ovir.graph.layer_graph import LayerGraph
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


def test_ports_say_what_they_are() -> None:
    relu = ops.relu(ops.parameter([1, 2], "f32"), name="act")
    assert repr(relu.inputs[0]) == "<input 0 of 'act': f32[1,2]>"
    assert repr(relu.outputs[0]) == "<output 0 of 'act': f32[1,2]>"
