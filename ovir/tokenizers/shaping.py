"""Operations on rows of ids: they are truncated, joined with special tokens, and padded to one length."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import dynamic, i32
from ovir.core.shapes import UNKNOWN, PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers.base import ROWS, TokenizerOperator, as_i32, begins_of, ranges

_ONE = f"{ROWS}; elements T[N...]"
_OTHER = "other_begins i32[Others...]; other_ends i32[Others...]; other_elements U[M...]"
_CUT = "max_length integer[...]; side u8[...]; mode u8[...]; T any; U any"


@register("Truncate", version="extension")
class Truncate(TokenizerOperator):
    """Rows of one or two ragged tensors, cut so that they have at most ``max_length`` elements together.

    Inputs are the ragged tensors, then the length, the side that is cut (``left`` or ``right``) and, for two, what is
    cut: ``only_first``, ``only_second`` or ``longest_first``. The elements stay where they are.
    """

    takes = (f"{_ONE}; {_CUT}", f"{_ONE}; {_OTHER}; {_CUT}")
    gives = _ONE
    m_num_inputs: int = attribute(default=0)

    def infer(self, *inputs: TensorType) -> Outputs:
        return self.solved(*inputs).outputs(_ONE if len(inputs) == 6 else f"{_ONE}; {_OTHER}")

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        *ragged, max_length, side, mode = inputs
        longest = max_length.item()
        keeps_begin = side.tobytes() == b"right"
        self.require(keeps_begin or side.tobytes() == b"left", "the side is {!r}, not left or right", side.tobytes())
        lengths = [ragged[i + 1] - ragged[i] for i in range(0, len(ragged), 3)]
        kept = [np.minimum(lengths[0], longest)] if len(lengths) == 1 else self._pair(lengths, longest, mode.tobytes())
        outputs = []
        for number, length in enumerate(kept):
            begins, ends, elements = ragged[3 * number : 3 * number + 3]
            outputs += [begins, begins + length, elements] if keeps_begin else [ends - length, ends, elements]
        return tuple(outputs)

    def _pair(self, lengths: list[Array], longest: int, mode: bytes) -> list[Array]:
        """Return the lengths to which the rows of two ragged tensors are cut."""
        first, second = lengths
        is_long = first + second > longest
        if mode == b"only_first":
            cut = np.minimum(first, longest), second
        elif mode == b"only_second":
            cut = first, np.minimum(second, longest)
        else:
            self.require(mode == b"longest_first", "unknown mode {!r} of truncation", mode)
            kept = np.minimum(first, np.maximum(longest - second, (longest + (first >= second)) // 2))
            cut = kept, longest - kept
        return [np.where(is_long, new, old).astype(np.int32) for new, old in zip(cut, lengths, strict=True)]


@register("CombineSegments", version="extension")
class CombineSegments(TokenizerOperator):
    """Rows of several ragged tensors joined to one, and for each element the number of the tensor that it is from.

    A tensor with one row is part of every row. The last input has the numbers of the tensors.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        fits = len(inputs) > 3 and len(inputs) % 3 == 1
        self.require(fits, "{} has three inputs for each ragged tensor and one more, got {}", self.type, len(inputs))
        shape = PartialShape()
        element_type = dynamic
        for first in range(0, len(inputs) - 1, 3):
            for position in (first, first + 1):
                self.require_type(f"input {position}", inputs[position], lambda t: t == i32, "i32")
            element_type = self.merge_types(element_type, inputs[first + 2].element_type)
            if inputs[first].shape.rank:
                merged = shape.merged_with(inputs[first].shape)
                self.require(merged is not None, "rows of shape {} and {} do not fit", shape, inputs[first].shape)
                shape = merged or shape
        row = TensorType(i32, shape)
        elements, numbers = (TensorType(t, PartialShape([UNKNOWN])) for t in (element_type, inputs[-1].element_type))
        return row, row, elements, row, row, numbers

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        *ragged, numbers = inputs
        tensors = [ragged[i : i + 3] for i in range(0, len(ragged), 3)]
        counts = [begins.size for begins, _, _ in tensors]
        count = min(counts) if 0 in counts else max(counts)
        for size in counts:
            self.require(size in (1, count), "tensors of {} and {} rows cannot be combined", size, count)
        rows = [ranges(begins, ends, x.size) * (count if begins.size == 1 else 1) for begins, ends, x in tensors]
        shape = next((begins.shape for begins, _, _ in tensors if begins.size == count and begins.ndim), ())
        pieces, lengths = [], []
        for row in range(count):
            for (_, _, elements), places in zip(tensors, rows, strict=True):
                begin, end = places[row]
                pieces.append(elements[begin:end])
                lengths.append(end - begin)
        elements = np.concatenate(pieces) if pieces else tensors[0][2][:0]
        of_elements = np.repeat(np.tile(numbers.ravel(), count), lengths)
        ends = np.cumsum(lengths, dtype=np.int64)[len(tensors) - 1 :: len(tensors)]
        ends = as_i32(ends, shape if count else (0,))
        begins = begins_of(ends)
        return begins, ends, elements, begins.copy(), ends.copy(), of_elements


@register("RaggedToDense", version="extension")
class RaggedToDense(TokenizerOperator):
    """Rows of a ragged tensor padded or cut to one length, and a mask of the elements that are not padding.

    Inputs are the ragged tensor, the length, and the value of padding. Where there are no rows, the length may be below
    0, as the largest of no lengths is; it is then 0.
    """

    takes = f"{ROWS}; elements T[...]; length integer[]|[1]; default any[...]; ?side any[...]; T any"
    gives = "dense T[Rows..., Length]; mask boolean[Rows..., Length]"
    value_inputs = (3,)

    pad_right: bool = attribute(default=True)
    m_pad_max_length: bool = attribute(default=False)

    def infer(self, *inputs: TensorType) -> Outputs:
        found = self.solved(*inputs)
        if found.shape("Rows").size() != 0:
            found.sizes["Length"] = self.count_of("the length", inputs[3])
        return found.outputs()

    def run(
        self, begins: Array, ends: Array, elements: Array, length: Array, default: Array, *side: Array
    ) -> tuple[Array, Array]:
        size = length.item() if begins.size else max(length.item(), 0)
        self.check_count("the length", size)
        pads_right = bool(side[0].item()) if side else self.pad_right
        dense = np.full((begins.size, size), default.item(), elements.dtype)
        mask = np.zeros(dense.shape, np.bool_)
        for row, (begin, end) in enumerate(ranges(begins, ends, elements.size)):
            count = min(end - begin, size)
            place = slice(0, count) if pads_right else slice(size - count, size)
            dense[row, place] = elements[begin : begin + count]
            mask[row, place] = True
        shape = (*begins.shape, size)
        return dense.reshape(shape), mask.reshape(shape)
