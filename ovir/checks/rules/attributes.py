"""Rules about missing attributes and attributes without effect."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, diagnostic, rule
from ovir.diagnostics.codes import IGNORED_PADS, NO_ELEMENT_TYPE, UNSPECIFIED
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.ir.layers import misspelt_attributes


@rule(NO_ELEMENT_TYPE)
def no_element_type(context: Context) -> Iterator[Diagnostic]:
    """Report a Parameter without an element type: OpenVINO takes it as dynamic, which few devices compile."""
    for layer in context.by_type.get("Parameter", ()):
        if layer.operator is not None and "element_type" not in layer.attributes:
            message = "the Parameter has no attribute 'element_type': its element type is dynamic"
            yield diagnostic(NO_ELEMENT_TYPE, message, layer.data_place)


@rule(UNSPECIFIED)
def unspecified(context: Context) -> Iterator[Diagnostic]:
    """Report missing attributes for which OpenVINO has a default that the specification does not promise."""
    expected = {}
    for layer in context.layers:
        op = layer.operator
        if op is None:
            continue
        if type(op) not in expected:
            expected[type(op)] = [a for a in op.attributes.values() if a.specified]
        for spec in expected[type(op)]:
            if spec.name not in layer.attributes:
                if spec in [found for found, _ in misspelt_attributes(type(op), layer.attributes)]:
                    continue  # the reader has reported it as misspelt
                message = f"the specification requires '{spec.name}' of {layer.type}; {spec.assumed_text} is assumed"
                yield diagnostic(UNSPECIFIED, message, layer.data_place)


@rule(IGNORED_PADS)
def ignored_pads(context: Context) -> Iterator[Diagnostic]:
    """Report pads that an auto_pad other than explicit replaces."""
    for layer in context.layers:
        attributes = layer.attributes
        if "auto_pad" not in attributes or layer.operator is None or attributes["auto_pad"] in ("explicit", "notset"):
            continue
        auto_pad = attributes["auto_pad"]
        for name in ("pads_begin", "pads_end"):
            pads = attributes.get(name)
            if isinstance(pads, tuple) and any(pads):
                shown = ",".join(map(str, pads))
                message = f'{name}="{shown}" has no effect, because auto_pad is "{auto_pad}"'
                yield diagnostic(IGNORED_PADS, message, layer.data_place)
