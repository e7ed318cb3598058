"""Small IR files for tests, written as OpenVINO writes them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import ovir
from ovir.fuzzing import net
from ovir.fuzzing.net import output as output

_PRECISION = {"f16": "FP16", "f32": "FP32", "f64": "FP64", "boolean": "BOOL", "u1": "BIN"}


class Net(net.Net):
    """A net that is also run and written."""

    def declared_xml(self) -> str:
        """The same with one element a line, and every port stating the type and shape that are inferred of it."""
        model = self.model()
        root = etree.fromstring(self.xml().encode())
        for element in root.iter("layer"):
            layer = model.layer(int(element.get("id", "")))
            for port, item in zip((*layer.inputs, *layer.outputs), element.iter("port"), strict=True):
                item.set("precision", _PRECISION.get(str(port.element_type), str(port.element_type).upper()))
                for dim in port.shape:
                    etree.SubElement(item, "dim").text = str(dim.length) if dim.is_static else "-1"
        for item in root.iter():
            item.text = item.text and item.text.strip()
            item.tail = None
        etree.indent(root)
        return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"

    def compiled(self, **options: Any) -> ovir.CompiledModel:
        return ovir.compile_model(self.model(), **options)

    def write(self, folder: Path, name: str = "model") -> Path:
        (folder / f"{name}.bin").write_bytes(self.blob)
        path = folder / f"{name}.xml"
        path.write_text(self.xml())
        return path


# --------------------------------------------------------------------------- by hand


def layer_text(number: int, kind: str, inside: str) -> str:
    return f'<layer id="{number}" name="n{number}" type="{kind}" version="opset1">{inside}</layer>'


def document(*layers: str, edges: str = "") -> bytes:
    """A Parameter with the id 0, the layers, and edges as ``0.0-1.0``: from layer and port, to layer and port."""
    data = '<data shape="2,4" element_type="f32"/><output><port id="0" precision="FP32"/></output>'
    ends = [re.split("[.-]", edge) for edge in edges.split()]
    joined = [f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in ends]
    all_layers = "\n".join([layer_text(0, "Parameter", data), *layers])
    all_edges = "\n".join(joined)
    return (
        f'<net name="a" version="11"><layers>\n{all_layers}\n</layers>\n<edges>\n{all_edges}\n</edges></net>'.encode()
    )


RELU = '<input><port id="0" precision="FP32"/></input><output><port id="1" precision="FP32"/></output>'
RESULT = '<input><port id="0" precision="FP32"/></input>'


ITERATOR = f"""{RELU}<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1"/>
<output external_port_id="1" internal_layer_id="2" axis="0" part_size="1"/></port_map>
<body><layers>
{layer_text(0, "Parameter", '<data shape="1,4" element_type="f32"/><output><port id="0" precision="FP32"/></output>')}
{layer_text(1, "ReLU", RELU)}
{layer_text(2, "Result", RESULT)}
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></body>"""


def add_net() -> Net:
    """out = data + [1, 2, 3], with names of all layers."""
    net = Net()
    data = net.parameter("data", "3")
    net.result(net.op("Add", data, net.const(np.float32([1, 2, 3]), name="c"), name="sum"), name="out")
    return net


def unary_net(kind: str, shape: str = "2", element_type: str = "f32", *, version: int = 11, **attributes: Any) -> Net:
    """out = kind(x)."""
    net = Net(version=version)
    net.result(net.op(kind, net.parameter("x", shape, element_type), **attributes))
    return net


def faulty_net() -> Net:
    """An operation that its opset does not have (an error) and an attribute that is not known (a warning)."""
    net = Net()
    x = net.parameter("x", "2,3")
    net.result(net.op("GatherElements", x, net.const([[0]], "i64"), name="early", axis=0))
    net.result(net.op("ReLU", x, name="relu", unheard_of="1"))
    return net


def gather_net() -> Net:
    """out = data[indices], data [?,3] and indices i64[4]; then a MatMul with a constant, and SoftMax."""
    net = Net()
    data, indices = net.parameter("data", "?,3"), net.parameter("indices", "4", "i64")
    rows = net.op("Gather", data, indices, net.const(np.int64(0)), name="rows", opset=8)
    weights = net.const(np.eye(3, 2, dtype=np.float32), name="weights")
    product = net.op("MatMul", rows, weights, name="product")
    net.result(net.op("SoftMax", product, name="probabilities", opset=8, axis=1))
    net.result(rows)
    return net
