"""Reads a file, infers it, and asks every rule."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from time import perf_counter
from typing import Any

from ovir.checks.foreign_weights import fold_foreign_weights
from ovir.checks.releases import parse_release
from ovir.checks.repeats import sum_up
from ovir.checks.rule import RULES, WHOLE_GRAPH, Context
from ovir.diagnostics.codes import (
    DECLARED_SHAPE,
    DECLARED_TYPE,
    EXCHANGED_INPUTS,
    FOREIGN_WEIGHTS,
    INPUT_SHAPE,
    INPUT_TYPE,
    INTERNAL,
    OUTSIDE_SPEC,
    OWN_SHAPE,
    OWN_TYPE,
    USAGE,
    Severity,
)
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import OWN_FAULT, InputError
from ovir.graph.model import Model
from ovir.inference.models import infer_into
from ovir.ir.legacy import check_names
from ovir.ir.reader import Document, load, without_garbage_collection
from ovir.ir.source import Source
from ovir.ops.infrastructure import Const

Clock = Callable[[str, float], None]
"""Told of each stage, ``reading``, ``inference`` and ``rules``, and the seconds it took."""


def check(
    model: Source,
    weights: Any = None,
    *,
    need_weights: bool = True,
    runtime: tuple[int, int] | str | None = None,
    skip: Collection[str] = (),
    clock: Clock | None = None,
) -> list[Diagnostic]:
    """All diagnostics of a file, in its order: errors, warnings and advice.

    ``model`` and ``weights`` are those of ``read_model``. Without ``need_weights`` no weights are opened, and what
    depends on the data of constants is not looked at. ``runtime`` is an OpenVINO release such as
    ``"2022.3"``: what it cannot read is an error. ``skip`` names codes (``OVIR510``) whose rules need not run.
    ``clock`` is told what took how long.

    A diagnostic that only follows from another is left out; warnings and notes that repeat are summed up. Nothing is
    raised for a file that is wrong or unreadable; InputError for what is none of a file.
    """
    if isinstance(model, Model):
        message = "check() takes a file or its content, not a Model: a Model has been checked when it was read"
        raise InputError(diagnose(USAGE, message, hint="its diagnostics are in model.diagnostics"))
    if isinstance(runtime, str):
        runtime = parse_release(runtime)
    with without_garbage_collection():
        diagnostics = _look(model, weights, need_weights, runtime, skip, clock or (lambda stage, seconds: None))
    rank = list(Severity)
    return sum_up(sorted(diagnostics, key=lambda d: (d.line or 0, d.column or 0, rank.index(d.severity))))


def _look(
    model: Source,
    weights: Any,
    need_weights: bool,
    runtime: tuple[int, int] | None,
    skip: Collection[str],
    tell: Clock,
) -> Diagnostics:
    """What is found; nothing of the model is left when it returns."""
    diagnostics = Diagnostics()
    start = perf_counter()
    document = load(model, weights, diagnostics, need_weights=need_weights)
    read = perf_counter()
    tell("reading", read - start)
    if document is not None:
        _infer(document, diagnostics)
        if document.model.version == 10:
            check_names(document.model, diagnostics)
        tell("inference", perf_counter() - read)
        inferred = perf_counter()
        context = Context(document.root, document.file, document.weights, document.model, runtime)
        _apply_rules(context, skip, diagnostics)
        if FOREIGN_WEIGHTS.id not in skip:
            fold_foreign_weights(context, diagnostics)
        tell("rules", perf_counter() - inferred)
        for part in context.models:
            part.dispose()
    return diagnostics


def _infer(document: Document, diagnostics: Diagnostics) -> None:
    """Infer with what is declared in place of what is in doubt; if that is no reason to refuse the file, also without.

    What ``read_model`` then refuses is told of the layers in doubt, and of the first that a parameter or constant in
    doubt feeds: the rest follows.
    """
    infer_into(document.model, diagnostics, trust_declared=True)
    _blame_constants(document.model, diagnostics)
    doubts = [d for d in diagnostics if d.code in _DOUBTS]
    for doubt in doubts:
        if doubt.code == OUTSIDE_SPEC.id:
            diagnostics.discard(doubt)  # the rules tell it of constants, a run of what is computed
    if diagnostics.fatal or not doubts:
        return
    infer_into(document.model, plainly := Diagnostics())
    refused = _near(document.model, plainly.fatal, doubts)
    if not refused and not any(d.severity is Severity.ERROR for d in doubts):
        refused = plainly.fatal[:1]
    for error in refused:
        causes = [d for d in doubts if d.layer == error.layer and d.severity is Severity.ERROR]
        for cause in causes:
            diagnostics.discard(cause)
        exchanged = [cause for cause in causes if cause.code == EXCHANGED_INPUTS.id]
        others = [cause for cause in causes if cause not in exchanged]
        hint = exchanged[0].hint if exchanged else error.hint
        message = "; ".join(found.message for found in (*exchanged, error, *others))
        diagnostics.add(replace(error, message=message, hint=hint))


def _blame_constants(model: Model, diagnostics: Diagnostics) -> None:
    """Of layers that fail beside most others that read the same constant, tell of the first alone."""
    failed: dict[str | None, Diagnostic] = {}
    for found in diagnostics.fatal:
        if found.code.startswith(_OF_OPERATIONS):
            failed.setdefault(found.layer, found)
    if len(failed) < _MANY_PAST_END:
        return
    for layer in model.layers:
        if not isinstance(layer.operator, Const):
            continue
        readers = {port.layer.title: None for output in layer.outputs for port in output.readers}
        told = [failed[title] for title in readers if title in failed]
        if len(told) < _MANY_PAST_END or 2 * len(told) < len(readers):
            continue
        first, *others = sorted(told, key=lambda found: found.line or 0)
        for found in told:
            diagnostics.discard(found)
            del failed[found.layer]
        hint = f"{len(others)} other layers that read {layer.title} fail: perhaps its value is wrong"
        diagnostics.add(replace(first, hint=hint))


_OF_OPERATIONS = ("OVIR3", "OVIR4")
_MANY_PAST_END = 3


def _near(model: Model, errors: list[Diagnostic], doubts: list[Diagnostic]) -> list[Diagnostic]:
    """The errors in layers in doubt, and for each parameter or constant in doubt the first in a layer that it feeds."""
    doubted = {d.layer for d in doubts}
    own = {d.layer for d in doubts if d.code in _OWN_DOUBTS}
    feeding = {
        layer.title: {port.source.layer.title for port in layer.inputs if port.source is not None} & own
        for layer in model.layers
    }
    near, told = [], set[str | None]()
    for error in errors:
        fed_by = feeding.get(error.layer or "", set())
        if error.layer in doubted or not fed_by <= told:
            near.append(error)
        told |= fed_by
    return near


_OWN_DOUBTS = {code.id for code in (OWN_SHAPE, OWN_TYPE)}
_DOUBTS = _OWN_DOUBTS | {
    code.id for code in (DECLARED_SHAPE, DECLARED_TYPE, EXCHANGED_INPUTS, INPUT_SHAPE, INPUT_TYPE, OUTSIDE_SPEC)
}

_STRUCTURE_CODES = ("OVIR1", "OVIR2", "OVIR5", "OVIR6")
"""Codes of errors after which layers, edges or constants may be missing."""


def _apply_rules(context: Context, skip: Collection[str], diagnostics: Diagnostics) -> None:
    import ovir.checks.rules  # noqa: F401  # registers them; only here are they needed

    has_holes = any(d.severity is Severity.ERROR and d.code.startswith(_STRUCTURE_CODES) for d in diagnostics)
    for code, rule in RULES.items():
        if code in skip or (has_holes and code in WHOLE_GRAPH):
            continue
        try:
            diagnostics.extend(rule(context))
        except Exception as error:  # a fault of ovir's own must not hide what else there is
            message = f"ovir failed in the rule of {code}: {type(error).__name__}: {error}"
            diagnostics.report(INTERNAL, message, Place(context.file), OWN_FAULT, severity=Severity.WARNING)
