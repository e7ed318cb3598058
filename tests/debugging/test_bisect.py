"""The first layer beyond tolerance: on devices, by runs of beginnings; in other models and recordings, by what is at hand."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from fuzz.planted import bisect_problem, plant, recording
from support.bodies import looped
from support.large_models import branches, chain, transformer

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_comparison import Criterion
from ovir.cli.main import main
from ovir.core.arrays import Array
from ovir.debugging.bisection import Bisection
from ovir.debugging.candidates import Candidate
from ovir.debugging.devices import OvirDevice
from ovir.debugging.prefix_search import MOST_EXTRA, Judge, PrefixSearch, smallest_part
from ovir.debugging.reproducer import Part, Reproducer
from ovir.debugging.tensor_search import TensorSearch
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.graph.layers import LayerOrPort

pytestmark = pytest.mark.slow

MAKERS = {maker.__name__: maker for maker in (chain, branches, transformer)}


def _tanh(x: LayerOrPort) -> LayerOrPort:
    return ops.tanh(x, name="culprit")


# --------------------------------------------------------------------------- devices


@pytest.mark.parametrize("maker", MAKERS)
def test_a_wrong_kernel(maker: str, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:Tanh")
    model = MAKERS[maker](60, {41: _tanh})
    found = ovir.bisect(model)
    assert not found
    assert (found.first.name, found.first.type) == ("culprit", "Tanh")
    assert found.first.verdict.tensor == "culprit"
    assert found.runs <= math.ceil(math.log2(found.layers)) + 1 + MOST_EXTRA
    assert found.recovered is None
    assert found.against.startswith("OpenVINO 1.2.3 on CPU")


def test_a_device_that_computes_the_same(device: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = ovir.bisect(branches(60, {}), output=tmp_path / "part.xml")
    assert found
    assert (found.first, found.part, found.runs) == (None, None, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("second", "fault", "failing", "wrong"),
    [
        (False, "die", 9, 4),
        (True, "die", 4, 9),
        (False, "refuse", 9, 7),
        (True, "refuse", 9, 4),
        (False, "refuse", 4, 9),
    ],
)
def test_a_failure_counts_before_a_difference(
    second: bool,
    fault: str,
    failing: int,
    wrong: int,
    device: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A crash is the finding, wherever other tensors differ, also of a second model on a device."""
    device.setenv("OVIR_TEST_FAULT", f"{fault}:Tanh,wrong:Ceiling")
    model = chain(12, {failing: _tanh, wrong: lambda x: ops.ceiling(x, name="rounds")})
    ovir.save_model(model, tmp_path / "model.xml")
    files = [str(tmp_path / name) for name in ("model.xml", "part.xml")]
    models = files[:1] * (2 if second else 1)
    assert main(["bisect", *models, "--against", "openvino:CPU", "-o", files[1]]) == 1
    text = capsys.readouterr().out
    assert "first layer beyond tolerance: Tanh 'culprit'" in text
    problem = "Tanh is not supported" if fault == "refuse" else "the process ended with signal SIGKILL"
    assert re.search(f"there the other side fails: .*{problem}", text)
    assert ("tensors differ before: after " in text) == (wrong < failing)
    part = ovir.read_model(tmp_path / "part.xml")
    assert [layer.type for layer in part.layers] == ["Parameter", "Tanh", "Result"]
    assert not (tmp_path / "part_actual.npz").exists()


def test_a_failure_that_only_a_beginning_shows() -> None:
    """The device fails at a layer only if it is the last one."""

    class Failing(OvirDevice):
        def run(self, model: ovir.Model, inputs: Sequence[Array]) -> list[Array]:
            if any(port.source is not None and port.source.layer.name == "culprit" for port in model.outputs):
                raise ovir.RunError(diagnose(ENGINE, "the process ended with signal SIGSEGV"))
            faulty = model.clone()
            _add_to(faulty, "relu2")
            return super().run(faulty, inputs)

    x = ops.parameter([2, 3], "f32", name="x")
    y: LayerOrPort = x
    for i in range(16):
        y = ops.relu(y, name="culprit" if i == 7 else f"relu{i}")
    whole = Candidate(ovir.Model([y], [x]))
    search = PrefixSearch(whole, Judge(Failing(whole.model), Criterion()))
    length = search.run()
    assert length == 8
    assert search.probes[length].verdict.fails


def test_the_part_reproduces_the_difference(device: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:Tanh")
    model = branches(60, {37: _tanh})
    inputs = ovir.random_inputs(model, 5)
    found = ovir.bisect(model, inputs=inputs, output=tmp_path / "part.xml")
    assert [Path(file).name for file in found.part.files] == [
        *("part.xml", "part.bin", "part_input.npz", "part_expected.npz", "part_actual.npz")
    ]
    part = ovir.read_model(tmp_path / "part.xml")
    assert [layer.name for layer in part.layers if layer.inputs and layer.outputs] == ["culprit"]
    with np.load(tmp_path / "part_input.npz") as given:
        results = ovir.compile_model(part)(dict(given))
    whole = ovir.compile_model(model)(inputs, taps=["culprit"])
    with np.load(tmp_path / "part_expected.npz") as expected, np.load(tmp_path / "part_actual.npz") as actual:
        assert np.array_equal(expected["culprit"], results["culprit"])
        assert np.allclose(expected["culprit"], whole.taps["culprit"][0])
        assert np.array_equal(actual["culprit"], expected["culprit"] + 1)
    told = found.to_dict()
    assert (told["within"], told["first"]["name"], told["recovered"]) == (False, "culprit", None)
    assert told["part"]["names"] == ["culprit"]
    assert [suspect["name"] for suspect in told["suspects"]] == ["culprit"]
    assert told["not_compared"] == []
    assert [probe["count"] for probe in told["probes"]] == sorted(probe["count"] for probe in told["probes"])


def test_a_model_without_layers_cannot_be_searched() -> None:
    whole = Candidate(ovir.Model([ops.relu(ops.constant(np.float32([1])))], []))
    with pytest.raises(ovir.InputError, match="no layers to search"):
        PrefixSearch(whole, Judge(OvirDevice(whole.model), Criterion())).run()


def test_the_part_lists_as_many_layers_as_it_counts() -> None:
    part = Part(looped(lambda x: ops.abs(x, name="step")))
    assert part.to_dict() == {"layers": 3, "names": ["loop", "loop/body/step", "out"], "files": []}


class _Device(OvirDevice):
    """ovir, with a fault that ``change`` makes in a model."""

    def __init__(self, model: ovir.Model, change: Any) -> None:
        super().__init__(model)
        self._change = change

    def run(self, model: ovir.Model, inputs: Sequence[Array]) -> list[Array]:
        faulty = model.clone()
        self._change(faulty)
        return super().run(faulty, inputs)


class _NarrowDevice(OvirDevice):
    """A device that computes in bf16, and says so."""

    precision = "bf16"

    def run(self, model: ovir.Model, inputs: Sequence[Array]) -> list[Array]:
        return list(ovir.compile_model(model, emulate="bf16")(list(inputs)).values())


@pytest.mark.parametrize("maker", MAKERS)
def test_a_correct_device_that_computes_in_bf16_is_not_blamed(maker: str) -> None:
    whole = Candidate(MAKERS[maker](60, {}))
    device = _NarrowDevice(whole.model)
    assert PrefixSearch(whole, Judge(device, Criterion())).run() is None
    device.precision = None
    assert PrefixSearch(whole, Judge(device, Criterion())).run() is not None


def _add_to(model: ovir.Model, name: str) -> None:
    for layer in model.layers:
        if layer.name == name and layer.type != "Parameter":
            model.insert_after(layer[0], ops.add(layer[0], np.float32(1)))


def test_context_that_the_device_needs_to_fail() -> None:
    """The device joins two layers with one between them, and only then computes the second one wrongly."""

    def change(model: ovir.Model) -> None:
        types = {layer.name: layer.type for layer in model.layers}
        if types.get("one") == "Floor" and types.get("two") == "Ceiling":
            _add_to(model, "two")

    model = branches(60, {31: lambda x: ops.ceiling(ops.relu(ops.floor(x, name="one")), name="two")})
    whole, judge = Candidate(model), Judge(_Device(model, change), Criterion())
    search = PrefixSearch(whole, judge)
    length = search.run()
    assert search.probes[length].name == "two"
    part = smallest_part(search.part(length), judge).model
    assert {"one", "two"} <= {layer.name for layer in part.layers if layer.inputs and layer.outputs}
    assert len([layer for layer in part.layers if layer.inputs and layer.outputs]) <= 3


@pytest.mark.parametrize(("first", "zero"), [(0, 19), (1, 19), (5, 19), (0, 9), (5, 9)])
def test_errors_that_vanish_on_the_way(first: int, zero: int) -> None:
    """Two layers are wrong, and all tensors agree between them, where zeros are the only way."""
    x = ops.parameter([2, 3], "f32", name="x")
    y: LayerOrPort = x
    for i in range(40):
        y = ops.relu(y, name=f"relu{i}")
        if i == zero:
            y = ops.multiply(y, np.float32(0), name="zero")
    model = ovir.Model([y], [x])

    def change(model: ovir.Model) -> None:
        _add_to(model, f"relu{first}")
        _add_to(model, "relu33")

    search = PrefixSearch(Candidate(model), Judge(_Device(model, change), Criterion()))
    length = search.run()
    assert length == first + 1
    assert search.probes[length].name == f"relu{first}"
    assert any(probe.verdict.within for count, probe in search.probes.items() if count > length)
    probes = [search.probes[count] for count in sorted(search.probes)]
    found = Bisection("m", "d", 40, 9, Criterion(), probes=probes)
    assert str(found) == f"<Bisection of m with d: beyond tolerance, first at ReLU 'relu{first}'>"
    assert str(Bisection("m", "d", 40, 9, Criterion())) == "<Bisection of m with d: within tolerance>"
    marks = {row[1]: row[0] for row in found.table().rows}
    beyond = {probe.count for probe in probes if not probe.verdict.within}
    assert marks == {probe.count: "beyond" if probe.count in beyond else "" for probe in probes} | {length: "first"}


# --------------------------------------------------------------------------- what is at hand


def test_the_very_first_layer() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    product = ops.multiply(x, ops.constant(np.float32([[1, 2, 3]]), name="factors"), name="product")
    model = ovir.Model([ops.relu(product, name="relu")], [x])
    other = model.clone()
    other.set_constant("factors", np.float32([[1, 2, 4]]))
    found = ovir.bisect(model, other)
    assert [(probe.name, probe.verdict.within) for probe in found.probes] == [("product", False), ("relu", False)]


def test_recorded_tensors() -> None:
    model = transformer(60, {37: _tanh})
    names = [layer.key for layer in model.layers if layer.outputs and layer.type != "Const"]
    inputs = ovir.random_inputs(model)
    taps = ovir.compile_model(model)(inputs, taps=names).taps
    recorded = {name: arrays[0] for name, arrays in taps.items()}
    assert ovir.bisect(model, recorded)
    recorded["culprit"] = recorded["culprit"] + 1
    found = ovir.bisect(model, recorded)
    assert found.first.name == "culprit"
    assert found.recovered is not None, "the layers behind were recorded without the change"
    assert [suspect.name for suspect in found.suspects] == ["culprit"]
    assert found.not_compared == []


def _line(count: int = 8) -> ovir.Model:
    """x -> relu0 -> relu1 -> ... -> out"""
    x = y = ops.parameter([2, 3], "f32", name="x")
    for i in range(count):
        y = ops.relu(y, name=f"relu{i}")
    return ovir.Model([ops.result(y, name="out")], [x])


def _recorded(model: ovir.Model, *names: str, **changes: float) -> dict[str, Array]:
    """Return some tensors of a run, with numbers added to some of them."""
    taps = ovir.compile_model(model)(ovir.random_inputs(model), taps=names).taps
    return {name: arrays[0] + np.float32(changes.get(name, 0)) for name, arrays in taps.items()}


def test_layers_that_were_not_recorded_are_suspects(tmp_path: Path) -> None:
    model = _line()
    found = ovir.bisect(model, _recorded(model, "x", "relu1", "relu5", relu5=1), output=tmp_path / "part.xml")
    assert found.first.name == "relu5"
    assert [suspect.name for suspect in found.suspects] == ["relu2", "relu3", "relu4", "relu5"]
    assert [suspect.reason for suspect in found.suspects] == [*["it was not recorded"] * 3, None]
    assert found.between == ["relu1"]
    assert found.recovered is None, "no later tensor was recorded"
    assert [layer.name for layer in found.not_compared] == ["relu0", "relu2", "relu3", "relu4", "relu6", "relu7"]
    part = ovir.read_model(tmp_path / "part.xml")
    assert [layer.name for layer in part.layers if layer.type == "ReLU"] == ["relu2", "relu3", "relu4", "relu5"]
    assert not ovir.compare(part, tmp_path / "part_actual.npz", inputs=tmp_path / "part_input.npz")
    assert ovir.compare(part, tmp_path / "part_expected.npz", inputs=tmp_path / "part_input.npz")


def test_a_tensor_of_another_shape_is_a_problem() -> None:
    model = _line()
    found = ovir.bisect(model, {**_recorded(model, "x"), "relu3": np.zeros((2, 4), np.float32)})
    assert found.to_dict()["first"]["problem"] == "has shape [2,4], but [2,3] was expected"


def test_nothing_is_claimed_of_tensors_that_were_not_recorded() -> None:
    model = _line()
    found = ovir.bisect(model, _recorded(model, "x", "relu1", "relu5"))
    assert found
    assert (found.probes, found.suspects) == ([], [])
    assert len(found.not_compared) == 6
    assert ovir.bisect(model, _recorded(model, "x", "relu7")).probes[0].verdict.within


def test_small_errors_that_grow_make_earlier_layers_suspects(tmp_path: Path) -> None:
    """The culprit is within the tolerance; the layers after it enlarge the difference, and are right."""
    x = ops.parameter([2, 3], "f32", name="x")
    before = ops.relu(x, name="before")
    culprit = ops.multiply(before, np.float32(2), name="culprit")
    small = ops.subtract(culprit, ops.add(before, before, name="twice"), name="small")
    model = ovir.Model([ops.multiply(small, np.float32(1e6), name="large")], [x])
    feeds = {"x": np.float32([[1, 2, 3], [4, 5, 6]])}
    other = model.clone()
    constant = other.layer("culprit").inputs[1].source
    other.set_constant(constant.layer.key, np.float32(2.00001))
    names = ("x", "before", "culprit", "twice", "large")
    recorded = {name: arrays[0] for name, arrays in ovir.compile_model(other)(feeds, taps=names).taps.items()}
    found = ovir.bisect(model, recorded, inputs=feeds, output=tmp_path / "part.xml")
    assert [suspect.name for suspect in found.suspects] == ["culprit", "small", "large"]
    assert found.between == ["before", "twice"]
    part = tmp_path / "part.xml"
    assert not ovir.compare(part, tmp_path / "part_actual.npz", inputs=tmp_path / "part_input.npz")


def test_a_part_for_which_inference_needs_sizes(tmp_path: Path) -> None:
    """A variable of known size starts with zeros of a recorded size."""
    x = ops.parameter([-1, 3], "f32", name="x")
    size = ops.concat([ops.gather(ops.shape_of(x), [0], 0), [3]], 0, name="size")
    read = ops.read_value(ops.broadcast(np.float32(0), size, name="zeros"), "sum", "f32", [-1, 3], name="read")
    total = ops.add(ops.relu(x, name="relu"), read, name="total")
    assign = ops.assign(total, "sum")
    model = ovir.Model([ops.result(ops.exp(total, name="exp"))], [x], sinks=[assign])
    feeds = {"x": np.ones((2, 3), np.float32)}
    taps = ovir.compile_model(model)(feeds, taps=["size", "relu", "exp"]).taps
    recorded = {name: arrays[0] for name, arrays in taps.items()} | feeds
    recorded["exp"] = recorded["exp"] + 1
    found = ovir.bisect(model, recorded, inputs=feeds, output=tmp_path / "part.xml")
    assert [suspect.name for suspect in found.suspects] == ["zeros", "read", "total", "exp"]
    files = [tmp_path / name for name in ("part.xml", "part_actual.npz", "part_input.npz")]
    assert not ovir.compare(files[0], files[1], inputs=files[2])


def test_outputs_of_a_model_without_a_common_layer(tmp_path: Path) -> None:
    def made(*layers: Any) -> ovir.Model:
        x = y = ops.parameter([2, 3], "f32", name="x")
        for i, layer in enumerate(layers):
            y = layer(y, name=f"{layer.__name__}{i}")
        return ovir.Model([ops.result(y, name="out")], [x])

    model, other = made(ops.relu, ops.exp, ops.abs), made(ops.sigmoid, ops.floor, ops.tanh, ops.sin)
    found = ovir.bisect(model, other, output=tmp_path / "part.xml")
    assert not found
    assert [suspect.name for suspect in found.suspects] == ["relu0", "exp1", "abs2"]
    assert found.runs == 2  # one that differs, and one that shows that these layers make it differ
    assert {suspect.reason for suspect in found.suspects[:2]} == {"the other model has no such layer"}
    assert not ovir.compare(tmp_path / "part.xml", tmp_path / "part_other.xml", inputs=tmp_path / "part_input.npz")


def test_a_second_model_that_fails_at_a_layer_of_its_own(tmp_path: Path) -> None:
    model = _line()
    other = model.clone()
    relu = other.layer("relu3")
    count = ops.shape_of(ops.non_zero(relu, "i64", name="places"), name="count")
    other.insert_after(relu[0], ops.reshape(relu, ops.add(count, [0, 1]), False, name="impossible"))
    found = ovir.bisect(model, other, inputs={"x": np.ones((2, 3), np.float32)}, output=tmp_path / "part.xml")
    assert not found
    assert "impossible" in str(found.first.verdict.problem)
    assert "relu4" in {suspect.name for suspect in found.suspects}


def test_a_second_model_on_a_device(device: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = branches(40, {27: _tanh})
    other = model.clone()
    assert ovir.bisect(model, other, device="openvino:CPU")
    device.setenv("OVIR_TEST_FAULT", "wrong:Tanh")
    found = ovir.bisect(model, other, device="openvino:CPU", output=tmp_path / "part.xml")
    assert [suspect.name for suspect in found.suspects] == ["culprit"]
    part, feeds = tmp_path / "part.xml", tmp_path / "part_input.npz"
    assert not ovir.compare(part, tmp_path / "part_other.xml", device="openvino:CPU", inputs=feeds)
    assert not ovir.compare(part, tmp_path / "part_actual.npz", inputs=feeds)


# --------------------------------------------------------------------------- results and arguments


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    model = chain(6, {})
    with pytest.raises(ovir.InputError, match="must end in"):
        ovir.bisect(model, model.clone(), output=tmp_path / "part.txt")
    with pytest.raises(ovir.InputError, match="rtol must be"):
        ovir.bisect(model, model.clone(), rtol=-1)
    for name, hint in (("gpu", "the device is openvino:GPU"), ("GPU.1", "the device is openvino:GPU.1"), ("tpu", None)):
        with pytest.raises(ovir.InputError, match=f"cannot compare with '{name}'") as caught:
            ovir.bisect(model, name)
        assert caught.value.diagnostic.hint == hint


# --------------------------------------------------------------------------- planted faults


class _Planted(OvirDevice):
    """ovir with the layers of a faulty model in place of the model's own."""

    def __init__(self, model: ovir.Model, faulty: ovir.Model) -> None:
        super().__init__(model)
        self._faulty = faulty

    def run(self, model: ovir.Model, inputs: Sequence[Array]) -> list[Array]:
        sources = [port.source for port in model.outputs if port.source is not None]
        outputs = [(port.layer.name, port.index) for port in sources]
        part = self._faulty.extract(inputs=[port.layer.name for port in model.inputs], outputs=outputs)
        return super().run(part, inputs)


@pytest.mark.parametrize(("maker", "share"), [("chain", 0.1), ("branches", 0.3), ("transformer", 0.1)])
def test_planted_faults_are_named(maker: str, share: float) -> None:
    """They are among the suspects of a recording, whatever it has."""
    model, rng = MAKERS[maker](40, {}), random.Random(2)
    feeds = ovir.random_inputs(model)
    recorded = recording(model, feeds, rng, share)
    faults = list(islice(plant(model, feeds, rng), 3))
    assert len(faults) == 3
    for fault in faults:
        assert ovir.bisect(model, fault.model, inputs=feeds).first.name == fault.layer
        judge = Judge(_Planted(model, fault.model), Criterion())
        search = PrefixSearch(Candidate(model, given=dict(enumerate(feeds.values()))), judge)
        length = search.run()
        if length is not None:  # the fault reaches the outputs
            assert search.probes[length].name == fault.layer
        assert bisect_problem(fault, recorded, feeds) is None, fault.what
        assert bisect_problem(fault, model, feeds) is None, fault.what


def test_outputs_of_one_name_are_saved_under_several() -> None:
    x = ops.parameter([2], "f32", name="x")
    a, other = ops.abs(x, name="a"), ops.exp(x, name="a_2")
    model = ovir.Model([a, a, other], [x])
    arrays = [np.float32([i]) for i in range(3)]
    saved = Reproducer(model, [], None).named(arrays)
    assert [array.item() for array in saved.values()] == [0, 1, 2]


def test_a_part_that_cannot_be_shown_is_not_said_to_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side fails this time, or ovir cannot run the part."""
    x = ops.parameter([2], "f32", name="x")
    model = ovir.Model([ops.abs(ops.relu(x, name="relu"), name="abs")], [x])
    search = TensorSearch(Candidate(model), Mock(), Criterion())
    before, end = (model.layer(name).outputs[0] for name in ("relu", "abs"))
    assert search._shows([end], {before}, Mock(tensors=lambda *_: {end: np.zeros(2)})) is False
    monkeypatch.setattr(search, "_part", Mock(side_effect=ovir.ModelError(diagnose(ENGINE, "refused"))))
    assert search._shows([end], {before}, Mock(tensors=lambda *_: {before: np.zeros(2), end: np.zeros(2)})) is False


@pytest.mark.parametrize(("known", "missing"), [("", None), ("a", "b"), ("b", "a"), ("ab", None)])
def test_the_first_output_that_was_not_compared(known: str, missing: str | None) -> None:
    x = ops.parameter([2], "f32", name="x")
    outputs = [ops.abs(x, name="a"), ops.relu(x, name="b")]
    search = TensorSearch(Candidate(ovir.Model([*outputs[::-1], ops.result(x)], [x])), Mock(), Criterion())
    search._known = {layer.outputs[0]: Mock() for layer in outputs if layer.name in known}
    assert [port.layer.name for port in search._first_missing_output()] == [missing or search._layers[0].name]


def test_a_part_that_ovir_cannot_run_does_not_differ() -> None:
    x = ops.parameter([2], "f32", name="x")
    whole = Candidate(ovir.Model([ops.abs(ops.relu(x))], [x]))
    tried: list[int] = []

    def judge(model: ovir.Model, feeds: Any) -> Any:
        tried.append(len(model.layers))
        raise ovir.RunError(diagnose(ENGINE, "refused"))

    assert smallest_part(whole, judge) is whole  # type: ignore[arg-type]
    assert tried
    without = Judge(OvirDevice(whole.model), Criterion())
    assert without(ovir.Model([], []), []).within
