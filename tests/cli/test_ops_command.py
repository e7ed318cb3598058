"""`ovir ops OPERATION`: what ovir knows of each version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ovir.cli.operation_pages import described, entries, inputs_of
from ovir.ops import find


@pytest.mark.parametrize("name", ["Gather", "gather", "GATHER"])
def test_every_version_is_described(cli: Any, name: str) -> None:
    result = cli("ops", name)
    heads = [line for line in result.out.splitlines() if line.startswith("Gather-")]
    assert result.status == 0
    assert heads == ["Gather-1, in opset 1-6", "Gather-7, in opset 7", "Gather-8, in opset 8-16"]
    assert result.out.count("out[b, o, i, k] = data[b, o, indices[b, i], k]") == 3
    assert "    batch_dims  integer, default 0\n" in result.out
    assert "    indices  integer\n" in result.out
    assert "specification: Gather-8" in result.out


def test_choices_minima_and_required_attributes(cli: Any) -> None:
    out = cli("ops", "Convolution").out
    assert "    strides     integers, at least 1, required\n" in out
    assert "string, one of explicit, notset, valid, same_upper, same_lower, default explicit\n" in out


def test_an_operation_as_json(cli: Any) -> None:
    first, second = json.loads(cli("ops", "squeeze", "--json").out)
    assert (first["version"], first["opsets"], second["version"]) == ("opset1", "1-14", "opset15")
    assert first["inputs"][1] == {"name": "axes", "type": "integer", "optional": True, "repeated": False}
    assert second["attributes"] == [
        {
            "name": "allow_axis_skip",
            "type": "boolean",
            "choices": [],
            "minimum": None,
            "required": False,
            "default": "false",
        }
    ]


def test_a_misspelt_name(cli: Any) -> None:
    result = cli("ops", "Gahter")
    assert (result.status, result.out) == (2, "")
    assert result.err == "error[OVIR902] no opset has an operation 'Gahter'\n  hint: did you mean Gather?\n"


def test_the_page_of_all_operations_takes_no_names(cli: Any) -> None:
    assert cli("ops", "Gather", "--markdown").status == 2


def test_every_operation_has_a_description() -> None:
    for entry in entries():
        page = described(entry.cls)
        assert page["documentation"], entry
        assert "Base of" not in page["documentation"], entry
        assert page["source"], entry
        assert all(attribute["type"] for attribute in page["attributes"]), entry


def test_types_are_those_that_inference_accepts() -> None:
    cell, loop, concat = find("LSTMCell", 4), find("Loop", 5), find("Concat", 1)
    assert cell is not None
    assert loop is not None
    assert concat is not None
    assert [(i.name, i.repeated, i.shown_types) for i in inputs_of(concat)] == [("inputs", True, "any type")]
    assert inputs_of(cell)[0].shown_types == "floating-point"
    assert inputs_of(loop)[0].types is None
