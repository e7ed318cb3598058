"""Weights that are written into while a model runs: what is computed from both is never passed off as a result."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.cli.commands import run
from ovir.cli.main import main
from ovir.runtime.compiled import InferRequest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be written into")
SIZE = 5000


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    net = Net()
    net.result(net.op("Add", net.parameter("x", f"?,{SIZE}"), net.const(np.ones(SIZE, np.float32))))
    return net.write(tmp_path)


def overwrite(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:  # in place
        file.write(np.full(SIZE, 2, np.float32).tobytes()[: len(data)])


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shorten(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4)


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(bytes(path.stat().st_size))
    other.replace(path)


def remove(path: Path) -> None:
    path.unlink()


IN_PLACE: dict[Callable[[Path], None], str] = {
    overwrite: "its 20,000 bytes were written again",
    lengthen: "it had 20,000 bytes, and now has 20,004",
    shorten: "it had 20,000 bytes, and now has 19,996",
}


def at_third_run(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], *, after: bool) -> None:
    """Change the weights before or after the third run."""
    infer, calls = InferRequest.infer, [0]

    def changing(request: InferRequest, *arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3 and not after:
            act()
        results = infer(request, *arguments, **options)
        if calls[0] == 3 and after:
            act()
        return results

    monkeypatch.setattr(InferRequest, "infer", changing)


def outcomes(xml: Path, **options: Any) -> list[str]:
    arrays = [np.full((1, SIZE), number, np.float32) for number in range(5)]
    with ThreadPoolExecutor(1) as pool:
        found = list(ovir.map(xml, arrays, pool, on_error="return", **options))
    for number, result in enumerate(found):
        if not isinstance(result, ovir.MapError):
            np.testing.assert_array_equal(result[0], np.full((1, SIZE), number + 1))
    return [str(result) if isinstance(result, ovir.MapError) else "done" for result in found]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("change", IN_PLACE)
def test_no_result_of_both_weights(
    change: Callable[[Path], None], after: bool, xml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change is shorten and not after:
        pytest.skip("a run that reads beyond the end of a mapped file ends the process")
    at_third_run(monkeypatch, lambda: change(xml.with_suffix(".bin")), after=after)
    found = outcomes(xml)
    assert found[:2] == ["done", "done"]
    assert IN_PLACE[change] in found[2]
    assert "the result of the input may be of both" in found[2]
    assert all("the input did not run" in text for text in found[3:])


@pytest.mark.parametrize("change", [replace, remove])
def test_a_file_that_is_replaced_changes_nothing(
    change: Callable[[Path], None], xml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_third_run(monkeypatch, lambda: change(xml.with_suffix(".bin")), after=False)
    assert outcomes(xml) == ["done"] * 5


@pytest.mark.parametrize("change", IN_PLACE)
def test_the_command_says_that_its_results_are_doubtful(
    change: Callable[[Path], None], xml: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_compiled = run._run_compiled

    def changing(*arguments: Any) -> Any:
        results = run_compiled(*arguments)
        change(xml.with_suffix(".bin"))
        return results

    monkeypatch.setattr(run, "_run_compiled", changing)
    assert main(["run", str(xml), "--shape", f"x=1,{SIZE}"]) == 1
    error = capsys.readouterr().err
    assert IN_PLACE[change] in error
    assert "the results may be of both" in error


def test_batches_are_checked_too(xml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_third_run(monkeypatch, lambda: overwrite(xml.with_suffix(".bin")), after=True)
    assert "the weights were overwritten" in outcomes(xml, batch=2)[-1]


def test_only_mapped_weights_have_files(xml: Path) -> None:
    mapped, copied = ovir.read_model(xml), ovir.read_model(xml.read_text(), xml.with_suffix(".bin").read_bytes())
    built = ovir.Model([ops.add(x := ops.parameter([2], "f32"), np.ones(2, np.float32))], [x])
    files = [ovir.compile_model(model).weight_files for model in (mapped, copied, built)]
    assert [[Path(file.path).name for file in found] for found in files] == [["model.bin"], [], []]
