"""Faults that are planted into the text of a model."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
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


# --------------------------------------------------------------------------- the faults


Change = Callable[[etree._Element], object]
EDGE = "edge"


@dataclass(frozen=True)
class Simple:
    """A fault of one element: one in a layer, by its path, or the edge into the layer."""

    code: str
    path: str
    change: Change
    types: tuple[str, ...]

    def __call__(self, plant: Plant) -> None:
        layer = plant.layer(*self.types)
        element = plant.edge_into(layer) if self.path == EDGE else layer.find(self.path)
        assert element is not None
        self.change(element)
        plant.mark(element, self.code)


def setting(key: str, value: str) -> Change:
    return lambda element: element.set(key, value)


def without(key: str) -> Change:
    return lambda element: element.attrib.pop(key)


def with_size(axis: int, text: str) -> Change:
    def change(port: etree._Element) -> None:
        port[axis].text = text

    return change


def with_text(text: str) -> Change:
    return lambda element: setattr(element, "text", text)


def misspelled(element: etree._Element) -> None:
    element.set("type", f"{element.get('type')}e")


ANY = ("ReLU", "Clamp", "SoftMax", "MatMul", "Add")
UNARY = ("ReLU", "Clamp", "SoftMax")
SOME = ("Add", "ReLU", "Reshape")
declared_output = Simple("OVIR402", "output/port", with_size(0, "5"), ANY)
declared_input = Simple("OVIR406", "input/port", with_size(1, "9"), (*UNARY, "Add"))
declared_constant = Simple("OVIR404", "output/port", with_size(0, "3"), ("Const",))
SIMPLE = [
    declared_output,
    declared_input,
    declared_constant,
    Simple("OVIR403", "output/port", setting("precision", "FP16"), ANY),
    Simple("OVIR407", "input/port", setting("precision", "FP16"), ANY),
    Simple("OVIR305", "data", setting("axis", "2"), ("SoftMax",)),
    Simple("OVIR301", "data", without("max"), ("Clamp",)),
    Simple("OVIR302", "data", setting("min", "low"), ("Clamp",)),
    Simple("OVIR201", ".", misspelled, ("ReLU", "MatMul", "Reshape")),
    Simple("OVIR203", ".", setting("version", "opset17"), ("ReLU", "MatMul", "Reshape", "Clamp")),
    Simple("OVIR110", ".", without("id"), ("Add", "ReLU", "MatMul")),
    Simple("OVIR205", "input/port[2]", setting("id", "0"), ("Add", "MatMul")),
    Simple("OVIR206", EDGE, setting("from-layer", "999"), SOME),
    Simple("OVIR207", EDGE, setting("to-layer", "998"), SOME),
    Simple("OVIR111", EDGE, setting("to-layer", "first"), SOME),
    Simple("OVIR208", EDGE, setting("from-port", "7"), ("Add", "ReLU", "SoftMax")),
    Simple("OVIR116", EDGE, lambda edge: setattr(edge, "tag", "egde"), SOME),
    Simple("OVIR502", "data", setting("offset", "1000000"), ("Const",)),
    Simple("OVIR503", "data", lambda data: data.set("size", str(int(data.get("size", "")) - 8)), ("Const",)),
    Simple("OVIR112", ".//dim", with_text("four"), SOME),
    Simple("OVIR114", ".//port", setting("precision", "FP23"), SOME),
]


def duplicate_id(plant: Plant) -> None:
    layer, other = plant.layer("ReLU", "SoftMax"), plant.layer("ReLU", "SoftMax")
    layer.set("id", other.get("id", ""))
    plant.mark(layer, "OVIR204")


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


FAULTS: list[Callable[[Plant], None]] = [
    *SIMPLE,
    *(duplicate_id, fed_twice, unfed_input, cycle, other_source),
    *(edge_to_a_constant, edge_to_another_layer, misspelled_part),
]


def errors(text: str, weights: bytes) -> list[ovir.Diagnostic]:
    return [d for d in ovir.check(text, weights) if d.severity is ovir.Severity.ERROR]
