"""Attributes that are left out: OpenVINO reads what the functions write, and has the defaults that ovir has."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import VERSIONS
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.building.arguments import REQUIRED, Kind, arguments_of
from ovir.building.opset import functions
from ovir.core.element_types import ElementType
from ovir.fuzzing.cases import draw
from ovir.fuzzing.making import Make
from ovir.fuzzing.net import output
from ovir.ops import find
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import NEWEST_OPSET, OPERATIONS
from ovir.ops.base.traits import input_signature

pytestmark = pytest.mark.oracle
WORKER = Path(__file__).with_name("defaults_worker.py")
_APART = ("Const", "Parameter", "Result", "Assign", "ReadValue", "If", "Loop", "TensorIterator")
"""Operations that are more than a layer of inputs and attributes; tests/building builds and saves them."""


def made_cases(kind: str, opset: int) -> Iterator[Make]:
    """Yield legal inputs and attributes of an operation version, whose tensors all have elements; without notset, which
    the specification names and OpenVINO refuses."""
    cls = find(kind, opset)
    assert cls is not None
    for seed in range(80):
        made = Make(kind, random.Random(f"{kind}-{opset}, {seed}"), opset)
        if draw(made, cls, np.random.default_rng(seed)) and all(np.asarray(given.values).size for given in made.inputs):
            if made.attributes.get("auto_pad") == "notset":
                continue
            yield made


def read_by_openvino(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what OpenVINO says of the models in a folder; of one that makes it crash, that it has crashed."""
    results, count = folder / "results.jsonl", len(list(folder.glob("*.xml")))
    results.touch()
    found: dict[str, dict[str, Any]] = {}
    while len(found) < count:
        subprocess.run([sys.executable, str(WORKER), str(folder), str(results)], capture_output=True, timeout=600)
        lines = map(json.loads, results.read_text(encoding="utf-8").splitlines())
        before = len(found)
        found = {line["name"]: line if len(line) > 1 else {"error": "it crashes"} for line in lines}
        assert len(found) > before, "the worker does not start"
    return found


# --------------------------------------------------------------------------- functions

# Why OpenVINO refuses models of functions that are called with the least that they need.
REFUSED = {"Broadcast-1": "OpenVINO requires the optional input axes_mapping in mode pdpd"}


def built(made: Make, cls: type[Operator], chosen: set[str], *, optional: bool) -> ovir.Model | None:
    """Return the model of a call with the required arguments, some attributes and the optional inputs; None if ovir
    refuses it."""
    version, later = OPERATIONS[made.kind][made.opset], range(made.opset, NEWEST_OPSET + 1)
    opset, name = next(
        (n, f) for n, found in zip(later, map(functions, later), strict=True) for f, v in found.items() if v == version
    )
    names, required, variadic, _ = input_signature(cls)
    arguments, sources = arguments_of(cls), []
    for argument in arguments:
        if argument.kind is Kind.INPUT and argument.default is REQUIRED:
            required = max(required, names.index(argument.source) + 1)
    for index, given in enumerate(made.inputs if variadic or optional else made.inputs[:required]):
        whole = ElementType.parse(given.element_type).bits % 8 == 0 and given.element_type != "string"
        is_constant = whole and index > 0 and given.values is not None
        layer = ops.constant(given.values, given.element_type) if is_constant else None
        sources.append(layer or ops.parameter(list(given.shape), given.element_type))
    keywords: dict[str, Any] = {}
    for argument in arguments:
        if argument.kind is Kind.INPUT and argument.source in names[: len(sources)]:
            keywords[argument.name] = sources[names.index(argument.source)]
        elif argument.kind is Kind.INPUTS:
            keywords[argument.name] = sources[len(names) :]
        elif argument.kind is Kind.ATTRIBUTES:
            keywords[argument.name] = {
                key: cls.attributes[key].parse(text)
                for key, text in made.attributes.items()
                if key in chosen or cls.attributes[key].required
            }
        elif argument.attribute is not None:
            spec = argument.attribute
            text = made.attributes.get(spec.name)
            if text is not None and (argument.default is REQUIRED or spec.required or spec.name in chosen):
                keywords[argument.name] = spec.parse(text)
            elif argument.default is REQUIRED:
                keywords[argument.name] = spec.default
    try:
        layer = getattr(importlib.import_module(f"ovir.opset{opset}"), name)(**keywords, name="it")
        parameters = [source for source in sources if source.type == "Parameter"]
        return ovir.Model([*layer.outputs], parameters)
    except (ovir.OvirError, TypeError):
        return None


def test_openvino_reads_what_every_function_makes_with_its_defaults(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    called = set()
    for kind, opset in VERSIONS:
        cls = find(kind, opset)
        assert cls is not None
        if kind in _APART:
            continue
        for number, made in enumerate(islice(made_cases(kind, opset), 6)):
            alone = [{name} for name in made.attributes] if number < 2 else []
            for chosen in [set(), *alone, set(made.attributes)]:
                model = built(made, cls, chosen, optional=False) or built(made, cls, chosen, optional=True)
                if model is not None:
                    called.add((kind, opset))
                    title = "_".join(sorted(chosen)) if len(chosen) < 2 else "all"
                    ovir.save_model(model, tmp_path / f"{kind}-{opset}.{number}.{title}.xml")
    assert {version for version in VERSIONS if version[0] not in _APART} - called == set()
    answers = read_by_openvino(tmp_path)
    refused = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    assert {name: text for name, text in refused.items() if name.partition(".")[0] not in REFUSED} == {}
    assert {name.partition(".")[0] for name in refused} == REFUSED.keys()


def test_an_axis_that_counts_is_written(tmp_path: Path) -> None:
    data, other = ops.parameter([2, 3, 4]), ops.parameter([3, 4])
    product = ops.multiply(data, other, "pdpd", name="it")
    ovir.save_model(ovir.Model([product], [data, other]), tmp_path / "pdpd.xml")
    assert 'auto_broadcast.auto_broadcast_axis="-1"' in (tmp_path / "pdpd.xml").read_text()


# --------------------------------------------------------------------------- defaults

# Attributes without which OpenVINO reads another value than ovir.
DIFFERENT = {
    **{
        f"LRN-1 {name}": "OpenVINO reads 0, which the specification does not allow"
        for name in ("alpha", "beta", "bias", "size")
    },
    **{f"MVN-{opset} eps": "OpenVINO reads 0, which the specification does not allow" for opset in (2, 6)},
    **{
        f"{kind}Sequence-5 activations": "OpenVINO reads none, and the CPU refuses that"
        for kind in ("RNN", "GRU", "LSTM")
    },
    "LSTMCell-1 weights_format": "it has no effect on the CPU, nor in ovir",
}
# Attributes without which OpenVINO does not read a file.
NEEDED = {"ShapeOf-3 output_type": "the specification has a default"}


def written(made: Make, attributes: dict[str, str], path: Path) -> None:
    net = Net()
    ends = [
        net.const(given.values, given.element_type)
        if index and ElementType.parse(given.element_type).bits % 8 == 0 and given.element_type != "string"
        else net.parameter(f"x{index}", ",".join(map(str, given.shape)), given.element_type)
        for index, given in enumerate(made.inputs)
    ]
    first = net.op(made.kind, *ends, name="it", opset=made.opset, outputs=made.outputs, **attributes)
    for index in range(made.outputs):
        net.result(output(first, index))
    net.write(path.parent, path.stem)


def test_openvino_has_the_defaults_of_ovir_or_ovir_says_so(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    left: dict[str, Any] = {}
    for kind, opset in VERSIONS:
        cls = find(kind, opset)
        assert cls is not None
        if kind in _APART:
            continue
        cases = list(islice(made_cases(kind, opset), 30))
        for spec in cls.attributes.values():
            if spec.required or not spec.allows(spec.default) or spec.default in (None, ()):
                continue
            mode = spec.name.rpartition(".")[0]
            fitting = (made for made in cases if not mode or made.attributes.get(mode) == "pdpd")
            for number, made in enumerate(islice(fitting, 2)):
                others = {name: text for name, text in made.attributes.items() if name not in (spec.name, spec.instead)}
                title = f"{kind}-{opset} {spec.name}"
                left[f"{title} {number}"] = title, spec
                written(made, others, tmp_path / f"{title} {number} left out.xml")
                written(
                    made, {**others, spec.name: spec.format(spec.default)}, tmp_path / f"{title} {number} given.xml"
                )
    answers = read_by_openvino(tmp_path)
    different, needed = set(), set()
    for name, (title, spec) in left.items():
        without, given = answers[f"{name} left out"], answers[f"{name} given"]
        if "error" in without:
            needed |= {title} - ({title} if "error" in given else set())
        elif "error" in given:
            continue
        elif without["attributes"] != given["attributes"]:
            different.add(title)
            if spec.misread:
                assert without["attributes"][spec.name].lower() == spec.misread, title
    said = {title for title, spec in left.values() if spec.misread}
    assert different - said == DIFFERENT.keys()
    assert needed - said == NEEDED.keys()
