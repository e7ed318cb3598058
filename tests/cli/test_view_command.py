"""``ovir view``: a server that runs until it is interrupted."""

import json
import signal
import socket
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from support.command import Cli
from support.viewing import viewing

import ovir

pytest.importorskip("model_explorer", reason="Model Explorer, of the extra `view`, is not installed")

pytestmark = pytest.mark.slow

XML = Path(__file__).parents[2] / "examples" / "xml"
DIGITS = XML / "digits.xml"


@pytest.mark.parametrize(
    ("number", "status", "text"), [(signal.SIGINT, 0, "the server has stopped"), (signal.SIGTERM, 143, "terminated")]
)
def test_it_runs_until_it_is_interrupted(number: int, status: int, text: str) -> None:
    with viewing(DIGITS, "--no-browser") as view:
        assert view.url.startswith("http://127.0.0.1:")
        assert len(view.nodes()) == 23
        with urllib.request.urlopen(view.url, timeout=60) as page:
            assert b"<title>xml/digits.xml - ovir view</title>" in page.read()
        assert view.stop(number) == (status, f"Ctrl-C stops the server\n{text}\n")


def test_faults_are_drawn() -> None:
    with viewing(XML / "broken" / "axis_out_of_range.xml", "--no-browser", "--profile") as view:
        assert "axis 5 is outside" in view.nodes()["gather"]["error OVIR305"]
        assert view.overlays() == {"diagnostics of broken/axis_out_of_range.xml": {"gather": "error"}}
        _, err = view.stop()
        assert "error[OVIR305]" in err
        assert "drawn, but not run" in err


def test_overlays() -> None:
    with viewing(DIGITS, "--no-browser", "--check", "--profile", "--run", XML / "digits_input.npz") as view:
        found = view.overlays()
    # The page selects the last one.
    names = ["time (ms)", "minimum", "maximum", "mean", "NaN and infinities", "diagnostics"]  # there are none
    assert list(found) == [f"{name} of xml/digits.xml" for name in reversed(names)]
    assert found["maximum of xml/digits.xml"]["probabilities"] == pytest.approx(1, abs=0.01)
    assert found["minimum of xml/digits.xml"]["relu1"] == 0
    assert found["NaN and infinities of xml/digits.xml"]["conv1"] == 0


def changed(path: Path) -> Path:
    """Write the digits with other weights."""
    model = ovir.read_model(DIGITS)
    weights = model.layer("conv2/weights")
    model.set_constant(weights, weights.operator.data * np.float32(1.5))
    ovir.save_model(model, path)
    return path


def test_a_comparison_and_a_difference(tmp_path: Path) -> None:
    other = changed(tmp_path / "digits.xml")
    with viewing(DIGITS, "--no-browser", "--compare", other, "--diff", other) as view:
        found = view.overlays()
        names = [f"{tmp_path.name}/digits.xml", "xml/digits.xml"]
        assert found[f"largest absolute error of {names[1]}"]["conv1"] == 0
        assert found[f"largest absolute error of {names[1]}"]["conv2"] > 0
        for name in names:
            assert found[f"difference of {name}"] == {"conv2/weights": "changed"}
        assert len(view.nodes(1)) == 23
        _, err = view.stop()
        assert "random inputs: 1 set, seed 0" in err
        assert "1 layer changed" in err


def test_a_run_that_fails_is_drawn_up_to_there(tmp_path: Path) -> None:
    from ovir import opset13 as ops

    data, shape = ops.parameter([6], "f32", name="data"), ops.parameter([2], "i64", name="shape")
    small = ops.relu(data, name="relu")
    shaped = ops.reshape(small, shape, False, name="reshape")
    ovir.save_model(ovir.Model([ops.sqrt(shaped, name="last")], [data, shape]), tmp_path / "m.xml")
    np.savez(tmp_path / "in.npz", data=np.ones(6, np.float32), shape=np.int64([4, 4]))
    with viewing(tmp_path / "m.xml", "--no-browser", "--run", tmp_path / "in.npz") as view:
        maximum = view.overlays()[f"maximum of {tmp_path.name}/m.xml"]
        assert maximum["relu"] == 1
        assert "last" not in maximum
        assert any(name.startswith("error") for name in view.nodes()["reshape"])
        assert "error[" in view.stop()[1]


def test_without_a_browser_the_address_is_enough() -> None:
    missing = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "WSL_DISTRO_NAME": ""}
    with viewing(DIGITS, **missing) as view:
        assert view.nodes()
        assert "no browser was found" in view.stop()[1]


def test_constants_can_be_hidden() -> None:
    with viewing(DIGITS, "--no-browser", "--hide-constants") as view:
        assert view.get("api/v1/load_graphs_json?graph_index=0")["graphs"][0]["nodeLabelsToHide"] == ["Const"]


def test_a_busy_port(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        number = busy.getsockname()[1]
        outcome = cli("view", DIGITS, "--port", number)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"cannot listen on port {number} of 127.0.0.1" in outcome.err
    assert "--port 0" in outcome.err


def test_wrong_usage(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("view", DIGITS, "--port", 65536).status == 2
    assert cli("view", XML / "missing.xml", "--port", 0).status == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = cli("view", DIGITS)
    assert outcome.status == 2
    assert 'pip install "ovir[view]"' in outcome.err


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_severities_are_those_of_check(cli: Cli, options: tuple[str, ...]) -> None:
    path = XML / "broken" / "wrong_declared_shape.xml"
    (found,) = json.loads(cli("check", path, "--json").out)
    with viewing(path, "--no-browser", *options) as view:
        attributes = view.nodes()["gather_elements"]
        assert attributes[f"{found['severity']} {found['code']}"] == found["message"]
        assert attributes[f"hint for {found['code']}"] == found["hint"]
        severities = view.overlays().get(f"diagnostics of {path.parent.name}/wrong_declared_shape.xml", {})
        assert set(severities.values()) == ({found["severity"]} if options else set())


def test_times_come_first_if_the_check_finds_nothing() -> None:
    with viewing(DIGITS, "--no-browser", "--check", "--profile") as view:
        assert list(view.overlays())[-1] == "time (ms) of xml/digits.xml"  # the page selects what it loads last


EXECUTED = """<net name="exec" version="11"><layers>
<layer id="0" name="conv1" type="Convolution"><data execOrder="0" execTimeMcs="2500" originalLayersNames="conv1,bias1,relu1"
 primitiveType="jit_avx512" runtimePrecision="bf16"/></layer>
</layers><edges/></net>"""


def test_what_a_device_executed_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "exec_graph.xml").write_text(EXECUTED)
    with viewing(DIGITS, "--no-browser", "--executed", tmp_path / "exec_graph.xml") as view:
        found = view.overlays()
        assert found["executed: time (ms) of xml/digits.xml"] == {"conv1": 2.5}
        assert found["executed: precision of xml/digits.xml"]["relu1"] == "bf16"
        assert found["executed: primitive of xml/digits.xml"]["relu1"] == "Convolution: jit_avx512"
        assert found["executed: fused into of xml/digits.xml"]["relu1"] == "conv1"
        assert list(found)[-1] == "executed: time (ms) of xml/digits.xml"  # the page selects the last one
        assert "as 1, in bf16, 2.5 ms" in view.stop()[1]


def test_what_a_device_executes_here() -> None:
    pytest.importorskip("openvino", reason="OpenVINO executes the graph")
    with viewing(DIGITS, "--no-browser", "--executed", "openvino:CPU") as view:
        found = view.overlays()
        assert found["executed: fused into of xml/digits.xml"]["relu1"] == "conv1"
        assert found["executed: time (ms) of xml/digits.xml"]["conv1"] > 0


def test_a_file_that_is_no_executed_graph(cli: Cli) -> None:
    outcome = cli("view", DIGITS, "--executed", DIGITS, "--no-browser", "--port", 0)
    assert outcome.status == 2
    assert "not an executed graph" in outcome.err
