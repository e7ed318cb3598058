"""Tricks of hostile packages, each a function that plays it on a package, for tests and for `tests.fuzz.untrusted`.

A trick is registered with the code of the error that the gate reports for it, and with variations: the texts that it
puts into the package. It adds to the package, so that tricks can be played after one another.
"""

from __future__ import annotations

import base64
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from lxml import etree

import ovir
from support.oversized import OVERSIZED

LAYERS = """
<layer id="0" name="data" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="1" name="bias" type="Const" version="opset1"><data element_type="f32" shape="4" offset="0" size="16"/>
<output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="2" name="sum" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="3" name="relu" type="ReLU" version="opset1"><input><port id="0"/></input>
<output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="4" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
"""
EDGES = """
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
"""
PAYLOAD = np.random.default_rng(0).bytes(4096)


@dataclass(frozen=True)
class Package:
    """The two files of a model."""

    xml: bytes
    weights: bytes

    def replaced(self, old: str, new: str) -> Package:
        """Return the package with a text of its .xml replaced; unchanged if another trick has removed the text."""
        return replace(self, xml=self.xml.replace(old.encode(), new.encode("utf-8", "surrogatepass"), 1))

    def before(self, tag: str, text: str) -> Package:
        """Return the package with a text before the last such tag."""
        head, found, rest = self.xml.rpartition(tag.encode())
        return replace(self, xml=head + text.encode("utf-8", "surrogatepass") + found + rest)

    def with_layers(self, layers: str, edges: str = "") -> Package:
        """Return the package with further layers and edges; ``@`` before an id stands for 100 times a new number."""
        new = str(self.xml.count(b"<layer ") + 1)
        return self.before("</layers>", layers.replace("@", new)).before("</edges>", edges.replace("@", new))

    def with_rt_info(self, text: str) -> Package:
        """Return the package with elements in the runtime information of the model."""
        return self.before("</rt_info>", text)

    def with_hidden(self, data: bytes, layers: str, edges: str = "") -> Package:
        """Return the package with bytes that further layers read, as u8, at ``{place}``."""
        place = f'element_type="u8" shape="{len(data)}" offset="{len(self.weights)}" size="{len(data)}"'
        grown = replace(self, weights=self.weights + data)
        return grown.with_layers(layers.replace("{place}", place), edges)

    def with_model(self, model: ovir.Model) -> Package:
        """Return the package with the layers of another model; those of bodies keep their ids."""
        with tempfile.TemporaryDirectory() as folder:
            ovir.save_model(model, Path(folder) / "other.xml")
            root = etree.parse(Path(folder) / "other.xml").getroot()
            more = (Path(folder) / "other.bin").read_bytes()
        for constant in root.iterfind(".//layer[@type='Const']/data"):
            constant.set("offset", str(int(constant.get("offset", "0")) + len(self.weights)))
        layers, edges = root.find("layers"), root.find("edges")
        for layer in layers:
            layer.set("id", f"@{layer.get('id'):0>2}")
            layer.set("name", f"@{layer.get('name')}")
        for edge in edges:
            edge.set("from-layer", f"@{edge.get('from-layer'):0>2}")
            edge.set("to-layer", f"@{edge.get('to-layer'):0>2}")
        texts = ["".join(etree.tostring(item, encoding="unicode") for item in group) for group in (layers, edges)]
        return replace(self, weights=self.weights + more).with_layers(*texts)

    def write(self, folder: Path) -> Path:
        path = folder / "model.xml"
        path.write_bytes(self.xml)
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


HONEST = Package(
    f'<?xml version="1.0"?>\n<net name="honest" version="11"><layers>{LAYERS}</layers><edges>{EDGES}</edges>'
    "<rt_info><framework>made by hand</framework></rt_info></net>\n".encode(),
    np.array([1, 2, 3, 4], np.float32).tobytes(),
)

Trick = Callable[[Package], Package]
TRICKS: dict[str, tuple[str, Trick]] = {}
"""The code of the error for each trick, and the trick, by its name."""


def trick(code: str, *variations: str) -> Callable[[Callable[[Package, str], Package]], Callable[..., Package]]:
    """Register a function as one trick for each of its variations."""

    def register(function: Callable[[Package, str], Package]) -> Callable[..., Package]:
        for number, variation in enumerate(variations):
            name = f"{function.__name__}-{number}"
            assert name not in TRICKS, name

            def played(package: Package, variation: str = variation) -> Package:
                return function(package, variation)

            TRICKS[name] = code, played
        return function

    return register


def composed(number: int) -> tuple[str, bytes, bytes]:
    """Return the names of two tricks that a number chooses, and the files of the honest package after both.

    One in two tricks is a run that takes too much; long strings are left out, which the check itself holds in memory.
    """
    plays: list[dict[str, Trick]] = [
        {name: play for name, (_, play) in TRICKS.items()},
        {
            name: lambda package, build=build: package.with_model(build())
            for name, build in OVERSIZED.items()
            if "string" not in name
        },
    ]
    rng = random.Random(number)
    package, names = HONEST, []
    for _ in range(2):
        name, play = rng.choice(list(rng.choice(plays).items()))
        package = play(package)
        names.append(name)
    return " and ".join(names), package.xml, package.weights


# --------------------------------------------------------------------------- what one parser refuses and another reads

HIDDEN_XML = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/><?xml-stylesheet href="x"?>'


@trick("OVIR102", "\U00010000", "a\U0002f800", "_\U00010fff", "\u0487", "x\u218b", "\ua640")
def name_that_one_parser_refuses(package: Package, name: str) -> Package:
    return package.with_rt_info(f"<{name}/>{HIDDEN_XML}")


# --------------------------------------------------------------------------- bytes that no result depends on


def layer(
    number: str, kind: str, *, opset: int = 1, data: str = "", inputs: int = 0, output: str = "", more: str = ""
) -> str:
    """Return a layer whose output has the port id after those of its inputs."""
    read = "".join(f'<port id="{index}"/>' for index in range(inputs))
    made = f'<output><port id="{inputs}" precision="{output}"/></output>' if output else ""
    head = f'<layer id="{number}" name="{kind}{number}" type="{kind}" version="opset{opset}">'
    return f"{head}{data and f'<data {data}/>'}{read and f'<input>{read}</input>'}{made}{more}</layer>"


def edge(source: str, port: int, target: str) -> str:
    return f'<edge from-layer="{source}" from-port="{port}" to-layer="{target}" to-port="0"/>'


HIDDEN = layer("@1", "Const", data="{place}", output="U8")
BIAS = layer("0", "Const", data='element_type="f32" shape="4" offset="0" size="16"', output="FP32") + layer(
    "1", "Result", inputs=1
)
CONVERTED = layer("0", "Const", data="{place}", output="U8") + layer(
    "2", "Convert", data='destination_type="f32"', inputs=1, output="FP32"
)


def branches(then: str, other: str) -> str:
    """Return an If of a constant condition, with a Result; ``then`` and ``other`` are layers and edges of its bodies."""
    maps = "".join(
        f'<{key}_port_map><output external_port_id="1" internal_layer_id="1"/></{key}_port_map>' for key in _KEYS
    )
    condition = layer("@5", "Const", data='element_type="u8" shape="" offset="2" size="1"', output="U8")
    bodies = f"<then_body>{then}</then_body><else_body>{other}</else_body>"
    made = layer("@6", "If", opset=8, inputs=1, output="FP32", more=maps + bodies)
    return condition + made + layer("@7", "Result", inputs=1)


_KEYS = ("then", "else")
IN_BRANCHES = edge("@5", 0, "@6") + edge("@6", 1, "@7")


def body(layers: str, edges: str) -> str:
    return f"<layers>{layers}</layers><edges>{edges}</edges>"


PLAIN = body(BIAS, edge("0", 0, "1"))
UNREAD = layer("5", "Const", data="{place}", output="U8") + layer("6", "Result", inputs=1)
READERS = {
    "nothing": (HIDDEN, ""),
    "a dead layer": (HIDDEN + layer("@2", "Abs", inputs=1, output="U8"), edge("@1", 0, "@2")),
    "a shape": (
        HIDDEN
        + layer("@2", "ShapeOf", opset=3, data='output_type="i64"', inputs=1, output="I64")
        + layer("@3", "Result", inputs=1),
        edge("@1", 0, "@2") + edge("@2", 1, "@3"),
    ),
    "an unread result of a body": (
        branches(body(BIAS + UNREAD, edge("0", 0, "1") + edge("5", 0, "6")), PLAIN),
        IN_BRANCHES,
    ),
    "a branch never taken": (
        branches(PLAIN, body(CONVERTED + layer("1", "Result", inputs=1), edge("0", 0, "2") + edge("2", 1, "1"))),
        IN_BRANCHES,
    ),
}


@trick("OVIR508", *READERS)
def bytes_that_no_result_depends_on(package: Package, reader: str) -> Package:
    return package.with_hidden(PAYLOAD, *READERS[reader])


@trick("OVIR508", "MZ", "\x01" * 3, "#!/bin/sh\nid\n")
def bytes_that_no_constant_reads(package: Package, data: str) -> Package:
    return replace(package, weights=package.weights + data.encode())


@trick("OVIR504", "\x01", "payload", "\x00" * 40 + "x")
def bytes_behind_the_elements(package: Package, data: str) -> Package:
    hidden = HIDDEN + layer("@2", "Result", inputs=1)
    grown = package.with_hidden(b"\1" + data.encode(), hidden, edge("@1", 0, "@2"))
    return grown.replaced(f'shape="{len(data) + 1}" offset', 'shape="1" offset')


# --------------------------------------------------------------------------- spellings that readers take differently


@trick(
    "OVIR302",
    'size="16 "',
    'size="16&#10;"',
    'size="0x10"',
    'size="1_6"',
    'size="&#xFF11;6"',
    'size="16.0"',
    'size="1e1"',
)
def size_that_is_no_number(package: Package, size: str) -> Package:
    return package.replaced('size="16"', size)


@trick("OVIR012", 'offset="+0"', 'offset=" 0"', 'offset="00"', 'offset="-0"', 'offset="&#9;0"')
def number_that_writers_spell_otherwise(package: Package, offset: str) -> Package:
    return package.replaced('offset="0"', offset)


@trick("OVIR012", "04", " 4", "4 ", "&#9;4", "04..4", "4 ..4", "[4]")
def shape_that_writers_spell_otherwise(package: Package, shape: str) -> Package:
    return package.replaced('<data shape="4"', f'<data shape="{shape}"')


@trick("OVIR012", " 4", "4 ", "04", "&#9;4", "4&#10;")
def dimension_that_writers_spell_otherwise(package: Package, text: str) -> Package:
    return package.replaced("<dim>4</dim>", f"<dim>{text}</dim>")


@trick("OVIR012", "relu", "RELU", "Relu")
def type_in_another_case(package: Package, name: str) -> Package:
    return package.replaced('type="ReLU"', f'type="{name}"')


@trick("OVIR202", "OPSET1", "Opset1", "opset01", "opset1 ", "opset&#x661;")
def opset_that_does_not_exist(package: Package, version: str) -> Package:
    return package.replaced('type="Add" version="opset1"', f'type="Add" version="{version}"')


@trick("OVIR201", "const", "CONST", "Const ", "C\u043enst")
def type_that_does_not_exist(package: Package, name: str) -> Package:
    return package.replaced('type="Const"', f'type="{name}"')


# --------------------------------------------------------------------------- texts that programs obey


@trick(
    "OVIR009", "//host/path", "//198.51.100.7/share/x", "//host.example", "//user@host:8080/a?b", "//[2001:db8::1]/x"
)
def address_without_a_scheme(package: Package, text: str) -> Package:
    return package.with_rt_info(f'<source value="{text}"/>')


@trick("OVIR009", "`id`", "name `curl host`", "$(id)", "x$(cat a | sh)", "$( (id) )", 'a"$(id)"')
def command(package: Package, text: str) -> Package:
    return package.with_rt_info(f"<note>{text}</note>")


# --------------------------------------------------------------------------- data where IR has none


@trick("OVIR006", "one", "many", "between layers")
def comments_of_megabytes(package: Package, how: str) -> Package:
    text = base64.b64encode(PAYLOAD * 200).decode()
    if how == "many":
        return package.before("</net>", "".join(f"<!--{text[at : at + 1000]}-->" for at in range(0, len(text), 1000)))
    return package.before("</net>" if how == "one" else "</layers>", f"<!--{text}-->")


@trick("OVIR006", "</layers>", "</edges>", "</net>")
def texts_of_megabytes(package: Package, tag: str) -> Package:
    text = base64.b64encode(PAYLOAD * 20).decode()
    return package.before(tag, f"<x>{text}</x>" * 15)
