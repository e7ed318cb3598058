"""The checker: it reads a file, infers it and applies every rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from ovir.checks.consequences import blame_constants, report_refusals, sum_up
from ovir.checks.options import CheckOptions
from ovir.checks.rule import RULES, Context
from ovir.checks.untrusted.budget import Budget
from ovir.core.html import html_table
from ovir.core.shapes import ShapeLike
from ovir.core.tables import Table, columns
from ovir.diagnostics.codes import CODES, EXCHANGED_INPUTS, FOREIGN_WEIGHTS, INTERNAL, OUTSIDE_SPEC, OWN_TYPE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, counts_text
from ovir.diagnostics.errors import OWN_FAULT, Diagnostics, InputError
from ovir.graph.layers import Port
from ovir.inference.differences import DIFFERENCES, SHAPES
from ovir.inference.missing_data import without_undecided
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters
from ovir.ir.legacy import check_names
from ovir.ir.reader import GAP_CODES, Document, load
from ovir.ir.source import Source
from ovir.lowering.releases import parse_release
from ovir.model import Model
from ovir.system.progress import counted
from ovir.system.python_runtime import without_garbage_collection

Clock = Callable[[str, float], None]
"""A function called with each stage, ``reading``, ``inference`` and ``rules``, and the seconds that it took."""


class FoundDiagnostics(list[Diagnostic]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [(d.severity.value, d.code, d.line or "", d.layer or "", d.message, d.hint or "") for d in self]
        return html_table(counts_text(self), ("", "code", "line", "layer", "message", "hint"), rows)


def counts_by_code(diagnostics: Sequence[Diagnostic]) -> Table:
    """Return the count of each code, the most frequent first."""
    counts = Counter((d.code, d.severity) for d in diagnostics)
    files = {kind: len({d.file for d in diagnostics if (d.code, d.severity) == kind}) for kind in counts}
    rows = [
        (code, severity.value, count, files[code, severity], CODES[code].meaning)
        for (code, severity), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    heads = "code: tag; severity: tag; found: count; files: count; meaning: sentence 4"
    return Table(columns(heads), rows, least=("files",))


def counts_by_file(diagnostics: Iterable[Diagnostic], files: Iterable[str] = ()) -> Table:
    """Return the count of each severity in files with diagnostics and in ``files``, the worst first."""
    counts = {file: dict.fromkeys(Severity, 0) for file in files}
    for d in diagnostics:
        counts.setdefault(d.file or "", dict.fromkeys(Severity, 0))[d.severity] += 1
    worst = sorted(counts.items(), key=lambda item: ([-count for count in item[1].values()], item[0]))
    rows = [(file, *numbers.values()) for file, numbers in worst]
    return Table(columns("file: path 3; errors: count; warnings: count; infos: count"), rows)


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
        untrusted: Whether the file or folder is untrusted: what it could do to its reader is an error. Each
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
    options = CheckOptions(need_weights, shapes, runtime, device, tuple(skip))
    if untrusted:
        if shapes is not None:
            raise InputError.usage("and a check of untrusted files exclude each other", option="shapes")
        from ovir.checks.untrusted.gate import check_untrusted  # trusted files do not need it

        budget = untrusted if isinstance(untrusted, Budget) else Budget()
        return FoundDiagnostics(check_untrusted(model, weights, options, budget))
    return FoundDiagnostics(check_here(model, weights, options, clock))


def check_here(model: Source, weights: Any, options: CheckOptions, clock: Clock | None = None) -> list[Diagnostic]:
    """Return the diagnostics of a file as ``check`` does, in this process."""
    with without_garbage_collection(), collected(model, weights, options, clock) as (found, with_fix):
        return sum_up(found, with_fix)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics by their place in the file."""
    rank = list(Severity)
    return sorted(diagnostics, key=lambda d: (d.line or 0, d.column or 0, rank.index(d.severity)))


def parse_device(device: str) -> str:
    """Return the device of a name such as ``GPU.0``, for which there are rules; InputError for others."""
    if (name := device.upper().partition(".")[0]) not in DEVICES:
        raise InputError.usage(f"there are no rules for the device {device!r}: known are {', '.join(DEVICES)}")
    return name


DEVICES = ("CPU", "GPU", "NPU")
"""The devices that have rules; `ovir/checks/rules/devices.py` has them."""


@contextmanager
def collected(
    model: Source, weights: Any, options: CheckOptions, clock: Clock | None = None
) -> Iterator[tuple[list[Diagnostic], Callable[[Diagnostic], Diagnostic]]]:
    """Yield the diagnostics of a file by their place in it, and a function that gives one of them its fix.

    The model is disposed of at the end of the ``with`` block.
    """
    from ovir.checks.foreign_weights import report_foreign_weights  # these import the rules, which only a check needs
    from ovir.checks.rules.constants import written_twice

    diagnostics = Diagnostics()
    with _timed("reading", clock):
        document = load(model, weights, Model, diagnostics, need_weights=options.need_weights)
    if document is not None:
        with _timed("inference", clock):
            if options.shapes is None:
                infer_recovering(document, diagnostics)
            else:
                _infer_reshaped(document.model, options.shapes, diagnostics)
                # that rule compares the shapes of Parameters with declared ones.
                options = replace(options, skip=(*options.skip, written_twice.id))
            if document.model.version == 10:
                check_names(document.model, diagnostics)
            has_types = not diagnostics.fatal
        with _timed("rules", clock):
            failing = frozenset(d.layer for d in diagnostics if d.layer is not None and _is_refusal(d))
            context = Context(**vars(document), options=options, failing=failing)
            _apply_rules(context, diagnostics)
            if FOREIGN_WEIGHTS.id not in options.skip:
                report_foreign_weights(context, diagnostics)
            if any(d.code == OWN_TYPE.id for d in diagnostics):
                from ovir.checks.constant_types import fold_constant_types  # hardly any file needs it

                fold_constant_types(context, diagnostics)
            if options.untrusted:
                context.choose_sizes()  # nothing reads the types of the file any more
                _apply_rules(context, diagnostics, of_runs=True)
        found = list(diagnostics)
        if any(CODES[d.code].fixable and d not in context.fixes.makers for d in found):
            found = list(context.fixes.added(found, are_inferred=has_types))
        try:
            yield in_order(found), context.with_fix
        finally:
            for part in context.models:
                part.dispose()
    else:
        yield in_order(diagnostics), lambda fault: fault


@contextmanager
def _timed(name: str, clock: Clock | None) -> Iterator[None]:
    start = perf_counter()
    yield
    if clock is not None:
        clock(name, perf_counter() - start)


def infer_recovering(
    document: Document[Model],
    diagnostics: Diagnostics,
    declared: set[Port] | None = None,
    refusals: Collection[Diagnostic] | None = None,
) -> None:
    """Infer with declared types wherever they differ from inferred ones.

    If anything differs, report which layers ``read_model`` and OpenVINO, which do not use declared types, would refuse,
    each with the difference that it follows from. These ``refusals`` are inferred unless they are given. The model
    keeps the types of the inference with declared types if that fails, or if ``declared``, the set of ports that have
    only a declared type, is asked for.
    """
    has_read_errors = bool(diagnostics.fatal)
    infer_into(document.model, of_inference := Diagnostics(), trust_declared=True, declared=declared)
    diagnostics.extend(without_undecided(document.model, of_inference))
    failing = {d.layer for d in diagnostics.fatal}
    blame_constants(document.model, diagnostics)
    contradictions = [d for d in diagnostics if d.code in _CONTRADICTIONS]
    for contradiction in contradictions:
        if contradiction.code == OUTSIDE_SPEC.id:
            diagnostics.discard(contradiction)  # rules report it for constants, runs for computed values
    if has_read_errors or not contradictions:
        return
    if refusals is None:
        types = {port: port.inferred for layer in document.model.walk() for port in layer.outputs}
        infer_into(document.model, strict := Diagnostics())
        refusals = strict.fatal
        if failing or declared is not None:
            for port, tensor in types.items():
                port.inferred = tensor
    differing = [d for d in contradictions if d.code != OUTSIDE_SPEC.id]
    report_refusals(document.model, refusals, differing, failing, diagnostics)


def _infer_reshaped(model: Model, shapes: Mapping[Any, ShapeLike] | ShapeLike, diagnostics: Diagnostics) -> None:
    """Infer in other shapes of the inputs; declared shapes belong to those of the file, and are not compared."""
    set_parameters(reshaped_parameters(model, shapes))
    infer_into(model, of_inference := Diagnostics())
    about_shapes = {code.id for code in (*SHAPES, EXCHANGED_INPUTS)}
    diagnostics.extend(d for d in without_undecided(model, of_inference) if d.code not in about_shapes)


_CONTRADICTIONS = DIFFERENCES | {OUTSIDE_SPEC.id}


def _is_refusal(diagnostic: Diagnostic) -> bool:
    """Return whether a layer cannot be used as it is; in dead layers this is a warning."""
    code = CODES[diagnostic.code]
    return code.severity is Severity.ERROR and not code.tolerated


def _is_advice(diagnostic: Diagnostic) -> bool:
    """Return whether a diagnostic is about a valid layer, so that it contradicts an error of the same layer."""
    return diagnostic.code.startswith("OVIR7") and diagnostic.severity is Severity.INFO


_INCOMPLETE = (*GAP_CODES, "OVIR5", "OVIR6")
"""Codes of errors after which layers, edges or constants may be missing."""


def _apply_rules(context: Context, diagnostics: Diagnostics, *, of_runs: bool = False) -> None:
    is_incomplete = any(d.severity is Severity.ERROR and d.code.startswith(_INCOMPLETE) for d in diagnostics)
    for code, rule in counted("applying rules", RULES.items()):
        if code in context.options.skip or (is_incomplete and rule.needs_whole_graph):
            continue
        is_untrusted = context.options.untrusted
        if (rule.for_untrusted and not is_untrusted) or (is_untrusted and rule.of_runs) is not of_runs:
            continue
        try:
            raised = rule.diagnostics(context)
            diagnostics.extend(d for d in raised if not (_is_advice(d) and d.layer in context.failing))
        except MemoryError:
            raise  # of the whole check, not of this rule
        except Exception as error:  # a fault of ovir itself must not hide other diagnostics
            message = f"ovir failed in the rule of {code}: {type(error).__name__}: {error}"
            severity = Severity.ERROR if is_untrusted else Severity.WARNING  # it must not let a file pass
            diagnostics.report(INTERNAL, message, Place(context.file), OWN_FAULT, severity=severity)
