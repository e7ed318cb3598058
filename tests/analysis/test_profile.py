"""The profile: seconds by layer, those in bodies not counted twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ovir.analysis import profile as module
from ovir.analysis.profile import Profile
from ovir.graph.layers import Layer


def test_inner_layers_are_not_counted_for_the_outer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 4.0, 6.0, 10.0])
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    outer = Layer(0, "loop", "Loop", "opset5")
    inner = replace(outer, id=1, name="sum", type="Add", scope="loop/body/")
    watch = Profile()
    watch.will_run(outer, [])
    for _ in range(2):
        watch.will_run(inner, [])
        watch.did_run(inner, [], [])
    watch.did_run(outer, [], [])
    assert [(t.name, t.calls, t.seconds) for t in watch.layers()] == [("loop", 1, 6.0), ("loop/body/sum", 2, 4.0)]
    assert [(t.type, t.seconds) for t in watch.types()] == [("Loop", 6.0), ("Add", 4.0)]
    assert watch.seconds == 10.0
