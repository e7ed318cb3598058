"""`ovir.diff` finds what was planted, and nothing else."""

import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support.bodies import conditional
from support.builder import ITERATOR, RELU, RESULT, document, layer_text
from support.diff_graphs import Graph, network, scrambled, statuses, whats

import ovir
from ovir import opset13 as ops
from ovir.analysis.changes import _are_equal


def test_equal_models() -> None:
    graph = network()
    found = ovir.diff(graph.model(), graph.model(Random(3)))
    assert not found
    assert found.is_equal
    assert str(found) == "the models are equal"
    assert found.to_dict()["layers"] == []
    model = graph.model()
    assert not ovir.diff(model, model)


@pytest.mark.parametrize("seed", range(5))
def test_renamed_layers_are_only_renamed(seed: int) -> None:
    graph = network()
    found = ovir.diff(graph.model(), scrambled(graph, seed))
    assert found
    assert {change.what for entry in found.layers for change in entry.changes} == {"name"}
    assert not ovir.diff(graph.model(), scrambled(graph, seed), ignore_names=True)


def test_paths_and_bytes(tmp_path: Path) -> None:
    xml, weights = network().written()
    path = tmp_path / "a.xml"
    path.write_bytes(xml)
    path.with_suffix(".bin").write_bytes(weights)
    assert not ovir.diff(path, str(path))
    assert ovir.diff(path, network().model()).a.path == str(path)


# --------------------------------------------------------------------------- one planted change


def test_removed_layer_among_equal_ones() -> None:
    graph = Graph()
    x = graph.parameter("data")
    for i in range(20):
        x = graph.add("ReLU", x, name=f"r{i}")
    graph.result(x)
    after = graph.copy()
    after.remove(after.find("r7"))
    assert statuses(ovir.diff(graph.model(), after.model())) == {"removed": ["r7"]}


def test_inserted_layers_when_all_are_numbered_anew() -> None:
    """Names are those of other layers then, so they must not be believed."""
    graph = network(8)
    after = graph.copy()
    after.insert(after.find("block2/act"), 0, "Floor", "new")
    after.insert(after.find("block5/act"), 0, "Floor", "new2")

    def numbered(of: Graph) -> ovir.Model:
        numbers = {node: i for i, node in enumerate(of.nodes)}
        return of.model(rename=lambda n: n.name if n.kind in ("Parameter", "Result") else f"{n.kind}_{numbers[n]}")

    found = ovir.diff(numbered(graph), numbered(after), ignore_names=True)
    assert statuses(found).keys() == {"added"}
    assert [entry.layer.type for entry in found.added] == ["Floor", "Floor"]


def rewire(graph: Graph) -> None:
    graph.find("block3/sum").sources[1] = (graph.find("block0/sum"), 0)


@pytest.mark.parametrize(
    ("edit", "status", "changes"),
    [
        (lambda g: vars(g.find("block1/act")).update(kind="Tanh"), "replaced block1/act", ["type: Sigmoid -> Tanh"]),
        (
            lambda g: vars(g.find("block1/act")).update(kind="Tanh", name="block1/tanh"),
            "replaced block1/tanh",
            ["type: Sigmoid -> Tanh", "name: block1/act -> block1/tanh"],
        ),
        (lambda g: vars(g.find("block1/product")).update(data={"transpose_a": "false"}), "", []),  # the default
        (
            lambda g: vars(g.find("block1/product")).update(data={"transpose_b": "true"}),
            "changed block1/product",
            ["attribute transpose_b: false -> true"],
        ),
        (rewire, "changed block3/sum", ["input 1: block2/sum -> block0/sum"]),
        (
            lambda g: g.find("block3/sum").sources.reverse(),
            "changed block3/sum",
            ["input 0: block3/act -> block2/sum", "input 1: block2/sum -> block3/act"],
        ),
    ],
)
def test_a_layer_that_changes(edit: Callable[[Graph], object], status: str, changes: list[str]) -> None:
    graph = network()
    after = graph.copy()
    edit(after)
    found = ovir.diff(graph.model(), after.model())
    assert [f"{kind} {name}" for kind, names in statuses(found).items() for name in names] == [status] * bool(status)
    assert whats(found) == changes


def test_a_layer_after_the_first_one() -> None:
    graph = Graph()
    graph.result(graph.add("Tanh", graph.parameter("x"), name="tanh"))
    after = graph.copy()
    after.insert(after.find("tanh"), 0, "Floor", "new")
    assert ovir.diff(graph.model(), after.model()).added[0].place == "between 'x' and 'tanh'"


def test_version() -> None:
    graph = Graph()
    graph.result(graph.add("SoftMax", graph.parameter("x"), name="s", axis=1))
    after = graph.copy()
    after.find("s").opset = 8
    assert whats(ovir.diff(graph.model(), after.model())) == ["version: opset1 -> opset8"]
    after.find("s").opset = 6  # opset 6 has SoftMax-1
    assert not ovir.diff(graph.model(), after.model())


def test_a_computed_tensor_is_not_the_constant_of_its_name() -> None:
    def model(*, computed: bool) -> ovir.Model:
        x = ovir.opset1.parameter([4], "f32", name="x")
        w = ovir.opset1.relu(x, name="w") if computed else ovir.opset1.constant(np.ones(4, np.float32), name="w")
        return ovir.Model([ovir.opset1.add(x, w, name="sum")], [x])

    for computed in (True, False):
        difference = ovir.diff(model(computed=computed), model(computed=not computed))
        assert str(difference) == "the models differ: 1 layer added, 1 layer removed"


def test_differences_in_words() -> None:
    """A layer at an end of the model has a place on one side only."""

    def model(*kinds: Any, name: str = "model") -> ovir.Model:
        x: Any = ops.parameter([4], "f32", name="x")
        first = x
        for number, kind in enumerate(kinds):
            x = kind(x, name=f"{kind.__name__}{number}")
        return ovir.Model([ops.result(x, name="end")], [first], name)

    def loose(*names: str) -> ovir.Model:
        inputs = [ops.parameter([2], "f32", name=name) for name in names]
        return ovir.Model([ops.result(x, name=f"{x.name}_end") for x in inputs], inputs, "model")

    (added,) = (entry for entry in ovir.diff(loose("a"), loose("a", "b")).layers if entry.layer.type == "Parameter")
    (end,) = (entry for entry in ovir.diff(loose("a"), loose("a", "b")).layers if entry.layer.type == "Result")
    assert (str(added), str(end)) == ("read by 'b_end'", "behind 'b'")
    found = ovir.diff(model(ops.relu), model(ops.relu, ops.exp, name="other"))
    assert str(found) == "the models differ: 1 difference outside of the layers, 1 layer added"


def test_a_number_equals_its_f32() -> None:
    def model(eps: str) -> ovir.Model:
        graph = Graph()
        axes = graph.const(np.int64([1]))
        graph.result(graph.add("NormalizeL2", graph.parameter("x"), axes, eps=eps, eps_mode="add"))
        return graph.model()

    assert not ovir.diff(model("1e-05"), model("9.999999747378752e-06"))
    assert whats(ovir.diff(model("1e-05"), model("1.0000001e-05"))) == ["attribute eps: 1e-05 -> 1.0000001e-05"]


NARROW = float(np.float32(0.1))


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        (0.1, NARROW, True),
        (0.1, np.nextafter(NARROW, 1), False),
        (math.nan, math.nan, True),
        (math.nan, 0.1, False),
        (None, 0.1, False),
        (1, 1.0, True),
        ("a", "b", False),
        ((0.1, 2), (NARROW, 2), True),
        ((0.1, 2), (0.1, 3), False),
        ((1,), (1, 2), False),
        ((1,), None, False),
    ],
)
def test_equal_values_of_attributes(one: Any, other: Any, is_equal: bool) -> None:
    assert _are_equal(one, other) == _are_equal(other, one) == is_equal


def test_pads_that_have_no_effect() -> None:
    def model(auto_pad: str, pad: int) -> ovir.Model:
        graph = Graph()
        image, taps = graph.parameter("x", "1,2,8,8"), graph.const(np.ones((3, 2, 3, 3), np.float32))
        pads = {"pads_begin": f"{pad},{pad}", "pads_end": "0,0", "auto_pad": auto_pad}
        graph.result(graph.add("Convolution", image, taps, name="c", strides="1,1", dilations="1,1", **pads))
        return graph.model()

    assert not ovir.diff(model("same_upper", 0), model("same_upper", 1))
    found = ovir.diff(model("explicit", 0), model("explicit", 1))
    assert whats(found) == [
        "attribute pads_begin: [0, 0] -> [1, 1]",
        "output 0: f32[1,3,6,6] -> f32[1,3,7,7]",
    ]


def test_shape_of_an_input_affects_the_rest() -> None:
    graph = network()
    after = graph.copy()
    after.find("data").data["shape"] = "5,8"
    found = ovir.diff(graph.model(), after.model())
    assert whats(found) == ["attribute shape: [2,8] -> [5,8]"]
    assert len(found.affected) == 4 * 4 + 1
    assert (found.affected[0].old, found.affected[0].new) == ("f32[2,8]", "f32[5,8]")
    assert found.affected[0].b.name == "block0/product"


def test_other_output_of_the_same_layer() -> None:
    graph = Graph()
    parts = graph.add("Split", graph.parameter("x"), graph.const(np.int64(1)), name="s", num_splits=2, outputs=2)
    graph.result(graph.add("ReLU", (parts, 0), name="first"))
    graph.result(graph.add("Exp", (parts, 1), name="second"))
    after = graph.copy()
    after.find("second").sources = [(after.find("s"), 0)]
    assert whats(ovir.diff(graph.model(), after.model())) == ["input 0: s:1 -> s:0"]


def test_names_of_layers_are_names_of_tensors_in_version_10() -> None:
    graph = network()
    for node in graph.nodes:
        node.tensor_names = ""
    old, new = graph.model(), graph.model()
    for port in (*new.inputs, *(port.source for port in new.outputs if port.source is not None)):
        port.own_names = frozenset({port.layer.name})
    assert "tensor names" in {what.partition(" 0")[0] for what in whats(ovir.diff(old, new))}
    old.version = 10
    assert not ovir.diff(old, new)
    assert not ovir.diff(new, old)


def test_inputs_that_only_one_layer_has() -> None:
    """The entry of a layer that was added or removed explains them."""

    def joined(third: str = "") -> ovir.Model:
        x = ops.parameter([4], "f32", name="x")
        known = {"relu": ops.relu(x, name="relu"), "exp": ops.exp(x, name="exp")}
        if third:
            known.setdefault(third, getattr(ops, third)(x, name=third))
        names = ["relu", "exp", *([third] if third else [])]
        end = ops.concat([known[name] for name in names], 0, name="end")
        return ovir.Model([ops.result(end, name="result")], [x])

    assert statuses(ovir.diff(joined(), joined("tanh"))) == {"added": ["tanh"]}
    assert statuses(ovir.diff(joined("tanh"), joined())) == {"removed": ["tanh"]}
    assert whats(ovir.diff(joined(), joined("exp"))) == ["input 2: none -> exp", "output 0: f32[8] -> f32[12]"]
    assert whats(ovir.diff(joined("exp"), joined())) == ["input 2: exp -> none", "output 0: f32[12] -> f32[8]"]


def test_moved_layer() -> None:
    graph = network()
    after = graph.copy()
    moved = after.find("block1/act")
    after.remove(moved)
    reader = after.find("block3/sum")
    after.nodes.insert(after.nodes.index(reader), moved)
    moved.sources, reader.sources[0] = [reader.sources[0]], (moved, 0)
    found = ovir.diff(graph.model(), after.model())
    assert statuses(found) == {"moved": ["block1/act"]}
    assert found.moved[0].place == "between 'block3/act' and 'block3/sum'"
    assert whats(found) == ["input 0: block1/add -> block3/act"]


@pytest.mark.parametrize("renamed", [False, True])
def test_moved_subgraph(renamed: bool) -> None:
    graph = network(6)
    after = graph.copy()
    first, last = after.find("block1/product"), after.find("block1/act")
    after.find("block1/sum").sources[0] = first.sources[0]
    part = after.nodes[after.nodes.index(first) - 1 : after.nodes.index(last) + 1]
    reader = after.find("probabilities")
    for node in part:
        after.nodes.remove(node)
    after.nodes[after.nodes.index(reader) : after.nodes.index(reader)] = part
    first.sources[0], reader.sources[0] = reader.sources[0], (last, 0)
    found = ovir.diff(graph.model(), scrambled(after) if renamed else after.model(), ignore_names=renamed)
    assert statuses(found).keys() == {"moved"}
    assert sorted(entry.a.name for entry in found.moved if entry.a) == ["block1/act", "block1/add", "block1/product"]
    assert {entry.group for entry in found.moved} == {0}
    assert len(whats(found)) == 1


def test_two_layers_that_changed_places() -> None:
    graph = Graph()
    x = graph.parameter("x")
    x = graph.add("Exp", x, name="first")
    graph.result(graph.add("Abs", x, name="second"))
    after = graph.copy()
    first, second, result = after.find("first"), after.find("second"), after.nodes[-1]
    second.sources, first.sources, result.sources = first.sources, [(second, 0)], [(first, 0)]
    after.nodes[1:3] = [second, first]
    assert len(ovir.diff(graph.model(), after.model()).layers) == 1


# --------------------------------------------------------------------------- names, rt_info, inputs and outputs


def test_names() -> None:
    graph = network()
    after = graph.copy()
    after.find("block1/act").name = "renamed"
    after.find("block2/act").tensor_names = "other,act2"
    after.name = "another"
    found = ovir.diff(graph.model(), after.model())
    assert [str(change) for change in found.model] == ["name: graph -> another"]
    assert whats(found) == ["name: block1/act -> renamed", "tensor names 0: [act2] -> [act2, other]"]
    assert not ovir.diff(graph.model(), after.model(), ignore_names=True)


def test_rt_info() -> None:
    graph = network()
    after = graph.copy()
    graph.find("block0/act").rt_info = '<attribute name="fused_names" version="0" value="a"/>'
    after.find("block1/act").rt_info = '<attribute name="keep_const_precision" version="0"/>'
    after.rt_info = '<framework value="onnx"/><Runtime_version value="1"/><info name="OpenVINO Runtime" value="2"/><x/>'
    found = ovir.diff(graph.model(), after.model())
    assert [str(change) for change in found.model] == ["rt_info framework: none -> onnx"]
    assert whats(found) == ["rt_info keep_const_precision: none -> "]


def test_order_of_inputs_and_outputs() -> None:
    def model(first: str, second: str) -> ovir.Model:
        graph = Graph()
        nodes = {name: graph.parameter(name) for name in (first, second)}
        done = {name: graph.add(kind, nodes[name], name=kind) for name, kind in (("a", "Exp"), ("b", "Abs"))}
        for name in (first, second):
            graph.result(done[name], f"result_{name}")
        return graph.model()

    found = ovir.diff(model("a", "b"), model("b", "a"))
    assert [str(change) for change in found.model] == [
        "order of inputs: [a, b] -> [b, a]",
        "order of outputs: [result_a, result_b] -> [result_b, result_a]",
    ]
    assert not found.layers


def test_dead_layers_are_only_noted() -> None:
    graph = network()
    after = graph.copy()
    after.add("Exp", after.find("block0/act"), name="dead")
    found = ovir.diff(graph.model(), after.model())
    assert not found
    assert found.notes == ["1 dead layer of b not compared: nothing depends on them"]


# --------------------------------------------------------------------------- the result


def test_the_result_as_data() -> None:
    graph = network()
    after = graph.copy()
    after.insert(after.find("block2/act"), 0, "Floor", "new")
    after.find("block1/product").data = {"transpose_b": "true"}
    found = ovir.diff(graph.model(), after.model())
    document = found.to_dict()
    assert document["equal"] is False
    others = dict.fromkeys(("removed", "replaced", "moved", "renumbered", "affected"), 0)
    assert document["counts"] == {"added": 1, "changed": 1, **others}
    changed, added = document["layers"]
    assert changed["a"]["key"] == changed["b"]["key"] == "block1/product"
    assert changed["changes"] == [{"what": "attribute", "name": "transpose_b", "old": False, "new": True}]
    assert added["a"] is None
    assert (added["status"], added["sources"], added["readers"]) == ("added", ["block2/add"], ["block2/act"])
    assert repr(found) == "<Diff: the models differ: 1 layer added, 1 layer changed>"


@pytest.mark.parametrize("value", [-1, float("nan"), "x", None])
def test_an_invalid_tolerance_is_refused(value: object) -> None:
    model = network(1).model()
    with pytest.raises(ovir.InputError, match=f"rtol must be a number that is not negative, got {value!r}"):
        ovir.diff(model, model, rtol=value)


def iterator(text: str = ITERATOR) -> ovir.Model:
    layers = (
        f'<layer id="1" name="loop" type="TensorIterator" version="opset1">{text}</layer>',
        layer_text(2, "Result", RESULT),
    )
    return ovir.read_model(document(*layers, edges="0.0-1.0 1.1-2.0"))


def test_a_layer_of_a_body() -> None:
    found = ovir.diff(iterator(), iterator(ITERATOR.replace('type="ReLU"', 'type="Exp"')))
    assert statuses(found) == {"replaced": ["loop/body/n1"]}
    assert whats(found) == ["type: ReLU -> Exp"]
    assert found.to_dict()["layers"][0]["b"]["key"] == "loop/body/n1"


def test_a_layer_inserted_into_a_body() -> None:
    exp = layer_text(5, "Exp", RELU)
    after = ITERATOR.replace("</layers>", f"{exp}</layers>").replace(
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>',
        '<edge from-layer="1" from-port="1" to-layer="5" to-port="0"/>'
        '<edge from-layer="5" from-port="1" to-layer="2" to-port="0"/>',
    )
    found = ovir.diff(iterator(), iterator(after))
    assert statuses(found) == {"added": ["loop/body/n5"]}
    assert found.added[0].place == "between 'loop/body/n1' and 'loop/body/n2'"


def test_port_map() -> None:
    after = ITERATOR.replace('axis="0" part_size="1"/>\n', 'axis="0" start="-1" end="0" stride="-1" part_size="1"/>\n')
    assert after != ITERATOR
    assert whats(ovir.diff(iterator(), iterator(after))) == [
        "port map body: [input 0 to 'n0' (axis 0, start 0, end -1, stride 1, part_size 1)] -> "
        "[input 0 to 'n0' (axis 0, start -1, end 0, stride -1, part_size 1)]"
    ]


def adding(*names: str, is_reversed: bool = False, is_carried: bool = True) -> ovir.Model:
    """Return a model with a loop that adds parts of its input to its state, for which its body declares a larger shape."""
    x = ops.parameter([2, 3, 4], "f32", name="x")
    state, part = (ops.parameter([-1, ovir.Dimension(), 4], "f32", name=name) for name in names[:2])
    end = ops.result(ops.add(state, part, name="total"), name=names[2])
    body = ovir.Model([end], [part, state] if is_reversed else [state, part])
    loop, start = ops.tensor_iterator(name="loop"), ops.constant(np.zeros((2, 1, 4), np.float32))
    loop.set_body(body)
    loop.set_sliced_input(part, x, 0, 1, 1, -1, 1)
    if is_carried:
        loop.set_merged_input(state, start, body.outputs[0])
    else:
        loop.set_invariant_input(state, start)
    return ovir.Model([loop.get_iter_value(body.outputs[0], -1)], [x])


def test_back_edges() -> None:
    found = ovir.diff(adding("a", "b", "c"), adding("a", "b", "c", is_carried=False))
    assert whats(found) == ["back edges body: ['c' to 'a'] -> []"]


def test_parameters_of_a_body_in_another_order() -> None:
    """Names and the order of parameters in a body mean nothing; the port map does."""
    before, after = adding("a", "b", "c"), adding("p", "q", "r", is_reversed=True)
    assert not ovir.diff(before, after, ignore_names=True)
    assert {change.what for entry in ovir.diff(before, after).layers for change in entry.changes} == {"name"}


def test_a_body_that_changes_affects_what_reads_it() -> None:
    def model(size: int) -> ovir.Model:
        text = ITERATOR.replace('shape="1,4"', f'shape="{size},4"').replace('part_size="1"', f'part_size="{size}"')
        return iterator(text)

    found = ovir.diff(model(1), model(2))
    assert whats(found, ["loop/body/n0"]) == ["attribute shape: [1,4] -> [2,4]"]
    assert [item.b.key for item in found.affected] == ["loop/body/n1"]


@pytest.mark.parametrize("make", [lambda: adding("a", "b", "c"), conditional])
def test_what_saving_changes_in_bodies_is_no_difference(make: Callable[[], ovir.Model], tmp_path: Path) -> None:
    model = make()
    for body in list(model.graphs())[1:]:
        for layer in body.inputs:
            layer.layer.operator.shape = ovir.PartialShape([-1] * len(layer.type.shape))  # type: ignore[union-attr]
    ovir.save_model(model, tmp_path / "model.xml")
    assert not ovir.diff(model, ovir.read_model(tmp_path / "model.xml"))
