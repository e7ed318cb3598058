"""Makes a tokenizer and a detokenizer with the packages tokenizers and openvino-tokenizers, apart from the tests.

usage: language_model_worker.py FOLDER    facts.json says how many tokens there are, and what is expected of texts;
other_tokenizer.xml normalizes texts first; chat/ has a tokenizer that adds tokens to texts, and a chat template
"""

import json
import sys
from pathlib import Path

import openvino as ov
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
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
tokenizer.post_processor = processors.TemplateProcessing(single="<|end|> $A <|end|>", special_tokens=[("<|end|>", 0)])
chat = fast(tokenizer)
chat.chat_template = "{% for message in messages %}{{ eos_token }}{{ message.role }}: {{ message.content }}{% endfor %}"
chat.save_pretrained(folder / "chat")
for name, model in zip(("tokenizer", "detokenizer"), convert_tokenizer(chat, with_detokenizer=True), strict=True):
    ov.save_model(model, folder / "chat" / f"openvino_{name}.xml")
messages = [{"role": "system", "content": TEXTS[0]}, {"role": "user", "content": TEXTS[1]}]
of_chat = {
    "messages": messages,
    "chat_ids": chat.apply_chat_template(messages)["input_ids"],
    "added": chat("the")["input_ids"],
}
facts = {"size": len(plain), "end": plain.eos_token_id, "ids": [plain(text)["input_ids"] for text in TEXTS]}
tokenizer.normalizer = normalizers.NFC()
ov.save_model(convert_tokenizer(fast(tokenizer)), folder / "other_tokenizer.xml")
(folder / "facts.json").write_text(json.dumps({**facts, **of_chat, "texts": TEXTS}), encoding="utf-8")
