"""Faults that are planted into the text of a model."""

import random
import re
from collections.abc import Callable
from functools import cache

import numpy as np
from lxml import etree

import ovir
from support.builder import Net


@cache
def whole() -> tuple[str, bytes]:
    """45 blocks, each with a way around it; every port declares what is inferred."""
    net = Net()
    x = net.parameter("x", "4,8")
    for block in range(45):
        start = x
        x = net.op("MatMul", x, net.const(np.eye(8, dtype=np.float32)), transpose_a="false", transpose_b="false")
        x = net.op("Add", x, net.const(np.full(8, 0.5, np.float32)), auto_broadcast="numpy")
        x = net.op("Clamp", x, min=-1, max=block + 1)
        x = net.op("Reshape", x, net.const([2, 16]), special_zero="false")
        x = net.op("SoftMax", x, opset=8, axis=1)
        x = net.op("Reshape", x, net.const([4, 8]), special_zero="false")
        x = net.op("Add", net.op("ReLU", x), start, auto_broadcast="numpy")
    net.result(x)
    return net.declared_xml(), bytes(net.blob)


class Plant:
    """A file in which faults are planted: each in a layer of its own, the element at which it stands marked."""

    def __init__(self, seed: int) -> None:
        text, self.weights = whole()
        self.root = etree.fromstring(text.encode())
        self.random = random.Random(seed)
        self.used: set[str] = set()

    def layer(self, *types: str) -> etree._Element:
        """A layer in which, and in whose neighbors, there is no fault yet."""
        found = [e for e in self.root.iter("layer") if e.get("type") in types and e.get("id") not in self.used]
        layer = self.random.choice(found)
        number = layer.get("id", "")
        self.used.add(number)
        for edge in self.root.iter("edge"):
            ends = edge.get("from-layer", ""), edge.get("to-layer", "")
            if number in ends:
                self.used.update(ends)
        return layer

    def edge_into(self, layer: etree._Element, port: int = 0) -> etree._Element:
        (edge,) = self.root.findall(f"edges/edge[@to-layer='{layer.get('id')}'][@to-port='{port}']")
        return edge

    def mark(self, element: etree._Element | None, code: str) -> None:
        assert element is not None
        element.set("fault", code)

    def finish(self) -> tuple[str, set[tuple[str, int]]]:
        """The text, and the code and line of every fault."""
        text = etree.tostring(self.root, encoding="unicode")
        lines = text.split("\n")
        marks = {(m[1], i) for i, line in enumerate(lines, 1) if (m := re.search(r'fault="(\w+)"', line))}
        return re.sub(r' fault="\w+"', "", text), marks


def data_of(layer: etree._Element) -> etree._Element:
    data = layer.find("data")
    assert data is not None
    return data


# --------------------------------------------------------------------------- the faults


def declared_output(plant: Plant) -> None:
    port = plant.layer("ReLU", "Clamp", "SoftMax", "MatMul", "Add").find("output/port")
    assert port is not None
    port[0].text = "5"
    plant.mark(port, "OVIR402")


def declared_output_type(plant: Plant) -> None:
    port = plant.layer("ReLU", "Clamp", "SoftMax", "MatMul", "Add").find("output/port")
    assert port is not None
    port.set("precision", "FP16")
    plant.mark(port, "OVIR403")


def declared_input(plant: Plant) -> None:
    port = plant.layer("ReLU", "Clamp", "SoftMax", "Add").find("input/port")
    assert port is not None
    port[1].text = "9"
    plant.mark(port, "OVIR406")


def declared_input_type(plant: Plant) -> None:
    port = plant.layer("ReLU", "Clamp", "SoftMax", "MatMul", "Add").find("input/port")
    assert port is not None
    port.set("precision", "FP16")
    plant.mark(port, "OVIR407")


def declared_constant(plant: Plant) -> None:
    port = plant.layer("Const").find("output/port")
    assert port is not None
    port[0].text = "3"
    plant.mark(port, "OVIR404")


def axis(plant: Plant) -> None:
    data = data_of(plant.layer("SoftMax"))
    data.set("axis", "2")
    plant.mark(data, "OVIR305")


def missing_attribute(plant: Plant) -> None:
    data = data_of(plant.layer("Clamp"))
    del data.attrib["max"]
    plant.mark(data, "OVIR301")


def bad_attribute(plant: Plant) -> None:
    data = data_of(plant.layer("Clamp"))
    data.set("min", "low")
    plant.mark(data, "OVIR302")


def unknown_type(plant: Plant) -> None:
    layer = plant.layer("ReLU", "MatMul", "Reshape")
    layer.set("type", f"{layer.get('type')}e")
    plant.mark(layer, "OVIR201")


def not_in_opset(plant: Plant) -> None:
    layer = plant.layer("ReLU", "MatMul", "Reshape", "Clamp")
    layer.set("version", "opset17")
    plant.mark(layer, "OVIR203")


def duplicate_id(plant: Plant) -> None:
    layer, other = plant.layer("ReLU", "SoftMax"), plant.layer("ReLU", "SoftMax")
    layer.set("id", other.get("id", ""))
    plant.mark(layer, "OVIR204")


def no_id(plant: Plant) -> None:
    layer = plant.layer("Add", "ReLU", "MatMul")
    del layer.attrib["id"]
    plant.mark(layer, "OVIR110")


def duplicate_port(plant: Plant) -> None:
    port = plant.layer("Add", "MatMul").findall("input/port")[1]
    port.set("id", "0")
    plant.mark(port, "OVIR205")


def change_edge(plant: Plant, key: str, value: str, code: str, *types: str) -> None:
    edge = plant.edge_into(plant.layer(*types))
    edge.set(key, value)
    plant.mark(edge, code)


def edge_from_nowhere(plant: Plant) -> None:
    change_edge(plant, "from-layer", "999", "OVIR206", "Add", "ReLU", "Reshape")


def edge_to_nowhere(plant: Plant) -> None:
    change_edge(plant, "to-layer", "998", "OVIR207", "Add", "ReLU", "Reshape")


def edge_to_no_number(plant: Plant) -> None:
    change_edge(plant, "to-layer", "first", "OVIR111", "Add", "ReLU", "Reshape")


def edge_to_a_constant(plant: Plant) -> None:
    edge = plant.edge_into(plant.layer("Add", "ReLU", "Reshape"))
    edge.set("to-layer", plant.layer("Const").get("id", ""))
    plant.mark(edge, "OVIR208")


def edge_to_another_layer(plant: Plant) -> None:
    edge = plant.edge_into(plant.layer("SoftMax"))
    edge.set("to-layer", plant.layer("MatMul", "ReLU").get("id", ""))
    plant.mark(edge, "OVIR209")


def misspelled_part(plant: Plant) -> None:
    part = plant.layer("Add", "ReLU", "MatMul").find(plant.random.choice(["input", "output"]))
    assert part is not None
    part.tag = f"{part.tag}s"
    plant.mark(part, "OVIR116")


def misspelled_edge(plant: Plant) -> None:
    edge = plant.edge_into(plant.layer("Add", "ReLU", "Reshape"))
    edge.tag = "egde"
    plant.mark(edge, "OVIR116")


def edge_port(plant: Plant) -> None:
    change_edge(plant, "from-port", "7", "OVIR208", "Add", "ReLU", "SoftMax")


def fed_twice(plant: Plant) -> None:
    layer = plant.layer("ReLU", "SoftMax", "Clamp")
    edge = plant.edge_into(layer)
    second = etree.SubElement(edge.getparent(), "edge", dict(edge.attrib))  # type: ignore[arg-type]
    second.set("from-layer", "0")
    second.set("from-port", "0")
    second.tail = "\n"
    plant.mark(second, "OVIR209")


def unfed_input(plant: Plant) -> None:
    layer = plant.layer("Add", "ReLU", "MatMul")
    edge = plant.edge_into(layer)
    edge.getparent().remove(edge)  # type: ignore[union-attr]
    plant.mark(layer.find("input/port"), "OVIR210")


def cycle(plant: Plant) -> None:
    """A ReLU is fed by the Add behind it."""
    layer = plant.layer("ReLU")
    edge = plant.edge_into(layer)
    edge.set("from-layer", str(int(layer.get("id", "")) + 1))
    edge.set("from-port", "2")
    plant.mark(edge, "OVIR211")


def long_cycle(plant: Plant) -> None:
    """A ReLU is fed by that of a later block; any other edge between the two that is wrong breaks the cycle."""
    layer, other = sorted((plant.layer("ReLU"), plant.layer("ReLU")), key=lambda layer: int(layer.get("id", "")))
    edge = plant.edge_into(layer)
    edge.set("from-layer", other.get("id", ""))
    edge.set("from-port", "1")
    plant.mark(edge, "OVIR211")


def other_source(plant: Plant) -> None:
    """A MatMul is fed its weights twice; the Reshape after it could not take what comes of that."""
    layer = plant.layer("MatMul")
    edge = plant.edge_into(layer)
    edge.set("from-layer", str(int(layer.get("id", "")) - 1))
    edge.set("from-port", "0")
    plant.mark(layer.find("input/port"), "OVIR406")


def other_constant(plant: Plant) -> None:
    """A MatMul is fed weights of another type than it declares, and than it can take."""
    layer = plant.layer("MatMul")
    source = plant.edge_into(layer, 1).get("from-layer")
    data, port = (plant.root.find(f"layers/layer[@id='{source}']/{path}") for path in ("data", "output/port"))
    assert data is not None
    assert port is not None
    data.set("element_type", "i32")
    port.set("precision", "I32")
    plant.mark(layer.findall("input/port")[1], "OVIR407")


def past_the_end(plant: Plant) -> None:
    data = data_of(plant.layer("Const"))
    data.set("offset", "1000000")
    plant.mark(data, "OVIR502")


def too_few_bytes(plant: Plant) -> None:
    data = data_of(plant.layer("Const"))
    data.set("size", str(int(data.get("size", "")) - 8))
    plant.mark(data, "OVIR503")


def bad_dim(plant: Plant) -> None:
    dim = next(plant.layer("ReLU", "Add", "Reshape").iter("dim"))
    dim.text = "four"
    plant.mark(dim, "OVIR112")


def bad_precision(plant: Plant) -> None:
    port = next(plant.layer("ReLU", "Add", "Reshape").iter("port"))
    port.set("precision", "FP23")
    plant.mark(port, "OVIR114")


FAULTS: list[Callable[[Plant], None]] = [
    declared_output, declared_output_type, declared_input, declared_input_type, declared_constant, axis, missing_attribute, bad_attribute,
    unknown_type, not_in_opset, duplicate_id, duplicate_port, edge_from_nowhere, edge_port, fed_twice, unfed_input, cycle, other_source,
    past_the_end, too_few_bytes, bad_dim, bad_precision, edge_to_nowhere, edge_to_no_number, edge_to_a_constant,
    edge_to_another_layer, misspelled_part, misspelled_edge, no_id,
]  # fmt: skip


def errors(text: str, weights: bytes) -> list[ovir.Diagnostic]:
    return [d for d in ovir.check(text, weights) if d.severity is ovir.Severity.ERROR]
