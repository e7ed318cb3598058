"""IR files that grow in one respect, as texts: layers, ports, results, names, constants, bodies, diagnostics, ..."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np

End = tuple[int, int]
"""The id of a layer and of one of its output ports."""


@dataclass
class File:
    """An IR file that is written layer by layer."""

    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytearray = field(default_factory=bytearray)
    rt_info: str = ""

    def layer(
        self,
        kind: str,
        *sources: End,
        outputs: int = 1,
        opset: int = 1,
        name: str | None = None,
        names: str = "",
        inside: str = "",
        data: dict[str, object] | None = None,
    ) -> End:
        """Add a layer and return its first output. ``inside`` is further content of its element."""
        number = len(self.layers)
        name = name or f"{kind}_{number}"
        parts = [f'<layer id="{number}" name="{name}" type="{kind}" version="opset{opset}">']
        if data:
            texts = " ".join(f"{key}={quoteattr(str(value))}" for key, value in data.items())
            parts.append(f"<data {texts}/>")
        parts.append(inside)
        if sources:
            ports = "".join(f'<port id="{i}" precision="UNSPECIFIED"/>' for i in range(len(sources)))
            parts.append(f"<input>{ports}</input>")
        if kind not in ("Result", "Assign") and outputs:
            first = len(sources)
            named = f' names="{names}"' if names else ""
            ports = "".join(f'<port id="{first + i}" precision="UNSPECIFIED"{named}/>' for i in range(outputs))
            parts.append(f"<output>{ports}</output>")
        self.layers.append("".join([*parts, "</layer>"]))
        for port, (layer, output) in enumerate(sources):
            self.edge((layer, output), (number, port))
        return number, len(sources)

    def edge(self, source: End, target: End) -> None:
        self.edges.append(
            f'<edge from-layer="{source[0]}" from-port="{source[1]}" to-layer="{target[0]}" to-port="{target[1]}"/>'
        )

    def parameter(self, shape: str = "2", element_type: str = "f32") -> End:
        return self.layer("Parameter", data={"shape": shape, "element_type": element_type})

    def constant(self, values: object, dtype: str = "f32") -> End:
        array = np.asarray(values, {"f32": np.float32, "i64": np.int64}[dtype])
        offset = len(self.weights)
        self.weights += array.tobytes()
        shape = ",".join(map(str, array.shape))
        data = {"element_type": dtype, "shape": shape, "offset": offset, "size": array.nbytes}
        return self.layer("Const", data=data)

    def results(self, sources: Iterable[End]) -> File:
        for source in sources:
            self.layer("Result", source)
        return self

    def text(self, element: str = "net") -> str:
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        attributes = ' name="growth" version="11"' if element == "net" else ""
        parts = [
            f"<{element}{attributes}>",
            "<layers>",
            layers,
            "</layers>",
            "<edges>",
            edges,
            "</edges>",
            self.rt_info,
        ]
        return "\n".join([*parts, f"</{element}>"])


def chain(n: int) -> File:
    """Write a chain of equal layers."""
    file = File()
    x = file.parameter()
    for _ in range(n):
        x = file.layer("ReLU", x)
    return file.results([x])


def distinct(n: int) -> File:
    """Write layers no two of which are alike: each slope and each shape occurs once."""
    file = File()
    x = file.parameter("0,1")
    part = file.parameter("0,1")
    for i in range(n // 2):
        x = file.layer("Elu", x, data={"alpha": 1 + i / n})
        x = file.layer("Concat", x, part, data={"axis": 1})
    return file.results([x])


def dynamic(n: int) -> File:
    """Write a chain whose sizes are unknown, with a shape that is computed from each of them."""
    file = File()
    x = file.parameter("?,?")
    for _ in range(n // 4):
        shape = file.layer("ShapeOf", x, opset=3, data={"output_type": "i64"})
        x = file.layer("Reshape", file.layer("ReLU", x), shape, data={"special_zero": "false"})
    return file.results([x])


def views(n: int) -> File:
    """Write a chain of layers that only give a tensor another shape."""
    file = File()
    x = file.parameter("2,3")
    axes = file.constant([0], "i64")
    for _ in range(n // 2):
        x = file.layer("Squeeze", file.layer("Unsqueeze", x, axes), axes)
    return file.results([file.layer("ReLU", x)])


def wide(n: int) -> File:
    """Write many layers that read one tensor, and a tree of sums over them."""
    file = File()
    x = file.parameter()
    ends = [file.layer("Elu", x, data={"alpha": 1 + i / n}) for i in range(n // 2)]
    while len(ends) > 1:
        pairs = zip(ends[::2], ends[1::2], strict=False)
        ends = [file.layer("Add", *pair) for pair in pairs] + ends[len(ends) - len(ends) % 2 :]
    return file.results(ends)


def ports(n: int) -> File:
    """Write a Split with many outputs and a Concat with many inputs."""
    file = File()
    x = file.parameter(str(n))
    first = file.layer("Split", x, file.constant(0, "i64"), data={"num_splits": n}, outputs=n)
    ends = [(first[0], first[1] + i) for i in range(n)]
    return file.results([file.layer("Concat", *ends, data={"axis": 0})])


def edges(n: int) -> File:
    """Write a layer all of whose inputs read one tensor."""
    file = File()
    x = file.parameter()
    return file.results([file.layer("Concat", *[x] * n, data={"axis": 0})])


def split_results(n: int) -> File:
    """Write a Result for each output of one Split."""
    file = File()
    first = file.layer("Split", file.parameter(str(n)), file.constant(0, "i64"), data={"num_splits": n}, outputs=n)
    return file.results((first[0], first[1] + i) for i in range(n))


def alike_results(n: int) -> File:
    """Write many Results of one tensor, which has a name."""
    file = File()
    return file.results([file.layer("ReLU", file.parameter(), names="y")] * n)


def equal_names(n: int) -> File:
    """Write layers that have one name, and whose tensors have one name."""
    file = File()
    x = file.parameter()
    return file.results([file.layer("ReLU", x, name="same", names="same") for _ in range(n)])


def parameters(n: int) -> File:
    """Write many inputs."""
    file = File()
    return file.results([file.layer("Concat", *[file.parameter() for _ in range(n)], data={"axis": 0})])


def tensor_names(n: int) -> File:
    """Write one tensor with many names."""
    file = File()
    return file.results([file.layer("ReLU", file.parameter(), names=",".join(f"name_{i}" for i in range(n)))])


def constants(n: int) -> File:
    """Write a chain that adds another constant in each layer."""
    file = File()
    x = file.parameter()
    for i in range(n // 2):
        x = file.layer("Add", x, file.constant([i, i + 1]))
    return file.results([x])


def folded(n: int) -> File:
    """Write a chain of layers that depend on constants only."""
    file = File()
    x = file.constant([0, 1])
    for i in range(n // 2):
        x = file.layer("Add", x, file.constant([i, i + 1]))
    return file.results([file.layer("Add", file.parameter(), x)])


def bodies(n: int) -> File:
    """Write a chain of layers with bodies."""
    file = File()
    x = file.parameter("2,3")
    for _ in range(n // 4):
        body = File()
        inner = body.parameter("1,3")
        body.results([body.layer("ReLU", inner)])
        maps = (
            '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1" stride="1"/>'
            '<output external_port_id="1" internal_layer_id="2" axis="0" part_size="1" stride="1"/></port_map>'
        )
        x = file.layer("TensorIterator", x, inside=maps + body.text("body"))
    return file.results([x])


def long_body(n: int) -> File:
    """Write a layer whose body has many layers."""
    file = File()
    body = chain(n)
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0" />'
        f'<output external_port_id="1" internal_layer_id="{n + 1}"/></port_map>'
    )
    x = file.layer("TensorIterator", file.parameter(), inside=maps + body.text("body"))
    return file.results([x])


def variables(n: int) -> File:
    """Write many variables, each of which is read and assigned."""
    file = File()
    x = file.parameter()
    for i in range(n // 2):
        data: dict[str, object] = {"variable_id": f"v{i}", "variable_type": "f32", "variable_shape": "2"}
        x = file.layer("ReadValue", x, opset=6, data=data)
        file.layer("Assign", x, opset=6, data={"variable_id": f"v{i}"})
    return file.results([x])


def rt_info(n: int) -> File:
    """Write many entries of runtime information: of the model, of one layer and of a layer each."""
    file = File()
    entries = "".join(f'<attribute name="a{i}" version="0" value="{i}"/>' for i in range(n // 3))
    x = file.layer("ReLU", file.parameter(), inside=f"<rt_info>{entries}</rt_info>")
    for i in range(n // 3):
        info = f'<rt_info><attribute name="fused_names" version="0" value="op_{i}"/></rt_info>'
        x = file.layer("ReLU", x, inside=info)
    keys = "".join(f'<key{i} value="{i}"/>' for i in range(n // 3))
    file.rt_info = f"<rt_info>{keys}</rt_info>"
    return file.results([x])


def attributes(n: int) -> File:
    """Write a layer with many unknown attributes."""
    file = File()
    data: dict[str, object] = {f"attribute_{i}": i for i in range(n)}
    return file.results([file.layer("ReLU", file.parameter(), data=data)])


def elements(n: int) -> File:
    """Write layers with many numbers in an attribute and many elements in a constant that inference reads."""
    file = File()
    ends = ",".join(["0"] * n)
    data: dict[str, object] = dict.fromkeys(
        ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), ends
    )
    begin, end = file.constant([0], "i64"), file.constant([2], "i64")
    x = file.layer("StridedSlice", file.parameter(), begin, end, data=data)
    lengths = file.constant([0] * n + [2], "i64")
    parts = file.layer("VariadicSplit", x, file.constant(0, "i64"), lengths, outputs=n + 1)
    return file.results([(parts[0], parts[1] + n)])


# --------------------------------------------------------------------------- files with faults


def contradicted(n: int) -> File:
    """Write layers that declare another type than inference gives."""
    file = File()
    x = file.parameter()
    wrong = '<port id="1" precision="I32"><dim>3</dim></port>'
    for _ in range(n):
        y = file.layer("ReLU", x)
        file.layers[-1] = file.layers[-1].replace('<port id="1" precision="UNSPECIFIED"/>', wrong)
        file.results([y])
    return file


def failing(n: int) -> File:
    """Write layers that inference refuses, whose readers fail too."""
    file = File()
    x, y = file.parameter("2,3"), file.parameter("4,5")
    ends = [file.layer("Add", x, y) for _ in range(n // 2)]
    return file.results([file.layer("Add", end, x) for end in ends])


def unknown(n: int) -> File:
    """Write a chain of unknown operations with unknown attributes."""
    file = File()
    x = file.parameter()
    for i in range(n):
        x = file.layer(f"Unknown{i % 20}", x, data={f"attribute{i}": i})
    return file.results([x])


def incomplete(n: int) -> File:
    """Write layers without a required attribute, with a misspelled one instead."""
    file = File()
    x = file.parameter()
    return file.results([file.layer("Elu", x, data={"alhpa": i}) for i in range(n)])


def bad_values(n: int) -> File:
    """Write attributes, sizes and types that cannot be read."""
    file = File()
    x = file.parameter()
    for i in range(n // 3):
        file.layer("Elu", x, data={"alpha": f"x{i}"})
        file.layer("Add", x, x, data={"auto_broadcast": f"y{i}"})
        file.layer("Parameter", data={"shape": f"z{i}", "element_type": "f32"})
    return file.results([x])


def stray_edges(n: int) -> File:
    """Write edges to layers and ports that do not exist, and inputs without an edge."""
    file = File()
    x = file.parameter()
    ends = [file.layer("Add", x, x) for _ in range(n)]
    file.edges = [edge.replace('to-port="1"', 'to-port="7"') for edge in file.edges]
    for i in range(n):
        file.edge(x, (10 * n + i, 0))
    return file.results(ends)


def second_edges(n: int) -> File:
    """Write two edges into each input of one layer."""
    file = File()
    x = file.parameter()
    y = file.layer("Concat", *[x] * n, data={"axis": 0})
    file.edges += file.edges
    return file.results([y])


def duplicate_ids(n: int) -> File:
    """Write all layers twice."""
    file = chain(n)
    file.layers += file.layers
    return file


def cycles(n: int) -> File:
    """Write many cycles of two layers."""
    file = File()
    x = file.parameter()
    for _ in range(n // 2):
        number, port = file.layer("Add", x, x)
        y = file.layer("ReLU", (number, port))
        file.edges.pop(-2)
        file.edge(y, (number, 1))
        x = y
    return file.results([x])


def backwards(n: int) -> File:
    """Write the layers of a chain in reverse order."""
    file = chain(n)
    file.layers.reverse()
    return file


GOOD: dict[str, Callable[[int], File]] = {
    make.__name__: make
    for make in (
        chain, distinct, dynamic, views, wide, ports, edges, split_results, alike_results, equal_names, parameters,
        tensor_names, constants, folded, bodies, long_body, variables, rt_info, attributes, elements, backwards,
    )
}  # fmt: skip
"""Files without errors."""

MOST = dict.fromkeys(("ports", "split_results", "elements"), 65_000)
"""The largest sizes of files that cannot have any size: Splits and lists have at most 65,536 outputs or items."""

BAD: dict[str, Callable[[int], File]] = {
    make.__name__: make
    for make in (
        contradicted, failing, unknown, incomplete, bad_values, stray_edges, second_edges, duplicate_ids, cycles,
    )
}  # fmt: skip
"""Files that ``read_model`` refuses, or that cannot run."""
