"""`--no-weights`: commands that look at the topology alone, where the .bin is absent or a pointer of git-LFS."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.command import Cli

import ovir
from ovir import opset13 as ops

DIGITS = Path("examples/xml/digits.xml")


@pytest.fixture(params=["absent", "pointer"])
def topology(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.copy(DIGITS, tmp_path / "model.xml")
    if request.param == "pointer":
        (tmp_path / "model.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    return tmp_path / "model.xml"


def test_a_part_says_where_its_constants_are(cli: Cli, topology: Path) -> None:
    """With the weights of the whole model, it computes what the whole model computes."""
    part = topology.with_name("part.xml")
    done = cli("extract", topology, "--no-weights", "--outputs", "relu1", "-o", part)
    assert (done.status, "the constants are in model.bin" in done.err) == (0, True)
    assert not part.with_suffix(".bin").exists()
    with pytest.raises(ovir.ModelError, match="OVIR501"):
        ovir.read_model(part)
    shutil.copy(DIGITS.with_suffix(".bin"), topology.with_name("real.bin"))
    model = ovir.read_model(part, topology.with_name("real.bin"))
    assert model.rt_info["ovir", "without_weights"] == "the constants are in model.bin"
    image = np.load("examples/xml/digits_input.npz")["image"]
    whole = ovir.compile_model(DIGITS)([image], taps=["relu1"]).taps["relu1"][0]
    np.testing.assert_array_equal(ovir.compile_model(model)([image])[0], whole)


@pytest.mark.parametrize("is_printed", [True, False])
def test_code_reads_the_constants_when_it_runs(cli: Cli, topology: Path, is_printed: bool) -> None:
    code = topology.with_name("build.py")
    done = cli("python", topology, "--no-weights", *([] if is_printed else ["-o", code]))
    assert (done.status, "reads the constants from model.bin" in done.err) == (0, True)
    if is_printed:
        code.write_text(done.out)
    assert "The constants are in 'model.bin', which was not read" in code.read_text().replace('"', "'")
    assert not code.with_suffix(".npz").exists()
    shutil.copy(DIGITS.with_suffix(".bin"), topology.with_suffix(".bin"))
    model = runpy.run_path(str(code))["model"]
    image = np.load("examples/xml/digits_input.npz")["image"]
    expected = ovir.compile_model(DIGITS)([image])[0]
    np.testing.assert_array_equal(ovir.compile_model(model)([image])[0], expected)


def test_code_needs_constants_that_are_packed(cli: Cli, tmp_path: Path) -> None:
    x = ops.parameter([3], "i8", name="x")
    packed = ops.convert(ops.constant([1, 2, 3], "i4"), "i8")
    ovir.save_model(ovir.Model([ops.add(x, packed)], [x], "m"), tmp_path / "model.xml")
    (tmp_path / "model.bin").unlink()
    done = cli("python", tmp_path / "model.xml", "--no-weights")
    assert (done.status, "the data of this constant of i4 is missing" in done.err) == (2, True)
