"""Makes a tokenizer and a detokenizer with the packages tokenizers and openvino-tokenizers, apart from the tests.

usage: language_model_worker.py FOLDER    tokenizer.json says how many tokens there are, and what is expected of texts
"""

import json
import sys
from pathlib import Path

import openvino as ov
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "the quick brown fox jumps over the lazy dog and runs through the fields",
    "日本語の文章と русский текст и ελληνικά und Größe \U0001f600\U0001f680",
]
folder = Path(sys.argv[1])
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["<|end|>"], initial_alphabet=alphabet)
tokenizer.train_from_iterator(TEXTS, trainer)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
fast.clean_up_tokenization_spaces = False
for name, model in zip(("tokenizer", "detokenizer"), convert_tokenizer(fast, with_detokenizer=True), strict=True):
    ov.save_model(model, folder / f"openvino_{name}.xml")
facts = {"size": len(fast), "end": fast.eos_token_id, "ids": [fast(text)["input_ids"] for text in TEXTS]}
(folder / "facts.json").write_text(json.dumps({**facts, "texts": TEXTS}), encoding="utf-8")
