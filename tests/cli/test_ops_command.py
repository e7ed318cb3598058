"""`ovir ops OPERATION`: what ovir knows of each version."""

import json
import re
from itertools import product
from typing import Any

import pytest

from docs.pages.operations import GROUPS, groups, operation_page, operations_page
from ovir.cli.operations import (
    _infer,
    _is_inferred,
    described,
    entries,
    example_of,
    inputs_of,
    outputs_of,
    tokenizer_entries,
    versions_of,
)
from ovir.core.element_types import ElementType, boolean, dynamic, f32, i32, i64, string
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS, TOKENIZERS
from ovir.tokenizers.splitting import RegexSplit


def test_ops(cli: Any) -> None:
    listed = json.loads(cli("ops", "--json").out)
    assert [(e["type"], e["version"]) for e in listed] == [
        (e.name, e.version) for e in (*entries(), *tokenizer_entries())
    ]
    gather = {e["version"]: e for e in listed if e["type"] == "Gather"}
    assert list(gather) == ["opset1", "opset7", "opset8"]
    assert gather["opset8"] == {
        "type": "Gather", "version": "opset8", "opsets": "8-16", "inference": True, "kernel": True
    }  # fmt: skip
    table = cli("ops").out
    assert f"{len(entries())} operation versions: " in table
    assert f"{len(tokenizer_entries())} operations of openvino_tokenizers" in table


@pytest.mark.parametrize("name", ["Gather", "gather", "GATHER"])
def test_every_version_is_described(cli: Any, name: str) -> None:
    result = cli("ops", name)
    heads = [line for line in result.out.splitlines() if line.startswith("Gather-")]
    assert result.status == 0
    assert heads == ["Gather-1, in opset 1-6", "Gather-7, in opset 7", "Gather-8, in opset 8-16"]
    assert result.out.count("out[b, o, i, k] = data[b, o, indices[b, i], k]") == 3
    assert "    batch_dims  integer, default 0\n" in result.out
    assert "    indices  integer[...]\n" in result.out
    assert "specification: Gather-8" in result.out


@pytest.mark.parametrize("name", ["TopK", "constant", "StringTensorPack", "RegexSplit"])
def test_one_version(cli: Any, name: str) -> None:
    for entry in versions_of(name):
        text = f"{name}-{entry.number}"
        result = cli("ops", text)
        heads = [line for line in result.out.splitlines() if line.startswith(f"{entry.title}, ")]
        assert (result.status, len(heads)) == (0, 1 if entry.opset else 0)
        assert [item["version"] for item in json.loads(cli("ops", text, "--json").out)] == [entry.version]
        page = operation_page([entry])
        assert [line for line in page.splitlines() if line.startswith("## ")] == [f"## {entry.title}"]
    assert versions_of(name)


def test_links_from_the_page_of_one_version_lead_to_the_others() -> None:
    assert "See [TopK-3](TopK.md#topk-3)." in operation_page(versions_of("TopK")[:1])


def test_the_page_of_an_operation() -> None:
    out = operation_page(versions_of("TopK"))
    assert "| `mode` | string | `max`, `min` | required |\n" in out
    assert out.index("## TopK-11") < out.index("## TopK-1\n")
    assert "See [TopK-3](#topk-3)." in out


@pytest.mark.documents
@pytest.mark.parametrize("name", [*OPERATIONS, *TOKENIZERS])
def test_every_operation_has_a_page_with_its_example(name: str) -> None:
    pytest.importorskip("onnx", reason="a page shows what the operation is exported to, which needs onnx")
    page = operation_page(versions_of(name))
    example = example_of(name)
    assert page.count(f"\n## {name}") == len(OPERATIONS.get(name, {})) + (name in TOKENIZERS)
    assert f"[{name}](operations/{name}.md)" in operations_page(linked=True)
    assert (example is not None) == (name in OPERATIONS)
    assert example is None or f"{example.code}\n" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_examples_print_what_their_docstrings_say(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = example_of(name)
    assert example is not None
    exec(example.code, {})
    number = r"[-+]?\d+\.?\d*(?:e[-+]\d+)?"
    stated, printed = (re.findall(rf"{number}|\S+?", text) for text in (example.printed, capsys.readouterr().out))
    assert len(stated) == len(printed) > 0
    for one, other in zip(stated, printed, strict=True):  # the last digit depends on the processor
        assert one == other or float(one) == pytest.approx(float(other), rel=1e-6)


def test_every_operation_is_in_one_group() -> None:
    modules = [module for group in GROUPS.values() for module in group]
    assert sorted(modules) == sorted({v.module for versions in OPERATIONS.values() for v in versions.values()})
    listed = [name for names in groups().values() for name in names]
    assert sorted(listed) == sorted({*OPERATIONS, *TOKENIZERS})


@pytest.mark.slow
def test_every_operation_has_a_description() -> None:
    for entry in entries():
        page = described(entry)
        assert page["documentation"], entry
        assert "Base of" not in page["documentation"], entry
        assert page["source"], entry
        assert bool(page["page"]) == bool(entry.opset), entry
        assert all(attribute["type"] for attribute in page["attributes"]), entry


def test_types_are_those_that_inference_accepts() -> None:
    cell, loop, concat, bag = find("LSTMCell", 4), find("Loop", 5), find("Concat", 1), find("EmbeddingBagOffsets", 15)
    assert cell is not None
    assert loop is not None
    assert concat is not None
    assert [(i.name, i.repeated, i.shown_types) for i in inputs_of(concat)] == [("inputs", True, "any type")]
    assert inputs_of(cell)[0].shown_types == "floating-point"
    assert inputs_of(loop)[0].types is None
    assert bag is not None
    assert inputs_of(bag)[1].types == (i32, i64)
    assert outputs_of(cell) == ["hidden T[Batch, Hidden]", "cell T[Batch, Hidden]"]
    assert outputs_of(concat) == ["the type of `inputs`"]
    assert outputs_of(loop) == []


def test_inputs_that_only_some_forms_have() -> None:
    pattern, *others = inputs_of(RegexSplit)[5:]
    assert (pattern.name, pattern.optional) == ("pattern", False)
    assert [item.name for item in others] == ["kept_begins", "kept_ends", "kept_symbols", "skips"]
    assert all(item.optional for item in others)


@pytest.mark.slow
def test_messages_name_inputs_as_the_page_does() -> None:
    others = {"the", "The", "Input", "input", "promotion"}  # messages about all inputs
    for entry in entries():
        assert entry.cls is not None
        inputs = inputs_of(entry.cls)
        unknown = [TensorType(dynamic, PartialShape(None))] * len(inputs)
        if not _is_inferred(entry.cls, unknown):
            continue
        for position, element_type in product(range(len(inputs)), (string, f32, i64)):
            given = [*unknown[:position], TensorType(element_type, PartialShape(None)), *unknown[position + 1 :]]
            message = _refusal(entry.cls, given)
            subject = message.split()[0] if message else "the"
            assert subject in others | {item.name for item in inputs}, (entry.title, message)


def _refusal(cls: type[Operator], inputs: list[TensorType]) -> str | None:
    try:
        _infer(cls, inputs)
    except OperatorError as error:
        return error.message
    return None


@pytest.mark.parametrize(
    ("name", "birth", "accepted"), [("Interpolate", 11, (f32, i64)), ("Reverse", 1, (boolean, i64))]
)
def test_types_that_only_some_choice_of_an_attribute_accepts(
    name: str, birth: int, accepted: tuple[ElementType, ...]
) -> None:
    operation = find(name, birth)
    assert operation is not None
    assert set(accepted) <= set(inputs_of(operation)[1].types or ())
