"""Random models built with the functions of an opset are the same after they are saved, and compute the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from random_models import models

import ovir

ABOUT_THE_FILE = ("OVIR1", "OVIR3", "OVIR402", "OVIR403", "OVIR404", "OVIR405", "OVIR406", "OVIR407", "OVIR509")
"""The beginnings of codes that say that a file contradicts itself or the specification of the format."""


@pytest.mark.slow
@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models_are_the_same_after_a_round_trip(model: ovir.Model) -> None:
    with tempfile.TemporaryDirectory() as name:
        one, two = Path(name) / "one.xml", Path(name) / "two.xml"
        assert ovir.save_model(model, one) == []
        again = ovir.read_model(one)
        ovir.save_model(again, two)
        assert one.read_bytes() == two.read_bytes()
        assert one.with_suffix(".bin").read_bytes() == two.with_suffix(".bin").read_bytes()
        assert [d for d in ovir.check(one) if d.code.startswith(ABOUT_THE_FILE)] == []
    assert _described(again) == _described(model)
    feeds = dict(ovir.random_inputs(model, seed=0))
    assert _results(again, feeds) == _results(model, feeds)


def _described(model: ovir.Model) -> list[object]:
    found: list[object] = [model.name]
    for layer in model.walk():
        op = layer.operator
        skipped = ("offset", "size") if layer.type == "Const" else ("shape",) if layer.scope else ()
        attributes = (
            {} if op is None else {field: repr(getattr(op, field)) for field in op.fields if field not in skipped}
        )
        sources = [(port.source.layer.name, port.source.index) for port in layer.inputs if port.source is not None]
        ports = [(str(port.type), sorted(port.own_names)) for port in layer.outputs]
        found.append((layer.key, layer.id, layer.type, op and op.opset, attributes, sources, ports))
    return found


def _results(model: ovir.Model, feeds: dict[str, Any]) -> list[object]:
    try:
        return [(str(array.dtype), array.shape, array.tobytes()) for array in ovir.compile_model(model)(feeds).values()]
    except ovir.OvirError as error:
        return [error.diagnostic.message]
