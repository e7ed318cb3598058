"""Recipes of cells, bodies and state."""

from __future__ import annotations

from ovir.fuzzing.making import Make
from ovir.fuzzing.net import Net
from ovir.fuzzing.recipes import recipe

# --------------------------------------------------------------------------- cells

_GATES = {"RNN": (1, 1), "GRU": (3, 1), "LSTM": (4, 2)}
"""The number of gates, and of states."""


@recipe(*(f"{cell}{form}" for cell in _GATES for form in ("Cell", "Sequence")))
def cell(m: Make) -> None:
    is_sequence = m.kind.endswith("Sequence")
    gates, states = _GATES[m.kind.removesuffix("Sequence").removesuffix("Cell")]
    direction = m.pick("forward", "reverse", "bidirectional")
    reset = gates == 3 and m.flag()
    kind, before = m.type("real", "f32", "f32", "f16", "f64"), "D " if is_sequence else ""
    m.settle(f"H=1|2|5 I=1|3 B=1|2|3 T=1|2|4 D={1 + (direction == 'bidirectional')} hidden_size=H clip=|0.5")
    m.has(direction=direction, linear_before_reset=reset)
    m.take(", ".join([f"{kind} {'B T I' if is_sequence else 'B I'}", *[f"{kind} B {before}H"] * states]))
    if is_sequence:
        m.add("B", m.index)
    m.take(f"{kind} {before}{gates}*H I, {kind} {before}{gates}*H H")
    if is_sequence or gates == 1 or reset or m.flag():
        m.add(f"{before}{gates + reset}*H", kind)
    if m.chance(0.2):
        m.has(activations=[m.pick("sigmoid", "tanh", "relu") for _ in range({1: 1, 3: 2, 4: 3}[gates])])


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
