"""Report what a reader refuses that ignores declared types, as ``read_model`` does, and connect it with its causes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ovir.diagnostics.codes import EXCHANGED_INPUTS, OWN_TYPE, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.text import plural
from ovir.graph.layers import Layer
from ovir.model import Model

_NAMED = 3
"""How many other layers that fail for the same reason a message names."""


def report_refusals(
    model: Model,
    refusals: Iterable[Diagnostic],
    contradictions: Collection[Diagnostic],
    failing: Collection[str | None],
    diagnostics: Diagnostics,
) -> None:
    """Add the errors of inference without declared types to the errors of inference with them.

    An error that follows from a contradiction between the file and inference includes it, so that both are one
    diagnostic. Of several errors that follow from the same contradictions the first remains and names the others. What
    follows from layers that fail in any case, ``failing``, is left out.
    """
    causes = _Causes(model, contradictions, failing)
    groups: dict[tuple[Diagnostic, ...], list[Diagnostic]] = {}
    for refusal in refusals:
        if refusal.layer in failing:
            continue
        found = causes.of(refusal)
        if found is not None:
            groups.setdefault(found, []).append(refusal)
    for found, (first, *others) in groups.items():
        if any(cause.code == OWN_TYPE.id for cause in found):
            diagnostics.add(first)  # fold_constant_types joins it with the diagnostics of the constant
            continue
        for cause in found:
            diagnostics.discard(cause)
        diagnostics.add(_joined(first, found, others))


class _Causes:
    """Finds the contradictions that an error follows from: the nearest ones before its layer."""

    def __init__(self, model: Model, contradictions: Collection[Diagnostic], failing: Collection[str | None]) -> None:
        self._layers = {layer.title: layer for layer in model.walk()}
        self._outside = {body: layer for layer in model.walk() for body in layer.bodies.values()}
        self._failing = failing
        self._contradictions: dict[str | None, list[Diagnostic]] = {}
        for found in contradictions:
            self._contradictions.setdefault(found.layer, []).append(found)

    def of(self, refusal: Diagnostic) -> tuple[Diagnostic, ...] | None:
        """Return the contradictions, only the layer's own if it has errors, or None if a layer fails before it."""
        own = [d for d in self._contradictions.get(refusal.layer, ()) if d.severity is Severity.ERROR]
        if own or refusal.layer not in self._layers:
            return tuple(own)
        found: dict[Diagnostic, None] = {}
        pending = [self._layers[refusal.layer]]
        seen = set(pending)
        while pending:
            for source in self._sources(pending.pop()):
                if source.title in self._failing:
                    return None
                if source in seen:
                    continue
                seen.add(source)
                found |= dict.fromkeys(self._contradictions.get(source.title, ()))
                if source.title not in self._contradictions:
                    pending.append(source)
        return tuple(sorted(found, key=lambda cause: cause.line or 0))

    def _sources(self, layer: Layer) -> list[Layer]:
        """Return the layers that a layer reads; for the parameter of a body, those that the operation reads."""
        if not layer.inputs and layer.type == "Parameter" and (outside := self._outside.get(layer.owner)) is not None:
            layer = outside
        return [port.source.layer for port in layer.inputs if port.source is not None]


def _joined(error: Diagnostic, causes: Sequence[Diagnostic], others: Sequence[Diagnostic]) -> Diagnostic:
    """Return an error with the messages of its causes, and the names of other layers that fail by them."""
    exchanged = [cause for cause in causes if cause.code == EXCHANGED_INPUTS.id and cause.layer == error.layer]
    own = [cause for cause in causes if cause not in exchanged and cause.layer == error.layer]
    texts = [found.message for found in (*exchanged, error, *own)]
    texts += [f"this follows from {_place(cause)}: {cause.message}" for cause in causes if cause.layer != error.layer]
    names = [other.layer for other in others if other.layer is not None]
    if others:
        shown = ", ".join(names[:_NAMED])
        texts.append(f"{plural(len(others), 'more error')} of the same cause: {shown}{', ...' * (len(names) > _NAMED)}")
    hint = exchanged[0].hint if exchanged else error.hint
    if hint is None and causes and not own:
        hint = "OpenVINO ignores what ports declare, too"
    return replace(error, message="; ".join(texts), hint=hint)


def _place(cause: Diagnostic) -> str:
    return f"{cause.layer}{'' if cause.line is None else f' on line {cause.line}'}"
