"""The checker: it reads a file, infers it and applies every rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ovir.checks.consequences import blame_constants, fold_constant_types, report_refusals, sum_up
from ovir.checks.foreign_weights import report_foreign_weights
from ovir.checks.rule import NEED_WHOLE_GRAPH, OF_RUNS, RULES, Context
from ovir.checks.untrusted.budget import Budget, Options
from ovir.core.shapes import ShapeLike
from ovir.diagnostics.codes import (
    CODES,
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
    WRITTEN_TWICE,
    Severity,
)
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import OWN_FAULT, Diagnostics, InputError
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters
from ovir.inference.policy import SHAPES
from ovir.ir.legacy import check_names
from ovir.ir.reader import Document, load
from ovir.ir.source import Source
from ovir.lowering.releases import parse_release
from ovir.model import Model
from ovir.system.progress import counted, stage
from ovir.system.python_runtime import without_garbage_collection

Clock = Callable[[str, float], None]
"""A function called with each stage, ``reading``, ``inference`` and ``rules``, and the seconds that it took."""


def check(
    model: Source,
    weights: Any = None,
    *,
    need_weights: bool = True,
    shapes: Mapping[Any, ShapeLike] | ShapeLike | None = None,
    runtime: tuple[int, int] | str | None = None,
    device: str | None = None,
    skip: Collection[str] = (),
    clock: Clock | None = None,
    untrusted: bool | Budget = False,
) -> list[Diagnostic]:
    """Return all diagnostics of a file, in the order of its lines: errors, warnings and infos.

    A diagnostic that only follows from another is left out; repeated warnings and infos are summed up.

    Args:
        model: The file, as in ``read_model``.
        weights: Its weights, as in ``read_model``.
        need_weights: Whether weights are opened; without them, nothing that depends on the data of constants is
            checked.
        shapes: Other shapes of inputs than in the file, as ``Model.reshape`` takes them; declared shapes are then not
            compared.
        runtime: An OpenVINO release such as ``"2022.3"``: what it cannot read is an error.
        device: ``"CPU"``, ``"GPU"`` or ``"NPU"``: what its plugin is documented to refuse, in that release or in the
            newest one, is an error.
        skip: Codes (``OVIR510``) whose rules are not run.
        clock: Called with the time of each stage.
        untrusted: Whether the file or folder comes from strangers: what it could do to its reader is an error. Each
            file is checked in a process of its own, within a ``Budget`` of time and memory; the ``model`` must be a
            path.

    A file that is wrong or unreadable raises nothing; a ``model`` that is neither a file nor the content of one raises
    InputError.
    """
    if isinstance(model, Model):
        message = "check() expects a file or its content, not a Model, which was checked when it was read"
        raise InputError.usage(message, hint="its diagnostics are in model.diagnostics")
    if runtime is not None and not isinstance(runtime, tuple):
        runtime = parse_release(str(runtime))
    device = None if device is None else parse_device(device)
    if untrusted:
        if shapes is not None:
            raise InputError.usage("shapes and untrusted exclude each other")
        from ovir.checks.untrusted.gate import check_untrusted  # trusted files do not need it

        budget = untrusted if isinstance(untrusted, Budget) else Budget()
        options = Options(need_weights=need_weights, runtime=runtime, device=device, skip=tuple(skip))
        return check_untrusted(model, weights, options, budget)
    return check_here(
        model,
        weights,
        need_weights=need_weights,
        shapes=shapes,
        runtime=runtime,
        device=device,
        skip=skip,
        clock=clock,
    )


def check_here(
    model: Source,
    weights: Any = None,
    *,
    need_weights: bool = True,
    shapes: Mapping[Any, ShapeLike] | ShapeLike | None = None,
    runtime: tuple[int, int] | None = None,
    device: str | None = None,
    skip: Collection[str] = (),
    clock: Clock | None = None,
    untrusted: bool = False,
) -> list[Diagnostic]:
    """Return the diagnostics of a file as ``check`` does, in this process; with ``untrusted``, also those of the rules
    for untrusted files."""
    clock = clock or (lambda stage, seconds: None)
    with without_garbage_collection():
        diagnostics = _collect(model, weights, need_weights, shapes, runtime, device, skip, clock, untrusted)
    rank = list(Severity)
    return sum_up(sorted(diagnostics, key=lambda d: (d.line or 0, d.column or 0, rank.index(d.severity))))


def parse_device(device: str) -> str:
    """Return the device of a name such as ``GPU.0``, for which there are rules; InputError for others."""
    if (found := device.upper().partition(".")[0]) not in DEVICES:
        raise InputError.usage(f"there are no rules for the device {device!r}: known are {', '.join(DEVICES)}")
    return found


DEVICES = ("CPU", "GPU", "NPU")
"""The devices that have rules; `ovir/checks/rules/devices.py` has them."""


def _collect(
    model: Source,
    weights: Any,
    need_weights: bool,
    shapes: Mapping[Any, ShapeLike] | ShapeLike | None,
    runtime: tuple[int, int] | None,
    device: str | None,
    skip: Collection[str],
    clock: Clock,
    untrusted: bool,
) -> Diagnostics:
    """Read the file, infer it and apply the rules; dispose of the model before returning."""
    diagnostics = Diagnostics()
    with stage("reading") as timed:
        document = load(model, weights, Model, diagnostics, need_weights=need_weights)
        clock("reading", timed.seconds)
    if document is not None:
        with stage("inferring") as timed:
            if shapes is None:
                infer_recovering(document, diagnostics)
            else:
                _infer_reshaped(document.model, shapes, diagnostics)
                skip = {*skip, WRITTEN_TWICE.id}  # which compares the shapes of Parameters with declared ones
            if document.model.version == 10:
                check_names(document.model, diagnostics)
            clock("inference", timed.seconds)
        with stage("applying rules") as timed:
            failing = frozenset(d.layer for d in diagnostics if d.layer is not None and _is_refusal(d))
            context = Context(
                document.root, document.file, document.weights, document.model, runtime, device, untrusted, failing
            )
            _apply_rules(context, skip, diagnostics)
            if FOREIGN_WEIGHTS.id not in skip:
                report_foreign_weights(context, document.mark, diagnostics)
            fold_constant_types(context, diagnostics)
            if untrusted:
                context.choose_sizes()  # nothing reads the types of the file any more
                _apply_rules(context, skip, diagnostics, of_runs=True)
            clock("rules", timed.seconds)
        for part in context.models:
            part.dispose()
    return diagnostics


def infer_recovering(document: Document[Model], diagnostics: Diagnostics) -> None:
    """Infer with declared types wherever they differ from inferred ones.

    If anything differs, infer again without them, as ``read_model`` and OpenVINO do, and report which layers they would
    refuse, each with the difference that it follows from.
    """
    has_read_errors = bool(diagnostics.fatal)
    infer_into(document.model, diagnostics, trust_declared=True)
    failing = {d.layer for d in diagnostics.fatal}
    blame_constants(document.model, diagnostics)
    contradictions = [d for d in diagnostics if d.code in _CONTRADICTIONS]
    for contradiction in contradictions:
        if contradiction.code == OUTSIDE_SPEC.id:
            diagnostics.discard(contradiction)  # rules report it for constants, runs for computed values
    if has_read_errors or not contradictions:
        return
    infer_into(document.model, strict := Diagnostics())
    declared = [d for d in contradictions if d.code != OUTSIDE_SPEC.id]
    report_refusals(document.model, strict.fatal, declared, failing, diagnostics)
    if failing:
        infer_into(document.model, Diagnostics(), trust_declared=True)


def _infer_reshaped(model: Model, shapes: Mapping[Any, ShapeLike] | ShapeLike, diagnostics: Diagnostics) -> None:
    """Infer in other shapes of the inputs; declared shapes belong to those of the file, and are not compared."""
    set_parameters(reshaped_parameters(model, shapes))
    infer_into(model, found := Diagnostics())
    about_shapes = {code.id for code in (*SHAPES, EXCHANGED_INPUTS)}
    diagnostics.extend(d for d in found if d.code not in about_shapes)


_CONTRADICTIONS = {
    code.id
    for code in (
        DECLARED_SHAPE,
        DECLARED_TYPE,
        EXCHANGED_INPUTS,
        INPUT_SHAPE,
        INPUT_TYPE,
        OUTSIDE_SPEC,
        OWN_SHAPE,
        OWN_TYPE,
    )
}


def _is_refusal(found: Diagnostic) -> bool:
    """Return whether a layer cannot be used as it is; in dead layers this is a warning."""
    code = CODES[found.code]
    return code.severity is Severity.ERROR and not code.tolerated


def _is_advice(found: Diagnostic) -> bool:
    """Return whether a diagnostic is about a valid layer, so that it contradicts an error of the same layer."""
    return found.code.startswith("OVIR7") and found.severity is Severity.INFO


_GAP_CODES = ("OVIR1", "OVIR2", "OVIR5", "OVIR6")
"""Codes of errors after which layers, edges or constants may be missing."""


def _apply_rules(context: Context, skip: Collection[str], diagnostics: Diagnostics, *, of_runs: bool = False) -> None:
    import ovir.checks.rules  # noqa: F401  # registers them; only here are they needed

    has_gaps = any(d.severity is Severity.ERROR and d.code.startswith(_GAP_CODES) for d in diagnostics)
    for code, rule in counted("applying rules", RULES.items()):
        if code in skip or (code in OF_RUNS) is not of_runs or (has_gaps and code in NEED_WHOLE_GRAPH):
            continue
        try:
            diagnostics.extend(d for d in rule(context) if not (_is_advice(d) and d.layer in context.failing))
        except MemoryError:
            raise  # of the whole check, not of this rule
        except Exception as error:  # a fault of ovir itself must not hide other diagnostics
            message = f"ovir failed in the rule of {code}: {type(error).__name__}: {error}"
            diagnostics.report(INTERNAL, message, Place(context.file), OWN_FAULT, severity=Severity.WARNING)
