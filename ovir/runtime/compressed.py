"""Kernels of layers that read compressed weights and decompress them block by block, never as a whole."""

from __future__ import annotations

from collections.abc import Callable

from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.ops.base.operator import Kernel
from ovir.runtime.decompression import CompressedWeights, Decompressions
from ovir.runtime.failures import applied_operator

# Elements per product: BLAS wakes its threads for each, which takes long on a busy machine.
_PANEL = 1 << 22


def readers_by_blocks(
    model: Model, found: Decompressions, is_tapped: Callable[[Layer], bool]
) -> dict[Layer, tuple[Port, Kernel]]:
    """Return the layers that can decompress weights themselves, each with the port of its weights and a kernel without
    that input.

    Weights that no other layer reads, and whose layers are not tapped, are absorbed.
    """
    kept = {weights.port: weights for weights in found.kept.values()}
    readers: dict[Layer, tuple[Port, Kernel]] = {}
    read_whole: set[Layer] = set()
    for layer in model.layers:
        for position, port in enumerate(layer.inputs):
            weights = kept.get(port.source) if port.source else None
            if weights is None or layer in found.kept or layer in found.absorbed:
                continue
            kernel = _kernel_on(weights, layer, position) if layer not in readers else None
            if kernel is not None:
                readers[layer] = weights.port, kernel
            else:
                read_whole.add(weights.port.layer)
    found.absorbed |= {layer for layer in found.kept if layer not in read_whole and not is_tapped(layer)}
    return readers


def _kernel_on(weights: CompressedWeights, layer: Layer, position: int) -> Kernel | None:
    if layer.operator is None or not weights.has_slices:
        return None
    constants = [port.type.constant for port in layer.inputs]
    return applied_operator(layer, layer.operator).prepare_by_rows(position, weights, constants)
