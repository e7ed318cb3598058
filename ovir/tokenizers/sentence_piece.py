"""The operations that carry a model of SentencePiece, which the package ``sentencepiece`` computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import i32, i64, string
from ovir.core.shapes import UNKNOWN, PartialShape, as_dimension
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError, require_packages
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers.base import ANY_LENGTH, TokenizerOperator, as_i32, packed, string_types, text_of, unpacked
from ovir.tokenizers.decoding import byte_of


class _SentencePiece(TokenizerOperator):
    """Base of operations whose first input is a serialized model."""

    def processor(self, model: Array) -> Any:
        """Return the processor of a model."""
        require_packages(self.type, "tokenizers", "sentencepiece")
        import sentencepiece

        try:
            return sentencepiece.SentencePieceProcessor(model_proto=text_of(model))
        except RuntimeError as error:
            raise OperatorError(f"the model cannot be read: {error}") from None


@register("SentencepieceTokenizer", version="extension")
class SentencepieceTokenizer(_SentencePiece):
    """The ids of strings as a sparse tensor [strings, longest]: places, ids, and the shape.

    ``reverse`` turns the ids around, after ``add_bos`` and ``add_eos`` have added tokens at their ends. The strings are
    one input, or begins, ends and bytes. ``nbest_size`` above 1, or below 0, draws one of the best results.
    """

    input_counts = (2, 4)

    nbest_size: int = attribute(default=0)
    alpha: float = attribute(default=0.0)
    add_bos: bool = attribute(default=False)
    add_eos: bool = attribute(default=False)
    reverse: bool = attribute(default=False)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        self.require_inputs(inputs)
        self.require_bytes(inputs, 0, "model")
        if len(inputs) == 2:
            self.require_type("strings", inputs[1].element_type, lambda t: t == string, "string")
        else:
            self.require_strings(inputs, 1)
        two = as_dimension(2)
        return (
            TensorType(i64, PartialShape([UNKNOWN, two])),
            TensorType(i32, ANY_LENGTH),
            TensorType(i64, PartialShape([two])),
        )

    def run(self, model: Array, *strings: Array) -> tuple[Array, ...]:
        processor = self.prepared(_SentencePiece.processor, model)
        texts = (
            unpacked(*strings)
            if len(strings) == 3
            else [str(item).encode(errors="surrogateescape") for item in strings[0].flat]
        )
        rows = [self._encoded(processor, text) for text in texts]
        places = [(row, column) for row, ids in enumerate(rows) for column in range(len(ids))]
        shape = len(rows), max(map(len, rows), default=0)
        return (
            np.array(places, np.int64).reshape(-1, 2),
            as_i32([i for ids in rows for i in ids]),
            np.array(shape, np.int64),
        )

    def _encoded(self, processor: Any, text: bytes) -> list[int]:
        draws = self.nbest_size > 1 or self.nbest_size < 0
        ids: list[int] = processor.encode(text, enable_sampling=draws, nbest_size=self.nbest_size, alpha=self.alpha)
        ids = [processor.bos_id()] * self.add_bos + ids + [processor.eos_id()] * self.add_eos
        return ids[::-1] if self.reverse else ids


class _Detokenizer(_SentencePiece):
    """Base of operations from ids [batch, length] to strings."""

    input_counts = (2,)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        self.require_inputs(inputs)
        self.require_bytes(inputs, 0, "model")
        self.require_integers("ids", inputs[1].element_type)
        self.require_rank("ids", inputs[1].shape, 2)
        return string_types(PartialShape([inputs[1].shape[0]]))

    def run(self, model: Array, ids: Array) -> tuple[Array, ...]:
        processor = self.prepared(_SentencePiece.processor, model)
        size = processor.get_piece_size()
        self.require(not ids.size or (ids.min() >= 0 and ids.max() < size), "ids must be in [0, {}]", size - 1)
        return packed((self._text(processor, row) for row in ids.tolist()), (len(ids),))

    def _text(self, processor: Any, ids: list[int]) -> bytes:
        raise NotImplementedError


@register("SentencepieceDetokenizer", version="extension")
class SentencepieceDetokenizer(_Detokenizer):
    """The text of each row of ids [batch, length], as SentencePiece decodes it."""

    def _text(self, processor: Any, ids: list[int]) -> bytes:
        return str(processor.decode(ids)).encode()


@register("SentencepieceStreamDetokenizer", version="extension")
class SentencepieceStreamDetokenizer(_Detokenizer):
    """The pieces of each row of ids [batch, length] joined, with bytes in place of the tokens that stand for them."""

    def _text(self, processor: Any, ids: list[int]) -> bytes:
        return b"".join([byte_of(processor.id_to_piece(number).encode()) for number in ids])
