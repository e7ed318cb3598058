"""MatrixNms: boxes that others overlap are not removed; their scores decay."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import Overlaps, upright_overlaps
from ovir.kernels.suppression import grids
from ovir.ops.base.attributes import attribute
from ovir.ops.base.image_nms import ImageNmsBase
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import box_counts

# Candidates whose decay is computed at a time.
_BLOCK = 128
# Avoids dividing by 0 for a box that coincides with another.
_TINY = np.float64(np.float32(1e-10))


@operator("MatrixNms", opset=8)
class MatrixNms(ImageNmsBase):
    """The best boxes of each image, with scores that decay by overlap with boxes of higher scores. See ImageNmsBase.

    Candidates have a score above score_threshold. Let x[j] be the overlap (intersection over union) with the j-th
    better box, and m[j] the greatest overlap of that box with a box better than itself. The score is multiplied by the
    minimum over j, at most 1, of (1 - x[j]) / (1 - m[j]), or of exp((m[j]**2 - x[j]**2) * ``gaussian_sigma``) if
    ``decay_function`` is gaussian. Boxes whose score then exceeds ``post_threshold`` are selected.

    Source: MatrixNonMaxSuppression-8
    """

    arguments = (
        "boxes scores sort_result_type= sort_result_across_batch= output_type= score_threshold= nms_top_k= "
        "keep_top_k= background_class= decay_function= gaussian_sigma= post_threshold= normalized="
    )
    decay_function: str = attribute(default="linear", choices=("gaussian", "linear"))
    gaussian_sigma: float = attribute(default=2.0)
    post_threshold: float = attribute(default=0.0)

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        return self.infer_outputs(*box_counts(self, boxes.shape, scores.shape), boxes, scores)

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        return self.run_outputs(boxes, scores)

    def passes_threshold(self, scores: Array) -> Array:
        return scores > np.float32(self.score_threshold)

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        # Boxes with a gap between them do not overlap, even if their coordinates are pixel numbers.
        overlaps = upright_overlaps(edges, self.last_pixel, bridged=False)
        final = np.empty_like(scores)
        for grid, exists in grids(rows, _BLOCK):
            final[grid[exists]] = self._decayed(grid, overlaps, scores[grid])[exists]
        kept = np.nonzero(final > np.float32(self.post_threshold))[0]
        return kept, final[kept]

    def _decayed(self, grid: Array, overlaps: Overlaps, scores: Array) -> Array:
        """Return the new scores of some rows of candidates, all [R, m]."""
        length = grid.shape[1]
        greatest = np.zeros(grid.shape, np.float32)
        for start in range(0, length, _BLOCK):
            stop = min(start + _BLOCK, length)
            block = slice(start, stop)
            overlap = overlaps(grid[:, block], grid[:, :stop])
            later = np.arange(stop) >= np.arange(start, stop)[:, np.newaxis]
            np.copyto(overlap, np.float32(0), where=later)
            np.maximum.reduce(overlap, axis=2, out=greatest[:, block])
            decay = self._decay(overlap, greatest[:, np.newaxis, :stop])
            np.copyto(decay, np.float32(1), where=later)
            scores[:, block] *= np.minimum.reduce(decay, axis=2, initial=1)
        return scores

    def _decay(self, overlap: Array, greatest: Array) -> Array:
        """Return the factor of each overlap; ``greatest`` is the greatest overlap of the overlapped box."""
        if self.decay_function == "gaussian":
            decay: Array = np.exp((greatest * greatest - overlap * overlap) * np.float32(self.gaussian_sigma))
        else:
            decay = (1 - overlap.astype(np.float64)) / (1 - greatest.astype(np.float64) + _TINY)
        return decay.astype(np.float32, copy=False)
