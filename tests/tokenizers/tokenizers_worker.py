"""Tokenizers of transformers, and what OpenVINO makes of texts with them; it runs apart from the tests."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from tokenizers import AddedToken

from ovir.core.arrays import Array
from tests.support.tokenizer_kinds import KINDS, bert, converted, gpt2, llama2, qwen2, unigram


def stripped(made: Any) -> tuple[ov.Model, ov.Model]:
    """Return the models of a tokenizer with special tokens that take spaces on neither side, on one, or on both."""
    tokens = [
        AddedToken(f"<{left:d}{right:d}>", lstrip=left, rstrip=right, normalized=False, special=True)
        for left, right in product((False, True), repeat=2)
    ]
    made.add_special_tokens({"additional_special_tokens": tokens})
    return converted(made)


ALL: dict[str, Callable[[], tuple[ov.Model, ov.Model]]] = {
    **KINDS,
    "gpt2-stripped": lambda: stripped(gpt2()),
    "qwen2-stripped": lambda: stripped(qwen2()),
    "llama2-stripped": lambda: stripped(llama2()),
    "bert-stripped": lambda: stripped(bert(lowercase=True)),
    "t5-stripped": lambda: stripped(unigram(splits=True)),
    "xlm-r-stripped": lambda: stripped(unigram(splits=False)),
}


def tokenize(kind: str, folder: Path, batches: list[list[str]], ids: list[Array]) -> tuple[Any, list[list[str]]]:
    """Save a tokenizer and its detokenizer in a folder, as KIND_tokenizer.xml and KIND_detokenizer.xml, and run them.

    The result has, for each batch of texts, the outputs of the tokenizer and the texts of its ids, and the texts of
    each batch of ids.
    """
    compiled = []
    for model, part in zip(ALL[kind](), ("tokenizer", "detokenizer"), strict=True):
        path = folder / f"{kind}_{part}.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        compiled.append(ov.Core().compile_model(path, "CPU"))
    tokenizer, detokenizer = compiled
    results = []
    for batch in batches:
        texts = [batch, batch[::-1]][: len(tokenizer.inputs)]
        outputs = [np.array(array) for array in tokenizer([ov.Tensor(part) for part in texts]).values()]
        results.append((outputs, detokenizer([outputs[0]])[0].tolist()))
    return results, [detokenizer([batch])[0].tolist() for batch in ids]
