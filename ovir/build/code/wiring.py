"""The statements that connect a layer with its bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from ovir.build.code.literals import literal
from ovir.diagnostics.codes import BODY
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer
from ovir.ops.base.bodies import BodyMap, Entry, InputMap
from ovir.ops.control_flow import by_output

FIXED_INPUTS = {"If": 1, "Loop": 2, "TensorIterator": 0}
"""The number of inputs that the function takes; the others are added by methods."""


def wiring_statements(layer: Layer, name: str, bodies: Mapping[str, str], sources: list[str]) -> Iterator[str]:
    """Yield the statements for the bodies, which are in variables, and for the inputs and outputs.

    Raises ModelError for connections that the methods cannot express.
    """
    assert layer.operator is not None
    wiring = layer.operator.wiring
    if layer.type == "If":
        yield from _branches(name, bodies, sources, wiring)
    else:
        yield from _iterations(layer, name, bodies["body"], sources, wiring["body"])


def _branches(name: str, bodies: Mapping[str, str], sources: list[str], wiring: Mapping[str, BodyMap]) -> Iterator[str]:
    for key, body in bodies.items():
        yield f"{name}.set_{key}_body({body})"
    for external, source in enumerate(sources):
        fed = {key: [f"{body}.inputs[{i}]" for i in _fed(wiring[key], external)] for key, body in bodies.items()}
        pairs = list(zip_longest(fed["then"], fed["else"], fillvalue="None"))
        if not pairs and external:
            pairs = [("None", "None")]
        for then, other in pairs:
            yield f"{name}.set_input({source}, {then}, {other})"
    for first, second in zip(by_output(wiring["then"].outputs), by_output(wiring["else"].outputs), strict=True):
        then, other = f"{bodies['then']}.outputs[{first.result}]", f"{bodies['else']}.outputs[{second.result}]"
        yield f"{name}.set_output({then}, {other})"


def _fed(wiring: BodyMap, external: int) -> list[int]:
    return [item.parameter for item in wiring.inputs if item.external == external]


def _iterations(layer: Layer, name: str, body: str, sources: list[str], wiring: BodyMap) -> Iterator[str]:
    yield f"{name}.set_body({body})" if layer.type == "TensorIterator" else f"{name}.set_function({body})"
    if layer.type == "Loop":
        counter = next((item.parameter for item in wiring.inputs if item.purpose == "current_iteration"), -1)
        condition = next(item.result for item in wiring.outputs if item.purpose == "execution_condition")
        yield f"{name}.set_special_body_ports([{counter}, {condition}])"
    carried = {edge.parameter: edge.result for edge in wiring.back_edges}
    inputs = sorted((item for item in wiring.inputs if item.external >= 0), key=lambda item: item.external)
    if unfed := carried.keys() - {item.parameter for item in inputs}:
        message = f"a back edge leads to parameter {min(unfed)} of the body, which has no value for the first iteration"
        raise ModelError(diagnose(BODY, f"{message}; this cannot be built in Python", layer.place))
    for item in inputs:
        yield f"{name}.{_input(item, body, sources[item.external], carried)}"
    for entry in by_output(wiring.outputs):
        result = f"{body}.outputs[{entry.result}]"
        yield (
            f"{name}.get_iter_value({result}, -1)"
            if entry.axis is None
            else f"{name}.get_concatenated_slices({result}, {_slices(entry)})"
        )


def _input(item: InputMap, body: str, source: str, carried: Mapping[int, int]) -> str:
    parameter = f"{body}.inputs[{item.parameter}]"
    if item.axis is not None:
        return f"set_sliced_input({parameter}, {source}, {_slices(item)})"
    if item.parameter in carried:
        return f"set_merged_input({parameter}, {source}, {body}.outputs[{carried[item.parameter]}])"
    return f"set_invariant_input({parameter}, {source})"


def _slices(item: Entry) -> str:
    names = ("start", "stride", "part_size", "end", "axis")
    return ", ".join(f"{name}={literal(getattr(item, name))}" for name in names)
