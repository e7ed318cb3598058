"""Layers with bodies while they are built: OpenVINO's methods that connect a body with the layer.

Each method that adds an output infers the layer with what it has by then, and returns the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ovir.building.creation import Call, add_input, infer, port_of, ports_of
from ovir.building.values import as_type
from ovir.diagnostics.codes import BODY
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.ops.base.bodies import BackEdge, BodyMap, InputMap, OutputMap


class _BodyLayer(Layer):
    """Base of layers with bodies."""

    __slots__ = ()

    def _call(self, method: str, **arguments: Any) -> Call:
        """Return the call for messages; InputError if the layer is in a model, which would not know of the change."""
        call = Call(f"{self.name or self.type}.{method}", arguments)
        if self.owner is not None:
            call.fail("the layer already belongs to a model", hint="finish the layer before the Model is made of it")
        return call

    def _set_body(self, key: str, body: LayerGraph) -> None:
        call = self._call(f"set_{_name(key)}".replace(" ", "_"), body=body)
        if not isinstance(body, LayerGraph):
            call.fail(f"expected a Model, got {body!r}")
        if body.holder is not None:
            call.fail("the model is already the body of a layer", hint="copy it with clone()")
        if key in self.bodies:
            self.bodies[key].holder = None
        body.holder = self
        self.bodies[key] = body
        self._wire(key, BodyMap(parameter_count=len(body.inputs)))

    def _body(self, call: Call, key: str) -> LayerGraph:
        body = self.bodies.get(key)
        if body is None:
            call.fail(f"the layer has no {_name(key)} yet")
        assert isinstance(body, LayerGraph)
        return body

    def _wiring(self, key: str) -> BodyMap:
        assert self.operator is not None
        return self.operator.wiring[key]

    def _wire(self, key: str, wiring: BodyMap) -> None:
        assert self.operator is not None
        self.operator.wiring = {**self.operator.wiring, key: wiring}

    def _feed(self, call: Call, argument: str, value: Any) -> int:
        """Add an input that reads ``value``, and return its position."""
        assert self.operator is not None
        if value is None:
            call.fail(f"argument '{argument}': expected a layer, a port, an array or a number, got None")
        add_input(self, ports_of(call, type(self.operator), [argument], [value])[0])
        return len(self.inputs) - 1

    def _parameter(self, call: Call, key: str, parameter: LayerOrPort) -> int:
        """Return the position of a Parameter of a body; InputError if it is not one, or is fed already."""
        layer = parameter.layer if isinstance(parameter, Port) else parameter
        places = {port.layer: index for index, port in enumerate(self._body(call, key).inputs)}
        if not isinstance(layer, Layer) or layer not in places:
            call.fail(f"expected a Parameter of the {_name(key)}, got {parameter!r}")
        if any(item.parameter == places[layer] for item in self._wiring(key).inputs):
            call.fail(f"{layer.title} of the body is already fed")
        return places[layer]

    def _result(self, call: Call, key: str, value: LayerOrPort) -> int:
        """Return the position of a Result of a body, which is given itself or by the tensor that it reads."""
        ports = self._body(call, key).outputs
        for index, port in enumerate(ports):
            if value is port or value is port.layer:
                return index
        source = port_of(call, "value", value) if isinstance(value, (Layer, Port)) else None
        for index, port in enumerate(ports):
            if source is not None and port.source is source:
                return index
        return call.fail(f"expected a result of the {_name(key)}, got {value!r}")

    def _add_output(self, call: Call, entries: dict[str, OutputMap]) -> Port:
        before = {key: self._wiring(key) for key in entries}
        for key, entry in entries.items():
            self._wire(key, replace(before[key], outputs=(*before[key].outputs, entry)))
        try:
            infer(self, call)
        except Exception:
            for key, wiring in before.items():
                self._wire(key, wiring)
            raise
        return self.outputs[-1]


def _name(key: str) -> str:
    """Return the name of a body for messages."""
    return key if key == "body" else f"{key} body"


class IfLayer(_BodyLayer):
    """An If while it is built."""

    __slots__ = ()

    def set_then_body(self, body: LayerGraph) -> None:
        """Set the body that runs if the condition is true."""
        self._set_body("then", body)

    def set_else_body(self, body: LayerGraph) -> None:
        """Set the body that runs if the condition is false."""
        self._set_body("else", body)

    def set_input(self, value: Any, then_parameter: LayerOrPort | None, else_parameter: LayerOrPort | None) -> None:
        """Add an input that feeds a Parameter of each body; None for a body that does not need it."""
        call = self._call("set_input", value=value, then_parameter=then_parameter, else_parameter=else_parameter)
        given = {"then": then_parameter, "else": else_parameter}
        parameters = {key: self._parameter(call, key, item) for key, item in given.items() if item is not None}
        external = self._feed(call, "value", value)
        for key, parameter in parameters.items():
            wiring = self._wiring(key)
            self._wire(key, replace(wiring, inputs=(*wiring.inputs, InputMap(external, parameter))))

    def set_output(self, then_result: LayerOrPort, else_result: LayerOrPort) -> Port:
        """Add and return an output, which is a result of either body."""
        call = self._call("set_output", then_result=then_result, else_result=else_result)
        given = {"then": then_result, "else": else_result}
        results = {key: self._result(call, key, item) for key, item in given.items()}
        count = len(self._wiring("then").outputs)
        return self._add_output(call, {key: OutputMap(count, result) for key, result in results.items()})


class IterationLayer(_BodyLayer):
    """A TensorIterator while it is built."""

    __slots__ = ()

    def set_body(self, body: LayerGraph) -> None:
        """Set the body that runs in each iteration."""
        self._set_body("body", body)

    def set_function(self, func: LayerGraph) -> None:
        """Set the body that runs in each iteration."""
        self._set_body("body", func)

    def set_sliced_input(
        self, parameter: LayerOrPort, value: Any, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> None:
        """Add an input of which each iteration gets the next part along an axis."""
        call = self._call("set_sliced_input", parameter=parameter, value=value, start=start, stride=stride, end=end)
        slices = _slices(call, start=start, stride=stride, part_size=part_size, end=end, axis=axis)
        self._add_input(call, parameter, "value", value, **slices)

    def set_merged_input(self, body_parameter: LayerOrPort, initial_value: Any, successive_value: LayerOrPort) -> None:
        """Add an input for the first iteration; further iterations get a result of the one before."""
        call = self._call("set_merged_input", body_parameter=body_parameter, initial_value=initial_value)
        result = self._result(call, "body", successive_value)
        parameter = self._add_input(call, body_parameter, "initial_value", initial_value)
        wiring = self._wiring("body")
        self._wire("body", replace(wiring, back_edges=(*wiring.back_edges, BackEdge(result, parameter))))

    def set_invariant_input(self, body_parameter: LayerOrPort, value: Any) -> None:
        """Add an input that is the same in each iteration."""
        call = self._call("set_invariant_input", body_parameter=body_parameter, value=value)
        self._add_input(call, body_parameter, "value", value)

    def get_iter_value(self, body_value: LayerOrPort, iteration: int = -1) -> Port:
        """Add and return an output, which is a result of the last iteration."""
        call = self._call("get_iter_value", body_value=body_value, iteration=iteration)
        if _typed(call, "iteration", int, iteration) != -1:
            call.fail(f"only the result of the last iteration (-1) can be an output, got {iteration}", BODY)
        return self._add_output(call, {"body": OutputMap(self._count(), self._result(call, "body", body_value))})

    def get_concatenated_slices(
        self, value: LayerOrPort, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> Port:
        """Add and return an output, which concatenates the results of all iterations along an axis."""
        call = self._call("get_concatenated_slices", value=value, start=start, stride=stride, end=end, axis=axis)
        slices = _slices(call, start=start, stride=stride, part_size=part_size, end=end, axis=axis)
        entry = OutputMap(self._count(), self._result(call, "body", value), **slices)
        return self._add_output(call, {"body": entry})

    def _count(self) -> int:
        return sum(item.external >= 0 for item in self._wiring("body").outputs) if self.bodies else 0

    def _add_input(self, call: Call, parameter: LayerOrPort, argument: str, value: Any, **slices: Any) -> int:
        place = self._parameter(call, "body", parameter)
        wiring = self._wiring("body")
        entry = InputMap(self._feed(call, argument, value), place, **slices)
        self._wire("body", replace(wiring, inputs=(*wiring.inputs, entry)))
        return place


class LoopLayer(IterationLayer):
    """A Loop while it is built."""

    __slots__ = ()

    def set_special_body_ports(self, special_body_ports: Sequence[int]) -> None:
        """Set the positions of the Parameter that gets the number of the iteration (-1: none), and of the Result that
        decides whether another iteration follows.

        Call this before the methods that add outputs.
        """
        call = self._call("set_special_body_ports", special_body_ports=special_body_ports)
        body = self._body(call, "body")
        places = _typed(call, "special_body_ports", tuple[int, ...], special_body_ports)
        if len(places) != 2:
            call.fail(f"argument 'special_body_ports': expected a parameter and a result, got {special_body_ports!r}")
        counter, condition = places
        if not -1 <= counter < len(body.inputs):
            call.fail(f"the body has no parameter {counter}: it has {len(body.inputs)}", BODY)
        if not 0 <= condition < len(body.outputs):
            call.fail(f"the body has no result {condition}: it has {len(body.outputs)}", BODY)
        wiring = self._wiring("body")
        inputs = [item for item in wiring.inputs if not item.purpose]
        outputs = [item for item in wiring.outputs if not item.purpose]
        if counter >= 0:
            inputs.append(InputMap(-1, counter, purpose="current_iteration"))
        outputs.append(OutputMap(-1, condition, purpose="execution_condition"))
        self._wire("body", replace(wiring, inputs=tuple(inputs), outputs=tuple(outputs)))


def _typed(call: Call, argument: str, kind: Any, value: Any) -> Any:
    """Return an argument in its type; InputError if it is of another kind."""
    try:
        return as_type(kind, value)
    except ValueError as error:
        call.fail(f"argument '{argument}': {error}")


def _slices(call: Call, **given: int) -> dict[str, Any]:
    """Return the integers that describe the slices of a tensor, by name; InputError for other values."""
    return {name: _typed(call, name, int, value) for name, value in given.items()}
