"""The cost of each layer: known networks, bodies, weights and their readers, states."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bodies import choice
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.costs import ModelCosts, by_prefix, by_type, changes_of, costs_of, costs_with
from ovir.analysis.profile import profile_runs
from ovir.analysis.summary import summarize

ROOT = Path(__file__).parents[2]


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


class Network:
    """A network whose weights are inputs, because its costs depend on their shapes alone."""

    def __init__(self, *shape: int) -> None:
        self.parameters = [ops.parameter(shape, "f32")]
        self.x = self.parameters[0].output()

    def weights(self, *shape: int) -> ovir.Layer:
        self.parameters.append(ops.parameter(shape, "f32"))
        return self.parameters[-1]

    def conv(self, outputs: int, kernel: int, stride: int = 1, pad: int | None = None, groups: int = 1) -> Any:
        inputs, around = self.x.shape[1].length, [kernel // 2 if pad is None else pad] * 2
        if groups > 1:
            weights = self.weights(groups, outputs // groups, inputs // groups, kernel, kernel)
            layer = ops.group_convolution(self.x, weights, [stride] * 2, around, around, [1, 1])
        else:
            weights = self.weights(outputs, inputs, kernel, kernel)
            layer = ops.convolution(self.x, weights, [stride] * 2, around, around, [1, 1])
        self.x = layer.output()
        return self.x

    def pool(self, kernel: int, stride: int, pad: int = 0, rounding: str = "floor") -> None:
        self.x = ops.max_pool(self.x, [stride] * 2, [1, 1], [pad] * 2, [pad] * 2, [kernel] * 2, rounding).output(0)

    def linear(self, *outputs: int) -> None:
        for count in outputs:
            self.x = ops.matmul(self.x, self.weights(count, self.x.shape[-1].length), False, True).output()

    def classify(self, *outputs: int, flat: bool = False) -> None:
        self.x = ops.reshape(self.x if flat else ops.reduce_mean(self.x, [2, 3], True), [1, -1], False).output()
        self.linear(*outputs)

    @property
    def giga_macs(self) -> float:
        return summarize(ovir.Model([self.x], self.parameters)).macs / 1e9


def alexnet() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 11, 4, 2), net.pool(3, 2)
    net.conv(192, 5), net.pool(3, 2)
    net.conv(384, 3), net.conv(256, 3), net.conv(256, 3), net.pool(3, 2)
    net.classify(4096, 4096, 1000, flat=True)
    return net


def vgg(*counts: int) -> Network:
    net = Network(1, 3, 224, 224)
    for count, width in zip(counts, (64, 128, 256, 512, 512), strict=True):
        for _ in range(count):
            net.conv(width, 3)
        net.pool(2, 2)
    net.classify(4096, 4096, 1000, flat=True)
    return net


def resnet(*counts: int, bottleneck: bool) -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 7, 2), net.pool(3, 2, 1)
    for number, count in enumerate(counts):
        width = 64 << number
        for block in range(count):
            stride, entry = 2 if number and not block else 1, net.x
            outputs = width * 4 if bottleneck else width
            branch = (
                [(width, 1, 1), (width, 3, stride), (outputs, 1, 1)]
                if bottleneck
                else [(width, 3, stride), (width, 3, 1)]
            )
            for layer in branch:
                result = net.conv(*layer)
            if entry.shape != result.shape:
                net.x = entry
                entry = net.conv(outputs, 1, stride)
            net.x = ops.add(result, entry).output()
    net.classify(1000)
    return net


def mobilenet_v1() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(32, 3, 2)
    for width, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        inputs = net.x.shape[1].length
        net.conv(inputs, 3, stride, groups=inputs), net.conv(width, 1)
    net.classify(1000)
    return net


def mobilenet_v2() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(32, 3, 2)
    for factor, width, count, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for block in range(count):
            inner = net.x.shape[1].length * factor
            if factor > 1:
                net.conv(inner, 1)
            net.conv(inner, 3, 1 if block else stride, groups=inner), net.conv(width, 1)
    net.conv(1280, 1), net.classify(1000)
    return net


def squeezenet() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 3, 2, 0)
    for squeeze, wide in ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)):
        if (squeeze, wide) in ((16, 64), (32, 128), (48, 192)) and net.x.shape[1].length != 2 * wide:
            net.pool(3, 2, rounding="ceil")
        entry = net.conv(squeeze, 1)
        one = net.conv(wide, 1)
        net.x = entry
        net.x = ops.concat([one, net.conv(wide, 3)], 1).output()
    net.conv(1000, 1)
    return net


def densenet121() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 7, 2), net.pool(3, 2, 1)
    for number, count in enumerate((6, 12, 24, 16)):
        if number:
            net.conv(net.x.shape[1].length // 2, 1), net.pool(2, 2)
        for _ in range(count):
            entry = net.x
            net.conv(128, 1)
            net.x = ops.concat([entry, net.conv(32, 3)], 1).output()
    net.classify(1000)
    return net


def transformer(net: Network, layers: int, heads: int) -> None:
    """Add encoder layers without biases and normalization, which have no multiply-accumulates."""
    _, length, width = net.x.shape.to_tuple()
    for _ in range(layers):
        entry, parts = net.x, []
        for _ in range(3):
            net.x = entry
            net.linear(width)
            split = ops.reshape(net.x, [1, length, heads, width // heads], False)
            parts.append(ops.transpose(split, [0, 2, 1, 3]))
        attended = ops.scaled_dot_product_attention(*parts)
        net.x = ops.reshape(ops.transpose(attended, [0, 2, 1, 3]), [1, length, width], False).output()
        net.linear(width, 4 * width, width)


def vit_b16() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(768, 16, 16, 0)
    patches = ops.transpose(ops.reshape(net.x, [1, 768, 196], False), [0, 2, 1])
    net.x = ops.concat([net.weights(1, 1, 768), patches], 1).output()
    transformer(net, 12, 12)
    net.x = ops.gather(net.x, 0, 1).output()
    net.linear(1000)
    return net


def bert_base() -> Network:
    net = Network(1, 128, 768)
    transformer(net, 12, 12)
    return net


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "published"),
    [
        # Multiply-accumulates in 10**9, without those of biases and normalization, rounded as published.
        (alexnet, 0.71),  # torchvision's table of weights, as all but those that name a paper
        (lambda: vgg(1, 1, 2, 2, 2), 7.61),
        (lambda: vgg(2, 2, 3, 3, 3), 15.47),
        (lambda: resnet(2, 2, 2, 2, bottleneck=False), 1.81),
        (lambda: resnet(3, 4, 6, 3, bottleneck=False), 3.66),
        (lambda: resnet(3, 4, 6, 3, bottleneck=True), 4.09),
        (lambda: resnet(3, 4, 23, 3, bottleneck=True), 7.80),
        (mobilenet_v1, 0.569),  # Howard et al., MobileNets, table 4
        (mobilenet_v2, 0.30),  # Sandler et al., MobileNetV2, table 4
        (squeezenet, 0.35),
        (densenet121, 2.83),
        (vit_b16, 17.56),
        (bert_base, 22.5 / 2),  # Sun et al., MobileBERT, table 4, in operations
    ],
)
def test_known_networks(network: Callable[[], Network], published: float) -> None:
    rounding = 0.005 if published in (0.30, 0.35, 0.71) else 0
    assert network().giga_macs == pytest.approx(published, rel=0.01, abs=rounding)


# --------------------------------------------------------------------------- bodies


WIDTH = 8
ONCE = WIDTH * WIDTH


def product(x: Any) -> Any:
    """Return a product of 64 multiply-accumulates."""
    return ops.matmul(x, zeros(WIDTH, WIDTH), False, False)


def loop(trips: Any, again: Any, *parameters: Any, grows: bool = False) -> ovir.Model:
    """Return a model with a Loop; a body that grows appends a row to its state in each iteration."""
    x = ops.parameter("?,8" if grows else "1,8", "f32")
    y = product(x)
    following = ops.concat([y, zeros(1, WIDTH)], 0) if grows else y
    goes_on = ops.result(again(x))
    inside = ovir.Model([goes_on, ops.result(following)], [x])
    start = ops.parameter([1, WIDTH], "f32")
    layer = ops.loop(trips, True)
    layer.set_function(inside)
    layer.set_special_body_ports([-1, 0])
    layer.set_merged_input(x, start.output(), inside.results[1])
    return ovir.Model([layer.get_iter_value(inside.results[1], -1)], [start, *parameters])


def iterator(length: Any) -> ovir.Model:
    x, sequence = (ops.parameter([size, WIDTH], "f32") for size in (1, length))
    inside = ovir.Model([ops.result(product(x))], [x])
    layer = ops.tensor_iterator()
    layer.set_body(inside)
    layer.set_sliced_input(x, sequence.output(), 0, 1, 1, -1, 0)
    return ovir.Model([layer.get_concatenated_slices(inside.results[0], 0, 1, 1, -1, 0)], [sequence])


def branches(condition: Any, *parameters: Any) -> ovir.Model:
    value = ops.parameter([1, WIDTH], "f32")
    result = choice(condition, product, lambda x: product(product(product(x))), value).outputs[0]
    return ovir.Model([result], [value, *parameters])


def always(x: Any) -> Any:
    return ops.constant(True)


def on_value(x: Any) -> Any:
    return ops.less(ops.reduce_sum(x, [0, 1]), np.float32(3))


CHOICE, TRIPS = ops.parameter([], "boolean"), ops.parameter([], "i64")


@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        (lambda: loop(np.int64(10), always), 10 * ONCE, 10 * ONCE),
        (lambda: loop(np.int64(10), on_value), ONCE, 10 * ONCE),
        (lambda: loop(np.int64(0), always), 0, 0),
        (lambda: loop(np.int64(4), always, grows=True), (1 + 2 + 3 + 4) * ONCE, (1 + 2 + 3 + 4) * ONCE),
        (lambda: iterator(100), 100 * ONCE, 100 * ONCE),
        (lambda: branches(CHOICE, CHOICE), ONCE, 3 * ONCE),
        (lambda: branches(True), ONCE, ONCE),
        (lambda: branches(False), 3 * ONCE, 3 * ONCE),
    ],
)
def test_bodies_count_as_often_as_they_run(model: Callable[[], ovir.Model], least: int, most: int) -> None:
    summary = summarize(model())
    total = summary.costs.total.macs
    assert (total.lower, total.upper) == (least, most)
    assert (summary.macs, summary.macs_unknown) == (most, [])


def test_an_unknown_number_of_iterations_is_listed() -> None:
    summary = summarize(loop(TRIPS, always, TRIPS))
    assert summary.macs == 0
    assert len(summary.macs_unknown) == 1
    assert "body" in summary.macs_unknown[0]


def test_inference_of_single_iterations_leaves_no_trace() -> None:
    model = loop(np.int64(4), always, grows=True)
    before = [str(port.type) for layer in model.walk() for port in layer.outputs]
    costs_of(model)
    assert [str(port.type) for layer in model.walk() for port in layer.outputs] == before


# --------------------------------------------------------------------------- weights


def test_weights_belong_to_the_layer_that_reads_them() -> None:
    x = ops.parameter([2, 8], "f32")
    codes = ops.convert(ops.constant(np.zeros((4, 8), np.int8), "i4"), "f32")
    weights = ops.multiply(ops.subtract(codes, np.float32(8)), zeros(4, 1))
    shared = ops.constant(zeros(4))
    first = ops.add(ops.matmul(x, weights, False, True), shared)
    model = ovir.Model([ops.multiply(first, shared)], [x])
    rows = {row.layer.type: row for row in costs_of(model).layers}
    assert rows["MatMul"].parameters == 32 + 1 + 4
    assert rows["MatMul"].weight_bytes == 16 + 4 + 16
    assert rows["MatMul"].bits == pytest.approx(8 * 36 / 37)
    assert (rows["Add"].parameters, rows["Add"].shared) == (4, {})
    assert (rows["Multiply"].parameters, list(rows["Multiply"].shared.values())) == (0, [rows["Add"].name])
    assert rows["Multiply"].amounts.read.upper == 2 * 4 * 4 + 16  # a shared constant is read all the same
    assert rows["MatMul"].intensity == pytest.approx(2 * 64 / (2 * 8 * 4 + 36 + 2 * 4 * 4))
    assert "Convert" not in rows


def test_weights_that_a_body_gets_belong_to_its_layer() -> None:
    x, w = ops.parameter([1, 8], "f32"), ops.parameter([8, 8], "f32")
    inside = ovir.Model([ops.result(ops.matmul(ops.relu(x), w, False, False))], [x, w])
    sequence = ops.parameter([3, 8], "f32")
    layer = ops.tensor_iterator()
    layer.set_body(inside)
    layer.set_sliced_input(x, sequence.output(), 0, 1, 1, -1, 0)
    layer.set_invariant_input(w, ops.constant(zeros(8, 8)).output())
    model = ovir.Model([layer.get_concatenated_slices(inside.results[0], 0, 1, 1, -1, 0)], [sequence])
    rows = {row.layer.type: row for row in costs_of(model).layers}
    assert rows["MatMul"].parameters == 64
    assert rows["MatMul"].to_dict()["runs"] == 3


def test_what_layers_without_products_compute_and_move() -> None:
    x = ops.parameter([1, 2, 4, 4], "f16")
    pooled = ops.max_pool(ops.relu(x), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    table = ops.gather(ops.constant(zeros(1000, 8)), ops.shape_of(pooled), 0)
    mean = ops.avg_pool(pooled, [1, 1], [1, 1], [1, 1], [2, 2], True)
    rows = {row.layer.type: row for row in costs_of(ovir.Model([mean, table], [x])).layers}
    numbers = {kind: (row.macs, row.operations, row.bytes) for kind, row in rows.items()}
    assert numbers["ReLU"] == (0, 32, 2 * 32 * 2)
    assert numbers["MaxPool"][:2] == (0, 8 * 4)  # each element is the largest of a window of 4
    assert numbers["AvgPool"][:2] == (0, 18 * 4)
    assert numbers["Gather"] == (0, 0, 2 * 4 * 8 * 4)  # it reads only the rows that it picks


# --------------------------------------------------------------------------- dynamic models and states


def decoder(*, has_added: bool = False) -> ovir.Model:
    """Return attention over a cache that grows by the new positions, with a mask of its length."""
    x, mask = ops.parameter("1,?,8", "f32"), ops.parameter("1,?", "f32")
    inputs = [x, mask]
    if has_added:
        inputs.append(ops.parameter("1,?,8", "f32"))
        x = ops.add(x, inputs[-1])
    past = ops.read_value(zeros(1, 0, 8), "cache", "f32", "1,?,8")
    keys = ops.concat([past, x], 1)
    scores = ops.add(ops.matmul(x, keys, False, True), ops.unsqueeze(mask, 1))
    return ovir.Model([ops.matmul(scores, keys, False, False)], [ops.assign(keys, "cache")], inputs)


def test_a_dynamic_model_is_counted_at_the_sizes_of_a_run() -> None:
    summary = summarize(decoder())
    assert summary.sizes == {
        port.any_name: shape for port, shape in zip(summary.inputs, ("[1,8,8]", "[1,8]"), strict=True)
    }
    assert summary.macs == 2 * 8 * 8 * 8
    assert summarize(decoder(), {0: [1, 1, 8], 1: [1, 1]}).macs == 2 * 8
    assert str(summary.inputs[0].shape) == "[1,?,8]"


@pytest.mark.parametrize(
    ("has_added", "rows", "length"), [(False, 2, 1), (False, 2, 24), (False, 1, 24), (True, 2, 24)]
)
def test_states_of_a_length(has_added: bool, rows: int, length: int) -> None:
    """A mask is as long as the cache and the new positions together, though one of one position would broadcast.

    Other inputs do not follow.
    """
    summary = summarize(decoder(has_added=has_added), {0: [1, rows, 8]}, state_length=length)
    (state,) = summary.states
    assert (str(state.before), str(state.after), state.axis) == (f"[1,{length},8]", f"[1,{length + rows},8]", 1)
    assert (state.bytes, state.step_bytes) == ((length + rows) * 32, 32)
    assert summary.macs == 2 * rows * 8 * (length + rows)
    assert list(summary.sizes.values()) == [f"[1,{length + rows}]", *(["[1,1,8]"] if has_added else [])]


# --------------------------------------------------------------------------- sums and groups


def test_groups_add_up() -> None:
    net = Net()
    x = net.parameter("x", "1,8")
    for name in ("model.block.0/fc", "model.block.1/fc", "model.block.1/act/inner", "model.head/fc", "lone"):
        x = net.op("MatMul", x, net.const(zeros(8, 8), name=f"{name}_weights"), name=name)
    net.result(net.op("ReLU", x, name="last"))
    costs = costs_of(net.model())
    groups = {group.name: (group.layers, group.macs) for group in by_prefix(costs.layers, lambda cost: cost.macs or 0)}
    assert groups == {
        "model.block.0": (1, ONCE),
        "model.block.1.*": (1, ONCE),
        "model.block.1/act": (1, ONCE),
        "model.head": (1, ONCE),
        "*": (2, ONCE),
    }
    few = by_prefix(costs.layers, lambda cost: cost.macs or 0, most=2)
    assert {group.name: group.layers for group in few} == {"model": 4, "*": 2}
    assert {group.name: (group.layers, group.parameters) for group in by_type(costs.layers)} == {
        "MatMul": (5, 320),
        "ReLU": (1, 0),
    }
    assert sum(group.macs or 0 for group in by_type(costs.layers)) == costs.total.macs


def test_the_largest_groups_are_divided_until_there_are_twenty() -> None:
    x = ops.parameter([2], "f32", name="x")
    ends = [ops.relu(x, name=f"m.{i}.{j}.act") for i in range(15) for j in range(2)]
    rows = [row for row in costs_of(ovir.Model(ends, [x])).layers if row.layer.type == "ReLU"]
    names = [group.name for group in by_prefix(rows, lambda cost: cost.bytes or 0)]
    assert len(names) == 20
    assert sorted(names) == sorted(
        [*(f"m.{i}.{j}" for i in range(5) for j in range(2)), *(f"m.{i}" for i in range(5, 15))]
    )


def test_sums_that_differ() -> None:
    """Products of unknown number are no change."""

    def costs(rows: int, width: int) -> ModelCosts:
        x = ops.parameter([rows, 8], "f32")
        return costs_of(ovir.Model([ops.matmul(x, zeros(8, width), False, False)], [x]))

    few, many = costs(1, 2), costs(1, 3)
    assert changes_of(few, many) == "parameters 16 -> 24, weights 64 bytes -> 96 bytes, MACs 16 -> 24"
    assert changes_of(few, many, with_weights=False) == "parameters 16 -> 24, MACs 16 -> 24"
    assert changes_of(few, few) == ""
    for before, after in ((1, -1), (-1, 1), (-1, -1)):
        assert changes_of(costs(before, 2), costs(after, 3)) == "parameters 16 -> 24, weights 64 bytes -> 96 bytes"
    assert "parameters" not in changes_of(few, costs(2, 2))


def test_costs_of_the_first_call_with_given_shapes() -> None:
    x, fixed = (ops.parameter([rows, 8], "f32") for rows in (-1, 3))
    dynamic, static = (ovir.Model([ops.matmul(x, zeros(8, 2), False, False)], [x]) for x in (x, fixed))
    assert costs_with(dynamic, [[5, 8]]).total.macs.lower == 5 * 16
    assert costs_with(static, [[3, 8]]).total.macs.lower == 3 * 16
    assert dynamic.inputs[0].shape.is_dynamic
    add = next(row for row in costs_of(static).layers if row.layer.type == "MatMul")
    assert add.cells[:4] == (48, None, 16, 64), "what is 0 is left out"


def test_a_state_that_does_not_grow_adds_nothing_for_each_step() -> None:
    x = ops.parameter([1, 2], "f32", name="x")
    still = ops.read_value(np.zeros((1, 2), np.float32), "still", "f32", [1, 2])
    grows = ops.read_value(np.zeros((1, 0), np.float32), "grows", "f32", [1, -1])
    joined, total = ops.concat([grows, x], 1), ops.add(still, x)
    model = ovir.Model([joined, total], [x], sinks=[ops.assign(total, "still"), ops.assign(joined, "grows")])
    found = {state.name: (state.axis, state.bytes, state.step_bytes) for state in summarize(model).states}
    assert found == {"still": (None, 8, 0), "grows": (1, 8, 4)}


def test_an_endless_trip_count_and_an_unknown_rank() -> None:
    summary = summarize(loop(np.int64(2**63 - 1), on_value))
    assert (summary.macs, len(summary.macs_unknown)) == (0, 1)
    x = ops.parameter("...", "f32")
    assert list(summarize(ovir.Model([ops.relu(x)], [x])).sizes.values()) == ["[1,8]"]


def test_a_profile_counts_what_has_run() -> None:
    model = loop(np.int64(10), on_value)
    compiled = ovir.compile_model(model)
    for value, runs in ((9.0, 1), (0.0, 10)):
        profile, _ = profile_runs(compiled, [np.full((1, WIDTH), value, np.float32)])
        profile.add_costs(costs_of(model))
        (timing,) = (timing for timing in profile.layers() if timing.type == "MatMul")
        assert (timing.calls, timing.macs) == (runs, runs * ONCE)


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "xml").glob("*.xml")), ids=lambda path: path.stem)
def test_rows_add_up(path: Path) -> None:
    summary = summarize(path)
    document = summary.to_dict()
    rows = document["costs"]
    assert sum(row["macs"] or 0 for row in rows) == document["macs"]
    assert sum(row["parameters"] for row in rows) == summary.parameters
    assert sum(row["weight_bytes"] for row in rows) == document["weights_bytes"]
    if (written := summary.costs.total.written.upper) is not None:  # a loop may run any number of times
        assert sum(row["bytes_written"] for row in rows) == written
