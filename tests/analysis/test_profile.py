"""The profile: seconds by layer, those in bodies not counted twice."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from support.builder import Net

from ovir.analysis import profile as module
from ovir.analysis.costs import costs_of
from ovir.analysis.profile import Profile, RunTimes, Timing, profile_runs, time_runs
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


def test_every_layer_of_a_run_has_a_time() -> None:
    net = Net()
    x = net.parameter("x", "400,400")
    for _ in range(4):
        x = net.op("Exp", net.op("MatMul", x, net.const(np.full((400, 400), 1e-3, np.float32))))
    net.result(x)
    # benchmarks/first_call.py compares the sum with the time of a run, which takes an idle machine.
    profile, runs = profile_runs(net.compiled(), {"x": np.ones((400, 400), np.float32)})
    assert len(profile.timings) == 8
    assert profile.seconds > 0
    assert len(runs.seconds) == profile.runs == module.RUNS
    assert min(runs.seconds) > 0
    assert profile.slowest_types[0] in ("MatMul", "Exp")


def test_products_that_run_together_have_no_rates() -> None:
    net = Net()
    x, codes = net.parameter("x", "2,256"), np.ones((300, 256), np.uint8)
    for _ in range(2):
        wide = net.op("Convert", net.const(codes), destination_type="f16")
        weights = net.op("Multiply", wide, net.const(np.full((300, 1), 0.5, np.float16)))
        weights = net.op("Convert", weights, destination_type="f32")
        net.result(net.op("ReLU", net.op("MatMul", x, weights, transpose_b="true")))
    compiled = net.compiled(keep_compressed=True)
    profile, _ = profile_runs(compiled, {"x": np.ones((2, 256), np.float32)})
    profile.add_costs(costs_of(compiled.model))
    assert [(t.type, t.macs, t.bytes) for t in profile.timings.values()] == [
        ("MatMul", None, None),
        ("ReLU", 0, 4800),
        ("ReLU", 0, 4800),
    ]


def test_times_are_shown_with_their_spread() -> None:
    assert str(RunTimes((0.002, 0.0011, 0.5))) == "2.00 ms (1.10 to 500.00 ms)"
    assert RunTimes(tuple(map(float, range(1, 102)))).to_dict() == {
        "min": 1,
        "median": 51,
        "mean": 51,
        "p90": 91,
        "p99": 100,
        "max": 101,
    }


def test_runs_that_prepare_kernels_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 0, 0, 1, 3, 5, 8])
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    compiled = Mock()
    assert time_runs(compiled, {}, 2).seconds == (2, 3)  # after three runs to warm up
    compiled.create_infer_request().infer.assert_called_with({}, share_outputs=True)


def test_tables_have_the_shares_and_the_slowest_first() -> None:
    profile = Profile()
    assert profile.layers_table().rows == profile.types_table().rows == []
    a, b, c = (Layer(i, "abc"[i], kind, "opset1") for i, kind in enumerate(("Add", "Exp", "Add")))
    profile.timings[a] = Timing("a", "Add", 2, 0.002, macs=4_000_000, bytes=0)
    profile.timings[b] = Timing("b", "Exp", 1, 0.005, bytes=10_000_000)
    profile.timings[c] = Timing("c", "Add", 1, 0.001)
    assert profile.layers_table(lambda layer: layer.name).rows == [
        (2, b, "Exp", "b", 1, 5, 0.625, None, None, 2),
        (1, a, "Add", "a", 2, 2, 0.25, 4_000_000, 2, None),
        (3, c, "Add", "c", 1, 1, 0.125, None, None, None),
    ]
    assert profile.types_table().rows == [("Exp", 1, 5, 0.625), ("Add", 3, 3, 0.375)]
    assert "8.00 ms in layers" in profile._repr_html_()
    profile.timings = {a: Timing("a", "Add", 1, macs=1, bytes=1)}
    assert profile.layers_table().rows == [(1, a, "Add", "", 1, 0, 0, 1, None, None)]
    assert profile.types_table().rows == [("Add", 1, 0, 0)]
