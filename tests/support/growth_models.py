"""IR files that grow in one respect: layers, ports, results, names, bodies, diagnostics, ..."""

from collections.abc import Callable, Iterable

import numpy as np

from support.builder import Net

End = tuple[int, int]
WRONG_PORT = '<port id="1" precision="I32"><dim>3</dim></port>'


def with_results(net: Net, ends: Iterable[End]) -> Net:
    for end in ends:
        net.result(end)
    return net


def chain(n: int) -> Net:
    """Write a chain of equal layers."""
    net = Net()
    x = net.parameter("x", "2")
    for _ in range(n):
        x = net.op("ReLU", x)
    return with_results(net, [x])


def _split(net: Net, n: int) -> list[End]:
    layer, port = net.op("Split", net.parameter("x", str(n)), net.const(np.int64(0)), num_splits=n, outputs=n)
    return [(layer, port + i) for i in range(n)]


def ports(n: int) -> Net:
    """Write a Split with many outputs and a Concat with many inputs."""
    net = Net()
    return with_results(net, [net.op("Concat", *_split(net, n), axis=0)])


def split_results(n: int) -> Net:
    """Write a Result for each output of one Split."""
    net = Net()
    return with_results(net, _split(net, n))


def alike_results(n: int) -> Net:
    """Write many Results of one tensor, which has a name."""
    net = Net()
    return with_results(net, [net.op("ReLU", net.parameter("x", "2"))] * n)


def equal_names(n: int) -> Net:
    """Write layers that have one name, and whose tensors have one name."""
    net = Net()
    x = net.parameter("x", "2")
    return with_results(net, [net.op("ReLU", x, name="same") for _ in range(n)])


def bodies(n: int) -> Net:
    """Write a chain of layers with bodies."""
    net = Net()
    x = net.parameter("x", "2,3")
    body = Net()
    with_results(body, [body.op("ReLU", body.parameter("part", "1,3"))])
    inside = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1" stride="1"/>'
        '<output external_port_id="1" internal_layer_id="2" axis="0" part_size="1" stride="1"/></port_map>'
        f"<body><layers>{''.join(body.layers)}</layers><edges>{''.join(body.edges)}</edges></body></layer>"
    )
    for _ in range(n // 4):
        x = net.op("TensorIterator", x)
        net.layers[-1] = net.layers[-1].replace("</layer>", inside)
    return with_results(net, [x])


def variables(n: int) -> Net:
    """Write many variables, each of which is read and assigned."""
    net = Net()
    x = net.parameter("x", "2")
    for i in range(n // 2):
        x = net.op("ReadValue", x, opset=6, variable_id=f"v{i}", variable_type="f32", variable_shape="2")
        net.op("Assign", x, opset=6, outputs=0, variable_id=f"v{i}")
    return with_results(net, [x])


def attributes(n: int) -> Net:
    """Write a layer with many unknown attributes."""
    net = Net()
    return with_results(net, [net.op("ReLU", net.parameter("x", "2"), **{f"attribute_{i}": i for i in range(n)})])


# --------------------------------------------------------------------------- files with faults


def contradicted(n: int) -> Net:
    """Write layers that declare another type than inference gives."""
    net = Net()
    x = net.parameter("x", "2")
    for number in range(n):
        end = net.op("ReLU", x, name=f"relu{number}")
        port = f'<port id="1" precision="UNSPECIFIED" names="relu{number}"/>'
        net.layers[-1] = net.layers[-1].replace(port, WRONG_PORT)
        net.result(end)
    return net


def failing(n: int) -> Net:
    """Write layers that inference refuses, whose readers fail too."""
    net = Net()
    x, y = net.parameter("x", "2,3"), net.parameter("y", "4,5")
    ends = [net.op("Add", x, y) for _ in range(n // 2)]
    return with_results(net, [net.op("Add", end, x) for end in ends])


def unknown(n: int) -> Net:
    """Write a chain of unknown operations with unknown attributes."""
    net = Net()
    x = net.parameter("x", "2")
    for i in range(n):
        x = net.op(f"Unknown{i % 20}", x, **{f"attribute{i}": i})
    return with_results(net, [x])


def incomplete(n: int) -> Net:
    """Write layers without a required attribute, with a misspelled one instead."""
    net = Net()
    x = net.parameter("x", "2")
    return with_results(net, [net.op("Elu", x, alhpa=i) for i in range(n)])


def bad_values(n: int) -> Net:
    """Write attributes, sizes and types that cannot be read."""
    net = Net()
    x = net.parameter("x", "2")
    for i in range(n // 3):
        net.op("Elu", x, alpha=f"x{i}")
        net.op("Add", x, x, auto_broadcast=f"y{i}")
        net.parameter(f"p{i}", f"z{i}")
    return with_results(net, [x])


def stray_edges(n: int) -> Net:
    """Write edges to layers and ports that do not exist, and inputs without an edge."""
    net = Net()
    x = net.parameter("x", "2")
    ends = [net.op("Add", x, x) for _ in range(n)]
    net.edges = [edge.replace('to-port="1"', 'to-port="7"') for edge in net.edges]
    net.edges += [
        f'<edge from-layer="{x[0]}" from-port="{x[1]}" to-layer="{10 * n + i}" to-port="0"/>' for i in range(n)
    ]
    return with_results(net, ends)


def second_edges(n: int) -> Net:
    """Write two edges into each input of one layer."""
    net = Net()
    y = net.op("Concat", *[net.parameter("x", "2")] * n, axis=0)
    net.edges += net.edges
    return with_results(net, [y])


def duplicate_ids(n: int) -> Net:
    """Write all layers twice."""
    net = chain(n)
    net.layers += net.layers
    return net


def cycles(n: int) -> Net:
    """Write many cycles of two layers."""
    net = Net()
    x = net.parameter("x", "2")
    for _ in range(n // 2):
        total = net.op("Add", x, x)
        x = net.op("ReLU", total)
        net.edges[-2] = f'<edge from-layer="{x[0]}" from-port="{x[1]}" to-layer="{total[0]}" to-port="1"/>'
    return with_results(net, [x])


GOOD: dict[str, Callable[[int], Net]] = {
    make.__name__: make
    for make in (chain, ports, split_results, alike_results, equal_names, bodies, variables, attributes)
}
"""Files without errors."""

BAD: dict[str, Callable[[int], Net]] = {
    make.__name__: make
    for make in (
        *(contradicted, failing, unknown, incomplete, bad_values),
        *(stray_edges, second_edges, duplicate_ids, cycles),
    )
}
"""Files that ``read_model`` refuses, or that cannot run."""
