"""Makes a tokenizer and a detokenizer with the packages tokenizers and openvino-tokenizers, apart from the tests.

usage: language_model_worker.py FOLDER    facts.json says how many tokens there are, and what is expected of texts;
other_tokenizer.xml normalizes texts first
"""

import json
import sys
from pathlib import Path

import openvino as ov
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "the quick brown fox jumps over the lazy dog and runs through the fields",
    "日本語の文章と русский текст и ελληνικά und Größe \U0001f600\U0001f680",
]


def fast(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    made.clean_up_tokenization_spaces = False
    return made


folder = Path(sys.argv[1])
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["<|end|>"], initial_alphabet=alphabet)
tokenizer.train_from_iterator(TEXTS, trainer)
plain = fast(tokenizer)
for name, model in zip(("tokenizer", "detokenizer"), convert_tokenizer(plain, with_detokenizer=True), strict=True):
    ov.save_model(model, folder / f"openvino_{name}.xml")
facts = {"size": len(plain), "end": plain.eos_token_id, "ids": [plain(text)["input_ids"] for text in TEXTS]}
tokenizer.normalizer = normalizers.NFC()
ov.save_model(convert_tokenizer(fast(tokenizer)), folder / "other_tokenizer.xml")
(folder / "facts.json").write_text(json.dumps({**facts, "texts": TEXTS}), encoding="utf-8")
