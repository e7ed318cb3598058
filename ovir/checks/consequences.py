"""Diagnostics that follow from others: each fault is reported once, with its cause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ovir.diagnostics.codes import CODES, EXCHANGED_INPUTS, OWN_TYPE, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import Diagnostics
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer, layers_before
from ovir.model import Model
from ovir.ops.infrastructure import Const

_NAMED = 3
"""The most other layers with the same cause that a message names."""


def report_refusals(
    model: Model,
    refusals: Iterable[Diagnostic],
    contradictions: Collection[Diagnostic],
    failing: Collection[str | None],
    diagnostics: Diagnostics,
) -> None:
    """Add the errors of inference without declared types to the errors of inference with them.

    An error that follows from a contradiction between the file and inference includes it, so that both are one
    diagnostic. Of several errors that follow from the same contradictions the first remains and names the others.
    Consequences of layers that fail in any case, ``failing``, are left out.
    """
    causes = _Causes(model, contradictions, failing)
    groups: dict[tuple[Diagnostic, ...], list[Diagnostic]] = {}
    for refusal in refusals:
        if refusal.layer not in failing and (blamed := causes.of(refusal)) is not None:
            groups.setdefault(blamed, []).append(refusal)
    for blamed, (first, *others) in groups.items():
        if any(cause.code == OWN_TYPE.id for cause in blamed):
            diagnostics.add(first)  # fold_constant_types joins it with the diagnostics of the constant
            continue
        diagnostics.discard(*blamed)
        diagnostics.add(_joined(first, blamed, others))


class _Causes:
    """Finds the contradictions that an error follows from: the nearest ones before its layer."""

    def __init__(self, model: Model, contradictions: Collection[Diagnostic], failing: Collection[str | None]) -> None:
        self._layers = {layer.title: layer for layer in model.walk()}
        self._outside = {body: layer for layer in model.walk() for body in layer.bodies.values()}
        self._failing = failing
        self._contradictions: dict[str | None, list[Diagnostic]] = {}
        for contradiction in contradictions:
            self._contradictions.setdefault(contradiction.layer, []).append(contradiction)

    def of(self, refusal: Diagnostic) -> tuple[Diagnostic, ...] | None:
        """Return the contradictions, only the layer's own if it has errors, or None if a layer fails before it."""
        own_errors = [d for d in self._contradictions.get(refusal.layer, ()) if d.severity is Severity.ERROR]
        if own_errors or refusal.layer not in self._layers:
            return tuple(own_errors)
        nearest: dict[Diagnostic, None] = {}
        pending = [self._layers[refusal.layer]]
        seen = set(pending)
        while pending:
            for source in self._sources(pending.pop()):
                if source.title in self._failing:
                    return None
                if source in seen:
                    continue
                seen.add(source)
                nearest |= dict.fromkeys(self._contradictions.get(source.title, ()))
                if source.title not in self._contradictions:
                    pending.append(source)
        return tuple(sorted(nearest, key=lambda cause: cause.line or 0))

    def _sources(self, layer: Layer) -> list[Layer]:
        """Return the layers that a layer reads; for the parameter of a body, those that the operation reads."""
        if not layer.inputs and layer.type == "Parameter" and (outside := self._outside.get(layer.owner)) is not None:
            layer = outside
        return layers_before(layer)


def _joined(error: Diagnostic, causes: Sequence[Diagnostic], others: Sequence[Diagnostic]) -> Diagnostic:
    """Return an error with the messages of its causes, and the names of other layers that fail by them."""
    exchanged = [cause for cause in causes if cause.code == EXCHANGED_INPUTS.id and cause.layer == error.layer]
    same_layer = [cause for cause in causes if cause not in exchanged and cause.layer == error.layer]
    texts = [diagnostic.message for diagnostic in (*exchanged, error, *same_layer)]
    follows = "this follows from {0.layer} on line {0.line}: {0.message}"
    texts += [follows.format(cause) for cause in causes if cause.layer != error.layer]
    names = [other.layer for other in others if other.layer is not None]
    if others:
        shown = ", ".join(names[:_NAMED])
        texts.append(f"{plural(len(others), 'more error')} of the same cause: {shown}{', ...' * (len(names) > _NAMED)}")
    hint = exchanged[0].hint if exchanged else error.hint
    if hint is None and causes and not same_layer:
        hint = "OpenVINO ignores what ports declare, too"
    return replace(error, message="; ".join(texts), hint=hint)


SHOWN = 3
"""Up to this many equal diagnostics are reported one by one; a sum of more shows this many examples."""


def sum_up(
    diagnostics: Iterable[Diagnostic], finished: Callable[[Diagnostic], Diagnostic] = lambda diagnostic: diagnostic
) -> list[Diagnostic]:
    """Return the diagnostics in order, with repeated ones summed up in the first of them.

    Warnings and infos repeat if code and message are equal, or only the code if it is declared as ``summed``. Errors
    are never summed up. ``finished`` is called with each diagnostic that remains.
    """
    groups: dict[object, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        groups.setdefault(_key(diagnostic), []).append(diagnostic)
    found: list[Diagnostic] = []
    for first, *others in groups.values():
        if len(others) < SHOWN:
            found += map(finished, (first, *others))
        else:
            found.append(_sum(finished(first), others))
    return found


def _key(diagnostic: Diagnostic) -> object:
    if diagnostic.severity is Severity.ERROR:
        return diagnostic
    message = None if CODES[diagnostic.code].summed else diagnostic.message
    return diagnostic.code, diagnostic.severity, diagnostic.file, message


def _sum(first: Diagnostic, others: Sequence[Diagnostic]) -> Diagnostic:
    examples = [_example(other, first) for other in others[: SHOWN - 1]]
    more = f"{len(others)} more of this kind, for example {' and '.join(examples)}"
    return replace(first, message=f"{first.message}; {more}")


def _example(other: Diagnostic, first: Diagnostic) -> str:
    place = f"on line {other.line}" if other.line is not None else other.layer or "on an unknown line"
    return place if other.message == first.message else f"{place} ({other.message})"


def blame_constants(model: Model, diagnostics: Diagnostics) -> None:
    """Keep only the first diagnostic of layers that fail together with most other readers of one constant."""
    failed: dict[str | None, Diagnostic] = {}
    for error in diagnostics.fatal:
        if error.code.startswith(_OF_OPERATIONS):
            failed.setdefault(error.layer, error)
    if len(failed) < _FEWEST:
        return
    for layer in model.layers:
        if not isinstance(layer.operator, Const):
            continue
        readers = {port.layer.title: None for output in layer.outputs for port in output.readers}
        related = [failed[title] for title in readers if title in failed]
        if len(related) < _FEWEST or 2 * len(related) < len(readers):
            continue
        first, *others = sorted(related, key=lambda error: error.line or 0)
        diagnostics.discard(*related)
        for error in related:
            del failed[error.layer]
        hint = f"{len(others)} other layers that read {layer.title} fail: its value may be wrong"
        diagnostics.add(replace(first, hint=hint))


_OF_OPERATIONS = ("OVIR3", "OVIR4")
_FEWEST = 3  # layers that have to fail before a constant is the suspect
