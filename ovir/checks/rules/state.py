"""Rules about variables: ReadValue and Assign."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, diagnostic, rule
from ovir.diagnostics.codes import ASSIGNED_TWICE, NO_ASSIGN, READ_TWICE
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer


def _by_variable(layers: list[Layer]) -> dict[str, list[Layer]]:
    found: dict[str, list[Layer]] = {}
    for layer in layers:
        found.setdefault(str(layer.attributes.get("variable_id")), []).append(layer)
    return found


@rule(NO_ASSIGN, needs_whole_graph=True)
def no_assign(context: Context) -> Iterator[Diagnostic]:
    assigned = _by_variable(context.by_type.get("Assign", []))
    for name, readers in _by_variable(context.by_type.get("ReadValue", [])).items():
        if name not in assigned:
            yield diagnostic(
                NO_ASSIGN, f"no Assign writes the variable '{name}': it keeps its initial value", readers[0]
            )


@rule(ASSIGNED_TWICE)
def assigned_twice(context: Context) -> Iterator[Diagnostic]:
    for name, (first, *others) in _by_variable(context.by_type.get("Assign", [])).items():
        for layer in others:
            yield diagnostic(ASSIGNED_TWICE, f"the variable '{name}' is also assigned by {first.title}", layer)


@rule(READ_TWICE)
def read_twice(context: Context) -> Iterator[Diagnostic]:
    """Report layers that read the same variable and declare it differently."""
    for name, (first, *others) in _by_variable(context.by_type.get("ReadValue", [])).items():
        for layer in others:
            for key in ("variable_type", "variable_shape"):
                mine, theirs = layer.attributes.get(key), first.attributes.get(key)
                if mine != theirs:
                    message = f"{key} of the variable '{name}' is {mine}; {first.title} declares it as {theirs}"
                    yield diagnostic(READ_TWICE, message, layer)
