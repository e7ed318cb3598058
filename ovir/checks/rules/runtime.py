"""Rules about operations that an older OpenVINO release does not support."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovir.checks.rule import Context, Found, rule
from ovir.core.element_types import ElementType
from ovir.diagnostics.codes import NEWER_THAN_RUNTIME
from ovir.diagnostics.wording import and_others
from ovir.graph.layers import Layer
from ovir.lowering import releases
from ovir.ops.base.opsets import opset_range


@rule(NEWER_THAN_RUNTIME)
def newer_than_runtime(context: Context) -> Iterator[Found]:
    """Report layers that the given release rejects or cannot be made to run, each kind once, at the first one;
    nothing if no release is given.

    Dead layers count as well, because a release rejects them before it drops them.
    """
    if context.options.runtime is None:
        return
    if context.model.version == 11 and context.options.runtime < releases.IR_VERSION_11:
        message = f"OpenVINO {releases.release_text(context.options.runtime)} does not read IR version 11"
        since = f"OpenVINO reads it from release {releases.release_text(releases.IR_VERSION_11)}"
        hint = f"{since}; {_command(context.options.runtime)} writes version 10"
        yield Found(message, context.place, hint=hint)
    yield from _opsets(context.layers, context.options.runtime)
    yield from _failures((x for x in context.layers if x.place.layer not in context.failing), context.options.runtime)
    yield from _element_types(context.layers, context.options.runtime)


def _opsets(layers: Iterable[Layer], release: releases.Release) -> Iterator[Found]:
    newest = releases.newest_opset(release)
    newer: dict[tuple[str, str], list[Layer]] = {}
    for layer in layers:
        if (releases.opset_number(layer.version) or 0) > releases.newest_opset_for(layer, release):
            newer.setdefault((layer.type, layer.version), []).append(layer)
    for (kind, version), found in newer.items():
        known = opset_range(1, newest)
        if (releases.opset_number(version) or 0) <= newest:
            known += ", but without this operation" + releases.with_inputs(found[0])
        message = f"{kind} is declared in {version}; OpenVINO {releases.release_text(release)} supports {known}"
        message += and_others(len(found) - 1, "more layer")
        yield Found(message, found[0].place, hint=_help(found, release))


def _failures(layers: Iterable[Layer], release: releases.Release) -> Iterator[Found]:
    """Yield the layers that the release reads but fails to run, unless other layers compute the same."""
    from ovir.lowering.constructs import why_not_lowered  # imports many operations

    refused: dict[tuple[str, str, str], list[Layer]] = {}
    for layer in layers:
        is_known = (releases.opset_number(layer.version) or 0) <= releases.newest_opset_for(layer, release)
        if is_known and (error := why_not_lowered(layer, release)) is not None:
            refused.setdefault((layer.type, error.reason, error.hint), []).append(layer)
    for (_, reason, hint), found in refused.items():
        message = f"OpenVINO {releases.release_text(release)} reads this layer, but {reason}"
        message += and_others(len(found) - 1, "more layer")
        yield Found(message, found[0].place, hint=hint or None)


def _help(layers: list[Layer], release: releases.Release) -> str:
    """Return the hint: the command that rewrites the layers, or the reason why one of them cannot be."""
    from ovir.lowering.constructs import why_not_lowered  # imports many operations

    for layer in layers:
        if (error := why_not_lowered(layer, release)) is not None:
            which = "this layer" if layer is layers[0] else layer.title
            return f"{which} cannot be rewritten: {error.reason}"
    each = "this layer" if len(layers) == 1 else "these layers"
    return f"{_command(release)} rewrites {each}"


def _command(release: releases.Release, edits: str = "") -> str:
    return f"'ovir edit {edits}--runtime {releases.release_text(release)}'"


def _element_types(layers: Iterable[Layer], release: releases.Release) -> Iterator[Found]:
    newer: dict[ElementType, list[Layer]] = {}
    for layer in layers:
        for element_type in releases.element_types_of(layer):
            if releases.ELEMENT_TYPES_SINCE.get(element_type, release) > release:
                newer.setdefault(element_type, []).append(layer)
    for element_type, found in newer.items():
        message = f"OpenVINO {releases.release_text(release)} does not support the element type {element_type}"
        since = releases.release_text(releases.ELEMENT_TYPES_SINCE[element_type])
        hint = f"OpenVINO supports {element_type} from release {since}"
        if any(layer.type == "Const" for layer in found):
            hint += f"; {_command(release, '--decompress ')} replaces compressed weights by numbers"
        message += and_others(len(found) - 1, "more layer")
        yield Found(message, found[0].place, hint=hint)
