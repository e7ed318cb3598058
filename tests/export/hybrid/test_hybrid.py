"""The engine onnxruntime, with NumPy for what ONNX cannot express."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import VERSIONS, Case, make_case
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir import opset15, opset16
from ovir.compiling import compile_model
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.export.hybrid.hybrid_model import HybridModel
from ovir.system.progress import watching

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the engine onnxruntime needs {package}")

from ovir.export.exporters import NOT_EXPORTED, exporter_of, rows  # noqa: E402  # needs onnx


@ovir.register("TwiceForHybrid", version="extension")
class Twice(ovir.Operator):
    """Twice the input: an operation that ONNX does not have."""

    def infer(self, data: Any) -> Any:
        return data

    def run(self, data: Any) -> Any:
        return data + data


def model_with_gap(shape: str = "2,4") -> ovir.Model:
    """Return softmax -> twice -> softmax, and a second branch that skips the middle."""
    net = Net()
    first = net.op("SoftMax", net.parameter("x", shape), opset=8, axis="-1", name="first")
    twice = net.op("TwiceForHybrid", first, name="twice")
    net.result(net.op("LogSoftmax", twice, opset=5, axis="0", name="last"))
    net.result(net.op("LogSoftmax", first, opset=5, axis="1", name="side"))
    xml = net.xml().replace('type="TwiceForHybrid" version="opset1"', 'type="TwiceForHybrid" version="extension"')
    return ovir.read_model(xml.encode(), bytes(net.blob))


def test_model_is_divided_where_onnx_lacks_the_operation() -> None:
    model = model_with_gap("?,4")
    compiled = compile_model(model, engine="onnxruntime")
    assert isinstance(compiled, HybridModel)
    assert [layer.name for layer in compiled.numpy_layers] == ["twice"]
    assert [[layer.name for layer in part.layers] for part in compiled.parts] == [["first", "side"], ["last"]]
    taps = ["first", "twice", "last"]
    for size in (1, 5, 1, 5, 3):
        array = np.random.default_rng(size).random((size, 4), np.float32)
        ours, theirs = compile_model(model)(array, taps=taps), compiled(array, taps=taps)
        plain = compiled(array)
        assert theirs.taps.keys() == set(taps)
        for a, b, c in zip(ours.values(), theirs.values(), plain.values(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(b, c)
        for name, arrays in ours.taps.items():
            np.testing.assert_allclose(theirs.taps[name][0], arrays[0], rtol=1e-6, atol=1e-6)


def test_layers_behind_gaps_of_different_lengths_are_one_part() -> None:
    net = Net()
    first = net.op("SoftMax", net.parameter("x", "2,4"), opset=8, axis="-1", name="first")
    ends = []
    for gaps in (1, 2):
        data = first
        for _ in range(gaps):
            data = net.op("TwiceForHybrid", data)
        ends.append(net.op("SoftMax", data, opset=8, axis="-1", name=f"behind {gaps}"))
    net.result(net.op("Add", *ends, name="last"))
    xml = net.xml().replace('type="TwiceForHybrid" version="opset1"', 'type="TwiceForHybrid" version="extension"')
    compiled = compile_model(ovir.read_model(xml.encode(), bytes(net.blob)), engine="onnxruntime")
    assert isinstance(compiled, HybridModel)
    assert [{layer.name for layer in part.layers} for part in compiled.parts] == [
        {"first"},
        {"behind 1", "behind 2", "last"},
    ]


def test_operations_in_parts_by_numpy_run_and_are_refused_by_the_export(tmp_path: Path) -> None:
    reasons = {name.rpartition("-")[0]: reason for name, target, reason in rows() if target == NOT_EXPORTED}
    assert reasons
    for kind, reason in reasons.items():
        case, model = model_of(kind)
        (layer,) = (layer for layer in model.layers if layer.type == kind)
        compiled = compile_model(model, engine="onnxruntime")
        assert isinstance(compiled, HybridModel)
        assert compiled.numpy_layers.keys() == {layer}
        for a, b in zip(compile_model(model)(case.feeds).values(), compiled(case.feeds).values(), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=kind)
        with pytest.raises(ovir.ExportError) as raised:
            ovir.export_onnx(model, tmp_path / "model.onnx")
        found = next(found for found in raised.value.diagnostics if found.layer_id == layer.id)
        assert found.message == f"cannot be exported to ONNX: {reason}"
        assert found.line == layer.line
        assert "--engine onnxruntime" in (found.hint or "")


def model_of(kind: str) -> tuple[Case, ovir.Model]:
    """Return a random model that has an operation and an input, and runs."""
    index = next(index for index, version in enumerate(VERSIONS) if version[0] == kind)
    for seed in range(index, index + 100 * len(VERSIONS), len(VERSIONS)):
        case = make_case(seed)
        try:
            model = ovir.read_model(case.text, case.weights)
            ovir.compile_model(model)(case.feeds)
        except ovir.OvirError:
            continue
        if case.feeds:
            return case, model
    raise AssertionError(f"no random model of {kind} runs")


def test_state_belongs_to_a_request() -> None:
    net = Net()
    x = net.op("SoftMax", net.parameter("x", "2"), opset=8, axis="0")
    state = net.op("ReadValue", net.const(np.zeros(2, np.float32)), opset=6, variable_id="v", variable_type="f32", variable_shape="2")  # fmt: skip
    net.op("Assign", net.op("Concat", x, opset=1, axis="0"), opset=6, outputs=0, variable_id="v")
    net.result(net.op("SoftMax", state, opset=8, axis="0"))
    compiled = compile_model(net.model(), engine="onnxruntime")
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    array = np.array([0, 5], np.float32)
    first, second = (one.infer(array)[0].copy() for _ in range(2))
    assert first.tolist() == [0.5, 0.5]
    assert second[1] > 0.6
    assert two.infer(array)[0].tolist() == [0.5, 0.5]


def test_unknown_engine() -> None:
    with pytest.raises(ovir.InputError, match="unknown engine 'tvm': expected 'numpy' or 'onnxruntime'"):
        compile_model(model_with_gap(), engine="tvm")


def test_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxruntime" else object())
    with pytest.raises(ovir.InputError, match=r"needs onnxruntime.*\n.*pip install \"ovir\[onnxruntime\]\""):
        compile_model(model_with_gap(), engine="onnxruntime")


@pytest.mark.parametrize("option", [{"strict": True}, {"keep_compressed": True}, {"emulate": "f16"}])
def test_options_of_numpy_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ovir.InputError, match=f"{next(iter(option))} needs the engine 'numpy'"):
        compile_model(model_with_gap(), engine="onnxruntime", **option)


def test_what_onnxruntime_refuses_runs_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from ovir.export.hybrid import partition

    whole = partition.OnnxRuntimeSession

    def refuse(exported: Any, **options: Any) -> Any:
        if any(node.op_type == "LogSoftmax" and node.name == "side" for node in exported.onnx.graph):
            text = (
                "onnxruntime cannot compile: Could not find an implementation for LogSoftmax(13) node with name 'side'"
            )
            raise ovir.RunError(diagnose(ENGINE, text))
        return whole(exported, **options)

    monkeypatch.setattr(partition, "OnnxRuntimeSession", refuse)
    model = model_with_gap()
    compiled = compile_model(model, engine="onnxruntime")
    assert sorted(layer.name for layer in compiled.numpy_layers) == ["side", "twice"]
    array = np.random.default_rng(0).random((2, 4), np.float32)
    for a, b in zip(compile_model(model)(array).values(), compiled(array).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_f16_constants_that_the_bodies_of_loops_read() -> None:
    """Release 1.32 of onnxruntime corrupts memory with such models unless an optimizer is off."""
    random = np.random.default_rng(0)
    sizes = ((2, 2, 1), (2, 2, 2), (2, 2))
    weights = [random.standard_normal(shape).astype(np.float16) for shape in sizes]
    x, state = ops.parameter([2, -1, -1], "f16", name="x"), ops.parameter([2, 2, 2], "f16", name="state")
    lengths = np.int64([2, 4])
    y = ops.rnn_sequence(x, state, lengths, *weights, 2, "bidirectional", clip=0.5)
    model = ovir.Model([y[0]], [x, state], "m")
    feeds = [random.random((2, 4, 1)).astype(np.float16), random.random((2, 2, 2)).astype(np.float16)]
    (ours,), (theirs,) = (compile_model(model, engine=engine)(feeds).values() for engine in ("numpy", "onnxruntime"))
    np.testing.assert_allclose(theirs.astype(np.float32), ours.astype(np.float32), atol=2e-3)


DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TUPLE = np.int64([[1, -1]])
WITH_AXIS: dict[str, tuple[Callable[..., ovir.Layer], list[Any]]] = {
    "Roll": (ops.roll, [DATA, np.int64([1]), np.int64([0])]),
    "Gather": (ops.gather, [DATA, np.int64([0, 1]), np.int64(0)]),
    "ScatterUpdate": (ops.scatter_update, [DATA, np.int64([0]), DATA[:1], np.int64(0)]),
    "ScatterElementsUpdate": (
        ops.scatter_elements_update,
        [DATA, np.zeros((1, 1, 1), np.int64), DATA[:1, :1, :1].copy(), np.int64(0)],
    ),
    "ReduceSum": (ops.reduce_sum, [DATA, np.int64([0])]),
    "ReduceMax": (ops.reduce_max, [DATA, np.int64([0])]),
    "CumSum": (ops.cum_sum, [DATA, np.int64(0)]),
    "DFT": (ops.dft, [np.stack([DATA[0], DATA[1]], -1), np.int64([0])]),
}


def in_onnxruntime(create: Callable[..., ovir.Layer], arrays: Sequence[np.ndarray]) -> HybridModel:
    """Return a model of one operation whose inputs are all inputs of the model."""
    inputs = [ops.parameter(array.shape, {"f": "f32", "i": "i64"}[array.dtype.kind]) for array in arrays]
    layer = create(*inputs)
    compiled = compile_model(ovir.Model(layer.outputs, inputs), engine="onnxruntime")
    assert isinstance(compiled, HybridModel)
    assert compiled.parts
    return compiled


@pytest.mark.slow
@pytest.mark.parametrize("axis", [3, 7, -4])
@pytest.mark.parametrize("name", WITH_AXIS)
def test_an_axis_that_the_data_lacks_is_an_error(name: str, axis: int) -> None:
    create, arrays = WITH_AXIS[name]
    compiled = in_onnxruntime(create, arrays)
    compiled(arrays)
    with pytest.raises(ovir.RunError) as caught:
        compiled([*arrays[:-1], np.full_like(arrays[-1], axis)])
    found = caught.value.diagnostic
    assert found.layer is not None
    assert f"({name}, " in found.layer
    assert "outside" in found.message


@pytest.mark.parametrize("tuple_", [(0, 4), (0, -5), (1, -5), (2, 0)])
def test_an_index_whose_position_another_row_has_is_an_error(tuple_: tuple[int, int]) -> None:
    """Without a check, each of the first three would change an element of a row beside the one that it names."""
    data, updates = DATA[:2, :, 0].copy(), np.ones(1, np.float32)
    compiled = in_onnxruntime(lambda *given: opset15.scatter_nd_update(*given, "sum"), [data, TUPLE, updates])
    assert compiled([data, TUPLE, updates])[0][1, -1] == data[1, -1] + 1
    with pytest.raises(ovir.RunError):
        compiled([data, np.int64([tuple_]), updates])


def upsampled(x: ovir.Layer) -> ovir.Layer:
    filters = np.random.default_rng(1).standard_normal((2, 3, 2)).astype(np.float32)
    return ops.convolution_backprop_data(x, filters, strides=[1], pads_begin=[1], pads_end=[1], dilations=[1])


NOT_COMPUTED: dict[str, tuple[Callable[..., ovir.Layer], list[Any], list[Any]]] = {
    **{
        f"{reduce.__name__} of nothing": (
            lambda x, reduce=reduce: reduce(x, [1], keep_dims=False),
            [np.ones((2, 2), np.float32)],
            [np.ones((2, 0), np.float32)],
        )
        for reduce in (ops.reduce_min, ops.reduce_mean, ops.reduce_sum, ops.reduce_prod, ops.reduce_l1, ops.reduce_l2)
    },
    "a transposed convolution without a result": (
        upsampled,
        [np.ones((1, 2, 4), np.float32)],
        [np.ones((1, 2, 1), np.float32)],
    ),
    "an index beyond the data": (
        lambda x, i: ops.gather(ops.relu(x), i, 0),
        [DATA, np.int64([0, 1])],
        [DATA, np.int64([0, 9, -7])],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("name", NOT_COMPUTED)
def test_values_that_onnxruntime_refuses_are_computed_with_numpy(name: str, is_edited: bool) -> None:
    create, ordinary, refused = NOT_COMPUTED[name]
    inputs = [ops.parameter([-1] * x.ndim, {"f": "f32", "i": "i64"}[x.dtype.kind]) for x in ordinary]
    if "convolution" in name:
        inputs = [ops.parameter([-1, 2, -1], "f32")]
    model = ovir.Model([create(*inputs)], inputs)
    expected = [compile_model(model)(arrays) for arrays in (ordinary, refused, ordinary)]
    compiled = compile_model(model, engine="onnxruntime")
    assert isinstance(compiled, HybridModel)
    assert compiled.parts
    compiled(ordinary)
    if is_edited:
        model.reshape({index: list(x.shape) for index, x in enumerate(ordinary)})
    for arrays, wanted in zip((ordinary, refused, ordinary), expected, strict=True):
        found = compiled(arrays)
        assert found[0].shape == wanted[0].shape
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-5)
        messages = " ".join(d.message for d in found.diagnostics)
        assert all(d.message in messages for d in wanted.diagnostics)


@pytest.mark.parametrize(
    ("message", "layer"),
    [
        ("Non-zero status code while running Gather node. Name:'picked' Status: too large", "layer 3 'picked'"),
        ("Non-zero status code while running Gather node. Name:'other' Status: too large", None),
        ("the session was closed", None),
    ],
)
def test_what_neither_engine_runs_names_the_layer_and_the_other_engine(
    monkeypatch: pytest.MonkeyPatch, message: str, layer: str | None
) -> None:
    from ovir.export.hybrid import partition

    def fail(*_: Any) -> Any:
        raise ovir.RunError(diagnose(ENGINE, message))

    def refuse(*_: Any) -> Any:
        raise ovir.ModelError(diagnose(ENGINE, "the parts do not fit together"))

    monkeypatch.setattr(partition.OnnxRuntimeSession, "run", fail)
    monkeypatch.setattr(partition.NumpyPart, "run", refuse)
    compiled = in_onnxruntime(lambda x, i: ops.gather(x, i, 0, name="picked"), [DATA, ROW])
    with pytest.raises(ovir.RunError) as caught:
        compiled([DATA, ROW])
    found = caught.value.diagnostic
    assert found.message == message
    assert (found.layer or "").partition(" (")[0] == (layer or "")
    assert "engine numpy" in (found.hint or "")


ENDING = """
import itertools, sys
import numpy as np
import ovir
from ovir import opset13 as ops

numbers = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
for kind, is_dynamic, inside in itertools.product(("lstm", "gru", "sequence", "unique"), (False, True), (False, True)):
    print(kind, "dynamic" if is_dynamic else "static", "inside" if inside else "input", flush=True)
    x = ops.parameter([-1, 4] if is_dynamic else [3 if inside else 0, 4], "f32", name="x")
    data = x
    if inside:  # rows of zeros are left out
        kept = ops.squeeze(ops.non_zero(ops.reduce_sum(x, [1], False)), [0])
        data = ops.gather(x, kept, 0)
    state = ops.multiply(data, np.float32(0.5))
    if kind == "lstm":
        out = ops.lstm_cell(data, state, state, numbers, numbers, numbers[:, 0], 4)[0]
    elif kind == "gru":
        out = ops.gru_cell(data, state, numbers[:12], numbers[:12], numbers[:12, 0], 4)
    elif kind == "sequence":
        one, three = ops.unsqueeze(data, [1]), ops.unsqueeze(state, [1])
        lengths = ops.broadcast(np.int64(1), ops.gather(ops.shape_of(data), [0], 0))
        weights = (w[None] for w in (numbers, numbers, numbers[:, 0]))
        out = ops.lstm_sequence(one, three, three, lengths, *weights, 4, "forward")[0]
    else:
        out = ops.unique(data, np.int64(0))[0]
    model = ovir.Model([ops.relu(out)], [x])
    own, other = (ovir.compile_model(model, engine=engine) for engine in ("numpy", "onnxruntime"))
    for rows in ([3] if inside else [2, 0, 2]) if is_dynamic else x.shape.to_tuple()[:1]:
        array = (np.zeros if inside else np.ones)((rows, 4), np.float32)
        assert np.allclose(own(array)[0], other(array)[0], atol=1e-5)
"""


@pytest.mark.slow
def test_empty_data_does_not_end_the_process() -> None:
    subprocess.run([sys.executable, "-c", ENDING], check=True)  # the last line that it prints names the fault


@pytest.mark.parametrize("is_input", [True, False])
def test_numpy_runs_cells_on_data_that_may_be_empty_inside_of_a_part(is_input: bool) -> None:
    x = ops.parameter([-1, 4], "f32")
    kept = x if is_input else ops.gather(x, ops.squeeze(ops.non_zero(ops.reduce_sum(x, [1], False)), [0]), 0)
    numbers = np.ones((16, 4), np.float32)
    compiled = compile_model(
        ovir.Model([ops.lstm_cell(kept, kept, kept, numbers, numbers, numbers[:, 0], 4)[0]], [x]), engine="onnxruntime"
    )
    assert isinstance(compiled, HybridModel)
    assert any(layer.type == "LSTMCell" for part in compiled.parts for layer in part.layers) == is_input


NONE, ROW = np.zeros(3, np.int64), np.int64([0, 1])
SILENT: dict[str, tuple[Callable[..., Any], list[Any], list[Any], str]] = {
    "Split": (lambda x, axis: ops.split(x, axis, 2), [DATA], [np.int64(1)], "leave over"),
    "VariadicSplit": (
        lambda x, axis, n: ops.variadic_split(x, axis, n),
        [DATA],
        [np.int64(2), np.int64([3, 3])],
        "leave over",
    ),
    "Transpose": (ops.transpose, [DATA], [np.int64([0, 1, -1])], "negative axes"),
    "Broadcast": (ops.broadcast, [DATA], [np.int64([2, 1, 4])], "do not fit"),
    "ReverseSequence": (lambda x, n: ops.reverse_sequence(x, n, 0, 1), [DATA], [np.int64([-1, 1])], "negative lengths"),
    "Eye": (lambda rows, columns: ops.eye(rows, columns, 0, "f32"), [], [np.int64(-2), np.int64(3)], "negative sizes"),
    "BatchToSpace": (ops.batch_to_space, [DATA, np.int64([1, 2, 1])], [np.int64([0, 9, 0]), NONE], "crops"),
    "SpaceToBatch": (ops.space_to_batch, [DATA, np.int64([1, 1, 1])], [np.int64([0, -1, 0]), NONE], "negative pads"),
    "CTCGreedyDecoderSeqLen": (ops.ctc_greedy_decoder_seq_len, [DATA], [np.int64([9, 1])], "lengths"),
    "EmbeddingSegmentsSum": (ops.embedding_segments_sum, [DATA[0], ROW, ROW], [np.int64(-2)], "negative num_segments"),
    "EmbeddingBagOffsetsSum": (ops.embedding_bag_offsets_sum, [DATA[0], ROW], [np.int64([1, 0])], "offsets"),
    "SegmentMax": (
        lambda x, ids: opset16.segment_max(x, ids, fill_mode="ZERO"),
        [DATA],
        [np.int64([1, 0])],
        "not sorted",
    ),
    "SparseFillEmptyRows": (
        opset16.sparse_fill_empty_rows,
        [np.float32([1, 2]), np.int64([3, 4])],
        [np.int64([[0, 1], [1, 9]]), np.float32(0)],
        "columns",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_operations_that_accept_excluded_values_of_a_run_name_them_as_limits(name: str) -> None:
    create, data, excluded, limit = SILENT[name]
    compiled = in_onnxruntime(create, [*data, *excluded])
    with pytest.raises(ovir.RunError):
        ovir.compile_model(compiled.model)([*data, *excluded])
    compiled([*data, *excluded])
    (op,) = (layer.operator for layer in compiled.model.layers if layer.type == name)
    found = exporter_of(type(op))
    assert found is not None
    assert limit in found.limits


@pytest.mark.parametrize(("gaps", "is_many"), [(3, False), (4, True)])
def test_many_parts_give_a_warning(gaps: int, is_many: bool) -> None:
    net = Net()
    data = net.op("SoftMax", net.parameter("x", "2,4"), opset=8, axis="-1")
    for _ in range(gaps):
        data = net.op("SoftMax", net.op("TwiceForHybrid", data), opset=8, axis="-1")
    net.result(data)
    xml = net.xml().replace('type="TwiceForHybrid" version="opset1"', 'type="TwiceForHybrid" version="extension"')
    compiled = compile_model(ovir.read_model(xml.encode(), bytes(net.blob)), engine="onnxruntime")
    messages = [str(diagnostic) for diagnostic in compiled.diagnostics if " parts" in diagnostic.message]
    assert len(messages) == is_many
    assert all("in 5 parts, because NumPy runs 4 layers between them (TwiceForHybrid)" in text for text in messages)


@pytest.mark.parametrize(
    ("rows", "columns", "inner", "is_small"),
    [("?", 8, 8, True), ("?", 1024, 512, False), (64, 8, 8, True), (8192, 64, 32, False)],
    ids=["few weights", "many weights", "small tensors", "large tensors"],
)
def test_small_model_gives_a_warning(rows: int | str, columns: int, inner: int, is_small: bool) -> None:
    x = ops.parameter([-1 if rows == "?" else rows, inner], "f32")
    model = ovir.Model([ops.matmul(x, np.ones((inner, columns), np.float32), False, False)], [x])
    messages = [diagnostic.message for diagnostic in compile_model(model, engine="onnxruntime").diagnostics]
    assert [f"the model has only {inner * columns} weights" in text for text in messages] == [True] * is_small


def test_loop_of_small_operators_runs_in_numpy() -> None:
    x = ops.parameter([3, 3], "f32")
    model = ovir.Model([ops.relu(opset15.inverse(ops.softmax(x, 1), adjoint=False))], [x])
    compiled = compile_model(model, engine="onnxruntime")
    assert isinstance(compiled, HybridModel)
    assert [(layer.type, "leaves it to NumPy" in str(why)) for layer, why in compiled.numpy_layers.items()] == [
        ("Inverse", True)
    ]
    array = np.random.default_rng(0).random((3, 3), np.float32)
    np.testing.assert_allclose(compiled(array)[0], compile_model(model)(array)[0], rtol=1e-4, atol=1e-4)


def test_compiling_in_onnxruntime_is_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    seen = []
    original = onnxruntime.InferenceSession

    def session(*arguments: Any, **options: Any) -> Any:
        seen.append([stage.name for stage in stages])
        return original(*arguments, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    with watching() as stages:
        compile_model(model_with_gap(), engine="onnxruntime")
    assert [names[-1] for names in seen] == ["compiling in onnxruntime"] * 2
