"""Compiled models are restored in other processes from their pickles."""

import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.worker_inputs import DIGITS, EXAMPLES, digits

import ovir
from ovir import opset13 as ops
from ovir.runtime import pickling
from ovir.runtime.pickling import PickledModel
from ovir.system.python_runtime import load_module

RESTORED = """
import pickle, sys
import numpy as np
compiled = pickle.load(open(sys.argv[1], "rb"))
inputs = np.load(sys.argv[2])
outputs = compiled(dict(inputs))
np.savez(sys.argv[3], outputs[0])
"""


def elsewhere(compiled: ovir.CompiledModel, inputs: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    """Return the first output that another process computes with the pickle."""
    (folder / "compiled.pickle").write_bytes(pickle.dumps(compiled))
    np.savez(folder / "inputs.npz", **inputs)
    files = [str(folder / name) for name in ("compiled.pickle", "inputs.npz", "outputs.npz")]
    done = subprocess.run([sys.executable, "-c", RESTORED, *files], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return np.load(files[2])["arr_0"]


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    compiled = ovir.compile_model(DIGITS)
    (inputs,) = digits(1)
    np.testing.assert_allclose(elsewhere(compiled, inputs, tmp_path), compiled(inputs)[0], atol=1e-6)


def test_shapes_and_options_are_kept(tmp_path: Path) -> None:
    model = ovir.read_model(DIGITS)
    model.reshape([3, 1, 8, 8])
    restored = pickle.loads(pickle.dumps(ovir.compile_model(model, threads=1, strict=True, emulate="f16")))
    assert str(restored.inputs[0].shape) == "[3,1,8,8]"
    assert restored.threads == 1
    assert restored.strict
    assert restored.emulation.element_type == "f16"


def test_the_weights_are_named_and_not_copied() -> None:
    assert len(pickle.dumps(ovir.compile_model(DIGITS))) < DIGITS.with_suffix(".bin").stat().st_size


def test_arrays_that_are_in_no_file_are_copied(tmp_path: Path) -> None:
    net = Net()
    big = np.arange(100_000, dtype=np.float32)
    net.result(net.op("Add", net.parameter("x", "1"), net.const(big)))
    compiled = net.compiled()
    np.testing.assert_array_equal(elsewhere(compiled, {"x": np.ones(1, np.float32)}, tmp_path), big + 1)
    path = tmp_path / "model.recipe"
    compiled.recipe().write(path)
    again = PickledModel.read(path)
    assert again.token == compiled.recipe().token
    np.testing.assert_array_equal(again.compile()([np.ones(1, np.float32)])[0], big + 1)


TWICE = """
import ovir


@ovir.register("Twice", version="extension")
class Twice(ovir.Operator):
    def infer(self, x):
        return x

    def run(self, x):
        return 2 * x
"""
SAVES = """
import pickle, sys

pickle.dump(ovir.compile_model(sys.argv[1]), open(sys.argv[2], "wb"))
"""


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Return a model with an operation that is not registered in this process."""
    path = tmp_path / "twice.xml"
    path.write_text((EXAMPLES / "swirl.xml").read_text().replace('type="Swirl"', 'type="Twice"'))
    return path


def restored_from(program: list[str], model: Path) -> ovir.CompiledModel:
    """Return the compiled model that a program of another process pickles."""
    target = model.with_suffix(".pickle")
    subprocess.run([sys.executable, *program, str(model), str(target)], check=True)
    restored = pickle.loads(target.read_bytes())
    assert isinstance(restored, ovir.CompiledModel)
    return restored


def assert_doubles(compiled: ovir.CompiledModel) -> None:
    x = np.ones([d.max_length for d in compiled.inputs[0].shape], np.float32)
    np.testing.assert_array_equal(compiled([x])[0], 2 * x)


def test_operations_of_an_extension_are_found_by_their_file(twice: Path) -> None:
    extension = twice.with_name("doubling.py")
    extension.write_text(TWICE)
    load = f"import ovir; from ovir.cli.options.opening import load_extensions; load_extensions([{str(extension)!r}])"
    assert_doubles(restored_from(["-c", load + SAVES], twice))


def test_an_embedded_recipe_holds_the_code_of_operations(tmp_path: Path) -> None:
    path = tmp_path / "halving.py"
    path.write_text(TWICE.replace("Twice", "Half").replace("2 * x", "x / 2"))
    half = load_module("halving", str(path)).Half
    x = ops.parameter([2], "f32")
    model = ovir.Model([ovir.create_layer("Half", [x], version="extension")], [x])
    named, embedded = (PickledModel.of(ovir.CompiledModel, model, {}, embedded=flag) for flag in (False, True))
    path.unlink()
    del sys.modules["halving"]
    with pytest.raises(ovir.ReadError, match=r"the Python file with an operation is missing"):
        named.compile()
    restored = embedded.compile()
    assert restored([np.float32([4, 6])])[0].tolist() == [2, 3]
    assert restored.model.layers[1].operator.__class__ is not half


@pytest.mark.parametrize("how", ["imported", "from a file", "without a file"])
def test_classes_are_found_by_their_file_only_if_there_is_no_other_way(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "unregistered.py"
    path.write_text("import ovir\n\n\nclass Unregistered(ovir.Operator):\n    pass\n")
    monkeypatch.setitem(sys.modules, "unregistered", None)  # which is put back afterwards
    module = load_module("unregistered", str(path))
    if how == "imported":
        monkeypatch.syspath_prepend(tmp_path)
    if how == "without a file":
        del module.__file__
    recipe = PickledModel.of(module.Unregistered, ovir.Model([], []), {})
    assert (str(path).encode() in recipe.content) == (how == "from a file")


def test_an_operation_of_the_main_module_is_sent_as_code(twice: Path) -> None:
    pytest.importorskip("cloudpickle", reason="classes of the main module are pickled by cloudpickle")
    script = twice.with_name("script.py")
    script.write_text(TWICE + SAVES)
    assert_doubles(restored_from([str(script)], twice))


def test_weights_that_have_changed_are_refused(tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes(DIGITS.with_suffix(suffix).read_bytes())
    data = ovir.compile_model(tmp_path / "m.xml").recipe()
    other = PickledModel("0" * 32, data.content, data.buffers)
    (tmp_path / "m.bin").write_bytes(b"x")
    with pytest.raises(ovir.ReadError, match="the weights have changed since the model was read"):
        other.compile()
    (tmp_path / "new.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes()[::-1])
    (tmp_path / "new.bin").replace(tmp_path / "m.bin")
    with pytest.raises(ovir.ReadError, match=r"the weights have changed .*: another file has their name"):
        other.compile()
    (tmp_path / "m.bin").unlink()
    with pytest.raises(ovir.ReadError, match=r"m\.bin"):
        other.compile()


def test_a_process_keeps_the_latest_models_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickling, "_opened", OrderedDict())
    compiled = ovir.compile_model(DIGITS)
    recipe, found = PickledModel.of(ovir.CompiledModel, compiled.model, {}), []
    for token in "abcdaeabdfa":
        pickling.open_compiled(token, lambda token=token: found.append(token) or recipe)
    assert "".join(found) == "abcdebf"
    assert [pickling.is_in_use(token) for token in "abcdef"] == [True, True, False, True, False, True]
    restored = pickle.loads(pickle.dumps(compiled))  # by the process that has compiled it
    assert restored.prepared is compiled.prepared
    assert pickling.is_in_use(compiled.recipe().token)


def test_an_embedded_recipe_needs_no_files(tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes(DIGITS.with_suffix(suffix).read_bytes())
    model = ovir.read_model(tmp_path / "m.xml")
    recipe = pickle.loads(pickle.dumps(PickledModel.of(ovir.CompiledModel, model, {}, embedded=True)))
    expected = ovir.compile_model(model)(digits(1)[0])[0]
    del model
    (tmp_path / "m.bin").unlink()
    np.testing.assert_allclose(recipe.compile()(digits(1)[0])[0], expected, atol=1e-6)


def test_a_recipe_in_a_file_is_mapped(tmp_path: Path) -> None:
    arrays, x = [np.arange(70_001, dtype=np.uint8), np.arange(300, dtype=np.float32)], ops.parameter([1], "f32")
    model = ovir.Model([*map(ops.constant, arrays), x], [x])
    recipe = PickledModel.of(ovir.CompiledModel, model, {"threads": 1}, token="t" * 32)
    assert len(recipe.buffers) == len(arrays)
    recipe.write(tmp_path / "recipe")
    found = PickledModel.read(tmp_path / "recipe")
    assert (found.token, found.content) == (recipe.token, recipe.content)
    assert [bytes(part) for part in found.buffers] == [bytes(part.raw()) for part in recipe.buffers]
    assert not any(np.frombuffer(part, np.uint8).ctypes.data % 64 for part in found.buffers)
    for array, result in zip(arrays, found.compile()(np.ones(1, np.float32)).values(), strict=False):
        np.testing.assert_array_equal(result, array)
