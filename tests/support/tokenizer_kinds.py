"""Tokenizers of all kinds, trained on a few texts and converted by openvino_tokenizers, for tests and ``benchmarks.tokenizers``."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
import sentencepiece
from openvino import opset13 as ops
from openvino_tokenizers import _get_factory, convert_tokenizer
from openvino_tokenizers.hf_parser import get_sp_detokenizer
from openvino_tokenizers.utils import TokenzierConversionParams
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from tests.support.tokenizer_texts import corpus

TEXTS = corpus()
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def trained(tokenizer: Tokenizer, trainer: type, special: list[str] | None = None, **options: Any) -> Tokenizer:
    tokenizer.train_from_iterator(
        TEXTS, trainer(vocab_size=2500, special_tokens=special or [], show_progress=False, **options)
    )
    return tokenizer


def gpt2(**options: Any) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trained(made, trainers.BpeTrainer, ["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|endoftext|>", pad_token="<|endoftext|>", **options
    )


def qwen2() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(QWEN), "isolated", False)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trained(made, trainers.BpeTrainer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.add_special_tokens([AddedToken(text, normalized=False) for text in ("<|endoftext|>", "<|im_start|>")])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<|endoftext|>")


def llama2() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    trained(made, trainers.BpeTrainer, ["<unk>", "<s>", "</s>", *alphabet], limit_alphabet=600)
    pieces = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(pieces)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="</s>", padding_side="left")


def bert(*, lowercase: bool) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trained(made, trainers.WordPieceTrainer, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **names)


def unigram(*, splits: bool) -> PreTrainedTokenizerFast:
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(trained_model("unigram"))
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    metaspace = pre_tokenizers.Metaspace()
    whitespace = pre_tokenizers.WhitespaceSplit()
    made.pre_tokenizer = pre_tokenizers.Sequence([whitespace, metaspace]) if splits else metaspace
    made.decoder = decoders.Metaspace()
    trained(made, trainers.UnigramTrainer, ["<pad>", "</s>", "<unk>", "<mask>"], unk_token="<unk>")
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    mask = AddedToken("<mask>", lstrip=True)
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="<pad>", mask_token=mask)


def words() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trained(made, trainers.WordLevelTrainer, ["[UNK]", "[PAD]"])
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]")


def trained_model(kind: str) -> bytes:
    """Return a serialized model of SentencePiece."""
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=writer,
        model_type=kind,
        vocab_size=2500,
        hard_vocab_limit=False,
        byte_fallback=kind == "bpe",
        character_coverage=0.98,
        user_defined_symbols=["<user>"],
        minloglevel=2,
    )
    return writer.getvalue()


def sentence_piece(kind: str, *, streams: bool) -> tuple[ov.Model, ov.Model]:
    """Return models with the operations of SentencePiece."""
    model = ops.constant(np.frombuffer(trained_model(kind), np.uint8))
    texts = ops.parameter([-1], ov.Type.string)
    options = {"nbest_size": 0, "alpha": 0.0, "add_bos": streams, "add_eos": True, "reverse": streams}
    node = _get_factory().create("SentencepieceTokenizer", [model.output(0), texts.output(0)], options)
    places, numbers, shape = node.outputs()
    dense = ops.scatter_nd_update(ops.broadcast(ops.constant(np.int32(0)), shape), places, numbers)
    params = TokenzierConversionParams(streaming_detokenizer=streams, clean_up_tokenization_spaces=streams)
    return ov.Model([dense.output(0), shape], [texts]), get_sp_detokenizer(model, params)


def converted(made: PreTrainedTokenizerFast, **options: Any) -> tuple[ov.Model, ov.Model]:
    return convert_tokenizer(made, with_detokenizer=True, **options)  # type: ignore[no-any-return]


KINDS: dict[str, Callable[[], tuple[ov.Model, ov.Model]]] = {
    "gpt2": lambda: converted(gpt2()),
    "gpt2-left": lambda: converted(gpt2(padding_side="left", truncation_side="left"), max_length=16, truncation=True),
    "gpt2-padded": lambda: converted(gpt2(), max_length=16, use_max_padding=True, skip_special_tokens=False),
    "qwen2": lambda: converted(qwen2()),
    "llama2": lambda: converted(llama2()),
    "bert-cased": lambda: converted(bert(lowercase=False)),
    "bert-uncased": lambda: converted(bert(lowercase=True), truncation=True, max_length=12),
    "bert-pair": lambda: converted(bert(lowercase=True), number_of_inputs=2, truncation=True, max_length=15),
    "t5": lambda: converted(unigram(splits=True)),
    "xlm-r": lambda: converted(unigram(splits=False)),
    "words": lambda: converted(words()),
    "sp-unigram": lambda: sentence_piece("unigram", streams=False),
    "sp-bpe": lambda: sentence_piece("bpe", streams=True),
}
"""For each kind, what returns its tokenizer and its detokenizer."""
