"""Progress: nothing for a short command, the stage and its count on terminals for a long one, and nothing elsewhere."""

import shlex
import time
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from support.builder import Net
from support.terminals import PATIENCE, Shown, needs_terminal, open_terminal, read_all, run_in_terminal

import ovir
from ovir import opset13 as ops
from ovir.analysis.profile import profile_runs, time_runs
from ovir.cli.main import main
from ovir.cli.terminal import progress
from ovir.cli.terminal.display import LastLine, last_line
from ovir.cli.terminal.output import print_message, say
from ovir.cli.terminal.progress import advance, reported, showing_progress, text_of
from ovir.graph.layers import Layer
from ovir.ops.base import registry
from ovir.system import progress as stages_of_work
from ovir.system.progress import Stage, counted, stage, watching


def opened(name: str, done: int = 0, total: int = 0, item: object = "") -> Stage:
    made = Stage(name, total)
    made.done, made.item = done, item
    return made


LAYER = Layer(0, "conv [bold]1\n", "Convolution", "opset1")
READING = opened("reading")
RUNNING = opened("running", 1234, 4936, LAYER)
INNER = opened("running", 1, 2, Layer(1, "add", "Add", "opset1"))
ONE_FILE = opened("checking files", 0, 1, ("model.xml", False))


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ([], "working  1:05"),
        ([READING], "reading  1:05"),
        ([RUNNING], "running  ██████░░░░░░░░░░░░░░░░░░  1,234 of 4,936  1:05  Convolution conv [bold]1\\n"),
        ([RUNNING, INNER], "running  ██████░░░░░░░░░░░░░░░░░░  1,234 of 4,936  1:05  Add add"),
        ([RUNNING, READING], "running  ██████░░░░░░░░░░░░░░░░░░  1,234 of 4,936  1:05  Convolution conv [bold]1\\n"),
        ([ONE_FILE, READING], "reading  1:05"),
        ([opened("comparing", 3, 2, "x" * 50)], f"comparing  {'█' * 24}  3 of 2  1:05  {'x' * 40}"),
    ],
)
def test_the_outermost_count_is_shown(stages: list[Stage], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", TextIOWrapper(BytesIO(), "utf-8"))
    assert text_of(stages, 65.9, 200) == text


def test_inputs_have_a_rate_and_a_time_that_is_left() -> None:
    made = opened("running", 4, 10)
    made.start -= 10
    advance(made)
    assert (made.done, made.item) == (5, "0.5 inputs/s, 0:10 left")


def test_reported_work_has_a_rate() -> None:
    with watching() as stages, reported("comparing inputs", rate_of="inputs") as update:
        update(0, 10, "")
        assert stages[0].item == "0 inputs/s"
        stages[0].start -= 5
        update(5, 10, "")
        assert stages[0].item == "1 inputs/s, 0:05 left"


def test_a_narrow_terminal_cuts_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", TextIOWrapper(BytesIO(), "ascii"))
    assert text_of([opened("running", 1, 2, "größe幅幅")], 1.0, 200).startswith("running  [############............]")
    assert text_of([opened("幅" * 20)], 1.0, 11) == "幅" * 5


# --------------------------------------------------------------------------- stages


def test_nobody_watches_by_default() -> None:
    items = [1, 2]
    assert counted("counting", items) is items
    with stage("reading") as timed:
        assert 0 <= timed.seconds < 10


def test_stages_that_are_watched() -> None:
    seen = []
    with watching() as stages:
        with stage("outer"):
            for item in counted("inner", "ab"):
                seen.append([(s.name, s.done, s.total, s.item) for s in stages])
                assert item == stages[-1].item
        assert stages == []
    assert seen == [[("outer", 0, 0, ""), ("inner", done, 2, "ab"[done])] for done in (0, 1)]


@pytest.mark.parametrize("measure", [profile_runs, lambda *arguments: time_runs(*arguments, count=4)])
def test_repeated_runs_are_counted(measure: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    x = ops.parameter([2], "f32", name="x")
    compiled = ovir.compile_model(ovir.Model([ops.relu(x)], [x]))
    counts = []

    def infer(*_: object, **__: object) -> None:
        counts.append((stages[0].done, stages[0].total))

    monkeypatch.setattr(ovir.InferRequest, "infer", infer)
    with watching() as stages:
        measure(compiled, {})
    total = counts[0][1]
    assert total >= 7
    assert [done for done, _ in dict.fromkeys(counts)] == list(range(total))


def test_a_loop_that_fails_leaves_no_stage() -> None:
    def work() -> None:
        with stage("outer"):
            for _ in counted("inner", "ab"):
                raise ValueError("no")

    with watching() as stages:
        with pytest.raises(ValueError, match="no"):
            work()
        assert stages == []


def test_a_note_comes_when_the_work_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with reported("comparing", "the note") as update:
        assert capsys.readouterr().err == ""
        update(1, 3, "conv")
        assert capsys.readouterr().err == "the note\n"
    with reported("comparing", "the note"):
        pass
    assert capsys.readouterr().err == "the note\n"
    with pytest.raises(ValueError, match="refused"), reported("comparing", "the note"):
        raise ValueError("refused")
    assert capsys.readouterr().err == ""


# --------------------------------------------------------------------------- terminals


def show_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let progress appear at once, also after messages."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    monkeypatch.setattr("ovir.cli.terminal.display.QUIET", 0.0)


def drawn(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a terminal shows of some work, whose progress appears at once."""
    user, programs = open_terminal()
    with monkeypatch.context() as patch, open(programs, "w", encoding="utf-8") as stream:
        patch.setattr("sys.stderr", stream)
        show_at_once(patch)
        with showing_progress(), stage("reading"):
            work()
    return read_all(user).decode().replace("\r\n", "\n")


def until_drawn() -> None:
    end = time.monotonic() + PATIENCE
    while not last_line._text.startswith("reading"):
        assert time.monotonic() < end
        time.sleep(0.001)


ERASED = "\r" + " " * len("reading  0:00") + "\r"


@needs_terminal
def test_a_stage_is_drawn_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = drawn(until_drawn, monkeypatch)
    assert "\rreading  0:0" in text
    assert text.endswith(ERASED)
    assert "\n" not in text


@needs_terminal
def test_a_terminal_that_cannot_write_a_line_again_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert drawn(lambda: time.sleep(0.05), monkeypatch) == ""


def test_a_pipe_gets_nothing(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with showing_progress(), stage("reading"):
        time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


@needs_terminal
def test_messages_stand_in_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    def work() -> None:
        until_drawn()
        print_message("a message")
        until_drawn()

    before, after = drawn(work, monkeypatch).split("a message\n")
    assert before.endswith(ERASED)
    assert after.startswith("\rreading  0:0")


def test_what_goes_to_a_file_leaves_the_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    erased = []
    monkeypatch.setattr(LastLine, "_erase", lambda self: erased.append(self))
    say("text")
    assert erased == []


WAITING = """
import time
import ovir
from ovir.cli.terminal.display import last_line

@ovir.register("Wait", version="opset1")
class Wait(ovir.Operator):
    pure = False
    def infer(self, x):
        return x
    def run(self, x):
        end = time.monotonic() + SECONDS
        while "Wait wait" not in last_line._text and time.monotonic() < end:
            time.sleep(0.001)
        return x.copy()
"""


def run_waiting(seconds: float, folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Shown:
    """Run two layers that wait until the terminal shows that they run, at most for some seconds."""
    (folder / "waiting.py").write_text(WAITING.replace("SECONDS", str(seconds)))
    net = Net()
    x = net.parameter("x", "2")
    for index in range(2):
        x = net.op("Wait", x, name=f"wait{index}")
    net.result(x)
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    show_at_once(monkeypatch)
    return run_in_terminal("run", net.write(folder), "--extension", folder / "waiting.py", **environment)


@needs_terminal
@pytest.mark.parametrize("colors", ["", "1"])
def test_a_run_shows_its_layers(colors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_waiting(PATIENCE, tmp_path, monkeypatch, NO_COLOR=colors)
    assert done.status == 0
    assert "running  " in done.text
    assert " of 2  0:0" in done.text
    assert "Wait wait" in done.text
    assert ("\x1b[" in done.text) == (not colors)  # the table has bold heads
    lines = [line.rpartition("\r")[2] for line in done.text.split("\n")]
    assert not any("running" in line for line in lines)


@needs_terminal
def test_a_dumb_terminal_gets_neither_bars_nor_colors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_waiting(0.05, tmp_path, monkeypatch, TERM="dumb")
    assert done.status == 0
    assert "running" not in done.text
    assert not {"\x1b", "\r"} & set(done.text)


# --------------------------------------------------------------------------- commands


class Opened(list[Stage]):
    """A list of open stages that keeps the names of all that were ever in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def append(self, opened: Stage) -> None:
        self.names[opened.name] = None
        super().append(opened)


STAGES = {
    "check": ["reading", "reading layers", "inferring", "applying rules"],
    "run": ["reading", "inferring", "making inputs", "compiling", "running"],
    "run --repeat 2": ["running", "repeating"],
    "run --output {}/o.npz": ["running", "writing"],
    "infer": ["reading", "inferring", "explaining shapes", "laying out"],
    "show": ["reading", "inferring", "summing up", "laying out"],
    "diff {model}": ["reading", "matching layers", "comparing layers"],
    "compare {model}": ["comparing layers"],
    "bisect {model}": ["excluding layers"],
    "precision --to f16": ["measuring layers"],
    "extract --outputs product -o {}/part.xml": ["inferring", "writing"],
    "edit --prune -o {}/new.xml": ["inferring", "writing"],
    "python": ["writing code"],
    "export -o {}/model.onnx": ["reading", "loading onnx", "exporting", "writing", "checking the file"],
    "show --memory": ["summing up", "compiling"],
    "reduce --check 'grep -q MatMul {{}} && exit 3' -o {}/small.xml": ["reading", "removing layers", "writing"],
}


@pytest.mark.parametrize("command", STAGES)
def test_stages_of_commands(
    command: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *options = shlex.split(command.format(tmp_path, model=model))
    if name == "export":
        pytest.importorskip("onnx_ir", reason="the export needs onnx (ovir[onnx])")
    opened = Opened()
    token = stages_of_work._watched.set(opened)
    try:
        assert main([name, str(model), *options]) == 0
    finally:
        stages_of_work._watched.reset(token)
    assert not opened
    wanted = STAGES[command]
    assert [stage for stage in opened.names if stage in wanted] == wanted
