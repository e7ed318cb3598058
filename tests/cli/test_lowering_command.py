"""``ovir edit --runtime``, and what ``ovir check --runtime`` says about it."""

from pathlib import Path

from support.command import Cli
from support.newer_models import attention, faulty

import ovir

DIGITS = "examples/xml/digits.xml"


def test_the_command_writes_what_a_release_reads(tmp_path: Path, cli: Cli) -> None:
    model, old = tmp_path / "new.xml", tmp_path / "old.xml"
    ovir.save_model(attention(), model)
    hints = [d.hint for d in ovir.check(model, runtime="2022.3") if d.code == "OVIR701"]
    assert hints == ["'ovir edit --runtime 2022.3' rewrites this layer"]
    done = cli("edit", str(model), "--runtime", "2022.3", "-o", str(old))
    assert done.status == 0
    assert "rewrote 1 layer for OpenVINO 2022.3: 1 x ScaledDotProductAttention-13" in done.out
    assert [d for d in ovir.check(old, runtime="2022.3") if d.code == "OVIR701"] == []
    assert ovir.read_model(old).version == 11


def test_the_command_refuses_before_it_writes(tmp_path: Path, cli: Cli) -> None:
    model, old = tmp_path / "new.xml", tmp_path / "old.xml"
    ovir.save_model(faulty(), model)
    hints = [d.hint or "" for d in ovir.check(model, runtime="2022.3") if d.code == "OVIR701"]
    assert sum("cannot be rewritten" in hint for hint in hints) == 2
    done = cli("edit", str(model), "--runtime", "2022.3", "-o", str(old))
    assert done.status != 0
    assert "'fake'" in done.err
    assert "'drawn'" in done.err
    assert not old.exists()


def test_preprocessing_is_rewritten_too(tmp_path: Path, cli: Cli) -> None:
    old = tmp_path / "old.xml"
    options = ("--runtime", "2022.1", "--input-type", "u8", "--input-layout", "NHWC", "--resize", "linear")
    done = cli("edit", DIGITS, *options, "-o", str(old))
    assert done.status == 0
    assert "x Interpolate-11" in done.out
    assert [d for d in ovir.check(old, runtime="2022.1") if d.code == "OVIR701"] == []
