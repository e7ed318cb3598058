"""`ovir show`: who made a model, which release reads it, what a run takes, and states of a fixed shape."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.lowering.releases import RELEASES, oldest_release, release_text
from ovir.runtime.memory import memory_use

INFO = """<rt_info>
<MO_version value="2022.3.0-9038-b84161848ea-releases/2022/3"/>
<Runtime_version value="2024.1.0-15008-f4afc983258-releases/2024/1"/>
<conversion_parameters><framework value="onnx"/><input_model value="DIR/net.onnx"/></conversion_parameters>
<nncf><version value="3.4.0"/></nncf>
</rt_info>"""
OLD_INFO = """<meta_data><MO_version value="2021.2.0-1877-176bdf51370"/>
<cli_parameters><framework value="tf"/></cli_parameters></meta_data>"""


def relu_net(version: int = 11, opset: int = 1, element_type: str = "f32") -> Net:
    net = Net(version=version)
    x = net.parameter("x", "2,3", element_type)
    net.result(net.op("ReLU" if opset == 1 else "Mish", x, opset=opset))
    return net


def with_info(net: Net, folder: Path, info: str) -> Path:
    path = net.write(folder)
    path.write_text(path.read_text().replace("<rt_info/>", info))
    return path


def test_who_made_a_model(cli: Any, tmp_path: Path) -> None:
    path = with_info(relu_net(), tmp_path, INFO)
    assert "made by OpenVINO 2024.1.0, converter 2022.3.0, from onnx, nncf 3.4.0\n" in cli("show", path).out
    made = json.loads(cli("show", path, "--json").out)["made_by"]
    assert (made["framework"], made["source"], made["tools"]) == ("onnx", "net.onnx", {"nncf": "3.4.0"})
    assert made["runtime"].startswith("2024.1.0-15008")


def test_who_made_a_model_of_version_10(cli: Any, tmp_path: Path) -> None:
    path = with_info(relu_net(version=10), tmp_path, OLD_INFO)
    assert "made by OpenVINO 2021.2.0, from tf\n" in cli("show", path).out


@pytest.mark.parametrize(
    ("net", "text"),
    [
        (relu_net(), "OpenVINO 2022.1 or newer, because of IR version 11"),
        (relu_net(version=10), "OpenVINO 2020.1 or newer, because of IR version 10"),
        (relu_net(version=10, opset=4), "OpenVINO 2021.1 or newer, because of Mish of opset4"),
        (relu_net(element_type="f8e8m0"), "OpenVINO 2024.3 or newer, because of the element type f8e8m0"),
        (relu_net(opset=99), "a release that this ovir does not know, because of Mish of opset99"),
    ],
)
def test_the_oldest_release(cli: Any, tmp_path: Path, net: Net, text: str) -> None:
    path = net.write(tmp_path)
    assert f"needs {text}\n" in cli("show", path).out


@pytest.mark.parametrize("opset", [4, 16])
def test_the_oldest_release_is_the_first_that_check_accepts(tmp_path: Path, opset: int) -> None:
    path = relu_net(version=10, opset=opset).write(tmp_path)
    release = oldest_release(ovir.read_model(path)).release
    assert release is not None
    before = max(r for r in RELEASES if r < release)
    refused = [
        any(d.code == "OVIR701" for d in ovir.check(path, runtime=release_text(runtime)))
        for runtime in (before, release)
    ]
    assert refused == [True, False]


# --------------------------------------------------------------------------- memory


def chain_net() -> Net:
    """Layers of 400 kB each, of which few are needed at one time, and weights of 40 kB."""
    net = Net()
    x = net.parameter("x", "1000,100")
    x = net.op("MatMul", x, net.const(np.ones((100, 100), np.float32)))
    for _ in range(6):
        x = net.op("Softplus", net.op("Transpose", x, net.const([1, 0], "i64")), opset=4)
    net.result(x)
    return net


def test_the_memory_of_a_run_is_what_it_takes() -> None:
    compiled = chain_net().compiled()
    use = memory_use(compiled.plan())
    assert 40_000 <= use.weights < 41_000  # the orders of Transpose are constants, too
    assert use.inputs == 400_000
    assert use.unknown == 0
    data = {"x": np.ones((1000, 100), np.float32)}
    chain_net().compiled()(data)  # which imports what a run needs
    tracemalloc.start()
    try:
        compiled(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert use.activations >= 800_000  # the input of a layer and its output
    result = 400_000  # of which the caller gets a copy
    assert use.activations <= peak <= use.inputs + 2 * use.activations + result  # binding has memory of its own


def test_weights_that_stay_compressed_count_as_in_the_file() -> None:
    x = ops.parameter([1, 1024], "f32")
    codes = ops.constant(np.ones((2048, 1024)), "i8")
    weights = ops.multiply(ops.convert(codes, "f16"), np.full((2048, 1), 0.5, np.float16))
    model = ovir.Model([ops.matmul(x, ops.convert(weights, "f32"), False, True)], [x])
    assert memory_use(ovir.compile_model(model, keep_compressed=True).plan()).weights == 2048 * 1024 + 2 * 2048


def test_show_memory(cli: Any, tmp_path: Path) -> None:
    path = chain_net().write(tmp_path)
    assert "memory" not in cli("show", path).out
    assert "weights 40.1 kB, inputs 400.0 kB, between layers" in cli("show", path, "--memory").out
    memory = json.loads(cli("show", path, "--memory", "--json").out)["memory"]
    assert memory["activations_without_reuse"] > memory["activations"]
    assert memory["inputs"] == 400_000
    path.with_suffix(".bin").unlink()
    result = cli("show", path, "--memory")
    assert result.status == 0
    assert "the memory of a run is not known" in result.err


# --------------------------------------------------------------------------- states


def cache_net() -> Net:
    """A cache that grows by a row at each call; a MatMul with all of it."""
    net = Net()
    row = net.parameter("row", "1,4")
    start = net.const(np.zeros((0, 4), np.float32))
    variable = {"variable_id": "cache", "variable_type": "f32", "variable_shape": "?,4"}
    old = net.op("ReadValue", start, name="old", opset=6, **variable)
    new = net.op("Concat", old, row, name="new", axis=0)
    net.op("Assign", new, name="store", opset=6, variable_id="cache")
    net.result(net.op("MatMul", row, new, name="scores", transpose_b="true"))
    return net


def test_the_shape_of_a_state_is_fixed(cli: Any, tmp_path: Path) -> None:
    path = cache_net().write(tmp_path)
    assert "MACs        4\n" in cli("show", path).out  # the cache is empty before the first call
    fixed = cli("show", path, "--shape", "cache=7,4", "--memory")
    assert (fixed.status, fixed.err) == (0, "")
    assert "MACs        32" in fixed.out  # 8 rows of 4
    assert "[7,4]" in fixed.out
    assert "at most in a run" in fixed.out
    inferred = cli("infer", path, "--shape", "cache=7,4").out
    assert "f32[8,4]" in next(line for line in inferred.splitlines() if " new " in line)


def test_shapes_of_states_are_checked(cli: Any, tmp_path: Path) -> None:
    path = cache_net().write(tmp_path)
    assert cli("show", path, "--shape", "cache=7,4", "--shape", "cache=8,4").status == 2
    assert cli("show", path, "--shape", "cache=seven").status == 2
    wrong = cli("show", path, "--shape", "cache=7,5")
    assert wrong.status == 1
    assert "'new'" in wrong.err
