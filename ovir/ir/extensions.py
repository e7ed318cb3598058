"""One diagnostic for all layers of extensions that are not registered."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.diagnostics.codes import EXTENSION, Severity
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.layers import Layer
from ovir.graph.model import Model
from ovir.ops.base.extensions import TOKENIZERS, is_extension
from ovir.ops.base.registry import registered_by_user

HOW_TO_REGISTER = "register the operations with `ovir.register`, in a module that `--extension MODULE.py` loads"
"""What a user does about layers of an extension."""


def missing_extensions(model: Model) -> list[Diagnostic]:
    """Return one diagnostic, at the first layer, where a model or its bodies need an extension; [] otherwise.

    It is a note where the file declares the element types of all their outputs, so that inference can go on.
    """
    layers = list(_unregistered(model))
    if not layers:
        return []
    types = {layer.type: None for layer in layers}
    known = [name for name in types if name in TOKENIZERS]
    others = [name for name in types if name not in TOKENIZERS]
    needs = [f"openvino_tokenizers ({', '.join(known)})"] if known else []
    needs += [f"a user's extension ({', '.join(others)})"] if others else []
    counted = "1 layer needs" if len(layers) == 1 else f"{len(layers)} layers need"
    is_declared = all(_is_declared(layer) for layer in layers)
    goes_on = "inference goes on with the declared types" if is_declared else "their outputs are not all declared"
    message = f"{counted} {' and '.join(needs)}, and no such operation is registered; {goes_on}"
    severity = Severity.INFO if is_declared else None
    return [diagnose(EXTENSION, message, layers[0].place, hint=HOW_TO_REGISTER, severity=severity)]


def _unregistered(model: Model) -> Sequence[Layer]:
    found = []
    for layer in model.layers:
        is_missing = layer.operator is None and registered_by_user(layer.type, layer.version) is None
        if is_missing and is_extension(layer.type, layer.version):
            found.append(layer)
        for body in layer.bodies.values():
            found.extend(_unregistered(body))
    return found


def _is_declared(layer: Layer) -> bool:
    types = [port.declared_element_type for port in layer.outputs]
    return bool(types) and all(element_type is not None and not element_type.is_dynamic for element_type in types)
