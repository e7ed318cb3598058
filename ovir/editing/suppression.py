"""A NonMaxSuppression behind a detector that has none: only the best of boxes that overlap remain."""

from __future__ import annotations

import numpy as np

from ovir.building.creation import create_layer
from ovir.core.shapes import Dimension
from ovir.diagnostics.diagnostic import in_place_of
from ovir.diagnostics.errors import InputError, require_counts
from ovir.editing import keys
from ovir.editing.layer_edits import NewLayers
from ovir.editing.model_edits import add_outputs
from ovir.editing.transaction import editing
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import LayerOrPort, Port
from ovir.graph.names import own_tensor_names, take_name

OUTPUTS = "selected_indices", "selected_scores", "selected_count"
"""The names of the new outputs."""
LIMITS = "max_boxes", "iou_threshold", "score_threshold"
"""The names of the new constants."""
FORMATS = {"corners": "corner", "centers": "center"}
"""What the four numbers of a box are, and how NonMaxSuppression calls it."""


def add_nms(
    model: LayerGraph,
    boxes: keys.TensorKey,
    scores: keys.TensorKey,
    *,
    iou: float = 0.5,
    score: float = 0.0,
    most: int = 300,
    form: str = "corners",
) -> list[Port]:
    """Suppress boxes of a detector; see ``Model.add_nms``."""
    if form not in FORMATS:
        raise InputError.usage(f"has to be one of {', '.join(FORMATS)}, not {form!r}", option="form")
    require_counts(most=most)
    if not 0 < iou <= 1 or not score >= 0:
        raise InputError.usage(f"iou has to be above 0 and at most 1, and score 0 or more, not {iou!r} and {score!r}")
    box, scored = keys.find_tensor(model, boxes), keys.find_tensor(model, scores)
    numbers = [axis for axis, dim in _last_axes(box) if dim == Dimension(4)]
    if box.shape.rank not in (2, 3) or len(numbers) != 1:
        keys.refuse(f"boxes of {box.type} have no single axis of 4 numbers", box.layer, "boxes are [N,4] or [4,N]")
    has_classes = scored.shape.rank == box.shape.rank
    count = box.shape[-3 - numbers[0]]
    counts = [axis for axis, dim in _last_axes(scored) if dim == count or not (dim.is_static or count.is_static)]
    counts = counts if has_classes else [-1]
    if scored.shape.rank not in (box.shape.rank, (box.shape.rank or 0) - 1) or len(counts) != 1:
        hint = "scores are [classes,N], [N,classes] or [N], with the batch before them if boxes have it"
        keys.refuse(f"scores of {scored.type} do not fit boxes of {box.type}", scored.layer, hint)
    with in_place_of(box.layer.place):
        inputs = [_arranged(box, numbers[0] == -2), _arranged(scored, counts[0] == -2, has_classes=has_classes)]
        limits = np.int64(most), np.float32(iou), np.float32(score)
        attributes = {"box_encoding": FORMATS[form]}
        nms = create_layer("NonMaxSuppression", [*inputs, *limits], attributes, version="opset9")
        used = {layer.name for layer in model.layers}
        for port, name in zip(nms.inputs[2:], LIMITS, strict=True):
            assert port.source is not None
            port.source.layer.name = take_name(name, used)
    new = NewLayers(model, nms)
    with editing(model, new.layers):
        model.add_layer(nms, new.include([]))
        taken = own_tensor_names(model.layers)
        for port, name in zip(nms.outputs, OUTPUTS, strict=True):
            port.own_names = frozenset([take_name(name, taken)])
        return add_outputs(model, nms.outputs)


def _last_axes(port: Port) -> list[tuple[int, Dimension]]:
    """Return the last two axes of a tensor, counted from its end, with their sizes."""
    rank = port.shape.rank or 0
    return [(axis, port.shape[axis]) for axis in (-1, -2) if rank >= -axis]


def _arranged(port: Port, is_turned: bool, *, has_classes: bool = True) -> LayerOrPort:
    """Return boxes as [images, N, 4], or scores as [images, classes, N]."""
    found: LayerOrPort = port
    rank = port.shape.rank or 0
    if is_turned:
        order = np.array([*range(rank - 2), rank - 1, rank - 2])
        found = create_layer("Transpose", [found, order], version="opset1")
    axes = [*([] if has_classes else [-2]), *([0] if rank + (not has_classes) == 2 else [])]
    for axis in axes:
        found = create_layer("Unsqueeze", [found, np.array(axis)], version="opset1")
    return found
