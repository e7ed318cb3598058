"""Diagnostics for layers that need an extension which is not registered: one diagnostic per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovir.diagnostics.codes import EXTENSION, UNKNOWN_OPSET, Severity
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.layers import Layer
from ovir.ops.base.opsets import NEWEST_OPSET

OTHER_TOKENIZERS = frozenset(
    {
        "ContribStringJoin",
        "ContribStringSplit",
        "NumericToString",
        "RaggedTensorPack",
        "RaggedTensorUnpack",
        "RaggedToRagged",
        "RaggedToSparse",
        "StringToHashBucket",
    }
)
"""The operations of openvino_tokenizers (release 2026) that ovir does not have."""

HOW_TO_REGISTER = "register the operations with `ovir.register`, in a module that `--extension MODULE.py` loads"
"""The hint for layers that need an extension."""


def missing_extensions(layers: Sequence[Layer]) -> list[Diagnostic]:
    """Return up to two diagnostics for the layers of a file that need an extension.

    One is for layers of version "extension". It is an info if the file declares the element types of all their outputs,
    so that inference can continue, and an error otherwise. The other is an error for versions that are not opsets,
    which only extensions can have.
    """
    named = [layer for layer in layers if _is_usual(layer.version)]
    others = [layer for layer in layers if not _is_usual(layer.version)]
    return [*_extension_diagnostics(named), *_version_diagnostics(others)]


def _is_usual(version: str) -> bool:
    """Return whether applications give this version to operations that they add, unless they choose another."""
    return version.lower() == "extension"


def _extension_diagnostics(layers: Sequence[Layer]) -> Iterator[Diagnostic]:
    if not layers:
        return
    counted = "1 layer needs" if len(layers) == 1 else f"{len(layers)} layers need"
    is_declared = all(_is_declared(layer) for layer in layers)
    goes_on = "inference continues with the declared types" if is_declared else "their outputs are not all declared"
    message = f"{counted} {_needs(layers)}, but no such operation is registered; {goes_on}"
    severity = Severity.INFO if is_declared else None
    yield diagnose(EXTENSION, message, layers[0].place, hint=HOW_TO_REGISTER, severity=severity)


def _version_diagnostics(layers: Sequence[Layer]) -> Iterator[Diagnostic]:
    if not layers:
        return
    versions = [f"'{version}'" for version in dict.fromkeys(layer.version for layer in layers)]
    what = f"{' and '.join(versions)} {'are not opsets' if len(versions) > 1 else 'is not an opset'}"
    known = f"known are opset1 to opset{NEWEST_OPSET}, and 'extension'"
    counted = "1 layer seems" if len(layers) == 1 else f"{len(layers)} layers seem"
    message = f"{what}: {known}; {counted} to need {_needs(layers)}, which is not registered"
    yield diagnose(UNKNOWN_OPSET, message, layers[0].place, hint=HOW_TO_REGISTER)


def _needs(layers: Sequence[Layer]) -> str:
    """Return the extensions that these layers need, each with the types of the layers."""
    types = {layer.type: None for layer in layers}
    known = [name for name in types if name in OTHER_TOKENIZERS]
    others = [name for name in types if name not in OTHER_TOKENIZERS]
    needs = [f"openvino_tokenizers ({', '.join(known)})"] if known else []
    needs += [f"a user's extension ({', '.join(others)})"] if others else []
    return " and ".join(needs)


def _is_declared(layer: Layer) -> bool:
    types = [port.declared_element_type for port in layer.outputs]
    return bool(types) and all(element_type is not None and not element_type.is_dynamic for element_type in types)
