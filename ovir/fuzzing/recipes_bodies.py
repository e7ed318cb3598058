"""Recipes of cells, bodies and state."""

from __future__ import annotations

from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import recipe

# --------------------------------------------------------------------------- cells

_GATES = {"RNN": (1, 1), "GRU": (3, 1), "LSTM": (4, 2)}
"""The number of gates, and of states."""


@recipe(*(f"{cell}{form}" for cell in _GATES for form in ("Cell", "Sequence")))
def cell(m: Make) -> None:
    sequence = m.kind.endswith("Sequence")
    gates, states = _GATES[m.kind.removesuffix("Sequence").removesuffix("Cell")]
    hidden, directions = m.pick(1, 2, 5), 1
    kind = m.type("real", "f32", "f32", "f16", "f64")
    m.set(H=hidden, I=m.pick(1, 3), B=m.pick(1, 2, 3), T=m.pick(1, 2, 4))
    if sequence:
        direction = m.pick("forward", "reverse", "bidirectional")
        directions = 1 + (direction == "bidirectional")
        m.has(direction=direction)
    before = f"{directions} " if sequence else ""
    m.add("B T I" if sequence else "B I", kind)
    for _ in range(states):
        m.add(f"B {before}H", kind)
    if sequence:
        m.add("B", m.index)
    reset = gates == 3 and m.flag()
    m.add(f"{before}{gates}*H I", kind)
    m.add(f"{before}{gates}*H H", kind)
    if sequence or gates == 1 or m.flag() or reset:
        m.add(f"{before}{gates + reset}*H", kind)
    m.has(hidden_size=hidden, linear_before_reset=reset if gates == 3 else None, clip=m.pick(None, 0.5))
    if m.chance(0.2):
        m.has(activations=[m.pick("sigmoid", "tanh", "relu") for _ in range({1: 1, 3: 2, 4: 3}[gates])])


# --------------------------------------------------------------------------- bodies and state


_BODY = """<layers>
<layer id="0" name="p" type="Parameter" version="opset1"><data shape="{shape}" element_type="{type}"/>
<output><port id="0"/></output></layer>
<layer id="1" name="f" type="{op}" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>{more}</layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>{edges}</edges>"""
_TRUE = """<layer id="3" name="c" type="Const" version="opset1">
<data element_type="boolean" shape="1" offset="0" size="1"/><output><port id="0"/></output></layer>
<layer id="4" name="s" type="Result" version="opset1"><input><port id="0"/></input></layer>"""


def _body(m: Make, shape: tuple[int, ...], *, loop: bool = False) -> str:
    dims = ",".join("?" if m.chance(0.2) else str(size) for size in shape)
    edge = '<edge from-layer="3" from-port="0" to-layer="4" to-port="0"/>'
    op = m.pick("ReLU", "Sigmoid", "Exp")
    return _BODY.format(shape=dims, type=m.real, op=op, more=_TRUE if loop else "", edges=edge if loop else "")


@recipe("TensorIterator")
def tensor_iterator(m: Make) -> None:
    shape = m.shape("T B C")
    m.add(shape, m.real)
    m.bodies = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1"/>'
        f'<output external_port_id="1" internal_layer_id="2" axis="{m.pick(0, 1, 2)}"/></port_map>'
        f"<body>{_body(m, (1, *shape[1:]))}</body>"
    )


@recipe("Loop")
def loop(m: Make) -> None:
    shape = m.shape("A B")
    m.given(m.rng.randint(0, 4))
    m.given(m.flag(), "boolean")
    m.add(shape, m.real)
    m.bodies = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="2"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
        f"<body>{_body(m, shape, loop=True)}</body>"
    )


@recipe("If")
def if_(m: Make) -> None:
    shape = m.any_shape()
    m.given(m.flag(), "boolean", constant=m.flag())
    m.add(shape, m.real)
    maps = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    m.bodies = "".join(
        f"<{name}_port_map>{maps}</{name}_port_map><{name}_body>{_body(m, shape)}</{name}_body>"
        for name in ("then", "else")
    )


@recipe("ReadValue", "Assign")
def state(m: Make) -> None:
    m.add(m.any_shape(), m.real)
    m.has(variable_id="v")
    if m.opset == 6 and m.kind == "ReadValue":
        m.has(variable_type=m.real, variable_shape=m.inputs[0].shape)
