"""``ovir join``, and the preprocessing of ``ovir edit``: what they write and report."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.command import Cli

import ovir
from ovir import opset13 as ops

DIGITS = "examples/xml/digits.xml"
IMAGES = np.load("examples/xml/digits_input.npz")["image"]


@pytest.fixture
def best(tmp_path: Path) -> Path:
    """A model that finds the largest of ten numbers."""
    x = ops.parameter([-1, 10], "f32", name="image")
    values, index = ops.topk(x, 1, 1, "max", "value", name="best").outputs
    index.names = {"digit"}
    values.names = {"probability"}
    ovir.save_model(ovir.Model([index], [x], "best"), tmp_path / "best.xml")
    return tmp_path / "best.xml"


def test_two_models_become_one(cli: Cli, best: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.xml"
    done = cli("join", DIGITS, best, "--connect", "probabilities=image", "-o", both)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0].split() == ["tensor", "type"]
    assert "image   f32[?,1,8,8]" in done.out
    assert "digit   i32[?,1]" in done.out
    assert done.out.splitlines()[-1].startswith(f"{both}: ")
    assert ovir.compile_model(both)([IMAGES])["digit"].ravel().tolist() == list(range(10))
    assert cli("check", both).status == 0


def test_json_lists_the_model(cli: Cli, best: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.xml"
    done = cli("join", DIGITS, best, "--connect", "probabilities=image", "-o", both, "--json")
    found = json.loads(done.out)
    assert ([port["name"] for port in found["outputs"]], found["diagnostics"]) == (["digit"], [])


def test_a_model_takes_images_after_an_edit(cli: Cli, tmp_path: Path) -> None:
    new = tmp_path / "new.xml"
    done = cli("edit", DIGITS, "--rename", "image=photo", "--input-type", "u8", "--input-layout", "NHWC",
               "--resize", "linear", "--mean", "128", "--scale", "64", "-o", new)  # fmt: skip
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[1] == (
        "input 'photo': f32[?,1,8,8] -> u8[?,?,?,1] (element_type=u8, layout=NHWC, resize=linear, mean=128, scale=64)"
    )
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 1)).astype(np.uint8)
    expected = ovir.compile_model(DIGITS)([((pixels.astype(np.float32) - 128) / 64).transpose(0, 3, 1, 2)])[0]
    np.testing.assert_allclose(ovir.compile_model(new)({"photo": pixels})[0], expected, rtol=1e-5, atol=1e-6)


def test_the_input_is_named_where_there_are_several(cli: Cli, tmp_path: Path) -> None:
    a, b = ops.parameter([2], "f32", name="a"), ops.parameter([2], "f32", name="b")
    ovir.save_model(ovir.Model([a + b], [a, b]), tmp_path / "sum.xml")
    assert cli("edit", tmp_path / "sum.xml", "--mean", "b=1", "-o", tmp_path / "new.xml").status == 0
    assert ovir.compile_model(tmp_path / "new.xml")([np.ones(2, "f4"), np.ones(2, "f4")])[0].tolist() == [1, 1]
