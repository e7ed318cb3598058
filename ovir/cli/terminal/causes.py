"""Messages of commands about the causes of a difference."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ovir.cli.options.command import Options
from ovir.cli.options.comparison import OtherSideOptions
from ovir.cli.terminal.output import DONE, WRONG
from ovir.debugging.device_properties import compressed_weights, fake_quantizes
from ovir.diagnostics.wording import plural
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.debugging.bisection import Bisection
    from ovir.debugging.comparison import Comparison
    from ovir.debugging.comparison_setup import Against


def about_quantization(result: Comparison | Bisection, model: Model, against: Against) -> list[str]:
    """Return lines about the quantization of differing models, and a fitting metric; none if it does not matter."""
    if result.within or result.criterion.metric is not None:
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
    if fakes := fake_quantizes(model):
        return f"{which} has {plural(fakes, 'FakeQuantize layer')}"
    kinds = {kind for layer in model.walk() for kind in compressed_weights(layer)}
    return f"{which} has weights in {' and '.join(sorted(kinds))}" if kinds else None


def about_clipping(comparison: Comparison) -> Iterator[str]:
    """Yield lines about FakeQuantize layers of differing models that clip values, the largest shares first."""
    clipping = [] if comparison.within else [(name, item) for name, item in comparison.clipped.items() if item.share]
    for name, item in clipping[:_SHOWN]:
        yield f"FakeQuantize '{name}': {item}"
    if len(clipping) > _SHOWN:
        yield f"{plural(len(clipping) - _SHOWN, 'more FakeQuantize layer')} with smaller shares: --json lists all"


_SHOWN = 3
"""The number of layers that are shown."""


def status_of_difference(result: Comparison | Bisection, options: Options) -> int:
    """Return the exit status: a known divergence counts with ``--strict`` only."""
    is_known = result.known is not None and not options[OtherSideOptions].strict
    return DONE if result.within or is_known else WRONG


def about_properties(result: Comparison | Bisection, options: Options) -> Iterator[str]:
    """Yield lines about the properties by which a device changes numbers, and how to find out whether they do."""
    if result.within or result.failed or result.known is not None:
        if options[OtherSideOptions].explain:
            yield "--explain: there is no difference that properties of the device could explain"
        return
    yield from map(str, result.properties)
    if result.explanation is not None:
        yield str(result.explanation)
    elif options[OtherSideOptions].explain:
        yield "--explain: no property of the other side is known to change numbers of this model"
    elif result.properties:
        words = [word for item in result.properties for word in ("--config", f"{item.name}={item.exact}")]
        command = shlex.join([*options.command_line, *words])
        yield f"`{command}` tells rounding from a fault; --explain runs this comparison"
