"""Executed graphs: what a file says, and which layers of a model its layers stand for."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main
from ovir.debugging.device_queries import execute
from ovir.ir.executed import ExecutedGraph, parse_executed, read_executed, split_names

DIGITS = Path(__file__).parents[2] / "examples" / "xml" / "digits.xml"


def graph(*layers: str) -> bytes:
    return f'<net name="exec" version="11"><layers>{"".join(layers)}</layers><edges/></net>'.encode()


def layer(order: int, name: str, originals: str, precision: str = "f32", **more: object) -> str:
    said = {"execOrder": order, "originalLayersNames": originals, "runtimePrecision": precision} | more
    data = " ".join(f'{key}="{value}"' for key, value in said.items())
    return f'<layer id="{order}" name="{name}" type="Eltwise"><data {data}/></layer>'


def chain(*names: str) -> ovir.Model:
    """Return a model of layers in a row: a Parameter, and ReLU layers with these names."""
    x: Any = ops.parameter([4], "f32", name="x")
    end = x
    for name in names:
        end = ops.relu(end, name=name)
    return ovir.Model([end.outputs[0]], [x])


def executions(model: ovir.Model, executed: ExecutedGraph) -> dict[str, str]:
    return {key.name: f"{item.by.name}: {item}" for key, item in executed.of(model).items()}


MANY = [f"layer{number}" for number in range(20_000)]


@pytest.mark.parametrize(
    ("text", "known", "names"),
    [
        ("a,b,c", {"a", "b", "c"}, ["a", "b", "c"]),
        ("a,b,c", {"a,b", "c"}, ["a,b", "c"]),
        ("a,b,c", {"a,b,c", "a", "b"}, ["a,b,c"]),
        ("made,a,b", {"a,b"}, ["made", "a,b"]),
        ("a,,b", {"a,", "b"}, ["a,", "b"]),
        ("unknown,too", {"a"}, ["unknown", "too"]),
        ("", {"a"}, []),
        (",".join(MANY), set(MANY), MANY),
    ],
)
def test_names_with_commas(text: str, known: set[str], names: list[str]) -> None:
    assert split_names(text, known) == names


def test_fused_layers_and_their_types() -> None:
    model = chain("a", "b,b", "c")
    found = parse_executed(
        graph(
            layer(1, "c", "c", "i8", execTimeMcs="7"),
            layer(0, "a", "a,b,b", "bf16", primitiveType="jit", execTimeMcs="5"),
        ),
        "exec.xml",
    )
    assert [item.name for item in found.layers] == ["a", "c"]
    assert executions(model, found) == {
        "a": "a: computed in bf16",
        "b,b": "a: computed in bf16",
        "c": "c: computed in i8",
    }
    of = {key.name: item for key, item in found.of(model).items()}
    assert of["b,b"].fused_into(model.layer("b,b")) == "a"
    assert of["a"].fused_into(model.layer("a")) is None
    assert of["a"].by.primitive == "jit"
    assert found.microseconds == 12
    assert found.summary(model) == "executed: 3 layers as 2, in bf16, i8, 0.012 ms"


def test_a_layer_that_is_not_named_belongs_to_its_only_reader() -> None:
    found = executions(chain("a", "b", "c"), parse_executed(graph(layer(0, "c", "c", "f16")), "exec.xml"))
    part = "c: computed in f16, as part of 'c'"
    assert found == {"c": "c: computed in f16", "b": part, "a": part}
    x: Any = ops.parameter([4], "f32", name="x")
    both = ops.relu(x, name="both")
    one, two = ops.sqrt(both, name="one"), ops.exp(both, name="two")
    read_twice = ovir.Model([one.outputs[0], two.outputs[0]], [x])
    x = ops.parameter([4], "f32", name="x")
    before_result = ovir.Model([ops.result(ops.relu(x, name="a"), name="out")], [x])
    for model, names in (read_twice, ("one", "two")), (before_result, ("x", "out")):
        named = graph(*(layer(order, name, name) for order, name in enumerate(names)))
        assert set(executions(model, parse_executed(named, "exec.xml"))) == set(names)


def test_the_graph_of_another_model_is_refused() -> None:
    found = parse_executed(graph(layer(0, "x", "x"), layer(1, "c", "c")), "exec.xml")
    with pytest.raises(ovir.ReadError, match="another model: it names none of the 2 layers"):
        found.require_made_from(chain("a", "b"), "exec.xml")
    found.require_made_from(chain("a", "c"), "exec.xml")


def test_runtime_information_and_older_names_of_types() -> None:
    said = "".join(
        f'<attribute name="{key}" version="0" value="{value}"/>'
        for key, value in {
            "execOrder": 3,
            "originalLayersNames": "a",
            "layerType": "ReLU",
            "runtimePrecision": "FP16",
        }.items()
    )
    text = graph(f'<layer id="0" name="n" type="ExecutionNode"><rt_info>{said}</rt_info></layer>')
    (only,) = parse_executed(text, "exec.xml").layers
    assert (only.type, only.order, only.precision, only.microseconds) == ("ReLU", 3, "f16", None)


@pytest.mark.parametrize(
    ("kind", "primitive", "said", "text"),
    [
        ("Convolution", "brgconv_avx512_f32", "f16", "computed in f32, weights in f16"),
        ("Convolution", "brgconv_avx512_1x1_I8", "i8", "computed in u8, weights in i8"),
        ("Convolution", "brgconv_avx512_i8", "i8", "computed in i8"),
        ("Convolution", "jit_avx512_1x1_I8", "u8", "computed in u8"),
        ("Convolution", "convolution_gpu_bfyx_f16__f32", "f32", "computed in f32"),
        ("FullyConnected", "undef_f32", "u4", "computed in f32, weights in u4"),
        ("FullyConnected", "brgemm_avx512_amx_bf16", "nf4", "computed in bf16, weights in nf4"),
        ("Subgraph", "jit_avx512_f32", "u8", "computed in f32"),
        ("Eltwise", "jit_avx512_f16", "f16", "computed in f16"),
        ("Convolution", "jit", "bf16", "computed in bf16"),
        ("Convolution", "undef", "FP16", "computed in f16"),
        ("Reorder", "jit_uni_f32", "", "computed in f32"),
        ("Reorder", "", "", "computed as Reorder"),
    ],
)
def test_types_of_data_and_weights(kind: str, primitive: str, said: str, text: str) -> None:
    """The primitive names the type of the data, ``runtimePrecision`` the narrower one of data and weights."""
    item = layer(0, "a", "a", said, layerType=kind, primitiveType=primitive)
    (found,) = parse_executed(graph(item), "exec.xml").of(chain("a")).values()
    assert str(found) == text


@pytest.mark.parametrize("command", ["check", "diff", "edit", "extract", "infer", "python", "run", "show", "view"])
def test_an_executed_graph_is_no_model(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "view":
        pytest.importorskip("model_explorer", reason="the command needs model_explorer")
    said = layer(0, "a", "a").partition("<data")[2].replace("/></layer>", "")
    as_info = "".join(
        f'<attribute name="{key}" value="{value}"/>' for key, value in re.findall('([a-zA-Z]+)="(.*?)"', said)
    )
    in_info = f'<layer id="1" name="b" type="Eltwise"><rt_info>{as_info}</rt_info></layer>'
    for number, text in enumerate((graph(layer(0, "a", "a"), layer(1, "b", "b")), graph(in_info))):
        path = tmp_path / f"{number}.xml"
        path.write_bytes(text)
        more = {"diff": [DIGITS], "edit": ["-o", tmp_path / "x.xml"], "extract": ["-o", tmp_path / "x.xml"]}
        assert main([command, str(path), *map(str, more.get(command, []))]) == 2
        (line,) = [line for line in "".join(capsys.readouterr()).splitlines() if "error[" in line]
        assert "OVIR105" in line
        assert "this is an executed graph" in line


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ovir.ReadError, match="not an executed graph: no layer says how it was executed"):
        read_executed(DIGITS)
    with pytest.raises(ovir.ReadError, match="cannot read the file"):
        read_executed(tmp_path / "missing.xml")
    (tmp_path / "broken.xml").write_text("<net>")
    with pytest.raises(ovir.ReadError, match="not an executed graph"):
        read_executed(tmp_path / "broken.xml")


# --------------------------------------------------------------------------- OpenVINO itself


@pytest.mark.slow
def test_the_graph_of_the_cpu() -> None:
    pytest.importorskip("openvino", reason="OpenVINO executes the graph")
    model = ovir.read_model(DIGITS)
    found = execute(model, "openvino:CPU", config={"INFERENCE_PRECISION_HINT": "f32"})
    of = {key.name: item for key, item in found.of(model).items()}
    computing = [key.name for key in model.layers if key.type not in ("Const", "Parameter", "Result")]
    assert set(computing) <= set(of)
    assert of["relu1"].fused_into(model.layer("relu1")) == "conv1"
    assert {item.by.precision for name, item in of.items() if name.startswith("conv")} >= {"f32"}
    assert of["conv1"].by.microseconds


@pytest.mark.slow
def test_a_comparison_says_in_which_type_layers_were_computed() -> None:
    openvino = pytest.importorskip("openvino", reason="OpenVINO executes the graph")
    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this CPU does not compute in bf16")
    x: Any = ops.parameter([16, 64], "f32", name="x")
    weights = ops.constant(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32))
    model = ovir.Model([ops.matmul(x, weights, False, False, name="product").outputs[0]], [x])
    compared = ovir.compare(
        model, "openvino:CPU", config={"INFERENCE_PRECISION_HINT": "bf16"}, mode="isolated", rtol=0, atol=0
    )
    (found,) = [item for item in compared.layers if item.name == "product"]
    assert not found.within
    assert str(found.execution) == "computed in bf16"
    assert found.to_dict()["executed"]["precision"] == "bf16"
