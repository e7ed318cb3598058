"""Messages of commands about differences between quantized models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer
from ovir.inference.layer_weights import compression_of
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.debugging.bisect import Bisection
    from ovir.debugging.compare import Comparison
    from ovir.debugging.comparison_setup import Against


def about_quantization(found: Comparison | Bisection, model: Model, against: Against) -> list[str]:
    """Return lines about the quantization of differing models, and a fitting metric; none if it does not matter."""
    if found.within or found.criterion.metric is not None:
        return []
    others = [(against, "the other model")] if isinstance(against, Model) else []
    quantized = [text for side in ((model, "the model"), *others) if (text := _quantization_of(*side))]
    if not quantized:
        return []
    return [
        f"{' and '.join(quantized)}, so values may round to other levels, which is not a fault of a layer",
        "the tolerances are those of real numbers: --metric sqnr_db=20 judges quantized models as a whole",
    ]


def _quantization_of(model: Model, which: str) -> str | None:
    """Return in words how a model is quantized; None if it is not."""
    fakes = sum(layer.type == "FakeQuantize" for layer in model.walk())
    if fakes:
        return f"{which} has {plural(fakes, 'FakeQuantize layer')}"
    kinds = {kind for layer in model.walk() for kind in _compressed_weights(layer)}
    return f"{which} has weights in {' and '.join(sorted(kinds))}" if kinds else None


def _compressed_weights(layer: Layer) -> Iterator[str]:
    """Yield the element types of the weights of a layer that are stored with a scale."""
    for port in layer.inputs if layer.type in ("MatMul", "Convolution", "Gather") else ():
        if port.source is not None and " with scale" in (stored := compression_of(port.source)):
            yield stored.partition(" ")[0]
