"""What an export takes from the installed packages: the default opset, and the types of the kernels of onnxruntime."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.builder import Net

import ovir

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the export and its engine need {package}")

import onnx  # noqa: E402
import onnxruntime  # noqa: E402

from ovir.core.element_types import ElementType, f4e2m1, f8e8m0, f16, f32, u2  # noqa: E402
from ovir.export import onnx_graph, session, support  # noqa: E402
from ovir.export.model_exporter import export_model  # noqa: E402
from ovir.export.onnx_graph import Graph, NotExportable  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402
from ovir.export.support import TESTED_OPSET, default_opset, engine_opset, kernel_types, opset_for  # noqa: E402

trimmed: list[int] = []
"""The calls of a C library that returns memory."""


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    for function in (default_opset, support._kernels):
        function.cache_clear()
    yield
    for function in (default_opset, support._kernels):
        function.cache_clear()


def test_default_opset_is_run_and_tested() -> None:
    net = Net()
    net.result(net.op("SoftMax", net.parameter("x", "2,4"), opset=8, axis="-1"))
    assert 17 <= default_opset() <= min(TESTED_OPSET, onnx.defs.onnx_opset_version())
    OnnxRuntimeSession(export_model(net.model(), default_opset()))


def test_default_opset_with_an_older_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 19)
    assert default_opset() == 19


def test_default_opset_with_an_onnxruntime_that_refuses_newer_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(model: bytes, **options: object) -> None:
        if onnx.ModelProto.FromString(model).opset_import[0].version > 20:
            raise ValueError("opset 20 is the newest")

    monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
    assert default_opset() == 20


def test_newer_packages_do_not_change_the_default_opset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 99)
    monkeypatch.setattr(support, "_is_run", lambda opset: True)
    assert default_opset() == TESTED_OPSET


@pytest.mark.parametrize(
    ("target", "opset"),
    [
        (None, 25),
        *(("onnxruntime:1.17", 20), ("onnxruntime:1.20.1", 21), ("onnxruntime:1.23", 23), ("onnxruntime:1.24", 25)),
        *(("onnxruntime:1.25", 26), ("onnxruntime:1.32", 26), ("onnxruntime:2.0", 26)),
    ],
)
def test_opset_that_releases_read(target: str | None, opset: int, tmp_path: Path) -> None:
    """The opsets were read off releases: each opened models of its opset, and none of the next one."""
    assert opset_for(target) == min(opset, default_opset())
    exported = ovir.export_onnx(sum_of_halves(), tmp_path / "model.onnx", target=target)
    assert exported.onnx.opset_imports[""] == min(opset, default_opset())


@pytest.mark.parametrize("target", ["onnxruntime:1.16", "onnxruntime", "onnxruntime:1", "tensorrt:10.1", ""])
def test_targets_that_are_not_known(target: str, tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match=r"target has to name a release of onnxruntime from 1\.17 on"):
        ovir.export_onnx(sum_of_halves(), tmp_path / "model.onnx", target=target)
    with pytest.raises(ovir.InputError, match="target excludes an opset: the release decides which it is"):
        ovir.export_onnx(sum_of_halves(), tmp_path / "model.onnx", 17, target=target)


@pytest.mark.parametrize(
    ("types", "opset"),
    [((f32, u2), 21), ((f32, f4e2m1), 23), ((f8e8m0, f4e2m1), 24), ((), 21), ((ElementType.parse("dynamic"),), 21)],
)
def test_the_engine_takes_a_later_opset_only_for_types_that_need_it(types: tuple[ElementType, ...], opset: int) -> None:
    assert engine_opset(types) == opset


def test_types_of_kernels() -> None:
    known = kernel_types("Softmax", 13, "T")
    assert known is not None
    assert "tensor(float)" in known
    assert "tensor(int64)" not in known


@pytest.mark.parametrize(
    ("operator", "version"), [("Softmax", 99), ("Cast", 99), ("NoSuchOperator", 13), ("FusedMatMul", 1)]
)
def test_nothing_is_known_of_versions_without_kernels(operator: str, version: int) -> None:
    assert kernel_types(operator, version, "T") is None


def test_export_without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnxruntime", "onnxruntime.capi.onnxruntime_pybind11_state"):
        monkeypatch.setitem(sys.modules, name, None)
    assert kernel_types("Softmax", 13, "T") is None
    assert default_opset() == min(TESTED_OPSET, onnx.defs.onnx_opset_version())
    assert len(export_model(sum_of_halves(), default_opset()).onnx.graph) > 0


def sum_of_halves() -> ovir.Model:
    """Return a model with arithmetic on f16 constants, as compressed models have it."""
    net = Net()
    scaled = net.op("Multiply", net.const(np.ones(100, np.float16)), net.const(np.array(2, np.float16)))
    net.result(net.op("Add", net.parameter("x", "100"), net.op("Convert", scaled, destination_type="f32")))
    return net.model()


@pytest.mark.parametrize("known", [frozenset({"tensor(float)"}), frozenset({"tensor(int64)"}), None])
@pytest.mark.parametrize("opset", [17, onnx.defs.onnx_opset_version()])
def test_casts_end_whatever_kernels_there_are(
    monkeypatch: pytest.MonkeyPatch, opset: int, known: frozenset[str] | None
) -> None:
    monkeypatch.setattr(onnx_graph, "kernel_types", lambda *_: known)
    assert len(export_model(sum_of_halves(), opset).onnx.graph) > 0


def test_cast_of_a_type_that_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "_allowed", lambda schema, variable: frozenset({"tensor(float)", "tensor(bool)"}))
    graph = Graph(17)
    with pytest.raises(NotExportable, match="Cast of opset 17 does not take element type f16"):
        graph.cast(graph.constant(np.ones(100, np.float16), f16), f32)


@pytest.mark.parametrize(
    "library", [SimpleNamespace(), SimpleNamespace(malloc_trim=lambda count: trimmed.append(count))]
)
def test_memory_is_returned_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch, library: SimpleNamespace) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(session.ctypes, "CDLL", lambda name: library)
    trimmed.clear()
    session._return_memory()
    assert trimmed == [0] * hasattr(library, "malloc_trim")
