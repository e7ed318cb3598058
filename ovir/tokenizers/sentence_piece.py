"""The operations that carry a model of SentencePiece, which the package ``sentencepiece`` computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError, require_packages
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers.base import STRINGS, TokenizerOperator, as_i32, packed, unpacked
from ovir.tokenizers.decoding import byte_of

Tokens = tuple[re.Pattern[bytes], dict[bytes, int]]
"""The pattern that finds special tokens, and their ids."""


class _SentencePiece(TokenizerOperator):
    """Base of operations whose first input is a serialized model."""

    def processor(self, model: Array) -> Any:
        """Return the processor of a model."""
        require_packages(self.type, "tokenizers", "sentencepiece")
        import sentencepiece

        try:
            return sentencepiece.SentencePieceProcessor(model_proto=model.tobytes())
        except RuntimeError as error:
            raise OperatorError(f"the model cannot be read: {error}") from None


_SPECIAL = (
    "special_begins i32[Special...]; special_ends i32[Special...]; special_symbols u8[...]; special_ids integer[...]"
)


@register("SentencepieceTokenizer", version="extension")
class SentencepieceTokenizer(_SentencePiece):
    """The ids of strings as a sparse tensor [strings, longest]: places, ids, and the shape.

    ``reverse`` turns the ids around, after ``add_bos`` and ``add_eos`` have added tokens at their ends. The strings are
    one input, or begins, ends and bytes. ``nbest_size`` above 1, or below 0, draws one of the best results. The last
    inputs may be special tokens, as begins, ends and bytes, with their ids; the parts of a string between them are
    tokenized each alone, with a token of ``add_bos`` for each part.
    """

    takes = (
        "model u8[...]; strings string[...]",
        f"model u8[...]; {STRINGS}",
        f"model u8[...]; strings string[...]; {_SPECIAL}",
        f"model u8[...]; {STRINGS}; {_SPECIAL}",
    )
    gives = "places i64[Count, 2]; ids i32[Count]; shape i64[2]"
    nbest_size: int = attribute(default=0)
    alpha: float = attribute(default=0.0)
    add_bos: bool = attribute(default=False)
    add_eos: bool = attribute(default=False)
    reverse: bool = attribute(default=False)

    def run(self, model: Array, *inputs: Array) -> tuple[Array, ...]:
        processor, end = self.prepared(SentencepieceTokenizer.with_ends, model)
        strings, special = (inputs[:-4], inputs[-4:]) if len(inputs) > 4 else (inputs, ())
        if len(strings) == 3:
            texts = unpacked(*strings)
        else:
            texts = [str(item).encode(errors="surrogateescape") for item in strings[0].flat]
        tokens = self.prepared(SentencepieceTokenizer.special_tokens, *special) if special else None
        draws = self.nbest_size not in (0, 1)
        encode = partial(processor.encode, enable_sampling=draws, nbest_size=self.nbest_size, alpha=self.alpha)
        rows = [self._row(encode, text, tokens, end) for text in texts]
        places = [(row, column) for row, ids in enumerate(rows) for column in range(len(ids))]
        shape = len(rows), max(map(len, rows), default=0)
        return (
            np.array(places, np.int64).reshape(-1, 2),
            as_i32([i for ids in rows for i in ids]),
            np.array(shape, np.int64),
        )

    def special_tokens(self, *special: Array) -> Tokens:
        """Return the pattern that finds special tokens, and their ids; one of letters is not found inside words."""
        known = dict(reversed(list(zip(unpacked(*special[:3]), special[3].ravel().tolist(), strict=True))))
        quoted = [(re.escape(token), token.isalpha()) for token in unpacked(*special[:3])]
        choices = (rb"\b%s|%s\b" % (text, text) if is_word else text for text, is_word in quoted)
        return re.compile(b"|".join(choices)), known

    def with_ends(self, model: Array) -> tuple[Any, list[int]]:
        """Return the processor, which adds the token at the beginning, and the ids after those of a text.

        Where there are special tokens, a text has several beginnings, but one end.
        """
        processor = self.processor(model)
        ends = []
        for option, is_added in (("eos", self.add_eos), ("bos", self.add_bos)):
            try:
                processor.set_encode_extra_options(option if is_added else "")
            except RuntimeError:
                raise OperatorError(f"the model has no piece that add_{option} could add to a text") from None
            ends.append(processor.encode(""))
        return processor, ends[0]

    def _row(
        self, encode: Callable[[bytes], list[int]], text: bytes, tokens: Tokens | None, end: list[int]
    ) -> list[int]:
        """Return the ids of a string. With special tokens, each part that is not empty has a token before it."""
        ids: list[int] = []
        if tokens is None:
            ids = encode(text)
        else:
            at = 0
            for match in tokens[0].finditer(text):
                part = text[at : match.start()]
                ids += [*(encode(part) if part else ()), tokens[1][match[0]]]
                at = match.end()
            if text[at:]:
                ids += encode(text[at:])
        ids += end
        return ids[::-1] if self.reverse else ids


class _Detokenizer(_SentencePiece):
    """Base of operations from ids [batch, length] to strings. Ids outside the vocabulary have no text."""

    takes = "model u8[...]; ids integer[Rows, Length]"
    gives = "begins i32[Rows]; ends i32[Rows]; symbols u8[Bytes]"

    def run(self, model: Array, ids: Array) -> tuple[Array, ...]:
        processor = self.prepared(_SentencePiece.processor, model)
        known = range(processor.get_piece_size())
        rows = ([number for number in row if number in known] for row in ids.tolist())
        return packed((self._text(processor, row) for row in rows), (len(ids),))

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
