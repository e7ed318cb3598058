"""The progress bar: nothing for a short run, one line for a long one, layers of bodies not counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ovir.cli import progress
from ovir.cli.progress import CountedProgress, FileProgress, ProgressBar
from ovir.graph.layers import Layer

LAYER = Layer(0, "conv [bold]1", "Convolution", "opset1")
INNER = replace(LAYER, scope="loop/body/")


def run(bar: ProgressBar) -> None:
    for layer in (LAYER, INNER, LAYER):
        bar.will_run(layer, [])
        bar.did_run(layer, [], [])
    bar.stop()


def test_a_short_run_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    run(ProgressBar(2))
    assert capfd.readouterr() == ("", "")


def test_a_long_run_is_counted_on_stderr(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = ProgressBar(2)
    run(bar)
    assert bar.done == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Convolution conv [bold]1" in err


@pytest.mark.parametrize("is_terminal", [True, False])
def test_counted_work_is_shown_on_terminals(
    is_terminal: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with CountedProgress() as bar:
        bar.update(1, 3, "conv [bold]1")
    with FileProgress(3) as files:
        files.advance()
    err = capfd.readouterr().err
    assert ("conv [bold]1" in err) == ("1/3" in err) == is_terminal
