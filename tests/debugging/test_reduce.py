"""Reduction of models: the search for the smallest one, and the commands that check candidates."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.comparing import small_net
from support.large_models import Culprit, branches, chain, transformer
from support.processes import PATIENCE, has_ended, started, wait_for

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main
from ovir.debugging.candidates import Candidate
from ovir.debugging.failure_checks import Command, _needs_shell, status_text
from ovir.debugging.reduce import ReductionSearch
from ovir.graph.layers import LayerOrPort

pytestmark = pytest.mark.slow

# One culprit among a thousand layers: fewer than ten layers are left after fewer than 150 runs. The numbers hardly
# depend on the number of layers, so most tests have smaller models, the smallest where candidates run.
SIZE = 1000
SMALLER = 200
SMALLEST = 60
MAKERS = {maker.__name__: maker for maker in (chain, branches, transformer)}
Check = Callable[[str], int]


def _named(name: str) -> Culprit:
    return lambda x: ops.floor(x, name=name)


def _sqrt(x: LayerOrPort) -> LayerOrPort:
    return ops.sqrt(ops.subtract(x, np.float32(1e6)), name="culprit")


def _has_floors(*names: str) -> Check:
    """Fail if the model has all layers of these names, which are Floor layers."""
    return _contains(*(f'name="{name}" type="Floor"' for name in names))


def _contains(*texts: str) -> Check:
    """Fail if the file contains all texts."""

    def check(path: str) -> int:
        text = Path(path).read_text()
        return int(all(wanted in text for wanted in texts))

    return check


def _gives_nan(output: str | None = None) -> Check:
    """Fail if an output, or the output of this name, is NaN; another status if there is none of this name."""

    def check(path: str) -> int:
        model = ovir.read_model(path)
        results = ovir.compile_model(model)(ovir.random_inputs(model))
        if output is None:
            return int(any(np.isnan(array).any() for array in results.values()))
        return int(np.isnan(results[output]).any()) if output in results else 2

    return check


def _has_constant(value: float) -> Check:
    def check(path: str) -> int:
        constants = (layer for layer in ovir.read_model(path).layers if layer.type == "Const")
        return int(any((layer.operator.data == value).any() for layer in constants))

    return check


def _runs_out_of_range(path: str) -> int:
    model = ovir.read_model(path)
    try:
        ovir.compile_model(model, strict=True)(ovir.random_inputs(model))
    except ovir.RunError:
        return 1
    return 0


def _gather(x: LayerOrPort) -> LayerOrPort:
    """Read rows by indices that follow from the values of x, most of which are out of range."""
    indices = ops.convert(ops.add(ops.floor(x), np.float32(100)), "i32")
    rows = ops.gather(np.zeros((3, 1), np.float32), indices, 0, name="culprit")
    return ops.add(x, ops.squeeze(rows, [-1]))


def _find(maker: str, culprits: dict[int, Culprit], check: Check, size: int = SMALLER) -> ovir.Reduction:
    """Put culprits at places in thousandths of the model, and reduce it."""
    model = MAKERS[maker](size, {place * size // 1000: culprit for place, culprit in culprits.items()})
    found = ovir.reduce(model, check)
    assert found.layers_before >= size
    assert found.runs < 150
    assert found.layers < 10
    assert found.complete
    return found


@pytest.mark.parametrize(("maker", "size"), [("chain", SMALLER), ("branches", SIZE), ("transformer", SMALLER)])
def test_one_layer(maker: str, size: int) -> None:
    found = _find(maker, {617: _named("culprit")}, _has_floors("culprit"), size)
    assert len(found.model.layers) < 10
    assert [layer.name for layer in found.model.layers if layer.inputs and layer.outputs] == ["culprit"]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_pair_far_apart(maker: str) -> None:
    culprits = {211: _named("first"), 873: _named("second")}
    found = _find(maker, culprits, _has_floors("first", "second"))
    assert found.layers == 2
    assert len(found.model.layers) < 10


FORTIES = np.arange(24, dtype=np.float32).reshape(1, 4, 6) / 10 + 40


@pytest.mark.parametrize(
    ("maker", "culprit", "fails", "most"),
    [
        ("transformer", lambda x: ops.softmax(x, 0), _contains('axis="0"'), 1),
        ("branches", lambda x: ops.reduce_mean(ops.concat([x] * 7, 1), [1], True), _contains("<dim>28</dim>"), 2),
        ("chain", lambda x: ops.maximum(x, FORTIES), _has_constant(np.float32(42.3)), 1),
    ],
    ids=["an attribute", "a shape", "a value of a constant"],
)
def test_what_is_needed_of_a_culprit_is_left(maker: str, culprit: Culprit, fails: Check, most: int) -> None:
    assert _find(maker, {702: culprit}, fails).layers <= most


@pytest.mark.parametrize(
    ("maker", "fault", "fails"),
    [
        *((maker, _sqrt, _gives_nan()) for maker in MAKERS),
        ("branches", _sqrt, _gives_nan("out")),  # NaN passes through the layers behind
        ("chain", _gather, _runs_out_of_range),  # computed indices become constants
    ],
)
def test_the_culprit_is_left(maker: str, fault: Any, fails: Any) -> None:
    assert "culprit" in [layer.name for layer in _find(maker, {333: fault}, fails, SMALLEST).model.layers]


PYTHON = sys.executable


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """x -> relu -> tanh -> abs, with a second output."""
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    tanh = net.op("Tanh", relu, name="tanh")
    net.result(net.op("Abs", tanh, name="abs"), "out")
    net.result(relu, "other")
    return net.write(tmp_path)


def script(folder: Path, code: str) -> str:
    """Return a command that runs code with the path of the candidate in ``path``."""
    file = folder / "check it.py"
    file.write_text(f"import os, sys, time\npath = sys.argv[1]\ntext = open(path).read()\n{code}\n")
    return f"{PYTHON} '{file}' {{}}"


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(ovir.InputError) as caught:
        ovir.reduce(*arguments, **options)
    return str(caught.value)


# --------------------------------------------------------------------------- statuses


@pytest.mark.parametrize(
    ("code", "status"), [("sys.exit(7)", 7), ("pass", 0), ("os.kill(os.getpid(), 9)", -9), ("time.sleep(60)", 124)]
)
def test_the_status_of_a_command(tmp_path: Path, code: str, status: int) -> None:
    path = tmp_path / "a b.xml"
    path.touch()
    assert Command(script(tmp_path, code), timeout=0.2 if status == 124 else 30)(str(path)) == status


def test_a_shell_runs_what_needs_one(tmp_path: Path) -> None:
    path = tmp_path / "it's.xml"
    path.write_text("Tanh")
    for text, status in {
        "grep -q Tanh {} && exit 5": 5,
        "cat {} | grep -q ReLU": 1,
        "A=6 sh -c 'exit $A' {}": 6,
        "sh -c 'exit 8' {}": 8,
    }.items():
        assert Command(text)(str(path)) == status


def test_children_end_with_a_command_that_takes_too_long(tmp_path: Path) -> None:
    file, seconds = tmp_path / "children", 0.1
    while not file.exists() or not file.read_text():  # a busy machine starts them late
        seconds *= 2
        assert Command(f"sleep 60 & echo $! > {file}; wait # {{}}", timeout=seconds)("model.xml") == 124
    wait_for(lambda: has_ended(int(file.read_text())))


def test_ovir_in_a_command_is_this_one(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other" / "ovir"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit(99)\n")
    monkeypatch.setenv("PYTHONPATH", str(other.parent))
    assert Command("ovir show {}")(str(net)) == 0
    assert Command("ovir show {} --no-such-option")(str(net)) == 2


def test_statuses_in_words() -> None:
    assert [status_text(status) for status in (1, 124, -11, -99)] == [
        "status 1",
        "status 124 (taking too long)",
        "signal SIGSEGV",
        "signal 99",
    ]


# --------------------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    "code", ["sys.exit(7 if 'Tanh' in text else 0)", "'Tanh' in text and os.kill(os.getpid(), 11)"]
)
def test_a_status_or_a_signal(net: Path, tmp_path: Path, code: str) -> None:
    found = ovir.reduce(net, script(tmp_path, code))
    assert [layer.type for layer in found.model.layers] == ["Parameter", "Tanh", "Result"]
    assert found.status in (7, -11)
    assert (found.layers_before, found.layers) == (3, 1)


def test_another_status_does_not_count(net: Path) -> None:
    """A candidate without ReLU fails, too, but in another way."""

    def check(path: str) -> int:
        text = Path(path).read_text()
        return 2 if "ReLU" not in text else int("Tanh" in text)

    found = ovir.reduce(net, check)
    assert [layer.type for layer in found.model.layers if layer.inputs] == ["ReLU", "Tanh", "Result"]


def test_a_wanted_status(net: Path) -> None:
    def check(path: str) -> int:
        return 0 if "Tanh" in Path(path).read_text() else 1

    assert ovir.reduce(net, check, status=0).layers == 1
    assert "the check gives status 0 for the whole model, not 3" in refusal(net, check, status=3)


def test_the_model_itself_does_not_change(net: Path) -> None:
    model = ovir.read_model(net)
    ovir.reduce(model, lambda path: int("Tanh" in Path(path).read_text()))
    assert len(model.layers) == 6


def test_the_result_is_saved_and_equal_each_time(net: Path, tmp_path: Path) -> None:
    for name in "ab":
        ovir.reduce(net, lambda path: int("Tanh" in Path(path).read_text()), output=tmp_path / f"{name}.xml")
    assert (tmp_path / "a.xml").read_bytes() == (tmp_path / "b.xml").read_bytes()
    assert len(ovir.read_model(tmp_path / "a.xml").layers) == 3


# --------------------------------------------------------------------------- interruptions


def test_a_folder_continues_an_interrupted_reduction(net: Path, tmp_path: Path) -> None:
    calls: list[str] = []

    def check(path: str) -> int:
        text = Path(path).read_text()
        calls.append(text)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return int("Tanh" in text)

    work, small = tmp_path / "work", tmp_path / "small.xml"
    with pytest.raises(KeyboardInterrupt):
        ovir.reduce(net, check, work=work, output=small)
    assert (work / "best.xml").read_bytes() == small.read_bytes()
    found = ovir.reduce(net, check, work=work, output=small)
    assert found.layers == 1
    assert len(set(calls[3:5]) & set(calls[6 + 3 :])) == 0, "a candidate has been checked again"
    again = ovir.reduce(net, check, work=work)
    assert again.runs == 3
    assert ovir.diff(again.model, found.model).layers == []


def test_other_commands_in_the_same_folder_have_their_own_answers(net: Path, tmp_path: Path) -> None:
    for kind in ("Tanh", "Abs"):
        found = ovir.reduce(net, f"grep -vq {kind} {{}}; ! grep -q {kind} {{}}", work=tmp_path / "work")
        assert [layer.type for layer in found.model.layers] == ["Parameter", kind, "Result"]


def test_a_limited_number_of_runs(net: Path, tmp_path: Path) -> None:
    found = ovir.reduce(net, lambda path: int("Tanh" in Path(path).read_text()), max_runs=4, output=tmp_path / "s.xml")
    assert (found.runs, found.complete) == (4, False)


def test_the_time_of_a_command_is_a_number_of_seconds(net: Path) -> None:
    assert "timeout must be a number of seconds above 0, got 0" in refusal(net, "true {}", timeout=0)
    assert "timeout must be a number of seconds above 0, got True" in refusal(net, "true {}", timeout=True)


def test_an_interrupt_saves_the_best_model_and_ends_the_command(net: Path, tmp_path: Path) -> None:
    code = "n = len(os.listdir('runs'))\nopen(f'runs/{n}', 'w').close()\n" + (
        "if n == 5: print(os.getpid(), file=open('pid', 'w', 1)); time.sleep(60)\nsys.exit('Tanh' in text)"
    )
    (tmp_path / "runs").mkdir()
    command = [PYTHON, "-m", "ovir", "reduce", net, "--check", script(tmp_path, code), "-o", "small.xml"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, cwd=tmp_path, **pipes) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "the best model so far is saved: small.xml: " in err
    assert err.endswith("interrupted\n")
    assert len(ovir.read_model(tmp_path / "small.xml").layers) < 6
    wait_for(lambda: has_ended(int((tmp_path / "pid").read_text())))


# --------------------------------------------------------------------------- messages


def test_checks_that_cannot_be_used(net: Path, tmp_path: Path) -> None:
    assert "the check command does not contain {}: ovir run" in refusal(net, "ovir run")
    assert "cannot be split into arguments: No closing quotation" in refusal(net, "ovir run '{}")
    assert "the check command cannot be started: there is no program ./nothing" in refusal(net, "./nothing {}")
    assert "the check command cannot be started: " in refusal(net, "cat {} | nothing_of_this_name")
    assert "the check gives status 0 for the whole model: there is no failure" in refusal(net, "true {}")
    assert "the check must return an integer, got None" in refusal(net, lambda path: None)
    flaky = iter(range(9))
    message = refusal(net, lambda path: next(flaky))
    assert "the check is flaky: for the whole model it gives status 0, then status 1" in message


def test_a_check_that_fails_for_all_models_is_refused(net: Path, tmp_path: Path) -> None:
    """A model that returns its inputs fails, too, so that the result would blame any layer."""
    command = script(tmp_path, "print('no such device'); sys.exit(2)")
    message = refusal(net, command, output=tmp_path / "small.xml")
    assert "the check gives status 2 even for a model without layers" in message
    assert "it prints: no such device" in message
    assert not (tmp_path / "small.xml").exists()


def test_constants_are_recorded_for_given_inputs() -> None:
    """The check feeds an input of the name x, so that there may be no other input, and looks for a large output."""
    net = Net()
    x = net.parameter("x", "3")
    total = net.op("Add", net.op("Exp", x, name="exp"), net.op("Abs", x, name="abs"), name="add")
    net.result(net.op("Tanh", net.op("Multiply", total, total, name="square"), name="tanh"), "out")
    net.result(net.op("Exp", total, name="large"), "large")

    def check(path: str) -> int:
        model = ovir.read_model(path)
        if [f"{port.any_name} {port.shape}" for port in model.inputs] != ["x [3]"]:
            return 2
        results = ovir.compile_model(model)(np.float32([2, 3, 4]))
        return int(any((array > 1e9).any() for array in results.values()))

    found = ovir.reduce(net.model(), check, inputs={"x": np.float32([2, 3, 4])}).model
    assert [layer.name for layer in found.layers if layer.inputs and layer.outputs] == ["large"]
    constant = next(layer for layer in found.layers if layer.type == "Const")
    assert constant.operator.data.max() > 50  # exp(4); random inputs are below 1


def test_inputs_are_given_by_name(net: Path, tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match="no input 'y'"):
        ovir.reduce(net, "true {}", inputs={"y": np.zeros((2, 3), np.float32)})


def test_it_ends_where_a_smaller_size_changes_nothing(tmp_path: Path) -> None:
    """The numbers 2 and 3 of a shape cannot be replaced without the dimensions that it depends on."""
    net = Net()
    flat = net.op("Reshape", net.parameter("x", "2,3"), net.const(np.int64([3, 2])), special_zero="false", name="flat")
    net.result(net.op("MatMul", flat, net.const(np.ones((2, 5), np.float32)), name="product"))

    def check(path: str) -> int:
        model = ovir.read_model(path)
        return int(any(layer.type == "MatMul" and "3" in str(layer.shape) for layer in model.layers))

    assert ovir.reduce(net.model(), check).complete


def test_every_candidate_that_is_kept_is_another_model(tmp_path: Path) -> None:
    """The 4 of the constant is needed, and no input has it."""
    net, kept = Net(), list[bytes]()
    net.result(net.op("Add", net.parameter("x", "3,1,2"), net.const(np.ones((4, 2), np.float32))))

    def attempt(candidate: Candidate, step: str) -> bool:
        ovir.save_model(candidate.model, tmp_path / "candidate.xml")
        text = b"".join((tmp_path / f"candidate.{suffix}").read_bytes() for suffix in ("xml", "bin"))
        fails = any(layer.type == "Add" and "4" in str(layer.shape) for layer in candidate.model.layers)
        assert not fails or text not in kept, step
        kept.extend([text] * fails)
        return fails

    ReductionSearch(Candidate(net.model()), attempt).run()
    assert len(kept) > 1


def test_a_difference_on_a_device_ends_at_its_layer(device: pytest.MonkeyPatch) -> None:
    """The status is the one of `ovir compare` for a difference."""
    device.setenv("OVIR_TEST_FAULT", "wrong:MatMul")
    options = ["--against", "openvino:CPU", "--config", "INFERENCE_PRECISION_HINT=f32"]
    x = ops.parameter([2, 3], "f32", name="x")
    product = ops.matmul(x, np.eye(3, dtype=np.float32), False, False, name="product")
    model = ovir.Model([ops.tanh(product, name="tanh")], [x])
    found = ovir.reduce(model, lambda path: main(["compare", path, *options]))
    assert found.status == 1
    assert [layer.name for layer in found.model.layers if layer.inputs and layer.outputs] == ["product"]


def test_a_device_that_is_missing_is_no_difference(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "missing:")
    message = refusal(small_net(), "ovir compare {} --against openvino:CPU")
    assert "even for a model without layers" in message
    assert "needs the package openvino" in message


@pytest.mark.parametrize(
    ("text", "is_for_shell"),
    [
        ("", False),
        ("run model", False),
        ("A=1 run", True),
        ("run A=1", False),
        ("run $HOME", True),
        ("run `date`", True),
        ("run | head", True),
        ("run>log", True),
        ("run; run", True),
        ("run a-b", False),
        ("python -c 'import sys; sys.exit(3 if 1 < 2 else 4)' {}", False),
    ],
)
def test_commands_that_need_a_shell(text: str, is_for_shell: bool) -> None:
    assert _needs_shell(text) == is_for_shell
