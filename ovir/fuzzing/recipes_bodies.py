"""Recipes of cells, bodies and state."""

from __future__ import annotations

from ovir.fuzzing.making import Make
from ovir.fuzzing.net import Net
from ovir.fuzzing.recipes import recipe

# --------------------------------------------------------------------------- cells


@recipe("RecurrentBase")
def cell(m: Make) -> None:
    m.settle("Batch=1|2|3 Time=1|2|4 Input=1|3 Hidden=1|2|5 hidden_size=Hidden clip=|0.5")
    m.settle("direction=forward|reverse|bidirectional linear_before_reset=false|true")
    m.take_declared("T f32|f32|f16|f64")
    if m.chance(0.2):
        functions = {"R": 1, "G": 2, "L": 3}[m.kind[0]]
        m.has(activations=[m.pick("sigmoid", "tanh", "relu") for _ in range(functions)])


# --------------------------------------------------------------------------- bodies and state


def _graph(m: Make, shape: tuple[int, ...], *, loop: bool = False) -> str:
    """Return a body of one layer; one of a loop returns that it goes on, with the first byte of the weights."""
    net = Net()
    parameter = net.parameter("p", ",".join("?" if m.chance(0.2) else str(size) for size in shape), m.real)
    net.result(net.op(m.pick("ReLU", "Sigmoid", "Exp"), parameter))
    if loop:
        net.result(net.op("Const", element_type="boolean", shape="1", offset="0", size="1"))
    return net.graph()


@recipe("TensorIterator")
def tensor_iterator(m: Make) -> None:
    shape = m.shape("T B C")
    m.add(shape, m.real)
    m.bodies = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1"/>'
        f'<output external_port_id="1" internal_layer_id="2" axis="{m.pick(0, 1, 2)}"/></port_map>'
        f"<body>{_graph(m, (1, *shape[1:]))}</body>"
    )


@recipe("Loop")
def loop(m: Make) -> None:
    m.take("index = 0..4, boolean = 0..1, real A B")
    m.bodies = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="2"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
        f"<body>{_graph(m, m.inputs[2].shape, loop=True)}</body>"
    )


@recipe("If")
def if_(m: Make) -> None:
    shape = m.any_shape()
    m.given(m.flag(), "boolean", constant=m.flag())
    m.add(shape, m.real)
    maps = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    m.bodies = "".join(
        f"<{name}_port_map>{maps}</{name}_port_map><{name}_body>{_graph(m, shape)}</{name}_body>"
        for name in ("then", "else")
    )


@recipe("ReadValue", "Assign")
def state(m: Make) -> None:
    m.add(m.any_shape(), m.real)
    m.has(variable_id="v")
    if m.opset == 6 and m.kind == "ReadValue":
        m.has(variable_type=m.real, variable_shape=m.inputs[0].shape)
