"""Tricks of hostile packages, each a function that plays it on a package, for tests and for `benchmarks.fuzz_untrusted`.

A trick is registered with the code of the error that the gate reports for it, and with variations: the texts that it
puts into the package. It adds to the package, so that tricks can be played after one another.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

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

    def write(self, folder: Path) -> Path:
        path = folder / "model.xml"
        path.write_bytes(self.xml)
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


HONEST = Package(
    f'<?xml version="1.0"?>\n<net name="honest" version="11"><layers>{LAYERS}</layers><edges>{EDGES}</edges>'
    "<rt_info><framework>made by hand</framework></rt_info></net>\n".encode(),
    np.float32([1, 2, 3, 4]).tobytes(),
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
            TRICKS[name] = code, lambda package, variation=variation: function(package, variation)
        return function

    return register


# --------------------------------------------------------------------------- what one parser refuses and another reads

HIDDEN_XML = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/><?xml-stylesheet href="x"?>'


@trick("OVIR102", "\U00010000", "a\U0002f800", "_\U00010fff", "\u0487", "x\u218b", "\ua640")
def name_that_one_parser_refuses(package: Package, name: str) -> Package:
    return package.with_rt_info(f"<{name}/>{HIDDEN_XML}")


# --------------------------------------------------------------------------- bytes that no result depends on

CONST = """<layer id="@1" name="hidden@" type="Const" version="opset1"><data {place}/>
<output><port id="0" precision="U8"/></output></layer>"""
