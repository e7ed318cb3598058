"""Python code that builds a model, and the file of its large constants."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ovir.build.code.literals import as_stored, literal
from ovir.build.code.opsets import Functions, version_of
from ovir.build.code.statements import Statements, assignment, common_arguments
from ovir.build.code.variables import Variables, identifier
from ovir.build.code.wiring import FIXED_INPUTS, wiring_statements
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.progress import counted
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.graph.names import take_name
from ovir.ops.base.opsets import NEWEST_OPSET


class Program:
    """The code for a model."""

    def __init__(self, model: LayerGraph) -> None:
        self.arrays: dict[str, Array] = {}
        """The large constants by their names in the .npz."""
        self._functions = Functions(model.walk())
        opsets = {f"opset{number}" for number in range(1, NEWEST_OPSET + 1)}
        self._taken = {"Path", "model", "np", "ops", "ovir", "weights", *opsets}
        """All names in the code, so that no function hides a name of the module."""
        self._bodies: list[str] = []
        body = list(self._statements(model, Variables(self._taken), "model = "))
        end = ["weights.close()"] if self.arrays else []
        statements = [*self._bodies, *([""] if self._bodies else []), *body, *end]
        self.text = "\n".join([*self._head(model, statements), *statements, ""])

    def store(self, name: str, array: Array, element_type: ElementType) -> str:
        """Keep a large constant, and return the expression that loads it."""
        key = take_name(identifier(name), {*self.arrays, "file", "allow_pickle"})  # arguments of np.savez
        self.arrays[key] = as_stored(array, element_type)
        return f'weights["{key}"]'

    def _head(self, model: LayerGraph, statements: Sequence[str]) -> Iterator[str]:
        name = literal(model.name)
        can_be_quoted = model.name and '"""' not in name and "\\" not in name
        yield f'"""Build the model {name}."""' if can_be_quoted else '"""Build a model."""'
        yield ""
        if self.arrays:
            yield from ("from pathlib import Path", "")
        if self.arrays or any("np." in line for line in statements):
            yield from ("import numpy as np", "")
        yield from ("import ovir", *self._functions.imports, "")
        if self.arrays:
            yield from ('weights = np.load(Path(__file__).with_suffix(".npz"))', "")

    def _statements(self, model: LayerGraph, variables: Variables, start: str) -> Iterator[str]:
        """Yield the statements that create the layers of a model or body, and the model."""
        statements = Statements(self._functions, variables, self)
        alive = [layer for layer in model.layers if not layer.is_dead or layer.type == "Parameter"]
        for layer in counted("writing code", alive):
            if layer.bodies:
                yield from self._with_bodies(layer, statements)
            else:
                yield from statements.layer(layer)
        results = [variables[port.layer] for port in model.outputs]
        parameters = [variables[port.layer] for port in model.inputs]
        sinks = [variables[layer] for layer in alive if layer.type == "Assign"]
        lists = [f"[{', '.join(names)}]" for names in (results, *([sinks] if sinks else []), parameters)]
        yield assignment("", f"{start}ovir.Model", [*lists, *([literal(model.name)] if model.name else [])])

    def _with_bodies(self, layer: Layer, statements: Statements) -> Iterator[str]:
        name = statements.variables.add(layer)
        bodies = {}
        for key, body in layer.bodies.items():
            function = take_name(f"make_{name}_{key}".removesuffix("_body") + "_body", self._taken)
            self._add_function(function, body)
            bodies[key] = take_name(f"{name}_{key}", self._taken)
            yield f"{bodies[key]} = {function}()"
        sources = [statements.source(port) for port in layer.inputs]
        version = version_of(layer)
        assert version is not None
        function = statements.functions.name(version)
        arguments = [*sources[: FIXED_INPUTS[layer.type]], *common_arguments(layer)]
        yield assignment(name, function, arguments)
        yield from wiring_statements(layer, name, bodies, sources)
        for port in layer.outputs:
            if port.own_names:
                yield f"{name}[{port.index}].names = {literal(port.own_names)}"

    def _add_function(self, name: str, body: LayerGraph) -> None:
        """Add the function that returns a body, behind the functions of the bodies inside of it."""
        lines = list(self._statements(body, Variables(self._taken), "return "))
        text = textwrap.indent("\n".join(lines), "    ")
        self._bodies.extend(["", f"def {name}() -> ovir.Model:", text, ""])
