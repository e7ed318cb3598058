"""StringTensorPack and StringTensorUnpack: strings as bytes with begin and end positions, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ovir.core.arrays import Array, join_strings, split_strings
from ovir.core.shapes import as_dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.base.domains import ZERO, Between, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("StringTensorUnpack", opset=15)
class StringTensorUnpack(Operator):
    """The UTF-8 bytes of all strings of ``data``, joined in row-major order; string i is bytes [begins[i], ends[i]).

    >>> ops.string_tensor_unpack(["hi", "you"])
    [0 2]
    [2 5]
    [104 105 121 111 117]
    """

    takes = "data string[Shape...]"
    gives = "begins i32[Shape...]; ends i32[Shape...]; symbols u8[Bytes]"
    unmatched = "convert between strings and their bytes"
    value_inputs = (0,)

    def infer(self, data: TensorType) -> Outputs:
        found = self.solved(data)
        if data.constant is not None:
            found.sizes["Bytes"] = as_dimension(join_strings(data.constant)[0].size)
        return found.outputs()

    def run(self, data: Array) -> tuple[Array, Array, Array]:
        symbols, ends = join_strings(data)
        self.require(symbols.size < 2**31, "the strings take {:byte}, more than i32 can count", symbols.size)
        begins = np.concatenate([np.zeros(min(ends.size, 1), np.int64), ends[:-1]])
        return begins.astype(np.int32).reshape(data.shape), ends.astype(np.int32).reshape(data.shape), symbols


@operator("StringTensorPack", opset=15)
class StringTensorPack(Operator):
    """Strings made of the UTF-8 bytes [begins[i], ends[i]) of ``symbols``.

    They may overlap, and bytes may belong to none. U+FFFD stands for bytes that are not UTF-8.

    >>> ops.string_tensor_pack([0, 2], [2, 5], np.frombuffer(b"hiyou", np.uint8))
    ['hi' 'you']
    """

    takes = "begins I[Shape...]; ends I[Shape...]; symbols u8[Bytes]; I index"
    gives = "string[Shape...]"
    unmatched = "convert between strings and their bytes"
    domains = by_input(begins=ZERO, ends=Length("symbols", axis=0, low=0), symbols=Between(97, 122))

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the bytes of all strings, which may overlap."""
        begins, ends = inputs[0].constant, inputs[1].constant
        if begins is not None and ends is not None and begins.shape == ends.shape:
            return super().work(inputs, outputs) + float((ends.astype(np.float64) - begins).clip(0).sum())
        text = inputs[2].shape.size().upper
        return inf if text is None else super().work(inputs, outputs) * (1 + text)

    def run(self, begins: Array, ends: Array, symbols: Array) -> Array:
        return split_strings(symbols, begins, ends, strict=False)
